"""Timing for commands and samples that tick their endpoints themselves."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

__all__: list[str] = []


def paced(rate: float, seconds: float | None = None) -> Iterator[int]:
    """Yields tick numbers ``rate`` times a second. If the body is too slow, ticks are skipped."""
    start, number = time.perf_counter(), 0
    while seconds is None or number / rate < seconds:
        yield number
        number = max(number + 1, math.floor((time.perf_counter() - start) * rate))
        time.sleep(max(0.0, start + number / rate - time.perf_counter()))
