"""Holds docs/testing.md to what there is."""

from __future__ import annotations

import re
from pathlib import Path

from tickwire import testing

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def test_everything_is_told_of() -> None:
    page = PAGE.read_text("utf-8")
    told = "".join(re.findall(r"^```python\n.*?^```|`[^`]*`", page, re.M | re.S))
    assert [
        name
        for name in testing.__all__
        if name not in told and name not in ("Bottleneck", "Bursts", "Outages", "RandomWalk")
    ] == []
