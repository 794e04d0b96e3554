"""Lockstep: all players run the same commands in the same turns, so that only commands are sent.

:class:`Lockstep` uses a :class:`tickwire.peers.Peer`. :class:`Recording` replays a match. See
``docs/lockstep.md``.
"""

from tickwire._core import Random
from tickwire.lockstep._game import Lockstep
from tickwire.lockstep._recording import Recording, RecordingDifference, Snapshot
from tickwire.lockstep._reports import (
    DesyncReport,
    Difference,
    Diverged,
    Dropped,
    Excluded,
    Healed,
    Joined,
    JoinRefused,
    LockstepEvent,
    PaceChanged,
)
from tickwire.lockstep._settings import Pace, RecordingFile, Saving
from tickwire.lockstep._turns import Turn, WaitingFor

__all__ = [
    "DesyncReport",
    "Difference",
    "Diverged",
    "Dropped",
    "Excluded",
    "Healed",
    "JoinRefused",
    "Joined",
    "Lockstep",
    "LockstepEvent",
    "Pace",
    "PaceChanged",
    "Random",
    "Recording",
    "RecordingDifference",
    "RecordingFile",
    "Saving",
    "Snapshot",
    "Turn",
    "WaitingFor",
]
