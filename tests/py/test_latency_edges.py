"""Calls, inputs, predictions and views where something is over, raises, or is given wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import pytest
import tickwire as tw
from tickwire import testing
from tickwire._past import Judgements
from tickwire._requests import Request
from tickwire.testing import Conditions, Simulation, connected_pair

TOLD: list[Any] = []


@tw.message
class Steer:
    x: Annotated[float, tw.quantized(-1, 1, 1 / 8)] = 0.0


@tw.ghost
class Tank:
    x: Annotated[float, tw.quantized(-999, 999, 1 / 256)] = 0.0
    label: Annotated[str, tw.text(12), tw.initial] = "none"


@tw.call(tw.to_server, channel="orders")
def order(_caller: tw.ClientHandle, number: tw.u16) -> tw.u16:
    TOLD.append(number)
    return number


@tw.call(tw.to_all, channel="orders")
def announce(number: tw.u16) -> None:
    TOLD.append(number)


PROTOCOL: tw.Protocol[Any] = tw.Protocol(
    7,
    [],
    [tw.reliable_ordered("orders")],
    ghosts=[Tank],
    inputs=Steer,
    tick_rate=60,
    calls=[order, announce],
)


@pytest.fixture(autouse=True)
def nothing_told() -> Iterator[None]:
    TOLD.clear()
    yield
    TOLD.clear()


def connected(**settings: Any) -> tuple[Simulation[Any], tw.Server[Any], tw.Client[Any]]:
    world = Simulation(PROTOCOL, seed=5)
    server, client = world.server(), world.client(**settings)
    world.run(1)
    assert client.connected
    return world, server, client


# --- calls -----------------------------------------------------------------------------------------------


def test_a_reply_that_raises_loses_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    world, _, client = connected()
    requests = [client.request(order, number) for number in range(4)]
    answer = Request._answer

    def raising(request: Request[Any], value: Any) -> None:
        answer(request, value)
        if value == 1:
            raise RuntimeError("who waited for it")

    monkeypatch.setattr(Request, "_answer", raising)
    with pytest.raises(RuntimeError, match="who waited"):
        world.run(0.2)
    world.run(0.2)
    assert [request.result() for request in requests] == [0, 1, 2, 3]


def test_calls_behind_the_one_that_disconnects_their_client_are_dropped() -> None:
    world, server, client = connected()
    other = world.client()
    world.run(1)

    def kick(caller: tw.ClientHandle, number: int) -> int:
        TOLD.append((caller.slot, number))
        if number == 1:
            server.disconnect(caller)
        return number

    server.implement(order, kick)
    for number in range(4):
        client.call(order, number)
        other.call(order, number + 10)
    world.run(0.2)
    assert [number for slot, number in TOLD if slot == 0] == [0, 1]
    assert [number for slot, number in TOLD if slot == 1] == [10, 11, 12, 13]
    assert server.counters["calls.gone"] == 2
    assert not client.connected
    assert other.connected


def test_of_a_list_of_clients_the_wrong_one_is_named() -> None:
    _, server, _ = connected()
    (player,) = server.clients
    with pytest.raises(TypeError, match="not one of NoneType$"):
        server.call([player, None], announce, 1)  # type: ignore[list-item]


# --- what is over ----------------------------------------------------------------------------------------


def test_clocks_inputs_and_views_say_that_they_are_closed() -> None:
    world, server, client = connected()
    (player,) = server.clients
    clock, inputs = client.clock, server.inputs
    client.close()
    world.run(0.1)
    server.close()
    for attribute in ("tick", "input_tick", "error", "settled", "lead", "server_tick", "acked", "restarts"):
        with pytest.raises(tw.errors.ClosedError, match="client is closed"):
            getattr(clock, attribute)
    for asked in (
        lambda: inputs.tick,
        lambda: list(inputs),
        lambda: inputs.columns(),
        lambda: inputs.status(player),
        lambda: inputs.set_policy("none"),
    ):
        with pytest.raises(tw.errors.ClosedError, match="server is closed"):
            asked()
    for refused in (lambda: client.send_input(Steer()), lambda: client.world.set_playout(delay=0.1)):
        with pytest.raises(tw.errors.ClosedError, match="client is closed"):
            refused()


# --- ghosts ----------------------------------------------------------------------------------------------


def test_the_own_avatar_is_found() -> None:
    world, server, client = connected()
    (player,) = server.clients
    assert client.world.mine(Tank) is None
    server.world.spawn(Tank(label="other"))
    mine = server.world.spawn(Tank(label="mine"), owner=player)
    server.world.spawn(Tank(label="second"), owner=player)
    world.run(0.2)
    found = client.world.mine(Tank)
    assert found is not None
    assert found.label == "mine"
    server.world.despawn(mine)
    world.run(0.2)
    second = client.world.mine(Tank)
    assert second is not None
    assert second.label == "second"
    with pytest.raises(tw.errors.GhostError, match="Steer must be one of the protocol's ghost classes"):
        client.world.mine(Steer)


def test_others_and_owns_in_the_world_and_its_view() -> None:
    world, server, client = connected()
    (player,) = server.clients
    server.world.spawn(Tank(label="other"))
    server.world.spawn(Tank(label="mine"), owner=player)
    world.run(0.5)
    for shown in (client.world, client.world.view()):
        mine = shown.mine(Tank)
        assert mine is not None
        assert mine.label == "mine"
        assert shown.owns(mine)
        (other,) = shown.others(Tank)
        assert other.label == "other"
        assert not shown.owns(other)
        with pytest.raises(tw.errors.GhostError, match="Steer must be one of the protocol's ghost classes"):
            shown.others(Steer)


# --- the line --------------------------------------------------------------------------------------------


def test_latency_is_the_sum_of_its_parts() -> None:
    network, server, client = connected_pair(PROTOCOL, seed=1)
    network.set_conditions(tw.Conditions(latency=0.05))
    for _ in range(300):
        with server.tick():
            pass
        with client.tick():
            client.send_input(Steer())
            client.world.view()
        network.advance(1 / 60)
    latency = client.latency
    assert latency.total == latency.lead + latency.line / 2 + latency.view
    assert 0.1 < latency.line < 0.15
    assert 0.05 < latency.lead < 0.09
    assert 1 / 60 - 1e-3 < latency.view < 2 / 60
    assert repr(latency).startswith("<Latency of 1")


def test_a_prediction_is_drawn_after_its_client_is_closed() -> None:
    network, server, client = connected_pair(PROTOCOL, seed=1)
    mine: tw.predict.Prediction[float, Steer] = tw.predict.Prediction(
        lambda x, move: x + move.x, 0.0, tolerance=0.1
    )
    for frame in range(240):
        if frame % 4 == 0:
            with server.tick():
                pass
        with client.tick():
            mine.advance(client, Steer(1.0))
        mine.seen(1 / 240)
        network.advance(1 / 240)
    assert client._drawn_tick() is not None  # type: ignore[attr-defined]
    client.close()
    assert mine.seen(1 / 240) == mine.state


def test_silence_and_quality_follow_the_line() -> None:
    network, server, client = connected_pair(PROTOCOL, seed=1)
    testing.advance(network, server, client, seconds=1)
    assert 0 <= client.silence <= 0.2
    assert client.quality == 4
    network.set_conditions(tw.Conditions(latency=0.12))
    testing.advance(network, server, client, seconds=3)
    assert client.quality == 2
    network.set_conditions(tw.Conditions(loss=1.0))
    testing.advance(network, server, client, seconds=2)
    assert 1.5 < client.silence < 2.5
    assert client.quality == 0
    client.close()
    assert (client.silence, client.quality) == (0.0, 0)


def test_a_pasts_objects_have_their_texts_and_cannot_be_set() -> None:
    network, server, client = connected_pair(PROTOCOL, seed=1)
    server.world.remember(1.0)
    stays = server.world.spawn(Tank(label="stays"))
    goes = server.world.spawn(Tank(label="goes"))

    def run(ticks: int) -> None:
        for _ in range(ticks):
            with server.tick():
                stays.x += 1
            with client.tick():
                pass
            network.advance(1 / 60)

    run(10)
    then = server.world.tick
    server.world.despawn(goes)
    run(1)
    late = server.world.spawn(Tank(label="late"))  # in the row of the one that is gone
    run(3)
    assert server.world.row(late) == 1
    with server.world.rewind_to(then) as past:
        assert [tank.label for tank in past.objects(Tank)] == ["stays", "none"]
        gone = past.ghost(goes)
        assert gone is not None
        assert gone.label == "goes"
        assert past.ghost(late) is None
        with pytest.raises(
            tw.errors.GhostError, match=r"Tank\.x of row 0 can't be set in a view or a rewound world"
        ):
            past.objects(Tank)[0].x = 3.0
    assert [tank.label for tank in server.world.objects(Tank)] == ["stays", "late"]


def test_methods_that_columns_would_never_call_are_refused() -> None:
    class Loud(Tank):
        def on_changed(self, old: dict[str, Any]) -> None: ...

    class Quiet(Loud):
        on_changed = None  # type: ignore[assignment]

    world = Simulation(PROTOCOL, seed=5)
    world.server()
    with pytest.raises(
        ValueError, match=r"columns\[0\] must be a class without callback methods, and Loud has on_changed"
    ):
        world.client(tuning=tw.Tuning(columns=[Tank]), ghosts={Tank: Loud})
    world.client(tuning=tw.Tuning(columns=[Tank]), ghosts={Tank: Quiet})


def test_how_many_judgements_are_kept_is_a_number() -> None:
    judgements = Judgements()
    with pytest.raises(TypeError, match="most must be an int, 0 to 1000000, not bool"):
        judgements.most = True
    with pytest.raises(ValueError, match="most must be 0 to 1000000, not -1"):
        Judgements(-1)


# --- prediction ------------------------------------------------------------------------------------------


class Body(NamedTuple):
    x: float = 0.0


def test_both_sides_step_with_the_same_move() -> None:
    network, server, client = connected_pair(
        PROTOCOL, seed=1, conditions=Conditions(latency=0.05, jitter=0.01)
    )
    (player,) = server.clients
    tank = server.world.spawn(Tank(), owner=player)
    moves: list[float] = []

    def step(body: Body, move: Steer) -> Body:
        moves.append(move.x)
        return Body(body.x + move.x)

    body = tw.predict.Prediction(step, Body(), tolerance={"x": 1 / 128})
    for frame in range(240):
        with server.tick():
            for _, move in server.inputs:
                if move is not None:
                    tank.x += move.x
        with client.tick():
            body.advance(client, Steer(0.3 if frame > 60 else 0.0), client.world.mine(Tank))
        network.advance(1 / 60)
    assert 0.25 in moves
    assert 0.3 not in moves
    assert body.corrections == 0


def test_what_is_predicted_is_bounded_and_all_of_a_tick_is_kept() -> None:
    shown: tw.predict.Predicted[str] = tw.predict.Predicted(ticks=10)
    shown.show(5, "left barrel")
    shown.show(5, "right barrel")
    assert (list(shown), len(shown)) == (["left barrel", "right barrel"], 2)
    assert [shown.confirm(5), shown.confirm(5), shown.confirm(5)] == ["left barrel", "right barrel", None]
    shown.show(6, "one")
    shown.show(6, "two")
    assert shown.take_back(16) == []
    assert shown.take_back(17) == ["one", "two"]
    for tick in range(5_000):
        shown.show(tick, "never confirmed")
    assert len(shown) == 1024
    assert shown.refused == 2 + 5_000 - 1024


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"state": object(), "tolerance": 0.1},
            r"tolerance must be by name, as tolerance=\{'position': 0.1\}",
        ),
        (
            {"state": Body(), "tolerance": {"y": 0.1}},
            "tolerance of 'y' must be of a property of the state, Body",
        ),
        ({"state": Body(), "tolerance": {"x": "a"}}, "tolerance of x must be a number, not str"),
        (
            {"state": Tank(), "tolerance": {"x": 0.1}},
            "state must be one of the game's own, and Tank is a ghost",
        ),
        ({"state": 1.0, "tolerance": 0.1, "snap": None}, "snap must be a number, not NoneType"),
        ({"state": 1.0, "tolerance": None}, "tolerance of the state must be a number, not NoneType"),
    ],
)
def test_predictions_say_what_is_wrong_with_them(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        tw.predict.Prediction(lambda state, _move: state, **settings)


def test_a_prediction_without_a_state_takes_no_ghost_for_one() -> None:
    body: tw.predict.Prediction[Any, Any] = tw.predict.Prediction(
        lambda state, _move: state, tolerance={"x": 0.1}
    )
    with pytest.raises(TypeError, match="state must be one of the game's own, and Tank is a ghost"):
        body.correct(1, Tank())
    body.correct(1, Body(3.0))
    assert body.state == Body(3.0)
