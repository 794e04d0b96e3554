"""What the arena's server and players say to each other. Each kind of data has the channel that fits it."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import tickwire as tw
from tickwire.samples.arena.world import HEIGHT, WIDTH

MAX_PLAYERS = 16

Slot: TypeAlias = Annotated[int, tw.ranged(0, MAX_PLAYERS - 1)]
X: TypeAlias = Annotated[float, tw.quantized(0, WIDTH, 1 / 32)]
Y: TypeAlias = Annotated[float, tw.quantized(0, HEIGHT, 1 / 32)]
Direction: TypeAlias = Annotated[float, tw.quantized(-1, 1, 1 / 64)]


@tw.message
class Move:
    """To the server: where the player steers in a tick of its own. Three packets carry each, so that a lost
    packet costs no time."""

    tick: tw.u32
    x: Direction
    y: Direction


@tw.message
class Standing:
    """A player's place, within a snapshot."""

    slot: Slot
    x: X
    y: Y


@tw.message
class Snapshot:
    """To each player: the world at a tick of the server. Only the newest counts; none is sent again."""

    tick: tw.u32
    moves: tw.u32
    """This player's moves up to here are in it."""
    standings: Annotated[list[Standing], tw.up_to(MAX_PLAYERS)]


@tw.message
class Gem:
    """To each player: where the gem lies now. It changes seldom, and its last value must arrive."""

    x: X
    y: Y


@tw.message
class Score:
    """To each player: a player's points. Its key is the player's slot."""

    points: tw.u16


@tw.message
class Taken:
    """To each player: someone took the gem. It happens once and must not be missed."""

    slot: Slot
    x: X
    y: Y


MOVES, SNAPSHOTS, GEM, SCORES, NEWS = range(5)
PROTOCOL: tw.Protocol[Move | Standing | Snapshot | Gem | Score | Taken] = tw.Protocol(
    id=0x7469636B_6172656E,
    messages=[Move, Standing, Snapshot, Gem, Score, Taken],
    channels=[
        tw.redundant("moves", copies=3, strict=True),
        tw.sequenced("snapshots"),
        tw.latest("gem", keys=1),
        tw.latest("scores", keys=MAX_PLAYERS),
        tw.reliable_ordered("news"),
    ],
)
