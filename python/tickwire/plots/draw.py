"""Draws with matplotlib, without a display."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tickwire.plots.series import Series
from tickwire.plots.soak import Soak

__all__ = ["draw_series", "draw_soak"]

SENT, RECEIVED, LOST = "#1f77b4", "#2ca02c", "#d62728"


def draw_series(series: Series, title: str, path: Path) -> None:
    """Writes a PNG.

    Raises:
        OSError: it can't be written.
    """
    figure = Figure(figsize=(11, 8), layout="constrained")
    FigureCanvasAgg(figure)
    rates, packets, losses = figure.subplots(3, 1, sharex=True)
    _panel(
        rates,
        series,
        "kbit/s",
        [("sent", series.sent_kbps, SENT), ("received", series.received_kbps, RECEIVED)],
    )
    _panel(
        packets,
        series,
        "packets/s",
        [("sent", series.sent_packets, SENT), ("received", series.received_packets, RECEIVED)],
    )
    _panel(losses, series, "lost, %", [("of those sent here", series.lost_percent, LOST)])
    losses.set_xlabel("seconds")
    peers = f"{series.peers} peer{'' if series.peers == 1 else 's'}"
    rates.set_title(f"{title}, {peers}, {series.step:g} s a point")
    figure.savefig(path, format="png", dpi=100)


def draw_soak(soak: Soak, path: Path) -> None:
    """Writes a PNG with a bar chart for each group of counters.

    Raises:
        OSError: it can't be written.
    """
    groups = {title: counts for title, counts in soak.groups.items() if counts}
    figure = Figure(
        figsize=(11, 2 + sum(0.5 + 0.3 * len(counts) for counts in groups.values())), layout="constrained"
    )
    FigureCanvasAgg(figure)
    heights = [1 + len(counts) for counts in groups.values()]
    panels = figure.subplots(len(groups), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (title, counts) in zip(panels, groups.items(), strict=True):
        bars = axes.barh(list(counts), list(counts.values()), color=SENT)
        axes.bar_label(bars, fmt="{:,.0f}", padding=3)
        axes.set_title(title, loc="left", fontsize=10)
        # Counters go from one to millions.
        axes.set_xscale("symlog")
        # Leaves room for the numbers.
        axes.set_xlim(0, 6 * max(1, *counts.values()))
        axes.invert_yaxis()
    verdict = "nothing broke" if soak.failure is None else f"broke: {soak.failure}"
    figure.suptitle(f"{soak.title}\n{verdict}", color="black" if soak.failure is None else LOST)
    figure.savefig(path, format="png", dpi=100)


def _panel(axes: Axes, series: Series, unit: str, lines: list[tuple[str, list[float], str]]) -> None:
    for name, values, color in lines:
        axes.plot(series.times, values, label=name, color=color, linewidth=1)
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(loc="best")
