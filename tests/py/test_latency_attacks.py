"""The effects of a hostile peer, a bad link or a long game on calls and inputs, in virtual time."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from random import Random
from typing import Annotated, Any

import pytest
import tickwire as tw
from conftest import paced
from tickwire import aio
from tickwire.testing import Conditions, SimulatedNetwork, Simulation, connected_pair


@tw.message
class Steer:
    x: Annotated[float, tw.quantized(-1, 1, 1 / 8)] = 0.0


@tw.ghost
class Tank:
    x: Annotated[float, tw.quantized(-999, 999, 1 / 256)] = 0.0


@tw.call(tw.to_server, timeout=1, rate=1000, burst=1000)
def double(_caller: tw.ClientHandle, number: tw.u16) -> tw.u32:
    return 2 * number


@tw.call(tw.to_server, timeout=1)
def fire(_caller: tw.ClientHandle, tank: Tank) -> bool:
    return tank.x >= 0


@tw.call(tw.to_client, timeout=1)
def ready(number: tw.u16) -> tw.u16:
    return number


PROTOCOL: tw.Protocol[Any] = tw.Protocol(
    7,
    [],
    [tw.reliable_ordered("orders")],
    ghosts=[Tank],
    inputs=Steer,
    tick_rate=60,
    calls=[double, fire, ready],
)
BAD = Conditions(latency=0.05, jitter=0.02, loss=0.05)


def test_requests_of_a_silent_server_time_out_and_make_room() -> None:
    network, server, client = connected_pair(PROTOCOL, seed=1)

    def run(seconds: float) -> None:
        for _ in range(round(seconds * 60)):
            with client.tick():
                pass
            network.advance(1 / 60)

    for _ in range(3):
        requests = [client.request(double, number) for number in range(300)]
        refused = [request for request in requests if request.done]
        assert len(refused) == 44, "of 300 as many wait as may"
        assert all(isinstance(request.error, tw.errors.ChannelFullError) for request in refused)
        run(1.2)
        waited = [request for request in requests if request not in refused]
        assert all(isinstance(request.error, tw.errors.CallTimeoutError) for request in waited)
    with server.tick():
        pass
    network.advance(0.1)
    with client.tick():
        pass
    # The server has answered all that came; nobody waits for it any more.
    assert client.counters["calls.late_replies"] == server.counters["calls.run"] > 0
    request = client.request(double, 21)
    for _ in range(30):
        with server.tick(), client.tick():
            pass
        network.advance(1 / 60)
    assert request.result() == 42


def test_memory_stays_as_it_is() -> None:
    network, server, client = connected_pair(PROTOCOL, seed=1, conditions=BAD)
    server.world.remember(1.0)
    server.world.judgements.most = 50
    (player,) = server.clients
    tank = server.world.spawn(Tank(), owner=player)
    body = tw.predict.Prediction(lambda state, move: state + move.x, 0.0, tolerance=1e9)
    shown: tw.predict.Predicted[int] = tw.predict.Predicted(ticks=30)
    open_: list[tw.calls.Request[int]] = []
    used: list[int] = []
    tracemalloc.start()
    try:
        for tick in range(3 * 60 * 60):
            with server.tick():
                for who, move in server.inputs:
                    if move is not None:
                        tank.x = (tank.x + move.x) % 900
                    if tick % 60 == 0:
                        with server.world.rewind(who) as past:
                            past.judge(True, tank)
                if tick % 90 == 0:
                    server.request(player, ready, tick % 60_000)
            with client.tick():
                client.world.view()
                for at in body.advance(client, Steer((tick % 16 - 8) / 8), None):
                    if tick % 10 == 0:
                        shown.show(at, tick)
                shown.take_back(client.clock.server_tick)
                if tick % 30 == 0:
                    open_ = [request for request in open_ if not request.done]
                    open_.append(client.request(double, tick % 60_000))
            network.advance(1 / 60)
            if tick % 2160 == 2159:
                gc.collect()
                used.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert max(used[1:]) < used[0] + 400_000, used
    assert used[-1] < used[-2] + 20_000, used
    assert len(open_) < 5
    assert server.counters["calls.failed"] == client.counters["calls.timed_out"] == 0


@pytest.mark.parametrize("seed", range(4))
def test_repeated_and_reordered_datagrams_run_nothing_twice(seed: int) -> None:
    conditions = Conditions(latency=0.02, duplicate=0.3, reorder=0.3, loss=0.1)
    world = Simulation(PROTOCOL, seed=seed, conditions=conditions)
    server, client = world.server(), world.client()
    numbers: list[int] = []
    server.implement(double, lambda _caller, number: numbers.append(number) or number)
    world.run(2)
    for number in range(100):
        client.call(double, number)
        client.send_input(Steer())
        world.run(1 / 30)
    world.run(3)
    assert numbers == list(range(100))
    (player,) = server.clients
    assert server.inputs.status(player).far_ahead == server.inputs.status(player).far_behind == 0


def test_a_server_that_stands_still_and_a_client_that_does_are_followed() -> None:
    network, server, client = connected_pair(PROTOCOL, seed=1, conditions=BAD)
    random = Random(5)
    here = [0, 0]
    before = 0.0
    for second in range(30):
        serves, plays = (random.random() > 0.15 or second > 24, random.random() > 0.15 or second > 24)
        for _ in range(60):
            if serves:
                with server.tick():
                    here[second > 26] += sum(move is not None for _, move in server.inputs)
            if plays:
                with client.tick():
                    client.send_input(Steer(0.5))
                    clock = client.clock
                    if clock.tick is not None:
                        assert clock.tick >= before, "time never runs back"
                        before = clock.tick
            network.advance(1 / 60)
    assert here[1] >= 0.97 * 3 * 60
    assert client.clock.tick is not None
    assert abs(client.clock.tick - server.inputs.tick) < 2


def test_each_connection_has_its_own_calls_inputs_and_ghosts() -> None:
    network, key = SimulatedNetwork(seed=1), bytes(range(32))
    server = tw.Server("10.0.0.1:40000", PROTOCOL, key=key, network=network)

    def token() -> tw.ConnectToken:
        return tw.ConnectToken.generate(
            protocol=PROTOCOL, key=key, client_id=3, servers=[server.address], timeout=2
        )

    client = tw.Client(PROTOCOL, token(), network=network, reconnect=tw.connections.Reconnect(token))

    def run(seconds: float) -> None:
        for _ in range(round(seconds * 60)):
            with server.tick() as inbox:
                for player, what in inbox:
                    if isinstance(what, tw.Connected) and not server.world.objects(Tank):
                        server.world.spawn(Tank(), owner=player)
                list(server.inputs)
            with client.tick():
                if client.connected:
                    client.send_input(Steer())
            network.advance(1 / 60)

    run(2)
    tank = client.world.mine(Tank)
    assert tank is not None
    network.set_conditions(Conditions(loss=1.0))
    request: tw.calls.Request[Any] = client.request(fire, tank)
    run(0.5)
    network.advance(1)
    run(3)
    assert isinstance(request.error, tw.errors.CallTimeoutError | tw.errors.NotConnectedError)
    network.set_conditions(Conditions())
    run(8)
    assert client.world.mine(Tank) is tank
    request = client.request(fire, tank)
    run(0.5)
    assert request.result() is True
    assert client.clock.settled
    assert server.inputs.status(server.clients[0]).here > 60


def test_a_request_is_awaited_while_its_client_ticks() -> None:
    async def play() -> list[int]:
        server = tw.Server("127.0.0.1:0", PROTOCOL)
        client = tw.Client.connect(server.address, PROTOCOL)
        answers: list[int] = []

        async def serve() -> None:
            async with aio.run(server, 60) as ticks:
                async for _, _ in ticks:
                    list(server.inputs)

        async def ask() -> None:
            while not client.connected:
                await asyncio.sleep(0.01)
            for number in range(5):
                answers.append(await client.request(double, number))
            client.close()

        async def run() -> None:
            async with aio.run(client, 60) as ticks:
                async for _, _ in ticks:
                    client.send_input(Steer())

        serving, asking = asyncio.create_task(serve()), asyncio.create_task(ask())
        await run()
        await asking
        server.close()
        await serving
        return answers

    assert asyncio.run(asyncio.wait_for(play(), 20)) == [0, 2, 4, 6, 8]


def test_calls_and_inputs_with_threads() -> None:
    server = tw.Server("127.0.0.1:0", PROTOCOL, tuning=tw.Tuning(driver="thread"))
    client = tw.Client.connect(server.address, PROTOCOL, tuning=tw.Tuning(driver="thread"))
    request: tw.calls.Request[int] | None = None
    moves = 0
    for _ in paced(120, seconds=20):
        with server.tick():
            moves += sum(move is not None for _, move in server.inputs)
        with client.tick():
            client.send_input(Steer())
            if client.connected and request is None:
                request = client.request(double, 8)
        if request is not None and request.done and moves > 60:
            break
    assert request is not None
    assert request.result() == 16
    assert moves > 60
    client.close()
    server.close()
