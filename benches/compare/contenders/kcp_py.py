"""KCP through kcp.py, over a plain UDP socket."""

from __future__ import annotations

import time
from typing import Any

from contenders.endpoint import Options, not_installed, run_polled
from contenders.sockets import End as Sockets

NAME = "kcp"
VARIANTS = ("",)
REQUIRES = ("kcp",)
GIVES = (
    "acks, resending, ordering, packing of messages; its fastest settings (no delay, 10 ms, no "
    "congestion control)"
)
LACKS = (
    "encryption, connections (both ends agree on a number), unreliable messages; windows are set to "
    "4,096 packets"
)
SWARM = None
NO_SWARM = "no native client was built: its conversations have no handshake and its cost is in Python"
RELIABLE = True
DATAGRAMS = True
UNRELIABLE = False
NATIVE = False
WAKES = "its conversations have no handshake, and a clock of their own to be driven by"

WINDOW = 4096
# A message may have at most 128 fragments.
PIECE = 32 << 10


def missing(_variant: str) -> str | None:
    return not_installed("kcp")


def run(_variant: str, coroutine: Any) -> None:
    run_polled(coroutine)


class End(Sockets):
    def __init__(self, server: int | None) -> None:
        super().__init__(server)
        self.conversations: dict[Any, Any] = {}
        for peer in self.peers:
            self.conversation(peer)

    def conversation(self, peer: Any) -> Any:
        from kcp import KCP

        found = self.conversations.get(peer)
        if found is None:
            found = KCP(
                conv_id=1,
                no_delay=True,
                update_interval=10,
                resend_count=2,
                no_congestion_control=True,
                send_window_size=WINDOW,
                receive_window_size=WINDOW,
            )
            found.outbound_handler(lambda _kcp, data: Sockets.send(self, peer, bytes(data)))
            found.update()
            self.conversations[peer] = found
        return found

    def poll(self, timeout: float) -> list[tuple[Any, bytes]]:
        until = time.perf_counter() + timeout
        messages: list[tuple[Any, bytes]] = []
        while True:
            # Its clock has to be advanced each 10 ms for acks and resending.
            left = min(max(until - time.perf_counter(), 0.0), 0.01)
            for peer, data in super().poll(left):
                self.conversation(peer).receive(data)
            for peer, kcp in self.conversations.items():
                kcp.update()
                messages.extend((peer, bytes(data)) for data in kcp.get_all_received())
            if messages or time.perf_counter() >= until:
                return messages

    def send(self, peer: Any, data: bytes) -> None:
        self.conversation(peer).enqueue(data)

    def send_block(self, peer: Any, data: bytes) -> None:
        for start in range(0, len(data), PIECE):
            self.send(peer, data[start : start + PIECE])

    async def flush(self) -> None:
        for kcp in self.conversations.values():
            kcp.flush()


async def serve(_variant: str, _options: Options) -> End:
    return End(None)


async def connect(_variant: str, port: int, _options: Options) -> End:
    return End(port)
