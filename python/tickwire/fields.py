"""How the fields of a message are declared.

Aliases for the plain types, so that a type checker sees ``int`` and Tickwire sees a width::

    hits: tw.u16

functions for those with a range, used in ``Annotated``::

    health: Annotated[int, tw.ranged(0, 100)]
    aim: Annotated[float, tw.quantized(-1, 1, 1 / 256)]

and what Python has a type for already::

    state: State  # an enum.Enum
    target: tw.u16 | None
    weapon: Weapon  # another message
    squad: Annotated[list[Member], tw.up_to(8)]

``docs/fields.md`` has them all, with what they cost.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeAlias

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
    "bits",
    "common",
    "data",
    "f32",
    "f64",
    "fixed",
    "flags",
    "i8",
    "i16",
    "i32",
    "i64",
    "network_id",
    "quantized",
    "quaternion",
    "ranged",
    "raw",
    "signed_quaternion",
    "sparse",
    "text",
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
    "wide_text",
]

u8: TypeAlias = Annotated[int, bits(8)]
"""An integer from 0, in 8 bits."""
u16: TypeAlias = Annotated[int, bits(16)]
"""An integer from 0, in 16 bits."""
u32: TypeAlias = Annotated[int, bits(32)]
"""An integer from 0, in 32 bits."""
u64: TypeAlias = Annotated[int, bits(64)]
"""An integer from 0, in 64 bits."""
u128: TypeAlias = Annotated[int, uint128()]
"""An integer from 0, in 128 bits."""

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
"""A float in double precision, 64 bits: what a plain ``float`` is too."""

Vec2: TypeAlias = tuple[float, float]
"""x, y; its range is said by :func:`vec2`."""
Vec3: TypeAlias = tuple[float, float, float]
"""x, y, z; its range is said by :func:`vec3`, or it is a :func:`unit_vector`."""
Quaternion: TypeAlias = tuple[float, float, float, float]
"""x, y, z, w; how exact is said by :func:`quaternion` or :func:`signed_quaternion`."""


class Transform(NamedTuple):
    """A translation, a rotation and a scale along each axis."""

    translation: Vec3 = (0.0, 0.0, 0.0)
    rotation: Quaternion = (0.0, 0.0, 0.0, 1.0)
    scale: Vec3 = (1.0, 1.0, 1.0)


class Bound:
    """What ``Annotated`` says of a list, a dict or a field besides its type."""

    def __init__(self, name: str, *arguments: Any) -> None:
        self.name = name
        self.arguments = arguments

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.arguments))})"


def up_to(most: int, /) -> Bound:
    """How many items a list has at most: ``Annotated[list[tw.u8], tw.up_to(16)]``."""
    return Bound("up_to", most)


def sparse(slots: int, /) -> Bound:
    """How many slots a sparse array has, of which a dict holds those that are taken.

    ``Annotated[dict[int, Item], tw.sparse(64)]``
    """
    return Bound("sparse", slots)


def common(value: Any, other: Any = None, /) -> Bound:
    """The value that a field has most of the time, for 1 bit; or two of them, for 2 bits each.

    ``Annotated[tw.u16, tw.common(0)]``. Other values cost 1 bit more. It is also the field's default.
    """
    return Bound("common", value) if other is None else Bound("common", value, other)


# What a bare annotation means. The types left out have no bound that fits every game.
BARE: dict[type, FieldType] = {bool: boolean(), float: float64()}
BOUNDED = {"up_to": "list", "sparse": "dict[int, ...]"}
MUST_SAY: dict[type, str] = {
    int: "how many bits (tw.u16, tw.bits(12)) or which range (tw.ranged(0, 100))",
    str: "how long it may be (tw.text(200), tw.wide_text(100))",
    bytes: "how long it may be (tw.data(200))",
    tuple: "what its numbers are (tw.vec2, tw.vec3, tw.unit_vector, tw.quaternion)",
    Transform: "which range its translations have (tw.transform(-100, 100, 1 / 64))",
    list: "how many items it has at most, as Annotated[list[...], tw.up_to(16)]",
    dict: "how many slots it has, as Annotated[dict[int, ...], tw.sparse(64)]",
}
