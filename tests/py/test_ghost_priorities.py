"""What goes first where not everything that is due has room: what must be known, and what is near."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw
from tickwire import testing


@tw.ghost
class Thing:
    number: tw.u16 = 0
    tick: tw.u16 = 0
    place: Annotated[tw.Vec2, tw.vec2(-500, 500, 1 / 4)] = (0, 0)
    noise: tw.u64 = 0


PROTOCOL: tw.Protocol[Any] = tw.Protocol(1, [], ghosts=[Thing])


class Scene:
    """A server and a client in virtual time, over a thin line that loses some packets."""

    def __init__(self, bytes_per_second: float = 6_000, loss: float = 0.05) -> None:
        conditions = tw.Conditions(latency=0.03, loss=loss)
        self.network = testing.SimulatedNetwork(seed=3, conditions=conditions)
        self.server = tw.Server("10.0.0.1:4000", PROTOCOL, network=self.network)
        self.server.set_budget(bytes_per_second, 1_000, adaptive=False)
        self.client = tw.Client.connect(
            self.server.address, PROTOCOL, network=self.network, tuning=tw.Tuning(columns=[Thing])
        )
        self.ticks = 0
        while not self.server.clients or not self.client.connected:
            self.run()
        (self.handle,) = self.server.clients
        self.world, self.seen = self.server.world, self.client.world.arrays(Thing)

    def run(self) -> None:
        testing.advance(self.network, self.server, self.client, seconds=1 / 60)
        self.ticks += 1

    def spawn(self, count: int) -> tw.world.GhostArrays:
        self.world.spawn_rows(Thing, count)
        things = self.world.arrays(Thing)
        things["number"] = np.arange(len(things))
        return things

    def numbers(self) -> list[int]:
        numbers: list[int] = self.seen["number"][self.seen.alive].tolist()
        return numbers

    def ages(self) -> Any:
        """How many ticks ago the state is that the client has of each ghost; all its life where none."""
        ages = np.full(len(self.world.arrays(Thing)), self.ticks)
        alive = self.seen.alive
        ages[self.seen["number"][alive]] = self.ticks - self.seen["tick"][alive]
        return ages


def test_what_must_be_known_is_created_before_the_rest() -> None:
    def ticks_until_known(must: bool) -> tuple[int, int]:
        scene = Scene()
        things = scene.spawn(1000)
        flags = np.zeros(len(things), bool)
        flags[-5:] = True
        if must:
            scene.world.set_must_know(Thing, flags)
        for ticks in range(1000):
            scene.run()
            numbers = scene.numbers()
            if set(numbers) >= set(range(995, 1000)):
                return ticks, len(numbers)
        raise AssertionError("never")

    (soon, few), (late, many) = ticks_until_known(True), ticks_until_known(False)
    print(f"5 of 1,000: after {soon} ticks with {few} there, and after {late} with {many}")
    assert soon < 15
    assert late > 4 * soon


def test_what_must_be_known_leaves_half_to_the_rest() -> None:
    scene = Scene()
    things = scene.spawn(400)
    flags = np.zeros(len(things), bool)
    flags[:200] = True
    scene.world.set_must_know(Thing, flags)
    ages = []
    for tick in range(600):
        things["tick"] = scene.ticks
        scene.run()
        if tick > 300:
            ages.append(scene.ages())
    must, rest = (np.percentile(np.array(ages)[:, rows], 95) for rows in (flags, ~flags))
    print(f"age p95: {must} and {rest} ticks")
    # Half of the line for each; what is left over of it is nobody's.
    assert rest < 2.5 * must


def test_few_that_must_be_known_are_never_late() -> None:
    scene = Scene()
    things = scene.spawn(400)
    flags = np.zeros(len(things), bool)
    flags[::100] = True
    scene.world.set_must_know(Thing, flags)
    ages = []
    for tick in range(500):
        things["tick"] = scene.ticks
        scene.run()
        if tick > 300:
            ages.append(scene.ages())
    must, rest = (np.percentile(np.array(ages)[:, rows], 95) for rows in (flags, ~flags))
    print(f"age p95: {must} and {rest} ticks")
    assert must <= 8
    assert rest > 2 * must


def test_what_is_near_goes_before_what_is_far() -> None:
    def ages_at(far_weight: float) -> tuple[float, float]:
        scene = Scene()
        things = scene.spawn(200)
        rng = np.random.default_rng(1)
        distance = rng.uniform(0, 400, len(things))
        angle = rng.uniform(0, 2 * np.pi, len(things))
        things["place"] = np.stack([distance * np.cos(angle), distance * np.sin(angle)], axis=1)
        scene.world.set_relevancy(Thing, tw.world.Grid("place", radius=400, far_weight=far_weight))
        scene.world.look_from(scene.handle, Thing, [(0, 0)])
        ages = []
        for tick in range(600):
            things["tick"] = scene.ticks
            things["noise"] = rng.integers(1 << 63, size=len(things))
            scene.run()
            if tick > 300:
                ages.append(scene.ages())
        near, far = (
            float(np.percentile(np.array(ages)[:, rows], 95)) for rows in (distance < 100, distance > 340)
        )
        print(f"far_weight {far_weight}: age p95 {near} ticks near, {far} far")
        return near, far

    (near, far), (weighted_near, weighted_far) = ages_at(1.0), ages_at(0.25)
    assert abs(near - far) < 0.3 * near
    assert weighted_near < near
    # Which updates are lost moves each figure by a third, and their ratio less.
    assert weighted_near / weighted_far < 0.8 * near / far
    assert weighted_far > 1.5 * weighted_near


def test_mistakes_are_named() -> None:
    scene = Scene()
    with pytest.raises(TypeError, match="rows must be a buffer with a bool for each row"):
        scene.world.set_must_know(Thing, 3)  # type: ignore[arg-type]
    for weight in (0.0, 1.5, float("nan")):
        with pytest.raises(ValueError, match="Thing: grid's far_weight must be above 0 and at most 1"):
            scene.world.set_relevancy(Thing, tw.world.Grid("place", radius=9, far_weight=weight))
