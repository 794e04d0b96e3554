"""What the roles ask of a contender: one end of its conversations."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

LOCALHOST = "127.0.0.1"
KERNEL_BUFFER = 4 << 20
"""The socket buffers that every contender asks for, where it can."""


def not_installed(module: str) -> str | None:
    """A sentence if a module can't be imported."""
    return None if importlib.util.find_spec(module) else f"{module} is not installed"


@dataclass
class Options:
    """A role's orders."""

    reliable: bool = False
    clients: int = 1
    port: int = 0
    warm: float = 0.3
    seconds: float = 1.0
    window: int = 4096
    batch: int = 256
    block: int = 0


class Endpoint(Protocol):
    """One end. ``peers`` are the connected ones; a client's only peer is its server."""

    port: int
    peers: list[Any]

    async def receive(self, timeout: float) -> list[tuple[Any, bytes]]:
        """The arrived messages, after waiting up to ``timeout`` seconds; 0 doesn't wait."""

    async def count(self, timeout: float) -> int:
        """As :meth:`receive`, when nobody asks from whom."""

    async def idle(self, seconds: float) -> None:
        """Lets time pass between two ticks, as programs with this library do."""

    def send(self, peer: Any, data: bytes) -> None:
        """Queues or sends one message, reliably if the options say so."""

    def send_many(self, peer: Any, data: bytes, count: int) -> None:
        """As many messages; each counts as one of its own."""

    def send_all(self, data: bytes) -> None:
        """One message to each peer, as if each were another."""

    def send_block(self, peer: Any, data: bytes) -> None:
        """Queues a large block, reliably."""

    async def flush(self) -> None:
        """Sends everything queued."""

    def fileno(self) -> int | None:
        """Its socket, to wait for with others; None where somebody else does."""

    def woken(self) -> int:
        """What an event loop has it do when its socket has something: takes all, and sends what is due. How
        many messages came."""

    def close(self) -> None: ...


class Sending:
    """How many messages are sent: one by one, where there is no better way."""

    peers: list[Any]

    def send(self, peer: Any, data: bytes) -> None:
        raise NotImplementedError

    def send_many(self, peer: Any, data: bytes, count: int) -> None:
        send = self.send
        for _ in range(count):
            send(peer, data)

    def send_all(self, data: bytes) -> None:
        send = self.send
        for peer in self.peers:
            send(peer, data)


class Polled(Sending):
    """An end that works when it is called. Subclasses have ``poll`` and ``send``; this has the rest."""

    port: int = 0

    def poll(self, timeout: float) -> list[tuple[Any, bytes]]:
        raise NotImplementedError

    async def receive(self, timeout: float) -> list[tuple[Any, bytes]]:
        return self.poll(timeout)

    async def count(self, timeout: float) -> int:
        return len(self.poll(timeout))

    async def idle(self, seconds: float) -> None:
        time.sleep(max(seconds, 0.0))

    async def flush(self) -> None:
        pass

    def fileno(self) -> int | None:
        return None

    def woken(self) -> int:
        return len(self.poll(0.0))

    def close(self) -> None:
        pass


def run_polled(coroutine: Coroutine[Any, Any, None]) -> None:
    """Runs a role of a contender that needs no event loop: it never really waits."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError("a polled contender waited for an event loop")
