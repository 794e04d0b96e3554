"""The demo's game, for both sides: players run about a field, pick up coins and throw them at each other."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import tickwire as tw

MAX_PLAYERS = 64
TICK_RATE = 60
SIZE = 64.0
"""The side of the field."""
COINS = 40
"""There are always this many coins, on the field or in purses."""
SPEED = 13.0
"""How far a player runs in a second."""
REACH = 1.25
"""How close a player must come to a coin to pick it up."""
MAX_HEALTH = 100
HIT = 10
"""What a coin takes from the health of players near the spot it is thrown to."""
HIT_REACH = 6.5
"""How near that is."""
HEAL = 5
"""What picking up a coin gives back."""

GRID = 1 / 64
"""All things are on a grid as fine as this, a power of two like ``SIZE``: both sides have equal numbers."""

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
    """The input of a tick: where a player runs. Longer than 1 is as fast as 1."""

    x: Direction
    y: Direction


@tw.message
class Throw:
    """Throws a coin from the own purse to a spot."""

    x: Coordinate
    y: Coordinate


@tw.message
class Thrown:
    """Somebody threw a coin to a spot."""

    slot: Annotated[int, tw.ranged(0, MAX_PLAYERS - 1)]
    x: Coordinate
    y: Coordinate


@tw.message
class Ready:
    """The world is loaded: the bot plays from now on."""


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
    """Where a player is a tick later."""
    way = SPEED / TICK_RATE / max(1.0, math.hypot(steer.x, steer.y))
    return on_field(spot.x + steer.x * way, spot.y + steer.y * way)


def on_field(x: float, y: float) -> Spot:
    """The spot of the grid that is nearest."""
    return Spot(*(round(min(max(each, 0.0), SIZE) / GRID) * GRID for each in (x, y)))


def distance(one: Spot | Coin | Runner | Throw, other: Spot | Coin | Runner | Throw) -> float:
    """How far apart two things are."""
    return math.hypot(one.x - other.x, one.y - other.y)
