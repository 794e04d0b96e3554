"""Coded ghost packets against the standard's text: an independent program reads what a server sends over a
bad line as the client does, and writes the same bits.
"""

from __future__ import annotations

import enum
import random
from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw
from ghost_standard import Class, Property, Word
from ghost_standard_coded import CodedGhosts, CodedRecord
from test_ghost_standard import captured, payload_of, shown_payloads
from tickwire.testing import advance


class Stance(enum.Enum):
    STAND = 0
    CROUCH = 1
    LIE = 2


@tw.ghost(capacity=2000, coded=True)
class Cube:
    position: Annotated[tw.Vec3, tw.vec3(-500, 500, 1 / 64)] = (0, 0, 0)
    turn: Annotated[tw.fields.Quaternion, tw.fields.quaternion(9)] = (0, 0, 0, 1)
    heading: Annotated[float, tw.angle(0, 360, 0.5)] = 0.0
    health: Annotated[int, tw.ranged(0, 100)] = 100
    alive: bool = True
    stance: Stance = Stance.STAND
    name: Annotated[str, tw.text(12), tw.initial] = ""
    ammo: Annotated[int, tw.ranged(0, 999), tw.world.owner_only] = 50
    label: Annotated[str, tw.text(20)] = ""


@tw.ghost(capacity=2000, coded=True)
class Crate:
    weight: tw.u16 = 0
    number: tw.u64 = 0
    secret: Annotated[int, tw.ranged(-3, 60), tw.world.when("trusted")] = 7
    value: Annotated[int, tw.ranged(0, 500), tw.world.except_owner] = 0
    on: Annotated[tw.Ref[Door], tw.world.owner_only] = None


@tw.ghost(capacity=100)
class Door:
    open: bool = False


@tw.ghost(capacity=100, coded=True)
class Ball:
    position: Annotated[tw.Vec3, tw.vec3(-500, 500, 1 / 64)] = (0, 0, 0)
    turn: Annotated[tw.fields.Quaternion, tw.fields.quaternion(9)] = (0, 0, 0, 1)
    heading: Annotated[float, tw.angle(0, 360, 0.5)] = 0.0
    count: tw.u64 = 0
    steps: tw.u8 = 0


NUMBER = Word((1 << 32) - 1)
AXIS = Word(64_000)
LEVEL = Word(510)
CLASSES = [
    Class(
        "Cube",
        2000,
        (
            Property("position", "a", (AXIS, AXIS, AXIS)),
            Property("turn", "a", (Word(3, "choice"), LEVEL, LEVEL, LEVEL), rotation=True),
            Property("heading", "a", (Word(719, "circle"),)),
            Property("health", "a", (Word(100),)),
            Property("alive", "a", (Word(1, "choice"),)),
            Property("stance", "a", (Word(2, "choice"),)),
            Property("name", "i", text=12),
            Property("ammo", "o", (Word(999),)),
            Property("label", "a", text=20),
        ),
    ),
    Class(
        "Crate",
        2000,
        (
            Property("weight", "a", (Word((1 << 16) - 1),)),
            Property("number", "a", (Word((1 << 64) - 1),)),
            Property("secret", "c", (Word(63),)),
            Property("value", "e", (Word(500),)),
            Property("on", "o", (NUMBER,), common=0),
        ),
    ),
    Class("Door", 100, (Property("open", "a", (Word(1, "choice"),)), Property("(id)", "i", (NUMBER,)))),
    Class(
        "Ball",
        100,
        (
            Property("position", "a", (AXIS, AXIS, AXIS)),
            Property("turn", "a", (Word(3, "choice"), LEVEL, LEVEL, LEVEL), rotation=True),
            Property("heading", "a", (Word(719, "circle"),)),
            Property("count", "a", (Word((1 << 64) - 1),)),
            Property("steps", "a", (Word(255),)),
        ),
    ),
]
CODED = {0, 1, 3}


# Late, lost, doubled and out of order; and acked within a tick, but for what is lost.
LINES = {
    "bad": tw.Conditions(latency=0.03, jitter=0.02, loss=0.1, duplicate=0.05),
    "near": tw.Conditions(latency=0.002, loss=0.02),
}


@pytest.fixture(scope="module", params=LINES)
def session(request: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Ghosts over a bad line, as the client's network had them."""
    session = captured(tmp_path_factory.mktemp("session"), [Cube, Crate, Door, Ball], LINES[request.param])
    network, server, client = session["network"], session["server"], session["client"]
    (handle,) = server.clients
    world, rng = server.world, random.Random(7)
    world.set_condition_hook(Crate, "trusted", lambda _, crates: (crates["weight"] % 2 == 0)[None, :])
    crates: list[Any] = [world.spawn(Crate(weight=i, number=i << 40)) for i in range(10)]
    cubes = [world.spawn(Cube(name=f"cübe {i}"), owner=handle if i % 3 else None) for i in range(16)]
    doors = [world.spawn(Door()) for _ in range(3)]
    balls = [world.spawn(Ball(heading=9 * i)) for i in range(16)]
    # Thrown, and turning about one axis; some go straight, some only sometimes.
    speed = [[rng.uniform(-3, 3) for _ in range(3)] for _ in cubes]
    for tick in range(120):
        for i, cube in enumerate(cubes):
            if i % 4 == 3 and rng.random() < 0.7:
                continue
            if i % 2:
                speed[i][2] -= 0.1
            cube.position = tuple(np.clip(np.add(cube.position, speed[i]), -500, 500))
            angle = tick / (10 + i)
            cube.turn = (np.sin(angle) * 0.6, np.sin(angle) * 0.8, 0, np.cos(angle))
            cube.heading = (cube.heading + speed[i][0] * 4 + 360) % 360
            if abs(cube.position[2]) == 500 or rng.random() < 0.02:
                speed[i][2] = -speed[i][2] + rng.uniform(-2, 2)
        for i, ball in enumerate(balls):
            # As often as they are acked on a near line.
            if (tick + i) % 4 == 0:
                at, angle = tick / 40, tick / (10 + i)
                ball.position = (at * (i - 20), at**2 * (i - 20), 10 * at**3 % 500)
                ball.turn = (np.sin(angle) * 0.6, 0, np.sin(angle) * 0.8, np.cos(angle))
                ball.heading = (ball.heading + 6 * at * i + rng.choice([0, 0, 9])) % 360
                ball.count += (i << 30) + tick
                ball.steps = tick
        if tick % 3 == 0:
            cube, crate = rng.choice(cubes), rng.choice(crates)
            cube.health, cube.alive = rng.randrange(101), rng.random() < 0.5
            cube.stance, cube.ammo = rng.choice(list(Stance)), rng.randrange(1000)
            cube.label = "y" * rng.randrange(20)
            crate.weight, crate.secret = rng.randrange(1 << 16), rng.randrange(-3, 61)
            crate.value, crate.on = rng.randrange(501), rng.choice(doors)
            crate.number += rng.randrange(1 << rng.randrange(60))
            rng.choice(doors).open = rng.random() < 0.5
        if tick % 20 == 10:
            world.despawn(crates.pop())
            crates.append(world.spawn(Crate(weight=tick)))
            for ghost in (rng.choice(cubes), rng.choice(crates)):
                world.set_owner(ghost, rng.choice([handle, None]))
        advance(network, server, client, seconds=1 / 60)
    advance(network, server, client, seconds=1.0)
    session["capture"].close()
    return {**session, "line": request.param}


def test_the_ranges_are_those_that_the_protocol_describes(session: dict[str, Any]) -> None:
    text = session["protocol"].description
    assert "class 4:Cube 2000 coded" in text
    assert f",{AXIS.last})" in text
    assert "a 4:turn rotation(9)" in text


def test_an_independent_program_reads_and_writes_the_same_coded_bits(session: dict[str, Any]) -> None:
    ghosts, found = CodedGhosts(CLASSES, CODED), shown_payloads(session)
    assert len(found) > 100
    ops: dict[str, int] = {}
    deviates: dict[bool, int] = {False: 0, True: 0}
    runs: set[int] = set()
    named: set[str] = set()
    turned = whole = 0
    for data, node in found:
        at, bits = payload_of(node)
        tick, records = ghosts.read(data, at, bits)
        plain = [record for record in records if not isinstance(record, CodedRecord)]
        written = ghosts.write(at, tick, plain)
        wanted = int.from_bytes(data, "little") >> at & ((1 << bits) - 1)
        assert (written.at - at, written.number) == (bits, wanted)
        if ghosts.part is not None:
            how = "all" if ghosts.part.older is None else "some"
            named.add(how if ghosts.part.age else "none")
        for record in records:
            ops[record.op] = ops.get(record.op, 0) + 1
            if isinstance(record, CodedRecord):
                whole += record.whole
                turned += record.class_id == 0 and record.residuals.get(1, [0])[0] > 0
                runs |= {record.base[3]} if record.op == "update" else set()
                for said in record.deviates.values():
                    deviates[said] += 1
    assert ops["update"] > 1_500
    assert ops["create"] > 40
    assert ops["destroy"] > 3
    assert min(deviates.values()) > 20
    assert {0, 1, 2, 5} <= runs
    assert turned > 10
    assert named == {"none", "some", "all"}
    # What it has in the end is what the client shows.
    world = session["client"].world
    for class_id, class_ in enumerate((Cube, Crate, Door, Ball)):
        arrays = world.arrays(class_)
        mine = {row: ghost for (of, row), ghost in ghosts.alive.items() if of == class_id}
        assert sorted(mine) == arrays.rows.tolist()
        for row, ghost in mine.items():
            state, shown = ghost.states[max(ghost.states)], arrays.ghost(row)
            assert ghost.owner == arrays.owners[row]
            if class_ is Cube:
                assert shown.position == tuple(-500 + step / 64 for step in state[0])
                largest, *levels = state[1]
                others = [axis for axis in range(4) if axis != largest]
                for axis, level in zip(others, levels, strict=True):
                    assert shown.turn[axis] == pytest.approx((level - 255) / 255 / 2**0.5, abs=1e-5)
                assert shown.heading == pytest.approx(state[2][0] / 2)
                assert (shown.health, int(shown.alive)) == (state[3][0], state[4][0])
                assert list(Stance).index(shown.stance) == state[5][0]
                assert (shown.name, shown.label) == (ghost.texts[6], ghost.texts[8])
            elif class_ is Crate:
                assert (shown.weight, shown.number) == (state[0][0], state[1][0])
            elif class_ is Door:
                assert shown.open == bool(state[0][0])
                assert arrays.network_ids[row] == state[1][0]
            else:
                assert shown.position == tuple(-500 + step / 64 for step in state[0])
                assert (shown.count, shown.steps) == (state[3][0], state[4][0])
                assert shown.heading == pytest.approx(state[2][0] / 2)
