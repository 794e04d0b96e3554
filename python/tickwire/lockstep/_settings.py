"""The settings of a match: pace, saved worlds and recording."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from tickwire._checks import check_callable, check_within
from tickwire._core import LockstepCore
from tickwire.lockstep._recording import must_be_bytes


@dataclass(frozen=True, kw_only=True)
class Pace:
    """The pace of a match's turns. It must be equal on all peers.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    step: float = 0.033
    """The length of a simulation step in seconds."""
    steps: int = 3
    """Simulation steps in a turn, 1 to 16."""
    delay: int = 2
    """Turns between giving a command and running it, 1 to 16."""
    adapt: bool = True
    """Whether ``steps`` and ``delay`` adapt to the network. They never fall below the values given here."""
    max_steps: int | None = None
    """The upper bound of ``steps``; None: 6, or ``steps`` if it is higher."""
    max_delay: int | None = None
    """The upper bound of ``delay``; None: 6, or ``delay`` if it is higher."""

    def __post_init__(self) -> None:
        LockstepCore(0, 1, 0, start=0.0, **asdict(self))


@dataclass(frozen=True)
class Saving:
    """Functions that save and load the world of a match, and settings for their use.

    Raises:
        TypeError, ValueError: an argument is invalid.
    """

    save: Callable[[], bytes] | None = None
    """A function that returns the world after a turn as bytes."""
    load: Callable[[bytes], None] | None = None
    """A function that restores the world from the bytes that ``save`` returned."""
    joining: bool | None = None
    """Whether new players can join while the game runs. They get the world as a chunk and load it. None:
    yes, if ``save`` and ``load`` are given. This setting must be the same on all peers.
    """
    heal: bool = False
    """Whether a player whose world differs gets a copy of the majority's world, made with ``save`` and
    ``load``. This setting must be the same on all peers.
    """

    def __post_init__(self) -> None:
        for name, given, count in (("save", self.save, 0), ("load", self.load, 1)):
            if given is not None:
                check_callable(name, given, count, others=" or None")
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
        TypeError, ValueError: an argument is invalid.
    """

    path: str | Path
    """The path of the file."""
    about: bytes = b""
    """Bytes that the game adds to the file, such as the map and options."""
    snapshot_every: int = 0
    """The number of turns between two snapshots in the file, which the ``save`` function of :class:`Saving`
    makes; 0: no snapshots.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | Path):
            raise TypeError(f"path must be a str or a Path, not {type(self.path).__name__}")
        must_be_bytes("about", self.about)
        check_within("snapshot_every", self.snapshot_every, 0, 1_000_000, int)
