"""A game that a player hosts goes on with another host: who it is, with which state, and who may say so."""

from __future__ import annotations

import contextlib
import re
import struct
from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw
from tickwire._migration import LABEL, _read_note
from tickwire._states import BadStateError, pack, unpack


@tw.message
class Add:
    number: tw.u32


@tw.message
class Total:
    of: tw.u8
    steps: tw.u32
    text: Annotated[str, tw.text(20)] = ""


CHANNELS = [tw.reliable_ordered(), tw.chunks()]
PROTOCOL: tw.Protocol[Any] = tw.Protocol(0x317, [Add, Total], CHANNELS, peers=True)
BAD = tw.Conditions(latency=0.05, jitter=0.01, loss=0.05, duplicate=0.02, reorder=0.02)
RATE = 60


class Seat:
    """A player with its game: steps and what was added are the state."""

    def __init__(self, peer: tw.peers.Peer[Any], size: int = 64, **settings: Any) -> None:
        self.peer = peer
        self.state = np.zeros(size, np.uint32)
        self.loaded: list[int] = []
        self.game = tw.peers.Migrating(peer, save=lambda: self.state, load=self.load, **settings)
        self.events: list[Any] = []
        self.heard: list[tuple[int, Any]] = []
        self.acted: list[float] = []
        self.sends = 0

    def load(self, state: Any) -> None:
        self.state = state
        self.loaded.append(int(state[0]))

    def tick(self, now: float) -> None:
        with self.peer.tick() as inbox:
            for player, what in self.game.read(inbox):
                if isinstance(what, Add):
                    assert self.game.is_host
                    self.state[1] += what.number
                elif isinstance(what, Total):
                    assert player is not None
                    self.heard.append((player.number, what))
                else:
                    self.events.append((now, what))
            if self.game.is_host:
                self.acted.append(now)
                self.state[0] += 1
                if self.state[0] % 6 == 0 and self.peer.me:
                    self.peer.broadcast(Total(self.peer.me.number, int(self.state[0])))
            if self.sends and self.game.host:
                self.game.send(Add(self.sends))

    def of(self, kind: type) -> list[Any]:
        return [event for _, event in self.events if isinstance(event, kind)]


class Table:
    def __init__(
        self, count: int, seed: int = 1, timeout: int = 2, conditions: tw.Conditions = BAD, **settings: Any
    ) -> None:
        self.network = tw.testing.SimulatedNetwork(conditions=conditions, seed=seed)
        self.timeout, self.settings = timeout, settings
        self.seats: list[Seat] = []
        peer = tw.peers.Peer.host(
            PROTOCOL,
            name="0",
            players=8,
            tuning=tw.Tuning(bind="10.0.0.1:7", timeout=timeout),
            network=self.network,
        )
        self.seats.append(Seat(peer, **settings))
        for _ in range(count - 1):
            self.join()
            self.run(1)
        self.run(1)
        for seat in self.seats:
            assert len(seat.peer.players) == count
            assert seat.game.host is not None
            assert seat.game.host.number == 0

    def join(self, contact: int = 1) -> Seat:
        number = len(self.seats)
        bind = f"10.0.0.{number + 1}:7"
        peer = tw.peers.Peer.join(
            f"10.0.0.{contact}:7",
            PROTOCOL,
            name=str(number),
            tuning=tw.Tuning(bind=bind, timeout=self.timeout),
            network=self.network,
        )
        self.seats.append(Seat(peer, **self.settings))
        return self.seats[-1]

    def step(self, silent: tuple[Seat, ...] = ()) -> None:
        self.network.advance(1 / RATE)
        hosts = []
        for seat in self.seats:
            if seat.peer.closed or seat in silent:
                continue
            seat.tick(self.network.now)
            if seat.game.is_host:
                hosts.append(seat)
        assert len(hosts) <= 1, "two hosts act"

    def run(self, seconds: float, silent: tuple[Seat, ...] = ()) -> None:
        for _ in range(round(seconds * RATE)):
            self.step(silent)


def check_went_on(table: Table, gone: Seat, at: float, steps: int, within: float) -> tuple[float, float]:
    """Of a host that was gone after so many steps: when the game went on, with how old a state."""
    left = [seat for seat in table.seats if seat is not gone and not seat.peer.closed]
    changes = [seat.of(tw.peers.HostChanged) for seat in left]
    assert [len(each) for each in changes] == [1] * len(left), "one event each"
    hosts = {change.host.number for each in changes for change in each}
    assert len(hosts) == 1
    (host,) = (seat for seat in left if seat.game.is_host)
    assert host.peer.me is not None
    assert host.peer.me.number in hosts
    begun = next(now for now in host.acted if now > at)
    assert begun - at <= within
    ages = [change.age for each in changes for change in each]
    assert all(age is not None for age in ages)
    # All say the same age, but for when each learns of it, and what the way takes.
    heard = [
        next(now for now, what in seat.events if isinstance(what, tw.peers.HostChanged)) for seat in left
    ]
    saved = [now - age for now, age in zip(heard, ages, strict=True)]
    assert max(saved) - min(saved) < 0.25
    assert len(host.loaded) == 1
    lost = (steps - host.loaded[0]) / RATE
    return begun - at, lost


@pytest.mark.parametrize("step", range(0, 60, 3))
def test_the_game_goes_on_whenever_the_host_dies(step: int) -> None:
    table = Table(4, seed=step, every=0.5)
    for _ in range(120 + step):
        table.step()
    old = table.seats[0]
    now, steps = table.network.now, int(old.state[0])
    for _ in range(round((table.timeout + 1) * RATE)):
        table.step(silent=(old,))
    table.run(0.5, silent=(old,))
    begun, lost = check_went_on(table, old, now, steps, table.timeout + 1)
    # A save, and the way with what is resent.
    assert lost <= 0.5 + 0.35
    # When it wakes up, it is out, and acts no more.
    acted = len(old.acted)
    table.run(3)
    assert len(old.acted) == acted
    assert old.of(tw.peers.GameEnded)
    assert begun > 0


def test_a_host_that_leaves_is_replaced_at_once() -> None:
    table = Table(4)
    table.run(2)
    old = table.seats[0]
    now, steps = table.network.now, int(old.state[0])
    old.peer.close()
    table.run(2)
    begun, _ = check_went_on(table, old, now, steps, 1.0)
    assert begun < 1
    heard = [seat.heard[-1][0] for seat in table.seats[2:]]
    assert heard == [1, 1]


ADDRESSES = [f"10.0.0.{number + 1}:7" for number in range(4)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cut", ["alone", "with another", "mute", "deaf", "mute, then deaf"])
def test_two_hosts_never_both_act(cut: str, seed: int) -> None:
    table = Table(4, seed=seed)
    table.run(0.5 + seed / 5)
    old, network, now = table.seats[0], table.network, table.network.now
    lost = tw.Conditions(loss=1.0)
    if cut == "alone":
        network.partition(ADDRESSES[:1], ADDRESSES[1:])
    elif cut == "with another":
        network.partition(ADDRESSES[::3], ADDRESSES[1:3])
    elif cut.startswith("mute"):
        network.set_conditions(lost, sender=ADDRESSES[0])
        if cut == "mute, then deaf":
            # It hears the others for longer than they hear it, and not that they have given it up.
            network.schedule(now + 1.9, lost, receiver=ADDRESSES[0])
    else:
        network.set_conditions(lost, receiver=ADDRESSES[0])
    table.run(6)  # checks it in each step
    others = [seat for seat in table.seats[1:] if seat.game.is_host]
    assert len(others) == (cut != "with another")
    if others:
        assert not old.game.is_host
        assert old.of(tw.peers.GameEnded)
        assert max(old.acted) < min(at for at in others[0].acted if at > now)
    else:
        # Half of them with the player of the lowest number.
        assert old.game.is_host


def test_of_two_the_other_goes_on() -> None:
    table = Table(2)
    table.run(2)
    old = table.seats[0]
    now, steps = table.network.now, int(old.state[0])
    table.run(table.timeout + 1, silent=(old,))
    check_went_on(table, old, now, steps, table.timeout + 1)


def test_who_comes_back_is_a_member() -> None:
    table = Table(3)
    table.run(1)
    table.seats[0].peer.close()
    table.run(2)
    back = table.join(contact=2)
    table.run(2)
    assert back.game.host is not None
    assert back.game.host.name == "1"
    assert not back.game.is_host
    assert not back.of(tw.peers.HostChanged)
    assert back.heard
    # And may be the host again.
    table.seats[1].peer.close()
    table.run(2)
    (host,) = (seat for seat in table.seats if not seat.peer.closed and seat.game.is_host)
    assert host is back, "its number is the lowest again"
    assert host.loaded


def test_all_that_was_sent_is_in_the_state_or_reported_lost() -> None:
    for seed in range(4):
        table = Table(4, seed=seed)
        for number, seat in enumerate(table.seats):
            seat.sends = 10**number
        table.run(1.5 + seed / 7)
        old = table.seats[0]
        sent = {seat: seat.game._count for seat in table.seats[1:]}
        old.peer.close()
        for seat in table.seats:
            seat.sends = 0
        table.run(2)
        (host,) = (seat for seat in table.seats[1:] if seat.game.is_host)
        total = str(int(host.state[1]))
        for number, seat in enumerate(table.seats[1:], 1):
            (change,) = seat.of(tw.peers.HostChanged)
            assert {what.number for what in change.lost} <= {10**number}
            assert change.lost, "some were on their way"
        counted = sum(
            10**number * (sent[seat] - len(seat.of(tw.peers.HostChanged)[0].lost))
            for number, seat in enumerate(table.seats[1:], 1)
        )
        own = int(total) - counted
        assert 0 <= own < 10**3, "but the old host's own, each of which is one"
        # What is sent now comes, and is counted on.
        before = int(host.state[1])
        for _ in range(10):
            assert table.seats[3].game.send(Add(7))
            table.step()
        table.run(1)
        assert host.state[1] == before + 70


def test_a_newer_state_of_another_member_wins() -> None:
    table = Table(4, copies=1, size=5_000)
    table.run(2)
    # The newest states go to the third alone from now on.
    old = table.seats[0]
    receivers = old.game._receivers
    old.game._receivers = lambda others: (
        [p for p in receivers(others) or others if p.number == 3]
        or [  # type: ignore[method-assign]
            p for p in others if p.number == 3
        ]
    )
    table.run(2)
    steps = int(old.state[0])
    now = table.network.now
    old.peer.close()
    table.run(2)
    _, lost = check_went_on(table, old, now, steps, 1.5)
    assert table.seats[1].game.is_host
    assert lost < 1.2, "it isn't its own, which is two seconds old"
    assert table.seats[1].game.counters["states_received"]


def test_a_forged_newer_state_is_refused() -> None:
    table = Table(4)
    table.run(2)
    forger = table.seats[3]
    forged = pack(np.full(64, 7, np.uint32), {})
    digest = tw.transfer.Chunk(forged).hash
    table.seats[0].peer.close()
    say = forger.game._core.say

    class Liar:
        def __init__(self, core: Any) -> None:
            self.core = core

        def __getattr__(self, name: str) -> Any:
            return getattr(self.core, name)

        def say(self, player: int, _: bytes) -> None:
            lie = struct.pack("<IIII?32s", 1, 10**6, len(forged), 0, True, digest)
            say(player, bytes((2, 1)) + lie)

    forger.game._core = Liar(forger.game._core)  # type: ignore[assignment]
    for _ in range(120):
        table.step()
        host = table.seats[1]
        if forger.peer.players and not host.peer.closed:
            to = next((p for p in forger.peer.players if p.number == 1), None)
            if to is not None:
                forger.peer.send_chunk(to, forged, label=f"{LABEL}1.1000000")
                break
    table.run(1.5)
    host = table.seats[1]
    assert host.game.is_host
    assert host.loaded[0] > 7
    assert host.game.counters["states_refused"] >= 1


class Later:
    """A core whose epochs are higher than they were: the master was voted for once more."""

    def __init__(self, core: Any) -> None:
        self.core, self.more = core, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.core, name)

    def epoch(self, peer: tw.peers.Peer[Any]) -> int:
        return int(self.core.epoch(peer)) + self.more


@pytest.mark.parametrize("died", [False, True])
def test_a_host_that_is_voted_for_once_more_goes_on(died: bool) -> None:
    table = Table(4, conditions=tw.Conditions(latency=0.05))
    table.run(1)
    if died:
        table.seats.pop(0).peer.close()
        table.run(4)
    host, *others = table.seats
    assert host.game.is_host
    for seat in table.seats:
        seat.game._core = Later(seat.game._core)  # type: ignore[assignment]
    changes = [len(seat.of(tw.peers.HostChanged)) for seat in table.seats]
    others[0].sends = 3
    loaded, steps = list(host.loaded), int(host.state[0])
    for seat in table.seats:
        seat.game._core.more = 1  # type: ignore[attr-defined]
        table.run(0.1)
        assert host.game.is_host
    table.run(1)
    assert host.loaded == loaded
    assert int(host.state[0]) == steps + round((1 + 0.1 * len(table.seats)) * RATE)
    assert [len(seat.of(tw.peers.HostChanged)) for seat in table.seats] == changes
    for seat in others:
        assert seat.game.host is not None
        assert host.peer.me is not None
        assert seat.game.host.number == host.peer.me.number
    # And when it is gone, the newest of its states counts.
    steps = int(host.state[0])
    host.peer.close()
    table.run(4)
    assert others[0].game.is_host
    assert steps - others[0].loaded[-1] < RATE


def test_counts_of_those_who_left_are_not_kept() -> None:
    table = Table(3, conditions=tw.Conditions(latency=0.05))
    host = table.seats[0]
    # As after so many who came, spoke and left.
    host.game._counts |= {(7, joined): 1 for joined in range(1000, 1300)}
    table.seats[2].sends = 1
    table.run(2)
    assert len(host.game._counts) <= 3
    host.peer.close()
    table.run(3)
    assert table.seats[1].game.is_host
    assert table.seats[1].loaded


def test_who_says_that_it_has_a_state_and_sends_none_delays_for_a_moment_only() -> None:
    table = Table(4, copies=1)
    table.run(1)
    old = table.seats[0]
    old.game._receivers = lambda others: [p for p in others if p.number == 3]  # type: ignore[method-assign]
    table.run(1)
    table.seats[3].game._send_state = lambda *_, **__: None  # type: ignore[method-assign]
    now = table.network.now
    old.peer.close()
    table.run(3)
    host = table.seats[1]
    assert host.game.is_host
    assert host.loaded
    assert next(at for at in host.acted if at > now) - now < 2
    assert host.game.counters["states_failed"] == 1


def test_messages_of_others_than_the_host_are_dropped() -> None:
    table = Table(3)
    liar = table.seats[2]
    for _ in range(400):
        liar.peer.broadcast(Total(0, 99))
        table.step()
    table.run(12)
    assert all(what.steps != 99 or number == 0 for number, what in table.seats[1].heard)
    assert table.seats[1].game.counters["messages_dropped"] == 400
    assert not table.seats[1].game._waiting


def test_large_states_take_their_share_and_no_more() -> None:
    line = tw.Conditions(latency=0.04, jitter=0.01, loss=0.02, bottleneck=tw.testing.Bottleneck(500_000 / 8))
    table = Table(3, conditions=line, size=50_000, bytes_per_second=20_000, every=0.5)
    host, member = table.seats[0], table.seats[1]
    member.heard.clear()
    table.run(30)
    counters = host.game.counters
    assert counters["states_sent"] >= 2
    assert counters["bytes_sent"] <= 33 * 20_000 + 150_000
    steps = [what.steps for _, what in member.heard]
    assert len(steps) > 280
    assert counters["states_saved"] < 10


def test_a_state_above_the_bound_is_the_callers_mistake() -> None:
    network = tw.testing.SimulatedNetwork()
    peer = tw.peers.Peer.host(PROTOCOL, network=network, tuning=tw.Tuning(bind="10.0.0.1:7", timeout=2))
    seats = [Seat(peer, max_bytes=100)]
    joiner = tw.peers.Peer.join(
        "10.0.0.1:7", PROTOCOL, network=network, tuning=tw.Tuning(bind="10.0.0.2:7", timeout=2)
    )
    seats.append(Seat(joiner, max_bytes=100))

    def play() -> None:
        for _ in range(120):
            network.advance(1 / 60)
            for seat in seats:
                seat.tick(network.now)

    with pytest.raises(
        ValueError, match=r"save must give at most max_bytes \(100\) with what is added, not \d+"
    ):
        play()
    assert len(seats[0].peer.players) == 2


def test_what_save_and_load_raise_comes_out_and_loses_nothing() -> None:
    table = Table(3)
    table.run(1)
    (host, successor, member) = table.seats
    host.peer.close()

    def fail(_: Any) -> None:
        raise RuntimeError("no room")

    working, successor.game._load = successor.game._load, fail
    failures = 0
    for _ in range(120):
        try:
            table.step()
        except RuntimeError:
            failures += 1
            successor.game._load = working
    assert failures == 1
    assert successor.game.is_host, "with the state before"
    assert len(successor.of(tw.peers.PlayerLeft)) == 1
    assert len(member.of(tw.peers.HostChanged)) == 1


def test_other_settings_on_the_other_side_are_refused() -> None:
    network = tw.testing.SimulatedNetwork()
    peer = tw.peers.Peer.host(PROTOCOL, network=network, tuning=tw.Tuning(bind="10.0.0.1:7", timeout=2))
    joiner = tw.peers.Peer.join(
        "10.0.0.1:7", PROTOCOL, network=network, tuning=tw.Tuning(bind="10.0.0.2:7", timeout=3)
    )
    seats = [Seat(peer), Seat(joiner)]
    for _ in range(240):
        network.advance(1 / 60)
        for seat in seats:
            seat.tick(network.now)
    assert [event.reason for event in seats[0].of(tw.peers.PlayerLeft)] == [tw.peers.LeaveReason.VIOLATION]


def test_states_of_all_kinds_come_back() -> None:
    record = np.dtype([("at", "<f4", (2,)), ("name", "U5"), ("alive", "?")], align=True)
    world = np.zeros(3, record)
    world["at"][1] = 4, 5
    world["name"][2] = "bob"
    counts = {(1, 2): 3, (15, 2**32 - 1): 2**32 - 1}
    for state in (b"", b"abc", bytearray(b"x"), np.arange(6).reshape(2, 3), np.float32(3), world):
        again, counted = unpack(pack(state, counts))
        assert counted == counts
        assert np.array_equal(again, state) if not isinstance(state, bytes | bytearray) else again == state
    several = {"world": world, "empty": np.zeros((0, 4)), "one": np.int8(3)}
    again, _ = unpack(pack(several, {}))
    assert list(again) == list(several)
    for name, array in several.items():
        assert again[name].dtype == np.asarray(array).dtype
        assert np.array_equal(again[name], array)
        again[name][...] = again[name]  # it may be written to
    assert unpack(pack({}, {}))[0] == {}
    for wrong in (3, None, [1], {1: np.zeros(2)}, {"a": [1]}, np.array([object()]), {"a": "x"}):
        with pytest.raises(TypeError, match="save"):
            pack(wrong, {})


def test_any_bytes_are_states_and_notes_or_refused() -> None:
    rng = np.random.default_rng(4)
    record = np.zeros(3, np.dtype([("at", "<f4", (2,)), ("name", "U5")]))
    good = [pack(b"abc", {(1, 1): 1}), pack({"a": record, "b": np.arange(3)}, {}), pack(record, {})]
    for _ in range(4000):
        data = bytearray(good[rng.integers(3)])
        for _ in range(rng.integers(1, 5)):
            data[rng.integers(len(data))] = rng.integers(256)
        cut = bytes(data[: rng.integers(len(data) + 1)]) if rng.integers(2) else bytes(data)
        with contextlib.suppress(BadStateError):
            unpack(cut)
        _read_note(cut[rng.integers(8) :], int(rng.integers(2**32)), 3.0)
        _read_note(bytes([rng.integers(4)]) + rng.bytes(rng.integers(300)), 0, 3.0)
    huge = pack(np.zeros(4), {}).replace(b"[4]", b"[4000000000000]")
    with pytest.raises(BadStateError):
        unpack(huge)


def test_wrong_arguments_are_named() -> None:
    network = tw.testing.SimulatedNetwork()
    peer = tw.peers.Peer.host(PROTOCOL, network=network, tuning=tw.Tuning(bind="10.0.0.1:7"))

    def make(**given: Any) -> tw.peers.Migrating:
        return tw.peers.Migrating(peer, **{"save": lambda: b"", "load": lambda _: None, **given})

    for name, value, bound in (
        ("every", 0, "0.05 to 60"),
        ("bytes_per_second", 1, "1000 to 1000000000"),
        ("max_bytes", 1, "64 to 67108864"),
        ("copies", 16, "1 to 15"),
        ("patience", 11, "0.1 to 10"),
    ):
        with pytest.raises(ValueError, match=re.escape(f"{name} must be {bound}, not {value}")):
            make(**{name: value})
    with pytest.raises(TypeError, match="save must be callable, not int"):
        make(save=3)
    with pytest.raises(TypeError, match="peer must be a Peer, not int"):
        tw.peers.Migrating(3, save=bytes, load=bytes)  # type: ignore[arg-type]
    plain = tw.Protocol(1, [Add], [tw.reliable_ordered()], peers=True)
    with pytest.raises(ValueError, match="a channel of chunks"):
        tw.peers.Migrating(
            tw.peers.Peer.host(plain, network=network, tuning=tw.Tuning(bind="10.0.0.2:7")),
            save=bytes,
            load=bytes,
        )
    game = make()
    with pytest.raises(ValueError, match="peer must have no other game"):
        make()
    assert game.host == peer.me


def test_states_that_are_too_large_are_refused_and_the_game_goes_on_without() -> None:
    table = Table(3, max_bytes=1_000)
    table.run(1)
    host, successor, member = table.seats
    # As one that doesn't keep the rules.
    host.game._max_bytes = 1 << 26
    host.state = np.arange(20_000, dtype=np.uint32)
    for seat in (successor, member):
        seat.game._held.clear()
        seat.game._heard.clear()
    table.run(8)
    assert successor.game.counters["states_refused"] > 0
    host.peer.close()
    table.run(2)
    assert successor.game.is_host
    assert not successor.loaded
    assert [change.age for change in member.of(tw.peers.HostChanged)] == [None]


def test_notes_that_are_none_are_counted() -> None:
    table = Table(3)
    rng = np.random.default_rng(2)
    liar, host, member = table.seats[2], table.seats[0], table.seats[1]
    assert liar.peer.me is not None
    say = liar.game._core.say
    for _ in range(300):
        for number in (0, 1):
            say(number, rng.bytes(rng.integers(1, 512)))
        table.step()
    assert host.game.counters["notes_malformed"] > 100
    assert host.game.is_host
    assert member.game.host == member.peer.players[0]
    assert not member.of(tw.peers.HostChanged)
    with pytest.raises(ValueError, match="note must be at most 512 bytes, not 513"):
        say(0, bytes(513))


def test_who_says_that_it_is_the_host_is_not_believed() -> None:
    table = Table(3)
    liar, member = table.seats[2], table.seats[1]
    for saved in range(200):
        note = struct.pack("<BBIIIIIIB", 1, 1, 1, 9, saved, 0, 1, 9, 0)
        liar.game._core.say(1, note)
        liar.peer.broadcast(Total(9, 9))
        table.step()
    assert member.game.host == member.peer.players[0]
    assert all(number == 0 for number, _ in member.heard)
    assert not member.of(tw.peers.HostChanged)
