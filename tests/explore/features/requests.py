"""Requests, both ways: each ends once, with the right reply."""

from typing import Any

import tickwire as tw

from explore.game import Feature, Link, Player, Violation


@tw.call(tw.to_server, channel="asks")
def server_asked(caller: tw.ClientHandle, number: tw.u32) -> tw.u32: ...


@tw.call(tw.to_client, channel="asks")
def client_asked(number: tw.u32) -> tw.u32: ...


class Requests(Feature):
    channels = (tw.reliable_unordered("asks"),)
    calls = (
        server_asked,
        client_asked,
    )

    def ask(self, link: Link, request: Any) -> None:
        if self.rng.random() < 0.1:
            number = self.rng.randrange(2**31)
            link.note("asked", list).append((number, request(number)))

    def act(self) -> None:
        for link in self.game.links.values():
            self.ask(link, lambda number, to=link.handle: self.game.server.request(to, client_asked, number))

    def play(self, player: Player) -> None:
        if self.game.is_acting and not self.game.is_resting:
            self.ask(player.link, lambda number: player.client.request(server_asked, number))

    def server_asked(self, caller: tw.ClientHandle, number: int) -> int:
        return 2 * number + 1

    def client_asked(self, player: Player, number: int) -> int:
        return 2 * number + 1

    def check(self) -> None:
        live = self.game.live()
        for link in self.game.all_links:
            for number, request in link.notes.pop("asked", ()):
                if not request.done:
                    raise Violation(f"request: {number} of {link.player} never ended")
                if link in live and (request.error or request.result() != 2 * number + 1):
                    raise Violation(f"request: {number} of {link.player} ended with {request.error!r}")
