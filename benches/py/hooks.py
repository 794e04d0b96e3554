"""What a priority hook costs over 64 clients with 1,000 messages waiting for each.

`hook/none` are ticks without a hook, `hook/numpy_...` those with one that reads two columns, and
`hook/arithmetic` what NumPy itself needs for the scores. What is left is ours. `hook_and_packets/...` are
ticks in which a packet goes to each client, all values set just before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import numpy as np
import tickwire as tw

CLIENTS, KEYS = 64, 1000


@tw.message
class Value:
    value: Annotated[int, tw.bits(32)]


class FullServer:
    """A server with a value waiting for each key of each client."""

    def __init__(self, priority: Callable[[tw.columns.Candidates], Any] | None, *, packets: bool) -> None:
        self.network = tw.testing.SimulatedNetwork()
        protocol = tw.Protocol(0x7469636B, [Value], [tw.latest(keys=KEYS)])
        self.server = tw.Server(
            "10.0.0.1:5", protocol, network=self.network, tuning=tw.Tuning(priority=priority)
        )
        clients = [
            tw.Client.connect("10.0.0.1:5", protocol, network=self.network, tuning=tw.Tuning(timeout=None))
            for _ in range(CLIENTS)
        ]
        for _ in range(20):
            for endpoint in (self.server, *clients):
                with endpoint.tick():
                    pass
            self.network.advance(1 / 60)
        self.clients = clients
        # One packet to each client in each sixtieth second, or none any more after the first.
        self.server.set_budget(120_000.0 if packets else 1e-9, 1e-9)
        self.server.broadcast(Value(0), key=0)
        self.server.flush()
        self.fill()

    def fill(self) -> None:
        """Sets every value again."""
        for key in range(KEYS):
            assert self.server.broadcast(Value(key), key=key, tag=key * 7919 % KEYS) == []
        assert sum(self.server.channel_stats.queued) == CLIENTS * KEYS

    def next_tick(self) -> None:
        self.network.advance(1 / 60)
        for client in self.clients:
            client.pump()
        self.server.receive()
        self.fill()


def arithmetic(age: Any, tag: Any) -> Any:
    return age * np.float32(2.0) + tag.astype(np.float32)


def all_different(candidates: tw.columns.Candidates) -> Any:
    return arithmetic(np.asarray(candidates.age), np.asarray(candidates.tag))


def all_equal(candidates: tw.columns.Candidates) -> Any:
    return arithmetic(np.asarray(candidates.age), np.asarray(candidates.channel))


def least(call: Callable[[], object], runs: int, prepare: Callable[[], object] = lambda: None) -> float:
    """The least nanoseconds of one call for one candidate."""
    times = []
    for _ in range(runs):
        prepare()
        started = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - started)
    return min(times) / (CLIENTS * KEYS)


def measured() -> Iterator[tuple[str, float]]:
    """Nanoseconds for one candidate, by name."""
    count = CLIENTS * KEYS
    scores = np.random.default_rng(1).random(count, dtype=np.float32)
    hooks: dict[str, Callable[[tw.columns.Candidates], Any] | None] = {
        "none": None,
        "returns_none": lambda _: None,
        "returns_the_same_scores": lambda given: scores[: len(given)],
        "numpy_all_different": all_different,
        "numpy_all_equal": all_equal,
    }
    age, tag = np.zeros(count, np.float32), np.zeros(count, np.uint32)
    yield "hook/arithmetic", least(lambda: arithmetic(age, tag), 500)
    for name, hook in hooks.items():
        yield f"hook/{name}", least(FullServer(hook, packets=False).server.flush, 300)
        full = FullServer(hook, packets=True)
        yield f"hook_and_packets/{name}", least(full.server.flush, 60, full.next_tick)
