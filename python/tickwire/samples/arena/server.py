"""The arena's server: the one program that knows where everyone is."""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass, field

import tickwire as tw
from tickwire.samples.arena.messages import (
    GEM,
    NEWS,
    SCORES,
    SNAPSHOTS,
    Gem,
    Move,
    Score,
    Snapshot,
    Standing,
    Taken,
)
from tickwire.samples.arena.world import HEIGHT, RADIUS, REACH, WIDTH, Spot, moved, start

TICKS_PER_SNAPSHOT = 3
# Moves come in bunches over a bad network. More than this many at once are of someone who wants to be fast.
MAX_MOVES_AT_ONCE = 20


@dataclass
class Guest:
    """A player, as the server keeps it."""

    spot: Spot
    points: int = 0
    moves: deque[Move] = field(default_factory=lambda: deque(maxlen=2 * MAX_MOVES_AT_ONCE))
    last_move: int = 0
    allowance: float = 0.0


class Arena:
    """The game. Each :meth:`tick` is a tick of the world."""

    def __init__(self, server: tw.Server, seed: int | None = None) -> None:
        self._server = server
        self._random = random.Random(seed)
        self._guests: dict[tw.ClientHandle, Guest] = {}
        self._gem = self._anywhere()
        self._tick = 0

    def tick(self, inbox: tw.Inbox[tuple[tw.ClientHandle, object]]) -> None:
        """Takes in what the players steer, moves them, and tells them."""
        self._tick += 1
        for client, what in inbox:
            match what:
                case tw.Connected():
                    self._welcome(client)
                case Move():
                    self._guests[client].moves.append(what)
                case tw.Disconnected():
                    del self._guests[client]
                case _:
                    pass  # players say nothing else
        for client, guest in self._guests.items():
            self._play(client, guest)
        if self._tick % TICKS_PER_SNAPSHOT == 0:
            self._send_snapshots()

    def _welcome(self, client: tw.ClientHandle) -> None:
        self._guests[client] = Guest(start(client.slot))
        self._server.broadcast(Score(0), SCORES, key=client.slot)
        self._server.send(client, Gem(*self._gem), GEM)
        for other, guest in self._guests.items():
            self._server.send(client, Score(guest.points), SCORES, key=other.slot)

    def _play(self, client: tw.ClientHandle, guest: Guest) -> None:
        # A move a tick, and those that came late: nobody gets further by sending more.
        guest.allowance = min(guest.allowance + 1, MAX_MOVES_AT_ONCE)
        while guest.moves and guest.allowance >= 1:
            guest.allowance -= 1
            move = guest.moves.popleft()
            guest.spot = moved(guest.spot, (move.x, move.y))
            guest.last_move = move.tick
        if math.dist(guest.spot, self._gem) < REACH:
            guest.points = min(guest.points + 1, 65_535)
            self._server.broadcast(Taken(client.slot, *self._gem), NEWS)
            self._server.broadcast(Score(guest.points), SCORES, key=client.slot)
            self._gem = self._anywhere()
            self._server.broadcast(Gem(*self._gem), GEM)

    def _send_snapshots(self) -> None:
        standings = [Standing(client.slot, *guest.spot) for client, guest in self._guests.items()]
        for client, guest in self._guests.items():
            self._server.send(client, Snapshot(self._tick, guest.last_move, standings), SNAPSHOTS)

    def _anywhere(self) -> Spot:
        edge = 2 * RADIUS
        return self._random.uniform(edge, WIDTH - edge), self._random.uniform(edge, HEIGHT - edge)
