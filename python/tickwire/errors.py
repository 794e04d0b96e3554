"""The exceptions that Tickwire raises.

Most errors are also builtin exceptions, so ``except ValueError`` works without an import from this module. An
error reports a mistake of this program, and names the argument, its value and the allowed values. Mistakes of
the other side raise no errors: they are counted, or they end the connection. If the other side has left,
isn't connected or doesn't ack, methods return a false result. With ``Debugging(strict=True)``, these methods
raise an error instead (:class:`ChannelFullError`, :class:`StaleClientError`, :class:`NotConnectedError`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = [
    "BadWorldError",
    "CallCancelledError",
    "CallError",
    "CallFailedError",
    "CallPendingError",
    "CallTimeoutError",
    "CaptureError",
    "ChannelError",
    "ChannelFullError",
    "ClosedError",
    "FieldError",
    "FieldTypeError",
    "GhostError",
    "KeysError",
    "MessageTooLargeError",
    "NotConnectedError",
    "PredictionError",
    "RecordingError",
    "RoomTakenError",
    "StaleClientError",
    "StreamError",
    "SyncTestError",
    "TickwireError",
    "UnregisteredMessageError",
    "WatchError",
]


class TickwireError(Exception):
    """The base of all exceptions of Tickwire."""


class FieldError(TickwireError, ValueError):
    """A field's value is out of the range that the field declares."""

    def __init__(
        self,
        class_name: str,
        field: str,
        value: object,
        bound: str,
        ghost_class: type | None = None,
        row: int | None = None,
        property: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(class_name, field, value, bound, ghost_class, row, property)
        self.class_name = class_name
        """The name of the message class or ghost class."""
        self.field = field
        """The field's name. It is ``stream.<method>`` if a class's own ``serialize`` wrote the value."""
        self.value = value
        """The given value."""
        self.bound = bound
        """The allowed values, in words."""
        self.ghost_class = ghost_class
        """The ghost class if the value was in a ghost's column. For other values, this attribute, :attr:`row`
        and :attr:`property` are None.
        """
        self.row = row
        """The ghost's row in the column."""
        self.property = property
        """The property's name."""

    def __str__(self) -> str:
        return f"{self.class_name}.{self.field} = {_shorten(self.value)}: must be {self.bound}"


class FieldTypeError(FieldError, TypeError):
    """A field's value has the wrong type."""

    def __str__(self) -> str:
        kind = type(self.value).__name__
        return f"{self.class_name}.{self.field} = {_shorten(self.value)} ({kind}): must be {self.bound}"


class MessageTooLargeError(TickwireError, ValueError):
    """An encoded message is larger than its channel or the ``max_bytes`` of its class allows."""


class UnregisteredMessageError(TickwireError, TypeError):
    """The object's class is not among the protocol's messages."""


class ChannelError(TickwireError, LookupError):
    """The protocol has no such channel."""


class ChannelFullError(TickwireError, RuntimeError):
    """Too many messages wait on the channel. Nothing was queued; try again after a few ticks."""


class StaleClientError(TickwireError, LookupError):
    """The handle belongs to a client that has left."""


class NotConnectedError(TickwireError, RuntimeError):
    """The client isn't connected."""


class GhostError(TickwireError, RuntimeError):
    """A ghost or a ghost class can't be used: the ghost isn't in this world or is despawned, or the class
    isn't in the protocol.
    """


class BadWorldError(TickwireError, ValueError):
    """The bytes are no valid saved world, or were saved with other ghost classes. See :meth:`World.save`."""


class PredictionError(TickwireError, RuntimeError):
    """The game's ``step`` raised or didn't return a state, or a state has a number that isn't finite. The
    prediction keeps its last valid state.
    """


class ClosedError(TickwireError, RuntimeError):
    """The endpoint was closed."""


class CallError(TickwireError, RuntimeError):
    """The base of the errors of calls and requests."""


class CallFailedError(CallError):
    """The other side didn't complete a request. If an exception was the cause, it is in the other side's
    log.
    """

    def __init__(self, name: str, reason: str, sentence: str) -> None:
        super().__init__(name, reason, sentence)
        self.name = name
        """The name of the call."""
        self.reason = reason
        """``"failed"``: the function raised an exception or returned an invalid value; ``"refused"``: the
        caller doesn't own the first ghost among the arguments; ``"gone"``: a ghost among the arguments is
        gone.
        """
        self.sentence = sentence
        """The reason in words."""

    def __str__(self) -> str:
        return f"{self.name}: {self.sentence}"


class CallTimeoutError(CallError, TimeoutError):
    """No reply to a request arrived in time."""


class CallCancelledError(CallError):
    """The request was cancelled on this side."""


class CallPendingError(CallError):
    """The request still waits for its reply."""


class SyncTestError(TickwireError, AssertionError):
    """A frame that ran again on the same state and inputs gave another state: see :class:`SyncTest`."""

    def __init__(self, frame: int, fields: list[str]) -> None:
        super().__init__(frame, fields)
        self.frame = frame
        """The frame that starts from a different state. The previous frame isn't deterministic."""
        self.fields = fields
        """The names of the fields that differ. For an array, the first differing row follows: ``x[1]``."""

    def __str__(self) -> str:
        return (
            f"the state before frame {self.frame} is not the same when frame {self.frame - 1} runs again: "
            f"{', '.join(self.fields)} differs. The step must depend on the state and the inputs alone, "
            "and all that it changes must be saved"
        )


class StreamError(TickwireError, ValueError):
    """The bytes to read are invalid.

    Don't catch this error in ``serialize``: it has to end the connection of the side that sent the bytes.
    """


class RecordingError(TickwireError):
    """A file is not a recording of a match, or isn't complete."""


class CaptureError(TickwireError, ValueError):
    """A file is not a capture by Tickwire."""


class KeysError(TickwireError, ValueError):
    """A file doesn't contain the keys that are needed to decrypt or replay a capture."""


class RoomTakenError(TickwireError, RuntimeError):
    """Another process runs this room of a fleet."""


class WatchError(TickwireError, RuntimeError):
    """A server can't be watched, or can't be watched any longer. The text says why, and what to do."""


def _shorten(value: object, limit: int = 60) -> str:
    try:
        text = repr(value)
    except Exception:  # A number of more digits than Python shows, or the value's own error.
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
