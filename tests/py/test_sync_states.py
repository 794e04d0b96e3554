"""What SyncTest finds to differ in states of the game's own type."""

import math

import numpy as np
import pytest
import tickwire as tw
from tickwire._states import differing


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"a": np.zeros((2, 5000))}, {"a": np.eye(2, 5000, 2500)}, ["a"]),
        ({"a": np.zeros(2)}, {"a": np.zeros(3)}, ["a"]),
        ({"a": np.zeros(2)}, {}, ["a"]),
        ({}, {"a": 1}, ["a"]),
        ({"a": math.nan, "b": np.array([math.nan, 1])}, {"a": math.nan, "b": np.array([math.nan, 1])}, []),
        (3, 3, []),
        (3, 4, ["state"]),
    ],
)
def test_states_differ_by_name(one: object, other: object, expected: list[str]) -> None:
    assert differing(one, other) == expected


def test_a_buffer_has_a_newest_sequence_after_any_insert() -> None:
    buffer = tw.articles.SequenceBuffer[str](4)
    assert buffer.newest is None
    assert buffer.insert(65_535, "a")
    assert buffer.newest == 65_535


def test_errors_show_values_that_cannot_be_shown() -> None:
    @tw.message
    class Number:
        number: tw.u8

    protocol = tw.Protocol(id=1, messages=[Number])
    with pytest.raises(tw.FieldError, match=r"Number\.number = <int>: must be"):
        protocol.encode(Number(10**5000))
