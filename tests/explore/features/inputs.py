"""Inputs by tick: a key that is held, and one that is pressed for a single frame."""

from math import ceil, floor
from typing import Any

import tickwire as tw

from explore.game import Feature, Player, Violation

PRESS: Any = tw.fields.press
"""The field of a press, which reaches the server once in however many frames and ticks."""


@tw.message
class Keys:
    x: tw.i8 = 0
    fire: PRESS = False


class Inputs(Feature):
    inputs = Keys

    def serve(self, inbox: Any) -> None:
        self.is_read = False

    def ticked(self) -> None:
        for handle, keys in self.game.server.inputs:
            if keys is not None and keys.fire and handle in self.game.links:
                link = self.game.links[handle]
                link.notes["shots"] = link.notes.get("shots", 0) + 1

    def play(self, player: Player) -> None:
        rng, link = player.rng, player.link
        is_settled = player.settled() and player.client.clock.settled
        if link.notes.setdefault("inputs", True):
            link.notes["inputs"] = False
            player.client.set_inputs(redundancy=rng.randint(2, 4), delay=rng.choice([0, 0, 2]))
        if rng.random() < 0.05:
            player.notes["x"] = rng.choice([-100, 0, 100])
        # Two presses in one tick are one, so each waits until the one before has its tick.
        waits = link.notes.get("press waits", False)
        presses = self.game.is_acting and is_settled and rng.random() < 0.1 and not waits
        keys = Keys(player.notes.get("x", 0) if self.game.is_acting else 0, presses)
        link.notes["presses"] = link.notes.get("presses", 0) + presses
        send = self.game.on["prediction"].send if "prediction" in self.game.on else self.send
        ticks = send(player, keys)
        link.notes["press waits"] = not ticks and (presses or waits)
        ratio = self.game.tick_rate / player.rate
        if is_settled and self.game.is_perfect and not floor(ratio) <= len(ticks) <= ceil(ratio):
            raise Violation(f"hitch: a frame of {player} gave {len(ticks)} inputs, not {ratio:g}")

    def send(self, player: Player, keys: Keys) -> range:
        ticks: range = player.client.send_input(keys)
        return ticks

    def check(self) -> None:
        for link in self.game.live():
            made, came = link.notes.get("presses", 0), link.notes.get("shots", 0)
            is_exact = self.game.is_perfect and not link.player.drifts
            if (made != came) if is_exact else (came > made):
                raise Violation(f"presses: {link.player} pressed {made} times, {came} arrived")
