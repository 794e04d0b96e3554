"""The arena in a window, made with pygame-ce."""

from __future__ import annotations

import math

import pygame

import tickwire as tw
from tickwire.samples import command
from tickwire.samples.arena.messages import Avatar
from tickwire.samples.arena.overlay import Overlay
from tickwire.samples.arena.player import Controls, Player, Shot
from tickwire.samples.arena.rules import (
    FULL_HEALTH,
    HEIGHT,
    PILLARS,
    PULSE,
    RADIUS,
    RIFLE,
    ROCKET,
    TICKS_PER_SECOND,
    WEAPONS,
    WIDTH,
    Spot,
    along,
)
from tickwire.samples.screen import (
    BACKGROUND,
    FAINT,
    GREEN,
    GRID,
    INK,
    LINE,
    PANEL,
    RED,
    Color,
    Screen,
    faded,
)

PILLAR, FIRE, SIDE = (44, 51, 66), (255, 190, 90), 270
LEFT = WIDTH + 14
"""Where the panel's text begins."""
HINTS = (
    "WASD or arrows: move, mouse: aim",
    "left: rifle, right: rocket, space: pulse",
    "ring: where the server last had you",
    "N: next network, Tab: these figures",
)
FLASH_TICKS = 20
NEWS_TICKS = 240
KEYS = {
    (1, 0): (pygame.K_RIGHT, pygame.K_d),
    (-1, 0): (pygame.K_LEFT, pygame.K_a),
    (0, 1): (pygame.K_DOWN, pygame.K_s),
    (0, -1): (pygame.K_UP, pygame.K_w),
}


class Window:
    """A window that shows a player's view of the arena. Keys: arrows or WASD steer, N changes the network,
    P, I and R switch the techniques that hide it, Tab switches the figures, and Escape leaves.

    Raises:
        SampleError: there is no display.
    """

    def __init__(self, player: Player, proxy: tw.testing.Proxy, network: str) -> None:
        self._player = player
        self._proxy = proxy
        self._network = network
        self._flashes: list[tuple[Shot, int]] = []
        self._news: list[tuple[str, int]] = []
        self._ticks = 0
        self.screen = Screen("Tickwire arena", int(WIDTH) + SIDE, int(HEIGHT))
        self._surface = self.screen.surface
        self._overlay = Overlay()

    def handle_events(self) -> bool:
        """Handles keys. Returns False if the player leaves."""
        for event in self.screen.events():
            if event.type == pygame.KEYDOWN:
                self._press(event.key)
        return not self.screen.left

    def _press(self, key: int) -> None:
        player = self._player
        if key == pygame.K_n:
            self._change_network()
        elif key == pygame.K_p:
            player.predicts = not player.predicts
        elif key == pygame.K_i:
            player.interpolates = not player.interpolates
        elif key == pygame.K_r:
            player.rewinds = not player.rewinds
        elif key == pygame.K_TAB:
            self._overlay.is_shown = not self._overlay.is_shown

    def controls(self) -> Controls:
        """Returns the controls from the pressed keys and the mouse."""
        pressed, (left, _, right) = pygame.key.get_pressed(), pygame.mouse.get_pressed()
        ways = [way for way, keys in KEYS.items() if any(pressed[key] for key in keys)]
        steer = float(sum(x for x, _ in ways)), float(sum(y for _, y in ways))
        weapon = PULSE if pressed[pygame.K_SPACE] else ROCKET if right else RIFLE if left else 0
        (x, y), here = pygame.mouse.get_pos(), self._player.spot or (0.0, 0.0)
        return Controls(steer, math.degrees(math.atan2(y - here[1], x - here[0])), weapon)

    def _change_network(self) -> None:
        names = command.NETWORKS
        self._network = names[(names.index(self._network) + 1) % len(names)]
        up, down = command.conditions(self._network)
        self._proxy.set_conditions(up=up, down=down)

    def draw(self) -> None:
        """Draws the player's view of the arena, and the figures about the connection."""
        self._ticks += 1
        client = self._player.client
        stats = client.stats if client.connected else None
        if stats is not None and self._ticks % (TICKS_PER_SECOND // 10) == 0:
            self._overlay.note(stats)
        self._draw_field()
        player = self._player
        for other in player.others():
            self._draw_player(other, other.position, other.aim, other.name)
        if player.avatar is not None and player.spot is not None and player.avatar.alive:
            pygame.draw.circle(self._surface, FAINT, player.avatar.position, RADIUS, 1)
            self._draw_player(player.avatar, player.spot, player.aim, "you")
        for rocket in player.rockets():
            pygame.draw.circle(self._surface, FIRE, rocket, 5)
        self._draw_shots()
        self._draw_line()
        self._draw_panel(stats)
        pygame.display.flip()

    def _draw_field(self) -> None:
        self._surface.fill(BACKGROUND)
        for x in range(0, int(WIDTH), 60):
            pygame.draw.line(self._surface, GRID, (x, 0), (x, HEIGHT))
        for y in range(0, int(HEIGHT), 60):
            pygame.draw.line(self._surface, GRID, (0, y), (WIDTH, y))
        for left, top, radius in PILLARS:
            pygame.draw.circle(self._surface, PILLAR, (left, top), radius)

    def _draw_shots(self) -> None:
        self._flashes += [(shot, self._ticks) for shot in self._player.shots]
        self._flashes = [flash for flash in self._flashes if self._ticks - flash[1] < FLASH_TICKS]
        for shot, since in self._flashes:
            part = (self._ticks - since) / FLASH_TICKS
            if shot.weapon == RIFLE:
                if part < 0.4:
                    pygame.draw.line(self._surface, color(shot.slot), shot.at, shot.to, 2)
            else:
                reach = WEAPONS[shot.weapon].reach
                ink = FIRE if shot.weapon == ROCKET else color(shot.slot)
                pygame.draw.circle(self._surface, ink, shot.to, 6 + reach * part, 3)

    def _draw_player(self, avatar: Avatar, spot: Spot, aim: float, name: str) -> None:
        pygame.draw.line(self._surface, INK, spot, along(spot, aim, RADIUS + 8), 4)
        pygame.draw.circle(self._surface, color(avatar.slot), spot, RADIUS)
        self.screen.write(name, (spot[0], spot[1] - RADIUS - 18), INK, "center")
        left, top, width = spot[0] - RADIUS, spot[1] - RADIUS - 8, 2 * RADIUS
        pygame.draw.rect(self._surface, RED, (left, top, width, 3))
        pygame.draw.rect(self._surface, GREEN, (left, top, width * avatar.health / FULL_HEALTH, 3))

    def _draw_panel(self, stats: tw.connections.ConnectionStats | None) -> None:
        """Draws the parts beside the field, where they don't cover players."""
        pygame.draw.rect(self._surface, PANEL, (WIDTH, 0, SIDE, HEIGHT))
        avatars, top = self._player.avatars(), 12.0
        names = {avatar.slot: avatar.name for avatar in avatars}
        for avatar in avatars[:7]:
            ink = color(avatar.slot) if avatar.alive else FAINT
            self.screen.write(avatar.name, (LEFT, top), ink)
            self.screen.write(str(avatar.score), (WIDTH + SIDE - 14, top), ink, "topright")
            top += LINE
        self._overlay.draw(self.screen, (LEFT, top + LINE / 2), self._network, stats, self._player)
        for killer, victim, weapon in self._player.news:
            text = f"{names.get(killer, killer)} - {WEAPONS[weapon].name} - {names.get(victim, victim)}"
            self._news.append((text, self._ticks))
        self._news = [news for news in self._news[-3:] if self._ticks - news[1] < NEWS_TICKS]
        for place, (text, since) in enumerate(self._news):
            ink = faded(INK, (self._ticks - since) / NEWS_TICKS)
            self.screen.write(text, (LEFT, HEIGHT - 98 - LINE * (len(self._news) - place)), ink)
        self.screen.write_lines(HINTS, (LEFT, HEIGHT - 90), FAINT)

    def _draw_line(self) -> None:
        """Draws a message if the player is dead, or if the connection is silent, long before it times out."""
        player = self._player
        if player.attempt:
            text = f"Connection lost, reconnecting: attempt {player.attempt}"
        elif player.client.silence > 1.0:
            text = f"Nothing has arrived for {player.client.silence:.0f} s"
        elif player.avatar is not None and not player.avatar.alive:
            text = "You are dead: shoot to come back"
        else:
            return
        self.screen.write(text, (WIDTH / 2, HEIGHT / 2 - 40), RED, "center")


def color(slot: int) -> Color:
    """Returns a player's color."""
    made = pygame.Color(0)
    made.hsva = (slot * 137 % 360, 60, 95, 100)
    return made.r, made.g, made.b
