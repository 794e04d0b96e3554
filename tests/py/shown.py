"""A server and a client that looks at its world, tick by tick: for the tests of views and of rewinding."""

from __future__ import annotations

import tickwire as tw
from tickwire.testing import connected_pair

STEP = 1 / 60


class Shown:
    """A server, its client, and a line between them."""

    def __init__(self, protocol: tw.Protocol, line: tw.Conditions | None = None, seed: int = 1) -> None:
        self.network, self.server, self.client = connected_pair(protocol, seed=seed)
        (self.player,) = self.server.clients
        self.world = self.server.world
        if line is not None:
            self.network.set_conditions(line)

    def tick(self) -> tw.world.WorldView:
        with self.client.tick():
            pass
        view = self.client.world.view()
        with self.server.tick():
            pass
        self.network.advance(STEP)
        return view

    def run(self, seconds: float) -> tw.world.WorldView:
        for _ in range(round(seconds / STEP)):
            view = self.tick()
        return view
