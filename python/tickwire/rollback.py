"""Rollback: each player runs the game ahead on guessed inputs, and corrects it when inputs arrive.

:class:`Rollback` plays on a :class:`tickwire.peers.Peer`; :class:`SyncTest` checks that a game is
deterministic. See ``docs/rollback.md``.
"""

from tickwire._core import (
    Advance,
    Desync,
    Load,
    PlayerOut,
    Rollback,
    Save,
    Spectator,
    SpectatorLost,
    SyncTest,
    Timing,
)

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
