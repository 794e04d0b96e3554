"""Holds docs/parts.md to what there is, and runs the examples of docstrings."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
import tickwire as tw

PAGE = (Path(__file__).parents[2] / "docs" / "parts.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
PARTS = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (\[`.*?) \|", PAGE, re.M)))


def test_the_page_has_an_example_for_every_part() -> None:
    assert len(PARTS) >= 11
    code = "".join(BLOCKS)
    assert [name for name in PARTS if f"tw.{name}" not in code and name != "sequence_less"] == []


@pytest.mark.parametrize("name", PARTS)
def test_the_example_in_a_docstring_is_right(name: str) -> None:
    text = getattr(tw, name).__doc__
    test = doctest.DocTestParser().get_doctest(text, {**vars(tw)}, name, None, None)
    assert test.examples
    flags = doctest.IGNORE_EXCEPTION_DETAIL
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert result.failed == 0, "".join(report)
