"""``make fleet``: what happens to the players of a fleet when machines go, in virtual time; writes
RESULTS.md."""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import simulated

HERE = Path(__file__).parent
HEAD = """# A fleet in virtual time

{machines} machines, {rooms} rooms, {players} players, {seeds} seeds;
30 ± 5 ms with 1 % loss, {rate} ticks a second. The engine sees a lost machine after {detection:g} s
and begins a room within {start:g} s; players notice silence after {timeout} s. A pause is the time in
which a player's own avatar stands still, of players who had one above half a second. The worst of the
seeds is shown; CPU is the mean. Made by `make fleet`.

| scene | matches lost | affected | pause p50; p99; longest (s) | world's age (s) | two processes | CPU (s) |
|---|---|---|---|---|---|---|
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Plays all scenes."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("machines", 20), ("rooms", 200), ("players", 3000), ("seeds", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args(arguments)
    text = HEAD.format(
        **vars(given),
        rate=simulated.RATE,
        detection=simulated.DETECTION,
        start=simulated.START,
        timeout=simulated.TIMEOUT,
    )
    for scene in simulated.SCENES:
        played, begun = [], time.process_time()
        for seed in range(1, given.seeds + 1):
            played.append(simulated.play(scene, given.machines, given.rooms, given.players, seed))
            gc.collect()  # the fleet, some gigabytes
        worst = {name: max(getattr(each, name) for each in played) for name in simulated.Outcome.__slots__}
        line = (
            f"| {scene} | {worst['lost']} | {worst['affected']} | {worst['pause_p50']:.2f}; "
            f"{worst['pause_p99']:.2f}; {worst['pause_max']:.2f} | {worst['steps_back']:.2f} | "
            f"{worst['doubled']} | {(time.process_time() - begun) / given.seeds:.0f} |\n"
        )
        print(line, end="", flush=True)
        text += line
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    text += f"\nIt took {time.process_time() / 60:.0f} minutes on one core and {peak:.1f} GB of memory.\n"
    (HERE / "RESULTS.md").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
