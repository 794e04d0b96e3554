"""The samples' command lines: that each runs, and says in a sentence what is wrong when something is."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import tickwire as tw
from conftest import paced
from tickwire.samples import command, crowd, echo, filedrop
from tickwire.samples.arena import __main__ as arena
from tickwire.samples.chat import __main__ as chat
from tickwire.samples.login import __main__ as login
from tickwire.testing import Conditions, SimulatedNetwork

MAINS = {
    "echo": echo.main,
    "chat": chat.main,
    "filedrop": filedrop.main,
    "arena": arena.main,
    "crowd": crowd.main,
    "login": login.main,
}
SERVERS = ["echo", "chat", "filedrop", "arena", "crowd"]
PATIENCE = 60.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that don't answer are given up after a second, and windows aren't seen."""
    monkeypatch.setattr(command, "TIMEOUT", 1)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A sample's server in a process of its own: its address, and the process."""
    module, *rest = arguments
    line = [sys.executable, "-u", "-W", "error", "-m", f"tickwire.samples.{module}", "serve"]
    line += ["--listen", "127.0.0.1:0", *rest]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        patience = threading.Timer(PATIENCE, process.kill)
        patience.start()
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            yield next(word.strip(".,;") for word in first.split() if word.startswith("127.0.0.1:")), process
        finally:
            patience.cancel()
            process.kill()


def send_command(name: str, address: str, file: Path) -> list[str]:
    return {
        "echo": ["ping", address, "--count", "3"],
        "filedrop": ["send", str(file), address],
        "arena": ["join", address, "--seconds", "20"],
    }[name]


def sentence(capsys: pytest.CaptureFixture[str]) -> str:
    """What was said on standard error: one line, that tells what to do after a colon or semicolon."""
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("python -m tickwire.samples.")
    assert "Traceback" not in said
    return said


# --- they run ---


def test_an_echo_comes_back_over_a_bad_network(capsys: pytest.CaptureFixture[str]) -> None:
    with serving("echo") as (address, process):
        assert echo.main(["ping", address, "--count", "5", "--interval", "0.02", "--network", "4g"]) == 0
        assert process.poll() is None
    lines = capsys.readouterr().out.splitlines()
    assert "of 5 came back" in lines[-1]
    assert "ms" in lines[0]


def test_a_file_arrives_with_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, file, folder = tmp_path / "key", tmp_path / "a world.bin", tmp_path / "inbox"
    key.write_text(tw.generate_key().hex())
    file.write_bytes(bytes(range(256)) * 2000)
    with serving("filedrop", "--key", str(key), "--folder", str(folder)) as (address, _):
        options = ["--key", str(key)]
        assert filedrop.main(["send", str(file), address, *options]) == 0
        assert filedrop.main(["send", str(file), address, *options, "--network", "4g"]) == 0
    assert (folder / "a world.bin").read_bytes() == file.read_bytes()
    assert (folder / "a world-2.bin").read_bytes() == file.read_bytes()
    assert list((folder / ".part").iterdir()) == []
    shown = capsys.readouterr().out
    assert "512.0/512.0 kB" in shown
    assert "The server has it, as a world-2.bin." in shown


def test_a_file_above_the_limit_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "large"
    file.write_bytes(bytes(20_000))
    with serving("filedrop", "--limit", "0.01", "--folder", str(tmp_path / "in")) as (address, _):
        assert filedrop.main(["send", str(file), address]) == 1
    assert "--limit" in sentence(capsys)


def test_labels_of_strangers_stay_within_the_folder(tmp_path: Path) -> None:
    assert filedrop.safe_name("../../etc/passwd") == "_.._etc_passwd"
    assert filedrop.safe_name("") == filedrop.safe_name("..") == "unnamed"
    assert filedrop.safe_name("a\x1b[2J\n/b") == "a__2J__b"
    network = SimulatedNetwork(conditions=Conditions(latency=0.01))
    settings = {"transfers": tw.transfer.Transfers(directory=tmp_path / ".part"), "network": network}
    server = tw.Server("127.0.0.1:40000", filedrop.PROTOCOL, **settings)  # type: ignore[arg-type]
    clients = [tw.Client.connect(server.address, filedrop.PROTOCOL, network=network) for _ in range(2)]
    sent, answers = False, 0
    for _ in range(240):
        with server.tick() as inbox:
            filedrop.take(server, inbox, tmp_path)
        for client in clients:
            with client.tick() as heard:
                answers += len(heard.messages)
        if not sent and all(client.connected for client in clients):
            sent = True
            for client in clients:
                client.send_chunk(b"the same from both", label="../evil")
        network.advance(1 / 60)
    assert answers == 2
    assert {path.name for path in tmp_path.iterdir()} <= {".part", "_evil", "_evil-2"}
    assert (tmp_path / "_evil").read_bytes() == b"the same from both"


def test_a_file_is_known_again_when_it_is_sent_again() -> None:
    one, same, other = (filedrop.client_id(tw.transfer.Chunk(data)) for data in (b"a", b"a", b"b"))
    assert one == same != other


def test_an_arena_is_served_to_a_window_elsewhere(tmp_path: Path) -> None:
    picture = tmp_path / "arena.png"
    with serving("arena", "--bots", "1") as (address, process):
        assert arena.main(["join", address, "--seconds", "2", "--screenshot", str(picture)]) == 0
        assert process.poll() is None
    assert picture.stat().st_size > 1000


def test_a_crowd_is_watched(capsys: pytest.CaptureFixture[str]) -> None:
    with serving("crowd", "--wanderers", "2000") as (address, process):
        assert crowd.main(["watch", address, "--headless", "--seconds", "1.5"]) == 0
        assert process.poll() is None
    sight, rest = capsys.readouterr().out.split(" wanderers in sight, changed in ")
    assert 5 < int(sight) < 60
    assert int(rest.split()[0]) > 5


def test_a_crowd_and_its_watchers_are_one_program(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["serve", "--listen", "127.0.0.1:0", "--wanderers", "500", "--watchers", "2", "--seconds", "1"]
    assert crowd.main(line) == 0
    served = capsys.readouterr().out.splitlines()
    assert served[1].startswith("a tick took ")
    assert len(served) == 4


def test_the_list_of_samples_names_each() -> None:
    line = [sys.executable, "-m", "tickwire.samples"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert all(f"python -m tickwire.samples.{name}:" in done.stdout for name in MAINS)


# --- something is wrong ---


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("echo", [], "COMMAND"),
        ("echo", ["sing"], "sing"),
        ("echo", ["ping", "--count", "0"], "from 1 to 1,000,000"),
        ("echo", ["ping", "nowhere"], "nowhere"),
        ("echo", ["ping", "--network", "carrier-pigeon"], "carrier-pigeon"),
        ("echo", ["serve", "--listen", "here"], "here"),
        ("echo", ["serve", "--key", "/nonexistent/key"], "No such file"),
        ("chat", ["serve", "--key", __file__], "64 hex digits"),
        ("filedrop", ["send"], "FILE"),
        ("filedrop", ["serve", "--limit", "much"], "'much'"),
        ("arena", ["play", "--bots", "99"], "from 0 to 15"),
        ("arena", ["play", "--seconds", "-1"], "--seconds"),
        ("crowd", ["serve", "--wanderers", "0"], "from 1 to 50,000"),
        ("login", ["play"], "NAME"),
    ],
)
def test_wrong_arguments_are_named(
    name: str, arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        MAINS[name](arguments)
    assert left.value.code == 2
    assert named in sentence(capsys)


@pytest.mark.parametrize("name", ["echo", "filedrop", "arena"])
def test_a_server_that_is_not_there_is_told_of(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert MAINS[name](send_command(name, address, Path(__file__))) == 1
    assert f"no server answers at {address}: start one" in sentence(capsys)


@pytest.mark.parametrize(
    ("name", "protocol"),
    [("echo", echo.PROTOCOL), ("filedrop", filedrop.PROTOCOL), ("arena", arena.PROTOCOL)],
)
def test_a_wrong_key_is_thought_of(
    name: str, protocol: tw.Protocol, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "key"
    key.write_text(tw.generate_key().hex())
    with tw.Server(
        "127.0.0.1:0", protocol, key=tw.generate_key(), tuning=tw.Tuning(driver="thread")
    ) as server:
        arguments = send_command(name, str(server.address), Path(__file__))
        assert MAINS[name]([*arguments, "--key", str(key)]) == 1
        assert server.counters["netcode.token_not_authentic"] > 0
    assert "the same --key" in sentence(capsys)


def test_another_game_is_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    other = tw.Protocol(echo.PROTOCOL.id, [echo.Ping], [tw.reliable_ordered()])
    with tw.Server("127.0.0.1:0", other, tuning=tw.Tuning(driver="thread")) as server:
        assert echo.main(["ping", str(server.address)]) == 1
    assert "update the older one" in sentence(capsys)


def test_a_server_that_goes_away_ends_its_clients(capsys: pytest.CaptureFixture[str]) -> None:
    with tw.Server("127.0.0.1:0", echo.PROTOCOL, tuning=tw.Tuning(driver="thread")) as server:

        def close_when_someone_is_here() -> None:
            for _ in paced(100, PATIENCE):
                if server.receive().events:
                    server.close()
                    return

        thread = threading.Thread(target=close_when_someone_is_here)
        thread.start()
        assert echo.main(["ping", str(server.address), "--count", "10000"]) == 1
        thread.join()
    assert "connect again" in sentence(capsys)


@pytest.mark.parametrize("name", SERVERS)
def test_a_port_in_use_is_told_of(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{other.getsockname()[1]}"
        folder = ["--folder", str(tmp_path)] if name == "filedrop" else []
        assert MAINS[name](["serve", "--listen", address, *folder]) == 1
    said = sentence(capsys)
    assert address in said
    assert "choose another address with --listen" in said


@pytest.mark.parametrize(
    ("name", "arguments", "missing", "package"),
    [
        ("chat", ["join"], "textual", "textual"),
        ("filedrop", ["send", __file__], "rich", "rich"),
        ("arena", ["play"], "pygame", "pygame-ce"),
        ("arena", ["join"], "pygame", "pygame-ce"),
        ("login", ["backend", "--account", "a:b"], "flask", "flask"),
    ],
)
def test_a_missing_extra_is_named(
    name: str,
    arguments: list[str],
    missing: str,
    package: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert MAINS[name](arguments) == 1
    assert f"needs {package}: pip install '.[samples]' in a checkout" in sentence(capsys)


def test_files_that_cannot_be_read_or_kept_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert filedrop.main(["send", "/nonexistent/file"]) == 1
    assert "name a file that you may read" in sentence(capsys)
    (tmp_path / "file").touch()
    assert filedrop.main(["serve", "--folder", str(tmp_path / "file" / "inbox")]) == 1
    assert "choose another --folder" in sentence(capsys)


@pytest.mark.parametrize("main", MAINS.values())
def test_help_says_what_there_is(
    main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    assert "commands:" in capsys.readouterr().out
