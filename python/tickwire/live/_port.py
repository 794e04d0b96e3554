"""The stats port of a server, to which ``tickwire top`` connects."""

from __future__ import annotations

import time
from collections.abc import Callable
from os import PathLike
from types import TracebackType

import tickwire as tw
from tickwire._checks import check_within
from tickwire.live._keys import read_or_make_key
from tickwire.live._messages import (
    CLIENTS,
    MAX_CHANNELS,
    MAX_COUNTERS,
    PROTOCOL,
    SUMMARY,
    Count,
    Named,
    Queue,
    Row,
    Summary,
)

__all__ = ["StatsPort"]

INTERVAL = 0.1
"""Seconds between two snapshots of the server."""

MAX_WATCHERS = 256
"""The most watchers. Each watcher takes some time of the game's tick."""

ROWS_AT_ONCE = 50
"""The most clients that one snapshot sends, to bound the cost. Sending a thousand clients takes two seconds.
"""


class StatsPort:
    """A port on which clients that have its key can watch a server.

    The port is a second Tickwire server on its own thread. Packets are encrypted, and clients without the key
    get no answer. Only :meth:`publish` reads the watched server: on the game's thread, and only while a
    watcher is connected.

    Args:
        server: the server to watch.
        address: the address to listen on. Use a loopback address; watchers on other machines can reach it
            through a tunnel. Use another address only if they must connect without a tunnel.
        key_file: a file with the key, in 64 hex digits; it is created if it doesn't exist.
        watchers: the most watchers at a time, up to 256.

    Raises:
        OSError: the address can't be bound, or the file can't be read or created; errno says why.
        ValueError: the file has no key, or an argument is out of its bounds.

    Example::

        port = StatsPort(server, "127.0.0.1:40100", key_file="stats.key")
        with tw.run(server) as ticks:
            for tick, inbox in ticks:
                ...
                port.publish()
    """

    def __init__(
        self,
        server: tw.Server,
        address: tw.connections.AddressLike = "127.0.0.1:40100",
        *,
        key_file: str | PathLike[str],
        watchers: int = 4,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_within("watchers", watchers, 1, MAX_WATCHERS, int)
        self._server = server
        self._clock = clock
        key = read_or_make_key(key_file)
        self._port = tw.Server(
            address, PROTOCOL, key=key, max_clients=watchers, tuning=tw.Tuning(driver="thread")
        )
        self._started = self._due = clock()
        self._watchers: list[tw.ClientHandle] = []
        self._told: dict[int, int] = {}
        """The number of the client in each slot that watchers know."""
        self._waiting: list[tw.ClientHandle] = []

    @property
    def address(self) -> tw.Address:
        """The address that the port listens on."""
        return self._port.address

    @property
    def watchers(self) -> int:
        """The number of watchers."""
        return len(self._watchers)

    def publish(self) -> None:
        """Sends the server's state to watchers; call it once a tick. It sends at most ten times a second,
        and only if there are watchers. Invalid packets from watchers raise no errors here.
        """
        now = self._clock()
        if now < self._due or self._port.closed or self._server.closed:
            return
        self._due = now + INTERVAL
        with self._port.tick():
            before, self._watchers = self._watchers, self._port.clients
            if not self._watchers:
                self._told.clear()
                self._waiting.clear()
                return
            if any(watcher not in before for watcher in self._watchers):
                # A new watcher gets everything.
                self._waiting.clear()
            self._tell(SUMMARY, 0, self._summary(now))
            self._tell_of_clients()

    def close(self) -> None:
        """Closes the port. The watched server continues."""
        self._port.close()

    def __enter__(self) -> StatsPort:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.close()

    def _tell_of_clients(self) -> None:
        if not self._waiting:
            self._waiting = self._server.clients[::-1]
            present = {client.slot: client.number for client in self._waiting}
            for slot in [slot for slot in self._told if slot not in present]:
                del self._told[slot]
                self._tell(CLIENTS, slot, _GONE)
        for _ in range(min(ROWS_AT_ONCE, len(self._waiting))):
            client = self._waiting.pop()
            row = _row(client, self._server.stats(client))
            self._told[client.slot] = client.number
            self._tell(CLIENTS, client.slot, row)

    def _tell(self, channel: int, key: int, what: Summary | Row) -> None:
        for watcher in self._watchers:
            try:
                self._port.send(watcher, what, channel, key=key)
            except tw.errors.ClosedError:
                return

    def _summary(self, now: float) -> Summary:
        server, protocol = self._server, self._server.protocol
        counters = [Count(name[:64], value) for name, value in server.counters.items() if value]
        counters += [Count(_short(f"ghost_bits.{name}"), bits) for name, bits in _costs(server).items()]
        channels = [Named(channel.kind, _short(channel.name)) for channel in protocol.channels]
        # Ghosts have one after the game's.
        channels += [Named("ghosts", "ghosts")] * bool(protocol.ghosts)
        return Summary(
            address=str(server.address),
            version=tw.__version__,
            protocol=f"{protocol.id:#x}, hash {protocol.hash:016x}",
            clients=len(server.clients),
            max_clients=server.max_clients,
            uptime=now - self._started,
            channels=channels[:MAX_CHANNELS],
            counters=counters[:MAX_COUNTERS],
        )


def _costs(server: tw.Server) -> dict[str, int]:
    """The bits sent for each class of ghosts."""
    if not server.protocol.ghosts:
        return {}
    try:
        costs = server.world.costs
    except tw.errors.ClosedError:
        return {}
    return {name: sum(each.values()) for name, each in costs.items() if name != "(world)"}


def _row(client: tw.ClientHandle, stats: tw.connections.ConnectionStats) -> Row:
    return Row(
        present=True,
        number=client.number,
        client_id=client.id,
        address=str(client.address),
        rtt_ms=stats.rtt_ms,
        jitter_ms=stats.jitter_ms,
        loss_percent=stats.packet_loss_percent,
        loss_received_percent=stats.packet_loss_received_percent,
        sent_kbps=stats.sent_kbps,
        received_kbps=stats.received_kbps,
        channels=[
            Queue(min(channel.queued, 2**32 - 1), channel.sent, channel.resent, channel.received)
            for channel in stats.channels
        ],
    )


_GONE = Row(
    present=False,
    number=0,
    client_id=0,
    address="",
    rtt_ms=0.0,
    jitter_ms=0.0,
    loss_percent=0.0,
    loss_received_percent=0.0,
    sent_kbps=0.0,
    received_kbps=0.0,
    channels=[],
)


def _short(name: str) -> str:
    return name.encode()[:64].decode(errors="ignore")
