"""Measures the Python boundary, gathers what `cargo bench` measured, and writes benches/results.json.

The file is a list of {"name", "unit", "value"}, sorted by name. Python's times are
the best of a few runs: whatever else the machine does only ever adds to them.
"""

from __future__ import annotations

import json
import os
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path

import boundary
import hooks
import player

ROOT = Path(__file__).resolve().parents[2]


def nanoseconds(call: Callable[[], object], *, per: int = 1, runs: int = 7) -> float:
    """The least time of one call, or of one of the `per` items it handles."""
    timer = timeit.Timer(call)
    number, _ = timer.autorange()
    number = max(1, number // 4)
    return min(timer.repeat(runs, number)) / number / per * 1e9


def measured_from_python() -> Iterator[dict[str, object]]:
    for name, (call, per) in {**boundary.cases(), **player.cases()}.items():
        yield {"name": f"python/{name}", "unit": "ns", "value": round(nanoseconds(call, per=per), 1)}
    for name, value in hooks.measured():
        yield {"name": f"python/{name}", "unit": "ns", "value": round(value, 2)}


def measured_by_criterion() -> Iterator[dict[str, object]]:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    for path in (target / "criterion").rglob("new/benchmark.json"):
        benchmark = json.loads(path.read_text())
        name = benchmark["full_id"]
        estimates = json.loads(path.with_name("estimates.json").read_text())
        value = (estimates["slope"] or estimates["mean"])["point_estimate"]
        # A run over many values counts one of them.
        value /= (benchmark["throughput"] or {}).get("Elements", 1)
        yield {"name": name, "unit": "ns", "value": round(value, 2)}


def main() -> None:
    results = sorted([*measured_from_python(), *measured_by_criterion()], key=lambda row: str(row["name"]))
    (ROOT / "benches" / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    width = max(len(str(row["name"])) for row in results)
    for row in results:
        print(f"{row['name']:<{width}}  {row['value']:>12,} {row['unit']}")


if __name__ == "__main__":
    main()
