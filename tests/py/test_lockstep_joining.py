"""Newcomers of a running lockstep game, healed worlds, and arrays that are compared."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw
from tickwire.lockstep import DesyncReport, Diverged, Healed, Joined, JoinRefused, Turn
from tickwire.lockstep._reports import Objects
from tickwire.lockstep._worlds import LABEL, Worlds


@tw.message
class Move:
    unit: tw.u8
    x: Annotated[int, tw.ranged(0, 1000)] = 0


COMMANDS = [Move]


@dataclasses.dataclass(slots=True)
class Unit:
    id: int
    x: int = 0
    luck: int = 0


FIELDS = {Unit: ("x", "luck")}


class Game:
    """Whoever joins gets a unit, as everybody sees it."""

    def __init__(self, players: list[int], ballast: int = 0) -> None:
        self.units = {player: Unit(player) for player in players}
        self.ballast = bytes(ballast)
        self.heights = np.zeros(100, np.int32)

    def step(self, turn: Turn) -> None:
        for player in sorted(turn.joined):
            self.units[player] = Unit(player)
        for player in turn.left:
            del self.units[player]
        for player, command in turn.commands:
            self.units[player].x += command.x
        for _ in range(turn.steps):
            self.units[turn.random.choice(sorted(self.units))].luck += 1
            self.heights[turn.random.below(100)] += 1

    def arrays(self) -> dict[str, Any]:
        return {"heights": self.heights}

    def save(self) -> bytes:
        units = b"".join(struct.pack("<Bii", it.id, it.x, it.luck) for it in self.units.values())
        return struct.pack("<B", len(self.units)) + units + self.heights.tobytes() + self.ballast

    def load(self, state: bytes) -> None:
        end = 1 + 9 * state[0]
        self.units = {it[0]: Unit(*it) for it in struct.iter_unpack("<Bii", state[1:end])}
        self.heights[:] = np.frombuffer(state[end : end + 400], np.int32)
        self.ballast = state[end + 400 :]


class Match:
    def __init__(
        self, count: int, places: int, *, folder: Path | None = None, ballast: int = 0, **settings: Any
    ):
        conditions = tw.Conditions(latency=0.08, jitter=0.02, loss=0.05)
        self.network = tw.testing.SimulatedNetwork(conditions=conditions, seed=3)
        chunks = [] if settings.pop("without_chunks", False) else [tw.chunks()]
        self.protocol = tw.Protocol(7, [Move], channels=[tw.reliable_ordered(), *chunks], peers=True)
        self.settings, self.folder, self.ballast = settings, folder, ballast
        self.peers: list[Any] = []
        self.games: dict[int, Game] = {}
        self.locksteps: dict[int, tw.lockstep.Lockstep] = {}
        self.crcs: dict[int, dict[int, int]] = {}
        self.events: dict[int, list[Any]] = {}
        self.started: list[tw.peers.Started] = []
        self.luck = tw.lockstep.Random(5)
        host = tw.peers.Peer.host(
            self.protocol,
            name="p0",
            players=places,
            tuning=tw.Tuning(bind="10.0.0.1:7"),
            network=self.network,
        )
        self.add(host)
        for _ in range(1, count):
            self.join()
        self.run(3)
        host.start(countdown=1.0, seed=9, late_joining=True)
        self.run(4)
        assert len(self.locksteps) == count

    def add(self, peer: Any) -> int:
        self.peers.append(peer)
        i = len(self.peers) - 1
        self.crcs[i], self.events[i] = {}, []
        return i

    def join(self, contact: str = "10.0.0.1:7") -> int:
        i = len(self.peers)
        bind = f"10.0.0.{i + 1}:7"
        return self.add(
            tw.peers.Peer.join(
                contact, self.protocol, name=f"p{i}", tuning=tw.Tuning(bind=bind), network=self.network
            )
        )

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 60)):
            self.network.advance(1 / 60)
            for i, peer in enumerate(self.peers):
                if not peer.closed:
                    self.tick(i, peer)

    def tick(self, i: int, peer: Any) -> None:
        with peer.tick() as inbox:
            assert not inbox.chunks
            for event in inbox.events:
                if isinstance(event, tw.peers.Started):
                    self.started.append(event)
                    game = self.games[i] = Game(list(event.players), self.ballast)
                    settings = dict(self.settings)
                    worlds = {name: settings.pop(name) for name in ("joining", "heal") if name in settings}
                    hooks: Any = {"saving": tw.lockstep.Saving(game.save, game.load, **worlds)}
                    if settings.pop("with_arrays", False):
                        hooks["arrays"] = game.arrays
                    if self.folder is not None:
                        hooks["recording"] = tw.lockstep.RecordingFile(self.folder / f"{i}.twrec")
                    self.locksteps[i] = tw.lockstep.Lockstep(
                        peer, event, COMMANDS, objects=FIELDS, **hooks | settings
                    )
            if i not in self.locksteps:
                return
            lockstep, game = self.locksteps[i], self.games[i]
            if not lockstep.joining and self.luck.below(20) == 0:
                lockstep.command(Move(1, self.luck.below(1000)))
            for turn in lockstep.turns():
                game.step(turn)
                crc = lockstep.check(turn, game.units.values())
                if crc is not None:
                    self.crcs[i][turn.number] = crc
            self.events[i] += lockstep.events()

    def is_one(self, *players: int) -> bool:
        turns = min(self.locksteps[i].turn for i in players)
        begin = max(min(self.crcs[i]) for i in players)
        assert turns > begin + 20
        return all(len({self.crcs[i][turn] for i in players}) == 1 for turn in range(begin, turns))


def test_a_newcomer_joins_a_running_game_and_its_recording_plays(tmp_path: Path) -> None:
    match = Match(3, 4, folder=tmp_path, ballast=300_000)
    match.run(5)
    new = match.join()
    match.run(12)
    lockstep = match.locksteps[new]
    assert not lockstep.joining
    assert [lockstep.players for lockstep in match.locksteps.values()] == [{0, 1, 2, 3}] * 4
    (joined,) = (event for event in match.events[0] if isinstance(event, Joined))
    assert joined in match.events[new]
    number = match.peers[new].me.number
    assert joined.player == number
    match.run(3)
    assert match.is_one(0, 1, 2, new)
    assert all(game.units[number].x > 0 for game in match.games.values())
    for each in match.locksteps.values():
        each.close()
    # A whole recording and the newcomer's play to the same world.
    whole, part = (tw.lockstep.Recording.read(tmp_path / f"{i}.twrec") for i in (0, new))
    assert whole.start is None
    assert part.start is not None
    for recording in (whole, part):
        game = Game([0, 1, 2])
        if recording.start is not None:
            game.load(recording.start.state)
        for turn in recording.turns(COMMANDS):
            game.step(turn)
            assert recording.check(turn, game.units.values(), FIELDS)
            assert turn.joined == ({number} if turn.number == joined.turn else set())
    found = whole.first_difference(part)
    assert found is None or found.what == "end"


def test_worlds_that_nobody_asked_for_take_no_others_place() -> None:
    came = [(1, b"junk"), (0, b"asked"), (1, b"junk"), (1, b"junk")]

    class Core:
        def take_state(self, _: Any) -> tuple[int, bytes] | None:
            return came.pop(0) if came else None

        def expects(self, _: int, data: bytes) -> tuple[int, int] | None:
            return (5, 0) if data == b"asked" else None

    core: Any = Core()
    worlds = Worlds(core, core, tw.lockstep.Random(1), None, lambda _: None)
    taken = worlds.take()
    assert taken is not None
    assert taken[0] == 5


def test_a_file_of_the_games_that_is_offered_as_a_world_stays(tmp_path: Path) -> None:
    match = Match(2, 3)
    match.run(1)
    bind = "10.0.0.3:7"
    peer = tw.peers.Peer.join(
        "10.0.0.1:7",
        match.protocol,
        name="p2",
        tuning=tw.Tuning(bind=bind),
        network=match.network,
        transfers=tw.transfer.Transfers(directory=tmp_path),
    )
    new = match.add(peer)
    match.run(3)
    (to,) = [player for player in match.peers[1].players if player.number == 2]
    map_of_the_game = tw.transfer.Chunk(b"a map" * 1000)
    # Received once as what it is; then somebody offers the same bytes as a world.
    transfer = match.peers[1].send_chunk(to, map_of_the_game, label="map")
    for _ in range(120):
        match.network.advance(1 / 60)
        for each in match.peers:
            with each.tick():
                pass
    assert transfer.done
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    match.peers[1].send_chunk(to, map_of_the_game, label=f"{LABEL}{to.number}")
    match.run(8)
    assert new in match.locksteps
    assert all(path.exists() for path in files)


def test_a_world_waits_until_the_game_knows_to_whom_it_goes() -> None:
    heads: list[int] = []

    class Core:
        def states_wanted(self) -> list[int]:
            return [3]

        def state_head(self, _: float, player: int) -> bytes:
            heads.append(player)
            return b""

    class Stranger:
        time, players = 1.0, ()

    worlds: Any = Worlds(Stranger(), Core(), tw.lockstep.Random(1), lambda: b"", None)  # type: ignore[arg-type]
    worlds.serve()
    assert heads == []


def test_two_newcomers_at_once_and_one_whose_number_is_given_again() -> None:
    match = Match(2, 3)
    # Numbers of those who were there at the start are nobody else's for some seconds.
    match.run(6)
    match.peers[1].close()
    match.run(1)
    first, second = match.join(), match.join()
    match.run(25)
    assert match.locksteps[0].players == {0, 1, 2}
    assert {match.peers[i].me.number for i in (0, first, second)} == {0, 1, 2}
    assert match.is_one(0, first, second)


def test_the_master_is_gone_while_a_newcomer_loads() -> None:
    match = Match(3, 4, ballast=1_000_000)
    match.run(2)
    new = match.join("10.0.0.2:7")
    match.run(3)
    assert match.locksteps[new].joining
    match.peers[0].close()
    match.run(25)
    assert not match.locksteps[new].joining
    assert match.locksteps[1].players == {1, 2, 3}
    assert match.is_one(1, 2, new)


def test_a_game_without_chunks_or_joining_says_why_nobody_gets_in() -> None:
    for settings, why in (
        ({"joining": False}, "lets nobody in"),
        ({"without_chunks": True}, r"tw.chunks\(\)"),
    ):
        match = Match(2, 3, **dict[str, Any](settings))
        new = match.join()
        match.run(4)
        (refused,) = match.events[new]
        assert isinstance(refused, JoinRefused)
        assert match.locksteps[new].joining
        with pytest.raises(AssertionError, match=why):
            raise AssertionError(refused.reason)
        match.locksteps[new].ask_again()
        match.run(4)
        assert len(match.events[new]) == 2
        assert match.locksteps[0].players == {0, 1}


def test_whoever_is_outvoted_is_healed() -> None:
    match = Match(3, 3, heal=True)
    match.run(2)
    match.games[1].units[2].luck ^= 1
    match.run(8)
    for i in range(3):
        assert [type(it) for it in match.events[i] if isinstance(it, Diverged | Healed)] == [Diverged, Healed]
    for crcs in match.crcs.values():
        crcs.clear()
    match.run(4)
    assert match.is_one(0, 1, 2)


def test_arrays_are_compared_by_name_and_element() -> None:
    match = Match(2, 2, with_arrays=True)
    match.run(2)
    match.games[1].heights[77] += 5
    match.run(4)
    (report,) = (event for event in match.events[0] if isinstance(event, DesyncReport))
    (difference,) = report.differences
    assert (difference.object, difference.id, difference.field) == ("arrays", 77, "heights")
    assert difference.mine is not None
    assert difference.theirs == difference.mine + 5
    assert f"  heights[77]: {difference.mine} here, {difference.theirs} there" in str(report)


@pytest.mark.parametrize(
    ("array", "error"),
    [
        (np.zeros(3, "M8[s]"), "arrays"),
        (np.zeros(3, np.float16), r"arrays\[.a.\] must be whole numbers"),
        (np.zeros(3, ">i4"), r"arrays\[.a.\] must be whole numbers"),
        (np.zeros(1_048_577, np.int8), "arrays must have at most 1048576 values"),
        ([1, 2], "memoryview|array"),
    ],
)
def test_arrays_that_cannot_be_compared_are_named(array: Any, error: str) -> None:
    core = tw._core.LockstepCore(0, 1, 0, start=0.0)
    assert core.poll_turn(1.0) is not None
    with pytest.raises((TypeError, ValueError), match=error):
        core.check(1.0, -2, 0, [], [("a", array)])
    assert core.check(1.0, -2, 0, [], [("a", np.zeros((2, 2), np.float32)), ("b", np.ones(40, bool))])


def test_snapshots_that_no_reader_takes_are_refused() -> None:
    with pytest.raises(ValueError, match="save must return at most 67108828 bytes"):
        tw._core.recording_snapshot(0, bytes([1] * 32), bytes(67_108_829))


def test_a_withheld_copy_names_who_withholds_it() -> None:
    cores = [tw._core.LockstepCore(me, 0b1111, 0, start=0.1) for me in range(3)]
    liar = tw._core.LockstepCore(2, 0b1111, 0, start=0.1)
    cores[2] = liar
    # The liar alone got what player 3 gave to some turns, and then 3 is gone.
    leaver = tw._core.LockstepCore(3, 0b1111, 0, start=0.1)
    now = 0.1

    def say(sender: Any, numbers: tuple[int, int], receiver: Any) -> None:
        data = sender.fill(now, numbers[1])
        if data is not None:
            assert receiver.read(now, numbers[0], data) is None

    for _ in range(100):
        now += 0.02
        for core in (*cores, leaver):
            core.poll_turn(now)
        say(leaver, (3, 2), liar)
        for i, one in enumerate(cores):
            for j, other in enumerate(cores):
                if i != j:
                    say(one, (i, j), other)
    for core in cores:
        core.note_left(now, 3)
    seen = set()
    voted = False
    for _ in range(400):
        now += 0.02
        for i, core in enumerate(cores):
            while core.poll_turn(now) is not None:
                pass
            if i == 2:
                continue
            waiting = core.waiting
            if waiting is not None:
                seen.add(waiting[1])
                if waiting[1] == 0b100 and now - waiting[2] > 1.0:
                    core.vote(now, 2, True)
                    voted = True
        # It says that it has the data, and never copies any: its payloads' copies are lost on the way.
        for i in (0, 1):
            say(cores[i], (i, 1 - i), cores[1 - i])
            say(cores[i], (i, 2), liar)
            data = liar.fill(now, i, 16)
            if data is not None:
                assert cores[i].read(now, 2, data) is None
    assert 0b100 in seen, seen
    assert voted
    assert [core.turn > 30 for core in cores[:2]] == [True, True]
    assert cores[0].players == cores[1].players == [0, 1]


def test_mistakes_with_joining_and_healing_are_named() -> None:
    match = Match(2, 3)

    def make(**settings: Any) -> tw.lockstep.Lockstep:
        return tw.lockstep.Lockstep(match.peers[0], match.started[0], COMMANDS, **settings)

    for settings, error in (
        ({"heal": True}, "heal must be False if save or load isn't given, not True"),
        ({"joining": True, "save": bytes}, "joining must be False if save or load isn't given"),
    ):
        with pytest.raises(ValueError, match=error):
            tw.lockstep.Saving(**dict[str, Any](settings))
    for settings, error in (
        ({"heal": 1}, "heal must be True or False, not int"),
        ({"joining": "yes"}, "joining must be True or False, not str"),
    ):
        with pytest.raises(TypeError, match=error):
            tw.lockstep.Saving(**dict[str, Any](settings))
    for settings, error in (
        ({"arrays": {}}, "arrays must be callable or None, not dict"),
        ({"saving": bytes}, "saving must be a Saving or None, not type"),
    ):
        with pytest.raises(TypeError, match=error):
            make(**settings)
    with pytest.raises(ValueError, match="steps must be 1 to 16, not 17"):
        tw.lockstep.Pace(steps=17)
    # Without load a newcomer can't play, and hears so at once.
    match.settings["saving"] = None
    match.join()
    with pytest.raises(ValueError, match="not of player 2, who came later: give saving="):
        match.run(4)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (None, "arrays must give a mapping of names to arrays, not NoneType"),
        ({"x": [1]}, r"arrays\['x'\] must be an array, not list"),
    ],
)
def test_what_arrays_gives_is_named_when_it_is_no_array(given: Any, error: str) -> None:
    with pytest.raises(TypeError, match=error):
        Objects({}, lambda: given).all_arrays()


@pytest.mark.parametrize("name", ["heal", "joining"])
def test_a_world_needs_a_channel_of_chunks(name: str) -> None:
    network = tw.testing.SimulatedNetwork()
    protocol = tw.Protocol(3, [Move], peers=True)
    peer = tw.peers.Peer.host(protocol, tuning=tw.Tuning(bind="10.0.0.1:7"), network=network)
    started = None
    assert peer.start(countdown=0)
    while started is None:
        network.advance(1 / 60)
        with peer.tick() as inbox:
            started = next((event for event in inbox.events if isinstance(event, tw.peers.Started)), None)
    saving = tw.lockstep.Saving(bytes, print, **{name: True})
    with pytest.raises(ValueError, match=f"{name} must be False if the protocol has no channel for chunks"):
        tw.lockstep.Lockstep(peer, started, COMMANDS, saving=saving)
