"""The players' commands, and the peers' protocol."""

from __future__ import annotations

import enum
from typing import Annotated

import tickwire as tw

MAX_PLAYERS = 4
SIZE = 4096
"""The width and height of the map, in steps."""
MAX_SELECTED = 12
"""The most units in one command."""


class Kind(enum.IntEnum):
    """The kinds of objects."""

    MINE = 0
    BASE = 1
    BARRACKS = 2
    WORKER = 3
    SOLDIER = 4


Ids = Annotated[list[tw.u16], tw.up_to(MAX_SELECTED)]
Place = Annotated[int, tw.ranged(0, SIZE - 1)]


@tw.message
class Move:
    """Units go to a place, and stop what they did."""

    units: Ids
    x: Place = 0
    y: Place = 0


@tw.message
class Gather:
    """Workers bring gold from a mine to the nearest base."""

    units: Ids
    mine: tw.u16 = 0


@tw.message
class Attack:
    """Soldiers follow an enemy and fight it."""

    units: Ids
    target: tw.u16 = 0


@tw.message
class Build:
    """A worker builds at its place."""

    worker: tw.u16
    kind: Kind = Kind.BARRACKS


@tw.message
class Train:
    """A base trains a worker, or a barracks trains a soldier."""

    building: tw.u16


COMMANDS = [Move, Gather, Attack, Build, Train]
Command = Move | Gather | Attack | Build | Train

PROTOCOL = tw.Protocol(0x7214, COMMANDS, channels=[tw.reliable_ordered(), tw.chunks()], peers=True)
"""The protocol. It has chunks, which send the world to players who join a running game."""
