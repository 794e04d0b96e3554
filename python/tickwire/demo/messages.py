"""What the demo's server and bots say to each other.

What must not get lost goes over the reliable channel: a bot that missed one coin would see a wrong field for
ever. What is stale a moment later goes over the unreliable one: the next state replaces the last.

Reliable messages carry a ``number`` that counts up from 0 for each connection and direction. The transport
doesn't need it; it lets the demo check from outside that nothing was lost, doubled or swapped.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import tickwire as tw
from tickwire.demo.world import COINS, SIZE

MAX_PLAYERS = 64

PlayerNumber: TypeAlias = Annotated[int, tw.ranged(0, MAX_PLAYERS - 1)]
CoinNumber: TypeAlias = Annotated[int, tw.ranged(0, COINS - 1)]
CoinCount: TypeAlias = Annotated[int, tw.ranged(0, COINS)]
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
    """A coin lies here now."""

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


# --- unreliable ---


@tw.message
class Steer:
    """A bot's move of one tick: where it runs."""

    tick: tw.u32
    x: Direction
    y: Direction


@tw.message
class PlayerState:
    """Where one player is at a tick of the server, and what it has."""

    tick: tw.u32
    player: PlayerNumber
    x: Coordinate
    y: Coordinate
    coins: CoinCount


Numbered: TypeAlias = Welcome | CoinPlaced | CoinTaken | Throw

RELIABLE, UNRELIABLE = 0, 1

PROTOCOL = tw.Protocol(
    id=0x7469636B_64656D6F,
    messages=[Welcome, CoinPlaced, CoinTaken, Throw, Steer, PlayerState],
    channels=[tw.reliable_ordered("reliable", send_queue=4096), tw.unreliable("unreliable")],
)
