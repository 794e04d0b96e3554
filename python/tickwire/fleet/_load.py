"""``tickwire fleet load``: how many rooms this machine carries, by bots over real sockets."""

from __future__ import annotations

import argparse
import contextlib
import gc
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Barrier
from typing import Any

import tickwire as tw
from tickwire._arguments import Parser

SETTLING = 3.0
"""Seconds for connecting, before anything is measured."""
LOSS_PERCENT = 1.0
"""Above this the machine drops what it gets."""
GROWTH = 1.5
"""The next number of rooms, in the search for the knee."""


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
    """What is carried."""

    rooms: int
    players: int
    rate: int
    seconds: float
    processes: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What it did, over all rooms: times in milliseconds."""

    load: Load
    connected: int
    tick_p50: float
    tick_p99: float
    rtt_p50: float
    rtt_p99: float
    loss_percent: float
    kbps_down: float
    """Of a player, with headers."""
    late_percent: float
    """Of the ticks."""

    @property
    def is_well(self) -> bool:
        """Whether the machine carried it."""
        wanted = self.load.rooms * self.load.players
        return (
            self.connected == wanted
            and self.tick_p99 <= 1000 / self.load.rate  # a longer pass makes ticks late
            and self.loss_percent <= LOSS_PERCENT
        )


def _protocol(rate: int) -> tw.Protocol[Any]:
    return tw.Protocol(0x6C6F6164, [], ghosts=[Walker], inputs=Walk, tick_rate=rate)


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values doesn't exceed; NaN of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.nan


def _turns(rate: int, seconds: float) -> Iterator[bool]:
    """A turn for each tick; whether it is late by more than a tick."""
    start = time.perf_counter()
    for number in range(round(rate * seconds)):
        wait = start + number / rate - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        yield wait < -1 / rate


class _Room:
    """A room with its server: everybody walks."""

    def __init__(self, load: Load) -> None:
        self.server = tw.Server("127.0.0.1:0", _protocol(load.rate), max_clients=load.players)
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


Pipe = Any
"""A connection of :mod:`multiprocessing`."""


def serve(load: Load, rooms: int, ports: Pipe, start: Barrier, results: Pipe) -> None:
    """Rooms of one process, which a single thread ticks."""
    here = [_Room(load) for _ in range(rooms)]
    ports.send([room.server.address.port for room in here])
    gc.freeze()
    start.wait()
    took: list[float] = []
    late = 0
    for number, is_late in enumerate(_turns(load.rate, SETTLING + load.seconds + 1)):
        begun = time.perf_counter()
        for room in here:
            room.tick()
        if SETTLING <= number / load.rate < SETTLING + load.seconds:
            took.append(1000 * (time.perf_counter() - begun))
            late += is_late
    results.send((took, late))
    for room in here:
        room.server.close()


def play(load: Load, ports: Sequence[int], start: Barrier, results: Pipe) -> None:
    """Bots of one process: the players of some rooms."""
    protocol = _protocol(load.rate)
    start.wait()
    bots = [tw.Client.connect(("127.0.0.1", port), protocol) for port in ports for _ in range(load.players)]
    for number, _ in enumerate(_turns(load.rate, SETTLING + load.seconds)):
        step = Walk(1 if number // load.rate % 2 else -1, 1)
        for bot in bots:
            with bot.tick():
                bot.send_input(step)
    stats = [bot.stats for bot in bots if bot.connected]
    results.send(
        [
            (
                each.rtt_ms,
                max(each.packet_loss_percent, each.packet_loss_received_percent),
                each.received_kbps,
            )
            for each in stats
        ]
    )
    for bot in bots:
        bot.close()


def measure(load: Load) -> Measured:
    """Carries a load, in processes of its own."""
    context = multiprocessing.get_context("spawn")
    processes = min(load.processes, load.rooms)
    shares = [load.rooms // processes + (number < load.rooms % processes) for number in range(processes)]
    start = context.Barrier(2 * processes)
    with contextlib.ExitStack() as stack:
        served, played = [], []
        for share in shares:
            ports, told = context.Pipe(duplex=False)
            ticks, measured = context.Pipe(duplex=False)
            _begin(stack, context, partial(serve, load, share, told, start, measured))
            rtts, heard = context.Pipe(duplex=False)
            _begin(stack, context, partial(play, load, ports.recv(), start, heard))
            served.append(ticks)
            played.append(rtts)
        passes = [each.recv() for each in served]
        links = [link for each in played for link in each.recv()]
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


def _begin(stack: contextlib.ExitStack, context: Any, run: Callable[[], None]) -> None:
    process = context.Process(target=run, daemon=True)
    process.start()
    stack.callback(process.join)


def find_knee(load: Load, tell: Callable[[Measured], None]) -> int:
    """The number of rooms that this machine carries: more and more, and then between the last two. 0: not
    even the first."""
    carried, too_many = 0, None
    rooms = load.rooms
    while too_many is None or too_many - carried > max(1, carried // 10):
        measured = measure(Load(rooms, load.players, load.rate, load.seconds, load.processes))
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
    """A line under :data:`HEADER`."""
    load = measured.load
    text = (
        f"{load.rooms:5} {measured.connected:7}  {measured.tick_p50:11.2f} {measured.tick_p99:5.2f} "
        f"{measured.late_percent:7.2f}  {measured.rtt_p50:11.1f} {measured.rtt_p99:5.1f} "
        f"{measured.loss_percent:7.2f}  {measured.kbps_down:15.1f}"
    )
    return text if measured.is_well else f"{text}  too much"


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    for name, kind, default, low, high, text in (
        ("rooms", int, 10, 1, 10_000, "rooms to carry, or to begin the search for the knee with"),
        ("players", int, 16, 1, 256, "bots in each"),
        ("rate", int, 30, 1, 240, "ticks a second"),
        ("seconds", float, 5.0, 1, 3600, "how long to measure"),
        (
            "processes",
            int,
            os.cpu_count() or 1,
            1,
            256,
            "server processes, each with as many of bots beside it",
        ),
    ):
        convert = partial(_within, kind, low, high)
        parser.add_argument(
            f"--{name}", type=convert, default=default, metavar="N", help=f"{text} ({default})"
        )
    parser.add_argument("--knee", action="store_true", help="find how many rooms this machine carries")
    parser.set_defaults(run=run)


def _within(kind: type, low: float, high: float, text: str) -> Any:
    with contextlib.suppress(ValueError):
        value = kind(text)
        if low <= value <= high:
            return value
    raise argparse.ArgumentTypeError(f"must be {low} to {high}, not {text!r}")


def run(parsed: argparse.Namespace) -> int:
    """Measures and prints; returns the exit code: 1 if the machine doesn't carry it."""
    load = Load(parsed.rooms, parsed.players, parsed.rate, parsed.seconds, parsed.processes)
    print(HEADER, flush=True)
    if not parsed.knee:
        measured = measure(load)
        print(line(measured))
        return 0 if measured.is_well else 1
    carried = find_knee(load, lambda measured: print(line(measured), flush=True))
    cores = os.cpu_count() or 1
    print(
        f"This machine carries {carried} rooms of {load.players} players at {load.rate} ticks a second, "
        f"with the bots on it, on {cores} cores."
    )
    return 0 if carried else 1
