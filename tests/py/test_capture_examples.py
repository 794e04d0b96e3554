"""Runs the examples of docs/capture.md, in their order, beside the README's game.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from test_loops_examples import ROOT, examples

PAGE = "docs/capture.md"
EXAMPLES = examples(PAGE)
PRINTS = {"record.py": " packets, ", "opened.py": " opened, 0 still sealed", "replay.py": "this is captured"}


def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    (tmp_path / "game.py").write_text(examples("README.md")["game.py"], "utf-8")
    for name, code in EXAMPLES.items():
        (tmp_path / name).write_text(code, "utf-8")
        command = [sys.executable, "-W", "error", name]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, ""), name
        assert PRINTS[name] in done.stdout


def test_every_example_says_its_file() -> None:
    assert EXAMPLES.keys() == PRINTS.keys()
    assert len(EXAMPLES) == (ROOT / PAGE).read_text("utf-8").count("```python")
