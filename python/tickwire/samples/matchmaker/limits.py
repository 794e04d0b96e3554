"""Rate limits: counts of requests in a time window, in this process or in Redis."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

WINDOW = 10
"""The length of the time window, in seconds."""


class Limits(Protocol):
    """Counts of requests in the current time window."""

    def count(self, who: str) -> int:
        """Counts a request of a requester. Returns the count."""
        ...


class LocalLimits:
    """Counts in this process. With several matchmakers, each counts separately."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._window = 0
        self._counts: dict[str, int] = {}

    def count(self, who: str) -> int:
        """See :meth:`Limits.count`."""
        window = int(self._clock() / WINDOW)
        if window != self._window:
            self._window = window
            self._counts.clear()
        self._counts[who] = count = self._counts.get(who, 0) + 1
        return count


class RedisLimits:
    """Counts in Redis, for all matchmakers together.

    Args:
        redis: a client of the package ``redis``.
    """

    def __init__(self, redis: Any) -> None:
        self._redis = redis

    def count(self, who: str) -> int:
        """See :meth:`Limits.count`."""
        key = f"matchmaker:{who}:{int(time.time() / WINDOW)}"
        with self._redis.pipeline(transaction=False) as commands:
            count, _ = commands.incr(key).expire(key, 2 * WINDOW).execute()
        return int(count)
