"""``tickwire capture``: runs a game and captures it, opens, shows, replays; and tells what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tickwire as tw
from conftest import Chat
from tickwire import _cli as cli
from tickwire.capture import read_capture
from tickwire.testing import advance

GAME = """
import sys
import tickwire as tw
from conftest import Chat, make_protocol, paced
protocol = make_protocol()
with tw.Server("127.0.0.1:0", protocol) as server, tw.Client.connect(server.address, protocol) as client:
    for tick in paced(200):
        with server.tick() as inbox:
            if inbox.messages:
                break
        with client.tick():
            if client.connected:
                client.send(Chat(1, "over real sockets"))
sys.exit(7)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    (tmp_path / "game.py").write_text(GAME)


@pytest.fixture
def captured(protocol: tw.Protocol) -> bytes:
    """A conversation in ``a.pcapng``, its keys in ``a.keys``; the server's private key."""
    key = tw.generate_key()
    network = tw.testing.SimulatedNetwork()
    capture = tw.capture.Capture("a.pcapng", keys="a.keys")
    server = tw.Server(
        "127.0.0.1:40000", protocol, key=key, network=network, debugging=tw.testing.Debugging(capture=capture)
    )
    client = tw.Client.connect(server.address, protocol, key=key, network=network)
    advance(network, server, client, seconds=0.5)
    client.send(Chat(1, "hello"))
    advance(network, server, client, seconds=0.5)
    capture.close()
    return key


def tickwire(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tickwire", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_any_game_is_captured_opened_and_replayed() -> None:
    done = tickwire(
        "capture", "run", "-o", "game.pcapng", "--keys", "game.keys", "--", sys.executable, "game.py"
    )
    assert done.returncode == 7, "the exit code is the game's"
    size = f"{Path('game.pcapng').stat().st_size:,}"
    assert (
        done.stderr
        == f"tickwire capture run: wrote game.pcapng, {size} bytes; what opens it is in game.keys\n"
    )
    assert len(list(read_capture("game.pcapng"))) > 8
    done = tickwire("capture", "open", "game.pcapng", "-o", "opened.pcapng")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(" 0 still sealed\n")
    assert b"over real sockets" in Path("opened.pcapng").read_bytes()
    server = Path("game.keys").read_text().split('"address":"')[1].split('"')[0]
    Path("protocols.py").write_text("from conftest import make_protocol\nprotocol = make_protocol()\n")
    done = tickwire(
        "capture", "replay", "game.pcapng", "protocols:protocol", "--keys", "game.keys", "--address", server
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Connected" in done.stdout
    assert "Chat(sender=1, text='over real sockets')" in done.stdout


def test_a_game_of_several_processes_has_a_capture_for_each() -> None:
    Path("several.py").write_text(
        "import subprocess, sys\nimport tickwire as tw\nfrom conftest import make_protocol\n"
        "server = tw.Server('127.0.0.1:0', make_protocol())\n"
        "sys.exit(subprocess.run([sys.executable, 'game.py']).returncode)\n"
    )
    done = tickwire("capture", "run", "-o", "game.pcapng", "--", sys.executable, "several.py")
    assert done.returncode == 7
    assert done.stderr.startswith("tickwire capture run: wrote game.pcapng, ")
    found = sorted(Path().glob("game*.pcapng"))
    assert len(found) == 2
    assert [len(list(read_capture(path))) > 8 for path in found] in ([True, False], [False, True])


def test_a_capture_opens_with_its_keys_or_the_private_key_alone(captured: bytes) -> None:
    Path("alone.key").write_text(captured.hex() + "\n")
    for keys in ("a.keys", "alone.key"):
        assert cli.main(["capture", "open", "a.pcapng", "-o", "opened.pcapng", "--keys", keys]) == 0
        assert b"hello" in Path("opened.pcapng").read_bytes()


def test_a_dissector_is_printed_or_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["capture", "dissector"]) == 0
    printed = capsys.readouterr().out
    assert 'Proto("tickwire"' in printed
    Path("protocols.py").write_text("from conftest import make_protocol\nprotocol = make_protocol()\n")
    assert cli.main(["capture", "dissector", "protocols:protocol", "-o", "game.lua"]) == 0
    assert "tickwire.Move.tick" in Path("game.lua").read_text()
    assert "tickwire.Move.tick" not in printed


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["run", "-o", "g.pcapng"], "tickwire capture run: there is no command to run: write it behind --"),
        (["run", "-o", "g.pcapng", "--", "no-such-game"], "there is no program 'no-such-game' to run"),
        (["run", "-o", "no/g.pcapng", "--", "true"], "No such file or directory: 'no/g.pcapng'"),
        (["run", "-o", "g.pcapng", "--max-bytes", "7", "--", "true"], "max_bytes must be 4096 to"),
        (["run", "-o", "g.pcapng", "--", "true"], "no server or client was made, so there is no g.pcapng"),
        (["open", "nothing", "-o", "b.pcapng"], "No such file or directory: 'nothing'"),
        (["open", "game.py", "-o", "b.pcapng"], "game.py is not a pcapng file as Tickwire writes them"),
        (["open", "a.pcapng", "-o", "a.pcapng"], "must be another file than a.pcapng"),
        (["open", "a.pcapng", "-o", "b.pcapng"], "no packet of a.pcapng opens: give the servers' key"),
        (["open", "a.pcapng", "-o", "b.pcapng", "--keys", "wrong.key"], "is this the right key?"),
        (["open", "a.pcapng", "-o", "b.pcapng", "--keys", "game.py"], "game.py has no keys: it must be"),
        (["dissector", "nothing:protocol"], "importing nothing failed"),
        (["dissector", "-o", "no/t.lua"], "No such file or directory: 'no/t.lua'"),
        (["replay", "a.pcapng", "game", "--keys", "a.keys"], "'game' is not of the form module:protocol"),
        (["replay", "nothing", "p:protocol", "--keys", "a.keys"], "No such file or directory: 'nothing'"),
        (["replay", "a.pcapng", "p:protocol", "--keys", "wrong.key"], "has only a private key"),
        (
            ["replay", "a.pcapng", "p:protocol", "--keys", "a.keys", "--address", "nowhere"],
            "'nowhere' is not an address",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("captured")
@pytest.mark.skipif(os.name == "nt", reason="the sentences of the system are others")
def test_what_is_wrong_is_said_in_a_sentence(
    arguments: list[str], complaint: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("p.py").write_text("from conftest import make_protocol\nprotocol = make_protocol()\n")
    Path("wrong.key").write_text("ab" * 32)
    monkeypatch.syspath_prepend(".")
    code = cli.main(["capture", *arguments])
    errors = capfd.readouterr().err
    assert complaint in errors
    assert errors.count("\n") == 1
    assert errors.startswith("tickwire capture ")
    assert code == (0 if arguments[-1] == "true" and "no server" in complaint else 1)
