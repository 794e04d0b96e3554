"""Tickwire: message objects, message columns, and the driver on a thread, where they are there."""

from __future__ import annotations

import inspect
import time
from typing import Annotated, Any

import tickwire as tw
from contenders.endpoint import LOCALHOST, Options, Polled, run_polled

NAME = "tickwire"
VARIANTS = ("object", "column", "thread")
REQUIRES = ("numpy",)
GIVES = "connections by token, encryption of every packet, acks of every packet, resending, ordering, packing of messages"
LACKS = "nothing that the others have here"
SWARM = "tickwire"
RELIABLE = True
DATAGRAMS = True
UNRELIABLE = True
NATIVE = False

UNRELIABLE_CHANNEL, RELIABLE_CHANNEL = 0, 1
BUDGET = 1e9


@tw.message
class Blob:
    """One field of bytes. ``swarm/tickwire_clients.rs`` has the same."""

    field: Annotated[bytes, tw.data(256)]


PROTOCOL = tw.Protocol(
    0x636F6D70,
    [Blob],
    [
        tw.unreliable(send_queue=4096, receive_queue=8192),
        tw.reliable_ordered(send_queue=4096, receive_window=4096, resend_time=None),
    ],
)


def missing(variant: str) -> str | None:
    if variant == "column" and not hasattr(tw.Server, "send_columns"):
        return "messages can't be sent as columns yet"
    if variant == "thread" and "driver" not in str(inspect.signature(tw.Server)):
        return "there is no driver on a thread of its own yet"
    return None


def blocks() -> str | None:
    return None if hasattr(tw.Client, "send_chunk") else "chunks can't be sent from Python yet"


def run(_variant: str, coroutine: Any) -> None:
    run_polled(coroutine)


def settings(variant: str) -> dict[str, Any]:
    return {"driver": "thread"} if variant == "thread" else {}


class End(Polled):
    """What both ends have. It is polled, so to wait is to ask again each half millisecond."""

    def __init__(self, endpoint: Any, options: Options) -> None:
        self.endpoint = endpoint
        self.channel = RELIABLE_CHANNEL if options.reliable else UNRELIABLE_CHANNEL

    def take(self) -> list[Any]:
        raise NotImplementedError

    def wait(self, timeout: float) -> list[Any]:
        messages = self.take()
        until = time.perf_counter() + timeout
        while not messages and time.perf_counter() < until:
            self.endpoint.flush()
            time.sleep(0.0005)
            messages = self.take()
        return messages

    async def flush(self) -> None:
        self.endpoint.flush()

    def close(self) -> None:
        self.endpoint.close()


class ServerEnd(End):
    def __init__(self, variant: str, options: Options) -> None:
        server = tw.Server((LOCALHOST, 0), PROTOCOL, max_clients=max(options.clients, 8), **settings(variant))
        super().__init__(server, options)
        self.port = server.address.port
        self.peers = []
        if options.clients == 1:
            server.set_budget(BUDGET, BUDGET)

    def take(self) -> list[Any]:
        inbox = self.endpoint.receive()
        self.peers.extend(event.client for event in inbox.events if isinstance(event, tw.Connected))
        return inbox.messages

    def poll(self, timeout: float) -> list[tuple[Any, bytes]]:
        return [(client, message.field) for client, message in self.wait(timeout)]

    async def count(self, timeout: float) -> int:
        return len([message.field for _, message in self.wait(timeout)])

    def send(self, peer: Any, data: bytes) -> None:
        self.endpoint.send(peer, Blob(data), self.channel)


class ClientEnd(End):
    def __init__(self, variant: str, port: int, options: Options) -> None:
        client = tw.Client.connect((LOCALHOST, port), PROTOCOL, **settings(variant))
        super().__init__(client, options)
        client.set_budget(BUDGET, BUDGET)

    @property
    def peers(self) -> list[Any]:
        return [self.endpoint] if self.endpoint.connected else []

    def take(self) -> list[Any]:
        return self.endpoint.receive().messages

    def poll(self, timeout: float) -> list[tuple[Any, bytes]]:
        return [(self.endpoint, message.field) for message in self.wait(timeout)]

    async def count(self, timeout: float) -> int:
        return len([message.field for message in self.wait(timeout)])

    def send(self, peer: Any, data: bytes) -> None:
        peer.send(Blob(data), self.channel)


async def serve(variant: str, options: Options) -> ServerEnd:
    return ServerEnd(variant, options)


async def connect(variant: str, port: int, options: Options) -> ClientEnd:
    return ClientEnd(variant, port, options)
