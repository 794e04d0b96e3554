"""Rollback: each player runs the game ahead on guessed inputs, and corrects it when inputs arrive.

:class:`Rollback` plays on a :class:`tickwire.peers.Peer`; :class:`SyncTest` checks that a game is
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
