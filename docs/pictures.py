"""Makes the pictures of the pages: `make pictures`. They are of real matches, so each run gives others."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

os.environ["SDL_VIDEODRIVER"] = "dummy"  # nobody need watch

import recordings
from rich.console import Console
from tickwire._demo.display import LiveTable
from tickwire._demo.options import Options
from tickwire._demo.referee import play
from tickwire.samples.arena.__main__ import main as arena
from tickwire.samples.rts.__main__ import main as rts

HERE = Path(__file__).parent


class Kept:
    """Keeps the last table that is shown while all play."""

    def __init__(self) -> None:
        self.table: Any = None

    def update(self, table: Any) -> None:
        if "playing" in str(table.title):
            self.table = table


def demo() -> None:
    """The demo's live table, as SVG."""
    kept: Any = Kept()
    options = Options(seconds=12)
    play(options, LiveTable(options, kept))
    console = Console(record=True, width=96, file=io.StringIO())
    console.print(kept.table)
    console.save_svg(str(HERE / "demo.svg"), title="make demo")


if __name__ == "__main__":
    # The demo starts processes, which import this module again.
    demo()
    recordings.record()
    rts(["play", "--auto", "--seconds", "50", "--screenshot", str(HERE / "rts.png")])
    sys.exit(arena(["play", "--auto", "--seconds", "14", "--screenshot", str(HERE / "arena.png")]))
