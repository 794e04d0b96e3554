"""``tickwire plot``: its pictures, and its errors when nothing can be drawn."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import tickwire as tw
from conftest import Chat
from tickwire import cli
from tickwire.capture import read_capture
from tickwire.plots import read_soak, series_of
from tickwire.testing import Conditions, run


@pytest.fixture
def captured(tmp_path: Path, protocol: tw.Protocol, monkeypatch: pytest.MonkeyPatch) -> tw.Server:
    """A server that captured ten seconds with two clients, a fifth of whose packets was lost in the second
    half."""
    monkeypatch.chdir(tmp_path)
    network = tw.SimulatedNetwork(seed=2, conditions=Conditions(latency=0.02))
    server = tw.Server("127.0.0.1:40000", protocol, network=network, capture="a.pcapng")
    network.schedule(5, Conditions(latency=0.02, loss=0.2), receiver=server.address)
    clients = [tw.Client.connect(server.address, protocol, network=network) for _ in range(2)]
    for tick in range(600):
        run(network, server, *clients, seconds=1 / 60)
        for client in clients:
            if client.connected:
                client.send(Chat(1, f"tick {tick}"), channel=1)
    server.close()
    return server


@pytest.mark.usefixtures("captured")
def test_series_are_what_happened() -> None:
    datagrams = list(read_capture("a.pcapng"))
    series = series_of(datagrams, step=1.0)
    assert series.peers == 2
    assert series.times == list(range(10))
    received = [one for one in datagrams if not one.outgoing]
    assert sum(series.received_packets) == len(received)
    total = sum(len(one.data) + 28 for one in received)
    assert sum(series.received_kbps) * 1000 / 8 == pytest.approx(total)
    assert sum(series.sent_packets) == len(datagrams) - len(received)
    assert series.lost_percent[:5] == [0.0] * 5
    for lost in series.lost_percent[5:]:
        assert lost == pytest.approx(20, abs=9)


@pytest.mark.usefixtures("captured")
def test_copies_and_late_packets_are_not_lost() -> None:
    received = [
        one for one in read_capture("a.pcapng") if not one.outgoing and one.nanoseconds < 10**18 + 4 * 10**9
    ]
    shuffled = [
        part for pair in zip(received[1::2], received[::2], strict=False) for part in (*pair, pair[0])
    ]
    assert set(series_of(shuffled, step=10.0).lost_percent) == {0.0}


@pytest.mark.usefixtures("captured")
def test_it_writes_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plot", "a.pcapng"]) == 0
    assert capsys.readouterr().out == "a.png\n"
    data = Path("a.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (1100, 800)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nothing"], "No such file or directory: 'nothing'"),
        (["text"], "text is not a pcapng file as Tickwire writes them"),
        (["empty.pcapng"], "there are no datagrams in the capture"),
        (["a.pcapng", "--step", "0"], "--step must be at least 0.001 seconds, not 0.0"),
        (["long.pcapng", "--step", "1"], "steps of 1.0 seconds make 2,000,001 points of this capture"),
        (["a.pcapng", "-o", "no/a.png"], "No such file or directory: 'no/a.png'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("captured")
@pytest.mark.skipif(os.name == "nt", reason="the sentences of the system are others")
def test_what_is_wrong_is_said_in_a_sentence(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("text").write_text("hello, this is text")
    tw.Capture("empty.pcapng").close()
    with tw.Capture("long.pcapng") as long:
        for seconds in (0, 2_000_000):
            long.write(seconds * 10**9, "127.0.0.1:1", "127.0.0.1:2", b"", outgoing=True)
    assert cli.main(["plot", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("tickwire plot: ")
    assert complaint in error
    assert error.count("\n") == 1


SOAK = {
    "seed": "1", "scenarios": 3, "kinds": {"game": 2, "slow": 1}, "virtual_hours": 1.07, "wall_seconds": 1.5,
    "megabytes": 28.4, "attempts": 2, "connected": 2, "datagrams": 12669, "sent": 9421, "received": 6184,
    "chunks": 136, "full": 0, "events": {"partition": 2}, "ends": {}, "failure": None,
}  # fmt: skip


@pytest.mark.parametrize(
    "failure", [None, {"scenario": 1, "failure": "7 came twice", "again": "tickwire soak"}]
)
def test_a_soak_is_drawn_from_the_last_line_it_printed(
    tmp_path: Path, failure: object, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "soak.txt"
    path.write_text("3 scenarios, 1.07 virtual hours\n" + json.dumps({**SOAK, "failure": failure}) + "\n")
    soak = read_soak(path)
    assert soak is not None
    assert soak.title == "soak of seed 1: 3 scenarios, 1.07 virtual hours"
    assert soak.groups["in all"]["datagrams"] == 12669
    assert soak.groups["scenarios"] == {"game": 2, "slow": 1}
    assert soak.failure == (None if failure is None else "7 came twice")
    assert cli.main(["plot", str(path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'soak.png'}\n"
    assert (tmp_path / "soak.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize("text", ["", "{}", "[]\n1\n", '{"seed": 1, "failure": 3}', "hello"])
def test_what_is_no_soak_is_taken_for_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "soak.txt"
    path.write_text(text)
    assert read_soak(path) is None


def test_a_real_soak_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tickwire.soak.report", reason="there is no tickwire soak")
    assert cli.main(["soak", "--seed", "plot", "--hours", "0.001", "--json"]) == 0
    path = tmp_path / "soak.txt"
    path.write_text(capsys.readouterr().out)
    assert read_soak(path) is not None
    assert cli.main(["plot", str(path)]) == 0


def test_without_matplotlib_the_error_says_what_to_install(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from tickwire import cli\nsys.exit(cli.main(['plot', 'a']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == "tickwire plot: plots need the package matplotlib: pip install '.[plots]' in a checkout\n"
    )
