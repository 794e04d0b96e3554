"""The arena's rules, the same on both sides: the server decides by them, a player foresees by them."""

from __future__ import annotations

import math
from typing import TypeAlias

Spot: TypeAlias = tuple[float, float]

WIDTH, HEIGHT = 960.0, 540.0
RADIUS = 16.0
SPEED = 300.0  # a second
REACH = RADIUS + 10.0  # between the middles of a player and of the gem
TICKS_PER_SECOND = 60


def moved(spot: Spot, steer: Spot) -> Spot:
    """Where a player is a tick later that steers there; longer steps than 1 are as long as 1."""
    x, y = steer
    step = SPEED / TICKS_PER_SECOND / max(1.0, math.hypot(x, y))
    return (
        min(max(spot[0] + x * step, RADIUS), WIDTH - RADIUS),
        min(max(spot[1] + y * step, RADIUS), HEIGHT - RADIUS),
    )


def start(slot: int) -> Spot:
    """Where a player begins: around the middle, each elsewhere."""
    angle = slot * 2.4
    return WIDTH / 2 + 180 * math.cos(angle), HEIGHT / 2 + 180 * math.sin(angle)
