"""What the commands say of arguments that they don't take."""

from __future__ import annotations

import sys
import threading
import types
import uuid
from pathlib import Path

import pytest
import tickwire as tw
from tickwire import _cli as cli
from tickwire import _inspection as inspection
from tickwire import peers, testing
from tickwire._proxy import options


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--loss", "-5%"], "argument --loss: '-5%' is not a share from 0 to 1, like 2% or 0.02"),
        (["--delay", "-5ms"], "argument --delay: '-5ms' is not a time, like 50ms or 0.05s"),
        (["--seconds", "-1"], "argument --seconds: must be at least 0, not '-1'"),
    ],
)
def test_amounts_below_zero(capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str) -> None:
    line = said(capsys, "proxy", "127.0.0.1:5000", "--to", "127.0.0.1:4000", *arguments)
    assert sentence in line


def test_a_server_that_is_not_found_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    line = said(capsys, "proxy", "127.0.0.1:5000", "--to", "no-such-host.invalid:4000")
    assert "no-such-host.invalid" in line


def test_a_proxy_may_listen_at_a_name() -> None:
    assert options._listen("localhost:5000").port == 5000
    with pytest.raises(ValueError, match="'localhost' is not an address with a port"):
        options._listen("localhost")


def test_a_path_is_no_module() -> None:
    with pytest.raises(ValueError, match="go to its folder and give its bare name, like game:protocol"):
        inspection.find("../game:protocol")


def test_a_module_that_runs_a_game_is_told_from_one_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "endless_game.py").write_text("import time\nwhile True:\n    time.sleep(0.01)\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(inspection, "IMPORT_TIMEOUT", 0.2)
    with pytest.raises(ValueError, match=r"didn't end within 0.2 seconds: it runs a game"):
        inspection.find("endless_game:protocol")
    assert "endless_game" not in sys.modules


def test_a_module_that_goes_on_importing_is_no_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, waits = threading.Event(), []

    class Clock(threading.Event):
        """Many times of the watcher are over at once, and in each the import was a module further."""

        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            if len(waits) <= 20:
                sys.modules[f"slow_game_{len(waits)}"] = types.ModuleType("part")
                return False
            gate.set()
            return super().wait()

    names = ("Thread", "current_thread", "main_thread")
    fake = types.SimpleNamespace(Event=Clock, **{name: getattr(threading, name) for name in names})
    monkeypatch.setattr(inspection, "threading", fake)
    made = types.ModuleType("slow_game_gate")
    vars(made).update(gate=gate, protocol=tw.Protocol(1, [tw.message(type("Empty", (), {}))]))
    monkeypatch.setitem(sys.modules, "slow_game_gate", made)
    code = "from slow_game_gate import gate, protocol\ngate.wait()\n"
    (tmp_path / "slow_game.py").write_text(code, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert inspection.find("slow_game:protocol").id == 1
    finally:
        for name in [name for name in sys.modules if name.startswith("slow_game")]:
            del sys.modules[name]
    assert set(waits) == {inspection.IMPORT_TIMEOUT}


def test_accounts_without_numbers() -> None:
    known = uuid.UUID(int=7)
    ids = {tw.tokens.client_id(account) for account in ("ann", "bob", b"ann?", known, str(known))}
    assert len(ids) == 5
    assert all(0 <= number < 2**64 for number in ids)
    assert tw.tokens.client_id("ann") == tw.tokens.client_id(b"ann")
    with pytest.raises(TypeError, match="account must be a str, bytes or a UUID, not int"):
        tw.tokens.client_id(7)  # type: ignore[arg-type]


def test_the_time_of_a_simulated_network_is_told() -> None:
    network = tw.testing.SimulatedNetwork()
    assert network.unix == 1_000_000_000
    network.advance(2.5)
    assert network.unix == 1_000_000_002


def test_settings_show_the_call_that_makes_them() -> None:
    assert repr(testing.Bottleneck(64_000, queue=9)) == "Bottleneck(64000, queue=9, overhead=28)"
    rendezvous = "Rendezvous(Address('127.0.0.1:4000'), title='a game', relaying=True)"
    assert repr(peers.Rendezvous("127.0.0.1:4000", title="a game", relaying=True)) == rendezvous
    assert repr(tw.Tuning(mtu=1200).replace(driver="thread")).startswith("Tuning(driver='thread', bind=None,")
