"""The virtual network: conditions by direction, scripts, presets."""

from __future__ import annotations

import pytest
import tickwire as tw
from conftest import Chat, Move, make_protocol
from tickwire.testing import advance, connected_pair


def received(
    network: tw.testing.SimulatedNetwork, server: tw.Server, client: tw.Client, seconds: float
) -> list[int]:
    """How many moves arrive at the server and at the client when each sends one a tick."""
    counts = [0, 0]
    for _ in range(round(seconds * 60)):
        client.send(Move(1, 2, 0.5), channel=1)
        server.broadcast(Move(1, 2, 0.5), channel=1)
        collected = advance(network, server, client, seconds=1 / 60)
        counts = [count + len(end.messages) for count, end in zip(counts, collected, strict=True)]
    return counts


def test_presets_connect_and_carry_a_game(protocol: tw.Protocol) -> None:
    for name in ("3g", "4g", "wifi-bad", "transatlantic", "satellite"):
        conditions = tw.Conditions.preset(name)
        network, server, client = connected_pair(protocol, conditions=conditions, seed=3)
        at_server, at_client = received(network, server, client, seconds=10)
        assert min(at_server, at_client) > 500, name
        rtt = client.stats.rtt_ms
        walk = conditions[0].random_walk
        assert walk is not None
        assert rtt >= 2 * 1000 * (conditions[0].latency - walk.delay), name


def test_a_script_silences_one_direction_for_a_while(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    now = network.now
    network.schedule(now + 3, tw.Conditions(loss=1), sender=server.address)
    network.schedule(now + 6, tw.Conditions(), sender=server.address)
    at_server, at_client = received(network, server, client, seconds=10)
    assert 595 <= at_server <= 600
    assert 415 <= at_client <= 425
    counters = network.counters
    assert counters["lost"] >= 180
    assert counters["sent"] == counters["lost"] + counters["delivered"]


def test_the_rate_of_an_endpoint_bounds_what_it_sends(protocol: tw.Protocol) -> None:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("127.0.0.1:40000", protocol, network=network)
    thin = tw.Conditions(bottleneck=tw.testing.Bottleneck(2900, queue=4000))
    client = tw.Client.connect(
        server.address, protocol, network=network, debugging=tw.testing.Debugging(conditions=thin, seed=1)
    )
    advance(network, server, client, seconds=3)
    assert client.connected
    at_server, at_client = received(network, server, client, seconds=10)
    assert at_server < 500 < at_client
    assert client.counters["simulator.queue_dropped"] > 30


def test_all_arrives_over_a_path_with_a_small_mtu_that_says_nothing() -> None:
    """Messages and chunks, with each side's ``mtu``; without it full packets vanish."""
    protocol = make_protocol(channels=[tw.reliable_ordered(), tw.chunks()])
    mtu = 1126
    narrow = tw.Conditions(latency=0.02, max_datagram=mtu - 48)
    content = bytes(range(256)) * 300

    def transfer(**tuned: int) -> tuple[list[bytes], list[bytes], int, dict[str, int]]:
        network = tw.testing.SimulatedNetwork(seed=1, conditions=narrow)
        server = tw.Server(
            "[fd00::1]:5",
            protocol,
            network=network,
            transfers=tw.transfer.Transfers(memory=1 << 20),
            tuning=tw.Tuning(**tuned),
        )
        client = tw.Client.connect(server.address, protocol, network=network, tuning=tw.Tuning(**tuned))
        advance(network, server, client, seconds=1)
        assert client.connected
        for number in range(100):
            client.send(Chat(1, f"{number} " + "line" * 20))
        client.send_chunk(content)
        server.send_chunk(server.clients[0], content)
        at_server, at_client = advance(network, server, client, seconds=20)
        chunks = [bytes(chunk) for chunk in at_server.chunks], [bytes(chunk) for chunk in at_client.chunks]
        return *chunks, len(at_server.messages), network.counters

    up, down, messages, counters = transfer(mtu=mtu)
    assert (up, down, messages, counters["too_large"]) == ([content], [content], 100, 0)
    up, down, messages, counters = transfer()
    assert up == down == []
    assert counters["too_large"] > 100


def test_mistakes_are_named() -> None:
    network = tw.testing.SimulatedNetwork()
    with pytest.raises(ValueError, match="at must be 0 to 31622400 seconds, not -1"):
        network.schedule(-1, tw.Conditions())
