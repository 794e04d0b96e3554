"""The table of connections: its columns, its order, and its text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tickwire.live._watcher import Watched, Watcher

__all__ = ["COLUMNS", "Column", "cells", "headline", "sorted_clients", "text"]

SPARK = 12
"""Characters of a sparkline."""


@dataclass(frozen=True)
class Column:
    """A column: its title, and functions that return a client's shown value and the value for sorting."""

    title: str
    show: Callable[[Watched, Watcher], str]
    key: Callable[[Watched], Any]
    largest_first: bool = True


def _queues(client: Watched, watcher: Watcher) -> str:
    """The queue lengths of the channels with waiting messages."""
    named = watcher.summary.channels if watcher.summary is not None else []
    names = [channel.name or str(number) for number, channel in enumerate(named)]
    depths = [
        f"{names[number] if number < len(names) else number} {channel.queued}"
        for number, channel in enumerate(client.row.channels)
        if channel.queued
    ]
    return ", ".join(depths) or "-"


def _resent(client: Watched) -> float:
    sent = sum(channel.sent for channel in client.row.channels)
    resent = sum(channel.resent for channel in client.row.channels)
    return 100 * resent / sent if sent else 0.0


COLUMNS: tuple[Column, ...] = (
    Column("slot", lambda client, _: str(client.slot), lambda client: client.slot, largest_first=False),
    Column(
        "client",
        lambda client, _: str(client.row.client_id),
        lambda client: client.row.client_id,
        largest_first=False,
    ),
    Column(
        "address",
        lambda client, _: client.row.address,
        lambda client: client.row.address,
        largest_first=False,
    ),
    Column(
        "RTT ms",
        lambda client, _: f"{client.row.rtt_ms:6.1f} {client.rtt.sparkline(SPARK)}",
        lambda client: client.row.rtt_ms,
    ),
    Column("jitter", lambda client, _: f"{client.row.jitter_ms:5.1f}", lambda client: client.row.jitter_ms),
    Column(
        "loss %",
        lambda client, _: f"{client.row.loss_percent:5.1f} {client.loss.sparkline(SPARK)}",
        lambda client: client.row.loss_percent,
    ),
    Column(
        "up loss %",
        lambda client, _: f"{client.row.loss_received_percent:5.1f}",
        lambda client: client.row.loss_received_percent,
    ),
    Column(
        "down kbit/s",
        lambda client, _: f"{client.row.sent_kbps:7.1f} {client.sent.sparkline(SPARK)}",
        lambda client: client.row.sent_kbps,
    ),
    Column(
        "up kbit/s",
        lambda client, _: f"{client.row.received_kbps:7.1f} {client.received.sparkline(SPARK)}",
        lambda client: client.row.received_kbps,
    ),
    Column("resent %", lambda client, _: f"{_resent(client):5.1f}", _resent),
    Column("queued", _queues, lambda client: client.queued),
)


def sorted_clients(watcher: Watcher, column: Column, reverse: bool) -> list[Watched]:
    """All clients in the order of a column. Clients with equal values are sorted by slot."""
    by_slot = sorted(watcher.clients.values(), key=lambda client: client.slot)
    return sorted(by_slot, key=column.key, reverse=reverse)


def cells(client: Watched, watcher: Watcher) -> list[str]:
    """The cells of a client's row."""
    return [column.show(client, watcher) for column in COLUMNS]


def headline(watcher: Watcher, column: Column, reverse: bool, most: int) -> str:
    """The summary of all connections."""
    summary = watcher.summary
    if summary is None:
        return f"waiting for {watcher.address}"
    counters = {count.name: count.value for count in summary.counters}
    dropped = sum(value for name, value in counters.items() if name.startswith("netcode."))
    known = len(watcher.clients)
    shown = f"the first {most} of {known:,}" if known > most else f"{known:,}"
    prefix = "ghost_bits."
    ghosts = [
        f"{name.removeprefix(prefix)} {value / 8 / 1000:,.1f} kB"
        for name, value in counters.items()
        if name.startswith(prefix)
    ]
    return "\n".join(
        [
            f"{summary.address}  Tickwire {summary.version}  protocol {summary.protocol}  "
            f"watched for {summary.uptime:,.0f} s",
            f"clients {summary.clients:,} of {summary.max_clients:,}  datagrams in "
            f"{counters.get('socket.received', 0):,}, out {counters.get('socket.sent', 0):,}, "
            f"refused {dropped:,}",
            *([f"ghosts sent: {', '.join(ghosts)}"] if ghosts else []),
            f"showing {shown}, by {column.title}, {'largest' if reverse else 'smallest'} first",
        ]
    )


def text(watcher: Watcher, column: Column, reverse: bool) -> str:
    """The whole view as plain text, for output that doesn't go to a terminal."""
    clients = sorted_clients(watcher, column, reverse)
    rows = [[column.title for column in COLUMNS], *(cells(client, watcher) for client in clients)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(COLUMNS))]
    lines = [headline(watcher, column, reverse, len(clients))]
    lines += [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join(lines)
