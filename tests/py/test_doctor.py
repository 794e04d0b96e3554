"""``tickwire doctor``: what it finds on this machine, on the way to a server, and on machines that are
worse."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import tickwire as tw
from conftest import make_protocol, paced
from tickwire import _cli as cli
from tickwire._doctor import Verdict, examine_machine, examine_way
from tickwire._doctor import way as way_module
from tickwire._doctor.machine import buffer, clock, extras, sleep, wall_clock
from tickwire._doctor.way import path_mtu, refusal


@contextmanager
def serving(protocol: tw.Protocol, **settings: object) -> Iterator[tw.Server]:
    """A server whose game goes on, on a thread of its own."""
    over = threading.Event()
    with tw.Server("127.0.0.1:0", protocol, **settings) as server:  # type: ignore[arg-type]

        def play() -> None:
            while not over.wait(0.005):
                with server.tick():
                    pass

        thread = threading.Thread(target=play)
        thread.start()
        try:
            yield server
        finally:
            over.set()
            thread.join(30)


def test_this_machine_is_examined_from_its_sockets_to_its_packages() -> None:
    found = {finding.subject: finding for finding in examine_machine()}
    assert found.keys() >= {
        "versions", "IPv4 loopback", "IPv6 loopback", "receive buffer", "send buffer", "monotonic clock",
        "sleep", "wall clock", "NumPy", "extra demo",
    }  # fmt: skip
    assert found["IPv4 loopback"].verdict is Verdict.FINE
    assert found["NumPy"].verdict is Verdict.FINE
    assert tw.__version__ in found["versions"].text
    for finding in found.values():
        assert finding.verdict is not Verdict.BROKEN, finding


def test_small_buffers_are_told_with_the_command_that_mends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert buffer("receive", "rmem_max", 8 << 20).verdict is Verdict.FINE
    small = buffer("receive", "rmem_max", 425_984)
    assert small.verdict is Verdict.WARNING
    assert small.text == "212,992 bytes of the 4,194,304 asked for; enough for some dozens of clients"
    assert small.advice == "sysctl -w net.core.rmem_max=4194304"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert buffer("send", "wmem_max", 212_992).advice == "raise the system's limit for socket buffers"


def test_clocks_that_go_back_or_are_coarse_are_found() -> None:
    fine = clock(itertools.count(0, 1e-7).__next__, 1e-9)
    assert (fine.verdict, fine.text) == (Verdict.FINE, "never went back, in steps of 0.100 µs")
    coarse = clock((n // 1000 * 0.016 for n in itertools.count()).__next__, 0.016)
    assert coarse.verdict is Verdict.WARNING
    back = clock((n if n < 50 else 40.0 for n in itertools.count()).__next__, 1e-9)
    assert (back.verdict, back.text) == (Verdict.BROKEN, "it went back by 9.000000000 s")
    assert sleep(lambda _: time.sleep(0.006)).verdict is Verdict.WARNING
    assert wall_clock(1e9).verdict is Verdict.BROKEN


def test_what_is_not_installed_is_told_with_the_command_that_installs_it() -> None:
    requirements = [
        "rich>=13; extra == 'demo'",
        'nothing-of-this-name>=1; extra == "plots"',
        "mypy; extra == 'dev'",
        "typing-extensions",
    ]
    demo, plots = extras(requirements)
    assert (demo.subject, demo.verdict, demo.text) == ("extra demo", Verdict.FINE, "rich")
    assert (plots.verdict, plots.text) == (Verdict.NOTE, "nothing-of-this-name not installed")
    assert plots.advice == "pip install '.[plots]' in a checkout, for what needs it"


def test_a_server_that_answers_is_measured(protocol: tw.Protocol) -> None:
    with serving(protocol) as server:
        found = {finding.subject: finding for finding in examine_way(str(server.address), protocol)}
    assert {subject: finding.verdict for subject, finding in found.items()} == dict.fromkeys(
        found, Verdict.FINE
    )
    assert found["server"].text.startswith("connected in slot 0, round trips of ")
    if sys.platform == "linux":
        assert "full packets take 1,253" in found["path MTU"].text


def test_without_a_protocol_nothing_is_asked_of_the_server(protocol: tw.Protocol) -> None:
    with serving(protocol) as server:
        found = {finding.subject: finding for finding in examine_way(str(server.address))}
        assert found["server"].verdict is Verdict.NOTE
        assert not any(finding.verdict is Verdict.BROKEN for finding in found.values())
        assert sum(count for name, count in server.counters.items() if name.startswith("netcode.")) > 0
        assert server.clients == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows tells of closed ports otherwise")
def test_a_closed_port_and_a_name_that_is_not_found_are_broken() -> None:
    with tw.articles.Socket("127.0.0.1:0") as socket:
        closed = socket.address
    found = {finding.subject: finding for finding in examine_way(str(closed))}
    assert found["port"].verdict is Verdict.BROKEN
    assert found["port"].text == f"nobody listens at {closed}"
    (name,) = examine_way("no.such.host.invalid:40000")
    assert name.verdict is Verdict.BROKEN
    assert name.text.startswith("no.such.host.invalid is not found: ")


def test_each_way_in_which_a_server_refuses_is_told_apart(
    protocol: tw.Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(way_module, "TIMEOUT", 1)

    def asked(server: tw.Server, with_protocol: tw.Protocol, key: bytes | None = None) -> tuple[Verdict, str]:
        *_, last = examine_way(str(server.address), with_protocol, key)
        return last.verdict, last.text

    with serving(protocol, max_clients=1) as server:
        other_messages = make_protocol(channels=[tw.unreliable()])
        assert asked(server, other_messages) == (
            Verdict.BROKEN,
            "it answered: its messages or channels are others",
        )
        assert asked(server, protocol, tw.generate_key()) == (
            Verdict.BROKEN,
            "it answered: its protocol id or its key is another",
        )
        with tw.Client.connect(server.address, protocol, tuning=tw.Tuning(driver="thread")) as client:
            for _ in paced(100, 20):
                client.receive()
                if client.connected:
                    break
            assert asked(server, protocol) == (Verdict.WARNING, "it answered: it is full")
    for reason in tw.DisconnectReason:
        told = refusal(reason)
        assert told.verdict is not Verdict.FINE
        assert told.text


def test_a_path_too_narrow_for_full_packets_is_broken() -> None:
    assert path_mtu(1500, 28).verdict is Verdict.FINE
    assert path_mtu(1280, 48).verdict is Verdict.FINE
    narrow = path_mtu(1252, 28)
    assert (narrow.verdict, narrow.text) == (
        Verdict.BROKEN,
        "1,252 bytes, less than the 1,253 that full packets take",
    )


def test_the_command_prints_its_findings_and_says_by_its_exit_code_what_is_broken(
    protocol: tw.Protocol, tmp_path: Path
) -> None:
    (tmp_path / "some_game.py").write_text("from conftest import make_protocol\nprotocol = make_protocol()\n")
    (tmp_path / "server.key").write_text("ab" * 32)
    with serving(protocol, key=bytes.fromhex("ab" * 32)) as server:
        command = [sys.executable, "-m", "tickwire", "doctor", "--to", str(server.address)]
        done = subprocess.run(
            [*command, "--protocol", "some_game:protocol", "--key-file", "server.key"],
            cwd=tmp_path,
            env={"PYTHONPATH": str(Path(__file__).parent)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[-1].startswith("fine     server             connected in slot 0")
    assert all(line[:8].strip() in {"fine", "note", "warning", ""} for line in lines)


def test_json_is_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"subject", "verdict", "text", "advice"} == found[0].keys()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["--protocol", "game:protocol"],
            "--protocol and --key-file need --to HOST:PORT",
        ),
        (["--to", "127.0.0.1:1", "--protocol", "nothing"], "'nothing' is not of the form module:protocol"),
        (["--to", "127.0.0.1:1", "--key-file", "nothing"], "'nothing'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_said_in_a_sentence(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor", *arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tickwire doctor: ")
    assert complaint in captured.err
    assert captured.err.count("\n") == 1


def test_an_address_without_a_port_is_said_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--to", "localhost"]) == 1
    assert capsys.readouterr().err == (
        "tickwire doctor: 'localhost' is not a name and a port, like 'play.example.org:40000'\n"
    )
