"""Strangers flood the socket of a server whose clients play: benches/py/flood.py, with fewer datagrams."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from typing import Literal

import pytest
import tickwire as tw
from conftest import Move, make_protocol

# What one receive() reads at most.
BOUND = 3000
PATIENCE = 30.0


@pytest.mark.parametrize("driver", ["polled", "thread"])
def test_a_flood_of_strangers_neither_ends_nor_holds_up_the_game(
    driver: Literal["polled", "thread"],
) -> None:
    strange = [bytes([kind]) * size for kind, size in ((5, 10), (0, 1078), (0x15, 100), (0xFF, 1200))]
    deadline = time.monotonic() + PATIENCE
    with ExitStack() as stack:
        server = stack.enter_context(
            tw.Server("127.0.0.1:0", make_protocol(), tuning=tw.Tuning(driver=driver))
        )
        clients = [stack.enter_context(tw.Client.connect(server.address, server.protocol)) for _ in range(3)]
        stranger = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        stranger.setblocking(False)
        stranger.connect(("127.0.0.1", int(str(server.address).rsplit(":", 1)[1])))
        got: dict[tw.ClientHandle, list[int]] = {}
        sent, flooded = 0, 0
        while len(got) < 3 or any(len(ticks) < sent for ticks in got.values()):
            assert time.monotonic() < deadline, (
                sent,
                {client.slot: len(ticks) for client, ticks in got.items()},
            )
            playing = all(client.connected for client in clients)
            if playing and flooded < 20_000:
                for number in range(1000):
                    try:
                        stranger.send(strange[number % len(strange)])
                    except BlockingIOError:  # Its own buffer is full.
                        break
                    flooded += 1
            for client in clients:
                with client.tick() as arrived:
                    assert not any(isinstance(event, tw.Disconnected) for event in arrived.events)
                    if playing and flooded < 20_000:
                        client.send(Move(sent, 0, 0.0), channel=0)
            sent += playing and flooded < 20_000
            before = server.counters["socket.received"]
            with server.tick() as inbox:
                for event in inbox.events:
                    assert isinstance(event, tw.Connected)
                for sender, move in inbox.messages:
                    got.setdefault(sender, []).append(move.tick)
            if driver == "polled":
                assert server.counters["socket.received"] - before <= BOUND
        assert all(ticks == list(range(sent)) for ticks in got.values())
        refused = sum(count for name, count in server.counters.items() if name.startswith("netcode."))
        assert refused + server.counters["socket.kernel_drops"] > 0
        with pytest.raises(BlockingIOError):
            stranger.recv(2048)  # Nobody answered.
