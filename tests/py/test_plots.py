"""``tickwire plot``: its pictures, and its errors when nothing can be drawn."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import tickwire as tw
from conftest import Chat
from tickwire import _cli as cli
from tickwire._plots import series_of
from tickwire.capture import read_capture
from tickwire.testing import Conditions, advance


@pytest.fixture
def captured(tmp_path: Path, protocol: tw.Protocol, monkeypatch: pytest.MonkeyPatch) -> tw.Server:
    """A server that captured ten seconds with two clients, a fifth of whose packets was lost in the second
    half."""
    monkeypatch.chdir(tmp_path)
    network = tw.testing.SimulatedNetwork(seed=2, conditions=Conditions(latency=0.02))
    server = tw.Server(
        "127.0.0.1:40000", protocol, network=network, debugging=tw.testing.Debugging(capture="a.pcapng")
    )
    network.schedule(5, Conditions(latency=0.02, loss=0.2), receiver=server.address)
    clients = [tw.Client.connect(server.address, protocol, network=network) for _ in range(2)]
    for tick in range(600):
        advance(network, server, *clients, seconds=1 / 60)
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
    tw.capture.Capture("empty.pcapng").close()
    with tw.capture.Capture("long.pcapng") as long:
        for seconds in (0, 2_000_000):
            long.write(seconds * 10**9, "127.0.0.1:1", "127.0.0.1:2", b"", outgoing=True)
    assert cli.main(["plot", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("tickwire plot: ")
    assert complaint in error
    assert error.count("\n") == 1


def test_without_matplotlib_the_error_says_what_to_install(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from tickwire import _cli as cli\nsys.exit(cli.main(['plot', 'a']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == "tickwire plot: plots need the package matplotlib: pip install '.[plots]' in a checkout\n"
    )
