"""One attempt of a player to connect, with the traffic of its connection and the model of that."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable
from typing import Any

import tickwire as tw

from soak import messages
from soak.ghosts import Picture
from soak.model import FLOWS, Flow, Redundant, Violation
from soak.scenario import ChannelPlan, Scenario


class Side:
    """One direction: a sender with its flows, and the transfers of chunks that it began."""

    def __init__(self, name: str, plans: list[ChannelPlan]) -> None:
        self.name = name
        self.plans = plans
        self.flows = [FLOWS[plan.kind](f"{name}, channel {n} ({plan.kind})") for n, plan in enumerate(plans)]
        self.transfers: deque[tuple[tw.transfer.Transfer, bytes]] = deque()
        self.skipped: list[tw.transfer.Transfer] = []
        self.begun: list[tw.transfer.Transfer] = []
        # The receiver got the event of the end.
        self.over = False
        # When messages last went out: the time, bytes of messages, bytes of chunks, and messages asked for.
        self.went: tuple[float, int, int, int] | None = None

    def message(self, message: Any, key: int | None = None) -> None:
        """Takes a message as an object."""
        channel = message.place if isinstance(message, messages.Row) else message.channel
        if channel >= len(self.plans) or not messages.is_right(message, self.plans[channel].sizes):
            raise Violation(f"{self.name}: {message} was never sent like this")
        self.number(channel, message.number, key)

    def number(self, channel: int, number: int, key: int | None) -> None:
        """Takes a message by its number."""
        plan, flow = self.plans[channel], self.flows[channel]
        if (key is None) != (plan.kind != "latest") or (key is not None and key != number % plan.keys):
            flow.fail(f"{number} came with key {key}")
        if self.over:
            flow.fail(f"{number} came after the end of the connection")
        flow.receive(number, key or 0)

    def payload(self, channel: int, data: bytes) -> None:
        """Takes a payload."""
        number = int.from_bytes(data[:4], "little")
        sizes = self.plans[channel].sizes
        if data != messages.payload(number, sizes[number % len(sizes)]):
            self.flows[channel].fail(f"payload {number} is not as it was sent")
        self.number(channel, number, None)

    def chunk(self, chunk: tw.transfer.ReceivedChunk) -> None:
        """Takes a chunk: the next one that was queued, or one after those that fail."""
        while self.transfers:
            transfer, content = self.transfers.popleft()
            if transfer.label == chunk.label:
                if bytes(chunk) != content or hashlib.sha256(content).digest() != chunk.hash:
                    raise Violation(f"{self.name}: chunk {chunk.label} is not as it was sent")
                return
            # Refused here, which its sender hears later.
            self.skipped.append(transfer)
        raise Violation(f"{self.name}: chunk {chunk.label} came twice, out of order, or was never sent")

    def ended(self, sender: bool) -> None:
        """A side got the event that the connection is over."""
        if sender:
            for flow in self.flows:
                flow.at_end()
            for transfer in self.unread():
                if not transfer.over:
                    raise Violation(f"{self.name}: chunk {transfer.label} is under way after the end")
        else:
            self.over = True

    def is_settled(self) -> bool:
        chunks = all(transfer.over for transfer in self.unread())
        return chunks and all(flow.is_settled() for flow in self.flows)

    def unread(self) -> list[tw.transfer.Transfer]:
        """Chunks that did not come."""
        return self.skipped + [transfer for transfer, _ in self.transfers]

    def settled(self) -> None:
        """When all was quiet for long on a perfect network."""
        for flow in self.flows:
            flow.settled()
        for transfer in self.unread():
            if not transfer.over:
                raise Violation(f"{self.name}: chunk {transfer.label} hangs at {transfer.fraction:.0%}")
            if transfer.done:
                raise Violation(f"{self.name}: chunk {transfer.label} is said to be there and never came")

    def check(self, stats: Iterable[tw.connections.ChannelStats]) -> None:
        """Compares the receiver's own counts with what arrived."""
        for flow, counted in zip(self.flows, stats, strict=False):
            if flow.got > counted.received:
                flow.fail(f"{flow.got} came, of which the receiver counted {counted.received}")
            # Their own queues may push messages out before the game takes them.
            if counted.dropped == 0 and flow.unseen():
                flow.fail(f"{flow.unseen()[:5]} were reported as delivered and never came")
            if isinstance(flow, Redundant) and flow.got:
                flow.check(counted.received + counted.missed)


class Line:
    """A client and, once the server knows it, its handle there."""

    def __init__(self, scenario: Scenario, player: int, number: int, client: tw.Client, now: float) -> None:
        self.player = player
        self.number = number
        self.client = client
        self.handle: tw.ClientHandle | None = None
        self.began = now
        # When each side got the event of the end.
        self.client_over: tw.DisconnectReason | None = None
        self.server_over: tw.DisconnectReason | None = None
        self.client_connected: float | None = None
        self.server_connected: float | None = None
        # The server ended it, or went: nothing more is sent to it.
        self.dropped = False
        self.picture = Picture(f"client {number}", client)
        name = f"client {number}"
        self.up = Side(f"{name} to the server", scenario.channels)
        self.down = Side(f"the server to {name}", scenario.channels)

    @property
    def may_send_down(self) -> bool:
        return self.handle is not None and self.server_over is None and not self.dropped


def notified(flows: list[Flow], notifications: Iterable[tuple[int, int, bool]]) -> None:
    """Takes notifications: (channel, tag, delivered)."""
    for channel, tag, delivered in notifications:
        flows[channel].notified(tag, delivered)
