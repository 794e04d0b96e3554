"""Draws with matplotlib, without a display."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tickwire._plots.series import Series

__all__ = ["draw_series"]

SENT, RECEIVED, LOST = "#1f77b4", "#2ca02c", "#d62728"


def draw_series(series: Series, title: str, path: Path) -> None:
    """Writes a PNG file.

    Raises:
        OSError: the file can't be written.
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


def _panel(axes: Axes, series: Series, unit: str, lines: list[tuple[str, list[float], str]]) -> None:
    for name, values, color in lines:
        axes.plot(series.times, values, label=name, color=color, linewidth=1)
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(loc="best")
