"""A game loop that ends well: on Ctrl-C, when the system says so, and when the game raises."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, overload

from tickwire._checks import check_number, encoded
from tickwire._connection import Event, PeerEvent, Reconnecting
from tickwire._core import Client, ClientHandle, Inbox, Peer, Player, Server
from tickwire._redial import Redialler
from tickwire._ticks import check_rate, warn_of_event_loop

if TYPE_CHECKING:
    from tickwire._health import Health

__all__ = ["loop"]

_P = TypeVar("_P")

BULK_STEP = 0.001
"""Seconds between two steps while chunks are under way. Sent once a tick, they would fill the queues of the
path in bursts: 104 KB at 60 ticks and 50 Mbit/s."""

NAP = 0.05
"""Seconds after which a loop between two ticks looks whether it is to end."""

VIRTUAL_STEP = 0.01
"""Seconds of virtual time between two steps of an endpoint that lingers."""

MAX_WAIT = 1.0
"""Seconds for which a body may let a Ctrl-C wait. After them it hangs, or the loop was left and is kept."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)
MAX_LINGER = 60
MAX_REASON_BYTES = 128


HealthLike: TypeAlias = str | int | tuple[str, int] | None


@overload
def loop(
    endpoint: Server[_P],
    ticks_per_second: float = 60,
    *,
    health: HealthLike = None,
    linger: float = 0.0,
    reason: str | None = None,
) -> Generator[
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
) -> Generator[Inbox[_P, _P | Event, tuple[int, _P]]]: ...
@overload
def loop(
    endpoint: Redialler[_P],
    ticks_per_second: float = 60,
    *,
    health: HealthLike = None,
    linger: float = 0.0,
    reason: str | None = None,
) -> Generator[Inbox[_P, _P | Event | Reconnecting, tuple[int, _P]]]: ...
@overload
def loop(
    endpoint: Peer[_P],
    ticks_per_second: float = 60,
    *,
    health: HealthLike = None,
    linger: float = 0.0,
    reason: None = None,
) -> Generator[
    Inbox[tuple[Player, _P], tuple[Player | None, _P | PeerEvent], tuple[Player, int, _P], PeerEvent]
]: ...
def loop(
    endpoint: Server[Any] | Client[Any] | Redialler[Any] | Peer[Any],
    ticks_per_second: float = 60,
    *,
    health: HealthLike = None,
    linger: float = 0.0,
    reason: str | None = None,
) -> Generator[Inbox[Any, Any, Any, Any]]:
    """Ticks a server, a client or a peer until the program is to end: yields what arrived, and sends what
    the body queued.

    It ends at the first Ctrl-C, at SIGTERM (as ``docker stop`` and systemd send it), when the endpoint is
    closed, and with a client's connection or a peer's game, after the inbox that says so. However it ends,
    also by ``break`` or an exception in the body, the other sides are disconnected properly and the endpoint
    is closed. A second Ctrl-C interrupts at once, and so does the first if the body has run for a second.

    A loop that you keep in a variable goes on after ``break`` or an exception: end it by its ``close()``, or
    by ``with contextlib.closing(tw.loop(server)) as inboxes:``.

    Signals are minded in the main thread alone, from the first tick to the end; then what was set before is
    set again. The pace is that of :func:`tickwire.ticks`: ticks that the body is too slow for are skipped.

    On a :class:`SimulatedNetwork` it doesn't sleep: it lets virtual time pass, from tick to tick. Loops that
    take turns (``zip``) share that time.

    Args:
        endpoint (Server | Client | Redialler | Peer): with either driver; of a redialling one the loop goes
            on until it gives up.
        ticks_per_second (float, default 60): above 0 to 1,000,000.
        health (str | int | tuple[str, int] | None, default None): where to answer orchestrators over HTTP, as
            ``"127.0.0.1:8080"``, or a port of the loopback address: 200 while ticks happen, 503 when none did
            for 2 seconds (or two ticks, if that is longer). Anyone who reaches that address can ask.
        linger (float, default 0.0): seconds, 0 to 60, that the other sides have at the end to get what was
            sent, as for :meth:`Server.close`.
        reason (str | None, default None): a text for the other sides, 1 to 128 bytes in UTF-8; none of a
            peer's.

    Raises:
        ValueError, TypeError: naming the argument, its value and its bound.
        OSError: the address of ``health`` can't be bound.

    Example::

        for inbox in tw.loop(tw.Server("127.0.0.1:40000", protocol)):
            for client, what in inbox:
                match what:
                    case tw.Connected(): ...
                    case Chat(text): ...
                    case tw.Disconnected(): ...
    """
    goodbye = Goodbye(endpoint, linger, reason)
    check_rate(ticks_per_second, "ticks_per_second")
    warn_of_event_loop("loop")
    return _loop(endpoint, ticks_per_second, goodbye, _health(health, ticks_per_second))


def _health(given: HealthLike, rate: float) -> Health | None:
    if given is None:
        return None
    # Imported here because only servers under an orchestrator need its sockets and selectors.
    from tickwire._health import Health, check_health

    address = check_health(given)
    return Health(address, rate) if address else None


def check_endpoint(endpoint: object) -> None:
    """Refuses objects that can't be ticked."""
    if not isinstance(endpoint, Server | Client | Redialler | Peer):
        kind = type(endpoint).__name__
        raise TypeError(f"endpoint must be a Server, a Client, a Redialler or a Peer, not {kind}")


@dataclass(frozen=True)
class Goodbye:
    """How an endpoint is to be closed: checked before there is anything to close."""

    endpoint: Server | Client | Redialler[Any] | Peer[Any]
    linger: float
    reason: str | None

    def __post_init__(self) -> None:
        check_endpoint(self.endpoint)
        check_number("linger", self.linger)
        if not 0 <= self.linger <= MAX_LINGER:
            raise ValueError(f"linger must be 0 to {MAX_LINGER} seconds, not {self.linger!r}")
        if self.reason is not None:
            if isinstance(self.endpoint, Peer):
                raise ValueError("reason must be None with a Peer: its players learn a LeaveReason")
            size = len(encoded("reason", self.reason))
            if self.endpoint.protocol.framing == "yojimbo":
                raise ValueError("reason can't be sent in yojimbo's framing: leave it out")
            if not 1 <= size <= MAX_REASON_BYTES or "\0" in self.reason:
                bound = f"1 to {MAX_REASON_BYTES} bytes in UTF-8 without NUL"
                raise ValueError(f"reason must be {bound}, not {self.reason!r}")

    def say(self, *, wait: bool = True) -> None:
        """Closes the endpoint, also when that is interrupted."""
        if self.endpoint.closed:
            return
        try:
            if isinstance(self.endpoint, Peer):
                self.endpoint.close(linger=self.linger, wait=wait)
            else:
                self.endpoint.close(linger=self.linger, reason=self.reason, wait=wait)
        except BaseException:
            self.endpoint.close()
            raise

    def hang_up(self) -> None:
        """Closes the endpoint without waiting for anything."""
        if isinstance(self.endpoint, Peer):
            self.endpoint.close()
        else:
            self.endpoint.close(reason=self.reason)

    def linger_virtually(self) -> None:
        """Advances the time of a simulated network while the endpoint lingers, because nobody else does."""
        network = self.endpoint.network
        while network is not None and not self.endpoint.closed:
            network.advance(VIRTUAL_STEP)
            if not self.endpoint.closed:
                self.endpoint.step()


def is_over(endpoint: Server | Client | Redialler[Any] | Peer[Any]) -> bool:
    """Whether nothing comes any more."""
    if endpoint.closed:
        return True
    if isinstance(endpoint, Server):
        return False
    why = endpoint.ended if isinstance(endpoint, Peer) else endpoint.disconnect_reason
    return why is not None and not endpoint.has_news


def _loop(
    endpoint: Server | Client | Redialler[Any] | Peer[Any],
    rate: float,
    goodbye: Goodbye,
    health: Health | None,
) -> Generator[Inbox[Any, Any, Any, Any]]:
    stop = Stop()
    try:
        stop.begin()
        if health is not None:
            health.start()
        clock = LoopClock(endpoint, stop)
        start, number = clock.now(), 0
        while not (stop.requested or is_over(endpoint)):
            if health is not None:
                health.tick()
            inbox = endpoint.receive()
            stop.handed_out = time.monotonic()
            try:
                yield inbox
            finally:
                stop.handed_out = None
                # Includes messages queued by a body that raised or left the loop.
                if not endpoint.closed:
                    endpoint.flush()
            number = max(number + 1, math.floor((clock.now() - start) * rate))
            clock.wait_until(start + number / rate)
    finally:
        stop.closing = True
        try:
            goodbye.say()
            goodbye.linger_virtually()
        finally:
            if health is not None:
                health.close()
            stop.end()


class LoopClock:
    """The time that a loop has: the system's, or that of a simulated network."""

    def __init__(self, endpoint: Server[Any] | Client[Any] | Redialler[Any] | Peer[Any], stop: Stop) -> None:
        self._endpoint = endpoint
        self._network = endpoint.network
        self._stop = stop

    def now(self) -> float:
        return time.perf_counter() if self._network is None else self._network.now

    def wait_until(self, due: float) -> None:
        """Sleeps while chunks move, or lets virtual time pass. Of several loops on one network each comes
        here, and finds that it is late enough already where another one was first."""
        if self._network is not None:
            if (wait := due - self._network.now) > 0:
                self._network.advance(wait)
            return
        while not self._stop.requested and (wait := due - time.perf_counter()) > 0:
            if not self._endpoint.closed and self._endpoint._moves_chunks:
                self._endpoint.step()
                wait = min(wait, BULK_STEP)
            time.sleep(min(wait, NAP))


Handler = Callable[[int, FrameType | None], Any] | int | None


class Stop:
    """Whether the program was asked to end, between :meth:`begin` and :meth:`end`."""

    _active: ClassVar[list[Stop]] = []
    """All of them: one signal ends every loop of the main thread."""
    _before: ClassVar[dict[int, Handler]] = {}
    _replaced: ClassVar[set[int]] = set()
    """Those for which this class set something else than :meth:`_ask`."""

    def __init__(self, wake: Callable[[], object] | None = None) -> None:
        self.requested = False
        self.closing = False
        """The loop is over, and its endpoint says goodbye."""
        self.handed_out: float | None = None
        """When the body got its inbox, by the monotonic clock; None outside the body."""
        self._wake = wake

    def begin(self) -> None:
        """Minds the signals from now on; in other threads than the main one, nothing is minded."""
        if threading.current_thread() is not threading.main_thread():
            return
        if not Stop._active:
            Stop._restore()  # left by a loop that ended in another thread
            for number in SIGNALS:
                before = signal.getsignal(number)
                # Ignored on purpose, as under nohup, or of a library that can't be put back.
                if before is not signal.SIG_IGN and before is not None:
                    Stop._before[number] = before
                    signal.signal(number, Stop._ask)
        Stop._active.append(self)

    def end(self) -> None:
        """Minds them no more."""
        if self not in Stop._active:
            return
        Stop._active.remove(self)
        # Only the main thread may do this: otherwise the next signal or loop does.
        if not Stop._active and threading.current_thread() is threading.main_thread():
            Stop._restore()

    def _hangs(self) -> bool:
        return self.handed_out is not None and time.monotonic() - self.handed_out > MAX_WAIT

    @staticmethod
    def _restore() -> None:
        for number, before in Stop._before.items():
            now = signal.getsignal(number)
            ours = signal.default_int_handler if number in Stop._replaced else Stop._ask
            if now is ours:  # a handler that the game set meanwhile stays
                signal.signal(number, before)
        Stop._before.clear()
        Stop._replaced.clear()

    @staticmethod
    def _ask(number: int, _: FrameType | None) -> None:
        if not Stop._active:
            # The last loop ended in another thread.
            Stop._restore()
            signal.raise_signal(number)
            return
        if number == signal.SIGINT and (
            any(stop.closing for stop in Stop._active) or all(stop._hangs() for stop in Stop._active)
        ):
            # A loop only says goodbye, or no loop would end soon: nothing is left to be asked to end.
            Stop._restore()
            signal.raise_signal(number)
            return
        if number == signal.SIGINT:
            # A second Ctrl-C doesn't wait for the body.
            signal.signal(number, signal.default_int_handler)
            Stop._replaced.add(number)
        for stop in Stop._active:
            stop.requested = True
            if stop._wake is not None:
                stop._wake()
