"""Smooth corrections of drawn positions: functions for numbers and arrays.

When a drawn thing turns out to be at another place, it would jump if you drew it there at once. These
functions move it over time. Each takes numbers, or NumPy arrays that can be broadcast together. ``fraction``
is the share of the correction's time that has passed. Values below 0 count as 0, and values above 1 count as
1.
"""

from __future__ import annotations

from typing import Any

__all__ = ["cubic", "decayed", "instant", "projective", "smoothed"]


def instant(shown: Any, true: Any, fraction: Any = 1.0) -> Any:  # noqa: ARG001
    """Returns the true place at once, for large errors and for things that no player looks at.

    Args:
        shown: the shown place; not used.
        true: the true place.
        fraction: not used.
    """
    return true


def smoothed(shown: Any, true: Any, fraction: Any) -> Any:
    """Returns a place between the shown and the true place. The movement starts and ends slowly: the error is
    multiplied by the cubic 1 - 3 t^2 + 2 t^3, where t is ``fraction``.

    Args:
        shown: the place shown when the correction arrived. To smooth an error instead of a place, pass the
            error at that time, and 0 as ``true``.
        true: the true place now; it may move.
        fraction: the share of the correction's time that has passed, 0 to 1.

    Raises:
        ValueError: the fraction is NaN.

    Source: Hermite's blending function, as smoothstep in K. Perlin, An Image Synthesizer, SIGGRAPH 1985.
    """
    t = _held(fraction)
    return true + (shown - true) * (1.0 - t * t * (3.0 - 2.0 * t))


def decayed(error: Any, seconds: float, half_life: float = 0.05) -> Any:
    """Returns what is left of an error that decays exponentially. Use it if corrections arrive so often
    that they overlap.

    Args:
        error: the error of the shown value.
        seconds: the time since the shown value had this error.
        half_life: seconds after which half of the error is left.

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
    """Returns a place on a cubic curve, which starts at the shown place with the shown velocity and ends at
    the true place with the true velocity.

    Args:
        shown: the place shown when the correction arrived.
        shown_velocity: the velocity at that time, in units per second.
        true: the extrapolated true place at the end of the correction.
        true_velocity: the extrapolated true velocity at the end of the correction, in units per second.
        fraction: the share of the correction's time that has passed, 0 to 1.
        seconds: the duration of the correction, in seconds.

    Raises:
        ValueError: the fraction is NaN, or ``seconds`` isn't above 0.

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
    """Returns a place by projective velocity blending of second order. The velocity of the shown thing
    changes to the true velocity while the thing moves to the true path. The shown path neither oscillates
    nor overshoots. A cubic curve between distant places overshoots.

    Args:
        shown: the place shown when the correction arrived.
        shown_velocity: the velocity at that time, in units per second.
        true: the true place when the correction arrived.
        true_velocity: the true velocity at that time, in units per second.
        fraction: the share of the correction's time that has passed, 0 to 1.
        seconds: the duration of the correction, in seconds.
        acceleration: the true acceleration, in units per second squared.

    Raises:
        ValueError: the fraction is NaN, or ``seconds`` isn't above 0.

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
