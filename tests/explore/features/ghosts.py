"""Ghosts that come, move, change hands and go at random; also for players that have just left."""

from typing import Any

import tickwire as tw
from soak.ghosts import MOST, Picture, Walker, Walkers

from explore.game import Feature, Player, Violation


class Ghosts(Feature):
    """The world of the soak, with its oracle for events and for the world in the end."""

    kind: Any = Walker
    ghosts = (Walker,)

    def setup(self) -> None:
        self.walkers = Walkers(self.game.server, self.rng, kind=self.kind)

    def ticked(self) -> None:
        for handle in self.game.gone:
            if len(self.walkers.alive) < MOST:
                self.walkers.spawn(handle)

    def act(self) -> None:
        self.walkers.live(list(self.game.links))

    def frame(self, player: Player, inbox: Any) -> None:
        picture = self.picture(player)
        picture.take([event for event in inbox.ghosts if type(event.ghost) is self.kind], self.walkers)

    def picture(self, player: Player) -> Picture:
        """What its events show: a client keeps its world, and empties it, when it reconnects."""
        if self.kind not in player.notes:
            name = f"{self.kind.__name__} events: {player}"
            player.notes[self.kind] = Picture(name, player.client)
        kept: Picture = player.notes[self.kind]
        return kept

    def check(self) -> None:
        name, world, alive = self.kind.__name__, self.game.world, self.walkers.alive
        living = int(sum(world.arrays(self.kind).alive))
        if not len(world.objects(self.kind)) == living == len(alive):
            raise Violation(
                f"{name} count: {len(alive)} live, {living} rows, {len(world.objects(self.kind))} objects"
            )
        for link in self.game.live():
            picture = self.picture(link.player)
            if not picture.agrees(self.walkers, link.handle):
                raise Violation(f"{name} world: {link.player} sees another one")


@tw.ghost(capacity=16, coded=True)
class CodedWalker(Walker):
    pass


class CodedGhosts(Ghosts):
    kind = CodedWalker
    ghosts = (CodedWalker,)
