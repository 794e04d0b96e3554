"""A player hosts and is killed: how soon the game goes on, with how old a world, and what that costs."""

from __future__ import annotations

import json
import random
import statistics
import sys
from typing import Annotated, Any

import tickwire as tw


@tw.ghost(capacity=16)
class Hero:
    """A player's."""

    player: Annotated[int, tw.u64, tw.initial] = 0
    done: Annotated[int, tw.u32] = 0
    """The number of its last call."""


@tw.ghost(capacity=256)
class Thing:
    """It comes, and goes some seconds later."""

    number: Annotated[int, tw.u32, tw.initial] = 0
    steps: Annotated[int, tw.u32] = 0


@tw.call(tw.to_server)
def act(caller: tw.ClientHandle, number: tw.u32) -> None:
    """Counts a call."""
    raise NotImplementedError


RATE, TIMEOUT, THINGS = 60, 5, 60
PROTOCOL: tw.Protocol[Any] = tw.Protocol(
    0x6D, [], ghosts=[Hero, Thing], calls=[act], tick_rate=RATE, peers=True
)
BAD = tw.Conditions(latency=0.04, jitter=0.01, loss=0.05)
PLAYERS = 4
ESTABLISHED = 0.6
"""A ghost that is so old, in seconds, must survive."""


class Game:
    """The host's side."""

    def __init__(self, server: tw.Server[Any]) -> None:
        self.server, self.world = server, server.world
        self.heroes = {hero.player: hero for hero in self.world.objects(Hero)}
        self.things = sorted(self.world.objects(Thing), key=lambda thing: thing.number)
        self.continued = {thing.number: self.owner(thing) for thing in self.things}
        self.twice, self.ticks = 0, 0
        self.history: list[dict[int, int | None]] = []
        server.implement(act, self._act)

    def owner(self, thing: Thing) -> int | None:
        owner = self.world.owner(thing)
        return owner.id if owner else self.world.waiting(Thing).get(thing)

    def _act(self, caller: tw.ClientHandle, number: int) -> None:
        hero = self.heroes[caller.id]
        self.twice += number <= hero.done
        hero.done = number

    def tick(self) -> None:
        with self.server.tick() as inbox:
            for client, what in inbox:
                if isinstance(what, tw.Connected) and client.id not in self.heroes:
                    self.heroes[client.id] = self.world.spawn(Hero(player=client.id), owner=client)
            self.ticks += 1
            if self.ticks % 6 == 0:
                number = self.things[-1].number + 1 if self.things else 1
                clients = self.server.clients
                owner = clients[number % len(clients)] if clients else None
                self.things.append(self.world.spawn(Thing(number=number), owner=owner))
                if len(self.things) > THINGS:
                    self.world.despawn(self.things.pop(0))
            for thing in self.things:
                thing.steps += 1
        self.history.append({thing.number: self.owner(thing) for thing in self.things})


class Seat:
    """A player."""

    def __init__(self, peer: tw.peers.Peer[Any]) -> None:
        self.peer, self.game = peer, None if peer.server is None else Game(peer.server)
        self.changes: list[tw.peers.HostChanged] = []
        self.calls, self.ticks = 0, 0
        self.seen_at = 0.0
        """When it saw the world move last."""
        self.steps = 0

    def tick(self, now: float) -> bool:
        with self.peer.tick() as inbox:
            self.changes += [what for _, what in inbox if isinstance(what, tw.peers.HostChanged)]
        server = self.peer.server
        if server is not None:
            if self.game is None or self.game.server is not server:
                self.game = Game(server)
            self.game.tick()
        client = self.peer.client
        with client.tick():
            self.ticks += 1
            if client.connected and client.world.mine(Hero) is not None and self.ticks % 10 == 0:
                self.calls += 1
                client.call(act, self.calls)
        steps = sum(thing.steps for thing in client.world.objects(Thing))
        if steps != self.steps:
            self.steps, self.seen_at = steps, now
        return server is not None

    def things(self) -> dict[int, tuple[Thing, int]]:
        """Its objects, with their network ids."""
        world = self.peer.client.world
        return {thing.number: (thing, (world.id_of(thing) or 0) & 0xFFFF) for thing in world.objects(Thing)}


class Party:
    """A game of four on bad lines."""

    def __init__(self, seed: int) -> None:
        self.network = tw.testing.SimulatedNetwork(conditions=BAD, seed=seed)
        self.two, self.seats = 0, [Seat(self.peer(1))]
        for number in range(2, PLAYERS + 1):
            self.play(1)
            self.seats.append(Seat(self.peer(number)))
        self.play(2)

    def peer(self, number: int) -> tw.peers.Peer[Any]:
        tuning = tw.Tuning(bind=f"10.0.0.{number}:7", timeout=TIMEOUT)
        if number == 1:
            return tw.peers.Peer.host(PROTOCOL, tuning=tuning, players=PLAYERS, network=self.network)
        return tw.peers.Peer.join("10.0.0.1:7", PROTOCOL, tuning=tuning, network=self.network)

    def play(self, seconds: float, silent: Seat | None = None) -> None:
        for _ in range(round(seconds * RATE)):
            self.network.advance(1 / RATE)
            hosts = [seat.tick(self.network.now) for seat in self.seats if seat is not silent]
            self.two += sum(hosts) > 1


def killed(seed: int) -> dict[str, float]:
    """One game whose host falls silent at a moment of its own."""
    party = Party(seed)
    old, others = party.seats[0], party.seats[1:]
    assert old.game is not None
    party.play(10 + random.Random(seed).random())
    at, before = party.network.now, [seat.things() for seat in others]
    history = old.game.history
    then = history[-round(ESTABLISHED * RATE)]
    # Of those whose end wasn't decided since.
    established = {number: owner for number, owner in then.items() if number in history[-1]}
    seen, gaps = [], [0.0] * len(others)
    for _ in range(round((TIMEOUT + 4) * RATE)):
        stood = [seat.seen_at for seat in others]
        party.play(1 / RATE, silent=old)
        gaps = [max(gap, seat.seen_at - was) for gap, seat, was in zip(gaps, others, stood, strict=True)]
    hosts = [seat for seat in others if seat.peer.server is not None]
    fine = len(hosts) == 1 and not party.two and all(len(seat.changes) == 1 for seat in others)
    game = hosts[0].game if hosts else None
    if not fine or game is None:
        return {"fine": 0, "missing": 0, "twice": 0, "s": 99, "age, s": 99}
    lost = sum(game.continued.get(number, -1) != owner for number, owner in established.items())
    for seat, had in zip(others, before, strict=True):
        has = seat.things()
        alive = {thing.number for thing in game.things}
        both = established.keys() & had.keys() & alive
        lost += sum(number not in has or has[number][0] is not had[number][0] for number in both)
        lost += sum(number in has and has[number][1] != had[number][1] for number in both)
    seen = [seat.seen_at - at for seat in others]
    assert min(seen) > TIMEOUT
    twice = game.twice + old.game.twice
    age = others[0].changes[0].age
    return {"fine": 1, "missing": lost, "twice": twice, "s": max(gaps), "age, s": 99 if age is None else age}


def measure(seeds: int) -> dict[str, Any]:
    """Of many games: medians and the worst."""
    games = [killed(seed) for seed in range(seeds)]
    found: dict[str, Any] = {
        "games": seeds,
        "timeout, s": TIMEOUT,
        "games with two hosts, none, or other than one event each": sum(not game["fine"] for game in games),
        "ghosts of the last 0.6 s before that are missing, or another's": sum(
            game["missing"] for game in games
        ),
        "calls that were counted twice": sum(game["twice"] for game in games),
    }
    for name in ("s", "age, s"):
        values = sorted(game[name] for game in games)
        found[name] = {"median": round(statistics.median(values), 2), "most": round(values[-1], 2)}
    return found


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]) if sys.argv[1:] else 20), indent=1))
