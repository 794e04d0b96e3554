"""No visitor ends a server: not one of the pages, nor one of the samples, as they stand.

Each runs in a process of its own while others come, talk, stall and leave at every moment (visitors.py); none
may end or print a traceback. Ctrl-C and SIGTERM end each with a goodbye and without a traceback.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer

import pytest
import tickwire as tw
from test_pages import ENDLESS, PAGES, ROOT, named, write

VISITORS = Path(__file__).with_name("visitors.py")
SECONDS = 0.6
PATIENCE = 60.0

# Servers on real sockets, by page and file.
SERVERS = [
    (page, name)
    for page in PAGES
    for name, code in named(page).items()
    if re.search(r"tw\.Server\(", code) and "network=" not in code and not name.startswith("test_")
]
ENDING = [(page, name) for page, name in SERVERS if name not in ENDLESS]
GOING_ON = [(page, name) for page, name in SERVERS if name in ENDLESS]
SAMPLES = {
    "echo": [],
    "chat": [],
    "arena": [],
    "filedrop": ["--folder", "inbox"],
    "login": ["--key", "game.key"],
}
SIGNALS = [signal.SIGINT, signal.SIGTERM]


def ident(value: object) -> str:
    if isinstance(value, tuple):
        return f"{value[0].stem}/{value[1]}"
    return value.name if isinstance(value, signal.Signals) else str(value)


def start(folder: Path, *program: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-u", "-W", "error", str(VISITORS), str(SECONDS), *program]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def visited(folder: Path, *program: str, number: signal.Signals | None) -> tuple[int, str, str]:
    """Exit code and output of a server that was visited, and then sent a signal if it goes on."""
    with start(folder, *program) as process:
        patience = Timer(PATIENCE, process.kill)
        patience.start()
        seen: list[str] = []
        try:
            assert process.stdout is not None
            if number is not None:
                for line in process.stdout:
                    seen.append(line)
                    if line.startswith("visited by"):
                        process.send_signal(number)
                        break
            out, err = process.communicate()
        finally:
            patience.cancel()
            process.kill()
    return process.returncode, "".join(seen) + out, err


def check(code: int, out: str, err: str, expected: int = 0) -> None:
    assert "Traceback" not in err, err
    assert code == expected, (code, out, err)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(ROOT / "docs" / "first.md", tmp_path)


def test_servers_are_found() -> None:
    assert len(ENDING) >= 6
    assert len(GOING_ON) >= 6


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", SIGNALS, ids=ident)
@pytest.mark.parametrize("server", GOING_ON, ids=ident)
def test_no_visitor_ends_a_server_of_the_pages_and_a_signal_does_politely(
    folder: Path, server: tuple[Path, str], number: signal.Signals
) -> None:
    page, name = server
    code, out, err = visited(write(page, folder), name, number=number)
    check(code, out, err)
    assert int(re.findall(r"visited by (\d+)", out)[0]) >= 3
    # Yojimbo's framing has no word for it.
    reason = "PEER_DISCONNECTED" if page.stem == "yojimbo" else "SERVER_CLOSED"
    assert f"told {reason}" in out


@pytest.mark.parametrize("server", ENDING, ids=ident)
def test_no_visitor_ends_an_example_that_ends_by_itself(
    folder: Path, server: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page, name = server
    if "import pygame" in named(page)[name]:
        pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    code, out, err = visited(write(page, folder), name, number=None)
    check(code, out, err)
    assert int(re.findall(r"visited in all by (\d+)", out)[0]) >= 1, out


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", SIGNALS, ids=ident)
@pytest.mark.parametrize("sample", SAMPLES)
def test_no_visitor_ends_a_sample_and_a_signal_does_politely(
    tmp_path: Path, sample: str, number: signal.Signals
) -> None:
    (tmp_path / "game.key").write_text(tw.generate_key().hex(), "ascii")
    program = ["-m", f"tickwire.samples.{sample}", "serve", "--listen", "127.0.0.1:0", *SAMPLES[sample]]
    code, out, err = visited(tmp_path, *program, number=number)
    check(code, out, err, 130 if number == signal.SIGINT else 0)
    assert "told SERVER_CLOSED" in out


# As servers were written before: each died of its first visitors.
OLD = {
    "answers": """
with tw.run(server, 60) as ticks:
    for _, inbox in ticks:
        for client, message in inbox.messages:
            server.send(client, message)
""",
    "welcomes": """
with tw.run(server, 60) as ticks:
    for _, inbox in ticks:
        for event in inbox.events:
            if isinstance(event, tw.Connected):
                server.send(event.client, Chat(0, "welcome"))
""",
    "greets a crowd": """
with tw.run(server, 60) as ticks:
    for _, inbox in ticks:
        for client, message in inbox.messages:
            for other in server.clients:
                server.send(other, Chat(0, "hello"))
""",
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("form", OLD)
def test_the_visitors_end_a_server_that_raises_for_what_they_do(folder: Path, form: str) -> None:
    head = "import tickwire as tw\nfrom game import Chat, protocol\n"
    driver = "thread" if form == "welcomes" else "polled"  # one that sees both in one tick
    made = (
        f'tuning = tw.Tuning(driver="{driver}")\n'
        "debugging = tw.testing.Debugging(strict=True)\n"
        'server = tw.Server("127.0.0.1:0", protocol, tuning=tuning, debugging=debugging)\n'
    )
    (folder / "old.py").write_text(head + made + OLD[form], "utf-8")
    ended, out, err = visited(folder, "old.py", number=signal.SIGTERM)
    assert ended == 1, (out, err)
    assert "StaleClientError" in err or "ChannelFullError" in err
