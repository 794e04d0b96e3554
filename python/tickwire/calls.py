"""Calls: functions that the other side runs, with or without a reply.

See ``docs/calls.md``.
"""

from tickwire._calls import ClientCall, Direction, ServerCall, call, to_all, to_client, to_server
from tickwire._requests import Request

__all__ = [
    "ClientCall",
    "Direction",
    "Request",
    "ServerCall",
    "call",
    "to_all",
    "to_client",
    "to_server",
]
