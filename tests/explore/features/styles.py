"""Other ways to run an endpoint: receive and flush, steps or pumps in between, woken by arrivals."""

from explore.game import Feature


class Styles(Feature):
    def prepare(self) -> None:
        self.game.styles = lambda rng: rng.choice(["tick", "split", "step", "pump", "woken"])
