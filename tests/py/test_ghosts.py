"""Ghosts: what a server spawns and changes appears at its clients, as objects."""

from __future__ import annotations

import copy
import dataclasses
import enum
import gc
import pickle
import weakref
from typing import Annotated, Any

import pytest
import tickwire as tw
from conftest import paced
from tickwire import testing


class Stance(enum.Enum):
    """A soldier's action."""

    STAND = 0
    CROUCH = 1


class Place(tuple[float, float]):
    """A type of the game's own."""

    def __add__(self, other: Any) -> Place:
        return Place(a + b for a, b in zip(self, other, strict=True))


@tw.message
class Order:
    text: Annotated[str, tw.text(40)]


@tw.message
class Weapon:
    kind: tw.u8
    heat: Annotated[float, tw.quantized(0, 1, 1 / 128)]


@tw.ghost
class Tank:
    position: Annotated[tw.Vec2, tw.vec2(-2000, 2000, 1 / 256)] = tw.default()
    heading: Annotated[float, tw.angle(0, 360, 0.5)] = tw.default()
    health: Annotated[int, tw.ranged(0, 100)] = 100
    name: Annotated[str, tw.text(24), tw.initial] = ""
    ammo: Annotated[int, tw.ranged(0, 999), tw.world.owner_only] = 50
    noise: Annotated[int, tw.ranged(1, 9), tw.world.except_owner] = 5

    def hurt(self, damage: int) -> bool:
        self.health = max(0, self.health - damage)
        return self.health == 0


@tw.ghost(capacity=4)
class Soldier(Tank):
    """Of all kinds of properties."""

    stance: Stance = tw.default()
    weapon: Weapon = tw.default()
    target: tw.u16 | None = None
    place: Annotated[Place, tw.fields.converted(Annotated[tw.Vec2, tw.vec2(0, 99, 1 / 16)], tuple, Place)] = (
        tw.default()
    )
    bag: Annotated[list[tw.u8], tw.up_to(4)] = tw.default()
    wide: tw.u128 = 0


class Scene:
    """A server and clients in virtual time."""

    def __init__(self, clients: int = 1, conditions: tw.Conditions | None = None, **settings: Any) -> None:
        self.network = testing.SimulatedNetwork()
        self.protocol = tw.Protocol(1, [Order], ghosts=[Tank, Soldier])
        both: dict[str, Any] = {
            "protocol": self.protocol,
            "network": self.network,
            "debugging": tw.testing.Debugging(conditions=conditions, seed=7),
        }
        self.server = tw.Server("10.0.0.1:4000", **both)
        self.world = self.server.world
        self.clients = [
            tw.Client.connect(self.server.address, client_id=i, **both, **settings) for i in range(clients)
        ]
        self.run(1.0)
        self.handles = sorted(self.server.clients, key=lambda handle: handle.id)

    def run(self, seconds: float = 0.2) -> list[list[Any]]:
        """What happened to each client's ghosts meanwhile."""
        collected = testing.advance(self.network, self.server, *self.clients, seconds=seconds)
        return [each.ghosts for each in collected[1:]]


def test_what_is_spawned_changed_and_despawned_is_told_in_order() -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank(position=(1, 2), name="Bob"))
    [[spawned]] = scene.run()
    assert isinstance(spawned, tw.GhostSpawned)
    ghost = spawned.ghost
    assert type(ghost) is Tank
    assert (ghost.position, ghost.health, ghost.name) == ((1, 2), 100, "Bob")
    assert scene.clients[0].world.objects(Tank) == [ghost]
    tank.health -= 10
    tank.position = (3, 4)
    [[changed]] = scene.run()
    assert isinstance(changed, tw.world.GhostChanged)
    assert (changed.ghost, changed.names) == (ghost, ("position", "health"))
    assert (ghost.position, ghost.health) == ((3, 4), 90)
    scene.world.despawn(tank)
    [[despawned]] = scene.run()
    assert isinstance(despawned, tw.GhostDespawned)
    assert despawned.ghost is ghost
    # It keeps its last values, on both sides.
    assert (ghost.health, tank.health, ghost.name) == (90, 90, "Bob")
    assert ghost not in scene.clients[0].world
    assert tank not in scene.world
    assert scene.run() == [[]]


def test_methods_see_the_world_and_change_it() -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank)
    assert not tank.hurt(30)
    assert tank.hurt(80)
    [[spawned]] = scene.run()
    assert spawned.ghost.health == 0


def test_the_server_goes_on_with_the_numbers_that_it_set() -> None:
    """However coarse the wire has them: small steps add up."""
    scene = Scene()
    tank = scene.world.spawn(Tank)
    for _ in range(1000):
        tank.position = (tank.position[0] + 1 / 1024, 0)
    assert tank.position[0] == 1000 / 1024
    scene.run()
    [ghost] = scene.clients[0].world.objects(Tank)
    assert ghost.position[0] == pytest.approx(1000 / 1024, abs=1 / 256)


def test_every_kind_of_property_arrives() -> None:
    scene = Scene()
    given = {
        "position": (1.5, -2.25),
        "heading": 90.5,
        "stance": Stance.CROUCH,
        "weapon": Weapon(3, 0.5),
        "target": 7,
        "place": Place((3, 4.5)),
        "bag": [1, 2, 3],
        "wide": 2**127 + 1,
    }
    soldier = scene.world.spawn(Soldier(**given))  # type: ignore[arg-type]
    scene.run()
    [ghost] = scene.clients[0].world.objects(Soldier)
    for name, value in given.items():
        assert getattr(soldier, name) == value, name
        assert getattr(ghost, name) == (pytest.approx(value) if name == "heading" else value), name
    changed = {"stance": Stance.STAND, "weapon": Weapon(4, 1.0), "target": None, "bag": [], "wide": 5}
    for name, value in changed.items():
        setattr(soldier, name, value)
    soldier.place += (0.5, 0.5)
    [[event]] = scene.run()
    assert set(event.names) == {*changed, "place"}
    for name, value in changed.items():
        assert getattr(ghost, name) == value, name
    assert ghost.place == Place((3.5, 5.0))
    assert isinstance(ghost.place, Place)


def test_conditions_say_who_is_sent_what() -> None:
    scene = Scene(clients=2)
    tank = scene.world.spawn(Tank(name="first", ammo=7, noise=2), owner=scene.handles[0])
    scene.run()
    [own], [other] = (client.world.objects(Tank) for client in scene.clients)
    assert [client.world.owns(ghost) for client, ghost in zip(scene.clients, (own, other), strict=True)] == [
        True,
        False,
    ]
    # Properties that aren't sent have the class's defaults.
    assert (own.ammo, own.noise, own.name) == (7, 5, "first")
    assert (other.ammo, other.noise, other.name) == (50, 2, "first")
    tank.ammo, tank.noise, tank.name = 8, 3, "second"
    [[mine], [theirs]] = scene.run()
    assert (mine.names, theirs.names) == (("ammo",), ("noise",))
    assert (own.ammo, own.name) == (8, "first")
    assert (other.noise, other.name) == (3, "first")
    assert tank.name == "second"


def test_a_ghost_changes_hands() -> None:
    scene = Scene(clients=2)
    first, second = scene.handles
    tank = scene.world.spawn(Tank(ammo=9), owner=first)
    scene.run()
    assert scene.world.owner(tank) is first
    scene.world.set_owner(tank, second)
    losing, getting = scene.run()
    assert [(type(event), event.owned) for event in losing if isinstance(event, tw.world.GhostOwned)] == [
        (tw.world.GhostOwned, False)
    ]
    assert [event.owned for event in getting if isinstance(event, tw.world.GhostOwned)] == [True]
    assert [client.world.owns(client.world.objects(Tank)[0]) for client in scene.clients] == [False, True]
    assert scene.clients[1].world.objects(Tank)[0].ammo == 9
    scene.clients[1].close()
    scene.run(1.0)
    assert scene.world.owner(tank) is None
    assert tank in scene.world
    # A client that is gone gets nothing, and nothing raises.
    scene.world.set_owner(tank, second)
    assert scene.world.owner(tank) is None


def test_a_client_that_is_gone_is_kept_by_no_ghost() -> None:
    scene = Scene(clients=2)
    world, (first, second) = scene.world, scene.handles
    tanks = [world.spawn(Tank, owner=first), world.spawn(Tank, owner=second)]
    world.spawn_rows(Tank, 2, owner=first)
    nobody = 2**64 - 1
    assert list(world.arrays(Tank).owners) == [first.number, second.number, first.number, first.number]
    first.data = Tank()
    kept = weakref.ref(first.data)
    scene.server.disconnect(first)
    scene.run()
    assert list(world.arrays(Tank).owners) == [nobody, second.number, nobody, nobody]
    world.spawn(Tank, owner=first)
    world.spawn_rows(Tank, 2, owner=first)
    world.set_owner(tanks[1], first)
    assert list(world.arrays(Tank).owners) == [nobody] * 7
    assert world.owner(tanks[1]) is None
    scene.handles.clear()
    del first
    gc.collect()
    assert kept() is None


def test_a_ghost_may_spawn_in_the_place_of_one_that_ends() -> None:
    world: Any = None
    born: list[Any] = []

    def spawning(value: Any) -> Place:
        # Reading a value of the game's own type, as for the last values of a ghost that ends.
        if world is not None and not born:
            born.append(None)
            born[0] = world.spawn(Crate)
        return Place(value)

    @tw.ghost(capacity=3)
    class Crate:
        place: Annotated[
            Place, tw.fields.converted(Annotated[tw.Vec2, tw.vec2(0, 99, 1)], tuple, spawning)
        ] = tw.default()

    network, server, client = testing.connected_pair(tw.Protocol(1, [Order], ghosts=[Crate]))
    crate = server.world.spawn(Crate)
    world = server.world
    world.despawn(crate)
    assert [world.row(each) for each in born] == [1]
    assert world.objects(Crate) == born
    assert crate not in world
    testing.advance(network, server, client, seconds=0.2)
    assert len(client.world.objects(Crate)) == 1


def test_a_ghost_may_be_despawned_by_its_own_despawning() -> None:
    world: Any = None
    born: list[Any] = []

    def despawning(value: Any) -> Place:
        if world is not None and not born:
            born.append(None)
            world.despawn(crate)
            born[0] = world.spawn(Crate)
        return Place(value)

    @tw.ghost(capacity=3)
    class Crate:
        place: Annotated[
            Place, tw.fields.converted(Annotated[tw.Vec2, tw.vec2(0, 99, 1)], tuple, despawning)
        ] = tw.default()

    network, server, client = testing.connected_pair(tw.Protocol(1, [Order], ghosts=[Crate]))
    crate = server.world.spawn(Crate)
    world = server.world
    world.despawn(crate)
    assert world.objects(Crate) == born
    assert world.row(born[0]) == 0
    testing.advance(network, server, client, seconds=0.2)
    assert len(client.world.objects(Crate)) == 1


def test_late_joiners_see_the_world_as_it_is() -> None:
    scene = Scene()
    tanks = [scene.world.spawn(Tank(health=n)) for n in range(50)]
    scene.run()
    for tank in tanks:
        tank.health += 10
    scene.world.despawn(tanks.pop())
    scene.run()
    joiner = tw.Client.connect(scene.server.address, scene.protocol, network=scene.network)
    scene.clients.append(joiner)
    *_, events = scene.run(1.0)
    assert len(events) == 49
    healths = sorted(tank.health for tank in tanks)
    assert sorted(ghost.health for ghost in joiner.world.objects(Tank)) == healths
    assert sorted(ghost.health for ghost in scene.clients[0].world.objects(Tank)) == healths


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_after_quiet_every_client_has_the_servers_world(seed: int) -> None:
    import random

    draw = random.Random(seed)
    scene = Scene(clients=2, conditions=tw.Conditions(latency=0.05, jitter=0.03, loss=0.2, duplicate=0.05))
    alive: list[Tank] = []
    lives = [0, 0]
    for _ in range(120):
        if draw.random() < 0.3 or not alive:
            alive.append(
                scene.world.spawn(
                    Tank(name=f"{draw.random():.3f}"), owner=draw.choice([None, *scene.handles])
                )
            )
        if draw.random() < 0.2:
            scene.world.despawn(alive.pop(draw.randrange(len(alive))))
        for tank in alive:
            if draw.random() < 0.3:
                tank.health = draw.randrange(101)
        for at, events in enumerate(scene.run(1 / 60)):
            for event in events:
                lives[at] += isinstance(event, tw.GhostSpawned) - isinstance(event, tw.GhostDespawned)
    for at, events in enumerate(scene.run(5.0)):
        for event in events:
            lives[at] += isinstance(event, tw.GhostSpawned) - isinstance(event, tw.GhostDespawned)
    expected = sorted((tank.name, tank.health) for tank in alive)
    for at, client in enumerate(scene.clients):
        ghosts = client.world.objects(Tank)
        assert sorted((ghost.name, ghost.health) for ghost in ghosts) == expected
        assert lives[at] == len(alive)
        assert all((ghost in client.world) for ghost in ghosts)


def test_each_object_is_one_and_lives_as_long_as_its_ghost() -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank)
    assert scene.world.objects(Tank)[0] is tank
    assert scene.world.arrays(Tank).ghost(scene.world.row(tank)) is tank
    assert {tank: 1}[tank] == 1
    scene.run()
    ghost = weakref.ref(scene.clients[0].world.objects(Tank)[0])
    gc.collect()
    assert ghost() is scene.clients[0].world.objects(Tank)[0]
    scene.world.despawn(tank)
    scene.run()
    gc.collect()
    assert ghost() is None


def test_worlds_are_collected_with_their_endpoints() -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank)
    held, world = weakref.ref(scene.world.spawn(Tank)), scene.world
    del scene
    gc.collect()
    with pytest.raises(tw.errors.ClosedError):
        world.spawn(Tank)
    # Who still has it has a plain object.
    tank.health = 3
    assert tank.health == 3
    del world
    gc.collect()
    assert held() is None


def test_last_values_are_its_own_where_its_row_is_anothers_at_once() -> None:
    """A client that isn't ticked for long hears of an end and of the next with the same id in one tick."""
    scene = Scene()
    first = scene.world.spawn(Tank(name="first", health=1))
    scene.run()
    client = scene.clients[0]
    [ghost] = client.world.objects(Tank)
    scene.world.despawn(first)
    for _ in range(30):
        with scene.server.tick():
            pass
        scene.network.advance(1 / 60)
        client._step()
    scene.world.spawn(Tank(name="second", health=2))
    for _ in range(10):
        with scene.server.tick():
            pass
        scene.network.advance(1 / 60)
        client._step()
    despawned, spawned = client.receive().ghosts
    assert isinstance(despawned, tw.GhostDespawned)
    assert despawned.ghost is ghost
    assert (ghost.name, ghost.health) == ("first", 1)
    assert (spawned.ghost.name, spawned.ghost.health) == ("second", 2)
    assert client.world.row(spawned.ghost) == 0
    assert client.world.objects(Tank) == [spawned.ghost]


def test_a_ghost_is_a_plain_object_until_it_is_spawned() -> None:
    tank = Tank(position=(1, 2), health=3)
    tank.health = 4
    assert (tank.health, tank.ammo) == (4, 50)
    assert tank != Tank(position=(1, 2), health=4)
    assert repr(tank) == "Tank(position=(1, 2), heading=0.0, health=4, name='', ammo=50, noise=5)"
    assert dataclasses.replace(tank, health=5).health == 5
    assert dataclasses.asdict(tank)["health"] == 4
    match tank:
        case Tank(position=(x, _)):
            assert x == 1
    with pytest.raises(AttributeError):
        tank.helth = 3  # type: ignore[attr-defined]


def test_copies_are_plain_objects() -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank(name="Bob", health=3))
    for twin in (copy.copy(tank), copy.deepcopy(tank), pickle.loads(pickle.dumps(tank))):
        assert (type(twin), twin.name, twin.health) == (Tank, "Bob", 3)
        twin.health = 4
        assert tank.health == 3
        assert scene.world.spawn(twin) is twin


def test_slots_of_its_own_go_nowhere() -> None:
    @tw.ghost
    class Bot:
        __slots__ = ("mind",)
        health: Annotated[int, tw.ranged(0, 100)] = 100

        def __post_init__(self) -> None:
            self.mind = "calm"

    bot = Bot()
    assert bot.mind == "calm"
    protocol = tw.Protocol(1, [Order], ghosts=[Bot])
    server = tw.Server("10.0.0.1:4000", protocol, network=testing.SimulatedNetwork())
    assert server.world.spawn(bot).mind == "calm"


def test_super_and_bases_work() -> None:
    @tw.ghost
    class Base:
        health: Annotated[int, tw.ranged(0, 100)] = 100

        def words(self) -> str:
            return f"health {self.health}"

    @tw.ghost
    class Derived(Base):
        ammo: tw.u8 = 3

        def words(self) -> str:
            return super().words() + f", ammo {self.ammo}"

    assert Derived(health=1).words() == "health 1, ammo 3"
    assert isinstance(Derived(), Base)
    assert issubclass(Derived, tw.world.Ghost)


def test_other_ghosts_are_another_protocol() -> None:
    with_tanks = tw.Protocol(1, [Order], ghosts=[Tank])
    assert with_tanks.hash != tw.Protocol(1, [Order]).hash
    assert with_tanks.hash != tw.Protocol(1, [Order], ghosts=[Soldier]).hash
    assert with_tanks.ghosts == [Tank]
    assert "class 4:Tank 65536" in with_tanks.description
    # Their channel is not the game's.
    assert len(with_tanks.channels) == 2


def test_what_a_spawn_refuses_has_changed_nothing() -> None:
    scene = Scene()
    with pytest.raises(tw.FieldError):
        scene.world.spawn(Tank(health=1000))
    for _ in range(4):
        scene.world.spawn(Soldier)
    with pytest.raises(tw.errors.GhostError, match="at most 4 ghosts"):
        scene.world.spawn(Soldier)
    assert repr(scene.world) == "<World of 0 Tank, 4 Soldier>"
    scene.run()
    assert repr(scene.clients[0].world) == "<ClientWorld of 0 Tank, 4 Soldier>"
    # A row is free as soon as its ghost is out of the world.
    scene.world.despawn(scene.world.objects(Soldier)[0])
    scene.world.spawn(Soldier)
    scene.run()
    assert len(scene.clients[0].world.objects(Soldier)) == 4


def test_costs_sum_to_what_each_client_was_sent() -> None:
    scene = Scene(clients=2)
    tanks = [scene.world.spawn(Tank(name=f"tank {n}"), owner=scene.handles[n % 2]) for n in range(10)]
    for step in range(30):
        for tank in tanks:
            tank.position = (step, step)
            tank.ammo += 1
        scene.run(1 / 60)
    costs = scene.world.costs
    assert list(costs) == ["Tank", "Soldier", "(world)"]
    assert costs["Tank"]["position"] > costs["Tank"]["name"] > 0
    total = sum(sum(each.values()) for each in costs.values())
    assert total == sum(scene.world.client_bits(handle) for handle in scene.handles) > 0


def test_tools_know_of_ghosts() -> None:
    client = pytest.importorskip("prometheus_client")
    from tickwire import _inspection as inspection
    from tickwire import metrics

    scene = Scene()
    scene.world.spawn(Tank)
    scene.run()
    registry = client.CollectorRegistry()
    registry.register(metrics.ServerCollector(scene.server, "arena"))
    assert registry.get_sample_value("tickwire_channel_queued", {"server": "arena", "channel": "ghosts"}) == 0
    ours = {"server": "arena", "class": "Tank"}
    assert registry.get_sample_value("tickwire_ghosts", ours) == 1
    bits = registry.get_sample_value("tickwire_ghost_bits_total", {**ours, "property": "position"})
    assert bits == scene.world.costs["Tank"]["position"] > 0
    lines = inspection.describe(scene.protocol).splitlines()
    assert "Soldier: 247 to 494 bits, at most 4 at a time" in lines
    assert "  ammo            10 bits  ranged(0, 999), owner_only" in lines


def test_handlers_are_called_with_events_of_ghosts() -> None:
    handlers, told = tw.messages.Handlers(), []

    @handlers.on(tw.GhostSpawned)
    def appeared(event: tw.GhostSpawned) -> None:
        told.append(event.ghost.name)

    scene = Scene()
    tank = scene.world.spawn(Tank(name="Bob"))
    for _ in range(10):
        scene.server.flush()
        scene.network.advance(1 / 60)
        with scene.clients[0].tick() as inbox:
            assert handlers.dispatch(inbox) == []
    tank.health = 1
    scene.server.flush()
    scene.network.advance(1 / 60)
    [left] = handlers.dispatch(scene.clients[0].receive())
    assert told == ["Bob"]
    assert isinstance(left, tw.world.GhostChanged)


def test_a_message_finds_the_ghost_that_came_before_it() -> None:
    """Both ride in the packets of one tick, and a tick is handed up whole."""
    scene = Scene()
    scene.world.spawn(Tank(name="Bob"))
    scene.server.send(scene.handles[0], Order("attack Bob"))
    for _ in range(20):
        scene.server.flush()
        scene.network.advance(1 / 60)
        with scene.clients[0].tick() as inbox:
            if inbox.messages:
                assert [ghost.name for ghost in scene.clients[0].world.objects(Tank)] == ["Bob"]
                return
        scene.server.receive()
    pytest.fail("the message didn't come")


def test_a_ghost_that_changed_is_news() -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank)
    scene.run()
    assert not scene.clients[0]._has_news
    tank.health = 3
    scene.server.flush()
    scene.network.advance(1 / 60)
    scene.clients[0]._step()
    assert scene.clients[0]._has_news
    scene.clients[0].receive()
    assert not scene.clients[0]._has_news


@pytest.mark.parametrize("driver", ["polled", "thread"])
def test_ghosts_go_over_sockets(driver: Any) -> None:
    protocol = tw.Protocol(1, [Order], ghosts=[Tank])
    with (
        tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver=driver)) as server,
        tw.Client.connect(server.address, protocol, tuning=tw.Tuning(driver=driver)) as client,
    ):
        tank = server.world.spawn(Tank(name="Bob"))
        told: list[Any] = []

        def until(ready: Any) -> None:
            for _ in paced(100):
                with server.tick():
                    if tank in server.world:
                        tank.position = (tank.position[0] + 0.25, 0)
                with client.tick() as inbox:
                    told.extend(inbox.ghosts)
                if ready():
                    return

        until(lambda: any(isinstance(event, tw.world.GhostChanged) for event in told))
        assert isinstance(told[0], tw.GhostSpawned)
        assert told[0].ghost.name == "Bob"
        server.world.despawn(tank)
        until(lambda: isinstance(told[-1], tw.GhostDespawned))


def test_a_value_that_becomes_zero_is_sent() -> None:
    """Also as the first change that its row ever has, or has had since another ghost was in it."""

    @tw.ghost
    class Lamp:
        lit: bool = True
        strength: tw.u8 = 7

    network, server, client = testing.connected_pair(tw.Protocol(id=1, messages=[], ghosts=[Lamp]))
    for _ in range(2):
        lamp = server.world.spawn(Lamp)
        testing.advance(network, server, client, seconds=0.3)
        (seen,) = client.world.objects(Lamp)
        assert (seen.lit, seen.strength) == (True, 7)
        lamp.lit = False
        testing.advance(network, server, client, seconds=0.3)
        assert (seen.lit, seen.strength) == (False, 7)
        lamp.strength = 0
        testing.advance(network, server, client, seconds=0.3)
        assert (seen.lit, seen.strength) == (False, 0)
        server.world.despawn(lamp)
        testing.advance(network, server, client, seconds=0.3)
