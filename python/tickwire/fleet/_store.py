"""Stores for the worlds of rooms, with leases that decide which process may run a room.

One process at a time runs a room. It holds a lease on the room's name, and renews the lease while it runs the
room. Each claim has an epoch, a number that is higher than in all earlier claims. If a process was
disconnected and another process has claimed the room, the first process's epoch is outdated, and its saves
are refused (Kleppmann, "How to do distributed locking", 2016).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tickwire._checks import check_callable

__all__ = ["Claim", "MemoryStore", "RedisStore", "Store"]

_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
"""A clock that continues while the machine is suspended. On Linux, ``time.monotonic`` doesn't."""

_NAME = re.compile("[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def elapsed() -> float:
    """Returns the time in seconds. It includes the time for which the machine was suspended, because leases
    also run out during this time.
    """
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run a room, from :meth:`Store.claim`."""

    room: str
    """The room's name."""
    epoch: int
    """A number higher than in all earlier claims of the room."""
    world: bytes | None = None
    """The last saved world; None if the room is new."""


class Store(Protocol):
    """A store for rooms' worlds, shared by all machines. Each method raises OSError if the store can't be
    reached.
    """

    def claim(self, room: str, seconds: float) -> Claim | None:
        """Claims the room for this many seconds. Returns None if another process has it."""

    def keep(self, claim: Claim, seconds: float, world: bytes | None = None) -> bool:
        """Extends the claim to this many seconds from now, and saves the world if one is given. Returns
        False, and saves nothing, if the claim is no longer valid."""

    def release(self, claim: Claim) -> None:
        """Releases the room, so that another process can claim it at once. The saved world stays."""

    def forget(self, claim: Claim) -> None:
        """Releases the room and deletes its saved world, because the match is over."""


@dataclass(slots=True)
class _Kept:
    epoch: int = 0
    until: float = 0.0
    world: bytes | None = None


class MemoryStore:
    """A :class:`Store` in memory, for tests and for rooms in one process.

    Args:
        clock (Callable[[], float]): the time in seconds; by default the machine's clock, which continues
            while the machine is suspended.
    """

    def __init__(self, clock: Callable[[], float] = elapsed) -> None:
        check_callable("clock", clock, 0)
        self._clock = clock
        self._epoch = 0
        self._rooms: dict[str, _Kept] = {}

    def claim(self, room: str, seconds: float) -> Claim | None:
        """See :meth:`Store.claim`."""
        kept = self._rooms.setdefault(check_name(room), _Kept())
        now = self._clock()
        if now < kept.until:
            return None
        self._epoch += 1
        kept.epoch, kept.until = self._epoch, now + seconds
        return Claim(room, kept.epoch, kept.world)

    def keep(self, claim: Claim, seconds: float, world: bytes | None = None) -> bool:
        """See :meth:`Store.keep`."""
        kept = self._ours(claim)
        if kept is None:
            return False
        kept.until = self._clock() + seconds
        if world is not None:
            kept.world = world
        return True

    def release(self, claim: Claim) -> None:
        """See :meth:`Store.release`."""
        kept = self._ours(claim)
        if kept is not None:
            kept.until = 0.0

    def forget(self, claim: Claim) -> None:
        """See :meth:`Store.forget`."""
        if self._ours(claim) is not None:
            del self._rooms[claim.room]

    def _ours(self, claim: Claim) -> _Kept | None:
        # An expired lease that nobody has claimed since is still ours.
        kept = self._rooms.get(claim.room)
        return kept if kept is not None and kept.epoch == claim.epoch else None


class RedisStore:
    """A :class:`Store` in Redis, for rooms on many machines.

    Args:
        redis (redis.Redis): a client of the package ``redis``. Give it timeouts (``socket_timeout=1``). If a
            call hangs, the room's lease isn't renewed, and the room stops when the lease ends.
        prefix (str, default "tickwire"): the prefix of the keys.
    """

    def __init__(self, redis: Any, prefix: str = "tickwire") -> None:
        self._prefix = prefix
        self._claim = redis.register_script(_CLAIM)
        self._keep = redis.register_script(_KEEP)
        self._end = redis.register_script(_END)

    def claim(self, room: str, seconds: float) -> Claim | None:
        """See :meth:`Store.claim`."""
        answer = self._run(self._claim, room, [_ms(seconds)])
        if answer is None:
            return None
        epoch, world = answer
        return Claim(room, int(epoch), world)

    def keep(self, claim: Claim, seconds: float, world: bytes | None = None) -> bool:
        """See :meth:`Store.keep`."""
        given = [claim.epoch, _ms(seconds)] + ([] if world is None else [world])
        return bool(self._run(self._keep, claim.room, given))

    def release(self, claim: Claim) -> None:
        """See :meth:`Store.release`."""
        self._run(self._end, claim.room, [claim.epoch, 0])

    def forget(self, claim: Claim) -> None:
        """See :meth:`Store.forget`."""
        self._run(self._end, claim.room, [claim.epoch, 1])

    def _run(self, script: Any, room: str, arguments: list[Any]) -> Any:
        from redis.exceptions import RedisError

        base = f"{self._prefix}:{{{check_name(room)}}}"  # in braces: one slot of a cluster
        try:
            return script(keys=[f"{base}:epoch", f"{base}:lease", f"{base}:world"], args=arguments)
        except RedisError as error:
            raise OSError(f"redis: {error}") from error


# Each runs as a whole, and Redis' own clock ends the leases.
_CLAIM = """
if redis.call('EXISTS', KEYS[2]) == 1 then return false end
local epoch = redis.call('INCR', KEYS[1])
redis.call('PERSIST', KEYS[1])
redis.call('SET', KEYS[2], epoch, 'PX', ARGV[1])
return {epoch, redis.call('GET', KEYS[3])}
"""
_KEEP = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
if ARGV[3] then redis.call('SET', KEYS[3], ARGV[3]) end
return 1
"""
_END = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[2])
if ARGV[2] == '1' then
  redis.call('DEL', KEYS[3])
  redis.call('EXPIRE', KEYS[1], 86400)
end
return 1
"""


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def check_name(room: str) -> str:
    """Refuses names that can't be the value of a Kubernetes label, so that rooms have the same names
    everywhere.
    """
    if not isinstance(room, str):
        raise TypeError(f"room must be a str, not {type(room).__name__}")
    if not _NAME.fullmatch(room):
        raise ValueError(
            "room must be 1 to 63 letters, digits, dots, dashes and underscores of ASCII, "
            f"with a letter or digit at both ends, not {room!r}"
        )
    return room
