"""Mistakes of newcomers who write their first game of peers: each has an error in words."""

from __future__ import annotations

import array
import logging
from collections.abc import Callable
from typing import Annotated, Any, assert_type

import numpy as np
import pytest
import tickwire as tw
from tickwire.lockstep import Dropped


@tw.message
class Chat:
    text: Annotated[str, tw.text(100)]


@tw.message
class Go:
    unit: tw.u8


@tw.message
class Other:
    unit: tw.u16


PROTOCOL = tw.Protocol(7, [Chat], peers=True)
BAD = tw.Conditions(latency=0.05, jitter=0.01, loss=0.05)

Make = Callable[[tw.peers.Peer[Chat], tw.peers.Started], Any]


class Match:
    """Peers who make their games at the start, each its own way."""

    def __init__(self, *makes: Make) -> None:
        self.network = tw.testing.SimulatedNetwork(conditions=BAD, seed=4)
        self.peers: list[tw.peers.Peer[Chat]] = []
        self.games: dict[int, Any] = {}
        self.events: list[list[Any]] = [[] for _ in makes]
        for number in range(len(makes)):
            bind = f"10.0.0.{number + 1}:7"
            self.peers.append(
                tw.peers.Peer.join(
                    "10.0.0.1:7",
                    PROTOCOL,
                    name=f"p{number}",
                    tuning=tw.Tuning(bind=bind),
                    network=self.network,
                )
                if number
                else tw.peers.Peer.host(
                    PROTOCOL, name="p0", players=4, tuning=tw.Tuning(bind=bind), network=self.network
                )
            )
            self.run(2)  # one after the other, so that numbers are in order
        self.makes = makes
        assert self.peers[0].start(countdown=1.0, seed=1)

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 60)):
            self.network.advance(1 / 60)
            for number, peer in enumerate(self.peers):
                if not peer.closed:
                    self.tick(number, peer)

    def tick(self, number: int, peer: tw.peers.Peer[Chat]) -> None:
        with peer.tick() as inbox:
            for event in inbox.events:
                self.events[number].append(event)
                if isinstance(event, tw.peers.Started):
                    self.games[number] = self.makes[number](peer, event)
            game = self.games.get(number)
            if isinstance(game, tw.lockstep.Lockstep):
                for turn in game.turns():
                    game.check(turn)
            elif game is not None:
                for _ in game.advance(0):
                    pass
            if game is not None:
                self.events[number] += game.events()

    def of(self, number: int, kind: type) -> list[Any]:
        return [event for event in self.events[number] if isinstance(event, kind)]


def lockstep(commands: type = Go, **settings: Any) -> Make:
    return lambda peer, started: tw.lockstep.Lockstep(peer, started, [commands], **settings)


def rollback(bits: int = 2, **settings: Any) -> Make:
    def nothing(_: object) -> None:
        pass

    return lambda peer, _: tw.rollback.Rollback(peer, bits, save=int, load=nothing, check=int, **settings)


def of_state(dtype: str, count: int = 8) -> Make:
    return lambda peer, _: tw.rollback.Rollback(peer, 2, state={"x": np.zeros(count, dtype)})


@pytest.mark.parametrize(
    ("here", "there", "sentence"),
    [
        (
            lockstep(),
            lockstep(pace=tw.lockstep.Pace(step=0.05)),
            "lockstep has other settings than the one here: step",
        ),
        (
            lockstep(),
            lockstep(pace=tw.lockstep.Pace(steps=5)),
            "lockstep has other settings than the one here: steps",
        ),
        (
            lockstep(),
            lockstep(pace=tw.lockstep.Pace(delay=4)),
            "lockstep has other settings than the one here: delay",
        ),
        (lockstep(), lockstep(Other, pace=tw.lockstep.Pace(step=0.05)), "than the one here: step, commands"),
        (lockstep(), lockstep(objects={Chat: ["text"]}), "than the one here: objects"),
        (rollback(), rollback(3), "rollback has other settings than the one here: inputs"),
        (
            rollback(),
            rollback(timing=tw.rollback.Timing(rate=30), check_every=7),
            "than the one here: check_every, rate",
        ),
        (rollback(), rollback(players=3), "rollback has other settings than the one here: players"),
        (of_state("i4"), of_state("f4"), "rollback has other settings than the one here: state"),
        (of_state("i4"), of_state("i4", 9), "rollback has other settings than the one here: state"),
        (lockstep(), rollback(), "it plays another kind of game than"),
    ],
)
def test_settings_that_differ_are_named(
    here: Make, there: Make, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    match = Match(here, there)
    with caplog.at_level(logging.WARNING, "tickwire"):
        match.run(3)
    # One side finds it first, and the other one too unless the end was quicker.
    lines = [record.message for record in caplog.records if "broke the rules" in record.message]
    assert 1 <= len(lines) <= 2
    assert all(sentence in line for line in lines)
    assert any(match.of(number, tw.peers.PlayerLeft) for number in (0, 1))


def test_what_each_may_choose_is_no_difference(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tickwire"):
        for here, there in [
            (rollback(), rollback(timing=tw.rollback.Timing(delay=4, window=6))),
            (lockstep(), lockstep(pace=tw.lockstep.Pace(adapt=False, max_delay=9), drop_odd=True)),
        ]:
            match = Match(here, there)
            match.run(6)
            assert not any(match.of(number, tw.peers.PlayerLeft) for number in (0, 1))
    assert not caplog.records


def test_long_after_a_player_left_the_others_still_play() -> None:
    """The 8 bits of a turn in which somebody left mean another one 128 turns later."""
    match = Match(lockstep(), lockstep(), lockstep())
    match.run(10)
    match.peers[2].close()
    match.run(45)
    turns = [match.games[number].turn for number in (0, 1)]
    assert min(turns) > 400
    assert match.games[0].players == match.games[1].players == {0, 1}
    assert [len(match.of(number, Dropped)) for number in (0, 1)] == [1, 1]
    assert [event.reason for event in match.of(0, tw.peers.PlayerLeft)] == [tw.peers.LeaveReason.LEFT]


def test_a_host_knows_itself_in_its_first_tick() -> None:
    network = tw.testing.SimulatedNetwork()
    host = tw.peers.Peer.host(PROTOCOL, name="ann", tuning=tw.Tuning(bind="10.0.0.1:7"), network=network)
    with host.tick() as inbox:
        assert host.me is not None
        assert host.me.name == "ann"
        assert host.master is host.me
        assert host.players == [host.me]
        assert [type(event) for event in inbox.events] == [tw.peers.PlayerJoined]


def test_a_loop_ticks_a_peer_until_its_game_is_over() -> None:
    network = tw.testing.SimulatedNetwork(seed=1)
    peer = tw.peers.Peer.join("10.0.0.9:7", PROTOCOL, tuning=tw.Tuning(bind="10.0.0.1:7"), network=network)
    with tw.run(peer) as ticks:
        told = [event for _, inbox in ticks for event in inbox.events]
    assert [type(event) for event in told] == [tw.peers.GameEnded]
    assert peer.closed
    host = tw.peers.Peer.host(PROTOCOL, tuning=tw.Tuning(bind="10.0.0.2:7"), network=network)
    with tw.run(host, 30, linger=0.5) as ticks:
        for _, inbox in ticks:
            assert inbox.events
            break
    assert host.closed


def test_a_loop_says_what_it_takes() -> None:
    network = tw.testing.SimulatedNetwork()
    peer = tw.peers.Peer.host(PROTOCOL, tuning=tw.Tuning(bind="10.0.0.2:7"), network=network)
    with pytest.raises(
        ValueError, match=r"^reason must be None with a Peer: its players learn a LeaveReason"
    ):
        tw.run(peer, reason="bye")
    with pytest.raises(TypeError, match=r"a Server, a Client or a Peer, not int"):
        tw.run(3)  # type: ignore[arg-type]
    assert not peer.closed


def test_type_checkers_know_what_is_to_be_done() -> None:
    """Of a state that is saved for the game only frames are to be run: mypy reads this file."""
    state = array.array("i", [0])
    given = tw.rollback.Rollback(None, 2, players=1, me=0, state=state)
    for advance in given.advance(1):
        assert_type(advance, tw.rollback.Advance[int])
        state[0] += advance.inputs[0]
    assert state[0] == 1 or given.frame == 1
    named = tw.rollback.Rollback(None, Go, players=1, me=0, save=int, load=print)
    for of_class in named.advance(Go(1)):
        assert_type(of_class.inputs, tuple[Go, ...])
    manual = tw.rollback.Rollback(None, 2, players=1, me=0)
    for request in manual.advance(1):
        assert_type(request, tw.rollback.Save | tw.rollback.Load | tw.rollback.Advance[int])
    for alone in tw.rollback.SyncTest(2, players=1, state=state).advance([1]):
        assert_type(alone, tw.rollback.Advance[int])
