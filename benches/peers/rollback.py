"""What rollback games cost in Python: thread CPU a frame beside the step's, and bytes a second, in virtual time.

``python benches/peers/rollback.py`` prints a table. A state of 4 KiB (a NumPy array), a window of 8 frames, 60 Hz. The lines between
players take 50 ms each way (8 players: 50 ms), with as much loss as said. Bytes are UDP payloads of sealed datagrams, as the
statistics of the connections have them; what IP and UDP add (28 bytes a datagram) is not in them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
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


def thread_us(work: Callable[[], None]) -> float:
    begun = time.thread_time_ns()
    work()
    return (time.thread_time_ns() - begun) / 1_000


def sync_test(players: int) -> dict[str, float]:
    """A frame and seven that run again, without the steps."""
    state = np.zeros(64, STATE)
    assert state.nbytes == 4096
    test = tw.SyncTest(8, players=players, back=7, state=state)
    costs, steps = [], []
    for frame in range(FRAMES):
        row = [(frame * (player + 3)) & 0xFF for player in range(players)]
        count = [0]

        def run(row: list[int] = row, count: list[int] = count) -> None:
            for request in test.advance(row):
                step(state, request.inputs)
                count[0] += 1

        def steps_alone(row: tuple[int, ...] = tuple(row)) -> None:
            for _ in range(8):
                step(spare, row)

        spare = np.zeros(64, STATE)
        costs.append(thread_us(run))
        steps.append(thread_us(steps_alone))
    own = np.median(costs[100:]) - np.median(steps[100:])
    return {"us a frame": float(np.median(costs[100:])), "own us": float(own)}


def alone(players: int, delay: int, loss: float) -> dict[str, float]:
    """Rollback without a peer: what it costs itself, with all that it reads and writes, beside the steps."""
    states = [np.zeros(64, STATE) for _ in range(players)]
    games = [
        tw.Rollback(None, 8, players=players, me=me, delay=delay, state=states[me]) for me in range(players)
    ]
    random = np.random.default_rng(1)
    flying: list[tuple[int, int, int, bytes]] = []
    costs, sizes, inputs, spare = [], [], [0] * players, np.zeros(64, STATE)
    for frame in range(FRAMES // players + 600):
        now = frame / 60
        due, flying = [one for one in flying if one[0] <= frame], [one for one in flying if one[0] > frame]
        for me, game in enumerate(games):
            if random.random() < 0.15:
                inputs[me] = int(random.integers(256))
            mine = [one for one in due if one[1] == me]
            ran, filled, pressed = [0], [], inputs[me]

            def run() -> None:
                for _, _, source, payload in mine:
                    game.read(source, payload, now=now)
                for request in game.advance(pressed, now=now):
                    step(states[me], request.inputs)
                    ran[0] += 1
                for other in range(players):
                    if other != me:
                        filled.append((other, game.fill(other, now=now)))

            whole = thread_us(run)
            row = tuple(inputs)
            costs.append(whole - thread_us(lambda: [step(spare, row) for _ in range(ran[0])]))
            for other, payload in filled:
                if payload is not None:
                    sizes.append(len(payload))
                    if random.random() >= loss:
                        flying.append((frame + 3, other, me, payload))
    return {"own us": float(np.median(costs[200:])), "payload bytes": float(np.mean(sizes))}


def peers(players: int, delay: int, loss: float) -> dict[str, float]:
    """Over peers: bytes a second that each sends, and thread CPU of its ticks beside the steps."""
    network = tw.SimulatedNetwork(conditions=tw.Conditions(latency=0.05, loss=loss), seed=1)
    protocol = tw.Protocol(1, [Hello], peers=True)
    host = tw.Peer.host(protocol, name="0", players=players, bind="10.0.0.1:7", network=network)
    all_peers = [host]
    for number in range(1, players):
        bind = f"10.0.0.{number + 1}:7"
        all_peers.append(tw.Peer.join("10.0.0.1:7", protocol, name=str(number), bind=bind, network=network))
    states = [np.zeros(64, STATE) for _ in all_peers]
    games: list[tw.Rollback[int] | None] = [None] * players
    random, inputs = np.random.default_rng(2), [0] * players
    costs: list[float] = []
    spare, row = np.zeros(64, STATE), (1,) * players
    before, rates = packets(all_peers), []
    for frame in range(3_000):
        network.advance(1 / 60)
        if frame == 240:
            assert len(host.players) == players
            host.start(countdown=0.5)
        if frame == 600:
            before = packets(all_peers)
        if frame >= 720 and frame % 60 == 0:
            rates.append(sum(stats.sent_kbps for stats in links(all_peers)))
        for place, peer in enumerate(all_peers):
            if random.random() < 0.15:
                inputs[place] = int(random.integers(256))
            ran = [0]

            def run() -> None:
                with peer.tick() as inbox:
                    for event in inbox.events:
                        if isinstance(event, tw.Started):
                            games[place] = tw.Rollback(peer, 8, delay=delay, state=states[place])
                    game = games[place]
                    if game is not None:
                        for request in game.advance(inputs[place]):
                            step(states[place], request.inputs)
                            ran[0] += 1

            whole = thread_us(run)
            if frame >= 600:
                costs.append(whole - thread_us(lambda: [step(spare, row) for _ in range(ran[0])]))
    seconds = (3_000 - 600) / 60
    assert all(game is not None and game.frame > 2_600 for game in games)
    # The rates of connections have IP and UDP headers in them.
    whole_rate = float(np.mean(rates)) * 125 / players
    rate = whole_rate - 28 * (packets(all_peers) - before) / seconds / players
    datagrams = (packets(all_peers) - before) / seconds / players
    return {"tick us": float(np.median(costs)), "bytes a second": rate, "datagrams a second": datagrams}


def links(all_peers: list[tw.Peer[Hello]]) -> list[tw.ConnectionStats]:
    """Every connection, at both ends."""
    ends = [(peer, player) for peer in all_peers for player in peer.players if player is not peer.me]
    return [peer.stats(player) for peer, player in ends]


def packets(all_peers: list[tw.Peer[Hello]]) -> int:
    """Packets that all have sent."""
    return sum(stats.packets_sent for stats in links(all_peers))


def main() -> None:
    rows: dict[str, dict[str, float]] = {}
    for players in (2, 8):
        rows[f"sync test, 7 back, {players} players"] = sync_test(players)
    for players in (2, 8):
        for delay, loss in ((0, 0.0), (3, 0.0), (3, 0.05)):
            name = f"{players} players, delay {delay}, loss {loss:.0%}"
            rows["own payloads, " + name] = alone(players, delay, loss)
            rows["peers, " + name] = peers(players, delay, loss)
    for name, row in rows.items():
        print(f"{name:50}", "  ".join(f"{key} {value:,.1f}" for key, value in row.items()))
    if "--write" in sys.argv:
        path = Path(__file__).with_name("rollback.json")
        path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
