"""Players that reconnect: now and then the network fails for longer than the timeout."""

from contextlib import suppress

from explore.game import SERVER, Feature, Link, Violation


class Redial(Feature):
    def prepare(self) -> None:
        # A failure shorter than the timeout is a loss.
        self.game.is_perfect = False
        self.game.redials = lambda rng: rng.random() < 0.7
        self.heals_at = 0.0
        self.next = self.rng.uniform(2, 6)
        self.ids: dict[str, int] = {}

    def joined(self, link: Link) -> None:
        first = self.ids.setdefault(link.player.host, link.handle.id)
        if link.handle.id != first:
            raise Violation(f"client id: {link.player} came back as another client")

    def ticked(self) -> None:
        game, now = self.game, self.game.network.now
        if self.heals_at and now >= self.heals_at:
            self.calm()
        players = [player for player in game.players if player.is_redialling and player.link is not None]
        if game.is_acting and players and now >= self.next:
            self.heals_at = now + self.rng.uniform(0.5, 4)
            self.next = self.heals_at + self.rng.uniform(1, 5)
            game.network.partition([SERVER], [player.client.address for player in players])
            if self.rng.random() < 0.3:
                # From Wi-Fi to the mobile network.
                player = self.rng.choice(players)
                with suppress(ValueError):  # It has moved already.
                    game.network.move_host(player.client.address, f"{player.host}:0")

    def calm(self) -> None:
        self.game.network.heal()
        self.heals_at = 0.0
