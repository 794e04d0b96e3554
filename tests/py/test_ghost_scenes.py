"""The scenes of `benches/ghosts` in NumPy are those of the Rust benches."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")
FOLDER = Path(__file__).parents[2] / "benches" / "ghosts"


def test_the_first_hundred_ticks_are_those_that_rust_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("scene", FOLDER / "scene.py")
    assert spec is not None
    assert spec.loader is not None
    scene = importlib.util.module_from_spec(spec)
    # Its dataclass looks for its module there.
    monkeypatch.setitem(sys.modules, "scene", scene)
    spec.loader.exec_module(scene)
    assert scene.checksums() == (FOLDER / "checksums.txt").read_text()
