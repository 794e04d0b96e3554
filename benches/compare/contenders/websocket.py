"""WebSockets through the package websockets, on asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

from contenders.asyncio_udp import Waiting
from contenders.endpoint import LOCALHOST, Options, not_installed

NAME = "websockets"
VARIANTS = ("",)
REQUIRES = ("websockets",)
GIVES = "connections, messages in order over TCP"
LACKS = (
    "encryption (none here), unreliable messages: a lost segment holds up all behind it; no UDP, so "
    "no UDP proxy"
)
SWARM = None
NO_SWARM = (
    "there is no native WebSocket client in the swarm, and clients in Python would be measured more "
    "than the server"
)
RELIABLE = True
DATAGRAMS = False
UNRELIABLE = False
NATIVE = False
WAKES = "its own event loop waits for it, in every measurement"


def missing(_variant: str) -> str | None:
    return not_installed("websockets")


def run(_variant: str, coroutine: Any) -> None:
    asyncio.run(coroutine)


class End(Waiting):
    def __init__(self) -> None:
        super().__init__()
        self.outbox: list[tuple[Any, bytes]] = []

    async def talk(self, peer: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        self.peers.append(peer)
        try:
            async for data in peer:
                self.put(peer, data)
        except ConnectionClosed:
            pass

    def send(self, peer: Any, data: bytes) -> None:
        self.outbox.append((peer, data))

    send_block = send

    async def flush(self) -> None:
        outbox, self.outbox = self.outbox, []
        for peer, data in outbox:
            await peer.send(data)


async def serve(_variant: str, _options: Options) -> End:
    from websockets.asyncio.server import serve as web_serve

    end = End()
    end.server = await web_serve(end.talk, LOCALHOST, 0, compression=None)
    end.port = end.server.sockets[0].getsockname()[1]
    return end


async def connect(_variant: str, port: int, _options: Options) -> End:
    from websockets.asyncio.client import connect as web_connect

    end = End()
    peer = await web_connect(f"ws://{LOCALHOST}:{port}", compression=None)
    end.task = asyncio.get_running_loop().create_task(end.talk(peer))
    return end
