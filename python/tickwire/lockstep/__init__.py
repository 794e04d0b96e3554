"""Lockstep: all players run the same commands in the same turns, so that only commands travel.

:class:`Lockstep` plays on a :class:`tickwire.Peer`; :class:`Recording` plays a match again. See
``docs/lockstep.md``.
"""

from tickwire.lockstep.game import Lockstep
from tickwire.lockstep.recording import Recording, RecordingDifference, RecordingError, Snapshot
from tickwire.lockstep.reports import (
    Desync,
    DesyncReport,
    Difference,
    Dropped,
    Excluded,
    Healed,
    Joined,
    JoinRefused,
    LockstepEvent,
    PaceChanged,
)
from tickwire.lockstep.turns import Turn, WaitingFor

__all__ = [
    "Desync",
    "DesyncReport",
    "Difference",
    "Dropped",
    "Excluded",
    "Healed",
    "JoinRefused",
    "Joined",
    "Lockstep",
    "LockstepEvent",
    "PaceChanged",
    "Recording",
    "RecordingDifference",
    "RecordingError",
    "Snapshot",
    "Turn",
    "WaitingFor",
]
