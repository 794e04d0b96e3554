"""Rockets hit what the shooter saw, over a bad line: `Past.replay`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import pytest
import tickwire as tw
from tickwire.testing import connected_pair

sys.path.insert(0, str(Path(__file__).parents[2] / "benches" / "latency"))

import projectiles


@pytest.mark.parametrize("line", ["50 ms", "100 +- 30 ms, 5 % loss"])
def test_aimed_rockets_hit(line: str) -> None:
    assert projectiles.measure(line, replay=True, shots=100).hit_percent >= 98
    assert projectiles.measure(line, replay=False, shots=100).hit_percent < 50


@tw.message
class Note:
    text: Annotated[str, tw.text(40)]


@tw.ghost
class Cart:
    x: Annotated[float, tw.f32, tw.world.linear] = 0.0


def test_replay_goes_from_what_was_seen_to_now() -> None:
    network, server, client = connected_pair(tw.Protocol(1, [Note], ghosts=[Cart], tick_rate=60))
    server.world.remember(1.0)
    cart = server.world.spawn(Cart())
    for _ in range(30):
        cart.x += 1
        with server.tick(), client.tick():
            pass
        network.advance(1 / 60)
    (player,) = server.clients
    now = server.world.tick
    with server.world.rewind(player, seen=now - 3.25) as past:
        steps = [(then.tick, ticks, then.ghost(cart).x) for then, ticks in past.replay()]
    assert [(tick, ticks) for tick, ticks, _ in steps] == [
        (now - 3, 0.25),
        (now - 2, 1),
        (now - 1, 1),
        (now, 1),
    ]
    assert [x - cart.x for _, _, x in steps] == [-3, -2, -1, 0]
    with server.world.rewind(player, seen=now) as past:
        assert list(past.replay()) == []
    with server.world.rewind_to(now - 1.5) as past:
        assert [ticks for _, ticks in past.replay()] == [0.5, 1]
    assert server.world.judgements.too_old == 0


def test_replay_of_an_earlier_tick_is_refused() -> None:
    network, server, client = connected_pair(tw.Protocol(1, [Note], ghosts=[Cart], tick_rate=60))
    server.world.remember(1.0)
    server.world.spawn(Cart())
    for _ in range(30):
        with server.tick(), client.tick():
            pass
        network.advance(1 / 60)
    with server.world.rewind_to(server.world.tick - 3.5) as past:
        worlds = past.replay()
        next(worlds)
        with server.tick():
            pass
        with pytest.raises(tw.errors.GhostError, match="replay must end in the tick in which it began"):
            next(worlds)
