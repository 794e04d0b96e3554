"""Plain UDP sockets of the standard library, read and written in the game's loop."""

from __future__ import annotations

import contextlib
import select
import socket
from typing import Any

from contenders.endpoint import KERNEL_BUFFER, LOCALHOST, Options, Polled, run_polled

NAME = "sockets"
VARIANTS = ("",)
REQUIRES: tuple[str, ...] = ()
GIVES = "datagrams, each message one of them"
LACKS = "connections, encryption, acks, resending, ordering, packing of messages"
SWARM = "udp"
RELIABLE = False
DATAGRAMS = True
UNRELIABLE = True
NATIVE = False
WAKES = True


def missing(_variant: str) -> str | None:
    return None


def run(_variant: str, coroutine: Any) -> None:
    run_polled(coroutine)


class End(Polled):
    def __init__(self, server: int | None) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            self.socket.setsockopt(socket.SOL_SOCKET, buffer, KERNEL_BUFFER)
        self.socket.bind((LOCALHOST, 0))
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]
        self.peers = [] if server is None else [(LOCALHOST, server)]
        self.known = set(self.peers)

    def poll(self, timeout: float) -> list[tuple[Any, bytes]]:
        if timeout:
            select.select([self.socket], [], [], timeout)
        messages = []
        receive = self.socket.recvfrom
        known = self.known
        with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
            while len(messages) < 4096:
                data, source = receive(2048)
                if source not in known:
                    known.add(source)
                    self.peers.append(source)
                messages.append((source, data))
        return messages

    def send(self, peer: Any, data: bytes) -> None:
        # As fast as it goes: no context manager.
        try:  # noqa: SIM105
            self.socket.sendto(data, peer)
        except (BlockingIOError, ConnectionRefusedError):
            pass

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        self.socket.close()


async def serve(_variant: str, _options: Options) -> End:
    return End(None)


async def connect(_variant: str, port: int, _options: Options) -> End:
    return End(port)
