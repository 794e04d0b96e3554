"""Everything Tickwire raises of its own.

Each error is also the builtin exception that fits, so ``except ValueError`` works without importing
anything from here. All of them mean a mistake on this side of the wire: what a peer does wrong is counted, or
ends that peer's connection, and is never raised. That a peer is gone or doesn't keep up is raised only by
endpoints made with ``strict=True`` (:class:`ChannelFullError`, :class:`StaleClientError`,
:class:`NotConnectedError`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tickwire.connection import DisconnectReason

__all__ = [
    "ChannelError",
    "ChannelFullError",
    "ClosedError",
    "ConnectFailedError",
    "FieldError",
    "FieldTypeError",
    "GhostError",
    "MessageTooLargeError",
    "NotConnectedError",
    "PredictionError",
    "StaleClientError",
    "StreamError",
    "TickwireError",
    "UnregisteredMessageError",
]


class TickwireError(Exception):
    """Base of all errors below."""


class FieldError(TickwireError, ValueError):
    """A field's value is not within what the field was declared to hold."""

    def __init__(self, class_name: str, field: str, value: object, bound: str) -> None:
        super().__init__(class_name, field, value, bound)
        self.class_name = class_name
        """The message class."""
        self.field = field
        """The field, or ``stream.<method>`` within a class's own ``serialize``."""
        self.value = value
        """What was given."""
        self.bound = bound
        """What the field takes, in words."""

    def __str__(self) -> str:
        return f"{self.class_name}.{self.field} = {_shorten(self.value)}: must be {self.bound}"


class FieldTypeError(FieldError, TypeError):
    """A field's value has the wrong type."""

    def __str__(self) -> str:
        kind = type(self.value).__name__
        return f"{self.class_name}.{self.field} = {_shorten(self.value)} ({kind}): must be {self.bound}"


class MessageTooLargeError(TickwireError, ValueError):
    """An encoded message is larger than its channel, or its class's ``max_bytes``, takes."""


class UnregisteredMessageError(TickwireError, TypeError):
    """The object's class is not among the protocol's messages."""


class ChannelError(TickwireError, LookupError):
    """The protocol has no channel of this number."""


class ChannelFullError(TickwireError, RuntimeError):
    """Too many messages wait on the channel. Nothing was queued; try again after a few ticks."""


class StaleClientError(TickwireError, LookupError):
    """The client that the handle names is gone."""


class NotConnectedError(TickwireError, RuntimeError):
    """The client's connection is not up (yet, or any more)."""


class GhostError(TickwireError, RuntimeError):
    """A ghost, or its class, is not where it must be for this: in this world, alive, or on the server."""


class PredictionError(TickwireError, RuntimeError):
    """A game's step raised, or returned what is no state. Nothing of the prediction is lost."""


class ClosedError(TickwireError, RuntimeError):
    """The endpoint was closed."""


class ConnectFailedError(TickwireError, ConnectionError):
    """The connection that was waited for never came up."""

    def __init__(self, reason: DisconnectReason) -> None:
        super().__init__(reason)
        self.reason = reason
        """Why."""

    def __str__(self) -> str:
        return str(self.reason)


class StreamError(TickwireError, ValueError):
    """Bytes that the serialize standard refuses.

    Let it pass through ``serialize``: it ends the connection of the peer that sent them.
    """


def _shorten(value: object, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
