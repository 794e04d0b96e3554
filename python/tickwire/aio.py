"""Servers, clients and peers on asyncio.

A :class:`Driver` runs one on the event loop. It wakes when a datagram arrives or a timer is due, and sleeps
otherwise. It yields inboxes as soon as anything arrives, or at the pace of ticks::

    async with tw.aio.Driver(tw.Client.connect(address, protocol)) as driver:
        await driver.connected()
        async for inbox in driver:            # when something arrived
            for message in inbox.messages:
                driver.endpoint.send(answer(message))

docs/loops.md says when to use which driver.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
import time
import weakref
from collections.abc import AsyncGenerator, AsyncIterator
from types import TracebackType
from typing import Any, Generic, TypeVar, overload

from tickwire._connection import Event, PeerEvent, Reconnecting
from tickwire._core import Client, ClientHandle, Inbox, Peer, Player, Protocol, Server
from tickwire._health import Health, check_health
from tickwire._loop import BULK_STEP, VIRTUAL_STEP, Goodbye, HealthLike, Stop, check_endpoint, is_over
from tickwire._redial import Redialler, TokenSource
from tickwire._ticks import check_duration, check_rate
from tickwire._watch import Watch
from tickwire.errors import ConnectFailedError

__all__ = ["Driver", "loop", "redialler", "ticks"]

E = TypeVar("E", bound=Server[Any] | Client[Any] | Redialler[Any] | Peer[Any])
_P = TypeVar("_P")

LINGER_STEP = 0.01
"""Seconds between two looks at an endpoint that lingers."""


class Driver(Generic[E]):
    """Runs a server, a client or a peer on the running event loop, within an ``async with`` that closes it
    at its end.

    Use it from that event loop only. Waiting for it can be cancelled: anything that arrives then is yielded
    later.

    Args:
        endpoint: with ``driver="polled"``, on a real socket.

    Raises:
        ValueError: on entry: the endpoint has a thread, or is on a simulated network.
    """

    def __init__(self, endpoint: E) -> None:
        check_endpoint(endpoint)
        self.endpoint: E = endpoint
        self.wakes = 0
        """How often the event loop was woken for it."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running = False
        self._watched: tuple[object, Watch] | None = None  # the client or server, and its socket
        self._timer: asyncio.TimerHandle | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._stopped = asyncio.Event()
        self._handed_out = False  # an inbox, and what its body queues is to be sent

    async def __aenter__(self) -> Driver[E]:
        if self._loop is not None:
            raise RuntimeError("this driver was entered before: make a new one")
        self._loop = asyncio.get_running_loop()
        try:
            self._watch(self._loop)
        except ValueError:
            self.endpoint.close()
            raise
        self._running = True
        self._step()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Disconnects and leaves the event loop. Closing twice is fine."""
        try:
            if self._handed_out and not self.endpoint.closed:
                self.endpoint.flush()
        finally:
            self._stop()
            self.endpoint.close()
            self._notify()

    async def aclose(self, *, linger: float = 0.0, reason: str | None = None) -> None:
        """Like :meth:`close`, once everything sent has arrived, or after ``linger`` seconds, 0 to 60: see
        :meth:`tickwire.Client.close`. The event loop runs meanwhile. Cancelling it closes at once.

        Raises:
            ValueError: naming the argument, its value and its bound; a peer takes no ``reason``. The
                driver is closed even then.
        """
        self._check()
        try:
            if not self.endpoint.closed:
                if self._handed_out:
                    self.endpoint.flush()
                if isinstance(self.endpoint, Peer):
                    if reason is not None:
                        raise ValueError("reason must be None with a Peer: its players learn a LeaveReason")
                    self.endpoint.close(linger=linger, wait=False)
                else:
                    self.endpoint.close(linger=linger, reason=reason, wait=False)
                self._step()
                if not self.endpoint.closed:
                    await self._stopped.wait()
        finally:
            self._handed_out = False
            self.close()

    async def connected(self) -> None:
        """Waits until the client is connected.

        Raises:
            ConnectFailedError: the connection failed; ``reason`` says why.
            TypeError: the endpoint is a server or a peer.
        """
        client = self.endpoint
        if isinstance(client, Server):
            raise TypeError("a server has no connection to wait for: its clients come as events")
        if isinstance(client, Peer):
            raise TypeError("a peer has no connection to wait for: PlayerJoined of itself says that it is in")
        while not client.connected:
            if client.disconnect_reason is not None:
                raise ConnectFailedError(client.disconnect_reason)
            await self._wait()

    @overload
    def __aiter__(
        self: Driver[Server[_P]],
    ) -> AsyncIterator[
        Inbox[tuple[ClientHandle, _P], tuple[ClientHandle, _P | Event], tuple[ClientHandle, int, _P]]
    ]: ...

    @overload
    def __aiter__(self: Driver[Client[_P]]) -> AsyncIterator[Inbox[_P, _P | Event, tuple[int, _P]]]: ...

    @overload
    def __aiter__(
        self: Driver[Redialler[_P]],
    ) -> AsyncIterator[Inbox[_P, _P | Event | Reconnecting, tuple[int, _P]]]: ...

    @overload
    def __aiter__(
        self: Driver[Peer[_P]],
    ) -> AsyncIterator[
        Inbox[tuple[Player, _P], tuple[Player | None, _P | PeerEvent], tuple[Player, int, _P], PeerEvent]
    ]: ...

    def __aiter__(self) -> AsyncIterator[Inbox[Any, Any, Any, Any]]:
        """Yields an inbox whenever anything arrives: events, messages, notifications, chunks, ends of
        transfers. Messages that the body queues are sent at its end. Ends when the endpoint is closed; a
        client's also ends after the inbox with its ``Disconnected``, a peer's after that with its
        ``GameEnded``.
        """
        return self._inboxes()

    async def _inboxes(self) -> AsyncIterator[Inbox[Any, Any, Any, Any]]:
        while not self.endpoint.closed:
            self._check()
            if self.endpoint.has_news:
                yield self._receive()
                self._flush()
                # Others have their turn, however much arrives.
                await asyncio.sleep(0)
            elif is_over(self.endpoint):
                return
            else:
                await self._wait()

    @overload
    def ticks(
        self: Driver[Server[_P]], rate: float, duration: float | None = None
    ) -> AsyncIterator[
        Inbox[tuple[ClientHandle, _P], tuple[ClientHandle, _P | Event], tuple[ClientHandle, int, _P]]
    ]: ...

    @overload
    def ticks(
        self: Driver[Redialler[_P]], rate: float, duration: float | None = None
    ) -> AsyncIterator[Inbox[_P, _P | Event | Reconnecting, tuple[int, _P]]]: ...

    @overload
    def ticks(
        self: Driver[Client[_P]], rate: float, duration: float | None = None
    ) -> AsyncIterator[Inbox[_P, _P | Event, tuple[int, _P]]]: ...

    @overload
    def ticks(
        self: Driver[Peer[_P]], rate: float, duration: float | None = None
    ) -> AsyncIterator[
        Inbox[tuple[Player, _P], tuple[Player | None, _P | PeerEvent], tuple[Player, int, _P], PeerEvent]
    ]: ...

    async def ticks(
        self, rate: float, duration: float | None = None
    ) -> AsyncIterator[Inbox[Any, Any, Any, Any]]:
        """Yields an inbox ``rate`` times a second, paced as :func:`ticks`. Messages that the body queues
        are sent at its end. Ends as plain iteration does.
        """
        async for _ in ticks(rate, duration):
            if is_over(self.endpoint):
                return
            self._check()
            yield self._receive()
            self._flush()

    # --- inside ------------------------------------------------------------------------------------------

    def _receive(self) -> Inbox[Any, Any, Any, Any]:
        self._handed_out = True
        return self.endpoint.receive()

    def _flush(self) -> None:
        self._handed_out = False
        if self.endpoint.closed:
            return
        try:
            self.endpoint.flush()
        finally:
            self._step()

    def _wake(self) -> None:
        self.wakes += 1
        self._step()

    def _step(self) -> None:
        """Does everything that is due, and schedules the next step."""
        if self._loop is None or not self._running:
            return
        if self._timer is not None:
            self._timer.cancel()
        try:
            wait = self.endpoint.step()
        except Exception as error:
            # For the waiting task, or the next caller: an event loop would only log it.
            self._error = None if self.endpoint.closed else error
            self._stop()
            self._notify()
            return
        self._watch(self._loop)
        self._timer = self._loop.call_later(wait, self._wake)
        if self._waiter is not None and self.endpoint.has_news:
            self._notify()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watches the socket of now: a client that dials again has another, often of the same number, which
        the event loop doesn't watch any more since the old one was closed."""
        endpoint: object = self.endpoint
        current = endpoint.client if isinstance(endpoint, Redialler) else endpoint
        if self._watched is not None and self._watched[0] is current:
            return
        if isinstance(endpoint, Redialler) and endpoint._resume is not None:
            self._forget()  # the timer is enough until it dials
            return
        fileno = self.endpoint.fileno()
        self._forget()
        self._watched = current, Watch(loop, fileno, self._wake)

    def _forget(self) -> None:
        if self._watched is not None:
            self._watched[1].close()
            self._watched = None

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._forget()
        self._running = False
        self._stopped.set()

    def _notify(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
        if not self._running and not self.endpoint.closed:
            raise RuntimeError("a driver works between its `async with` and that one's end")

    async def _wait(self) -> None:
        """Waits until something arrived, or the driver has ended."""
        self._check()
        if self._waiter is not None:
            raise RuntimeError("something else waits for this driver already")
        assert self._loop is not None
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        self._check()


async def ticks(rate: float, duration: float | None = None) -> AsyncIterator[int]:
    """Yields tick numbers ``rate`` times a second, as :func:`tickwire.ticks` does, and leaves the time in
    between to the event loop. Works on every event loop and with every endpoint.

    Args:
        rate (float): ticks a second, above 0 to 1,000,000.
        duration (float | None, default None): seconds after which it ends; None: never.
    """
    check_rate(rate)
    end = check_duration(duration)
    loop = asyncio.get_running_loop()
    start, number = loop.time(), 0
    while number / rate < end:
        yield number
        number = max(number + 1, math.floor((loop.time() - start) * rate))
        await asyncio.sleep(start + number / rate - loop.time())


@overload
def loop(
    endpoint: Server[_P],
    ticks_per_second: float = 60,
    *,
    health: HealthLike = None,
    linger: float = 0.0,
    reason: str | None = None,
) -> AsyncGenerator[
    Inbox[tuple[ClientHandle, _P], tuple[ClientHandle, _P | Event], tuple[ClientHandle, int, _P]]
]: ...
@overload
def loop(
    endpoint: Client[_P],
    ticks_per_second: float = 60,
    *,
    health: HealthLike = None,
    linger: float = 0.0,
    reason: str | None = None,
) -> AsyncGenerator[Inbox[_P, _P | Event, tuple[int, _P]]]: ...
@overload
def loop(
    endpoint: Redialler[_P],
    ticks_per_second: float = 60,
    *,
    health: HealthLike = None,
    linger: float = 0.0,
    reason: str | None = None,
) -> AsyncGenerator[Inbox[_P, _P | Event | Reconnecting, tuple[int, _P]]]: ...
@overload
def loop(
    endpoint: Peer[_P],
    ticks_per_second: float = 60,
    *,
    health: HealthLike = None,
    linger: float = 0.0,
    reason: None = None,
) -> AsyncGenerator[
    Inbox[tuple[Player, _P], tuple[Player | None, _P | PeerEvent], tuple[Player, int, _P], PeerEvent]
]: ...
def loop(
    endpoint: Server[Any] | Client[Any] | Redialler[Any] | Peer[Any],
    ticks_per_second: float = 60,
    *,
    health: HealthLike = None,
    linger: float = 0.0,
    reason: str | None = None,
) -> AsyncGenerator[Inbox[Any, Any, Any, Any]]:
    """Like :func:`tickwire.loop`, for ``async for``: leaves the time between ticks to the event loop. Works
    on every event loop and with every endpoint; on a :class:`tickwire.testing.SimulatedNetwork` it advances
    virtual time.

    It ends as that one does, and when its task is cancelled, always disconnecting properly and closing the
    endpoint. It lingers only if nothing was raised. In a variable it goes on after ``break`` or an exception:
    end it by ``await loop.aclose()``, or by ``contextlib.aclosing``.

    Args:
        endpoint (Server | Client | Redialler | Peer): with either driver. With a Redialler, the loop goes
            on until it gives up.
        ticks_per_second (float, default 60): above 0 to 1,000,000.
        health (str | int | tuple[str, int] | None, default None): where to answer orchestrators over HTTP,
            as ``"127.0.0.1:8080"`` or a port of the loopback address: 200 while it ticks, 503 if it hasn't
            for 2 seconds (or two ticks, if that is longer). Anyone who can reach that address can ask.
        linger (float, default 0.0): seconds, 0 to 60, to wait at the end until everything sent has arrived,
            as for :meth:`Server.close`.
        reason (str | None, default None): a text for the other sides, 1 to 128 bytes in UTF-8; none of a
            peer's.
    """
    goodbye = Goodbye(endpoint, linger, reason)
    check_rate(ticks_per_second, "ticks_per_second")
    address = check_health(health)
    return _Loop(goodbye, ticks_per_second, Health(address, ticks_per_second) if address else None)


class _Loop(AsyncGenerator[Inbox[Any, Any, Any, Any]]):
    """No native generator: one whose body raised would only end when the event loop gets to it."""

    def __init__(self, goodbye: Goodbye, rate: float, health: Health | None) -> None:
        self._endpoint = goodbye.endpoint
        self._goodbye = goodbye
        self._rate = rate
        self._health = health
        self._loop: asyncio.AbstractEventLoop | None = None
        wake = weakref.WeakMethod(self._wake)
        # A weak reference: it ends when nobody iterates any more.
        self._stop = Stop(lambda: (method := wake()) and method())
        self._start = 0.0
        self._number = 0
        self._sleeper: asyncio.Future[None] | None = None
        self._handed_out = False
        self._ended = False

    async def asend(self, _value: None) -> Inbox[Any, Any, Any, Any]:
        if self._ended:
            raise StopAsyncIteration
        self._stop.handed_out = None
        try:
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
                self._stop.begin()
                if self._health is not None:
                    self._health.start()
                self._start = self._now(self._loop)
            else:
                self._flush()
                await self._next_tick(self._loop)
            if self._stop.requested or is_over(self._endpoint):
                await self._linger(self._loop)
                raise StopAsyncIteration
            if self._health is not None:
                self._health.tick()
            inbox = self._endpoint.receive()
        except BaseException:
            self._end()
            raise
        self._handed_out = True
        self._stop.handed_out = time.monotonic()
        return inbox

    async def athrow(self, kind: Any, *_: Any) -> Any:
        self._end()
        raise kind

    def _now(self, loop: asyncio.AbstractEventLoop) -> float:
        network = self._endpoint.network
        return loop.time() if network is None else network.now

    async def _linger(self, loop: asyncio.AbstractEventLoop) -> None:
        self._flush()
        self._stop.closing = True
        until = loop.time() + self._goodbye.linger
        self._goodbye.say(wait=False)
        network = self._endpoint.network
        while network is not None and not self._endpoint.closed:
            network.advance(VIRTUAL_STEP)
            self._endpoint.step()
            await asyncio.sleep(0)
        while not self._endpoint.closed and loop.time() < until:
            self._endpoint.step()
            await asyncio.sleep(LINGER_STEP)

    async def _next_tick(self, loop: asyncio.AbstractEventLoop) -> None:
        network = self._endpoint.network
        now = self._now(loop)
        number = max(self._number + 1, math.floor((now - self._start) * self._rate))
        self._number = number
        wait = self._start + number / self._rate - now
        if network is not None:
            if wait > 0:
                network.advance(wait)
            wait = 0.0
        if wait <= 0 or self._stop.requested:
            return await asyncio.sleep(0)
        due = now + wait
        while wait > BULK_STEP and not self._endpoint.closed and self._endpoint._moves_chunks:
            self._endpoint.step()
            await asyncio.sleep(BULK_STEP)
            wait = due - self._now(loop)
            if self._stop.requested:
                return None
        self._sleeper = loop.create_future()
        alarm = loop.call_later(max(wait, 0.0), self._rouse)
        try:
            await self._sleeper
        finally:
            alarm.cancel()
            self._sleeper = None

    def _wake(self) -> None:
        # A signal comes between any two steps of the program.
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the event loop is closed
                self._loop.call_soon_threadsafe(self._rouse)

    def _rouse(self) -> None:
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)

    def _flush(self) -> None:
        handed_out, self._handed_out = self._handed_out, False
        if handed_out and not self._endpoint.closed:
            self._endpoint.flush()

    def _end(self) -> None:
        if self._ended:
            return
        self._ended = True
        try:
            self._flush()
        finally:
            try:
                self._goodbye.hang_up()
            finally:
                if self._health is not None:
                    self._health.close()
                self._stop.end()

    def __del__(self) -> None:
        # The body left the loop, or raised.
        self._end()


async def redialler(protocol: Protocol[_P], token: TokenSource, **settings: Any) -> Redialler[_P]:
    """A :class:`tickwire.connections.Redialler` whose tokens come from a coroutine function. The first token
    is awaited here, so its exceptions are raised here.
    """
    first = token()
    if inspect.isawaitable(first):
        first = await first
    return Redialler(protocol, token, first_token=first, **settings)
