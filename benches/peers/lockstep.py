"""Lockstep on peers in virtual time: waiting, bytes, how soon a difference is found, how fast matches replay.

``python benches/peers/lockstep.py [--minutes 10]``; writes lockstep.json.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import tickwire as tw
from tickwire.lockstep import DesyncReport, Diverged, Turn

FOLDER = Path(__file__).parent
UNITS = 300
IP_AND_UDP = 28


@tw.message
class Move:
    unit: Annotated[int, tw.ranged(0, UNITS - 1)]
    x: Annotated[int, tw.ranged(0, 4095)] = 0
    y: Annotated[int, tw.ranged(0, 4095)] = 0


@dataclasses.dataclass(slots=True)
class Unit:
    id: int
    x: int = 0
    y: int = 0
    to_x: int = 0
    to_y: int = 0
    health: int = 100


FIELDS = {Unit: ("x", "y", "to_x", "to_y", "health")}


class Game:
    def __init__(self) -> None:
        self.units = [Unit(number) for number in range(UNITS)]
        self.moving: set[int] = set()

    def step(self, turn: Turn) -> None:
        for _, command in turn.commands:
            unit = self.units[command.unit]
            unit.to_x, unit.to_y = command.x, command.y
            self.moving.add(command.unit)
        for _ in range(turn.steps):
            turn.random.choice(self.units).health += 1
        for number in sorted(self.moving):
            unit, most = self.units[number], 4 * turn.steps
            unit.x += max(-most, min(most, unit.to_x - unit.x))
            unit.y += max(-most, min(most, unit.to_y - unit.y))
            if (unit.x, unit.y) == (unit.to_x, unit.to_y):
                self.moving.discard(number)


class Match:
    def __init__(
        self, count: int, loss: float, rate: float, folder: Path | None = None, steps: int = 3
    ) -> None:
        self.steps = steps
        conditions = tw.Conditions(latency=0.08, jitter=0.02, loss=loss)
        self.network = tw.testing.SimulatedNetwork(conditions=conditions, seed=1)
        protocol = tw.Protocol(7, [Move], peers=True)
        self.peers = [
            tw.peers.Peer.host(
                protocol, players=count, tuning=tw.Tuning(bind="10.0.0.1:7"), network=self.network
            )
        ]
        for i in range(1, count):
            bind = f"10.0.0.{i + 1}:7"
            self.peers.append(
                tw.peers.Peer.join("10.0.0.1:7", protocol, tuning=tw.Tuning(bind=bind), network=self.network)
            )
        self.games = [Game() for _ in range(count)]
        self.locksteps: dict[int, tw.lockstep.Lockstep] = {}
        self.crcs: dict[int, set[int]] = {}
        self.events: list[tuple[int, int, Any]] = []
        self.rate, self.folder, self.luck = rate, folder, tw.lockstep.Random(2)
        self.run(4)
        self.peers[0].start(countdown=1.0, seed=3)
        self.run(3)

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 60)):
            self.network.advance(1 / 60)
            for i, peer in enumerate(self.peers):
                with peer.tick() as inbox:
                    for event in inbox.events:
                        if isinstance(event, tw.peers.Started):
                            record = self.folder and tw.lockstep.RecordingFile(self.folder / f"{i}.twrec")
                            self.locksteps[i] = tw.lockstep.Lockstep(
                                peer,
                                event,
                                [Move],
                                objects=FIELDS,
                                recording=record,
                                pace=tw.lockstep.Pace(steps=self.steps),
                            )
                    if i in self.locksteps:
                        self.play(i, self.locksteps[i])

    def play(self, i: int, lockstep: tw.lockstep.Lockstep) -> None:
        if self.luck.unit() < self.rate / 60:
            lockstep.command(Move(self.luck.below(UNITS), self.luck.below(4096), self.luck.below(4096)))
        for turn in lockstep.turns():
            self.games[i].step(turn)
            crc = lockstep.check(turn, self.games[i].units)
            self.crcs.setdefault(turn.number, set()).add(crc or 0)
        self.events += [(i, lockstep.turn, event) for event in lockstep.events()]


def waiting(minutes: float) -> dict[str, Any]:
    match = Match(8, 0.05, 1.0)
    match.run(30)
    before = [lockstep.stats for lockstep in match.locksteps.values()]
    match.run(minutes * 60)
    stats = [lockstep.stats for lockstep in match.locksteps.values()]
    stalled = [
        (now["stalled_us"] - then["stalled_us"]) / 1e6 for now, then in zip(stats, before, strict=True)
    ]
    return {
        "players": 8,
        "minutes": minutes,
        "turns": stats[0]["turns"],
        "turns whose CRCs differ": sum(len(crcs) > 1 for crcs in match.crcs.values()),
        "stalled, of the worst player": f"{max(stalled) / minutes / 60:.3%}",
        "pace": match.locksteps[0].pace,
    }


def said(minutes: float, steps: int = 3) -> dict[str, Any]:
    match = Match(4, 0.05, 5.0, steps=steps)
    match.run(30)
    before = [lockstep.stats["bytes_sent"] for lockstep in match.locksteps.values()]
    packets, rates_now = [sent(peer) for peer in match.peers], [0.0] * 4
    for _ in range(round(minutes * 60)):
        match.run(1)
        rates_now = [rate + sealed(peer) for rate, peer in zip(rates_now, match.peers, strict=True)]
    whole = max(rates_now) / round(minutes * 60)
    most = max(sent(peer) - then for peer, then in zip(match.peers, packets, strict=True)) / minutes / 60
    after = [lockstep.stats["bytes_sent"] for lockstep in match.locksteps.values()]
    rates = [(now - then) * 8 / minutes / 60 for now, then in zip(after, before, strict=True)]
    return {
        "players": 4,
        "units": UNITS,
        "commands a second and player": 5,
        "steps of a turn": steps,
        "kbit/s of payloads a player, to all others": round(max(rates) / 1000, 2),
        "packets a second and player": round(most, 1),
        "kbit/s of UDP payloads a player, to all others": round(whole - most * IP_AND_UDP * 8 / 1000, 2),
        "kbit/s with IP and UDP headers a player, to all others": round(whole, 2),
    }


def sealed(peer: tw.peers.Peer[Any]) -> float:
    """With what netcode, the transport, UDP and IP add."""
    return sum(peer.stats(player).sent_kbps for player in peer.players if player != peer.me)


def sent(peer: tw.peers.Peer[Any]) -> int:
    return sum(peer.stats(player).packets_sent for player in peer.players if player != peer.me)


def found() -> dict[str, Any]:
    match = Match(4, 0.0, 5.0)
    match.run(20)
    match.games[2].units[217].health ^= 1
    changed = match.locksteps[2].turn + 1
    match.run(5)
    desync = next(it for it in match.events if isinstance(it[2], Diverged))
    report = next(it for it in match.events if isinstance(it[2], DesyncReport))
    return {
        "changed in turn": changed,
        "vote": f"turn {desync[2].turn}, odd {sorted(desync[2].odd)}",
        "turns until it was known": desync[1] - changed,
        "turns until the field was known": report[1] - changed,
        "report": str(report[2]),
    }


def replayed(minutes: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        match = Match(4, 0.02, 5.0, Path(folder))
        match.run(minutes * 60)
        for lockstep in match.locksteps.values():
            lockstep.close()
        path = Path(folder, "0.twrec")
        size = path.stat().st_size
        begin = time.thread_time()
        recording, game = tw.lockstep.Recording.read(path), Game()
        same = True
        for turn in recording.turns([Move]):
            game.step(turn)
            same &= recording.check(turn, game.units, FIELDS)
        seconds = time.thread_time() - begin
    return {
        "minutes": round(recording.seconds / 60, 2),
        "bytes": size,
        "every CRC equal": same,
        "times real speed, in thread CPU": round(recording.seconds / seconds),
    }


def measure(minutes: float) -> dict[str, dict[str, Any]]:
    """All of it, with so many minutes of waiting and of the match that is replayed."""
    return {
        "waiting": waiting(minutes),
        "said": said(2),
        "said in turns of 200 ms": said(2, 6),
        "found": found(),
        "replayed": replayed(minutes),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    results = measure(parser.parse_args().minutes)
    (FOLDER / "lockstep.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    for name, row in results.items():
        print(name)
        for key, value in row.items():
            print(f"  {key}: {value}")


if __name__ == "__main__":
    main()
