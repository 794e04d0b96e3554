"""Ghost packets against the standard's text: an independent program reads what a server sends as the client
does, and writes the same bits; and the dissector shows it.
"""

from __future__ import annotations

import enum
import random
from pathlib import Path
from typing import Annotated, Any

import pytest
import tickwire as tw
from ghost_standard import Class, Ghosts, Property, Word
from lupa import lua52
from tickwire.capture import dissector, read_capture, read_keys
from tickwire.capture._keys import opener
from tickwire.testing import advance


class Stance(enum.Enum):
    STAND = 0
    CROUCH = 1
    LIE = 2


@tw.ghost(capacity=2000)
class Tank:
    position: Annotated[tw.Vec2, tw.vec2(-500, 500, 1 / 64)] = (0, 0)
    heading: Annotated[float, tw.angle(0, 360, 0.5)] = 0.0
    health: Annotated[int, tw.ranged(0, 100)] = 100
    alive: bool = True
    stance: Stance = Stance.STAND
    name: Annotated[str, tw.text(12), tw.initial] = ""
    ammo: Annotated[int, tw.ranged(0, 999), tw.world.owner_only] = 50
    target: tw.Ref[Crate] = None


@tw.ghost(capacity=2000)
class Crate:
    label: Annotated[str, tw.text(20)] = ""
    weight: tw.u16 = 0
    secret: Annotated[int, tw.ranged(-3, 60), tw.world.when("trusted")] = 7
    locked: Annotated[bool, tw.world.owner_only] = False
    value: Annotated[int, tw.ranged(0, 500), tw.world.except_owner] = 0


NUMBER = Word((1 << 32) - 1)
STEPS = 64_000
CLASSES = [
    Class(
        "Tank",
        2000,
        (
            Property("position", "a", (Word(STEPS), Word(STEPS))),
            Property("heading", "a", (Word(719, "circle"),)),
            Property("health", "a", (Word(100),)),
            Property("alive", "a", (Word(1, "choice"),)),
            Property("stance", "a", (Word(2, "choice"),)),
            Property("name", "i", text=12),
            Property("ammo", "o", (Word(999),)),
            Property("target", "a", (NUMBER,), common=0),
        ),
    ),
    Class(
        "Crate",
        2000,
        (
            Property("label", "a", text=20),
            Property("weight", "a", (Word((1 << 16) - 1),)),
            Property("secret", "c", (Word(63),)),
            Property("locked", "o", (Word(1, "choice"),)),
            Property("value", "e", (Word(500),)),
            Property("(id)", "i", (NUMBER,)),
        ),
    ),
]


def captured(directory: Path, ghosts: list[type], conditions: tw.Conditions) -> dict[str, Any]:
    """A server and its client, connected over such a line, and the capture of what the client sees."""
    path, keys = directory / "client.pcapng", directory / "client.keys"
    protocol: tw.Protocol[Any] = tw.Protocol(1, [], ghosts=ghosts)
    network, key = tw.testing.SimulatedNetwork(seed=5, conditions=conditions), tw.generate_key()
    server = tw.Server("127.0.0.1:40000", protocol, key=key, network=network)
    capture = tw.capture.Capture(path, keys=keys)
    client = tw.Client.connect(
        server.address, protocol, key=key, network=network, debugging=tw.testing.Debugging(capture=capture)
    )
    while not (client.connected and server.clients):
        advance(network, server, client, seconds=1 / 30)
    made = {"path": path, "keys": keys, "capture": capture, "protocol": protocol}
    return {**made, "network": network, "server": server, "client": client}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Ghosts over a bad line, as the client's network had them."""
    conditions = tw.Conditions(latency=0.03, jitter=0.02, loss=0.1)
    session = captured(tmp_path_factory.mktemp("session"), [Tank, Crate], conditions)
    network, server, client = session["network"], session["server"], session["client"]
    (handle,) = server.clients
    world, rng = server.world, random.Random(7)
    world.set_condition_hook(Crate, "trusted", lambda _, crates: (crates["weight"] % 2 == 0)[None, :])
    crates: list[Any] = [world.spawn(Crate(label=f"crate {i}", weight=i)) for i in range(20)]
    tanks = [world.spawn(Tank(name=f"tänk {i}"), owner=handle if i % 3 else None) for i in range(30)]
    velocity = [(rng.uniform(-3, 3), rng.uniform(-3, 3)) for _ in tanks]
    for tick in range(260):
        for tank, (x, y) in zip(tanks, velocity, strict=True):
            if tank in world:
                tank.position = (tank.position[0] + x / 4, tank.position[1] + y / 4)
                tank.heading = (tank.heading + x + 360) % 360
        if tick % 3 == 0:
            tank = tanks[rng.randrange(len(tanks))]
            tank.health, tank.alive = rng.randrange(101), rng.random() < 0.5
            tank.stance, tank.ammo = rng.choice(list(Stance)), rng.randrange(1000)
            tank.target = rng.choice(crates)
            crate = rng.choice(crates)
            crate.weight, crate.secret = rng.randrange(1 << 16), rng.randrange(-3, 61)
            crate.label = "x" * rng.randrange(20)
            crate.locked, crate.value = rng.random() < 0.5, rng.randrange(501)
        if tick % 20 == 10:
            world.despawn(crates.pop())
            crates.append(world.spawn(Crate(label="new")))
            world.set_owner(tanks[rng.randrange(len(tanks))], rng.choice([handle, None]))
            world.set_owner(crates[rng.randrange(len(crates))], rng.choice([handle, None]))
        advance(network, server, client, seconds=1 / 60)
    advance(network, server, client, seconds=1.0)
    session["capture"].close()
    return session


def tree(table: Any) -> list[dict[str, Any]]:
    nodes = []
    for each in [] if table is None else list(table.values()):
        node = {
            k.decode(): v.decode() if isinstance(v, bytes) else v for k, v in each.items() if k != b"kids"
        }
        nodes.append({**node, "kids": tree(each[b"kids"])})
    return nodes


def shown_payloads(session: dict[str, Any]) -> list[tuple[bytes, dict[str, Any]]]:
    """The connection packets that had ghosts in them, as they came, and how the dissector shows these."""
    runtime = lua52.LuaRuntime(encoding=None)
    functions = runtime.execute(dissector(session["protocol"]).encode())
    opening = opener(read_keys(session["keys"]))
    found = []
    for datagram in read_capture(session["path"]):
        opened = opening.open(datagram.sender, datagram.receiver, datagram.data)
        said = functions[b"netcode"](datagram.data if opened is None else opened, opened is not None)
        if datagram.outgoing or said[b"kind"][b"name"] != b"payload":
            continue
        assert opened is not None
        body = opened[int(said[b"body_at"]) :]
        head = functions[b"numbered"](body, said[b"sequence"])
        assert head[b"fragment"] is None
        data = body[int(head[b"body_at"]) :]
        entries = tree(functions[b"connection_packet"](data, head[b"ack"], runtime.table()))
        assert all(node["name"] != "malformed" for node in entries), entries[-1]
        found += [(data, part) for node in entries for part in node["kids"] if part["name"] == "payload"]
    return found


def payload_of(node: dict[str, Any]) -> tuple[int, int]:
    """Where a payload lies in its packet, and its bits."""
    (length,) = [kid for kid in node["kids"] if kid["name"] == "length"]
    return int(length["to"]), int(length["value"])


def test_the_ranges_are_those_that_the_protocol_describes(session: dict[str, Any]) -> None:
    text = session["protocol"].description
    assert f",{STEPS})" in text
    assert ",719)" in text
    assert "c 6:secret ranged(-3,60)" in text


def test_an_independent_program_reads_and_writes_the_same_bits(session: dict[str, Any]) -> None:
    ghosts, found = Ghosts(CLASSES), shown_payloads(session)
    assert len(found) > 200
    ops: dict[str, int] = {}
    forms: set[Any] = set()
    for data, node in found:
        at, bits = payload_of(node)
        tick, records = ghosts.read(data, at, bits)
        written = ghosts.write(at, tick, records)
        wanted = int.from_bytes(data, "little") >> at & ((1 << bits) - 1)
        assert (written.at - at, written.number) == (bits, wanted)
        for record in records:
            ops[record.op] = ops.get(record.op, 0) + 1
            forms.add((record.op, record.base[:1], record.base[1:][-1:] != (0,), record.goes_on))
    print(f"{len(found)} payloads, {ops}")
    assert ops["update"] > 3_000
    assert ops["create"] > 60
    assert ops["destroy"] > 8
    assert {form[1] for form in forms if form[0] == "update"} == {("newest",), ("named",)}
    assert {form[3] for form in forms} == {False, True}
    # What it has in the end is what the client shows.
    world = session["client"].world
    for class_id, class_ in enumerate((Tank, Crate)):
        arrays = world.arrays(class_)
        mine = {row: ghost for (of, row), ghost in ghosts.alive.items() if of == class_id}
        assert sorted(mine) == arrays.rows.tolist()
        for row, ghost in mine.items():
            state = ghost.states[max(ghost.states)]
            assert ghost.owner == arrays.owners[row]
            if class_ is Tank:
                tank = arrays.ghost(row)
                x, y = (-500 + step / 64 for step in state[0])
                assert tank.position == (x, y)
                assert tank.heading == pytest.approx(state[1][0] / 2)
                assert (tank.health, int(tank.alive)) == (state[2][0], state[3][0])
                assert list(Stance).index(tank.stance) == state[4][0]
                assert tank.name == ghost.texts[5]
                assert arrays["target"][row] == state[7][0]
            else:
                crate = arrays.ghost(row)
                assert (crate.label, crate.weight) == (ghost.texts[0], state[1][0])
                assert arrays.network_ids[row] == state[5][0]


def test_the_dissector_shows_ghosts(session: dict[str, Any]) -> None:
    ghosts, shown = Ghosts(CLASSES), 0
    for data, node in shown_payloads(session):
        at, bits = payload_of(node)
        _, records = ghosts.read(data, at, bits)
        kids = [kid for kid in node["kids"] if kid["field"] == "tickwire.ghost"]
        assert [(kid["name"], kid["value"]) for kid in kids] == [
            (record.op, f"{CLASSES[record.class_id].name} {record.id}") for record in records
        ]
        for kid, record in zip(kids, records, strict=True):
            class_ = CLASSES[record.class_id]
            names = [part["name"] for part in kid["kids"] if not part["field"].startswith("tickwire.ghost.")]
            wanted = [class_.properties[place].name for place in record.values]
            assert names == wanted
            if record.op == "create":
                parts = {part["name"]: part["value"] for part in kid["kids"]}
                name = parts["name" if class_.name == "Tank" else "label"]
                assert name == record.values[5 if class_.name == "Tank" else 0]
            shown += 1
    assert shown > 3_000


@pytest.mark.parametrize("metric", ["line", "circle", "choice"])
def test_each_residual_is_one_word(metric: str) -> None:
    for last in (1, 2, 9, 10):
        word = Word(last, metric)
        for base in range(last + 1):
            residuals = [word.residual(each, base) for each in range(last + 1)]
            assert sorted(residuals) == list(range(last + 1))
            assert [word.word(residual, base) for residual in residuals] == list(range(last + 1))
