"""Draws the ``chart`` blocks of the tutorial as SVG while Sphinx builds, of runs in virtual time.

The name of a chart is that of its function here; what stands in the block is said under it. The runs are
those of docs/tutorial/trial.py, which also has the tables.
"""

from __future__ import annotations

import html
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

sys.path.insert(0, str(Path(__file__).parent / "tutorial"))

import trial

WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 30, 40
MS = 1000 / trial.RATE


@dataclass
class Series:
    """A line of a chart, or dots."""

    label: str
    points: list[tuple[float, float]]
    dots: bool = False


@dataclass
class Chart:
    """What is drawn: lines over an axis."""

    across: str
    up: str
    series: list[Series]
    level: float | None = None
    """A level that is marked."""


def messages() -> Chart:
    """A run of chapter 1, as all three see it."""
    result = _result(1)
    begin = _press(result) - 5
    return Chart(
        "ms",
        "Ann's x",
        [
            Series("on the server", _slice(result.truth, begin)),
            Series("on her own screen", _slice(result.own, begin)),
            Series("on Bob's screen", _slice(result.seen, begin)),
        ],
    )


def ghosts() -> Chart:
    """What both send."""
    span = range(300, 900, 6)
    by_chapter = [("messages", _result(1)), ("ghosts", _result(2))]
    return Chart(
        "s",
        "kbit/s",
        [
            Series(label, [((frame - 300) / trial.RATE, result.kbps[frame]) for frame in span])
            for label, result in by_chapter
        ],
    )


def inputs() -> Chart:
    """How far each press brought Ann."""
    by_chapter = [("messages", _result(2)), ("inputs", _result(3))]
    return Chart(
        "press",
        "steps",
        [Series(label, list(enumerate(result.runs(), 1)), dots=True) for label, result in by_chapter],
        level=float(trial.RUN),
    )


def seeing() -> Chart:
    """What Bob sees."""
    begin = _press(_result(3)) - 5
    return Chart(
        "ms",
        "Ann's x",
        [
            Series("on the server", _slice(_result(4).truth, begin)),
            Series("as ghosts arrive", _slice(_result(3).seen, begin)),
            Series("the view", _slice(_result(4).seen, begin)),
        ],
    )


def prediction() -> Chart:
    """What Ann sees."""
    begin = _press(_result(5))
    return Chart(
        "ms",
        "Ann's x",
        [
            Series("on the server", _slice(_result(5).truth, begin - 4, 30, -4)),
            Series("as the server answers", _slice(_result(4).own, begin - 4, 30, -4)),
            Series("predicted", _slice(_result(5).own, begin - 4, 30, -4)),
        ],
    )


def hits() -> Chart:
    """How far shots passed beside."""
    by_chapter = [("judged by the present", _result(5)), ("judged by what he saw", _result(6))]
    most = 4 * trial.RADIUS
    return Chart(
        "shot",
        "beside her",
        [
            Series(label, [(at, min(off, most)) for at, off in enumerate(result.shots, 1)], dots=True)
            for label, result in by_chapter
        ],
        level=trial.RADIUS,
    )


def calls() -> Chart:
    """What happened, and what was shown of it."""
    before, after = _result(6), _result(7)
    span = range(0, len(before.hits), 20)

    def missing(result: trial.Result) -> list[tuple[float, float]]:
        return [(frame / trial.RATE, float(result.hits[frame] - result.splashes[frame])) for frame in span]

    return Chart(
        "s",
        "hits not shown",
        [Series("as messages", missing(before)), Series("as calls", missing(after))],
    )


CHARTS: dict[str, Callable[[], Chart]] = {
    each.__name__: each for each in (messages, ghosts, inputs, seeing, prediction, hits, calls)
}


def _result(chapter: int) -> trial.Result:
    return trial.result(trial.CHAPTERS[chapter - 1])


def _press(result: trial.Result) -> int:
    """The press to the right in whose run Bob's screen jumps most, once views have settled."""
    pairs = enumerate(zip(result.keys, result.keys[1:], strict=False), 1)
    presses = [frame for frame, (before, now) in pairs if now == 1 and before == 0 and frame > 900]
    steps = [0.0, *(abs(b - a) for a, b in zip(result.seen, result.seen[1:], strict=False))]
    return max(presses[:-1], key=lambda frame: sorted(steps[frame : frame + trial.RUN])[-3])


def _slice(values: list[float], begin: int, count: int = 75, first: int = 0) -> list[tuple[float, float]]:
    return [((at + first) * MS, value) for at, value in enumerate(values[begin : begin + count])]


def draw(chart: Chart, caption: str) -> str:
    """The SVG of a chart."""
    points = [point for series in chart.series for point in series.points]
    levels = [] if chart.level is None else [chart.level]
    low_x, high_x = min(x for x, _ in points), max(x for x, _ in points)
    low, high, step = _nice(min(y for _, y in points), max([y for _, y in points] + levels))

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - low_x) / (high_x - low_x or 1.0)
        up = (y - low) / (high - low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = []
    for number in range(round((high - low) / step) + 1):
        y = place(low_x, low + number * step)[1]
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{low + number * step:g}", "end"))
    first, last, stride = _nice(low_x, high_x)
    for number in range(round((last - first) / stride) + 1):
        at = first + number * stride
        if low_x <= at <= high_x:
            parts.append(_text(place(at, low)[0], HEIGHT - BOTTOM + 16, f"{at:g}", "middle"))
    parts.append(_text(WIDTH - RIGHT, HEIGHT - 6, chart.across, "end"))
    parts.append(_text(LEFT, 16, chart.up, "start"))
    for level in levels:
        y = place(low_x, level)[1]
        parts.append(f'<line class="level" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
    right = float(WIDTH - RIGHT)
    for number, series in reversed(list(enumerate(chart.series))):
        placed = [place(x, y) for x, y in series.points]
        if series.dots:
            parts += [f'<circle class="dot{number}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in placed]
        else:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
            parts.append(f'<polyline class="line{number}" points="{line}"/>')
        right -= 6.2 * len(series.label)
        parts.append(_text(right, 16, series.label, "start"))
        parts.append(f'<rect class="key{number}" x="{right - 16:.1f}" y="7" width="10" height="10"/>')
        right -= 34
    return (
        f'<figure class="chart"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{html.escape(caption)}">{"".join(parts)}</svg></figure>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _nice(low: float, high: float) -> tuple[float, float, float]:
    """Round ends around these, and a round step between."""
    step = 10 ** math.floor(math.log10(max(high - low, 1e-9) / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 6)
    ends: Iterable[float] = (math.floor(low / step) * step, math.ceil(high / step) * step)
    first, last = ends
    return first, max(last, first + step), step


class Picture(Directive):
    """The directive ``chart``."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Called by docutils."""
        name = self.arguments[0]
        if name not in CHARTS:
            raise self.error(f"chart must be one of {', '.join(CHARTS)}, not {name}")
        caption = " ".join(self.content)
        drawn = nodes.raw("", draw(CHARTS[name](), caption), format="html")
        text, messages = self.state.inline_text(caption, self.lineno)
        said = nodes.paragraph("", "", *text, classes=["caption"])
        return [drawn, said, *messages]


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("chart", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
