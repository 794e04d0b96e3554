"""The game itself: players run about a square field and pick up coins. Nothing here knows of networks."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import TypeAlias

SIZE = 100.0
"""The side of the field."""
COINS = 40
"""There are always this many coins, on the field or in purses."""
SPEED = 20.0
"""How far a player runs in a second."""
REACH = 2.0
"""How close a player must come to a coin to pick it up."""
MAX_HEALTH = 100
HIT = 10
"""What a coin takes from the health of players near the spot it is thrown to."""
HIT_REACH = 10.0
"""How near that is."""
HEAL = 5
"""What picking up a coin gives back."""

Spot: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Placed:
    """A coin was placed on the field."""

    coin: int
    spot: Spot


@dataclass(frozen=True)
class Taken:
    """A player picked up a coin."""

    coin: int
    player: int


Happening: TypeAlias = Placed | Taken


@dataclass
class Player:
    spot: Spot
    heading: tuple[float, float] = (0.0, 0.0)
    """Where the player runs, at most 1 long; shorter is slower."""
    purse: list[int] = field(default_factory=list)
    health: int = MAX_HEALTH


class World:
    """The one true state of the game. Players come and go by their number; :meth:`step` moves time on."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._happened: list[Happening] = []
        self.players: dict[int, Player] = {}
        self.coins: dict[int, Spot] = {coin: self._anywhere() for coin in range(COINS)}

    def join(self, number: int) -> None:
        self.players[number] = Player(self._anywhere())

    def leave(self, number: int) -> None:
        """Takes the player off the field; its coins are scattered."""
        for coin in self.players.pop(number).purse:
            self._place(coin, self._anywhere())

    def steer(self, number: int, x: float, y: float) -> None:
        """Sets where a player runs. Nobody runs faster by asking for more than 1."""
        length = max(1.0, math.hypot(x, y))
        self.players[number].heading = (x / length, y / length)

    def throw(self, number: int, spot: Spot) -> None:
        """Throws a coin from the player's purse to the spot, which hits others; nothing without a coin."""
        purse = self.players[number].purse
        if not purse:
            return
        self._place(purse.pop(), spot)
        for other, player in self.players.items():
            if other != number and math.dist(player.spot, spot) < HIT_REACH:
                player.health = max(0, player.health - HIT)

    def step(self, seconds: float) -> list[Happening]:
        """Moves time on; returns what happened since the last step, in order."""
        for number, player in self.players.items():
            player.spot = (
                _within(player.spot[0] + player.heading[0] * SPEED * seconds),
                _within(player.spot[1] + player.heading[1] * SPEED * seconds),
            )
            for coin in [coin for coin, spot in self.coins.items() if math.dist(spot, player.spot) < REACH]:
                del self.coins[coin]
                player.purse.append(coin)
                player.health = min(MAX_HEALTH, player.health + HEAL)
                self._happened.append(Taken(coin, number))
        happened, self._happened = self._happened, []
        return happened

    def _place(self, coin: int, spot: Spot) -> None:
        self.coins[coin] = spot
        self._happened.append(Placed(coin, spot))

    def _anywhere(self) -> Spot:
        return (self._random.uniform(0, SIZE), self._random.uniform(0, SIZE))


def _within(coordinate: float) -> float:
    return min(max(coordinate, 0.0), SIZE)
