"""The strategy sample: four bots on a bad virtual network, and their match once more."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import tickwire as tw
from tickwire.lockstep import Dropped, Joined, PaceChanged, Turn
from tickwire.samples.rts import __main__ as rts
from tickwire.samples.rts.messages import (
    COMMANDS,
    PROTOCOL,
    Attack,
    Build,
    Command,
    Gather,
    Kind,
    Move,
    Train,
)
from tickwire.samples.rts.player import Player
from tickwire.samples.rts.rules import FIELDS, IDLE, MOVING, SPACE, Battlefield, Thing


def turn(*commands: tuple[int, Command], number: int = 1, left: frozenset[int] = frozenset()) -> Turn:
    return Turn(number, 3, 2, 100, frozenset({0, 1}), left, list(commands), tw.lockstep.Random(number))


def test_units_on_one_spot_make_room() -> None:
    world = Battlefield([0, 1], seed=1)
    soldiers = [world._add(0, Kind.SOLDIER, 2000, 2000) for _ in range(24)]
    for number in range(60):
        world.step(turn(number=number))
    assert len({(it.x // SPACE, it.y // SPACE) for it in soldiers}) == len(soldiers)
    assert all(abs(it.x - 2000) < 10 * SPACE and abs(it.y - 2000) < 10 * SPACE for it in soldiers)


def test_bots_play_one_match_and_it_plays_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "match.twrec"
    players = rts.match(1.5, seed=4, record=path)
    turns = [player.lockstep.turn for player in players if player.lockstep is not None]
    assert min(turns) > 850
    assert max(turns) - min(turns) <= 8
    assert all(isinstance(event, PaceChanged | Dropped) for player in players for event in player.events)
    assert all(player.world is not None and player.world.of(1, Kind.SOLDIER) for player in players)
    world, count, differ = rts.replay(path)
    assert (count, differ) == (turns[0] + 3, 0)
    host = players[0].world
    assert host is not None
    assert world.save() == host.save()
    # From a snapshot as from the beginning.
    recording = tw.lockstep.Recording.read(path)
    start = recording.seek(700)
    assert start is not None
    assert start.turn == 600
    again = Battlefield(recording.players, 0)
    again.load(start.state)
    for each in recording.turns(COMMANDS, start):
        again.step(each)
        assert recording.check(each, again.objects(), FIELDS)
    assert again.save() == host.save()
    assert rts.main(["replay", str(path)]) == 0
    assert " turns in " in capsys.readouterr().out
    path.write_bytes(path.read_bytes()[:-1])
    assert rts.main(["replay", str(path)]) == 2
    assert "truncated" in capsys.readouterr().err


def test_a_player_joins_the_running_match_by_its_code(tmp_path: Path) -> None:
    conditions = tw.Conditions(latency=0.06, jitter=0.02, loss=0.03)
    network = tw.testing.SimulatedNetwork(conditions=conditions, seed=2)
    rendezvous = tw.peers.RendezvousServer("10.0.9.9:9", network=network)
    common: dict[str, Any] = {
        "network": network,
        "rendezvous": tw.peers.Rendezvous("10.0.9.9:9", title="rts"),
    }
    host = tw.peers.Peer.host(
        PROTOCOL,
        name="host",
        players=4,
        tuning=tw.Tuning(bind="10.0.0.1:7"),
        **common,
    )
    players = [Player(host, bot=True)]

    def run(seconds: float) -> None:
        for _ in range(round(seconds * 60)):
            network.advance(1 / 60)
            rendezvous.pump()
            for player in players:
                player.tick()

    def join(number: int, **settings: Any) -> Player:
        assert host.code is not None
        peer = tw.peers.Peer.join(
            host.code,
            PROTOCOL,
            name=f"bot {number}",
            tuning=tw.Tuning(bind=f"10.0.0.{number + 1}:7"),
            **common,
        )
        players.append(Player(peer, bot=True, **settings))
        return players[-1]

    run(1)
    join(1)
    run(4)
    host.start(countdown=1.0, seed=5, late_joining=True)
    run(20)
    path = tmp_path / "late.twrec"
    late = join(2, record=path)
    run(20)
    assert late.lockstep is not None
    assert not late.lockstep.joining, late.status()
    assert late.lockstep.players == {0, 1, 2}
    assert late.world is not None
    run(20)
    # It has its own corner, and what it built is in all worlds.
    assert all(player.world is not None and len(player.world.of(2, *Kind)) > 5 for player in players)
    assert all(isinstance(event, PaceChanged | Joined) for player in players for event in player.events)
    for player in players:
        player.close()
    rendezvous.close()
    world, turns, differ = rts.replay(path)
    assert turns > 200
    assert differ == 0
    assert world.save() == late.world.save()


@pytest.fixture
def world() -> Battlefield:
    """A base and four workers each, who rest."""
    world = Battlefield([0, 1], seed=1)
    for thing in list(world.things.values()):
        thing.order = IDLE
        if thing.kind in (Kind.BARRACKS, Kind.SOLDIER):
            del world.things[thing.id]
    return world


def test_everybody_works_from_the_first_turn_on() -> None:
    world = Battlefield([0, 1], seed=1)
    gold = world.purses[0].gold
    for number in range(90):
        world.step(turn(number=number))
    assert world.purses[0].gold > gold
    assert len(world.of(0, Kind.SOLDIER)) >= 3


def test_nobody_commands_what_belongs_to_others(world: Battlefield) -> None:
    mine, theirs = world.of(0, Kind.WORKER)[0], world.of(1, Kind.WORKER)[0]
    before = copy.deepcopy(world.things)
    (base,) = world.of(1, Kind.BASE)
    commands: list[Command] = [
        Move([theirs.id], 5, 5),
        Gather([theirs.id], 1),
        Gather([mine.id], base.id),
        Attack([mine.id], base.id),
        Attack([mine.id], 60_000),
        Build(theirs.id),
        Build(mine.id, Kind.SOLDIER),
        Train(base.id),
        Train(mine.id),
    ]
    for command in commands:
        world.step(turn((0, command)))
    assert world.things == before
    assert world.purses[0].gold == world.purses[1].gold == 200
    world.step(turn((0, Move([mine.id], 5, 5))))
    assert world.things[mine.id].order == MOVING


def test_workers_bring_gold_and_barracks_train(world: Battlefield) -> None:
    worker = world.of(0, Kind.WORKER)[0]
    (base,) = world.of(0, Kind.BASE)
    mine = next(thing for thing in world.things.values() if thing.kind == Kind.MINE)
    mine.x, mine.y = base.x + 200, base.y
    world.step(turn((0, Gather([worker.id], mine.id)), (0, Build(worker.id))))
    assert world.purses[0].gold == 50
    (barracks,) = world.of(0, Kind.BARRACKS)
    for number in range(200):
        world.step(turn((0, Train(barracks.id)), number=number))
    assert mine.left < 20_000
    assert world.of(0, Kind.SOLDIER)


def test_soldiers_fight_and_who_left_is_gone(world: Battlefield) -> None:
    target = world.of(1, Kind.WORKER)[0]
    soldier = Thing(900, 0, Kind.SOLDIER, target.x + 100, target.y, 120)
    world.things[900] = soldier
    for number in range(100):
        world.step(turn(number=number))
    # The nearest one first.
    assert world.purses[1].lost >= 1
    assert len(world.of(1, *Kind)) < 5
    world.step(turn(left=frozenset({1})))
    assert world.alive == [0]


def test_a_saved_world_that_is_cut_is_refused(world: Battlefield) -> None:
    state = world.save()
    other = Battlefield([0, 1], seed=2)
    other.load(state)
    assert other.save() == state
    for end in range(len(state)):
        with pytest.raises(ValueError, match="no saved world"):
            other.load(state[:end])
    assert other.save() == state
