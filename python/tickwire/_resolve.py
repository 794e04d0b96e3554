"""Looks up host names on a separate thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tickwire._core import Address

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["resolve"]


def resolve(address: str) -> Future[list[Address]]:
    """Looks up ``"name:port"`` on a separate thread, and returns a future of the addresses found.

    ::

        lookup = tw.resolve("play.example.org:40000")
        ...                              # the game continues
        if lookup.done():
            addresses = lookup.result()  # in the system's order of preference

    The future fails with OSError if the name isn't found. The thread doesn't keep the program from exiting.

    Raises:
        ValueError: the text is not a name and a port.
    """
    # Most games give a number, so this and the sockets are imported here.
    from concurrent.futures import Future

    if not isinstance(address, str):
        raise TypeError(f"address must be a str like 'play.example.org:40000', not {type(address).__name__}")
    host, separator, digits = address.rpartition(":")
    port = int(digits) if digits.isascii() and digits.isdigit() else -1
    if not separator or not host or not 0 <= port <= 65_535:
        raise ValueError(f"{address!r} is not a name and a port, like 'play.example.org:40000'")
    future: Future[list[Address]] = Future()
    future.set_running_or_notify_cancel()
    host = host.removeprefix("[").removesuffix("]")
    threading.Thread(target=_look_up, args=(host, port, future), name="tickwire-resolve", daemon=True).start()
    return future


def _look_up(host: str, port: int, future: Future[list[Address]]) -> None:
    import socket

    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
        addresses = [Address((str(sockaddr[0]), port)) for _, _, _, _, sockaddr in found]
        future.set_result(list(dict.fromkeys(addresses)))
    except OSError as error:
        # The system's sentence doesn't say which name.
        future.set_exception(type(error)(error.errno, f"{error.strerror}: {host}"))
    except Exception as error:
        future.set_exception(error)
