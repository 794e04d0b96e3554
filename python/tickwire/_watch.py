"""Watches a socket from an event loop, even from one that can't: the proactor, which is Windows' default.

If the event loop has no ``add_reader``, a thread waits for the socket with ``select``, wakes the event loop,
and waits again once that has read the socket. Tornado does the same on Windows.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import threading
from collections.abc import Callable

__all__: list[str] = []


class Watch:
    """Calls a function on the event loop when a descriptor can be read, until it is closed.

    Args:
        loop: the running event loop.
        fileno: an endpoint's.
        readable: called on the event loop, to read what has arrived.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, fileno: int, readable: Callable[[], None]) -> None:
        self._loop = loop
        self._fileno = fileno
        self._readable = readable
        self._thread: _Thread | None = None
        try:
            loop.add_reader(fileno, readable)
        except NotImplementedError:
            self._thread = _Thread(loop, fileno, self._read)

    def _read(self) -> None:
        if (thread := self._thread) is None:
            return  # closed since the thread saw the datagram
        try:
            self._readable()
        finally:
            thread.go_on()

    def close(self) -> None:
        """Stops watching: then the socket may be closed."""
        if self._thread is None:
            self._loop.remove_reader(self._fileno)
        else:
            thread, self._thread = self._thread, None
            thread.stop()


class _Thread:
    def __init__(self, loop: asyncio.AbstractEventLoop, fileno: int, readable: Callable[[], None]) -> None:
        self._loop = loop
        self._fileno = fileno
        self._readable = readable
        # On Windows `select` takes only sockets: a socket pair instead of a pipe.
        self._asleep, self._alarm = socket.socketpair()
        self._was_read = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="tickwire-watch", daemon=True)
        self._thread.start()

    def go_on(self) -> None:
        self._was_read.set()

    def stop(self) -> None:
        """Waits for the thread: it must not watch a number that the system reuses for another socket."""
        self._stopped = True
        self._was_read.set()
        self._alarm.send(b"x")
        self._thread.join()
        self._alarm.close()
        self._asleep.close()

    def _run(self) -> None:
        while True:
            readable, _, _ = select.select([self._fileno, self._asleep.fileno()], [], [])
            self._was_read.clear()  # before reading `_stopped`: stop() sets both in the other order
            if self._stopped or self._asleep.fileno() in readable:
                return
            with contextlib.suppress(RuntimeError):  # the event loop was closed before the driver
                self._loop.call_soon_threadsafe(self._readable)
            self._was_read.wait()
