"""Endpoints that an event loop wakes whenever something arrives: what each wake costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import tickwire as tw
from conftest import Chat, make_protocol


def wake(endpoint: tw.Server | tw.Client) -> int:
    """What an event loop does at each datagram; how many messages came."""
    endpoint._step()
    came = len(endpoint.receive().messages)
    endpoint.flush()
    return came


@contextmanager
def connected(
    network: tw.testing.SimulatedNetwork, channel: tw.channels.Channel
) -> Iterator[tuple[tw.Server, tw.Client]]:
    """A server and its client on a virtual network."""
    protocol = make_protocol(channels=[channel])
    with (
        tw.Server("10.0.0.1:7000", protocol, network=network) as server,
        tw.Client.connect(server.address, protocol, network=network) as client,
    ):
        while not (client.connected and server.clients):
            network.advance(0.01)
            for endpoint in (client, server):
                wake(endpoint)
        yield server, client


@pytest.mark.parametrize("steps", [True, False])
def test_acks_wait_for_messages_where_wakes_are_more_frequent_than_ticks(steps: bool) -> None:
    network = tw.testing.SimulatedNetwork()
    with connected(network, tw.unreliable()) as (server, client):
        sent, acked = client.counters["packets.sent"], server.counters["packets.acked"]
        came = 0
        for _ in range(60):
            server.send(server.clients[0], Chat(1, "down"), 0)
            server.flush()
            network.advance(1 / 120)
            if steps:
                came += wake(client)
            else:
                came += len(client.receive().messages)
                client.flush()
            network.advance(1 / 120)
            client.send(Chat(1, "up"), 0)
            client.flush()
            server.receive()
        assert came == 60
        assert server.counters["packets.acked"] - acked >= 59
        packets = client.counters["packets.sent"] - sent
        # A game that only ticks tells at once what came, once a tick.
        assert packets < 65 if steps else packets >= 115, packets


def test_who_says_nothing_acks_no_more_often_than_acks_are_due() -> None:
    network = tw.testing.SimulatedNetwork()
    with connected(network, tw.unreliable()) as (server, client):
        sent, acked = client.counters["packets.sent"], server.counters["packets.acked"]
        for _ in range(240):
            server.send(server.clients[0], Chat(1, "down"), 0)
            server.flush()
            network.advance(1 / 240)
            wake(client)
            server.receive()
        packets = client.counters["packets.sent"] - sent
        assert 30 <= packets <= 41, packets  # in a second, one in 25 ms
        assert server.counters["packets.acked"] - acked >= 230


@pytest.mark.parametrize("late", [0.01, 0.03])
def test_a_flush_sends_the_ack_that_a_wake_put_off_once_it_is_due(late: float) -> None:
    network = tw.testing.SimulatedNetwork()
    with connected(network, tw.unreliable()) as (server, client):
        for _ in range(20):
            client.send(Chat(1, "up"), 0)
            server.send(server.clients[0], Chat(1, "down"), 0)
            client.flush()
            server.flush()
            network.advance(0.01)
            assert wake(client) == 1
            server.receive()
            sent = client.counters["packets.sent"]
            # Nobody steps from now on.
            network.advance(late)
            client.flush()
            assert client.counters["packets.sent"] - sent == (late > 0.025)


def test_the_lists_of_an_inbox_stay_the_same() -> None:
    network = tw.testing.SimulatedNetwork()
    with connected(network, tw.unreliable()) as (server, client):
        server.send(server.clients[0], Chat(1, "down"), 0)
        server.flush()
        network.advance(0.01)
        inbox = client.receive()
        assert [chat.text for chat in inbox.messages] == ["down"]
        names = "events", "messages", "latest", "payloads", "missed", "chunks", "chunk_failures", "ghosts"
        for name in names:
            found = getattr(inbox, name)
            assert isinstance(found, list)
            assert getattr(inbox, name) is found
        inbox.latest.append((0, Chat(1, "the game's own")))
        assert [chat.text for chat in inbox] == ["down", "the game's own"]
        assert len(inbox.notifications.slot) == 0


def test_a_wake_asks_the_system_once() -> None:
    protocol = make_protocol(channels=[tw.unreliable()])
    with (
        tw.Server("127.0.0.1:0", protocol) as server,
        tw.Client.connect(server.address, protocol) as client,
    ):
        until = time.monotonic() + 20
        while not (client.connected and server.clients):
            assert time.monotonic() < until
            for endpoint in (client, server):
                wake(endpoint)
        calls = came = 0
        for _ in range(200):
            server.send(server.clients[0], Chat(1, "down"), 0)
            server.flush()
            before = client.counters["socket.receive_calls"]
            came += wake(client)
            calls += client.counters["socket.receive_calls"] - before
        assert came >= 190
        # Once in a while something else takes the processor between the two calls.
        assert calls <= 250, calls


@pytest.mark.parametrize("latency", [0.0005, 0.03])
def test_who_wakes_acks_reliable_messages_before_they_go_again(latency: float) -> None:
    """Acks that tell how long the newest packet waited don't say how long those before it did."""
    network = tw.testing.SimulatedNetwork(conditions=tw.Conditions(latency=latency))
    with connected(network, tw.reliable_ordered()) as (server, client):
        came = 0
        for milli in range(2000):
            if milli % 17 == 0:
                for _ in range(4):
                    server.send(server.clients[0], Chat(1, "down" * 50), 0)
                server.flush()
            came += wake(client)
            server._step()
            server.receive()
            network.advance(0.001)
        [channel] = server.stats(server.clients[0]).channels
        assert came >= channel.sent - 20
        assert channel.resent <= 4, channel.resent


def test_a_full_window_moves_on_as_soon_where_the_receiver_wakes() -> None:
    came = []
    for wakes in (False, True):
        network = tw.testing.SimulatedNetwork(conditions=tw.Conditions(latency=0.005))
        with connected(network, tw.reliable_ordered(receive_window=16)) as (server, client):
            network.advance(0.1)
            count = 0
            for _ in range(1000):
                for _ in range(2):
                    server.send(server.clients[0], Chat(1, "down"), 0)
                server.receive()
                server.flush()
                if wakes:
                    count += wake(client)
                else:
                    count += len(client.receive().messages)
                    client.flush()
                network.advance(0.001)
            came.append(count)
    assert came[1] >= 0.95 * came[0], came
