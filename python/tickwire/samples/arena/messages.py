"""The protocol that the arena's server and players share: ghosts, inputs, and calls."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import tickwire as tw
from tickwire.samples.arena.rules import FULL_HEALTH, PULSE, STEER, TICKS_PER_SECOND

MAX_PLAYERS = 16

Slot: TypeAlias = Annotated[int, tw.ranged(0, MAX_PLAYERS - 1)]
Place: TypeAlias = Annotated[tw.Vec2, tw.vec2(-64, 1023, 1 / 32)]
Aim: TypeAlias = Annotated[float, tw.angle(0, 360, 1 / 8)]
Steer: TypeAlias = Annotated[int, tw.ranged(-STEER, STEER)]
Kind: TypeAlias = Annotated[int, tw.ranged(0, PULSE)]
Name: TypeAlias = Annotated[str, tw.text(16)]


@tw.message
class Move:
    """A player's input of a tick."""

    x: Steer = 0
    y: Steer = 0
    aim: Aim = 0.0
    weapon: Kind = 0  # none is fired; after being dead long enough, any other respawns the player
    rewinds: bool = True  # shots are judged by what the player saw, not by what is


@tw.ghost(capacity=MAX_PLAYERS)
class Avatar:
    """A player, as all players see it. A player who leaves is despawned; a dead player waits for its
    respawn.
    """

    position: Place = (0, 0)
    aim: Aim = 0.0
    alive: bool = True
    health: Annotated[int, tw.ranged(0, FULL_HEALTH)] = FULL_HEALTH
    score: tw.u16 = 0
    deaths: tw.u16 = 0
    slot: Annotated[Slot, tw.initial] = 0  # for its color, and to name it in calls
    name: Annotated[Name, tw.initial] = ""
    rewinds: Annotated[int, tw.u16, tw.world.owner_only] = 0  # shots that were judged by what it saw
    rewound: Annotated[int, tw.ranged(0, 1000), tw.world.owner_only] = 0  # ms by which the last went back


@tw.ghost(capacity=256)
class Rocket:
    """A flying rocket."""

    position: Place = (0, 0)
    aim: Annotated[Aim, tw.initial] = 0.0
    # The tick of the input that fired it: who did shows it since, and knows it by that.
    fired_at: Annotated[int, tw.u32, tw.initial] = 0


@tw.call(tw.to_server, rate=1, burst=4)
def join(caller: tw.ClientHandle, name: Name) -> None:
    """Gives the caller an avatar."""


@tw.call(tw.to_all)
def killed(killer: Slot, victim: Slot, weapon: Kind) -> None:
    """A player was killed. The call is reliable, because it must not be missed."""


@tw.call(tw.to_all, channel="effects")
def shot(slot: Slot, weapon: Kind, at: Place, to: Place) -> None:
    """A shot to draw for a moment. Losing it does little harm."""


PROTOCOL: tw.Protocol = tw.Protocol(
    id=0x7469636B_6172656E,
    messages=[],
    channels=[tw.reliable_ordered("news"), tw.unreliable("effects")],
    ghosts=[Avatar, Rocket],
    inputs=Move,
    tick_rate=TICKS_PER_SECOND,
    calls=[join, killed, shot],
)
