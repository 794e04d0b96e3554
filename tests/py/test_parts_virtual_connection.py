"""The plain virtual connection by itself: over sockets, and in virtual time."""

from __future__ import annotations

import struct
import time
import zlib
from typing import Any

import pytest
import tickwire as tw
from conftest import paced

A, B, C = (tw.Address(f"10.0.0.{number}:5") for number in (1, 2, 3))
ID = 0x7469636B


def pair(**settings: Any) -> tuple[tw.articles.VirtualConnection, tw.articles.VirtualConnection]:
    return (
        tw.articles.VirtualConnection.connect(0.0, B, protocol_id=ID, **settings),
        tw.articles.VirtualConnection.listen(protocol_id=ID, **settings),
    )


def play(
    a: tw.articles.VirtualConnection,
    b: tw.articles.VirtualConnection,
    start: float,
    seconds: float,
    say: bool = False,
) -> tuple[list[bytes], list[bytes]]:
    """Ticks both ends over links in virtual time; returns what each received."""
    conditions = tw.Conditions(latency=0.03, loss=0.1)
    to_b, to_a = tw.testing.Link[bytes](conditions, seed=1), tw.testing.Link[bytes](conditions, seed=2)
    at_a: list[bytes] = []
    at_b: list[bytes] = []
    for tick in range(round(seconds * 60)):
        now = start + tick / 60
        for end, peer, outward, inward, got in ((a, B, to_b, to_a, at_a), (b, A, to_a, to_b, at_b)):
            while (datagram := inward.poll(now)) is not None:
                payload = end.receive(now, peer, datagram)
                if payload is not None:
                    got.append(payload)
            if say and end.ready:
                for _, datagram in end.send(now, str(tick).encode())[1]:
                    outward.send(now, datagram)
            for _, datagram in end.update(now):
                outward.send(now, datagram)
    return at_a, at_b


def test_two_peers_talk_over_sockets_in_ten_lines() -> None:
    with tw.articles.Socket("127.0.0.1:0") as here, tw.articles.Socket("127.0.0.1:0") as there:
        a = tw.articles.VirtualConnection.connect(time.monotonic(), there.address, protocol_id=ID)
        b = tw.articles.VirtualConnection.listen(protocol_id=ID)
        heard: list[bytes | None] = []
        here.send_many(a.send(time.monotonic(), b"hello")[1])
        for _ in paced(100, seconds=10):
            for socket, end in ((here, a), (there, b)):
                heard += [
                    end.receive(time.monotonic(), source, data) for data, source in socket.receive_many()
                ]
                socket.send_many(end.update(time.monotonic()))
            if acked := a.acked():
                break
        assert (acked, a.state, b.state, b.peer) == ([0], "connected", "connected", here.address)
        assert b"hello" in heard


def test_the_bytes_are_an_id_a_checksum_and_a_packet_of_reliable() -> None:
    a, _ = pair()
    _, [(to, datagram)] = a.send(0.0, b"hi")
    packet = tw.articles.AckEndpoint().send(0.0, b"hi")[1][0]
    assert (to, datagram) == (B, struct.pack("<II", ID, zlib.crc32(packet)) + packet)


def test_they_connect_talk_and_time_out_and_the_listener_listens_again() -> None:
    a, b = pair()
    assert (a.state, b.state, b.peer) == ("connecting", "listening", None)
    at_a, at_b = play(a, b, 0.0, 5, say=True)
    assert min(len(at_a), len(at_b)) > 200
    assert (a.events(), b.events()) == ([("connected", B)], [("connected", A)])
    assert 60 < a.stats.rtt_ms < 120
    acked, lost = a.acked(), a.lost()
    assert len(acked) > 200
    assert len(lost) > 10
    assert set(acked).isdisjoint(lost)
    assert (a.update(20.0), b.update(20.0)) == ([], [])
    assert (a.events(), b.events()) == ([("timed_out", B)], [("timed_out", A)])
    assert (a.state, b.state, b.peer) == ("ended", "listening", None)
    c = tw.articles.VirtualConnection.connect(21.0, B, protocol_id=ID)
    assert b.receive(21.0, C, c.send(21.0, b"next")[1][0][1]) == b"next"
    assert b.peer == C


def test_silence_is_filled_and_nobody_is_an_answer_too() -> None:
    a, b = pair(timeout=2.0, keep_alive=0.05)
    play(a, b, 0.0, 5)
    assert (a.state, b.state) == ("connected", "connected")
    assert a.counters["packets.sent"] == pytest.approx(100, abs=60)
    alone = tw.articles.VirtualConnection.connect(0.0, B, protocol_id=ID, timeout=1.0)
    alone.update(0.5)
    alone.update(1.5)
    assert alone.events() == [("no_answer", B)]
    with pytest.raises(tw.errors.NotConnectedError, match="no peer"):
        alone.send(2.0, b"hello?")


def test_strangers_are_dropped_under_a_name() -> None:
    a, b = pair()
    _, [(_, good)] = a.send(0.0, b"hi")
    other = tw.articles.VirtualConnection.connect(0.0, B, protocol_id=ID + 1).send(0.0, b"hi")[1][0][1]
    for datagram in (b"", good[:8], other, good[:-1] + b"?"):
        assert b.receive(0.0, C, datagram) is None
    assert b.state == "listening"
    assert b.receive(0.0, A, good) == b"hi"
    assert b.receive(0.0, C, good) is None
    assert b.receive(0.0, A, good) is None
    drops = ("too_short", "wrong_protocol_id", "wrong_checksum", "strangers", "packets.duplicates")
    assert [b.counters[name] for name in drops] == [1, 1, 2, 1, 1]


def test_a_listener_answers_no_more_than_it_got_until_the_peer_has_acked() -> None:
    a, b = pair()
    _, [(_, first)] = a.send(0.0, b"0123456789")
    b.receive(0.0, A, first)
    with pytest.raises(tw.errors.NotConnectedError, match="until the peer has acked a packet"):
        b.send(0.0, bytes(11))
    _, answers = b.send(0.0, b"ok")
    assert [len(datagram) <= len(first) for _, datagram in answers] == [True]
    with pytest.raises(tw.errors.NotConnectedError, match="must wait"):
        b.send(0.0, b"")
    assert b.update(1.0) == []
    a.receive(0.1, B, answers[0][1])
    assert not b.ready
    b.receive(0.2, A, a.send(0.1, b"")[1][0][1])
    assert b.ready
    assert len(b.send(0.2, bytes(100_000))[1]) > 80


def test_mistakes_are_named() -> None:
    for settings, complaint in [
        ({"protocol_id": 2**32}, "protocol_id must be 0 to 4294967295, not 4294967296"),
        ({"timeout": -1.0}, "timeout must be 0 to 86400 seconds, not -1"),
        ({"keep_alive": float("nan")}, "keep_alive must be 0 to 86400 seconds, not NaN"),
        ({"lost_after_rtts": -2.0}, "lost_after_rtts must be above 0 and finite, not -2"),
    ]:
        arguments: dict[str, Any] = {"protocol_id": ID, **settings}
        with pytest.raises(ValueError, match=complaint):
            tw.articles.VirtualConnection.listen(**arguments)
        with pytest.raises(ValueError, match=complaint):
            tw.articles.VirtualConnection.connect(0.0, B, **arguments)
    a, b = pair()
    with pytest.raises(tw.errors.NotConnectedError, match="no peer"):
        b.send(0.0, b"")
    with pytest.raises(tw.errors.MessageTooLargeError, match="must be at most 262144 bytes, not 262145"):
        a.send(0.0, bytes(262_145))
    with pytest.raises(ValueError, match="now must be 0 to"):
        a.update(-1.0)
