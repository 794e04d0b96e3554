"""Calls that name ghosts: whose they are, and when they run."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Annotated, Any

import pytest
import tickwire as tw
from tickwire.testing import Conditions, Simulation

TOLD: list[Any] = []
BAD = Conditions(latency=0.05, jitter=0.02, loss=0.15, duplicate=0.05, reorder=0.05)


@tw.ghost
class Tank:
    label: Annotated[str, tw.text(12), tw.initial] = ""
    health: Annotated[int, tw.ranged(0, 100)] = 100


@tw.ghost
class Crate:
    label: Annotated[str, tw.text(12), tw.initial] = ""


@tw.call(tw.to_server, channel="orders")
def fire(caller: tw.ClientHandle, tank: Tank, at: Annotated[tw.Vec2, tw.vec2(-64, 63, 1 / 4)]) -> None:
    TOLD.append((caller.id, tank.label, at))


@tw.call(tw.to_server, channel="orders", abuse="disconnect")
def repair(_caller: tw.ClientHandle, _tank: Tank) -> None:
    TOLD.append("repaired")


@tw.call(tw.to_server, channel="orders", owned=False)
def aim(_caller: tw.ClientHandle, target: Tank | None) -> bool:
    TOLD.append(None if target is None else target.label)
    return target is not None


@tw.call(tw.to_all, channel="orders")
def explode(tank: Tank) -> None:
    TOLD.append(tank.label)


@tw.call(tw.to_all, channel="effects")
def spark(tank: Tank) -> None:
    TOLD.append(tank.label)


CALLS = [fire, repair, aim, explode, spark]
PROTOCOL: tw.Protocol[Any] = tw.Protocol(
    9, [], [tw.reliable_ordered("orders"), tw.unreliable("effects")], ghosts=[Tank, Crate], calls=CALLS
)
Setting = tuple[Simulation[Any], tw.Server[Any], list[tw.Client[Any]], list[tw.ClientHandle]]


@pytest.fixture(autouse=True)
def nothing_told() -> Iterator[None]:
    TOLD.clear()
    yield
    TOLD.clear()


def connected(count: int = 1, conditions: Conditions | None = None, **settings: Any) -> Setting:
    world = Simulation(PROTOCOL, seed=5, conditions=conditions)
    server = world.server(**settings)
    clients = [world.client() for _ in range(count)]
    world.run(1)
    return world, server, clients, sorted(server.clients, key=lambda client: client.id)


def test_an_owner_calls_on_its_ghost() -> None:
    world, server, [client], [handle] = connected()
    server.world.spawn(Tank("mine"), owner=handle)
    world.run(0.2)
    [tank] = client.world.objects(Tank)
    assert client.call(fire, tank, at=(3, 4))
    world.run(0.2)
    assert TOLD == [(1, "mine", (3.0, 4.0))]


def test_calls_on_others_ghosts_are_counted_and_dropped() -> None:
    world, server, [client, _], [_, handle] = connected(2)
    server.world.spawn(Tank("theirs"), owner=handle)
    world.run(0.2)
    [tank] = client.world.objects(Tank)
    client.call(fire, tank, (0, 0))
    asked = client.request(aim, tank)
    world.run(0.2)
    assert TOLD == ["theirs"]
    assert asked.result()
    assert server.counters["calls.refused"] == 1
    assert client.connected


def test_a_call_may_be_on_its_way_while_the_ghost_gets_another_owner() -> None:
    world, server, [client, _], [handle, other] = connected(2)
    tank = server.world.spawn(Tank("mine"), owner=handle)
    world.run(0.2)
    [mine] = client.world.objects(Tank)
    client.call(repair, mine)
    client.flush()
    server.world.set_owner(tank, other)
    world.run(0.2)
    assert TOLD == []
    assert client.connected, "the client couldn't know it"
    assert server.counters["calls.refused"] == 1


def test_a_ghost_may_be_left_out_where_the_parameter_says_so() -> None:
    world, _, [client], _ = connected()
    result = client.request(aim, None)
    world.run(0.2)
    assert TOLD == [None]
    assert result.result() is False


def test_a_ghost_that_is_gone_meanwhile_is_counted() -> None:
    world, server, [client], [handle] = connected()
    tank = server.world.spawn(Tank("mine"), owner=handle)
    world.run(0.2)
    [seen] = client.world.objects(Tank)
    client.call(fire, seen, (0, 0))
    asked = client.request(aim, seen)
    client.flush()
    server.world.despawn(tank)
    world.run(0.2)
    assert TOLD == []
    assert server.counters["calls.gone"] == 2
    with pytest.raises(tw.errors.CallFailedError, match="aim: a ghost named is not there any more") as caught:
        asked.result()
    assert caught.value.reason == "gone"


def test_a_call_waits_for_its_ghost_over_bad_lines() -> None:
    world, server, [client], _ = connected(conditions=BAD)
    for number in range(40):
        tank = server.world.spawn(Tank(f"tank {number}"))
        assert server.call_all(explode, tank) == []
        world.run(1 / 60)
    world.run(3)
    assert sorted(TOLD) == sorted(f"tank {number}" for number in range(40))
    assert client.counters["calls.gone"] == 0


def test_calls_that_name_one_ghost_keep_their_order() -> None:
    world, server, [client], [handle] = connected(conditions=BAD)
    seen: list[int] = []
    client.implement(explode, lambda tank: seen.append(tank.health))
    for _ in range(20):
        tank = server.world.spawn(Tank("tank"))
        for health in (90, 80):
            tank.health = health
            server.call(handle, explode, tank)
        world.run(1 / 60)
    world.run(3)
    assert len(seen) == 40


def test_on_channels_that_lose_it_is_dropped_and_counted() -> None:
    world, server, [client], _ = connected(conditions=BAD)
    for _ in range(100):
        # In one packet with its ghost it would be lost with it; a tick later it may come first.
        tank = server.world.spawn(Tank("tank"))
        world.run(1 / 60)
        server.call_all(spark, tank)
    world.run(1)
    counts = client.counters
    assert 0 < counts["calls.gone"] < 100
    assert counts["calls.gone"] + len(TOLD) <= 100


def test_who_is_not_to_have_the_ghost_is_not_called() -> None:
    world, server, clients, handles = connected(3)
    server.world.set_relevancy(Tank, tw.world.Owner())
    tank = server.world.spawn(Tank("secret"), owner=handles[1])
    world.run(0.2)
    assert server.call_all(explode, tank) == []
    assert server.call(handles, explode, tank) == []
    assert server.call(handles[0], explode, tank) is tw.SendResult.HIDDEN
    assert server.call(handles[1], explode, tank)
    world.run(0.2)
    assert TOLD == ["secret"] * 3
    assert [client.counters["calls.run"] for client in clients] == [0, 3, 0]


def test_a_strict_server_says_so() -> None:
    world, server, _, [handle] = connected(debugging=tw.testing.Debugging(strict=True))
    server.world.set_relevancy(Tank, tw.world.Owner())
    tank = server.world.spawn(Tank("secret"))
    world.run(0.2)
    with pytest.raises(
        tw.errors.GhostError, match="explode: a ghost in the arguments isn't relevant to the client"
    ):
        server.call(handle, explode, tank)


def test_no_more_wait_than_may_and_none_for_long() -> None:
    world, server, [client], [handle] = connected()
    tank = server.world.spawn(Tank("late"))
    server.flush()
    world.network.advance(0.1)
    # Ghosts that never arrive: they are gone before the flush that would have sent them.
    for _ in range(300):
        assert server.call(handle, explode, server.world.spawn(Tank("never")))
    for ghost in server.world.objects(Tank):
        if ghost is not tank:
            server.world.despawn(ghost)
    world.run(12)
    assert TOLD == []
    assert client.counters["calls.gone"] == 300


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: None, r"fire.tank = None \(NoneType\): must be a live Tank"),
        (lambda: 7, r"fire.tank = 7 \(int\): must be a live Tank"),
        (lambda: Tank("plain"), "this Tank isn't in a world yet"),
    ],
)
def test_what_is_no_ghost_of_the_world_is_named(wrong: Any, sentence: str) -> None:
    _, _, [client], _ = connected()
    with pytest.raises((tw.errors.FieldTypeError, tw.errors.GhostError), match=sentence):
        client.call(fire, wrong(), (0, 0))


def test_a_ghost_of_another_class_is_named() -> None:
    world, server, [client], _ = connected()
    server.world.spawn(Crate("box"))
    world.run(0.2)
    [crate] = client.world.objects(Crate)
    with pytest.raises(tw.errors.FieldTypeError, match="must be a live Tank"):
        client.call(aim, crate)


def test_ghosts_must_be_the_protocol_s() -> None:
    with pytest.raises(ValueError, match="fire.tank: Tank must be among the protocol's ghosts"):
        tw.Protocol(1, [], ghosts=[Crate], calls=[fire])


def test_forged_numbers_are_gone_or_refused() -> None:
    random = Random(3)
    world, server, clients, handles = connected(2)
    for handle in handles:
        server.world.spawn(Tank(f"of {handle.id}"), owner=handle)
    world.run(0.2)
    forged = fire._declared.message
    numbers = [0, 1, 2, 0xFFFF, 0xFFFF_FFFF, *(random.randrange(2**32) for _ in range(200))]
    for number in numbers:
        clients[0].send(forged(number, (0, 0)), "orders")
        world.run(1 / 60)
    world.run(0.5)
    counts = server.counters
    assert counts["calls.gone"] + counts["calls.refused"] + counts["calls.run"] == len(numbers)
    assert all(label == "of 1" for _, label, _ in TOLD)
    assert clients[0].connected


def test_what_waits_for_a_ghost_ends_with_its_connection() -> None:
    world, server, [client], [handle] = connected()
    # A number of no ghost that ever was: it is waited for.
    forged: Any = explode._declared.message
    assert server.send(handle, forged(9 << 16 | 5), "orders")
    world.run(0.2)
    assert client.counters["calls.gone"] == 0
    assert server.disconnect(handle)
    world.run(0.2)
    assert client.counters["calls.gone"] == 1
    assert TOLD == []
