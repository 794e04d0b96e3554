"""ENet through pyenet."""

from __future__ import annotations

import time
from typing import Any

from contenders.endpoint import LOCALHOST, Options, Polled, not_installed, run_polled

NAME = "pyenet"
VARIANTS = ("",)
REQUIRES = ("pyenet",)
GIVES = "connections, acks and resending of reliable packets, ordering, fragments, packing of messages"
LACKS = (
    "encryption, proof of a client's address beyond its handshake, acks of unreliable packets; its "
    "socket buffers are its own (256 KiB)"
)
SWARM = "enet"
RELIABLE = True
DATAGRAMS = True
UNRELIABLE = True
NATIVE = False
WAKES = True


def missing(_variant: str) -> str | None:
    return not_installed("enet")


def run(_variant: str, coroutine: Any) -> None:
    run_polled(coroutine)


class End(Polled):
    def __init__(self, host: Any, enet: Any, reliable: bool) -> None:
        self.host = host
        self.enet = enet
        self.flags = enet.PACKET_FLAG_RELIABLE if reliable else 0
        self.peers: list[Any] = []
        self.inbox: list[tuple[Any, bytes]] = []

    def service(self, timeout: float) -> None:
        """Receives and sends everything that is due."""
        host = self.host
        event = host.service(int(timeout * 1000))
        while True:
            while event is not None and event.type:
                if event.type == self.enet.EVENT_TYPE_RECEIVE:
                    self.inbox.append((event.peer, event.packet.data))
                elif event.type == self.enet.EVENT_TYPE_CONNECT:
                    self.peers.append(event.peer)
                event = host.check_events()
            event = host.service(0)
            if event is None or not event.type:
                return

    def poll(self, timeout: float) -> list[tuple[Any, bytes]]:
        self.service(timeout)
        taken, self.inbox = self.inbox, []
        return taken

    async def idle(self, seconds: float) -> None:
        # ENet's own way to wait: it receives meanwhile.
        until = time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0.001:
            self.service(left)
        time.sleep(max(until - time.perf_counter(), 0.0))

    def send(self, peer: Any, data: bytes) -> None:
        peer.send(0, self.enet.Packet(data, self.flags))

    send_block = send

    async def flush(self) -> None:
        self.host.flush()

    def fileno(self) -> int:
        return self.host.socket.fileno()


async def serve(_variant: str, options: Options) -> End:
    import enet

    for port in range(20_000, 30_000):
        try:
            host = enet.Host(enet.Address(LOCALHOST.encode(), port), max(options.clients, 8), 2, 0, 0)
        except MemoryError:
            continue  # How it says that the port is taken; it doesn't tell which it picked for port 0.
        end = End(host, enet, options.reliable)
        end.port = port
        return end
    raise OSError("no port is free")


async def connect(_variant: str, port: int, options: Options) -> End:
    import enet

    end = End(enet.Host(None, 1, 2, 0, 0), enet, options.reliable)
    end.host.connect(enet.Address(LOCALHOST.encode(), port), 2)
    return end
