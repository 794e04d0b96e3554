"""Connections: addresses, states, reasons for their end, reconnecting, and statistics."""

from tickwire._connection import AddressLike, ClientState, DisconnectReason, Event, Reconnecting, SendResult
from tickwire._core import Address, ChannelStats, Connected, ConnectionStats, Disconnected, Tick, Tuning
from tickwire._reconnect import Reconnect
from tickwire._resolve import resolve

__all__ = [
    "Address",
    "AddressLike",
    "ChannelStats",
    "ClientState",
    "Connected",
    "ConnectionStats",
    "DisconnectReason",
    "Disconnected",
    "Event",
    "Reconnect",
    "Reconnecting",
    "SendResult",
    "Tick",
    "Tuning",
    "resolve",
]
