"""Payloads, whose fates are reported."""

from typing import Any

import tickwire as tw

from explore.features.messages import numbered
from explore.game import Feature, Link, Player


class Payloads(Feature):
    channels = (tw.channels.payload("bytes"),)

    def send(self, link: Link, way: str, send: Any) -> None:
        if self.rng.random() < 0.3:
            number = numbered(link, way, "bytes")
            if send(
                number.to_bytes(4, "big") + self.rng.randbytes(self.rng.choice([0, 50])), "bytes", tag=number
            ):
                link.flow(way, "bytes", "payload").send(number, 0, True)

    def took(self, link: Link | None, way: str, data: bytes) -> None:
        if link is not None:
            link.flow(way, "bytes", "payload").receive(int.from_bytes(data[:4], "big"), 0)

    def notified(self, links: dict[int, Link], way: str, told: Any) -> None:
        for slot, tag, delivered in zip(told.slot, told.tag, told.delivered, strict=True):
            if slot in links:
                links[slot].flow(way, "bytes", "payload").notified(tag, bool(delivered))

    def act(self) -> None:
        for link in self.game.links.values():
            self.send(
                link,
                "down",
                lambda *what, to=link.handle, **more: self.game.server.send_payload(to, *what, **more),
            )

    def play(self, player: Player) -> None:
        if self.game.is_acting and not self.game.is_resting:
            self.send(player.link, "up", player.client.send_payload)

    def serve(self, inbox: Any) -> None:
        for handle, _, data in inbox.payloads:
            self.took(self.game.links.get(handle), "up", data)
        self.notified(
            {handle.slot: link for handle, link in self.game.links.items()}, "down", inbox.notifications
        )

    def frame(self, player: Player, inbox: Any) -> None:
        for _, data in inbox.payloads:
            self.took(player.link, "down", data)
        if player.link is not None:
            self.notified(dict.fromkeys(range(16), player.link), "up", inbox.notifications)
