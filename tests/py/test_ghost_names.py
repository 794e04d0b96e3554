"""Ghosts by number: a message about one always means that one, whatever the network does."""

from __future__ import annotations

import random
from typing import Annotated, Any

import pytest
import tickwire as tw
from tickwire import testing


@tw.ghost(capacity=6)
class Crate:
    label: Annotated[str, tw.text(12), tw.initial] = ""
    at: Annotated[tw.Vec2, tw.vec2(-100, 100, 1 / 4)] = tw.default()


@tw.message
class Named:
    """A ghost by number, and what its label is."""

    number: tw.u32
    label: Annotated[str, tw.text(12)]


class Scene:
    def __init__(self, clients: int = 1, conditions: tw.Conditions | None = None, seed: int = 7) -> None:
        self.network = testing.SimulatedNetwork()
        both: dict[str, Any] = {
            "network": self.network,
            "debugging": tw.testing.Debugging(conditions=conditions, seed=seed),
        }
        self.protocol = tw.Protocol(1, [Named], ghosts=[Crate])
        self.server = tw.Server("10.0.0.1:4000", self.protocol, **both)
        self.world = self.server.world
        self.clients = [
            tw.Client.connect(self.server.address, self.protocol, client_id=i, **both) for i in range(clients)
        ]
        self.run(1.0)
        self.handles = sorted(self.server.clients, key=lambda handle: handle.id)

    def run(self, seconds: float = 0.2) -> Any:
        return testing.advance(self.network, self.server, *self.clients, seconds=seconds)

    def tick(self) -> tuple[Any, list[Any]]:
        """One tick of each; the server's messages, and each client's."""
        inbox = self.server.receive()
        self.server.flush()
        self.network.advance(1 / 60)
        inboxes = []
        for client in self.clients:
            inboxes.append(client.receive())
            client.flush()
        return inbox.messages, [inbox.messages for inbox in inboxes]


def test_a_number_means_a_ghost_of_this_tick_on_the_other_side() -> None:
    scene = Scene(clients=2)
    tank = scene.world.spawn(Crate(label="one"))
    numbers = [scene.world.id_of(handle, tank) for handle in scene.handles]
    scene.run()
    for client, number in zip(scene.clients, numbers, strict=True):
        assert number is not None
        ghost = client.world.ghost_of(Crate, number)
        assert ghost is client.world.objects(Crate)[0]
        assert not client.world.awaits(Crate, number)
    for handle, client in zip(scene.handles, scene.clients, strict=True):
        [ghost] = client.world.objects(Crate)
        assert scene.world.ghost_of(handle, Crate, client.world.id_of(ghost) or 0) is tank


def test_what_a_client_is_not_to_have_has_no_number() -> None:
    scene = Scene(clients=2)
    first, second = scene.handles
    scene.world.set_relevancy(Crate, tw.world.Owner())
    crate = scene.world.spawn(Crate(label="mine"), owner=first)
    assert scene.world.id_of(first, crate) is not None
    assert scene.world.id_of(second, crate) is None
    scene.world.set_relevancy(Crate, tw.world.Chosen())
    other = scene.world.spawn(Crate(label="chosen"))
    assert scene.world.id_of(first, other) is None
    scene.world.show(first, Crate, bytes([0, 1]))
    number = scene.world.id_of(first, other)
    assert number is not None
    scene.run()
    assert [ghost.label for ghost in scene.clients[0].world.objects(Crate)] == ["chosen"]
    assert scene.clients[0].world.ghost_of(Crate, number).label == "chosen"  # type: ignore[union-attr]


def test_what_a_grid_finds_far_away_is_taken_back() -> None:
    scene = Scene()
    [handle] = scene.handles
    scene.world.set_relevancy(Crate, tw.world.Grid("at", radius=10))
    scene.world.look_from(handle, Crate, [(0, 0)])
    near, far = scene.world.spawn(Crate(label="near")), scene.world.spawn(Crate(label="far", at=(90, 90)))
    numbers = [scene.world.id_of(handle, each) for each in (near, far)]
    scene.run()
    client = scene.clients[0]
    assert [ghost.label for ghost in client.world.objects(Crate)] == ["near"]
    assert client.world.ghost_of(Crate, numbers[0]) is client.world.objects(Crate)[0]  # type: ignore[arg-type]
    # Nothing is left to wait for.
    assert client.world.ghost_of(Crate, numbers[1]) is None  # type: ignore[arg-type]
    assert not client.world.awaits(Crate, numbers[1])  # type: ignore[arg-type]
    # By now the server knows that it isn't to have it.
    assert scene.world.id_of(handle, far) is None


def test_one_that_came_and_went_in_a_tick_is_not_the_next_with_its_id() -> None:
    scene = Scene()
    [handle] = scene.handles
    gone = scene.world.spawn(Crate(label="gone"))
    number = scene.world.id_of(handle, gone)
    scene.world.despawn(gone)
    scene.world.spawn(Crate(label="next"))
    scene.run()
    [ghost] = scene.clients[0].world.objects(Crate)
    assert ghost.label == "next"
    assert scene.clients[0].world.ghost_of(Crate, number) is None  # type: ignore[arg-type]


def test_numbers_of_nothing_are_nothing() -> None:
    scene = Scene()
    [handle] = scene.handles
    scene.world.spawn(Crate)
    scene.run()
    world = scene.clients[0].world
    for number in (1, 5, 6, 0xFFFF, 0xFFFF_FFFF, 0x8000_0001):
        assert world.ghost_of(Crate, number) is None
        assert scene.world.ghost_of(handle, Crate, number) is None
    # Of a tick that hasn't been.
    known = world.id_of(world.objects(Crate)[0]) or 0
    assert scene.world.ghost_of(handle, Crate, known) is not None
    assert scene.world.ghost_of(handle, Crate, (known + 0x100_0000) & 0xFFFF_FFFF) is None
    with pytest.raises(ValueError, match="number must be 0 to 4294967295, not -1"):
        world.ghost_of(Crate, -1)
    with pytest.raises(tw.errors.GhostError, match="one of the protocol's ghost classes"):
        world.ghost_of(Named, 0)


@pytest.mark.parametrize("seed", range(6))
def test_a_number_is_never_anothers(seed: int) -> None:
    """Few ids, much loss, and as many messages as ghosts come and go, both ways."""
    draw = random.Random(seed)
    line = tw.Conditions(latency=0.06, jitter=0.05, loss=0.2, duplicate=0.1)
    scene = Scene(clients=2, conditions=line, seed=seed)
    alive: list[Crate] = []
    count, found, here = 0, [0, 0], 0
    waiting: list[list[Named]] = [[], []]
    for step in range(500):
        quiet = step > 400
        for _ in range(0 if quiet else draw.randrange(4) == 0):
            if alive and draw.random() < 0.5:
                scene.world.despawn(alive.pop(draw.randrange(len(alive))))
            elif len(alive) < 6:
                count += 1
                alive.append(scene.world.spawn(Crate(label=f"n{count}")))
        if not quiet:
            for handle in scene.handles:
                for crate in alive:
                    number = scene.world.id_of(handle, crate)
                    if draw.random() < 0.3 and number is not None:
                        scene.server.send(handle, Named(number, crate.label))
            for client in scene.clients:
                for ghost in client.world.objects(Crate):
                    if draw.random() < 0.2:
                        client.send(Named(client.world.id_of(ghost) or 0, ghost.label))
        told, received = scene.tick()
        for handle, message in told:
            crate_or_none = scene.world.ghost_of(handle, Crate, message.number)
            if crate_or_none is None:
                assert message.label not in {crate.label for crate in alive}, seed
            else:
                here += 1
                assert crate_or_none.label == message.label, seed
        for at, client in enumerate(scene.clients):
            waiting[at] += received[at]
            left = []
            for message in waiting[at]:
                ghost = client.world.ghost_of(Crate, message.number)
                if ghost is not None:
                    found[at] += 1
                    assert ghost.label == message.label, seed
                elif client.world.awaits(Crate, message.number):
                    left.append(message)
            waiting[at] = left
    assert waiting == [[], []]
    assert min(found) > 100, seed
    assert here > 100, seed
