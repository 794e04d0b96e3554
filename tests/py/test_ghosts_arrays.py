"""Ghosts as arrays: the world's own memory, a column a property."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import tickwire as tw
from tickwire import testing

np = pytest.importorskip("numpy")


@tw.message
class Order:
    text: Annotated[str, tw.text(40)]


@tw.ghost(capacity=2000)
class Wanderer:
    position: Annotated[tw.Vec2, tw.vec2(-1000, 1000, 1 / 64)] = tw.default()
    heading: Annotated[float, tw.angle(0, 360, 0.5)] = tw.default()
    mood: Annotated[int, tw.ranged(-3, 3)] = 0
    pose: Annotated[tw.fields.Quaternion, tw.fields.quaternion(9)] = (0, 0, 0, 1)
    target: tw.u16 | None = None
    name: Annotated[str, tw.text(8)] = ""


@tw.ghost(capacity=65_536)
class Star:
    x: tw.f64 = 0
    y: tw.f64 = 0
    z: tw.f64 = 0
    mass: tw.f64 = 0
    age: tw.f64 = 0
    glow: tw.f64 = 0
    spin: tw.f64 = 0
    heat: tw.f64 = 0


class Scene:
    """A server and clients in virtual time."""

    def __init__(self, clients: int = 1, **settings: Any) -> None:
        self.network = testing.SimulatedNetwork()
        self.protocol = tw.Protocol(1, [Order], ghosts=[Wanderer])
        both: dict[str, Any] = {"protocol": self.protocol, "network": self.network}
        self.server = tw.Server("10.0.0.1:4000", **both)
        self.world = self.server.world
        self.clients = [
            tw.Client.connect(self.server.address, client_id=i, **both, **settings) for i in range(clients)
        ]
        self.run(0.5)
        self.handles = sorted(self.server.clients, key=lambda handle: handle.id)

    def run(self, seconds: float = 0.2) -> list[list[Any]]:
        collected = testing.advance(self.network, self.server, *self.clients, seconds=seconds)
        return [each.ghosts for each in collected[1:]]

    def seen(self, client: int = 0) -> set[int]:
        """The moods that a client sees."""
        arrays = self.clients[client].world.arrays(Wanderer)
        return {int(mood) for mood in arrays["mood"][arrays.rows]}


def test_columns_are_the_worlds_memory() -> None:
    scene = Scene()
    rows = scene.world.spawn_rows(Wanderer(mood=2), 300)
    arrays = scene.world.arrays(Wanderer)
    assert (len(arrays), arrays.living, arrays.capacity) == (300, 300, 2000)
    assert arrays.names == ["position", "heading", "mood", "pose", "target"]
    assert arrays["position"].shape == (300, 2)
    assert arrays["mood"].dtype == np.int8
    assert arrays["target"].dtype.names == ("value", "present")
    assert rows.tolist() == list(range(300))
    arrays["position"][:, 0] = np.arange(300)
    arrays["position"] += (0.0, 0.5)
    arrays["mood"] = -1
    arrays["target"]["value"][::2] = 9
    arrays["target"]["present"][::2] = True
    one = arrays.ghost(7)
    assert (one.position, one.mood, one.target) == ((7.0, 0.5), -1, None)
    one.mood = 3
    assert arrays["mood"][7] == 3
    scene.run(1.0)
    theirs = scene.clients[0].world.arrays(Wanderer)
    for name in ("position", "mood", "target"):
        np.testing.assert_array_equal(np.sort(theirs[name], axis=0), np.sort(arrays[name], axis=0))
    assert theirs["pose"].shape == (300, 4)


def test_rows_are_stable_and_views_stay_good() -> None:
    scene = Scene()
    scene.world.spawn_rows(Wanderer, 10)
    arrays = scene.world.arrays(Wanderer)
    view = arrays["mood"]
    scene.world.despawn_rows(Wanderer, [3, 4])
    assert arrays.rows.tolist() == [0, 1, 2, 5, 6, 7, 8, 9]
    assert arrays.alive.tolist() == [True] * 3 + [False] * 2 + [True] * 5
    # Harmless: nobody lives there.
    view[:] = np.arange(10) % 4
    scene.run()
    assert scene.clients[0].world.arrays(Wanderer).living == 8
    again = scene.world.spawn_rows(Wanderer(mood=-3), 3)
    assert again.tolist() == [3, 4, 10]
    assert view.shape == (10,)
    assert view[3] == -3
    assert arrays["mood"].shape == (11,)
    scene.run()
    assert sorted(scene.clients[0].world.arrays(Wanderer)["mood"]) == sorted(arrays["mood"])


def test_objects_and_arrays_make_the_same_bits() -> None:
    def bits(as_arrays: bool) -> tuple[int, dict[str, dict[str, int]]]:
        scene = Scene()
        tanks = [scene.world.spawn(Wanderer) for _ in range(20)]
        arrays = scene.world.arrays(Wanderer)
        for step in range(60):
            if as_arrays:
                arrays["position"] += (0.25, step / 4)
                arrays["mood"] = step % 3
            else:
                for tank in tanks:
                    tank.position = (tank.position[0] + 0.25, tank.position[1] + step / 4)
                    tank.mood = step % 3
            scene.run(1 / 60)
        return scene.world.client_bits(scene.handles[0]), scene.world.costs

    assert bits(as_arrays=True) == bits(as_arrays=False)


def test_on_a_client_columns_are_read_only_and_change_in_place() -> None:
    scene = Scene()
    tank = scene.world.spawn(Wanderer(mood=1))
    scene.run()
    arrays = scene.clients[0].world.arrays(Wanderer)
    view = arrays["mood"]
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 3
    with pytest.raises(tw.errors.GhostError, match="can't be set on a client"):
        arrays["mood"] = 3
    tank.mood = 2
    scene.run()
    assert view[0] == 2
    assert arrays.owners.tolist() == [False]


def test_a_class_that_comes_as_columns_makes_no_objects() -> None:
    scene = Scene(tuning=tw.Tuning(columns=[Wanderer]))
    scene.world.spawn_rows(Wanderer, 100)
    arrays = scene.clients[0].world.arrays(Wanderer)
    spawned: list[int] = []
    for _ in range(60):
        assert scene.run(1 / 60) == [[]]
        spawned += arrays.spawned.tolist()
    assert sorted(spawned) == list(range(100))
    scene.world.arrays(Wanderer)["mood"][10:20] = 3
    scene.world.despawn_rows(Wanderer, [99])
    changed, despawned = 0, 0
    for _ in range(30):
        assert scene.run(1 / 60) == [[]]
        changed, despawned = changed + len(arrays.changed), despawned + len(arrays.despawned)
    assert (changed, despawned) == (10, 1)


def test_a_wrong_value_is_named_and_costs_the_others_nothing() -> None:
    scene = Scene()
    scene.world.spawn_rows(Wanderer, 3)
    scene.run()
    arrays = scene.world.arrays(Wanderer)
    arrays["position"][:] = [(1, 1), (2000, 2), (3, 3)]
    for _ in range(2):
        with pytest.raises(tw.FieldError) as raised:
            scene.server.flush()
        assert str(raised.value) == "Wanderer.position of row 1 = 2000.0: must be -1000 to 1000"
    arrays["position"][1] = (2, 2)
    scene.server.flush()
    scene.run()
    assert sorted(scene.clients[0].world.arrays(Wanderer)["position"][:, 0]) == [1, 2, 3]


def test_a_grid_shows_what_is_near() -> None:
    scene = Scene()
    scene.world.set_relevancy(Wanderer, tw.world.Grid("position", radius=100, leave_radius=120, linger=0))
    for mood, x in enumerate((0, 99, 101, 500), -1):
        scene.world.spawn(Wanderer(position=(x, 0), mood=mood))
    scene.run()
    assert scene.seen() == set()
    assert scene.world.look_from(scene.handles[0], Wanderer, [(0, 0)])
    scene.run()
    assert scene.seen() == {-1, 0}
    # What one has stays up to the larger radius.
    scene.world.look_from(scene.handles[0], Wanderer, [(-15, 0)])
    scene.run()
    assert scene.seen() == {-1, 0}
    scene.world.look_from(scene.handles[0], Wanderer, [(450, 0)])
    scene.run()
    assert scene.seen() == {2}
    # Without viewpoints: from where its own are.
    scene.world.look_from(scene.handles[0], Wanderer, None)
    scene.world.spawn(Wanderer(position=(0, 0), mood=3), owner=scene.handles[0])
    scene.run()
    assert scene.seen() == {3, -1, 0}


def test_owners_and_the_chosen() -> None:
    scene = Scene(clients=2)
    scene.world.set_relevancy(Wanderer, tw.world.Owner())
    for mood, handle in enumerate((*scene.handles, None)):
        scene.world.spawn(Wanderer(mood=mood), owner=handle)
    scene.run()
    assert [scene.seen(0), scene.seen(1)] == [{0}, {1}]
    scene.world.set_relevancy(Wanderer, tw.world.Chosen())
    scene.world.show(scene.handles[0], Wanderer, np.array([False, True, True]))
    scene.run()
    assert [scene.seen(0), scene.seen(1)] == [{1, 2}, set()]
    scene.world.set_relevancy(Wanderer, tw.world.Always())
    scene.run()
    assert [scene.seen(0), scene.seen(1)] == [{0, 1, 2}, {0, 1, 2}]


def test_what_weighs_more_comes_first() -> None:
    scene = Scene()
    scene.server.set_budget(6000, 1000, scene.handles[0], adaptive=False)
    scene.world.spawn_rows(Wanderer, 1000)
    weights = np.ones(1000, "f4")
    weights[900:] = 1000
    scene.world.set_weights(Wanderer, weights)
    scene.world.arrays(Wanderer)["mood"][900:] = 3
    scene.run(0.4)
    arrays = scene.clients[0].world.arrays(Wanderer)
    here = arrays["mood"][arrays.rows]
    assert 20 < len(here) < 900
    assert (here == 3).sum() > min(95, len(here) * 0.8)


WITHOUT_NUMPY = """
import sys
sys.modules["numpy"] = None
from typing import Annotated
import tickwire as tw
from tickwire import testing

@tw.message
class Order:
    x: tw.u8

@tw.ghost
class Wanderer:
    position: Annotated[tw.Vec2, tw.vec2(-1000, 1000, 1 / 64)]
    mood: Annotated[int, tw.ranged(-3, 3)]
    target: tw.u16 | None = None

network = testing.SimulatedNetwork()
protocol = tw.Protocol(1, [Order], ghosts=[Wanderer])
server = tw.Server("10.0.0.1:4000", protocol, network=network)
client = tw.Client.connect(server.address, protocol, network=network)
server.world.spawn_rows(Wanderer, 3)
arrays = server.world.arrays(Wanderer)
position, mood = arrays["position"], arrays["mood"]
position[1, 0] = 2.5
mood[2] = -2
arrays["mood"] = memoryview(bytes([1, 2, 254])).cast("b")
assert position.tolist() == [[0, 0], [2.5, 0], [0, 0]]
assert arrays["target"].shape == (3, 4)
assert arrays.rows.tolist() == [0, 1, 2]
testing.advance(network, server, client, seconds=0.5)
theirs = client.world.arrays(Wanderer)
assert theirs["position"].tolist() == position.tolist()
assert theirs["mood"].tolist() == [1, 2, -2]
assert theirs["mood"].readonly
print("fine")
"""


def test_memoryviews_do_without_numpy() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_NUMPY], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("fine\n", 0), done.stderr


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory as Linux reports it")
def test_rows_that_were_never_used_take_no_memory() -> None:
    protocol: tw.Protocol[Any] = tw.Protocol(1, [], ghosts=[Star])
    network = testing.SimulatedNetwork()

    def pages() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1])

    # After this, glibc takes blocks of up to 16 MB from its heap, and clears them.
    freed = bytearray(16 << 20)
    del freed
    before = pages()
    servers = [tw.Server(f"10.0.0.1:{4000 + number}", protocol, network=network) for number in range(16)]
    kilobytes = (pages() - before) * os.sysconf("SC_PAGE_SIZE") / 1024 / len(servers)
    assert kilobytes < 200, "the cells of all rows are 4096 KB"
