"""Message classes, their encoding, and functions that handle them.

:func:`message` makes a message class from annotations. A class derived from :class:`Message` has its own
code to write and read its objects, through a :class:`Stream`.
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
