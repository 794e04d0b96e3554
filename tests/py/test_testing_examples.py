"""Runs the examples of docs/testing.md, beside the README's game.py."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tickwire import testing

ROOT = Path(__file__).parents[2]


def examples(page: str) -> dict[str, str]:
    text = (ROOT / page).read_text("utf-8")
    return dict(re.findall(r"^```python\n# (\S+)\n(.*?)^```", text, re.M | re.S))


EXAMPLES = examples("docs/testing.md")


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_to_its_end(tmp_path: Path, name: str) -> None:
    (tmp_path / "game.py").write_text(examples("README.md")["game.py"], "utf-8")
    (tmp_path / name).write_text(EXAMPLES[name], "utf-8")
    python = [sys.executable, "-W", "error"]
    command = [*python, "-m", "pytest", name] if name.startswith("test_") else [*python, name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_every_example_says_its_file_and_everything_is_told_of() -> None:
    page = (ROOT / "docs/testing.md").read_text("utf-8")
    assert len(EXAMPLES) == page.count("```python") > 3
    told = "".join(EXAMPLES.values()) + "".join(re.findall(r"`([^`]*)`", page))
    assert [name for name in testing.__all__ if name not in told and name not in ("Bursts", "Outages")] == []
