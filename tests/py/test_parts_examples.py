"""Holds docs/parts.md to what there is, and runs the examples of docstrings."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
import tickwire as tw
from public import EVERY_NAME

PAGE = (Path(__file__).parents[2] / "docs" / "parts.md").read_text("utf-8")
PARTS = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (\[`.*?) \|", PAGE, re.M)))


def test_the_page_has_an_example_for_every_part() -> None:
    assert len(PARTS) >= 11
    shown = set(re.findall(r"\btw\.(?:articles\.|testing\.)?(\w+)", PAGE))
    assert set(PARTS) - shown == {"sequence_less"}


def test_the_module_of_the_parts_has_all_of_them() -> None:
    games_too = {"Address"}
    assert set(PARTS) - games_too <= set(tw.articles.__all__)


@pytest.mark.parametrize("name", [*PARTS, "ConnectToken", "Link"])
def test_the_example_in_a_docstring_is_right(name: str) -> None:
    text = EVERY_NAME[name].__doc__
    test = doctest.DocTestParser().get_doctest(text, {**EVERY_NAME}, name, None, None)
    assert test.examples
    flags = doctest.IGNORE_EXCEPTION_DETAIL
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert result.failed == 0, "".join(report)
