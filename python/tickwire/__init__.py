"""Real-time game networking for Python: a native UDP transport under Python game logic.

A :class:`Server` and its :class:`Client`\\ s share a protocol: a list of message classes and a list of
channels. The game's own loop ticks the server and the clients.

This module has the names that a first game needs. Other names are in modules for their topics, such as
:mod:`tickwire.world` or :mod:`tickwire.peers`. After ``import tickwire as tw``, these modules need no further
import: write ``tw.world.Grid``. The classes and functions in :mod:`tickwire.articles` work without a server
or a client.

The logger ``tickwire`` of :mod:`logging` reports connections and disconnections. It also reports dropped
datagrams, at most once a second.
"""

import logging as _logging
import typing as _typing
from importlib import import_module as _import_module

from tickwire import _log
from tickwire import _native as _native
from tickwire._calls import call, to_all, to_client, to_server
from tickwire._connection import DisconnectReason, SendResult
from tickwire._core import (
    Address,
    Client,
    ClientHandle,
    Conditions,
    Connected,
    ConnectToken,
    Disconnected,
    GhostDespawned,
    GhostSpawned,
    Inbox,
    Protocol,
    Room,
    Server,
    Tuning,
    angle,
    bits,
    chunks,
    data,
    flags,
    generate_key,
    latest,
    quantized,
    ranged,
    reliable_ordered,
    reliable_unordered,
    sequenced,
    text,
    unreliable,
    vec2,
    vec3,
)
from tickwire._core import __version__ as __version__
from tickwire._fields import (
    Vec2,
    Vec3,
    default,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    initial,
    u8,
    u16,
    u32,
    u64,
    u128,
    up_to,
)
from tickwire._ghost import ghost
from tickwire._message import message
from tickwire._references import Ref
from tickwire._resolve import resolve
from tickwire._run import run
from tickwire.errors import FieldError, TickwireError

if _typing.TYPE_CHECKING:
    from tickwire import aio as aio
    from tickwire import articles as articles
    from tickwire import calls as calls
    from tickwire import capture as capture
    from tickwire import channels as channels
    from tickwire import columns as columns
    from tickwire import connections as connections
    from tickwire import errors as errors
    from tickwire import fields as fields
    from tickwire import live as live
    from tickwire import lockstep as lockstep
    from tickwire import messages as messages
    from tickwire import peers as peers
    from tickwire import predict as predict
    from tickwire import rollback as rollback
    from tickwire import testing as testing
    from tickwire import tokens as tokens
    from tickwire import transfer as transfer
    from tickwire import world as world
    from tickwire import yojimbo as yojimbo

# Imported when they are first used. `metrics` isn't among them, as it needs another package.
_MODULES = (
    "aio",
    "articles",
    "calls",
    "capture",
    "channels",
    "columns",
    "connections",
    "fields",
    "fleet",
    "live",
    "lockstep",
    "messages",
    "peers",
    "predict",
    "rollback",
    "testing",
    "tokens",
    "transfer",
    "world",
    "yojimbo",
)

_logging.getLogger("tickwire").addHandler(_log.UnconfiguredLog())

__all__ = [
    "Address",
    "Client",
    "ClientHandle",
    "Conditions",
    "ConnectToken",
    "Connected",
    "DisconnectReason",
    "Disconnected",
    "FieldError",
    "GhostDespawned",
    "GhostSpawned",
    "Inbox",
    "Protocol",
    "Ref",
    "Room",
    "SendResult",
    "Server",
    "TickwireError",
    "Tuning",
    "Vec2",
    "Vec3",
    "angle",
    "bits",
    "call",
    "chunks",
    "data",
    "default",
    "f32",
    "f64",
    "flags",
    "generate_key",
    "ghost",
    "i8",
    "i16",
    "i32",
    "i64",
    "initial",
    "latest",
    "message",
    "quantized",
    "ranged",
    "reliable_ordered",
    "reliable_unordered",
    "resolve",
    "run",
    "sequenced",
    "text",
    "to_all",
    "to_client",
    "to_server",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "unreliable",
    "up_to",
    "vec2",
    "vec3",
]


if not _typing.TYPE_CHECKING:  # type checkers would take every name for one that exists

    def __getattr__(name):
        if name in _MODULES:
            return _import_module(f"tickwire.{name}")
        sentence = f"module 'tickwire' has no attribute {name!r}"
        if name.startswith("_"):  # what tools ask for
            raise AttributeError(sentence)
        homes = [topic for topic in _MODULES if name in _import_module(f"tickwire.{topic}").__all__]
        raise AttributeError(f"{sentence}: it is tickwire.{homes[0]}.{name}" if homes else sentence)


def __dir__() -> list[str]:
    # Adds what isn't imported yet.
    return sorted({*globals(), *_MODULES})
