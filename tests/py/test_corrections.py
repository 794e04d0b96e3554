"""Corrections: where they begin, where they end, and how they go."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tickwire import predict


def test_they_begin_where_it_was_shown_and_end_where_it_should_be() -> None:
    shown, true = np.array([[0.0, 1.0], [5.0, 5.0]]), np.array([[10.0, -1.0], [5.0, 6.0]])
    assert np.array_equal(predict.instant(shown, true, 0.1), true)
    for begin, end in [(0.0, 1.0), (-3.0, 7.0)]:
        assert np.allclose(predict.smoothed(shown, true, begin), shown)
        assert np.allclose(predict.smoothed(shown, true, end), true)
    velocity = np.array([[1.0, 0.0], [0.0, 2.0]])
    still = np.zeros((2, 2))
    assert np.allclose(predict.cubic(shown, still, true, velocity, 0.0, 0.5), shown)
    assert np.allclose(predict.cubic(shown, still, true, velocity, 1.0, 0.5), true)
    assert np.allclose(predict.projective(shown, still, true, velocity, 0.0, 0.5), shown)
    end = predict.projective(shown, still, true, velocity, 1.0, 0.5, acceleration=2.0)
    assert np.allclose(end, true + velocity * 0.5 + 0.25)
    assert predict.decayed(8.0, 0.1, 0.05) == pytest.approx(2.0)


def test_velocities_are_those_of_both_ends() -> None:
    def speed(function: object, at: float) -> float:
        small = 1e-6
        low, high = max(at - small, 0), min(at + small, 1)
        return (function(high) - function(low)) / ((high - low) * 2)  # type: ignore[operator, no-any-return]

    def cubic(t: float) -> float:
        return predict.cubic(0.0, 3.0, 9.0, -1.0, t, 2.0)  # type: ignore[no-any-return]

    assert speed(cubic, 0) == pytest.approx(3, abs=1e-3)
    assert speed(cubic, 1) == pytest.approx(-1, abs=1e-3)
    assert speed(lambda t: predict.smoothed(0.0, 9.0, t), 0) == pytest.approx(0, abs=1e-3)

    def projective(t: float) -> float:
        return predict.projective(0.0, 3.0, 0.0, 3.0, t, 2.0)  # type: ignore[no-any-return]

    assert projective(0.5) == pytest.approx(3.0), "without an error it is as it is"


def test_rows_may_be_at_times_of_their_own() -> None:
    fraction = np.array([[0.0], [1.0], [9.0]])
    at = predict.smoothed(np.zeros((3, 2)), np.ones((3, 2)), fraction)
    assert at.tolist() == [[0, 0], [1, 1], [1, 1]]


def test_what_is_no_fraction_is_refused() -> None:
    with pytest.raises(ValueError, match="fraction must be 0 to 1, not NaN"):
        predict.smoothed(0.0, 1.0, math.nan)
    with pytest.raises(ValueError, match="and has NaN"):
        predict.smoothed(0.0, 1.0, np.array([0.5, np.nan]))
    with pytest.raises(ValueError, match="seconds must be above 0"):
        predict.cubic(0.0, 0.0, 1.0, 0.0, 0.5, 0.0)
    with pytest.raises(ValueError, match="half_life above 0"):
        predict.decayed(1.0, 0.1, 0.0)
