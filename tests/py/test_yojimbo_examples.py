"""Runs the examples of docs/yojimbo.md, and holds its table to what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import tickwire as tw

PAGE = (Path(__file__).parents[2] / "docs" / "yojimbo.md").read_text("utf-8")
EXAMPLES: dict[str, str] = dict(re.findall(r"^```python\n# (\S+)\n(.*?)^```", PAGE, re.M | re.S))


def test_the_bot_plays_with_the_server(tmp_path: Path) -> None:
    assert list(EXAMPLES) == ["game.py", "server.py", "yojimbo_bot.py"]
    for name, text in EXAMPLES.items():
        (tmp_path / name).write_text(text, "utf-8")
    with subprocess.Popen([sys.executable, "-W", "error", "server.py"], cwd=tmp_path) as server:
        try:
            command = [sys.executable, "-W", "error", "yojimbo_bot.py"]
            done = subprocess.run(
                command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
            )
        finally:
            server.kill()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "level 1 of 100000 bytes\nthanks\n"


def test_every_call_is_on_the_page() -> None:
    calls = [name for name in dir(tw.Stream) if name.startswith("serialize_")]
    assert len(calls) > 15
    for name in calls:
        assert f"{name}" in PAGE, name


def test_every_reason_is_on_the_page() -> None:
    for name in ("READ_PACKET_FAILED", "FAILED_TO_SERIALIZE", "DESYNC"):
        assert name in tw.DisconnectReason.__members__
        assert name in PAGE
