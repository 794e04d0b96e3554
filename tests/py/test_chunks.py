"""Chunks in virtual time: large blocks of data, both directions, from and to memory and files."""

from __future__ import annotations

import array
import doctest
import errno
import gc
import hashlib
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tickwire as tw
from conftest import Chat, make_protocol
from public import EVERY_NAME
from tickwire.testing import Collected, advance, connected_pair

PROTOCOL = make_protocol(channels=[tw.reliable_ordered(), tw.chunks("files")])
KIB, MIB = 1 << 10, 1 << 20
LOSSY = tw.Conditions(latency=0.05, jitter=0.01, loss=0.02, duplicate=0.01)
SLICE = 1152


TOO_LARGE = (
    "the receiver accepts no chunk of this size: give it more memory for chunks, or a directory; "
    "a server has neither by default"
)


def content(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


class Pair:
    """A server that takes chunks and a client of it, connected; and all that each of them received."""

    def __init__(
        self,
        conditions: tw.Conditions | None = None,
        client: Any = None,
        protocol: tw.Protocol = PROTOCOL,
        **server: Any,
    ) -> None:
        self.network = tw.testing.SimulatedNetwork(seed=1, conditions=conditions)
        self.protocol = protocol
        self.server = tw.Server(
            "10.0.0.1:5",
            protocol,
            network=self.network,
            **{"transfers": tw.transfer.Transfers(memory=16 * MIB), **server},
        )
        self.at_server, self.at_client = Collected(), Collected()
        self.client = self.dial(**(client or {}))
        self.until(lambda: self.client.connected and bool(self.server.clients))

    def dial(self, **settings: Any) -> tw.Client:
        return tw.Client.connect(
            "10.0.0.1:5", self.protocol, network=self.network, **{"client_id": 7, **settings}
        )

    @property
    def handle(self) -> tw.ClientHandle:
        return self.server.clients[0]

    def tick(self) -> None:
        for endpoint, into in ((self.server, self.at_server), (self.client, self.at_client)):
            with endpoint.tick() as inbox:
                into.messages += inbox.messages
                into.chunks += inbox.chunks
                into.chunk_failures += inbox.chunk_failures
        self.network.advance(1 / 60)

    def until(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        for _ in range(round(seconds * 60)):
            if condition():
                return
            self.tick()
        pytest.fail("it never came to pass")

    def to_client(self, data: Any, **options: Any) -> tw.transfer.Transfer:
        return self.server.send_chunk(self.handle, data, **options)


# --- what arrives ---


@pytest.mark.parametrize("size", [0, 1, SLICE, SLICE + 1, 300 * KIB])
def test_a_chunk_of_any_size_arrives_as_it_was_sent_both_ways(size: int) -> None:
    pair = Pair(LOSSY)
    down, up = content(1, size), content(2, size)
    transfers = [pair.to_client(down, label="down"), pair.client.send_chunk(up, label="up")]
    pair.until(lambda: all(transfer.over for transfer in transfers))
    assert [transfer.error for transfer in transfers] == [None, None]
    for got, sent, label, client in (
        (pair.at_client.chunks, down, "down", None),
        (pair.at_server.chunks, up, "up", pair.handle),
    ):
        [chunk] = got
        assert (chunk.label, chunk.size, chunk.client, chunk.path) == (label, size, client, None)
        assert chunk.hash == hashlib.sha256(sent).digest()
        assert bytes(chunk) == sent


def test_a_received_chunk_is_a_buffer_that_outlives_its_object() -> None:
    pair = Pair()
    pair.to_client(content(1, 5000))
    pair.until(lambda: bool(pair.at_client.chunks))
    chunk = pair.at_client.chunks.pop()
    view = chunk.data
    assert (view.readonly, view.nbytes, view.format, view.contiguous) == (True, 5000, "B", True)
    assert memoryview(chunk)[10:20] == content(1, 5000)[10:20]
    with pytest.raises(TypeError):
        view[0] = 0
    del chunk
    gc.collect()
    assert view == content(1, 5000)


def test_a_transfer_tells_what_it_is() -> None:
    pair = Pair()
    data = content(1, 3 * SLICE + 1)
    transfer = pair.to_client(data, label="world")
    assert (transfer.label, transfer.size, transfer.slices) == ("world", len(data), 4)
    assert (transfer.hash, transfer.client) == (hashlib.sha256(data).digest(), pair.handle)
    assert (transfer.bytes_done, transfer.slices_done, transfer.fraction, transfer.rate) == (0, 0, 0.0, 0.0)
    assert (transfer.done, transfer.over, transfer.error, transfer.time_left) == (False, False, None, None)
    assert repr(transfer) == '<Transfer "world": 0 of 3457 bytes>'
    pair.until(lambda: transfer.over)
    assert (transfer.bytes_done, transfer.slices_done, transfer.fraction) == (len(data), 4, 1.0)
    assert (transfer.done, transfer.error, transfer.time_left) == (True, None, 0.0)
    assert repr(transfer) == '<Transfer "world": done, 3457 bytes>'
    assert pair.client.send_chunk(b"").client is None


def test_small_chunks_arrive_with_their_first_packets() -> None:
    pair = Pair(tw.Conditions(latency=0.1))
    pair.to_client(content(1, 20 * KIB))
    before = pair.network.now
    pair.until(lambda: bool(pair.at_client.chunks))
    assert pair.network.now - before < 0.16
    pair.until(lambda: pair.server.stats(pair.handle).chunks.slices_sent == 18)
    assert pair.server.stats(pair.handle).chunks.slices_resent == 0
    assert pair.client.stats.chunks.slices_unexpected == 0


def test_progress_only_grows_on_both_ends_and_is_the_same_in_the_end() -> None:
    pair = Pair(LOSSY)
    transfer = pair.to_client(content(1, 2 * MIB), label="world")
    sent: list[int] = []
    came: list[int] = []
    rates: list[float] = []
    lefts: list[float | None] = []
    while not transfer.over:
        pair.tick()
        sent.append(transfer.bytes_done)
        assert transfer.fraction == pytest.approx(sent[-1] / transfer.size, abs=0.001)
        for incoming in pair.client.incoming_chunks():
            assert (incoming.label, incoming.size, incoming.hash) == ("world", 2 * MIB, transfer.hash)
            assert (incoming.client, incoming.slices) == (None, transfer.slices)
            came.append(incoming.bytes_done)
            rates.append(incoming.rate)
            lefts.append(incoming.time_left)
            assert incoming.fraction == incoming.slices_done / incoming.slices
    for progress in (sent, came):
        assert len(set(progress)) > 20
        assert all(before <= after for before, after in pairwise(progress))
    assert sent[-1] == 2 * MIB
    assert max(rates) > 200_000
    assert lefts[0] is None or lefts[0] > 0
    assert pair.client.incoming_chunks() == []


def test_chunks_arrive_in_the_order_in_which_they_were_queued() -> None:
    pair = Pair(LOSSY)
    sizes = [200 * KIB, 1, 50 * KIB, 0, 3000, 100 * KIB, 7, 8, 9]
    transfers = [pair.to_client(content(n, size), label=f"{n}") for n, size in enumerate(sizes)]
    pair.until(lambda: all(transfer.done for transfer in transfers))
    assert [chunk.label for chunk in pair.at_client.chunks] == [f"{n}" for n in range(len(sizes))]
    assert [bytes(chunk) for chunk in pair.at_client.chunks] == [content(n, s) for n, s in enumerate(sizes)]


def test_messages_go_first() -> None:
    slow = tw.transfer.Congestion(max_bytes_per_second=200_000)
    pair = Pair(
        tw.Conditions(latency=0.05), transfers=tw.transfer.Transfers(memory=16 * MIB, congestion=slow)
    )
    pair.to_client(content(1, MIB))
    for n in range(60):
        pair.server.send(pair.handle, Chat(n, "hello"))
        pair.tick()
        assert len(pair.at_client.messages) >= n - 4
    assert 0 < pair.client.incoming_chunks()[0].fraction < 1


def test_a_burst_goes_out_before_anything_is_known_of_the_link() -> None:
    took = {}
    for burst in (False, True):
        pair = Pair(tw.Conditions(latency=0.1))
        pair.to_client(content(1, 200 * KIB), burst=burst)
        before = pair.network.now
        pair.until(lambda: bool(pair.at_client.chunks))  # noqa: B023
        took[burst] = pair.network.now - before
    assert took[True] < 0.26
    assert took[False] > 0.35


def test_one_chunk_for_many_clients_is_hashed_and_held_once() -> None:
    pair = Pair()
    others = [pair.dial(client_id=8 + n) for n in range(3)]
    advance(pair.network, pair.server, *others, seconds=1)
    chunk = tw.transfer.Chunk(content(1, 100 * KIB))
    transfers = [pair.server.send_chunk(client, chunk, label="world") for client in pair.server.clients]
    assert {transfer.hash for transfer in transfers} == {chunk.hash}
    assert (chunk.size, chunk.path) == (100 * KIB, None)
    collected = advance(pair.network, pair.server, pair.client, *others, seconds=3)
    assert [len(each.chunks) for each in collected[1:]] == [1, 1, 1, 1]
    assert all(transfer.done for transfer in transfers)


# --- what may be sent ---


def test_buffers_are_copied_and_bytes_are_not() -> None:
    pair = Pair()
    changing = bytearray(content(1, 1000))
    floats = array.array("f", [1.0, 2.0, 3.0])
    held = content(2, 1000)
    before = sys.getrefcount(held)
    chunk = tw.transfer.Chunk(held)
    assert sys.getrefcount(held) == before + 1
    transfers = [pair.to_client(data) for data in (changing, memoryview(changing)[100:200], floats, chunk)]
    changing[:] = bytes(1000)
    pair.until(lambda: all(transfer.done for transfer in transfers))
    got = [bytes(chunk) for chunk in pair.at_client.chunks]
    assert got == [content(1, 1000), content(1, 1000)[100:200], floats.tobytes(), held]


def test_a_subclass_of_bytes_is_copied() -> None:
    class Odd(bytes):
        pass

    odd = Odd(b"odd")
    before = sys.getrefcount(odd)
    chunk = tw.transfer.Chunk(odd)
    assert (sys.getrefcount(odd), chunk.size) == (before, 3)


@pytest.mark.parametrize("as_path", [str, Path])
def test_a_file_arrives_in_a_file(tmp_path: Path, as_path: type) -> None:
    source, directory = tmp_path / "world.map", tmp_path / "made" / "received"
    source.write_bytes(content(1, 700 * KIB))
    pair = Pair(LOSSY, client={"transfers": tw.transfer.Transfers(directory=as_path(directory))})
    transfer = pair.to_client(as_path(source), label="../../etc/passwd")
    pair.until(lambda: transfer.over)
    assert transfer.error is None
    [chunk] = pair.at_client.chunks
    assert chunk.path == directory / chunk.hash.hex()
    assert chunk.path.read_bytes() == source.read_bytes()
    assert list(directory.iterdir()) == [chunk.path], "and nothing else"
    assert chunk.label == "../../etc/passwd", "as the peer says it, and used for nothing"
    with pytest.raises(BufferError, match=f"not in memory but in the file .*{chunk.hash.hex()}"):
        _ = chunk.data
    with pytest.raises(BufferError):
        memoryview(chunk)


def test_a_file_is_opened_once_for_many_clients(tmp_path: Path) -> None:
    source = tmp_path / "world.map"
    source.write_bytes(content(1, 200 * KIB))
    pair = Pair()
    other = pair.dial(client_id=8)
    advance(pair.network, pair.server, other, seconds=1)
    chunk = tw.transfer.Chunk(source)
    assert (chunk.path, chunk.size) == (source, 200 * KIB)
    transfers = [pair.server.send_chunk(client, chunk) for client in pair.server.clients]
    if os.name != "nt":
        source.unlink()
    _, at_client, at_other = advance(pair.network, pair.server, pair.client, other, seconds=3)
    assert all(transfer.done for transfer in transfers)
    assert bytes(at_client.chunks[0]) == bytes(at_other.chunks[0]) == content(1, 200 * KIB)


def test_a_file_that_shrinks_while_it_is_sent_fails_and_the_next_chunk_goes_on(tmp_path: Path) -> None:
    source = tmp_path / "world.map"
    source.write_bytes(content(1, 4 * MIB))
    pair = Pair(LOSSY)
    transfer, after = pair.to_client(source, label="world"), pair.to_client(b"after")
    pair.until(lambda: transfer.bytes_done > 0)
    with source.open("r+b") as file:
        file.truncate(100)
    pair.until(lambda: after.done and bool(pair.at_client.chunk_failures))
    assert transfer.error is not None
    assert transfer.error.startswith(f"can't read {source}: ")
    assert not transfer.done
    assert pair.at_client.chunk_failures == [("world", "the sender withdrew it")]


def test_a_file_that_changes_while_it_is_sent_fails(tmp_path: Path) -> None:
    source = tmp_path / "world.map"
    source.write_bytes(bytes(300 * KIB))
    pair = Pair()
    transfer = pair.to_client(source)
    source.write_bytes(bytes(300 * KIB - 1) + b"!")
    pair.until(lambda: transfer.over)
    assert transfer.error == "the chunk that arrived is not the offered chunk: its hash differs"
    assert pair.at_client.chunks == []
    assert pair.at_client.chunk_failures == [
        ("", "the chunk that arrived is not the offered chunk: its hash differs")
    ]


# --- what is refused ---


def test_wrong_files_raise_os_error_with_errno(tmp_path: Path) -> None:
    pair = Pair()
    with pytest.raises(FileNotFoundError) as missing:
        pair.to_client(tmp_path / "nothing")
    assert (missing.value.errno, missing.value.filename) == (errno.ENOENT, str(tmp_path / "nothing"))
    assert not hasattr(missing.value, "__notes__")
    with pytest.raises(FileNotFoundError) as text:
        pair.to_client("hello world")
    assert text.value.__notes__ == [
        "a str is the path of a file: to send the text itself, give text.encode()"
    ]
    if os.name != "nt":
        with pytest.raises(IsADirectoryError) as directory:
            tw.transfer.Chunk(str(tmp_path))
        assert directory.value.errno == errno.EISDIR
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file") as taken:
        pair.dial(transfers=tw.transfer.Transfers(directory=tmp_path / "file"))
    assert taken.value.errno == errno.EEXIST


@pytest.mark.parametrize("wrong", [None, 5, 1.5, [1, 2], {}])
def test_what_is_neither_buffer_nor_path_raises_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match=f"not {type(wrong).__name__}"):
        tw.transfer.Chunk(wrong)
    with pytest.raises(TypeError, match=f"not {type(wrong).__name__}"):
        Pair().to_client(wrong)


def test_wrong_arguments_raise_and_queue_nothing() -> None:
    pair = Pair()
    with pytest.raises(ValueError, match="must be a contiguous buffer"):
        pair.to_client(memoryview(bytes(100))[::2])
    with pytest.raises(ValueError, match=re.escape("label must be at most 64 bytes in UTF-8, not 66")):
        pair.to_client(b"", label="ä" * 33)
    with pytest.raises(
        tw.errors.MessageTooLargeError, match='chunk "big": .* at most 262144 bytes, not 262145'
    ):
        pair.to_client(bytes(256 * KIB + 1), label="big", burst=True)
    with pytest.raises(TypeError):
        pair.server.send_chunk("nobody", b"")  # type: ignore[arg-type]
    with pytest.raises(tw.errors.ChannelError):
        pair.client.send(Chat(0, "not for messages"), channel=1)
    advance(pair.network, pair.server, pair.client, seconds=0.5)
    assert pair.server.stats(pair.handle).chunks.slices_sent == 0


@pytest.mark.parametrize("strict", [False, True])
def test_a_full_queue_is_told_as_for_messages(strict: bool) -> None:
    pair = Pair(debugging=tw.testing.Debugging(strict=strict))
    for _ in range(256):
        pair.to_client(b"x")
    if strict:
        with pytest.raises(tw.errors.ChannelFullError, match='chunk "more": 256 chunks wait'):
            pair.to_client(b"x", label="more")
    else:
        full = pair.to_client(b"xyz", label="more")
        assert (full.over, full.done, full.label, full.size) == (True, False, "more", 3)
        assert str(full.error).startswith("256 chunks wait to be sent")
        assert not full.cancel()
    advance(pair.network, pair.server, pair.client, seconds=3)
    assert pair.to_client(b"x").error is None


def test_without_a_channel_of_chunks_none_can_be_sent() -> None:
    _, server, client = connected_pair(make_protocol())
    with pytest.raises(tw.errors.ChannelError, match="no channel for chunks"):
        client.send_chunk(b"")
    with pytest.raises(tw.errors.ChannelError, match="no channel for chunks"):
        server.send_chunk(server.clients[0], b"")


def test_a_protocol_has_one_channel_of_chunks_at_most() -> None:
    channel = tw.chunks("files")
    assert (channel.kind, channel.name) == ("chunks", "files")
    with pytest.raises(ValueError, match="number of channels of chunks"):
        make_protocol(channels=[tw.chunks(), tw.chunks()])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"memory": -1},
            "memory must be 0 to 18446744073709551615, not -1",
        ),
        (
            {"file_limit": 5},
            r"file_limit \(5\) needs a directory",
        ),
        (
            {"directory_limit": 5},
            r"directory_limit \(5\) needs a directory",
        ),
        (
            {"directory": "x", "directory_limit": -1},
            "directory_limit must be 0 to 18446744073709551615, not -1",
        ),
        (
            {"directory": "x", "file_limit": -1},
            "file_limit must be 0 to 1099511627775, not -1",
        ),
        (
            {"directory": "x", "file_limit": 6, "directory_limit": 5},
            r"file_limit must be 0 to directory_limit \(5\), not 6",
        ),
    ],
)
def test_wrong_limits_are_named(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        tw.transfer.Transfers(**settings)
    assert not Path("x").exists()


def test_a_number_of_bytes_is_no_truth() -> None:
    with pytest.raises(TypeError, match="memory must be an int or None, not bool"):
        tw.transfer.Transfers(memory=True)


def test_a_server_takes_no_chunks_unless_it_is_told_to() -> None:
    network, server, client = connected_pair(PROTOCOL)
    transfer = client.send_chunk(b"take this", label="gift")
    at_server, _ = advance(network, server, client, seconds=1)
    assert transfer.error == TOO_LARGE
    assert (transfer.over, transfer.done, transfer.time_left) == (True, False, None)
    assert at_server.chunks == []
    assert at_server.chunk_failures == [(server.clients[0], "gift", transfer.error)]


def test_what_is_larger_than_the_limit_is_refused_and_the_next_chunk_goes_on(tmp_path: Path) -> None:
    for settings in (
        {"transfers": tw.transfer.Transfers(memory=1000)},
        {"transfers": tw.transfer.Transfers(directory=tmp_path / "in", file_limit=1000, memory=0)},
    ):
        pair = Pair(client=settings)
        large, fits = pair.to_client(bytes(1001), label="large"), pair.to_client(bytes(1000))
        pair.until(lambda: large.over and fits.over)  # noqa: B023
        assert (large.error, fits.error) == (TOO_LARGE, None)
        assert pair.at_client.chunk_failures == [("large", large.error)]
        assert [chunk.size for chunk in pair.at_client.chunks] == [1000]


def test_a_full_directory_refuses_by_name_and_has_room_when_the_game_deletes(tmp_path: Path) -> None:
    pair = Pair(
        client={"transfers": tw.transfer.Transfers(directory=tmp_path, file_limit=1000, directory_limit=2500)}
    )
    transfers = [pair.to_client(content(n, 1000), label=f"{n}") for n in range(2)]
    pair.until(lambda: all(transfer.done for transfer in transfers))
    for chunk in pair.at_client.chunks:
        assert chunk.path is not None
        chunk.path.unlink()
    transfers = [pair.to_client(content(n, 1000), label=f"{n}") for n in range(2, 5)]
    pair.until(lambda: all(transfer.over for transfer in transfers))
    full = "the receiver's directory for chunks is full"
    assert [transfer.error for transfer in transfers] == [None, None, full]
    assert pair.at_client.chunk_failures == [("4", full)]


def test_a_file_that_others_left_no_room_for_is_resumed_when_there_is(tmp_path: Path) -> None:
    settings = {
        "transfers": tw.transfer.Transfers(
            directory=tmp_path, file_limit=500 * KIB, directory_limit=600 * KIB
        )
    }
    pair = Pair(**settings)
    other = pair.dial(client_id=8)
    advance(pair.network, pair.server, other, seconds=0.5)
    data, others = content(1, 400 * KIB), content(2, 300 * KIB)
    long, short = pair.client.send_chunk(data), other.send_chunk(others)
    advance(pair.network, pair.server, pair.client, other, seconds=5)
    assert (long.error, short.error) == ("the receiver's directory for chunks is full", None)
    (tmp_path / hashlib.sha256(others).hexdigest()).unlink()
    # A new server counts the directory at once.
    pair = Pair(**settings)
    again = pair.client.send_chunk(data)
    pair.until(lambda: again.over)
    assert again.done
    assert pair.client.stats.chunks.bytes_sent < 200 * KIB, "only the rest is sent"


def test_files_under_way_from_one_peer_take_no_more_than_the_largest_may(tmp_path: Path) -> None:
    settings = {"transfers": tw.transfer.Transfers(directory=tmp_path, file_limit=500 * KIB)}
    pair = Pair(LOSSY, client=settings)
    transfers = [pair.to_client(content(n, 300 * KIB)) for n in range(4)]
    most = 0
    while not all(transfer.over for transfer in transfers):
        pair.tick()
        most = max(most, len([name for name in os.listdir(tmp_path) if name.endswith(".part")]))
    assert all(transfer.done for transfer in transfers)
    assert most == 1


def test_what_is_not_read_holds_up_what_comes_after() -> None:
    pair = Pair(client={"transfers": tw.transfer.Transfers(memory=300 * KIB)})
    transfers = [pair.to_client(content(n, 200 * KIB), label=f"{n}") for n in range(2)]
    for _ in range(200):
        pair.server.pump()
        pair.client.pump()
        pair.network.advance(1 / 60)
    assert [transfer.done for transfer in transfers] == [True, False], "known also to those who only pump"
    pair.until(lambda: transfers[1].done)
    assert [chunk.label for chunk in pair.at_client.chunks] == ["0", "1"]


def test_the_end_of_a_transfer_is_news_until_the_game_receives() -> None:
    pair = Pair()
    transfer, cut_off = pair.client.send_chunk(b"gift"), pair.client.send_chunk(bytes(17 * MIB))
    pair.tick()
    seen = []
    for _ in range(60):
        pair.server.receive()
        pair.server.flush()
        pair.client.pump()
        seen.append((transfer.over, cut_off.over, pair.client._has_news))
        pair.network.advance(1 / 60)
    assert (False, False, False) in seen
    assert all(news == (over or failed) for over, failed, news in seen), seen
    assert (transfer.done, cut_off.done) == (True, False)
    assert not pair.client.receive().chunks
    assert not pair.client._has_news


def test_an_endpoint_counts_the_chunks_of_all_its_connections() -> None:
    pair = Pair(LOSSY)
    other = pair.dial(client_id=8)
    advance(pair.network, pair.server, other, seconds=1)
    transfers = [pair.server.send_chunk(client, content(1, 300 * KIB)) for client in pair.server.clients]
    advance(pair.network, pair.server, pair.client, other, seconds=3)
    assert all(transfer.done for transfer in transfers)

    def counted(endpoint: tw.Server | tw.Client) -> dict[str, int]:
        chunks = endpoint.counters.items()
        return {name.removeprefix("chunks."): n for name, n in chunks if name.startswith("chunks.")}

    before = counted(pair.server)
    each = [pair.server.stats(client).chunks for client in pair.server.clients]
    assert before == {name: sum(getattr(stats, name) for stats in each) for name in before}
    assert before["slices_sent"] == 2 * 267
    assert counted(other)["slices_received"] == 267
    other.close()
    advance(pair.network, pair.server, pair.client, seconds=1)
    assert len(pair.server.clients) == 1
    assert counted(pair.server) == before, "also when a connection is over"
    assert counted(other)["slices_received"] == 267


# --- pausing ---


@pytest.mark.parametrize("by", ["sender", "receiver"])
def test_a_paused_transfer_stands_still_and_goes_on_with_the_rest(by: str) -> None:
    pair = Pair(
        tw.Conditions(latency=0.03),
        transfers=tw.transfer.Transfers(
            memory=16 * MIB, congestion=tw.transfer.Congestion(max_bytes_per_second=1_000_000)
        ),
    )
    data = content(1, 4_000_000)
    transfer = pair.to_client(data, label="world")
    pair.until(lambda: transfer.fraction >= 0.5)
    [incoming] = pair.client.incoming_chunks()
    pausing = transfer if by == "sender" else incoming
    assert not transfer.paused
    assert not incoming.paused
    assert pausing.pause()
    assert pausing.paused
    for _ in range(30):
        pair.tick()
    assert (transfer.paused, transfer.paused_by_peer) == (by == "sender", by == "receiver")
    assert transfer.time_left is None
    assert repr(transfer).endswith(" bytes, paused>")
    before = pair.server.stats(pair.handle).chunks.bytes_sent
    done = pair.client.incoming_chunks()[0].bytes_done
    for n in range(600):
        assert pair.server.send(pair.handle, Chat(0, str(n)))
        pair.tick()
    assert pair.server.stats(pair.handle).chunks.bytes_sent == before
    assert len(pair.at_client.messages) >= 590
    assert pair.client.incoming_chunks()[0].bytes_done == done
    assert pausing.resume()
    assert not pausing.paused
    pair.until(lambda: transfer.over)
    assert transfer.done
    assert bytes(pair.at_client.chunks[0]) == data
    sent = pair.server.stats(pair.handle).chunks.bytes_sent - before
    assert sent == len(data) - done
    assert (transfer.pause(), transfer.resume(), incoming.pause(), incoming.resume()) == (False,) * 4
    assert not transfer.paused


def test_what_is_behind_a_paused_transfer_is_handed_over_after_it() -> None:
    pair = Pair()
    first, second = (pair.to_client(content(n, 50_000), label=str(n)) for n in range(2))
    first.pause()
    pair.until(lambda: second.over)
    for _ in range(60):
        pair.tick()
    assert pair.at_client.chunks == []
    first.resume()
    pair.until(lambda: len(pair.at_client.chunks) == 2)
    assert [chunk.label for chunk in pair.at_client.chunks] == ["0", "1"]


# --- files that are there ---


def test_a_file_that_is_there_is_not_sent_again(tmp_path: Path) -> None:
    data = content(1, 500_000)
    figures = []
    for _ in range(3):  # a client that joins anew each time
        pair = Pair(
            tw.Conditions(latency=0.03), client={"transfers": tw.transfer.Transfers(directory=tmp_path)}
        )
        for _ in range(2):
            transfer = pair.to_client(data, label="map", ask_first=True)
            pair.until(lambda: transfer.over)  # noqa: B023
            assert transfer.done
        sent = pair.server.stats(pair.handle).chunks.bytes_sent
        figures.append((sent, pair.client.stats.chunks.chunks_reused))
        first, second = pair.at_client.chunks
        assert second.reused
        assert first.path == second.path == tmp_path / hashlib.sha256(data).hexdigest()
        assert first.path.read_bytes() == data
    assert [reused for _, reused in figures] == [1, 2, 2]
    assert [sent for sent, _ in figures] == [500_000, 0, 0]


def test_a_file_that_was_damaged_is_sent_again(tmp_path: Path) -> None:
    data = content(1, 500_000)
    path = tmp_path / hashlib.sha256(data).hexdigest()
    path.write_bytes(data[:-1] + b"?")
    pair = Pair(client={"transfers": tw.transfer.Transfers(directory=tmp_path)})
    transfer = pair.to_client(data)
    pair.until(lambda: transfer.over)
    assert transfer.done
    assert [chunk.reused for chunk in pair.at_client.chunks] == [False]
    assert path.read_bytes() == data


def test_a_player_does_not_find_out_what_others_sent(tmp_path: Path) -> None:
    data = content(1, 500_000)
    network = tw.testing.SimulatedNetwork()
    server = tw.Server(
        "127.0.0.1:40000", PROTOCOL, network=network, transfers=tw.transfer.Transfers(directory=tmp_path)
    )
    for client_id, again in ((1, False), (2, False), (2, True)):
        client = tw.Client.connect(server.address, PROTOCOL, network=network, client_id=client_id)
        advance(network, server, client, seconds=0.5)
        transfer = client.send_chunk(data)
        at_server, _ = advance(network, server, client, seconds=4)
        assert transfer.done
        assert [chunk.reused for chunk in at_server.chunks] == [again]
        client.close()
        advance(network, server, client, seconds=0.5)


# --- cancelling ---


def test_the_sender_may_cancel() -> None:
    pair = Pair(LOSSY)
    transfer, after = pair.to_client(content(1, 4 * MIB), label="world"), pair.to_client(b"after")
    pair.until(lambda: transfer.bytes_done > 100 * KIB)
    assert transfer.cancel()
    assert (transfer.over, transfer.done, transfer.error) == (True, False, "it was cancelled")
    assert not transfer.cancel()
    pair.until(lambda: after.done)
    assert transfer.error == "it was cancelled"
    assert pair.at_client.chunk_failures == [("world", "the sender withdrew it")]
    assert [bytes(chunk) for chunk in pair.at_client.chunks] == [b"after"]
    assert not after.cancel()
    assert after.done


@pytest.mark.parametrize("at_server", [False, True])
def test_the_receiver_may_cancel(at_server: bool) -> None:
    pair = Pair(LOSSY)
    data = content(1, 4 * MIB)
    if at_server:
        transfer = pair.client.send_chunk(data, label="world")
        incoming: Callable[[], list[tw.transfer.IncomingChunk]] = partial(
            pair.server.incoming_chunks, pair.handle
        )
    else:
        transfer = pair.to_client(data, label="world")
        incoming = pair.client.incoming_chunks
    pair.until(lambda: any(chunk.bytes_done > 100 * KIB for chunk in incoming()))
    [chunk] = incoming()
    assert chunk.client is (pair.handle if at_server else None)
    assert chunk.cancel()
    assert not chunk.cancel()
    assert incoming() == []
    pair.until(lambda: transfer.over)
    assert transfer.error == "the receiver cancelled it"
    assert pair.at_client.chunk_failures == pair.at_server.chunk_failures == [], "the game knows"
    assert pair.at_client.chunks == pair.at_server.chunks == []


# --- connections that end ---


def test_chunks_end_with_their_connection() -> None:
    pair = Pair(LOSSY)
    chunk = tw.transfer.Chunk(content(1, 3 * MIB))
    cut_off = pair.to_client(chunk, label="world")
    pair.until(lambda: any(incoming.fraction > 0.6 for incoming in pair.client.incoming_chunks()))
    gone = pair.handle
    pair.client.close()
    advance(pair.network, pair.server, seconds=1)
    assert cut_off.error == "the connection ended before the chunk was complete"
    missed = pair.server.send_chunk(gone, chunk)
    assert (missed.over, missed.error, missed.client) == (True, "the client is gone", gone)
    assert (missed.bytes_done, missed.hash, missed.time_left) == (0, chunk.hash, None)
    assert pair.server.incoming_chunks(gone) == []


def test_a_server_keeps_what_a_client_was_sending() -> None:
    pair = Pair(LOSSY)
    data = content(1, 3 * MIB)
    pair.client.send_chunk(data, label="replay")
    pair.until(lambda: any(each.fraction > 0.6 for each in pair.server.incoming_chunks(pair.handle)))
    handle = pair.handle
    pair.client.close()
    [failed] = advance(pair.network, pair.server, seconds=1)
    assert failed.chunk_failures == [(handle, "replay", "the connection ended before the chunk was complete")]
    pair.client = pair.dial()
    pair.until(lambda: pair.client.connected and bool(pair.server.clients))
    transfer = pair.client.send_chunk(data)
    pair.until(lambda: transfer.done)
    assert pair.client.stats.chunks.bytes_sent < 2 * MIB
    assert bytes(pair.at_server.chunks[0]) == data


def test_what_is_in_a_directory_is_gone_on_with_by_whoever_receives_there(tmp_path: Path) -> None:
    data = content(1, 3 * MIB)
    pair = Pair(LOSSY, client={"transfers": tw.transfer.Transfers(directory=tmp_path)})
    pair.to_client(data)
    pair.until(lambda: any(incoming.fraction > 0.6 for incoming in pair.client.incoming_chunks()))
    pair.client.close()
    advance(pair.network, pair.server, seconds=1)
    del pair.client
    assert [path.suffix for path in tmp_path.iterdir()] == [".part"]

    again = Pair(LOSSY, client={"transfers": tw.transfer.Transfers(directory=tmp_path)})
    transfer = again.to_client(data)
    again.until(lambda: transfer.over)
    assert transfer.done
    assert again.server.stats(again.handle).chunks.bytes_sent < 2 * MIB
    [path] = tmp_path.iterdir()
    assert path.read_bytes() == data


KILLED = """
import os, pathlib, sys
import tickwire as tw
from tickwire.testing import connected_pair, advance

@tw.message
class Nothing:
    pass

folder, source, how = sys.argv[1:]
protocol = tw.Protocol(id=1, messages=[Nothing], channels=[tw.chunks()])
network = tw.testing.SimulatedNetwork(seed=1)
server = tw.Server("10.0.0.1:5", protocol, network=network)
transfers = tw.transfer.Transfers(directory=folder)
client = tw.Client.connect("10.0.0.1:5", protocol, network=network, transfers=transfers)
advance(network, server, client, seconds=1)
transfer = server.send_chunk(server.clients[0], pathlib.Path(source))
while not transfer.over:
    advance(network, server, client, seconds=1 / 60)
    if how == "killed" and transfer.fraction > 0.6:
        os._exit(0)
assert transfer.done, transfer.error
print(server.stats(server.clients[0]).chunks.bytes_sent)
"""


def test_a_process_goes_on_with_what_one_that_was_killed_received(tmp_path: Path) -> None:
    source, directory = tmp_path / "world", tmp_path / "in"
    source.write_bytes(content(1, 3 * MIB))
    sent = []
    for how in ("killed", "whole"):
        arguments = [sys.executable, "-c", KILLED, str(directory), str(source), how]
        ended = subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=60)
        sent.append(ended.stdout)
    assert sent[0] == ""
    assert int(sent[1]) < 2 * MIB
    assert [path.read_bytes() for path in directory.iterdir()] == [source.read_bytes()]


def test_without_a_connection_nothing_can_be_sent() -> None:
    network = tw.testing.SimulatedNetwork()
    client = tw.Client.connect("10.0.0.1:5", PROTOCOL, network=network)
    early = client.send_chunk(b"early")
    assert (early.over, early.error) == (True, "the connection is not up")
    strict = tw.Client.connect(
        "10.0.0.1:5", PROTOCOL, network=network, debugging=tw.testing.Debugging(strict=True)
    )
    with pytest.raises(tw.errors.NotConnectedError):
        strict.send_chunk("no such file: it is not even looked for")
    assert client.incoming_chunks() == []
    client.close()
    with pytest.raises(tw.errors.ClosedError):
        client.send_chunk(b"late")


@pytest.mark.parametrize("drop", [False, True])
def test_transfers_are_over_when_their_endpoint_is(drop: bool) -> None:
    pair = Pair(LOSSY)
    transfer = pair.to_client(content(1, 4 * MIB), label="world")
    pair.until(lambda: transfer.bytes_done > 0 and bool(pair.client.incoming_chunks()))
    [incoming] = pair.client.incoming_chunks()
    handle = pair.handle
    done = transfer.bytes_done
    if drop:
        del pair.server, pair.client
        gc.collect()
    else:
        pair.server.close()
        pair.client.close()
        with pytest.raises(tw.errors.ClosedError):
            pair.server.send_chunk(handle, b"")
        assert pair.client.incoming_chunks() == []
    assert transfer.error == "the connection ended before the chunk was complete"
    assert (transfer.over, transfer.done, transfer.bytes_done) == (True, False, done)
    assert not transfer.cancel()
    assert not incoming.cancel()
    assert transfer.client == handle


def test_transfers_and_chunks_keep_no_endpoint_alive() -> None:
    pair = Pair()
    transfer = pair.to_client(content(1, MIB))
    pair.until(lambda: bool(pair.client.incoming_chunks()))
    kept = [transfer, *pair.client.incoming_chunks()]
    address = pair.server.address
    del pair.server
    gc.collect()
    again = tw.Server(address, PROTOCOL, network=pair.network)
    assert transfer.over
    assert len(kept) == 2
    again.close()


# --- sockets ---


def patiently(condition: Callable[[], bool], *endpoints: tw.Server | tw.Client) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        for endpoint in endpoints:
            endpoint.pump()
        time.sleep(0.001)


def test_chunks_go_over_sockets(tmp_path: Path) -> None:
    source = tmp_path / "world.map"
    source.write_bytes(content(1, 2 * MIB))
    with tw.Server("127.0.0.1:0", PROTOCOL) as server, tw.Client.connect(server.address, PROTOCOL) as client:
        patiently(lambda: client.connected, server, client)
        server.receive()
        transfer = server.send_chunk(server.clients[0], source)
        patiently(lambda: transfer.over, server, client)
        assert transfer.done
        assert [type(event) for event in client.receive().events] == [tw.Connected]
        assert bytes(client.receive().chunks[0]) == content(1, 2 * MIB)


def test_with_a_thread_chunks_go_while_the_game_is_busy() -> None:
    settings: dict[str, Any] = {"tuning": tw.Tuning(driver="thread")}
    server = tw.Server("127.0.0.1:0", PROTOCOL, **settings)
    with server, tw.Client.connect(server.address, PROTOCOL, **settings) as client:
        patiently(lambda: client.connected, server, client)
        server.receive()
        transfer = server.send_chunk(server.clients[0], content(1, 2 * MIB))
        server.flush()
        patiently(lambda: transfer.over)
        assert transfer.done
        assert [type(event) for event in client.receive().events] == [tw.Connected]
        assert bytes(client.receive().chunks[0]) == content(1, 2 * MIB)


# --- how fast ---


def test_a_bounded_rate_is_kept() -> None:
    rate = tw.transfer.Congestion(min_bytes_per_second=100_000, max_bytes_per_second=100_000)
    pair = Pair(
        tw.Conditions(latency=0.02), transfers=tw.transfer.Transfers(memory=16 * MIB, congestion=rate)
    )
    transfer = pair.to_client(content(1, MIB))
    for _ in range(300):
        pair.tick()
    assert transfer.bytes_done == pytest.approx(480_000, rel=0.1)
    assert transfer.rate == pytest.approx(95_000, rel=0.1)
    assert transfer.time_left == pytest.approx((MIB - transfer.bytes_done) / transfer.rate)
    assert pair.server.stats(pair.handle).bulk_rate == 100_000


def test_the_rate_has_a_bound() -> None:
    pair = Pair(
        transfers=tw.transfer.Transfers(
            memory=16 * MIB, congestion=tw.transfer.Congestion(max_bytes_per_second=50_000)
        )
    )
    transfer = pair.to_client(content(1, MIB))
    advance(pair.network, pair.server, pair.client, seconds=2)
    before = transfer.bytes_done
    advance(pair.network, pair.server, pair.client, seconds=5)
    assert transfer.bytes_done - before == pytest.approx(5 * 47_500, rel=0.1)
    assert pair.server.stats(pair.handle).bulk_rate <= 50_000


def test_the_rate_changes_while_chunks_go() -> None:
    pair = Pair()
    transfer = pair.to_client(content(1, 3_000_000))
    for rate in (100_000, 300_000):
        assert pair.server.set_congestion(tw.transfer.Congestion(max_bytes_per_second=rate), pair.handle)
        before = pair.server.stats(pair.handle).chunks.bytes_sent
        for _ in range(120):
            pair.tick()
        assert pair.server.stats(pair.handle).chunks.bytes_sent - before == pytest.approx(2 * rate, rel=0.25)
    assert pair.server.set_congestion(tw.transfer.Congestion())
    pair.until(lambda: transfer.over)
    pair.client.set_congestion(tw.transfer.Congestion(max_bytes_per_second=5000))
    assert pair.client.stats.bulk_rate <= 5000
    with pytest.raises(TypeError, match="Congestion"):
        pair.server.set_congestion(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: tw.transfer.Congestion(max_bytes_per_second=1.0), "max_bytes_per_second"),
        (
            lambda: tw.transfer.Congestion(initial_bytes=0),
            "initial_bytes must be 1 to 4294967295, not 0",
        ),
        (lambda: tw.transfer.Congestion(min_bytes_per_second=-1.0), "min_bytes_per_second"),
    ],
)
def test_wrong_rates_are_named(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


def test_congestion_shows_what_it_is() -> None:
    assert repr(tw.transfer.Congestion()) == "<Congestion: 4000 to 125000000 bytes/s>"


def test_the_example_in_the_docstring_is_right() -> None:
    test = doctest.DocTestParser().get_doctest(
        tw.transfer.Chunk.__doc__ or "", {**EVERY_NAME}, "Chunk", None, None
    )
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_a_loss_among_small_chunks_does_not_slow_down_the_next_large_one() -> None:
    @tw.message
    class Nothing:
        pass

    line = tw.Conditions(latency=0.03, loss=0.005)
    protocol = tw.Protocol(1, [Nothing], [tw.reliable_ordered("r"), tw.chunks("c")])
    sim = tw.testing.Simulation(protocol, seed=2, conditions=line)
    server = sim.server()
    sim.client()
    sim.run(1)
    (handle,) = server.clients
    sizes = random.Random(2)

    def seconds(size: int) -> float:
        began, transfer = sim.now, server.send_chunk(handle, bytes(size))
        while not transfer.over:
            sim.run(1 / 60)
        return sim.now - began

    for _ in range(3):
        seconds(400_000)
    # One of these chunks is lost on the way.
    for _ in range(12):
        sim.run(sizes.choice([0, 5, 20]) / 60)
        seconds(sizes.choice([1, 900, 5000]))
        sizes.random()
        sim.run(10 / 60)
    assert max(seconds(200_000) for _ in range(3)) < 1
