"""A plain model of messages, bit by bit, in Python integers: what the native code's bytes are compared with.

A `Shape` is a kind of field with random parameters: its annotation, its values, and how one is written.
"""

from __future__ import annotations

import functools
import operator
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args

import tickwire as tw
from hypothesis import reject
from hypothesis import strategies as st


@dataclass
class Bits:
    """A stream, least significant bit first."""

    bits: list[int] = field(default_factory=list)

    def write(self, value: int, count: int) -> None:
        assert 0 <= value < 1 << count
        self.bits.extend(value >> n & 1 for n in range(count))

    def upto(self, value: int, most: int) -> None:
        """An integer from 0 to `most`, in as many bits as that takes."""
        self.write(value, most.bit_length())

    def aligned(self, data: bytes) -> None:
        self.bits.extend([0] * (-len(self.bits) % 8))
        for byte in data:
            self.write(byte, 8)

    def data(self) -> bytes:
        padded = self.bits + [0] * (-len(self.bits) % 8)
        bytes_ = (padded[n : n + 8] for n in range(0, len(padded), 8))
        return bytes(sum(bit << n for n, bit in enumerate(byte)) for byte in bytes_)


@dataclass
class Shape:
    hint: Any
    values: st.SearchStrategy[Any]
    write: Callable[[Bits, Any], None]


def single(value: float) -> float:
    """Rounded to single precision."""
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


def boolean() -> Shape:
    return Shape(bool, st.booleans(), lambda out, value: out.write(value, 1))


def bits(count: int) -> Shape:
    write: Callable[[Bits, int], None] = lambda out, value: out.write(value, count)  # noqa: E731
    return Shape(Annotated[int, tw.bits(count)], st.integers(0, 2**count - 1), write)


def uint128() -> Shape:
    return Shape(tw.u128, st.integers(0, 2**128 - 1), lambda out, value: out.write(value, 128))


def ranged(low: int, high: int) -> Shape:
    def write(out: Bits, value: int) -> None:
        out.upto(value - low, high - low)

    return Shape(Annotated[int, tw.ranged(low, high)], st.integers(low, high), write)


def float32() -> Shape:
    def write(out: Bits, value: float) -> None:
        out.write(int.from_bytes(struct.pack("<f", value), "little"), 32)

    return Shape(tw.f32, st.floats(width=32, allow_nan=False), write)


def float64() -> Shape:
    def write(out: Bits, value: float) -> None:
        out.write(int.from_bytes(struct.pack("<d", value), "little"), 64)

    return Shape(float, st.floats(allow_nan=False), write)


def fixed(low: int, high: int, places: int) -> Shape:
    def write(out: Bits, value: float) -> None:
        out.upto(int(value * 2**places) - (low << places), high - low << places)

    raw = st.integers(low << places, high << places)
    return Shape(
        Annotated[float, tw.fields.fixed(low, high, places)], raw.map(lambda n: n / 2**places), write
    )


def vector(axes: int, low: int, steps: int) -> Shape:
    """Steps of an eighth, and values on them: nothing is rounded."""
    high = low + steps / 8
    hint: Any = (
        Annotated[tw.Vec2, tw.vec2(low, high, 1 / 8)]
        if axes == 2
        else Annotated[tw.Vec3, tw.vec3(low, high, 1 / 8)]
    )

    def write(out: Bits, value: tuple[float, ...]) -> None:
        for number in value:
            out.upto(int((number - low) * 8), steps)

    return Shape(hint, st.tuples(*[st.integers(0, steps).map(lambda n: low + n / 8)] * axes), write)


def text(most: int) -> Shape:
    def write(out: Bits, value: str) -> None:
        encoded = value.encode()
        out.upto(len(encoded), most)
        out.aligned(encoded)

    characters = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
    values = st.text(characters, max_size=most).filter(lambda value: len(value.encode()) <= most)
    return Shape(Annotated[str, tw.text(most)], values, write)


def wide_text(most: int) -> Shape:
    def units(value: str) -> list[int]:
        encoded = value.encode("utf-16-le")
        return [int.from_bytes(encoded[n : n + 2], "little") for n in range(0, len(encoded), 2)]

    def write(out: Bits, value: str) -> None:
        out.upto(len(units(value)), most)
        for unit in units(value):
            out.write(unit, 32)

    characters = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
    values = st.text(characters, max_size=most).filter(lambda value: len(units(value)) <= most)
    return Shape(Annotated[str, tw.fields.wide_text(most)], values, write)


def data(most: int) -> Shape:
    def write(out: Bits, value: bytes) -> None:
        out.upto(len(value), most)
        out.aligned(value)

    return Shape(Annotated[bytes, tw.data(most)], st.binary(max_size=most), write)


def optional(item: Shape) -> Shape:
    def write(out: Bits, value: Any) -> None:
        out.write(value is not None, 1)
        if value is not None:
            item.write(out, value)

    if type(None) in get_args(item.hint):
        reject()  # Python takes `T | None | None` for `T | None`.
    return Shape(item.hint | None, st.none() | item.values, write)


def list_of(item: Shape, most: int) -> Shape:
    def write(out: Bits, value: list[Any]) -> None:
        out.upto(len(value), most)
        for each in value:
            item.write(out, each)

    hint: Any = Annotated[list[item.hint], tw.up_to(most)]  # type: ignore[name-defined]
    return Shape(hint, st.lists(item.values, max_size=most), write)


def sparse(item: Shape, slots: int) -> Shape:
    def write(out: Bits, value: dict[int, Any]) -> None:
        out.upto(len(value), slots)
        open_slot = 0
        for n, (slot, each) in enumerate(sorted(value.items())):
            out.upto(slot - open_slot, slots - (len(value) - n) - open_slot)
            item.write(out, each)
            open_slot = slot + 1

    hint: Any = Annotated[dict[int, item.hint], tw.fields.sparse(slots)]  # type: ignore[name-defined]
    values = st.dictionaries(st.integers(0, slots - 1), item.values, max_size=slots)
    return Shape(hint, values.map(lambda value: dict(sorted(value.items()))), write)


def items_of(item: Shape, most: int) -> Shape:
    hint: Any = Annotated[tuple[item.hint, ...], tw.up_to(most)]  # type: ignore[name-defined]
    values = st.lists(item.values, max_size=most).map(tuple)
    return Shape(hint, values, list_of(item, most).write)


def tuple_of(items: list[Shape]) -> Shape:
    def write(out: Bits, value: tuple[Any, ...]) -> None:
        for item, part in zip(items, value, strict=True):
            item.write(out, part)

    hint: Any = tuple[tuple(item.hint for item in items)]  # type: ignore[misc]
    if get_args(hint) in ((float,) * 2, (float,) * 3, (float,) * 4):
        reject()  # Of vectors one has to say more.
    return Shape(hint, st.tuples(*[item.values for item in items]), write)


def set_of(item: Shape, most: int, kind: type) -> Shape:
    def write(out: Bits, value: Any) -> None:
        out.upto(len(value), most)
        for each in sorted(value):
            item.write(out, each)

    hint: Any = Annotated[kind[item.hint], tw.up_to(most)]  # type: ignore[index]
    return Shape(hint, st.sets(item.values, max_size=most).map(kind), write)


def map_of(key: Shape, item: Shape, most: int) -> Shape:
    def write(out: Bits, value: dict[Any, Any]) -> None:
        out.upto(len(value), most)
        for name, each in sorted(value.items(), key=lambda entry: entry[0]):
            key.write(out, name)
            item.write(out, each)

    hint: Any = Annotated[dict[key.hint, item.hint], tw.up_to(most)]  # type: ignore[name-defined]
    return Shape(hint, st.dictionaries(key.values, item.values, max_size=most), write)


def union(classes: list[Shape]) -> Shape:
    def write(out: Bits, value: Any) -> None:
        (number,) = (n for n, one in enumerate(classes) if one.hint is type(value))
        out.upto(number, len(classes) - 1)
        classes[number].write(out, value)

    hint: Any = functools.reduce(operator.or_, [one.hint for one in classes])
    return Shape(hint, st.one_of([one.values for one in classes]), write)


def common(low: int, high: int, first: int, second: int) -> Shape:
    def write(out: Bits, value: int) -> None:
        out.write(value in (first, second), 1)
        if value in (first, second):
            out.write(value == second, 1)
        else:
            out.upto(value - low, high - low)

    hint = Annotated[int, tw.ranged(low, high), tw.fields.common(first, second)]
    return Shape(hint, st.sampled_from([first, second]) | st.integers(low, high), write)


def message(shapes: list[Shape]) -> Shape:
    """A class of its own, with a field for each shape."""
    names = [f"field_{n}" for n in range(len(shapes))]
    hints = dict(zip(names, (shape.hint for shape in shapes), strict=True))
    try:
        made: Any = tw.message(type("Made", (), {"__annotations__": hints}))
    except ValueError:
        # Items that could be of no bits, or lists that would take too much memory.
        reject()

    def write(out: Bits, value: Any) -> None:
        for name, shape in zip(names, shapes, strict=True):
            shape.write(out, getattr(value, name))

    values = st.builds(made, **{name: shape.values for name, shape in zip(names, shapes, strict=True)})
    return Shape(made, values, write)


@st.composite
def ranges(draw: st.DrawFn, furthest: int = 2**100) -> Shape:
    low, high = sorted(draw(st.tuples(*[st.integers(-furthest, furthest)] * 2)))
    return ranged(low, high)


@st.composite
def commons(draw: st.DrawFn) -> Shape:
    low = draw(st.integers(-1000, 1000))
    high = low + draw(st.integers(1, 1000))
    first, second = draw(st.lists(st.integers(low, high), min_size=2, max_size=2, unique=True))
    return common(low, high, first, second)


simple: st.SearchStrategy[Shape] = st.one_of(
    st.builds(boolean),
    st.builds(bits, st.integers(1, 64)),
    st.builds(uint128),
    ranges(),
    st.builds(float32),
    st.builds(float64),
    st.builds(
        lambda low, span, places: fixed(low, low + span, places),
        *[st.integers(-1000, 1000), st.integers(1, 1000), st.integers(0, 16)],
    ),
    st.builds(vector, st.integers(2, 3), st.integers(-100, 100), st.integers(1, 5000)),
    commons(),
    st.builds(text, st.integers(0, 40)),
    st.builds(wide_text, st.integers(0, 20)),
    st.builds(data, st.integers(0, 40)),
)


# What has an order.
keys: st.SearchStrategy[Shape] = st.one_of(
    st.builds(boolean),
    st.builds(bits, st.integers(1, 64)),
    st.builds(uint128),
    ranges(),
    st.builds(text, st.integers(0, 9)),
    st.builds(wide_text, st.integers(0, 5)),
    st.builds(data, st.integers(0, 9)),
)
keys |= st.builds(tuple_of, st.lists(keys, min_size=1, max_size=2))


def parts(item: st.SearchStrategy[Shape]) -> st.SearchStrategy[Shape]:
    """A value made of items."""
    return st.one_of(
        st.builds(optional, item),
        st.builds(list_of, item, st.integers(0, 4)),
        st.builds(sparse, item, st.integers(1, 12)),
        st.builds(message, st.lists(item, max_size=3)),
        st.builds(items_of, item, st.integers(0, 4)),
        st.builds(tuple_of, st.lists(item, min_size=1, max_size=3)),
        st.builds(set_of, keys, st.integers(0, 4), st.sampled_from([set, frozenset])),
        st.builds(map_of, keys, item, st.integers(0, 4)),
        st.builds(union, st.lists(st.builds(message, st.lists(item, max_size=2)), min_size=2, max_size=3)),
    )


shapes: st.SearchStrategy[Shape] = st.recursive(simple, parts, max_leaves=6)
messages: st.SearchStrategy[Shape] = st.builds(message, st.lists(shapes, max_size=5))
