"""The bit writer, reader and measure, against a plain model: an integer of bits."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

import pytest
import tickwire as tw
from hypothesis import given
from hypothesis import strategies as st

LADDER = [(2, 6), (7, 23), (24, 280), (281, 4377), (4378, 69_914)]


Bytes = bytes


@dataclass
class Model:
    """The serialize 1.0 standard in a few slow lines."""

    value: int = 0
    length: int = 0
    aligns: int = 0
    padding: int = 0

    def put(self, value: int, count: int) -> None:
        assert 0 <= value < 1 << count or count == value == 0
        self.value |= value << self.length
        self.length += count

    def to_bytes(self) -> Bytes:
        return self.value.to_bytes((self.length + 7) // 8, "little")

    def flag(self, value: bool) -> None:
        self.put(int(value), 1)

    def bits(self, value: int, count: int) -> None:
        self.put(value, count)

    def ranged(self, value: int, low: int, high: int) -> None:
        self.put(value - low, (high - low).bit_length())

    def uint128(self, value: int) -> None:
        self.put(value, 128)

    def relative(self, value: int, previous: int) -> None:
        difference = value - previous
        self.flag(difference == 1)
        if difference == 1:
            return
        for low, high in LADDER:
            self.flag(difference <= high)
            if difference <= high:
                self.ranged(difference, low, high)
                return
        self.put(value, 32)

    def sequence_relative(self, value: int, previous: int) -> None:
        self.relative(value + (65_536 if value < previous else 0), previous)

    def float32(self, value: float) -> None:
        self.put(int.from_bytes(struct.pack("<f", value), "little"), 32)

    def float64(self, value: float) -> None:
        self.put(int.from_bytes(struct.pack("<d", value), "little"), 64)

    def fixed(self, value: float, low: int, high: int, fraction_bits: int) -> None:
        self.ranged(round(value * 2**fraction_bits), low << fraction_bits, high << fraction_bits)

    def align(self) -> None:
        self.aligns += 1
        self.padding += -self.length % 8
        self.put(0, -self.length % 8)

    def bytes(self, value: Bytes) -> None:
        self.align()
        self.put(int.from_bytes(value, "little"), 8 * len(value))

    def data(self, value: Bytes, max_bytes: int) -> None:
        self.ranged(len(value), 0, max_bytes)
        self.bytes(value)

    def text(self, value: str, max_bytes: int) -> None:
        self.data(value.encode(), max_bytes)

    def wide_text(self, value: str, max_units: int) -> None:
        units = value.encode("utf-16-le")
        self.ranged(len(units) // 2, 0, max_units)
        for at in range(0, len(units), 2):
            self.put(int.from_bytes(units[at : at + 2], "little"), 32)


# An operation: its name, the value written, what else both writer and reader are given.
Operation = tuple[str, tuple[Any, ...], tuple[Any, ...]]

WIDE = st.integers(-(2**127), 2**127 - 1)
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@st.composite
def ranged(draw: st.DrawFn) -> Operation:
    low, value, high = sorted(draw(st.tuples(WIDE, WIDE, WIDE)))
    return "ranged", (value,), (low, high)


@st.composite
def bits(draw: st.DrawFn) -> Operation:
    count = draw(st.integers(1, 64))
    return "bits", (draw(st.integers(0, 2**count - 1)),), (count,)


@st.composite
def relative(draw: st.DrawFn) -> Operation:
    previous = draw(st.integers(0, 2**31 - 2))
    nearest = previous + draw(st.sampled_from([1, 2, 6, 7, 23, 24, 280, 281, 4377, 4378, 69_914, 69_915]))
    value = draw(st.integers(previous + 1, 2**31 - 1) | st.just(min(nearest, 2**31 - 1)))
    return "relative", (value,), (previous,)


@st.composite
def fixed(draw: st.DrawFn) -> Operation:
    fraction_bits = draw(st.integers(0, 16))
    low, high = sorted(draw(st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000))))
    raw = draw(st.integers(low << fraction_bits, high << fraction_bits))
    return "fixed", (raw / 2**fraction_bits,), (low, high, fraction_bits)


SEQUENCE = st.integers(0, 65_535)
OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.booleans().map(lambda v: ("flag", (v,), ())),
    bits(),
    ranged(),
    st.integers(0, 2**128 - 1).map(lambda v: ("uint128", (v,), ())),
    relative(),
    st.tuples(SEQUENCE, SEQUENCE)
    .filter(lambda pair: pair[0] != pair[1])
    .map(lambda pair: ("sequence_relative", (pair[0],), (pair[1],))),
    st.floats(width=32, allow_nan=False).map(lambda v: ("float32", (v,), ())),
    st.floats(allow_nan=False).map(lambda v: ("float64", (v,), ())),
    fixed(),
    TEXT.map(lambda v: ("text", (v,), (80,))),
    TEXT.map(lambda v: ("wide_text", (v,), (40,))),
    st.binary(max_size=80).map(lambda v: ("data", (v,), (80,))),
    st.binary(max_size=80).map(lambda v: ("bytes", (v,), ())),
    st.just(("align", (), ())),
)


@given(st.lists(OPERATIONS, max_size=20))
def test_writes_the_models_bits_and_reads_the_values_back(operations: list[Operation]) -> None:
    writer, measure, model = tw.articles.BitWriter(), tw.articles.BitMeasure(), Model()
    for name, value, bounds in operations:
        for sink in (writer, measure, model):
            getattr(sink, name)(*value, *bounds)
    assert writer.to_bytes() == model.to_bytes()
    assert writer.bits_written == model.length
    assert measure.max_bits == model.length - model.padding + 7 * model.aligns
    reader = tw.articles.BitReader(writer.to_bytes())
    for name, value, bounds in operations:
        asked = (len(value[0]),) if name == "bytes" else bounds
        assert getattr(reader, name)(*asked) == (value[0] if value else None), name
    assert (reader.bits_read, reader.bits_left) == (model.length, -model.length % 8)
    reader.finish()


@given(st.floats(-100, 100), st.sampled_from([0.001, 0.1, 1.0, 30.0]), st.integers(0, 7))
def test_quantized_values_come_back_within_half_a_step(value: float, resolution: float, shift: int) -> None:
    writer = tw.articles.BitWriter()
    if shift:
        writer.bits(0, shift)
    writer.quantized(value, -100, 100, resolution)
    assert writer.bits_written - shift == math.ceil(200 / resolution).bit_length()
    reader = tw.articles.BitReader(writer.to_bytes())
    if shift:
        reader.bits(shift)
    assert reader.quantized(-100, 100, resolution) == pytest.approx(value, abs=resolution / 2 + 1e-4)


READS: list[tuple[str, tuple[Any, ...]]] = [
    ("flag", ()),
    ("bits", (13,)),
    ("ranged", (-5, 1000)),
    ("uint128", ()),
    ("relative", (7,)),
    ("sequence_relative", (65_000,)),
    ("float32", ()),
    ("float64", ()),
    ("quantized", (-1.0, 1.0, 0.01)),
    ("fixed", (-10, 10, 8)),
    ("text", (20,)),
    ("wide_text", (20,)),
    ("data", (20,)),
    ("bytes", (3,)),
    ("align", ()),
    ("finish", ()),
]


@given(st.binary(max_size=100), st.lists(st.sampled_from(READS), max_size=20))
def test_any_bytes_are_read_or_refused_for_good(
    data: bytes, reads: list[tuple[str, tuple[Any, ...]]]
) -> None:
    reader = tw.articles.BitReader(data)
    refused = False
    for name, bounds in reads:
        try:
            getattr(reader, name)(*bounds)
        except tw.errors.StreamError:
            refused |= name != "finish"
        else:
            assert not refused
        assert reader.bits_read + reader.bits_left == 8 * len(data)
    assert reader.bits_left == 0 or not refused


def test_a_strict_end_is_the_zero_rest_of_the_last_byte() -> None:
    for data, left in [(b"\x01", 7), (b"\x81", 7), (b"\x01\x00", 15)]:
        reader = tw.articles.BitReader(data)
        reader.flag()
        assert reader.bits_left == left
        if data == b"\x01":
            reader.finish()
        else:
            with pytest.raises(
                tw.errors.StreamError, match=f"finish: {left} bits are left after the last value"
            ):
                reader.finish()


@pytest.mark.parametrize("sink", [tw.articles.BitWriter, tw.articles.BitMeasure])
@pytest.mark.parametrize(
    ("method", "arguments", "complaint"),
    [
        ("bits", (8, 3), "bits = 8: must be 0 to 7"),
        ("bits", (-1, 3), "bits = -1: must be 0 to 7"),
        ("ranged", (11, 0, 10), "ranged = 11: must be 0 to 10"),
        ("ranged", (2**200, 0, 10), "ranged = .*: must be a number of at most 128 bits"),
        ("uint128", (-1,), "uint128 = -1: must be 0 to 340282366920938463463374607431768211455"),
        ("relative", (5, 5), "relative = 5: must be above 5"),
        ("relative", (2**31, 5), "relative = 2147483648: must be 0 to 2147483647"),
        ("sequence_relative", (5, 5), "sequence_relative = 5: must be above 5"),
        ("sequence_relative", (65_536, 5), "sequence_relative = 65536: must be 0 to 65535"),
        ("float32", ("x",), r"float32 = 'x' \(str\): must be a float"),
        ("quantized", (2.0, -1, 1, 0.1), "quantized = 2.0: must be -1 to 1"),
        ("fixed", (11.0, 0, 10, 4), "fixed = 11.0: must be 0 to 10"),
        ("text", ("hello", 4), "text = 'hello': must be at most 4 bytes, not 5"),
        ("text", ("a\0b", 4), "text = .*: must be text without NUL, and byte 1 is NUL"),
        ("wide_text", ("hello", 4), "wide_text = 'hello': must be at most 4 UTF-16 units, not 5"),
        ("data", (b"hello", 4), "data = b'hello': must be at most 4 bytes, not 5"),
        ("data", ("hello", 9), r"data = 'hello' \(str\): must be bytes"),
        ("bytes", (bytes(65_536),), "bytes = .*: must be at most 65535 bytes, not 65536"),
        ("bytes", ("x",), r"bytes = 'x' \(str\): must be bytes"),
    ],
)
def test_a_value_out_of_bounds_is_named_and_not_written(
    sink: type, method: str, arguments: tuple[Any, ...], complaint: str
) -> None:
    taking = sink()
    with pytest.raises(tw.FieldError, match=f"{sink.__name__}.{complaint}") as raised:
        getattr(taking, method)(*arguments)
    assert raised.value.field == method
    assert (taking.bits_written if isinstance(taking, tw.articles.BitWriter) else taking.max_bits) == 0


@pytest.mark.parametrize(
    ("method", "bounds", "complaint"),
    [
        ("bits", (0,), "count must be 1 to 64, not 0"),
        ("bits", (65,), "count must be 1 to 64, not 65"),
        ("ranged", (1, 0), r"ranged: low must be at most high \(0\), not 1"),
        ("relative", (-1,), "previous must be 0 to 2147483647, not -1"),
        ("sequence_relative", (65_536,), "previous must be 0 to 65535, not 65536"),
        ("quantized", (1.0, 0.0, 0.1), "quantized: low and high must be finite and rising"),
        ("quantized", (0.0, 1.0, 0.0), "quantized: resolution must be above 0"),
        ("fixed", (0, 1, 65), "fraction_bits must be 0 to 64, not 65"),
        ("text", (65_536,), "max_bytes must be 0 to 65535, not 65536"),
        ("wide_text", (-1,), "max_units must be 0 to 65535, not -1"),
        ("data", (65_536,), "max_bytes must be 0 to 65535, not 65536"),
    ],
)
def test_a_bound_that_cannot_be_is_named(method: str, bounds: tuple[Any, ...], complaint: str) -> None:
    value = {"text": "", "wide_text": "", "data": b""}.get(method, 1)
    for call in (
        lambda: getattr(tw.articles.BitWriter(), method)(value, *bounds),
        lambda: getattr(tw.articles.BitMeasure(), method)(value, *bounds),
        lambda: getattr(tw.articles.BitReader(bytes(100)), method)(*bounds),
    ):
        with pytest.raises(ValueError, match=complaint):
            call()


def test_writing_goes_on_after_a_look_at_the_bytes() -> None:
    writer = tw.articles.BitWriter()
    writer.bits(1, 1)
    assert writer.to_bytes() == b"\x01"
    writer.bits(1, 1)
    assert writer.to_bytes() == b"\x03"
    assert repr(writer) == "<BitWriter of 2 bits>"
    assert repr(tw.articles.BitReader(b"ab")) == "<BitReader with 16 of 16 bits left>"
