"""Makes the pictures of the pages: `make pictures`. They are of real matches, so each run gives others."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
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


PARTS: dict[str, Callable[[], object]] = {
    "demo": demo,
    "recordings": recordings.record,
    "rts": lambda: rts(["play", "--auto", "--seconds", "50", "--screenshot", str(HERE / "rts.png")]),
    "arena": lambda: arena(["play", "--auto", "--seconds", "14", "--screenshot", str(HERE / "arena.png")]),
}

LIMIT = 300
"""Seconds that a part may take."""


if __name__ == "__main__":
    for part in sys.argv[1:]:
        sys.exit(PARTS[part]())  # type: ignore[arg-type]
    for part in PARTS:
        # A process of its own: SDL crashes when a window opens after surfaces of another initialization.
        subprocess.run([sys.executable, __file__, part], check=True, timeout=LIMIT)
