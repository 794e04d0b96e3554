"""Rollback: each player's machine runs the game with guessed inputs, and corrects wrong guesses later.

:class:`Rollback` uses a :class:`tickwire.peers.Peer`. :class:`SyncTest` checks that a game is
deterministic. See ``docs/rollback.md``.
"""

from tickwire._core import (
    Advance,
    Desync,
    PlayerOut,
    Rollback,
    Spectator,
    SpectatorLost,
    SyncTest,
    Timing,
)
from tickwire._states import Load, Save

__all__ = [
    "Advance",
    "Desync",
    "Load",
    "PlayerOut",
    "Rollback",
    "Save",
    "Spectator",
    "SpectatorLost",
    "SyncTest",
    "Timing",
]
