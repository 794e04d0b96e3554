"""The tables of ``results.json`` as Markdown: writes ``RESULTS.md``, and the tables of
``docs/ghost_arrays.md``. A table never mixes runs: ``results.json`` holds one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
GUIDE = HERE.parents[1] / "docs" / "ghost_arrays.md"
BEGIN = "<!-- numbers: written by benches/ghosts/report.py -->\n"
CODING = "<!-- coding: written by benches/ghosts/report.py -->\n"
END = "<!-- end of numbers -->\n"
HEAD = """# Ghosts: bytes, CPU time and errors

Written by `benches/ghosts/report.py`. Each table is from one run on one machine. Milliseconds are CPU time of
one thread a tick, the median of 150: the server's part (the application's writes, acks, packets, and who sees
what), and one client's. Sockets and encryption aren't included. Bytes are those handed to the transport, for
each object that changed and each client that has it. A dash wasn't measured.

**Each figure depends on the ack's age**: the ticks between the server's packet and the newest packet that it
knows the client has. 1 is the least, and only a line without latency reaches it. Tickwire's plain columns
send declared fields in whole words, the coded columns by how likely they are.
"""
RIVALS = """Other libraries run on one thread in the same run. Each client has a world of its own, their
packets are handed over in memory, and all of a tick goes out. "Packed" components are made small by the
application: a position of 21 bits an axis and a rotation's smallest three in 9 bits each. Where clients see
200 m, the application finds out who sees what by a grid, and tells the library. bevy_replicon
{bevy_replicon}, lightyear {lightyear}, naia {naia}.
"""
WORLDS = """## Worlds of one client

`physics` is recorded from a rigid-body engine, C901 are the falling cubes, and a number in a name is another
seed. `worlds/main.rs` describes the bench. In each tick the client showed the world as the server quantized
it.
"""
PRESSURE = """## 5,000 moving ghosts in 256 kbit/s

A player sees an error of a ghost's place under an angle: the error by the distance, in milliradians. The
table shows means of three seeds with acks 2 ticks old, plain columns, and the same encoding for all rules.
`wait, linear` is a weight that falls evenly to a quarter at 1 km. bevy_replicon sends an entity again until
it is acked, and neither its rule nor Fusion's adapts to a budget: their values are scaled until they take as
many bytes, within 6 %. Only three values for each distance were tried for either. `worlds/pressure.rs`
describes the rules. Tickwire's rule was chosen among some thirty variants on other seeds of the same motions.
One budget, one number of ghosts and plain columns only were measured. Over all ghosts, the mean error is
about that of `far_weight=1`, which ignores distance: what the weight buys is that near ghosts are younger.
"""
LINES = {"0 ms": "", "50 ms": "-50", "100 ms": "-100", "100 ms, 5 % loss": "-loss"}
# These lines are scenes with a name.
NAMED = {"S2-100": "S2d", "S1-loss": "S5"}
SCENES = {
    "S1": "1,000 move, 16 clients",
    "S2": "10,000, a tenth moves, 64 clients",
    "S2d": "the same, 100 ms of round trip",
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
    "S5": "the previous scene with a round trip of 100 ms and 5 % loss",
    "S2": "10,000 ghosts, a tenth of them moving, 64 clients",
    "S2d": "the previous scene with a round trip of 100 ms",
    "S3": "10,000 ghosts at rest, 64 clients",
    "S6": "10,000 moving ghosts, each client sees about 70 of them",
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


def _age(results: Results, scene: str) -> str:
    return str(_row(results, "tickwire", scene).get("ack_age", "-"))


def _lines(results: Results, title: str, name: str, digits: int) -> str:
    """A table by round trip: plain and coded, with the ack's age."""
    lines = [f"| {title} | {' | '.join(LINES)} |", f"|---|{'---|' * len(LINES)}"]
    for scene in ("S1", "S2", "S6b", "C901"):
        cells = []
        for suffix in LINES.values():
            of = NAMED.get(scene + suffix, scene + suffix)
            plain, coded = (_row(results, "tickwire", of + kind) for kind in ("", " coded"))
            pair = f"{_cell(plain, name, digits)}, {_cell(coded, name, digits)}"
            cells.append(f"{pair} (age {_age(results, of)})")
        lines.append(f"| {scene}: {SCENES[scene]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _worlds(results: Results) -> str:
    """The worlds of the other bench: bytes a frame by the ack's age."""
    names = ("bytes_a_frame", 1), ("server_us", 0), ("client_us", 0)
    lines = [
        "| world, one client | ack's age | bytes a frame, plain, coded | server, us | client, us |",
        "|---|---|---|---|---|",
    ]
    rows = {
        (row["world"], row["ack_age"], row["coded"]): row
        for row in results.get("worlds", [])
        if "world" in row
    }
    for world, age in dict.fromkeys((world, age) for world, age, _ in rows):
        plain, coded = rows.get((world, age, False), {}), rows.get((world, age, True), {})
        cells = [f"{_cell(plain, *name)}, {_cell(coded, *name)}" for name in names]
        lines.append(f"| {world} | {age} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _pressure(results: Results) -> str:
    """Rules under a budget: means of the seeds."""
    lines = [
        "| rule | kbit/s | bits an update | error, mrad: mean, 95 % below | the same, mixed speeds "
        "| age within 25 m, ticks | 50 to 100 m | beyond 400 m |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rows = [row for row in results.get("worlds", []) if "rule" in row and not row["coded"]]
    for rule in dict.fromkeys(row["rule"] for row in rows):
        alike, mixed = (
            [row for row in rows if (row["rule"], row["speeds"]) == (rule, it)] for it in ("alike", "mixed")
        )

        def mean(of: list[dict[str, Any]], name: str) -> float:
            return float(sum(row[name] for row in of) / len(of))

        ages = [sum(row["age_by_band"][band] for row in alike) / len(alike) for band in (0, 2, 5)]
        cells = [
            f"{mean(alike, 'kbit_a_second'):.0f}",
            f"{mean(alike, 'bits_an_update'):.0f}",
            *(f"{mean(of, 'mrad'):.1f}, {mean(of, 'mrad_p95'):.0f}" for of in (alike, mixed)),
            *(f"{age:.0f}" for age in ages),
        ]
        lines.append(f"| {rule} | {' | '.join(cells)} |")
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
    return f"{_short(row['ms_above_a_usual_tick'])}; {row['joiner_bytes'] / 1000:,.0f} KB"


def guide(results: Results) -> str:
    """The guide's table."""
    columns = [column for column in GUIDE_COLUMNS if column[1] in results]
    lines = [f"| scene | {' | '.join(name for name, _, _ in columns)} |", f"|---|{'---|' * len(columns)}"]
    for scene, what in GUIDE_SCENES.items():
        cells = [_guide_cell(results, scene, of, packed) for _, of, packed in columns]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    cells = [_guide_join(results, of) for _, of, _ in columns]
    what = "a client joins the third row's scene: extra server CPU time; bytes sent to the client"
    return "\n".join([*lines, f"| {what} | {' | '.join(cells)} |"]) + "\n"


def coding(results: Results) -> str:
    """The guide's table of plain and coded columns."""
    lines = [
        "| scene | age of acks, ticks | bytes per update: plain, coded | server CPU, ms: plain, coded |",
        "|---|---|---|---|",
    ]
    for scene in ("S1", "S5", "S2", "S2d", "S6b", "C901", "C901-100"):
        plain, coded = (_row(results, "tickwire", scene + kind) for kind in ("", " coded"))
        cells = [
            f"{_short(plain[name])}, {_short(coded[name])}" if name in plain and name in coded else "-"
            for name in ("bytes_an_update", "server_ms")
        ]
        what = GUIDE_SCENES | {
            "S6b": "10,000 ghosts, a tenth of them moving, each client sees about 70 of them",
            "C901-100": "the previous scene with a round trip of 100 ms",
        }
        lines.append(f"| {what[scene]} | {_age(results, scene)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _replaced(page: str, begin: str, numbers: str) -> str:
    """A page with these numbers between its marks."""
    before, mark, rest = page.partition(begin)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise SystemExit(f"{GUIDE} has no place for the numbers: put these lines there:\n{begin}{END}")
    return f"{before}{mark}\n{numbers}\n{end}{after}"


def _versions() -> dict[str, str]:
    """Of what rivals are built from."""
    lock = (HERE / "rivals" / "Cargo.lock").read_text()
    names = {"bevy_replicon": "bevy_replicon", "lightyear": "lightyear", "naia": "naia-server"}
    found = {name: re.search(f'name = "{crate}"\nversion = "(.*)"', lock) for name, crate in names.items()}
    return {name: match[1] for name, match in found.items() if match}


def main() -> None:
    results = json.loads(RESULTS.read_text())
    ages = ", ".join(f"{scene} {_age(results, scene)}" for scene in SCENES)
    parts = [
        HEAD.rstrip(),
        *([RIVALS.format(**_versions()).rstrip()] if "bevy_replicon" in results else []),
        f"## The scenes\n\nThe ack's age in ticks: {ages}.",
        _table(results, "server, ms a tick", "server_ms", 2),
        _table(results, "bytes an update", "bytes_an_update", 1),
        _table(results, "client, ms a tick", "client_ms", 2),
        _table(results, "age of what a client shows, 95 % below, ticks", "age_p95_ticks", 0),
        _table(results, "objects shown wrong, two seconds after all rest", "wrong_in_the_end", 0),
        _join(results),
        "## By round trip\n\nPlain and coded, with the ack's age in ticks.",
        _lines(results, "bytes an update", "bytes_an_update", 1),
        _lines(results, "server, ms a tick", "server_ms", 2),
        _lines(results, "client, ms a tick", "client_ms", 2),
        WORLDS.rstrip(),
        _worlds(results),
        PRESSURE.rstrip(),
        _pressure(results),
    ]
    (HERE / "RESULTS.md").write_text("\n\n".join(parts) + "\n")
    page = _replaced(GUIDE.read_text(), BEGIN, guide(results))
    GUIDE.write_text(_replaced(page, CODING, coding(results)))


if __name__ == "__main__":
    main()
