"""Draws the result of a soak run, the JSON line that ``make soak ARGS=--json`` ends with.

``PYTHONPATH=tests .venv/bin/python -m soak.plot RUN.txt`` writes RUN.png. It needs matplotlib.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Soak", "draw", "read_soak"]

MAX_BYTES = 16 << 20
"""No soak's output is larger."""

GROUPS = {"kinds": "scenarios", "events": "what happened in them", "ends": "how connections ended"}
BAR, BROKEN = "#1f77b4", "#d62728"
TOTALS = ("attempts", "connected", "datagrams", "sent", "received", "chunks", "full")


@dataclass(frozen=True)
class Soak:
    """A soak's counters, by group."""

    title: str
    groups: dict[str, dict[str, float]]
    failure: str | None


def read_soak(path: Path) -> Soak | None:
    """The last line of JSON in a soak's output; None if there is none.

    Raises:
        OSError: the file can't be read.
    """
    with path.open("rb") as file:
        text = file.read(MAX_BYTES).decode(errors="replace")
    for line in reversed(text.splitlines()):
        try:
            return _soak(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return None


def _soak(said: dict[str, object]) -> Soak:
    groups = {"in all": {name: said[name] for name in TOTALS}}
    groups |= {title: said[name] for name, title in GROUPS.items()}  # type: ignore[misc]
    numbers = {
        title: {str(name): float(value) for name, value in counts.items()}  # type: ignore[arg-type]
        for title, counts in groups.items()
    }
    failure = said["failure"]
    title = (
        f"soak of seed {said['seed']}: {said['scenarios']} scenarios, {said['virtual_hours']} virtual hours"
    )
    return Soak(title, numbers, None if failure is None else str(failure["failure"]))  # type: ignore[index]


def draw(soak: Soak, path: Path) -> None:
    """Writes a PNG with a bar chart for each group of counters.

    Raises:
        OSError: it can't be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    groups = {title: counts for title, counts in soak.groups.items() if counts}
    figure = Figure(
        figsize=(11, 2 + sum(0.5 + 0.3 * len(counts) for counts in groups.values())), layout="constrained"
    )
    FigureCanvasAgg(figure)
    heights = [1 + len(counts) for counts in groups.values()]
    panels = figure.subplots(len(groups), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (title, counts) in zip(panels, groups.items(), strict=True):
        bars = axes.barh(list(counts), list(counts.values()), color=BAR)
        axes.bar_label(bars, fmt="{:,.0f}", padding=3)
        axes.set_title(title, loc="left", fontsize=10)
        # Counters go from one to millions.
        axes.set_xscale("symlog")
        # Leaves room for the numbers.
        axes.set_xlim(0, 6 * max(1, *counts.values()))
        axes.invert_yaxis()
    verdict = "nothing broke" if soak.failure is None else f"broke: {soak.failure}"
    figure.suptitle(f"{soak.title}\n{verdict}", color="black" if soak.failure is None else BROKEN)
    figure.savefig(path, format="png", dpi=100)


if __name__ == "__main__":
    printed = Path(sys.argv[1])
    found = read_soak(printed)
    if found is None:
        sys.exit(f"{printed} doesn't end with what make soak ARGS=--json prints")
    draw(found, printed.with_suffix(".png"))
