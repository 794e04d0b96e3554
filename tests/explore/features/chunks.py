"""Chunks, both ways: whole, once, in order."""

from typing import Any

import tickwire as tw

from explore.game import Feature, Link, Player, Violation


class Chunks(Feature):
    channels = (tw.chunks("chunks"),)

    def send(self, link: Link, way: str, send: Any) -> None:
        sent = link.note(f"chunks {way}", list)
        if self.rng.random() < 0.02 and len(sent) < 40:
            content = self.rng.randbytes(self.rng.choice([10, 1000, 20_000]))
            sent.append((send(content, label=str(len(sent))), content))

    def act(self) -> None:
        for link in self.game.links.values():
            self.send(
                link,
                "down",
                lambda what, to=link.handle, **more: self.game.server.send_chunk(to, what, **more),
            )

    def play(self, player: Player) -> None:
        if self.game.is_acting and not self.game.is_resting:
            self.send(player.link, "up", player.client.send_chunk)

    def took(self, link: Link, way: str, chunk: Any) -> None:
        """In order; when a connection ends, those that were whole come, without the others."""
        taken, number = link.note(f"taken {way}", list), int(chunk.label)
        _, content = link.notes[f"chunks {way}"][number]
        if bytes(chunk) != content or (taken and number <= taken[-1]):
            raise Violation(f"chunk: {number} {way} of {link.player} isn't the one sent, after {taken}")
        taken.append(number)

    def serve(self, inbox: Any) -> None:
        for chunk in inbox.chunks:
            self.took(self.game.links[chunk.client], "up", chunk)

    def frame(self, player: Player, inbox: Any) -> None:
        for chunk in inbox.chunks:
            if player.link is not None and ":" not in chunk.label:
                self.took(player.link, "down", chunk)

    def check(self) -> None:
        for link in self.game.live():
            for way in ("up", "down"):
                sent, taken = link.notes.get(f"chunks {way}", []), link.notes.get(f"taken {way}", [])
                if len(sent) != len(taken) or not all(transfer.done for transfer, _ in sent):
                    raise Violation(f"chunk: {len(taken)} of {len(sent)} {way} came to {link.player}")
        for link in self.game.all_links:
            link.notes.pop("chunks down", None)
