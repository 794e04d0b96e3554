"""What a priority hook costs over 64 clients with 1,000 messages waiting for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import tickwire as tw

CLIENTS, KEYS = 64, 1000


@tw.message
class Value:
    value: Annotated[int, tw.bits(32)]


def full_server(priority: Callable[[tw.Candidates], Any] | None) -> tw.Server:
    """A server with a value waiting for each key of each client, and a budget that lets none out."""
    network = tw.SimulatedNetwork()
    protocol = tw.Protocol(0x7469636B, [Value], [tw.latest(keys=KEYS)])
    server = tw.Server("10.0.0.1:5", protocol, network=network, priority=priority)
    clients = [
        tw.Client.connect("10.0.0.1:5", protocol, network=network, timeout=None) for _ in range(CLIENTS)
    ]
    for _ in range(20):
        for endpoint in (server, *clients):
            with endpoint.tick():
                pass
        network.advance(1 / 60)
    server.set_budget(1e-9, 1e-9)
    server.broadcast(Value(0), key=0)
    server.flush()  # the one packet that may go
    for key in range(KEYS):
        assert server.broadcast(Value(key), key=key) == []
    assert sum(server.channel_stats().queued) == CLIENTS * KEYS
    return server


def arithmetic(age: Any, tag: Any) -> Any:
    return age * np.float32(2.0) + tag.astype(np.float32)


def by_numpy(candidates: tw.Candidates) -> Any:
    return arithmetic(np.asarray(candidates.age), np.asarray(candidates.tag))


def cases() -> dict[str, tuple[Callable[[], object], int]]:
    """By name: what to call, and how many candidates one call handles."""
    seen: list[tw.Candidates] = []
    full_server(seen.append).flush()
    candidates = seen[-1]
    count = len(candidates)
    age, tag = np.asarray(candidates.age), np.asarray(candidates.tag)
    scores = np.random.default_rng(1).random(count, dtype=np.float32)
    return {
        "hook/no_hook": (full_server(None).flush, count),
        "hook/that_returns_none": (full_server(lambda _: None).flush, count),
        "hook/that_returns_the_same_scores": (full_server(lambda given: scores[: len(given)]).flush, count),
        "hook/with_numpy": (full_server(by_numpy).flush, count),
        "hook/numpy_alone": (lambda: arithmetic(age, tag), count),
    }
