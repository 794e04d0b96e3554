"""What an idle room costs: a process with one room at 30 ticks a second and no players, beside a bare
Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SECONDS = 20
BARE = "import time; print('ready', flush=True); time.sleep(60)"
ROOM = """
import tickwire as tw
from tickwire import fleet

@tw.message
class Walk:
    x: tw.i8

@tw.ghost
class Walker:
    x: tw.i32 = 0

@fleet.room(tw.Protocol(1, [], ghosts=[Walker], inputs=Walk, tick_rate=30))
class Room:
    def __init__(self, server):
        print("ready", flush=True)
    def tick(self, inbox):
        pass

fleet.serve(Room, "idle", "127.0.0.1:0", store=fleet.MemoryStore())
"""


def cost(code: str) -> tuple[float, float]:
    """Megabytes of memory of its own, and the share of a core in percent."""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        subprocess.run(["sleep", "2"], check=True)
        before = _cpu(process.pid)
        subprocess.run(["sleep", str(SECONDS)], check=True)
        used = _cpu(process.pid) - before
        memory = _memory(process.pid)
        process.terminate()
    return memory, 100 * used / SECONDS


def _cpu(pid: int) -> float:
    """Seconds, from the scheduler's own clock in nanoseconds, of all threads."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def _memory(pid: int) -> float:
    """Private memory: what another room beside it would cost again."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    private = [line.split() for line in lines if line.startswith("Private_")]
    return sum(int(line[1]) for line in private) / 1024


def main() -> None:
    """Measures and prints."""
    bare, _ = cost(BARE)
    memory, share = cost(ROOM)
    print(f"bare Python {bare:.1f} MB; an idle room {memory:.1f} MB, {memory - bare:.1f} MB more")
    print(f"{share:.3f} % of a core at 30 ticks a second")


if __name__ == "__main__":
    main()
