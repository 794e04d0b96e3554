"""Servers, clients and peers on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tickwire._run import Endpoint, HealthLike, Loop
from tickwire.errors import ClosedError

__all__ = ["run"]

_I = TypeVar("_I")


def run(
    endpoint: Endpoint[_I],
    rate: float | None = None,
    *,
    health: HealthLike = None,
    linger: float = 0.0,
    reason: str | None = None,
    empty_rate: float | None = None,
) -> AsyncRun[_I]:
    """Runs an endpoint like :func:`tickwire.run`, for ``async with`` and ``async for``. Other tasks run
    between ticks. ``run`` works on every event loop and with every endpoint. On an event loop with
    ``add_reader`` (all except Windows' default), packets that arrive between ticks are acked at once. The
    game gets their messages in the next tick.

    The ``async for`` loop also ends when its task is cancelled. In this case, it doesn't wait for the other
    sides, even with ``linger``.

    Args:
        endpoint (Server | Client | Peer): the endpoint to run, with any :attr:`Tuning.driver`.
        rate (float | None, default None): ticks per second, above 0 and at most 1,000,000; None: the
            protocol's ``tick_rate``, or 60 if it has none.
        health (str | int | tuple[str, int] | Lifecycle | None, default None): the address for HTTP health
            checks, or an object whose ``tick()`` is called in each tick, as in :func:`tickwire.run`.
        linger (float, default 0.0): the longest time in seconds, 0 to 60, to wait at the end for the other
            sides to receive everything. The event loop runs meanwhile.
        reason (str | None, default None): a text for the other sides, 1 to 128 bytes in UTF-8. It isn't
            sent if the body raises. Peers don't support it.
        empty_rate (float | None, default None): ticks per second while a server has no clients, above 0 and
            at most ``rate``; None: always ``rate``. When a client connects, a tick starts within 0.25
            seconds.

    Example::

        async with tw.aio.run(server) as ticks:
            async for tick, inbox in ticks:
                for client, what in inbox: ...
    """
    return AsyncRun(Loop(endpoint, rate, health, linger, reason, empty_rate))


class AsyncRun(Generic[_I]):
    """The ``async with`` block of :func:`tickwire.aio.run`."""

    def __init__(self, loop: Loop[_I]) -> None:
        self._loop = loop

    async def __aenter__(self) -> AsyncIterator[tuple[int, _I]]:
        self._loop.begin()
        self._watch = Watch(self._loop.endpoint)
        self._ticks = self._iterate()
        return self._ticks

    async def _iterate(self) -> AsyncGenerator[tuple[int, _I]]:
        loop = self._loop
        while (inbox := loop.receive()) is not None:
            yield loop.tick, inbox
            loop.finish_tick()
            self._watch.check()
            await asyncio.sleep(0)  # other tasks get a turn, however late the tick is
            while (wait := loop.nap()) > 0:
                await asyncio.sleep(wait)
                self._watch.check()

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._ticks.aclose()
            self._watch.close()
            self._loop.say_goodbye(kind)
            while self._loop.lingers():
                await asyncio.sleep(self._loop.linger_step())
        finally:
            self._watch.close()
            self._loop.end()

    if not TYPE_CHECKING:  # type checkers know that it can't be iterated over

        def __aiter__(self):
            raise TypeError("run() must be entered: async with tw.aio.run(server) as ticks")


class Watch:
    """Steps an endpoint between its ticks, when its socket has data or a packet is due."""

    def __init__(self, endpoint: Any) -> None:
        self._endpoint = endpoint
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._socket: int | None = None
        self._error: Exception | None = None
        # With a thread, in memory, on a simulated network or after its end it has no socket to wait for.
        with suppress(ValueError, NotImplementedError, ClosedError):
            socket = endpoint._fileno()
            self._loop.add_reader(socket, self._wake)
            self._socket = socket

    def _wake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        try:
            wait = self._endpoint._step()
        except Exception as error:
            # The event loop would only log it.
            self._error = None if self._endpoint.closed else error
            self.close()
        else:
            self._timer = self._loop.call_later(wait, self._wake)

    def check(self) -> None:
        """Raises the error of a failed step, if there was one. Stops stepping if the endpoint is closed."""
        if self._endpoint.closed:
            self.close()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def close(self) -> None:
        """Stops stepping. The socket can be closed afterwards."""
        if self._timer is not None:
            self._timer.cancel()
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket = None
