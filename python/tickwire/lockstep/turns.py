"""Turns, and the commands in them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from tickwire._core import Protocol, Random
from tickwire.errors import FieldError, StreamError


@dataclasses.dataclass(frozen=True, slots=True)
class Turn:
    """A turn that is to be run now, the same for all players."""

    number: int
    """Counts from -delay; turn 0 is the first that can have commands."""
    steps: int
    """Sub-turns to simulate; 0 while the game is paused."""
    delay: int
    """Turns between giving a command and running it."""
    speed: int
    """How fast turns follow each other, in percent."""
    paused: bool
    """Whether the game is paused."""
    players: frozenset[int]
    """Numbers of the players who take part."""
    left: frozenset[int]
    """Numbers of those who take no part from this turn on."""
    commands: list[tuple[int, Any]]
    """By player's number and then in the order given."""
    random: Random
    """The generator that all share."""
    again: bool = False
    """Whether it ran here before: after :meth:`Lockstep.load_state`, or in a replay."""
    joined: frozenset[int] = frozenset()
    """Numbers of those who came while the game ran and take part from this turn on."""


@dataclasses.dataclass(frozen=True, slots=True)
class WaitingFor:
    """Whose data is missing for the turn that is due."""

    turn: int
    """The number of the turn."""
    players: frozenset[int]
    """Their numbers."""
    seconds: float
    """For how long it has been due."""


def members(mask: int) -> frozenset[int]:
    """The players of a mask."""
    return frozenset(player for player in range(16) if mask >> player & 1)


class Commands:
    """The classes of commands, coded by a protocol."""

    def __init__(self, commands: Sequence[type]) -> None:
        if not isinstance(commands, Sequence) or isinstance(commands, str):
            raise TypeError(f"commands must be a sequence of classes, not {type(commands).__name__}")
        try:
            self.protocol: Protocol[Any] = Protocol(0, list(commands))
        except (TypeError, ValueError) as error:
            raise type(error)(str(error).replace("messages", "commands")) from None
        self.bad = 0

    def turn(self, it: Any, random: Random, again: bool = False) -> Turn:
        number, steps, delay, speed, paused, players, left, given, joined = it
        commands = []
        for player, data in given:
            try:
                commands.append((player, self.protocol.decode(data)))
            except (StreamError, FieldError):
                # All have the same bytes, so all leave it out.
                self.bad += 1
        return Turn(
            number,
            steps,
            delay,
            speed * 10,
            paused,
            members(players),
            members(left),
            commands,
            random,
            again,
            members(joined),
        )
