"""The battlefield in a window, made with pygame-ce."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pygame

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
from tickwire.samples.rts.rules import (
    ATTACKING,
    COST,
    HEALTH,
    NOBODY,
    RANGE,
    TRAINING,
    Battlefield,
    Thing,
)
from tickwire.samples.screen import (
    BACKGROUND,
    FAINT,
    GOLD,
    GREEN,
    GRID,
    INK,
    LINE,
    PANEL,
    RED,
    Color,
    Screen,
)

MAP, SIDE, SMALL = 768, 232, 204
"""Pixels of the square map, of the panel beside it, and of the small map in the panel."""
SMALL_AT = pygame.Rect(MAP + 14, MAP - SMALL - 210, SMALL, SMALL)
COLORS = ((90, 170, 255), (255, 150, 90), (170, 130, 255), (120, 220, 180))
HALVES = {Kind.MINE: 48, Kind.BASE: 80, Kind.BARRACKS: 64, Kind.WORKER: 22, Kind.SOLDIER: 30}
"""Half the size of an object, in steps of the world."""
UNITS = (Kind.WORKER, Kind.SOLDIER)
BUILDINGS = (Kind.BASE, Kind.BARRACKS)
NEAR = 8
"""Pixels by which a click may miss an object."""
SCROLL = {pygame.K_LEFT: (-1, 0), pygame.K_RIGHT: (1, 0), pygame.K_UP: (0, -1), pygame.K_DOWN: (0, 1)}
HELP = (
    "left: select, or draw a box",
    "right: move, gather, attack",
    "wheel: zoom, arrows: scroll",
    "A: all soldiers",
    f"B: barracks ({COST[Kind.BARRACKS]})",
    f"N: another base ({COST[Kind.BASE]})",
    f"T: worker ({COST[Kind.WORKER]}), soldier ({COST[Kind.SOLDIER]})",
    "P: pause for all",
    "Enter: start now, with bots",
)

Spot = tuple[int, int]


@dataclass
class Camera:
    """The part of the world that the map shows."""

    left: int = 0
    top: int = 0
    span: int = SIZE

    def show(self, x: int, y: int, span: int | None = None) -> None:
        """Moves a place of the world to the middle, or as near to it as the world's edge permits."""
        self.span = self.span if span is None else max(SIZE // 4, min(SIZE, span))
        self.left, self.top = (max(0, min(SIZE - self.span, at - self.span // 2)) for at in (x, y))

    def zoom(self, notches: int, spot: Spot) -> None:
        """Zooms the view around a spot of the map."""
        x, y = self.in_world(spot)
        span = max(SIZE // 4, min(SIZE, self.span - notches * SIZE // 8))
        far = ((at - MAP // 2) * span // MAP for at in spot)
        self.show(x - next(far), y - next(far), span)

    def on_map(self, x: int, y: int) -> Spot:
        """Returns the position in the window of a position in the world."""
        return (x - self.left) * MAP // self.span, (y - self.top) * MAP // self.span

    def in_world(self, spot: Spot) -> Spot:
        """Returns the position in the world at a spot of the window."""
        x, y = spot[0] * self.span // MAP + self.left, spot[1] * self.span // MAP + self.top
        return max(0, min(SIZE - 1, x)), max(0, min(SIZE - 1, y))

    def half(self, kind: Kind) -> int:
        """Returns half the size of an object in the window."""
        return max(3, HALVES[kind] * MAP // self.span)


class Window:
    """A window that shows the map, and turns mouse and keys into commands.

    Raises:
        SampleError: there is no display.
    """

    def __init__(self, player: Player) -> None:
        self._player = player
        self.selected: set[int] = set()
        """Ids of the player's objects that the next order is for."""
        self.wants_start = False
        """Whether the player pressed Enter, so that the game doesn't wait for further players."""
        self._corner: Spot | None = None
        self._turn = 0
        self._before: dict[int, Spot] = {}
        self._now: dict[int, Spot] = {}
        self.camera = Camera()
        self.screen = Screen("Tickwire strategy", MAP + SIDE, MAP)
        self._surface = self.screen.surface

    @property
    def _me(self) -> int:
        me = self._player.peer.me
        return NOBODY if me is None else me.number

    def handle_events(self) -> bool:
        """Handles mouse and keys. Returns False if the player leaves."""
        for event in self.screen.events():
            if event.type == pygame.KEYDOWN:
                self._press(event.key)
            elif event.type == pygame.MOUSEWHEEL:
                self.camera.zoom(event.y, pygame.mouse.get_pos())
            elif event.type == pygame.MOUSEBUTTONDOWN and SMALL_AT.collidepoint(event.pos):
                x, y = ((at - edge) * SIZE // SMALL for at, edge in zip(event.pos, SMALL_AT, strict=False))
                self.camera.show(x, y)
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
        return not self.screen.left

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
        """Returns the ids of the selected objects of these kinds that still exist."""
        return [thing.id for thing in world.of(self._me, *kinds) if thing.id in self.selected]

    def _select(self, corner: Spot, end: Spot) -> None:
        world = self._player.world
        if world is None:
            return
        box = pygame.Rect(min(corner[0], end[0]), min(corner[1], end[1]), 0, 0)
        box.size = abs(corner[0] - end[0]) + 1, abs(corner[1] - end[1]) + 1
        if max(box.size) > NEAR:
            self.selected = {
                it.id for it in world.of(self._me, *UNITS) if box.collidepoint(self.camera.on_map(it.x, it.y))
            }
        else:
            it = self._at(end, world.of(self._me, *UNITS, *BUILDINGS))
            self.selected = set() if it is None else {it.id}

    def _order(self, spot: Spot) -> None:
        """Attacks, gathers or moves, depending on what is under the mouse."""
        world = self._player.world
        if world is None:
            return
        at, here = self._at(spot, world.things.values()), self.camera.in_world(spot)
        for units in _dozens(self._chosen(world, *UNITS)):
            if at is not None and at.kind == Kind.MINE:
                self._say(Gather(units, at.id))
            elif at is not None and at.owner != self._me:
                self._say(Attack(units, at.id))
            else:
                self._say(Move(units, *here))

    def _at(self, spot: Spot, things: Iterable[Thing]) -> Thing | None:
        """Returns the nearest of these objects under the mouse."""
        found, best = None, 0
        for thing in things:
            x, y = self.camera.on_map(thing.x, thing.y)
            away, half = (
                max(abs(x - spot[0]), abs(y - spot[1])),
                self.camera.half(Kind(thing.kind)) + NEAR // 2,
            )
            if away <= half and (found is None or away < best):
                found, best = thing, away
        return found

    def draw(self) -> None:
        """Draws the map, the player's gold and the game's state."""
        self._surface.fill(BACKGROUND)
        for line in range(0, SIZE, SIZE // 16):
            x, y = self.camera.on_map(line, line)
            pygame.draw.line(self._surface, GRID, (x, 0), (x, MAP))
            pygame.draw.line(self._surface, GRID, (0, y), (MAP, y))
        world, lockstep = self._player.world, self._player.lockstep
        if world is not None and lockstep is not None:
            self._scroll(world)
            if lockstep.turn != self._turn:
                self._turn, self._before = lockstep.turn, self._now
                self._now = {it.id: (it.x, it.y) for it in world.things.values()}
            for thing in world.things.values():
                self._draw_thing(thing, world.things.get(thing.target), lockstep.progress)
        if self._corner is not None:
            (left, top), (x, y) = self._corner, pygame.mouse.get_pos()
            box = (min(left, x), min(top, y), abs(x - left), abs(y - top))
            pygame.draw.rect(self._surface, INK, box, 1)
        if (trouble := self._player.trouble()) is not None:
            self.screen.write(trouble, (MAP / 2, 40), RED, "center")
        self._draw_panel()
        pygame.display.flip()

    def _scroll(self, world: Battlefield) -> None:
        """Scrolls the map: first to the player's base, then by the arrow keys."""
        pressed, camera = pygame.key.get_pressed(), self.camera
        x, y, step = camera.left + camera.span // 2, camera.top + camera.span // 2, camera.span // 48
        if not self._turn:
            for base in world.of(self._me, Kind.BASE):
                camera.show(base.x, base.y, SIZE * 3 // 8)
        for key, (way_x, way_y) in SCROLL.items():
            if pressed[key]:
                x, y = x + way_x * step, y + way_y * step
                camera.show(x, y)

    def _draw_thing(self, thing: Thing, target: Thing | None, part: float) -> None:
        kind = Kind(thing.kind)
        # Between its last position and this one: turns are far apart.
        old, new = self._before.get(thing.id), (thing.x, thing.y)
        old = new if old is None else old
        x, y = self.camera.on_map(*(int(was + (to - was) * part) for was, to in zip(old, new, strict=True)))
        half = self.camera.half(kind)
        ink = GOLD if thing.owner == NOBODY else COLORS[thing.owner % len(COLORS)]
        if kind == Kind.MINE:
            if thing.left:
                self._draw_shape(GOLD, x, y, half, ((-1, 0), (0, -1), (1, 0), (0, 1)))
            return
        if kind in BUILDINGS:
            self._draw_building(thing, ink, pygame.Rect(x - half, y - half, 2 * half, 2 * half))
        elif kind == Kind.SOLDIER:
            self._draw_shape(ink, x, y, half, ((0, -1), (0.8, 0.8), (0, 0.4), (-0.8, 0.8)))
            if thing.order == ATTACKING and target is not None:
                to = self.camera.on_map(target.x, target.y)
                reach = (RANGE + HALVES[Kind(target.kind)]) * MAP // self.camera.span
                if max(abs(to[0] - x), abs(to[1] - y)) <= reach:
                    pygame.draw.line(self._surface, INK, (x, y), to)
        else:
            pygame.draw.circle(self._surface, ink, (x, y), half)
            if thing.left:
                pygame.draw.circle(self._surface, GOLD, (x, y), half // 2)
        if thing.id in self.selected:
            pygame.draw.circle(self._surface, INK, (x, y), half + 4, 1)
        if thing.health < HEALTH[kind]:
            pygame.draw.rect(self._surface, RED, (x - half, y - half - 5, 2 * half, 3))
            full = 2 * half * max(0, thing.health) // HEALTH[kind]
            pygame.draw.rect(self._surface, GREEN, (x - half, y - half - 5, full, 3))

    def _draw_shape(
        self, ink: Color, x: int, y: int, half: int, corners: Iterable[tuple[float, float]]
    ) -> None:
        pygame.draw.polygon(self._surface, ink, [(x + half * a, y + half * b) for a, b in corners])

    def _draw_building(self, thing: Thing, ink: Color, box: pygame.Rect) -> None:
        """Draws a building. A base is filled; a barracks has a door as high as its wall."""
        pygame.draw.rect(self._surface, ink, box, 0 if thing.kind == Kind.BASE else 4, 5)
        if thing.kind == Kind.BASE:
            pygame.draw.circle(self._surface, BACKGROUND, box.center, box.width // 5)
        else:
            x, y = box.center
            self._draw_shape(ink, x, y, box.width // 4, ((0, -1), (0.8, 0.8), (0, 0.4), (-0.8, 0.8)))
        if thing.left:
            ready = box.width * (TRAINING - thing.left) // TRAINING
            pygame.draw.rect(self._surface, INK, (box.left, box.bottom + 3, ready, 4))

    def _draw_small_map(self, world: Battlefield) -> None:
        pygame.draw.rect(self._surface, BACKGROUND, SMALL_AT)
        for thing in world.things.values():
            size = 6 if thing.kind in BUILDINGS else 4 if thing.kind == Kind.MINE else 2
            ink = GOLD if thing.owner == NOBODY else COLORS[thing.owner % len(COLORS)]
            x, y = (at * SMALL // SIZE + edge for at, edge in zip((thing.x, thing.y), SMALL_AT, strict=False))
            pygame.draw.rect(self._surface, ink, (x - size // 2, y - size // 2, size, size))
        left, top, span = (at * SMALL // SIZE for at in (self.camera.left, self.camera.top, self.camera.span))
        pygame.draw.rect(self._surface, INK, (SMALL_AT.left + left, SMALL_AT.top + top, span, span), 1)

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
        if world is not None:
            self._draw_small_map(world)
        self.screen.write_lines(HELP, (MAP + 14, MAP - LINE * len(HELP) - 8), FAINT)

    def _write(self, text: str, top: int, ink: Color) -> int:
        self.screen.write(text, (MAP + 14, top), ink)
        return top + LINE


def _dozens(ids: list[int]) -> list[list[int]]:
    return [ids[start : start + MAX_SELECTED] for start in range(0, len(ids), MAX_SELECTED)]
