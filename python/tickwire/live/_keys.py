"""The key shared by a stats port and its watchers: 64 hex digits in a file."""

from __future__ import annotations

import os
import re
from os import PathLike
from pathlib import Path

import tickwire as tw

_HEX_KEY = re.compile(r"[0-9a-fA-F]{64}")


def read_key(path: str | PathLike[str]) -> bytes:
    """Reads the key in a file.

    Raises:
        OSError: the file can't be read.
        ValueError: the file has no key.
    """
    text = Path(path).read_text("utf-8", errors="replace").strip()
    if not _HEX_KEY.fullmatch(text):
        raise ValueError(f"{path} has no key: it must have 64 hex digits, as the stats port writes them")
    return bytes.fromhex(text)


def read_or_make_key(path: str | PathLike[str]) -> bytes:
    """Reads the key in a file; if there is no file, creates one with a new key, readable only by its owner.

    Raises:
        As :func:`read_key`.
    """
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return read_key(path)
    key = tw.generate_key()
    with os.fdopen(file, "w", encoding="utf-8") as out:
        out.write(key.hex() + "\n")
    return key
