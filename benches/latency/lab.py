"""A server and its clients in virtual time, each with a loop of its own: what measurements run on."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Annotated

import tickwire as tw
from tickwire.testing import SimulatedNetwork

#: The lines to measure on: their conditions up and down.
LINES: dict[str, tuple[tw.Conditions, tw.Conditions]] = {
    "100 +- 30 ms, 5 % loss": (
        tw.Conditions(latency=0.1, jitter=0.03, loss=0.05),
        tw.Conditions(latency=0.1, jitter=0.03, loss=0.05),
    ),
    "100 +- 30 ms": (tw.Conditions(latency=0.1, jitter=0.03), tw.Conditions(latency=0.1, jitter=0.03)),
    "50 ms": (tw.Conditions(latency=0.05), tw.Conditions(latency=0.05)),
    "25 ms": (tw.Conditions(latency=0.025), tw.Conditions(latency=0.025)),
    "localhost": (tw.Conditions(), tw.Conditions()),
    **{name: tw.Conditions.preset(name) for name in ("4g", "wifi-bad", "transatlantic", "satellite")},
}


@tw.message
class Note:
    text: Annotated[str, tw.text(40)]


@tw.ghost
class Runner:
    x: Annotated[float, tw.f32, tw.world.linear] = 0.0


class Lab:
    """Loops of their own rates and phases on one virtual network."""

    def __init__(
        self, protocol: tw.Protocol, line: tuple[tw.Conditions, tw.Conditions], seed: int = 1
    ) -> None:
        self.network = SimulatedNetwork(seed=seed)
        self.server = tw.Server("127.0.0.1:40000", protocol, network=self.network)
        self.protocol = protocol
        up, down = line
        self.network.set_conditions(up, receiver=self.server.address)
        self.network.set_conditions(down, sender=self.server.address)
        self._due: list[tuple[float, int, float, Callable[[], object]]] = []
        self._order = itertools.count()

    def client(self) -> tw.Client:
        return tw.Client.connect(self.server.address, self.protocol, network=self.network)

    @property
    def now(self) -> float:
        return self.network.now

    def every(self, seconds: float, turn: Callable[[], object], *, phase: float = 0.0) -> None:
        """Calls this so often, from now and so much later on."""
        heapq.heappush(self._due, (self.now + phase, next(self._order), seconds, turn))

    def run(self, seconds: float) -> None:
        """Lets time pass."""
        until = self.now + seconds
        while self._due and self._due[0][0] <= until:
            at, _, every, turn = heapq.heappop(self._due)
            if at > self.now:
                self.network.advance(at - self.now)
            turn()
            heapq.heappush(self._due, (at + every, next(self._order), every, turn))
        if until > self.now:
            self.network.advance(until - self.now)


def percentile(values: list[float], percent: float) -> float:
    """The value that so many per cent are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
