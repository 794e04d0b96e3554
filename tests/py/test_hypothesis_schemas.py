"""Random message classes with random values: the native bytes are those of a plain model, bit for bit.

`pytest --hypothesis-profile search tests/py/test_hypothesis_schemas.py` looks for more, elsewhere each time.
"""

from __future__ import annotations

from typing import Any

import pytest
import tickwire as tw
from bit_model import Bits, Shape, bits, messages, ranged, text
from hypothesis import given
from hypothesis import strategies as st


@given(messages, st.data())
def test_bytes_are_those_of_the_model_and_values_come_back(shape: Shape, data: st.DataObject) -> None:
    protocol = tw.Protocol(1, [shape.hint])
    value: Any = data.draw(shape.values)
    model = Bits()
    shape.write(model, value)
    encoded = protocol.encode(value)
    assert encoded == model.data()
    assert protocol.decode(encoded) == value
    schema = shape.hint.__tickwire_schema__
    assert len(model.bits) <= protocol.measure(value) <= schema.max_bits
    assert len(model.bits) >= schema.min_bits


@given(messages, st.binary(max_size=40))
def test_random_bytes_are_refused_or_what_the_model_writes_of_their_message(
    shape: Shape, data: bytes
) -> None:
    protocol = tw.Protocol(1, [shape.hint])
    try:
        value = protocol.decode(data)
    except tw.errors.StreamError:
        return
    again = protocol.encode(value)
    # A float that is no number may be told by other bits.
    if "nan" not in repr(value):
        assert again == data
        model = Bits()
        shape.write(model, value)
        assert model.data() == data


@given(messages, st.data())
def test_a_message_cut_short_or_with_more_behind_it_is_refused(shape: Shape, data: st.DataObject) -> None:
    protocol = tw.Protocol(1, [shape.hint])
    encoded = protocol.encode(data.draw(shape.values))
    with pytest.raises(tw.errors.StreamError):
        protocol.decode(encoded + b"\0")
    for cut in range(len(encoded)):
        with pytest.raises(tw.errors.StreamError):
            protocol.decode(encoded[:cut])


@given(st.integers(-(2**70), 2**70), st.integers(0, 2**70), st.integers(1, 2**130))
def test_a_number_beyond_its_range_is_refused_by_name(low: int, span: int, beyond: int) -> None:
    shape = ranged(low, low + span)
    one: Any = tw.message(type("One", (), {"__annotations__": {"x": shape.hint}}))
    protocol = tw.Protocol(1, [one])
    for value in (low - beyond, low + span + beyond):
        with pytest.raises(tw.FieldError, match=r"^One\.x = "):
            protocol.encode(one(value))


@given(st.integers(1, 64), st.integers())
def test_what_does_not_fit_its_bits_is_refused(count: int, value: int) -> None:
    one: Any = tw.message(type("One", (), {"__annotations__": {"x": bits(count).hint}}))
    protocol = tw.Protocol(1, [one])
    if 0 <= value < 2**count:
        assert protocol.decode(protocol.encode(one(value))) == one(value)
    else:
        with pytest.raises(tw.FieldError, match=r"^One\.x = "):
            protocol.encode(one(value))


@given(st.integers(0, 30), st.text(max_size=40))
def test_any_text_is_written_or_refused(most: int, value: str) -> None:
    one: Any = tw.message(type("One", (), {"__annotations__": {"x": text(most).hint}}))
    protocol = tw.Protocol(1, [one])
    surrogate = any("\ud800" <= character <= "\udfff" for character in value)
    if surrogate or "\0" in value or len(value.encode()) > most:
        with pytest.raises(tw.FieldError, match=r"^One\.x"):
            protocol.encode(one(value))
    else:
        assert protocol.decode(protocol.encode(one(value))).x == value
