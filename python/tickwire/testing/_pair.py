"""A server and a client on a virtual network, and everything they receive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from tickwire._checks import check_seconds
from tickwire._connection import Event
from tickwire._core import Client, Conditions, Inbox, Protocol, ReceivedChunk, Server, SimulatedNetwork
from tickwire._run import check_rate

_P = TypeVar("_P")


@dataclass
class Collected:
    """Everything that one endpoint received during :func:`advance` or :meth:`Simulation.run`."""

    events: list[Event] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    latest: list[Any] = field(default_factory=list)
    payloads: list[Any] = field(default_factory=list)
    missed: list[Any] = field(default_factory=list)
    chunks: list[ReceivedChunk] = field(default_factory=list)
    chunk_failures: list[Any] = field(default_factory=list)
    ghosts: list[Any] = field(default_factory=list)
    notifications: list[tuple[int, int, int, bool]] = field(default_factory=list)
    """``(slot, channel, tag, delivered)``, as in the columns of :class:`tickwire.columns.Notifications`."""

    def take(self, inbox: Inbox[Any]) -> None:
        """Adds the contents of an inbox."""
        self.events += inbox.events
        self.messages += inbox.messages
        self.latest += inbox.latest
        self.payloads += inbox.payloads
        self.missed += inbox.missed
        self.chunks += inbox.chunks
        self.chunk_failures += inbox.chunk_failures
        self.ghosts += inbox.ghosts
        told = inbox.notifications
        self.notifications += zip(told.slot, told.channel, told.tag, told.delivered, strict=True)


def advance(
    network: SimulatedNetwork, *endpoints: Server | Client, seconds: float, rate: float = 60
) -> list[Collected]:
    """Ticks the endpoints at ``rate`` for some virtual seconds. Returns what each endpoint received, in
    the order of the arguments. Closed endpoints receive nothing.
    """
    check_seconds("seconds", seconds)
    check_rate(rate)
    if not isinstance(network, SimulatedNetwork):
        raise TypeError(f"network must be a SimulatedNetwork, not {type(network).__name__}")
    collected = [Collected() for _ in endpoints]
    for _ in range(round(seconds * rate)):
        for endpoint, into in zip(endpoints, collected, strict=True):
            if endpoint.closed:
                continue
            with endpoint.tick() as inbox:
                into.take(inbox)
        network.advance(1 / rate)
    return collected


def connected_pair(
    protocol: Protocol[_P],
    *,
    conditions: Conditions | tuple[Conditions, Conditions] | None = None,
    seed: int = 0,
) -> tuple[SimulatedNetwork, Server[_P], Client[_P]]:
    """Makes a network with a server and one client, already connected.

    Args:
        conditions: the conditions of both directions, or a pair ``(up, down)``, as
            :meth:`tickwire.Conditions.preset` returns it; ``up`` is the direction to the server.

    Raises:
        RuntimeError: the client couldn't connect within 10 virtual seconds.
    """
    both_ways = None if isinstance(conditions, tuple) else conditions
    network = SimulatedNetwork(seed=seed, conditions=both_ways)
    server = Server("127.0.0.1:40000", protocol, network=network)
    if isinstance(conditions, tuple):
        up, down = conditions
        network.set_conditions(up, receiver=server.address)
        network.set_conditions(down, sender=server.address)
    client = Client.connect(server.address, protocol, network=network)
    for _ in range(100):
        advance(network, server, client, seconds=0.1)
        if client.connected and server.clients:
            return network, server, client
    raise RuntimeError(f"not connected after 10 virtual seconds: the state is {client.state}")
