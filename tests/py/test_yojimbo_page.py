"""Holds the pages on yojimbo to what there is."""

from __future__ import annotations

from pathlib import Path

import tickwire as tw

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join((DOCS / name).read_text("utf-8") for name in ("yojimbo.md", "yojimbo_calls.md"))


def test_every_call_is_on_the_page() -> None:
    calls = [name for name in dir(tw.messages.Stream) if name.startswith("serialize_")]
    assert len(calls) > 15
    for name in calls:
        assert f"{name}" in PAGE, name


def test_every_reason_is_on_the_page() -> None:
    for name in ("READ_PACKET_FAILED", "FAILED_TO_SERIALIZE", "DESYNC"):
        assert name in tw.DisconnectReason.__members__
        assert name in PAGE
