"""The arena's rules, the same on both sides: the server decides by them, and a player predicts by them."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

Spot: TypeAlias = tuple[float, float]

WIDTH, HEIGHT = 960.0, 540.0
RADIUS = 14.0
SPEED = 240.0  # a second
TICKS_PER_SECOND = 60
FULL_HEALTH = 100
RESPAWN_TICKS = 90
STEER = 16  # full speed in a move
ROCKET_SPEED = 420.0
# What stands in the way of players and shots: the middle, and the radius.
CORNERS = ((240.0, 150.0), (720.0, 150.0), (240.0, 390.0), (720.0, 390.0))
PILLARS = ((480.0, 270.0, 55.0), *((x, y, 40.0) for x, y in CORNERS))


class Weapon(NamedTuple):
    """The properties of a weapon."""

    name: str
    ticks: int  # between two shots
    damage: int
    reach: float  # how far it shoots; of what has an area, the radius


RIFLE, ROCKET, PULSE = 1, 2, 3
WEAPONS = (
    Weapon("nothing", 0, 0, 0.0),
    Weapon("rifle", 18, 25, 700.0),  # hits at once, along a line
    Weapon("rocket", 50, 70, 85.0),  # flies, and then has an area
    Weapon("pulse", 90, 45, 120.0),  # hits all around
)


class Body(NamedTuple):
    """The predicted part of an avatar."""

    position: Spot
    alive: bool


def moved(spot: Spot, steer: Spot) -> Spot:
    """Returns the place of a steering player a tick later. Steps longer than 1 count as 1."""
    step = SPEED / TICKS_PER_SECOND / max(1.0, math.hypot(*steer))
    x, y = spot[0] + steer[0] * step, spot[1] + steer[1] * step
    for left, top, radius in PILLARS:
        away = math.hypot(x - left, y - top)
        if 0 < away < radius + RADIUS:
            out = (radius + RADIUS) / away
            x, y = left + (x - left) * out, top + (y - top) * out
    return min(max(x, RADIUS), WIDTH - RADIUS), min(max(y, RADIUS), HEIGHT - RADIUS)


def along(spot: Spot, aim: float, distance: float) -> Spot:
    """Returns the place at a distance in the direction ``aim``, in degrees."""
    angle = math.radians(aim)
    return spot[0] + math.cos(angle) * distance, spot[1] + math.sin(angle) * distance


def reached(spot: Spot, aim: float, middle: Spot, radius: float) -> float:
    """Returns the distance at which a line from a spot hits a circle; infinite if it misses."""
    angle = math.radians(aim)
    x, y = middle[0] - spot[0], middle[1] - spot[1]
    ahead = x * math.cos(angle) + y * math.sin(angle)
    beside = abs(x * math.sin(angle) - y * math.cos(angle))
    if ahead < 0 or beside > radius:
        return math.inf
    return max(0.0, ahead - math.sqrt(radius * radius - beside * beside))


def free(spot: Spot, aim: float) -> float:
    """Returns the distance that a rifle shoots until a wall or a pillar."""
    x, y = along((0.0, 0.0), aim, 1.0)
    walls = [
        ((size if way > 0 else 0.0) - at) / way
        for way, at, size in ((x, spot[0], WIDTH), (y, spot[1], HEIGHT))
        if abs(way) > 1e-9
    ]
    pillars = [reached(spot, aim, (left, top), radius) for left, top, radius in PILLARS]
    return min(WEAPONS[RIFLE].reach, *walls, *pillars)


def flown(spot: Spot, aim: float, ticks: float) -> Spot:
    """Returns the place of a rocket some time after its shot."""
    return along(spot, aim, RADIUS + ROCKET_SPEED * ticks / TICKS_PER_SECOND)


def is_stopped(spot: Spot) -> bool:
    """Whether a rocket has hit a wall or a pillar."""
    inside = 0 < spot[0] < WIDTH and 0 < spot[1] < HEIGHT
    return not inside or any(math.dist(spot, (x, y)) < radius for x, y, radius in PILLARS)


def start(number: int) -> Spot:
    """Returns a player's first place. Each player has another place along the walls."""
    angle = number * 2.4
    return WIDTH / 2 + 420 * math.cos(angle), HEIGHT / 2 + 225 * math.sin(angle)
