"""Lockstep: all players run the same commands in the same turns, so that only commands travel.

:class:`Lockstep` plays on a :class:`tickwire.Peer`; :class:`Recording` plays a match again. See
``docs/lockstep.md``.
"""

from __future__ import annotations

import dataclasses
import operator
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from tickwire._core import (
    LockstepCore,
    Peer,
    Protocol,
    Random,
    Started,
    read_recording,
    recording_settings,
    recording_snapshot,
    recording_turn,
    replayed_crc,
)
from tickwire.errors import FieldError, StreamError, TickwireError

__all__ = [
    "Desync",
    "DesyncReport",
    "Difference",
    "Dropped",
    "Excluded",
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

MAX_TURNS = 8
"""How many turns :meth:`Lockstep.turns` returns at once by default."""

# Seconds after the start: more than any hitch, less than a game waits for a missing player.
MAX_LATE = 5.0
MAX_KEPT_TURNS = 128
"""How many turns can run again after :meth:`Lockstep.load_state`."""

_FIRST_CLASS = 2
_NOTHING = -(2**63) + 1


class RecordingError(TickwireError):
    """A file is not a recording of a match, or isn't complete."""


@dataclasses.dataclass(frozen=True, slots=True)
class Turn:
    """A turn to run now, the same for all players."""

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
    """Numbers of the players in this turn."""
    left: frozenset[int]
    """Numbers of the players who take no part from this turn on."""
    commands: list[tuple[int, Any]]
    """By player number, then in the order they were given."""
    random: Random
    """The shared generator."""
    again: bool = False
    """Whether it has run here before: after :meth:`Lockstep.load_state`, or in a replay."""


@dataclasses.dataclass(frozen=True, slots=True)
class WaitingFor:
    """Why the due turn can't start: some players' data is missing."""

    turn: int
    """The number of the turn."""
    players: frozenset[int]
    """Numbers of the players whose data is missing."""
    seconds: float
    """How long it has been due."""


@dataclasses.dataclass(frozen=True, slots=True)
class Dropped:
    """The game goes on without a player from some turn on."""

    player: int
    """The player's number."""
    turn: int
    """The first turn without the player, the same for all."""


@dataclasses.dataclass(frozen=True, slots=True)
class Excluded:
    """The others go on without this player: no more turns will come."""


@dataclasses.dataclass(frozen=True, slots=True)
class PaceChanged:
    """The length of turns, or the delay of commands, has changed."""

    turn: int
    """The first turn of the new pace, the same for all."""
    steps: int
    """Sub-turns in a turn."""
    delay: int
    """Turns between giving a command and running it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Desync:
    """The players' worlds have diverged. (:class:`tickwire.Desync` is rollback's event.)"""

    turn: int
    """The first turn after which they differ."""
    right: frozenset[int]
    """Numbers of the players of a majority that agrees; empty if there is none."""
    odd: frozenset[int]
    """Numbers of the others."""


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """One value that differs between two players."""

    object: str
    """The class's name, ``"commands"`` (of a player, for the turn) or ``"random"`` (the shared generator)."""
    id: int
    """The object's id; for ``"commands"`` the player's number."""
    field: str | None
    """The field's name; None: one of the two lacks the object."""
    mine: int | float | None
    """The value here; strings and bytes as a hash. For an object that one side lacks: 1 where it exists."""
    theirs: int | float | None
    """The value on the other side, by its own account."""


@dataclasses.dataclass(frozen=True, slots=True)
class DesyncReport:
    """The differences between this player and another, found by comparing their logs."""

    turn: int
    """The turn after which they differ."""
    player: int
    """The other player's number."""
    differences: list[Difference]
    """The first differences, sorted by class and id, at most 16; empty if the other didn't show any."""

    def __str__(self) -> str:
        lines = [f"after turn {self.turn}, player {self.player} has a different world:"]
        for it in self.differences:
            what = f"{it.object} {it.id}" + (f".{it.field}" if it.field else "")
            lines.append(f"  {what}: {it.mine} here, {it.theirs} there")
        return "\n".join(lines)


LockstepEvent = Dropped | Excluded | PaceChanged | Desync | DesyncReport
"""The events of :meth:`Lockstep.events`."""


def _members(mask: int) -> frozenset[int]:
    return frozenset(player for player in range(16) if mask >> player & 1)


def _number(name: str, value: object, low: int, high: int, kind: type = float) -> None:
    number = isinstance(value, int) or (kind is float and isinstance(value, float))
    if isinstance(value, bool) or not number:
        what = "an int" if kind is int else "a number"
        raise TypeError(f"{name} must be {what}, not {type(value).__name__}")
    if not low <= value <= high:  # type: ignore[operator]
        raise ValueError(f"{name} must be {low} to {high}, not {value!r}")


def _bytes(name: str, value: object) -> None:
    if not isinstance(value, bytes):
        raise TypeError(f"{name} must be bytes, not {type(value).__name__}")


class _Objects:
    """The classes and fields that are compared."""

    def __init__(self, objects: Mapping[Any, Sequence[str]]) -> None:
        self.classes: list[tuple[str, tuple[str, ...], Callable[[Any], tuple[Any, ...]]]] = []
        self.number: dict[type, int] = {}
        self.floats: set[tuple[int, int]] = set()
        if len(objects) > 100:
            raise ValueError(f"objects must have at most 100 classes, not {len(objects)}")
        for cls, fields in objects.items():
            names = tuple(fields)
            if not isinstance(cls, type) or not names or len(names) > 63:
                raise ValueError(f"objects[{cls!r}] must be 1 to 63 names of fields, not {names!r}")
            self.number[cls] = len(self.classes)
            self.classes.append((cls.__name__, names, operator.attrgetter("id", *names)))
        described = repr([(name, fields) for name, fields, _ in self.classes])
        self.mark = zlib.crc32(described.encode()) % 0xFFFF + 1
        """The names of classes and fields, in order, which must be the same on all sides."""

    def rows(self, objects: Iterable[Any]) -> list[tuple[str, tuple[str, ...], list[Any]]]:
        rows: list[list[Any]] = [[] for _ in self.classes]
        for it in objects:
            try:
                number = self.number[type(it)]
            except KeyError:
                raise TypeError(f"{type(it).__name__} isn't among the classes of objects=") from None
            rows[number].append(self.classes[number][2](it))
        for number, found in enumerate(rows):
            for place, value in enumerate(found[0][1:] if found else ()):
                if isinstance(value, float):
                    self.floats.add((number, place))
        return [(name, fields, found) for (name, fields, _), found in zip(self.classes, rows, strict=True)]

    def difference(self, class_: int, number: int, field: int | None, mine: Any, theirs: Any) -> Difference:
        if class_ == 0:
            names: tuple[str, ...] = ("count", "crc")
            kind = "commands"
        elif class_ == 1:
            names, kind = ("draw",), "random"
        elif class_ - _FIRST_CLASS < len(self.classes):
            kind, names, _ = self.classes[class_ - _FIRST_CLASS]
        else:
            kind, names = f"class {class_}", ()
        name = None
        if field is not None:
            name = names[field] if field < len(names) else str(field)
        is_float = (class_ - _FIRST_CLASS, field) in self.floats

        def value(word: int | None) -> int | float | None:
            if word is None or word == _NOTHING:
                return None
            if is_float:
                number: float = struct.unpack("<d", struct.pack("<q", word))[0]
                return number
            return word

        return Difference(kind, number, name, value(mine), value(theirs))


class _Commands:
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
        number, steps, delay, speed, paused, players, left, given = it
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
            paused,
            _members(players),
            _members(left),
            commands,
            random,
            again,
        )


class Lockstep:
    """A match in lockstep on a :class:`tickwire.Peer`.

    Args:
        peer: its players take part. Make the match after :class:`tickwire.Started`, on all peers.
        started: that event, with the seed and the time of the first turn.
        commands: the classes of commands, made by :func:`tickwire.message`; the same list on all peers.
        objects: by class, the names of the fields that :meth:`check` compares besides the ``id``; the
            same on all peers.
        step: seconds of a sub-turn; the same on all peers.
        steps: sub-turns in a turn, 1 to 16; the same on all peers.
        delay: a command of turn x runs in turn x + ``delay``, 1 to 16; the same on all peers.
        adapt: whether both grow and shrink with the network; never below the values given here.
        max_steps, max_delay: their upper bounds; 6 by default.
        resend: seconds without an ack after which data is sent again; by default a turn.
        log_turns: how many turns of the world's values are kept, 8 to 256.
        drop_after: seconds after which a player that is waited for is voted out; None: never.
        drop_odd: whether a player whose world differs from the majority's is voted out.
        record: a file for the recording of the match.
        about: bytes of the game's own for that file: the map, options.
        save: returns the world as bytes, after a turn: for :meth:`state` and the recording's snapshots.
        load: restores the world from such bytes.
        snapshot_every: turns between two snapshots in the recording; 0: none.

    Raises:
        ValueError: naming the argument, its value and its bound; or the game started more than 5 s ago:
            a late player can't take part.
    """

    def __init__(
        self,
        peer: Peer[Any],
        started: Started,
        commands: Sequence[type],
        *,
        objects: Mapping[Any, Sequence[str]] | None = None,
        step: float = 0.033,
        steps: int = 3,
        delay: int = 2,
        adapt: bool = True,
        max_steps: int | None = None,
        max_delay: int | None = None,
        resend: float | None = None,
        log_turns: int = 32,
        drop_after: float | None = None,
        drop_odd: bool = False,
        record: str | Path | None = None,
        about: bytes = b"",
        save: Callable[[], bytes] | None = None,
        load: Callable[[bytes], None] | None = None,
        snapshot_every: int = 0,
    ) -> None:
        for name, value, kind in (("peer", peer, Peer), ("started", started, Started)):
            if not isinstance(value, kind):
                raise TypeError(f"{name} must be a {kind.__name__}, not {type(value).__name__}")
        if drop_after is not None:
            _number("drop_after", drop_after, 0, 3600)
        _number("snapshot_every", snapshot_every, 0, 1_000_000, int)
        for name, given in (("save", save), ("load", load)):
            if given is not None and not callable(given):
                raise TypeError(f"{name} must be callable or None, not {type(given).__name__}")
        _bytes("about", about)
        if not isinstance(drop_odd, bool):
            raise TypeError(f"drop_odd must be True or False, not {type(drop_odd).__name__}")
        if objects is not None and not isinstance(objects, Mapping):
            raise TypeError(f"objects must be a mapping of classes to names, not {type(objects).__name__}")
        if record is not None and not isinstance(record, str | Path):
            raise TypeError(f"record must be a str or a Path, not {type(record).__name__}")
        me, master = peer.me, peer.master
        if me is None or master is None:
            raise ValueError("peer must be in a game that has started")
        if peer.time - started.at > MAX_LATE:
            late = f"{peer.time - started.at:.1f} s: a late player can't take part in the turns"
            raise ValueError(
                f"started.at must be at most {MAX_LATE:g} s ago, not {late}; host with late_joining=False"
            )
        self._me = me.number
        self._peer = peer
        self._commands = _Commands(commands)
        self._objects = _Objects(objects or {})
        if me.number not in started.players:
            raise ValueError(
                f"peer must have been in the game at the start, and player {me.number} came later"
            )
        here = {player.number: player.name for player in peer.players}
        # Some may have left by now, but all must begin with the same players.
        self._names = {number: here.get(number, "") for number in started.players}
        mask = sum(1 << number for number in self._names)
        self._core = LockstepCore(
            me.number,
            mask,
            # All must agree on who decides the pace, and a new master may be known to some only.
            min(started.players),
            start=started.at,
            step=step,
            steps=steps,
            delay=delay,
            adapt=adapt,
            max_steps=max_steps,
            max_delay=max_delay,
            resend=resend,
            log_turns=log_turns,
        )
        self._random = Random(started.seed)
        self._drop_after = drop_after
        self._drop_odd = drop_odd
        self._save = save
        self._load = load
        self._snapshot_every = snapshot_every
        self._kept: deque[Any] = deque(maxlen=MAX_KEPT_TURNS)
        self._again: deque[Any] = deque()
        self._events: deque[LockstepEvent] = deque(maxlen=1000)
        self._unwritten: Any = None
        self._file = None
        if record is not None:
            self._file = Path(record).open("wb")  # noqa: SIM115 (open as long as the match)
            names = "\0".join(f"{number}={name}" for number, name in sorted(self._names.items()))
            self._file.write(
                recording_settings(
                    started.seed, self._commands.protocol.hash, round(step * 1e6), mask, names.encode(), about
                )
            )
        commands_mark = self._commands.protocol.hash % 0xFFFF + 1
        self._core.attach(peer, commands_mark, self._objects.mark)

    def command(self, command: Any) -> None:
        """Gives a command. It runs in a later turn, the same for all players.

        Raises:
            FieldError, UnregisteredMessageError: it can't be coded.
            MessageTooLargeError: it has more than 480 bytes.
            ChannelFullError: 4,096 commands wait.
        """
        self._core.command(self._commands.protocol.encode(command))

    def turns(self, most: int = MAX_TURNS) -> Iterator[Turn]:
        """The turns to run now: normally none or one, up to ``most`` to catch up."""
        if self._peer.closed:
            return
        now = self._peer.time
        master = self._peer.master
        if master is not None:
            self._core.set_master(master.number)
        while self._again:
            yield self._commands.turn(self._again.popleft(), self._random, again=True)
        for _ in range(most):
            it = self._core.poll_turn(now)
            if it is None:
                break
            self._flush()
            self._kept.append(it)
            self._unwritten = it
            yield self._commands.turn(it, self._random)
        waiting = self._core.waiting
        if waiting and self._drop_after is not None and now - waiting[2] > self._drop_after:
            for player in _members(waiting[1]):
                self._core.vote(now, player, True)

    def check(self, turn: Turn, objects: Iterable[Any] = ()) -> int | None:
        """Compares the world after a turn with everybody else's: call it once for each turn that ran.

        Draws once from the shared generator.

        Args:
            objects: all objects that matter, in any order, of the classes of ``objects``.

        Returns:
            the CRC over them, all players' commands and the draw; None for a turn that ran again.

        Raises:
            ValueError: two objects of a class have the same id, or the turn isn't the newest.
            TypeError: a field's value isn't an integer of 64 bits, float, str, bytes or None. For a tuple,
                name properties of its parts.
        """
        if not isinstance(turn, Turn):
            raise TypeError(f"turn must be a Turn, not {type(turn).__name__}")
        draw = self._random.bits(16)
        if turn.again:
            return None
        crc = self._core.check(self._peer.time, turn.number, draw, self._objects.rows(objects))
        self._flush((crc, draw))
        every = self._snapshot_every
        if self._file is not None and self._save is not None and every and turn.number % every == 0:
            self._file.write(recording_snapshot(turn.number, self._random.state, self._save()))
        return crc

    def _flush(self, check: tuple[int, int] | None = None) -> None:
        if self._file is not None and self._unwritten is not None:
            self._file.write(recording_turn(self._unwritten, check))
        self._unwritten = None

    def events(self) -> list[LockstepEvent]:
        """The events since the last call."""
        while (event := self._core.poll_event()) is not None:
            kind, *values = event
            if kind == "dropped":
                self._events.append(Dropped(*values))
            elif kind == "excluded":
                self._events.append(Excluded())
            elif kind == "pace":
                self._events.append(PaceChanged(*values))
            elif kind == "desync":
                turn, right, odd = values
                self._events.append(Desync(turn, _members(right), _members(odd)))
                if self._drop_odd and right >> self._me & 1:
                    for player in _members(odd):
                        self.vote(player)
            elif kind == "report":
                turn, player, found = values
                differences = [self._objects.difference(*it) for it in found]
                self._events.append(DesyncReport(turn, player, differences))
        taken = list(self._events)
        self._events.clear()
        return taken

    @property
    def waiting(self) -> WaitingFor | None:
        """The players that a due turn waits for; None while turns start in time."""
        waiting = self._core.waiting
        if waiting is None:
            return None
        turn, players, since = waiting
        return WaitingFor(turn, _members(players), max(0.0, self._peer.time - since))

    @property
    def turn(self) -> int:
        """The number of the newest turn that started."""
        return self._core.turn

    @property
    def progress(self) -> float:
        """The share of the newest turn's time that is over, 0 to 1: show the world between its states before
        and after that turn.
        """
        length = self._core.length
        return min(1.0, max(0.0, 1 - (self._core.due - self._peer.time) / length)) if length else 1.0

    @property
    def pace(self) -> tuple[int, int]:
        """Sub-turns in a turn, and turns between giving a command and running it."""
        return self._core.pace

    @property
    def players(self) -> frozenset[int]:
        """Numbers of the players in the newest turn."""
        return frozenset(self._core.players)

    @property
    def random(self) -> Random:
        """The shared generator: draw from it only where all players do."""
        return self._random

    @property
    def stats(self) -> dict[str, int]:
        """Counters by name: turns, stalls and their microseconds, payloads, bytes, drops."""
        return {**self._core.counters, "bad_commands": self._commands.bad}

    def pause(self) -> None:
        """Pauses the game for all, from a later turn on. Turns go on without steps; commands still run."""
        self._core.pause(True)

    def resume(self) -> None:
        """Resumes the game for all, from a later turn on."""
        self._core.pause(False)

    def set_speed(self, percent: int) -> None:
        """Sets the game's speed for all, 10 to 640 percent in steps of 10.

        Raises:
            ValueError: it is out of its bounds.
        """
        if not isinstance(percent, int) or not 10 <= percent <= 640:
            raise ValueError(f"percent must be 10 to 640, not {percent!r}")
        self._core.set_speed(round(percent / 10))

    def vote(self, player: int, out: bool = True) -> None:
        """Votes a player out, or takes the vote back. When more than half of the others vote so, the game
        goes on without that player.

        Raises:
            ValueError: no other player has this number.
        """
        if not isinstance(player, int) or player not in self._names or player == self._me:
            raise ValueError(f"player must be the number of another player, not {player!r}")
        self._core.vote(self._peer.time, player, out)

    def state(self) -> bytes:
        """The world after the newest turn, for :meth:`load_state` of a player whose world differs. Send it as
        a chunk.

        Raises:
            ValueError: there is no ``save``.
        """
        if self._save is None:
            raise ValueError("save must be given for state()")
        return struct.pack("<i", self.turn) + self._random.state + self._save()

    def load_state(self, state: bytes) -> None:
        """Takes another player's world; :meth:`turns` returns the turns since then once more, and checks
        start again.

        Raises:
            ValueError: there is no ``load``, or the state is of a turn that isn't kept any more or didn't run
            here.
        """
        if self._load is None:
            raise ValueError("load must be given for load_state()")
        _bytes("state", state)
        if len(state) < 36:
            raise ValueError(f"state must be at least 36 bytes, not {len(state)}")
        (turn,) = struct.unpack_from("<i", state)
        later = [it for it in self._kept if it[0] > turn]
        if turn > self.turn or len(later) != self.turn - turn:
            raise ValueError(
                f"state must be of a turn {self.turn - len(self._kept)} to {self.turn}, not {turn}"
            )
        self._load(state[36:])
        self._random.state = state[4:36]
        self._again = deque(later)
        self.compare_again()

    def compare_again(self) -> None:
        """Compares worlds again, after a :class:`Desync`: players in the right call it too."""
        self._core.resume(self.turn)

    def close(self) -> None:
        """Ends the recording."""
        self._flush()
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Lockstep:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """A recording's world after a turn."""

    turn: int
    """The number of the turn."""
    random: bytes
    """The shared generator's state after the turn."""
    state: bytes
    """The bytes from ``save``."""


@dataclasses.dataclass(frozen=True, slots=True)
class RecordingDifference:
    """Where two recordings differ first."""

    turn: int | None
    """The first turn that differs; None: the settings differ."""
    what: Literal["settings", "end", "pace", "players", "commands", "world"]
    """``"end"``: only one of them has the turn; ``"world"``: the checks differ."""
    first: Any
    """The first recording's value."""
    second: Any
    """The second recording's value."""


class Recording:
    """A recorded match, from :meth:`read`.

    It has the match's ``seed``, ``step`` and ``about``, ``players`` (names by number), ``snapshots``, a
    ``hash`` of the classes of commands, and ``damage``: why it ends early, None if it is complete.
    """

    def __init__(self, records: list[Any], damage: str | None) -> None:
        (_, (seed, hash_, step_us, players, names, about)), *rest = records
        self.seed: int = seed
        """The shared generator's seed."""
        self.hash: int = hash_
        """The hash of the commands' classes."""
        self.step: float = step_us / 1e6
        """Seconds of a sub-turn."""
        self.players: dict[int, str] = dict.fromkeys(sorted(_members(players)), "")
        """The players' names by number."""
        for part in names.decode("utf-8", "replace").split("\0"):
            number, _, name = part.partition("=")
            known = [player for player in self.players if str(player) == number]
            if known:
                self.players[known[0]] = name
        self.about: bytes = about
        """The game's own bytes."""
        self.damage: str | None = damage
        """Why it ends early; None if it is complete."""
        self.snapshots: list[Snapshot] = [Snapshot(*it) for kind, it in rest if kind == "snapshot"]
        """Worlds from which a replay can begin."""
        self.bad_commands = 0
        """Commands of the last replay that couldn't be decoded."""
        self._compared: tuple[Mapping[Any, Sequence[str]], _Objects] | None = None
        self._turns: list[tuple[Any, tuple[int, int] | None]] = [it for kind, it in rest if kind == "turn"]

    @classmethod
    def read(cls, path: str | Path, *, damaged: bool = False) -> Recording:
        """Reads a file, with memory of at most the file's size.

        Args:
            damaged: whether to read the complete part of a truncated or changed file: :attr:`damage` says why
                it ends.

        Raises:
            RecordingError: it isn't a recording, or isn't complete; names the byte.
            OSError: the file can't be read.
        """
        return cls.from_bytes(Path(path).read_bytes(), damaged=damaged)

    @classmethod
    def from_bytes(cls, data: bytes, *, damaged: bool = False) -> Recording:
        """Reads the bytes of a file, like :meth:`read`.

        Raises:
            RecordingError: it isn't a recording, or isn't complete; names the byte.
        """
        _bytes("data", data)
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
        """The match's duration in seconds, at its own speed and without waiting."""
        return float(sum(it[1] * self.step * 10 / it[3] for it, _ in self._turns))

    def raw_turns(self) -> list[Any]:
        """All turns as they are in the file: number, steps, delay, speed in 10 %, whether paused, masks of
        the players and of the ones who left, and the commands' bytes with the player's number.
        """
        return [it for it, _ in self._turns]

    def crcs(self) -> dict[int, int]:
        """The CRC of each checked turn."""
        return {it[0]: check[0] for it, check in self._turns if check is not None}

    def seek(self, turn: int) -> Snapshot | None:
        """The newest snapshot that isn't after a turn; None: replay from the beginning."""
        if not isinstance(turn, int):
            raise TypeError(f"turn must be an int, not {type(turn).__name__}")
        found = [snapshot for snapshot in self.snapshots if snapshot.turn <= turn]
        return found[-1] if found else None

    def turns(self, commands: Sequence[type], start: Snapshot | None = None) -> Iterator[Turn]:
        """All turns in order, or those after a snapshot. Simulate them as fast as you like.

        Raises:
            RecordingError: it was recorded with other classes of commands.
        """
        coded = _Commands(commands)
        if coded.protocol.hash != self.hash:
            raise RecordingError("commands must be the classes that it was recorded with, in their order")
        random = Random(self.seed) if start is None else Random.from_state(start.random)
        for it, _ in self._turns:
            if start is None or it[0] > start.turn:
                yield coded.turn(it, random, again=True)
        self.bad_commands = coded.bad

    def check(self, turn: Turn, objects: Iterable[Any], fields: Mapping[Any, Sequence[str]]) -> bool:
        """Whether the world after a turn equals the recorded one. Call it for each turn, as the match did; it
        draws.

        Args:
            fields: the ``objects`` of :class:`Lockstep`.
        """
        place = turn.number - self._turns[0][0][0] if self._turns else -1
        if not 0 <= place < len(self._turns):
            raise ValueError(f"turn must be one of the recording's {len(self._turns)}, not {turn.number}")
        draw = turn.random.bits(16)
        it, check = self._turns[place]
        if self._compared is None or self._compared[0] is not fields:
            self._compared = (fields, _Objects(fields))
        rows = self._compared[1].rows(objects)
        return check is None or (replayed_crc(it, draw, rows), draw) == check

    def first_difference(self, other: Recording) -> RecordingDifference | None:
        """Where two recordings of a match differ first; None if they don't."""
        if not isinstance(other, Recording):
            raise TypeError(f"other must be a Recording, not {type(other).__name__}")
        for name in ("seed", "hash", "step", "about"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                return RecordingDifference(None, "settings", {name: mine}, {name: theirs})
        for (mine, check), (theirs, their_check) in zip(self._turns, other._turns, strict=False):
            number = mine[0]
            if mine[:5] != theirs[:5]:
                return RecordingDifference(number, "pace", mine[:5], theirs[:5])
            if mine[5:7] != theirs[5:7]:
                return RecordingDifference(number, "players", _members(mine[5]), _members(theirs[5]))
            if mine[7] != theirs[7]:
                return RecordingDifference(number, "commands", mine[7], theirs[7])
            if check is not None and their_check is not None and check != their_check:
                return RecordingDifference(number, "world", check[0], their_check[0])
        if len(self) != len(other):
            shorter = min(len(self), len(other))
            longer = self if len(self) > shorter else other
            return RecordingDifference(longer._turns[shorter][0][0], "end", len(self), len(other))
        return None
