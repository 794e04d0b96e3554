"""Runs the examples of docs/fields.md, and holds its table to what there is."""

from __future__ import annotations

import re
from pathlib import Path

import tickwire as tw
from tickwire import fields

PAGE = (Path(__file__).parents[2] / "docs" / "fields.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)


def test_the_examples_of_the_page_run() -> None:
    assert len(BLOCKS) == 2
    names = {"__name__": "example"}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"docs/fields.md, example {number}", "exec", dont_inherit=True), names)


def test_every_field_is_on_the_page() -> None:
    ranges = {"u16", "u32", "u64", "i16", "i32", "Vec2", "Vec3", "Quaternion", "Transform", "FieldType"}
    for name in fields.__all__:
        assert name in tw.__all__
        assert name in ranges or f"tw.{name}" in PAGE, name
