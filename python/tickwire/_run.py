"""Runs an endpoint at a tick rate until the program ends, and disconnects it properly."""

from __future__ import annotations

import math
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from tickwire._checks import check_number, encoded
from tickwire._core import Client, Peer, Server
from tickwire.errors import ClosedError

if TYPE_CHECKING:
    from tickwire._health import Health

__all__ = ["run"]

_I = TypeVar("_I")
_I_co = TypeVar("_I_co", covariant=True)

DEFAULT_RATE = 60
MAX_RATE = 1_000_000
MAX_LINGER = 60
MAX_REASON_BYTES = 128

BULK_STEP = 0.001
"""Seconds between two steps while chunks are in flight. Sending chunks only once a tick would fill the path's
queues in bursts. At 60 ticks a second and 50 Mbit/s, a burst would have 104 KB.
"""

GATHER = 0.004
"""The shortest time in seconds between two steps for arriving data, so that a busy server doesn't step too
often.
"""

NAP = 0.25
"""The longest sleep in seconds, so that a loop with few ticks a second soon notices that it must end."""

MAX_SELECTED = 1024
"""On POSIX, ``select`` supports only file descriptors below this number."""

LINGER_STEP = 0.01
"""Seconds between two steps of an endpoint that lingers; virtual seconds on a simulated network."""


@runtime_checkable
class Ticking(Protocol):
    """An object that is notified of each tick."""

    def tick(self) -> None: ...


HealthLike: TypeAlias = str | int | tuple[str, int] | Ticking | None


class Endpoint(Protocol[_I_co]):
    """A :class:`Server`, a :class:`Client` or a :class:`Peer`."""

    def receive(self) -> _I_co: ...


def run(
    endpoint: Endpoint[_I],
    rate: float | None = None,
    *,
    health: HealthLike = None,
    linger: float = 0.0,
    reason: str | None = None,
    empty_rate: float | None = None,
) -> Run[_I]:
    """Runs a server, a client or a peer until the program ends. In each tick, the endpoint receives packets,
    and the loop yields the tick's number and inbox. After the loop's body, the endpoint sends the queued
    messages.

    The loop ends at the first Ctrl-C, at SIGTERM (from ``docker stop`` or systemd), and when the endpoint is
    closed. A client's loop ends after the inbox with its :class:`Disconnected`, and a peer's loop after the
    inbox with its :class:`GameEnded`. At the end of the ``with`` block, queued messages are sent, the other
    sides are disconnected properly and the endpoint is closed, even after an exception. A second Ctrl-C
    doesn't wait for the loop's body or for this closing: it raises KeyboardInterrupt at once.

    Ticks are due at multiples of ``1 / rate`` from the start, so they don't drift. If the body is too slow,
    ticks are skipped, and the yielded numbers have gaps. Signals are handled only while the ``with`` block
    runs, and only in the main thread.

    Between ticks, arriving packets are acked within 4 ms, and lost data is resent. The game gets messages
    in the next tick.

    On a :class:`SimulatedNetwork`, the loop doesn't sleep, but advances virtual time from tick to tick. If
    the game runs several loops in turns, for example with ``zip``, the loops share this time.

    Args:
        endpoint (Server | Client | Peer): the endpoint to run, with any :attr:`Tuning.driver`.
        rate (float | None, default None): ticks per second, above 0 and at most 1,000,000; None: the
            protocol's ``tick_rate``, or 60 if it has none.
        health (str | int | tuple[str, int] | Lifecycle | None, default None): the address for HTTP health
            checks, such as ``"127.0.0.1:8080"``, or a port of the loopback address. The status of the answer
            is 200 while ticks happen. It is 503 if no tick has happened for 2 seconds or for the duration of
            two ticks, whichever is longer. Anyone who can reach the address gets an answer. Instead, you can
            give an object whose ``tick()`` is called in each tick, such as the result of
            :func:`tickwire.fleet.agones.lifecycle`.
        linger (float, default 0.0): the longest time in seconds, 0 to 60, to wait at the end for the other
            sides to receive everything, as in :meth:`Server.close`. A second Ctrl-C ends the wait.
        reason (str | None, default None): a text for the other sides, 1 to 128 bytes in UTF-8. It isn't
            sent if the body raises. Peers don't support it.
        empty_rate (float | None, default None): ticks per second while a server has no clients, above 0 and
            at most ``rate``; None: always ``rate``. A low value saves CPU time. Ticks are then skipped, so
            the yielded numbers have gaps. When a client connects, a tick starts at once, or within 0.25
            seconds if a thread drives the server. The argument has no effect on a simulated network.

    Raises:
        ValueError, TypeError: an argument is invalid.
        OSError: the address of ``health`` can't be bound; raised on entering the block.

    Example::

        with tw.run(tw.Server("127.0.0.1:40000", protocol)) as ticks:
            for tick, inbox in ticks:
                for client, what in inbox:
                    match what:
                        case tw.Connected(): ...
                        case Chat(text): ...
                        case tw.Disconnected(): ...
    """
    return Run(Loop(endpoint, rate, health, linger, reason, empty_rate))


class Run(Generic[_I]):
    """The ``with`` block of :func:`tickwire.run`."""

    def __init__(self, loop: Loop[_I]) -> None:
        self._loop = loop

    def __enter__(self) -> Iterator[tuple[int, _I]]:
        if asyncio_is_running():
            sentence = "tickwire.run sleeps, which stops the event loop that runs here: use tickwire.aio.run"
            warnings.warn(sentence, RuntimeWarning, stacklevel=2)
        self._loop.begin()
        self._arrivals = Arrivals(self._loop.endpoint)
        return self._ticks()

    def _ticks(self) -> Iterator[tuple[int, _I]]:
        loop, arrivals = self._loop, self._arrivals
        while (inbox := loop.receive()) is not None:
            yield loop.tick, inbox
            loop.finish_tick()
            arrivals.resume(rests=loop.rests)
            while (wait := loop.nap(steps=not arrivals.has_socket)) > 0:
                arrivals.sleep(wait)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._arrivals.close()
            self._loop.say_goodbye(kind)
            while self._loop.lingers():
                time.sleep(self._loop.linger_step())
        finally:
            self._loop.end()

    if not TYPE_CHECKING:  # type checkers know that it can't be iterated over

        def __iter__(self):
            raise TypeError("run() must be entered: with tw.run(server) as ticks")


class Arrivals:
    """Sleeps between ticks. Steps an endpoint when its socket has data or a packet is due."""

    def __init__(self, endpoint: Any) -> None:
        self._endpoint = endpoint
        self._due = math.inf  # nothing is due between ticks until something arrives
        self._stepped = 0.0
        self._wait: Callable[[float], Any] | None = None
        # With a thread, in memory, on a simulated network or after its end it has no socket to wait for.
        with suppress(ValueError, NotImplementedError, ClosedError):
            self._wait = waiting(endpoint._fileno())

    @property
    def has_socket(self) -> bool:
        return self._wait is not None

    def resume(self, *, rests: bool) -> None:
        """Prepares to sleep after a tick. If chunks are in flight or a long sleep follows, the next
        :meth:`sleep` steps the endpoint at once and learns when its next packet is due.
        """
        if self._wait is not None and (rests or self._endpoint._moves_chunks):
            self._due = 0.0

    def sleep(self, longest: float) -> None:
        """Sleeps for at most ``longest`` seconds. If a step is due before that, wakes up and steps the
        endpoint.
        """
        if self._wait is None:
            time.sleep(longest)
            return
        now = time.perf_counter()
        until = now + longest
        wait = min(until, self._due) - now
        if wait > 0 and self._has_arrived(wait):
            gather = BULK_STEP if self._endpoint._moves_chunks else GATHER
            self._due = min(self._due, self._stepped + gather)
            time.sleep(max(0.0, min(until, self._due) - time.perf_counter()))
        now = time.perf_counter()
        if self._due <= now:
            self._stepped = now
            with suppress(ClosedError):
                self._due = now + self._endpoint._step()

    def _has_arrived(self, wait: float) -> bool:
        try:
            return bool(self._wait(wait)) if self._wait is not None else False
        except OSError:
            # Another thread may close the endpoint at any time: some systems can't wait for its socket then.
            time.sleep(wait)
            return False

    def close(self) -> None:
        """Stops stepping. The socket can be closed afterwards."""
        self._wait = None


def waiting(socket: int) -> Callable[[float], Any]:
    """Returns a function that waits until the socket has data. The function gets the longest wait in seconds,
    and returns a true value if data has arrived.
    """
    if hasattr(select, "poll") and socket >= MAX_SELECTED:
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        return lambda seconds: poll.poll(1000 * seconds)  # to the next millisecond
    return lambda seconds: select.select([socket], [], [], seconds)[0]


class Loop(Generic[_I]):
    """The common part of :func:`tickwire.run` and :func:`tickwire.aio.run`: everything except sleeping."""

    def __init__(
        self,
        endpoint: Endpoint[_I],
        rate: float | None,
        health: HealthLike,
        linger: float,
        reason: str | None,
        empty_rate: float | None,
    ) -> None:
        self.endpoint = check_endpoint(endpoint)
        self._network = self.endpoint.network
        self._rate = check_rate(self.endpoint.protocol.tick_rate or DEFAULT_RATE if rate is None else rate)
        self._pause = check_pause(self.endpoint, empty_rate, self._rate)
        self._goodbye = check_goodbye(self.endpoint, linger, reason)
        self._health: Ticking | None = health if isinstance(health, Ticking) else None
        self._health_at = None if health is None or self._health is not None else check_health(health)
        self._answers: Health | None = None
        self._stop = Stop()
        self._start = 0.0
        self._due = 0.0
        self.rests = False
        """Whether the server is empty and ticks at its lower rate."""
        self._unsent = False  # the body may have queued something
        self._lingering = False
        self.tick = 0

    def begin(self) -> None:
        """Starts to handle signals and health checks."""
        if self._health_at is not None:
            from tickwire._health import Health

            slowest = min(self._rate, 1 / self._pause) if self._pause else self._rate
            self._health = self._answers = Health(self._health_at, slowest)
        self._stop.begin()
        self._start = self._now()

    def receive(self) -> _I | None:
        """Returns the tick's inbox, or None if the loop should end."""
        if self._stop.requested or is_over(self.endpoint):
            return None
        if self._health is not None:
            self._health.tick()
        if self.rests:
            self.rests = False
            self.tick = max(self.tick, self._tick_at(self._now()))
        self._unsent = True
        try:
            inbox: _I = self.endpoint.receive()
        except ClosedError:
            # Another thread, or the source of a client's tokens, closed it meanwhile.
            if self.endpoint.closed:
                return None
            raise
        return inbox

    def finish_tick(self) -> None:
        """Sends what the body queued, and plans the next tick."""
        self._flush()
        now = self._now()
        self.tick = max(self.tick + 1, self._tick_at(now))
        self._due = self._start + self.tick / self._rate
        if self._pause and not self.endpoint.closed and not self.endpoint.clients:
            self.rests = True
            self._due = max(self._due, now + self._pause)

    def nap(self, *, steps: bool = True) -> float:
        """Returns the seconds to sleep before the next call; 0 or less if the tick is due or the loop should
        end. With ``steps``, it also does the endpoint's work between ticks while chunks are in flight.
        """
        wait = self._due - self._now()
        if wait <= 0 or self._stop.requested or self.endpoint.closed:
            return 0.0
        if self.rests and self.endpoint._has_news:  # a client connected
            return 0.0
        if self._network is not None:
            # Of several loops on one network the first one to get here advances its time.
            self._network.advance(wait)
            return 0.0
        if steps and self.endpoint._moves_chunks:
            self._step()
            wait = min(wait, BULK_STEP)
        return min(wait, NAP)

    def say_goodbye(self, raised: type[BaseException] | None) -> None:
        """Sends queued messages and starts to close the endpoint. If the program was interrupted, only
        :meth:`end` closes the endpoint.
        """
        self._stop.closing = True
        try:
            self._flush()
        finally:
            if raised is not None:
                self._goodbye.pop("reason", None)  # the reason belongs to a planned end
            if not self.endpoint.closed and (raised is None or issubclass(raised, Exception)):
                self.endpoint.close(**self._goodbye, wait=False)
                self._lingering = True

    def lingers(self) -> bool:
        """Whether the endpoint is still closing."""
        return self._lingering and not self.endpoint.closed

    def linger_step(self) -> float:
        """Continues to linger. Returns the seconds to sleep until the next step."""
        if self._network is None:
            self._step()
            return LINGER_STEP
        # No other loop advances the network's time now.
        self._network.advance(LINGER_STEP)
        self._step()
        return 0.0

    def end(self) -> None:
        """Closes the endpoint if it is open, and stops handling signals."""
        try:
            if not self.endpoint.closed:
                self.endpoint.close(**{**self._goodbye, "linger": 0.0})
        finally:
            if self._answers is not None:
                self._answers.close()
            self._stop.end()

    def _step(self) -> None:
        with suppress(ClosedError):  # it may end at any time, if a thread runs it
            self.endpoint._step()

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, False
        if unsent:
            with suppress(ClosedError):  # the body or another thread may have closed it
                self.endpoint.flush()

    def _tick_at(self, now: float) -> int:
        return math.floor((now - self._start) * self._rate)

    def _now(self) -> float:
        now: float = time.perf_counter() if self._network is None else self._network.now
        return now


def asyncio_is_running() -> bool:
    return "asyncio" in sys.modules and sys.modules["asyncio"]._get_running_loop() is not None


def check_endpoint(endpoint: object) -> Any:
    """Refuses objects that aren't endpoints."""
    if not isinstance(endpoint, Server | Client | Peer):
        raise TypeError(f"endpoint must be a Server, a Client or a Peer, not {type(endpoint).__name__}")
    return endpoint


def check_rate(rate: float) -> float:
    check_number("rate", rate)
    if not 0 < rate <= MAX_RATE:
        raise ValueError(f"rate must be above 0 to {MAX_RATE} ticks a second, not {rate!r}")
    return rate


def check_pause(endpoint: Any, empty_rate: float | None, rate: float) -> float:
    """Returns the seconds between two ticks of an empty server; 0: the usual rate."""
    if empty_rate is None:
        return 0.0
    if not isinstance(endpoint, Server):
        raise ValueError(f"empty_rate must be None for a {type(endpoint).__name__}: only servers have it")
    check_number("empty_rate", empty_rate)
    if not 0 < empty_rate <= rate:
        raise ValueError(f"empty_rate must be above 0 to rate ({rate}), not {empty_rate!r}")
    return 0.0 if endpoint.network is not None else 1 / empty_rate


def check_health(health: Any) -> Any:
    # Imported here because only servers under an orchestrator need its sockets and selectors.
    from tickwire._health import check_health as check

    return check(health)


def check_goodbye(endpoint: Any, linger: float, reason: str | None) -> dict[str, Any]:
    """Checks the arguments for :meth:`Server.close` before the loop starts, and returns them."""
    check_number("linger", linger)
    if not 0 <= linger <= MAX_LINGER:
        raise ValueError(f"linger must be 0 to {MAX_LINGER} seconds, not {linger!r}")
    if isinstance(endpoint, Peer):
        if reason is not None:
            raise ValueError("reason must be None with a Peer: its players learn a LeaveReason")
        return {"linger": linger}
    if reason is not None:
        size = len(encoded("reason", reason))
        if endpoint.protocol.framing == "yojimbo":
            raise ValueError("reason can't be sent in yojimbo's framing: leave it out")
        if not 1 <= size <= MAX_REASON_BYTES or "\0" in reason:
            bound = f"1 to {MAX_REASON_BYTES} bytes in UTF-8 without NUL"
            raise ValueError(f"reason must be {bound}, not {reason!r}")
    return {"linger": linger, "reason": reason}


def is_over(endpoint: Any) -> bool:
    """Whether the endpoint is closed or can't receive anything."""
    if endpoint.closed:
        return True
    if isinstance(endpoint, Server):
        return False
    why = endpoint.ended if isinstance(endpoint, Peer) else endpoint.disconnect_reason
    return why is not None and not endpoint._has_news


Handler: TypeAlias = Callable[[int, FrameType | None], Any] | int


class Stop:
    """Handles signals that ask the program to end. It works between :meth:`begin` and :meth:`end`, and only
    in the main thread.
    """

    _active: ClassVar[list[Stop]] = []
    """All active loops: one signal ends every loop of the main thread."""
    _before: ClassVar[dict[int, Handler]] = {}
    interrupted: ClassVar[bool] = False
    """Whether Ctrl-C ended a loop. This decides the exit code of commands."""

    def __init__(self) -> None:
        self.requested = False
        self.closing = False
        """Whether the loop is over and its endpoint is closing."""

    def begin(self) -> None:
        """Starts to handle signals."""
        if threading.current_thread() is not threading.main_thread():
            return
        if not Stop._active:
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.getsignal(number)
                # Ignored on purpose, as under nohup, or of a library that can't be put back.
                if before is not signal.SIG_IGN and before is not None:
                    Stop._before[number] = before
                    signal.signal(number, Stop._ask)
        Stop._active.append(self)

    def end(self) -> None:
        """Restores the earlier handlers."""
        if self not in Stop._active:
            return
        Stop._active.remove(self)
        if not Stop._active:
            for number, before in Stop._before.items():
                if signal.getsignal(number) is Stop._ask:  # a handler that the game set meanwhile stays
                    signal.signal(number, before)
            Stop._before.clear()

    @staticmethod
    def _ask(number: int, frame: FrameType | None) -> None:
        before = Stop._before.get(number)
        if number == signal.SIGINT and any(stop.requested or stop.closing for stop in Stop._active):
            # Asked before, so it doesn't wait for the body or the goodbye.
            if not callable(before):  # the system's own, which would end the program without a goodbye
                raise KeyboardInterrupt
            before(number, frame)
            return
        Stop.interrupted |= number == signal.SIGINT
        for stop in Stop._active:
            stop.requested = True
