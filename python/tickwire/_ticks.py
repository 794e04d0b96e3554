"""Pacing a game loop without drift."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Iterator

from tickwire._checks import check_number

__all__ = ["ticks"]

MAX_RATE = 1_000_000


def ticks(rate: float, duration: float | None = None) -> Iterator[int]:
    """Yields tick numbers ``rate`` times a second: 0 at once, then each after sleeping until it is due.

    Due times are counted from the start, so nothing drifts. If the body is too slow, ticks are skipped
    instead of bunched; the numbers show it.

    Args:
        rate (float): ticks a second, above 0 to 1,000,000.
        duration (float | None, default None): seconds after which it ends; None: never.

    It sleeps, so in a coroutine it blocks the event loop, and warns: use :func:`tickwire.aio.ticks` there.
    """
    check_rate(rate)
    end = check_duration(duration)
    warn_of_event_loop("ticks")
    return _ticks(rate, end)


def check_rate(rate: float, name: str = "rate") -> None:
    check_number(name, rate)
    if not 0 < rate <= MAX_RATE:
        raise ValueError(f"{name} must be above 0 to {MAX_RATE} ticks a second, not {rate!r}")


def check_duration(duration: float | None) -> float:
    """Seconds after which ticks end."""
    if duration is None:
        return math.inf
    check_number("duration", duration)
    if not duration >= 0:
        raise ValueError(f"duration must be at least 0 seconds, or None, not {duration!r}")
    return duration


def warn_of_event_loop(name: str) -> None:
    if "asyncio" in sys.modules and sys.modules["asyncio"]._get_running_loop() is not None:
        sentence = (
            f"tickwire.{name} sleeps, which stops the event loop that runs here: use tickwire.aio.{name}"
        )
        warnings.warn(sentence, RuntimeWarning, stacklevel=3)


def _ticks(rate: float, duration: float) -> Iterator[int]:
    start = time.perf_counter()
    number = 0
    while number / rate < duration:
        yield number
        number = max(number + 1, math.floor((time.perf_counter() - start) * rate))
        wait = start + number / rate - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
