"""A running match."""

from __future__ import annotations

import dataclasses
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tickwire._checks import check_callable, check_within
from tickwire._core import LockstepCore, Peer, Random, Started
from tickwire.lockstep._recording import Recorder, must_be_bytes, saved
from tickwire.lockstep._reports import (
    DesyncReport,
    Diverged,
    Dropped,
    Excluded,
    Healed,
    Joined,
    JoinRefused,
    LockstepEvent,
    Objects,
    PaceChanged,
)
from tickwire.lockstep._settings import Pace, RecordingFile, Saving
from tickwire.lockstep._turns import Commands, Turn, WaitingFor, members
from tickwire.lockstep._worlds import REFUSALS, Worlds

MAX_TURNS = 8
"""The most turns that :meth:`Lockstep.turns` returns at once by default."""
MAX_CATCH_UP = 32
"""While a player joins a running game, :meth:`Lockstep.turns` may return this many turns, even if ``most`` is
lower.
"""

# Seconds after the start: more than any hitch, less than a game waits for a missing player.
MAX_LATE = 5.0
MAX_KEPT_TURNS = 128
"""The number of turns that can run again after :meth:`Lockstep.load_state`."""


class Lockstep:
    """A match in lockstep on a :class:`tickwire.peers.Peer`.

    Args:
        peer: the peer whose players take part. On all peers, make the :class:`Lockstep` in the tick in which
            :class:`tickwire.peers.Started` arrives.
        started: the event :class:`tickwire.peers.Started`, which has the seed and the time of the first turn.
        commands: the classes of commands, made by :func:`tickwire.message`; the same list on all peers.
        pace: the pace of turns, equal on all peers. None: the default pace.
        objects: a mapping from each class to the names of the fields that :meth:`check` compares in addition
            to ``id``; the same on all peers.
        arrays: a function that returns arrays of numbers by name. :meth:`check` compares them element by
            element, in addition to ``objects``. Set it on all peers or on none.
        drop_after: seconds after which this player votes for removing a player who delays the game; None:
            never.
        drop_odd: whether this player votes for removing players whose world differs from the majority's. It
            votes only if its own world is the majority's.
        saving: functions that save and load the world, for late players, players whose world differs, and
            snapshots. None: no support for these.
        recording: the file that records the match; None: no file.

    Raises:
        ValueError: an argument is out of its bounds, or the game started more than 5 s ago and ``saving``
            has no ``load``.
    """

    def __init__(
        self,
        peer: Peer[Any],
        started: Started,
        commands: Sequence[type],
        *,
        pace: Pace | None = None,
        objects: Mapping[Any, Sequence[str]] | None = None,
        arrays: Callable[[], Mapping[str, Any]] | None = None,
        drop_after: float | None = None,
        drop_odd: bool = False,
        saving: Saving | None = None,
        recording: RecordingFile | None = None,
    ) -> None:
        for name, value, kind in (("peer", peer, Peer), ("started", started, Started)):
            if not isinstance(value, kind):
                raise TypeError(f"{name} must be a {kind.__name__}, not {type(value).__name__}")
        if drop_after is not None:
            check_within("drop_after", drop_after, 0, 3600)
        settings = (
            ("pace", pace, Pace),
            ("saving", saving, Saving),
            ("recording", recording, RecordingFile),
        )
        for name, given, group in settings:
            if given is not None and not isinstance(given, group):
                raise TypeError(f"{name} must be a {group.__name__} or None, not {type(given).__name__}")
        pace, saving = pace or Pace(), saving or Saving()
        if arrays is not None:
            check_callable("arrays", arrays, 0, others=" or None")
        if not isinstance(drop_odd, bool):
            raise TypeError(f"drop_odd must be True or False, not {type(drop_odd).__name__}")
        for name, wanted in (("joining", saving.joining), ("heal", saving.heal)):
            if wanted and all(channel.kind != "chunks" for channel in peer.protocol.channels):
                raise ValueError(
                    f"{name} must be False if the protocol has no channel for chunks, on which the world "
                    "is sent, not True: add tw.chunks() to its channels"
                )
        if objects is not None and not isinstance(objects, Mapping):
            raise TypeError(f"objects must be a mapping of classes to names, not {type(objects).__name__}")
        me, master = peer.me, peer.master
        if me is None or master is None:
            raise ValueError("peer must be in a game that has started")
        # Who was there at the start makes its lockstep then; one with the number of somebody who left comes
        # later.
        is_late = peer.time - started.at > MAX_LATE or me.number not in started.players
        if is_late and saving.load is None:
            if me.number not in started.players:
                raise ValueError(
                    "peer must be of a player who was there at the start, "
                    f"not of player {me.number}, who came later: give saving= to join the running game"
                )
            seconds = f"{peer.time - started.at:.1f} s"
            raise ValueError(
                f"started.at must be at most {MAX_LATE:g} s ago, not {seconds}: a player who joins after the "
                "start needs the others' world; give saving= with save and load, or start the "
                "game with late_joining=False"
            )
        self._me = me.number
        self._peer = peer
        self._commands = Commands(commands)
        self._objects = Objects(objects or {}, arrays)
        here = {player.number: player.name for player in peer.players}
        # Some may have left by now, but all must begin with the same players.
        self._names = {number: here.get(number, "") for number in started.players}
        mask = sum(1 << number for number in self._names)
        self._core = LockstepCore(
            me.number,
            mask,
            # All must agree on who decides the pace, and a new master may be known to some only.
            min(started.players),
            start=peer.time if is_late else started.at,
            **dataclasses.asdict(pace),
            joins=is_late,
            admits=saving.is_whole if saving.joining is None else saving.joining,
            heals=saving.heal,
        )
        self._random = Random(started.seed)
        self._drop_after = drop_after
        self._drop_odd = drop_odd
        self._save, self._load = saving.save, saving.load
        self._snapshot_every = 0 if recording is None else recording.snapshot_every
        self._kept: deque[Any] = deque(maxlen=MAX_KEPT_TURNS)
        self._again: deque[Any] = deque()
        self._is_healed = False
        self._is_late = is_late
        self._events: deque[LockstepEvent] = deque(maxlen=1000)
        names = "\0".join(f"{number}={name}" for number, name in sorted(self._names.items()))
        hash_ = self._commands.protocol.hash
        about = b"" if recording is None else recording.about
        about_it = (started.seed, hash_, round(pace.step * 1e6), mask, names.encode(), about)
        self._recorder = Recorder(None if recording is None else recording.path, about_it)
        self._worlds = Worlds(peer, self._core, self._random, saving.save, saving.load)
        commands_mark = self._commands.protocol.hash % 0xFFFF + 1
        self._core.attach(peer, commands_mark, self._objects.mark)

    def command(self, command: Any) -> None:
        """Gives a command, which runs in a later turn on all machines. While this player is
        :attr:`joining`, its commands wait.

        Raises:
            FieldError, UnregisteredMessageError: the command can't be encoded.
            MessageTooLargeError: the command has more than 480 bytes.
            ChannelFullError: 4,096 commands wait.
        """
        self._core.command(self._commands.protocol.encode(command))

    def turns(self, most: int = MAX_TURNS) -> Iterator[Turn]:
        """Returns the turns to run now: usually none or one, and up to ``most`` to catch up. While this
        player is :attr:`joining`, the bound is at least 32.
        """
        if self._peer.closed:
            return
        now = self._peer.time
        master = self._peer.master
        if master is not None:
            self._core.set_master(master.number)
        if not self._again:
            self._worlds.serve()
            self._take_world()
        while self._again:
            yield self._commands.turn(self._again.popleft(), self._random, again=True)
        if self._is_healed:
            self._is_healed = False
            self._core.note_healed()
            self._recorder.flush()
            if self._save is not None:
                self._recorder.snapshot(self.turn, self._random.state, saved(self._save))
        for _ in range(max(most, MAX_CATCH_UP) if self._core.joining else most):
            it = self._core.poll_turn(now)
            if it is None:
                break
            self._recorder.note(it)
            self._kept.append(it)
            yield self._commands.turn(it, self._random)
        waiting = self._core.waiting
        if waiting and self._drop_after is not None and now - waiting[2] > self._drop_after:
            for player in members(waiting[1]):
                self._core.vote(now, player, True)

    def _take_world(self) -> None:
        """Loads a world from another player, to join the game or to heal a desync."""
        loaded = self._worlds.take()
        if loaded is None:
            return
        turn, load = loaded
        if self._core.joining:
            state = load()
            if state is not None:
                self._kept.clear()
                self._recorder.begin_with(turn, *state)
            return
        if turn > self.turn:
            # It ran ahead of this player.
            self._worlds.keep()
            return
        later = [it for it in self._kept if it[0] > turn]
        state = None
        try:
            state = load() if len(later) == self.turn - turn else None
        finally:
            if state is None:
                self._core.heal_again(self._peer.time)
        if state is None:
            return
        self._again = deque(later)
        self._is_healed = True

    def check(self, turn: Turn, objects: Iterable[Any] = ()) -> int | None:
        """Compares the world after a turn with the other players' worlds. Call it once for each turn that
        ran.

        Each call takes one number from the shared random generator, :attr:`random`.

        Args:
            objects: all objects of the classes in ``Lockstep(objects=...)``, in any order.

        Returns:
            the CRC over the objects, the arrays, all players' commands and the number from the generator;
            None for a turn that ran again.

        Raises:
            ValueError: two objects of a class have the same id, the turn isn't the newest, or there are more
                than 60,000 objects or 1,048,576 values.
            TypeError: a field's value isn't an integer of 64 bits, float, str, bytes or None. To compare a
                tuple, give the class a property for each part of the tuple.
        """
        if not isinstance(turn, Turn):
            raise TypeError(f"turn must be a Turn, not {type(turn).__name__}")
        draw = self._random.bits(16)
        if turn.again:
            return None
        crc = self._core.check(
            self._peer.time, turn.number, draw, self._objects.rows(objects), self._objects.all_arrays()
        )
        self._recorder.flush((crc, draw))
        every = self._snapshot_every
        if self._recorder.is_open and self._save is not None and every and turn.number % every == 0:
            self._recorder.snapshot(turn.number, self._random.state, saved(self._save))
        return crc

    def events(self) -> list[LockstepEvent]:
        """The events since the last call."""
        while (event := self._core.poll_event()) is not None:
            kind, *values = event
            if kind == "dropped":
                self._events.append(Dropped(*values))
            elif kind == "joined":
                self._events.append(Joined(*values))
            elif kind == "refused":
                self._events.append(JoinRefused(REFUSALS[values[0]]))
            elif kind == "healed":
                self._events.append(Healed(*values))
            elif kind == "excluded":
                self._events.append(Excluded())
            elif kind == "pace":
                self._events.append(PaceChanged(*values))
            elif kind == "desync":
                turn, right, odd = values
                self._events.append(Diverged(turn, members(right), members(odd)))
                if self._drop_odd and right >> self._me & 1:
                    for player in members(odd):
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
        """The due turn that can't start, and the players it waits for; None while turns start on time."""
        waiting = self._core.waiting
        if waiting is None:
            return None
        turn, players, since = waiting
        return WaitingFor(turn, members(players), max(0.0, self._peer.time - since))

    @property
    def joining(self) -> bool:
        """Whether this player is joining a running game and doesn't take part yet. After the world has
        arrived, :meth:`turns` returns the turns that the other players have already run.
        """
        if self._is_late and not self._core.joining and self._me in self._core.players:
            self._is_late = False
        return self._is_late

    def ask_again(self) -> None:
        """Tries to join again, after :class:`JoinRefused`."""
        self._core.ask_again(self._peer.time)

    @property
    def turn(self) -> int:
        """The number of the newest turn that started."""
        return self._core.turn

    @property
    def progress(self) -> float:
        """The share of the newest turn's time that has passed, 0 to 1. Use it to draw the world between the
        states before and after this turn.
        """
        length = self._core.length
        return min(1.0, max(0.0, 1 - (self._core.due - self._peer.time) / length)) if length else 1.0

    @property
    def pace(self) -> tuple[int, int]:
        """The number of steps in a turn, and the number of turns between giving a command and running it."""
        return self._core.pace

    @property
    def players(self) -> frozenset[int]:
        """Numbers of the players in the newest turn."""
        return frozenset(self._core.players)

    @property
    def random(self) -> Random:
        """The shared random generator. Use it only in code that all players run."""
        return self._random

    @property
    def stats(self) -> dict[str, int]:
        """Counters by name, such as ``turns``, ``stalls``, ``stalled_us`` (microseconds lost to stalls),
        ``bytes_sent``, and ``bad_commands`` for commands that couldn't be decoded.
        """
        return {**self._core.counters, "bad_commands": self._commands.bad}

    def pause(self) -> None:
        """Pauses the game for all players, starting with a later turn. Turns continue without steps, and
        commands still run.
        """
        self._core.pause(True)

    def resume(self) -> None:
        """Resumes the game for all players, starting with a later turn."""
        self._core.pause(False)

    def set_speed(self, percent: int) -> None:
        """Sets the game's speed for all players, 10 to 640 percent in steps of 10.

        Raises:
            ValueError: the speed is out of its bounds.
        """
        check_within("percent", percent, 10, 640, int)
        self._core.set_speed(round(percent / 10))

    def vote(self, player: int, out: bool = True) -> None:
        """Votes for removing a player, or withdraws the vote (``out=False``). If more than half of the other
        players agree, the game continues without the player.

        Raises:
            ValueError: no other player has this number.
        """
        if (
            not isinstance(player, int)
            or player == self._me
            or player not in {*self._names, *self._core.players}
        ):
            raise ValueError(f"player must be the number of another player, not {player!r}")
        self._core.vote(self._peer.time, player, out)

    def state(self) -> bytes:
        """Returns the world after the newest turn. Send these bytes as a chunk to a player whose world
        differs. That player passes them to :meth:`load_state`.

        Raises:
            ValueError: there is no ``save``.
        """
        if self._save is None:
            raise ValueError("save must be given for state()")
        return struct.pack("<i", self.turn) + self._random.state + saved(self._save)

    def load_state(self, state: bytes) -> None:
        """Loads another player's world. Then :meth:`turns` returns the turns after this world again, and
        comparing worlds starts again.

        Raises:
            ValueError: there is no ``load``, or the state's turn is no longer kept, or didn't run on this
            machine.
        """
        if self._load is None:
            raise ValueError("load must be given for load_state()")
        must_be_bytes("state", state)
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
        """Resumes comparing worlds after a :class:`Diverged` event. All players must call it."""
        self._core.resume(self.turn)

    def close(self) -> None:
        """Ends the recording."""
        self._recorder.close()

    def __enter__(self) -> Lockstep:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
