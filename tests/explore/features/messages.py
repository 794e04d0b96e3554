"""Messages on each kind of channel, both ways."""

from typing import Annotated, Any

import tickwire as tw

from explore.game import Feature, Link, Player

KINDS = ["reliable_ordered", "reliable_unordered", "unreliable", "sequenced", "redundant"]
NAMES = ["main", "events", "effects", "state", "moves"]


@tw.message
class Numbered:
    channel: tw.u8
    number: tw.u32
    filling: Annotated[bytes, tw.data(8000)] = b""


class Messages(Feature):
    messages = (Numbered,)
    channels = tuple(getattr(tw.channels, kind)(name) for kind, name in zip(KINDS, NAMES, strict=True))

    def send(self, link: Link, way: str, send: Any) -> None:
        while self.rng.random() < 0.4:
            channel = self.rng.randrange(len(KINDS))
            number = numbered(link, way, NAMES[channel])
            size = self.rng.choice([0, 20]) if self.rng.random() < 0.98 else self.rng.randint(1000, 8000)
            if size > 1000:
                link.notes["large"] = self.game.network.now
            if send(Numbered(channel, number, bytes(size)), NAMES[channel]):
                link.flow(way, NAMES[channel], KINDS[channel]).send(number, 0, False)

    def act(self) -> None:
        for link in self.game.links.values():
            self.send(
                link, "down", lambda what, where, to=link.handle: self.game.server.send(to, what, where)
            )

    def play(self, player: Player) -> None:
        if self.game.is_acting and not self.game.is_resting:
            self.send(player.link, "up", player.client.send)

    def got(self, link: Link, way: str, what: Any) -> None:
        if isinstance(what, Numbered):
            link.flow(way, NAMES[what.channel], KINDS[what.channel]).receive(what.number, 0)

    def server_got(self, link: Link, what: Any) -> None:
        self.got(link, "up", what)

    def client_got(self, player: Player, what: Any) -> None:
        self.got(player.link, "down", what)


def numbered(link: Link, way: str, channel: str) -> int:
    """The next number of a flow, shared by messages and calls."""
    link.notes[way, channel] = link.notes.get((way, channel), -1) + 1
    return link.notes[way, channel]
