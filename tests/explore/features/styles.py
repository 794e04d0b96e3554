"""Other ways to run an endpoint: by receive and flush, with steps in between, or woken by arrivals."""

from explore.game import Feature


class Styles(Feature):
    def prepare(self) -> None:
        self.game.styles = lambda rng: rng.choice(["tick", "split", "step", "woken"])
