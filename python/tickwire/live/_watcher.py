"""Watches a server through its stats port: current state and history."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import tickwire as tw
from tickwire.errors import WatchError
from tickwire.live._messages import PROTOCOL, Row, Summary

__all__ = ["History", "Watched", "Watcher"]

KEPT = 60
"""The number of snapshots of a client to keep."""

TIMEOUT = 5.0
"""Seconds in which a stats port must answer."""


@dataclass
class History:
    """The newest values of a number, oldest first."""

    values: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))

    def sparkline(self, width: int) -> str:
        """The newest values as bars, from 0 to the largest value."""
        shown = list(self.values)[-width:]
        top = max(shown, default=0.0)
        bars = "▁▂▃▄▅▆▇█"
        return "".join(bars[round(value / top * (len(bars) - 1))] if top > 0 else bars[0] for value in shown)


@dataclass
class Watched:
    """A client of the watched server."""

    slot: int
    row: Row
    since: float
    """The time of the first snapshot, by the watcher's clock."""
    rtt: History = field(default_factory=History)
    loss: History = field(default_factory=History)
    sent: History = field(default_factory=History)
    received: History = field(default_factory=History)

    @property
    def queued(self) -> int:
        """The number of waiting messages on all channels."""
        return sum(channel.queued for channel in self.row.channels)

    def take(self, row: Row) -> None:
        """Stores the next snapshot."""
        self.row = row
        self.rtt.values.append(row.rtt_ms)
        self.loss.values.append(row.loss_percent)
        self.sent.values.append(row.sent_kbps)
        self.received.values.append(row.received_kbps)


class Watcher:
    """A connection to a stats port. Call :meth:`poll` several times a second.

    Args:
        address: the address of the stats port.
        key: the key from the port's ``key_file``.
    """

    def __init__(
        self, address: tw.connections.AddressLike, key: bytes, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.address = tw.Address(address)
        self._clock = clock
        self._began = clock()
        token = tw.ConnectToken.generate(
            protocol=PROTOCOL, key=key, client_id=_new_id(), servers=[self.address], expires_in=30, timeout=5
        )
        self._client = tw.Client(PROTOCOL, token)
        self.summary: Summary | None = None
        self.clients: dict[int, Watched] = {}

    def poll(self) -> None:
        """Reads the data that has arrived.

        Raises:
            WatchError: there is no answer, or the connection ended.
        """
        with self._client.tick() as inbox:
            for _, what in inbox.latest:
                if isinstance(what, Summary):
                    self.summary = what
            ended = [event.reason for event in inbox.events if isinstance(event, tw.Disconnected)]
            for key, what in inbox.latest:
                if isinstance(what, Row):
                    self._take(key, what)
        if ended:
            raise WatchError(self._words_of(ended[0]))
        if self.summary is None and self._clock() - self._began > TIMEOUT:
            raise WatchError(self._words_of(tw.DisconnectReason.REQUEST_TIMED_OUT))

    def close(self) -> None:
        """Ends the connection."""
        self._client.close()

    def _take(self, slot: int, row: Row) -> None:
        if not row.present:
            self.clients.pop(slot, None)
            return
        known = self.clients.get(slot)
        if known is None or known.row.number != row.number:
            known = self.clients[slot] = Watched(slot, row, self._clock())
        known.take(row)

    def _words_of(self, reason: tw.DisconnectReason) -> str:
        match reason:
            case tw.DisconnectReason.SERVER_FULL:
                return f"{self.address} has as many watchers as it takes: end one, or raise watchers= there"
            case tw.DisconnectReason.PROTOCOL_MISMATCH:
                return f"{self.address} is of another version of Tickwire: watch it with that version"
            case tw.DisconnectReason.SERVER_CLOSED:
                return f"the stats port at {self.address} closed"
            case tw.DisconnectReason.TIMED_OUT:
                return f"{self.address} fell silent: is the server still running, and does it call publish()?"
        return (
            f"no answer from {self.address}: is a StatsPort open there that is published each tick, and is "
            "the key file the same?"
        )


def _new_id() -> int:
    return int.from_bytes(tw.generate_key()[:8], "little")
