"""Recordings of matches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from tickwire._core import (
    Random,
    read_recording,
    recording_settings,
    recording_snapshot,
    recording_turn,
    replayed_crc,
)
from tickwire.errors import RecordingError
from tickwire.lockstep._reports import Objects
from tickwire.lockstep._turns import Commands, Turn, members


def must_be_bytes(name: str, value: object) -> None:
    """Refuses objects that aren't bytes."""
    if not isinstance(value, bytes):
        raise TypeError(f"{name} must be bytes, not {type(value).__name__}")


def saved(save: Callable[[], bytes]) -> bytes:
    """Calls the game's ``save``, and checks that its result is bytes."""
    world: object = save()
    if not isinstance(world, bytes | bytearray | memoryview):
        raise TypeError(f"save must return bytes, not {type(world).__name__}")
    return bytes(world)


class Recorder:
    """Writes a running match to a file. Without a path, it writes nothing."""

    def __init__(self, path: str | Path | None, settings: tuple[int, int, int, int, bytes, bytes]) -> None:
        self._file = None
        self._unwritten: Any = None
        if path is not None:
            # Checked before a file that may be there is emptied.
            head = recording_settings(*settings)
            self._file = Path(path).open("wb")  # noqa: SIM115 (open as long as the match)
            self._begin = self._file.write(head)

    @property
    def is_open(self) -> bool:
        """Whether a file is open."""
        return self._file is not None

    def note(self, turn: Any) -> None:
        """Records the start of a turn. If the previous turn wasn't checked, writes it without a check."""
        self.flush()
        self._unwritten = turn

    def flush(self, check: tuple[int, int] | None = None) -> None:
        """Writes the newest turn, with its check."""
        if self._file is not None and self._unwritten is not None:
            self._file.write(recording_turn(self._unwritten, check))
        self._unwritten = None

    def snapshot(self, turn: int, random: bytes, state: bytes) -> None:
        """Writes the world after the newest turn."""
        if self._file is not None:
            self._file.write(recording_snapshot(turn, random, state))

    def begin_with(self, turn: int, random: bytes, state: bytes) -> None:
        """Starts the recording again, with a world from another player. Drops the turns recorded before."""
        self._unwritten = None
        if self._file is not None:
            self._file.seek(self._begin)
            self._file.truncate()
            self.snapshot(turn, random, state)

    def close(self) -> None:
        """Completes and closes the file."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """A saved world in a recording, after a turn."""

    turn: int
    """The number of the turn."""
    random: bytes
    """The shared generator's state after the turn."""
    state: bytes
    """The bytes from ``save``."""


@dataclasses.dataclass(frozen=True, slots=True)
class RecordingDifference:
    """The first difference between two recordings."""

    turn: int | None
    """The first turn that differs; None: the settings differ."""
    what: Literal["settings", "end", "pace", "players", "commands", "world"]
    """The part that differs. ``"end"``: only one recording has the turn; ``"world"``: the worlds after the
    turn differ.
    """
    first: Any
    """The first recording's value."""
    second: Any
    """The second recording's value."""


class Recording:
    """A recorded match, from :meth:`read`.

    It has the match's ``seed``, ``step`` and ``about``, ``players`` (names by number), ``snapshots``, and a
    ``hash`` of the command classes. ``damage`` is the truncated or changed record at which it ends; None if
    there is none. Records that are missing at the end aren't noticed.
    """

    def __init__(self, records: list[Any], damage: str | None) -> None:
        (_, (seed, hash_, step_us, players, names, about)), *rest = records
        self.seed: int = seed
        """The shared generator's seed."""
        self.hash: int = hash_
        """The hash of the commands' classes."""
        self.step: float = step_us / 1e6
        """The length of a step in seconds."""
        self.players: dict[int, str] = dict.fromkeys(sorted(members(players)), "")
        """The players' names by number."""
        for part in names.decode("utf-8", "replace").split("\0"):
            number, _, name = part.partition("=")
            known = [player for player in self.players if str(player) == number]
            if known:
                self.players[known[0]] = name
        self.about: bytes = about
        """The bytes that the game added."""
        self.damage: str | None = damage
        """The reason why the recording ends early; None if it is complete."""
        self.snapshots: list[Snapshot] = [Snapshot(*it) for kind, it in rest if kind == "snapshot"]
        """Worlds from which a replay can start."""
        self.start: Snapshot | None = self.snapshots[0] if rest and rest[0][0] == "snapshot" else None
        """The first world, if the recording is from a player who joined late. Load it before the turns.
        None: the recording starts with the match.
        """
        self.bad_commands = 0
        """The number of commands in the last replay that couldn't be decoded."""
        self._compared: tuple[Mapping[Any, Sequence[str]], Objects] | None = None
        self._turns: list[tuple[Any, tuple[int, int] | None]] = [it for kind, it in rest if kind == "turn"]

    @classmethod
    def read(cls, path: str | Path, *, damaged: bool = False) -> Recording:
        """Reads a whole file into memory.

        Args:
            damaged: whether to read a truncated or changed file up to the damage; :attr:`damage` then says
                why the recording ends early.

        Raises:
            RecordingError: the file isn't a recording, or, without ``damaged``, has a truncated or changed
                record. The error says at which byte this record starts.
            OSError: the file can't be read.
        """
        return cls.from_bytes(Path(path).read_bytes(), damaged=damaged)

    @classmethod
    def from_bytes(cls, data: bytes, *, damaged: bool = False) -> Recording:
        """Reads the bytes of a file, like :meth:`read`.

        Raises:
            RecordingError: as :meth:`read`.
        """
        must_be_bytes("data", data)
        try:
            records, damage = read_recording(data)
        except ValueError as error:
            raise RecordingError(str(error)) from None
        if not records or (damage is not None and not damaged):
            raise RecordingError(damage or "a recording without settings")
        return cls(records, damage)

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def seconds(self) -> float:
        """The match's duration in seconds, at the match's speed and without stalls."""
        return float(sum(it[1] * self.step * 10 / it[3] for it, _ in self._turns))

    def raw_turns(self) -> list[Any]:
        """All turns in the file, as tuples: number, steps, delay, speed in steps of 10 %, whether the game is
        paused, mask of the players, mask of the players who left, commands as player number and bytes, and
        mask of the players who joined.
        """
        return [it for it, _ in self._turns]

    def crcs(self) -> dict[int, int]:
        """The CRCs from :meth:`Lockstep.check`, by turn number. Turns that weren't checked in the match are
        missing.
        """
        return {it[0]: check[0] for it, check in self._turns if check is not None}

    def seek(self, turn: int) -> Snapshot | None:
        """Returns the newest snapshot up to a turn; None if a replay must start at the beginning."""
        if not isinstance(turn, int):
            raise TypeError(f"turn must be an int, not {type(turn).__name__}")
        found = [snapshot for snapshot in self.snapshots if snapshot.turn <= turn]
        return found[-1] if found else None

    def turns(self, commands: Sequence[type], start: Snapshot | None = None) -> Iterator[Turn]:
        """Yields all turns in order, or the turns after a snapshot. Simulate them as fast as you like.
        If the recording starts with a snapshot (:attr:`start`), load its ``state`` first.

        Raises:
            RecordingError: the match was recorded with other command classes.
        """
        start = self.start if start is None else start
        coded = Commands(commands)
        if coded.protocol.hash != self.hash:
            raise RecordingError("commands must be the classes that it was recorded with, in their order")
        random = Random(self.seed) if start is None else Random.from_state(start.random)
        for it, _ in self._turns:
            if start is None or it[0] > start.turn:
                yield coded.turn(it, random, again=True)
        self.bad_commands = coded.bad

    def check(
        self,
        turn: Turn,
        objects: Iterable[Any],
        fields: Mapping[Any, Sequence[str]],
        arrays: Mapping[str, Any] | None = None,
    ) -> bool:
        """Returns whether the world after a turn equals the recorded world. Call it for exactly the turns
        that the match checked with :meth:`Lockstep.check`, because each call takes a number from the turn's
        random generator.

        Args:
            fields: the names of fields by class: the same mapping as the argument ``objects`` of
                :class:`Lockstep`.
            arrays: the current arrays, as the ``arrays`` function of :class:`Lockstep` returns them.
        """
        place = turn.number - self._turns[0][0][0] if self._turns else -1
        if not 0 <= place < len(self._turns):
            raise ValueError(f"turn must be one of the recording's {len(self._turns)}, not {turn.number}")
        draw = turn.random.bits(16)
        it, check = self._turns[place]
        if self._compared is None or self._compared[0] is not fields:
            self._compared = (fields, Objects(fields))
        rows = self._compared[1].rows(objects)
        found = self._compared[1].all_arrays(arrays)
        return check is None or (replayed_crc(it, draw, rows, found), draw) == check

    def first_difference(self, other: Recording) -> RecordingDifference | None:
        """The first difference between two recordings of a match; None if they are equal."""
        if not isinstance(other, Recording):
            raise TypeError(f"other must be a Recording, not {type(other).__name__}")
        for name in ("seed", "hash", "step", "about"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                return RecordingDifference(None, "settings", {name: mine}, {name: theirs})
        # One who came later has no more than the rest of a match.
        begin = max((each._turns[0][0][0] for each in (self, other) if each._turns), default=0)
        ours, others = ([it for it in each._turns if it[0][0] >= begin] for each in (self, other))
        for (mine, check), (theirs, their_check) in zip(ours, others, strict=False):
            number = mine[0]
            if mine[:5] != theirs[:5]:
                return RecordingDifference(number, "pace", mine[:5], theirs[:5])
            if mine[5:7] != theirs[5:7]:
                return RecordingDifference(number, "players", members(mine[5]), members(theirs[5]))
            if mine[7] != theirs[7]:
                return RecordingDifference(number, "commands", mine[7], theirs[7])
            if check is not None and their_check is not None and check != their_check:
                return RecordingDifference(number, "world", check[0], their_check[0])
        if len(ours) != len(others):
            shorter = min(len(ours), len(others))
            longer = ours if len(ours) > shorter else others
            return RecordingDifference(longer[shorter][0][0], "end", len(self), len(other))
        return None
