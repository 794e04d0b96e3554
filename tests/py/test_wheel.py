"""A wheel needs no other package: what is imported at first, and what commands say where an extra is missing.

tests/wheel.py tries a wheel itself; this is what of it can be tried without building one.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tickwire

BARE = 'import sys; sys.path[:] = [each for each in sys.path if "site-packages" not in each]\n'


def bare(code: str) -> subprocess.CompletedProcess[str]:
    """Runs code where only the standard library and Tickwire can be imported."""
    return subprocess.run([sys.executable, "-c", BARE + code], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("module", ["", ".aio", ".testing", "._cli", ".capture", ".live", "._demo"])
def test_it_is_imported_without_any_other_package(module: str) -> None:
    done = bare(f"import tickwire{module}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("from tickwire._cli import main; sys.exit(main(['plot', 'nothing.pcapng']))", "[plots]"),
        (
            "from tickwire.samples.chat.__main__ import main; sys.exit(main(['join', '127.0.0.1:1']))",
            "[samples]",
        ),
        ("import tickwire.metrics", "[metrics]"),
    ],
)
def test_what_needs_an_extra_names_it(code: str, extra: str) -> None:
    done = bare(code)
    assert done.returncode != 0
    assert extra in done.stdout + done.stderr


def test_without_a_native_module_it_says_what_is_supported(tmp_path: Path) -> None:
    source = Path(tickwire.__file__).parent
    shutil.copytree(source, tmp_path / "tickwire", ignore=shutil.ignore_patterns("_core.*", "__pycache__"))
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import tickwire"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    words = done.stderr.splitlines()[-1]
    assert words.startswith(
        f"ImportError: tickwire has no native module for CPython {platform.python_version()}"
    )
    assert "CPython 3.11 and later" in words
    assert platform.machine() in words
