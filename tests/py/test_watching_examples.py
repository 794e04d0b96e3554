"""Runs the examples of docs/watching.md, beside the README's game.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from test_loops_examples import ROOT, examples

PAGE = "docs/watching.md"
EXAMPLES = examples(PAGE)
PRINTS = {"watched.py": "watch with: tickwire top 127.0.0.1:", "metrics.py": "tickwire_clients{server="}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_to_its_end(tmp_path: Path, name: str) -> None:
    (tmp_path / "game.py").write_text(examples("README.md")["game.py"], "utf-8")
    (tmp_path / name).write_text(EXAMPLES[name], "utf-8")
    command = [sys.executable, "-W", "error", name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert PRINTS[name] in done.stdout


def test_every_example_says_its_file() -> None:
    assert EXAMPLES.keys() == PRINTS.keys()
    assert len(EXAMPLES) == (ROOT / PAGE).read_text("utf-8").count("```python")
