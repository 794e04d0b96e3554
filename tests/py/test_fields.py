"""Every kind of field: written values read back, errors name values out of bounds, and sizes hold."""

from __future__ import annotations

import enum
import math
from typing import Annotated, Any

import pytest
import tickwire as tw
from hypothesis import given
from hypothesis import strategies as st


class State(enum.IntEnum):
    DEAD = -1
    IDLE = 0
    RUNNING = 7


class Team(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Buttons(enum.IntFlag):
    FIRE = 1
    JUMP = 2
    DUCK = 4


class Marks(enum.Flag):
    A = 1
    B = 2
    C = 4
    D = 8
    E = 16
    F = 32
    G = 64
    H = 128
    I = 256  # noqa: E741


@tw.message
class Weapon:
    ammo: Annotated[int, tw.ranged(0, 30)]
    name: Annotated[str, tw.text(12)]


@tw.message
class Member:
    hp: Annotated[int, tw.ranged(0, 100), tw.fields.common(100, 0)]
    weapon: Weapon
    path: Annotated[list[Annotated[tw.Vec2, tw.vec2(-10, 10, 0.25)]], tw.up_to(4)]


def wrap(hint: Any) -> tuple[tw.Protocol, Any]:
    """A protocol of one message with one field ``x``."""
    made = tw.message(type("One", (), {"__annotations__": {"x": hint}}))
    return tw.Protocol(1, [made]), made


def through(hint: Any, value: Any) -> Any:
    """The value after it was written and read; also checks that it takes the bits that were promised."""
    protocol, made = wrap(hint)
    message = made(value)
    data = protocol.encode(message)
    schema = made.__tickwire_schema__
    assert schema.min_bits <= protocol.measure(message) <= schema.max_bits
    assert len(data) <= -(-protocol.measure(message) // 8)
    return protocol.decode(data).x


def bits(hint: Any, value: Any) -> int:
    protocol, made = wrap(hint)
    return protocol.measure(made(value))


def refusal(hint: Any, value: Any) -> str:
    protocol, made = wrap(hint)
    with pytest.raises(tw.FieldError) as caught:
        protocol.encode(made(value))
    return str(caught.value)


def turn(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """The angle between two rotations, in degrees."""
    length = math.hypot(*a)
    near = [math.dist([c / length for c in a], [sign * c for c in b]) for sign in (1, -1)]
    return math.degrees(4 * math.asin(min(1.0, min(near) / 2)))


FINITE = st.floats(-1e6, 1e6)
QUATERNIONS = st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: math.hypot(*q) > 1e-3)
DIRECTIONS = st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda v: math.hypot(*v) > 1e-3)
YAW = Annotated[float, tw.angle(0, 360, 0.1)]
POSITION = Annotated[tw.Vec3, tw.vec3(-2048, 2047, 1 / 512)]
NOTHING = Annotated[int, tw.ranged(1, 1)]
POSE = Annotated[tw.fields.Transform, tw.fields.transform(-100, 100, 1 / 8)]


@given(FINITE)
def test_an_angle_comes_round(yaw: float) -> None:
    read = through(YAW, yaw)
    assert 0 <= read < 360
    apart = (read - yaw) % 360
    assert min(apart, 360 - apart) <= 0.05 + 1e-6


@given(st.tuples(*[st.floats(-2048, 2047)] * 3))
def test_a_position_is_within_half_a_step(position: tuple[float, float, float]) -> None:
    read = through(POSITION, position)
    assert all(abs(a - b) <= 1 / 1024 for a, b in zip(read, position, strict=True))
    assert through(POSITION, read) == read


@given(QUATERNIONS)
def test_rotations_keep_their_stated_angle(rotation: tuple[float, ...]) -> None:
    assert turn(rotation, through(Annotated[tw.fields.Quaternion, tw.fields.quaternion()], rotation)) < 0.56
    assert (
        turn(rotation, through(Annotated[tw.fields.Quaternion, tw.fields.quaternion(16)], rotation)) < 0.0045
    )
    assert (
        turn(rotation, through(Annotated[tw.fields.Quaternion, tw.fields.signed_quaternion()], rotation))
        < 0.84
    )


@given(DIRECTIONS)
def test_a_unit_vector_keeps_its_stated_angle(direction: tuple[float, float, float]) -> None:
    read = through(Annotated[tw.Vec3, tw.fields.unit_vector()], direction)
    length = math.hypot(*direction)
    apart = math.dist([c / length for c in direction], read)
    assert math.degrees(2 * math.asin(apart / 2)) < 0.07
    assert math.hypot(*read) == pytest.approx(1)


@given(
    st.builds(
        tw.fields.Transform, st.tuples(*[st.floats(-100, 100)] * 3), QUATERNIONS, st.tuples(*[FINITE] * 3)
    )
)
def test_a_transform_keeps_its_parts(pose: tw.fields.Transform) -> None:
    read = through(POSE, pose)
    assert isinstance(read, tw.fields.Transform)
    assert all(abs(a - b) <= 1 / 16 for a, b in zip(read.translation, pose.translation, strict=True))
    assert turn(pose.rotation, read.rotation) < 0.56
    assert read.scale == pytest.approx(pose.scale, rel=1e-6)


def test_what_a_transform_does_not_change_costs_a_flag() -> None:
    up = (0.0, 0.0, 0.0, 1.0)
    assert bits(POSE, tw.fields.Transform()) == 1
    assert bits(POSE, tw.fields.Transform((1, 2, 3))) == 1 + 3 * 11 + 2
    assert bits(POSE, tw.fields.Transform((1, 2, 3), up, (2, 2, 2))) == 1 + 3 * 11 + 1 + 2 + 32
    assert bits(POSE, ((1, 2, 3), (0, 0, 1, 0), (2, 2, 1))) == 1 + 3 * 11 + 30 + 2 + 96
    assert through(POSE, tw.fields.Transform()) == tw.fields.Transform()


MEMBERS = st.builds(
    Member,
    st.integers(0, 100),
    st.builds(Weapon, st.integers(0, 30), st.text("abß", max_size=6)),
    st.lists(st.tuples(*[st.integers(-40, 40).map(lambda n: n / 4)] * 2), max_size=4),
)


@pytest.mark.parametrize(
    ("hint", "values"),
    [
        (State, st.sampled_from(State)),
        (Team, st.sampled_from(Team)),
        (Buttons, st.integers(0, 7).map(Buttons)),
        (Marks, st.integers(0, 511).map(Marks)),
        (Annotated[int, tw.flags("fire", "jump")], st.integers(0, 3)),
        (Annotated[int, tw.fields.network_id()], st.integers(0, 65_535)),
        (tw.u16 | None, st.none() | st.integers(0, 65_535)),
        (Team | None, st.none() | st.sampled_from(Team)),
        (Annotated[tw.u16, tw.fields.common(7)], st.just(7) | st.integers(0, 65_535)),
        (Annotated[bool, tw.fields.common(True)], st.booleans()),
        (Annotated[State, tw.fields.common(State.IDLE, State.DEAD)], st.sampled_from(State)),
        (Annotated[list[tw.u8], tw.up_to(5)], st.lists(st.integers(0, 255), max_size=5)),
        (Annotated[list[tw.u8 | None], tw.up_to(5)], st.lists(st.none() | st.integers(0, 255), max_size=5)),
        (
            Annotated[list[Annotated[str, tw.text(5)]], tw.up_to(3)],
            st.lists(st.text("ab", max_size=5), max_size=3),
        ),
        (
            Annotated[dict[int, tw.u8], tw.fields.sparse(20)],
            st.dictionaries(st.integers(0, 19), st.integers(0, 255)),
        ),
        (
            Annotated[dict[int, Member], tw.fields.sparse(9)],
            st.dictionaries(st.integers(0, 8), MEMBERS, max_size=3),
        ),
        (Member, MEMBERS),
        (Annotated[list[Member], tw.up_to(3)] | None, st.none() | st.lists(MEMBERS, max_size=3)),
    ],
    ids=str,
)
def test_what_is_written_is_read(hint: Any, values: st.SearchStrategy[Any]) -> None:
    @given(values)
    def check(value: Any) -> None:
        read = through(hint, value)
        assert read == value
        assert type(read) is type(value)

    check()


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    protocol = tw.Protocol(1, [Everything])
    try:
        message = protocol.decode(data)
    except tw.errors.StreamError:
        return
    again = protocol.decode(protocol.encode(message))
    for name in ("state", "team", "buttons", "marks", "yaw", "target", "squad", "slots"):
        assert getattr(again, name) == getattr(message, name)


@tw.message
class Everything:
    state: State
    team: Annotated[Team, tw.fields.common(Team.BLUE)]
    buttons: Buttons
    marks: Marks
    yaw: YAW
    target: tw.u16 | None
    squad: Annotated[list[Member], tw.up_to(3)]
    slots: Annotated[dict[int, tw.u8], tw.fields.sparse(20)]
    pose: POSE
    facing: Annotated[tw.Vec3, tw.fields.unit_vector()]


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (YAW, 12.0, 12),
        (POSITION, (0, 0, 0), 63),
        (Annotated[tw.fields.Quaternion, tw.fields.quaternion()], (0, 0, 0, 1), 29),
        (Annotated[tw.fields.Quaternion, tw.fields.signed_quaternion()], (0, 0, 0, 1), 49),
        (Annotated[tw.Vec3, tw.fields.unit_vector()], (0, 0, 1), 24),
        (State, State.IDLE, 2),
        (Team, Team.RED, 1),
        (Buttons, Buttons.FIRE, 3),
        (tw.u16 | None, None, 1),
        (tw.u16 | None, 5, 17),
        (Annotated[tw.u16, tw.fields.common(7)], 7, 1),
        (Annotated[tw.u16, tw.fields.common(7)], 8, 17),
        (Annotated[tw.u16, tw.fields.common(7, 9)], 9, 2),
        (Annotated[list[tw.u8], tw.up_to(5)], [1, 2], 3 + 16),
        (Annotated[dict[int, tw.u8], tw.fields.sparse(64)], {63: 1}, 7 + 6 + 8),
        (Annotated[dict[int, tw.u8], tw.fields.sparse(2)], {0: 1, 1: 1}, 2 + 16),
        (Annotated[int, tw.fields.network_id(100)], 5, 7),
    ],
    ids=str,
)
def test_a_field_costs_what_the_page_says(hint: Any, value: Any, expected: int) -> None:
    assert bits(hint, value) == expected


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("hint", "value", "complaint"),
    [
        (YAW, NAN, "One.x = nan: must be a finite number"),
        (YAW, "north", "One.x = 'north' (str): must be a float"),
        (POSITION, (1, 2, 2048), "One.x = (1, 2, 2048): must be -2048 to 2047, and 2048 is not"),
        (POSITION, (1, INF, 0), "One.x = (1, inf, 0): must be a finite number, and inf is not"),
        (POSITION, (1, 2), "One.x = (1, 2): must be 3 numbers, not 2"),
        (POSITION, 5, "One.x = 5 (int): must be a tuple of 3 numbers"),
        (POSITION, (1, "a", 3), "One.x[1] = 'a' (str): must be a float"),
        (
            Annotated[tw.Vec3, tw.fields.unit_vector()],
            (0, 0, 0),
            "One.x = (0, 0, 0): must be a direction with a length above 0",
        ),
        (
            Annotated[tw.Vec3, tw.fields.unit_vector()],
            (0, NAN, 0),
            "One.x = (0, nan, 0): must be a finite number, and NaN is not",
        ),
        (
            Annotated[tw.fields.Quaternion, tw.fields.quaternion()],
            [0, 0, 0, 0],
            "One.x = [0, 0, 0, 0]: must be a direction with a length above 0",
        ),
        (POSE, tw.fields.Transform((1, 2)), "One.x.translation = (1, 2): must be 3 numbers, not 2"),  # type: ignore[arg-type]
        (POSE, (1, 2), "One.x = (1, 2) (tuple): must be a Transform"),
        (State, 0, "One.x = 0 (int): must be a State"),
        (Team, "red", "One.x = 'red' (str): must be a Team"),
        (Buttons, 1, "One.x = 1 (int): must be a Buttons"),
        (Annotated[int, tw.flags("a", "b")], 4, "One.x = 4: must be 0 to 3"),
        (Annotated[int, tw.fields.network_id(100)], 101, "One.x = 101: must be 0 to 100"),
        (tw.u8 | None, 256, "One.x = 256: must be 0 to 255"),
        (Annotated[tw.u8, tw.fields.common(0)], 256, "One.x = 256: must be 0 to 255"),
        (
            Annotated[list[tw.u8], tw.up_to(2)],
            [1, 2, 3],
            "One.x = [1, 2, 3]: must be at most 2 items, not 3",
        ),
        (Annotated[list[tw.u8], tw.up_to(2)], [1, -2], "One.x[1] = -2: must be 0 to 255"),
        (Annotated[list[tw.u8], tw.up_to(2)], 5, "One.x = 5 (int): must be a list"),
        (Annotated[dict[int, tw.u8], tw.fields.sparse(4)], {4: 0}, "One.x (slot) = 4: must be 0 to 3"),
        (
            Annotated[dict[int, tw.u8], tw.fields.sparse(4)],
            {"a": 0},
            "One.x (slot) = 'a' (str): must be an int",
        ),
        (Annotated[dict[int, tw.u8], tw.fields.sparse(4)], {2: 300}, "One.x[2] = 300: must be 0 to 255"),
        (Annotated[dict[int, tw.u8], tw.fields.sparse(4)], [1], "One.x = [1] (list): must be a dict"),
        (Member, Weapon(), "must be a Member"),
        (Member, Member(5, Weapon(99)), "One.x.weapon.ammo = 99: must be 0 to 30"),
        (
            Annotated[list[Member], tw.up_to(2)],
            [Member(), Member(path=[(0, 0), (11, 0)])],
            "One.x[1].path[1] = (11, 0): must be -10 to 10, and 11 is not",
        ),
    ],
    ids=lambda part: str(part)[:40],
)
def test_a_value_out_of_bounds_is_named_with_its_place(hint: Any, value: Any, complaint: str) -> None:
    assert refusal(hint, value).endswith(complaint)


@pytest.mark.parametrize(
    ("hint", "error", "complaint"),
    [
        (list[tw.u8], TypeError, r"One.x: list\[.*\] must declare its maximum length"),
        (dict[int, tw.u8], TypeError, r"One.x: dict\[.*\] must declare its maximum length"),
        (tuple[float, float], TypeError, r"One.x: tuple.* must declare its numbers"),
        (tw.fields.Transform, TypeError, r"One.x: Transform must declare the range"),
        (Annotated[list[int], tw.up_to(3)], TypeError, r"One.x\[\]: int must declare its bits"),
        (
            Annotated[dict[str, tw.u8], tw.fields.sparse(3)],
            TypeError,
            r"One.x: sparse\(3\) is for dict\[int, ...\], .*; dict\[str, .*\] takes tw.up_to\(3\)",
        ),
        (Annotated[int, tw.up_to(3)], TypeError, r"One.x: up_to\(3\) is for lists, .*; int must declare"),
        (Annotated[bool, tw.up_to(3)], TypeError, r"One.x: up_to\(3\) is for lists, .*, not for bool"),
        (tw.u8 | tw.u16 | None, TypeError, r"One.x: a union must have only classes made by @message"),
        (
            Annotated[float, tw.vec3(0, 1, 0.5)],
            TypeError,
            r"One.x: vec3\(0, 1, 0.5\) is for tuple, not",
        ),
        (Annotated[tw.u8, tw.fields.common(256)], ValueError, r"One.x: .*256: must be 0 to 255"),
        (Annotated[tw.u8, tw.fields.common(1, 1)], ValueError, r"One.x: .*one or two different values"),
        (Annotated[str, tw.text(5), tw.fields.common("")], ValueError, r"One.x: .*always take the same bits"),
        (
            Annotated[list[Annotated[int, tw.ranged(1, 1)]], tw.up_to(3)],
            ValueError,
            r"One.x: .*at least one bit",
        ),
        (Annotated[list[tw.u8], tw.up_to(65_536)], ValueError, r"One.x: up_to must be 0 to 65535, not 65536"),
        (Annotated[list[tw.u64], tw.up_to(65_000)], ValueError, r"One.x: .*full lists .* not 520000"),
        (
            Annotated[list[tw.u8], tw.up_to(3), tw.up_to(4)],
            TypeError,
            r"up_to\(3\) and up_to\(4\) contradict",
        ),
        (enum.Enum("Empty", []), TypeError, r"One.x: Empty must have at least one member"),
        (
            enum.IntFlag("Holes", {"A": 1, "B": 4}),
            TypeError,
            r"One.x: Holes must have the flags 1, 2, 4",
        ),
    ],
    ids=lambda part: str(part)[:40],
)
def test_a_mistaken_declaration_is_named(hint: Any, error: type[Exception], complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        wrap(hint)


def test_parameters_are_checked_where_they_are_given() -> None:
    for call, complaint in [
        (lambda: tw.angle(0, 360, 0), "not 0 to 360 in steps of 0"),
        (lambda: tw.vec3(1, 0, 0.1), r"vec3\(1, 0, 0.1\): .* not 1 to 0"),
        (lambda: tw.fields.quaternion(17), r"quaternion\(17\): a component must take 4 to 16 bits, not 17"),
        (lambda: tw.fields.unit_vector(3), "a component must take 4 to 16 bits, not 3"),
        (
            lambda: tw.fields.transform(1, 2, 0.5),
            "0 must be one of the steps, and is none of 1 to 2 in steps of 0.5",
        ),
        (lambda: tw.flags(), "flags must have 1 to 64 names, not 0"),
        (lambda: tw.flags("a", "a"), "a appears twice"),
    ]:
        with pytest.raises(ValueError, match=complaint):
            call()


def test_a_message_cannot_hold_itself() -> None:
    with pytest.raises(TypeError, match=r"Tree.child: a message can't contain itself"):

        @tw.message
        class Tree:
            child: Tree | None


def test_every_field_has_its_natural_default() -> None:
    assert Everything() == Everything(
        State.DEAD, Team.BLUE, Buttons(0), Marks(0), 0.0, None, [], {}, tw.fields.Transform(), (0.0, 0.0, 1.0)
    )
    first, second = Everything(), Everything()
    assert first.squad is not second.squad
    assert first.slots is not second.slots
    assert Member().weapon is not Member().weapon
    assert Member().hp == 100


def test_vectors_are_taken_from_anything_with_an_order() -> None:
    assert through(POSITION, [1, 2, 3]) == (1.0, 2.0, 3.0)
    assert through(POSITION, dict.fromkeys((1, 2, 3))) == (1.0, 2.0, 3.0)


def test_the_protocol_hash_knows_the_new_fields() -> None:
    rotations = (tw.fields.quaternion(), tw.fields.quaternion(8), tw.fields.signed_quaternion())
    hints = [
        *(State, Team, Buttons, Marks, Member, Weapon, tw.u16 | None, tw.u16, YAW, POSITION, POSE),
        *(Annotated[tw.u16, tw.fields.common(n)] for n in (1, 2)),
        *(Annotated[list[tw.u16], tw.up_to(n)] for n in (1, 2)),
        *(Annotated[dict[int, tw.u16], tw.fields.sparse(n)] for n in (1, 2)),
        *(Annotated[tw.fields.Quaternion, kind] for kind in rotations),
    ]
    assert len({wrap(hint)[0].hash for hint in hints}) == len(hints)


def test_a_list_that_changes_while_it_is_written_is_written_as_it_was() -> None:
    class Sly:
        def __float__(self) -> float:
            items.append(1.0)
            return 0.5

    items: list[Any] = [Sly(), 0.25]
    protocol, made = wrap(Annotated[list[tw.f32], tw.up_to(2)])
    assert protocol.decode(protocol.encode(made(items))).x == [0.5, 0.25]
