"""The tutorial: each chapter's program is played, its table is what was measured, and its window opens."""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def trial() -> Any:
    sys.path.insert(0, str(DOCS / "tutorial"))
    try:
        return importlib.import_module("trial")
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def results(trial: Any) -> list[Any]:
    return [trial.result(chapter) for chapter in trial.CHAPTERS]


def test_the_tables_are_what_was_measured(trial: Any) -> None:
    for chapter in trial.CHAPTERS:
        table = trial.TABLE.search(chapter.read_text("utf-8"))
        assert table is not None
        assert table[1] == trial.rows(chapter), f"{chapter.name}: python docs/tutorial/trial.py --write"


def test_each_chapter_changes_what_it_says(results: list[Any]) -> None:
    naive, ghosts, inputs, seeing, prediction, hits, calls = results
    assert sum(ghosts.kbps) < 0.8 * sum(naive.kbps)
    lost = [sum(abs(run - 50) > 1 for run in each.runs()) for each in (ghosts, inputs)]
    assert lost[1] < lost[0] / 2, "presses that weren't 50 steps"
    assert seeing.jumps() < inputs.jumps() / 10
    assert sorted(seeing.waits())[len(seeing.waits()) // 2] >= 4
    assert max(prediction.waits()) == 0
    assert prediction.hits[-1] < 0.2 * prediction.fired
    assert hits.hits[-1] > 0.95 * hits.fired
    assert hits.splashes[-1] < hits.hits[-1]
    assert calls.splashes[-1] == calls.hits[-1]


def test_the_arena_is_at_most_a_hundred_lines_of_networking(trial: Any) -> None:
    lines = [trial.networking_lines(chapter) for chapter in trial.CHAPTERS]
    assert lines == sorted(lines)
    assert 40 < lines[-1] <= 100


def test_the_pictures_are_drawn_of_these_runs() -> None:
    pytest.importorskip("docutils")
    sys.path.insert(0, str(DOCS))
    try:
        charts = importlib.import_module("charts")
    finally:
        sys.path.pop(0)
    pages = "".join(page.read_text("utf-8") for page in charts.trial.CHAPTERS)
    for name, make in charts.CHARTS.items():
        assert pages.count(f":::{{chart}} {name}\n") == 1
        drawn = charts.draw(make(), "A caption")
        assert "<polyline" in drawn or "<circle" in drawn
        assert "nan" not in drawn


@pytest.mark.parametrize("number", [1, 7])
def test_the_window_of_a_chapter_opens(trial: Any, tmp_path: Path, number: int) -> None:
    pytest.importorskip("pygame")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_port:
        any_port.bind(("127.0.0.1", 0))
        port = any_port.getsockname()[1]
    for name, text in trial.files(trial.CHAPTERS[number - 1]).items():
        (tmp_path / name).write_text(text.replace("40000", str(port)), "utf-8")
    done = subprocess.run(
        [sys.executable, "window.py", "1"],
        cwd=tmp_path,
        env=os.environ | {"SDL_VIDEODRIVER": "dummy", "PYGAME_HIDE_SUPPORT_PROMPT": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
