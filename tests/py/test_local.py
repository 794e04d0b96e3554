"""Clients in the server's own process: no socket, and the same features."""

from __future__ import annotations

from typing import Annotated

import pytest
import tickwire as tw

KEY = bytes(range(32))
RATE = 60


@tw.message
class Chat:
    text: Annotated[str, tw.text(1000)]


PROTOCOL = tw.Protocol(5, [Chat])


def make_pair(**more: object) -> tuple[tw.Server[Chat], tw.Client[Chat]]:
    server = tw.Server("127.0.0.1:0", PROTOCOL, **more)  # type: ignore[arg-type]
    return server, tw.Client.local(server, client_id=7)


def test_a_local_client_connects_and_talks_without_a_socket() -> None:
    server, client = make_pair(network=tw.testing.SimulatedNetwork())
    assert client.network is server.network
    texts: list[str] = []
    seen: list[int] = []
    for frame in range(10):
        with server.tick() as inbox:
            seen += [event.client.id for event in inbox.events if isinstance(event, tw.Connected)]
            for who, message in inbox.messages:
                server.send(who, message)
        with client.tick() as inbox:
            texts += [message.text for message in inbox.messages]
            if client.connected and frame < 9:
                client.send(Chat(str(frame)))
    assert seen == [7]
    # Time has stood still: an answer comes in the next frame.
    assert texts == [str(frame) for frame in range(int(texts[0]), 9)]
    assert len(texts) > 4
    assert repr(client) == f"<Client of {server.address}, Connected>"
    assert client.counters["socket.sent"] == server.counters["socket.sent"] == 0
    client.close(reason="bye")
    with server.tick() as inbox:
        assert [event.detail for event in inbox.events if isinstance(event, tw.Disconnected)] == ["bye"]


def test_a_real_server_serves_a_local_client_and_one_by_its_address() -> None:
    server, client = make_pair(key=KEY)
    other = tw.Client.connect(server.address, PROTOCOL, key=KEY)
    texts: list[str] = []
    while len(texts) < 2:
        with server.tick():
            if len(server.clients) == 2:
                server.broadcast(Chat("hello"))
        for each in (client, other):
            with each.tick() as inbox:
                texts += [message.text for message in inbox.messages][:1]
    assert client.stats.packet_loss_percent == 0
    server.close()
    with client.tick() as inbox:
        assert client.disconnect_reason is tw.DisconnectReason.SERVER_CLOSED
    client.close()
    other.close()


def test_a_server_with_a_thread_serves_a_local_client() -> None:
    with tw.Server("127.0.0.1:0", PROTOCOL, tuning=tw.Tuning(driver="thread")) as server:
        client = tw.Client.local(server)
        for _ in range(20):
            with server.tick():
                pass
            with client.tick():
                pass
        assert client.connected


def test_the_same_seed_gives_the_same_game() -> None:
    def play() -> list[object]:
        network = tw.testing.SimulatedNetwork(conditions=tw.Conditions.preset("wifi-bad")[0], seed=3)
        server, client = make_pair(network=network)
        other = tw.Client.connect(server.address, PROTOCOL, network=network)
        log: list[object] = []
        for frame in range(200):
            network.advance(1 / RATE)
            with server.tick() as inbox:
                log += [(frame, who.id, message) for who, message in inbox.messages]
            for each in (client, other):
                with each.tick():
                    if each.connected:
                        each.send(Chat(str(frame)))
        return [*log, network.transcript]

    assert play() == play()


def test_conditions_of_the_server_do_not_touch_a_local_client() -> None:
    network = tw.testing.SimulatedNetwork()
    bad = tw.testing.Debugging(conditions=tw.Conditions(latency=5.0, loss=0.9), seed=1)
    server, client = make_pair(network=network, debugging=bad)
    for _ in range(10):
        with server.tick():
            pass
        with client.tick():
            pass
    assert client.connected


def test_nobody_on_the_network_passes_for_a_local_client() -> None:
    network = tw.testing.SimulatedNetwork()
    server, client = make_pair(network=network)
    for _ in range(10):
        with server.tick():
            pass
        with client.tick():
            pass
    assert client.connected
    forged = tw.Client.connect(
        server.address, PROTOCOL, network=network, tuning=tw.Tuning(bind=client.address)
    )
    for _ in range(60):
        network.advance(1 / RATE)
        for each in (server, client, forged):
            with each.tick():
                pass
    assert server.counters["local.forged"] > 0
    assert client.connected
    assert not forged.connected
    assert len(server.clients) == 1


def test_either_side_may_stop_and_costs_bounded_memory() -> None:
    network = tw.testing.SimulatedNetwork()
    server, client = make_pair(network=network)
    for _ in range(10):
        with server.tick():
            pass
        with client.tick():
            pass
    for _ in range(RATE * 12):
        network.advance(1 / RATE)
        with server.tick():
            server.broadcast(Chat("x" * 900))
    assert server.clients == []
    server, client = make_pair(network=network)
    for _ in range(10):
        with server.tick():
            pass
        with client.tick():
            pass
    del server
    for _ in range(RATE * 12):
        network.advance(1 / RATE)
        with client.tick():
            pass
    assert client.disconnect_reason is tw.DisconnectReason.SERVER_CLOSED


def test_the_bounds_of_a_server_hold_for_local_clients() -> None:
    def refuse(newcomers: list[tw.connections.ClientHandle]) -> list[int]:
        return [client.id for client in newcomers if client.id == 9]

    network = tw.testing.SimulatedNetwork()
    access = tw.tokens.Access(max_token_lifetime=30, admission=refuse)
    server = tw.Server("127.0.0.1:0", PROTOCOL, network=network, max_clients=3, key=KEY, access=access)
    clients = [tw.Client.local(server, client_id=number) for number in (9, 1, 2, 3)]
    for _ in range(RATE):
        network.advance(1 / RATE)
        with server.tick():
            pass
        for client in clients:
            with client.tick():
                pass
    assert clients[0].disconnect_reason is tw.DisconnectReason.KICKED
    assert [client.connected for client in clients].count(True) == 2
    assert [client.disconnect_reason for client in clients].count(tw.DisconnectReason.SERVER_FULL) == 1


def test_arguments_are_checked() -> None:
    network = tw.testing.SimulatedNetwork()
    server, _ = make_pair(network=network)
    for wrong, complaint in (
        ({"network": network}, "network must be left out for a local client"),
        (
            {"debugging": tw.testing.Debugging(conditions=tw.Conditions(latency=1))},
            "conditions must be None for a local client",
        ),
        ({"tuning": tw.Tuning(driver="thread")}, "driver must be 'polled' for a local client"),
        ({"tuning": tw.Tuning(bind="127.0.0.1:0")}, "bind must be None for a local client"),
        ({"client_id": -1}, "client_id must be"),
    ):
        with pytest.raises(ValueError, match=complaint):
            tw.Client.local(server, **wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'bind'"):
        tw.Client.local(server, bind="127.0.0.1:0")  # type: ignore[call-arg]
    server.close()
    with pytest.raises(tw.errors.ClosedError):
        tw.Client.local(server)
