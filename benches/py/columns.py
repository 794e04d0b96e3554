"""What messages cost as rows of arrays, beside objects and beside NumPy alone.

`receive/...` are whole receives of the server, from the datagrams to what the game reads, for one message
of six fields. `snapshot/...` are 100 entities of 112 bits; `..._numpy` packs and unpacks the same bits with
NumPy by hand, and `..._objects` with message objects.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import numpy as np
import tickwire as tw
from boundary import Six
from tickwire.testing import advance

ENTITIES, CLIENTS, EACH = 100, 10, 1000
BITS, LO, STEP = 9, -2048.0, 1 / 512
SIDE = 2 ** (BITS - 1) - 1


@tw.message
class Entity:
    id: tw.u16
    position: Annotated[tw.Vec3, tw.vec3(LO, 2047, STEP)]
    rotation: Annotated[tw.fields.Quaternion, tw.fields.quaternion(BITS)]
    flags: Annotated[int, tw.flags("a", "b", "c", "d")]


@tw.message
class Snapshot:
    tick: tw.u16
    entities: Annotated[list[Entity], tw.up_to(ENTITIES)]


def entities() -> Any:
    rng = np.random.default_rng(1)
    rows = np.zeros(ENTITIES, tw.columns.dtype(Entity))
    rows["id"] = range(ENTITIES)
    rows["position"] = rng.uniform(LO, 2047, (ENTITIES, 3))
    rotations = rng.normal(size=(ENTITIES, 4))
    rows["rotation"] = rotations / np.linalg.norm(rotations, axis=1)[:, None]
    rows["flags"] = rng.integers(0, 16, ENTITIES)
    return rows


# --- NumPy by hand ------------------------------------------------------------------------------------------

WIDTHS = [16, 21, 21, 21, 2, BITS, BITS, BITS, 4]
OTHERS = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
SHIFTS = np.concatenate([np.arange(width) for width in WIDTHS]).astype(np.uint32)
COLUMN_OF_BIT = np.repeat(np.arange(len(WIDTHS)), WIDTHS)
STARTS = np.cumsum([0, *WIDTHS[:-1]])
LINES = np.arange(ENTITIES)
REACH = np.float64(np.sqrt(0.5))


def pack_by_hand(rows: Any) -> bytes:
    values = np.empty((ENTITIES, len(WIDTHS)), np.uint32)
    values[:, 0] = rows["id"]
    values[:, 1:4] = np.rint((rows["position"] - LO) / STEP)
    q = rows["rotation"].astype(np.float64)
    largest = np.argmax(np.abs(q), axis=1)
    q *= np.sign(q[LINES, largest])[:, None]
    values[:, 4] = largest
    values[:, 5:8] = np.rint(q[LINES[:, None], OTHERS[largest]] / REACH * SIDE) + SIDE
    values[:, 8] = rows["flags"]
    return np.packbits((values[:, COLUMN_OF_BIT] >> SHIFTS & 1).astype(np.uint8), bitorder="little").tobytes()


def unpack_by_hand(data: bytes) -> Any:
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").reshape(ENTITIES, -1)
    values = np.add.reduceat(bits.astype(np.uint32) << SHIFTS, STARTS, axis=1)
    rows = np.empty(ENTITIES, tw.columns.dtype(Entity))
    rows["id"] = values[:, 0]
    rows["position"] = values[:, 1:4] * STEP + LO
    three = (values[:, 5:8].astype(np.float64) - SIDE) / SIDE * REACH
    q = np.empty((ENTITIES, 4))
    largest = values[:, 4]
    q[LINES[:, None], OTHERS[largest]] = three
    q[LINES, largest] = np.sqrt(np.maximum(0, 1 - (three * three).sum(axis=1)))
    rows["rotation"] = q
    rows["flags"] = values[:, 8]
    return rows


# --- measuring ----------------------------------------------------------------------------------------------


def least(call: Callable[[], object], runs: int = 2000) -> float:
    """The least nanoseconds of one call."""
    times = []
    for _ in range(runs):
        started = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - started)
    return float(min(times))


def received(columns: list[type], channel: int, runs: int = 15) -> float:
    """The least nanoseconds for one message of a server's receive."""
    channels = [tw.reliable_ordered(receive_window=4096, send_queue=4096), tw.unreliable(receive_queue=4096)]
    protocol = tw.Protocol(0x7469636B, [Six], channels)
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", protocol, network=network, tuning=tw.Tuning(columns=columns))
    clients = [tw.Client.connect("10.0.0.1:5", protocol, network=network) for _ in range(CLIENTS)]
    advance(network, server, *clients, seconds=0.5)
    rows = np.zeros(EACH, tw.columns.dtype(Six))
    rows["health"] = 50
    times = []
    for _ in range(runs):
        for client in clients:
            client.set_budget(1e9, 1e6)
            client.send(tw.columns.Batch(Six, rows), channel)
            client.flush()
        network.advance(1 / 60)
        started = time.perf_counter_ns()
        inbox = server.receive()
        read = inbox.columns(Six) if columns else inbox.messages
        taken = time.perf_counter_ns() - started
        if len(read) == CLIENTS * EACH:
            times.append(taken / len(read))
        server.flush()
        network.advance(1 / 60)
        for client in clients:
            client.receive()
    return min(times)


def measured() -> Iterator[tuple[str, float]]:
    """Nanoseconds, by name."""
    for name, channel in {"reliable": 0, "unreliable": 1}.items():
        yield f"receive/{name}_object", received([], channel)
        yield f"receive/{name}_row", received([Six], channel)
    six = np.zeros(10_000, tw.columns.dtype(Six))
    packed = tw.columns.pack(Six, six)
    yield "rows/pack_six_fields", least(lambda: tw.columns.pack(Six, six), 200) / len(six)
    yield "rows/unpack_six_fields", least(lambda: tw.columns.unpack(Six, packed, len(six)), 200) / len(six)

    rows = entities()
    data = tw.columns.pack(Entity, rows)
    objects = [
        Entity(int(row["id"]), tuple(row["position"]), tuple(row["rotation"]), int(row["flags"]))
        for row in rows
    ]
    protocol = tw.Protocol(1, [Snapshot])
    snapshot = Snapshot(1, objects)
    encoded = protocol.encode(snapshot)
    one = np.zeros(1, tw.columns.dtype(Snapshot))
    one["entities"] = (0, ENTITIES)
    assert len(pack_by_hand(rows)) == len(data)
    assert (unpack_by_hand(data)["position"] == tw.columns.unpack(Entity, data, ENTITIES)["position"]).all()
    yield "snapshot/pack", least(lambda: tw.columns.pack(Entity, rows))
    yield "snapshot/pack_numpy", least(lambda: pack_by_hand(rows))
    yield "snapshot/pack_as_list", least(lambda: tw.columns.pack(Snapshot, one, arena=rows))
    yield "snapshot/pack_objects", least(lambda: protocol.encode(snapshot), 300)
    yield "snapshot/unpack", least(lambda: tw.columns.unpack(Entity, data, ENTITIES))
    yield "snapshot/unpack_numpy", least(lambda: unpack_by_hand(data))
    yield "snapshot/unpack_as_list", least(lambda: tw.columns.unpack(Snapshot, encoded, 1))
    yield "snapshot/unpack_objects", least(lambda: protocol.decode(encoded), 300)


if __name__ == "__main__":
    for name, value in measured():
        print(f"{name:<32} {value:>12,.1f} ns")
