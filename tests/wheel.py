"""Tries a wheel as a user gets it: in an empty environment, with no Rust and nothing of the checkout.

``python tests/wheel.py dist/tickwire-*.whl``. A source distribution (``dist/tickwire-*.tar.gz``) is tried in
the same way; pip builds it first, which needs Rust.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

# Besides the Python files: what is read at run time, by type checkers, and run by newcomers.
HOLDS = (
    "tickwire/_core.pyi",
    "tickwire/capture/lua/wireshark.lua",
    "tickwire/py.typed",
    "tickwire/samples/arena/__main__.py",
    "tickwire/samples/echo.py",
)
# What only the Cargo feature `faults` adds, for the project's own tests.
HOLDS_NOT = b"_break_thread"
MATCH = ["demo", "--clients", "4", "--seconds", "3", "--plain"]


def check(wheel: Path) -> None:
    """Checks that a wheel holds its files; raises SystemExit otherwise."""
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        missing = [name for name in HOLDS if name not in names]
        modules = [name for name in names if name.startswith("tickwire/_core.") and not name.endswith(".pyi")]
        if missing or len(modules) != 1:
            raise SystemExit(f"{wheel.name} lacks {missing}, and has the native modules {modules}")
        if HOLDS_NOT in packed.read(modules[0]):
            raise SystemExit(f"{wheel.name} has {HOLDS_NOT.decode()}: it is built with the feature faults")


def main(wheel: Path) -> None:
    """Installs the wheel and plays the demo; raises CalledProcessError when something fails."""
    built = wheel.suffix == ".whl"
    if built:
        check(wheel)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        environment = Path(folder) / "env"
        venv.create(environment, with_pip=False, symlinks=os.name != "nt")
        binaries = environment / ("Scripts" if os.name == "nt" else "bin")
        python = binaries / Path(sys.executable).name
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        # The wheel needs nothing; to build the sources pip gets maturin.
        subprocess.run([*pip, *["--no-index"] * built, str(wheel.resolve())], check=True)
        installed = time.monotonic()
        # No Rust, no compiler and no checkout in sight.
        clean = {"PATH": str(binaries), "SYSTEMROOT": os.environ.get("SYSTEMROOT", "")}
        run = {"cwd": folder, "env": clean, "timeout": 120, "check": True}
        subprocess.run([python, "-m", "tickwire", "--version"], **run)  # type: ignore[call-overload]
        subprocess.run([python, "-m", "tickwire", *MATCH], **run)  # type: ignore[call-overload]
        subprocess.run([python, "-m", "tickwire.samples"], **run)  # type: ignore[call-overload]
        played = time.monotonic() - installed
        print(f"{wheel.name}: installed in {installed - begin:.1f} s, played in {played:.1f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
