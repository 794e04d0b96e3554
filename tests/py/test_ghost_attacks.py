"""A hostile client can do nothing to a server's world, except to what its own ghosts are sent."""

from __future__ import annotations

import random
from typing import Annotated, Any

import pytest
import tickwire as tw
from tickwire import testing


@tw.message
class Order:
    text: Annotated[str, tw.text(40)]


@tw.ghost(capacity=100)
class Tank:
    health: Annotated[int, tw.ranged(0, 100)] = 100
    secret: Annotated[int, tw.ranged(0, 999), tw.world.owner_only] = 7


class Scene:
    def __init__(self, clients: int = 2, conditions: tw.Conditions | None = None) -> None:
        self.network = testing.SimulatedNetwork()
        self.protocol = tw.Protocol(1, [Order], ghosts=[Tank])
        both: dict[str, Any] = {
            "network": self.network,
            "debugging": tw.testing.Debugging(conditions=conditions, seed=5),
        }
        self.server = tw.Server("10.0.0.1:4000", self.protocol, **both)
        self.clients = [
            tw.Client.connect(self.server.address, self.protocol, client_id=i, **both) for i in range(clients)
        ]
        self.run(1.0)
        self.world = self.server.world
        self.handles = sorted(self.server.clients, key=lambda handle: handle.id)

    def run(self, seconds: float = 0.2) -> Any:
        return testing.advance(self.network, self.server, *self.clients, seconds=seconds)


def test_a_client_cannot_write() -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank, owner=scene.handles[0])
    scene.run()
    [ghost] = scene.clients[0].world.objects(Tank)
    with pytest.raises(tw.errors.GhostError, match="can't be set on a client"):
        ghost.health = 1
    with pytest.raises(tw.errors.GhostError, match="can't be set on a client"):
        scene.clients[0].world.arrays(Tank)["health"] = 1
    column = memoryview(scene.clients[0].world.arrays(Tank)["health"])
    with pytest.raises((TypeError, ValueError)):
        column[0] = 1
    assert tank.health == 100


def test_made_up_numbers_reach_a_clients_own_ghosts_only() -> None:
    draw = random.Random(1)
    scene = Scene()
    first, second = scene.handles
    scene.world.set_relevancy(Tank, tw.world.Owner())
    own = [scene.world.spawn(Tank(health=n), owner=first) for n in range(10)]
    mine = {id(tank) for tank in own}
    for n in range(10, 20):
        scene.world.spawn(Tank(health=n), owner=second)
    scene.run()
    reached = set()
    numbers = [draw.getrandbits(32) for _ in range(10_000)]
    # Of every id, at every tick that has been and some that haven't.
    numbers += [number | tick << 16 for number in range(40) for tick in range(300)]
    for number in numbers:
        found = scene.world.ghost_of(first, Tank, number)
        if found is not None:
            reached.add(id(found))
    assert reached == mine


def test_a_flood_of_losses_keeps_memory_and_budget() -> None:
    """Nothing that a client doesn't ack makes a server send more than its budget."""
    scene = Scene(clients=1, conditions=tw.Conditions(latency=0.03, loss=0.6))
    tanks = [scene.world.spawn(Tank(health=n)) for n in range(100)]
    [handle] = scene.handles
    scene.server.set_budget(20_000, 2_000)
    draw = random.Random(1)
    before = scene.world.client_bits(handle)
    for _ in range(300):
        for tank in tanks:
            tank.health = draw.randrange(101)
        scene.run(1 / 60)
    sent = scene.world.client_bits(handle) - before
    assert sent / 8 <= 20_000 * 5 + 4_000, sent
    scene.run(10.0)
    [client] = scene.clients
    if client.connected:
        assert sorted(ghost.health for ghost in client.world.objects(Tank)) == sorted(
            tank.health for tank in tanks
        )
