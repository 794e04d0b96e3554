"""The world between ticks: the states shown of ghosts, their times, and the links between."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
import pytest
import tickwire as tw
from shown import Shown


@tw.ghost(capacity=2000)
class Tank:
    position: Annotated[tw.Vec2, tw.vec2(-2000, 2000, 1 / 256)] = (0, 0)
    heading: Annotated[float, tw.angle(0, 360, 1 / 64)] = 0.0
    pose: Annotated[tw.fields.Quaternion, tw.fields.quaternion(12)] = (0, 0, 0, 1)
    health: Annotated[int, tw.ranged(0, 100)] = 100
    name: Annotated[str, tw.text(24), tw.initial] = ""


@tw.ghost
class Plane:
    position: Annotated[tw.Vec2, tw.vec2(-2000, 2000, 1 / 256), tw.world.hermite("velocity")] = (0, 0)
    velocity: Annotated[tw.Vec2, tw.vec2(-300, 300, 1 / 256)] = (0, 0)
    gear: Annotated[int, tw.ranged(0, 9), tw.world.linear] = 0


@tw.ghost
class Ship:
    position: Annotated[
        tw.Vec2, tw.vec2(-2000, 2000, 1 / 256), tw.world.threshold(0.5, velocity="velocity")
    ] = (
        0,
        0,
    )
    velocity: Annotated[tw.Vec2, tw.vec2(-300, 300, 1 / 256)] = (0, 0)
    health: Annotated[int, tw.ranged(0, 100)] = 100


@tw.message
class Chat:
    text: Annotated[str, tw.text(200)]


class Scene(Shown):
    """A server, its client, and a line between them."""

    def __init__(self, line: tw.Conditions | None = None, seed: int = 1) -> None:
        super().__init__(tw.Protocol(id=1, messages=[Chat], ghosts=[Tank, Plane, Ship]), line, seed)


@tw.ghost
class Token:
    number: tw.u16 = 0


def test_a_view_is_between_two_states() -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank(name="Bob"))
    scene.run(0.5)
    first = scene.world.tick + 1
    for step in range(20):
        tank.position = (step, -step)
        tank.heading = (355 + step) % 360
        tank.health = 100 - step
        scene.tick()
    scene.run(0.5)
    (mine,) = scene.client.world.objects(Tank)
    view = scene.client.world.view()
    base = first
    for back in (0.0, 0.25, 3.5, 12.125):
        seen = view.at(base + 19 - back).ghost(mine)
        assert seen is not None
        at = 19 - back
        assert seen.position == pytest.approx((at, -at))
        assert seen.heading == pytest.approx((355 + at) % 360, abs=0.02)
        assert seen.health == 100 - math.floor(at)
        assert seen.name == "Bob"
    arrays = view.at(base + 4.5).arrays(Tank)
    assert arrays["position"][arrays.rows].tolist() == [[4.5, -4.5]]
    assert mine.position == (19, -19), "the world itself stays as it is"
    with pytest.raises(tw.errors.GhostError, match="can't be set in a view"):
        view.ghost(mine).position = (1, 1)  # type: ignore[union-attr]


def test_objects_of_a_view_have_their_texts() -> None:
    scene = Scene()
    scene.world.spawn(Tank(name="Ann"))
    bob = scene.world.spawn(Tank(name="Bob"))
    view = scene.run(0.5)
    assert [tank.name for tank in view.objects(Tank)] == ["Ann", "Bob"]
    scene.world.despawn(bob)
    view = scene.run(0.3)
    assert [tank.name for tank in view.objects(Tank)] == ["Ann"]
    scene.world.spawn(Tank(name="Cid"))
    view = scene.run(0.3)
    assert [tank.name for tank in view.objects(Tank)] == ["Ann", "Cid"]


def test_quaternions_turn_the_short_way_and_integers_may_be_linear() -> None:
    scene = Scene()
    tank, plane = scene.world.spawn(Tank), scene.world.spawn(Plane)
    scene.run(0.3)
    first = scene.world.tick + 1
    for degrees in (0, 90):
        half = math.radians(degrees) / 2
        tank.pose = (0, 0, math.sin(half), math.cos(half))
        plane.gear = degrees // 10
        scene.tick()
    scene.run(0.3)
    view = scene.client.world.view().at(first + 0.5)
    turned = view.arrays(Tank)["pose"][0]
    assert np.allclose(turned, (0, 0, math.sin(math.pi / 8), math.cos(math.pi / 8)), atol=1e-3)
    assert view.arrays(Plane)["gear"][0] == 5, "4.5, rounded"


def test_what_rested_is_not_drawn_out_over_the_rest() -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank)
    scene.run(1)
    moved = scene.world.tick + 1
    tank.position = (10, 0)
    scene.run(1)
    (mine,) = scene.client.world.objects(Tank)
    view = scene.client.world.view()
    shown = [view.at(moved + at).ghost(mine).position[0] for at in (-30, -1.01, -0.5, 0, 5)]  # type: ignore[union-attr]
    assert shown == pytest.approx([0, 0, 5, 10, 10])


@tw.ghost
class Beacon:
    count: tw.u32 = 0


@tw.message
class Keys:
    x: tw.i8 = 0


def lateness(acts: int, period: int, line: tw.Conditions, has_inputs: bool) -> tuple[list[float], float]:
    """The ticks from each change to its display, sorted, and the seconds for which the view stood."""
    timing = {"inputs": Keys, "tick_rate": 60} if has_inputs else {}
    scene = Shown(tw.Protocol(id=1, messages=[Chat], ghosts=[Beacon], **timing), line, 5)
    beacon, turn, newest, changed, late = scene.world.spawn(Beacon), 0, 0, [0], list[float]()
    for turn in range(2400):
        with scene.client.tick():
            if has_inputs:
                scene.client.send_input(Keys(1))
        for seen in scene.client.world.view().objects(Beacon):
            late += [turn - at for at in changed[newest + 1 : seen.count + 1] if turn > 500]
            newest = seen.count
        with scene.server.tick():
            if turn % period < acts:
                beacon.count += 1
                changed.append(turn)
        scene.network.advance(1 / 60)
    return sorted(late), scene.client.world.view().stood


PATTERNS = [(10, 20), (1, 10), (5, 10), (1, 5), (1, 2), (1, 20), (40, 90)]


@pytest.mark.parametrize("has_inputs", [True, False])
def test_rests_leave_no_view_late(has_inputs: bool) -> None:
    """Silence is no lateness: the packets say of which ticks they are, and whether any was lost."""
    clean, bad = tw.Conditions(latency=0.05), tw.Conditions(latency=0.1, jitter=0.03, loss=0.05)
    (moving, _), (bad_moving, _) = (lateness(1, 1, line, has_inputs) for line in (clean, bad))
    for acts, period in PATTERNS:
        late, stood = lateness(acts, period, clean, has_inputs)
        assert late[-1] <= moving[-1] + 1, (acts, period)
        assert stood < 0.05
        late, stood = lateness(acts, period, bad, has_inputs)
        assert late[len(late) // 2] <= bad_moving[len(bad_moving) // 2] + 1, (acts, period)
        assert stood < 0.4


def test_views_have_the_owners_of_the_world() -> None:
    scene = Scene()
    mine = scene.world.spawn(Tank, owner=scene.player)
    other = scene.world.spawn(Tank)
    scene.run(0.5)
    assert scene.client.world.view().arrays(Tank).owners[:2].tolist() == [True, False]
    scene.world.set_owner(other, scene.player)
    scene.world.despawn(mine)
    seen = []
    for _ in range(10):
        arrays = scene.tick().arrays(Tank)
        seen.append((arrays.rows.tolist(), arrays.owners[arrays.rows].tolist()))
    assert ([0, 1], [True, True]) in seen, "shown until the tick of its end"
    assert seen[-1] == ([1], [True])


def test_ghosts_come_and_go_in_their_ticks() -> None:
    scene = Scene()
    scene.run(0.3)
    born = scene.world.tick + 1
    tank = scene.world.spawn(Tank(position=(1, 2)))
    scene.run(0.5)
    (mine,) = scene.client.world.objects(Tank)
    view = scene.client.world.view()
    died = scene.world.tick + 1
    scene.world.despawn(tank)
    view = scene.tick()
    while view.arrays(Tank).living != 0:
        assert view.tick < died
        assert view.ghost(mine) is not None
        view = scene.tick()
    assert view.tick >= died - 1
    assert view.ghost(mine) is None
    # Its row is another's by now.
    scene.run(0.3)
    again = scene.world.tick + 1
    scene.world.spawn(Tank(position=(7, 7)))
    scene.run(0.5)
    (other,) = scene.client.world.objects(Tank)
    view = scene.client.world.view()
    for tick, expected in [(born - 0.5, []), (born, [[1, 2]]), (died - 0.5, [[1, 2]]), (died, [])]:
        arrays = view.at(tick).arrays(Tank)
        assert arrays["position"][arrays.rows].tolist() == expected
    assert view.at(died - 0.5).ghost(mine).position == (1, 2)  # type: ignore[union-attr]
    assert view.ghost(other) is None, "not yet"
    assert view.at(again).ghost(other).position == (7, 7)  # type: ignore[union-attr]
    assert view.ghost(mine) is None


def test_a_view_tells_ghosts_of_one_row_apart() -> None:
    network, server, client = tw.testing.connected_pair(
        tw.Protocol(id=1, ghosts=[Token], tick_rate=60), seed=1
    )
    client.world.set_playout(delay=0.8)
    clock = server.world.spawn(Token())
    spawned: list[Token] = []
    seen: list[list[int]] = []

    def tick(count: int) -> None:
        for _ in range(count):
            with server.tick():
                clock.number = clock.number % 50 + 100
            network.advance(1 / 60)
            with client.tick() as inbox:
                spawned.extend(event.ghost for event in inbox.ghosts if isinstance(event, tw.GhostSpawned))
            view = client.world.view()
            shown = [token and token.number for token in map(view.ghost, spawned[1:])]
            there = [token.number for token in view.objects(Token) if token.number < 100]
            assert [number for number in shown if number] == (there if len(spawned) > 1 else [])
            for place, number in enumerate(shown):
                assert number in (None, place + 1)
            if there and there not in seen:
                seen.append(there)

    tick(90)
    for number in (1, 2, 3):
        token = server.world.spawn(Token(number=number))
        tick(8)
        if number < 3:
            server.world.despawn(token)
            tick(4)
    tick(90)
    assert seen == [[1], [2], [3]]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_motion_is_smooth_over_a_bad_line(seed: int) -> None:
    scene = Scene(tw.Conditions(latency=0.1, jitter=0.03, loss=0.05), seed=seed)
    rows = scene.world.spawn_rows(Tank, 20)
    server = scene.world.arrays(Tank)
    speeds = np.arange(20)[:, None] * (0.05, 0.02)
    ticks: list[float] = []
    shown: list[np.ndarray] = []
    for _ in range(900):
        server["position"][rows] += speeds
        view = scene.tick()
        ticks.append(view.tick)
        if len(ticks) > 300:
            shown.append(np.sort(view.arrays(Tank)["position"][:, 0]))
    steps = np.diff(np.array(shown), axis=0)
    assert np.diff(ticks).min() >= 0, "time never runs back"
    assert (steps <= np.sort(speeds[:, 0]) * 1.5 + 1 / 128).all()
    assert steps.min() >= 0
    assert 1 / 60 <= view.delay < 0.15


def test_a_delay_can_be_said() -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank)
    scene.client.world.set_playout(delay=0.2)
    for step in range(180):
        tank.position = (step, 0)
        view = scene.tick()
    assert view.delay == pytest.approx(0.2, abs=0.01)
    assert view.arrays(Tank)["position"][0, 0] == pytest.approx(179 - 12, abs=2)


def drawn(
    line: tw.Conditions, seed: int, pause: float = 0.0, delay: float | None = None
) -> list[tuple[float, float]]:
    """The view's tick, and the place that is drawn in it of a tank that is at each tick's number: in each
    frame from 5 s on, and for 15 s after a pause of the client.
    """
    scene = Shown(tw.Protocol(1, [], ghosts=[Tank], tick_rate=60), line, seed)
    scene.client.world.set_playout(delay=delay)
    tank, shown = scene.world.spawn(Tank), []

    def send() -> None:
        tank.position = ((scene.world.tick + 1) % 4000 - 2000, 0)
        with scene.server.tick():
            pass
        scene.network.advance(1 / 60)

    for frame in range(1200 + round(pause * 60)):
        if 300 <= frame < 300 + round(pause * 60):
            send()
            continue
        with scene.client.tick():
            pass
        view = scene.client.world.view()
        if frame >= 300:
            assert view.delay >= 0
            assert 0.9 < view.period * 60 < 1.1
            # Until the server has acks again, a round trip after the pause, nothing newer may be known.
            known = 0 if frame > 420 + pause * 60 else pause * 60
            assert 0 < scene.world.tick - view.tick < 100 + known
            shown.append((view.tick, view.objects(Tank)[0].position[0] + 2000))
        send()
    return shown


@pytest.mark.parametrize(("loss", "seed"), [(0.5, 5), (0.5, 1), (0.3, 1), (0.3, 2), (0.0, 3)])
def test_a_pause_of_the_client_spoils_no_view(loss: float, seed: int) -> None:
    shown = drawn(tw.Conditions(latency=0.3, jitter=0.3, loss=loss), seed, pause=5)
    assert shown == sorted(shown), "time never runs back"


@pytest.mark.parametrize("pause", [0.5, 1.05, 1.3, 1.5, 1.7, 3])
def test_a_view_is_on_time_two_seconds_after_a_pause_of_the_client(pause: float) -> None:
    """Also if the server has sent nothing in the second half of it, because it had no ack."""
    ticks = [tick for tick, _ in drawn(tw.Conditions(latency=0.05), 1, pause=pause)]
    behind = [ticks[-1] - tick - left for left, tick in enumerate(reversed(ticks[126:]))]
    assert max(map(abs, behind)) < 1.5


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("jitter", "delay", "most"), [(0.3, None, 0.03), (0.3, 0.7, 0), (0, None, 0.02)])
def test_ghosts_move_evenly_while_the_server_waits_for_acks(
    jitter: float, delay: float | None, most: float, seed: int
) -> None:
    """With round trips of more than 32 ticks, it sends no more of a ghost until one is acked."""
    shown = drawn(tw.Conditions(latency=0.3, jitter=jitter), seed, delay=delay)
    wrong = [tick for tick, place in shown if abs(tick - place) > 1]
    assert len(wrong) <= most * len(shown)


def test_the_shortest_and_the_longest_delay_are_kept() -> None:
    for ticks in (1, 62):
        scene = Scene()
        scene.world.spawn(Tank)
        scene.client.world.set_playout(delay=ticks / 60)
        view = scene.run(3)
        assert view.delay == pytest.approx(ticks / 60, abs=0.001)
        assert view.tick == pytest.approx(scene.world.tick - 1 - ticks, abs=0.1)


@pytest.mark.parametrize("delay", [None, 0.5])
@pytest.mark.parametrize("tick_rate", [None, 60])
def test_each_view_has_a_tick_of_the_server(tick_rate: int | None, delay: float | None) -> None:
    """From the first one on, and after each reconnect."""
    protocol = tw.Protocol(1, [], ghosts=[Tank], tick_rate=tick_rate)
    network = tw.testing.SimulatedNetwork(seed=1)
    bad = tw.Conditions(latency=0.1, loss=0.3)
    network.set_conditions(bad)
    server = tw.Server("127.0.0.1:40000", protocol, network=network)
    reconnect, tuning = tw.connections.Reconnect(first_delay=0.1), tw.Tuning(timeout=1)
    client = tw.Client.connect(server.address, protocol, network=network, reconnect=reconnect, tuning=tuning)
    client.world.set_playout(delay=delay)
    tank = server.world.spawn(Tank)
    ticks: list[float] = []
    connections = [0]

    def play(frames: int) -> None:
        for _ in range(frames):
            with client.tick() as inbox:
                connections[0] += sum(isinstance(event, tw.Connected) for event in inbox.events)
            before = server.world.tick
            ticks.append(client.world.view().tick)
            assert 0 <= ticks[-1] <= before
            tank.position = (before % 100, 0)
            with server.tick():
                pass
            network.advance(1 / 60)

    play(240)
    for _ in range(3):
        network.set_conditions(tw.Conditions(loss=1))
        play(90)
        network.set_conditions(bad)
        play(240)
    assert connections == [4]
    assert ticks[-1] == pytest.approx(server.world.tick, abs=90)
    assert ticks == sorted(ticks)
    assert sum(tick > 0 for tick in ticks) > 800


def test_the_first_ticks_are_shown_at_the_rate_of_the_protocol() -> None:
    protocol = tw.Protocol(1, [], ghosts=[Tank], tick_rate=30)
    network, server, client = tw.testing.connected_pair(
        protocol, conditions=tw.Conditions(latency=0.1), seed=1
    )
    tank = server.world.spawn(Tank)
    ticks = []
    for frame in range(60):
        if frame % 2 == 0:
            with server.tick():
                tank.position = (frame, 0)
        with client.tick():
            view = client.world.view()
        if view.objects(Tank):
            ticks.append(view.tick)
        network.advance(1 / 60)
    steps = np.diff(ticks)
    assert steps[1:15] == pytest.approx(0.5, abs=0.03), (
        "half a tick a frame; the first follows the first tick"
    )


def test_a_curve_is_followed_with_velocities() -> None:
    scene = Scene()
    plane = scene.world.spawn(Plane)
    scene.run(0.3)
    first = scene.world.tick + 1
    for step in range(10):
        seconds = step / 60
        plane.position = (6 * seconds**2 * 60, 0)
        plane.velocity = (2 * 6 * seconds * 60, 0)
        scene.tick()
    scene.run(0.3)
    view = scene.client.world.view()
    for at in (2.5, 6.25):
        seconds = at / 60
        shown = view.at(first + at).arrays(Plane)["position"][0, 0]
        assert shown == pytest.approx(6 * seconds**2 * 60, abs=0.02)


def test_dead_reckoning_sends_what_clients_can_not_know() -> None:
    scene = Scene()
    ship = scene.world.spawn(Ship(velocity=(60, 0)))
    scene.run(0.5)
    before = scene.world.costs["Ship"]["position"]
    off = []
    steps: list[float] = []
    for step in range(600):
        seconds = step / 60
        angle = seconds / 3
        ship.velocity = (60 * math.cos(angle), 60 * math.sin(angle))
        x, y = ship.position
        ship.position = (x + ship.velocity[0] / 60, y + ship.velocity[1] / 60)
        view = scene.tick()
        at = view.arrays(Ship)["position"][0]
        steps.append(view.tick)
        off.append((at[0], at[1], view.tick, scene.world.tick, *ship.position))
    sent = scene.world.costs["Ship"]["position"] - before
    ways = np.diff(steps[60:])
    assert 0.9 < ways.min() <= ways.max() < 1.1, "time doesn't stand because nothing comes"
    ticks = {round(row[3]): row[4:] for row in off}
    worst = 0.0
    for x, y, tick, *_ in off[30:]:
        lower = ticks.get(math.floor(tick))
        upper = ticks.get(math.floor(tick) + 1)
        if lower is None or upper is None:
            continue
        part = tick - math.floor(tick)
        true = [a + (b - a) * part for a, b in zip(lower, upper, strict=True)]
        worst = max(worst, math.dist((x, y), true))
    assert worst < 0.5 + 0.02
    assert 0 < sent < 600 * 40 / 8, "a small part of the ticks"
    # It stops: that is said, though cells change no more.
    for _ in range(120):
        ship.velocity = (0, 0)
        view = scene.tick()
    at = view.arrays(Ship)["position"][0]
    assert math.dist(at, ship.position) < 0.01
    # What else is sent says where it is.
    ship.health = 3
    scene.run(0.3)
    at = scene.client.world.view().arrays(Ship)["position"][0]
    assert math.dist(at, ship.position) < 0.01


def test_rules_are_declared_with_properties() -> None:
    with pytest.raises(ValueError, match=r"^Wrong\.health: tw.world.slerp must be for a quaternion$"):

        @tw.ghost
        class Wrong:
            health: Annotated[int, tw.ranged(0, 9), tw.world.slerp] = 0

    with pytest.raises(ValueError, match=r"Lost\.place: there is no property .speed."):

        @tw.ghost
        class Lost:
            place: Annotated[float, tw.f32, tw.world.hermite("speed")] = 0  # type: ignore[valid-type]

    with pytest.raises(TypeError, match=r"Both\.place: .* contradict each other"):

        @tw.ghost
        class Both:
            place: Annotated[tw.f32, tw.world.step, tw.world.linear] = 0

    with pytest.raises(TypeError, match=r"the properties of ghosts"):

        @tw.message
        class No:
            place: Annotated[tw.f32, tw.world.step] = 0

    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="distance must be"):
            tw.world.threshold(wrong, velocity="velocity")
    with pytest.raises(TypeError, match="velocity must be the name of a property"):
        tw.world.hermite(3)  # type: ignore[arg-type]

    @tw.ghost
    class Compass:
        needle: Annotated[tw.f32, tw.world.angular(-180, 180)] = 0

    @tw.ghost
    class Better(Compass):
        name: Annotated[str, tw.text(9)] = ""

    assert Better.__tickwire_properties__.declared.rules == {"needle": ("angular", None, -180, 180)}  # type: ignore[attr-defined]


def test_views_refuse_what_is_no_tick_or_class() -> None:
    scene = Scene()
    view = scene.client.world.view()
    assert view.tick == 0
    assert view.arrays(Tank).living == 0
    scene.world.spawn(Tank)
    scene.run(0.3)
    for wrong in (math.nan, math.inf, -1.0, 2.0**32):
        with pytest.raises(ValueError, match="tick must be 0 to"):
            view.at(wrong)

    @tw.ghost
    class Stranger:
        x: tw.u8 = 0

    for call in (view.arrays, view.objects, view.shown):
        with pytest.raises(tw.errors.GhostError, match="not among the protocol's ghosts"):
            call(Stranger)
    with pytest.raises(tw.errors.GhostError, match="isn't in a world yet"):
        view.ghost(Tank())
    with pytest.raises(tw.errors.GhostError, match="another world"):
        view.ghost(scene.world.objects(Tank)[0])
    set_playout = scene.client.world.set_playout
    for delay in (0, -1.0, 10, math.inf):
        sentence = f"delay must be 0.0167 to 1.0333 seconds, 1 to 62 ticks at 60 a second, not {delay:g}"
        with pytest.raises(ValueError, match=sentence):
            set_playout(delay=delay)
    for name in ("extrapolation", "rest"):
        for seconds in (-1.0, 11.0, math.inf):
            with pytest.raises(ValueError, match=f"{name} must be 0 to 10 seconds, not {seconds:g}"):
                set_playout(**{name: seconds})
    for name, or_none in (("delay", " or None"), ("extrapolation", ""), ("rest", "")):
        with pytest.raises(TypeError, match=f"^{name} must be a number{or_none}, not str"):
            set_playout(**{name: "a"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="^tick must be a number, not str"):
        view.at("a")  # type: ignore[arg-type]
    scene.client.close()
    with pytest.raises(tw.errors.ClosedError):
        scene.client.world.view()


@pytest.mark.parametrize(("tick_rate", "ticks"), [(20, 20), (None, 60)])
def test_a_velocity_is_in_units_a_second_of_the_protocols_ticks(tick_rate: int | None, ticks: int) -> None:
    """Dead reckoning sends nothing while the server moves the ghost by its velocity."""

    @tw.ghost
    class Ship:
        place: Annotated[tw.f32, tw.world.threshold(0.01, velocity="speed")] = 0
        speed: tw.f32 = 0

    network = tw.testing.SimulatedNetwork()
    protocol = tw.Protocol(1, [], ghosts=[Ship], tick_rate=tick_rate)
    server = tw.Server("10.0.0.1:4000", protocol, network=network)
    client = tw.Client.connect(server.address, protocol, network=network)
    ship = Ship(place=0, speed=6)
    server.world.spawn(ship)
    tw.testing.advance(network, server, client, seconds=1, rate=ticks)
    sent = server.world.costs["Ship"]["place"]
    for _ in range(ticks):
        ship.place += 6 / ticks
        tw.testing.advance(network, server, client, seconds=1 / ticks, rate=ticks)
    assert server.world.costs["Ship"]["place"] <= sent + 2 * 32


def test_a_ghost_hardly_halts_before_its_end_on_a_lossy_line() -> None:
    scene = Scene(tw.Conditions(latency=0.1))
    tank = scene.world.spawn(Tank())
    drawn: list[float] = []
    for frame in range(300):
        # The line is known to lose packets, and then it loses the end.
        loss = float(frame in (100, 200))
        scene.network.set_conditions(tw.Conditions(latency=0.1, loss=loss), sender=scene.server.address)
        if frame < 200:
            tank.position = (frame, 0)
        elif frame == 200:
            scene.world.despawn(tank)
        drawn += [ghost.position[0] for ghost in scene.tick().objects(Tank)]
    assert drawn[-1] == 199
    assert drawn.count(199) <= 3
