"""Peers in virtual time: who reaches whom through which boxes, when there is a master again, who starts when.

``python benches/peers/meeting.py`` prints what it finds.
"""

from __future__ import annotations

import random
from typing import Annotated, Any

import tickwire as tw

from lockstep import FIELDS, Game, Move

SERVER, RELAY = "198.51.100.1:3478", "198.51.100.2:3480"
KINDS = ("full-cone", "restricted", "port-restricted", "symmetric")
BAD = tw.Conditions(latency=0.05, jitter=0.01, loss=0.05)
TIMEOUT = 3


@tw.message
class Chat:
    text: Annotated[str, tw.text(100)]


def path(host: str, joiner: str, loss: float, seed: int) -> tuple[bool, float]:
    """Whether two peers need the relay, and seconds from the dial until both know each other as players."""
    network = tw.testing.SimulatedNetwork(
        conditions=tw.Conditions(latency=0.03, jitter=0.005, loss=loss), seed=seed
    )
    server = tw.peers.RendezvousServer(SERVER, relay=RELAY, relay_key=bytes(32), network=network)
    relay = tw.peers.Relay(RELAY, key=bytes(32), network=network)
    for number, kind in enumerate((host, joiner)):
        network.add_nat(f"203.0.113.{number + 1}", [f"10.0.{number}.2"], kind=kind)  # type: ignore[arg-type]
    protocol = tw.Protocol(1, [Chat], peers=True)
    peers = [
        tw.peers.Peer.host(
            protocol,
            tuning=tw.Tuning(bind="10.0.0.2:5000"),
            network=network,
            rendezvous=tw.peers.Rendezvous(SERVER),
        )
    ]

    def run(frames: int) -> None:
        for _ in range(frames):
            network.advance(1 / 60)
            server.pump()
            relay.pump()
            for peer in peers:
                with peer.tick():
                    pass

    while (code := peers[0].code) is None:
        run(1)
    begun = network.now
    peers.append(
        tw.peers.Peer.join(
            code,
            protocol,
            tuning=tw.Tuning(bind="10.0.1.2:5000"),
            network=network,
            rendezvous=tw.peers.Rendezvous(SERVER),
        )
    )
    while min(len(peer.players) for peer in peers) < 2:
        run(1)
        if network.now - begun > 30:
            raise RuntimeError(f"{host} and {joiner} don't meet")
    return relay.counters["channels"] > 0, network.now - begun


def boxes() -> dict[str, Any]:
    table, times, expected = {}, [], 0
    for host in KINDS:
        for joiner in KINDS:
            relayed, seconds = path(host, joiner, 0.0, 1)
            expected += relayed == (host == joiner == "symmetric")
            times.append(seconds)
            table[f"{host} and {joiner}"] = f"{'relayed' if relayed else 'punched'} in {seconds:.2f} s"
    return {"as expected": f"{expected} of {len(table)}", "slowest, s": round(max(times), 2), "cells": table}


class Players:
    """Peers that play lockstep, ticked at a rate of their own each."""

    def __init__(self, count: int, seed: int) -> None:
        self.network = tw.testing.SimulatedNetwork(conditions=BAD, seed=seed)
        protocol = tw.Protocol(7, [Move], peers=True)
        self.peers = [
            tw.peers.Peer.host(
                protocol,
                players=count,
                tuning=tw.Tuning(bind="10.0.0.1:7", timeout=TIMEOUT),
                network=self.network,
            )
        ]
        for i in range(1, count):
            self.peers.append(
                tw.peers.Peer.join(
                    "10.0.0.1:7",
                    protocol,
                    tuning=tw.Tuning(bind=f"10.0.0.{i + 1}:7", timeout=TIMEOUT),
                    network=self.network,
                )
            )
        self.games = [Game() for _ in range(count)]
        self.locksteps: dict[int, tw.lockstep.Lockstep] = {}
        self.started: dict[int, float] = {}
        self.masters: dict[int, float] = {}
        self.turns: list[list[int]] = [[] for _ in range(count)]
        self.crcs: dict[int, set[int]] = {}

    def run(self, seconds: float, silent: int | None = None) -> None:
        """In steps of four milliseconds, as exact as times are; each peer ticks 60 times a second."""
        for _ in range(round(seconds * 240)):
            self.network.advance(1 / 240)
            step = round(self.network.now * 240)
            for i, peer in enumerate(self.peers):
                if i != silent and not peer.closed and step % 4 == i % 4:
                    self.tick(i, peer)

    def tick(self, i: int, peer: tw.peers.Peer[Any]) -> None:
        with peer.tick() as inbox:
            for event in inbox.events:
                if isinstance(event, tw.peers.Started):
                    self.started[i] = self.network.now
                    self.locksteps[i] = tw.lockstep.Lockstep(peer, event, [Move], objects=FIELDS)
                elif isinstance(event, tw.peers.MasterChanged):
                    self.masters[i] = self.network.now
            lockstep = self.locksteps.get(i)
            if lockstep is None:
                return
            if self.network.now * 60 % 30 < 1:
                lockstep.command(Move(i, x=round(self.network.now * 100) % 4096))
            for turn in lockstep.turns():
                self.turns[i].append(turn.number)
                self.games[i].step(turn)
                self.crcs.setdefault(turn.number, set()).add(lockstep.check(turn, self.games[i].units) or 0)


def spread(values: list[float], digits: int) -> dict[str, float]:
    values = sorted(values)
    last = len(values) - 1
    named = {"least": 0.0, "median": 0.5, "90 %": 0.9, "most": 1.0}
    return {name: round(values[round(last * part)], digits) for name, part in named.items()}


def master_dies(seeds: int) -> dict[str, Any]:
    """Of four players the master falls silent at any time of the joining, the start or the game."""
    times, lost, parted, several, out = [], 0, 0, 0, 0
    for seed in range(seeds):
        luck, table = random.Random(seed), Players(4, seed)
        while min(len(peer.players) for peer in table.peers) < 4:
            table.run(0.25)
        if seed % 2 == 0:
            table.peers[0].start(countdown=0.5, seed=3)
        table.run(luck.random() * (2 if seed % 4 == 0 else 0.7))
        died = table.network.now
        while len(table.masters) < 3 and table.network.now < died + 20:
            table.run(1 / 60, silent=0)
        times.append(max(table.masters.values()) - died)
        table.run(2, silent=0)
        left = [peer for peer in table.peers[1:] if peer.ended is None]
        out += len(left) < 3
        masters = {str(peer.master) for peer in left}
        several += len(masters) != 1 or sum(peer.is_master for peer in left) != 1
        for turns in table.turns[1:]:
            lost += turns != list(range(turns[0], turns[0] + len(turns))) if turns else 0
        parted += sum(len(crcs) > 1 for crcs in table.crcs.values())
    return {
        "seeds": seeds,
        "timeout, s": TIMEOUT,
        "s until all have a new master": spread(times, 3),
        "games beyond timeout + 1 s": sum(each > TIMEOUT + 1 for each in times),
        "games with two masters or none": several,
        "games that another player falls out of": out,
        "players that lost a turn or ran one twice": lost,
        "turns whose CRCs differ": parted,
    }


def by_a_third(seeds: int) -> dict[str, Any]:
    """Of three players the two who came last don't reach each other: when they are in, by way of the host."""
    times, relayed = [], 0
    for seed in range(seeds):
        network = tw.testing.SimulatedNetwork(conditions=BAD, seed=seed)
        network.partition(["10.0.0.2:7"], ["10.0.0.3:7"])
        protocol = tw.Protocol(1, [Chat], peers=True)
        peers = [tw.peers.Peer.host(protocol, tuning=tw.Tuning(bind="10.0.0.1:7"), network=network)]
        peers += [
            tw.peers.Peer.join(
                "10.0.0.1:7", protocol, tuning=tw.Tuning(bind=f"10.0.0.{i}:7"), network=network
            )
            for i in (2, 3)
        ]
        while min(len(peer.players) for peer in peers) < 3 and network.now < 20:
            network.advance(1 / 60)
            for peer in peers:
                with peer.tick():
                    pass
        times.append(network.now)
        paths = [peers[1].path(player) for player in peers[1].players]
        relayed += [path.kind for path in paths if path] in (["direct", "relayed"], ["relayed", "direct"])
    return {"seeds": seeds, "relayed": relayed, "s until all are in": spread(times, 2)}


def start_skew(seeds: int) -> dict[str, Any]:
    """Eight players, 5 % loss, 50 +- 10 ms each way: how far apart they learn that the game begins."""
    skews = []
    for seed in range(seeds):
        table = Players(8, seed)
        while min(len(peer.players) for peer in table.peers) < 8:
            table.run(0.25)
        table.peers[0].start(countdown=1.0, seed=3)
        table.run(3)
        skews.append(1000 * (max(table.started.values()) - min(table.started.values())))
    return {"seeds": seeds, "players": 8, "ms between the first and the last": spread(skews, 1)}


def main() -> None:
    for name, found in {
        "boxes": boxes(),
        "third": by_a_third(20),
        "master": master_dies(20),
        "start": start_skew(5),
    }.items():
        print(name, found)


if __name__ == "__main__":
    main()
