"""Checks that a tag may be released, and prints its notes: ``python tests/release.py v0.1.0 [dist/*]``.

The tag must be the version of Cargo.toml, and CHANGELOG.md must have a section for it with a date. Of files
that are named besides, each must be a wheel or a source distribution of that version that twine accepts.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def notes(version: str) -> str:
    """The changelog's section about a version; raises SystemExit when there is none, or it has no date."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    section = re.search(
        rf"^## \[{re.escape(version)}\] - (\S+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    if section is None:
        raise SystemExit(f"CHANGELOG.md: no section ## [{version}]")
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", section[1]):
        raise SystemExit(f"CHANGELOG.md: the section of {version} says {section[1]!r} where its date must be")
    return section[2].strip()


def check(tag: str, files: list[Path]) -> str:
    """The notes of a tag that may be released; raises SystemExit, naming what isn't as it must be."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["package"]["version"]
    if tag != f"v{version}":
        raise SystemExit(f"tag: {tag}, but Cargo.toml has the version {version}")
    said = notes(version)
    for file in files:
        if not re.fullmatch(rf"tickwire-{re.escape(version)}(-.*\.whl|\.tar\.gz)", file.name):
            raise SystemExit(f"{file.name}: neither a wheel nor a source distribution of {version}")
    if files:
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)], check=True)
    return said


if __name__ == "__main__":
    print(check(sys.argv[1], [Path(name) for name in sys.argv[2:]]))
