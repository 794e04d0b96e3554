"""Lockstep on peers over a simulated network, its generator, recordings and reports."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw
from tickwire._cli import main
from tickwire.lockstep import DesyncReport, Diverged, Dropped, Excluded, PaceChanged, Turn


@tw.message
class Move:
    unit: tw.u16
    x: Annotated[int, tw.ranged(-1000, 1000)] = 0
    y: Annotated[int, tw.ranged(-1000, 1000)] = 0


@tw.message
class Cheer:
    text: Annotated[str, tw.text(20)] = ""


COMMANDS = [Move, Cheer]


@dataclasses.dataclass(slots=True)
class Unit:
    id: int
    x: int = 0
    y: int = 0
    luck: int = 0
    goal: tuple[int, int] = (0, 0)


FIELDS = {Unit: ("x", "y", "luck")}


class Game:
    """A world, the same for all: whole numbers only."""

    def __init__(self, units: int = 20) -> None:
        self.units = [Unit(number) for number in range(1, units + 1)]
        self.cheers: list[tuple[int, int, str]] = []

    def step(self, turn: Turn) -> None:
        for player, command in turn.commands:
            if isinstance(command, Move):
                self.units[command.unit % len(self.units)].goal = (command.x, command.y)
            else:
                self.cheers.append((turn.number, player, command.text))
        for _ in range(turn.steps):
            turn.random.choice(self.units).luck += 1
            for unit in self.units:
                unit.x += (unit.goal[0] > unit.x) - (unit.goal[0] < unit.x)
                unit.y += (unit.goal[1] > unit.y) - (unit.goal[1] < unit.y)

    def save(self) -> bytes:
        return b"".join(struct.pack("<5i", unit.x, unit.y, unit.luck, *unit.goal) for unit in self.units)

    def load(self, state: bytes) -> None:
        for unit, (x, y, luck, *goal) in zip(self.units, struct.iter_unpack("<5i", state), strict=True):
            unit.x, unit.y, unit.luck, unit.goal = x, y, luck, (goal[0], goal[1])


class Match:
    """Peers on a bad network who play in lockstep."""

    def __init__(
        self, count: int = 4, loss: float = 0.03, folder: Path | None = None, **settings: Any
    ) -> None:
        self.network = tw.testing.SimulatedNetwork(
            conditions=tw.Conditions(latency=0.05, jitter=0.01, loss=loss), seed=3
        )
        protocol = tw.Protocol(7, [Cheer], peers=True)
        self.peers = [
            tw.peers.Peer.host(
                protocol, name="p0", players=count, tuning=tw.Tuning(bind="10.0.0.1:7"), network=self.network
            )
        ]
        for i in range(1, count):
            self.peers.append(
                tw.peers.Peer.join(
                    "10.0.0.1:7",
                    protocol,
                    name=f"p{i}",
                    tuning=tw.Tuning(bind=f"10.0.0.{i + 1}:7"),
                    network=self.network,
                )
            )
        self.games: dict[int, Game] = {}
        self.locksteps: dict[int, tw.lockstep.Lockstep] = {}
        self.crcs: dict[int, dict[int, int]] = {i: {} for i in range(count)}
        self.events: dict[int, list[Any]] = {i: [] for i in range(count)}
        self.luck = tw.lockstep.Random(5)
        self.settings = settings
        self.folder = folder
        self.commanding = True
        self.run(3)
        # In the order of their numbers: who joined first is luck.
        self.peers.sort(key=lambda peer: peer.me.number if peer.me else 99)
        self.peers[0].start(countdown=1.0, seed=99)
        self.run(3)
        assert len(self.locksteps) == count

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 60)):
            self.network.advance(1 / 60)
            for i, peer in enumerate(self.peers):
                if not peer.closed:
                    self.tick(i, peer)

    def tick(self, i: int, peer: Any) -> None:
        with peer.tick() as inbox:
            for event in inbox.events:
                if isinstance(event, tw.peers.Started):
                    game = self.games[i] = Game()
                    recording = None
                    if self.folder is not None:
                        path = self.folder / f"{i}.twrec"
                        recording = tw.lockstep.RecordingFile(path, b"map 3", snapshot_every=50)
                    self.locksteps[i] = tw.lockstep.Lockstep(
                        peer,
                        event,
                        COMMANDS,
                        objects=FIELDS,
                        recording=recording,
                        saving=tw.lockstep.Saving(save=game.save, load=game.load),
                        **self.settings,
                    )
            if i not in self.locksteps:
                return
            lockstep, game = self.locksteps[i], self.games[i]
            if self.commanding and self.luck.below(20) == 0:
                x, y = self.luck.between(-1000, 1000), self.luck.between(-1000, 1000)
                lockstep.command(Move(self.luck.below(20), x, y))
            for turn in lockstep.turns():
                game.step(turn)
                crc = lockstep.check(turn, game.units)
                if crc is not None:
                    self.crcs[i][turn.number] = crc
            self.events[i] += lockstep.events()


def test_four_peers_run_the_same_turns() -> None:
    match = Match()
    match.locksteps[2].command(Cheer("hello"))
    match.run(20)
    turns = [lockstep.turn for lockstep in match.locksteps.values()]
    assert min(turns) > 190
    assert max(turns) - min(turns) <= 6
    common = range(-2, min(turns))
    assert all(match.crcs[i][turn] == match.crcs[0][turn] for i in range(4) for turn in common)
    assert all(game.cheers == match.games[0].cheers for game in match.games.values())
    ((_, player, text),) = match.games[0].cheers
    assert (player, text) == (2, "hello")
    stats = match.locksteps[1].stats
    assert stats["bytes_sent"] * 8 / 20 < 10_000
    assert {type(event) for events in match.events.values() for event in events} <= {PaceChanged}


def test_the_delay_says_who_is_waited_for_and_who_leaves_is_out() -> None:
    match = Match(3)
    match.run(2)
    match.peers[2].close()
    match.run(1)
    # It said goodbye: the others go on, all from the same turn on.
    match.run(4)
    dropped = [[event for event in match.events[i] if isinstance(event, Dropped)] for i in (0, 1)]
    assert dropped[0] == dropped[1]
    assert dropped[0][0].player == 2
    assert match.locksteps[0].players == {0, 1}
    turns = min(match.locksteps[i].turn for i in (0, 1))
    assert all(match.crcs[0][turn] == match.crcs[1][turn] for turn in range(-2, turns))
    assert turns > 60


def test_the_master_is_gone_and_the_others_go_on() -> None:
    match = Match(3)
    match.run(2)
    match.peers[0].close()
    match.run(8)
    assert match.locksteps[1].players == {1, 2}
    turns = min(match.locksteps[i].turn for i in (1, 2))
    assert turns > 80
    assert all(match.crcs[1][turn] == match.crcs[2][turn] for turn in range(-2, turns))


def test_a_changed_value_is_reported_by_name_and_healed() -> None:
    match = Match(3, loss=0.0)
    match.run(3)
    match.games[1].units[6].luck ^= 1
    changed = match.locksteps[1].turn
    match.run(4)
    (desync,) = (event for event in match.events[0] if isinstance(event, Diverged))
    assert (desync.turn, desync.right, desync.odd) == (changed + 1, {0, 2}, {1})
    (report,) = (event for event in match.events[0] if isinstance(event, DesyncReport))
    (difference,) = report.differences
    assert (report.player, difference.object, difference.id, difference.field) == (1, "Unit", 7, "luck")
    assert isinstance(difference.mine, int)
    assert isinstance(difference.theirs, int)
    assert difference.mine ^ difference.theirs == 1
    assert f"Unit 7.luck: {difference.mine} here" in str(report)
    # A player in the right gives its world, which has arrived some turns later.
    state = match.locksteps[0].state()
    match.run(0.5)
    match.locksteps[1].load_state(state)
    match.run(1)
    for lockstep in match.locksteps.values():
        lockstep.compare_again()
    for events in match.events.values():
        events.clear()
    match.run(5)
    assert not any(isinstance(event, Diverged) for events in match.events.values() for event in events)
    assert match.games[1].save() in (match.games[0].save(), match.games[2].save())


def test_whoever_is_odd_can_be_voted_out() -> None:
    match = Match(4, drop_odd=True)
    match.run(3)
    match.games[2].units[3].x += 1
    match.run(5)
    assert [match.locksteps[i].players for i in (0, 1, 3)] == [{0, 1, 3}] * 3
    assert any(isinstance(event, Excluded) for event in match.events[2])
    turns = min(match.locksteps[i].turn for i in (0, 1, 3))
    assert turns > 60
    assert len({match.crcs[i][turns] for i in (0, 1, 3)}) == 1


def test_who_is_waited_for_too_long_is_voted_out() -> None:
    match = Match(3, drop_after=1.0)
    match.run(2)
    silent = match.locksteps.pop(1)
    match.run(0.7)
    waiting = match.locksteps[0].waiting
    assert waiting is not None
    assert waiting.players == {1}
    assert 0.2 < waiting.seconds < 0.7
    match.run(5)
    assert silent.turn < match.locksteps[0].turn - 30
    assert match.locksteps[0].players == match.locksteps[2].players == {0, 2}


def test_commands_that_nobody_can_decode_are_left_out_by_all() -> None:
    match = Match(2)
    match.locksteps[1]._core.command(bytes([255] * 9))
    match.run(3)
    assert [lockstep.stats["bad_commands"] for lockstep in match.locksteps.values()] == [1, 1]
    turn = min(lockstep.turn for lockstep in match.locksteps.values())
    assert match.crcs[0][turn] == match.crcs[1][turn]


def test_pause_speed_and_progress() -> None:
    match = Match(2, loss=0.0)
    match.locksteps[1].pause()
    match.run(1)
    before = match.games[0].save()
    luck = match.games[0].units
    total = sum(unit.luck for unit in luck)
    match.run(1)
    assert sum(unit.luck for unit in luck) == total
    match.locksteps[0].resume()
    match.locksteps[0].set_speed(200)
    match.run(3)
    assert match.games[0].save() != before
    turn = match.locksteps[0].turn
    match.run(5)
    assert match.locksteps[0].turn - turn > 85
    assert 0 <= match.locksteps[0].progress <= 1


def test_a_recording_plays_again_from_any_snapshot(tmp_path: Path) -> None:
    match = Match(2, folder=tmp_path)
    match.run(20)
    for lockstep in match.locksteps.values():
        lockstep.close()
    first, second = (tw.lockstep.Recording.read(tmp_path / f"{i}.twrec") for i in range(2))
    assert first.players == {0: "p0", 1: "p1"}
    assert (first.seed, first.about, first.damage) == (99, b"map 3", None)
    assert first.seconds == pytest.approx(len(first) * 0.099, rel=0.5)
    for start in (None, first.seek(120)):
        game = Game()
        if start is not None:
            assert start.turn == 100
            game.load(start.state)
        count = 0
        for turn in first.turns(COMMANDS, start):
            game.step(turn)
            assert first.check(turn, game.units, FIELDS), turn
            count += 1
        assert count == len(first) - (0 if start is None else 103)
        assert game.save() == match.games[0].save()
    found = first.first_difference(second)
    assert found is None or found.what == "end"
    with pytest.raises(tw.errors.RecordingError, match="commands must be the classes"):
        list(first.turns([Move]))


def test_what_differs_between_recordings_is_named(tmp_path: Path) -> None:
    match = Match(2, folder=tmp_path)
    match.run(3)
    match.games[1].units[0].x += 1
    changed = match.locksteps[1].turn + 1
    match.run(3)
    for lockstep in match.locksteps.values():
        lockstep.close()
    first, second = (tw.lockstep.Recording.read(tmp_path / f"{i}.twrec") for i in range(2))
    found = first.first_difference(second)
    assert found is not None
    assert (found.turn, found.what) == (changed, "world")


def test_the_command_shows_and_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    match = Match(2, folder=tmp_path)
    match.commanding = False
    match.locksteps[1].command(Cheer("hello"))
    match.run(2)
    for lockstep in match.locksteps.values():
        lockstep.close()
    first, second = str(tmp_path / "0.twrec"), str(tmp_path / "1.twrec")
    assert main(["replay", first]) == 0
    said = capsys.readouterr().out
    assert "seed 99, players: 0 p0, 1 p1" in said
    assert "1: " in said
    assert main(["replay", first, "--commands", f"{__name__}:COMMANDS"]) == 0
    assert "1: Cheer(text='hello')" in capsys.readouterr().out
    assert main(["replay", first, second]) in (0, 1)
    assert "the same" in (said := capsys.readouterr().out) or "end" in said
    (tmp_path / "cut").write_bytes(Path(first).read_bytes()[:-1])
    assert main(["replay", str(tmp_path / "cut")]) == 2
    assert "truncated" in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "cut"), "--damaged", "--all"]) == 0
    assert "and no more: truncated" in capsys.readouterr().out


def test_recordings_that_are_cut_or_changed_are_refused_by_name(tmp_path: Path) -> None:
    match = Match(2, folder=tmp_path)
    match.run(2)
    for lockstep in match.locksteps.values():
        lockstep.close()
    data = (tmp_path / "0.twrec").read_bytes()
    with pytest.raises(tw.errors.RecordingError, match="truncated: the record at byte"):
        tw.lockstep.Recording.from_bytes(data[:-3])
    partial = tw.lockstep.Recording.from_bytes(data[:-3], damaged=True)
    assert len(partial) == len(tw.lockstep.Recording.from_bytes(data)) - 1
    assert partial.damage is not None
    changed = bytearray(data)
    changed[len(data) // 2] ^= 4
    with pytest.raises(tw.errors.RecordingError, match="damaged|truncated|forged"):
        tw.lockstep.Recording.from_bytes(bytes(changed))
    with pytest.raises(tw.errors.RecordingError, match="not a recording"):
        tw.lockstep.Recording.from_bytes(b"GIF89a")
    with pytest.raises(tw.errors.RecordingError, match="without settings"):
        tw.lockstep.Recording.from_bytes(data[:6])


def test_random_is_the_same_everywhere() -> None:
    random = tw.lockstep.Random(42)
    assert [random.bits() for _ in range(2)] == [1546998764402558742, 6990951692964543102]
    state = random.state
    drawn = [random.below(6) for _ in range(5)] + [random.between(-3, 3), random.unit()]
    again = tw.lockstep.Random.from_state(state)
    assert drawn == [again.below(6) for _ in range(5)] + [again.between(-3, 3), again.unit()]
    random.state = state
    copy = random.copy()
    assert random.bits(1) == copy.bits(1)
    items = list(range(10))
    random.shuffle(items)
    assert sorted(items) == list(range(10))
    assert items != list(range(10))
    assert random.choice("x") == "x"
    assert eval(repr(random), {"Random": tw.lockstep.Random}).bits() == random.bits()


def test_random_fills_arrays() -> None:
    dice = np.zeros(6000, np.uint8)
    tw.lockstep.Random(1).fill(dice, 6)
    assert np.bincount(dice, minlength=6).min() > 850
    assert dice.max() == 5
    one = tw.lockstep.Random(1)
    assert dice[:4].tolist() == [one.below(6) for _ in range(4)]
    floats = np.zeros((10, 3))
    tw.lockstep.Random(2).fill(floats)
    two = tw.lockstep.Random(2)
    assert floats.ravel().tolist() == [two.unit() for _ in range(30)]
    signed = np.zeros(100, np.int16)
    tw.lockstep.Random(3).fill(signed)
    assert signed.min() < 0 < signed.max()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: tw.lockstep.Random(-1), "seed must be 0 to"),
        (lambda: tw.lockstep.Random(1).below(0), "bound must be 1 to"),
        (lambda: tw.lockstep.Random(1).between(3, 2), "high must be 3 to"),
        (lambda: tw.lockstep.Random(1).bits(65), "count must be 1 to 64"),
        (lambda: tw.lockstep.Random.from_state(b"short"), "state must be the 32 bytes"),
        (lambda: tw.lockstep.Random(1).fill(np.zeros(3, np.uint8), 257), "bound must be 1 to 256"),
        (lambda: tw.lockstep.Random(1).fill(np.zeros(3), 2), "bound must be left out"),
    ],
)
def test_mistakes_with_random_are_named(call: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        call()


def test_mistakes_are_named() -> None:
    match = Match(2, loss=0.0)
    match.commanding = False
    lockstep = match.locksteps[0]
    turn = Turn(1, 3, 2, 100, frozenset(), frozenset(), [], lockstep.random)
    with pytest.raises(ValueError, match="turn must be the newest"):
        lockstep.check(turn, [])
    newest = dataclasses.replace(turn, number=lockstep.turn)
    with pytest.raises(ValueError, match="two objects of Unit have the id 1"):
        lockstep.check(newest, [Unit(1), Unit(1)])
    with pytest.raises(TypeError, match=r"Unit.x of object 1 must be a whole number"):
        lockstep.check(newest, [Unit(1, x={})])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="int isn't among the classes"):
        lockstep.check(newest, [3])
    with pytest.raises(ValueError, match="player must be the number of another"):
        lockstep.vote(0)
    with pytest.raises(ValueError, match="percent must be 10 to 640"):
        lockstep.set_speed(5)
    with pytest.raises(ValueError, match="state must be of a turn"):
        lockstep.load_state(struct.pack("<i", 10_000) + bytes(32))
    with pytest.raises(tw.errors.UnregisteredMessageError):
        lockstep.command(object())
