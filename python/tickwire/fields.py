"""How the fields of a message are declared.

Aliases for the plain types, so that a type checker sees ``int`` and Tickwire sees a width::

    hits: tw.u16

and functions for those with a range, used in ``Annotated``::

    health: Annotated[int, tw.ranged(0, 100)]
    aim: Annotated[float, tw.quantized(-1, 1, 1 / 256)]
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from tickwire._core import (
    FieldType,
    bits,
    boolean,
    data,
    fixed,
    float32,
    float64,
    quantized,
    ranged,
    text,
    uint128,
    wide_text,
)

__all__ = [
    "FieldType",
    "bits",
    "data",
    "f32",
    "f64",
    "fixed",
    "i8",
    "i16",
    "i32",
    "i64",
    "quantized",
    "ranged",
    "text",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "wide_text",
]

u8: TypeAlias = Annotated[int, bits(8)]
u16: TypeAlias = Annotated[int, bits(16)]
u32: TypeAlias = Annotated[int, bits(32)]
u64: TypeAlias = Annotated[int, bits(64)]
u128: TypeAlias = Annotated[int, uint128()]

i8: TypeAlias = Annotated[int, ranged(-(2**7), 2**7 - 1)]
i16: TypeAlias = Annotated[int, ranged(-(2**15), 2**15 - 1)]
i32: TypeAlias = Annotated[int, ranged(-(2**31), 2**31 - 1)]
i64: TypeAlias = Annotated[int, ranged(-(2**63), 2**63 - 1)]

f32: TypeAlias = Annotated[float, float32()]
f64: TypeAlias = Annotated[float, float64()]

# What a bare annotation means. The types left out have no bound that fits every game.
BARE: dict[type, FieldType] = {bool: boolean(), float: float64()}
MUST_SAY: dict[type, str] = {
    int: "how many bits (tw.u16, tw.bits(12)) or which range (tw.ranged(0, 100))",
    str: "how long it may be (tw.text(200), tw.wide_text(100))",
    bytes: "how long it may be (tw.data(200))",
}
