"""Writes the README's table of numbers from results.json. `make compare` runs it after measuring."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
README = HERE.parents[1] / "README.md"
BEGIN, END = "<!-- numbers: written by benches/compare/readme.py -->\n", "<!-- end of numbers -->\n"

# Heading, then table and metric in results.json, and the metric that follows it in brackets.
COLUMNS = [
    ("flood: CPU per message, both ends (µs)", "flood", "CPU of both a message"),
    ("1,000 clients: CPU of the server (cores)", "servers/1000", "CPU of the server"),
    ("reliable: CPU per message, both ends (µs)", "reliable", "CPU of both a message"),
    (
        "reliable, 5 % loss: latency p99 in ms (% arrived)",
        "links/10 Mbit/s 50 ms 5 %",
        "latency p99",
        "arrived",
    ),
    (
        "4 MiB, 2 % loss: multiple of the ideal time",
        "links/10 Mbit/s 50 ms 2 %",
        "block of 4096 KiB, times ideal",
    ),
]
# In this order; others of results.json are in RESULTS.md alone.
CONTENDERS = ["tickwire", "pyenet", "kcp", "aioquic", "websockets", "asyncio", "sockets"]


def table(results: list[dict[str, Any]]) -> str:
    """The numbers as a table, a row for each contender and variant."""
    values = {(r["contender"], r["variant"], r["table"], r["metric"]): r["value"] for r in results}
    rows = {(contender, variant) for contender, variant, *_ in values if contender in CONTENDERS}
    lines = [
        "| | " + " | ".join(heading for heading, *_ in COLUMNS) + " |",
        "|---|" + "---:|" * len(COLUMNS),
    ]
    for contender, variant in sorted(rows, key=lambda row: (CONTENDERS.index(row[0]), row[1])):
        cells = []
        for _, place, *metrics in COLUMNS:
            figure, *more = (_cell(values.get((contender, variant, place, metric))) for metric in metrics)
            cells.append(f"{figure} ({more[0]})" if figure and more else figure)
        name = f"{contender} ({variant})" if variant else contender
        if any(cells):
            lines.append(f"| {name} | " + " | ".join(cell or "-" for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def replaced(readme: str, numbers: str) -> str:
    """The README with these numbers between its marks."""
    before, mark, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise SystemExit(f"{README} has no place for the numbers: put these lines there:\n{BEGIN}{END}")
    return f"{before}{mark}{numbers}{end}{after}"


def main() -> None:
    """Writes the table."""
    results = json.loads((HERE / "results.json").read_text("utf-8"))
    README.write_text(replaced(README.read_text("utf-8"), table(results)), "utf-8")


if __name__ == "__main__":
    main()
