"""The arena in a window, made with pygame-ce."""

from __future__ import annotations

import os
from pathlib import Path

import pygame

import tickwire as tw
from tickwire.samples import command
from tickwire.samples.arena.overlay import Overlay
from tickwire.samples.arena.player import Player
from tickwire.samples.arena.world import HEIGHT, RADIUS, TICKS_PER_SECOND, WIDTH, Spot

BACKGROUND, GRID, GHOST = (18, 22, 30), (26, 31, 41), (110, 118, 135)
GEM, NAME = (120, 220, 255), (235, 240, 245)
HINT = "Arrows steer, N changes the network, Escape leaves. The ring is where the server last had you."
FLASH_TICKS = 30
KEYS = {
    (1, 0): (pygame.K_RIGHT, pygame.K_d),
    (-1, 0): (pygame.K_LEFT, pygame.K_a),
    (0, 1): (pygame.K_DOWN, pygame.K_s),
    (0, -1): (pygame.K_UP, pygame.K_w),
}
# Drivers that SDL falls back to without a screen: nobody would see anything.
UNSEEN = ("dummy", "offscreen", "evdev")


class Window:
    """Shows what a player knows. Keys: arrows or WASD steer, N changes the network, Escape leaves.

    Raises:
        SampleError: there is no display.
    """

    def __init__(self, player: Player, proxy: tw.Proxy, network: str) -> None:
        self._player = player
        self._proxy = proxy
        self._network = network
        self._flashes: list[tuple[Spot, int]] = []
        self._ticks = 0
        pygame.font.init()
        try:
            pygame.display.init()
            self._surface = pygame.display.set_mode((int(WIDTH), int(HEIGHT)))
        except pygame.error as error:
            raise _no_display(str(error)) from None
        driver = pygame.display.get_driver()
        if driver in UNSEEN and os.environ.get("SDL_VIDEODRIVER") != driver:
            raise _no_display(f"only SDL's {driver} driver works")
        pygame.display.set_caption("Tickwire arena")
        self._font = pygame.font.Font(None, 22)
        self._overlay = Overlay()

    def handle_events(self) -> bool:
        """Does what keys ask for; False: the player leaves."""
        for event in pygame.event.get():
            if event.type == pygame.QUIT or (event.type == pygame.KEYDOWN and event.key == pygame.K_ESCAPE):
                return False
            if event.type == pygame.KEYDOWN and event.key == pygame.K_n:
                self._change_network()
        return True

    def steer(self) -> Spot:
        """Where the pressed keys steer."""
        pressed = pygame.key.get_pressed()
        ways = [way for way, keys in KEYS.items() if any(pressed[key] for key in keys)]
        return float(sum(x for x, _ in ways)), float(sum(y for _, y in ways))

    def _change_network(self) -> None:
        names = command.NETWORKS
        self._network = names[(names.index(self._network) + 1) % len(names)]
        up, down = command.conditions(self._network)
        self._proxy.set_conditions(up=up, down=down)

    def draw(self) -> None:
        """Draws the arena as the player knows it, and how the connection does."""
        self._ticks += 1
        client = self._player.client
        stats = client.stats() if client.connected else None
        if stats is not None and self._ticks % (TICKS_PER_SECOND // 10) == 0:
            self._overlay.note(stats)
        self._draw_field()
        self._draw_gem()
        for slot, spot in self._player.others().items():
            self._draw_player(slot, spot)
        if self._player.confirmed is not None:
            pygame.draw.circle(self._surface, GHOST, self._player.confirmed, RADIUS, 1)
        if self._player.spot is not None and client.slot is not None:
            self._draw_player(client.slot, self._player.spot, "you")
        self._draw_scores()
        self._overlay.draw(self._surface, self._network, stats)
        pygame.display.flip()

    def _draw_field(self) -> None:
        self._surface.fill(BACKGROUND)
        for x in range(0, int(WIDTH), 60):
            pygame.draw.line(self._surface, GRID, (x, 0), (x, HEIGHT))
        for y in range(0, int(HEIGHT), 60):
            pygame.draw.line(self._surface, GRID, (0, y), (WIDTH, y))
        self._write(HINT, (WIDTH / 2, HEIGHT - 14), GHOST)

    def _draw_gem(self) -> None:
        if self._player.gem is not None:
            x, y = self._player.gem
            pygame.draw.polygon(self._surface, GEM, [(x, y - 10), (x + 8, y), (x, y + 10), (x - 8, y)])
        self._flashes += [((taken.x, taken.y), self._ticks) for taken in self._player.news]
        self._flashes = [flash for flash in self._flashes if self._ticks - flash[1] < FLASH_TICKS]
        for spot, since in self._flashes:
            pygame.draw.circle(self._surface, GEM, spot, 4 + 2 * (self._ticks - since), 2)

    def _draw_player(self, slot: int, spot: Spot, name: str = "") -> None:
        pygame.draw.circle(self._surface, color(slot), spot, RADIUS)
        self._write(name or str(slot), (spot[0], spot[1] - RADIUS - 10), NAME)

    def _draw_scores(self) -> None:
        here = {self._player.client.slot, *self._player.others()}
        scores = sorted(
            ((points, slot) for slot, points in self._player.scores.items() if slot in here), reverse=True
        )
        for place, (points, slot) in enumerate(scores):
            who = "you" if slot == self._player.client.slot else str(slot)
            self._write(f"{who}  {points}", (WIDTH - 45, 20 + 20 * place), color(slot))

    def _write(self, text: str, middle: Spot, ink: tuple[int, int, int]) -> None:
        image = self._font.render(text, True, ink)
        self._surface.blit(image, image.get_rect(center=middle))

    def save(self, path: Path) -> None:
        """Saves what the window shows as a picture.

        Raises:
            SampleError: the file can't be written.
        """
        try:
            pygame.image.save(self._surface, path)
        except (OSError, pygame.error) as error:
            raise command.SampleError(f"can't write {path}: {error}; choose another --screenshot") from None

    def close(self) -> None:
        """Closes the window."""
        pygame.quit()


def color(slot: int) -> tuple[int, int, int]:
    """Each player's own."""
    made = pygame.Color(0)
    made.hsva = (slot * 137 % 360, 60, 95, 100)
    return made.r, made.g, made.b


def _no_display(why: str) -> command.SampleError:
    pygame.quit()
    return command.SampleError(f"needs a display ({why}): run it on a desktop, or serve and let others join")
