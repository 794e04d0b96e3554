"""Which tests are left out where Python has no GIL."""

from __future__ import annotations

import ast
from pathlib import Path

from conftest import NEED_A_GIL

HERE = Path(__file__).parent
NOT_TO_BE_HAD = {"lupa", "pygame"}


def imported(path: Path, seen: set[Path]) -> set[str]:
    """What a file imports when it is collected, by way of its neighbours, too."""
    seen.add(path)
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    for name in list(names):
        neighbour = HERE / f"{name}.py"
        if neighbour.exists() and neighbour not in seen:
            names |= imported(neighbour, seen)
    return names


def test_all_that_import_what_turns_the_gil_on_are_left_out() -> None:
    """One that isn't fails to be collected there, and with it the whole run."""
    files = sorted(HERE.glob("test_*.py"))
    assert [file.name for file in files if imported(file, set()) & NOT_TO_BE_HAD] == NEED_A_GIL
