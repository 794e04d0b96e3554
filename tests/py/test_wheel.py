"""A wheel needs no other package: what is imported at first, and what commands say where an extra is missing.

tests/wheel.py tries a wheel itself; this is what of it can be tried without building one.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

BARE = 'import sys; sys.path[:] = [each for each in sys.path if "site-packages" not in each]\n'


def bare(code: str) -> subprocess.CompletedProcess[str]:
    """Runs code where only the standard library and Tickwire can be imported."""
    return subprocess.run([sys.executable, "-c", BARE + code], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("module", ["", ".aio", ".testing", ".cli", ".capture", ".live", ".demo", ".soak"])
def test_it_is_imported_without_any_other_package(module: str) -> None:
    done = bare(f"import tickwire{module}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("from tickwire.cli import main; sys.exit(main(['plot', 'nothing.pcapng']))", "[plots]"),
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
