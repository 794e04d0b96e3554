"""What happens to ghosts, told to the class itself, with what was before."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import pytest
import tickwire as tw
from tickwire import testing

TOLD: list[Any] = []


@tw.message
class Order:
    text: Annotated[str, tw.text(40)]


@tw.ghost
class Tank:
    at: Annotated[tw.Vec2, tw.vec2(-100, 100, 1 / 4)] = tw.default()
    health: Annotated[int, tw.ranged(0, 100)] = 100
    name: Annotated[str, tw.text(24)] = ""
    ammo: tw.u16 | None = None


class Shown(Tank):
    """A client's: it has a sprite."""

    def on_spawned(self) -> None:
        self.sprite = f"sprite of {self.name}"
        TOLD.append(("spawned", self.name))

    def on_changed(self, old: dict[str, Any]) -> None:
        TOLD.append(("changed", self.name, old))
        if self.health == 13:
            raise LookupError("thirteen")

    def on_owned(self, owned: bool) -> None:
        TOLD.append(("owned", owned))

    def on_despawned(self) -> None:
        TOLD.append(("despawned", self.sprite, self.health))


class Scene:
    def __init__(self, **settings: Any) -> None:
        TOLD.clear()
        self.network = testing.SimulatedNetwork()
        protocol = tw.Protocol(1, [Order], ghosts=[Tank])
        self.server = tw.Server("10.0.0.1:4000", protocol, network=self.network)
        self.client = tw.Client.connect(self.server.address, protocol, network=self.network, **settings)
        self.run(1.0)
        self.world = self.server.world

    def run(self, seconds: float = 0.2) -> list[Any]:
        return testing.advance(self.network, self.server, self.client, seconds=seconds)[1].ghosts  # type: ignore[no-any-return]


def test_a_change_says_what_was_before() -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank(at=(1, 2), name="Bob", ammo=7))
    scene.run()
    tank.health -= 10
    tank.name, tank.ammo = "Rob", None
    [event] = scene.run()
    assert event.old == {"health": 100, "name": "Bob", "ammo": 7}
    assert list(event.old) == list(event.names)
    assert (event.ghost.health, event.ghost.name, event.ghost.ammo) == (90, "Rob", None)
    tank.at = (3, 4)
    [later] = scene.run()
    # Each event has its own, also when more has happened since.
    assert later.old == {"at": (1, 2)}
    assert event.old == {"health": 100, "name": "Bob", "ammo": 7}
    scene.world.despawn(tank)
    scene.run()
    assert event.old["name"] == "Bob"
    match event:
        case tw.world.GhostChanged(ghost, names):
            assert (ghost, names) == (event.ghost, ("health", "name", "ammo"))


def test_before_is_what_the_game_saw_last() -> None:
    """Two changes between two ticks are one."""
    scene = Scene()
    tank = scene.world.spawn(Tank)
    scene.run()
    for health in (50, 40):
        tank.health = health
        scene.server.flush()
        scene.network.advance(1 / 60)
        scene.client._step()
    [event] = scene.client.receive().ghosts
    assert (event.old, event.ghost.health) == ({"health": 100}, 40)


def test_a_client_makes_objects_of_its_own_class_and_calls_them() -> None:
    scene = Scene(ghosts={Tank: Shown})
    [handle] = scene.server.clients
    tank = scene.world.spawn(Tank(name="Bob"))
    [event] = scene.run()
    ghost = event.ghost
    assert type(ghost) is Shown
    assert ghost.sprite == "sprite of Bob"
    assert scene.client.world.objects(Tank) == scene.client.world.objects(Shown) == [ghost]
    tank.health = 5
    scene.run()
    scene.world.set_owner(tank, handle)
    scene.run()
    scene.world.despawn(tank)
    scene.run()
    assert TOLD == [
        ("spawned", "Bob"),
        ("changed", "Bob", {"health": 100}),
        ("owned", True),
        ("despawned", "sprite of Bob", 5),
    ]
    # The server's are what they are.
    assert type(tank) is Tank


def test_what_a_callback_raises_the_tick_raises_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: unraisable.append((args.exc_value, args.object)))
    scene = Scene(ghosts={Tank: Shown})
    tanks = [scene.world.spawn(Tank(name=name)) for name in "abc"]
    scene.run()
    TOLD.clear()
    [handle] = scene.server.clients
    tanks[0].health = tanks[1].health = 13
    tanks[2].health = 14
    scene.server.send(handle, Order("go"))
    scene.server.flush()
    scene.network.advance(1 / 60)
    with pytest.raises(LookupError, match="thirteen"):
        scene.client.receive()
    # All were called; the second one's went where such things go.
    assert [told[1] for told in TOLD] == ["a", "b", "c"]
    inbox = scene.client.receive()
    [(error, event)] = unraisable
    assert str(error) == "thirteen"
    assert event is inbox.ghosts[1]
    assert [event.ghost.health for event in inbox.ghosts] == [13, 13, 14]
    assert inbox.messages == [Order("go")]
    # And once.
    assert len(TOLD) == 3


def test_a_property_of_such_a_name_is_a_property() -> None:
    @tw.ghost
    class Odd:
        on_changed: tw.u8 = 1

    protocol = tw.Protocol(1, [Order], ghosts=[Odd])
    network = testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:4000", protocol, network=network)
    client = tw.Client.connect(server.address, protocol, network=network)
    testing.advance(network, server, client, seconds=0.5)
    odd = server.world.spawn(Odd)
    testing.advance(network, server, client, seconds=0.2)
    odd.on_changed = 2
    [_, collected] = testing.advance(network, server, client, seconds=0.2)
    assert collected.ghosts[0].old == {"on_changed": 1}


def test_wrong_classes_are_refused() -> None:
    @tw.ghost
    class Declared(Tank):
        fuel: tw.u8 = 0

    wrong: list[tuple[Any, str]] = [
        ({Shown: Tank}, "ghosts: <class .*Shown'> is not among the protocol's ghosts"),
        ({Tank: Order}, "must be a class derived from it, not <class .*Order'>"),
        ({Tank: Shown()}, "must be a class derived from it, not Shown"),
        ({Tank: Declared}, "must be a plain class derived from it"),
        ([Tank], "ghosts must be a dict of ghost classes or None, not list|ghosts must be"),
    ]
    for given, sentence in wrong:
        with pytest.raises(TypeError, match=sentence):
            Scene(ghosts=given)
    protocol = tw.Protocol(1, [Order], ghosts=[Tank])
    with pytest.raises(TypeError, match="unexpected keyword argument 'ghosts'"):
        tw.Server("10.0.0.1:4000", protocol, network=testing.SimulatedNetwork(), ghosts={})  # type: ignore[call-arg]
