"""Arrays of messages where NumPy is not installed."""

from __future__ import annotations

import subprocess
import sys

WITHOUT = """
import sys
sys.modules["numpy"] = None  # As if it were not there.
import enum
import struct
import uuid
from typing import Annotated
import tickwire as tw
from tickwire.testing import advance

@tw.message
class Move:
    tick: tw.u16
    aim: Annotated[float, tw.quantized(-1, 1, 1 / 256)]
    name: Annotated[str, tw.text(20)]

class Pace(enum.Enum):
    SLOW = "slow"
    FAST = "fast"

@tw.message
class Unit:
    hp: tw.u8
    at: Annotated[tw.Vec2, tw.vec2(-8, 8, 1 / 64)]
    pace: Pace
    on: bool
    slot: tw.i32
    big: tw.u128
    id: uuid.UUID
    bag: Annotated[set[tw.u8], tw.up_to(4)]

row = struct.Struct(tw.columns.row_format(Move))
assert row.size == 16
arena = b"annbob"
rows = row.pack(1, 0.5, 0, 3) + row.pack(2, -0.5, 3, 3)
packed = tw.columns.pack(Move, rows, arena=arena)
back = tw.columns.unpack(Move, packed, 2)
assert isinstance(back, tw.columns.Rows) and back.format == tw.columns.row_format(Move) and len(back) == 2
assert memoryview(back).readonly and memoryview(back).format == back.format
assert [move.name for move in back] == ["ann", "bob"] and back["name"] == ["ann", "bob"]
first, second = row.iter_unpack(back)
assert first[:2] == (1, 0.5) and second[:2] == (2, -0.5)
found = tw.columns.arena(back)
assert [bytes(found[at:at + n]) for _, _, at, n in (first, second)] == [b"ann", b"bob"]
assert tw.columns.pack(Move, back, arena=found) == packed

protocol = tw.Protocol(1, [Move])
network = tw.testing.SimulatedNetwork()
server = tw.Server("10.0.0.1:5", protocol, network=network, tuning=tw.Tuning(columns=[Move]))
client = tw.Client.connect("10.0.0.1:5", protocol, network=network)
advance(network, server, client, seconds=0.5)
assert client.send(tw.columns.Batch(Move, bytearray(rows), arena=arena)) == []
client.flush()
network.advance(1 / 60)
arrived = server.receive().columns(Move)
assert isinstance(arrived, tw.columns.Rows) and len(arrived) == 2
head = struct.Struct(arrived.format)
assert head.size == memoryview(arrived).itemsize
rows_in = list(head.iter_unpack(arrived))
assert rows_in[0][0] == server.clients[0].number
assert [r[7:9] for r in rows_in] == [(1, 0.5), (2, -0.5)]
assert arrived.names[:7] == ["client", "received", "slot", "key", "sequence", "missed", "channel"]
assert arrived.names[7:] == ["tick", "aim", "name"]
handle, = server.clients
assert list(arrived["client"]) == [handle.number] * 2 and list(arrived["tick"]) == [1, 2]
assert arrived["aim"].tolist() == [0.5, -0.5] and arrived["aim"][-1] == -0.5
assert arrived[0].tick == 1 and arrived[-1]["name"] == "bob" and arrived[1].client == handle.number
assert [row.name for row in arrived] == ["ann", "bob"] and [row.tick for row in arrived[::-1]] == [2, 1]
assert server.send(arrived["client"], tw.columns.Batch(Move, row.pack(5, 0, 0, 0) * 2)) == []
for wrong, kind in [(2, IndexError), (-3, IndexError), ("nam", KeyError), (1.5, TypeError)]:
    try:
        arrived[wrong]
    except kind as error:
        pass
    else:
        raise AssertionError(wrong)
try:
    arrived[0]["nam"]
except KeyError as error:
    assert "tick" in str(error)
assert "Move" in repr(arrived) and "tick=1" in repr(arrived[0])
none = server.receive().columns(Move)
assert len(none) == 0 and list(none) == none[:] == none["name"] == list(none["tick"]) == []

def unit(n):
    pace = Pace.FAST if n % 2 else Pace.SLOW
    return Unit(n, (n / 4, -n / 4), pace, n > 1, -n, 1 << 99, uuid.UUID(int=n), {n, n + 1})

units = [unit(n) for n in range(4)]
protocol = tw.Protocol(1, [Unit])
server = tw.Server("10.0.0.1:6", protocol, network=network, tuning=tw.Tuning(columns=[Unit]))
client = tw.Client.connect("10.0.0.1:6", protocol, network=network)
advance(network, server, client, seconds=0.5)
for unit in units:
    client.send(unit)
client.flush()
network.advance(1 / 60)
rows = server.receive().columns(Unit)
assert rows.names[2] == "slot_"
assert list(rows["hp"]) == [0, 1, 2, 3] and list(rows["slot"]) == [0, -1, -2, -3]
assert list(rows["on"]) == [False, False, True, True]
assert rows["at"] == [unit.at for unit in units] and rows["pace"] == [unit.pace for unit in units]
assert rows["big"] == [1 << 99] * 4
assert rows["bag"] == [unit.bag for unit in units]
# The game's own types stay unconverted: nothing that a peer sends raises here.
assert list(rows["id"]) == [0, 1, 2, 3] and rows[3].id == 3
try:
    bytes(memoryview(rows["hp"])) and __import__("zlib").crc32(memoryview(rows["hp"]).obj)
except BufferError as error:
    assert "gaps" in str(error)
else:
    raise AssertionError("it has gaps")

try:
    tw.columns.dtype(Move)
except ImportError as error:
    assert "row_format" in str(error)
else:
    raise AssertionError("there is no NumPy")
"""


def test_everything_works_without_numpy() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
