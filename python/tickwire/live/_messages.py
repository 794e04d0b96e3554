"""The messages of a stats port, which is a Tickwire server with its own small protocol."""

from __future__ import annotations

from typing import Annotated

import tickwire as tw

MAX_CHANNELS = 64
"""The most channels of a protocol."""

MAX_COUNTERS = 400
"""The most counters in a :class:`Summary`. The server's counters that are 0 are left out."""

MAX_SLOTS = 65_536


@tw.message
class Named:
    """A channel of the watched server."""

    kind: Annotated[str, tw.text(32)]
    name: Annotated[str, tw.text(64)]


@tw.message
class Count:
    """One of the server's counters."""

    name: Annotated[str, tw.text(64)]
    value: tw.u64


@tw.message
class Summary:
    """The watched server as a whole."""

    address: Annotated[str, tw.text(64)]
    version: Annotated[str, tw.text(32)]
    protocol: Annotated[str, tw.text(64)]
    clients: tw.u32
    max_clients: tw.u32
    uptime: tw.f64
    """Seconds since the stats port was opened."""
    channels: Annotated[list[Named], tw.up_to(MAX_CHANNELS)]
    counters: Annotated[list[Count], tw.up_to(MAX_COUNTERS)]


@tw.message
class Queue:
    """The queue length and the counters of one channel of a client."""

    queued: tw.u32
    sent: tw.u64
    resent: tw.u64
    received: tw.u64


@tw.message
class Row:
    """The state of one client, from its :class:`tickwire.connections.ConnectionStats`."""

    present: bool
    """False if the slot's client is gone; the other fields are then empty."""
    number: tw.u64
    """Distinguishes successive clients of a slot."""
    client_id: tw.u64
    address: Annotated[str, tw.text(64)]
    rtt_ms: tw.f32
    jitter_ms: tw.f32
    loss_percent: tw.f32
    loss_received_percent: tw.f32
    sent_kbps: tw.f32
    received_kbps: tw.f32
    channels: Annotated[list[Queue], tw.up_to(MAX_CHANNELS)]


PROTOCOL = tw.Protocol(
    id=0x7469636B_73746174,
    messages=[Summary, Row],
    channels=[
        tw.latest("summary", keys=1, max_message_bytes=60_000),
        tw.latest("clients", keys=MAX_SLOTS, max_message_bytes=8_192),
    ],
)
"""Each slot of the watched server is a key. So a slow watcher gets only the newest value of each slot, and
no queue grows.
"""

SUMMARY, CLIENTS = 0, 1
"""The numbers of the protocol's channels."""
