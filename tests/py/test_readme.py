"""Runs the examples of the README as a newcomer would: each in a file of its own, in processes of their own."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

README = Path(__file__).parents[2] / "README.md"
PATIENCE = 60.0


def examples() -> dict[str, str]:
    """The README's Python blocks by the file name in their first line."""
    blocks = re.findall(r"^```python\n# (\S+)\n(.*?)^```", README.read_text("utf-8"), re.M | re.S)
    return dict(blocks)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, code in examples().items():
        (tmp_path / name).write_text(code.replace("40000", str(free_port())), "utf-8")
    return tmp_path


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_port:
        any_port.bind(("127.0.0.1", 0))
        port: int = any_port.getsockname()[1]
        return port
