"""Contents that clients ask for by name."""

from typing import Any

import tickwire as tw

from explore.game import Feature, Player, Violation


class Pulls(Feature):
    channels = (tw.chunks("chunks", pulls=True),)

    def setup(self) -> None:
        self.catalogue = tw.transfer.Catalogue(self.game.server)
        self.contents = {f"map {size}": self.rng.randbytes(size) for size in (1, 2000, 30_000)}
        for name, content in self.contents.items():
            self.catalogue.offer(name, content)

    def serve(self, inbox: Any) -> None:
        self.catalogue.serve(inbox)

    def frame(self, player: Player, inbox: Any) -> None:
        puller = player.notes.setdefault("puller", None) or tw.transfer.Puller(player.client)
        player.notes["puller"] = puller
        for pull in puller.take(inbox):
            if pull.error is not tw.transfer.PullError.DISCONNECTED:
                wanted = self.contents.get(pull.name)
                if (wanted is None) != (pull.error is tw.transfer.PullError.UNKNOWN) or (
                    wanted is not None and bytes(pull.chunk or b"") != wanted
                ):
                    raise Violation(f"pull: {pull.name} at {player} ended with {pull.error}")

    def play(self, player: Player) -> None:
        if self.game.is_acting and not self.game.is_resting and self.rng.random() < 0.03:
            player.notes["puller"].pull(self.rng.choice([*self.contents, "nowhere"]))

    def check(self) -> None:
        for player in self.game.players:
            if player.notes["puller"].open:
                raise Violation(f"pull: {player.notes['puller'].open} of {player} hang")
