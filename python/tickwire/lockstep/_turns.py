"""Turns, and the commands in them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from tickwire._core import Protocol, Random
from tickwire.errors import FieldError, StreamError


@dataclasses.dataclass(frozen=True, slots=True)
class Turn:
    """A turn to run now. All players get the same turn."""

    number: int
    """The turn's number. The first turn has the number ``-delay``. Turn 0 is the first that can have
    commands.
    """
    steps: int
    """Steps to simulate; 0 while the game is paused."""
    delay: int
    """Turns between giving a command and running it."""
    speed: int
    """The speed of the game, in percent."""
    players: frozenset[int]
    """Numbers of the players in this turn."""
    left: frozenset[int]
    """Numbers of the players who no longer take part, starting with this turn."""
    commands: list[tuple[int, Any]]
    """The commands, sorted by player number, then in the order in which they were given."""
    random: Random
    """The shared random generator."""
    again: bool = False
    """Whether the turn ran before. True in a replay, and for turns that run again after
    :meth:`Lockstep.load_state` or because this player's world was healed.
    """
    joined: frozenset[int] = frozenset()
    """Numbers of the players who joined the running game and take part, starting with this turn."""

    @property
    def paused(self) -> bool:
        """Whether the game is paused."""
        return self.steps == 0


@dataclasses.dataclass(frozen=True, slots=True)
class WaitingFor:
    """A due turn that can't start because some players' data is missing."""

    turn: int
    """The number of the turn."""
    players: frozenset[int]
    """Numbers of the players whose data is missing."""
    seconds: float
    """The seconds for which the turn has been due."""


def members(mask: int) -> frozenset[int]:
    """The players of a mask."""
    return frozenset(player for player in range(16) if mask >> player & 1)


class Commands:
    """The command classes, and the protocol that encodes commands."""

    def __init__(self, commands: Sequence[type]) -> None:
        if not isinstance(commands, Sequence) or isinstance(commands, str):
            raise TypeError(f"commands must be a sequence of classes, not {type(commands).__name__}")
        try:
            self.protocol: Protocol[Any] = Protocol(0, list(commands))
        except (TypeError, ValueError) as error:
            raise type(error)(str(error).replace("messages", "commands")) from None
        self.bad = 0

    def turn(self, it: Any, random: Random, again: bool = False) -> Turn:
        number, steps, delay, speed, _paused, players, left, given, joined = it
        commands = []
        for player, data in given:
            try:
                commands.append((player, self.protocol.decode(data)))
            except (StreamError, FieldError):
                # All players have the same bytes, so all skip it.
                self.bad += 1
        return Turn(
            number,
            steps,
            delay,
            speed * 10,
            members(players),
            members(left),
            commands,
            random,
            again,
            members(joined),
        )
