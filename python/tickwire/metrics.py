"""Metrics of a server for Prometheus, for the package prometheus-client.

Install it by ``pip install tickwire[metrics]``.

::

    import prometheus_client
    from tickwire.metrics import ServerCollector

    prometheus_client.REGISTRY.register(ServerCollector(server))
    prometheus_client.start_http_server(9100, addr="127.0.0.1")
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

try:
    import prometheus_client
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ImportError as error:
    raise ImportError(
        "tickwire.metrics needs the package prometheus-client: pip install '.[metrics]' in a checkout"
    ) from error

import tickwire as tw

__all__ = ["MeetingCollector", "ServerCollector", "serve_meeting"]

QUANTILES = (0.5, 0.9, 0.99, 1.0)


class ServerCollector(Collector):
    """Exports a server's counters and the state of its connections. Each scrape gets the current values.

    The number of series doesn't grow with the number of clients, because the clients' values are exported as
    quantiles over all clients. A scrape runs on Prometheus' thread. It can delay the game's tick by some
    microseconds for each client.

    Args:
        server: the server whose values are exported. A closed server has no metrics.
        name: the value of the label ``server``, which distinguishes several servers in one process; None: the
            server's address.
    """

    def __init__(self, server: tw.Server, name: str | None = None) -> None:
        self._server = server
        self._name = str(server.address) if name is None else name

    def describe(self) -> list[Metric]:
        """Returns nothing, so that a closed server can be registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Returns the current metrics."""
        if self._server.closed:
            return
        yield from self._counted()
        clients = self._server.clients
        yield self._gauge("clients", "Clients that are connected.", len(clients))
        yield self._gauge("client_slots", "Clients there is room for.", self._server.max_clients)
        yield from self._connections(clients)
        yield from self._channels()
        yield from self._ghosts()

    def _counted(self) -> Iterator[Metric]:
        counts = CounterMetricFamily(
            "tickwire_count",
            "What the server counted, by layer and name: see docs/counters.md.",
            labels=["server", "layer", "name"],
        )
        for full_name, value in self._server.counters.items():
            layer, _, name = full_name.partition(".")
            counts.add_metric([self._name, layer, name], value)
        yield counts

    def _connections(self, clients: Sequence[tw.ClientHandle]) -> Iterator[Metric]:
        known = [self._server.stats(client) for client in clients]
        measured = {
            "rtt_seconds": ("Smoothed round trip times.", [stats.rtt_ms / 1000 for stats in known]),
            "jitter_seconds": ("Variation of round trip times.", [stats.jitter_ms / 1000 for stats in known]),
            "packet_loss_ratio": (
                "Share of the packets sent that were lost.",
                [stats.packet_loss_percent / 100 for stats in known],
            ),
            "packet_loss_received_ratio": (
                "Share of the clients' packets that were lost.",
                [stats.packet_loss_received_percent / 100 for stats in known],
            ),
        }
        for name, (text, values) in measured.items():
            family = GaugeMetricFamily(
                f"tickwire_{name}", f"{text} Quantiles over connections.", labels=["server", "quantile"]
            )
            for quantile, value in _quantiles(values):
                family.add_metric([self._name, f"{quantile:g}"], value)
            yield family
        for name, rates in {
            "sent_bits_per_second": [stats.sent_kbps * 1000 for stats in known],
            "received_bits_per_second": [stats.received_kbps * 1000 for stats in known],
        }.items():
            yield self._gauge(name, "Of all connections, with UDP/IP headers.", sum(rates))

    def _channels(self) -> Iterator[Metric]:
        try:
            snapshot = self._server.channel_stats
        except tw.errors.ClosedError:
            return
        protocol = self._server.protocol
        # Ghosts have one after the game's.
        channels = [each.name or str(number) for number, each in enumerate(protocol.channels)]
        channels += ["ghosts"] * bool(protocol.ghosts)
        queued = [0] * len(channels)
        latencies: list[list[float]] = [[] for _ in channels]
        for place, waiting, latency in zip(
            snapshot.channel, snapshot.queued, snapshot.latency_ms, strict=True
        ):
            queued[place] += waiting
            latencies[place].append(latency / 1000)
        waits = GaugeMetricFamily(
            "tickwire_channel_queued",
            "Messages that wait to be sent or acked, of all connections.",
            labels=["server", "channel"],
        )
        times = GaugeMetricFamily(
            "tickwire_channel_latency_seconds",
            "Smoothed times from send to ack. Quantiles over connections.",
            labels=["server", "channel", "quantile"],
        )
        for number, name in enumerate(channels):
            waits.add_metric([self._name, name], queued[number])
            for quantile, value in _quantiles(latencies[number]):
                times.add_metric([self._name, name, f"{quantile:g}"], value)
        yield waits
        yield times

    def _ghosts(self) -> Iterator[Metric]:
        classes = self._server.protocol.ghosts
        if not classes:
            return
        world = self._server.world
        try:
            costs = world.costs
        except tw.errors.ClosedError:
            return
        bits = CounterMetricFamily(
            "tickwire_ghost_bits",
            "Bits that ghosts have sent, by class and property: what is in parentheses is neither.",
            labels=["server", "class", "property"],
        )
        for class_name, each in costs.items():
            for property_name, value in each.items():
                bits.add_metric([self._name, class_name, property_name], value)
        yield bits
        living = GaugeMetricFamily("tickwire_ghosts", "Ghosts that live.", labels=["server", "class"])
        for class_ in classes:
            living.add_metric([self._name, class_.__name__], world.arrays(class_).living)
        yield living

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        family = GaugeMetricFamily(f"tickwire_{name}", text, labels=["server"])
        family.add_metric([self._name], value)
        return family


class MeetingCollector(Collector):
    """Exports the counters of a rendezvous server or a relay. Each scrape gets the current values.

    Args:
        service: the server or the relay. It has no metrics once it is closed.
        name: the value of the label ``server``, which distinguishes several servers in one process; None: the
            address of ``service``.
    """

    GAUGES = ("games", "channels")

    def __init__(self, service: tw.peers.RendezvousServer | tw.peers.Relay, name: str | None = None) -> None:
        self._service = service
        self._name = str(service.address) if name is None else name
        self._kind = "relay" if isinstance(service, tw.peers.Relay) else "rendezvous"

    def describe(self) -> list[Metric]:
        """Returns nothing, so that a closed server can be registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Returns the current metrics."""
        if self._service.closed:
            return
        counted = CounterMetricFamily(
            f"tickwire_{self._kind}_count",
            "What was counted, by name: see docs/nat.md.",
            labels=["server", "name"],
        )
        for name, value in self._service.counters.items():
            if name in self.GAUGES:
                gauge = GaugeMetricFamily(
                    f"tickwire_{self._kind}_{name}", "How many there are.", labels=["server"]
                )
                gauge.add_metric([self._name], value)
                yield gauge
            else:
                counted.add_metric([self._name, name], value)
        yield counted


def serve_meeting(service: tw.peers.RendezvousServer | tw.peers.Relay, host: str, port: int) -> int:
    """Serves the counters of a rendezvous server or a relay to Prometheus, on its own thread. Returns
    the port.

    Args:
        service: the server or the relay.
        host: the address to listen on.
        port: the port; 0 picks a free port.

    Raises:
        OSError: the address can't be bound.
    """
    registry = prometheus_client.CollectorRegistry()
    registry.register(MeetingCollector(service))
    server, _ = prometheus_client.start_http_server(port, addr=host, registry=registry)
    return int(server.server_port)


def _quantiles(values: list[float]) -> Iterator[tuple[float, float]]:
    """Nearest-rank quantiles; empty if there are no values."""
    ranked = sorted(values)
    for quantile in QUANTILES if ranked else ():
        yield quantile, ranked[max(math.ceil(quantile * len(ranked)) - 1, 0)]
