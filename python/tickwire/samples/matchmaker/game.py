"""A room of the matchmaker. Players walk around, and keep their places when the room moves."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import tickwire as tw
from tickwire import fleet

TICKS_PER_SECOND = 30


@tw.message
class Walk:
    """A player's step."""

    x: tw.i8


@tw.ghost
class Walker:
    """A player in the room."""

    x: tw.i32 = 0


PROTOCOL = tw.Protocol(0x7469636B_726F6F6D, [], ghosts=[Walker], inputs=Walk, tick_rate=TICKS_PER_SECOND)


KEY = bytes.fromhex(os.environ.get("GAME_KEY", "00" * 32))
"""The key of servers and matchmaker. Use the zeros only on your own machine."""


@fleet.room(PROTOCOL, key=KEY, max_clients=16)
class Attic:
    """The game in a room."""

    def __init__(self, server: tw.Server) -> None:
        self.server = server

    def tick(self, inbox: tw.Inbox[tuple[tw.ClientHandle, object]]) -> None:
        """Moves all players."""
        world = self.server.world
        walkers = {owner: walker for walker in world.objects(Walker) if (owner := world.owner(walker))}
        for client, what in inbox:
            if isinstance(what, tw.Connected) and client not in walkers:
                walkers[client] = world.spawn(Walker(), owner=client)
        for client, walk in self.server.inputs:
            if walk is not None and client in walkers:
                walkers[client].x += walk.x


@contextmanager
def joined(token: tw.ConnectToken, ask: Callable[[], tw.ConnectToken]) -> Iterator[tw.Client]:
    """Makes a client that asks the matchmaker again when its room moves."""
    with tw.Client(PROTOCOL, token, reconnect=tw.connections.Reconnect(token=ask)) as client:
        yield client
