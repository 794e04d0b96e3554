"""Ghosts of classes that are coded: the same world in fewer bytes."""

from __future__ import annotations

import math
import random
from typing import Annotated, Any

import pytest
import tickwire as tw
from tickwire import _inspection as inspection
from tickwire import testing


@tw.message
class Weapon:
    kind: tw.u8
    heat: Annotated[float, tw.quantized(0, 1, 1 / 128)]


def cubes(coded: bool, **settings: Any) -> type[Any]:
    @tw.ghost(coded=coded, **settings)
    class Cube:
        position: Annotated[tw.Vec3, tw.vec3(-100, 100, 1 / 512)] = (0, 0, 0)
        turn: Annotated[tw.fields.Quaternion, tw.fields.quaternion(9)] = (0, 0, 0, 1)
        health: Annotated[int, tw.ranged(0, 100)] = 100
        name: Annotated[str, tw.text(24), tw.initial] = ""
        ammo: Annotated[int, tw.ranged(0, 999), tw.world.owner_only] = 50
        weapon: Weapon = tw.default()
        target: tw.u16 | None = None
        bag: Annotated[list[tw.u8], tw.up_to(4)] = tw.default()
        wide: tw.u128 = 0

    return Cube


class Scene:
    """A server and clients in virtual time, with cubes that fly about."""

    def __init__(self, coded: bool, conditions: tw.Conditions | None = None) -> None:
        self.cube = cubes(coded)
        self.network = testing.SimulatedNetwork()
        protocol = tw.Protocol(1, [], ghosts=[self.cube])
        both: dict[str, Any] = {
            "protocol": protocol,
            "network": self.network,
            "debugging": tw.testing.Debugging(conditions=conditions, seed=7),
        }
        self.server = tw.Server("10.0.0.1:4000", **both)
        self.clients = [tw.Client.connect(self.server.address, client_id=i, **both) for i in range(2)]
        self.run(1.0)
        self.handles = sorted(self.server.clients, key=lambda handle: handle.id)

    def run(self, seconds: float) -> None:
        testing.advance(self.network, self.server, *self.clients, seconds=seconds)

    def play(self, seed: int, ticks: int) -> dict[str, Any]:
        """Lets cubes come, fly, change and go; then the server's that are left, by name."""
        draw = random.Random(seed)
        alive: list[Any] = []
        for tick in range(ticks):
            if draw.random() < 0.3 or not alive:
                cube = self.cube(
                    name=f"{draw.random():.4f}", position=(draw.uniform(-50, 50), draw.uniform(-50, 50), 0)
                )
                alive.append(self.server.world.spawn(cube, owner=draw.choice([None, *self.handles])))
            if draw.random() < 0.02:
                self.server.world.despawn(alive.pop(draw.randrange(len(alive))))
            for number, cube in enumerate(alive):
                x, y, _ = cube.position
                cube.position = (x + 0.1, y - 0.03 * number / len(alive), abs(math.sin(tick / 20 + number)))
                cube.turn = (0, math.sin(tick / 30), 0, math.cos(tick / 30))
                if draw.random() < 0.05:
                    cube.ammo = draw.randrange(1000)
                    cube.weapon = Weapon(draw.randrange(200), 0.5)
                    cube.target = draw.choice([None, 7, 40_000])
                    cube.bag = [draw.randrange(256) for _ in range(draw.randrange(5))]
                    cube.wide = draw.getrandbits(128)
            self.run(1 / 60)
        self.run(5.0)
        return {cube.name: cube for cube in alive}

    def bits(self) -> int:
        return sum(self.server.world.client_bits(handle) for handle in self.handles)


LINE = tw.Conditions(latency=0.05, jitter=0.03, loss=0.1, duplicate=0.05)


@pytest.mark.parametrize("conditions", [None, LINE], ids=["good", "bad"])
def test_the_same_world_in_fewer_bits(conditions: tw.Conditions | None) -> None:
    bits = []
    for coded in (False, True):
        scene = Scene(coded, conditions)
        expected = scene.play(3, 120)
        for client, handle in zip(scene.clients, scene.handles, strict=True):
            ghosts = client.world.objects(scene.cube)
            assert sorted(ghost.name for ghost in ghosts) == sorted(expected)
            for ghost in ghosts:
                cube = expected[ghost.name]
                assert ghost.position == pytest.approx(cube.position, abs=1 / 512)
                for name in ("health", "weapon", "target", "bag", "wide"):
                    assert getattr(ghost, name) == getattr(cube, name), name
                owns = scene.server.world.owner(cube) == handle
                assert client.world.owns(ghost) == owns
                assert ghost.ammo == (cube.ammo if owns else 50)
        costs = scene.server.world.costs
        assert sum(sum(each.values()) for each in costs.values()) == scene.bits()
        bits.append(scene.bits())
    plain, coded_bits = bits
    assert coded_bits < (0.75 if conditions is None else 0.96) * plain


def test_whether_it_is_coded_is_part_of_the_protocol() -> None:
    plain, coded = (tw.Protocol(1, [], ghosts=[cubes(each)]) for each in (False, True))
    assert plain.hash != coded.hash
    assert "class 4:Cube 65536 coded" in coded.description
    assert "class 4:Cube 65536\n" in plain.description
    lines = inspection.describe(coded).splitlines()
    assert any(line.startswith("Cube: ") and line.endswith("at a time, coded") for line in lines)


def test_what_is_not_a_bool_is_refused() -> None:
    with pytest.raises(TypeError, match="Cube: coded must be True or False, not 1"):
        cubes(1)  # type: ignore[arg-type]


def test_plain_and_coded_classes_share_a_world() -> None:
    @tw.ghost
    class Score:
        points: tw.u16 = 0

    cube = cubes(coded=True)
    network, server, client = testing.connected_pair(tw.Protocol(1, [], ghosts=[Score, cube]))
    score, box = server.world.spawn(Score), server.world.spawn(cube)
    for step in range(40):
        score.points, box.position = step, (step / 10, 0, 0)
        testing.advance(network, server, client, seconds=1 / 60)
    testing.advance(network, server, client, seconds=0.2)
    ([seen_score], [seen_box]) = (client.world.objects(each) for each in (Score, cube))
    assert seen_score.points == 39
    assert seen_box.position == pytest.approx((3.9, 0, 0), abs=1 / 512)


def test_packets_that_are_overtaken_by_far_are_read() -> None:
    """They name ticks long ago, and are acked: what they change is not sent again."""

    @tw.ghost(coded=True)
    class Lamp:
        lit: tw.u16 = 0

    line = tw.Conditions(latency=0.45, jitter=0.45)
    sim = testing.Simulation(tw.Protocol(1, [], ghosts=[Lamp]), seed=4, conditions=line, rate=128)
    server, client = sim.server(), sim.client()
    sim.run(5)
    lamps = [server.world.spawn(Lamp) for _ in range(1000)]
    sim.run(8)
    for number, lamp in enumerate(lamps):
        lamp.lit = number
        sim.run(20 / 128)
    sim.run(10)
    assert client.connected
    assert sorted(lamp.lit for lamp in client.world.objects(Lamp)) == list(range(1000))
