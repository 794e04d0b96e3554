"""The panel beside the field: figures about the connection and the techniques, and the RTT as a curve."""

from __future__ import annotations

from collections import deque

import pygame

import tickwire as tw
from tickwire.samples.arena.player import Player
from tickwire.samples.screen import FAINT, GREEN, INK, LINE, RED, Screen

GRAPH = (240, 50)
HISTORY = GRAPH[0] // 2


class Overlay:
    """The lines and the curve."""

    def __init__(self) -> None:
        self.is_shown = True
        self._rtts: deque[float] = deque(maxlen=HISTORY)

    def note(self, stats: tw.connections.ConnectionStats) -> None:
        """Adds a point to the curve; call it a few times a second."""
        self._rtts.append(stats.rtt_ms)

    def draw(
        self,
        screen: Screen,
        at: tuple[float, float],
        network: str,
        stats: tw.connections.ConnectionStats | None,
        player: Player,
    ) -> None:
        """Draws the overlay, unless it is switched off."""
        if not self.is_shown:
            return
        left, top = at
        for text in lines(network, stats, player):
            screen.write(text, (left, top), RED if text.startswith("off") else INK)
            top += LINE
        if len(self._rtts) > 1:
            self._draw_curve(screen, left, top + LINE / 2)

    def _draw_curve(self, screen: Screen, left: float, top: float) -> None:
        width, height = GRAPH
        pygame.draw.rect(screen.surface, FAINT, (left, top, width, height), 1)
        highest = max(100.0, *self._rtts)
        points = [
            (left + 1 + 2 * number, top + height - 2 - rtt / highest * (height - 4))
            for number, rtt in enumerate(self._rtts)
        ]
        pygame.draw.lines(screen.surface, RED if self._rtts[-1] > 250 else GREEN, False, points, 2)
        screen.write(f"RTT, up to {highest:.0f} ms", (left + 4, top + 2), FAINT)


def lines(network: str, stats: tw.connections.ConnectionStats | None, player: Player) -> list[str]:
    """The overlay's text."""
    first = f"network: {network}"
    if stats is None or player.body is None or player.avatar is None:
        return [first, "connecting"]
    clock, body, avatar = player.client.clock, player.body, player.avatar
    return [
        first,
        f"RTT {stats.rtt_ms:.0f} ms, jitter {stats.jitter_ms:.0f} ms",
        f"loss {stats.packet_loss_percent:.1f} % up, {stats.packet_loss_received_percent:.1f} % down",
        f"{stats.sent_kbps:.0f} kbit/s up, {stats.received_kbps:.0f} down",
        f"{_state(player.predicts)} P: prediction, {clock.lead or 0:.0f} ticks ahead",
        f"      {body.corrections} corrections, {player.fired.refused} rockets refused",
        f"{_state(player.interpolates)} I: interpolation, {1000 * player.view.delay:.0f} ms behind",
        f"{_state(player.rewinds)} R: rewind, {avatar.rewinds} shots, last by {avatar.rewound} ms",
    ]


def _state(is_on: bool) -> str:
    return "on " if is_on else "off"
