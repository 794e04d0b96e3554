"""The tables of ``results.json`` as Markdown: writes ``RESULTS.md``, and the table of
``docs/ghost_arrays.md``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
GUIDE = HERE.parents[1] / "docs" / "ghost_arrays.md"
BEGIN = "<!-- numbers: written by benches/ghosts/report.py -->\n"
END = "<!-- end of numbers -->\n"
HEAD = """# Ghosts beside other libraries

Made by `make ghosts ARGS=--rivals`, which plays each scene on all of them in turns, each in a process of
its own, with the same generator of scenes; what a run leaves out, as `make ghosts` does other libraries,
stays from before. Milliseconds are CPU time of one thread a tick, the middle one of 150: of the server's
part (the application's writes, acks, packets, and who sees what), and of one client's. Without sockets and
encryption; bytes are those handed to the transport, for each object that changed and each client that has
it. A dash is what wasn't measured, and what failed wasn't done in half an hour. Clients that join do so one
after the other, nine of them, or as many as a minute has room for: the middle ones of their figures, from the
tick on in which the handshake ends.

Tickwire's plain columns send declared fields in whole words, the coded ones by how likely they are. Others
are on one thread, each client with a world of its own, which works between the server's ticks; their
packets are handed over in memory, and all of a tick goes out. "Packed" are components that the application
makes small, a position of 21 bits an axis and a rotation's smallest three in 9 bits each; else they are
singles, as a game has them. Where clients see 200 m, the application finds out who sees what by a grid, and
tells the library.

- bevy_replicon {bevy_replicon}: a component for each of position, rotation, health and flags; packed into
  whole bytes, 8 and 4. What it sends reliably is given a round trip more where it is lost.
- lightyear {lightyear}: the same components; its own reliability, connections without encryption, no
  prediction. It replicates by bevy_replicon, whose clients ack changes that still wait for the message
  their entity comes with, and then apply the newest of them: where that message was lost, what only an
  older one had changed stays as it was.
- naia {naia}: one component of four properties, of which it sends those that changed; packed by its own
  integers of any number of bits.
- By hand are changed rows for all, by NumPy, without acks.
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
    ("lightyear", "lightyear", ""),
    ("packed", "lightyear", " quantised"),
    ("naia", "naia", ""),
    ("packed", "naia", " quantised"),
    ("by hand", "numpy_broadcast", ""),
)
# Of the guide: its words for the scenes, and its columns, with those for packed components.
GUIDE_SCENES = {
    "S1": "1,000 ghosts that all move, 16 clients",
    "S5": "the same, with 100 ms of round trip and 5 % loss",
    "S2": "10,000 ghosts of which a tenth moves, 64 clients",
    "S2d": "the same, acks 100 ms late",
    "S3": "10,000 ghosts at rest, 64 clients",
    "S6": "10,000 that all move, each client seeing some 70 of them",
    "C901": "901 cubes that fall and bounce, 60 ticks a second, one client",
}
GUIDE_COLUMNS = (
    ("Tickwire, plain", "tickwire", None),
    ("bevy_replicon", "bevy_replicon", " quantised"),
    ("lightyear", "lightyear", " quantised"),
    ("naia", "naia", " quantised"),
    ("NumPy by hand", "numpy_broadcast", None),
)

Results = dict[str, Any]


def _row(results: Results, of: str, name: str) -> dict[str, Any]:
    """What a library was measured with, without sessions and encryption."""
    rows = (row for row in results.get(of, []) if row["scene"] == name and "what" not in row)
    return next(rows, {})


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _cell(row: dict[str, Any], name: str, digits: int) -> str:
    return "failed" if "failed" in row else _number(row.get(name), digits)


def _table(results: Results, title: str, name: str, digits: int) -> str:
    columns = [(column, of, suffix) for column, of, suffix in COLUMNS if of in results]
    lines = [
        f"| {title} | {' | '.join(column for column, _, _ in columns)} |",
        f"|---|{'---|' * len(columns)}",
    ]
    for scene, what in SCENES.items():
        cells = [_cell(_row(results, of, scene + suffix), name, digits) for _, of, suffix in columns]
        lines.append(f"| {scene}: {what} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _join(results: Results) -> str:
    lines = [
        "| a client joins S2 | joiner's bytes | ticks | server's ms above usual ticks |",
        "|---|---|---|---|",
    ]
    for column, of, suffix in COLUMNS:
        if row := _row(results, of, "S4" + suffix):
            names = (("joiner_bytes", 0), ("joiner_ticks", 0), ("ms_above_a_usual_tick", 1))
            lines.append(f"| {column} | {' | '.join(_cell(row, *name) for name in names)} |")
    return "\n".join(lines)


def _short(value: float) -> str:
    """With two digits, or all of those before the point."""
    if value >= 10:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value < 0.095 else f"{value:.1f}"


def _guide_cell(results: Results, scene: str, of: str, packed: str | None) -> str:
    """Milliseconds and bytes, and in brackets the bytes of packed components."""
    row = _row(results, of, scene)
    if "server_ms" not in row:
        return ""
    cell, size = _short(row["server_ms"]), row["bytes_an_update"]
    if size is not None:
        cell += f"; {_short(size)}"
        if small := _row(results, of, scene + packed).get("bytes_an_update") if packed else None:
            cell += f" ({_short(small)})"
    return cell


def _guide_join(results: Results, of: str) -> str:
    row = _row(results, of, "S4")
    if "joiner_bytes" not in row:
        return ""
    return f"{row['joiner_bytes'] / 1000:,.0f} KB; {_short(row['ms_above_a_usual_tick'])}"


def guide(results: Results) -> str:
    """The guide's table."""
    columns = [column for column in GUIDE_COLUMNS if column[1] in results]
    lines = [f"| scene | {' | '.join(name for name, _, _ in columns)} |", f"|---|{'---|' * len(columns)}"]
    for scene, what in GUIDE_SCENES.items():
        cells = [_guide_cell(results, scene, of, packed) for _, of, packed in columns]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    cells = [_guide_join(results, of) for _, of, _ in columns]
    what = "a client joins the third one: its bytes, and milliseconds above usual ticks"
    return "\n".join([*lines, f"| {what} | {' | '.join(cells)} |"]) + "\n"


def _replaced(page: str, numbers: str) -> str:
    """A page with these numbers between its marks."""
    before, mark, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise SystemExit(f"{GUIDE} has no place for the numbers: put these lines there:\n{BEGIN}{END}")
    return f"{before}{mark}\n{numbers}\n{end}{after}"


def _versions() -> dict[str, str]:
    """Of what rivals are built from."""
    lock = (HERE / "rivals" / "Cargo.lock").read_text()
    names = {"bevy_replicon": "bevy_replicon", "lightyear": "lightyear", "naia": "naia-server"}
    found = {name: re.search(f'name = "{crate}"\nversion = "(.*)"', lock) for name, crate in names.items()}
    return {name: match[1] for name, match in found.items() if match}


def main() -> None:
    results = json.loads(RESULTS.read_text())
    tables = [
        _table(results, "server, ms a tick", "server_ms", 2),
        _table(results, "bytes an update", "bytes_an_update", 1),
        _table(results, "client, ms a tick", "client_ms", 2),
        _table(results, "age of what a client shows, 95 % below, ticks", "age_p95_ticks", 0),
        _table(results, "objects shown wrong, two seconds after all rest", "wrong_in_the_end", 0),
        _join(results),
    ]
    text = "\n\n".join([HEAD.format(**_versions()).rstrip(), *tables]) + "\n"
    (HERE / "RESULTS.md").write_text(text)
    GUIDE.write_text(_replaced(GUIDE.read_text(), guide(results)))


if __name__ == "__main__":
    main()
