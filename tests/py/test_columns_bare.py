"""Arrays of messages where NumPy is not installed."""

from __future__ import annotations

import subprocess
import sys

WITHOUT = """
import sys
sys.modules["numpy"] = None  # As if it were not there.
import struct
from typing import Annotated
import tickwire as tw
from tickwire.testing import run

@tw.message
class Move:
    tick: tw.u16
    aim: Annotated[float, tw.quantized(-1, 1, 1 / 256)]
    name: Annotated[str, tw.text(20)]

row = struct.Struct(tw.row_format(Move))
assert row.size == 16
arena = b"annbob"
rows = row.pack(1, 0.5, 0, 3) + row.pack(2, -0.5, 3, 3)
packed = tw.pack(Move, rows, arena=arena)
back = tw.unpack(Move, packed, 2)
assert isinstance(back, memoryview) and back.format == tw.row_format(Move) and len(back) == 2
assert back.readonly
first, second = row.iter_unpack(back)
assert first[:2] == (1, 0.5) and second[:2] == (2, -0.5)
found = tw.arena(back)
assert [bytes(found[at:at + n]) for _, _, at, n in (first, second)] == [b"ann", b"bob"]
assert tw.pack(Move, back, arena=found) == packed

protocol = tw.Protocol(1, [Move])
network = tw.SimulatedNetwork()
server = tw.Server("10.0.0.1:5", protocol, network=network, columns=[Move])
client = tw.Client.connect("10.0.0.1:5", protocol, network=network)
run(network, server, client, seconds=0.5)
assert client.send_rows(Move, bytearray(rows), arena=arena) == []
client.flush()
network.advance(1 / 60)
arrived = server.receive().columns(Move)
assert isinstance(arrived, memoryview) and len(arrived) == 2
head = struct.Struct(arrived.format)
assert head.size == arrived.itemsize
rows_in = list(head.iter_unpack(arrived))
assert rows_in[0][0] == server.clients[0].number
assert [r[7:9] for r in rows_in] == [(1, 0.5), (2, -0.5)]
try:
    tw.dtype(Move)
except ImportError as error:
    assert "row_format" in str(error)
else:
    raise AssertionError("there is no NumPy")
"""


def test_everything_works_without_numpy() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
