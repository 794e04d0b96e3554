"""Instructions of fixed work, under valgrind's callgrind: the same on each run, however busy the machine is.

``python3 benches/instructions.py`` prints them. ``--against REVISION --most 1.03`` builds that revision
beside this tree and fails if anything takes more than that many times its instructions. A count can't see
caches and branches: a change made for speed is timed too.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Work(NamedTuple):
    """A program to run, and the function whose instructions count."""

    arguments: tuple[str, ...]
    function: str
    ticks: int


SERVE = "*World::serve*"
WOKEN = "*World::serve_woken*"
WORKS = {
    "a tick of 64 busy clients": Work(("busy", "64", "60"), SERVE, 60 + 30),
    "a tick of 1,000 idle clients": Work(("idle", "1000", "60"), SERVE, 60 + 30),
    "a wake for one of 1,000 clients": Work(("woken", "1000", "60"), WOKEN, 15 * 60),
}


def built(tree: Path, target: Path) -> Path | None:
    """The program of a tree, which is built for it; None if the tree is too old to have one."""
    if not (tree / "benches" / "endpoint" / "count.rs").is_file():
        return None
    command = ["cargo", "bench", "--bench", "count", "--no-run", "--message-format=json"]
    environment = os.environ | {"CARGO_TARGET_DIR": str(target)}
    run = subprocess.run(command, cwd=tree, env=environment, check=True, stdout=subprocess.PIPE)
    messages = (json.loads(line) for line in run.stdout.splitlines())
    programs = [said["executable"] for said in messages if said.get("target", {}).get("name") == "count"]
    return Path(programs[0])


def count(program: Path, work: Work) -> int:
    """Instructions of one tick, or wake, on average, those in which all connect included."""
    callgrind = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        f"--toggle-collect={work.function}",
    ]
    command = [*callgrind, str(program), *work.arguments]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    found = re.search(r"Collected : (\d+)", said)
    if found is None or found[1] == "0":
        raise SystemExit(f"callgrind counted nothing in {work.function}:\n{said}")
    return int(found[1]) // work.ticks


def built_of(revision: str) -> Path | None:
    """As :func:`built`, of another revision's files, which are beside this tree's build meanwhile."""
    target = ROOT / "target" / "instructions"
    tree = target / "tree"
    subprocess.run(
        ["git", "worktree", "add", "--force", "--detach", str(tree), revision], cwd=ROOT, check=True
    )
    try:
        return built(tree, target)
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)


def main() -> None:
    """Counts, compares and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="REVISION", help="compare with another revision")
    parser.add_argument(
        "--most", type=float, default=1.03, help="as many times its instructions are too many"
    )
    arguments = parser.parse_args()

    program = built(ROOT, ROOT / "target")
    assert program is not None
    base = built_of(arguments.against) if arguments.against else None
    if arguments.against and base is None:
        print(f"{arguments.against} has no program to count: nothing is compared")
    failed = False
    for name, work in WORKS.items():
        now = count(program, work)
        line = f"{name:32} {now:12,}"
        if base is not None:
            before = count(base, work)
            failed |= now > before * arguments.most
            line += f" {before:12,} {now / before:6.3f}"
        print(line, flush=True)
    if failed:
        sys.exit(f"more than {arguments.most} times the instructions of {arguments.against}")


if __name__ == "__main__":
    main()
