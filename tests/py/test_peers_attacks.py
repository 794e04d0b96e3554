"""Hostile and unlucky peers in a game without a server, and callers' mistakes with its parts."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw
from tickwire import _core
from tickwire.errors import RecordingError
from tickwire.lockstep import Dropped, Lockstep, Recording, Turn


@tw.message
class Chat:
    text: Annotated[str, tw.text(100)]


@tw.message
class Move:
    unit: tw.u16


PROTOCOL = tw.Protocol(0x9A3, [Chat], peers=True)
BAD = tw.Conditions(latency=0.05, jitter=0.01, loss=0.05)


class Match:
    """Peers on one simulated network, each of which makes its part of the game when it hears of the start."""

    def __init__(
        self, make: Callable[[tw.peers.Peer[Chat], tw.peers.Started], Any], count: int = 4, **host: Any
    ) -> None:
        self.network = tw.testing.SimulatedNetwork(conditions=BAD, seed=1)
        self.make = make
        self.peers: list[tw.peers.Peer[Chat]] = []
        self.games: dict[int, Any] = {}
        self.events: list[list[Any]] = []
        self.silent: set[int] = set()
        self.frame = 0
        self.host = {"players": 8, **host}
        for _ in range(count):
            self.add()

    def add(self) -> None:
        number = len(self.peers)
        given: dict[str, Any] = {
            "name": f"peer {number}",
            "tuning": tw.Tuning(timeout=3, bind=f"10.0.0.{number + 1}:7"),
            "network": self.network,
        }
        if number == 0:
            self.peers.append(tw.peers.Peer.host(PROTOCOL, **given, **self.host))
        else:
            self.peers.append(tw.peers.Peer.join("10.0.0.1:7", PROTOCOL, **given))
        self.events.append([])

    def run(self, frames: int) -> None:
        for _ in range(frames):
            self.network.advance(1 / 60)
            self.frame += 1
            for number, peer in enumerate(self.peers):
                if peer.closed or number in self.silent:
                    continue
                with peer.tick() as inbox:
                    for event in inbox.events:
                        self.events[number].append(event)
                        if isinstance(event, tw.peers.Started):
                            self.games[number] = self.make(peer, event)
                    if number in self.games and peer.ended is None:
                        self.play(self.games[number])

    def play(self, game: Any) -> None:
        if isinstance(game, Lockstep):
            for turn in game.turns():
                game.check(turn)
        elif isinstance(game, tw.rollback.Rollback):
            for _ in game.advance(self.frame // 7 % 16):
                pass

    def violations(self) -> list[Any]:
        reason = tw.peers.LeaveReason.VIOLATION
        return [event for told in self.events for event in told if getattr(event, "reason", None) is reason]


def lockstep(peer: tw.peers.Peer[Chat], started: tw.peers.Started) -> Lockstep:
    return Lockstep(peer, started, [Move])


def rollback(peer: tw.peers.Peer[Chat], _: tw.peers.Started) -> tw.rollback.Rollback[int]:
    return tw.rollback.Rollback(peer, 4, state=np.zeros(2, "i4"))


def progress(game: Any) -> int:
    return game.turn * 6 if isinstance(game, Lockstep) else game.frame


@pytest.mark.parametrize("make", [lockstep, rollback])
@pytest.mark.parametrize(("leaver", "later"), [(2, 24), (0, 18), (0, 20), (2, 30), (3, 26)])
def test_who_leaves_around_the_start_breaks_nothing(
    make: Callable[[tw.peers.Peer[Chat], tw.peers.Started], Any], leaver: int, later: int
) -> None:
    match = Match(make)
    match.run(180)
    assert match.peers[0].start(countdown=0.5, seed=1)
    match.run(later)
    match.peers[leaver].close()
    match.run(420)
    stay = [number for number in range(4) if number != leaver]
    assert not match.violations()
    begun = {
        event.players
        for number in stay
        for event in match.events[number]
        if isinstance(event, tw.peers.Started)
    }
    assert begun == {(0, 1, 2, 3)}
    assert all(match.peers[number].ended is None for number in stay)
    turns = [progress(match.games[number]) for number in stay]
    assert min(turns) > 250, turns
    assert max(turns) - min(turns) < 40, turns


def test_who_is_still_joining_at_the_start_comes_too_late() -> None:
    ends = []
    for later in range(4, 90, 5):
        match = Match(lockstep, 2)
        match.run(120)
        match.add()
        match.run(later)
        match.peers[0].start(countdown=0.5)
        match.run(300)
        assert not match.violations()
        starts = {
            event.players for told in match.events for event in told if isinstance(event, tw.peers.Started)
        }
        assert len(starts) == 1, later
        is_in = 2 in match.games
        assert is_in == (len(starts.pop()) == 3)
        ended = match.peers[2].ended
        assert ended is (None if is_in else tw.peers.LeaveReason.STARTED)
        ends.append(ended)
        turns = [progress(game) for game in match.games.values()]
        assert min(turns) > 100, (later, turns)
    assert set(ends) == {None, tw.peers.LeaveReason.STARTED}, "both happen"


def test_who_joins_late_is_told_that_it_has_no_part() -> None:
    found = []

    def make(peer: tw.peers.Peer[Chat], started: tw.peers.Started) -> Any:
        assert peer.me is not None
        if peer.me.number < 2:
            return lockstep(peer, started)
        with pytest.raises(ValueError, match="not of player 2, who came later: give saving="):
            lockstep(peer, started)
        with pytest.raises(ValueError, match="the peer's own number, 2, which did not play at the start"):
            rollback(peer, started)
        found.append(started.players)
        return None

    match = Match(make, 2)
    match.run(120)
    match.peers[0].start(late_joining=True)
    match.run(120)
    match.add()
    match.run(240)
    assert found == [(0, 1)]
    assert not match.violations()
    assert len(match.peers[2].players) == 3


@pytest.mark.parametrize("late", [1, 5, 20])
@pytest.mark.parametrize(("ours", "theirs"), [((1, 0), (32, 32)), ((2, 2), (20, 10)), ((32, 32), (1, 0))])
def test_players_with_other_windows_play(ours: tuple[int, int], theirs: tuple[int, int], late: int) -> None:
    states = [array("i", [0]), array("i", [0])]
    games: list[Any] = [
        tw.rollback.Rollback(
            None, 4, players=2, me=me, timing=tw.rollback.Timing(window=window, delay=delay), state=states[me]
        )
        for me, (window, delay) in enumerate((ours, theirs))
    ]
    way: list[tuple[int, int, bytes]] = []
    for frame in range(400):
        now = frame / 60
        for me, game in enumerate(games):
            for advance in game.advance((frame * 7 + me * 3) % 16, now=now):
                states[me][0] = (states[me][0] * 31 + advance.inputs[0] * 16 + advance.inputs[1]) % 65_521
            if (payload := game.fill(1 - me, now=now)) is not None:
                way.append((frame + late, 1 - me, payload))
        for _, to, payload in [it for it in way if it[0] == frame]:
            assert games[to].read(1 - to, payload, now=now) is None
    assert not games[0].events() + games[1].events()
    assert min(game.frame for game in games) > 15


def test_states_of_objects_are_no_bytes() -> None:
    objects: list[Any] = [
        np.array([object()]),
        np.zeros(2, [("x", "i4"), ("who", "O")]),
        {"a": np.array([None])},
    ]
    for state in objects:
        with pytest.raises(TypeError, match=r"state.* must be an array of numbers, not of Python objects"):
            tw.rollback.Rollback(None, 2, players=1, me=0, state=state)
        with pytest.raises(TypeError, match="not of Python objects"):
            tw.rollback.SyncTest(2, players=1, state=state)


def test_what_a_save_or_load_raises_loses_nothing() -> None:
    world, broken = {"x": 0}, {"save": 0, "load": 0}

    def fail(what: str) -> None:
        broken[what] += 1
        if broken[what] == 2:
            raise KeyError(what)

    def save() -> dict[str, int]:
        fail("save")
        return dict(world)

    def load(saved: dict[str, int]) -> None:
        fail("load")
        world.update(saved)

    games: list[Any] = [
        tw.rollback.Rollback(None, 4, players=2, me=0, save=save, load=load),
        tw.rollback.Rollback(None, 4, players=2, me=1),
    ]
    raised = []
    for frame in range(60):
        now = frame / 60
        payloads = []
        for me, game in enumerate(games):
            if me == 1:
                for request in game.advance(frame // 3 % 16, now=now):
                    if isinstance(request, tw.rollback.Save):
                        request.state = 0
            else:
                requests = iter(game.advance(3, now=now))
                while True:
                    try:
                        request = next(requests, None)
                    except KeyError as error:
                        raised.append(error.args[0])
                        continue
                    if request is None:
                        break
                    assert isinstance(request, tw.rollback.Advance)
                    world["x"] = (world["x"] * 31 + sum(request.inputs)) % 65_521
            if frame % 4 == 0 and (payload := game.fill(1 - me, now=now)) is not None:
                payloads.append((1 - me, payload))
        for to, payload in payloads:
            assert games[to].read(1 - to, payload, now=now) is None
    assert raised == ["save", "load"]
    assert games[0].frame == 60


INTS = {
    "Rollback": ("check_every", "me"),
    "Timing": ("delay", "window", "rate"),
    "Spectator": ("frame", "buffer", "rate"),
    "SyncTest": ("players", "back"),
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in INTS.items() for name in names])
def test_wrong_numbers_are_named(kind: str, name: str) -> None:
    fixed: dict[str, dict[str, Any]] = {
        "Rollback": {"players": 2, "me": 0},
        "Spectator": {"players": 2},
        "SyncTest": {"players": 2},
    }
    call = getattr(tw.rollback, kind)
    first: tuple[Any, ...] = {"SyncTest": (2,), "Timing": ()}.get(kind, (None, 2))
    values: list[Any] = ["x", 1.5, [], True]
    for value in values:
        with pytest.raises(TypeError, match=rf"^{name} must be an int( or None)?(, not |: )"):
            call(*first, **{**fixed.get(kind, {}), name: value})
    for value in (-1, 10**30):
        with pytest.raises(ValueError, match=rf"^{name} must be .* not {value}\b"):
            call(*first, **{**fixed.get(kind, {}), name: value})


def test_other_wrong_arguments_of_rollback_are_named() -> None:
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"players": "x"}, TypeError, "players"),
        ({"players": 1.5}, TypeError, "players must be an int or numbers of players"),
        ({"players": ["a"]}, TypeError, "players"),
        ({"inputs": 10**40}, ValueError, "inputs must be 1 to 64"),
        ({"save": 1, "load": print}, TypeError, "save must be callable or None, not int"),
        ({"save": print, "load": 2}, TypeError, "load must be callable or None, not int"),
        ({"save": print, "load": print, "check": 3}, TypeError, "check must be callable or None, not int"),
        ({"state": {1: bytearray(2)}}, TypeError, "state must have keys of str, not int"),
    ]
    for given, kind, sentence in cases:
        inputs = given.pop("inputs", 2)
        with pytest.raises(kind, match=sentence):
            tw.rollback.Rollback(None, inputs, **{"players": 1, "me": 0, **given})


def test_wrong_arguments_of_lockstep_are_named(tmp_path: Path) -> None:
    match = Match(lambda _, started: started, 1)
    match.run(10)
    match.peers[0].start(countdown=0.0)
    match.run(20)
    make: Any = Lockstep
    peer, started = match.peers[0], match.games[0]
    pace: Any = tw.lockstep.Pace
    recording: Any = functools.partial(tw.lockstep.RecordingFile, "match.twrec")
    numbers = [(pace, name) for name in ("steps", "delay", "max_steps", "max_delay")]
    for settings, name in [*numbers, (recording, "snapshot_every")]:
        with pytest.raises(TypeError, match=rf"^{name} must be an int( or None)?(, 0 to 1000000)?, not str"):
            settings(**{name: "x"})
        for value in (-1, 300_000_000):
            with pytest.raises(ValueError, match=rf"^{name} must be .* not {value}\b"):
                settings(**{name: value})
    wrong = [object()]
    for settings, name in (
        *((pace, name) for name in ("step", "adapt")),
        (recording, "about"),
        (tw.lockstep.RecordingFile, "path"),
        *((tw.lockstep.Saving, name) for name in ("save", "load")),
    ):
        with pytest.raises(TypeError, match=rf"^{name} must be "):
            settings(**{name: wrong})
    for name in ("drop_after", "drop_odd", "objects", "pace", "saving", "recording"):
        with pytest.raises(TypeError, match=rf"^{name} must be "):
            make(peer, started, [Move], **{name: wrong})
    for name in ("peer", "started"):
        with pytest.raises(TypeError, match=f"^{name} must be a"):
            make(**{"peer": peer, "started": started, "commands": [Move], name: "x"})
    for wrong in ("x", 3, [3]):
        with pytest.raises(TypeError, match="^commands"):
            make(peer, started, wrong)
    file = tmp_path / "match"
    with pytest.raises(TypeError, match="about"):
        make(peer, started, [Move], recording=tw.lockstep.RecordingFile(file, about="x"))  # type: ignore[arg-type]
    assert not file.exists()
    game: Any = make(peer, started, [Move], saving=tw.lockstep.Saving(bytes, lambda _: None))
    with pytest.raises(ValueError, match="player must be the number of another player"):
        game.vote([])
    with pytest.raises(TypeError, match="state must be bytes, not str"):
        game.load_state("x" * 40)
    with pytest.raises(TypeError, match="turn must be a Turn, not NoneType"):
        game.check(None)


def forged(*records: bytes, names: bytes = b"0=ann") -> bytes:
    coded = tw.Protocol(0, [Move])
    return _core.recording_settings(7, coded.hash, 33_000, 3, names, b"") + b"".join(records)


def turn(number: int) -> bytes:
    return _core.recording_turn((number, 3, 2, 10, False, 3, 0, [], 0), (9, 10))


def test_forged_recordings_are_read_or_refused() -> None:
    recording: Any = Recording.from_bytes(forged(turn(0), names=b"9" * 6000 + b"=x\x000=ann"))
    assert recording.players == {0: "ann", 1: ""}
    with pytest.raises(RecordingError, match="forged"):
        Recording.from_bytes(forged(turn(0), _core.recording_snapshot(0, bytes(32), b"")))
    for number in (-99, -1, 1, 99):
        other = Turn(number, 3, 2, 100, frozenset(), frozenset(), [], tw.lockstep.Random(1))
        state = other.random.state
        with pytest.raises(ValueError, match=f"turn must be one of the recording's 1, not {number}"):
            recording.check(other, [], {})
        assert other.random.state == state
    with pytest.raises(TypeError, match="data must be bytes"):
        Recording.from_bytes("x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="other must be a Recording"):
        recording.first_difference(3)


@pytest.mark.parametrize("leaver", [0, 2])
def test_a_match_goes_on_for_long_after_someone_left(leaver: int) -> None:
    match = Match(lockstep)
    match.run(180)
    match.peers[0].start(countdown=0.5)
    match.run(120)
    match.peers[leaver].close()
    # Turns are sent in 8 bits: more than twice that many.
    match.run(60 * 60)
    stay = [number for number in range(4) if number != leaver]
    assert not match.violations()
    assert min(match.games[number].turn for number in stay) > 550
    for number in stay:
        dropped = [event for event in match.games[number].events() if isinstance(event, Dropped)]
        assert len(dropped) == 1, dropped


def test_who_is_frozen_for_long_breaks_no_match() -> None:
    match = Match(lambda peer, started: Lockstep(peer, started, [Move], drop_after=2))
    match.run(180)
    match.peers[0].start(countdown=0.5)
    match.run(220)
    match.silent = {0}
    match.run(60 * 20)
    match.silent = set()
    match.run(60 * 14)
    assert match.peers[0].ended is tw.peers.LeaveReason.MINORITY
    assert [match.peers[number].ended for number in (1, 2, 3)] == [None] * 3
    assert not match.violations()
    assert min(match.games[number].turn for number in (1, 2, 3)) > 280
