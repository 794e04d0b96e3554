"""The demo's game, for both sides: players run on a field, pick up coins and throw them at each other."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import tickwire as tw

MAX_PLAYERS = 64
TICK_RATE = 60
SIZE = 64.0
"""The side of the field."""
COINS = 40
"""The number of coins on the field and in purses."""
SPEED = 13.0
"""The distance that a player runs in a second."""
REACH = 1.25
"""The distance at which a player picks up a coin."""
MAX_HEALTH = 100
HIT = 10
"""The health that players lose near the spot where a coin lands."""
HIT_REACH = 6.5
"""The distance from this spot at which players are hit."""
HEAL = 5
"""The health that a player gains by picking up a coin."""

GRID = 1 / 64
"""The step of the grid for all positions. It is a power of two like ``SIZE``, so both sides have equal
numbers.
"""

Coordinate = Annotated[float, tw.quantized(0, SIZE, GRID)]
Direction = Annotated[float, tw.quantized(-1, 1, 1 / 128)]


@tw.ghost
class Coin:
    """A coin on the field."""

    x: Coordinate
    y: Coordinate


@tw.ghost
class Runner:
    """A player. Its client owns it, and predicts where it runs."""

    x: Coordinate
    y: Coordinate
    coins: Annotated[int, tw.ranged(0, COINS)] = 0
    health: Annotated[int, tw.ranged(0, MAX_HEALTH)] = MAX_HEALTH


@tw.message
class Steer:
    """The input of a tick: the direction in which a player runs. Lengths above 1 count as 1."""

    x: Direction
    y: Direction


@tw.message
class Throw:
    """A player throws a coin from its purse to a spot."""

    x: Coordinate
    y: Coordinate


@tw.message
class Thrown:
    """A player has thrown a coin to a spot."""

    slot: Annotated[int, tw.ranged(0, MAX_PLAYERS - 1)]
    x: Coordinate
    y: Coordinate


@tw.message
class Ready:
    """The world is loaded, and the bot starts to play."""


PROTOCOL = tw.Protocol(
    id=0x7469636B_64656D6F,
    messages=[Throw, Thrown, Ready],
    channels=[tw.reliable_ordered("reliable", send_queue=4096), tw.chunks("world")],
    ghosts=[Coin, Runner],
    inputs=Steer,
    tick_rate=TICK_RATE,
)


class Spot(NamedTuple):
    """A place on the field: the part of a player that its client predicts."""

    x: float
    y: float


def step(spot: Spot, steer: Steer) -> Spot:
    """Returns the place of a player a tick later."""
    way = SPEED / TICK_RATE / max(1.0, math.hypot(steer.x, steer.y))
    return on_field(spot.x + steer.x * way, spot.y + steer.y * way)


def on_field(x: float, y: float) -> Spot:
    """Returns the nearest spot of the grid."""
    return Spot(*(round(min(max(each, 0.0), SIZE) / GRID) * GRID for each in (x, y)))


def distance(one: Spot | Coin | Runner | Throw, other: Spot | Coin | Runner | Throw) -> float:
    """Returns the distance between two things."""
    return math.hypot(one.x - other.x, one.y - other.y)
