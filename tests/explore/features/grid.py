"""A crowd in arrays, of which each client has only what is near."""

from typing import Annotated

import numpy as np
import tickwire as tw

from explore.game import Feature, Link, Violation

RADIUS, LEAVES = 100.0, 120.0


@tw.ghost(capacity=64)
class Dot:
    place: Annotated[tw.Vec2, tw.vec2(-512, 511, 1 / 8)] = (0, 0)
    number: Annotated[tw.u32, tw.initial] = 0


class Grid(Feature):
    ghosts = (Dot,)

    def prepare(self) -> None:
        if self.rng.random() < 0.3:
            self.game.client_columns.append(Dot)

    def setup(self) -> None:
        self.random = np.random.default_rng(self.rng.randrange(2**32))
        self.game.world.set_relevancy(Dot, tw.world.Grid("place", radius=RADIUS, leave_radius=LEAVES))
        self.born = 0

    def joined(self, link: Link) -> None:
        self.look(link)

    def look(self, link: Link) -> None:
        """From another place."""
        link.notes["place"] = (self.rng.uniform(-200, 200), self.rng.uniform(-200, 200))
        self.game.world.look_from(link.handle, Dot, [link.notes["place"]])

    def act(self) -> None:
        rng, dots = self.rng, self.game.world.arrays(Dot)
        if len(dots.rows) < 48 and rng.random() < 0.1:
            for row in self.game.world.spawn_rows(Dot, rng.randint(1, 8)):
                self.born += 1
                dots = self.game.world.arrays(Dot)
                dots["number"][row] = self.born
                dots["place"][row] = self.random.uniform(-300, 300, 2)
        rows = np.array(dots.rows)
        if len(rows) and rng.random() < 0.05:
            self.game.world.despawn_rows(Dot, rows[self.random.random(len(rows)) < 0.2])
        moved = dots["place"] + self.random.uniform(-4, 4, dots["place"].shape) * (self.random.random() < 0.8)
        dots["place"] = np.clip(moved, -500, 500)
        for link in self.game.links.values():
            if rng.random() < 0.02:
                self.look(link)

    def check(self) -> None:
        dots = self.game.world.arrays(Dot)
        rows = np.array(dots.rows, int)
        places, numbers = dots["place"][rows], dots["number"][rows]
        for link in self.game.live():
            theirs = link.player.client.world.arrays(Dot)
            own = np.array(theirs.rows, int)
            seen = dict(zip(theirs["number"][own].tolist(), theirs["place"][own].tolist(), strict=True))
            far = np.hypot(*(places - link.notes["place"]).T)
            near = set(numbers[far < RADIUS - 0.2].tolist())
            if not near <= set(seen) <= set(numbers[far < LEAVES + 0.2].tolist()):
                raise Violation(f"grid: {link.player} has {sorted(seen)}, near are {sorted(near)}")
            for number, place in zip(numbers.tolist(), places.tolist(), strict=True):
                if number in seen and np.abs(np.subtract(seen[number], place)).max() > 0.1:
                    raise Violation(f"grid: {link.player} sees dot {number} at {seen[number]}, not {place}")
