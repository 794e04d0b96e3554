"""Prediction: a client's own things run ahead, and are corrected only where the server saw them otherwise."""

from __future__ import annotations

import dataclasses
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import tickwire as tw
from tickwire.testing import connected_pair

sys.path.insert(0, str(Path(__file__).parents[2] / "benches" / "latency"))

import predicting


@dataclasses.dataclass
class Body:
    x: float = 0.0
    v: float = 0.0
    name: str = ""


def step(body: Body, push: float) -> Body:
    body.v += push
    body.x += body.v
    return body


def predicted(**settings: Any) -> tw.predict.Prediction[Body, float]:
    return tw.predict.Prediction(step, Body(), tolerance={"x": 0.01, "v": 0.01}, **settings)


def test_a_state_as_predicted_is_no_correction() -> None:
    mine, truth = predicted(), Body()
    for tick in range(100):
        mine.run(range(tick, tick + 1), 0.25)
        if tick >= 6:
            truth = step(truth, 0.25)
            assert not mine.correct(tick - 6, truth)
    assert mine.corrections == 0
    assert mine.state is not None
    assert mine.state.v == 25.0


def test_another_state_is_corrected_by_replaying_what_came_after() -> None:
    mine = predicted(smoothing=0.1)
    for tick in range(10):
        mine.run(range(tick, tick + 1), 1.0)
    before = mine.seen().x
    assert mine.correct(4, Body(x=100.0, v=0.0))
    assert mine.state == Body(x=100 + 1 + 2 + 3 + 4 + 5, v=5.0)
    assert mine.replayed == 5
    assert math.isclose(mine.seen().x, before), "nothing jumps"
    assert mine.seen(0.1).x == pytest.approx((before + mine.state.x) / 2)
    mine.seen(100.0)
    assert mine.seen().x == pytest.approx(mine.state.x)
    assert not mine.correct(4, Body()), "old news"
    assert not mine.correct(3, Body()), "older"


def test_a_teleport_is_seen_at_once() -> None:
    mine = predicted(snap=50.0)
    mine.run(range(3), 0.0)
    mine.correct(1, Body(x=100.0))
    assert mine.seen().x == 100.0


def test_replays_are_capped() -> None:
    mine = predicted(max_replay=4)
    for tick in range(10):
        mine.run(range(tick, tick + 1), 1.0)
    mine.correct(6, Body(x=50.0))
    assert (mine.replayed, mine.capped) == (3, 0)
    mine = predicted(max_replay=4)
    for tick in range(10):
        mine.run(range(tick, tick + 1), 1.0)
    assert mine.correct(2, Body(x=50.0))
    assert (mine.replayed, mine.capped) == (4, 1)
    assert mine.state is not None
    assert mine.state.v == 4.0


def test_a_server_ahead_of_the_prediction_is_believed() -> None:
    mine = predicted()
    mine.run(range(3), 1.0)
    assert not mine.correct(50, Body(x=9.0, name="n"))
    assert mine.tick == 50
    mine.run(range(51, 52), 1.0)
    assert mine.state == Body(x=10.0, v=1.0, name="n")


def test_steps_that_raise_or_return_nonsense_lose_nothing() -> None:
    def fails(body: Body, push: float) -> Any:
        if push == 1.0:
            raise KeyError("weapon")
        return {2.0: None, 3.0: Body(x=math.nan)}.get(push, step(body, push))

    mine = tw.predict.Prediction(fails, Body(), tolerance={"x": 0.01})
    mine.run(range(1), 0.5)
    for push, sentence in [
        (1.0, "step of tick 1 raised KeyError: 'weapon'"),
        (2.0, "step of tick 1 must return a state, Body, not NoneType"),
        (3.0, "step of tick 1 must return finite numbers, not x = nan"),
    ]:
        with pytest.raises(tw.errors.PredictionError, match=sentence):
            mine.run(range(1, 2), push)
        assert mine.state == Body(x=0.5, v=0.5)
        assert mine.tick == 0
    mine.run(range(1, 2), 0.5)
    assert mine.state == Body(x=1.5, v=1.0)
    assert mine.tick == 1


def test_a_move_is_kept_if_the_step_raises_in_a_replay() -> None:
    faulty = [False]

    def pushed(body: Body, push: Push) -> Body:
        if faulty[0]:
            faulty[0] = False
            raise KeyError("once")
        body.x += push.x
        return body

    protocol = tw.Protocol(id=1, messages=[Spare], ghosts=[Avatar], inputs=Push, tick_rate=60)
    network, server, client = connected_pair(protocol, seed=1)
    network.set_conditions(tw.Conditions(latency=0.05))
    avatar = server.world.spawn(Avatar(), owner=server.clients[0])
    mine = tw.predict.Prediction(pushed, Body(), tolerance={"x": 0.01})
    errors = 0
    for frame in range(400):
        with server.tick():
            avatar.x += sum(push.x for _, push in server.inputs if push is not None)
            avatar.x += 100 * (frame == 200)
        with client.tick():
            ghost = client.world.mine(Avatar)
            faulty[0] = errors == 0 and ghost is not None and ghost.x > 250
            try:
                mine.advance(client, Push(1), ghost)
            except tw.errors.PredictionError:
                errors += 1
        network.advance(1 / 60)
    assert errors == 1
    assert mine.corrections == 1, "the server's change"


def test_a_move_that_the_game_uses_again_is_copied() -> None:
    def pushed(x: float, push: Push) -> float:
        return x + push.x

    mine = tw.predict.Prediction(pushed, 0.0, tolerance=0.01)
    push = Push()
    for tick in range(1, 11):
        push.x = 1 if tick < 6 else -1
        mine.run(range(tick, tick + 1), push)
    mine.correct(2, 2.5)
    assert mine.state == 0.5


def test_plain_numbers_tuples_angles_and_arrays() -> None:
    number = tw.predict.Prediction(lambda x, move: x + move, 0.0, tolerance=0.1)
    number.run(range(5), 1.0)
    assert number.state == 5.0
    assert number.correct(2, 7.0)
    assert number.state == 9.0
    place = tw.predict.Prediction(lambda p, m: (p[0] + m, p[1]), (0.0, 0.0), tolerance=0.1)
    place.run(range(5), 1.0)
    assert not place.correct(2, (3.0, 0.05))
    assert place.correct(3, (4.0, 1.0))
    assert place.state == (5.0, 1.0)
    heading = tw.predict.Prediction(
        lambda a, m: {"a": (a["a"] + m) % 360}, {"a": 358.0}, tolerance={"a": 1}, wraps={"a": 360}
    )
    heading.run(range(1), 1.5)
    assert not heading.correct(0, {"a": 359.9})
    assert not heading.correct(0, {"a": 0.2})
    numpy = pytest.importorskip("numpy")
    rows = numpy.zeros(64, dtype=[("x", "f8"), ("v", "f8")])

    def move_all(rows: Any, push: Any) -> Any:
        rows["v"] += push
        rows["x"] += rows["v"]
        return rows

    many = tw.predict.Prediction(move_all, rows, tolerance={"x": 0.01})
    many.run(range(8), numpy.ones(64))
    truth = numpy.zeros(64, dtype=rows.dtype)
    truth["x"], truth["v"] = 6.0, 3.0
    assert not many.correct(2, truth)
    truth["x"][5] = 9.0
    truth["x"] += 4.0
    truth["v"] += 1.0
    assert many.correct(3, truth)
    assert many.state["x"][5] == many.state["x"][4] + 3.0


def test_spawns_are_matched_and_refused_effects_taken_back() -> None:
    shots: tw.predict.Predicted[str] = tw.predict.Predicted(ticks=10)
    shots.show(100, "first")
    shots.show(104, "second")
    assert list(shots) == ["first", "second"]
    assert shots.confirm(100) == "first"
    assert shots.confirm(100) is None
    assert shots.take_back(114) == []
    assert shots.take_back(115) == ["second"]
    assert shots.refused == 1
    assert len(shots) == 0
    assert shots.take_back(None) == []
    with pytest.raises(ValueError, match="ticks must be 1 to 10000, not 0"):
        tw.predict.Predicted(0)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"tolerance": {"x": -1}}, "tolerance of x must be 0 or more, not -1"),
        ({"tolerance": 1, "max_replay": 0}, "max_replay must be 1 to 1024, not 0"),
        ({"tolerance": 1, "smoothing": -1}, "smoothing must be 0 to 60, not -1"),
        ({"tolerance": 1, "snap": 0}, "snap must be above 0, not 0"),
    ],
)
def test_wrong_settings_name_themselves(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        tw.predict.Prediction(step, Body(), **settings)


def test_without_loss_nothing_is_corrected_and_with_loss_nothing_jumps() -> None:
    clean = predicting.measure("50 ms", seconds=20)
    assert clean.corrections == 0
    assert clean.compared > 500
    bad = predicting.measure("100 +- 30 ms, 5 % loss", seconds=20)
    assert bad.visible_error_p99 < predicting.TOLERANCE
    assert bad.compared > 500
    seldom = predicting.measure("50 ms", server_hz=15, client_hz=60, seconds=20)
    assert seldom.corrections == 0
    assert seldom.compared > 100


def test_a_truth_that_is_no_number_is_refused_and_changes_nothing() -> None:
    def step(state: float, move: float) -> float:
        return state + move

    for ticks in (range(10), range(0)):
        mine = tw.predict.Prediction(step, 0.0, tolerance=0.1)
        mine.run(ticks, 1.0)
        before = mine.state
        for bad in (float("nan"), float("inf")):
            with pytest.raises(tw.errors.PredictionError, match="tick 5"):
                mine.correct(5, bad)
        assert (mine.state, mine.corrections) == (before, 0)


@pytest.mark.parametrize("circle", [0, -360, float("nan"), float("inf")])
def test_circles_are_above_0(circle: float) -> None:
    with pytest.raises(ValueError, match="wraps of heading must be above 0"):
        tw.predict.Prediction(max, 0.0, tolerance=1.0, wraps={"heading": circle})


@tw.ghost
class Avatar:
    x: float = 0.0


@tw.message
class Push:
    x: tw.i8 = 0


@tw.message
class Spare:
    pass


def test_an_avatar_that_rests_on_the_server_is_corrected_for_as_long() -> None:
    """It is stunned: the server takes its moves for nothing, and nothing of it changes."""

    def pushed(body: Body, push: Push) -> Body:
        body.x += push.x
        return body

    protocol = tw.Protocol(id=1, messages=[Spare], ghosts=[Avatar], inputs=Push, tick_rate=60)
    network, server, client = connected_pair(protocol, seed=1)
    network.set_conditions(tw.Conditions(latency=0.05))
    server.world.spawn(Avatar(), owner=server.clients[0])
    mine = tw.predict.Prediction(pushed, Body(), tolerance={"x": 0.5})
    for _ in range(900):
        with server.tick():
            pass
        with client.tick():
            mine.advance(client, Push(1), client.world.mine(Avatar))
        network.advance(1 / 60)
    assert mine.state is not None
    assert mine.state.x < 20, "the moves that are on their way"


@pytest.mark.parametrize("end", ["despawn", "disown"])
def test_an_avatar_whose_end_is_lost_is_not_compared_with_later_ticks(end: str) -> None:
    protocol = tw.Protocol(id=1, ghosts=[Avatar], inputs=Push, tick_rate=60)
    line = tw.Conditions(latency=0.05)
    network, server, client = connected_pair(protocol, seed=1, conditions=line)
    (player,) = server.clients
    server.world.spawn(Avatar(x=-7.0), owner=player)  # it rests
    avatar = server.world.spawn(Avatar(x=1.0), owner=player)
    mine = tw.predict.Prediction(lambda body, push: Body(body.x + push.x), Body(1.0), tolerance={"x": 0.5})
    ended, known, newest = 0, [], [0]
    for frame in range(400):
        with server.tick():
            for _, push in server.inputs:
                if not ended and push is not None:
                    avatar.x += push.x
            if frame == 300:
                ended = server.inputs.tick
                if end == "despawn":
                    server.world.despawn(avatar)
                else:
                    server.world.set_owner(avatar, None)
                corrections = mine.corrections
            conditions = tw.Conditions(latency=0.05, loss=float(frame == 300))
            network.set_conditions(conditions, sender=server.address)
        with client.tick():
            if client.world.mine(Avatar) is None:
                client.send_input(Push(1))
            for ghost in client.world.objects(Avatar):
                if ghost.x < 0:
                    newest.append(client.tick_of(ghost) or 0)
                elif client.world.owns(ghost):
                    mine.advance(client, Push(1), ghost)
                    known.append(client.tick_of(ghost) or 0)
        network.advance(1 / 60)
    assert known[-1] == known[-3] == ended - 1, "its end came later than in the next packet"
    assert mine.corrections == corrections
    assert newest[-1] > ended + 60, "the other one is compared still"


def test_reset_goes_back_to_the_first_state() -> None:
    mine = tw.predict.Prediction(lambda x, move: x + move, 5.0, tolerance=0.1)
    mine.run(range(3), 1.0)
    assert mine.state == 8.0
    mine.reset()
    assert (mine.state, mine.tick) == (5.0, None)
    mine.reset(2.0)
    assert mine.state == 2.0


def test_a_capped_replay_files_no_state_under_another_tick() -> None:
    mine = tw.predict.Prediction(lambda x, move: x + move, 0.0, tolerance=0.1, max_replay=4)
    for tick in range(20):
        mine.run([tick], 1.0)
    assert mine.correct(10, 100.0)
    assert mine.state == 104.0
    assert mine.replayed == 4
    assert min(mine._states) == 16
