"""Runs the examples of the README as a newcomer would: each in its own file, in processes of their own."""

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
    """A folder with all examples, on a port of their own."""
    port = str(free_port())
    for name, code in examples().items():
        (tmp_path / name).write_text(code.replace("40000", port), "utf-8")
    return tmp_path


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_port:
        any_port.bind(("127.0.0.1", 0))
        port: int = any_port.getsockname()[1]
        return port


@contextmanager
def running(folder: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs one example; it is ended with the block, and in any case after a while."""
    command = [sys.executable, "-u", "-W", "error", name]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        patience = Timer(PATIENCE, process.kill)
        patience.start()
        try:
            yield process
        finally:
            patience.cancel()
            process.kill()


def lines_until(process: subprocess.Popen[str], wanted: str) -> list[str]:
    """What the process prints, up to the line that has what is wanted."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if wanted in line:
            return lines
    raise AssertionError(f"{wanted!r} never came, only {lines}")


def test_every_python_example_says_its_file() -> None:
    blocks = README.read_text("utf-8").count("```python")
    assert len(examples()) == blocks > 0


def test_the_server_and_the_clients_chat(folder: Path) -> None:
    with running(folder, "server.py") as server:
        with running(folder, "client.py") as client:
            lines_until(server, "Connected")
            lines_until(client, "Chat(sender=0, text='hello')")
            with running(folder, "client.py") as another:
                lines_until(another, "Chat(sender=1, text='hello')")
                lines_until(client, "Chat(sender=1, text='hello')")
        assert server.poll() is None


@pytest.mark.parametrize("name", ["odd.py", "production.py", "fates.py", "chunks.py", "hooks.py"])
def test_an_example_runs_to_its_end(folder: Path, name: str) -> None:
    with running(folder, name) as process:
        assert process.wait() == 0


def test_the_example_of_a_class_that_writes_itself_reads_what_it_wrote(folder: Path) -> None:
    with running(folder, "odd.py") as process:
        lines_until(process, "bytes: Odd(n=600, extra=7)")


def test_the_example_of_fates_sees_both(folder: Path) -> None:
    with running(folder, "fates.py") as process:
        lines_until(process, "to slot 0 arrived")
    with running(folder, "fates.py") as process:
        lines_until(process, "to slot 0 is lost")


def test_a_player_gets_in_with_the_token_of_the_production_example(folder: Path) -> None:
    code = (folder / "production.py").read_text("utf-8")
    more = """
for _ in tw.ticks(60, duration=30):
    with server.tick() as inbox, client.tick():
        for event in inbox.events:
            print(type(event).__name__, event.client.id)
    if client.connected and server.clients:
        break
"""
    (folder / "production.py").write_text(code + more, "utf-8")
    with running(folder, "production.py") as process:
        lines_until(process, "Connected 7")


def test_the_example_of_a_test_passes(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "test_chat.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout
