"""Holds the pages on fields to what there is."""

from __future__ import annotations

import re
from pathlib import Path

from tickwire import fields

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join((DOCS / name).read_text("utf-8") for name in ("fields.md", "converters.md"))


def test_every_field_is_on_the_page() -> None:
    ranges = {"u16", "u32", "u64", "i16", "i32", "Vec2", "Vec3", "Quaternion", "Transform", "FieldType"}
    for name in fields.__all__:
        assert name in ranges or re.search(rf"tw\.(fields\.)?{name}\b", PAGE), name
