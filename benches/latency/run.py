"""Measures what hides latency, in virtual time; writes results.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import predicting
import projectiles
import reaching
import stalls
import timing
import views

FOLDER = Path(__file__).parent


def main() -> None:
    results: dict[str, Any] = {
        "timing": timing.rows(),
        "predicting": predicting.rows(),
        "reaching": reaching.rows(),
        "stalls": stalls.rows(),
        "projectiles": projectiles.rows(),
        "costs_in_thread_cpu": predicting.costs(),
        "views": views.rows(),
    }
    (FOLDER / "results.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    for name, rows in results.items():
        print(name)
        for row in rows if isinstance(rows, list) else [rows]:
            print("  ", row)


if __name__ == "__main__":
    main()
