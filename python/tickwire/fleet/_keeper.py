"""The lease and the saves of a room that this process runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress

from tickwire._checks import check_callable, check_seconds
from tickwire.fleet._store import Claim, Store, elapsed

__all__ = ["Keeper"]

LEASE = 4.0
"""Seconds for which a claim is valid. After a crash, the next process waits this long."""

MARGIN = 1.0
"""A room stops acting this many seconds before its lease ends, because the machines' clocks differ."""

RETRY = 0.25
"""Seconds before saving is tried again after a failure."""

LOG = logging.getLogger("tickwire")


class Keeper:
    """Keeps a room: saves its world, which also renews its lease.

    Args:
        store (Store): the store for the world.
        claim (Claim): the room, just claimed for :data:`LEASE` seconds.
        every (float): seconds between two saves. A crash loses the changes since the last save.
        clock (Callable[[], float]): the time in seconds; by default the machine's clock. It must continue
            while the machine is suspended, because the lease ends meanwhile.
        executor (Executor | None, default None): calls the store, so that the game doesn't wait; None: a
            thread.
    """

    def __init__(
        self,
        store: Store,
        claim: Claim,
        every: float,
        clock: Callable[[], float] = elapsed,
        executor: Executor | None = None,
    ) -> None:
        check_seconds("every", every)
        check_callable("clock", clock, 0)
        self._store = store
        self._claim = claim
        self._every = every
        self._clock = clock
        self._executor = executor or ThreadPoolExecutor(1, "tickwire room")
        self._until = clock() + LEASE - MARGIN
        self._due = clock() + every
        self._asked = 0.0
        self._answer: Future[bool] | None = None
        self._failing = False
        self._lost = False

    @property
    def acts(self) -> bool:
        """Whether this process has the room. False as soon as another process may have it."""
        # An empty room ticks rarely, so the answer that renews its lease may be unread.
        if self._answer is not None and self._answer.done():
            self._read(self._answer)
            self._answer = None
        return not self._lost and self._clock() < self._until

    @property
    def is_over(self) -> bool:
        """Whether the lease has ended, for example because the room hangs. Any thread may call it."""
        return self._clock() >= self._until

    def tick(self, save: Callable[[], bytes]) -> bool:
        """Saves the world if a save is due. Returns :attr:`acts`."""
        acts, now = self.acts, self._clock()
        if acts and self._answer is None and now >= self._due:
            self._asked, self._due = now, now + self._every
            self._answer = self._executor.submit(self._store.keep, self._claim, LEASE, save())
        return acts

    def _read(self, answer: Future[bool]) -> None:
        try:
            if answer.result():
                self._until, self._failing = self._asked + LEASE - MARGIN, False
            else:
                self._lost = True
                LOG.warning("room %s is another's: this process stops acting for it", self._claim.room)
        except OSError as error:
            if not self._failing:
                LOG.warning("room %s isn't saved: %s; trying again", self._claim.room, error)
            self._failing = True
            self._due = self._asked + RETRY

    def release(self) -> None:
        """Releases the room; its last save stays."""
        self._end(self._store.release)

    def close(self, world: bytes | None) -> None:
        """Releases the room and saves the given world, from which the next process continues. None: the
        room is over.
        """
        self._end(self._store.forget if world is None else self._store.release, world)

    def _end(self, give_up: Callable[[Claim], None], world: bytes | None = None) -> None:
        if self._answer is not None:
            # A save that is under way would take the lease again.
            with suppress(OSError, TimeoutError):
                self._answer.result(MARGIN)
        try:
            if self.acts and (world is None or self._store.keep(self._claim, LEASE, world)):
                give_up(self._claim)
        except OSError as error:
            LOG.warning("room %s isn't given up: %s", self._claim.room, error)
        finally:
            self._executor.shutdown(wait=False)
