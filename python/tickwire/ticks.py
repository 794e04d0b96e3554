"""Pacing a game loop without drift."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

__all__ = ["ticks"]


def ticks(rate: float, duration: float | None = None) -> Iterator[int]:
    """Yields tick numbers at ``rate`` a second: 0 at once, then sleeps until each next one is due.

    Due times are counted from the start, so nothing drifts. Ticks missed by a slow body are skipped rather
    than made up for in a bunch; the numbers show it.

    Args:
        rate: ticks a second, above 0.
        duration: seconds after which it ends; None: never.
    """
    check_rate(rate)
    return _ticks(rate, math.inf if duration is None else duration)


def check_rate(rate: float) -> None:
    if not (math.isfinite(rate) and rate > 0):
        raise ValueError(f"rate must be above 0 ticks a second, not {rate!r}")


def _ticks(rate: float, duration: float) -> Iterator[int]:
    start = time.perf_counter()
    number = 0
    while number / rate < duration:
        yield number
        number = max(number + 1, math.floor((time.perf_counter() - start) * rate))
        wait = start + number / rate - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
