"""A game loop that ends well: on Ctrl-C, when the system says so, and when the game raises."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, ClassVar, overload

from tickwire._core import Client, ClientHandle, Inbox, Server
from tickwire.health import Health, check_health
from tickwire.ticks import check_rate, warn_of_event_loop

__all__ = ["loop"]

NAP = 0.05
"""Seconds after which a loop between two ticks looks whether it is to end."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@overload
def loop(
    endpoint: Server, ticks_per_second: float = 60, *, health: str | int | tuple[str, int] | None = None
) -> Iterator[Inbox[tuple[ClientHandle, Any]]]: ...
@overload
def loop(
    endpoint: Client, ticks_per_second: float = 60, *, health: str | int | tuple[str, int] | None = None
) -> Iterator[Inbox[Any]]: ...
def loop(
    endpoint: Server | Client,
    ticks_per_second: float = 60,
    *,
    health: str | int | tuple[str, int] | None = None,
) -> Iterator[Inbox[Any]]:
    """Ticks a server or a client until the program is to end: yields what arrived, and sends what the body
    queued.

    It ends at the first Ctrl-C, at SIGTERM (as ``docker stop`` and systemd send it), when the endpoint is
    closed, and with a client's connection, after the inbox that says so. However it ends, by ``break`` or an
    exception in the body too, the other sides are told goodbye and the endpoint is closed. A second Ctrl-C
    interrupts at once.

    Signals are minded in the main thread alone, from the first tick to the end; then what was set before is
    set again. The pace is that of :func:`tickwire.ticks`: ticks that the body is too slow for are skipped.

    Args:
        endpoint: a server or a client, with either driver.
        ticks_per_second: above 0.
        health: where to answer orchestrators over HTTP, as ``"127.0.0.1:8080"``, or a port of the loopback
            address: 200 while ticks happen, 503 when none did for 2 seconds (or two ticks, if that is
            longer). Whoever reaches that address can ask.

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
    check_endpoint(endpoint)
    check_rate(ticks_per_second, "ticks_per_second")
    address = check_health(health)
    warn_of_event_loop("loop")
    return _loop(endpoint, ticks_per_second, Health(address, ticks_per_second) if address else None)


def check_endpoint(endpoint: Server | Client) -> None:
    if not isinstance(endpoint, Server | Client):
        raise TypeError(f"endpoint must be a Server or a Client, not {type(endpoint).__name__}")


def is_over(endpoint: Server | Client) -> bool:
    """Whether nothing comes any more."""
    if endpoint.closed:
        return True
    gone = isinstance(endpoint, Client) and endpoint.disconnect_reason is not None
    return gone and not endpoint.has_news


def _loop(endpoint: Server | Client, rate: float, health: Health | None) -> Iterator[Inbox[Any]]:
    stop = Stop()
    try:
        stop.begin()
        start, number = time.perf_counter(), 0
        while not (stop.requested or is_over(endpoint)):
            if health is not None:
                health.tick()
            inbox = endpoint.receive()
            try:
                yield inbox
            finally:
                # Also what a body queued that raised, or left the loop.
                if not endpoint.closed:
                    endpoint.flush()
            number = max(number + 1, math.floor((time.perf_counter() - start) * rate))
            due = start + number / rate
            while not stop.requested and (wait := due - time.perf_counter()) > 0:
                time.sleep(min(wait, NAP))
    finally:
        try:
            endpoint.close()
        finally:
            if health is not None:
                health.close()
            stop.end()


Handler = Callable[[int, FrameType | None], Any] | int | None


class Stop:
    """Whether the program was asked to end, between :meth:`begin` and :meth:`end`."""

    _active: ClassVar[list[Stop]] = []
    """All of them: one signal ends every loop of the main thread."""
    _before: ClassVar[dict[int, Handler]] = {}

    def __init__(self, wake: Callable[[], object] | None = None) -> None:
        self.requested = False
        self._wake = wake

    def begin(self) -> None:
        """Minds the signals from now on; in other threads than the main one, nothing is minded."""
        if threading.current_thread() is not threading.main_thread():
            return
        if not Stop._active:
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
        if not Stop._active and threading.current_thread() is threading.main_thread():
            for number, before in Stop._before.items():
                signal.signal(number, before)
            Stop._before.clear()

    @staticmethod
    def _ask(number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT:
            # Whoever presses it again doesn't want to wait for the body.
            signal.signal(number, signal.default_int_handler)
        for stop in Stop._active:
            stop.requested = True
            if stop._wake is not None:
                stop._wake()
