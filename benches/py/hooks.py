"""What a priority hook costs over 64 clients with 1,000 messages waiting for each.

`hook/none...` are ticks without a hook, `hook/numpy...` those with one that reads two columns, and `hook/arithmetic`
what NumPy itself needs for the scores. The rest of a hook's cost is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import tickwire as tw

CLIENTS, KEYS = 64, 1000


@tw.message
class Value:
    value: Annotated[int, tw.bits(32)]


class FullServer:
    """A server with a value waiting for each key of each client."""

    def __init__(self, priority: Callable[[tw.Candidates], Any] | None, *, packets: bool) -> None:
        self.network = tw.SimulatedNetwork()
        protocol = tw.Protocol(0x7469636B, [Value], [tw.latest(keys=KEYS)])
        self.server = tw.Server("10.0.0.1:5", protocol, network=self.network, priority=priority)
        clients = [
            tw.Client.connect("10.0.0.1:5", protocol, network=self.network, timeout=None)
            for _ in range(CLIENTS)
        ]
        for _ in range(20):
            for endpoint in (self.server, *clients):
                with endpoint.tick():
                    pass
            self.network.advance(1 / 60)
        self.clients = clients
        # A packet in each tick of a sixtieth second, or none at all any more.
        self.server.set_budget(60.0 if packets else 1e-9, 1e-9)
        self.server.broadcast(Value(0), key=0)
        self.server.flush()
        self.fill()

    def fill(self) -> None:
        """Sets every value again."""
        for key in range(KEYS):
            assert self.server.broadcast(Value(key), key=key, tag=key * 7919 % KEYS) == []
        assert sum(self.server.channel_stats().queued) == CLIENTS * KEYS

    def next_tick(self) -> None:
        self.network.advance(1 / 60)
        for client in self.clients:
            client.pump()
        self.server.receive()
        self.fill()


def arithmetic(age: Any, tag: Any) -> Any:
    return age * np.float32(2.0) + tag.astype(np.float32)


def all_different(candidates: tw.Candidates) -> Any:
    return arithmetic(np.asarray(candidates.age), np.asarray(candidates.tag))


def all_equal(candidates: tw.Candidates) -> Any:
    return arithmetic(np.asarray(candidates.age), np.asarray(candidates.channel))


def cases() -> dict[str, tuple[Callable[[], object], int]]:
    """By name: what to call, and how many candidates one call handles."""
    count = CLIENTS * KEYS
    age, tag = np.zeros(count, np.float32), np.zeros(count, np.uint32)
    scores = np.random.default_rng(1).random(count, dtype=np.float32)
    hooks: dict[str, Callable[[tw.Candidates], Any] | None] = {
        "none": None,
        "returns_none": lambda _: None,
        "returns_the_same_scores": lambda given: scores[: len(given)],
        "numpy_all_different": all_different,
        "numpy_all_equal": all_equal,
    }
    return {
        f"hook/{name}": (FullServer(hook, packets=False).server.flush, count) for name, hook in hooks.items()
    } | {"hook/arithmetic": (lambda: arithmetic(age, tag), count)}


def ticks() -> dict[str, tuple[FullServer, int]]:
    """Those in which a packet goes to each client, by name."""
    hooks: dict[str, Callable[[tw.Candidates], Any] | None] = {
        "none": None,
        "numpy_all_different": all_different,
        "numpy_all_equal": all_equal,
    }
    return {
        f"hook_and_packets/{name}": (FullServer(hook, packets=True), CLIENTS * KEYS)
        for name, hook in hooks.items()
    }
