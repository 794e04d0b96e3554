"""Fields of a game's own types, tuples, sets, dicts by key, literals and unions of messages."""

from __future__ import annotations

import dataclasses
import logging
import uuid
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal, NewType

import pytest
import tickwire as tw
from hypothesis import given, settings
from hypothesis import strategies as st
from tickwire.testing import advance, connected_pair

PlayerId = NewType("PlayerId", int)
Name = Annotated[str, tw.text(9)]


class Vector:
    """As pygame's: mutable, iterable, no tuple."""

    def __init__(self, x: float = 0.0, y: float = 0.0) -> None:
        self.x, self.y = x, y

    def __iter__(self) -> Any:
        return iter((self.x, self.y))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vector) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


tw.fields.register(Vector, tw.Vec2, tuple, lambda numbers: Vector(*numbers))


class Even:
    """Of the numbers that its field can hold, half make it raise."""

    def __init__(self, number: int) -> None:
        if number % 2:
            raise LookupError(f"{number} is odd")
        self.number = number


@tw.message(frozen=True, order=True)
class Cell:
    x: tw.u8
    y: tw.i8


@tw.message
class Chat:
    text: Name


@tw.message
class Move:
    to: Cell
    fast: bool


@tw.message
class Everything:
    id: uuid.UUID
    at: datetime
    took: timedelta
    day: date
    owner: Annotated[PlayerId, tw.u16]
    place: Annotated[Vector, tw.vec2(-8, 8, 1 / 64)]
    pair: tuple[tw.u8, Name | None]
    many: Annotated[tuple[tw.i8, ...], tw.up_to(5)]
    names: Annotated[set[Name], tw.up_to(9)]
    cells: Annotated[frozenset[Cell], tw.up_to(9)]
    grid: Annotated[dict[tuple[tw.u8, tw.u8], Cell | None], tw.up_to(7)]
    scores: Annotated[dict[Name, tw.f32], tw.up_to(9)]
    mode: Literal["easy", "hard"]
    step: Literal[1, 5, -3]
    what: Chat | Move
    last: Chat | Move | None
    log: Annotated[list[Chat | Move], tw.up_to(4)]
    ids: Annotated[set[uuid.UUID], tw.up_to(3)]


PROTOCOL = tw.Protocol(1, [Everything, Chat, Move])

names = st.text(st.characters(codec="ascii", min_codepoint=1), max_size=9)
cells = st.builds(Cell, st.integers(0, 255), st.integers(-128, 127))
moves = st.builds(Chat, names) | st.builds(Move, cells, st.booleans())
coordinates = st.integers(-512, 512).map(lambda n: n / 64)
everything = st.builds(
    Everything,
    id=st.uuids(),
    at=st.datetimes(timezones=st.just(UTC)),
    took=st.timedeltas(timedelta(days=-100_000), timedelta(days=100_000)),
    day=st.dates(),
    owner=st.integers(0, 65_535).map(PlayerId),
    place=st.builds(Vector, coordinates, coordinates),
    pair=st.tuples(st.integers(0, 255), names | st.none()),
    many=st.lists(st.integers(-128, 127), max_size=5).map(tuple),
    names=st.sets(names, max_size=9),
    cells=st.frozensets(cells, max_size=9),
    grid=st.dictionaries(st.tuples(st.integers(0, 255), st.integers(0, 255)), cells | st.none(), max_size=7),
    scores=st.dictionaries(names, st.floats(width=32, allow_nan=False), max_size=9),
    mode=st.sampled_from(["easy", "hard"]),
    step=st.sampled_from([1, 5, -3]),
    what=moves,
    last=moves | st.none(),
    log=st.lists(moves, max_size=4),
    ids=st.sets(st.uuids(), max_size=3),
)


@given(everything)
def test_what_is_read_is_what_was_written(message: Everything) -> None:
    data = PROTOCOL.encode(message)
    read = PROTOCOL.decode(data)
    assert read == message
    assert PROTOCOL.encode(read) == data
    assert len(data) * 8 <= PROTOCOL.measure(message) + 7


@given(st.binary(max_size=120))
@settings(max_examples=300)
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    try:
        message = PROTOCOL.decode(data)
    except tw.errors.StreamError:
        return
    again = PROTOCOL.encode(message)
    assert again == data[: len(again)]
    # Not the messages: NaN differs from itself.
    assert PROTOCOL.encode(PROTOCOL.decode(again)) == again


@given(everything, st.data())
@settings(max_examples=200)
def test_flipped_bits_are_a_message_or_refused(message: Everything, data: st.DataObject) -> None:
    written = bytearray(PROTOCOL.encode(message))
    for place in data.draw(st.lists(st.integers(0, len(written) * 8 - 1), min_size=1, max_size=4)):
        written[place // 8] ^= 1 << place % 8
    test_any_bytes_are_a_message_or_refused.hypothesis.inner_test(bytes(written))  # type: ignore[attr-defined]


def test_equal_sets_are_equal_bytes() -> None:
    forwards = Everything(names={"a", "bc", "d"}, scores={"x": 1, "y": 2})
    backwards = Everything(names={"d", "bc", "a"}, scores={"y": 2, "x": 1})
    assert PROTOCOL.encode(forwards) == PROTOCOL.encode(backwards)
    assert list(PROTOCOL.decode(PROTOCOL.encode(backwards)).scores) == ["x", "y"]


def test_what_is_out_of_order_or_twice_is_refused() -> None:
    @tw.message
    class Sorted:
        numbers: Annotated[set[tw.u8], tw.up_to(3)]

    @tw.message
    class Free:
        numbers: Annotated[list[tw.u8], tw.up_to(3)]

    sorted_, free = tw.Protocol(1, [Sorted]), tw.Protocol(1, [Free])
    assert sorted_.decode(free.encode(Free([1, 2, 9]))) == Sorted({1, 2, 9})
    for numbers in ([2, 1], [1, 1], [1, 9, 2]):
        with pytest.raises(tw.errors.StreamError, match="in rising order without duplicates"):
            sorted_.decode(free.encode(Free(numbers)))


def test_items_that_were_chosen_to_have_one_hash_are_refused() -> None:
    def protocol(hint: Any) -> tw.Protocol:
        body = {"__annotations__": {"x": hint}, "__module__": __name__}
        return tw.Protocol(1, [tw.message(type("One", (), body))])

    numbers = Annotated[list[tw.u128], tw.up_to(4000)]
    free = protocol(numbers)
    made: Any = free.messages[0]
    # Of this number's multiples, Python's hash is 0.
    chosen = [n * (2**61 - 1) for n in range(4000)]
    for hint in (
        Annotated[set[tw.u128], tw.up_to(4000)],
        Annotated[frozenset[uuid.UUID], tw.up_to(4000)],
        Annotated[set[tuple[tw.u128]], tw.up_to(4000)],
    ):
        strict = protocol(hint)
        with pytest.raises(
            tw.errors.StreamError, match="more than 16 items of a set, or keys of a dict, have one hash"
        ):
            strict.decode(free.encode(made(chosen)))
        assert len(strict.decode(free.encode(made(chosen[:16]))).x) == 16
        assert len(strict.decode(free.encode(made(list(range(4000))))).x) == 4000

    pairs = protocol(Annotated[list[tuple[tw.u128, bool]], tw.up_to(4000)])
    by_key = protocol(Annotated[dict[uuid.UUID, bool], tw.up_to(4000)])
    entries: Any = pairs.messages[0]
    with pytest.raises(tw.errors.StreamError, match="have one hash"):
        by_key.decode(pairs.encode(entries([(number, True) for number in chosen])))
    assert len(by_key.decode(pairs.encode(entries([(n, True) for n in range(100)]))).x) == 100


def test_natural_defaults_are_made_for_each_object() -> None:
    one, other = Everything(), Everything()
    assert one == other
    assert one.names is not other.names
    assert one.place is not other.place
    assert one.what == Chat("")
    assert (one.mode, one.step, one.pair, one.id.int) == ("easy", 1, (0, None), 0)
    assert one.at == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"id": "x"}, "Everything.id = 'x' (str): must be a UUID"),
        (
            {"at": datetime(2024, 1, 1)},
            "must be an object that to_wire accepts, and it raised ValueError: a datetime must",
        ),
        ({"day": datetime(2024, 1, 1)}, "it raised TypeError: a datetime is not a date"),
        ({"took": timedelta.max}, "Everything.took (to_wire) = 86399999999999999999: must be -9223372036854"),
        ({"place": Vector(9, 0)}, "Everything.place (to_wire) = (9, 0): must be -8 to 8"),
        ({"place": (1, 2)}, "Everything.place = (1, 2) (tuple): must be a Vector"),
        ({"owner": 65_536}, "Everything.owner = 65536: must be 0 to 65535"),
        ({"pair": (1,)}, "Everything.pair = (1,): must be a tuple of 2, not 1"),
        ({"pair": (256, None)}, "Everything.pair[0] = 256: must be 0 to 255"),
        ({"pair": 7}, "Everything.pair = 7 (int): must be a tuple"),
        ({"many": (1,) * 6}, "Everything.many = (1, 1, 1, 1, 1, 1): must be at most 5 items"),
        ({"many": "abc"}, "Everything.many = 'abc' (str): must be a tuple"),
        ({"names": ["a"]}, "Everything.names = ['a'] (list): must be a set"),
        ({"names": {1}}, "Everything.names (item) = 1 (int): must be a str"),
        ({"names": set("abcdefghij")}, "must be at most 9 items, not 10"),
        ({"grid": {(1, 256): None}}, "Everything.grid (key)[1] = 256: must be 0 to 255"),
        ({"grid": {(1, 2): 5}}, "Everything.grid[(1, 2)] = 5 (int): must be a Cell"),
        ({"scores": {"a": "b"}}, "Everything.scores['a'] = 'b' (str): must be a float"),
        ({"scores": [("a", 1)]}, "must be a dict"),
        ({"mode": "medium"}, "Everything.mode = 'medium': must be one of 'easy', 'hard'"),
        ({"step": True}, "Everything.step = True: must be one of 1, 5, -3"),
        ({"step": 5.0}, "Everything.step = 5.0: must be one of 1, 5, -3"),
        ({"what": Cell(1, 1)}, "must be one of Chat, Move"),
        ({"what": None}, "Everything.what = None: must be one of Chat, Move"),
        ({"what": Chat("a" * 10)}, "Everything.what.text = 'aaaaaaaaaa': must be at most 9 bytes"),
        ({"log": [Move(Cell(1, 200), True)]}, "Everything.log[0].to.y = 200: must be -128 to 127"),
    ],
)
def test_a_wrong_value_is_named(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(tw.FieldError) as caught:
        PROTOCOL.encode(dataclasses.replace(Everything(), **changes))
    assert complaint in str(caught.value)


def test_items_that_are_the_same_on_the_wire_are_refused() -> None:
    class Loose(str):
        """Equal to nothing but itself."""

        __hash__ = object.__hash__

        def __eq__(self, other: object) -> bool:
            return self is other

    with pytest.raises(
        tw.FieldError, match=r"items that differ on the wire, and 'a' and 'a' have the same bits"
    ):
        PROTOCOL.encode(Everything(names={Loose("a"), Loose("a")}))


ONE_TO_THREE = Annotated[int, tw.ranged(1, 3)]
DECLARATIONS: list[tuple[Any, type[Exception], str]] = [
    (Annotated[dict[str, tw.u8], tw.fields.sparse(9)], TypeError, r"sparse\(9\) is for dict.* tw.up_to\(9\)"),
    (Annotated[str, tw.up_to(9)], TypeError, r"up_to\(9\) is for lists, .*; str takes tw.text\(9\)"),
    (Annotated[bytes, tw.up_to(9)], TypeError, r"bytes takes tw.data\(9\)"),
    (tw.text(9), TypeError, r"write Annotated\[str, tw.text\(9\)\]"),
    ("tw.text(9)", TypeError, r"write Annotated\[str, tw.text\(9\)\]"),
    (tw.up_to(3), TypeError, r"write Annotated\[..., tw.up_to\(3\)\]"),
    (Annotated[list, tw.up_to(3)], TypeError, r"list must declare its items, such as list\[tw.u8\]"),
    (dict[Name, tw.u8], TypeError, r"must declare its maximum length"),
    (tuple[tw.u8, ...], TypeError, r"must declare its maximum length"),
    (tw.Vec3, TypeError, r"must declare its numbers \(tw.vec2, tw.vec3"),
    (set[tw.u8], TypeError, r"must declare its maximum length"),
    (Annotated[set[float], tw.up_to(3)], ValueError, r"items of a set and keys of a dict must be whole"),
    (Annotated[set[Chat], tw.up_to(3)], TypeError, r"items of a set must be hashable, and a Chat is not"),
    (Annotated[dict[Chat, tw.u8], tw.up_to(3)], TypeError, r"keys of a dict must be hashable"),
    (Annotated[dict[str, tw.u8], tw.up_to(3)], TypeError, r"x \(key\): str must declare its length"),
    (Chat | tw.u8, TypeError, r"a union must have only classes made by @message, not int"),
    (Vector, TypeError, r"must declare its numbers"),
    (Annotated[Vector, tw.text(3)], TypeError, r"text\(3\) is for str, not for tuple"),
    (Annotated[uuid.UUID, tw.text(3)], TypeError, r"text\(3\) is for str, not for int"),
    (PlayerId, TypeError, r"int must declare its bits"),
    (complex, TypeError, r"complex is not a type that .* tw.fields.converted"),
    (Annotated[int, tw.fields.converted(tw.u8, int, int), tw.u8], TypeError, r"contradict each other"),
    (Annotated[Even, tw.fields.converted(ONE_TO_THREE, id, Even)], TypeError, r"no natural default, .* odd"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("hint", "error", "complaint"), DECLARATIONS, ids=[str(row[2]) for row in DECLARATIONS]
)
def test_a_wrong_declaration_names_class_and_field(hint: Any, error: type[Exception], complaint: str) -> None:
    body = {"__annotations__": {"fine": tw.u8, "x": hint}, "__module__": __name__}
    with pytest.raises(error, match=complaint) as caught:
        tw.message(type("Bad", (), body))
    assert str(caught.value).startswith("Bad.x")


def test_a_field_type_that_refuses_its_own_argument_names_class_and_field() -> None:
    source = """
@tw.message
class Level:
    number: tw.u8 = 3
    cells: Annotated[
        bytes,
        tw.data(1_000_000),
    ]
"""
    names = {"tw": tw, "Annotated": Annotated, "__name__": "level"}
    with pytest.raises(
        ValueError, match=r"^Level.cells: max_bytes must be 0 to 65535, not 1000000: .* chunk"
    ):
        exec(compile(source, "level.py", "exec", dont_inherit=True), names)
    with pytest.raises(ValueError, match=r"^Level.cells: "):
        exec(compile("from __future__ import annotations\n" + source, "level.py", "exec"), names)
    with pytest.raises(ValueError, match=r"^max_bytes must be"):
        tw.data(1_000_000)


def test_what_can_be_registered_and_converted_is_said() -> None:
    def nothing(value: Any) -> Any:
        return value

    for class_, complaint in [
        (7, "takes a class"),
        (int, "is a type that fields already support"),
        (Chat, "already support"),
    ]:
        with pytest.raises(TypeError, match=complaint):
            tw.fields.register(class_, tw.u8, nothing, nothing)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"from_wire must be callable, not int"):
        tw.fields.converted(tw.u8, nothing, 7)  # type: ignore[arg-type]


def test_frozen_messages_are_keys_and_can_be_ordered() -> None:
    assert {Cell(1, 2): 3}[Cell(1, 2)] == 3
    assert Cell(1, 2) < Cell(2, 0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Cell(1, 2).x = 3  # type: ignore[misc]
    with pytest.raises(TypeError, match="can't be combined"):
        tw.message(block=True, frozen=True)(type("Both", (), {}))  # type: ignore[call-overload]


def test_the_natural_default_can_be_written() -> None:
    @tw.message(kw_only=True)
    class Shown:
        place: Annotated[Vector, tw.vec2(-8, 8, 1)] = tw.default()
        hp: Annotated[int, tw.ranged(5, 9)] = tw.default()
        tag: tw.u8 = dataclasses.field(default=tw.default(), repr=False)
        names: Annotated[set[Name], tw.up_to(3)] = dataclasses.field(default=tw.default(), compare=False)
        fallback: Annotated[int, tw.ranged(0, 9)] = 7

    one = Shown()
    assert (one.place, one.hp, one.tag, one.names, one.fallback) == (Vector(), 5, 0, set(), 7)
    assert one.names is not Shown().names
    with pytest.raises(TypeError):
        Shown(Vector())  # type: ignore[misc]


@tw.message
class Fragile:
    number: Annotated[Even, tw.fields.converted(tw.u8, lambda even: even.number, Even)] = dataclasses.field(
        default_factory=lambda: Even(0)
    )


@tw.message
class Raw:
    number: tw.u8


@pytest.mark.parametrize("columns", [False, True])
def test_a_from_wire_that_raises_ends_that_peer_and_not_the_tick(
    columns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    protocol = tw.Protocol(1, [Fragile, Chat])
    network, server, client = connected_pair(protocol)
    if columns:
        server.close()
        server = tw.Server("127.0.0.1:40001", protocol, network=network, tuning=tw.Tuning(columns=[Fragile]))
        client = tw.Client.connect(server.address, protocol, network=network)
        advance(network, server, client, seconds=1)
    other = tw.Client.connect(server.address, protocol, network=network)
    advance(network, server, client, other, seconds=1)
    odd = Fragile(Even(0))
    odd.number.number = 3
    client.send(Chat("before"))
    client.send(odd)
    other.send(Chat("other"))
    with caplog.at_level(logging.INFO, "tickwire"):
        at_server, at_client, _ = advance(network, server, client, other, seconds=1)
    assert Chat("other") in [message for _, message in at_server.messages]
    if columns:
        # Columns hold unconverted values, and make no objects.
        assert client.connected
        assert server.counters["messages.raised"] == 0
        return
    reasons = [event.reason for event in at_client.events if isinstance(event, tw.Disconnected)]
    assert reasons == [tw.DisconnectReason.PROTOCOL_VIOLATION]
    assert other.connected
    assert server.counters["messages.raised"] == 1
    assert "LookupError: 3 is odd" in caplog.text
    assert "Traceback (most recent call last):" in caplog.text
    assert f'File "{__file__}", line ' in caplog.text
    assert "while reading Fragile.number" in caplog.text


def test_a_to_wire_that_raises_is_a_field_error_at_the_call() -> None:
    @tw.message
    class Stubborn:
        number: Annotated[Even, tw.fields.converted(tw.u8, lambda even: even.number, Even)]

    protocol = tw.Protocol(1, [Stubborn])
    broken = Stubborn(Even(0))
    del broken.number.number
    with pytest.raises(tw.FieldError, match="Stubborn.number = .*: must be what to_wire takes") as caught:
        protocol.encode(broken)
    assert isinstance(caught.value.__cause__, AttributeError)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_passes_to_wire(error: type[BaseException]) -> None:
    def interrupted(_: Even) -> int:
        raise error

    @tw.message
    class Stubborn:
        numbers: Annotated[list[Annotated[Even, tw.fields.converted(tw.u8, interrupted, Even)]], tw.up_to(2)]

    with pytest.raises(error):
        tw.Protocol(1, [Stubborn]).encode(Stubborn([Even(0)]))


def test_the_description_tells_wires_apart() -> None:
    def hash_of(hint: Any) -> int:
        body = {"__annotations__": {"x": hint}, "__module__": __name__}
        return tw.Protocol(1, [tw.message(type("One", (), body))]).hash

    hints = [
        Annotated[list[tw.u8], tw.up_to(3)],
        Annotated[set[tw.u8], tw.up_to(3)],
        Annotated[dict[tw.u8, tw.u8], tw.up_to(3)],
        Chat | Move,
        Move | Chat,
        tuple[tw.u8, tw.u8],
    ]
    assert len({hash_of(hint) for hint in hints}) == len(hints)
    same = [Annotated[tuple[tw.u8, ...], tw.up_to(3)], Annotated[list[tw.u8], tw.up_to(3)]]
    assert len({hash_of(hint) for hint in same}) == 1
