"""The rules of the coin game, which both programs share: run to the coin before the others do."""

import random

RATE, SPEED, WIDTH, HEIGHT, REACH = 60, 4, 800, 600, 24


def moved(spot, keys):
    """Where a player is a frame later who holds these keys: -1, 0 or 1 along each axis."""
    x, y = (at + SPEED * way for at, way in zip(spot, keys, strict=True))
    return min(max(x, 0), WIDTH), min(max(y, 0), HEIGHT)


def is_near(spot, coin):
    """Whether a player takes the coin."""
    return abs(spot[0] - coin[0]) < REACH and abs(spot[1] - coin[1]) < REACH


def place():
    """Somewhere on the field."""
    return random.randrange(WIDTH), random.randrange(HEIGHT)
