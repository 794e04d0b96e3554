"""The window's overlay on the connection and the techniques that hide it: numbers, and the RTT as a curve."""

from __future__ import annotations

from collections import deque

import pygame

import tickwire as tw
from tickwire.samples.arena.player import Player

MARGIN = 10
LINE = 20
GRAPH = (220, 44)
HISTORY = GRAPH[0] // 2
WHITE, GREY, GREEN, RED = (235, 240, 245), (130, 140, 155), (95, 205, 140), (240, 95, 95)


class Overlay:
    """The overlay in the game's upper left corner."""

    def __init__(self) -> None:
        self._font = pygame.font.Font(None, 20)
        self._rtts: deque[float] = deque(maxlen=HISTORY)

    def note(self, stats: tw.connections.ConnectionStats) -> None:
        """Adds a point to the curve; call it a few times a second."""
        self._rtts.append(stats.rtt_ms)

    def draw(
        self,
        surface: pygame.Surface,
        network: str,
        stats: tw.connections.ConnectionStats | None,
        player: Player,
    ) -> None:
        """Draws the overlay."""
        texts = lines(network, stats, player)
        for number, text in enumerate(texts):
            color = GREY if number == 0 else RED if text.startswith("off") else WHITE
            surface.blit(self._font.render(text, True, color), (MARGIN, MARGIN + number * LINE))
        if len(self._rtts) > 1:
            self._draw_curve(surface, MARGIN, MARGIN + (len(texts) + 0.4) * LINE)

    def _draw_curve(self, surface: pygame.Surface, left: int, top: float) -> None:
        width, height = GRAPH
        pygame.draw.rect(surface, GREY, (left, top, width, height), 1)
        highest = max(100.0, *self._rtts)
        points = [
            (left + 1 + 2 * number, top + height - 2 - rtt / highest * (height - 4))
            for number, rtt in enumerate(self._rtts)
        ]
        pygame.draw.lines(surface, RED if self._rtts[-1] > 250 else GREEN, False, points, 2)
        label = self._font.render(f"RTT, up to {highest:.0f} ms", True, GREY)
        surface.blit(label, (left, top + height + 2))


def lines(network: str, stats: tw.connections.ConnectionStats | None, player: Player) -> list[str]:
    """The overlay's text."""
    first = f"network: {network} (N: the next)"
    if stats is None or player.body is None or player.avatar is None:
        return [first, "connecting"]
    clock, body, avatar = player.client.clock, player.body, player.avatar
    return [
        first,
        f"RTT {stats.rtt_ms:.0f} ms   jitter {stats.jitter_ms:.0f} ms",
        f"loss {stats.packet_loss_percent:.1f} % up, {stats.packet_loss_received_percent:.1f} % down",
        f"{stats.sent_kbps:.0f} kbit/s up, {stats.received_kbps:.0f} down",
        f"{_state(player.predicts)} P: prediction, {clock.lead or 0:.0f} ticks ahead, "
        f"{body.corrections} corrections, {player.fired.refused} rockets refused",
        f"{_state(player.interpolates)} I: interpolation, {1000 * player.view.delay:.0f} ms behind",
        f"{_state(player.rewinds)} R: rewind, {avatar.rewinds} shots, the last by {avatar.rewound} ms",
    ]


def _state(is_on: bool) -> str:
    return "on " if is_on else "off"
