"""Where the time of a server of 1,000 clients goes, part by part, beside what the floor takes for the same
datagrams. Needs Linux, ``perf``, and what ``make compare`` has built: ``.venv/bin/python
benches/compare/profile.py``."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import contenders
import tables
from processes import build_swarm

CLIENTS, SECONDS = 1000, 6.0

CALLS = {
    "system: sendmmsg": r"__x64_sys_send",
    "of it, delivery over the loopback": r"__local_bh_enable_ip",
    "system: recvmmsg": r"__x64_sys_recv",
}
"""Parts by a function that all of their samples are in."""

PARTS = {
    "seal and open": r"ring_core|ring::|netcode::(crypto|sealer|opener)",
    "netcode: addresses, replays, packets": r"netcode::",
    "acks, estimates, congestion": r"transport::(ack|estimate|congestion|in_flight|fates|fragment|pacing)",
    "rows to bits and back": r"\bwire::|python::arrays|inbox::",
    "channels, packets, connections": r"transport::|endpoint::|store::",
    "driver": r"driver::",
}
"""Parts of the extension by what its functions' names have, first match first."""


def report(data: Path, children: str) -> list[tuple[float, str, str]]:
    """Shares of samples by function and its place."""
    command = ["perf", "report", "-i", str(data), children, "-g", "none", "--sort", "dso,symbol", "-t", "|"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if "|[" in line]
    found = []
    for row in rows:
        # Behind one share, or two, of which the first counts its callees too.
        at = next(at for at, cell in enumerate(row) if re.match(r"\[[k.]\]", cell))
        found.append((float(row[0].rstrip("%")), row[at - 1], row[at]))
    return found


def shares(data: Path) -> dict[str, float]:
    """Percent of the samples, by part."""
    found = dict.fromkeys(
        [*CALLS, "system: the rest", *PARTS, "the extension's rest", "copies, libc", "Python, NumPy"], 0.0
    )
    for share, _, symbol in report(data, "--children"):
        for part, function in CALLS.items():
            if re.search(rf"{function}\w*$", symbol):
                found[part] = max(found[part], share)
    for share, where, symbol in report(data, "--no-children"):
        if "kernel" in where:
            found["system: the rest"] += share
        elif "_core" in where:
            part = next(
                (part for part, name in PARTS.items() if re.search(name, symbol)), "the extension's rest"
            )
            found[part] += share
        else:
            found["copies, libc" if "libc" in where else "Python, NumPy"] += share
    found["system: the rest"] -= found["system: sendmmsg"] + found["system: recvmmsg"]
    return found


def measured(name: str, variant: str, watch: Callable[[int], None] = lambda _pid: None) -> float:
    """Microseconds of the server's processor a message."""
    plan = replace(tables.FULL, server_seconds=SECONDS)
    values = tables.servers(contenders.load(name), variant, plan, CLIENTS, watch)
    return values[(f"servers/{CLIENTS}", "CPU of the server a message", tables.MICROSECONDS)][0]


def main() -> None:
    build_swarm()
    floor = measured("floor", "")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"

        def record(pid: int) -> None:
            perf = ["perf", "record", "-F", "2000", "-g", "-o", str(data), "-p", str(pid)]
            subprocess.run([*perf, "--", "sleep", str(SECONDS - 1)], check=True, capture_output=True)

        a_message = measured("tickwire_messages", "column", record)
        found = shares(data)
    print(f"{CLIENTS:,} clients: {a_message:.2f} µs a message, of the floor {floor:.2f} µs\n")
    print("| part | % | µs a message |\n|---|---:|---:|")
    for part, share in found.items():
        print(f"| {part} | {share:.1f} | {share / 100 * a_message:.2f} |")


if __name__ == "__main__":
    main()
