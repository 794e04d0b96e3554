"""Health checks for orchestrators. They report whether a server ticks."""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import threading
import time

from tickwire._core import Address

SILENCE = 2.0
"""Seconds without a tick after which a server counts as hung."""

TIMEOUT = 1.0
"""Seconds that one request may take."""

MAX_ASKERS = 32
"""The most connections at a time."""

MAX_REQUEST_BYTES = 4096


def check_health(given: str | int | tuple[str, int] | None) -> Address | None:
    """Checks the address to listen on, and returns it as an :class:`Address`; None if no address is given."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | str | tuple | Address):
        kind = type(given).__name__
        raise TypeError(f"health must be an address like '127.0.0.1:8080', a port, or None, not {kind}")
    if isinstance(given, str) and given.isdecimal():
        given = int(given)  # out of an environment variable
    if isinstance(given, int):
        return Address(("127.0.0.1", given))
    return Address(given)


class Health:
    """Answers HTTP requests on its own thread: 200 while ticks happen, 503 otherwise."""

    def __init__(self, address: Address, rate: float) -> None:
        family = socket.AF_INET6 if address.is_ipv6 else socket.AF_INET
        self._socket = socket.create_server((address.host, address.port), family=family)
        self.address = Address(self._socket.getsockname()[:2])
        self._socket.setblocking(False)
        self._silence = max(SILENCE, 2 / rate)
        self._ticked = time.monotonic()
        self._closed = False
        self._waking, self._woken = socket.socketpair()
        logging.getLogger("tickwire").info("health is served at http://%s", self.address)
        self._thread = threading.Thread(target=self._serve, name="tickwire health", daemon=True)
        self._thread.start()

    def tick(self) -> None:
        """Records that a tick happens."""
        self._ticked = time.monotonic()

    def close(self) -> None:
        """Stops answering. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._waking.close()  # wakes the thread, on every system
        self._thread.join(TIMEOUT)
        self._woken.close()
        self._socket.close()

    def _serve(self) -> None:
        askers: dict[socket.socket, float] = {}  # until when they may ask, the first first
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self._closed:
                until = next(iter(askers.values()), None)
                ready = selector.select(None if until is None else max(0.0, until - time.monotonic()))
                now = time.monotonic()
                done = [asker for key, _ in ready if isinstance(asker := key.fileobj, socket.socket)]
                for asker in done:
                    if asker in askers:
                        with contextlib.suppress(OSError):
                            asker.recv(MAX_REQUEST_BYTES)
                            asker.send(self._answer())
                        askers[asker] = now
                    elif asker is self._socket and (newcomer := self._accept()):
                        askers[newcomer] = now + TIMEOUT
                        selector.register(newcomer, selectors.EVENT_READ)
                # Silent connections make room for others.
                silent = list(askers)[: max(0, len(askers) - MAX_ASKERS)]
                for asker in {*silent, *(each for each, until in askers.items() if until <= now)}:
                    selector.unregister(asker)
                    del askers[asker]
                    asker.close()
        for asker in askers:
            asker.close()

    def _accept(self) -> socket.socket | None:
        try:
            asker, _ = self._socket.accept()
        except (BlockingIOError, ConnectionError):
            return None
        except OSError:
            time.sleep(0.1)  # out of files, maybe
            return None
        asker.setblocking(False)
        return asker

    def _answer(self) -> bytes:
        silence = time.monotonic() - self._ticked
        status, body = "200 OK", "ticking\n"
        if silence > self._silence:
            status, body = "503 Service Unavailable", f"no tick for {silence:.1f} seconds\n"
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
        return f"{head}Connection: close\r\n\r\n{body}".encode()
