"""The ack endpoint by itself, over simulated links in virtual time."""

from __future__ import annotations

import random
from typing import Any

import pytest
import tickwire as tw
from hypothesis import given
from hypothesis import strategies as st

TICK = 1 / 60


class Pair:
    """Two endpoints that send a packet a tick over links, and what became of it."""

    def __init__(self, conditions: tw.Conditions | None = None, seed: int = 1, **settings: Any) -> None:
        self.now = 0.0
        self.ends = [tw.articles.AckEndpoint(**settings), tw.articles.AckEndpoint(**settings)]
        self.links: list[tw.testing.Link[bytes]] = [
            tw.testing.Link(conditions, seed=seed),
            tw.testing.Link(conditions, seed=seed + 1),
        ]
        self.sent: list[dict[int, bytes]] = [{}, {}]
        self.received: list[list[bytes]] = [[], []]
        self.acked: list[list[int]] = [[], []]
        self.lost: list[list[int]] = [[], []]

    def send(self, end: int, payload: bytes) -> None:
        sequence, datagrams = self.ends[end].send(self.now, payload)
        self.sent[end][sequence] = payload
        for datagram in datagrams:
            self.links[end].send(self.now, datagram)

    def step(self) -> None:
        self.now += TICK
        for end in (0, 1):
            while (datagram := self.links[1 - end].poll(self.now)) is not None:
                payload = self.ends[end].receive(self.now, datagram)
                if payload is not None:
                    self.received[end].append(payload)
            self.acked[end] += self.ends[end].acked()
            self.lost[end] += self.ends[end].lost(self.now)


@pytest.mark.parametrize("settings", [{}, {"profile": "large"}, {"lost_after_rtts": 2.0}])
def test_every_packet_is_acked_or_lost_once(settings: dict[str, Any]) -> None:
    bad = tw.Conditions(latency=0.05, jitter=0.03, loss=0.1, duplicate=0.1, reorder=0.1)
    pair = Pair(bad, **settings)
    rng = random.Random(4)
    for _ in range(600):
        for end in (0, 1):
            pair.send(end, rng.randbytes(rng.choice([0, 1, 100, 3000])))
        pair.step()
    for _ in range(120):
        pair.step()
    for end in (0, 1):
        acked, lost = pair.acked[end], pair.lost[end]
        assert sorted(acked + lost) == sorted(pair.sent[end])
        assert lost == sorted(lost)
        assert len(lost) > 30
        arrived = pair.received[1 - end]
        assert all(pair.sent[end][sequence] in arrived for sequence in acked)
        assert len(arrived) <= 600
        stats, counters = pair.ends[end].stats, pair.ends[end].counters
        assert 90 < stats.rtt_ms < 200
        assert stats.rtt_min_ms <= stats.rtt_avg_ms <= stats.rtt_max_ms
        assert min(stats.jitter_ms, stats.jitter_stddev_ms, stats.packet_loss_percent) > 0
        assert min(stats.sent_kbps, stats.received_kbps, stats.acked_kbps) > 0
        assert (counters["sent"], counters["acked"], counters["lost"]) == (600, len(acked), len(lost))
        assert counters["fragments_received"] > 0


def test_bytes_are_those_of_the_standard() -> None:
    endpoint = tw.articles.AckEndpoint()
    assert endpoint.next_sequence == 0
    sequence, [datagram] = endpoint.send(0.0, b"hi")
    assert (sequence, datagram) == (0, b"\x3e\x00\x00\x01\x00\x00\x00\x00hi")
    assert len(datagram) - len(b"hi") <= tw.articles.AckEndpoint.MAX_OVERHEAD
    assert endpoint.next_sequence == 1


def test_large_payloads_go_in_fragments_that_arrive_in_any_order() -> None:
    a, b = tw.articles.AckEndpoint("large"), tw.articles.AckEndpoint("large")
    payload = random.Random(1).randbytes(256 * 1024)
    _, datagrams = a.send(0.0, payload)
    assert len(datagrams) == 256
    assert max(map(len, datagrams)) <= 1200
    random.Random(2).shuffle(datagrams)
    arrived = [b.receive(0.1, datagram) for datagram in datagrams]
    assert arrived[:-1] == [None] * 255
    assert arrived[-1] == payload


def exchange(
    a: tw.articles.AckEndpoint, b: tw.articles.AckEndpoint, **receiving: Any
) -> tuple[int, bytes | None]:
    """A packet of `a`, and an answer of `b` that carries its acks."""
    sequence, [datagram] = a.send(0.0, b"data")
    got = b.receive(0.01, datagram, **receiving)
    _, [answer] = b.send(0.01, b"")
    assert a.receive(0.02, answer) == b""
    return sequence, got


def test_what_is_refused_is_not_acked() -> None:
    a, b = tw.articles.AckEndpoint(), tw.articles.AckEndpoint()
    seen: list[bytes] = []
    refuse = lambda payload: seen.append(payload)  # noqa: E731
    first, got = exchange(a, b, accept=refuse)
    assert (seen, got, a.acked(), b.counters["refused"]) == ([b"data"], None, [], 1)
    second, got = exchange(a, b, accept=lambda _: True)
    assert (got, a.acked(), b.newest_received) == (b"data", [second], second)
    assert a.lost(2.0) == [first]
    assert (a.acked(), a.lost(3.0)) == ([], [])


def test_what_accept_raises_passes_through_and_refuses() -> None:
    a, b = tw.articles.AckEndpoint(), tw.articles.AckEndpoint()

    def fail(_: bytes) -> bool:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        exchange(a, b, accept=fail)
    assert b.counters["refused"] == 1
    exchange(a, b)
    assert a.acked() == [1]


def test_a_copy_received_from_within_accept_counts_once() -> None:
    a, b = tw.articles.AckEndpoint(), tw.articles.AckEndpoint()
    _, [datagram] = a.send(0.0, b"once")
    inner: list[bytes | None] = []

    def again(_: bytes) -> bool:
        inner.append(b.receive(0.0, datagram))
        return True

    outer = b.receive(0.0, datagram, accept=again)
    assert (inner, outer, b.counters["received"]) == ([b"once"], None, 1)


def test_in_order_only_drops_and_does_not_ack_what_is_late() -> None:
    a, b = tw.articles.AckEndpoint(), tw.articles.AckEndpoint(in_order_only=True)
    (_, [first]), (_, [second]) = a.send(0.0, b"1"), a.send(0.0, b"2")
    assert (b.receive(0.0, second), b.receive(0.0, first)) == (b"2", None)
    assert b.counters["out_of_order"] == 1
    a.receive(0.1, b.send(0.1, b"")[1][0])
    assert (a.acked(), a.lost(1.0)) == ([1], [0])


def test_loss_by_round_trips_is_told_sooner_than_by_time() -> None:
    def first_lost_at(**settings: Any) -> float:
        pair = Pair(tw.Conditions(latency=0.01), rtt_smoothing=0.1, **settings)
        for _ in range(60):
            for end in (0, 1):
                pair.send(end, b"")
            pair.step()
        pair.links[0].set_conditions(tw.Conditions(loss=1))
        since, missing = pair.now, pair.ends[0].next_sequence
        pair.send(0, b"never")
        while missing not in pair.lost[0]:
            pair.step()
        return pair.now - since

    assert first_lost_at(lost_after_rtts=3.0) < 0.2
    assert 0.299 < first_lost_at(lost_after_rtts=3.0, lost_not_before=0.3) < 0.33
    assert 0.499 < first_lost_at(lost_after=0.5) < 0.53


@given(st.lists(st.binary(max_size=60), max_size=30))
def test_any_datagram_is_taken_or_dropped_under_a_name(datagrams: list[bytes]) -> None:
    endpoint = tw.articles.AckEndpoint()
    for datagram in datagrams:
        counted = sum(endpoint.counters.values())
        endpoint.receive(0.0, datagram)
        assert sum(endpoint.counters.values()) > counted


def make_endpoint(*, fragments: dict[str, Any] | None = None, **settings: Any) -> tw.articles.AckEndpoint:
    given = None if fragments is None else tw.articles.Fragments(**fragments)
    return tw.articles.AckEndpoint(fragments=given, **settings)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"profile": "huge"}, "profile must be 'standard' or 'large', not 'huge'"),
        ({"max_packet_size": 0}, "max_packet_size must be 1 to 1073741824, not 0"),
        ({"max_packet_size": 16_385}, "max_packet_size must be"),
        ({"fragments": {"above": -1}}, "above must be 1 to 1073741824, not -1"),
        ({"fragments": {"size": 65_536}}, "size must be 1 to 65535, not 65536"),
        ({"fragments": {"count": 257}}, "count must be 1 to 256, not 257"),
        ({"fragments": {"reassembly_bytes": 5}}, "reassembly_bytes must be 16384 to 1073741824, not 5"),
        ({"sent_window": 100}, "sent_window must be a power of two up to 32768, not 100"),
        ({"received_window": 65_536}, "received_window must be 1 to 32768, not 65536"),
        ({"rtt_smoothing": 0.0}, "rtt_smoothing must be above 0, up to 1, not 0"),
        ({"lost_after": -1.0}, "lost_after must be 0 to 86400 seconds, not -1"),
        ({"lost_after_rtts": 0.0}, "lost_after_rtts must be above 0 and finite, not 0"),
        ({"lost_not_before": float("nan")}, "lost_not_before must be 0 to 86400 seconds, not NaN"),
    ],
)
def test_settings_out_of_bounds_are_named(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        make_endpoint(**settings)


def test_calls_that_make_no_sense_are_named() -> None:
    endpoint = tw.articles.AckEndpoint()
    with pytest.raises(tw.errors.MessageTooLargeError, match="must be at most 16384 bytes, not 16385"):
        endpoint.send(0.0, bytes(16_385))
    assert (endpoint.next_sequence, endpoint.counters["too_large_to_send"]) == (0, 1)
    with pytest.raises(TypeError):
        endpoint.send(0.0, "text")  # type: ignore[arg-type]
    for now in (-1.0, float("nan"), 1e12):
        for call in (
            lambda now=now: endpoint.send(now, b""),
            lambda now=now: endpoint.receive(now, b""),
            lambda now=now: endpoint.lost(now),
        ):
            with pytest.raises(ValueError, match="now must be 0 to 6324480000 seconds"):
                call()
