"""The world as a client saw it: what is remembered, who was shown what, and records of what was judged."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
import tickwire as tw
from shown import STEP, Shown
from tickwire.testing import connected_pair


@tw.ghost(capacity=2000)
class Tank:
    position: Annotated[tw.Vec2, tw.vec2(-2000, 2000, 1 / 256)] = (0, 0)
    heading: Annotated[float, tw.angle(0, 360, 1 / 64)] = 0.0
    health: Annotated[int, tw.ranged(0, 100)] = 100
    name: Annotated[str, tw.text(24), tw.initial] = ""


@tw.message
class Chat:
    text: Annotated[str, tw.text(200)]


class Scene(Shown):
    """A server that remembers, its client, and a line between them."""

    def __init__(self, line: tw.Conditions | None = None, seed: int = 1, seconds: float = 1.0) -> None:
        super().__init__(tw.Protocol(id=1, messages=[Chat], ghosts=[Tank]), line, seed)
        self.world.remember(seconds)


def test_the_past_is_what_was_seen() -> None:
    scene = Scene()
    rng = np.random.default_rng(1)
    rows = scene.world.spawn_rows(Tank, 50)
    server = scene.world.arrays(Tank)
    server["position"][:] = rng.uniform(-100, 100, (50, 2))
    seen: list[tuple[float, np.ndarray, np.ndarray]] = []
    judged = other = 0
    for step in range(300):
        # Some move all the time, some pause, some jump.
        moving = rows[rng.random(50) < (0.1 if step % 60 < 20 else 0.9)]
        server["position"][moving] += rng.uniform(-2, 2, (len(moving), 2))
        server["heading"][moving] += 3.0
        view = scene.tick()
        arrays = view.arrays(Tank)
        if step > 60:
            alive = arrays.rows
            seen.append((view.tick, arrays["position"][alive].copy(), arrays["heading"][alive].copy()))
        if len(seen) > 12:
            tick, positions, headings = seen.pop(0)
            with scene.world.rewind(scene.player, seen=tick) as past:
                assert past.tick == pytest.approx(tick)
                then = past.arrays(Tank)
                # Rows are others on each side: by place.
                mine = np.hstack([then["position"][then.rows], then["heading"][then.rows][:, None]])
                theirs = np.hstack([positions, headings[:, None]])
                same = np.isclose(mine, theirs, atol=1e-6).all(axis=1)
                judged, other = judged + len(same), other + int((~same).sum())
    assert judged > 200 * 50
    # In one tick nothing moves at all: what was sent then had no ghosts, and may have been lost for all
    # that the client knows.
    assert other < judged / 500


@tw.message
class Aim:
    fires: bool = False


def test_inputs_say_what_was_seen_and_rewind_takes_it() -> None:
    protocol = tw.Protocol(id=1, messages=[], ghosts=[Tank], inputs=Aim, tick_rate=60)
    line = tw.Conditions(latency=0.08, jitter=0.02)
    network, server, client = connected_pair(protocol, seed=4, conditions=line)
    server.world.remember(1.0)
    (player,) = server.clients
    tank = server.world.spawn(Tank)
    aimed: list[float] = []
    judged: list[float] = []
    for step in range(300):
        with server.tick():
            tank.position = (step, 0)
            if server.inputs.get(player) == Aim(True):
                with server.world.rewind(player) as past:
                    assert past.clamped == ""
                    judged.append(past.ghost(tank).position[0])  # type: ignore[union-attr]
        network.advance(STEP)
        with client.tick():
            view = client.world.view()
            fires = step > 60 and step % 7 == 0
            if client.send_input(Aim(fires)) and fires:
                aimed.append(float(view.arrays(Tank)["position"][0][0]))
    assert len(judged) > 25
    assert judged == pytest.approx(aimed[: len(judged)], abs=0.01)


def test_who_says_nothing_is_judged_by_the_newest_tick() -> None:
    protocol = tw.Protocol(id=1, messages=[], ghosts=[Tank], inputs=Aim, tick_rate=60)
    network, server, client = connected_pair(protocol, seed=4)
    server.world.remember(1.0)
    (player,) = server.clients
    for _ in range(60):
        with server.tick():
            pass
        network.advance(STEP)
        with client.tick():
            client.send_input(Aim())
    with server.world.rewind(player) as past:
        assert (past.clamped, past.tick) == ("unsaid", server.world.tick)
    assert server.world.judgements.unsaid == 1
    scene = Scene()
    scene.run(0.1)
    with pytest.raises(ValueError, match="seen must be given, because the protocol has no inputs"):
        scene.world.rewind(scene.player)


def test_what_died_since_is_there_and_what_was_born_is_not() -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank(position=(1, 2), name="Bob"))
    scene.run(0.5)
    before = scene.world.tick
    scene.world.despawn(tank)
    scene.run(0.2)
    other = scene.world.spawn(Tank(position=(5, 5)))
    assert scene.world.row(other) == 0, "the row of the one before"
    scene.run(0.2)
    with scene.world.rewind_to(before + 0.5) as past:
        assert past.arrays(Tank)["position"][0].tolist() == [1, 2]
        assert past.arrays(Tank).rows.tolist() == [0]
    with scene.world.rewind_to(before + 1) as past:
        assert past.arrays(Tank).living == 0
        assert past.objects(Tank) == []
        assert past.ghost(other) is None
    with scene.world.rewind_to(scene.world.tick) as past:
        assert past.ghost(other).position == (5, 5)  # type: ignore[union-attr]


def test_ghosts_of_one_row_are_told_apart() -> None:
    network, server, client = connected_pair(tw.Protocol(id=1, ghosts=[Tank]), seed=1)
    world = server.world
    world.remember(2.0)

    def tick(count: int) -> None:
        for _ in range(count):
            with server.tick():
                pass
            network.advance(STEP)
            with client.tick():
                pass

    tick(10)
    tanks: list[Tank] = []
    times: list[float] = []
    for health in (1, 2, 3):
        if tanks:
            world.despawn(tanks[-1])
            tick(5)
        tanks.append(world.spawn(Tank(health=health)))
        tick(20)
        times.append(world.tick - 5)
    assert world.row(tanks[-1]) == 0
    for place, time in enumerate(times):
        with world.rewind_to(time) as past:
            shown = [past.ghost(tank) for tank in tanks]
            assert [tank and tank.health for tank in shown] == [
                place + 1 if place == other else None for other in range(3)
            ]

    # A ghost that takes the row in the tick in which another one leaves it.
    server.disconnect(next(iter(server.clients)))
    tick(2)
    world.despawn(tanks[-1])
    reborn = world.spawn(Tank(health=100))
    assert world.row(reborn) == 0
    for _ in range(2):
        with world.rewind_to(times[-1]) as past:
            was = past.ghost(tanks[-1])
            assert was is not None
            assert was.health == 3
            assert past.ghost(reborn) is None
        tick(1)


def test_what_a_client_was_not_shown_is_marked() -> None:
    scene = Scene()
    scene.world.set_relevancy(Tank, tw.world.Chosen())
    scene.world.spawn_rows(Tank, 3)
    scene.world.show(scene.player, Tank, np.array([True, False, True]))
    scene.run(0.3)
    first = scene.world.tick
    scene.world.show(scene.player, Tank, np.array([False, True, True]))
    scene.run(0.3)
    with scene.world.rewind(scene.player, seen=first) as past:
        assert past.shown(Tank).tolist() == [True, False, True]
        assert past.arrays(Tank).rows.tolist() == [0, 1, 2], "all that was"
    with scene.world.rewind(scene.player, seen=scene.world.tick) as past:
        assert past.shown(Tank).tolist() == [False, True, True]
    with scene.world.rewind_to(first) as past:
        assert past.shown(Tank).tolist() == [True, True, True]


def test_claims_are_held_in_bounds_and_counted() -> None:
    scene = Scene(seconds=0.5)
    tank = scene.world.spawn(Tank)
    scene.run(0.1)
    for step in range(120):
        tank.position = (step, 0)
        scene.tick()
    now = scene.world.tick
    with scene.world.rewind(scene.player, seen=now - 60) as past:
        assert (past.clamped, past.tick, past.claimed) == ("too old", now - 30, now - 60)
        assert past.ghost(tank).position[0] == 119 - 30  # type: ignore[union-attr]
    with scene.world.rewind(scene.player, seen=now + 3.5) as past:
        assert (past.clamped, past.tick) == ("future", now)
    with scene.world.rewind(scene.player, seen=now - 29.5) as past:
        assert past.clamped == ""
    for odd in (-1e9, 1e300, 0.0, 2.0**40):
        with scene.world.rewind(scene.player, seen=odd) as past:
            assert now - 30 <= past.tick <= now
    for wrong in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="seen must be a tick of the server, not"):
            scene.world.rewind(scene.player, seen=wrong)
        with pytest.raises(ValueError, match="tick must be a tick of the server, not"):
            scene.world.rewind_to(wrong)
    judgements = scene.world.judgements
    assert judgements.too_old >= 1
    assert judgements.future >= 1
    with pytest.raises(tw.errors.GhostError, match="a rewound world shows only one tick"):
        scene.world.rewind_to(now)._view.at(3)


def test_what_is_remembered_is_said_first() -> None:
    scene = Scene()
    scene.world.remember(0)
    scene.world.spawn(Tank)
    scene.run(0.3)
    assert scene.world.past_bytes == 0
    with pytest.raises(tw.errors.GhostError, match="must have a record"):
        scene.world.rewind_to(3)
    for seconds in (-1, 5, math.nan):
        with pytest.raises(ValueError, match=r"seconds must be 0 to 4\.1\d+ \(250 ticks at 60 .*\), not"):
            scene.world.remember(seconds)
    scene.world.remember(250 / 60)
    scene.world.remember(1)
    with pytest.raises(tw.errors.GhostError, match="must have a record"):
        scene.world.rewind_to(3)
    scene.run(0.1)
    with scene.world.rewind_to(3) as past:
        assert past.clamped == "too old"
        assert past.arrays(Tank).living == 1


def test_the_past_has_owners_and_the_tick_rate_of_the_protocol() -> None:
    protocol = tw.Protocol(id=1, messages=[Chat], ghosts=[Tank], tick_rate=20)
    _, server, _ = connected_pair(protocol, seed=1)
    (player,) = server.clients
    server.world.remember(0.5)
    tanks = [server.world.spawn(Tank, owner=owner) for owner in (player, None, player)]
    for _ in range(30):
        with server.tick():
            pass
    server.world.despawn(tanks[2])
    with server.tick():
        pass
    tick = server.world.tick
    with server.world.rewind_to(tick - 5) as past:
        assert not past.clamped
        assert past.arrays(Tank).owners.tolist()[:3] == [player.number, 2**64 - 1, 2**64 - 1]
    with server.world.rewind_to(tick - 12) as past:
        assert past.clamped == "too old"


def test_memory_is_that_of_the_time_that_is_remembered() -> None:
    scene = Scene(seconds=0.5)
    rows = scene.world.spawn_rows(Tank, 1000)
    server = scene.world.arrays(Tank)
    for _ in range(90):
        server["position"][rows] += 0.5
        scene.tick()
    # 32 states of 1,024 rows, of 4 words and a tick.
    assert 0 < scene.world.past_bytes <= 32 * 1024 * (4 * 4 + 4) + 100_000


def test_judgements_say_what_was_seen_and_what_was(tmp_path: Path) -> None:
    scene = Scene()
    tank = scene.world.spawn(Tank(name="Bob"))
    scene.run(0.1)
    for step in range(60):
        tank.position = (step, 0)
        scene.tick()
    now = scene.world.tick
    with scene.world.rewind(scene.player, seen=now - 6.5) as past:
        hit = math.dist(past.ghost(tank).position, (52.5, 0)) < 1  # type: ignore[union-attr]
        judgement = past.judge(hit, tank, weapon="rifle", at=(52.5, 0), odd=math.nan)
    assert judgement is scene.world.judgements[-1]
    assert (judgement.number, judgement.verdict, judgement.client) == (1, True, scene.player.number)
    (looked_at,) = judgement.ghosts
    assert looked_at["saw"]["position"] == (52.5, 0)
    assert looked_at["was"]["position"] == (59, 0)
    assert looked_at["shown"]
    file = tmp_path / "judgements.jsonl"
    assert scene.world.judgements.write(file) == 1
    line = json.loads(file.read_text("utf-8"))
    assert line["facts"] == {"weapon": "rifle", "at": [52.5, 0], "odd": "nan"}
    assert line["ghosts"][0]["saw"]["position"] == [52.5, 0]
    scene.world.judgements.most = 3
    with scene.world.rewind_to(now) as past:
        for number in range(10):
            past.judge(number)
        with pytest.raises(tw.errors.GhostError, match="objects of the world"):
            past.judge(False, "nobody")
    assert [each.verdict for each in scene.world.judgements] == [7, 8, 9]
    assert scene.world.judgements.count == 11
    with pytest.raises(ValueError, match="most must be"):
        scene.world.judgements.most = -1
