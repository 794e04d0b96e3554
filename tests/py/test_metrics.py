"""Metrics for Prometheus, as its own parser reads them."""

from __future__ import annotations

import subprocess
import sys
import threading

import prometheus_client
import pytest
import tickwire as tw
from conftest import Chat
from prometheus_client.parser import text_string_to_metric_families
from tickwire.metrics import ServerCollector
from tickwire.testing import Conditions, advance


def scrape(registry: prometheus_client.CollectorRegistry) -> dict[tuple[str, tuple[str, ...]], float]:
    text = prometheus_client.generate_latest(registry).decode()
    return {
        (
            sample.name,
            tuple(value for label, value in sorted(sample.labels.items()) if label != "server"),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_server_tells_what_it_counted_and_how_its_connections_are(protocol: tw.Protocol) -> None:
    network = tw.testing.SimulatedNetwork(seed=1, conditions=Conditions(latency=0.05, loss=0.05))
    server = tw.Server("127.0.0.1:40000", protocol, network=network, max_clients=8)
    registry = prometheus_client.CollectorRegistry()
    registry.register(ServerCollector(server))
    idle = scrape(registry)
    assert idle["tickwire_clients", ()] == 0
    assert idle["tickwire_client_slots", ()] == 8
    assert not any(name == "tickwire_rtt_seconds" for name, _ in idle)
    clients = [tw.Client.connect(server.address, protocol, network=network) for _ in range(3)]
    advance(network, server, *clients, seconds=1)
    for number in range(200):
        for client in server.clients:
            server.send(client, Chat(1, f"{number}"))
        advance(network, server, *clients, seconds=1 / 60)
    found = scrape(registry)
    assert found["tickwire_clients", ()] == 3
    rtts = sorted(server.stats(client).rtt_ms / 1000 for client in server.clients)
    assert found["tickwire_rtt_seconds", ("0.5",)] == pytest.approx(rtts[1])
    assert found["tickwire_rtt_seconds", ("1",)] == pytest.approx(rtts[2])
    assert 0.1 < rtts[0] < 0.2
    assert 0 < found["tickwire_packet_loss_ratio", ("1",)] < 0.3
    assert found["tickwire_sent_bits_per_second", ()] == pytest.approx(
        sum(server.stats(client).sent_kbps * 1000 for client in server.clients)
    )
    queued = sum(server.stats(client).channels[0].queued for client in server.clients)
    assert found["tickwire_channel_queued", ("events",)] == queued > 0
    assert found["tickwire_count_total", ("packets", "sent")] == server.counters["packets.sent"] > 500
    assert len(found) < 150
    server.close()
    assert scrape(registry) == {}


def test_a_scrape_on_another_thread_and_the_game_do_not_mind_each_other(protocol: tw.Protocol) -> None:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("127.0.0.1:40000", protocol, network=network)
    registry = prometheus_client.CollectorRegistry()
    registry.register(ServerCollector(server, "arena"))
    over = threading.Event()
    failures: list[BaseException] = []

    def scraping() -> None:
        try:
            while not over.is_set():
                scrape(registry)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=scraping)
    thread.start()
    for _ in range(20):
        client = tw.Client.connect(server.address, protocol, network=network)
        advance(network, server, client, seconds=0.3)
        client.close()
        advance(network, server, seconds=0.3)
    over.set()
    thread.join(30)
    assert failures == []


def test_without_the_library_the_error_says_what_to_install() -> None:
    script = "import sys; sys.modules['prometheus_client'] = None\nimport tickwire.metrics"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "pip install '.[metrics]' in a checkout" in done.stderr.splitlines()[-1]
