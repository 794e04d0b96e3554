"""Corrections of what is drawn: plain functions, on numbers and on arrays.

A correction says that something is elsewhere than it was drawn. Shown at once it jumps; these move it there
in a time. Each takes numbers or NumPy arrays, of any shape that its arguments have together, and a fraction
of that time which is held in 0 to 1: a number, or a column with a row each.
"""

from __future__ import annotations

from typing import Any

__all__ = ["cubic", "decayed", "instant", "projective", "smoothed"]


def instant(shown: Any, true: Any, fraction: Any = 1.0) -> Any:  # noqa: ARG001
    """The true place, at once. For large errors, and for things that nobody looks at.

    Args:
        shown: where it was shown; not used.
        true: where it should be.
        fraction: not used.
    """
    return true


def smoothed(shown: Any, true: Any, fraction: Any) -> Any:
    """Between the shown and the true place, slowly at both ends: the error is scaled by
    the cubic 1 - 3 t^2 + 2 t^3.

    Args:
        shown: where it was shown when the correction came, or the error then with ``true`` 0.
        true: where it should be now: it may move.
        fraction: how much of the time of the correction has passed, 0 to 1.

    Raises:
        ValueError: the fraction is NaN.

    Source: Hermite's blending function, as smoothstep in K. Perlin, An Image Synthesizer, SIGGRAPH 1985.
    """
    t = _held(fraction)
    return true + (shown - true) * (1.0 - t * t * (3.0 - 2.0 * t))


def decayed(error: Any, seconds: float, half_life: float = 0.05) -> Any:
    """The rest of an error after a time, if each frame removes the same part of it: for corrections
    that come so often that none is over when the next comes.

    Args:
        error: how far what is shown is off.
        seconds: how much time passed.
        half_life: after how many seconds half of it is left.

    Raises:
        ValueError: a time is negative or NaN, or the half-life is not above 0.

    Source: G. Fiedler, State Synchronization, 2015: visual smoothing by a reduced error offset.
    """
    if not (seconds >= 0.0 and half_life > 0.0):
        raise ValueError(f"seconds must be at least 0 and half_life above 0, not {seconds} and {half_life}")
    return error * 0.5 ** (seconds / half_life)


def cubic(
    shown: Any, shown_velocity: Any, true: Any, true_velocity: Any, fraction: Any, seconds: float
) -> Any:
    """On the cubic that leaves with the shown velocity, and arrives at the true place with the true
    velocity.

    Args:
        shown: where it was shown when the correction came.
        shown_velocity: its velocity then, in units a second.
        true: where it should be at the end of the correction: extrapolate it.
        true_velocity: its velocity there, in units a second.
        fraction: how much of the time of the correction has passed, 0 to 1.
        seconds: how long the correction takes.

    Raises:
        ValueError: the fraction is NaN, or ``seconds`` not above 0.

    Source: N. Caldwell, Defeating Lag With Cubic Splines, GameDev.net 2000, in Hermite's form.
    """
    t, seconds = _held(fraction), _time(seconds)
    square, cube = t * t, t * t * t
    bend = 3.0 * square - 2.0 * cube
    return (
        shown
        + (true - shown) * bend
        + shown_velocity * (seconds * (cube - 2.0 * square + t))
        + true_velocity * (seconds * (cube - square))
    )


def projective(
    shown: Any,
    shown_velocity: Any,
    true: Any,
    true_velocity: Any,
    fraction: Any,
    seconds: float,
    acceleration: Any = 0.0,
) -> Any:
    """Projective velocity blending, of second order: what was shown goes on with a velocity that turns into
    the true one, and is drawn over to where that which is true goes. No oscillation, and no overshoot
    of a cubic whose ends are far apart.

    Args:
        shown: where it was shown when the correction came.
        shown_velocity: its velocity then, in units a second.
        true: where it should have been when the correction came.
        true_velocity: its true velocity then, in units a second.
        fraction: how much of the time of the correction has passed, 0 to 1.
        seconds: how long the correction takes.
        acceleration: the true acceleration, in units a second squared.

    Raises:
        ValueError: the fraction is NaN, or ``seconds`` not above 0.

    Source: C. Murphy, Believable Dead Reckoning for Networked Games, in Game Engine Gems 2, 2011.
    """
    t, seconds = _held(fraction), _time(seconds)
    passed = t * seconds
    velocity = shown_velocity + (true_velocity - shown_velocity) * t
    bend = 0.5 * passed * passed * acceleration
    mine = shown + velocity * passed + bend
    theirs = true + true_velocity * passed + bend
    return mine + (theirs - mine) * t


def _time(seconds: float) -> float:
    if not seconds > 0.0:
        raise ValueError(f"seconds must be above 0, not {seconds}")
    return seconds


def _held(fraction: Any) -> Any:
    """The fraction, in 0 to 1."""
    if isinstance(fraction, (int, float)):
        if fraction != fraction:
            raise ValueError("fraction must be 0 to 1, not NaN")
        return min(max(fraction, 0.0), 1.0)
    if (fraction != fraction).any():
        raise ValueError("fraction must be 0 to 1, and has NaN")
    return fraction.clip(0.0, 1.0)
