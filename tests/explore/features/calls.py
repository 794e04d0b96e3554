"""Calls, in order with the messages of their channel."""

import tickwire as tw

from explore.features.messages import numbered
from explore.game import Feature, Player


@tw.call(tw.to_server, channel="main", rate=1000)
def server_hit(caller: tw.ClientHandle, number: tw.u32) -> None: ...


@tw.call(tw.to_client, channel="main")
def client_hit(number: tw.u32) -> None: ...


class Calls(Feature):
    channels = (tw.reliable_ordered("main"),)
    calls = (
        server_hit,
        client_hit,
    )

    def act(self) -> None:
        for link in self.game.links.values():
            if self.rng.random() < 0.3:
                number = numbered(link, "down", "main")
                if self.game.server.call(link.handle, client_hit, number):
                    link.flow("down", "main").send(number, 0, False)

    def play(self, player: Player) -> None:
        if self.game.is_acting and not self.game.is_resting and self.rng.random() < 0.3:
            number = numbered(player.link, "up", "main")
            if player.client.call(server_hit, number):
                player.link.flow("up", "main").send(number, 0, False)

    def server_hit(self, caller: tw.ClientHandle, number: int) -> None:
        self.game.judge(lambda: self.game.links[caller].flow("up", "main").receive(number, 0))

    def client_hit(self, player: Player, number: int) -> None:
        self.game.judge(lambda: player.link.flow("down", "main").receive(number, 0))
