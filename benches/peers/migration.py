"""A player hosts and is killed: how soon the game goes on, with how old a state, and what that costs."""

from __future__ import annotations

import json
import random
import statistics
import sys
from typing import Any

import numpy as np
import tickwire as tw


@tw.message
class Move:
    x: tw.i8


@tw.message
class Seen:
    step: tw.u32


PROTOCOL: tw.Protocol[Any] = tw.Protocol(
    0x6D, [Move, Seen], [tw.reliable_ordered(), tw.unreliable(), tw.chunks()], peers=True
)
BAD = tw.Conditions(latency=0.04, jitter=0.01, loss=0.05)
PLAYERS, RATE, TIMEOUT, EVERY, STATE = 4, 60, 5, 0.5, 4096


class Seat:
    def __init__(self, peer: tw.peers.Peer[Any]) -> None:
        self.peer, self.state = peer, np.random.default_rng(1).integers(0, 1 << 30, STATE // 4, np.uint32)
        self.state[0] = 0
        self.changes: list[tw.peers.HostChanged] = []
        self.acted: list[float] = []
        self.loaded: list[int] = []
        self.game = tw.peers.Migrating(peer, save=lambda: self.state, load=self.load, every=EVERY)

    def load(self, state: Any) -> None:
        self.state = state
        self.loaded.append(int(state[0]))

    def tick(self, now: float) -> bool:
        with self.peer.tick() as inbox:
            read = self.game.read(inbox)
            self.changes += [what for _, what in read if isinstance(what, tw.peers.HostChanged)]
            acts = self.game.is_host
            if acts:
                self.acted.append(now)
                self.state[0] += 1
                self.peer.broadcast(Seen(int(self.state[0])), 1)
            else:
                self.game.send(Move(1))
        return acts


def killed(seed: int) -> dict[str, float]:
    """One game whose host falls silent at a moment of its own."""
    network = tw.testing.SimulatedNetwork(conditions=BAD, seed=seed)
    seats = [
        Seat(
            tw.peers.Peer.host(
                PROTOCOL,
                tuning=tw.Tuning(bind="10.0.0.1:7", timeout=TIMEOUT),
                players=PLAYERS,
                network=network,
            )
        )
    ]
    two = 0

    def play(seconds: float, silent: Seat | None = None) -> None:
        nonlocal two
        for _ in range(round(seconds * RATE)):
            network.advance(1 / RATE)
            two += sum([seat.tick(network.now) for seat in seats if seat is not silent]) > 1

    for number in range(1, PLAYERS):
        seats.append(
            Seat(
                tw.peers.Peer.join(
                    "10.0.0.1:7",
                    PROTOCOL,
                    tuning=tw.Tuning(bind=f"10.0.0.{number + 1}:7", timeout=TIMEOUT),
                    network=network,
                )
            )
        )
        play(1)
    old = seats[0]
    sent, begun = old.game.counters["bytes_sent"], network.now
    play(10 + random.Random(seed).random())
    sent, begun = old.game.counters["bytes_sent"] - sent, network.now - begun
    at, steps = network.now, int(old.state[0])
    play(TIMEOUT + 3, silent=old)
    hosts = [seat for seat in seats[1:] if seat.game.is_host]
    events = [len(seat.changes) for seat in seats[1:]]
    fine = len(hosts) == 1 and events == [1] * (PLAYERS - 1) and not two and bool(hosts[0].loaded)
    if not fine:
        return {"fine": 0, "s": 99, "lost s": 99, "bytes a second": 0}
    on = next(now for now in hosts[0].acted if now > at) - at
    lost = (steps - hosts[0].loaded[0]) / RATE
    return {"fine": 1, "s": on, "lost s": lost, "bytes a second": sent / begun / (PLAYERS - 1)}


def measure(seeds: int) -> dict[str, Any]:
    """Of many games: medians and the worst."""
    games = [killed(seed) for seed in range(seeds)]
    found: dict[str, Any] = {
        "games": seeds,
        "timeout, s": TIMEOUT,
        "saved every, s": EVERY,
        "bytes of state": STATE,
        "games with two hosts, none, or other than one event each": sum(not game["fine"] for game in games),
    }
    for name in ("s", "lost s", "bytes a second"):
        values = sorted(game[name] for game in games)
        found[name] = {"median": round(statistics.median(values), 2), "most": round(values[-1], 2)}
    return found


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]) if sys.argv[1:] else 20), indent=1))
