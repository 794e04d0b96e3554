"""The processes of one measurement: they are started, heard and, whatever happens, ended."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from contenders.endpoint import Options

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FOLDER = ROOT / "target" / "compare"
OWN_PYTHON = FOLDER / "venv" / "bin" / "python"
PYTHON = Path(os.environ.get("COMPARE_PYTHON", OWN_PYTHON))
"""What runs the contenders: those that the variable's interpreter has, or else all that can be installed."""
SWARM = ROOT / "target" / "release" / "swarm"


class FailedError(Exception):
    """A process failed. The sentence has its output."""


class Process:
    """A process that speaks in lines of JSON."""

    def __init__(self, command: list[str]) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by end)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONWARNINGS": "ignore"}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=environment,
            cwd=HERE,
        )
        self.lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            # The libraries' own output doesn't matter.
            with contextlib.suppress(ValueError):
                self.lines.put(json.loads(line))
        self.lines.put(None)

    def hear(self, name: str, timeout: float) -> Any:
        """The value of the next line of this name."""
        until = time.monotonic() + timeout
        while True:
            try:
                line = self.lines.get(timeout=max(until - time.monotonic(), 0.01))
            except queue.Empty:
                raise FailedError(f"no {name} within {timeout:.0f} s") from None
            if line is None:
                raise FailedError(f"ended without a {name}: {self._last_words()}")
            if name in line:
                return line[name]

    def _last_words(self) -> str:
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "it said nothing"

    def say(self, line: str) -> None:
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise FailedError(f"ended early: {self._last_words()}") from None

    def finish(self) -> None:
        """Ends its standard input, which asks it for its result."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def end(self) -> None:
        """Lets it end by itself for a moment, and then ends it."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(0.5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()


class Processes:
    """Those of one measurement."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack

    def role(self, contender: ModuleType, variant: str, role: str, options: Options) -> Process:
        """One end, in Python, or of the native floor."""
        if contender.NATIVE:
            values = {name: value for name, value in asdict(options).items() if not isinstance(value, bool)}
            command = [str(SWARM), role, *(f"{name}={value}" for name, value in values.items())]
        else:
            name = contender.__name__.rpartition(".")[2]
            given = json.dumps(asdict(options))
            command = [str(PYTHON), str(HERE / "roles.py"), name, variant, role, given]
        return self.start(command)

    def swarm(self, kind: str, port: int, count: int) -> Process:
        return self.start([str(SWARM), "clients", f"kind={kind}", f"port={port}", f"count={count}"])

    def start(self, command: list[str]) -> Process:
        process = Process(command)
        self.stack.callback(process.end)
        return process


@contextmanager
def processes() -> Iterator[Processes]:
    with ExitStack() as stack:
        yield Processes(stack)


def missing(contender: ModuleType, variant: str) -> str | None:
    """Why a variant can't be measured here, or None."""
    if contender.NATIVE:
        return None
    with processes() as started:
        process = started.role(contender, variant, "missing", Options())
        return process.hear("missing", 20)


def build_swarm() -> None:
    manifest = ["--manifest-path", "benches/compare/Cargo.toml", "--target-dir", "target"]
    subprocess.run(["cargo", "build", "--quiet", "--release", *manifest], cwd=ROOT, check=True)


def install(contenders: list[ModuleType]) -> dict[str, str]:
    """Makes a virtual environment with what the contenders require. Returns, by contender, why its packages
    could not be installed."""
    failed: dict[str, str] = {}
    if PYTHON != OWN_PYTHON:
        return failed
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(FOLDER / "venv")], check=True)
    for contender in contenders:
        stamp = FOLDER / f"{contender.NAME}.installed"
        wanted = "\n".join(contender.REQUIRES)
        if not wanted or (stamp.exists() and stamp.read_text() == wanted):
            continue
        pip = [sys.executable, "-m", "pip", "--python", str(PYTHON), "--disable-pip-version-check"]
        done = subprocess.run(
            [*pip, "install", "--quiet", *contender.REQUIRES], capture_output=True, text=True
        )
        if done.returncode == 0:
            stamp.write_text(wanted)
        else:
            last = done.stderr.strip().splitlines()[-1:] or ["pip said nothing"]
            failed[contender.NAME] = f"pip could not install {', '.join(contender.REQUIRES)}: {last[0][:200]}"
    return failed


def versions() -> dict[str, str]:
    """The installed versions, by name."""
    command = [sys.executable, "-m", "pip", "--python", str(PYTHON), "list", "--format=json"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    return {package["name"]: package["version"] for package in json.loads(listed.stdout)}
