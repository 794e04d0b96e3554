"""A game of peers for long and at a high rate: memory stays what it was, and exceptions end nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw


@tw.message
class Chat:
    text: Annotated[str, tw.text(100)]


CHANNELS = [tw.reliable_ordered(), tw.unreliable(), tw.chunks()]
PROTOCOL = tw.Protocol(0x9A6, [Chat], CHANNELS, peers=True)
BAD = tw.Conditions(latency=0.03, jitter=0.01, loss=0.03, duplicate=0.01, reorder=0.01)


def resident() -> int:
    """Bytes of memory that the process has."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("the system doesn't say how much memory is in use")
    line = next(line for line in status.read_text("utf-8").splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def peers_of(
    count: int, priority: tw.columns.PriorityHook | None = None
) -> tuple[tw.testing.SimulatedNetwork, list[tw.peers.Peer[Chat]]]:
    network = tw.testing.SimulatedNetwork(conditions=BAD, seed=3)
    peers = [
        tw.peers.Peer.host(
            PROTOCOL, name="0", tuning=tw.Tuning(bind="10.0.0.1:7", priority=priority), network=network
        )
    ]
    for number in range(1, count):
        bind = f"10.0.0.{number + 1}:7"
        peers.append(
            tw.peers.Peer.join(
                "10.0.0.1:7", PROTOCOL, name=str(number), tuning=tw.Tuning(bind=bind), network=network
            )
        )
        for _ in range(120):
            network.advance(1 / 60)
            for peer in peers:
                with peer.tick():
                    pass
    assert all(len(peer.players) == count for peer in peers)
    return network, peers


def test_what_a_step_or_a_hook_raises_ends_no_game() -> None:
    calls = {"priority": 0, "step": 0}

    def priority(_: tw.columns.Candidates) -> Any:
        calls["priority"] += 1
        raise RuntimeError("a hook")

    network, peers = peers_of(2, priority=priority)
    for peer in peers:
        assert not peer.closed
    peers[0].start(countdown=0.1)
    started: dict[int, tw.peers.Started] = {}
    for _ in range(60):
        network.advance(1 / 60)
        for number, peer in enumerate(peers):
            with peer.tick() as inbox:
                started.update((number, it) for it in inbox.events if isinstance(it, tw.peers.Started))
    states = [np.zeros(2, np.int64) for _ in peers]
    games = [
        tw.rollback.Rollback(peer, 4, state=state, check_every=8)
        for peer, state in zip(peers, states, strict=True)
    ]
    raised = {RuntimeError: 0, ZeroDivisionError: 0}
    events: list[Any] = []

    def step(number: int, inputs: Any) -> None:
        calls["step"] += 1
        if calls["step"] % 50 == 0:
            raise ZeroDivisionError
        states[number] += inputs

    def play(number: int, requests: Any) -> None:
        for request in requests:
            assert isinstance(request, tw.rollback.Advance)
            try:
                step(number, request.inputs)
            except ZeroDivisionError:
                step(number, request.inputs)  # what the game makes of it
                raise

    for frame in range(600):
        network.advance(1 / 60)
        for number, (peer, game) in enumerate(zip(peers, games, strict=True)):
            try:
                with peer.tick() as inbox:
                    events += inbox.events
                    peer.broadcast(Chat("unordered"), 1)
                    requests = game.advance(frame % 16)
                    try:
                        play(number, requests)
                    except ZeroDivisionError:
                        raised[ZeroDivisionError] += 1
                        play(number, requests)  # goes on where it was
            except RuntimeError:
                raised[RuntimeError] += 1
    assert raised[ZeroDivisionError] > 20
    assert raised[RuntimeError] == calls["priority"] > 500
    assert not events
    for _ in range(60):
        network.advance(1 / 60)
        for number, (peer, game) in enumerate(zip(peers, games, strict=True)):
            with peer.tick():
                for request in game.advance(0):
                    assert isinstance(request, tw.rollback.Advance)
                    states[number] += request.inputs
    assert all(game.frame > 600 for game in games)
    assert all(game.stats["compared"] > 50 for game in games)
    assert not [event for game in games for event in game.events()]
