"""Quiet worlds: nothing happens for some ticks, or for seconds."""

from typing import Any

from explore.game import Feature


class Quiet(Feature):
    def setup(self) -> None:
        self.acts, self.period = self.rng.choice(
            [(1, 5), (5, 10), (10, 20), (1, 10), (1, 20), (40, 90), (90, 300)]
        )

    def serve(self, inbox: Any) -> None:
        self.game.is_resting = self.game.is_acting and self.game.host.turns % self.period >= self.acts
