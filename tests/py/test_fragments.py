"""Large reliable messages from Python: declared, with code of their own, as rows, and from a capture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw
from tickwire.capture import Replay
from tickwire.testing import Conditions, advance, connected_pair

BAD = Conditions(latency=0.05, jitter=0.03, loss=0.1, duplicate=0.1, reorder=0.1)


@tw.message
class Point:
    x: tw.i16
    on: bool


@tw.message
class Level:
    number: Annotated[int, tw.bits(11)]
    cells: Annotated[bytes, tw.data(60_000)]
    name: Annotated[str, tw.text(40)]
    points: Annotated[list[Point], tw.up_to(4_000)]


@tw.message
class Note:
    number: tw.u32


class Own(tw.messages.Message):
    """Bits, an align and bytes: where it begins matters."""

    max_bytes = 50_000

    def __init__(self, number: int = 0, data: bytes = b"") -> None:
        self.number, self.data = number, data

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.number = stream.bits(self.number, 13)
        size = stream.ranged(len(self.data or b""), 0, 40_000)
        self.data = stream.bytes(self.data, size)
        self.number = stream.bits(self.number, 13)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and (self.number, self.data) == (other.number, other.data)

    __hash__ = None


def level(number: int) -> Level:
    cells = bytes(i * number % 251 for i in range(number % 7 * 2_500))
    points = [Point(i - number, i % 3 == 0) for i in range(number % 5 * 700)]
    return Level(number, cells, f"größe {number}", points)


def own(number: int) -> Own:
    return Own(number, bytes(i * number % 241 for i in range(number % 9 * 3_000)))


def protocol() -> tw.Protocol:
    channels = [tw.reliable_ordered(resend_time=None), tw.reliable_unordered(resend_time=None)]
    return tw.Protocol(id=3, messages=[Note, Level, Own], channels=channels)


@pytest.mark.parametrize("seed", range(1, 4))
def test_large_messages_of_every_kind_arrive_as_they_were_sent(seed: int) -> None:
    network, server, client = connected_pair(protocol(), conditions=BAD, seed=seed)
    sent: list[Any] = []
    for n in range(60):
        message = (Note(n), level(n), own(n))[n % 3]
        sent.append(message)
        client.send(message, channel=0)
        client.send(message, channel=1)
    at_server, _ = advance(network, server, client, seconds=8)
    messages = [message for _, message in at_server.messages]
    assert len(messages) == 120
    for message in sent:
        assert messages.count(message) == 2
    assert client.counters["packets.fragments_sent"] == 0


def test_rows_larger_than_a_datagram_go_both_ways() -> None:
    network = tw.testing.SimulatedNetwork(conditions=BAD, seed=4)
    server = tw.Server("10.0.0.1:5", protocol(), network=network)
    client = tw.Client.connect("10.0.0.1:5", protocol(), network=network, tuning=tw.Tuning(columns=[Level]))
    advance(network, server, client, seconds=2)
    assert client.connected
    points = np.zeros(3_500, tw.columns.dtype(Point))
    points["x"] = range(3_500)
    rows = np.zeros(3, tw.columns.dtype(Level))
    rows["number"] = [5, 6, 7]
    rows["points"] = [(0, 3_500), (10 * points.itemsize, 1_000), (0, 2)]
    assert server.broadcast(tw.columns.Batch(Level, rows, arena=points)) == []
    seen: dict[int, list[int]] = {}
    for _ in range(240):
        network.advance(1 / 60)
        with server.tick():
            pass
        with client.tick() as inbox:
            levels = inbox.columns(Level)
            back = np.frombuffer(tw.columns.arena(levels), np.uint8)
            for number, (offset, count) in zip(levels["number"], levels["points"], strict=True):
                mine = np.frombuffer(back, tw.columns.dtype(Point), count, offset)
                seen[int(number)] = mine["x"].tolist()
    assert seen == {5: list(range(3_500)), 6: list(range(10, 1_010)), 7: [0, 1]}


def test_a_capture_with_large_messages_is_replayed(tmp_path: Path) -> None:
    path, keys = tmp_path / "a.pcapng", tmp_path / "a.keys"
    network = tw.testing.SimulatedNetwork(seed=6, conditions=BAD)
    key = tw.generate_key()
    told: list[Any] = []
    with tw.capture.Capture(path, keys=keys) as capture:
        server = tw.Server(
            "127.0.0.1:40000",
            protocol(),
            key=key,
            network=network,
            debugging=tw.testing.Debugging(capture=capture),
        )
        client = tw.Client.connect(server.address, protocol(), key=key, network=network)
        for tick in range(400):
            network.advance(1 / 60)
            with client.tick():
                if client.connected and tick % 20 == 0 and tick < 300:
                    client.send(level(tick), channel=tick // 20 % 2)
                    client.send(own(tick), channel=0)
            with server.tick() as inbox:
                told += [message for _, message in inbox.messages]
    assert len(told) > 20
    replay = Replay(path, keys=keys)
    again: list[Any] = []
    server = tw.Server(replay.address, protocol(), key=replay.key, network=replay.network)
    for _ in replay:
        with server.tick() as inbox:
            again += [message for _, message in inbox.messages]
    assert again == told
