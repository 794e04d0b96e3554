"""The same scenarios with every driver: a simulated network, the game's own ticks, or a thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
import tickwire as tw
from conftest import Blob, Chat, Move, Odd, make_protocol
from tickwire.testing import Collected

REASON = tw.DisconnectReason
PATIENCE = 20.0
BAD = {"latency": 0.01, "jitter": 0.005, "loss": 0.1, "duplicate": 0.1, "reorder": 0.1}


class World:
    """A server and clients, and what each of them received."""

    def __init__(self, driver: str, stack: ExitStack) -> None:
        self.network = tw.testing.SimulatedNetwork() if driver == "simulated" else None
        self.driver: Any = "thread" if driver == "thread" else "polled"
        self.stack = stack
        self.collected: dict[tw.Server | tw.Client, Collected] = {}

    def server(self, protocol: tw.Protocol, **options: Any) -> tw.Server:
        options["tuning"] = options.get("tuning", tw.Tuning()).replace(driver=self.driver)
        options["network"] = self.network
        return self.add(tw.Server("127.0.0.1:0", protocol, **options))

    def client(self, server: tw.Server, **options: Any) -> tw.Client:
        options["tuning"] = options.get("tuning", tw.Tuning()).replace(driver=self.driver)
        options["network"] = self.network
        return self.add(tw.Client.connect(server.address, server.protocol, **options))

    def add(self, endpoint: Any) -> Any:
        self.stack.enter_context(endpoint)
        self.collected[endpoint] = Collected()
        return endpoint

    def pair(self, protocol: tw.Protocol, **options: Any) -> tuple[tw.Server, tw.Client]:
        server = self.server(protocol, **options)
        client = self.client(server)
        self.until(lambda: client.connected and len(server.clients) == 1)
        return server, client

    def tick(self) -> None:
        for endpoint, into in self.collected.items():
            if endpoint.closed:
                continue
            with endpoint.tick() as inbox:
                into.events += inbox.events
                into.messages += inbox.messages
                into.latest += inbox.latest
                told = inbox.notifications
                into.notifications += zip(told.slot, told.channel, told.tag, told.delivered, strict=True)
        if self.network:
            self.network.advance(1 / 60)
        else:
            time.sleep(0.001)

    def until(self, done: Callable[[], bool]) -> None:
        """Ticks until it is done, or fails after a while."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < deadline, "not done in time"
            self.tick()

    def messages(self, endpoint: tw.Server | tw.Client) -> list[Any]:
        return self.collected[endpoint].messages

    def ends(self, endpoint: tw.Server | tw.Client) -> list[tw.DisconnectReason]:
        return [e.reason for e in self.collected[endpoint].events if isinstance(e, tw.Disconnected)]


@pytest.fixture(params=["simulated", "polled", "thread"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(request.param, stack)


def test_messages_of_every_kind_arrive_in_order_over_a_bad_network(
    world: World, protocol: tw.Protocol
) -> None:
    conditions = tw.Conditions(**BAD)
    server = world.server(protocol, debugging=tw.testing.Debugging(conditions=conditions, seed=1))
    client = world.client(server, debugging=tw.testing.Debugging(conditions=conditions, seed=2))
    world.until(lambda: client.connected and len(server.clients) == 1)
    sent: list[Any] = [Chat(n % 64, f"number {n}") for n in range(100)]
    sent += [Odd(n=n) if n <= 500 else Odd(n=n, extra=n) for n in range(0, 1000, 100)]
    sent += [Blob(bytes(range(256)) * 100), Move(1, 2, 0.5)]
    for message in sent:
        client.send(message)
        server.broadcast(message)
    everything = len(sent)
    world.until(lambda: len(world.messages(client)) >= everything <= len(world.messages(server)))
    world.tick()
    assert world.messages(client) == sent
    assert [message for _, message in world.messages(server)] == sent


def test_a_broadcast_reaches_all_but_one(world: World, protocol: tw.Protocol) -> None:
    server = world.server(protocol)
    clients = [world.client(server) for _ in range(4)]
    world.until(lambda: len(server.clients) == 4 and all(client.connected for client in clients))
    left_out = server.clients[2]
    assert server.broadcast(Chat(1, "hello"), exclude=left_out) == []
    server.broadcast(Chat(1, "all"))
    world.until(lambda: all(Chat(1, "all") in world.messages(client) for client in clients))
    heard = {client.slot: world.messages(client) for client in clients}
    both = [Chat(1, "hello"), Chat(1, "all")]
    assert heard == {slot: both[1:] if slot == left_out.slot else both for slot in range(4)}


def test_a_kicked_player_is_told_and_its_handle_is_stale(world: World, protocol: tw.Protocol) -> None:
    server, client = world.pair(protocol)
    handle = server.clients[0]
    server.disconnect(handle)
    world.until(lambda: bool(world.ends(client) and world.ends(server)))
    assert (world.ends(client), world.ends(server)) == ([REASON.KICKED], [REASON.KICKED])
    assert server.send(handle, Move()) is tw.SendResult.GONE


@pytest.mark.parametrize("closing", ["client", "server"])
def test_closing_is_told_to_the_other_side(world: World, protocol: tw.Protocol, closing: str) -> None:
    server, client = world.pair(protocol)
    if closing == "client":
        client.close()
        world.until(lambda: world.ends(server) == [REASON.PEER_DISCONNECTED])
    else:
        server.close()
        world.until(lambda: world.ends(client) == [REASON.SERVER_CLOSED])
        with pytest.raises(tw.errors.ClosedError):
            server.flush()
    assert closing == "server" or client.disconnect_reason is REASON.CLOSED


def test_a_full_server_says_so(world: World, protocol: tw.Protocol) -> None:
    server = world.server(protocol, max_clients=1)
    clients = [world.client(server) for _ in range(2)]
    world.until(lambda: sum(client.disconnect_reason is REASON.SERVER_FULL for client in clients) == 1)
    world.until(lambda: sum(client.connected for client in clients) == 1)


def test_a_full_channel_says_so_at_the_call_and_queues_nothing(world: World) -> None:
    channels = [tw.reliable_ordered(send_queue=4), tw.unreliable(send_queue=2)]
    server, client = world.pair(make_protocol(channels=channels))
    world.until(lambda: client.stats.channels[0].queued == 0)
    for channel, room in [(0, 4), (1, 2)]:
        for number in range(room):
            assert client.send(Move(number), channel=channel)
        assert client.send(Move(99), channel=channel) is tw.SendResult.FULL
    world.until(lambda: len(world.messages(server)) == 6)
    assert sorted(message.tick for _, message in world.messages(server)) == [0, 0, 1, 1, 2, 3]


def test_every_payloads_fate_is_told_once(world: World) -> None:
    channels = [tw.channels.payload(), tw.reliable_ordered()]
    _, client = world.pair(make_protocol(channels=channels))
    for tag in range(100):
        client.send_payload(b"any", 0, tag=tag)
        if tag % 10 == 0:
            client.send(Move(tag), 1, tag=1000 + tag, notify=True)
        if tag % 5 == 0:
            world.tick()
    told = world.collected[client].notifications
    world.until(lambda: len(told) >= 110)
    assert all(delivered for *_, delivered in told)
    assert [tag for _, channel, tag, _ in told if channel == 0] == list(range(100))
    assert [tag for _, channel, tag, _ in told if channel == 1] == [1000 + tag for tag in range(0, 100, 10)]


def test_a_priority_hook_decides_what_goes_first(world: World) -> None:
    def highest_tag_first(candidates: tw.columns.Candidates) -> Any:
        time.sleep(0.002)  # time for a thread to change what is scored
        return np.asarray(candidates.tag).astype(np.float32)

    protocol = make_protocol(channels=[tw.latest(keys=256)])
    server = world.server(protocol, tuning=tw.Tuning(priority=highest_tag_first))
    client = world.client(server)
    world.until(lambda: client.connected and len(server.clients) == 1)
    handle = server.clients[0]
    received = world.collected[client].latest
    for number in range(10):
        received.clear()
        for key in range(64):
            server.send(handle, Move(number), key=key, tag=key)
        world.until(lambda: len(received) >= 64)
        assert [key for key, _ in received] == list(range(63, -1, -1))


def test_an_admission_hook_refuses_newcomers(world: World, protocol: tw.Protocol) -> None:
    server = world.server(
        protocol, access=tw.tokens.Access(admission=lambda newcomers: [c for c in newcomers if c.id == 666])
    )
    good, banned = world.client(server, client_id=1), world.client(server, client_id=666)
    world.until(lambda: good.connected and banned.disconnect_reason is REASON.KICKED)
    world.until(lambda: [handle.id for handle in server.clients] == [1])


def test_what_a_factory_raises_ends_the_peer_and_never_the_tick(world: World, protocol: tw.Protocol) -> None:
    class Picky(tw.messages.MessageFactory):
        def create(self, cls: type[Any]) -> Any:
            if cls is Blob:
                raise LookupError("no blobs today")
            return super().create(cls)

    server, client = world.pair(protocol, tuning=tw.Tuning(factory=Picky()))
    client.send(Move(1))
    client.send(Blob(b"x"))
    client.send(Move(2))
    world.until(lambda: bool(world.ends(server)) and bool(world.ends(client)))
    assert world.ends(server) == [tw.DisconnectReason.PROTOCOL_VIOLATION]
    assert [message for _, message in world.messages(server)] in ([], [Move(1)])
    assert server.counters["messages.raised"] == 1
