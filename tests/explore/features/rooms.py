"""Rooms, and values of latest channels that newcomers get."""

from typing import Any

import tickwire as tw

from explore.game import Feature, Player, Violation

KEYS = 4


@tw.message
class Said:
    number: tw.u32


@tw.message
class Score:
    number: tw.u32


class Rooms(Feature):
    messages = (
        Said,
        Score,
    )
    channels = (
        tw.reliable_ordered("talk"),
        tw.latest("scores", keys=2 * KEYS, retain=True),
    )

    def setup(self) -> None:
        self.rooms = [self.game.server.room() for _ in range(2)]
        self.scores: dict[int, int] = {}
        self.next = 0

    def act(self) -> None:
        rng, links = self.rng, self.game.links
        for room, where in enumerate(self.rooms):
            for handle, link in links.items():
                if rng.random() < 0.02:
                    where.discard(handle) if handle in where else where.add(handle)
                    link.note("rooms", set).add(room) if handle in where else None
            if len(where) and rng.random() < 0.2:
                self.next += 1
                full = where.broadcast(Said(self.next), "talk")
                for handle in where:
                    if handle not in full:
                        links[handle].flow("down", "talk").send(self.next, 0, False)
            if rng.random() < 0.05:
                key = room * KEYS + rng.randrange(KEYS)
                self.next += 1
                self.scores[key] = self.next
                where.broadcast(Score(self.next), "scores", key=key)

    def frame(self, player: Player, inbox: Any) -> None:
        for key, score in inbox.latest:
            if isinstance(score, Score) and player.link is not None:
                seen = player.link.note("scores", dict)
                if score.number < seen.get(key, 0):
                    raise Violation(f"latest: key {key} went back at {player}")
                seen[key] = score.number

    def client_got(self, player: Player, what: Any) -> None:
        if isinstance(what, Said):
            player.link.flow("down", "talk").receive(what.number, 0)

    def check(self) -> None:
        for room, where in enumerate(self.rooms):
            if not set(where) <= set(self.game.links):
                raise Violation(f"room: {room} has members that left")
            for handle in where:
                link = self.game.links[handle]
                for key, number in self.scores.items():
                    seen = link.note("scores", dict).get(key)
                    if key // KEYS == room and link in self.game.live() and seen != number:
                        raise Violation(f"latest: key {key} is {number}, {link.player} has {seen}")
