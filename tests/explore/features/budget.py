"""Small budgets: not everything goes out at once."""

from explore.game import Feature


class Budget(Feature):
    def prepare(self) -> None:
        self.game.is_perfect = False

    def setup(self) -> None:
        self.game.server.set_budget(self.rng.choice([8_000, 20_000, 60_000]), 4_000)
