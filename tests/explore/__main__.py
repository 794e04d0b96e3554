"""``make explore``: plays random games until the time is over, or one of them breaks."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from itertools import count

from soak.session import memory

from explore.runner import SECONDS, explore

MAX_MEGABYTES = 512.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="explore", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the first game (default 1)")
    parser.add_argument("--games", type=int, metavar="N", help="how many; each has the next seed")
    parser.add_argument("--seconds", type=float, metavar="S", help="or for how long")
    parser.add_argument("--hours", type=float, metavar="H", help="or how many virtual hours")
    parser.add_argument("--only", type=int, metavar="N", help="only the game of this seed")
    parser.add_argument("--features", metavar="A,B", help="with these features alone, not random ones")
    parser.add_argument("--go-on", action="store_true", help="go on when a game breaks")
    options = parser.parse_args()
    games = options.games
    if options.hours is not None:
        games = round(options.hours * 3600 / SECONDS)
    if games is None and options.seconds is None:
        games = 50
    names = options.features.split(",") if options.features else None
    began, played, broken, faults = time.monotonic(), 0, 0, Counter[str]()
    for seed in [options.only] if options.only is not None else count(options.seed):
        if played == games or time.monotonic() - began > (options.seconds or float("inf")):
            break
        played += 1
        result = explore(seed, names)
        if result is not None:
            print(result.describe(), flush=True)
            broken += 1
            faults.update(result.faults.keys())
            if not options.go_on:
                break
        if memory() > MAX_MEGABYTES:
            print(f"the process took {memory():.0f} MiB of memory by seed {seed}")
            return 1
    print(f"{played} games in {time.monotonic() - began:.0f} s, {broken} broke; {memory():.0f} MiB at most")
    for fault, times in faults.most_common():
        print(f"{times:5} {fault}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
