"""A game that one of its players hosts, and that goes on with another host when that one is gone.

:class:`Migrating` plays it on a :class:`tickwire.peers.Peer`. See ``docs/migration.md``.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tickwire._checks import check_within
from tickwire._connection import PeerEvent, SendResult
from tickwire._core import (
    Chunk,
    Inbox,
    MigrationCore,
    Peer,
    Player,
    PlayerLeft,
    ReceivedChunk,
    Transfer,
)
from tickwire._states import BadStateError, pack, unpack
from tickwire.errors import TickwireError

__all__ = ["HostChanged", "Migrating"]

LABEL = "tickwire.state "
"""What the labels of chunks that hold states begin with."""

MAX_KEPT = 256
"""Messages that are kept: of those sent to a host, and of each player who isn't known to be one yet."""
MAX_WAIT = 10.0
"""Seconds that a message waits until it is known that its sender is the host."""
MAX_FETCH = 10
"""Times ``patience`` that a state may take that was asked for: a player may claim a state and not send it."""
MAX_ANNOUNCED = 4
MAX_HEARD = 8
_COUNTERS = [
    "states_saved",
    "states_sent",
    "states_failed",
    "states_received",
    "states_refused",
    "bytes_sent",
    "notes_malformed",
    "messages_dropped",
    "migrations",
]
_HOST, _MEMBER = 1, 2
_HOST_HEAD = struct.Struct("<BBIIIIIIB")
_STATE = struct.Struct("<IIII32s")
_MEMBER_STATE = struct.Struct("<IIII?32s")
_WRAP = 1 << 32

StateId = tuple[int, int]
"""Of which epoch a state is, and which of its host's saves: later ones are greater."""


@dataclass(frozen=True, slots=True)
class HostChanged:
    """The game has another host and goes on: the one event of it, on all peers, the new host included."""

    host: Player
    """Who it is."""
    age: float | None
    """Seconds since the state was saved with which the game goes on; None: nobody had one, and the new
    host goes on with what it has."""
    lost: list[Any]
    """What this peer had sent to the host before by :meth:`Migrating.send` and isn't in that state: of
    messages on the protocol's first reliable ordered channel, the newest 256, in order. Send again what
    still makes sense."""


@dataclass(slots=True)
class _State:
    """A saved state, as somebody knows of it."""

    size: int
    saved: float  # Peer.time here
    digest: bytes


@dataclass(slots=True)
class _Note:
    """What a player says of states."""

    is_host: bool
    loaded: bool = False
    base: StateId = (0, 0)
    saved: float = 0.0
    count: int = 0
    want: StateId = (0, 0)
    states: dict[StateId, _State] = field(default_factory=dict)
    held: set[StateId] = field(default_factory=set)


def _ms(seconds: float) -> int:
    return int(seconds * 1000) % _WRAP


def _read_note(note: bytes, sent_ms: int, at: float) -> _Note | None:
    """A note, its times as ours; None: it is none."""

    def time_of(ms: int) -> float:
        return at - (sent_ms - ms) % _WRAP / 1000

    try:
        if note[0] == _HOST:
            _, loaded, epoch, sequence, saved, count, *want, states = _HOST_HEAD.unpack_from(note)
            each, begin = _STATE, _HOST_HEAD.size
            read = _Note(True, bool(loaded), (epoch, sequence), time_of(saved), count, (want[0], want[1]))
        elif note[0] == _MEMBER:
            states, each, begin, read = note[1], _MEMBER_STATE, 2, _Note(False)
        else:
            return None
        if len(note) != begin + states * each.size or states > MAX_HEARD:
            return None
        for epoch, sequence, size, saved, *rest in each.iter_unpack(note[begin:]):
            read.states[epoch, sequence] = _State(size, time_of(saved), rest[-1])
            if rest[0] is True:
                read.held.add((epoch, sequence))
    except (struct.error, IndexError):
        return None
    return read


class Migrating:
    """A game on a :class:`tickwire.peers.Peer` that the master hosts: the other players send to the host, and
    take the game from it alone. The host sends them its state every now and then; when it is gone, the next
    master goes on from the newest state that any of them has.

    Make one on each peer as soon as you have the peer, and call :meth:`read` once a tick. All peers need the
    same ``timeout``.

    Args:
        peer (Peer): of a protocol with a channel of chunks; without a Lockstep or Rollback.
        save (Callable): returns the game's state: bytes, a NumPy array, or a dict of arrays by name. Called
            on the host, at the beginning of a tick.
        load (Callable): takes such a state, with arrays of its own. Called on a new host.
        every (float, default 0.5): seconds between two saves, 0.05 to 60.
        bytes_per_second (float, default 64000.0): the limit of all transfers of states together, 1,000 to
            1e9. A state that takes longer than ``every`` is sent less often.
        max_bytes (int, default 1048576): the maximum of a state, 64 to 2**26; the same on all peers.
        copies (int | None, default None): how many others get the state, 1 to 15, the next hosts
            first; None: all.
        patience (float, default 0.4): seconds, 0.1 to 10, that a new host waits for the others to say which
            states they have, and again for a state that it asked for, beside the time that its bytes take.
            In all it waits ten times as long at most.

    Raises:
        TypeError, ValueError: naming the argument, its value and its bound.
    """

    def __init__(
        self,
        peer: Peer[Any],
        *,
        save: Callable[[], Any],
        load: Callable[[Any], object],
        every: float = 0.5,
        bytes_per_second: float = 64_000.0,
        max_bytes: int = 1 << 20,
        copies: int | None = None,
        patience: float = 0.4,
    ) -> None:
        if not isinstance(peer, Peer):
            raise TypeError(f"peer must be a Peer, not {type(peer).__name__}")
        for name, function in (("save", save), ("load", load)):
            if not callable(function):
                raise TypeError(f"{name} must be callable, not {type(function).__name__}")
        check_within("every", every, 0.05, 60)
        check_within("bytes_per_second", bytes_per_second, 1000, 10**9)
        check_within("max_bytes", max_bytes, 64, 1 << 26, int)
        check_within("patience", patience, 0.1, 10)
        if copies is not None:
            check_within("copies", copies, 1, 15, int)
        channels = peer.protocol.channels
        if not any(channel.kind == "chunks" for channel in channels):
            raise ValueError("peer must be of a protocol with a channel of chunks: states go on it")
        self._peer, self._save, self._load = peer, save, load
        self._every, self._rate, self._max_bytes = float(every), float(bytes_per_second), max_bytes
        self._copies, self._patience = copies, float(patience)
        self._counted = next((n for n, it in enumerate(channels) if it.kind == "reliable_ordered"), None)
        self._core = MigrationCore(peer, max_bytes)
        self._epoch = self._core.epoch(peer)
        self._core.set_epoch(self._epoch)
        self._host: Player | None = None  # another player
        self._former: Player | None = None  # of the epoch before
        self._knew_host = self._epoch > 1
        self._loaded = peer.is_master and self._epoch == 1
        self._since: float | None = None  # when this peer became the master
        self._notes: dict[int, _Note] = {}
        # What is known of states, and whole ones.
        self._heard: dict[StateId, _State] = {}
        self._held: dict[StateId, ReceivedChunk] = {}
        self._pending: dict[StateId, ReceivedChunk] = {}
        self._bad: set[StateId] = set()
        self._base: StateId = (0, 0)
        self._base_saved = 0.0
        # Of a new host: what it asked whom for, until when, and who failed.
        self._want: tuple[StateId, Player, float] | None = None
        self._failed: set[int] = set()
        # Of a host: its saves, and their transfers.
        self._sequence = 0
        self._save_at = 0.0
        self._newest: tuple[StateId, Chunk] | None = None
        self._announced: dict[StateId, _State] = {}
        self._transfers: dict[int, tuple[Transfer, int]] = {}
        self._has: dict[int, bytes] = {}
        self._allowance, self._paced_at = 0.0, peer.time
        self._handed: StateId | None = None
        # Messages: read by the host, sent to it, of the players that may become it, of its own.
        self._counts: dict[tuple[int, int], int] = {}
        self._count = 0
        self._sent: deque[tuple[int, Any]] = deque(maxlen=MAX_KEPT)
        self._waiting: dict[Player, deque[tuple[float, Any]]] = {}
        self._own: list[Any] = []
        self._unread: list[tuple[Player | None, Any]] = []
        self._chunks: list[ReceivedChunk] = []
        self._counters = dict.fromkeys(_COUNTERS, 0)

    @property
    def peer(self) -> Peer[Any]:
        """The peer on which it is played."""
        return self._peer

    @property
    def host(self) -> Player | None:
        """Who hosts the game; None while there is nobody: the game stands still then, and what is sent to
        the host isn't queued."""
        if self.is_host:
            return self._peer.me
        return self._host

    @property
    def is_host(self) -> bool:
        """Whether this peer hosts the game now, and no other can: only then the game may go on here. False
        also while the host hasn't heard from half of the others for nearly ``timeout``, as they may have
        another host."""
        peer = self._peer
        return self._loaded and not peer.closed and peer.is_master and self._core.leads(peer)

    @property
    def counters(self) -> dict[str, int]:
        """What was counted since the start: states saved, sent, failed, received and refused, bytes of
        states that were sent, notes of hosts gone by or to come, messages that weren't the host's,
        migrations."""
        before, after = self._core.dropped
        return {**self._counters, "notes_stale": before, "notes_early": after}

    def send(self, message: Any) -> SendResult:
        """Sends a message to the host; the host's own come with its next :meth:`read`.

        Args:
            message (message): as for :meth:`tickwire.peers.Peer.send`.

        Returns:
            as that; ``NOT_CONNECTED``, which is false, while there is no host: nothing was queued.
        """
        if self.is_host:
            self._peer.protocol.encode(message)  # it must be one
            self._own.append(message)
            return SendResult.SENT
        if self._host is None:
            return SendResult.NOT_CONNECTED
        result: SendResult = self._peer.send(self._host, message)
        if result and self._is_counted(message):
            self._count += 1
            self._sent.append((self._count, message))
        return result

    def read(self, inbox: Inbox[Any, Any, Any, Any]) -> list[tuple[Player | None, Any]]:
        """What a tick's inbox brought: events, :class:`HostChanged` among them, then messages: on the host
        those of all others and its own, on the others the host's. Saves and loads states meanwhile.

        Args:
            inbox (Inbox): of this tick of the peer.

        Raises:
            Exception: from ``save`` or ``load``. What came is given by the next call.
            TypeError, ValueError: ``save`` gave what is no state, or too much.
        """
        self._unread.extend(inbox)
        self._chunks.extend(inbox.chunks)
        peer = self._peer
        if peer.closed:
            return self._take_unread()
        now = peer.time
        if self.is_host:
            self._save_if_due(now)
        epoch = self._core.epoch(peer)
        if epoch != self._epoch:
            self._begin_epoch(epoch)
        for _, what in self._unread:
            if isinstance(what, PlayerLeft):
                self._forget(what.player)
        for player, sent_ms, at, note in self._core.take():
            self._hear(player, _read_note(note, sent_ms, at))
        chunks, self._chunks = self._chunks, []
        for chunk in chunks:
            self._receive(chunk)
        master, me = peer.master, peer.me
        if master is not None and master == me:
            self._lead(now, me)
        elif master is not None:
            self._follow(now, master)
        return self._sort(now)

    # --- what comes in -----------------------------------------------------------------------------------

    def _begin_epoch(self, epoch: int) -> None:
        self._epoch = epoch
        self._core.set_epoch(epoch)
        # A master remains one as long as it is there: where it is voted for once more, nothing ends.
        self._loaded = self._loaded and self._peer.is_master
        self._former, self._host = self._host or self._former, None
        self._since = self._want = None
        self._sequence, self._newest = 0, None
        self._announced.clear()
        self._notes.clear()
        self._pending.clear()
        self._failed.clear()
        self._handed = None

    def _hear(self, player: int, note: _Note | None) -> None:
        if note is None:
            self._counters["notes_malformed"] += 1
            return
        self._notes[player] = note

    def _receive(self, chunk: ReceivedChunk) -> None:
        if not chunk.label.startswith(LABEL):
            return
        epoch, _, sequence = chunk.label.removeprefix(LABEL).partition(".")
        fits = epoch.isascii() and epoch.isdigit() and sequence.isascii() and sequence.isdigit()
        if not fits or len(chunk.label) > 40 or chunk.size > self._max_bytes:
            self._counters["states_refused"] += 1
            return
        number = int(epoch), int(sequence)
        known = self._heard.get(number)
        if known is None and self._want is not None and self._want[0] == number:
            known = self._known(self._others()).get(number)
        if known is not None and known.digest == chunk.hash:
            self._keep(number, chunk)
        elif known is None and number[0] == self._epoch and chunk.client == self._peer.master:
            # The note about it may have been lost, and comes again.
            self._pending[number] = chunk
            while len(self._pending) > 2:
                del self._pending[min(self._pending)]
        else:
            self._counters["states_refused"] += 1

    def _keep(self, number: StateId, chunk: ReceivedChunk) -> None:
        self._counters["states_received"] += 1
        self._held[number] = chunk
        while len(self._held) > 2:
            del self._held[min(self._held)]

    def _follow(self, now: float, master: Player) -> None:
        """Another player is the master: hears of its states."""
        note = self._notes.get(master.number)
        if note is None or not note.is_host:
            self._answer(master)
            return
        for number, state in note.states.items():
            if number[0] != self._epoch or number in self._heard:
                continue
            self._heard[number] = state
            chunk = self._pending.pop(number, None)
            # One that is the same as another needn't come again.
            chunk = chunk or next((it for it in self._held.values() if it.hash == state.digest), None)
            if chunk is not None and chunk.hash == state.digest:
                self._keep(number, chunk)
        while len(self._heard) > MAX_HEARD:
            del self._heard[min(self._heard)]
        if note.loaded:
            self._note_host(now, master, note)
            return
        self._answer(master)
        if note.want != (0, 0) and note.want != self._handed and note.want in self._held:
            self._handed = note.want
            content = _content(self._held[note.want])
            self._send_state(master, note.want, Chunk(content), burst=len(content) <= 1 << 16)

    def _answer(self, master: Player) -> None:
        """Tells a new host which states there are, as far as is known here."""
        if self._epoch == 1:
            return
        note = b""
        for number, state in sorted(self._heard.items(), reverse=True):
            saved = _ms(state.saved)
            note += _MEMBER_STATE.pack(*number, state.size, saved, number in self._held, state.digest)
        self._core.say(master.number, bytes((_MEMBER, len(self._heard))) + note)

    def _note_host(self, now: float, host: Player, note: _Note) -> None:
        if self._host == host:
            return
        self._host = host
        if host == self._former:
            return  # the same, and it never stopped
        age = None if note.base == (0, 0) else now - note.saved
        self._change(host, age, note.count)

    def _change(self, host: Player, age: float | None, count: int) -> None:
        lost = [message for number, message in self._sent if number > count]
        knew, self._knew_host = self._knew_host, True
        self._sent.clear()
        self._count, self._former = count, None
        if knew:
            self._counters["migrations"] += 1
            self._unread.append((host, HostChanged(host, age, lost)))

    # --- a new host --------------------------------------------------------------------------------------

    def _others(self) -> list[Player]:
        return [player for player in self._peer.players if player != self._peer.me]

    def _lead(self, now: float, me: Player) -> None:
        """This is the master: with a state or in search of one."""
        others = self._others()
        if not self._loaded:
            self._choose(now, me, others)
        joined = self._core.joined(self._peer)
        for player in others:
            note = self._host_note((player.number, joined.get(player.number, 0)))
            self._core.say(player.number, note)
        if self.is_host:
            self._send_states(now, others)

    def _host_note(self, player: tuple[int, int]) -> bytes:
        want = self._want[0] if self._want else (0, 0)
        saved, count = _ms(self._base_saved), self._counts.get(player, 0)
        states = list(self._announced.items())
        head = _HOST_HEAD.pack(_HOST, self._loaded, *self._base, saved, count, *want, len(states))
        return head + b"".join(
            _STATE.pack(*number, state.size, _ms(state.saved), state.digest) for number, state in states
        )

    def _known(self, others: list[Player]) -> dict[StateId, _State]:
        """The states that there are: of which this peer heard from their host, or that more than half of
        the players did. Who offers one that nobody else heard of may have made it."""
        known = dict(self._heard)
        votes: dict[tuple[StateId, bytes, int], list[_State]] = {}
        for player in others:
            if (note := self._notes.get(player.number)) and not note.is_host:
                for number, state in note.states.items():
                    votes.setdefault((number, state.digest, state.size), []).append(state)
        for (number, *_), states in votes.items():
            if number not in known and 2 * len(states) > len(others) + 1 and number[0] < self._epoch:
                # The median of when it was: some may not tell the truth.
                known[number] = sorted(states, key=lambda state: state.saved)[len(states) // 2]
        return known

    def _choose(self, now: float, me: Player, others: list[Player]) -> None:
        if self._since is None:
            self._since = now
        answered = all(player.number in self._notes for player in others)
        if not answered and now < self._since + self._patience:
            return
        known = self._known(others)
        if self._want is not None:
            number, player, until = self._want
            if number not in self._held:
                if now < until and player in others:
                    return
                self._failed.add(player.number)  # it isn't asked again
                self._counters["states_failed"] += 1
            self._want = None
        for number in sorted(known, reverse=True):
            if number in self._bad or known[number].size > self._max_bytes:
                continue
            if number in self._held:
                if self._take_over(now, me, number, known[number]):
                    return
                continue
            for player in others:
                note = self._notes.get(player.number)
                same = note and not note.is_host and number in note.held
                same = same and note and note.states[number].digest == known[number].digest
                if same and player.number not in self._failed:
                    takes = min(known[number].size / self._rate, MAX_FETCH * self._patience)
                    until = now + self._patience + takes
                    self._want = number, player, until
                    return
        self._go_on(now, me, (0, 0), 0.0)

    def _take_over(self, now: float, me: Player, number: StateId, known: _State) -> bool:
        """Loads a state; False: it is none."""
        try:
            state, counts = unpack(_content(self._held[number]))
        except (BadStateError, OSError):
            self._bad.add(number)
            self._counters["states_refused"] += 1
            return False
        self._bad.add(number)  # should it raise, an older one is the next
        self._load(state)
        self._counts = counts
        self._go_on(now, me, number, known.saved)
        return True

    def _go_on(self, now: float, me: Player, base: StateId, saved: float) -> None:
        if base == (0, 0):
            self._counts = {}
        joined = self._core.joined(self._peer)
        count = self._counts.get((me.number, joined.get(me.number, 0)), 0)
        self._loaded, self._base, self._base_saved, self._save_at = True, base, saved, now
        self._newest, self._sequence = None, 0
        self._announced.clear()
        self._transfers.clear()
        self._has.clear()
        self._change(me, None if base == (0, 0) else now - saved, count)

    # --- the host's states -------------------------------------------------------------------------------

    def _receivers(self, others: list[Player]) -> list[Player]:
        # Those who would be elected first: of the lowest numbers.
        return others[: self._copies]

    def _save_if_due(self, now: float) -> None:
        receivers = self._receivers(self._others())
        waits = all(player.number in self._transfers for player in receivers)
        if now < self._save_at or waits or self._allowance < 0:
            return
        # Not twice after a hitch.
        self._save_at = max(self._save_at + self._every, now + self._every / 2)
        # Those who left send nothing more.
        here = self._core.joined(self._peer).items()
        self._counts = {who: count for who, count in self._counts.items() if who in here}
        data = pack(self._save(), self._counts)
        if len(data) > self._max_bytes:
            bound = f"at most max_bytes ({self._max_bytes})"
            raise ValueError(f"save must give {bound} with what is added, not {len(data)}")
        chunk = Chunk(data)
        self._sequence += 1
        number = self._epoch, self._sequence
        self._newest = number, chunk
        self._announced[number] = _State(chunk.size, now, chunk.hash)
        while len(self._announced) > MAX_ANNOUNCED:
            del self._announced[min(self._announced)]
        self._counters["states_saved"] += 1

    def _send_states(self, now: float, others: list[Player]) -> None:
        """Sends the newest state to the players without a transfer, while the rate allows it."""
        elapsed, self._paced_at = now - self._paced_at, now
        burst = max(16_384.0, self._rate / 4)
        self._allowance = min(self._allowance + elapsed * self._rate, burst)
        for number, (transfer, done) in list(self._transfers.items()):
            self._allowance -= transfer.bytes_done - done
            self._counters["bytes_sent"] += transfer.bytes_done - done
            self._transfers[number] = transfer, transfer.bytes_done
            if transfer.over:
                del self._transfers[number]
                self._counters["states_sent" if transfer.done else "states_failed"] += 1
                if transfer.done:
                    self._has[number] = transfer.hash
        for transfer, _ in self._transfers.values():
            if transfer.paused and self._allowance > burst / 4:
                transfer.resume()
            elif not transfer.paused and self._allowance < -burst / 4:
                transfer.pause()
        if self._newest is None:
            return
        newest, chunk = self._newest
        for player in self._receivers(others):
            idle = player.number not in self._transfers and self._has.get(player.number) != chunk.hash
            if idle and self._allowance > 0:
                transfer_or_none = self._send_state(player, newest, chunk, burst=chunk.size <= 4096)
                if transfer_or_none is not None:
                    self._transfers[player.number] = transfer_or_none, 0

    def _send_state(self, player: Player, number: StateId, chunk: Chunk, burst: bool) -> Transfer | None:
        try:
            return self._peer.send_chunk(player, chunk, label=f"{LABEL}{number[0]}.{number[1]}", burst=burst)
        except TickwireError:
            return None  # its end is among the next events

    # --- messages ----------------------------------------------------------------------------------------

    def _is_counted(self, message: Any) -> bool:
        channel = getattr(type(message), "__tickwire_channel__", None)
        if isinstance(channel, str):
            channel = self._peer.protocol.channel_number(channel)
        return (channel or 0) == self._counted

    def _take_unread(self) -> list[tuple[Player | None, Any]]:
        unread, self._unread = self._unread, []
        return unread

    def _sort(self, now: float) -> list[tuple[Player | None, Any]]:
        """Gives events, and the messages of the players that may speak; keeps those of others for a while."""
        leads, me = self.is_host, self._peer.me
        events, spoken = [], []
        for player, what in self._take_unread():
            if isinstance(what, PeerEvent | HostChanged) or player is None:
                events.append((player, what))
                continue
            spoken.append((player, what))
        for player, what in spoken:
            queue = self._waiting.setdefault(player, deque())
            if len(queue) < MAX_KEPT or leads or player == self._host:
                queue.append((now, what))
            else:
                self._counters["messages_dropped"] += 1
        ready: list[tuple[Player | None, Any]] = []
        joined = self._core.joined(self._peer) if leads else {}
        for player, queue in list(self._waiting.items()):
            if leads or player == self._host:
                ready += [(player, what) for _, what in queue]
                if leads:
                    of = player.number, joined.get(player.number, 0)
                    counted = sum(self._is_counted(what) for _, what in queue)
                    self._counts[of] = self._counts.get(of, 0) + counted
                queue.clear()
            while queue and not self._loaded and queue[0][0] < now - MAX_WAIT:
                queue.popleft()
                self._counters["messages_dropped"] += 1
            if not queue:
                del self._waiting[player]
        if leads:
            ready += [(me, what) for what in self._own]
            self._own.clear()
        return events + ready

    def _forget(self, player: Player) -> None:
        """A player left: nothing of it is waited for."""
        self._counters["messages_dropped"] += len(self._waiting.pop(player, ()))
        self._notes.pop(player.number, None)
        self._transfers.pop(player.number, None)
        self._has.pop(player.number, None)
        if self._host == player:
            self._host = None


def _content(chunk: ReceivedChunk) -> bytes:
    return bytes(chunk) if chunk.path is None else chunk.path.read_bytes()
