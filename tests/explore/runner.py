"""Draws games, plays them, and shrinks what fails."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from explore.features import ALL
from explore.game import Game

SECONDS = 8.0
ROUGH = ("line", "budget", "stalls", "redial")


@dataclass
class Result:
    seed: int
    names: list[str]
    faults: dict[str, str]
    shrunk: list[str]

    @property
    def again(self) -> str:
        """The command that repeats it."""
        return f'make explore ARGS="--only {self.seed} --features {",".join(self.shrunk)}"'

    def describe(self) -> str:
        lines = [f"seed {self.seed} broke with {', '.join(self.names)}"]
        lines += [f"  {fault}" for fault in self.faults.values()]
        lines += [f"  shrunk to: {', '.join(self.shrunk)}", f"  again: {self.again}"]
        return "\n".join(lines)


def draw(seed: int) -> list[str]:
    """The features of a game: few or many. Half of the games go smoothly, which the oracles of time need."""
    rng = Random(f"{seed}/features")
    share, roughness = rng.choice([0.2, 0.4, 0.7, 1.0]), rng.choice([0.0, 0.5])
    return closed([name for name in ALL if rng.random() < (roughness if name in ROUGH else share)])


def closed(names: list[str]) -> list[str]:
    """With the features that these need."""
    wanted = set(names) | {need for name in names for need in ALL[name].needs}
    return [name for name in ALL if name in wanted]


def play(seed: int, names: list[str], seconds: float = SECONDS) -> dict[str, str]:
    return Game(seed, {name: ALL[name] for name in names}, seconds).play()


def shrink(seed: int, names: list[str], fault: str) -> list[str]:
    """The features that the fault needs: each is left out in turn, and stays out if the fault stays."""
    for name in reversed(names):
        fewer = [other for other in names if other != name]
        if closed(fewer) == fewer and fault in play(seed, fewer):
            names = fewer
    return names


def explore(seed: int, names: list[str] | None = None, shrinks: bool = True) -> Result | None:
    """Plays the game of a seed. Returns what it broke, if anything."""
    names = draw(seed) if names is None else closed(names)
    faults = play(seed, names)
    if not faults:
        return None
    return Result(seed, names, faults, shrink(seed, names, next(iter(faults))) if shrinks else names)
