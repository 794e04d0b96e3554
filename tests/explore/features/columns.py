"""Messages as rows of arrays, out by send and in by inbox.columns."""

from typing import Any

import numpy as np
import tickwire as tw

from explore.features.messages import numbered
from explore.game import Feature, Player


@tw.message
class Up:
    number: tw.u32


@tw.message
class Down:
    number: tw.u32


class Columns(Feature):
    messages = (
        Up,
        Down,
    )
    channels = (tw.reliable_ordered("rows"),)

    def prepare(self) -> None:
        self.game.server_columns.append(Up)
        self.is_column = self.rng.random() < 0.5
        if self.is_column:
            self.game.client_columns.append(Down)

    def act(self) -> None:
        links = [link for link in self.game.links.values() if self.rng.random() < 0.3]
        if links:
            rows = np.zeros(len(links), tw.columns.dtype(Down))
            rows["number"] = [numbered(link, "down", "rows") for link in links]
            failed = self.game.server.send(
                [link.handle for link in links], tw.columns.Batch(Down, rows), "rows"
            )
            for index, link in enumerate(links):
                if index not in failed:
                    link.flow("down", "rows").send(int(rows["number"][index]), 0, False)

    def play(self, player: Player) -> None:
        if self.game.is_acting and not self.game.is_resting and self.rng.random() < 0.3:
            number = numbered(player.link, "up", "rows")
            if player.client.send(Up(number), "rows"):
                player.link.flow("up", "rows").send(number, 0, False)

    def serve(self, inbox: Any) -> None:
        for row in inbox.columns(Up):
            handle = self.game.server.client(int(row["client"]))
            if handle in self.game.links:
                self.game.links[handle].flow("up", "rows").receive(int(row["number"]), 0)

    def frame(self, player: Player, inbox: Any) -> None:
        if self.is_column and player.link is not None:
            for number in inbox.columns(Down)["number"].tolist():
                player.link.flow("down", "rows").receive(number, 0)

    def client_got(self, player: Player, what: Any) -> None:
        if isinstance(what, Down):
            player.link.flow("down", "rows").receive(what.number, 0)
