"""Message classes, their encoding, and functions that handle them.

:func:`message` makes a class of messages from its annotations. A class derived from :class:`Message` writes
and reads itself, through a :class:`Stream`.
"""

from tickwire._core import Schema, Stream
from tickwire._handlers import Handlers
from tickwire._message import BlockMessage, Message, MessageFactory, message

__all__ = [
    "BlockMessage",
    "Handlers",
    "Message",
    "MessageFactory",
    "Schema",
    "Stream",
    "message",
]
