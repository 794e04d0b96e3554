"""Avatars that their players predict."""

import dataclasses
from typing import Annotated, Any

import tickwire as tw

from explore.features.inputs import Keys
from explore.game import Feature, Link, Player, Violation


@tw.ghost
class Avatar:
    x: Annotated[float, tw.quantized(-20_000, 20_000, 1 / 64)] = 0.0


@dataclasses.dataclass
class Body:
    x: float = 0.0


def step(body: Any, keys: Keys) -> Any:
    body.x = max(-10_000.0, min(10_000.0, body.x + keys.x / 64))
    return body


class Avatars(Feature):
    needs = ("inputs",)
    ghosts = (Avatar,)

    def joined(self, link: Link) -> None:
        link.notes["avatar"] = self.game.world.spawn(Avatar(), owner=link.handle)

    def left(self, link: Link) -> None:
        self.game.world.despawn(link.notes.pop("avatar"))

    def ticked(self) -> None:
        for handle, keys in self.game.server.inputs:
            if keys is not None and handle in self.game.links:
                step(self.game.links[handle].notes["avatar"], keys)

    def send(self, player: Player, keys: Keys) -> range:
        """In place of the plain ``send_input``."""
        mine = player.link.note(
            "prediction", lambda: tw.predict.Prediction(step, Body(), tolerance={"x": 0.02})
        )
        before = mine.corrections
        ticks: range = mine.advance(player.client, keys, player.client.world.mine(Avatar))
        mine.seen(1 / player.rate)
        if self.game.is_perfect and player.settled() and not player.drifts and mine.corrections != before:
            raise Violation(f"correction: of {player} by {mine.error:.1f} tolerances")
        return ticks

    def check(self) -> None:
        for link in self.game.live():
            there, here = link.notes["avatar"].x, link.notes["prediction"].state.x
            if abs(there - here) > 0.02:
                raise Violation(f"predicted: {link.player} is at {there}, not {here}")
