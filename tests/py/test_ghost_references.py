"""References from ghosts to ghosts: None until the other one is there, and when it is gone."""

from __future__ import annotations

import random
from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw
from tickwire import testing


@tw.ghost(capacity=64)
class Tank:
    health: Annotated[int, tw.ranged(0, 100)] = 100
    target: tw.Ref[Tank] = None
    crate: tw.Ref[Crate] = None
    anything: tw.Ref[Any] = None


@tw.ghost(capacity=64)
class Crate:
    label: Annotated[str, tw.text(16)] = ""
    weight: tw.u8 = 0


@tw.ghost(capacity=64)
class Ammunition(Crate):
    rounds: tw.u8 = 0


@tw.ghost(capacity=64)
class Tree:
    height: tw.u8 = 1


PROTOCOL: tw.Protocol[Any] = tw.Protocol(1, [], ghosts=[Tank, Crate, Ammunition, Tree])


class Scene:
    """A server and a client in virtual time, which is shown what `shown` has of each class."""

    def __init__(self, conditions: tw.Conditions | None = None, seed: int = 0, **settings: Any) -> None:
        self.network = testing.SimulatedNetwork(seed=seed, conditions=conditions)
        self.server = tw.Server("10.0.0.1:4000", PROTOCOL, network=self.network)
        self.client = tw.Client.connect(self.server.address, PROTOCOL, network=self.network, **settings)
        self.run(1.0)
        (self.handle,) = self.server.clients
        self.world = self.server.world
        # References may be None, which checkers say at each step.
        self.seen: Any = self.client.world

    def run(self, seconds: float = 0.2) -> list[Any]:
        return testing.advance(self.network, self.server, self.client, seconds=seconds)[1].ghosts

    def choose(self, *classes: type) -> None:
        for class_ in classes:
            self.world.set_relevancy(class_, tw.world.Chosen())

    def show(self, *ghosts: Any) -> None:
        """The client has these of their classes, and no others."""
        for class_ in {type(ghost) for ghost in ghosts}:
            mask = np.zeros(64, bool)
            mask[[self.world.row(ghost) for ghost in ghosts if type(ghost) is class_]] = True
            self.world.show(self.handle, class_, mask)


def test_a_reference_is_the_object_on_both_sides() -> None:
    scene = Scene()
    crate = scene.world.spawn(Crate(label="tools"))
    first = scene.world.spawn(Tank(crate=crate))
    second = scene.world.spawn(Tank(target=first))
    second.anything = scene.world.spawn(Tree(height=9))
    assert (second.target, first.crate, first.target) == (first, crate, None)
    assert {type(event) for event in scene.run()} == {tw.GhostSpawned}
    one, two = scene.seen.objects(Tank)
    assert two.target is one
    assert one.crate is scene.seen.objects(Crate)[0]
    assert one.crate.label == "tools"
    assert two.anything.height == 9
    first.target = second
    [changed] = scene.run()
    assert (changed.ghost, changed.names, changed.old) == (one, ("target",), {"target": None})
    assert one.target is two


def test_it_is_none_until_its_ghost_comes_and_when_it_goes() -> None:
    scene = Scene()
    scene.choose(Crate)
    crate = scene.world.spawn(Crate(label="tools"))
    tank = scene.world.spawn(Tank(crate=crate))
    scene.run()
    seen: Any = scene.seen.objects(Tank)[0]
    assert not seen.crate
    scene.show(crate)
    spawned, linked = scene.run()
    assert isinstance(spawned, tw.GhostSpawned)
    assert isinstance(linked, tw.world.GhostLinked)
    assert (linked.ghost, linked.name, linked.target) == (seen, "crate", spawned.ghost)
    assert repr(linked).startswith("GhostLinked(ghost=Tank(")
    assert seen.crate is spawned.ghost
    scene.world.show(scene.handle, Crate, np.zeros(64, bool))
    despawned, linked = scene.run()
    assert isinstance(despawned, tw.GhostDespawned)
    assert (linked.ghost, linked.name, linked.target) == (seen, "crate", None)
    assert not seen.crate
    scene.show(crate)
    scene.run()
    assert seen.crate.label == "tools"
    scene.world.despawn(crate)
    assert not tank.crate
    assert [type(event) for event in scene.run()] == [tw.GhostDespawned, tw.world.GhostLinked]
    assert not seen.crate


def test_no_reference_is_to_a_later_ghost_of_the_row() -> None:
    scene = Scene()
    crate = scene.world.spawn(Crate)
    tank = scene.world.spawn(Tank(crate=crate))
    scene.run()
    for _ in range(20):
        row = scene.world.row(crate)
        scene.world.despawn(crate)
        crate = scene.world.spawn(Crate)
        assert scene.world.row(crate) == row
        assert tank.crate is None
        scene.run(0.1)
        assert scene.seen.objects(Tank)[0].crate is None
    assert len(set(scene.world.arrays(Crate).network_ids.tolist())) == 1


@pytest.mark.parametrize("seed", range(4))
def test_over_a_bad_line_references_are_the_servers_or_none(seed: int) -> None:
    rng = random.Random(seed)
    bad = tw.Conditions(latency=0.05, jitter=0.04, loss=0.2, duplicate=0.1)
    scene = Scene(bad, seed)
    scene.choose(Crate)
    crates = [scene.world.spawn(Crate(label=f"crate {i}")) for i in range(6)]
    tanks = [scene.world.spawn(Tank(health=i)) for i in range(4)]
    labels: dict[int, set[str | None]] = {i: {None} for i in range(4)}
    linked: dict[tuple[int, str], Any] = {}
    for step in range(120):
        tank = rng.choice(tanks)
        tank.crate = rng.choice([*crates, None])
        labels[tank.health].add(tank.crate.label if tank.crate else None)
        if rng.random() < 0.2:
            gone = crates.pop(rng.randrange(len(crates)))
            scene.world.despawn(gone)
            crates.append(scene.world.spawn(Crate(label=f"crate {10 + step}")))
        if rng.random() < 0.3:
            scene.show(*rng.sample(crates, rng.randrange(1, 6)))
        for event in scene.run(1 / 30):
            match event:
                case tw.GhostSpawned(Tank() as ghost):
                    linked[ghost.health, "crate"] = ghost.crate
                case tw.world.GhostChanged(Tank() as ghost, ("crate",)):
                    linked[ghost.health, "crate"] = ghost.crate
                case tw.world.GhostLinked(ghost, "crate", target):
                    linked[ghost.health, "crate"] = target
                case _:
                    pass
        for ghost in scene.seen.objects(Tank):
            assert (ghost.crate.label if ghost.crate else None) in labels[ghost.health]
            # Events say all that the properties show.
            assert linked[ghost.health, "crate"] is ghost.crate
    scene.show(*crates)
    scene.run(2.0)
    for ghost in scene.seen.objects(Tank):
        theirs = tanks[ghost.health].crate
        assert (ghost.crate and ghost.crate.label) == (theirs and theirs.label)


def test_methods_hear_of_links() -> None:
    heard: list[tuple[str, Any]] = []

    class SeenTank(Tank):
        def on_linked(self, name: str, target: Any) -> None:
            heard.append((name, target))
            assert getattr(self, name) is target

    scene = Scene(ghosts={Tank: SeenTank})
    scene.choose(Tank)
    first, second = scene.world.spawn(Tank), scene.world.spawn(Tank)
    first.target = second
    scene.show(first)
    scene.run()
    scene.show(first, second)
    scene.run()
    scene.world.despawn(second)
    scene.run()
    assert [(name, type(target)) for name, target in heard] == [("target", SeenTank), ("target", type(None))]


def test_columns_have_network_ids() -> None:
    scene = Scene(tuning=tw.Tuning(columns=[Tank]))
    crates = scene.world.spawn_rows(Crate, 10)
    scene.world.spawn_rows(Tank, 10)
    tanks, numbers = scene.world.arrays(Tank), scene.world.arrays(Crate).network_ids
    assert len(set(numbers[crates].tolist()) - {0}) == 10
    tanks["crate"] = numbers[crates][::-1]
    assert scene.world.arrays(Tank).ghost(2).crate is scene.world.arrays(Crate).ghost(7)
    assert {type(event.ghost) for event in scene.run()} == {Crate}
    seen = scene.seen.arrays(Tank)
    assert seen["crate"].tolist() == numbers[::-1].tolist()
    assert seen.ghost(2).crate is scene.seen.arrays(Crate).ghost(7)
    assert not numbers.flags.writeable
    # What is no ghost's number, or one of a class that doesn't fit, is None.
    tanks["crate"][:2] = 12345, scene.world.arrays(Tank).network_ids[0]
    scene.run()
    for world in (scene.world, scene.seen):
        assert [world.arrays(Tank).ghost(row).crate for row in (0, 1)] == [None, None]


def test_a_class_that_nothing_refers_to_has_none() -> None:
    protocol: tw.Protocol[Any] = tw.Protocol(1, [], ghosts=[Tree])
    server = tw.Server("10.0.0.1:4000", protocol, network=testing.SimulatedNetwork())
    with pytest.raises(tw.errors.GhostError, match=r'Tree has no network ids, .* as tw.Ref\["Tree"\]'):
        _ = server.world.arrays(Tree).network_ids
    assert "(id)" not in protocol.description
    assert PROTOCOL.description.count("i 4:(id) bits(32)") == 4


def test_what_may_not_stand_there_is_refused() -> None:
    scene, other = Scene(), Scene()
    tank = scene.world.spawn(Tank)
    crate = scene.world.spawn(Crate)
    with pytest.raises(TypeError, match=r"Tank\.target = Crate\(.*\(Crate\): must be a Tank or None"):
        tank.target = crate  # type: ignore[assignment]
    with pytest.raises(TypeError, match=r"Tank\.target = 7 \(int\): must be a Tank or None"):
        scene.world.spawn(Tank(target=7))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"must be a ghost or None"):
        tank.anything = "tree"
    with pytest.raises(tw.errors.GhostError, match="not one that isn't in a world yet"):
        tank.target = Tank()
    with pytest.raises(tw.errors.GhostError, match="a ghost of this world, not one of another world"):
        tank.target = other.world.spawn(Tank)
    scene.world.despawn(crate)
    with pytest.raises(tw.errors.GhostError, match="a ghost of this world, not one that was despawned"):
        tank.crate = crate
    assert (tank.target, tank.crate, tank.anything) == (None, None, None)
    # Classes derived from it will do.
    tank.crate = scene.world.spawn(Ammunition(rounds=3))
    scene.run()
    assert scene.seen.objects(Tank)[0].crate.rounds == 3


def test_views_and_the_past_have_references() -> None:
    scene = Scene()
    scene.world.remember(1.0)
    first, second = scene.world.spawn(Tank), scene.world.spawn(Tank(health=7))
    first.target = second
    first.crate = scene.world.spawn(Crate(label="tools"))
    scene.run(0.5)
    tick = scene.world.tick
    view: Any = scene.seen.view()
    [seen] = [tank for tank in view.objects(Tank) if tank.health == 100]
    assert (seen.target.health, seen.crate.label) == (7, "tools")
    assert seen.target in view.objects(Tank)
    assert seen.target is not scene.seen.objects(Tank)[1]
    scene.world.despawn(second)
    scene.run(0.2)
    with scene.world.rewind_to(tick - 1) as past:
        then: Any
        [then] = [tank for tank in past.objects(Tank) if tank.health == 100]
        assert then.target.health == 7
    assert first.target is None


def test_a_ghost_that_is_gone_keeps_what_it_referred_to() -> None:
    scene = Scene()
    crate = scene.world.spawn(Crate)
    tank = scene.world.spawn(Tank(crate=crate))
    scene.run()
    [seen] = scene.seen.objects(Tank)
    theirs = seen.crate
    scene.world.despawn(tank)
    scene.run()
    assert tank.crate is crate
    assert seen.crate is theirs


def test_a_class_called_ghost_is_a_class_like_any_other() -> None:
    @tw.ghost
    class House:
        haunted_by: tw.Ref[Ghost] = None

    @tw.ghost
    class Ghost:
        age: tw.u8 = 1

    protocol: tw.Protocol[Any] = tw.Protocol(1, [], ghosts=[House, Ghost])
    _, server, _ = testing.connected_pair(protocol)
    house, ghost = server.world.spawn(House), server.world.spawn(Ghost)
    with pytest.raises(TypeError, match="House.haunted_by = House"):
        house.haunted_by = house  # type: ignore[assignment]
    house.haunted_by = ghost
