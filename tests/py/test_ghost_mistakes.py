"""Mistakes with ghosts: each is said, where it is made."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import tickwire as tw
from tickwire import testing


@tw.message
class Order:
    text: Annotated[str, tw.text(40)]


@tw.ghost
class Tank:
    at: Annotated[tw.Vec2, tw.vec2(-100, 100, 1 / 4)] = tw.default()
    health: Annotated[int, tw.ranged(0, 100)] = 100


def tank_with(**annotations: Any) -> type:
    """Another version of the game's Tank."""
    fields = {
        "at": Annotated[tw.Vec2, tw.vec2(-100, 100, 1 / 4)],
        "health": Annotated[int, tw.ranged(0, 100)],
        **annotations,
    }
    members: dict[str, Any] = {"__annotations__": fields, "__module__": __name__}
    members |= dict.fromkeys(fields, tw.default())
    return tw.ghost(type("Tank", (), members))


def server_and_clients(
    clients: int = 1, conditions: tw.Conditions | None = None, messages: Any = (Order,)
) -> Any:
    network = testing.SimulatedNetwork()
    protocol = tw.Protocol(1, list(messages), ghosts=[Tank])
    both: dict[str, Any] = {
        "network": network,
        "debugging": tw.testing.Debugging(conditions=conditions, seed=3),
    }
    server = tw.Server("10.0.0.1:4000", protocol, **both)
    dialled = [tw.Client.connect(server.address, protocol, client_id=i, **both) for i in range(clients)]
    testing.advance(network, server, *dialled, seconds=1.0)
    return network, server, *dialled


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        (
            tank_with(health=Annotated[int, tw.ranged(0, 99)]),
            "Tank.health differs or is unknown to the server",
        ),
        (
            tank_with(health=Annotated[int, tw.ranged(0, 100), tw.world.owner_only]),
            "Tank.health differs or is unknown to the server",
        ),
        (tank_with(fuel=tw.u8), "Tank has more properties at the server (3 there, 2 here)"),
        (None, "Tank is unknown to the server; channels: 2 at the server, 3 here"),
    ],
)
def test_a_ghost_class_that_differs_is_named(theirs: type | None, said: str) -> None:
    network = testing.SimulatedNetwork()
    other = tw.Protocol(1, [Order], ghosts=[theirs] if theirs else [])
    server = tw.Server("10.0.0.1:4000", other, network=network)
    client = tw.Client.connect(
        server.address, tw.Protocol(1, [Order], ghosts=[Tank]), network=network, client_id=1
    )
    _, collected = testing.advance(network, server, client, seconds=1.0)
    [event] = collected.events
    assert (event.reason, event.detail) == (tw.DisconnectReason.PROTOCOL_MISMATCH, said)


def test_a_function_for_a_ghost_class_is_refused() -> None:
    with pytest.raises(TypeError, match="Tank is a ghost, not a message: on.tw.GhostSpawned"):
        tw.messages.Handlers().on(Tank)


def test_what_is_about_another_rule_is_refused() -> None:
    _, server, _ = server_and_clients()
    [handle] = server.clients
    world = server.world
    with pytest.raises(
        tw.errors.GhostError, match=r"look_from\(\) needs a class with the rule tw.world.Grid\(...\)"
    ):
        world.look_from(handle, Tank, [(0, 0)])
    with pytest.raises(
        tw.errors.GhostError, match=r"call world.set_relevancy\(Tank, tw.world.Chosen\(\)\) first"
    ):
        world.show(handle, Tank, b"\1")
    world.set_relevancy(Tank, tw.world.Grid("at", radius=5))
    assert world.look_from(handle, Tank, [(0, 0)])
    with pytest.raises(tw.errors.GhostError):
        world.show(handle, Tank, b"\1")


def test_an_error_of_a_flush_says_where() -> None:
    np = pytest.importorskip("numpy")
    _, server, _ = server_and_clients()
    server.world.spawn_rows(Tank, 3)
    tanks = server.world.arrays(Tank)
    tanks["health"][1] = np.uint8(200)
    with pytest.raises(tw.FieldError) as raised:
        server.flush()
    error = raised.value
    assert (error.ghost_class, error.row, error.property) == (Tank, 1, "health")
    assert str(error) == "Tank.health of row 1 = 200: must be 0 to 100"
    with pytest.raises(tw.FieldError) as plain:
        server.world.spawn(Tank(health=200))
    assert (plain.value.ghost_class, plain.value.row, plain.value.property) == (None, None, None)


def test_a_protocol_may_have_ghosts_alone() -> None:
    network, server, client = server_and_clients(messages=())
    server.world.spawn(Tank(health=3))
    testing.advance(network, server, client, seconds=0.3)
    assert [ghost.health for ghost in client.world.objects(Tank)] == [3]
    with pytest.raises(tw.errors.UnregisteredMessageError):
        client.send(Order("hi"))
    with pytest.raises(tw.errors.StreamError):
        server.protocol.decode(b"\0")
    with pytest.raises(ValueError, match="messages must have at least one class, unless"):
        tw.Protocol(1, [])


def test_a_long_line_has_ghosts_too() -> None:
    """Four seconds there and back, 240 ticks: longer than a record's number is told apart by its age."""
    network, server, client = server_and_clients(conditions=tw.Conditions(latency=2.0), clients=1)
    testing.advance(network, server, client, seconds=12.0)
    assert client.connected
    tank = server.world.spawn(Tank)
    updates = 0
    for step in range(900):
        tank.at = (step % 100, step % 7)
        [_, collected] = testing.advance(network, server, client, seconds=1 / 60)
        updates += sum(isinstance(event, tw.world.GhostChanged) for event in collected.ghosts)
    tank.at = (7, 7)
    testing.advance(network, server, client, seconds=20.0)
    assert client.world.objects(Tank)[0].at == (7, 7)
    bits = server.world.costs["Tank"]
    assert bits["(updates)"] > 0, "it was never live"
    assert updates > 50
    # What rests costs nothing.
    testing.advance(network, server, client, seconds=5.0)
    assert server.world.costs["Tank"] == bits
