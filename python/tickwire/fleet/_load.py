"""``tickwire fleet load``: measures how many rooms a machine can run, with bots over real sockets."""

from __future__ import annotations

import argparse
import contextlib
import gc
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Protocol

import tickwire as tw
from tickwire._arguments import Parser

SETTLING = 3.0
"""Seconds for connecting, before the measurement starts."""
LOSS_PERCENT = 1.0
"""The packet loss above which the machine is overloaded."""
GROWTH = 1.5
"""The factor from one number of rooms to the next, in the search for the limit."""


@tw.message
class Walk:
    """A bot's step."""

    x: tw.i8
    y: tw.i8


@tw.ghost
class Walker:
    """A bot in its room."""

    x: tw.i16 = 0
    y: tw.i16 = 0


@dataclass(frozen=True, slots=True)
class Load:
    """The load to run: rooms and bots."""

    rooms: int
    players: int
    rate: int
    seconds: float
    processes: int
    ray: str | None = None
    """The address of a Ray cluster; None: this machine."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The results over all rooms. Times are in milliseconds."""

    load: Load
    connected: int
    tick_p50: float
    tick_p99: float
    rtt_p50: float
    rtt_p99: float
    loss_percent: float
    kbps_down: float
    """The rate of data that a player receives, in kbit/s, including headers."""
    late_percent: float
    """The share of ticks that were late."""

    @property
    def is_well(self) -> bool:
        """Whether the machine ran the load without trouble."""
        wanted = self.load.rooms * self.load.players
        return (
            self.connected == wanted
            and self.tick_p99 <= 1000 / self.load.rate  # a longer pass makes ticks late
            and self.loss_percent <= LOSS_PERCENT
        )


def _protocol(rate: int) -> tw.Protocol[Any]:
    return tw.Protocol(0x6C6F6164, [], ghosts=[Walker], inputs=Walk, tick_rate=rate)


def quantile(values: Sequence[float], share: float) -> float:
    """The value at the position ``share`` of the sorted values: 0.5 gives the median. NaN if there are no
    values.
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.nan


def _turns(rate: int, seconds: float) -> Iterator[bool]:
    """Yields once per tick: True if the tick is late by more than a tick."""
    start = time.perf_counter()
    for number in range(round(rate * seconds)):
        wait = start + number / rate - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        yield wait < -1 / rate


class _Room:
    """A room with its server, in which all players walk."""

    def __init__(self, load: Load, key: bytes, host: str) -> None:
        self.server = tw.Server((host, 0), _protocol(load.rate), key=key, max_clients=load.players)
        self._walkers: dict[tw.ClientHandle, Walker] = {}

    def tick(self) -> None:
        with self.server.tick() as inbox:
            for client, what in inbox:
                if isinstance(what, tw.Connected):
                    self._walkers[client] = self.server.world.spawn(Walker(), owner=client)
                elif isinstance(what, tw.Disconnected):
                    self.server.world.despawn(self._walkers.pop(client))
            for client, walk in self.server.inputs:
                if walk is not None:
                    walker = self._walkers[client]
                    walker.x, walker.y = walker.x + walk.x, walker.y + walk.y


def serve(load: Load, key: bytes, rooms: int) -> Iterator[Any]:
    """Runs the rooms of one process, ticked by a single thread. Yields the rooms' addresses first. Then
    yields how long each tick of all rooms took, in milliseconds, and how many ticks were late.
    """
    host = "127.0.0.1"
    if load.ray is not None:
        from tickwire.fleet.ray import ray

        host = ray.util.get_node_ip_address()
    here = [_Room(load, key, host) for _ in range(rooms)]
    yield [str(room.server.address) for room in here]
    gc.freeze()
    took: list[float] = []
    late = 0
    for number, is_late in enumerate(_turns(load.rate, SETTLING + load.seconds + 1)):
        begun = time.perf_counter()
        for room in here:
            room.tick()
        if SETTLING <= number / load.rate < SETTLING + load.seconds:
            took.append(1000 * (time.perf_counter() - begun))
            late += is_late
    for room in here:
        room.server.close()
    yield took, late


def play(load: Load, key: bytes, addresses: Sequence[str]) -> Iterator[Any]:
    """Runs the bots of one process, the players of some rooms. Yields None first, then the round trip, loss
    and rate of each connected bot.
    """
    protocol = _protocol(load.rate)
    yield None
    tokens = [
        tw.ConnectToken.generate(protocol=protocol.id, key=key, client_id=number, servers=[address])
        for address in addresses
        for number in range(load.players)
    ]
    bots = [tw.Client(protocol, token) for token in tokens]
    for number, _ in enumerate(_turns(load.rate, SETTLING + load.seconds)):
        step = Walk(1 if number // load.rate % 2 else -1, 1)
        for bot in bots:
            with bot.tick():
                bot.send_input(step)
    yield [
        (
            stats.rtt_ms,
            max(stats.packet_loss_percent, stats.packet_loss_received_percent),
            stats.received_kbps,
        )
        for stats in [bot.stats for bot in bots if bot.connected]
    ]
    for bot in bots:
        bot.close()


class _Worker(Protocol):
    """Runs the steps of :func:`serve` or :func:`play` in a separate process."""

    def begin(self) -> None:
        """Starts the next step."""

    def answer(self) -> Any:
        """Waits for the step's result."""


class _Process:
    """A worker on this machine."""

    def __init__(self, stack: contextlib.ExitStack, steps: Callable[[], Iterator[Any]]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        process = context.Process(target=_work, args=(other, steps), daemon=True)
        process.start()
        stack.callback(process.join)
        stack.callback(self._pipe.close)
        other.close()

    def begin(self) -> None:
        self._pipe.send(None)

    def answer(self) -> Any:
        try:
            return self._pipe.recv()
        except EOFError:
            raise OSError("a process of the load ended early") from None


def _work(pipe: Connection, make: Callable[[], Iterator[Any]]) -> None:
    steps = make()
    with contextlib.suppress(EOFError):  # the pipe's other end was closed
        while True:
            pipe.recv()
            pipe.send(next(steps))


class _Actor:
    """A worker on a node of a Ray cluster."""

    def __init__(self, stack: contextlib.ExitStack, steps: Callable[[], Iterator[Any]]) -> None:
        from tickwire.fleet.ray import ray

        # The machine is to be loaded until it is too much: Ray's own count of its cores mustn't prevent that.
        options = {"num_cpus": 0, "scheduling_strategy": "SPREAD"}
        self._ray = ray
        self._actor = self._ray.remote(**options)(_Steps).remote(steps)
        stack.callback(self._ray.kill, self._actor)
        self._next: Any = None

    def begin(self) -> None:
        self._next = self._actor.step.remote()

    def answer(self) -> Any:
        try:
            return self._ray.get(self._next)
        except self._ray.exceptions.RayError as error:
            raise OSError(f"a process of the load ended early: {str(error).partition(chr(10))[0]}") from None


class _Steps:
    def __init__(self, make: Callable[[], Iterator[Any]]) -> None:
        self._steps = make()

    def step(self) -> Any:
        return next(self._steps)


def measure(load: Load) -> Measured:
    """Runs a load in separate processes, and measures it."""
    processes = min(load.processes, load.rooms)
    shares = [load.rooms // processes + (number < load.rooms % processes) for number in range(processes)]
    begin = _Process if load.ray is None else _Actor
    key = tw.generate_key()
    with contextlib.ExitStack() as stack:
        servers: list[_Worker] = [begin(stack, partial(serve, load, key, share)) for share in shares]
        addresses = _step(servers)
        bots: list[_Worker] = [begin(stack, partial(play, load, key, theirs)) for theirs in addresses]
        _step(bots)
        answers = _step(servers + bots)
    passes = answers[:processes]
    links = [link for each in answers[processes:] for link in each]
    took = [value for each, _ in passes for value in each]
    return Measured(
        load,
        len(links),
        quantile(took, 0.5),
        quantile(took, 0.99),
        quantile([rtt for rtt, _, _ in links], 0.5),
        quantile([rtt for rtt, _, _ in links], 0.99),
        sum(loss for _, loss, _ in links) / max(1, len(links)),
        sum(kbps for _, _, kbps in links) / max(1, len(links)),
        100 * sum(late for _, late in passes) / max(1, len(took)),
    )


def _step(workers: Sequence[_Worker]) -> list[Any]:
    """Runs a step on all workers at once."""
    for worker in workers:
        worker.begin()
    return [worker.answer() for worker in workers]


def find_knee(load: Load, tell: Callable[[Measured], None]) -> int:
    """Returns the number of rooms that this machine can run; 0: not even one room. The function tries more
    and more rooms until there are too many, and then numbers in between.
    """
    carried, too_many = 0, None
    rooms = load.rooms
    while too_many is None or too_many - carried > max(1, carried // 10):
        measured = measure(replace(load, rooms=rooms))
        tell(measured)
        if measured.is_well:
            carried = rooms
        else:
            too_many = rooms
        rooms = math.ceil(rooms * GROWTH) if too_many is None else (carried + too_many) // 2
        if rooms == carried:
            break
    return carried


HEADER = "rooms players  tick ms p50   p99  late %   rtt ms p50   p99  loss %  kbit/s a player"


def line(measured: Measured) -> str:
    """Formats results as a line under :data:`HEADER`."""
    load = measured.load
    text = (
        f"{load.rooms:5} {measured.connected:7}  {measured.tick_p50:11.2f} {measured.tick_p99:5.2f} "
        f"{measured.late_percent:7.2f}  {measured.rtt_p50:11.1f} {measured.rtt_p99:5.1f} "
        f"{measured.loss_percent:7.2f}  {measured.kbps_down:15.1f}"
    )
    return text if measured.is_well else f"{text}  too much"


def add_arguments(parser: Parser) -> None:
    """Adds the command's options."""
    for name, kind, default, low, high, text in (
        ("rooms", int, 10, 1, 10_000, "rooms to carry, or to begin the search for the knee with"),
        ("players", int, 16, 1, 256, "bots in each"),
        ("rate", int, 30, 1, 240, "ticks a second"),
        ("seconds", float, 5.0, 1, 3600, "how long to measure"),
        (
            "processes",
            int,
            None,
            1,
            256,
            "server processes, each with as many of bots beside it",
        ),
    ):
        convert = partial(_within, kind, low, high)
        parser.add_argument(
            f"--{name}",
            type=convert,
            default=default,
            metavar="N",
            help=f"{text} ({'one for each core' if default is None else default})",
        )
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        default=os.environ.get("RAY_ADDRESS") or None,
        help="the Ray cluster that carries rooms and bots, such as auto (by default RAY_ADDRESS)",
    )
    parser.add_argument("--knee", action="store_true", help="find how many rooms this machine carries")
    parser.set_defaults(run=run)


def _within(kind: type, low: float, high: float, text: str) -> Any:
    with contextlib.suppress(ValueError):
        value = kind(text)
        if low <= value <= high:
            return value
    raise argparse.ArgumentTypeError(f"must be {low} to {high}, not {text!r}")


def _join_cluster(address: str) -> int:
    """Connects to a Ray cluster. Returns the number of its cores."""
    from tickwire.fleet.ray import ray  # which says how to install it

    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False)
        except (RuntimeError, ValueError) as error:
            raise OSError(f"no Ray cluster at {address!r}: {error}") from None
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def run(parsed: argparse.Namespace) -> int:
    """Measures the load and prints the results. Returns 1 if the machine can't run the load, otherwise 0."""
    cores = os.cpu_count() or 1
    if parsed.ray is not None:
        try:
            cores = _join_cluster(parsed.ray)
        except (ImportError, OSError) as error:
            print(f"--ray: {error}", file=sys.stderr)
            return 1
    load = Load(
        parsed.rooms, parsed.players, parsed.rate, parsed.seconds, parsed.processes or cores, parsed.ray
    )
    print(HEADER, flush=True)
    try:
        return _knee(load, cores) if parsed.knee else _once(load)
    except OSError as error:
        print(error, file=sys.stderr)
        return 1


def _once(load: Load) -> int:
    measured = measure(load)
    print(line(measured))
    return 0 if measured.is_well else 1


def _knee(load: Load, cores: int) -> int:
    carried = find_knee(load, lambda measured: print(line(measured), flush=True))
    what = "This machine" if load.ray is None else "The cluster"
    print(
        f"{what} carries {carried} rooms of {load.players} players at {load.rate} ticks a second, "
        f"with the bots on it, on {cores} cores."
    )
    return 0 if carried else 1
