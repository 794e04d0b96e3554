"""Games that hang for a moment: a player's, or the server's."""

from explore.game import Feature


class Stalls(Feature):
    def prepare(self) -> None:
        self.game.is_perfect = False
        self.next = 1.0

    def ticked(self) -> None:
        game, rng = self.game, self.rng
        if game.is_acting and game.network.now >= self.next:
            self.next = game.network.now + rng.uniform(1, 4)
            actor = rng.choice([game.host, *game.players])
            actor.start += rng.choice([0.1, 0.3, 1.0])
