"""Tickwire: messages as objects and as columns, polled and with the driver on a thread of its own."""

from __future__ import annotations

import time
from typing import Annotated, Any

import tickwire as tw

from contenders.endpoint import LOCALHOST, Options, Polled, not_installed, run_polled

NAME = "tickwire"
VARIANTS = ("object", "column", "object, thread", "column, thread")
REQUIRES = ("numpy",)
GIVES = (
    "connections by token, encryption and acks of every packet, resending, ordering, packing of messages; "
    "as objects of one field of bytes or as NumPy columns of numbers of 64 bits (blocks as chunks), polled "
    "or with a thread for the socket"
)
LACKS = "waking the game when something arrives, if polled"
SWARM = "tickwire"
RELIABLE = True
DATAGRAMS = True
UNRELIABLE = True
NATIVE = False
WAKES = True

UNRELIABLE_CHANNEL, RELIABLE_CHANNEL = 0, 1
PROTOCOL_ID = 0x636F6D70


@tw.message
class Blob:
    """One field of bytes. ``swarm/tickwire_clients.rs`` has the same."""

    field: Annotated[bytes, tw.data(256)]


def channels() -> list[tw.channels.Channel]:
    return [
        tw.unreliable(send_queue=4096, receive_queue=8192),
        tw.reliable_ordered(send_queue=4096, receive_window=4096, resend_time=None),
    ]


def protocol(options: Options) -> tw.Protocol:
    """With a channel of chunks where a block is sent."""
    return tw.Protocol(PROTOCOL_ID, [Blob], channels() + ([tw.chunks()] if options.block else []))


def by_column(variant: str) -> bool:
    return variant.startswith("column")


def missing(variant: str) -> str | None:
    return not_installed("numpy") if by_column(variant) else None


def swarm(variant: str) -> str:
    return "tickwire_columns" if by_column(variant) else "tickwire"


def skips(variant: str, kind: str) -> str | None:
    if kind == "blocks over links" and variant != "object":
        return "blocks are chunks, whatever the messages are: see the objects"
    if kind == "latency over links" and variant.endswith("thread"):
        return "both ends act each millisecond there without one"
    if kind == "bots" and variant.endswith("thread"):
        return "a thousand clients are a thousand threads so"
    return None


def run(_variant: str, coroutine: Any) -> None:
    run_polled(coroutine)


def tuning(variant: str, **more: Any) -> tw.Tuning:
    return tw.Tuning(driver="thread" if variant.endswith("thread") else "polled", **more)


class End(Polled):
    """What both ends have. To wait is to ask again each half millisecond."""

    def __init__(self, endpoint: Any, options: Options, variant: str) -> None:
        self.endpoint = endpoint
        self.threaded = variant.endswith("thread")
        self.channel = RELIABLE_CHANNEL if options.reliable else UNRELIABLE_CHANNEL
        if options.clients == 1 and not options.block:
            # A flood is no game: by default a connection's messages have 10 Mbit/s.
            endpoint.set_budget(1e9, 1e9)

    def take(self) -> list[Any]:
        """The messages that have arrived."""
        raise NotImplementedError

    def read(self, messages: list[Any]) -> int:
        """Reads something of each message, as a game does; how many there are."""
        raise NotImplementedError

    def wait(self, timeout: float) -> list[Any]:
        messages = self.take()
        until = time.perf_counter() + timeout
        while len(messages) == 0 and time.perf_counter() < until:
            self.endpoint.flush()
            time.sleep(0.0005)
            messages = self.take()
        return messages

    async def count(self, timeout: float) -> int:
        return self.read(self.wait(timeout))

    async def flush(self) -> None:
        self.endpoint.flush()

    def fileno(self) -> int | None:
        return None if self.threaded else self.endpoint._fileno()

    def woken(self) -> int:
        # As tickwire.aio does it; a thread needs no step.
        if not self.threaded:
            self.endpoint._step()
        count = self.read(self.take())
        self.endpoint.flush()
        return count


class ServerEnd(End):
    def __init__(self, variant: str, options: Options) -> None:
        memory = 64 << 20 if options.block else 0
        server = tw.Server(
            (LOCALHOST, 0),
            protocol(options),
            max_clients=max(options.clients, 8),
            tuning=tuning(variant),
            transfers=tw.transfer.Transfers(memory=memory),
        )
        super().__init__(server, options, variant)
        self.port = server.address.port
        self.peers = []
        self.chunks: list[tuple[Any, Any]] = []
        self.blocks = bool(options.block)

    def take(self) -> list[Any]:
        inbox = self.endpoint.receive()
        self.peers.extend(event.client for event in inbox.events if isinstance(event, tw.Connected))
        if self.blocks:
            return [(chunk.client, Blob(memoryview(chunk))) for chunk in inbox.chunks]
        return inbox.messages

    def poll(self, timeout: float) -> list[tuple[Any, bytes]]:
        return [(client, message.field) for client, message in self.wait(timeout)]

    def read(self, messages: list[Any]) -> int:
        return len([message.field for _, message in messages])

    def send(self, peer: Any, data: bytes) -> None:
        self.endpoint.send(peer, Blob(data), self.channel)


class ClientEnd(End):
    def __init__(self, variant: str, port: int, options: Options) -> None:
        super().__init__(
            tw.Client.connect((LOCALHOST, port), protocol(options), tuning=tuning(variant)), options, variant
        )

    @property
    def peers(self) -> list[Any]:
        return [self.endpoint] if self.endpoint.connected else []

    def take(self) -> list[Any]:
        return self.endpoint.receive().messages

    def poll(self, timeout: float) -> list[tuple[Any, bytes]]:
        return [(self.endpoint, message.field) for message in self.wait(timeout)]

    def read(self, messages: list[Any]) -> int:
        return len([message.field for message in messages])

    def send(self, peer: Any, data: bytes) -> None:
        peer.send(Blob(data), self.channel)

    def send_block(self, peer: Any, data: bytes) -> None:
        peer.send_chunk(data)


async def serve(variant: str, options: Options) -> Any:
    if by_column(variant) and not options.block:
        from contenders.tickwire_columns import ServerEnd as Columns

        return Columns(variant, options)
    return ServerEnd(variant, options)


async def connect(variant: str, port: int, options: Options) -> Any:
    if by_column(variant) and not options.block:
        from contenders.tickwire_columns import ClientEnd as Columns

        return Columns(variant, port, options)
    return ClientEnd(variant, port, options)
