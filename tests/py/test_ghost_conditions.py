"""Properties of ghosts that only those clients are sent whom the game chooses."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw
from tickwire import testing
from tickwire.capture import read_capture, read_keys
from tickwire.capture._keys import opener


@tw.ghost(capacity=64)
class Tank:
    team: tw.u8 = 0
    position: Annotated[tw.Vec2, tw.vec2(-100, 100, 1 / 16)] = (0, 0)
    plan: Annotated[int, tw.ranged(0, 1000), tw.world.when("team")] = 500
    orders: Annotated[str, tw.text(24), tw.world.when("team")] = "none"
    name: Annotated[str, tw.text(24), tw.initial] = ""


@tw.ghost(capacity=64, coded=True)
class Coded(Tank):
    pass


@tw.ghost(capacity=64)
class Ship:
    """With conditions by owner and by choice."""

    team: tw.u8 = 0
    x: Annotated[float, tw.quantized(0, 1000, 0.5)] = 0
    plan: Annotated[int, tw.ranged(0, 1000), tw.world.when("team")] = 500
    orders: Annotated[str, tw.text(24), tw.world.when("team")] = "none"
    ammo: Annotated[int, tw.ranged(0, 1000), tw.world.owner_only] = 501
    log: Annotated[str, tw.text(24), tw.world.owner_only] = "empty"
    aim: Annotated[int, tw.ranged(0, 1000), tw.world.except_owner] = 502
    name: Annotated[str, tw.text(24), tw.initial] = ""


@tw.ghost(capacity=64, coded=True)
class CodedShip(Ship):
    pass


class Scene:
    """A server and two clients in virtual time, of teams 0 and 1."""

    def __init__(self, class_: type = Tank, conditions: tw.Conditions | None = None, seed: int = 0) -> None:
        self.class_ = class_
        self.protocol: tw.Protocol[Any] = tw.Protocol(1, [], ghosts=[class_])
        both: Any = {
            "protocol": self.protocol,
            "network": testing.SimulatedNetwork(seed=seed, conditions=conditions),
        }
        self.network = both["network"]
        self.server = tw.Server("10.0.0.1:4000", **both)
        self.clients = [tw.Client.connect(self.server.address, client_id=i, **both) for i in range(2)]
        self.run(1.0)
        self.handles = sorted(self.server.clients, key=lambda handle: handle.id)
        self.world = self.server.world

    def run(self, seconds: float = 0.2) -> list[list[Any]]:
        return [
            each.ghosts
            for each in testing.advance(self.network, self.server, *self.clients, seconds=seconds)[1:]
        ]

    def seen(self, client: int) -> list[Any]:
        return self.clients[client].world.objects(self.class_)


def by_team(clients: list[tw.ClientHandle], tanks: tw.world.GhostArrays) -> Any:
    return np.array([client.id for client in clients])[:, None] == tanks["team"]


def by_team_without_numpy(clients: list[tw.ClientHandle], tanks: tw.world.GhostArrays) -> Any:
    return [bytes(int(team) == client.id for team in tanks["team"]) for client in clients]


@pytest.mark.parametrize("class_", [Tank, Coded])
@pytest.mark.parametrize("hook", [by_team, by_team_without_numpy])
def test_a_mask_says_who_is_sent_what(class_: Any, hook: Callable[..., Any]) -> None:
    scene = Scene(class_)
    scene.world.set_condition_hook(class_, "team", hook)
    tanks = [
        scene.world.spawn(class_(team=i % 2, plan=i, orders=f"go {i}", name=f"tank {i}")) for i in range(4)
    ]
    scene.run()
    for client in range(2):
        for i, seen in enumerate(scene.seen(client)):
            own = i % 2 == client
            assert (seen.plan, seen.orders) == ((i, f"go {i}") if own else (500, "none"))
            assert seen.name == f"tank {i}"
    for tank in tanks:
        tank.plan += 10
    first, second = scene.run()
    assert [event.names for event in first] == [("plan",)] * 2
    assert [event.old["plan"] for event in second] == [1, 3]


def test_who_changes_sides_gets_the_rest_and_loses_no_more_than_news() -> None:
    scene = Scene()
    scene.world.set_condition_hook(Tank, "team", by_team)
    # Whose word is the one that the client has of what it wasn't sent.
    tank = scene.world.spawn(Tank(team=1, plan=0, orders="wait"))
    scene.run()
    [seen] = scene.seen(0)
    assert (seen.plan, seen.orders) == (500, "none")
    tank.team = 0
    [changed], _ = scene.run()
    assert set(changed.names) == {"team", "plan", "orders"}
    assert (changed.old["plan"], seen.plan, seen.orders) == (500, 0, "wait")
    tank.team = 1
    tank.plan, tank.orders = 7, "fire"
    scene.run()
    assert (seen.plan, seen.orders) == (0, "wait")
    assert (scene.seen(1)[0].plan, scene.seen(1)[0].orders) == (7, "fire")


def test_a_new_owner_gets_what_has_the_word_of_nothing() -> None:
    @tw.ghost
    class Gun:
        rounds: Annotated[int, tw.ranged(0, 99), tw.world.owner_only] = 50

    scene = Scene(Gun)
    gun = scene.world.spawn(Gun(rounds=0))
    scene.run()
    [seen] = scene.seen(0)
    assert seen.rounds == 50
    scene.world.set_owner(gun, scene.handles[0])
    scene.run()
    assert seen.rounds == 0


def test_owners_are_told_apart_from_those_who_were_chosen() -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank(plan=3), owner=scene.handles[0])
    scene.world.set_condition(scene.handles[1], Tank, "team", np.ones(1, bool))
    scene.run()
    seen = [scene.seen(client)[0] for client in range(2)]
    assert [scene.clients[i].world.owns(seen[i]) for i in range(2)] == [True, False]
    assert [ghost.plan for ghost in seen] == [500, 3]
    scene.world.set_owner(tank, scene.handles[1])
    tank.plan = 4
    scene.run()
    assert [scene.clients[i].world.owns(seen[i]) for i in range(2)] == [False, True]
    assert [ghost.plan for ghost in seen] == [500, 4]


def test_a_mask_is_not_that_of_the_next_ghost_in_a_row() -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank(plan=3))
    scene.world.set_condition(scene.handles[0], Tank, "team", np.ones(64, bool))
    scene.run()
    assert scene.seen(0)[0].plan == 3
    scene.world.despawn(tank)
    for _ in range(3):
        scene.world.spawn(Tank(plan=4))
    scene.run()
    assert [ghost.plan for ghost in scene.seen(0)] == [500] * 3


@pytest.mark.parametrize("class_", [Tank, Coded])
@pytest.mark.parametrize("seed", range(3))
def test_over_a_bad_line_each_gets_its_own(class_: Any, seed: int) -> None:
    rng = random.Random(seed)
    bad = tw.Conditions(latency=0.05, jitter=0.04, loss=0.2, duplicate=0.1)
    scene = Scene(class_, bad, seed)
    scene.world.set_condition_hook(class_, "team", by_team)
    tanks = [scene.world.spawn(class_(name=str(i))) for i in range(6)]
    secret: list[set[int]] = [{500}, {500}]
    for step in range(100):
        tank = rng.choice(tanks)
        tank.position = (step / 2, 0)
        if rng.random() < 0.3:
            tank.team = 1 - tank.team
        rng.choice(tanks).plan = rng.randrange(1001)
        for tank in tanks:
            secret[tank.team].add(tank.plan)
        scene.run(1 / 30)
        for client in range(2):
            assert {ghost.plan for ghost in scene.seen(client)} <= secret[client]
    scene.run(2.0)
    for client in range(2):
        plans = {ghost.name: ghost.plan for ghost in scene.seen(client)}
        for tank in tanks:
            assert tank.team != client or plans[tank.name] == tank.plan


@pytest.mark.parametrize("class_", [Tank, Coded])
def test_what_isnt_for_a_client_changes_no_byte_that_it_gets(class_: Any) -> None:
    """Two worlds that differ in that alone are the same to it, packet by packet."""

    def sent(hidden: bool) -> list[int]:
        scene = Scene(class_)
        scene.world.set_condition_hook(class_, "team", by_team)
        rng = random.Random(1)
        tanks = [scene.world.spawn(class_(team=i % 2)) for i in range(10)]
        totals: list[int] = []
        for step in range(60):
            tank = rng.choice(tanks)
            tank.position = (rng.uniform(-9, 9), 0)
            plan = rng.randrange(1001)
            for other in tanks[1::2]:
                if hidden:
                    other.plan = plan
                    other.orders = f"orders {step}"
            for other in tanks[::2]:
                other.plan = plan
            scene.run(1 / 60)
            totals.append(scene.world.client_bits(scene.handles[0]))
        return totals

    assert sent(hidden=True) == sent(hidden=False)


@pytest.mark.parametrize("class_", [Ship, CodedShip])
def test_owners_and_those_who_were_chosen_get_each_their_own(class_: Any) -> None:
    scene = Scene(class_)
    scene.world.set_condition_hook(class_, "team", by_team)
    # Of all four kinds to the first client.
    for i in range(4):
        ship = class_(team=i % 2, plan=i, orders="go", ammo=i, log="full", aim=i, name=str(i))
        scene.world.spawn(ship, owner=scene.handles[i // 2])
    scene.run()
    for client in range(2):
        for i, seen in enumerate(scene.seen(client)):
            chosen, owns = i % 2 == client, i // 2 == client
            assert (seen.plan, seen.orders) == ((i, "go") if chosen else (500, "none"))
            assert (seen.ammo, seen.log) == ((i, "full") if owns else (501, "empty"))
            assert (seen.aim, seen.name) == (502 if owns else i, str(i))
            assert scene.clients[client].world.owns(seen) == owns


@pytest.mark.parametrize("class_", [Ship, CodedShip])
@pytest.mark.parametrize("seed", range(3))
def test_over_a_bad_line_owners_and_the_chosen_get_their_own(class_: Any, seed: int) -> None:
    """Against what each client may ever have been sent, and in the end against what it is to have."""
    rng = random.Random(seed)
    scene = Scene(class_, tw.Conditions(latency=0.05, jitter=0.04, loss=0.2, duplicate=0.1), seed)
    scene.world.set_condition_hook(class_, "team", by_team)
    ships = [scene.world.spawn(class_(name=str(i), aim=i)) for i in range(6)]
    owners: list[Any] = [None] * len(ships)
    sent: dict[tuple[int, str, str], set[int]] = {}
    rules = {
        "plan": lambda client, i: ships[i].team == client,
        "ammo": lambda client, i: owners[i] == client,
        "aim": lambda client, i: owners[i] != client,
    }
    for step in range(120):
        ship = rng.choice(ships)
        ship.x = step
        if rng.random() < 0.2:
            ship.team = 1 - ship.team
        if rng.random() < 0.2:
            i = rng.randrange(len(ships))
            owners[i] = rng.choice([0, 1, None])
            scene.world.set_owner(ships[i], None if owners[i] is None else scene.handles[owners[i]])
        for name in rules:
            setattr(rng.choice(ships), name, rng.randrange(1001))
        for client in range(2):
            for i, ship in enumerate(ships):
                for name, rule in rules.items():
                    allowed = sent.setdefault((client, str(i), name), {500, 501, 502})
                    if rule(client, i):
                        allowed.add(getattr(ship, name))
        scene.run(1 / 30)
        for client in range(2):
            for seen in scene.seen(client):
                for name in rules:
                    assert getattr(seen, name) in sent[client, seen.name, name]
    scene.run(2.0)
    for client in range(2):
        by_name = {seen.name: seen for seen in scene.seen(client)}
        for i, ship in enumerate(ships):
            assert by_name[str(i)].x == ship.x
            for name, rule in rules.items():
                assert not rule(client, i) or getattr(by_name[str(i)], name) == getattr(ship, name)


@pytest.mark.parametrize("class_", [Ship, CodedShip])
def test_a_capture_of_a_client_has_no_byte_of_what_isnt_for_it(class_: Any, tmp_path: Any) -> None:
    """Two worlds that differ in that alone give the same datagrams to and from the client."""

    def datagrams(hidden: int) -> list[tuple[bool, bytes]]:
        path, keys = tmp_path / f"{hidden}.pcapng", tmp_path / f"{hidden}.keys"
        protocol: tw.Protocol[Any] = tw.Protocol(1, [], ghosts=[class_])
        network = testing.SimulatedNetwork(seed=3, conditions=tw.Conditions(latency=0.03, loss=0.1))
        server = tw.Server("10.0.0.1:4000", protocol, network=network)
        capture = tw.capture.Capture(path, keys=keys)
        client = tw.Client.connect(
            server.address,
            protocol,
            client_id=0,
            network=network,
            debugging=tw.testing.Debugging(capture=capture),
        )
        while not (client.connected and server.clients):
            testing.advance(network, server, client, seconds=1 / 30)
        (handle,) = server.clients
        server.world.set_condition_hook(class_, "team", by_team)
        rng, noise = random.Random(1), random.Random(hidden)
        ships = [
            server.world.spawn(class_(team=i % 2), owner=handle if i // 2 % 2 else None) for i in range(8)
        ]
        for _ in range(80):
            rng.choice(ships).x = rng.randrange(1000)
            for i, ship in enumerate(ships):
                seen, secret = rng.randrange(1001), noise.randrange(1001)
                ship.plan = seen if i % 2 == 0 else secret
                ship.orders = "known" if i % 2 == 0 else "s" * (secret % 24)
                ship.ammo = seen if i // 2 % 2 else secret
                ship.log = "known" if i // 2 % 2 else "s" * (secret % 24)
                ship.aim = secret if i // 2 % 2 else seen
            testing.advance(network, server, client, seconds=1 / 60)
        capture.close()
        opening = opener(read_keys(keys))
        found = []
        for datagram in read_capture(path):
            opened = opening.open(datagram.sender, datagram.receiver, datagram.data)
            if opened is not None:
                found.append((datagram.outgoing, opened))
        return found

    first, second = datagrams(1), datagrams(2)
    assert len(first) > 100
    assert first == second


def test_mistakes_are_named() -> None:
    scene = Scene()
    with pytest.raises(
        tw.errors.GhostError, match=r"Tank has the condition tw.world.when\('team'\), not 'side'"
    ):
        scene.world.set_condition_hook(Tank, "side", by_team)
    with pytest.raises(TypeError, match="rows must be a buffer with a bool for each row"):
        scene.world.set_condition(scene.handles[0], Tank, "team", 3)  # type: ignore[arg-type]
    scene.world.spawn(Tank(plan=3))
    scene.world.set_condition_hook(Tank, "team", lambda *_: np.ones((1, 1), bool))
    with pytest.raises(
        ValueError, match="the condition hook of Tank must return a mask for each of 2 clients"
    ):
        scene.run()
    scene.world.set_condition_hook(Tank, "team", None)
    scene.run()
    assert [scene.seen(client)[0].plan for client in range(2)] == [500, 500]
