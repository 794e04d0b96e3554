"""Ticks and frames that aren't 60 a second."""

from explore.game import Feature


class Rates(Feature):
    def prepare(self) -> None:
        self.game.tick_rate = self.rng.choice([20, 30, 50, 60, 64, 128])
        self.game.frame_rate = lambda rng: rng.choice([30.0, 59.94, 60.0, 61.0, 144.0, 240.0])
