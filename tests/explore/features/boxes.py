"""Ghosts whose converter acts on the world while one of them ends."""

from typing import Annotated, Any, ClassVar

import tickwire as tw

from explore.game import Feature, Violation


class Prize:
    """A type of the game's own. What makes it may spawn another box."""

    ending: ClassVar[Any] = None

    def __init__(self, number: int) -> None:
        self.number = number
        if Prize.ending is not None:
            game, Prize.ending = Prize.ending, None
            game.on["boxes"].spawn()


@tw.ghost(capacity=8)
class Box:
    prize: Annotated[Prize, tw.fields.converted(tw.u32, lambda prize: prize.number, Prize)] = Prize(0)


class Boxes(Feature):
    ghosts = (Box,)

    def setup(self) -> None:
        self.born = 0
        self.alive: list[Box] = []

    def spawn(self) -> None:
        if len(self.alive) < 6:
            self.born += 1
            self.alive.append(self.game.world.spawn(Box(prize=Prize(self.born))))

    def act(self) -> None:
        if self.rng.random() < 0.1:
            self.spawn()
        if self.alive and self.rng.random() < 0.05:
            box = self.alive.pop(self.rng.randrange(len(self.alive)))
            Prize.ending = self.game
            self.game.world.despawn(box)
            Prize.ending = None

    def ticked(self) -> None:
        world = self.game.world
        objects, rows = len(world.objects(Box)), int(sum(world.arrays(Box).alive))
        if not objects == rows == len(self.alive):
            raise Violation(f"box count: {len(self.alive)} live, {rows} rows, {objects} objects")

    def check(self) -> None:
        wanted = sorted(box.prize.number for box in self.alive)
        for link in self.game.live():
            seen = sorted(box.prize.number for box in link.player.client.world.objects(Box))
            if seen != wanted:
                raise Violation(f"box world: {link.player} sees {seen}, not {wanted}")
