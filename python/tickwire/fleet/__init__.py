"""Rooms on many machines, run by Agones (Kubernetes) or Ray.

A room is a class with a ``tick`` method. An engine runs rooms and finds them by name. A store keeps a
room's world, so that the room can move to another machine. See ``docs/scale.md``.
"""

from tickwire.fleet._rooms import Engine, Local, Place, room, serve
from tickwire.fleet._store import Claim, MemoryStore, RedisStore, Store

__all__ = [
    "Claim",
    "Engine",
    "Local",
    "MemoryStore",
    "Place",
    "RedisStore",
    "Store",
    "room",
    "serve",
]
