"""Chunks by themselves, over simulated links in virtual time and over sockets."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
import tickwire as tw
from conftest import paced
from hypothesis import given
from hypothesis import strategies as st

TICK = 1 / 60


class Pair:
    """A sender and a receiver, and the links between them."""

    def __init__(self, conditions: tw.Conditions | None = None, seed: int = 1, **settings: Any) -> None:
        self.now = 0.0
        self.sender = tw.articles.ChunkSender(**settings)
        self.receiver = tw.articles.ChunkReceiver(max_slices=settings.get("max_slices", 256))
        self.there: tw.testing.Link[bytes] = tw.testing.Link(conditions, seed=seed)
        self.back: tw.testing.Link[bytes] = tw.testing.Link(conditions, seed=seed + 1)
        self.read: list[bytes] = []
        self.across: list[int] = []

    def step(self) -> None:
        for packet in self.sender.update(self.now):
            assert len(packet) <= 1200
            self.there.send(self.now, packet)
        while (packet := self.there.poll(self.now)) is not None:
            self.receiver.receive(self.now, packet)
        if (chunk := self.receiver.read()) is not None:
            self.read.append(chunk)
        if (ack := self.receiver.update(self.now)) is not None:
            self.back.send(self.now, ack)
        while (packet := self.back.poll(self.now)) is not None:
            number = self.sender.receive(self.now, packet)
            if number is not None:
                self.across.append(number)
        self.now += TICK

    def run(self, seconds: float = 600.0) -> None:
        while not self.sender.idle:
            assert self.now < seconds, self.sender
            self.step()


@pytest.mark.parametrize("seed", range(10))
def test_chunks_get_through_terrible_links_whole_and_in_order(seed: int) -> None:
    rng = random.Random(seed)
    bad = tw.Conditions(latency=0.05, jitter=0.05, loss=rng.uniform(0.01, 0.5), duplicate=0.2, reorder=0.2)
    pair = Pair(bad, seed, bytes_per_second=1e6, max_slices=1024)
    sizes = [1, 1024, 1025, rng.randint(1, 262_144), rng.randint(1, 2**20)]
    chunks = [rng.randbytes(size) for size in sizes]
    assert [pair.sender.send(chunk) for chunk in chunks] == [0, 1, 2, 3, 4]
    pair.run()
    assert pair.read == chunks
    assert pair.across == [0, 1, 2, 3, 4]
    counters = pair.sender.counters
    assert counters["chunks_acked"] == 5
    assert counters["slices_resent"] > 0
    assert pair.receiver.counters["duplicates"] > 0


def test_both_directions_share_a_socket() -> None:
    with tw.articles.Socket("127.0.0.1:0") as here, tw.articles.Socket("127.0.0.1:0") as there:
        chunks = [random.Random(1).randbytes(100_000), random.Random(2).randbytes(60_000)]
        ends = [
            (here, there.address, tw.articles.ChunkSender(bytes_per_second=1e7), tw.articles.ChunkReceiver()),
            (there, here.address, tw.articles.ChunkSender(bytes_per_second=1e7), tw.articles.ChunkReceiver()),
        ]
        for (_, _, sender, _), chunk in zip(ends, chunks, strict=True):
            sender.send(chunk)
        read: list[bytes | None] = [None, None]
        for _ in paced(200, seconds=10):
            for index, (socket, peer, sender, receiver) in enumerate(ends):
                now = time.monotonic()
                for data, _ in socket.receive_many():
                    if tw.articles.ChunkSender.is_ack(data):
                        sender.receive(now, data)
                    if tw.articles.ChunkReceiver.is_slice(data):
                        receiver.receive(now, data)
                read[1 - index] = receiver.read() or read[1 - index]
                ack = receiver.update(now)
                packets = [*sender.update(now), *([] if ack is None else [ack])]
                socket.send_many([(peer, packet) for packet in packets])
            if all(sender.idle for _, _, sender, _ in ends):
                break
        assert read == chunks
        assert [sender.counters["wrong_kind"] for _, _, sender, _ in ends] == [0, 0]


def test_the_bytes_are_those_of_the_article() -> None:
    sender = tw.articles.ChunkSender()
    sender.send(bytes(1024) + b"hello")
    first, last = sender.update(0.0)
    # Kind 1 bit, chunk id 16, slice id 8, slice count less one 8; in the last slice byte count less one 10.
    assert (first[:5], len(first)) == ((1 << 25).to_bytes(5, "little"), 5 + 1024)
    assert last == (1 << 17 | 1 << 25 | 4 << 33).to_bytes(6, "little") + b"hello"
    receiver = tw.articles.ChunkReceiver()
    receiver.receive(0.0, last)
    receiver.receive(0.0, first)
    assert receiver.update(0.0) == (1 | 1 << 17 | 0b11 << 25).to_bytes(4, "little")


def test_a_quarter_mebibyte_keeps_to_its_rate() -> None:
    for rate, seconds in ((32_000, 8.5), (64_000, 4.2), (125_000, 2.2)):
        pair = Pair(tw.Conditions(latency=0.02), bytes_per_second=rate)
        pair.sender.send(bytes(262_144))
        pair.run()
        assert pair.now == pytest.approx(seconds, abs=0.3)
        assert pair.sender.bytes_per_second == rate


def test_progress_is_visible_at_both_ends() -> None:
    pair = Pair(tw.Conditions(latency=0.02))
    assert (pair.sender.progress, pair.receiver.progress, pair.sender.in_flight) == (None, None, None)
    pair.sender.send(bytes(100_000))
    while pair.now < 1.5:
        pair.step()
    sent, received = pair.sender.progress, pair.receiver.progress
    assert sent is not None
    assert received is not None
    assert (pair.sender.in_flight, sent.total_bytes, sent.total_slices) == (0, 100_000, 98)
    assert 0 < sent.bytes == sent.slices * 1024 <= received.bytes
    assert received.total_bytes == 98 * 1024
    assert 25_000 < sent.bytes_per_second < 36_000
    assert sent.time_left == pytest.approx((100_000 - sent.bytes) / sent.bytes_per_second)
    assert repr(pair.sender) == f"<ChunkSender: chunk 0, {sent.slices} of 98 slices acked, 0 queued>"
    assert repr(pair.receiver) == f"<ChunkReceiver: {received.slices} of 98 slices>"
    assert repr(sent).startswith(f"<ChunkProgress {sent.bytes} of 100000 bytes, {sent.slices} of 98 slices, ")


def test_an_initial_burst_is_for_small_chunks_only() -> None:
    sender = tw.articles.ChunkSender(max_slices=1024)
    sender.send(bytes(262_144), burst=True)
    assert len(sender.update(0.0)) == 256
    assert sender.update(0.09) == []
    assert len(sender.update(0.11)) in (2, 3)
    with pytest.raises(tw.errors.MessageTooLargeError, match="at most 262144 bytes.*more would"):
        sender.send(bytes(262_145), burst=True)
    assert sender.send(bytes(262_145)) == 1


def test_slices_wait_for_their_resend_delay_or_round_trips() -> None:
    def sends(rtt: float | None) -> list[int]:
        sender = tw.articles.ChunkSender()
        sender.send(b"x")
        return [tick for tick in range(40) if sender.update(tick / 100, rtt=rtt)]

    assert sends(None) == [0, 10, 20, 30]
    assert sends(0.16) == [0, 20]


def test_cancelled_chunks_give_way_at_every_stage() -> None:
    pair = Pair(tw.Conditions(latency=0.05, loss=0.3), seed=3)
    chunks = [random.Random(number).randbytes(50_000) for number in range(4)]
    for chunk in chunks:
        pair.sender.send(chunk)
    assert pair.sender.cancel(1)
    pair.step()
    assert (pair.sender.in_flight, pair.sender.queued) == (0, 2)
    assert pair.sender.cancel(0)
    assert (pair.sender.in_flight, pair.sender.cancel(0), pair.sender.cancel(9)) == (None, False, False)
    while pair.sender.in_flight != 2:
        pair.step()
    assert pair.sender.cancel(2)
    pair.run()
    assert (pair.read, pair.across) == ([chunks[3]], [3])
    assert pair.sender.counters["chunks_cancelled"] == 3


def test_acks_are_few_and_paid_for() -> None:
    pair = Pair(tw.Conditions(latency=0.02), bytes_per_second=1e6)
    pair.sender.send(bytes(262_144))
    pair.run()
    acks = pair.receiver.counters
    assert acks["acks_sent"] <= pair.now / 0.05 + 1
    assert acks["bytes_sent"] < pair.sender.counters["bytes_sent"] / 20


@given(st.lists(st.binary(max_size=80), max_size=30))
def test_any_datagram_is_taken_or_dropped_under_a_name(datagrams: list[bytes]) -> None:
    sender, receiver = tw.articles.ChunkSender(), tw.articles.ChunkReceiver()
    sender.send(bytes(5000))
    sender.update(0.0)
    for datagram in datagrams:
        for end in (sender, receiver):
            counted = sum(end.counters.values())
            end.receive(0.0, datagram)
            assert sum(end.counters.values()) > counted


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"max_slices": 0}, "max_slices must be 1 to 8192, not 0"),
        ({"max_slices": 8193}, "max_slices must be 1 to 8192, not 8193"),
        ({"bytes_per_second": 0.0}, "bytes_per_second must be above 0 and finite, not 0"),
        ({"accumulator_bytes": 1057}, "accumulator_bytes must be 1058 to"),
        ({"overhead": -1}, "overhead must be 0 to 65535, not -1"),
        ({"resend_delay": 0.0}, "resend_delay must be 1ms to 60s, not 0ns"),
        ({"resend_delay": 100.0}, "resend_delay must be 0 to 60 seconds, not 100"),
        ({"max_queued": 0}, "max_queued must be 1 to 65535, not 0"),
        ({"initial_burst_bytes": -1}, "initial_burst_bytes must be 0 to 8388608, not -1"),
        ({"initial_burst_wait": -1.0}, "initial_burst_wait must be 0 to 60 seconds, not -1"),
    ],
)
def test_settings_of_a_sender_out_of_bounds_are_named(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        tw.articles.ChunkSender(**settings)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"max_slices": 8193}, "max_slices must be 1 to 8192, not 8193"),
        ({"ack_interval": 0.0}, "ack_interval must be 1ms to 60s, not 0ns"),
        ({"overhead": 65_536}, "overhead must be 0 to 65535, not 65536"),
    ],
)
def test_settings_of_a_receiver_out_of_bounds_are_named(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        tw.articles.ChunkReceiver(**settings)


def test_calls_that_make_no_sense_are_named() -> None:
    sender, receiver = tw.articles.ChunkSender(max_queued=1), tw.articles.ChunkReceiver()
    with pytest.raises(ValueError, match="the chunk must have at least 1 byte, not 0"):
        sender.send(b"")
    with pytest.raises(tw.errors.MessageTooLargeError, match="at most 262144 bytes, not 262145"):
        sender.send(bytes(262_145))
    sender.send(b"x")
    with pytest.raises(tw.errors.ChannelFullError, match="1 chunks are already waiting"):
        sender.send(b"x")
    with pytest.raises(ValueError, match="bytes_per_second must be .* not NaN"):
        sender.set_bytes_per_second(float("nan"))
    with pytest.raises(ValueError, match="rtt must be 0 to 60 seconds, not -1"):
        sender.update(0.0, rtt=-1.0)
    for call in (sender.update, receiver.update, lambda now: receiver.receive(now, b"")):
        with pytest.raises(ValueError, match="now must be 0 to"):
            call(float("nan"))
