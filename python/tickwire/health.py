"""An answer for orchestrators: whether a server ticks."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time

from tickwire._core import Address

SILENCE = 2.0
"""Seconds without a tick after which a server counts as hanging."""

PATIENCE = 1.0
"""Seconds that one question may take: others wait for so long."""

MAX_REQUEST_BYTES = 4096


def check_health(given: str | int | tuple[str, int] | None) -> Address | None:
    """The address that is meant, if one is given."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | str | tuple | Address):
        kind = type(given).__name__
        raise TypeError(f"health must be an address like '127.0.0.1:8080', a port, or None, not {kind}")
    if isinstance(given, int):
        return Address(("127.0.0.1", given))
    return Address(given)


class Health:
    """Answers HTTP on an address from a thread of its own: 200 while ticks happen, 503 otherwise."""

    def __init__(self, address: Address, rate: float) -> None:
        family = socket.AF_INET6 if address.is_ipv6 else socket.AF_INET
        self._socket = socket.create_server((address.host, address.port), family=family)
        self.address = Address(self._socket.getsockname()[:2])
        self._silence = max(SILENCE, 2 / rate)
        self._ticked = time.monotonic()
        self._closed = False
        logging.getLogger("tickwire").info("health is told at http://%s", self.address)
        self._thread = threading.Thread(target=self._serve, name="tickwire health", daemon=True)
        self._thread.start()

    def tick(self) -> None:
        """A tick happens."""
        self._ticked = time.monotonic()

    def close(self) -> None:
        """Ends the answers."""
        self._closed = True
        # Wakes the thread, on every system.
        with contextlib.suppress(OSError):
            socket.create_connection((self.address.host, self.address.port), PATIENCE).close()
        self._socket.close()
        self._thread.join(2 * PATIENCE)

    def _serve(self) -> None:
        while not self._closed:
            try:
                asker, _ = self._socket.accept()
            except OSError:
                if self._closed:
                    return
                # Out of files, maybe.
                time.sleep(0.1)
                continue
            with asker, contextlib.suppress(OSError):
                asker.settimeout(PATIENCE)
                asker.recv(MAX_REQUEST_BYTES)
                asker.sendall(self._answer())

    def _answer(self) -> bytes:
        silence = time.monotonic() - self._ticked
        status, body = "200 OK", "ticking\n"
        if silence > self._silence:
            status, body = "503 Service Unavailable", f"no tick for {silence:.1f} seconds\n"
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
        return f"{head}Connection: close\r\n\r\n{body}".encode()
