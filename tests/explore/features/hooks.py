"""Hooks that choose what goes first, and who may play."""

from typing import Any

import numpy as np

from explore.game import Feature


class Hooks(Feature):
    def prepare(self) -> None:
        self.random = np.random.default_rng(self.rng.randrange(2**32))
        self.game.priority, self.game.admission = self.score, self.admit

    def score(self, candidates: Any) -> Any:
        return self.random.random(len(candidates.age), np.float32)

    def admit(self, newcomers: list[Any]) -> None:
        self.game.admitted += len(newcomers)
