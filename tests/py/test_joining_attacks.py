"""Newcomers of a running lockstep game who are unlucky, or whose helpers and neighbours are hostile."""

from __future__ import annotations

from typing import Any

import pytest
import tickwire as tw
from test_lockstep_joining import Game, Match
from tickwire.lockstep import Joined, JoinRefused


class RoughMatch(Match):
    """Over a network as given; hooks may raise."""

    def __init__(self, seed: int, loss: float, count: int = 2, **settings: Any) -> None:
        made = tw.testing.SimulatedNetwork(
            conditions=tw.Conditions(latency=0.08, jitter=0.05, loss=loss), seed=seed
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tw.testing, "SimulatedNetwork", lambda **_: made)
            super().__init__(count, count + 2, **settings)
        self.raised: list[BaseException] = []

    def tick(self, i: int, peer: Any) -> None:
        try:
            super().tick(i, peer)
        except (TypeError, RuntimeError) as error:
            self.raised.append(error)


@pytest.mark.parametrize("seed", [0, 2, 7, 23])
def test_a_small_world_that_comes_before_the_word_of_it_is_loaded(seed: int) -> None:
    match = RoughMatch(seed, 0.15)
    new = match.join()
    match.run(20)
    assert not match.locksteps[new].joining


def test_worlds_that_nobody_asked_for_take_the_place_of_none() -> None:
    match = RoughMatch(4, 0.02, count=3, ballast=100_000)
    new = match.join()
    liar = match.peers[2]
    for _ in range(60 * 12):
        match.run(1 / 60)
        for player in liar.players:
            if player.number == 3 and new in match.locksteps and match.locksteps[new].joining:
                for _ in range(6):
                    try:
                        liar.send_chunk(
                            player, tw.transfer.Chunk(b"TWST\x02" + bytes(200)), label="tickwire.lockstep 3"
                        )
                    except tw.TickwireError:
                        break
    assert not match.locksteps[new].joining
    assert match.is_one(0, 1, new)


@pytest.mark.parametrize("returned", ["text", None, RuntimeError("no"), {}])
def test_a_save_that_fails_refuses_newcomers_and_stops_nobody(
    returned: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, fails = Game.save, [True]

    def save(self: Game) -> Any:
        if not fails:
            return good(self)
        if isinstance(returned, Exception):
            raise returned
        return returned

    monkeypatch.setattr(Game, "save", save)
    match = RoughMatch(3, 0.02)
    new = match.join()
    match.run(4)
    (refused,) = match.events[new]
    assert isinstance(refused, JoinRefused)
    assert len(match.raised) == 1
    if not isinstance(returned, Exception):
        assert str(match.raised[0]) == f"save must return bytes, not {type(returned).__name__}"
        with pytest.raises(TypeError, match="save must return bytes"):
            match.locksteps[0].state()
    before = match.locksteps[0].turn
    match.run(4)
    assert match.locksteps[0].turn > before + 30
    assert match.is_one(0, 1)
    # Another try succeeds, once the hook does.
    fails.clear()
    match.locksteps[new].ask_again()
    match.run(8)
    assert any(isinstance(event, Joined) for event in match.events[new])


def test_a_load_that_raises_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    load, failures = Game.load, [RuntimeError("no")]

    def fail(self: Game, state: bytes) -> None:
        if failures:
            raise failures.pop()
        load(self, state)

    monkeypatch.setattr(Game, "load", fail)
    match = RoughMatch(3, 0.02)
    new = match.join()
    match.run(4)
    assert [str(error) for error in match.raised] == ["no"]
    assert [type(event) for event in match.events[new]] == [JoinRefused]
    match.locksteps[new].ask_again()
    match.run(8)
    assert not match.locksteps[new].joining


def test_a_load_that_raises_while_healing_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    load, failures = Game.load, [RuntimeError("no"), RuntimeError("not now")]

    def fail(self: Game, state: bytes) -> None:
        if failures:
            raise failures.pop()
        load(self, state)

    monkeypatch.setattr(Game, "load", fail)
    match = RoughMatch(3, 0.02, count=3, heal=True)
    match.run(2)
    match.games[1].units[2].luck ^= 1
    match.run(12)
    assert len(match.raised) == 2
    for crcs in match.crcs.values():
        crcs.clear()
    match.run(4)
    assert match.is_one(0, 1, 2)


def test_whoever_comes_right_after_the_start_is_nobody_who_left() -> None:
    match = RoughMatch(4, 0.02, count=3)
    # Some two seconds after the start.
    gone = match.peers[1].me.number
    match.peers[1].close()
    match.run(0.5)
    new = match.join()
    match.run(15)
    assert match.peers[new].me.number == 3
    assert not match.locksteps[new].joining
    assert match.locksteps[new].players == match.locksteps[0].players == {0, 1, 2, 3} - {gone}
    assert match.is_one(0, 2, new)
    # Once nobody can be taken for another, the number is given again.
    again = match.join()
    match.run(20)
    assert match.peers[again].me.number == gone
    assert match.is_one(0, 2, new, again)
