"""The operations that are measured from Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import tickwire as tw
from tickwire.testing import connected_pair


@tw.message
class Small:
    tick: tw.u16
    buttons: Annotated[int, tw.bits(8)]
    aim: Annotated[float, tw.quantized(-1, 1, 1 / 256)]
    running: bool
    weapon: Annotated[int, tw.ranged(0, 20)]


@tw.message
class Six:
    id: tw.u32
    x: tw.f32
    y: tw.f32
    z: tw.f32
    health: Annotated[int, tw.ranged(0, 100)]
    alive: bool


@tw.message
class Chat:
    sender: Annotated[int, tw.ranged(0, 63)]
    text: Annotated[str, tw.text(200)]


class Own(tw.messages.Message):
    def serialize(self, stream: tw.messages.Stream) -> None:
        self.n = stream.ranged(self.n, 0, 1000)
        if stream.flag(self.n > 500):
            self.extra = stream.bits(self.extra, 12)


PROTOCOL = tw.Protocol(0x7469636B, [Small, Six, Chat, Own], [tw.reliable_ordered(), tw.unreliable()])


BATCH = 100


def exchange(message: object, channel: int) -> Callable[[], None]:
    """A client sends a batch, the server takes it, and a tick later the client has the acks."""
    network, server, client = connected_pair(PROTOCOL)

    def run() -> None:
        for _ in range(BATCH):
            client.send(message, channel)
        client.flush()
        network.advance(1 / 60)
        with server.tick() as inbox:
            assert len(inbox.messages) == BATCH
        network.advance(1 / 60)
        client.receive()

    return run


def idle_server() -> Callable[[], None]:
    """One tick of a server whose clients have nothing to say, and of the network."""
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", PROTOCOL, network=network)
    clients = [
        tw.Client.connect("10.0.0.1:5", PROTOCOL, network=network, tuning=tw.Tuning(timeout=None))
        for _ in range(64)
    ]
    for _ in range(20):
        for endpoint in (server, *clients):
            with endpoint.tick():
                pass
        network.advance(1 / 60)
    assert len(server.clients) == 64

    def run() -> None:
        with server.tick():
            pass

    return run


def cases() -> dict[str, tuple[Callable[[], object], int]]:
    """By name: what to call, and how many items one call handles."""
    small = Small(7, 3, 0.5, True, 9)
    six = Six(70_000, 1.5, 2.5, 3.5, 99, True)
    chat = Chat(3, "the quick brown fox jumps over the lazy dog")
    own = Own(n=700, extra=9)
    protocol = PROTOCOL
    found: dict[str, tuple[Callable[[], object], int]] = {}
    for name, message in {"small": small, "six_fields": six, "chat": chat, "own_code": own}.items():
        data = protocol.encode(message)
        found[f"encode/{name}"] = (lambda message=message: protocol.encode(message), 1)
        found[f"decode/{name}"] = (lambda data=data: protocol.decode(data), 1)
        found[f"measure/{name}"] = (lambda message=message: protocol.measure(message), 1)
    found["send_and_receive/small_reliable"] = (exchange(small, 0), BATCH)
    found["send_and_receive/small_unreliable"] = (exchange(small, 1), BATCH)
    found["send_and_receive/own_code"] = (exchange(own, 0), BATCH)
    found["tick/idle_server_64_clients"] = (idle_server(), 1)
    found["construct/six_fields"] = (lambda: Six(70_000, 1.5, 2.5, 3.5, 99, True), 1)
    return found
