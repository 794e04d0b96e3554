"""Tries a wheel as a user gets it: in an empty environment, with no Rust and nothing of the checkout.

``python tests/wheel.py dist/tickwire-*.whl``
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

MATCH = ["demo", "--clients", "4", "--seconds", "3", "--plain"]


def main(wheel: Path) -> None:
    """Installs the wheel and plays the demo; raises CalledProcessError when something fails."""
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
        subprocess.run([*pip, "--no-index", str(wheel.resolve())], check=True)
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
