"""The window of the samples that draw, made with pygame-ce."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import pygame

from tickwire.samples.command import SampleError

# Smooth edges in a window of any size.
os.environ.setdefault("SDL_RENDER_SCALE_QUALITY", "best")

Color = tuple[int, int, int]
BACKGROUND, GRID, PANEL = (18, 22, 30), (26, 31, 41), (26, 30, 40)
INK, FAINT, GOLD = (235, 240, 245), (130, 140, 155), (255, 205, 90)
GREEN, RED = (95, 205, 140), (240, 95, 95)
LINE = 20
"""The height of a line of text, in pixels."""
# Drivers that SDL falls back to without a screen: they show nothing.
UNSEEN = ("dummy", "offscreen", "evdev")


class Screen:
    """A window whose contents scale with its size.

    Raises:
        SampleError: there is no display.
    """

    def __init__(self, title: str, width: int, height: int) -> None:
        self.left = False
        """Whether the player closed the window or pressed Escape."""
        pygame.font.init()
        try:
            pygame.display.init()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a slow renderer is fast enough
                self.surface = pygame.display.set_mode((width, height), pygame.SCALED | pygame.RESIZABLE)
        except pygame.error as error:
            raise _no_display(str(error)) from None
        driver = pygame.display.get_driver()
        if driver in UNSEEN and os.environ.get("SDL_VIDEODRIVER") != driver:
            raise _no_display(f"only SDL's {driver} driver works")
        pygame.display.set_caption(title)
        self._font = pygame.font.SysFont("dejavusans,segoeui,helveticaneue,arial", 14)

    def events(self) -> list[pygame.event.Event]:
        """The events since the last call."""
        events = pygame.event.get()
        for event in events:
            escaped = event.type == pygame.KEYDOWN and event.key == pygame.K_ESCAPE
            self.left |= escaped or event.type == pygame.QUIT
        return events

    def write(self, text: str, at: tuple[float, float], ink: Color = INK, anchor: str = "topleft") -> None:
        """Writes a line of text with its ``anchor`` (such as a corner) at a place."""
        image = self._font.render(text, True, ink)
        self.surface.blit(image, image.get_rect(**{anchor: at}))

    def write_lines(self, texts: Sequence[str], at: tuple[float, float], ink: Color = INK) -> float:
        """Writes several lines. Returns the place of the next line."""
        for row, text in enumerate(texts):
            self.write(text, (at[0], at[1] + row * LINE), ink)
        return at[1] + len(texts) * LINE

    def save(self, path: Path) -> None:
        """Saves the window's contents as a picture.

        Raises:
            SampleError: the file can't be written.
        """
        try:
            pygame.image.save(self.surface, path)
        except (OSError, pygame.error) as error:
            raise SampleError(f"can't write {path}: {error}; choose another --screenshot") from None

    def close(self) -> None:
        """Closes the window."""
        pygame.quit()


def faded(ink: Color, part: float) -> Color:
    """Mixes a color with the background, in the share ``part``."""
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(ink, BACKGROUND, strict=True))
    return red, green, blue


def _no_display(why: str) -> SampleError:
    pygame.quit()
    return SampleError(f"needs a display ({why}): run it on a desktop, or with --headless")
