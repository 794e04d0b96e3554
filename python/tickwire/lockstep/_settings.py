"""The settings of a match: its pace, its saved worlds, its recording."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from tickwire._checks import check_within
from tickwire._core import LockstepCore
from tickwire.lockstep._recording import must_be_bytes


@dataclass(frozen=True, kw_only=True)
class Pace:
    """The pace of a match's turns, equal on all peers.

    Raises:
        ValueError: naming the argument, its value and its bound.
    """

    step: float = 0.033
    """Seconds of a sub-turn."""
    steps: int = 3
    """Sub-turns in a turn, 1 to 16."""
    delay: int = 2
    """A command of turn x runs in turn x + ``delay``, 1 to 16."""
    adapt: bool = True
    """Whether ``steps`` and ``delay`` grow and shrink with the network; never below the values given here."""
    max_steps: int | None = None
    """The upper bound of ``steps``; None: 6."""
    max_delay: int | None = None
    """The upper bound of ``delay``; None: 6."""

    def __post_init__(self) -> None:
        LockstepCore(0, 1, 0, start=0.0, **asdict(self))


@dataclass(frozen=True)
class Saving:
    """Functions that save and load the world of a match, and their uses.

    Raises:
        TypeError, ValueError: naming the argument, its value and its bound.
    """

    save: Callable[[], bytes] | None = None
    """Returns the world as bytes, after a turn: for :meth:`Lockstep.state` and the recording's snapshots."""
    load: Callable[[bytes], None] | None = None
    """Restores the world from such bytes."""
    joining: bool | None = None
    """Whether newcomers are let in while the game runs: they load the world of ``save``, which is sent to
    them as a chunk. None: where ``save`` and ``load`` are given. The same on all peers."""
    heal: bool = False
    """Whether a player whose world differs from that of more than half of the players is sent theirs, by
    ``save`` and ``load``. The same on all peers."""

    def __post_init__(self) -> None:
        for name, given in (("save", self.save), ("load", self.load)):
            if given is not None and not callable(given):
                raise TypeError(f"{name} must be callable or None, not {type(given).__name__}")
        if not isinstance(self.heal, bool) or not isinstance(self.joining, bool | None):
            name, it = ("heal", self.heal) if not isinstance(self.heal, bool) else ("joining", self.joining)
            raise TypeError(f"{name} must be True or False, not {type(it).__name__}")
        for name, wanted in (("joining", self.joining), ("heal", self.heal)):
            if wanted and not self.is_whole:
                raise ValueError(f"{name} must be False if save or load isn't given, not True")

    @property
    def is_whole(self) -> bool:
        """Whether worlds can be saved and loaded."""
        return self.save is not None and self.load is not None


@dataclass(frozen=True)
class RecordingFile:
    """A file that records a match, for :class:`Recording`.

    Raises:
        TypeError, ValueError: naming the argument, its value and its bound.
    """

    path: str | Path
    """Where it is written."""
    about: bytes = b""
    """Bytes of the game's own for the file: the map, options."""
    snapshot_every: int = 0
    """Turns between two snapshots in the file, made by the ``save`` of :class:`Saving`; 0: none."""

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | Path):
            raise TypeError(f"path must be a str or a Path, not {type(self.path).__name__}")
        must_be_bytes("about", self.about)
        check_within("snapshot_every", self.snapshot_every, 0, 1_000_000, int)
