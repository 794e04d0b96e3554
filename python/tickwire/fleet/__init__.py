"""Rooms on many machines, run by engines that exist: Agones on Kubernetes, or Ray.

A room is a class with a tick. An engine runs it, and finds it by its name; a store keeps its world, so that
it can move. See ``docs/scale.md``.
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
