"""Players come and go all the time: they leave, are kicked, or vanish."""

from contextlib import suppress

from explore.game import Feature


class Churn(Feature):
    def setup(self) -> None:
        self.every = self.rng.uniform(0.3, 2)
        self.next = self.every

    def ticked(self) -> None:
        game, rng = self.game, self.rng
        if not game.is_acting or game.network.now < self.next:
            return
        self.next = game.network.now + rng.expovariate(1 / self.every)
        if len(game.players) < 6 and rng.random() < 0.5:
            game.join()
        elif len(game.players) > 1:
            player = rng.choice(game.players)
            how = rng.random()
            if how < 0.3 and player.link is not None and player.link.handle in game.links:
                game.server.disconnect(player.link.handle)
            elif how < 0.5:
                # As when its machine loses power.
                with suppress(ValueError):  # It has moved to another address.
                    game.network.unplug(player.client.address)
            game.leave(player)
