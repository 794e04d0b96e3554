"""Tickwire by column: what is sent and received in a tick crosses as one array. The messages are numbers of
64 bits, 8 of them to the server (64 bytes) and 25 from it (200 bytes)."""

from __future__ import annotations

from typing import Any

import numpy
import tickwire as tw

from contenders.endpoint import LOCALHOST, Options
from contenders.tickwire_messages import PROTOCOL_ID, End, channels, tuning


def numbers(name: str, bytes_: int) -> type:
    """A message class of that many bytes."""
    return tw.message(type(name, (), {"__annotations__": {f"f{i}": tw.u64 for i in range(bytes_ // 8)}}))


Request, Answer = numbers("Request", 64), numbers("Answer", 200)


def protocol() -> tw.Protocol:
    return tw.Protocol(PROTOCOL_ID, [Request, Answer], channels())


class Columns(End):
    """What both ends have: a row of ``outgoing`` is made of the first bytes of the data."""

    outgoing: type

    def rows(self, data: bytes, count: int) -> Any:
        dtype = tw.columns.dtype(self.outgoing)
        return numpy.frombuffer(data[: dtype.itemsize].ljust(dtype.itemsize, b"\0") * count, dtype)

    def read(self, rows: Any) -> int:
        if len(rows):
            # A game reads its messages: here a column of all rows, as ends with objects read a field of
            # each.
            rows["f0"].sum()
        return len(rows)


class ServerEnd(Columns):
    outgoing = Answer

    def __init__(self, variant: str, options: Options) -> None:
        server = tw.Server(
            (LOCALHOST, 0),
            protocol(),
            max_clients=max(options.clients, 8),
            tuning=tuning(variant, columns=[Request]),
        )
        super().__init__(server, options, variant)
        self.port = self.endpoint.address.port
        self.peers = []

    def take(self) -> Any:
        inbox = self.endpoint.receive()
        self.peers.extend(event.client for event in inbox.events if isinstance(event, tw.Connected))
        rows = inbox.columns(Request)
        return rows if len(rows) else []

    def poll(self, timeout: float) -> list[tuple[Any, bytes]]:
        rows = self.wait(timeout)
        return [(self.endpoint.client(int(row["client"])), row["f0"].tobytes()) for row in rows]

    def send(self, peer: Any, data: bytes) -> None:
        self.endpoint.send(peer, tw.columns.Batch(Answer, self.rows(data, 1)), self.channel)

    def send_all(self, data: bytes) -> None:
        self.endpoint.send(
            self.peers, tw.columns.Batch(Answer, self.rows(data, len(self.peers))), self.channel
        )


class ClientEnd(Columns):
    outgoing = Request

    def __init__(self, variant: str, port: int, options: Options) -> None:
        client = tw.Client.connect((LOCALHOST, port), protocol(), tuning=tuning(variant, columns=[Answer]))
        super().__init__(client, options, variant)

    @property
    def peers(self) -> list[Any]:
        return [self.endpoint] if self.endpoint.connected else []

    def take(self) -> Any:
        rows = self.endpoint.receive().columns(Answer)
        return rows if len(rows) else []

    def poll(self, timeout: float) -> list[tuple[Any, bytes]]:
        rows = self.wait(timeout)
        return [(self.endpoint, row["f0"].tobytes()) for row in rows]

    def send(self, peer: Any, data: bytes) -> None:
        self.send_many(peer, data, 1)

    def send_many(self, peer: Any, data: bytes, count: int) -> None:
        peer.send(tw.columns.Batch(Request, self.rows(data, count)), self.channel)
