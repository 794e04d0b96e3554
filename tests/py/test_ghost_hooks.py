"""Hooks of a world: a mask for each client, and a weight for each row, once a flush."""

from __future__ import annotations

import array
import functools
import gc
import sys
import weakref
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
    team: tw.u8 = 0
    story: Annotated[bytes, tw.data(100)] = b""


class Place:
    """Something that can be seen to go."""


class Scene:
    def __init__(self, clients: int = 2) -> None:
        self.network = testing.SimulatedNetwork()
        protocol = tw.Protocol(1, [Order], ghosts=[Tank])
        self.server = tw.Server("10.0.0.1:4000", protocol, network=self.network)
        self.clients = [
            tw.Client.connect(self.server.address, protocol, client_id=i, network=self.network)
            for i in range(clients)
        ]
        testing.advance(self.network, self.server, *self.clients, seconds=1.0)
        self.world = self.server.world
        self.handles = sorted(self.server.clients, key=lambda handle: handle.id)

    def run(self, seconds: float = 0.2) -> None:
        testing.advance(self.network, self.server, *self.clients, seconds=seconds)

    def seen(self) -> list[list[int]]:
        """The healths of the tanks that each client has."""
        return [sorted(tank.health for tank in client.world.objects(Tank)) for client in self.clients]


def answer_nothing(*held: Any) -> None:
    """A hook that keeps the objects it is made with."""


def lines(*masks: list[int]) -> memoryview:
    """A buffer of two dimensions, without NumPy."""
    flat = bytes(byte for mask in masks for byte in mask)
    return memoryview(flat).cast("B", (len(masks), len(masks[0])))


def test_a_function_says_who_has_what() -> None:
    scene = Scene()
    for health in range(4):
        scene.world.spawn(Tank(health=health, team=health % 2))
    asked: list[Any] = []

    def own_team(clients: list[tw.ClientHandle], tanks: tw.world.GhostArrays) -> Any:
        asked.append(([client.id for client in clients], len(tanks)))
        teams = [tank.team for tank in scene.world.objects(Tank)]
        return [bytes(int(team == client.id) for team in teams) for client in clients]

    scene.world.set_relevancy(Tank, tw.world.Hook(own_team))
    scene.run()
    assert scene.seen() == [[0, 2], [1, 3]]
    assert asked[0] == ([0, 1], 4)
    scene.world.objects(Tank)[0].team = 1
    scene.run()
    assert scene.seen() == [[2], [0, 1, 3]]
    count = len(asked)
    scene.world.set_relevancy(Tank, tw.world.Always())
    scene.run()
    assert (scene.seen(), len(asked)) == ([[0, 1, 2, 3]] * 2, count)


@pytest.mark.parametrize("rule", ["show", "hook"])
def test_a_mask_doesnt_show_the_next_ghost_of_a_row(rule: str) -> None:
    scene = Scene()
    masks: list[Any] = [None]
    chosen = tw.world.Chosen() if rule == "show" else tw.world.Hook(lambda *_: masks.pop() if masks else None)
    scene.world.set_relevancy(Tank, chosen)
    tank = scene.world.spawn(Tank(health=1))
    if rule == "show":
        scene.world.show(scene.handles[0], Tank, b"\1")
    else:
        masks[:] = [[b"\1", b"\0"]]
    scene.run()
    assert scene.seen() == [[1], []]
    scene.world.despawn(tank)
    scene.run()
    assert scene.world.row(scene.world.spawn(Tank(health=2))) == 0
    scene.run()
    assert scene.seen() == [[], []]


def test_a_weight_isnt_that_of_the_next_ghost_of_a_row() -> None:
    scene = Scene(clients=1)
    scene.server.set_budget(bytes_per_second=6_000, burst_bytes=600)
    scene.world.despawn(scene.world.spawn(Tank))
    scene.world.set_weights(Tank, array.array("f", [0.0]))
    tanks = [scene.world.spawn(Tank(health=i, story=bytes(90))) for i in range(20)]
    for i in range(60):
        for tank in tanks:
            tank.story = bytes([i]) * 90
        scene.run(1 / 60)
    assert 0 in scene.seen()[0]


def test_one_buffer_for_all_clients_does_too() -> None:
    scene = Scene()
    for health in range(3):
        scene.world.spawn(Tank(health=health))
    answer: list[Any] = [lines([1, 0, 0], [1, 1, 0])]
    scene.world.set_relevancy(Tank, tw.world.Hook(lambda *_: answer[0]))
    scene.run()
    assert scene.seen() == [[0], [0, 1]]
    # None: as it was.
    answer[0] = None
    scene.run()
    assert scene.seen() == [[0], [0, 1]]
    np = pytest.importorskip("numpy")
    answer[0] = np.array([[True, False], [True, False], [False, True]]).T
    scene.run()
    assert scene.seen() == [[0, 1], [2]]


@pytest.mark.parametrize(
    ("answer", "kind", "sentence"),
    [
        (b"\1\1", TypeError, "not one of 1 dimensions"),
        (3, TypeError, "not int"),
        ([b"\1\1"], ValueError, "a mask for each of 2 clients, not 1"),
        ([b"\1\1\1", b"\1"], ValueError, "must return 2 rows for each client, not 3"),
        (lines([1, 1]), ValueError, "a mask for each of 2 clients, not 1"),
        (lines([1], [1]), ValueError, "must return 2 rows for each client, not 1"),
        (
            memoryview(array.array("f", [1, 1, 1, 1])).cast("B").cast("f", (2, 2)),
            TypeError,
            "not one of format 'f'",
        ),
        ([3, 4], TypeError, "hook of Tank: rows must be a buffer with a bool for each row"),
    ],
)
def test_a_wrong_mask_is_said_and_changes_nothing(answer: Any, kind: type[Exception], sentence: str) -> None:
    scene = Scene()
    tanks = [scene.world.spawn(Tank(health=health)) for health in range(2)]
    answers: list[Any] = [lines([1, 0], [1, 1])]
    scene.world.set_relevancy(Tank, tw.world.Hook(lambda *_: answers[0]))
    scene.run()
    answers[0] = answer
    tanks[0].health = 50
    with pytest.raises(kind, match=sentence) as raised:
        scene.server.flush()
    assert "Tank" in str(raised.value) or "rows must be" in str(raised.value)
    # All is out nonetheless.
    answers[0] = None
    scene.network.advance(1 / 60)
    for client in scene.clients:
        client.receive()
    assert scene.seen() == [[50], [1, 50]]


def test_what_a_hook_raises_the_flush_raises_when_all_is_out() -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank)

    def fails(*_: Any) -> Any:
        raise LookupError("no idea")

    scene.run()
    for at in range(2):
        if at == 0:
            scene.world.set_relevancy(Tank, tw.world.Hook(fails))
        else:
            scene.world.set_relevancy(Tank, tw.world.Always())
            scene.world.set_priority(Tank, fails)
        tank.health -= 1
        with pytest.raises(LookupError, match="no idea"):
            scene.server.flush()
        scene.network.advance(1 / 60)
        scene.clients[0].receive()
    assert scene.server.counters["hooks.calls"] == 2
    scene.world.set_priority(Tank, None)
    scene.run()
    assert scene.seen() == [[98], [98]]


def test_what_a_later_hook_raises_goes_to_the_unraisable_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: unraisable.append((args.exc_value, args.object)))
    scene = Scene()

    def first(*_: Any) -> Any:
        raise LookupError("no idea")

    def later(*_: Any) -> Any:
        raise KeyError("later")

    scene.world.set_relevancy(Tank, tw.world.Hook(first))
    scene.world.set_priority(Tank, later)
    with pytest.raises(LookupError, match="no idea"):
        scene.server.flush()
    [(error, hook)] = unraisable
    assert isinstance(error, KeyError)
    assert hook is later


def test_weights_of_a_function_say_who_goes_first() -> None:
    scene = Scene(clients=1)
    story = bytes(100)
    tanks = [scene.world.spawn(Tank(health=n % 100, story=story)) for n in range(60)]
    scene.run(1.0)
    scene.server.set_budget(3_000, 1_500)
    urgent = 59

    def weights(arrays: tw.world.GhostArrays) -> array.array[float]:
        return array.array("f", [1000.0 if row == urgent else 1.0 for row in range(len(arrays))])

    scene.world.set_priority(Tank, weights)
    for step in range(30):
        for tank in tanks:
            tank.story = bytes([step + 1]) * 100
        scene.run(1 / 60)
    [client] = scene.clients
    ages = [ghost.story[0] if ghost.story else 0 for ghost in client.world.objects(Tank)]
    assert max(ages) - min(ages) > 5, "there was room for all"
    assert ages[urgent] >= 28
    wrong: list[tuple[Any, type[Exception], str]] = [
        (
            array.array("f", [1.0]),
            ValueError,
            "the priority hook of Tank must return 60 weights, one per row, not 1",
        ),
        (array.array("f", [float("nan")] * 60), ValueError, "the weight of row 0 is NaN"),
        (
            array.array("d", [1.0] * 60),
            TypeError,
            "the priority hook of Tank: weights must be a buffer of float32",
        ),
        ("x", TypeError, "the priority hook of Tank: weights must be a buffer"),
    ]
    for answer, kind, sentence in wrong:
        scene.world.set_priority(Tank, lambda _, answer=answer: answer)  # type: ignore[misc]
        with pytest.raises(kind, match=sentence):
            scene.server.flush()


def test_wrong_hooks_are_refused_where_they_are_given() -> None:
    scene = Scene(clients=1)
    with pytest.raises(TypeError, match="Hook's function must be callable"):
        scene.world.set_relevancy(Tank, tw.world.Hook(3))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="hook must be callable or None, not int"):
        scene.world.set_priority(Tank, 3)  # type: ignore[arg-type]

    def flushes(*_: Any) -> None:
        scene.server.flush()

    scene.world.set_priority(Tank, flushes)
    with pytest.raises(RuntimeError, match="flush.. was called while a hook of the world runs"):
        scene.server.flush()


def test_worlds_with_hooks_are_collected() -> None:
    scene = Scene(clients=1)
    token = Place()
    scene.world.set_priority(Tank, functools.partial(answer_nothing, scene, token))
    gone = weakref.ref(token)
    del scene, token
    gc.collect()
    assert gone() is None
