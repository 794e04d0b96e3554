"""Makes the pictures of the pages: `make pictures`. They are of real matches, so each run gives others."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = "dummy"  # nobody need watch

import recordings
from rich.console import Console
from tickwire._demo.display import table
from tickwire._demo.game import TICK_RATE
from tickwire._demo.match import Phase, open_match
from tickwire._demo.options import Options
from tickwire.samples.arena.__main__ import main as arena
from tickwire.samples.rts.__main__ import main as rts

HERE = Path(__file__).parent


def demo() -> None:
    """The demo's live table, as SVG."""
    with open_match(Options(seconds=12)) as match:
        for phase in match.play():
            if phase is Phase.PLAY and match.played_ticks == 10 * TICK_RATE:
                console = Console(record=True, width=96, file=io.StringIO())
                console.print(table(match))
                console.save_svg(str(HERE / "demo.svg"), title="make demo")


if __name__ == "__main__":
    demo()
    recordings.record()
    rts(["play", "--auto", "--seconds", "50", "--screenshot", str(HERE / "rts.png")])
    sys.exit(arena(["play", "--auto", "--seconds", "14", "--screenshot", str(HERE / "arena.png")]))
