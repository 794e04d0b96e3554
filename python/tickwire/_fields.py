"""Declarations of message fields.

Use an alias for a plain type. A type checker sees ``int``, and Tickwire sees the number of bits::

    hits: tw.u16

Use a function in ``Annotated`` for a type with a range::

    health: Annotated[int, tw.ranged(0, 100)]
    aim: Annotated[float, tw.quantized(-1, 1, 1 / 256)]

You can also use Python's own types::

    state: State  # an enum.Enum
    target: tw.u16 | None
    weapon: Weapon  # another message
    squad: Annotated[list[Member], tw.up_to(8)]

``docs/fields.md`` lists all declarations, with their bits.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, NoReturn, TypeAlias, TypeVar

from tickwire._checks import check_callable
from tickwire._core import (
    FieldType,
    angle,
    bits,
    boolean,
    data,
    fixed,
    flags,
    float32,
    float64,
    network_id,
    pressed,
    quantized,
    quaternion,
    ranged,
    raw,
    signed_quaternion,
    text,
    transform,
    uint128,
    unit_vector,
    vec2,
    vec3,
    wide_text,
)

__all__ = [
    "FieldType",
    "Quaternion",
    "Transform",
    "Vec2",
    "Vec3",
    "angle",
    "angular",
    "bits",
    "common",
    "converted",
    "data",
    "default",
    "except_owner",
    "f32",
    "f64",
    "fixed",
    "flags",
    "hermite",
    "i8",
    "i16",
    "i32",
    "i64",
    "initial",
    "linear",
    "network_id",
    "owner_only",
    "press",
    "quantized",
    "quaternion",
    "ranged",
    "raw",
    "register",
    "signed_quaternion",
    "slerp",
    "sparse",
    "step",
    "text",
    "threshold",
    "transform",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "unit_vector",
    "up_to",
    "vec2",
    "vec3",
    "when",
    "wide_text",
]

u8: TypeAlias = Annotated[int, bits(8)]
"""An unsigned integer in 8 bits."""
u16: TypeAlias = Annotated[int, bits(16)]
"""An unsigned integer in 16 bits."""
u32: TypeAlias = Annotated[int, bits(32)]
"""An unsigned integer in 32 bits."""
u64: TypeAlias = Annotated[int, bits(64)]
"""An unsigned integer in 64 bits."""
u128: TypeAlias = Annotated[int, uint128()]
"""An unsigned integer in 128 bits."""

i8: TypeAlias = Annotated[int, ranged(-(2**7), 2**7 - 1)]
"""A signed integer, in 8 bits."""
i16: TypeAlias = Annotated[int, ranged(-(2**15), 2**15 - 1)]
"""A signed integer, in 16 bits."""
i32: TypeAlias = Annotated[int, ranged(-(2**31), 2**31 - 1)]
"""A signed integer, in 32 bits."""
i64: TypeAlias = Annotated[int, ranged(-(2**63), 2**63 - 1)]
"""A signed integer, in 64 bits."""

f32: TypeAlias = Annotated[float, float32()]
"""A float in single precision, 32 bits."""
f64: TypeAlias = Annotated[float, float64()]
"""A float in double precision, 64 bits. A plain ``float`` is the same."""

press: TypeAlias = Annotated[bool, pressed()]
"""A key press in an input, in 1 bit: a bool that the server reads as true in one tick only.

A press in a frame without a tick is sent with the next input. If one input is used for several ticks, because
a frame has several ticks or the next input is missing, the press counts only in the first of these ticks.
A press must be a field of the input, of a nested message or of a tuple. It can't be optional, or in a list.
"""

Vec2: TypeAlias = tuple[float, float]
"""A pair x, y; :func:`vec2` gives the range."""
Vec3: TypeAlias = tuple[float, float, float]
"""A triple x, y, z; :func:`vec3` gives the range, or :func:`unit_vector` declares a direction."""
Quaternion: TypeAlias = tuple[float, float, float, float]
"""A rotation x, y, z, w; :func:`quaternion` or :func:`signed_quaternion` gives the precision."""


class Transform(NamedTuple):
    """A translation, a rotation and a scale along each axis."""

    translation: Vec3 = (0.0, 0.0, 0.0)
    rotation: Quaternion = (0.0, 0.0, 0.0, 1.0)
    scale: Vec3 = (1.0, 1.0, 1.0)


class Bound:
    """A part of ``Annotated`` that adds a bound to a type, such as the maximum length of a list."""

    def __init__(self, name: str, *arguments: Any) -> None:
        self.name = name
        self.arguments = arguments

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.arguments))})"


def up_to(most: int, /) -> Bound:
    """Sets the maximum number of items of a list, tuple, set or dict: ``Annotated[list[tw.u8],
    tw.up_to(16)]``.
    """
    return Bound("up_to", most)


def sparse(slots: int, /) -> Bound:
    """Sets the number of slots of a sparse array. A dict holds the occupied slots.

    ``Annotated[dict[int, Item], tw.fields.sparse(64)]``
    """
    return Bound("sparse", slots)


def common(value: Any, other: Any = None, /) -> Bound:
    """Sets one or two frequent values of a field. A single frequent value is sent in 1 bit, and each of two
    frequent values in 2 bits.

    For example, ``Annotated[tw.u16, tw.fields.common(0)]`` sends 0 in 1 bit. All other values take 1 bit more
    than usual. ``value`` is also the field's default.
    """
    return Bound("common", value) if other is None else Bound("common", value, other)


class _Natural:
    def __repr__(self) -> str:
        return "tickwire.default()"


NATURAL: Final = _Natural()


class _Constant:
    """A part of ``Annotated`` that is used without a call."""

    if not TYPE_CHECKING:

        def __call__(self, *_: object, **__: object) -> NoReturn:
            raise TypeError(f"{self} must be used as it is, without arguments")


def default() -> Any:
    """Gives a field its type's natural default, such as zero, an empty text or an enum's first member:
    ``stance: Stance = tw.default()``.

    A field without a default has the natural default anyway. But type checkers don't know this: they require
    a value for such a field in each constructor call.
    """
    return NATURAL


class Condition(_Constant, Bound):
    """A condition in ``Annotated`` that decides which clients get a property of a ghost: :data:`initial`,
    :data:`owner_only` or :data:`except_owner`.
    """

    def __repr__(self) -> str:
        return self.name


initial: Final = Condition("initial")
"""The property is sent when the ghost is created. Later changes aren't sent."""
owner_only: Final = Condition("owner_only")
"""Only the ghost's owner gets the property."""
except_owner: Final = Condition("except_owner")
"""All clients except the ghost's owner get the property."""


class When(Condition):
    """A condition that the game sets itself: see :func:`when`."""

    def __init__(self, condition: str) -> None:
        super().__init__("when", condition)
        self.condition = condition

    def __repr__(self) -> str:
        return f"when({self.condition!r})"


def when(name: str, /) -> When:
    """Sends a ghost's property only to the clients that the game selects for this ghost.
    :meth:`World.set_condition_hook` sets a function that selects, in each flush, the clients for all ghosts
    of the class. :meth:`World.set_condition` selects the ghosts for one client.

    A class can have only one such condition, which can apply to several properties. Other properties can
    have ``owner_only`` or ``except_owner``.

    Args:
        name: your name for the condition, such as ``"team"``.

    Raises:
        TypeError, ValueError: the name isn't a string, or is empty.
    """
    if not isinstance(name, str):
        raise TypeError(f"when() takes the name of a condition, not {type(name).__name__}")
    if not name:
        raise ValueError("when() takes the name of a condition, not an empty one")
    return When(name)


class ShownAs(_Constant, Bound):
    """A rule in ``Annotated`` for showing a property between two states of a ghost: :data:`step`,
    :data:`linear`, :data:`slerp`, :data:`angular`, :func:`hermite` or :func:`threshold`. Only
    :func:`threshold` changes what is sent.
    """

    def __init__(
        self, name: str, velocity: str | None = None, numbers: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        super().__init__(name, *(() if velocity is None else (velocity,)))
        self.velocity = velocity
        self.numbers = numbers

    def __repr__(self) -> str:
        return super().__repr__() if self.arguments else self.name


class Angular(ShownAs):
    """The rule :data:`angular`. Call it with a range for plain numbers."""

    def __call__(self, lo: float, hi: float, /) -> ShownAs:
        """Returns the rule for a plain number from ``lo`` to ``hi`` on a circle. ``hi`` is the same angle
        as ``lo``.
        """
        lo, hi = _number("lo", lo), _number("hi", hi)
        if not lo < hi:
            raise ValueError(f"hi must be above lo ({lo:g}), not {hi:g}")
        return ShownAs("angular", numbers=(lo, hi))


step: Final = ShownAs("step")
"""The property keeps its value until the tick of its next state. This is the default for integers, bools,
enumerations and all types with parts, such as lists.
"""
linear: Final = ShownAs("linear")
"""The property moves on a line to its next state (linear interpolation). This is the default for floats and
vectors. Integers are rounded.
"""
slerp: Final = ShownAs("slerp")
"""The property rotates to its next state along the shortest path, at constant speed. This is the default
for quaternions.
"""
angular: Final = Angular("angular")
"""The property turns to its next state in the shorter direction. This is the default for an :func:`angle`.
For a plain number, give the range of the circle: ``tw.world.angular(-180, 180)``.
"""


def hermite(velocity: str, /) -> ShownAs:
    """Shows the property on a cubic curve through two states, with the velocities of both states. Velocities
    are converted to units per tick with the protocol's ``tick_rate``, or 60 if it has none.

    Args:
        velocity: the name of the property that holds the velocity, in units per second.

    Raises:
        TypeError: ``velocity`` isn't a name.
    """
    return ShownAs("hermite", _name(velocity))


def threshold(distance: float, /, *, velocity: str) -> ShownAs:
    """Uses dead reckoning: clients extrapolate the property by its velocity. The property and its
    velocity are sent only if the true value is further than ``distance`` from the extrapolated value.
    The velocity must be sent to the same clients, and have no threshold itself. Velocities are
    converted to units per tick with the protocol's ``tick_rate``, or 60 if it has none.

    Args:
        distance: the largest error that clients may show, in the property's units.
        velocity: the name of the property that holds the velocity, in units per second.

    Raises:
        TypeError, ValueError: ``velocity`` isn't a name, or a number is out of its bounds.
    """
    distance = _number("distance", distance)
    if not distance >= 0.0:
        raise ValueError(f"distance must be at least 0, not {distance}")
    return ShownAs("threshold", _name(velocity), (distance, 0.0))


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    if not -sys.float_info.max <= value <= sys.float_info.max:
        raise ValueError(f"{name} must be a finite number, not {value}")
    return float(value)


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"velocity must be the name of a property, not {value!r}")
    return value


_V = TypeVar("_V")


class Converter:
    """A conversion in ``Annotated`` to one of the game's own types: see :func:`converted`."""

    def __init__(self, wire: Any, to_wire: Callable[[Any], Any], from_wire: Callable[[Any], Any]) -> None:
        for name, function in (("to_wire", to_wire), ("from_wire", from_wire)):
            check_callable(name, function, 1)
        self.wire = wire
        self.to_wire = to_wire
        self.from_wire = from_wire

    def __repr__(self) -> str:
        return f"converted({self.wire})"


def converted(wire: Any, to_wire: Callable[[Any], Any], from_wire: Callable[[Any], Any], /) -> Converter:
    """Sends objects of your own type. ``to_wire`` converts an object to a value of the annotation ``wire``,
    and ``from_wire`` converts the value back.

    For example, ``Annotated[Money, tw.fields.converted(tw.u32, lambda money: money.cents, Money)]`` sends a
    ``Money`` as its cents. If ``to_wire`` raises, the sending call raises :class:`FieldError`. ``from_wire``
    must expect any value that ``wire`` allows, because the sender chooses the value. If ``from_wire`` raises,
    the sender's connection ends.
    """
    return Converter(wire, to_wire, from_wire)


REGISTERED: dict[type, Converter] = {}


def register(
    class_: type[_V], wire: Any, to_wire: Callable[[_V], Any], from_wire: Callable[[Any], _V], /
) -> None:
    """Lets all fields use a class of yours, as :func:`converted` does for one field.

    In ``tw.fields.register(Vector2, tw.Vec2, tuple, Vector2)``, ``wire`` is ``tw.Vec2``, without a bound. So
    each field must give a bound, as in ``Annotated[Vector2, tw.vec2(-100, 100, 1 / 64)]``. If ``wire`` has a
    bound, ``Vector2`` alone is enough.

    Raises:
        TypeError: ``class_`` isn't a class, or fields support it already.
    """
    if not isinstance(class_, type):
        raise TypeError(f"register() takes a class, not {class_!r}")
    if class_ in BARE or class_ in MUST_DECLARE or hasattr(class_, "__tickwire_schema__"):
        raise TypeError(f"{class_.__name__} is a type that fields already support")
    REGISTERED[class_] = Converter(wire, to_wire, from_wire)


def converter(class_: type) -> Converter | None:
    """Returns the converter of a registered class or of one of Python's own classes; None if the class has
    none.
    """
    if (registered := REGISTERED.get(class_)) is None and class_.__module__ in ("datetime", "uuid"):
        own: dict[type, Converter] = import_module("tickwire._converters").CONVERTERS
        return own.get(class_)
    return registered


def place_of_declaration() -> str:
    """Returns the class and field that the caller is declaring, for errors, such as ``Chat.text: ``. Returns
    an empty string if the caller declares no field.
    """
    frame = sys._getframe(1)
    code = frame.f_code
    in_class = "__module__" in frame.f_locals and "__qualname__" in frame.f_locals
    if not in_class and code.co_name != "__annotate__":
        return ""
    name = code.co_qualname.removesuffix(".__annotate__").rpartition(".")[2]
    before = None
    for instruction in dis.get_instructions(code):
        # An annotation is stored under the field's name once it is known.
        if instruction.offset > frame.f_lasti and instruction.opname == "STORE_SUBSCR":
            return f"{name}.{before}: " if isinstance(before, str) else f"{name}: "
        before = instruction.argval
    return f"{name}: "


# The meaning of bare annotations. The types left out have no bound that fits every game.
BARE: dict[type, FieldType] = {bool: boolean(), float: float64()}
# How many numbers the tuples of these have.
NUMBERS = {"vec2": 2, "vec3": 3, "unit_vector": 3, "quaternion": 4}
_PROPERTIES = "the properties of ghosts (@tickwire.ghost)"
BOUNDED = {
    "Ref": _PROPERTIES,
    "up_to": "lists, tuples, sets and dicts",
    "sparse": "dict[int, ...], whose keys are slots",
    "initial": _PROPERTIES,
    "owner_only": _PROPERTIES,
    "except_owner": _PROPERTIES,
    "when": _PROPERTIES,
    "step": _PROPERTIES,
    "linear": _PROPERTIES,
    "slerp": _PROPERTIES,
    "angular": _PROPERTIES,
    "hermite": _PROPERTIES,
    "threshold": _PROPERTIES,
}
MUST_DECLARE: dict[type, str] = {
    int: "its bits (tw.u16, tw.bits(12)) or its range (tw.ranged(0, 100))",
    str: "its length (tw.text(200), tw.fields.wide_text(100))",
    bytes: "its length (tw.data(200))",
    tuple: "its numbers (tw.vec2, tw.vec3, tw.fields.unit_vector, tw.fields.quaternion), or have a "
    "field for each part (tuple[tw.f32, tw.f32])",
    Transform: "the range of its translations (tw.fields.transform(-100, 100, 1 / 64))",
    list: "its maximum length, such as Annotated[list[...], tw.up_to(16)]",
    set: "its maximum length, such as Annotated[set[...], tw.up_to(16)]",
    frozenset: "its maximum length, such as Annotated[frozenset[...], tw.up_to(16)]",
    dict: "its maximum length, such as Annotated[dict[...], tw.up_to(16)], or its slots, such as "
    "Annotated[dict[int, ...], tw.fields.sparse(64)]",
}
