"""The battlefield in a window, made with pygame-ce."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pygame

from tickwire.samples.command import SampleError
from tickwire.samples.rts.messages import (
    MAX_SELECTED,
    SIZE,
    Attack,
    Build,
    Command,
    Gather,
    Kind,
    Move,
    Train,
)
from tickwire.samples.rts.player import Player
from tickwire.samples.rts.rules import COST, HEALTH, NOBODY, TRAINING, Battlefield, Thing

MAP, SIDE = 768, 232
"""Pixels of the square map; the panel is beside it."""
BACKGROUND, GRID, PANEL, INK, FAINT = (
    (18, 22, 30),
    (26, 31, 41),
    (26, 30, 40),
    (235, 240, 245),
    (110, 118, 135),
)
GOLD, GREEN, RED = (255, 205, 90), (120, 220, 130), (240, 95, 95)
COLORS = ((90, 170, 255), (255, 150, 90), (170, 130, 255), (120, 220, 180))
SHAPES = {Kind.MINE: 9, Kind.BASE: 15, Kind.BARRACKS: 11, Kind.WORKER: 3, Kind.SOLDIER: 5}
"""Half the size of an object, in pixels."""
UNITS = (Kind.WORKER, Kind.SOLDIER)
BUILDINGS = (Kind.BASE, Kind.BARRACKS)
NEAR = 8
"""By how many pixels a click may miss."""
HELP = (
    "left: select, or draw a box",
    "right: move, gather, attack",
    "A: all soldiers",
    f"B: barracks ({COST[Kind.BARRACKS]})",
    f"N: another base ({COST[Kind.BASE]})",
    f"T: worker ({COST[Kind.WORKER]}), soldier ({COST[Kind.SOLDIER]})",
    "P: pause for all",
    "Enter: start now, with bots",
    "Escape: leave",
)
# SDL's fallback drivers without a screen: they show nothing.
UNSEEN = ("dummy", "offscreen", "evdev")

Spot = tuple[int, int]


class Window:
    """Shows the whole map as a player knows it, and turns mouse and keys into commands.

    Raises:
        SampleError: there is no display.
    """

    def __init__(self, player: Player) -> None:
        self._player = player
        self.selected: set[int] = set()
        """Ids of the player's objects that the next order is for."""
        self.wants_start = False
        """Whether the player pressed Enter: don't wait for anybody else."""
        self._corner: Spot | None = None
        self._turn = 0
        self._before: dict[int, Spot] = {}
        self._now: dict[int, Spot] = {}
        pygame.font.init()
        try:
            pygame.display.init()
            self._surface = pygame.display.set_mode((MAP + SIDE, MAP))
        except pygame.error as error:
            raise _no_display(str(error)) from None
        driver = pygame.display.get_driver()
        if driver in UNSEEN and os.environ.get("SDL_VIDEODRIVER") != driver:
            raise _no_display(f"only SDL's {driver} driver works")
        pygame.display.set_caption("Tickwire strategy")
        self._font = pygame.font.Font(None, 22)

    @property
    def _me(self) -> int:
        me = self._player.peer.me
        return NOBODY if me is None else me.number

    def handle_events(self) -> bool:
        """Handles mouse and keys; False: the player leaves."""
        for event in pygame.event.get():
            if event.type == pygame.QUIT or (event.type == pygame.KEYDOWN and event.key == pygame.K_ESCAPE):
                return False
            if event.type == pygame.KEYDOWN:
                self._press(event.key)
            elif event.type == pygame.MOUSEBUTTONDOWN and event.pos[0] < MAP:
                if event.button == pygame.BUTTON_LEFT:
                    self._corner = event.pos
                elif event.button == pygame.BUTTON_RIGHT:
                    self._order(event.pos)
            elif (
                event.type == pygame.MOUSEBUTTONUP
                and event.button == pygame.BUTTON_LEFT
                and self._corner is not None
            ):
                self._select(self._corner, event.pos)
                self._corner = None
        return True

    def _press(self, key: int) -> None:
        world, lockstep = self._player.world, self._player.lockstep
        self.wants_start |= key in (pygame.K_RETURN, pygame.K_KP_ENTER)
        if world is None or lockstep is None:
            return
        if key == pygame.K_p:
            if self._player.paused:
                lockstep.resume()
            else:
                lockstep.pause()
        elif key == pygame.K_a:
            self.selected = {thing.id for thing in world.of(self._me, Kind.SOLDIER)}
        elif key in (pygame.K_b, pygame.K_n):
            builders = self._chosen(world, Kind.WORKER)
            if builders:
                self._say(Build(builders[0], Kind.BARRACKS if key == pygame.K_b else Kind.BASE))
        elif key == pygame.K_t:
            for building in self._chosen(world, *BUILDINGS) or [
                it.id for it in world.of(self._me, Kind.BASE)
            ]:
                self._say(Train(building))

    def _say(self, command: Command) -> None:
        if self._player.lockstep is not None:
            self._player.lockstep.command(command)

    def _chosen(self, world: Battlefield, *kinds: Kind) -> list[int]:
        """Ids of the selected objects of these kinds that still exist."""
        return [thing.id for thing in world.of(self._me, *kinds) if thing.id in self.selected]

    def _select(self, corner: Spot, end: Spot) -> None:
        world = self._player.world
        if world is None:
            return
        box = pygame.Rect(min(corner[0], end[0]), min(corner[1], end[1]), 0, 0)
        box.size = abs(corner[0] - end[0]) + 1, abs(corner[1] - end[1]) + 1
        if max(box.size) > NEAR:
            self.selected = {
                it.id for it in world.of(self._me, *UNITS) if box.collidepoint(on_map(it.x, it.y))
            }
        else:
            it = self._at(end, world.of(self._me, *UNITS, *BUILDINGS))
            self.selected = set() if it is None else {it.id}

    def _order(self, spot: Spot) -> None:
        """Attacks, gathers or moves, depending on what is under the mouse."""
        world = self._player.world
        if world is None:
            return
        at, here = self._at(spot, world.things.values()), in_world(spot)
        for units in _dozens(self._chosen(world, *UNITS)):
            if at is not None and at.kind == Kind.MINE:
                self._say(Gather(units, at.id))
            elif at is not None and at.owner != self._me:
                self._say(Attack(units, at.id))
            else:
                self._say(Move(units, *here))

    def _at(self, spot: Spot, things: Iterable[Thing]) -> Thing | None:
        """The nearest of these objects under the mouse."""
        found, best = None, 0
        for thing in things:
            x, y = on_map(thing.x, thing.y)
            away, half = max(abs(x - spot[0]), abs(y - spot[1])), SHAPES[Kind(thing.kind)] + NEAR // 2
            if away <= half and (found is None or away < best):
                found, best = thing, away
        return found

    def draw(self) -> None:
        """Draws the map, and beside it the player's gold and the game's state."""
        self._surface.fill(BACKGROUND)
        for line in range(0, MAP, MAP // 16):
            pygame.draw.line(self._surface, GRID, (line, 0), (line, MAP))
            pygame.draw.line(self._surface, GRID, (0, line), (MAP, line))
        world, lockstep = self._player.world, self._player.lockstep
        if world is not None and lockstep is not None:
            if lockstep.turn != self._turn:
                self._turn, self._before = lockstep.turn, self._now
                self._now = {it.id: (it.x, it.y) for it in world.things.values()}
            for thing in world.things.values():
                self._draw_thing(thing, lockstep.progress)
        if self._corner is not None:
            (left, top), (x, y) = self._corner, pygame.mouse.get_pos()
            box = (min(left, x), min(top, y), abs(x - left), abs(y - top))
            pygame.draw.rect(self._surface, INK, box, 1)
        self._draw_panel()
        pygame.display.flip()

    def _draw_thing(self, thing: Thing, part: float) -> None:
        kind = Kind(thing.kind)
        # Between its last position and this one: turns are far apart.
        old, new = self._before.get(thing.id), (thing.x, thing.y)
        old = new if old is None else old
        x, y = on_map(*(int(was + (to - was) * part) for was, to in zip(old, new, strict=True)))
        half = SHAPES[kind]
        ink = GOLD if thing.owner == NOBODY else COLORS[thing.owner % len(COLORS)]
        if kind == Kind.MINE:
            if thing.left:
                pygame.draw.polygon(
                    self._surface, GOLD, ((x - half, y), (x, y - half), (x + half, y), (x, y + half))
                )
            return
        if kind in BUILDINGS:
            box = pygame.Rect(x - half, y - half, 2 * half, 2 * half)
            pygame.draw.rect(self._surface, ink, box, 0 if kind == Kind.BASE else 4, 3)
            if thing.left:
                ready = 2 * half * (TRAINING - thing.left) // TRAINING
                pygame.draw.rect(self._surface, INK, (box.left, box.bottom + 2, ready, 3))
        elif kind == Kind.SOLDIER:
            pygame.draw.polygon(
                self._surface, ink, ((x, y - half), (x + half, y + half), (x - half, y + half))
            )
        else:
            pygame.draw.circle(self._surface, ink, (x, y), half)
            if thing.left:
                pygame.draw.circle(self._surface, GOLD, (x, y), 1)
        if thing.id in self.selected:
            pygame.draw.circle(self._surface, INK, (x, y), half + 4, 1)
        if thing.health < HEALTH[kind]:
            pygame.draw.rect(self._surface, RED, (x - half, y - half - 5, 2 * half, 2))
            full = 2 * half * max(0, thing.health) // HEALTH[kind]
            pygame.draw.rect(self._surface, GREEN, (x - half, y - half - 5, full, 2))

    def _draw_panel(self) -> None:
        pygame.draw.rect(self._surface, PANEL, (MAP, 0, SIDE, MAP))
        player, world = self._player, self._player.world
        row = 16
        for other in player.peer.players:
            number = other.number
            ink = COLORS[number % len(COLORS)]
            text = other.name + (" (you)" if number == self._me and other.name != "you" else "")
            if world is not None and number in world.purses:
                text += f"  {len(world.of(number, *UNITS))} units"
                ink = ink if number in world.alive else FAINT
            row = self._write(text, row, ink)
        row = self._write("", row, INK)
        if world is not None and self._me in world.purses:
            row = self._write(f"gold {world.purses[self._me].gold}", row, GOLD)
            names = [
                Kind(world.things[id_].kind).name.lower() for id_ in self.selected if id_ in world.things
            ]
            counts = ", ".join(f"{names.count(name)} {name}" for name in sorted(set(names)))
            row = self._write(counts or "nothing selected", row, INK)
        if player.peer.code is not None:
            row = self._write(f"code {player.peer.code}", row, GREEN)
        row = self._write("", row, INK)
        for text in player.status():
            row = self._write(text, row, INK)
        row = MAP - 20 * len(HELP) - 8
        for text in HELP:
            row = self._write(text, row, FAINT)

    def _write(self, text: str, top: int, ink: tuple[int, int, int]) -> int:
        self._surface.blit(self._font.render(text, True, ink), (MAP + 14, top))
        return top + 20

    def save(self, path: Path) -> None:
        """Saves the window's contents as a picture.

        Raises:
            SampleError: the file can't be written.
        """
        try:
            pygame.image.save(self._surface, path)
        except (OSError, pygame.error) as error:
            raise SampleError(f"can't write {path}: {error}; choose another --screenshot") from None

    def close(self) -> None:
        """Closes the window."""
        pygame.quit()


def on_map(x: int, y: int) -> Spot:
    """Where a position of the world is in the window."""
    return x * MAP // SIZE, y * MAP // SIZE


def in_world(spot: Spot) -> Spot:
    """The position in the world at a spot of the window."""
    x, y = (max(0, min(SIZE - 1, each * SIZE // MAP)) for each in spot)
    return x, y


def _dozens(ids: list[int]) -> list[list[int]]:
    return [ids[start : start + MAX_SELECTED] for start in range(0, len(ids), MAX_SELECTED)]


def _no_display(why: str) -> SampleError:
    pygame.quit()
    return SampleError(f"needs a display ({why}): run it on a desktop, or with --headless")
