"""``tickwire plot``: plots a capture."""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
from pathlib import Path

from tickwire._plots.series import series_of
from tickwire.capture import read_capture


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path, metavar="FILE", help="a capture")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the PNG to write (FILE.png)")
    parser.add_argument("--step", type=float, metavar="SECONDS", help="seconds of a point (what fits)")


def run(parsed: argparse.Namespace) -> int:
    """Draws the plot. Returns the exit code."""
    output = parsed.capture.with_suffix(".png") if parsed.output is None else parsed.output
    try:
        if importlib.util.find_spec("matplotlib") is None:
            raise ValueError("plots need the package matplotlib: pip install '.[plots]' in a checkout")
        if parsed.step is not None and not (math.isfinite(parsed.step) and parsed.step >= 0.001):
            raise ValueError(f"--step must be at least 0.001 seconds, not {parsed.step}")
        from tickwire._plots.draw import draw_series

        draw_series(series_of(read_capture(parsed.capture), parsed.step), parsed.capture.name, output)
    except (OSError, ValueError) as error:
        print(f"tickwire plot: {error}", file=sys.stderr)
        return 1
    print(output)
    return 0
