"""What rollback games cost in Python: thread CPU a frame beside the step's, and bytes a second.

``python benches/peers/rollback.py`` prints a table; ``--write`` writes rollback.json. In virtual time: a
state of 4 KiB (a NumPy array), a window of 8 frames, 60 Hz; each way between players takes 50 ms, with as
much loss as said; a player's input of 8 bits changes in 15 % of the frames. Medians, as p50, and means
with the frames that are corrected. Bytes are UDP payloads of sealed datagrams, by the statistics of the
connections; what IP and UDP add (28 bytes a datagram) is not in them.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import tickwire as tw

FRAMES = 3_000
STATE = np.dtype([("place", "<i4", 4), ("speed", "<i4", 4), ("health", "<i4", 8)])


@tw.message
class Hello:
    n: tw.u8


def step(state: np.ndarray, inputs: tuple[int, ...]) -> None:
    """Some work on the state."""
    state["place"][0, 0] += inputs[0]
    state["health"][1, 0] ^= inputs[-1]


def steps_us(count: int, row: tuple[int, ...], spare: np.ndarray) -> float:
    """What so many steps take alone."""
    begun = time.thread_time_ns()
    for _ in range(count):
        step(spare, row)
    return (time.thread_time_ns() - begun) / 1_000


def summary(costs: list[float], first: int) -> dict[str, float]:
    return {"own us p50": float(np.median(costs[first:])), "mean": float(np.mean(costs[first:]))}


def sync_test(players: int) -> dict[str, float]:
    """A frame and seven that run again, without the steps."""
    state, spare = np.zeros(64, STATE), np.zeros(64, STATE)
    assert state.nbytes == 4096
    test = tw.rollback.SyncTest(8, players=players, back=7, state=state)
    costs = []
    for frame in range(FRAMES):
        row = tuple((frame * (player + 3)) & 0xFF for player in range(players))
        begun = time.thread_time_ns()
        for request in test.advance(row):
            step(state, request.inputs)
        whole = (time.thread_time_ns() - begun) / 1_000
        costs.append(whole - steps_us(8, row, spare))
    return summary(costs, 100)


def alone(players: int, delay: int, loss: float) -> dict[str, float]:
    """Rollback without a peer: what it costs itself, with all that it reads and writes, beside the steps."""
    states = [np.zeros(64, STATE) for _ in range(players)]
    games = [
        tw.rollback.Rollback(
            None, 8, players=players, me=me, timing=tw.rollback.Timing(delay=delay), state=states[me]
        )
        for me in range(players)
    ]
    random = np.random.default_rng(1)
    flying: list[tuple[int, int, int, bytes]] = []
    costs, sizes, inputs, spare = [], [], [0] * players, np.zeros(64, STATE)
    for frame in range(1_500):
        now = frame / 60
        due, flying = [one for one in flying if one[0] <= frame], [one for one in flying if one[0] > frame]
        for me, game in enumerate(games):
            if random.random() < 0.15:
                inputs[me] = int(random.integers(256))
            mine = [one for one in due if one[1] == me]
            ran, filled = 0, []
            begun = time.thread_time_ns()
            for _, _, source, payload in mine:
                game.read(source, payload, now=now)
            for request in game.advance(inputs[me], now=now):
                step(states[me], request.inputs)
                ran += 1
            for other in range(players):
                if other != me:
                    filled.append((other, game.fill(other, now=now)))
            whole = (time.thread_time_ns() - begun) / 1_000
            costs.append(whole - steps_us(ran, tuple(inputs), spare))
            for other, sent in filled:
                if sent is not None:
                    sizes.append(len(sent))
                    if random.random() >= loss:
                        flying.append((frame + 3, other, me, sent))
    return summary(costs, 200 * players) | {"payload bytes": float(np.mean(sizes))}


def peers(players: int, delay: int, loss: float) -> dict[str, float]:
    """Over peers: bytes a second that each sends, and thread CPU of its whole ticks beside the steps."""
    network = tw.testing.SimulatedNetwork(conditions=tw.Conditions(latency=0.05, loss=loss), seed=1)
    protocol = tw.Protocol(1, [Hello], peers=True)
    host = tw.peers.Peer.host(
        protocol, name="0", players=players, tuning=tw.Tuning(bind="10.0.0.1:7"), network=network
    )
    table = [host]
    for number in range(1, players):
        bind = f"10.0.0.{number + 1}:7"
        table.append(
            tw.peers.Peer.join(
                "10.0.0.1:7", protocol, name=str(number), tuning=tw.Tuning(bind=bind), network=network
            )
        )
    states = [np.zeros(64, STATE) for _ in table]
    games: list[tw.rollback.Rollback[int] | None] = [None] * players
    random, inputs = np.random.default_rng(2), [0] * players
    costs: list[float] = []
    spare = np.zeros(64, STATE)
    before, rates = 0, []
    for frame in range(3_000):
        network.advance(1 / 60)
        if frame == 240:
            assert len(host.players) == players
            host.start(countdown=0.5)
        if frame == 600:
            before = packets(table)
        if frame >= 720 and frame % 60 == 0:
            rates.append(sum(stats.sent_kbps for stats in links(table)))
        for place, peer in enumerate(table):
            if random.random() < 0.15:
                inputs[place] = int(random.integers(256))
            ran = 0
            begun = time.thread_time_ns()
            with peer.tick() as inbox:
                for event in inbox.events:
                    if isinstance(event, tw.peers.Started):
                        games[place] = tw.rollback.Rollback(
                            peer, 8, timing=tw.rollback.Timing(delay=delay), state=states[place]
                        )
                game = games[place]
                if game is not None:
                    for request in game.advance(inputs[place]):
                        step(states[place], request.inputs)
                        ran += 1
            whole = (time.thread_time_ns() - begun) / 1_000
            if frame >= 600:
                costs.append(whole - steps_us(ran, tuple(inputs), spare))
    seconds = (3_000 - 600) / 60
    assert all(game is not None and game.frame > 2_600 for game in games)
    # The rates of connections have IP and UDP headers in them.
    datagrams = (packets(table) - before) / seconds / players
    rate = float(np.mean(rates)) * 125 / players - 28 * datagrams
    return summary(costs, 0) | {"bytes a second": rate, "datagrams a second": datagrams}


def links(table: list[tw.peers.Peer[Hello]]) -> list[tw.connections.ConnectionStats]:
    """Every connection, at both ends."""
    ends = [(peer, player) for peer in table for player in peer.players if player is not peer.me]
    return [peer.stats(player) for peer, player in ends]


def packets(table: list[tw.peers.Peer[Hello]]) -> int:
    """Packets that all have sent."""
    return sum(stats.packets_sent for stats in links(table))


def measure() -> dict[str, dict[str, float]]:
    """All rows of the table, by name."""
    rows: dict[str, dict[str, float]] = {}
    for players in (2, 8):
        rows[f"sync test, 7 back, {players} players"] = sync_test(players)
    for players in (2, 8):
        for delay, loss in ((0, 0.0), (3, 0.0), (3, 0.05)):
            name = f"{players} players, delay {delay}, loss {loss:.0%}"
            rows["own payloads, " + name] = alone(players, delay, loss)
            rows["peers, " + name] = peers(players, delay, loss)
    return rows


def main() -> None:
    rows = measure()
    for name, row in rows.items():
        print(f"{name:50}", "  ".join(f"{key} {value:,.1f}" for key, value in row.items()))
    if "--write" in sys.argv:
        path = Path(__file__).with_name("rollback.json")
        path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
