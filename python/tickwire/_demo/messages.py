"""The messages between the demo's server and bots.

Each kind of data has the channel that fits it. Messages that must not get lost use the reliable one: a bot
that
missed one coin would see a wrong field forever. A bot's inputs ride in three packets each, so that a lost
packet costs no time. Of positions only the newest counts, and an older one never undoes it. Of a player's
health the last value must arrive, but no value before it. The world that a bot loads when it joins is a
chunk: it goes beside all these and delays none.

Reliable messages carry a ``number`` that counts up from 0 for each connection and direction. The transport
doesn't need it; it lets the demo check from outside that nothing was lost, doubled or swapped. With the
``tick`` of inputs and positions it checks that none came after a newer one.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import tickwire as tw
from tickwire._demo.world import COINS, MAX_HEALTH, SIZE

MAX_PLAYERS = 64

PlayerNumber: TypeAlias = Annotated[int, tw.ranged(0, MAX_PLAYERS - 1)]
CoinNumber: TypeAlias = Annotated[int, tw.ranged(0, COINS - 1)]
CoinCount: TypeAlias = Annotated[int, tw.ranged(0, COINS)]
HealthPoints: TypeAlias = Annotated[int, tw.ranged(0, MAX_HEALTH)]
Coordinate: TypeAlias = Annotated[float, tw.quantized(0, SIZE, 1 / 64)]
Direction: TypeAlias = Annotated[float, tw.quantized(-1, 1, 1 / 128)]


# --- reliable: server to bots ---


@tw.message
class Welcome:
    """The first message to a bot: which player it is."""

    player: PlayerNumber
    number: tw.u32 = 0


@tw.message
class CoinPlaced:
    """A coin was placed here."""

    coin: CoinNumber
    x: Coordinate
    y: Coordinate
    number: tw.u32 = 0


@tw.message
class CoinTaken:
    """A player picked up a coin."""

    coin: CoinNumber
    player: PlayerNumber
    number: tw.u32 = 0


# --- reliable: bots to server ---


@tw.message
class Throw:
    """Throws a coin from the purse to a spot."""

    x: Coordinate
    y: Coordinate
    number: tw.u32 = 0


@tw.message
class Ready:
    """The world is loaded: the bot plays from now on."""

    number: tw.u32 = 0


# --- inputs: bots to server ---


@tw.message
class Steer:
    """A bot's move for one tick: its direction."""

    tick: tw.u32
    x: Direction
    y: Direction


# --- positions and health: server to bots ---


@tw.message
class PlayerState:
    """One player's position and score at a tick of the server."""

    tick: tw.u32
    player: PlayerNumber
    x: Coordinate
    y: Coordinate
    coins: CoinCount


@tw.message
class Health:
    """How well a player is. Its key is the player's number."""

    health: HealthPoints


Numbered: TypeAlias = Welcome | CoinPlaced | CoinTaken | Throw | Ready

RELIABLE, INPUTS, POSITIONS, HEALTH = range(4)

PROTOCOL = tw.Protocol(
    id=0x7469636B_64656D6F,
    messages=[Welcome, CoinPlaced, CoinTaken, Throw, Ready, Steer, PlayerState, Health],
    channels=[
        tw.reliable_ordered("reliable", send_queue=4096),
        tw.channels.redundant("inputs", copies=3, strict=True),
        tw.sequenced("positions"),
        tw.latest("health", keys=MAX_PLAYERS),
        tw.chunks("world"),
    ],
)
