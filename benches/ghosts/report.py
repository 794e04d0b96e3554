"""The table of ``results.json``, as Markdown: writes ``RESULTS.md``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HEAD = """# Ghosts beside other libraries

Made by `make ghosts ARGS=--rivals`, which runs all of them one after the other, with the same generator of
scenes; what a run leaves out, as `make ghosts` does other libraries, stays from before. Milliseconds are CPU
time of one thread a tick, the middle one of 150: of the server's part (the application's writes, acks,
packets), and of one client's. Without sockets and encryption; bytes are those of payloads, for each object
that changed and each client that has it. A dash is what wasn't measured.

The plain columns send declared fields in whole words, the coded ones by how likely they are. bevy_replicon is
{version} on one thread, each client an app of its own: as a game has it (singles), or with components that
the application packs itself (a position in 8 bytes, a rotation in 4), and with messages handed over in
memory. What it sends reliably is given a round trip more where it is lost. By hand are changed rows for all,
by NumPy, without acks.
"""
SCENES = {
    "S1": "1,000 move, 16 clients",
    "S2": "10,000, a tenth moves, 64 clients",
    "S2d": "the same, acks 100 ms late",
    "S3": "10,000 at rest, 64 clients",
    "S5": "S1, 100 ms of round trip, 5 % loss",
    "S6": "10,000 move, each client sees 200 m",
    "S6b": "the same, a tenth moves",
    "C901": "901 cubes, 60 Hz, one client",
}
COLUMNS = (
    ("Tickwire, plain", "tickwire", ""),
    ("coded", "tickwire", " coded"),
    ("bevy_replicon", "bevy_replicon", ""),
    ("packed", "bevy_replicon", " quantised"),
    ("by hand", "numpy_broadcast", ""),
)


def _rows(results: dict[str, Any], of: str) -> dict[str, Any]:
    """By name, what one library was measured with, without sessions and encryption."""
    return {row["scene"]: row for row in results.get(of, []) if "what" not in row}


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _table(results: dict[str, Any], title: str, name: str, digits: int) -> str:
    lines = [
        f"| {title} | {' | '.join(column for column, _, _ in COLUMNS)} |",
        f"|---|{'---|' * len(COLUMNS)}",
    ]
    for scene, what in SCENES.items():
        cells = [_rows(results, of).get(scene + suffix, {}).get(name) for _, of, suffix in COLUMNS]
        lines.append(f"| {scene}: {what} | {' | '.join(_number(cell, digits) for cell in cells)} |")
    return "\n".join(lines)


def _join(results: dict[str, Any]) -> str:
    lines = [
        "| a client joins S2 | joiner's bytes | ticks | server's ms above a usual tick |",
        "|---|---|---|---|",
    ]
    for column, of, suffix in COLUMNS:
        row = _rows(results, of).get("S4" + suffix)
        if row:
            cost = _number(row["ms_above_a_usual_tick"], 1)
            lines.append(f"| {column} | {row['joiner_bytes']:,} | {row['joiner_ticks']} | {cost} |")
    return "\n".join(lines)


def _version() -> str:
    lock = (HERE / "rivals" / "Cargo.lock").read_text()
    return lock.split('name = "bevy_replicon"\nversion = "')[1].split('"')[0]


def main() -> None:
    results = json.loads((HERE / "results.json").read_text())
    tables = [
        _table(results, "server, ms a tick", "server_ms", 2),
        _table(results, "bytes an update", "bytes_an_update", 1),
        _table(results, "client, ms a tick", "client_ms", 2),
        _table(results, "age of what a client shows, 95 % below, ticks", "age_p95_ticks", 0),
        _join(results),
    ]
    text = "\n\n".join([HEAD.format(version=_version()).rstrip(), *tables]) + "\n"
    (HERE / "RESULTS.md").write_text(text)


if __name__ == "__main__":
    main()
