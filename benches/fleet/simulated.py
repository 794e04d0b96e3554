"""A fleet in virtual time: machines that die, are cut off or updated, with the library's own rooms, stores
and clients, and the matchmaker's game.

Only the engine is simulated: it sees a lost machine after some seconds, and takes a second to begin a room.
Players walk; a pause is the time in which a player's own avatar doesn't.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from typing import Any

import tickwire as tw
from tickwire import fleet
from tickwire.fleet._keeper import LEASE
from tickwire.fleet._load import quantile
from tickwire.fleet._rooms import LINGER, MOVED, Running
from tickwire.samples.matchmaker.game import KEY, PROTOCOL, Attic, Walk, Walker
from tickwire.samples.matchmaker.game import TICKS_PER_SECOND as RATE

TIMEOUT = 2
"""Seconds of silence that end a player's connection, as in its token."""
DETECTION = 2.0
"""Seconds until the engine sees that a machine is lost."""
START = 1.0
"""Seconds until a room's process has begun."""
RESTART = 2.0
"""Seconds that a machine's update takes once it is empty."""


class AtOnce(Executor):
    """Calls at once, in the caller's thread: what a thread would have done by the next tick."""

    def submit(self, call: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """See :class:`concurrent.futures.Executor`."""
        future: Future[Any] = Future()
        try:
            future.set_result(call(*given, **named))
        except Exception as error:
            future.set_exception(error)
        return future


class Machine:
    """Some rooms, and a way to the store that may be cut."""

    def __init__(self, number: int, store: fleet.Store) -> None:
        self.host = f"10.{number // 200}.{number % 200}.1"
        self.store = store
        self.running: dict[str, Running] = {}
        self.closing: list[tw.Server] = []
        self.runs = True
        """Its processes run."""
        self.reaches_store = True
        self.accepts = True
        """The engine puts rooms there."""
        self._port = 40_000

    def begin(self, name: str, network: tw.testing.SimulatedNetwork) -> bool:
        """Begins a room; False: another process has it still."""
        claim = self.claim(name, LEASE)
        if claim is None:
            return False
        self._port += 1
        self.running[name] = Running(
            Attic,
            claim,
            (self.host, self._port),
            self,
            network=network,
            clock=lambda: network.now,
            executor=AtOnce(),
        )
        return True

    def tick(self) -> None:
        """A tick of all its rooms."""
        for name, running in list(self.running.items()):
            inbox = running.server.receive()
            goes_on = running.tick(inbox)
            running.server.flush()
            if not goes_on:
                running.leave()
                running.server.close(linger=LINGER, reason=MOVED, wait=False)
                self.closing.append(running.server)
                del self.running[name]
        self.closing = [server for server in self.closing if not server.closed]
        for server in self.closing:
            server._step()

    def _reached(self) -> fleet.Store:
        if not self.reaches_store:
            raise OSError("the store can't be reached")
        return self.store

    def claim(self, room: str, seconds: float) -> fleet.Claim | None:
        """A store's, by this machine's line."""
        return self._reached().claim(room, seconds)

    def keep(self, claim: fleet.Claim, seconds: float, world: bytes | None = None) -> bool:
        """A store's, by this machine's line."""
        return self._reached().keep(claim, seconds, world)

    def release(self, claim: fleet.Claim) -> None:
        """A store's, by this machine's line."""
        self._reached().release(claim)

    def forget(self, claim: fleet.Claim) -> None:
        """A store's, by this machine's line."""
        self._reached().forget(claim)


class Engine:
    """Places rooms on machines: the part of Agones or Ray."""

    def __init__(self, machines: list[Machine], network: tw.testing.SimulatedNetwork) -> None:
        self.machines = machines
        self._network = network
        self._where: dict[str, Machine] = {}
        self._starting: dict[str, tuple[Machine, float]] = {}
        self._lost: dict[Machine, float] = {}
        """Since when a machine is silent."""

    def is_seen(self, machine: Machine) -> bool:
        """Whether the engine takes it for alive."""
        return self._network.now < self._lost.get(machine, float("inf")) + DETECTION

    def note_lost(self, machine: Machine) -> None:
        """Nothing is heard of a machine from now on."""
        self._lost[machine] = self._network.now

    def note_back(self, machine: Machine) -> None:
        """It is heard of again."""
        self._lost.pop(machine, None)

    def tick(self) -> None:
        """Begins the rooms whose processes are up."""
        for name, (machine, at) in list(self._starting.items()):
            if self._network.now < at:
                continue
            if not (machine.runs and machine.reaches_store and machine.accepts):
                del self._starting[name]
            elif machine.begin(name, self._network):
                del self._starting[name]
                self._where[name] = machine

    def find_or_create(self, room: str) -> fleet.Place:
        """See :class:`tickwire.fleet.Engine`."""
        machine = self._where.get(room)
        if machine is not None and self.is_seen(machine) and room in machine.running:
            return machine.running[room].place
        if room not in self._starting:
            free = [each for each in self.machines if each.accepts and self.is_seen(each)]
            starting = [each for each, _ in self._starting.values()]
            machine = min(free, key=lambda each: len(each.running) + starting.count(each))
            self._starting[room] = machine, self._network.now + START
        raise OSError(f"room {room} begins")


class Player:
    """Somebody who walks."""

    def __init__(self, fleet_: Fleet, number: int, room: str) -> None:
        self.room = room
        self._fleet = fleet_
        self._number = number
        self.address = f"172.{16 + number // 50_000}.{number // 200 % 250}.{number % 200 + 1}:5000"
        self.client: tw.Client | None = None
        self.walker: Walker | None = None
        self.x = 0
        """The last that was seen of its walker."""
        self.walked_at: float | None = None
        self.pause = 0.0
        """The longest, since the beginning or the last :meth:`forget`."""
        self.went_back = 0
        """The most steps that it lost at once."""
        self.lost = False
        """It has another walker than before, or none: its match was lost."""

    def token(self) -> tw.ConnectToken:
        """Asks the matchmaker."""
        place = self._fleet.engine.find_or_create(self.room)
        return tw.ConnectToken.generate(
            protocol=place.protocol_id,
            key=KEY,
            client_id=self._number,
            servers=[place.address],
            timeout=TIMEOUT,
            now=self._fleet.network.unix,
        )

    def tick(self) -> None:
        """Walks a step."""
        now = self._fleet.network.now
        if self.client is None:
            try:
                token = self.token()
            except OSError:
                return
            self.client = tw.Client(
                PROTOCOL,
                token,
                network=self._fleet.network,
                tuning=tw.Tuning(bind=self.address),
                reconnect=tw.connections.Reconnect(token=self.token, max_delay=1, first_delay=0.25),
            )
        with self.client.tick():
            self.client.send_input(Walk(1))
        walker = self.client.world.mine(Walker) if self.client.connected else None
        if walker is None or walker.x == self.x:
            return
        if self.walker is not None and walker is not self.walker:
            self.lost = True
        self.went_back = max(self.went_back, self.x - walker.x)
        if self.walked_at is not None:
            self.pause = max(self.pause, now - self.walked_at)
        self.walker, self.x, self.walked_at = walker, walker.x, now

    def forget(self) -> None:
        """Begins to measure."""
        self.pause, self.went_back = 0.0, 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a scene did to its players. Times in seconds."""

    players: int
    lost: int
    """Players who lost their match."""
    affected: int
    """Players who had a pause of more than half a second."""
    pause_p50: float
    """Of the affected."""
    pause_p99: float
    pause_max: float
    steps_back: float
    """The oldest world that a room went on with, in seconds of play."""
    doubled: int
    """Ticks in which two processes acted for one room."""


class Fleet:
    """Machines, rooms and players on one virtual network."""

    def __init__(self, machines: int, rooms: int, players: int, seed: int) -> None:
        conditions = tw.Conditions(latency=0.03, jitter=0.005, loss=0.01)
        self.network = tw.testing.SimulatedNetwork(seed=seed, conditions=conditions)
        self.random = random.Random(seed)
        store = fleet.MemoryStore(lambda: self.network.now)
        self.machines = [Machine(number, store) for number in range(machines)]
        self.engine = Engine(self.machines, self.network)
        self.players = [Player(self, number, f"room-{number % rooms}") for number in range(players)]
        self.doubled = 0

    def run(self, seconds: float) -> None:
        """Plays."""
        for _ in range(round(seconds * RATE)):
            self.network.advance(1 / RATE)
            self.engine.tick()
            acting: list[str] = []
            for machine in self.machines:
                if machine.runs:
                    machine.tick()
                    acting += [name for name, each in machine.running.items() if each.keeper.acts]
            self.doubled += len(acting) - len(set(acting))
            for player in self.players:
                player.tick()

    def kill(self, machine: Machine) -> None:
        """A machine is without power."""
        machine.runs = False
        machine.accepts = False
        self._unplug(machine)
        self.engine.note_lost(machine)

    def cut(self, machine: Machine, from_players: bool) -> None:
        """A machine's line is cut: to the store and the engine, and to the players too."""
        machine.reaches_store = False
        self.engine.note_lost(machine)
        if from_players:
            cut_off = [running.server.address for running in machine.running.values()]
            self.network.partition(cut_off, [player.address for player in self.players])

    def mend(self, machine: Machine) -> None:
        """Its line works again."""
        machine.reaches_store = True
        self.engine.note_back(machine)
        self.network.heal()

    def _unplug(self, machine: Machine) -> None:
        for each in [*(running.server for running in machine.running.values()), *machine.closing]:
            self.network.unplug(each.address)

    def update(self, machines: list[Machine]) -> None:
        """A rolling update: each machine is emptied, restarted and filled again."""
        for machine in machines:
            machine.accepts = False
            for running in machine.running.values():
                running.ask_to_leave()
            while machine.running or machine.closing:
                self.run(1 / RATE)
            self.run(RESTART)
            machine.accepts = True

    def outcome(self) -> Outcome:
        """What the players saw since they began to measure."""
        pauses = sorted(player.pause for player in self.players if player.pause > 0.5)
        still = [player for player in self.players if self._stands(player)]
        return Outcome(
            players=len(self.players),
            lost=sum(player.lost for player in self.players) + len(still),
            affected=len(pauses),
            pause_p50=quantile(pauses, 0.5),
            pause_p99=quantile(pauses, 0.99),
            pause_max=quantile(pauses, 1.0),
            steps_back=max(player.went_back for player in self.players) / RATE,
            doubled=self.doubled,
        )

    def _stands(self, player: Player) -> bool:
        return player.walked_at is None or self.network.now - player.walked_at > 2


def begun(machines: int, rooms: int, players: int, seed: int) -> Fleet:
    """A fleet whose players all play."""
    made = Fleet(machines, rooms, players, seed)
    made.run(START + 5)
    for player in made.players:
        player.forget()
    return made


def rolling_update(made: Fleet) -> None:
    """All machines, one after the other."""
    made.update(made.machines)
    made.run(5)


def machine_dies(made: Fleet) -> None:
    """One machine without a goodbye."""
    made.kill(made.random.choice(made.machines))
    made.run(12)


def cut_off(made: Fleet, *, from_players: bool) -> None:
    """One machine without the store and the engine for ten seconds. It comes back with its rooms."""
    machine = made.random.choice(made.machines)
    made.cut(machine, from_players)
    made.run(10)
    made.mend(machine)
    made.run(5)


SCENES: dict[str, Callable[[Fleet], None]] = {
    "rolling update of all machines": rolling_update,
    "a machine dies": machine_dies,
    "a machine is cut off from the store": partial(cut_off, from_players=False),
    "a machine that was declared dead returns": partial(cut_off, from_players=True),
}


def play(scene: str, machines: int, rooms: int, players: int, seed: int) -> Outcome:
    """Plays a scene."""
    made = begun(machines, rooms, players, seed)
    SCENES[scene](made)
    return made.outcome()
