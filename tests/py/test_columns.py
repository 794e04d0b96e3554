"""Arrays of messages, with NumPy."""

from __future__ import annotations

import enum
import threading
from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw
from conftest import Blob, Chat, Move, Odd, make_protocol
from tickwire.testing import advance


class Mood(enum.Enum):
    CALM = 1
    ANGRY = 7


@tw.message
class Item:
    kind: tw.u8
    name: Annotated[str, tw.text(20)]


@tw.message
class Point:
    x: tw.i16
    y: tw.i16


@tw.message
class Everything:
    """A field of every kind."""

    flag: bool
    small: Annotated[int, tw.bits(3)]
    wide: tw.u64
    signed: tw.i32
    one: Annotated[int, tw.ranged(5, 5)]
    huge: Annotated[int, tw.ranged(-(2**100), 2**100)]
    unsigned128: tw.u128
    single: tw.f32
    double: tw.f64
    aim: Annotated[float, tw.quantized(-1, 1, 1 / 256)]
    level: Annotated[float, tw.fields.fixed(-100, 100, 8)]
    text: Annotated[str, tw.text(50)]
    wide_text: Annotated[str, tw.fields.wide_text(50)]
    data: Annotated[bytes, tw.data(50)]
    yaw: Annotated[float, tw.angle(0, 360, 0.1)]
    flat: Annotated[tw.Vec2, tw.vec2(-10, 10, 0.01)]
    position: Annotated[tw.Vec3, tw.vec3(-2048, 2047, 1 / 512)]
    facing: Annotated[tw.Vec3, tw.fields.unit_vector()]
    rotation: Annotated[tw.fields.Quaternion, tw.fields.quaternion()]
    book: Annotated[tw.fields.Quaternion, tw.fields.signed_quaternion()]
    placed: Annotated[tw.fields.Transform, tw.fields.transform(-100, 100, 0.125)]
    buttons: Annotated[int, tw.flags("a", "b", "c", "d")]
    target: Annotated[int, tw.fields.network_id(1000)]
    mood: Mood
    ammo: Annotated[int, tw.ranged(0, 100), tw.fields.common(30)]
    weapon: tw.u16 | None
    none: tw.u16 | None
    scores: Annotated[list[tw.u16], tw.up_to(20)]
    names: Annotated[list[Annotated[str, tw.text(9)]], tw.up_to(5)]
    bag: Annotated[dict[int, Item], tw.fields.sparse(64)]
    corner: Point


EVERYTHING = Everything(
    flag=True,
    small=5,
    wide=2**64 - 1,
    signed=-(2**31),
    one=5,
    huge=-(2**99),
    unsigned128=2**127 + 3,
    single=1.5,
    double=-1e300,
    aim=0.25,
    level=99.5,
    text="Grüße",
    wide_text="🎲 dice",
    data=b"\x00\xff",
    yaw=359.9,
    flat=(-10.0, 9.99),
    position=(-2048.0, 0.5, 2047.0),
    facing=(0.0, 0.0, 1.0),
    rotation=(0.0, 0.0, 0.0, 1.0),
    book=(0.0, 0.0, 1.0, 0.0),
    placed=tw.fields.Transform((1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0), (2.0, 2.0, 2.0)),
    buttons=0b1010,
    target=999,
    mood=Mood.ANGRY,
    ammo=30,
    weapon=7,
    none=None,
    scores=[1, 2, 65535],
    names=["ann", "", "bob"],
    bag={3: Item(1, "rope"), 63: Item(2, "")},
    corner=Point(-5, 7),
)

# The one class of its protocol, so that no bits say which class a message is of.
ALONE = tw.Protocol(1, [Everything])


def world(
    messages: list[type], clients: int = 2, **settings: Any
) -> tuple[tw.testing.SimulatedNetwork, tw.Server, list[tw.Client]]:
    """A server that takes `columns` as columns, and its clients, connected."""
    channels = settings.pop("channels", [tw.reliable_ordered(), tw.unreliable(), tw.latest(keys=9)])
    protocol = tw.Protocol(7, messages, channels)
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", protocol, network=network, **settings)
    dialled = [tw.Client.connect("10.0.0.1:5", protocol, network=network) for _ in range(clients)]
    advance(network, server, *dialled, seconds=0.5)
    assert len(server.clients) == clients
    return network, server, dialled


def tick(network: tw.testing.SimulatedNetwork, *endpoints: tw.Server | tw.Client) -> list[tw.Inbox]:
    """What each endpoint receives after everything queued was sent."""
    for endpoint in endpoints:
        endpoint.flush()
    network.advance(1 / 60)
    return [endpoint.receive() for endpoint in endpoints]


def moves(count: int) -> Any:
    rows = np.zeros(count, tw.columns.dtype(Move))
    rows["tick"] = range(count)
    rows["buttons"] = 3
    rows["aim"] = 0.5
    return rows


# --- rows -------------------------------------------------------------------------------------------------


def test_rows_have_the_bytes_of_objects_for_every_kind_of_field() -> None:
    encoded = ALONE.encode(EVERYTHING)
    rows = tw.columns.unpack(Everything, encoded, 1)
    assert tw.columns.pack(Everything, rows, arena=tw.columns.arena(rows)) == encoded
    objects = [EVERYTHING, Everything(), EVERYTHING]
    assert rows["mood"][0] == 7
    assert (rows["weapon"]["value"][0], rows["weapon"]["present"][0]) == (7, True)
    assert not rows["none"]["present"][0]
    assert list(rows["corner"][0]) == [-5, 7]
    assert rows["position"][0].tolist() == [-2048.0, 0.5, 2047.0]

    network, server, clients = world([Everything], clients=1, tuning=tw.Tuning(columns=[Everything]))
    for message in objects:
        clients[0].send(message)
    _, inbox = tick(network, clients[0], server)
    arrived = inbox.columns(Everything)
    bare = np.zeros(3, tw.columns.dtype(Everything))
    for name in bare.dtype.names:
        bare[name] = arrived[name]
    assert (
        server.send(server.clients[0], tw.columns.Batch(Everything, bare, arena=tw.columns.arena(arrived)))
        == []
    )
    inbox, _ = tick(network, clients[0], server)
    assert [ALONE.encode(message) for message in inbox.messages] == [
        ALONE.encode(message) for message in objects
    ]


@pytest.mark.parametrize("name", list(EVERYTHING.__slots__))
def test_each_kind_of_field_alone_has_the_bytes_of_objects(name: str) -> None:
    annotations = {name: Everything.__annotations__[name]}
    made = tw.message(type("Alone", (), {"__annotations__": annotations, "__module__": __name__}))
    protocol = tw.Protocol(1, [made])
    encoded = protocol.encode(made(getattr(EVERYTHING, name)))
    rows = tw.columns.unpack(made, encoded, 1)
    assert tw.columns.pack(made, rows, arena=tw.columns.arena(rows)) == encoded
    assert np.dtype(tw.columns.dtype(made)).itemsize == rows.dtype.itemsize


def test_many_rows_are_packed_one_behind_the_other() -> None:
    rows = moves(100)
    assert len(tw.columns.pack(Move, rows)) == 100 * (16 + 8 + 10) // 8
    back = tw.columns.unpack(Move, tw.columns.pack(Move, rows), 100)
    assert (back == rows).all()
    assert not back.flags.writeable
    assert tw.columns.unpack(Move, b"", 0).shape == (0,)
    assert tw.columns.pack(Move, rows[:0]) == b""
    assert (
        tw.columns.unpack(Move, tw.columns.pack(Move, rows[::3]), 34)["tick"] == range(0, 100, 3)
    ).all(), "with gaps"


def test_what_is_unpacked_is_refused_by_row() -> None:
    packed = tw.columns.pack(Chat, np.zeros(3, tw.columns.dtype(Chat)))
    with pytest.raises(tw.errors.StreamError, match="row 3"):
        tw.columns.unpack(Chat, packed + b"\0", 3)
    with pytest.raises(tw.errors.StreamError, match="Chat, row 0"):
        tw.columns.unpack(Chat, packed, 400)
    with pytest.raises(ValueError, match="count must be 0 to"):
        tw.columns.unpack(Chat, packed, -1)


def test_a_list_of_an_array_is_one_message() -> None:
    @tw.message
    class Snapshot:
        tick: tw.u16
        points: Annotated[list[Point], tw.up_to(200)]

    points = np.zeros(100, tw.columns.dtype(Point))
    points["x"] = range(100)
    rows = np.zeros(1, tw.columns.dtype(Snapshot))
    rows["points"] = (0, 100)
    packed = tw.columns.pack(Snapshot, rows, arena=points)
    assert packed == tw.Protocol(1, [Snapshot]).encode(Snapshot(0, [Point(x, 0) for x in range(100)]))
    back = tw.columns.unpack(Snapshot, packed, 1)
    offset, count = back["points"][0]
    assert (np.frombuffer(tw.columns.arena(back), tw.columns.dtype(Point), count, offset) == points).all()


def test_an_arena_is_bytes_or_what_lists_hold() -> None:
    @tw.message
    class Snapshot:
        points: Annotated[list[Point], tw.up_to(200)]
        numbers: Annotated[list[tw.u16], tw.up_to(200)]
        places: Annotated[list[Annotated[tw.Vec2, tw.vec2(-8, 8, 1)]], tw.up_to(200)]

    rows = np.zeros(1, tw.columns.dtype(Snapshot))
    rows["points"] = (0, 2)
    points = np.zeros(2, tw.columns.dtype(Point))
    views = (points, points.tobytes(), points.view("u1"), points.view("V1"))
    for fine in (*views, np.zeros(9, "<u2"), np.ones((9, 2))):
        assert tw.columns.pack(Snapshot, rows, arena=fine)
    for wrong in (
        np.zeros(9, "f4"),
        np.zeros(9, tw.columns.dtype(Chat)),
        np.zeros(9, "i8"),
        np.zeros(9, ">u2"),
    ):
        with pytest.raises(TypeError, match="arena of Snapshot must be bytes or "):
            tw.columns.pack(Snapshot, rows, arena=wrong)
    with pytest.raises(TypeError, match="arena of Chat must be bytes, not of float64"):
        tw.columns.pack(Chat, np.zeros(1, tw.columns.dtype(Chat)), arena=np.zeros(9))


def test_sets_dicts_tuples_and_unions_are_rows_too() -> None:
    @tw.message
    class Gathered:
        numbers: Annotated[set[tw.u16], tw.up_to(9)]
        scores: Annotated[dict[tw.u8, tw.u16], tw.up_to(9)]
        pair: tuple[tw.u8, tw.i16]
        what: Point | Chat

    message = Gathered({7, 3, 900}, {2: 20, 1: 10}, (5, -6), Chat(1, "hello"))
    packed = tw.Protocol(1, [Gathered]).encode(message)
    rows = tw.columns.unpack(Gathered, packed, 1)
    offset, count = rows["numbers"][0]
    assert np.frombuffer(tw.columns.arena(rows), "<u2", count, offset).tolist() == [3, 7, 900]
    assert rows["pair"][0].tolist() == (5, -6)
    offset, which = rows["what"][0]
    assert which == 1
    assert tw.columns.pack(Gathered, rows, arena=tw.columns.arena(rows)) == packed
    rows = np.zeros(1, tw.columns.dtype(Gathered))
    rows["numbers"] = (0, 2)
    for numbers in ([2, 1], [1, 1]):
        with pytest.raises(
            tw.FieldError, match="Gathered.numbers of row 0 = .*: must be items in rising order"
        ):
            tw.columns.pack(Gathered, rows, arena=np.array([*numbers, 0, 0], "<u2"))
    rows["numbers"] = (0, 5)
    with pytest.raises(
        tw.FieldError, match=r"= \(0, 5\): must be .* arena of 6 bytes, and 5 of these are 10"
    ):
        tw.columns.pack(Gathered, rows, arena=np.zeros(3, "<u2"))


# --- rows that are wrong ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ({"aim": 2.0}, r"Move.aim of row 2 = 2.0: must be -1 to 1"),
        ({"aim": np.nan}, r"Move.aim of row 2 = nan: must be a finite number"),
        ({"aim": -np.inf}, r"Move.aim of row 2 = -inf: must be a finite number"),
    ],
)
def test_a_wrong_row_is_named_and_nothing_is_queued(spoil: dict[str, float], said: str) -> None:
    network, server, (client, other) = world([Move])
    rows = moves(3)
    for name, value in spoil.items():
        rows[name][2] = value
    for send in (
        lambda: tw.columns.pack(Move, rows),
        lambda: server.send(server.clients[0], tw.columns.Batch(Move, rows)),
        lambda: server.broadcast(tw.columns.Batch(Move, rows)),
        lambda: server.send([*server.clients, server.clients[0]], tw.columns.Batch(Move, rows)),
        lambda: client.send(tw.columns.Batch(Move, rows)),
    ):
        with pytest.raises(tw.FieldError, match=said):
            send()
    assert all(inbox.messages == [] for inbox in tick(network, server, client, other))


def test_a_cell_that_points_out_of_its_arena_is_named() -> None:
    rows = np.zeros(2, tw.columns.dtype(Chat))
    rows["text"][1] = (3, 4)
    with pytest.raises(tw.FieldError, match=r"Chat.text of row 1 = \(3, 4\): must be .* arena of 6"):
        tw.columns.pack(Chat, rows, arena=b"abcdef")
    assert len(tw.columns.pack(Chat, rows, arena=b"abcdefg")) > 0
    rows["text"][1] = (0, 2)
    with pytest.raises(tw.FieldError, match="Chat.text of row 1"):
        tw.columns.pack(Chat, rows, arena=b"\xff\xfe")
    rows = np.zeros(1, tw.columns.dtype(Everything))
    rows["one"], rows["mood"] = 5, 1
    rows["rotation"] = rows["book"] = (0, 0, 0, 1)
    rows["facing"] = (0, 0, 1)
    rows["names"] = (0, 1)
    # The list is in the arena, and its text is not.
    with pytest.raises(tw.FieldError, match="Everything.names of row 0"):
        tw.columns.pack(Everything, rows, arena=np.array([[8, 1]], "<u4"))


@pytest.mark.parametrize(
    ("rows", "error", "said"),
    [
        (np.zeros(2), TypeError, "rows must be of tickwire.columns.dtype.Move."),
        (np.zeros(2, [("tick", "<u2")]), TypeError, "rows must be of tickwire.columns.dtype.Move."),
        (np.zeros((2, 2), tw.columns.dtype(Move)), ValueError, "1 dimension, a row for each message, not 2"),
        (np.zeros(2, tw.columns.dtype(Move))[0], ValueError, "not 0"),
        (np.zeros(2, tw.columns.dtype(Move).newbyteorder(">")), TypeError, "rows must be of"),
        (memoryview(np.zeros(2, np.float32)), TypeError, "rows of Move must be bytes or of format"),
        (b"12345", ValueError, "rows of Move must be a whole number of 8 bytes, not 5"),
        ([1, 2], TypeError, "an array or a buffer, not list"),
        (None, TypeError, "an array or a buffer, not NoneType"),
    ],
)
def test_what_is_no_array_of_rows_is_refused(rows: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        tw.columns.pack(Move, rows)


def test_only_declared_classes_with_fields_have_rows() -> None:
    @tw.message
    class Nothing:
        pass

    with pytest.raises(TypeError, match="Nothing must have fields"):
        tw.columns.dtype(Nothing)
    for wrong in (Odd, int, 3):
        with pytest.raises(TypeError, match="can't be sent as rows: only classes made by @tickwire.message"):
            tw.columns.dtype(wrong)
    with pytest.raises(ValueError, match="a copy has no arena"):
        tw.columns.arena(np.zeros(3))


def test_rows_that_another_thread_writes_to_are_sent_as_some_mixture() -> None:
    """Whatever the other thread writes is checked; nothing else may be sent."""
    rows = moves(64)
    packed = tw.columns.pack(Move, rows)
    values = set(tw.columns.unpack(Move, packed, 64)["aim"].tolist())
    assert len(values) == 1
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            rows["aim"] = 5.0
            rows["aim"] = 0.5

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(300):
            try:
                packed = tw.columns.pack(Move, rows)
            except tw.FieldError as refused:
                values.add(refused.value)
            else:
                values.update(tw.columns.unpack(Move, packed, 64)["aim"].tolist())
    finally:
        stop.set()
        writer.join()
    assert len(values - {5.0}) == 1


# --- columns in ---------------------------------------------------------------------------------------------


def test_a_class_comes_as_rows_of_all_clients_and_the_others_as_objects() -> None:
    network, server, clients = world([Move, Chat, Blob], clients=3, tuning=tw.Tuning(columns=[Move, Chat]))
    for n, client in enumerate(clients):
        for step in range(4):
            client.send(Move(10 * n + step, step, 0.5), 1)
        client.send(Chat(n, f"I am {n}"))
        client.send(Blob(b"object"))
    inbox = tick(network, *clients, server)[-1]
    assert [message for _, message in inbox.messages] == [Blob(b"object")] * 3

    rows = inbox.columns(Move)
    assert rows.dtype.names == (
        *("client", "received", "slot", "key", "sequence", "missed", "channel"),
        *("tick", "buttons", "aim"),
    )
    assert len(rows) == 12
    assert not rows.flags.writeable
    order = np.argsort(rows["tick"])
    assert rows["tick"][order].tolist() == [10 * n + step for n in range(3) for step in range(4)]
    assert rows["buttons"][order].tolist() == [0, 1, 2, 3] * 3
    assert (rows["channel"] == 1).all()
    assert (rows["received"] > 0).all()
    assert np.ptp(rows["received"]) == 0
    slots = {client.slot: n for n, client in enumerate(clients)}
    assert [slots[int(slot)] for slot in rows["slot"]] == (rows["tick"] // 10).tolist()
    handles = [server.client(int(number)) for number in rows["client"]]
    assert [handle.slot for handle in handles if handle] == rows["slot"].tolist()
    assert [handle.number for handle in handles if handle] == rows["client"].tolist()

    chats, arena = inbox.columns(Chat), tw.columns.arena(inbox.columns(Chat))
    texts = {bytes(arena[at : at + length]).decode() for at, length in chats["text"]}
    assert texts == {"I am 0", "I am 1", "I am 2"}
    assert tw.columns.arena(chats[1:]) == arena

    del inbox, arena
    advance(network, server, *clients, seconds=0.1)
    assert rows["buttons"][order].tolist() == [0, 1, 2, 3] * 3, "what was handed over stays as it was"
    assert len(server.receive().columns(Move)) == 0


def test_a_client_takes_columns_too_and_forwards_them() -> None:
    protocol = make_protocol()
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", protocol, network=network)
    client = tw.Client.connect("10.0.0.1:5", protocol, network=network, tuning=tw.Tuning(columns=[Move]))
    advance(network, server, client, seconds=0.5)
    assert server.broadcast(tw.columns.Batch(Move, moves(50))) == []
    _, inbox = tick(network, server, client)
    rows = inbox.columns(Move)
    assert rows["tick"].tolist() == list(range(50))
    assert (rows["client"] == 0).all()
    back = np.zeros(50, tw.columns.dtype(Move))
    for name in back.dtype.names:
        back[name] = rows[name]
    assert client.send(tw.columns.Batch(Move, back)) == []
    inbox, _ = tick(network, server, client)
    assert [message.tick for _, message in inbox.messages] == list(range(50))


def test_keys_and_gaps_are_columns_and_gaps_are_told() -> None:
    channels = [tw.latest(keys=9), tw.channels.redundant(copies=1)]
    network, server, (client,) = world([Move], clients=1, tuning=tw.Tuning(columns=[Move]), channels=channels)
    rows = moves(3)
    assert client.send(tw.columns.Batch(Move, rows), key=np.array([8, 2, 5], np.uint32)) == []
    _, inbox = tick(network, client, server)
    by_key = dict(zip(inbox.columns(Move)["key"].tolist(), inbox.columns(Move)["tick"].tolist(), strict=True))
    assert by_key == {8: 0, 2: 1, 5: 2}
    assert inbox.latest == []

    client.send(Move(1, 0, 0.0), 1)
    tick(network, client, server)
    network.set_conditions(tw.Conditions(loss=1.0), sender=client.address)
    client.send(Move(2, 0, 0.0), 1)
    tick(network, client, server)
    network.set_conditions(tw.Conditions(), sender=client.address)
    client.send(Move(3, 0, 0.0), 1)
    _, inbox = tick(network, client, server)
    handle = server.clients[0]
    assert inbox.missed == [(handle, 1, 1)]
    assert inbox.columns(Move)[["tick", "missed"]].tolist() == [(3, 1)]


def test_our_columns_make_way_for_fields_of_their_names() -> None:
    @tw.message
    class Event:
        channel: tw.u32
        client: tw.u8
        client_: tw.u8

    network, server, (client,) = world([Event], clients=1, tuning=tw.Tuning(columns=[Event]))
    client.send(Event(70_000, 1, 2), 1)
    _, inbox = tick(network, client, server)
    row = inbox.columns(Event)[0]
    assert (row["channel"], row["client"], row["client_"], row["channel_"]) == (70_000, 1, 2, 1)
    assert row["client__"] == server.clients[0].number


def test_a_class_without_columns_and_wrong_columns_are_refused() -> None:
    protocol = make_protocol()
    network = tw.testing.SimulatedNetwork()

    def server(columns: list[Any]) -> tw.Server:
        return tw.Server("10.0.0.1:5", protocol, network=network, tuning=tw.Tuning(columns=columns))

    with pytest.raises(TypeError, match="only classes made by @tickwire.message"):
        server([Odd])
    with pytest.raises(tw.errors.UnregisteredMessageError, match="Point"):
        server([Point])
    with pytest.raises(ValueError, match="columns must be different classes, and .*Move.* appears twice"):
        server([Move, Chat, Move])
    with pytest.raises(ValueError, match="Chat.* is delivered as objects"):
        server([Move]).receive().columns(Chat)


def test_payloads_are_no_rows_of_the_first_class() -> None:
    channels = [tw.channels.payload(), tw.reliable_ordered()]
    network, server, (client,) = world([Move], clients=1, tuning=tw.Tuning(columns=[Move]), channels=channels)
    client.send_payload(b"bits", 0, tag=1)
    _, inbox = tick(network, client, server)
    assert inbox.payloads == [(server.clients[0], 0, b"bits")]
    assert len(inbox.columns(Move)) == 0


def test_rows_of_those_who_are_not_admitted_are_dropped() -> None:
    network = tw.testing.SimulatedNetwork()
    protocol = make_protocol()
    server = tw.Server(
        "10.0.0.1:5",
        protocol,
        network=network,
        tuning=tw.Tuning(columns=[Move]),
        access=tw.tokens.Access(
            admission=lambda newcomers: [client for client in newcomers if client.id == 2]
        ),
    )
    clients = [tw.Client.connect("10.0.0.1:5", protocol, network=network, client_id=n) for n in (1, 2)]
    # All of them connect and send before the server's game looks.
    for _ in range(30):
        for client in clients:
            client.pump()
            if client.connected:
                client.send(Move(7, 0, 0.0), 1)
        server.pump()
        network.advance(1 / 60)
    assert len(server.receive().columns(Move)) == 0, "a tick after their event"
    inbox = server.receive()
    rows = inbox.columns(Move)
    assert len(rows) > 0
    assert set(rows["client"].tolist()) == {server.clients[0].number}


def test_rows_of_a_client_that_left_are_handed_over() -> None:
    network, server, (client, other) = world([Move, Chat], tuning=tw.Tuning(columns=[Move, Chat]))
    number = next(handle.number for handle in server.clients if handle.slot == client.slot)
    assert client.send(tw.columns.Batch(Move, moves(5)), 1) == []
    client.send(Chat(1, "bye"), 1)
    client.flush()
    client.close()
    network.advance(1 / 60)
    inbox, last = server.receive(), server.receive()
    assert inbox.events == []
    assert [type(event) for event in last.events] == [tw.Disconnected]
    assert inbox.columns(Move)["tick"].tolist() == list(range(5))
    assert inbox.columns(Move)["client"].tolist() == [number] * 5
    offset, length = inbox.columns(Chat)["text"][0]
    assert bytes(tw.columns.arena(inbox.columns(Chat))[offset : offset + length]) == b"bye"
    assert server.client(number) is None
    assert other.connected


# --- columns out --------------------------------------------------------------------------------------------


def test_each_client_gets_its_row() -> None:
    network, server, clients = world([Move], clients=3)
    handles = server.clients
    assert server.send(handles, tw.columns.Batch(Move, moves(3)), 1) == []
    numbers = np.array([handle.number for handle in handles], np.uint64)
    assert (
        server.send(numbers[::-1], tw.columns.Batch(Move, moves(3)), tag=np.arange(3, dtype=np.uint32)) == []
    )
    server.flush()
    network.advance(1 / 60)
    inboxes = {client.slot: client.receive().messages for client in clients}
    assert [[move.tick for move in inboxes[handle.slot]] for handle in handles] == [[2, 0], [1, 1], [0, 2]]


def test_clients_that_are_gone_are_skipped_and_told_and_the_rest_is_sent() -> None:
    network, server, clients = world([Move], clients=3)
    handles = server.clients
    first = next(client for client in clients if client.slot == handles[0].slot)
    first.close()
    advance(network, server, *[client for client in clients if client is not first], seconds=0.2)
    stranger = tw.Server("10.0.0.9:5", server.protocol, network=network)
    assert server.send([*handles, handles[1]], tw.columns.Batch(Move, moves(4)), 1) == [0]
    assert server.send(
        np.array([2**40, handles[2].number], np.uint64), tw.columns.Batch(Move, moves(2)), 1
    ) == [0]
    assert server.broadcast(tw.columns.Batch(Move, moves(1)), 1, clients=handles[:2]) == []
    assert server.send(handles[0], tw.columns.Batch(Move, moves(2))) == [0, 1]
    settings: dict[str, Any] = {"protocol": server.protocol, "network": network}
    assert tw.Client.connect("10.0.0.9:5", **settings).send(tw.columns.Batch(Move, moves(1))) == [0]
    with pytest.raises(tw.errors.NotConnectedError):
        tw.Client.connect("10.0.0.9:5", debugging=tw.testing.Debugging(strict=True), **settings).send(
            tw.columns.Batch(Move, moves(1))
        )
    assert server.client(handles[0].number) is None
    assert stranger.clients == []
    rest = [client for client in clients if client is not first]
    server.flush()
    network.advance(1 / 60)
    ticks = {client.slot: [move.tick for move in client.receive().messages] for client in rest}
    assert ticks == {handles[1].slot: [1, 3, 0], handles[2].slot: [2, 1]}


def test_a_full_channel_takes_what_it_has_room_for() -> None:
    channels = [tw.reliable_ordered(send_queue=4)]
    network, server, clients = world([Move], channels=channels)
    assert server.send(server.clients[0], tw.columns.Batch(Move, moves(6))) == [4, 5]
    assert server.broadcast(tw.columns.Batch(Move, moves(2))) == [server.clients[0]]
    assert server.send(server.clients, tw.columns.Batch(Move, moves(2))) == [0]
    assert server.broadcast(Move(9, 0, 0.0), clients=server.clients) == [server.clients[0]]
    server.flush()
    network.advance(1 / 60)
    ticks = {client.slot: [move.tick for move in client.receive().messages] for client in clients}
    assert ticks == {0: [0, 1, 2, 3], 1: [0, 1, 1, 9]}


def test_arguments_that_make_no_sense_are_refused() -> None:
    _, server, _ = world([Move, Chat])
    handles = server.clients
    with pytest.raises(ValueError, match=r"clients must have one entry per row \(3\), not 2"):
        server.send(handles, tw.columns.Batch(Move, moves(3)))
    with pytest.raises(TypeError, match="ClientHandles, or a buffer of uint64 like the client column"):
        server.send([1, 2], tw.columns.Batch(Move, moves(2)))
    with pytest.raises(tw.errors.ChannelError, match="not 9"):
        server.broadcast(tw.columns.Batch(Move, moves(2)), 9)
    with pytest.raises(tw.errors.ChannelError, match="not 9"):
        server.broadcast(tw.columns.Batch(Move, moves(2)), 2, key=9)
    with pytest.raises(ValueError, match="key must have 2 numbers, one for each row, not 3"):
        server.broadcast(tw.columns.Batch(Move, moves(2)), 2, key=np.zeros(3, np.uint32))
    with pytest.raises(TypeError, match="tag must be an int or a buffer of uint32"):
        server.broadcast(tw.columns.Batch(Move, moves(2)), tag=np.zeros(2))
    with pytest.raises(tw.errors.UnregisteredMessageError):
        server.broadcast(tw.columns.Batch(Point, np.zeros(1, tw.columns.dtype(Point))))


def test_a_row_that_is_too_large_is_refused_before_any_is_queued() -> None:
    channels = [tw.reliable_ordered(max_message_bytes=100)]
    network, server, (client, _) = world([Blob], channels=channels)
    rows = np.zeros(2, tw.columns.dtype(Blob))
    rows["data"] = [(0, 3), (0, 200)]
    with pytest.raises(tw.errors.MessageTooLargeError, match="row 1 of Blob"):
        server.broadcast(tw.columns.Batch(Blob, rows, arena=bytes(200)))
    assert tick(network, server, client)[1].messages == []


def test_a_broadcast_goes_to_those_given() -> None:
    network, server, clients = world([Move], clients=3)
    chosen = server.clients[1:]
    assert server.broadcast(Move(5, 0, 0.0), clients=chosen, exclude=chosen[1]) == []
    assert server.broadcast(tw.columns.Batch(Move, moves(2)), clients=chosen) == []
    server.flush()
    network.advance(1 / 60)
    ticks = {client.slot: [move.tick for move in client.receive().messages] for client in clients}
    assert ticks == {server.clients[0].slot: [], chosen[0].slot: [5, 0, 1], chosen[1].slot: [0, 1]}


def test_a_class_that_appears_twice_is_named_beside_columns_of_ghosts() -> None:
    @tw.ghost
    class Tank:
        x: tw.f32 = 0.0

    @tw.message
    class Shot:
        x: tw.f32

    @tw.message
    class Hit:
        x: tw.f32

    protocol: tw.Protocol[Any] = tw.Protocol(1, [Shot, Hit], ghosts=[Tank])
    tuning = tw.Tuning(columns=[Tank, Shot, Hit, Hit])
    with pytest.raises(ValueError, match="columns must be different classes, and .*Hit.* appears twice"):
        tw.Client.connect("10.0.0.1:5", protocol, network=tw.testing.SimulatedNetwork(), tuning=tuning)
