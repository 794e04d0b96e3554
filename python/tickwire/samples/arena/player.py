"""A player's side: it steers, foresees its own steps, and shows the others where they were a moment ago."""

from __future__ import annotations

import math
import random
from collections import deque

import tickwire as tw
from tickwire.samples.arena.messages import MOVES, Gem, Move, Score, Snapshot, Taken
from tickwire.samples.arena.world import TICKS_PER_SECOND, Spot, moved

# The others are shown that many of the server's ticks late: two snapshots apart, and some for jitter.
DELAY_TICKS = 9
# Further off than this the clock jumps, else it creeps.
MAX_CLOCK_ERROR = 30
MAX_UNACKED = 5 * TICKS_PER_SECOND


class Player:
    """What a program knows of the arena, of which the server alone knows the truth."""

    def __init__(self, client: tw.Client) -> None:
        self.client = client
        self.spot: Spot | None = None
        """Where we are, our latest steps included, of which the server doesn't know yet."""
        self.confirmed: Spot | None = None
        """Where the server last said that we were."""
        self.gem: Spot | None = None
        self.scores: dict[int, int] = {}
        self.news: list[Taken] = []
        """What happened in the last tick."""
        self.ended: tw.DisconnectReason | None = None
        self._tick = 0
        self._unacked: deque[Move] = deque(maxlen=MAX_UNACKED)
        self._snapshots: deque[tuple[int, dict[int, Spot]]] = deque(maxlen=64)
        self._clock = 0.0

    def tick(self, steer: Spot) -> None:
        """A tick: hears the server, and steers."""
        self._clock += 1
        self.news.clear()
        with self.client.tick() as inbox:
            for event in inbox.events:
                if isinstance(event, tw.Disconnected):
                    self.ended = event.reason
            for message in inbox.messages:
                match message:
                    case Snapshot():
                        self._take(message)
                    case Taken():
                        self.news.append(message)
                    case _:
                        pass  # the server says nothing else
            for key, value in inbox.latest:
                match value:
                    case Gem(x, y):
                        self.gem = (x, y)
                    case Score(points):
                        self.scores[key] = points
                    case _:
                        pass
            if self.spot is not None:
                self._steer(steer)

    def _steer(self, steer: Spot) -> None:
        self._tick += 1
        move = Move(self._tick, *steer)
        # Full when nothing was heard from the server for long: then the picture stands still.
        if self.client.send(move, MOVES):
            self._unacked.append(move)
            assert self.spot is not None
            self.spot = moved(self.spot, steer)

    def _take(self, snapshot: Snapshot) -> None:
        spots = {each.slot: (each.x, each.y) for each in snapshot.standings}
        self._snapshots.append((snapshot.tick, spots))
        error = snapshot.tick - self._clock
        self._clock += error if abs(error) > MAX_CLOCK_ERROR else 0.1 * error
        self.confirmed = spots.get(self.client.slot or 0)
        # Our moves that the server has not seen yet come on top of what it says.
        while self._unacked and self._unacked[0].tick <= snapshot.moves:
            self._unacked.popleft()
        self.spot = self.confirmed
        for move in self._unacked:
            if self.spot is not None:
                self.spot = moved(self.spot, (move.x, move.y))

    def others(self) -> dict[int, Spot]:
        """Where the others are to be drawn: between two snapshots, a moment ago."""
        now = self._clock - DELAY_TICKS
        spots: dict[int, Spot] = {}
        before: tuple[int, dict[int, Spot]] | None = None
        for after in self._snapshots:
            if after[0] >= now and before is not None:
                spots = _between(before, after, now)
                break
            before, spots = after, after[1]
        return {slot: spot for slot, spot in spots.items() if slot != self.client.slot}


def _between(
    before: tuple[int, dict[int, Spot]], after: tuple[int, dict[int, Spot]], now: float
) -> dict[int, Spot]:
    part = min(max((now - before[0]) / (after[0] - before[0]), 0.0), 1.0)
    spots: dict[int, Spot] = {}
    for slot, (x, y) in after[1].items():
        x0, y0 = before[1].get(slot, (x, y))
        spots[slot] = (x0 + (x - x0) * part, y0 + (y - y0) * part)
    return spots


class Bot:
    """A player without a window: runs for the gem, not quite straight."""

    def __init__(self, player: Player, seed: int) -> None:
        self.player = player
        self._random = random.Random(seed)
        self._drift = 0.0

    def tick(self) -> None:
        """A tick of its player."""
        self.player.tick(self.steer())

    def steer(self) -> Spot:
        """Where it steers now."""
        here, goal = self.player.spot, self.player.gem
        if here is None or goal is None:
            return 0.0, 0.0
        self._drift = min(max(self._drift + self._random.uniform(-0.2, 0.2), -1.2), 1.2)
        angle = math.atan2(goal[1] - here[1], goal[0] - here[0]) + self._drift
        pace = 0.6 if math.dist(here, goal) > 80 else 0.35
        return pace * math.cos(angle), pace * math.sin(angle)
