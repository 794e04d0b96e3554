"""Dead reckoning of states that are sent late: where a client draws a ship, and where it was."""

from __future__ import annotations

import math
import random
from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw
from tickwire import testing

STEP = 1 / 60
THRESHOLD = 0.25
# What is sent is quantized to 1/256, whenever it is sent.
LIMIT = THRESHOLD + 0.01

Place = Annotated[tw.Vec2, tw.vec2(-9999, 9999, 1 / 256), tw.world.threshold(THRESHOLD, velocity="velocity")]


@tw.ghost(capacity=256)
class Ship:
    position: Place = (0, 0)
    velocity: Annotated[tw.Vec2, tw.vec2(-300, 300, 1 / 16)] = (0, 0)
    health: tw.u8 = 0
    name: Annotated[str, tw.text(9)] = ""
    cargo: Annotated[tw.u16, tw.initial] = 0
    ammo: Annotated[tw.u16, tw.world.owner_only] = 0
    plan: Annotated[tw.u16, tw.world.when("team")] = 0


@tw.ghost(capacity=256, coded=True)
class CodedShip(Ship):
    pass


both = pytest.mark.parametrize("class_", [Ship, CodedShip])


class Sea:
    """A server whose ships sail by their velocities, and clients that draw them."""

    def __init__(self, class_: Any, *, loss: float = 0, seed: int = 1) -> None:
        self.class_ = class_
        protocol: tw.Protocol[Any] = tw.Protocol(1, [], ghosts=[class_], tick_rate=60)
        self.sim: Any = testing.Simulation(
            protocol, seed=seed, conditions=tw.Conditions(latency=0.05, loss=loss)
        )
        self.server = self.sim.server()
        self.world = self.server.world
        self.client = self.sim.client()
        self.sim.run(1)
        self.ships: list[Any] = []
        self.places: dict[int, list[tuple[float, float]]] = {}
        self.stuck = False

    @property
    def handle(self) -> tw.ClientHandle:
        (handle,) = self.server.clients
        return handle

    def spawn(self, **values: Any) -> Any:
        self.ships.append(self.world.spawn(self.class_(**values)))
        return self.ships[-1]

    def mask(self, on: bool) -> Any:
        return np.full(len(self.world.arrays(self.class_)), on)

    def sail(self, seconds: float) -> float:
        """Sails for some time; returns the longest distance between a drawn ship and its place."""
        worst = 0.0
        for _ in range(round(seconds / STEP)):
            for ship in self.ships:
                (x, y), (u, v) = ship.position, ship.velocity
                if not self.stuck:
                    ship.position = (x + u * STEP, y + v * STEP)
            self.sim.run(STEP)
            self.places[self.world.tick] = [ship.position for ship in self.ships]
            worst = max(worst, self.apart(self.client))
        return worst

    def apart(self, client: tw.Client) -> float:
        view = client.world.view()
        last = math.floor(view.tick)
        if last not in self.places or last + 1 not in self.places:
            return 0.0
        worst, part = 0.0, view.tick - last
        arrays = view.arrays(self.class_)
        for row in arrays.rows:
            (ax, ay), (bx, by) = (self.places[tick][row] for tick in (last, last + 1))
            place = (ax + (bx - ax) * part, ay + (by - ay) * part)
            worst = max(worst, math.dist(arrays["position"][row], place))
        return worst


@both
@pytest.mark.parametrize("sent_again", ["join", "reconnect", "owner", "condition", "relevancy", "load"])
def test_a_ship_that_is_sent_late_is_drawn_in_its_place(class_: Any, sent_again: str) -> None:
    sea = Sea(class_)
    if sent_again == "relevancy":
        sea.world.set_relevancy(class_, tw.world.Chosen())
    ship = sea.spawn(velocity=(30, 0))
    sea.world.show(sea.handle, class_, sea.mask(True)) if sent_again == "relevancy" else None
    assert sea.sail(5) < LIMIT
    if sent_again == "join":
        sea.client = sea.sim.client()
    elif sent_again == "reconnect":
        sea.client = sea.sim.reconnect(sea.client)
    elif sent_again == "owner":
        sea.world.set_owner(ship, sea.handle)
    elif sent_again == "condition":
        sea.world.set_condition(sea.handle, class_, "team", sea.mask(True))
    elif sent_again == "relevancy":
        sea.world.show(sea.handle, class_, sea.mask(False))
        sea.sail(1)
        sea.world.show(sea.handle, class_, sea.mask(True))
    else:
        saved = sea.world.save()
        sea.server = sea.sim.restart(sea.server)
        sea.world = sea.server.world
        sea.world.load(saved)
        sea.ships = list(sea.world.objects(class_))
        sea.client = sea.sim.client()
    assert sea.sail(5) < LIMIT
    ship = sea.ships[0]
    ship.velocity = (0, 30)
    sea.sail(0.5)
    assert sea.sail(2) < LIMIT, "the next update is against the state that was sent late"
    drawn = sea.client.world.view().objects(class_)
    assert [each.velocity for each in drawn] == [(0, 30)]


@both
def test_an_update_that_was_lost_is_sent_with_the_place_by_then(class_: Any) -> None:
    sea = Sea(class_)
    ship = sea.spawn(velocity=(30, 0))
    assert sea.sail(2) < LIMIT
    sea.sim.network.set_conditions(tw.Conditions(loss=1), receiver=sea.sim.where(sea.client))
    ship.velocity = (-30, 15)
    sea.sail(0.5)
    sea.sim.network.set_conditions(tw.Conditions(latency=0.05))
    sea.sail(1)
    assert sea.sail(5) < LIMIT


@both
def test_over_a_bad_line_ships_are_in_their_places_once_they_sail_straight(class_: Any) -> None:
    for seed in range(4):
        sea, rng = Sea(class_, loss=0.2, seed=seed), random.Random(seed)
        for _ in range(8):
            sea.spawn(velocity=(30, 0))
        for _ in range(40):
            ship = rng.choice(sea.ships)
            ship.velocity = (rng.choice([-30, 30]), rng.choice([-30, 0, 30]))
            ship.health = rng.randrange(256)
            sea.sail(0.1)
        sea.sail(2)
        assert sea.sail(2) < LIMIT


@both
def test_what_waits_for_a_small_budget_is_sent_with_the_place_by_then(class_: Any) -> None:
    sea, rng = Sea(class_), random.Random(3)
    sea.server.set_budget(3000, 1500)
    for _ in range(200):
        sea.spawn(velocity=(rng.choice([-30, 30]), 0))
    sea.sail(1)
    for ship in sea.ships:
        ship.velocity = (0, rng.choice([-30, 30]))
    sea.sail(8)
    assert len(sea.client.world.objects(class_)) == 200
    assert sea.sail(1) < LIMIT


@both
@pytest.mark.parametrize("hidden", [None, "health", "name", "ammo", "plan", "cargo"])
@pytest.mark.parametrize("sails_first", [True, False])
def test_a_ship_that_pushes_against_a_wall_is_drawn_there(
    class_: Any, hidden: str | None, sails_first: bool
) -> None:
    sea = Sea(class_)
    ship = sea.spawn(velocity=(3, 0))
    sea.stuck = not sails_first
    sea.sail(1)
    sea.stuck = True
    worst = 0.0
    for step in range(100):
        if hidden:
            setattr(ship, hidden, str(step) if hidden == "name" else step)
        worst = max(worst, sea.sail(3 * STEP) if step > 10 else sea.sail(3 * STEP) * 0)
    # On the way to the next state it is drawn between both.
    assert worst < LIMIT + 3 * STEP


@pytest.mark.parametrize("hidden", ["ammo", "plan", "cargo"])
def test_changes_that_a_client_is_not_sent_cost_it_nothing(hidden: str) -> None:
    def bits(hides: bool) -> int:
        sea = Sea(Ship)
        ship = sea.spawn(velocity=(30, 0))
        for step in range(100):
            if hides:
                setattr(ship, hidden, step)
            sea.sail(STEP)
        return sea.world.client_bits(sea.handle)

    assert bits(True) == bits(False)


@both
def test_a_ship_that_sails_out_of_the_range_of_places_stays_in_it(class_: Any) -> None:
    sea = Sea(class_)
    ship = sea.spawn(position=(9990, 0), velocity=(30, 0))
    for _ in range(120):
        x, _ = ship.position
        ship.position = (min(x, 9998), 0)
        sea.stuck = x > 9998
        sea.sail(STEP)
    sea.client = sea.sim.client()
    sea.sail(1)
    assert sea.sail(1) < LIMIT + 30 * STEP


@both
def test_the_past_has_ships_where_they_were(class_: Any) -> None:
    sea = Sea(class_)
    sea.world.remember(1.0)
    ship, gone = sea.spawn(velocity=(30, 0)), sea.spawn(velocity=(0, 30))
    for step in range(240):
        ship.ammo = step
        if step % 50 == 0:
            ship.health = gone.health = step
        sea.sail(STEP)
    last = gone.position
    sea.world.despawn(gone)
    sea.sim.run(4 * STEP)
    then = sea.world.tick - 20
    with sea.world.rewind_to(then) as past:
        arrays = past.arrays(class_)
        assert math.dist(arrays["position"][0], sea.places[then][0]) < LIMIT
        assert math.dist(arrays["position"][1], sea.places[then][1]) < LIMIT
    assert last[1] > 100


def test_a_grid_has_ships_where_they_are() -> None:
    sea = Sea(Ship)
    sea.world.set_relevancy(Ship, tw.world.Grid("position", radius=50))
    sea.world.look_from(sea.handle, Ship, [(200, 0)])
    sea.spawn(velocity=(60, 0))
    seen = []
    for _ in range(70):
        sea.sail(0.1)
        seen.append(len(sea.client.world.objects(Ship)))
    there = [0.1 * at * 60 for at, count in enumerate(seen) if count]
    assert there
    assert 150 <= there[0] < 175
    assert 250 <= there[-1] < 300


def test_a_velocity_must_be_sent_as_its_property_is() -> None:
    with pytest.raises(ValueError, match=r"position: its velocity must be sent to the same clients"):

        @tw.ghost
        class Hidden:
            position: Place = (0, 0)
            velocity: Annotated[tw.Vec2, tw.vec2(-300, 300, 1 / 16), tw.world.owner_only] = (0, 0)


@tw.ghost(capacity=64)
class Agent:
    x: Annotated[float, tw.quantized(0, 1023, 1)] = 0.0
    name: Annotated[str, tw.text(10)] = ""
    mine: Annotated[tw.u16, tw.world.owner_only] = 0
    note: Annotated[str, tw.text(10), tw.world.owner_only] = ""
    others: Annotated[tw.u16, tw.world.except_owner] = 0
    team: Annotated[tw.u16, tw.world.when("team")] = 0
    orders: Annotated[str, tw.text(10), tw.world.when("team")] = ""


@tw.ghost(capacity=64, coded=True)
class CodedAgent(Agent):
    pass


@tw.ghost(capacity=64)
class Boat(Agent):
    position: Annotated[tw.Vec2, tw.vec2(-100, 100, 1 / 16), tw.world.threshold(0.5, velocity="velocity")] = (
        0,
        0,
    )
    velocity: Annotated[tw.Vec2, tw.vec2(-100, 100, 1 / 16)] = (0, 0)


@tw.ghost(capacity=64, coded=True)
class CodedBoat(Boat):
    pass


@pytest.mark.parametrize("class_", [Agent, CodedAgent, Boat, CodedBoat])
@pytest.mark.parametrize("hidden", ["mine", "note", "others", "team", "orders"])
def test_hidden_changes_alter_no_byte(class_: Any, hidden: str) -> None:
    """The same game with changes that its only client isn't sent, and without them."""

    def packets(seed: int, hides: bool) -> list[str]:
        rng, other = random.Random(seed), random.Random(99)
        protocol: tw.Protocol[Any] = tw.Protocol(1, [], ghosts=[class_])
        line = tw.Conditions(latency=rng.choice([0, 0.03, 0.2]), loss=rng.choice([0, 0, 0.1]))
        sim: Any = testing.Simulation(protocol, seed=seed, rate=30, conditions=line)
        server = sim.server()
        sim.client()
        sim.run(2)
        (handle,) = server.clients
        if seed % 3 == 0:
            server.set_budget(3000, 1200, client=handle)
        agents: list[Any] = []
        transcripts = []
        often = rng.choice([1, 0.3, 0.05])
        for tick in range(120):
            if tick % 7 == 0:
                agents.append(server.world.spawn(class_(), owner=rng.choice([None, handle])))
            for agent in agents:
                if rng.random() < often:
                    agent.x = rng.randrange(1000)
                if rng.random() < 0.1:
                    agent.name = str(rng.randrange(999))
                if issubclass(class_, Boat):
                    if rng.random() < 0.05:
                        agent.velocity = (rng.choice([-3, 0, 3]), 0)
                    agent.position = (agent.position[0] + agent.velocity[0] / 60, 0)
                owns = server.world.owner(agent) == handle
                is_hidden = owns if hidden == "others" else not owns or hidden in ("team", "orders")
                if hides and is_hidden and other.random() < 0.3:
                    value = other.randrange(99)
                    setattr(agent, hidden, str(value) if hidden in ("note", "orders") else value)
            sim.run(1 / 30)
            transcripts.append(sim.network.transcript)
        return transcripts

    for seed in range(6):
        assert packets(seed, True) == packets(seed, False), f"seed {seed}"


@tw.ghost(capacity=64)
class Diver:
    """Two depths of which only the owner is sent one."""

    name: Annotated[str, tw.text(9)] = ""
    depth: Annotated[tw.i16, tw.world.threshold(0.6, velocity="sinks")] = 0
    sinks: tw.i16 = 0
    goal: Annotated[
        tw.Vec2, tw.vec2(-999, 999, 1 / 256), tw.world.owner_only, tw.world.threshold(0.25, velocity="speed")
    ] = (0, 0)
    speed: Annotated[tw.Vec2, tw.vec2(-99, 99, 1 / 16), tw.world.owner_only] = (0, 0)


@tw.ghost(capacity=64, coded=True)
class CodedDiver(Diver):
    pass


@pytest.mark.parametrize("class_", [Diver, CodedDiver])
def test_each_property_is_reckoned_from_its_own_update(class_: Any) -> None:
    rng = random.Random(2)
    protocol: tw.Protocol[Any] = tw.Protocol(1, [], ghosts=[class_], tick_rate=60)
    sim: Any = testing.Simulation(protocol, seed=2, conditions=tw.Conditions(latency=0.03, loss=0.1))
    server, client = sim.server(), sim.client()
    sim.run(1)
    divers = [server.world.spawn(class_(sinks=9)) for _ in range(8)]
    for step in range(400):
        for diver in divers:
            if rng.random() < 0.1:
                diver.name = str(step)
            if rng.random() < 0.1:
                diver.sinks = rng.randrange(-9, 10)
            diver.goal = (diver.goal[0] + 0.02, 0)
        sim.run(STEP)
    for diver in divers:
        diver.sinks = 0
    sim.network.set_conditions(tw.Conditions())
    sim.run(1)
    seen = client.world.objects(class_)
    assert [(diver.depth, diver.sinks) for diver in seen] == [(0, 0)] * 8
    assert [diver.name for diver in seen] == [diver.name for diver in divers]


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("jump", [0, 10])
def test_a_ship_is_drawn_again_after_its_velocity_was_no_number(coded: bool, jump: int) -> None:
    @tw.ghost(coded=coded)
    class Boat:
        place: Annotated[tw.f32, tw.world.threshold(THRESHOLD, velocity="speed")] = 0.0
        speed: tw.f32 = 0.0
        health: tw.u8 = 0

    protocol: tw.Protocol[Any] = tw.Protocol(1, [], ghosts=[Boat], tick_rate=60)
    sim: Any = testing.Simulation(protocol, seed=1, conditions=tw.Conditions(latency=0.03))
    server, client = sim.server(), sim.client()
    sim.run(1)
    boat = server.world.spawn(Boat(speed=30.0))
    place = 0.0
    for step in range(120):
        place += 0.5 + (jump if step == 60 else 0)
        boat.place, boat.speed = place, math.nan if step == 60 else 30.0
        boat.health = int(step == 60)
        sim.run(STEP)
    (drawn,) = client.world.view().objects(Boat)
    # The view is some ticks behind the server.
    assert place - 10 < drawn.place < place
