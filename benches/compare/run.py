"""Measures Tickwire beside what else there is, and writes RESULTS.md and results.json: ``make compare``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).parent))

import contenders
import report
import tables
from processes import FailedError, build_swarm, install, missing, versions


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="With COMPARE_PYTHON in the environment, that interpreter runs the contenders, those that it "
        "has, and nothing is installed.",
    )
    parser.add_argument("--quick", action="store_true", help="each once and briefly, to see that all works")
    parser.add_argument(
        "--only", default="", metavar="NAMES", help="tables and contenders, separated by commas: flood,pyenet"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="where the results go")
    return parser.parse_args()


class Run:
    """One comparison: the measurements, and those that failed."""

    def __init__(self, plan: tables.Plan, only: set[str]) -> None:
        self.plan = plan
        modules = [contenders.load(name) for name in contenders.MODULES]
        names = {module.NAME for module in modules}
        table_names = {measurement.table for measurement in tables.measurements(plan)}
        if unknown := only - names - table_names:
            known = ", ".join(sorted(names | table_names))
            raise SystemExit(f"--only knows {known}; not {', '.join(sorted(unknown))}")
        self.modules = [module for module in modules if not only & names or module.NAME in only]
        self.tables = only & table_names or table_names
        self.load = os.getloadavg()[0]
        """How many others wanted the machine's cores when it began."""
        self.values: dict[tuple[str, str], tables.Values] = {}
        self.notes: dict[tuple[str, str, str], str] = {}
        """Why something was not measured: by contender, variant, measurement or its kind ('' for all)."""

    def prepare(self) -> list[tuple[ModuleType, str]]:
        if {"servers", "woken"} & self.tables or any(module.NATIVE for module in self.modules):
            build_swarm()
        failed = install(self.modules)
        ready = []
        for module in self.modules:
            for variant in module.VARIANTS:
                try:
                    why = missing(module, variant)
                    # Why it is not installed says more.
                    why = why and failed.get(module.NAME, why)
                except FailedError as failure:
                    why = str(failure)
                if why:
                    self.notes[(module.NAME, variant, "")] = why
                else:
                    ready.append((module, variant))
        return ready

    def measure(self) -> None:
        ready = self.prepare()
        for measurement in tables.measurements(self.plan):
            if measurement.table not in self.tables:
                continue
            began = time.monotonic()
            # Interleaved, so that what else the machine does falls on all of them.
            for _ in range(measurement.repeats):
                for module, variant in ready:
                    self.once(measurement, module, variant)
            print(f"{measurement.name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    def once(self, measurement: tables.Measurement, module: ModuleType, variant: str) -> None:
        key = (module.NAME, variant, measurement.name)
        if key in self.notes:
            return
        if why := measurement.why_not(module, variant):
            self.notes[(module.NAME, variant, measurement.kind)] = why
            return
        try:
            values = measurement.run(module, variant, self.plan)
        except FailedError as failure:
            self.notes[key] = f"failed: {failure}"
            return
        except Exception as error:
            # Whatever it is that went wrong with this one, the others are still to be measured.
            self.notes[key] = f"failed: {error!r}"
            return
        mine = self.values.setdefault((module.NAME, variant), {})
        for metric, more in values.items():
            mine.setdefault(metric, []).extend(more)


def main() -> None:
    options = arguments()
    plan = tables.QUICK if options.quick else tables.FULL
    run = Run(plan, {name for name in options.only.split(",") if name})
    began = time.monotonic()
    run.measure()
    report.write(options.out, run, versions(), time.monotonic() - began)


if __name__ == "__main__":
    main()
