"""Runs the examples of docs/loops.md, beside the README's game.py."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def examples(page: str) -> dict[str, str]:
    text = (ROOT / page).read_text("utf-8")
    return dict(re.findall(r"^```python\n# (\S+)\n(.*?)^```", text, re.M | re.S))


EXAMPLES = examples("docs/loops.md")
PRINTS = {"thread.py": "Chat(sender=0, text='welcome')", "bot.py": "Chat(sender=0, text='hello')"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_to_its_end(tmp_path: Path, name: str) -> None:
    (tmp_path / "game.py").write_text(examples("README.md")["game.py"], "utf-8")
    (tmp_path / name).write_text(EXAMPLES[name], "utf-8")
    command = [sys.executable, "-W", "error", name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert PRINTS.get(name, "") in done.stdout


def test_every_example_says_its_file() -> None:
    assert len(EXAMPLES) == (ROOT / "docs/loops.md").read_text("utf-8").count("```python") > 3
