"""Connection states, the reasons why connections end, and the events of a tick."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from tickwire._core import (
    Address,
    Connected,
    Disconnected,
    GameEnded,
    HostChanged,
    MasterChanged,
    PlayerJoined,
    PlayerLeft,
    Started,
)

__all__ = [
    "AddressLike",
    "ClientState",
    "DisconnectReason",
    "Event",
    "LeaveReason",
    "PeerEvent",
    "Reconnecting",
    "SendResult",
]

AddressLike: TypeAlias = Address | str | tuple[str, int]
"""An address as an argument: an :class:`Address`, its text, or ``(host, port)`` with an IP
address as the host.
"""


PeerEvent: TypeAlias = PlayerJoined | PlayerLeft | MasterChanged | HostChanged | Started | GameEnded
"""The events in ``inbox.events`` of a :class:`tickwire.peers.Peer`."""


class DisconnectReason(enum.Enum):
    """The reason why a connection ended. ``str(reason)`` is a sentence."""

    CLOSED = "closed by this side"
    KICKED = "the server ended the connection"
    SERVER_CLOSED = "the server closed, or its program ended"
    PEER_DISCONNECTED = "the other side disconnected"
    TIMED_OUT = "nothing arrived from the other side for too long"
    REPLACED = "the same client connected once more and took this connection's place"
    STALLED = (
        "a reliable channel to this player stayed full for too long, because the player acked or read "
        "too little"
    )
    SERVER_FULL = "the server is full"
    REQUEST_TIMED_OUT = (
        "no server answered the connection request: it is down, or has another key or protocol id, "
        "or the token was used"
    )
    REFUSED = "the server is in development mode and refused the connection request; the detail says why"
    UNREACHABLE = "no program listens at the server's address: the server is down, or the address is wrong"
    UNKNOWN_CODE = "no game has this code, or the game has ended"
    NO_PATH = "no path was found to the server with the code: the detail says why"
    RESPONSE_TIMED_OUT = "the server did not confirm the connection"
    TOKEN_EXPIRED = "the connect token expired before a connection was made"
    PROTOCOL_MISMATCH = "protocol mismatch: the two sides declare different messages or channels"
    PROTOCOL_VIOLATION = "protocol violation: one of the two sides sent what the protocol does not allow"

    READ_PACKET_FAILED = (
        "read packet failed: a packet of the other side can't be read; the two sides may have different "
        "channels or messages (yojimbo)"
    )
    FAILED_TO_SERIALIZE = (
        "failed to serialize: a message of the other side can't be read; the two sides may have different "
        "messages (yojimbo)"
    )
    DESYNC = (
        "desync: the other side sent a message or block that can't belong where it says; the two sides may "
        "have different queue or block sizes (yojimbo)"
    )

    def __str__(self) -> str:
        return self.value


class LeaveReason(enum.Enum):
    """The reason why a player left a game of peers, or couldn't join. ``str(reason)`` is a sentence."""

    LEFT = "the player left"
    LOST = "nothing arrived from the player for too long"
    KICKED = "the master removed the player"
    UNREACHABLE = "the player and another player don't reach each other"
    VIOLATION = "the player sent what the protocol does not allow"
    MINORITY = "half of the players or more are gone at once, so the game can continue only on their side"
    FULL = "all places of the game are taken"
    STARTED = "the game has started and accepts no new players"
    MISMATCH = "the two sides declare different messages or channels, or have another protocol id or key"
    NO_ANSWER = "no peer answers at the address, or the peer that answered is gone"
    CLOSED = "closed by this side"
    UNKNOWN_CODE = "no game has this code, or the game has ended"

    def __str__(self) -> str:
        return self.value


class SendResult(enum.Enum):
    """The result of ``send``. ``SENT`` is true; the other results are false and give the reason.
    ``str(result)`` is a sentence.
    """

    SENT = "the message was queued"
    GONE = "the client is gone: its Disconnected event has arrived or is about to"
    FULL = (
        "the channel is full: the other side doesn't ack or read, or this tick has sent more than send_queue "
        "allows"
    )
    NOT_CONNECTED = (
        "the connection is not up: its Connected event hasn't arrived, or its Disconnected event has; "
        "or a game of peers has no host now"
    )
    HIDDEN = (
        "a ghost in the call is unknown to the other side: it isn't relevant to the client, or the new "
        "connection's world hasn't arrived"
    )

    def __bool__(self) -> bool:
        return self is SendResult.SENT

    def __str__(self) -> str:
        return self.value


class ClientState(enum.Enum):
    """The state of a client's connection. The values are the numbers of netcode 1.02."""

    TOKEN_EXPIRED = -6
    INVALID_TOKEN = -5
    TIMED_OUT = -4
    RESPONSE_TIMED_OUT = -3
    REQUEST_TIMED_OUT = -2
    DENIED = -1
    DISCONNECTED = 0
    SENDING_REQUEST = 1
    SENDING_RESPONSE = 2
    CONNECTED = 3
    RECONNECTING = 4
    """No connection; the client waits for its next attempt. Netcode doesn't have this state."""


@dataclass(frozen=True)
class Reconnecting:
    """A client with the setting ``reconnect`` has no connection and will try again."""

    attempt: int
    """The number of the next attempt. Counting starts again at 1 after a connection that lasted at least
    ``Reconnect.max_delay`` seconds.
    """
    delay: float
    """Seconds until the next attempt."""
    reason: DisconnectReason
    """The reason why the connection, or the last attempt, ended."""
    detail: str | None = None
    """The server's text, as in :attr:`Disconnected.detail`."""
    error: Exception | None = None
    """The exception that prevented the last attempt, if ``Reconnect.token`` failed or returned an unusable
    token; otherwise None.
    """
    client: ClassVar[None] = None
    """None, as in all events on a client."""


Event: TypeAlias = Connected | Disconnected | Reconnecting
"""The events in ``inbox.events``."""
