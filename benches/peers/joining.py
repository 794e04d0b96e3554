"""A player joins a running lockstep game of eight over a bad network, in virtual time.

``python benches/peers/joining.py [--seeds 10]``; writes joining.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Annotated, Any

import tickwire as tw

FOLDER = Path(__file__).parent
PLAYERS = 8
STATE = 1 << 20
FRAMES = 60


@tw.message
class Move:
    unit: tw.u16
    x: Annotated[int, tw.ranged(0, 4095)] = 0


class World:
    """A counter, and a mebibyte that doesn't compress."""

    def __init__(self) -> None:
        self.sum = 0
        luck = tw.lockstep.Random(1)
        self.ballast = bytearray(STATE - 8)
        luck.fill(self.ballast)

    def save(self) -> bytes:
        return self.sum.to_bytes(8, "little") + self.ballast

    def load(self, state: bytes) -> None:
        self.sum, self.ballast = int.from_bytes(state[:8], "little"), bytearray(state[8:])

    def step(self, turn: Any) -> None:
        for player, command in turn.commands:
            self.sum += player + command.x


class Match:
    def __init__(self, seed: int) -> None:
        conditions = tw.Conditions(latency=0.08, jitter=0.02, loss=0.05)
        self.network = tw.testing.SimulatedNetwork(conditions=conditions, seed=seed)
        channels = [tw.reliable_ordered(), tw.chunks()]
        self.protocol = tw.Protocol(7, [Move], channels=channels, peers=True)
        self.luck = tw.lockstep.Random(seed)
        host = tw.peers.Peer.host(
            self.protocol,
            players=PLAYERS + 1,
            tuning=tw.Tuning(bind="10.0.0.1:7"),
            network=self.network,
        )
        self.peers = [host]
        self.locksteps: dict[int, tw.lockstep.Lockstep] = {}
        self.worlds = [World() for _ in range(PLAYERS + 1)]
        self.crcs: dict[int, set[int]] = {}
        self.waited = [0] * (PLAYERS + 1)
        """Frames for which each player waits for the newcomer."""
        for _ in range(1, PLAYERS):
            self.join()
        self.run(4)
        host.start(countdown=1.0, seed=3, late_joining=True)
        self.run(20)

    def join(self) -> None:
        bind = f"10.0.0.{len(self.peers) + 1}:7"
        self.peers.append(
            tw.peers.Peer.join("10.0.0.1:7", self.protocol, tuning=tw.Tuning(bind=bind), network=self.network)
        )

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * FRAMES)):
            self.network.advance(1 / FRAMES)
            for i, peer in enumerate(self.peers):
                with peer.tick() as inbox:
                    for event in inbox.events:
                        if isinstance(event, tw.peers.Started):
                            world = self.worlds[i]
                            self.locksteps[i] = tw.lockstep.Lockstep(
                                peer,
                                event,
                                [Move],
                                saving=tw.lockstep.Saving(save=world.save, load=world.load),
                            )
                    if i in self.locksteps:
                        self.play(i, self.locksteps[i])

    def play(self, i: int, lockstep: tw.lockstep.Lockstep) -> None:
        if not lockstep.joining and self.luck.unit() < 1 / FRAMES:
            lockstep.command(Move(1, self.luck.below(4096)))
        for turn in lockstep.turns():
            self.worlds[i].step(turn)
            crc = lockstep.check(turn)
            self.crcs.setdefault(turn.number, set()).add(crc or 0)
        waiting = lockstep.waiting
        self.waited[i] += waiting is not None and PLAYERS in waiting.players


def joined(seed: int) -> dict[str, Any]:
    match = Match(seed)
    stalls = [it.stats["stalled_us"] for it in match.locksteps.values()]
    began = match.peers[0].time
    match.join()
    new = match.peers[-1]
    loaded = None
    received = 0.0
    for frame in range(60 * FRAMES):
        match.run(1 / FRAMES)
        if frame % FRAMES == FRAMES - 1:
            # Kilobits of the last second, with what netcode, UDP and IP add.
            others = [player for player in new.players if player != new.me]
            received += sum(new.stats(player).received_kbps for player in others) * 125
        lockstep = match.locksteps.get(PLAYERS)
        if lockstep is None:
            continue
        if loaded is None and lockstep.turn > 0:
            loaded = new.time - began
        if not lockstep.joining and PLAYERS in lockstep.players:
            break
    seconds = match.peers[0].time - began
    match.run(3)
    during = [
        (now.stats["stalled_us"] - then) / 1e6
        for now, then in zip(list(match.locksteps.values())[:PLAYERS], stalls, strict=True)
    ]
    return {
        "s until the world is loaded": round(loaded or 0.0, 2),
        "s until it plays": round(seconds, 2),
        "kB that it received until it plays, with headers": round(received / 1000),
        "ms that the others wait for it, at most": round(max(match.waited[:PLAYERS]) * 1000 / FRAMES),
        "ms that the others wait for anybody, at most": round(max(during) * 1000),
        "turns whose CRCs differ": sum(len(crcs) > 1 for crcs in match.crcs.values()),
    }


def measure(seeds: int) -> dict[str, Any]:
    """The median and the most of this many games."""
    found = [joined(seed) for seed in range(1, seeds + 1)]
    table: dict[str, Any] = {"players": PLAYERS, "bytes of the world": STATE, "seeds": seeds}
    for name in found[0]:
        values = [it[name] for it in found]
        table[name] = {"median": round(statistics.median(values), 2), "most": max(values)}
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    results = measure(parser.parse_args().seeds)
    (FOLDER / "joining.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    for key, value in results.items():
        print(f"{key}: {value}")


if __name__ == "__main__":
    main()
