"""Mistakes of games with arrays: each is an exception, or the result that docs/columns.md states."""

from __future__ import annotations

import array
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw
from conftest import Chat, Move
from test_columns import moves, tick, world

DTYPE = tw.columns.dtype(Move)

Send = Callable[[Any], list[Any]]


@tw.message
class Ranged:
    """A field of each kind whose values have a range."""

    number: Annotated[int, tw.ranged(10, 20)]
    step: Annotated[float, tw.quantized(-1, 1, 1 / 256)]
    place: Annotated[float, tw.fields.fixed(-100, 100, 8)]
    yaw: Annotated[float, tw.angle(0, 360, 0.1)]
    position: Annotated[tw.Vec3, tw.vec3(-10, 10, 0.01)]
    facing: Annotated[tw.Vec3, tw.fields.unit_vector()]
    turned: Annotated[tw.fields.Quaternion, tw.fields.quaternion()]


def ranged(count: int) -> Any:
    """Rows without a fault."""
    rows = np.zeros(count, tw.columns.dtype(Ranged))
    rows["number"] = 10
    rows["facing"] = (0, 0, 1)
    rows["turned"] = (0, 0, 0, 1)
    return rows


class Fake(bytearray):
    """Says that it is an array of rows."""

    dtype = DTYPE


@pytest.fixture
def sends() -> dict[str, Send]:
    """All ways in which rows go out, three of them or as many as there are."""
    _, server, (client, other) = world([Move, Chat])
    handles = [server.clients[0], *server.clients]
    assert other.connected
    return {
        "each": lambda rows: server.send(handles, tw.columns.Batch(Move, rows)),
        "one": lambda rows: server.send(handles[0], tw.columns.Batch(Move, rows)),
        "all": lambda rows: server.broadcast(tw.columns.Batch(Move, rows)),
        "client": lambda rows: client.send(tw.columns.Batch(Move, rows)),
    }


@contextmanager
def writing(write: Callable[[], None]) -> Iterator[None]:
    """Another thread writes meanwhile, again and again."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            write()

    writer = threading.Thread(target=run)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


# --- arrays that are none of the class's --------------------------------------------------------------------

WRONG = {
    "another type": (np.zeros(3), TypeError, "rows must be of tickwire.columns.dtype.Move."),
    "fewer fields": (
        np.zeros(3, [("tick", "<u2")]),
        TypeError,
        "rows must be of tickwire.columns.dtype.Move.",
    ),
    "other names": (np.zeros(3, [("a", "<u2"), ("b", "u1"), ("c", "<f4")]), TypeError, "rows must be of"),
    "objects": (np.array([Move(), Move(), Move()], object), TypeError, "rows must be of"),
    "the other byte order": (np.zeros(3, DTYPE.newbyteorder(">")), TypeError, "rows must be of"),
    "bytes in the other order": (np.zeros(3, ">u2").data, TypeError, "bytes or of format"),
    "two dimensions": (np.zeros((3, 1), DTYPE), ValueError, "1 dimension, a row for each message, not 2"),
    "no dimension": (np.zeros((), DTYPE), ValueError, "1 dimension, a row for each message, not 0"),
    "a part of a row": (bytes(3 * DTYPE.itemsize - 1), ValueError, "must be a whole number of"),
    "bytes that say they are rows": (Fake(3 * DTYPE.itemsize), TypeError, "bytes each, not 1"),
    "no buffer": ([Move(), Move(), Move()], TypeError, "an array or a buffer, not list"),
    "nothing": (None, TypeError, "an array or a buffer, not NoneType"),
}


@pytest.mark.parametrize("way", ["each", "one", "all", "client"])
@pytest.mark.parametrize("wrong", list(WRONG))
def test_wrong_arrays_are_refused_by_every_way_to_send(sends: dict[str, Send], way: str, wrong: str) -> None:
    rows, error, said = WRONG[wrong]
    with pytest.raises(error, match=said):
        sends[way](rows)
    assert sends[way](moves(3)) == [], "and nothing is the worse for it"


def test_rows_that_came_are_not_rows_to_send_as_they_are() -> None:
    network, server, (client, _) = world([Move, Chat], tuning=tw.Tuning(columns=[Move]))
    client.send(Move(1, 2, 0.5))
    arrived = tick(network, client, server)[1].columns(Move)
    with pytest.raises(TypeError, match="rows must be of tickwire.columns.dtype.Move."):
        server.broadcast(tw.columns.Batch(Move, arrived))


# --- arrays that lie in memory as they like -----------------------------------------------------------------


def packed(rows: Any) -> Any:
    return np.frombuffer(bytearray(rows.tobytes()), DTYPE)


@pytest.mark.parametrize(
    "lie",
    [
        lambda rows: np.repeat(rows, 2)[::2],
        lambda rows: rows[::-1][::-1],
        lambda rows: packed(rows[::-1])[::-1],
        lambda rows: np.repeat(rows, 2).reshape(-1, 2)[:, 1],
        lambda rows: np.frombuffer(b"x" + rows.tobytes(), DTYPE, offset=1),
        lambda rows: np.lib.stride_tricks.as_strided(rows, writeable=False),
        lambda rows: rows.view(np.recarray),
        lambda rows: rows.tobytes(),
        lambda rows: memoryview(rows.tobytes()),
        lambda rows: array.array("B", rows.tobytes()),
    ],
    ids=[
        "gaps",
        "turned twice",
        "from the end",
        "a column",
        "odd",
        "read-only",
        "records",
        "bytes",
        "view",
        "array",
    ],
)
def test_rows_may_lie_as_they_like(sends: dict[str, Send], lie: Callable[[Any], Any]) -> None:
    rows = moves(3)
    assert tw.columns.pack(Move, lie(rows)) == tw.columns.pack(Move, rows)
    assert all(send(lie(rows)) == [] for send in sends.values())


def test_an_arena_may_lie_as_it_likes_and_is_bytes() -> None:
    rows = np.zeros(2, tw.columns.dtype(Chat))
    rows["text"] = [(0, 3), (3, 2)]
    expected = tw.columns.pack(Chat, rows, arena=b"abcde")
    spread = np.frombuffer(b"a-b-c-d-e-", np.uint8)[::2]
    assert not spread.flags.writeable
    for arena in (spread, bytearray(b"abcde"), memoryview(b"abcde"), np.frombuffer(b"abcde", "S1")):
        assert tw.columns.pack(Chat, rows, arena=arena) == expected
    for wrong in ("abcde", 5, [1, 2]):
        with pytest.raises(TypeError, match="bytes-like"):
            tw.columns.pack(Chat, rows, arena=wrong)


def test_no_rows_are_nothing_to_send() -> None:
    network, server, clients = world([Move, Chat], tuning=tw.Tuning(columns=[Move]))
    for nothing in (moves(0), b"", moves(5)[5:], np.zeros(0, DTYPE)):
        assert server.send([], tw.columns.Batch(Move, nothing)) == []
        assert server.send(np.zeros(0, np.uint64), tw.columns.Batch(Move, nothing)) == []
        assert server.send(server.clients[0], tw.columns.Batch(Move, nothing)) == []
        assert server.broadcast(tw.columns.Batch(Move, nothing)) == []
        assert clients[0].send(tw.columns.Batch(Move, nothing)) == []
        assert tw.columns.pack(Move, nothing) == b""
    assert server.broadcast(tw.columns.Batch(Move, moves(1)), clients=[]) == []
    inboxes = tick(network, server, *clients)
    assert len(inboxes[0].columns(Move)) == 0
    assert all(inbox.messages == [] for inbox in inboxes)


# --- values out of their ranges -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", 9),
        ("number", 21),
        *((name, bad) for name in ("step", "place") for bad in (np.nan, np.inf, -np.inf, -101.0)),
        *(("yaw", bad) for bad in (np.nan, np.inf, -np.inf)),
        *(("position", (0.0, bad, 0.0)) for bad in (np.nan, np.inf, -np.inf, 10.1)),
        *(("facing", (bad, 0.0, 0.0)) for bad in (np.nan, np.inf, 0.0)),
        *(("turned", (0.0, 0.0, 0.0, bad)) for bad in (np.nan, -np.inf, 0.0)),
    ],
)
def test_a_value_out_of_its_range_is_named_and_no_row_is_sent(name: str, value: Any) -> None:
    network, server, clients = world([Ranged], tuning=tw.Tuning(columns=[Ranged]))
    rows = ranged(4)
    rows[name][2] = value
    for send in (
        lambda: server.send([*server.clients, *server.clients], tw.columns.Batch(Ranged, rows)),
        lambda: server.send(server.clients[0], tw.columns.Batch(Ranged, rows)),
        lambda: server.broadcast(tw.columns.Batch(Ranged, rows)),
        lambda: clients[0].send(tw.columns.Batch(Ranged, rows)),
    ):
        with pytest.raises(tw.FieldError, match=rf"Ranged\.{name} of row 2 .*must be") as refused:
            send()
        assert refused.value.field == f"{name} of row 2"
    inboxes = tick(network, server, *clients)
    assert len(inboxes[0].columns(Ranged)) == 0
    assert all(inbox.messages == [] for inbox in inboxes)
    assert server.broadcast(tw.columns.Batch(Ranged, ranged(4))) == []


# --- clients ------------------------------------------------------------------------------------------------


def test_what_is_no_list_of_clients_is_refused() -> None:
    _, server, _ = world([Move, Chat])
    handles = server.clients
    numbers = np.array([handle.number for handle in handles], np.uint64)
    for wrong in (
        numbers.astype(">u8"),
        numbers.astype(np.int64),
        numbers.astype(np.float64),
        numbers.tolist(),
        [handles[0], None],
        7,
        None,
    ):
        with pytest.raises(TypeError, match="clients must be ClientHandles, or a buffer of uint64"):
            server.send(wrong, tw.columns.Batch(Move, moves(2)))
    assert server.send(np.repeat(numbers, 2)[::2], tw.columns.Batch(Move, moves(2))) == []
    with pytest.raises(ValueError, match="clients must have 1 dimension, not 2"):
        server.send(numbers.reshape(2, 1), tw.columns.Batch(Move, moves(2)))
    for count in (1, 3):
        with pytest.raises(ValueError, match=rf"clients must have one entry per row \({count}\), not 2"):
            server.send(handles, tw.columns.Batch(Move, moves(count)))


def test_clients_of_any_number_are_unknown_and_told() -> None:
    network, server, clients = world([Move, Chat])
    known, other = (handle.number for handle in server.clients)
    strange = {0, 1, 2, 2**31, 2**32 - 1, 2**63, 2**64 - 1, known ^ 2**32, known + 64} - {known, other}
    numbers = np.array([*strange, known], np.uint64)
    assert server.send(numbers, tw.columns.Batch(Move, moves(len(numbers)))) == list(range(len(strange)))
    inboxes = tick(network, server, *clients)[1:]
    assert sorted(len(inbox.messages) for inbox in inboxes) == [0, 1]


def test_a_client_that_was_disconnected_just_now_is_skipped_and_told() -> None:
    network, server, clients = world([Move, Chat], clients=3)
    handles = server.clients
    server.disconnect(handles[1])
    # The game has not heard of it yet.
    assert server.send(handles, tw.columns.Batch(Move, moves(3))) == [1]
    assert server.broadcast(tw.columns.Batch(Move, moves(1)), clients=handles) == [handles[1]]
    assert server.send(handles[1], tw.columns.Batch(Move, moves(1))) == [0]
    inboxes = tick(network, server, *clients)[1:]
    by_slot = {client.slot: inbox for client, inbox in zip(clients, inboxes, strict=True)}
    for handle, own in zip(handles, (0, None, 2), strict=True):
        if own is not None:
            assert [move.tick for move in by_slot[handle.slot].messages] == [own, 0]


def test_a_client_listed_twice_gets_both_rows() -> None:
    network, server, (client, _) = world([Move, Chat])
    handle = next(handle for handle in server.clients if handle.slot == client.slot)
    assert server.send([handle, handle], tw.columns.Batch(Move, moves(2))) == []
    assert server.send(np.full(2, handle.number, np.uint64), tw.columns.Batch(Move, moves(2))) == []
    assert server.broadcast(tw.columns.Batch(Move, moves(1)), clients=[handle, handle]) == []
    assert [move.tick for move in tick(network, server, client)[1].messages] == [0, 1, 0, 1, 0, 0]


# --- numbers for each row -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["key", "tag"])
def test_numbers_that_are_none_are_refused(name: str) -> None:
    _, server, _ = world([Move, Chat])

    def send(number: Any) -> list[Any]:
        return server.broadcast(tw.columns.Batch(Move, moves(2)), 2, **{name: number})

    wrong = (np.zeros(2, np.int32), np.zeros(2, ">u4"), np.zeros(2, np.uint64), [0, 0], "0", 0.5)
    for number in wrong:
        with pytest.raises(TypeError, match=f"{name} must be an int or a buffer of uint32"):
            send(number)
    for number in (-1, 2**32):
        with pytest.raises(ValueError, match=f"{name} must be 0 to 4294967295, not {number}"):
            send(number)
    for count in (0, 1, 3):
        with pytest.raises(ValueError, match=f"{name} must have 2 numbers, one for each row, not {count}"):
            send(np.zeros(count, np.uint32))
    with pytest.raises(ValueError, match=f"{name} must have 1 dimension, not 2"):
        send(np.zeros((2, 1), np.uint32))
    assert send(np.zeros(4, np.uint32)[::2]) == []


# --- memory that changes meanwhile --------------------------------------------------------------------------


def test_an_arena_that_another_thread_writes_to_is_sent_as_some_mixture() -> None:
    """A letter of two bytes that is torn is refused, and no text is wrong."""
    rows = np.zeros(1, tw.columns.dtype(Chat))
    rows["text"] = (0, 200)
    arena = np.frombuffer(bytearray("é".encode() * 100), np.uint8)

    def write() -> None:
        arena[:] = ord("e")
        arena[:] = np.frombuffer("é".encode() * 100, np.uint8)

    protocol, named = tw.Protocol(1, [Chat]), set()
    with writing(write):
        for _ in range(300):
            try:
                data = tw.columns.pack(Chat, rows, arena=arena)
            except tw.FieldError as refused:
                named.add(refused.field)
            else:
                text = protocol.decode(data).text
                assert set(text) <= {"e", "é"}
                assert len(text.encode()) == 200
    assert named <= {"text of row 0"}


def test_cells_that_another_thread_turns_out_of_the_arena_are_checked_as_they_were_copied() -> None:
    rows = np.zeros(50, tw.columns.dtype(Chat))
    rows["text"] = (0, 4)

    def write() -> None:
        rows["text"] = (2**32 - 1, 2**32 - 1)
        rows["text"] = (1, 3)

    bounds = set()
    with writing(write):
        for _ in range(300):
            try:
                data = tw.columns.pack(Chat, rows, arena=b"abcd")
            except tw.FieldError as refused:
                bounds.add(refused.bound)
            else:
                read = tw.columns.unpack(Chat, data, 50)
                assert set(read["text"][:, 1].tolist()) <= {3, 4}
    assert bounds <= {"an offset and bytes within the arena of 4"}


def test_clients_and_keys_that_another_thread_writes_to_go_to_somebody_known() -> None:
    network, server, clients = world([Move, Chat])
    numbers = np.array([handle.number for handle in server.clients] * 8, np.uint64)
    own = numbers.copy()
    keys = np.zeros(16, np.uint32)

    def write() -> None:
        numbers[:] = 2**64 - 1
        keys[:] = 8
        numbers[:] = own
        keys[:] = 0

    sent = 0
    with writing(write):
        for _ in range(200):
            sent += 16 - len(server.send(numbers, tw.columns.Batch(Move, moves(16)), 2, key=keys))
            tick(network, server, *clients)
    assert 0 <= sent <= 200 * 16
    assert all(client.connected for client in clients)


def test_memory_that_is_sent_from_cannot_be_taken_away_meanwhile() -> None:
    """A buffer that is held cannot change its size; once the call is over it can."""
    rows = bytearray(moves(1000).tobytes())
    refused = 0

    def unless_held(change: Callable[[], object]) -> bool:
        nonlocal refused
        try:
            change()
        except BufferError:
            refused += 1
            return False
        return True

    def write() -> None:
        # Without a GIL a call may begin between both.
        if unless_held(lambda: rows.extend(bytes(DTYPE.itemsize))):
            while not unless_held(lambda: rows.__delitem__(slice(-DTYPE.itemsize, None))):
                pass

    with writing(write):
        for _ in range(200):
            assert len(tw.columns.pack(Move, rows)) in (1000 * 34 // 8, 1001 * 34 // 8 + 1)
    rows.clear()
    assert tw.columns.pack(Move, rows) == b""
