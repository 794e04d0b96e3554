"""Records the moving pictures of the pages, in virtual time: the arena sample, and cubes that fall."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, cast

os.environ["SDL_VIDEODRIVER"] = "dummy"  # no window opens

import numpy as np
import pygame
import tickwire as tw
from PIL import Image
from tickwire.samples.arena.messages import PROTOCOL
from tickwire.samples.arena.player import Bot, Controls, Player
from tickwire.samples.arena.rules import TICKS_PER_SECOND
from tickwire.samples.arena.server import Arena
from tickwire.samples.arena.window import Window

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "benches" / "ghosts"))

from scene import Scene  # noqa: E402

LINE = tw.Conditions(latency=0.075, jitter=0.01, loss=0.05)
"""150 ms of round trip, and 5 % loss."""
WARM_UP = 4
"""Seconds until the clocks have settled."""
INK, MUTED, BACKGROUND = (235, 240, 245), (150, 160, 175), (18, 22, 30)
WAYS = ((1, 0), (0, 1), (-1, 0), (0, -1))
TURN_TICKS = 40

Picture = tuple[str, list[pygame.Surface]]


class Pane(Window):
    """The sample's window without its overlay and scores."""

    def __init__(self, player: Player) -> None:
        super().__init__(player, cast("Any", None), "")

    def draw(self) -> None:
        self._ticks += 1
        self._draw_field()
        for other in self._player.others():
            self._draw_player(other, other.position, other.aim, other.name)
        player = self._player
        if player.avatar is not None and player.spot is not None and player.avatar.alive:
            self._draw_player(player.avatar, player.spot, player.aim, "you")
        self._draw_shots()

    def part(self, area: pygame.Rect, size: tuple[int, int]) -> pygame.Surface:
        """A part of what is drawn, in another size."""
        return pygame.transform.smoothscale(self._surface.subsurface(area), size)


def arena(predicts: bool, seconds: float, every: int) -> Iterator[tuple[pygame.Surface, tuple[int, int]]]:
    """A player who runs in a square, with and without prediction: pictures, and the key that is down."""
    with tw.testing.Simulation(PROTOCOL, seed=3, conditions=LINE) as sim:
        server = sim.server()
        game = Arena(server, seed=1)
        you, bots = Player(sim.client(), "you"), list[Bot]()
        you.predicts = predicts
        pane = Pane(you)
        for tick in range(round((WARM_UP + seconds) * TICKS_PER_SECOND)):
            with server.tick() as inbox:
                game.tick(inbox)
            if tick == TICKS_PER_SECOND:  # now that you have the first place
                bots = [Bot(Player(sim.client(), name), seed=7) for name in ("ann", "bob")]
            for bot in bots:
                bot.player.tick(bot.controls()._replace(weapon=0))
            way = WAYS[tick // TURN_TICKS % 4]
            you.tick(Controls((float(way[0]), float(way[1])), 200.0, 0))
            sim.network.advance(1 / TICKS_PER_SECOND)
            pane.draw()
            if tick >= WARM_UP * TICKS_PER_SECOND and tick % every == 0:
                yield pane.part(pygame.Rect(600, 190, 360, 313), (414, 360)), way


def side_by_side(seconds: float = 5.33, every: int = 3) -> list[pygame.Surface]:
    """The arena without and with prediction."""
    pygame.font.init()
    font = pygame.font.Font(None, 24)
    frames = []
    for (off, way), (on, _) in zip(arena(False, seconds, every), arena(True, seconds, every), strict=True):
        frame = pygame.Surface((840, 400))
        frame.fill(BACKGROUND)
        for left, pane, title in ((0, off, "prediction off"), (426, on, "prediction on")):
            frame.blit(pane, (left, 40))
            frame.blit(font.render(title, True, INK), (left + 10, 12))
            draw_keys(frame, (left + 350, 22), way)
        frames.append(frame)
    return frames


def draw_keys(frame: pygame.Surface, middle: tuple[int, int], way: tuple[int, int]) -> None:
    """Four keys, of which one is down."""
    for x, y in WAYS:
        key = pygame.Rect(0, 0, 16, 12)
        key.center = middle[0] + 18 * x, middle[1] + 7 * y + (0 if y else 7)
        pygame.draw.rect(frame, (255, 190, 90) if (x, y) == way else (70, 78, 92), key, border_radius=3)


@tw.ghost(coded=True)
class Cube:
    """A cube of the scene."""

    position: Annotated[tw.Vec3, tw.vec3(-100, 100, 1 / 512)] = (0, 0, 0)
    turn: Annotated[tw.fields.Quaternion, tw.fields.quaternion(9)] = (0, 0, 0, 1)


CORNERS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float) * 0.35
SIDES = ((0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5))


def cubes(seconds: float = 3.5, every: int = 6) -> list[pygame.Surface]:
    """901 cubes as a client over the line draws them."""
    pygame.font.init()
    font, frames = pygame.font.Font(None, 20), []
    protocol, scene = tw.Protocol(id=1, ghosts=[Cube], channels=[tw.unreliable()]), Scene("C901")
    network, server, client = tw.testing.connected_pair(protocol, conditions=LINE, seed=1)
    count = scene.plan.entities
    server.world.spawn_rows(Cube, count)
    columns = server.world.arrays(Cube)
    for tick in range(round((WARM_UP + seconds) * 60)):
        if tick >= WARM_UP * 60 - 30:
            scene.step()
        with server.tick():
            # The scene's y points up, the picture's z.
            columns["position"][:count] = scene.position[:, [0, 2, 1]] * (1, -1, 1)
            columns["turn"][:count] = scene.rotation[:, [1, 3, 2, 0]] * (1, -1, 1, 1)
        network.advance(1 / 60)
        with client.tick():
            pass
        view = client.world.view()
        if tick >= WARM_UP * 60 and tick % every == 0:
            seen = view.arrays(Cube)
            frame = pygame.Surface((480, 280))
            frame.fill(BACKGROUND)
            draw_cubes(frame, np.array(seen["position"])[seen.rows], np.array(seen["turn"])[seen.rows])
            rate = client.stats.received_kbps
            text = f"901 cubes from a server 75 ms away, 5 % of packets lost: {rate:.0f} kbit/s"
            frame.fill(BACKGROUND, (0, 0, frame.get_width(), 30))
            frame.blit(font.render(text, True, INK), (12, 9))
            frames.append(frame)
    return frames


def draw_cubes(frame: pygame.Surface, places: Any, turns: Any) -> None:
    """Draws cubes in parallel projection, those behind first."""
    x, y, z, w = turns.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    matrices = np.moveaxis(np.array(rows), 2, 0)
    corners = places[:, None] + np.einsum("nij,cj->nci", matrices, CORNERS)
    depth = corners[..., 1] * 0.87 - corners[..., 2] * 0.5
    screen = np.stack(
        (240 + corners[..., 0] * 14, 180 - corners[..., 1] * 5.5 - corners[..., 2] * 11.5), axis=-1
    )
    for cube in np.argsort(-depth.mean(axis=1)):
        sides = sorted(SIDES, key=lambda side: -depth[cube, list(side)].sum())[3:]
        hue = 205 + 12 * np.sin(cube * 0.7)
        for side in sides:
            ink = pygame.Color(0)
            above = corners[cube, list(side), 2].mean() - places[cube, 2]
            ink.hsva = (hue, 55, float(np.clip(60 + 90 * above, 35, 95)), 100)
            pygame.draw.polygon(frame, ink, screen[cube, list(side)])


def save(frames: list[pygame.Surface], name: str, every: int, quality: int) -> None:
    """Writes an animated WebP that repeats."""
    images = [Image.frombytes("RGB", each.get_size(), pygame.image.tobytes(each, "RGB")) for each in frames]
    path = HERE / name
    images[0].save(
        path,
        save_all=True,
        append_images=images[1:],
        duration=round(1000 * every / 60),
        loop=0,
        quality=quality,
        method=6,
    )
    print(f"{name}: {len(images)} frames, {path.stat().st_size / 1024:.0f} KiB")


def record() -> None:
    """Records all of them."""
    save(side_by_side(), "prediction.webp", 3, 50)
    save(cubes(), "cubes.webp", 6, 15)


if __name__ == "__main__":
    record()
