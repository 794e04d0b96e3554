"""Bad lines: latency, jitter, loss, duplicates; another one every few seconds."""

import tickwire as tw

from explore.game import Feature


class BadLine(Feature):
    def prepare(self) -> None:
        self.game.is_perfect = False
        self.game.conditions = self.draw()
        self.next = 0.0

    def draw(self) -> tw.Conditions:
        rng, latency = self.rng, self.rng.choice([0.01, 0.05, 0.1])
        return tw.Conditions(
            latency=latency,
            jitter=rng.choice([0.0, 0.5, 1.0]) * latency,
            loss=rng.choice([0.0, 0.02, 0.1]),
            duplicate=rng.choice([0.0, 0.05]),
            reorder=rng.choice([0.0, 0.05]),
        )

    def ticked(self) -> None:
        now = self.game.network.now
        if self.game.is_acting and now >= self.next:
            self.next = now + self.rng.uniform(1, 5)
            self.game.network.set_conditions(self.draw())
