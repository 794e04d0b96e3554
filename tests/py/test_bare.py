"""Tickwire where no other package is installed, as in the environment of who has only just installed it."""

import subprocess
import sys
from pathlib import Path

import tickwire

# What needs an extra says so when it is used; these are the library.
MODULES = (
    "tickwire",
    "tickwire.aio",
    "tickwire.testing",
    "tickwire.cli",
    "tickwire.proxy",
    "tickwire.capture",
)


def test_the_library_needs_no_other_package() -> None:
    folder = str(Path(tickwire.__file__).parents[1])
    imports = f"import sys; sys.path.insert(0, {folder!r}); import {', '.join(MODULES)}"
    # -S: without the packages that are installed; -I: without those that the environment names.
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", imports], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
