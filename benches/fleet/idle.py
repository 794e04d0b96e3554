"""What an empty room costs: a process with one room of 30 ticks a second and no players, beside a bare Python
that only sleeps, 30 times a second too. It measures the build that is installed: publish figures of the
profile ``wheel``."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

SECONDS = 20
BARE = """
import time
print("ready", flush=True)
while True:
    time.sleep(1 / 30)
"""
ROOM = """
import tickwire as tw
from tickwire import fleet

@tw.message
class Walk:
    x: tw.i8

@tw.ghost
class Walker:
    x: tw.i32 = 0

@fleet.room(tw.Protocol(1, [], ghosts=[Walker], inputs=Walk, tick_rate=30)OPTIONS)
class Room:
    def __init__(self, server):
        print("ready", flush=True)
    def tick(self, inbox):
        pass

fleet.serve(Room, "idle", "127.0.0.1:0", store=fleet.MemoryStore())
"""
CODES = {
    "bare Python that sleeps": BARE,
    "an empty room": ROOM.replace("OPTIONS", ""),
    "an empty room with empty_rate=30": ROOM.replace("OPTIONS", ", empty_rate=30"),
}


def cost(code: str) -> tuple[float, float, float]:
    """Megabytes of memory of the first process and of one more beside it; the share of a core in percent."""
    # Python's caches of compiled modules, as an image has them: compiling takes memory that stays.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with ExitStack() as stack:
        _begin(stack, code, kept)  # fills the caches
    with ExitStack() as stack:
        first = _begin(stack, code, kept)
        before = _cpu(first)
        subprocess.run(["sleep", str(SECONDS)], check=True)
        share = 100 * (_cpu(first) - before) / SECONDS
        alone = _memory(first)
        _begin(stack, code, kept)
        return alone, _memory(first), share


def _begin(stack: ExitStack, code: str, environment: dict[str, str]) -> int:
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
    stack.enter_context(process)
    stack.callback(process.terminate)
    assert process.stdout is not None
    process.stdout.readline()
    subprocess.run(["sleep", "2"], check=True)
    return process.pid


def _cpu(pid: int) -> float:
    """Seconds, from the scheduler's own clock in nanoseconds, of all threads."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def _memory(pid: int) -> float:
    """Private memory. Once another process has the same libraries, what a further one would cost again."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    private = [line.split() for line in lines if line.startswith("Private_")]
    return sum(int(line[1]) for line in private) / 1024


def main() -> None:
    """Measures and prints."""
    bare = None
    for name, code in CODES.items():
        alone, beside, share = cost(code)
        bare = bare or (alone, beside)
        print(
            f"{name}: {alone:.1f} MB, {alone - bare[0]:.1f} more than bare Python; beside another one "
            f"{beside:.1f} MB, {beside - bare[1]:.1f} more; {share:.3f} % of a core",
            flush=True,
        )


if __name__ == "__main__":
    main()
