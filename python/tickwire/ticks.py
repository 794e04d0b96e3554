"""Pacing a game loop without drift."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Iterator

__all__ = ["ticks"]


def ticks(rate: float, duration: float | None = None) -> Iterator[int]:
    """Yields tick numbers at ``rate`` a second: 0 at once, then sleeps until each next one is due.

    Due times are counted from the start, so nothing drifts. Ticks missed by a slow body are skipped rather
    than made up for in a bunch; the numbers show it.

    Args:
        rate: ticks a second, above 0.
        duration: seconds after which it ends; None: never.

    It sleeps, so in a coroutine it stops the event loop, and warns: :func:`tickwire.aio.ticks` is for those.
    """
    check_rate(rate)
    warn_of_event_loop("ticks")
    return _ticks(rate, math.inf if duration is None else duration)


def check_rate(rate: float, name: str = "rate") -> None:
    if not (math.isfinite(rate) and rate > 0):
        raise ValueError(f"{name} must be above 0 ticks a second, not {rate!r}")


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
