"""Writes the measurements: RESULTS.md for people, results.json for programs."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from tables import LINKS, summed_up

if TYPE_CHECKING:
    from run import Run

Row = dict[str, Any]

INTRODUCTION = """\
# Tickwire beside other libraries

Written by `make compare`; all numbers are of one run on one machine, over its loopback. The machine does
other things as well, so ratios between rows of a table say more than the numbers do. Floods and the
largest servers were repeated, contenders taking turns; what stands here are medians, and percentiles over
all runs together.
"""

ABOUT = {
    "flood": """\
## Flood: one way, as fast as they come

Messages of one 64-byte field, from a client in one process to a server in another, both in Python (the
floor's both native). The client sends batches of 256 and has at most 4,096 under way: the server tells it
with a message how many came. Processor time is user and system time of each process, per message that
arrived.
""",
    "reliable": """\
## Reliable: the same, and each must arrive, in order

No datagram is lost on the way here, other than by full buffers.
""",
    "ping": """\
## Ping-pong at 60 Hz

64 bytes there and back, sixty times a second. Event loops and sockets wake up when something arrives;
Tickwire is polled here each half millisecond, at both ends.
""",
    "servers": """\
## Servers of {0} clients

Each client sends 64 bytes and gets 200 bytes sixty times a second. The server is one process in Python, the
clients are all in one native process, their ticks spread over the server's. *Done after*: from when a tick
was due until its last message was sent; what else the machine does counts. *CPU of a tick*: the
server's processor time from one tick's end to the next's. *Held*: ticks done before the next was due.
""",
    "woken": """\
## Servers of {0} clients, woken by what arrives

As above, but between its ticks the server waits for its socket and does what there is to do whenever
something arrives, as on an event loop: takes what came, and sends what is due. Tickwire does what
`tickwire.aio` does, `step`, `receive`, `flush`; where a thread waits for the socket, the game looks 960
times a second. *Dropped by the system*: for want of room in the socket's buffer.
""",
    "bots": """\
## {0} clients in one process

Bots: clients in one process in Python, which waits for all their sockets and does for each what there is to
do when something arrived, as on an event loop. Each sends 64 bytes and is sent 200 bytes sixty times a
second by a server of the same library, in a process of its own.
""",
    "links": """\
## Over a link of {0}

Through `tickwire.testing.Proxy`: that rate, round trip time and loss in each direction, a queue of one
bandwidth-delay product. Blocks are sent over a connection that is up, from the call to the last byte in the
receiver's hands; ideal is bytes / rate + RTT. Latency is one way, of reliable-ordered 64-byte messages sent
sixty times a second over five links of one kind, eight seconds each; the link's own part is {1:.0f} ms.
*Arrived* is the share of all that were sent; what never came is in the percentiles with a minute. Both ends
act each millisecond or sooner.
""",
}


class Goal(NamedTuple):
    """What Tickwire wants: at most so much of a metric, divided by somebody else's if there is one."""

    sentence: str
    table: str
    metric: str
    beside: str | None
    most: float
    variant: str = "object"
    variant_beside: str = ""


WOKEN, BOTS = "woken/1000", "bots/1000"
SERVERS, CPU, RECEIVER = "servers/1000", "CPU of the server", "CPU of the receiver a message"
GOALS = (
    Goal("1,000 clients: CPU of a tick, p99 (ms)", SERVERS, "CPU of a tick p99", None, 16.0, "column"),
    Goal("1,000 clients: tick done after, p99 (ms)", SERVERS, "tick done after p99", None, 16.0, "column"),
    Goal("1,000 clients: CPU a message / the floor's", SERVERS, f"{CPU} a message", "floor", 1.5, "column"),
    Goal("1,000 clients: CPU a message / pyenet's", SERVERS, f"{CPU} a message", "pyenet", 1.0, "column"),
    Goal("1,000 clients: CPU a message / sockets'", SERVERS, f"{CPU} a message", "sockets", 1.0, "column"),
    Goal(
        "1,000 clients: CPU a message with a thread / polled",
        SERVERS,
        f"{CPU} a message",
        "tickwire",
        1.1,
        "column, thread",
        "column",
    ),
    Goal("woken by 1,000 clients: CPU a message / pyenet's", WOKEN, f"{CPU} a message", "pyenet", 0.9),
    Goal("woken by 1,000 clients: CPU a message / sockets'", WOKEN, f"{CPU} a message", "sockets", 1.2),
    Goal("1,000 bots: CPU a message / pyenet's", BOTS, "CPU of the bots a message", "pyenet", 0.9),
    Goal("flood: server CPU a message by object / pyenet's", "flood", RECEIVER, "pyenet", 1 / 1.3),
    Goal("flood: server CPU a message / pyenet's", "flood", RECEIVER, "pyenet", 1 / 5, "column"),
)


def full_name(name: str, variant: str) -> str:
    return f"{name} ({variant})" if variant else name


def rows(run: Run) -> list[Row]:
    """All results."""
    return [
        {
            "table": table,
            "contender": name,
            "variant": variant,
            "metric": metric,
            "unit": unit,
            "value": round(summed_up(metric, values), 4),
        }
        for (name, variant), measured in run.values.items()
        for (table, metric, unit), values in measured.items()
        if values
    ]


def number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def in_table(found: list[Row], table: str) -> list[str]:
    """Contenders down, metrics across."""
    mine = [row for row in found if row["table"] == table]
    metrics = list(dict.fromkeys((row["metric"], row["unit"]) for row in mine))
    names = list(dict.fromkeys((row["contender"], row["variant"]) for row in mine))
    lines = [
        "| | " + " | ".join(f"{metric} ({unit})" if unit else f"{metric}" for metric, unit in metrics) + " |"
    ]
    lines.append("|---|" + "---:|" * len(metrics))
    for name, variant in names:
        values = {
            row["metric"]: row["value"]
            for row in mine
            if (row["contender"], row["variant"]) == (name, variant)
        }
        cells = [number(values[metric]) if metric in values else "" for metric, _ in metrics]
        lines.append(f"| {full_name(name, variant)} | " + " | ".join(cells) + " |")
    return lines


def heading(table: str) -> str:
    kind, _, which = table.partition("/")
    round_trip = LINKS[which][1] * 500 if which in LINKS else 0.0
    return ABOUT[kind].format(which, round_trip)


def about(module: ModuleType, versions: dict[str, str]) -> str:
    packages = " ".join(f"{name} {versions[name]}" for name in module.REQUIRES if name in versions)
    return f"| {module.NAME} | {packages} | {module.GIVES} | {module.LACKS} |"


def goals(found: list[Row]) -> list[str]:
    values = {(row["table"], row["metric"], row["contender"], row["variant"]): row["value"] for row in found}
    lines = ["| | Tickwire | at most |", "|---|---:|---:|"]
    for goal in GOALS:
        ours = values.get((goal.table, goal.metric, "tickwire", goal.variant))
        beside = (goal.table, goal.metric, goal.beside, goal.variant_beside)
        theirs = values.get(beside) if goal.beside else 1.0
        if ours is not None and theirs:
            lines.append(f"| {goal.sentence} | {number(ours / theirs)} | {number(goal.most)} |")
    return lines


def write(folder: Path, run: Run, versions: dict[str, str], took: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    found = rows(run)
    (folder / "results.json").write_text(json.dumps(found, indent=1) + "\n")
    lines = [INTRODUCTION]
    lines.append(
        f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}; {took:.0f} s in all. "
        f"Others took {run.load:.1f} of the cores as it began; niceness {os.nice(0)}.\n"
    )
    lines += ["| | version | does | doesn't |", "|---|---|---|---|"]
    lines += [about(module, versions) for module in run.modules]
    lines += ["", "## What we want, by column and polled", "", *goals(found)]
    for table in dict.fromkeys(str(row["table"]) for row in found):
        lines += ["", heading(table), *in_table(found, table)]
    lines += ["", "## Not measured", ""]
    lines += not_measured(run)
    (folder / "RESULTS.md").write_text("\n".join(lines) + "\n")


def not_measured(run: Run) -> list[str]:
    """Each reason once, with the measurements that it is for."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for (name, variant, measurement), why in run.notes.items():
        grouped.setdefault((name, variant, why), []).append(measurement or "all")
    return [
        f"- {full_name(name, variant)}, {', '.join(where)}: {why}."
        for (name, variant, why), where in grouped.items()
    ]
