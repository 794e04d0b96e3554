"""UDP with asyncio's datagram endpoints, on its own event loop and on uvloop's."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from contenders.endpoint import KERNEL_BUFFER, LOCALHOST, Options, Sending, not_installed

NAME = "asyncio"
VARIANTS = ("", "uvloop")
REQUIRES = ("uvloop",)
GIVES = "datagrams, each message one of them, given to a callback"
LACKS = "connections, encryption, acks, resending, ordering, packing of messages"
SWARM = "udp"
RELIABLE = False
DATAGRAMS = True
UNRELIABLE = True
NATIVE = False
WAKES = "its own event loop waits for it, in every measurement"


def missing(variant: str) -> str | None:
    return not_installed("uvloop") if variant == "uvloop" else None


def run(variant: str, coroutine: Any) -> None:
    if variant == "uvloop":
        import uvloop

        uvloop.run(coroutine)
    else:
        asyncio.run(coroutine)


class Waiting(Sending):
    """An inbox that a callback fills and a role empties."""

    def __init__(self) -> None:
        self.inbox: list[tuple[Any, bytes]] = []
        self.peers = []
        self.loop = asyncio.get_running_loop()
        self.waiter: asyncio.Future[None] | None = None

    def put(self, peer: Any, data: bytes) -> None:
        self.inbox.append((peer, data))
        self.wake()

    def wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    async def receive(self, timeout: float) -> list[tuple[Any, bytes]]:
        if not self.inbox and timeout > 0:
            self.waiter = self.loop.create_future()
            timer = self.loop.call_later(timeout, self.wake)
            await self.waiter
            timer.cancel()
        else:
            await asyncio.sleep(0)
        taken, self.inbox = self.inbox, []
        return taken

    async def count(self, timeout: float) -> int:
        # The callbacks do the receiving: one awakening for many of them.
        taken = await self.receive(timeout)
        if taken and timeout > 0:
            await asyncio.sleep(0.0005)
            taken += await self.receive(0)
        return len(taken)

    async def idle(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0.0))

    async def flush(self) -> None:
        pass


class End(Waiting, asyncio.DatagramProtocol):
    def __init__(self, server: int | None) -> None:
        super().__init__()
        self.peers = [] if server is None else [(LOCALHOST, server)]
        self.known = set(self.peers)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, source: Any) -> None:
        if source not in self.known:
            self.known.add(source)
            self.peers.append(source)
        self.put(source, data)

    def send(self, peer: Any, data: bytes) -> None:
        self.transport.sendto(data, peer)

    def close(self) -> None:
        self.transport.close()


async def _open(server: int | None) -> End:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        sock.setsockopt(socket.SOL_SOCKET, buffer, KERNEL_BUFFER)
    sock.setblocking(False)
    sock.bind((LOCALHOST, 0))
    loop = asyncio.get_running_loop()
    _, end = await loop.create_datagram_endpoint(lambda: End(server), sock=sock)
    return end


async def serve(_variant: str, _options: Options) -> End:
    return await _open(None)


async def connect(_variant: str, port: int, _options: Options) -> End:
    return await _open(port)
