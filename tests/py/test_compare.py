"""The comparison with other libraries runs, and writes its files."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

COMPARE = Path(__file__).parents[2] / "benches" / "compare"
LINK = "links/10 Mbit/s 50 ms 2 %"
LOSSY_LINK = "links/10 Mbit/s 50 ms 5 %"
VARIANTS = ["object", "column", "object, thread", "column, thread"]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch):
    """Imports modules of the comparison."""
    monkeypatch.syspath_prepend(str(COMPARE))
    return importlib.import_module


def run(folder: Path, only: str) -> list[dict[str, object]]:
    """A quick run with the installed libraries."""
    command = [sys.executable, str(COMPARE / "run.py"), "--quick", "--only", only, "--out", str(folder)]
    environment = {**os.environ, "COMPARE_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "results.json").read_text("utf-8"))


def test_a_quick_run_writes_rows_of_all_that_took_part(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    rows = run(tmp_path, "tickwire,sockets,flood,links")
    for row in rows:
        assert set(row) == {"table", "contender", "variant", "metric", "unit", "value"}
        assert all(isinstance(row[name], str) for name in set(row) - {"value"})
        assert isinstance(row["value"], float)
        assert row["value"] >= 0
    values = {(row["table"], row["contender"], row["variant"], row["metric"]): row["value"] for row in rows}
    assert len(values) == len(rows), "none twice"
    assert values["flood", "sockets", "", "delivered"] > 0
    for variant in VARIANTS:
        assert values["flood", "tickwire", variant, "delivered"] > 0
    for variant in ("object", "column"):
        assert 25 <= values[LOSSY_LINK, "tickwire", variant, "latency p50"] < 1000
        assert values[LOSSY_LINK, "tickwire", variant, "arrived"] == 100
    assert values[LINK, "tickwire", "object", "block of 256 KiB, times ideal"] > 0.9
    page = (tmp_path / "RESULTS.md").read_text("utf-8")
    assert "- sockets, latency over links, blocks over links: it has no reliable messages." in page
    assert "CPU a message by object / pyenet's" not in page, "who was not measured is not compared with"


def test_every_contender_says_what_it_does_and_what_it_does_not(module) -> None:
    contenders: ModuleType = module("contenders")
    tables: ModuleType = module("tables")
    named = {file.stem for file in (COMPARE / "contenders").glob("*.py")}
    assert named == {*contenders.MODULES, "__init__", "endpoint", "tickwire_columns"}
    for name in contenders.MODULES:
        contender = contenders.load(name)
        assert contender.GIVES
        assert contender.LACKS
        for variant in contender.VARIANTS:
            for measurement in tables.measurements(tables.FULL):
                why = measurement.why_not(contender, variant)
                assert why is None or re.fullmatch(r".{10,}[^.]", why), (name, variant, measurement.name)


def test_all_tables_are_measured(module) -> None:
    tables: ModuleType = module("tables")
    names = [measurement.name for measurement in tables.measurements(tables.FULL)]
    assert names == [
        "flood",
        "reliable",
        "ping",
        "64 clients",
        "256 clients",
        "1000 clients",
        "1000 clients, woken",
        "1000 bots",
        *(f"latency at {link}, seed {seed}" for link in tables.FULL.latency_links for seed in range(1, 6)),
        *(name for link in tables.FULL.links for name in (f"256 KiB at {link}", f"4096 KiB at {link}")),
    ]


def test_latency_over_lossy_links_counts_what_never_came(module) -> None:
    tables: ModuleType = module("tables")
    plan = tables.FULL
    assert plan.latency_seeds * plan.latency_seconds * 60 >= 2400
    assert all(tables.LINKS[link][2] == 0.05 for link in plan.latency_links)
    # Three of a hundred never came: the 99th percentile is among those.
    times = [25.0] * 97 + [tables.NEVER] * 3
    assert tables.summed_up("latency p50", times) == 25
    assert tables.summed_up("latency p99", times) == tables.NEVER
    assert tables.summed_up("arrived", [100.0, 94.0]) == 97


def test_who_fails_leaves_the_others_to_be_measured(module, monkeypatch: pytest.MonkeyPatch) -> None:
    script, tables = module("run"), module("tables")
    contenders = module("contenders")

    def measured(
        contender: ModuleType, _variant: str, _plan: object
    ) -> dict[tuple[str, str, str], list[float]]:
        if contender.NAME == "pyenet":
            raise KeyError("cpu")
        return {("flood", "delivered", "1/s"): [1.0]}

    one = tables.Measurement("flood", "flood", "flood", measured, tables.everyone, 2)
    monkeypatch.setattr(tables, "measurements", lambda _plan: iter([one]))
    comparison = script.Run(tables.QUICK, {"flood"})
    ready = [(contenders.load(name), "") for name in ("pyenet", "sockets")]
    monkeypatch.setattr(comparison, "prepare", lambda: ready)
    comparison.measure()
    assert comparison.values == {("sockets", ""): {("flood", "delivered", "1/s"): [1.0, 1.0]}}
    assert comparison.notes == {("pyenet", "", "flood"): "failed: KeyError('cpu')"}
