"""The demo: played for real for a few seconds, and its rules, its verdict and its display alone."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tickwire._demo import _judge, display, game, match
from tickwire._demo.ends import Load, make_world
from tickwire._demo.game import Coin, Runner, Spot, Steer, Throw
from tickwire._demo.match import Match, Phase, open_match
from tickwire._demo.options import Options

COMMAND = [sys.executable, "-m", "tickwire", "demo"]


def run_demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_a_short_match_is_played_and_judged() -> None:
    done = run_demo("--clients", "4", "--seconds", "3", "--seed", "7", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "OK: every reliable message arrived once and in order" in done.stdout
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["ok"] is True
    assert figures["clients"] == 4
    assert figures["seconds"] <= 3
    assert 0 < figures["ticks"] <= 180
    assert figures["reliable_sent"] == figures["reliable_delivered"] > 0
    assert figures["rtt_ms"] >= 80
    assert 0 < figures["loss_percent"] < 20
    assert figures["load_intact"] is True
    assert 0 < figures["load_seconds"] < 20
    assert figures["load_rtt_ms"] >= 80


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--clients", "0"], "--clients"),
        (["--clients", "65"], "--clients"),
        (["--clients", "2.5"], "--clients"),
        (["--seconds", "nan"], "--seconds"),
        (["--seconds", "0.9"], "argument --seconds: must be a number from 1 to 86400, not '0.9'"),
        (["--loss", "51"], "argument --loss: must be a number from 0 to 50, not '51'"),
        (["--loss", "-1"], "--loss"),
        (["--latency", "5", "--jitter", "6"], "--jitter"),
        (["--world", "33"], "--world"),
        (["--port", "65536"], "--port"),
        (["--seed", "-1"], "--seed"),
        (["--seed", ""], "argument --seed: must be a whole number from 0 to 4294967295, not ''"),
        (["--colour"], "--colour"),
    ],
)
def test_bad_arguments_are_named_in_one_sentence(arguments: list[str], names: str) -> None:
    done = run_demo(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert names in done.stderr


def test_a_port_in_use_is_named_in_one_sentence() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        done = run_demo("--port", str(port))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"127.0.0.1:{port}" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_it_in_one_sentence() -> None:
    with subprocess.Popen(
        [*COMMAND, "--clients", "2", "--seconds", "600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as demo:
        assert demo.stdout is not None
        next(line for line in demo.stdout if "playing" in line)
        os.kill(demo.pid, signal.SIGINT)
        _, errors = demo.communicate(timeout=20)
    assert (demo.returncode, errors) == (130, "tickwire demo: interrupted.\n")


# --- the verdict: after a clean match, each thing that can go wrong ---


@pytest.fixture(name="played", scope="module")
def play_once() -> Iterator[Match]:
    options = Options(clients=2, seconds=1.5, latency=5, jitter=1, world=0.5, seed=3)
    with open_match(options) as played:
        assert list(played.play())[-1] is Phase.END
        yield played


def test_a_clean_match_has_no_faults(played: Match) -> None:
    assert played.faults() == []
    figures: Any = played.figures()
    assert 0 < figures["ticks"] <= 90  # a busy machine skips some
    assert figures["load_intact"] is True


@pytest.mark.parametrize("end", ["bot", "server"])
@pytest.mark.parametrize(
    ("attribute", "value", "fault"),
    [
        ("received.count", 0, ", 0 arrived."),
        ("received.checksum", 1, "did not arrive as they were sent"),
        ("connected", False, "lost its connection"),
    ],
)
def test_a_doctored_end_is_found(
    played: Match, monkeypatch: pytest.MonkeyPatch, end: str, attribute: str, value: object, fault: str
) -> None:
    link: Any = played.bots[1].link if end == "bot" else played.server.links[1]
    *parts, name = attribute.split(".")
    monkeypatch.setattr(getattr(link, parts[0]) if parts else link, name, value)
    assert any(fault in sentence for sentence in played.faults())
    assert all("bot 1" in sentence.lower() for sentence in played.faults())


def test_a_bot_that_sees_another_world_is_found(played: Match, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "picture", lambda world: [(float(id(world)),)])
    assert played.faults() == [f"Bot {bot} sees another world than the server's." for bot in (0, 1)]


@pytest.mark.parametrize(
    ("load", "fault"),
    [
        (Load(fraction=0.5), "Bot 1 has only 50% of the world."),
        (Load(intact=False), "Bot 1 got a world with the wrong hash."),
        (Load(intact=False, error="it was cancelled"), "Bot 1 didn't get the world: it was cancelled."),
    ],
)
def test_the_world_must_arrive_intact(
    played: Match, monkeypatch: pytest.MonkeyPatch, load: Load, fault: str
) -> None:
    monkeypatch.setattr(played.bots[1], "load", load)
    assert played.faults() == [fault]


def test_a_bot_that_never_came_is_found_after_a_bounded_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "CONNECT_SECONDS", 0.2)
    with open_match(Options(clients=1, loss=100)) as lonely:
        assert set(lonely.play()) == {Phase.CONNECT, Phase.END}
        assert lonely.faults() == ["Bot 0 never got a connection."]
        assert lonely.figures()["rtt_ms"] == 0


def test_the_wait_for_the_last_messages_is_bounded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While more arrives, nothing is decided; once nothing does, the match failed."""
    monkeypatch.setattr(match, "DRAIN_SECONDS", 0.5)
    options = Options(clients=1, seconds=0.1, latency=5, jitter=1, world=32)
    with open_match(options) as slow:
        assert list(slow.play())[-1] is Phase.END
        assert any("of the world" in fault for fault in slow.faults())
        assert _judge(slow, options) == 1
        assert "\nUNDECIDED: more arrived until the end." in capsys.readouterr().out
    monkeypatch.setattr(match, "DRAIN_SECONDS", 10.0)
    monkeypatch.setattr(match, "STALL_SECONDS", 0.2)
    monkeypatch.setattr(Match, "_faults", lambda *_: iter(["Something is wrong."]))
    options = Options(clients=1, seconds=0.1, latency=5, jitter=1, world=0)
    with open_match(options) as stuck:
        assert list(stuck.play())[-1] is Phase.END
        assert _judge(stuck, options) == 1
        assert capsys.readouterr().out.endswith("Something is wrong.\nFAILED.\n")


def test_a_match_in_which_nothing_was_sent_is_undecided(capsys: pytest.CaptureFixture[str]) -> None:
    options = Options(clients=1, seconds=0.1, latency=5, jitter=1, world=0)
    with open_match(options) as silent:
        assert list(silent.play())[-1] is Phase.END
        assert silent.faults() == []
        assert _judge(silent, options) == 1
    assert "No reliable message was sent from bot 0 to the server.\n" in (out := capsys.readouterr().out)
    assert out.endswith("UNDECIDED: play longer, with --seconds, so that both sides send something.\n")


@pytest.mark.parametrize("command", [[], ["-c", "from tickwire.__main__ import main; exit(main())"]])
def test_ctrl_c_during_imports_ends_it_without_a_traceback(tmp_path: Path, command: list[str]) -> None:
    """A module that the command imports is interrupted."""
    code = "import signal\nsignal.raise_signal(signal.SIGINT)\n"
    (tmp_path / "secrets.py").write_text(code)  # imported by the demo's options
    done = subprocess.run(
        [sys.executable, *(command or ["-m", "tickwire"]), "demo"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_last_bot_loads_the_world_unless_there_is_none() -> None:
    assert (Options(clients=5).loader, Options(clients=5, world=0).loader) == (4, None)
    assert make_world(Options(world=0.5)) == make_world(Options(world=0.5))
    assert len(make_world(Options(world=0.5))) == 512 * 1024
    assert make_world(Options(seed=2)) != make_world(Options(seed=3))


# --- the display ---


def test_plain_lines_come_once_a_second(
    played: Match, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(played.bots[1], "load", Load(fraction=0.52))
    with display.open_display(Options()) as show:
        for _ in range(35):
            now += 0.1
            show(played)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "done: 2 connected  RTT " in lines[0]
    assert lines[0].endswith("delivered  world 52%")


@pytest.mark.parametrize(
    ("load", "caption"),
    [
        (Load(fraction=0.5), f"Bot 1 loads the world {'█' * 15}{'░' * 15}  50%"),
        (Load(seconds=1.23, intact=True), "Bot 1 loaded the world in 1.2 s"),
        (Load(seconds=1.23, intact=False), "Bot 1 failed to load the world in 1.2 s"),
    ],
)
def test_the_live_table_fits_80_columns(
    played: Match,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    load: Load,
    caption: str,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(display, "_every", lambda _, show: lambda match: show(match, 0.0))
    monkeypatch.setattr(played.bots[1], "load", load)
    monkeypatch.setattr(played.bots[0].link, "reason", "the server is full")
    monkeypatch.setattr(played.bots[1].link.received, "count", 99_999)
    with display.open_display(Options()) as show:
        show(played)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().out)
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    for word in ("99999", "reliable", "corrected", "health", "Bot 0: the server is full", caption):
        assert word in shown


def test_without_rich_a_terminal_gets_plain_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setitem(sys.modules, "rich.live", None)
    with display.open_display(Options()):
        pass
    assert "pip install '.[demo]'" in capsys.readouterr().out


# --- the rules ---


def test_a_player_runs_at_its_speed_and_no_faster_and_stays_on_the_field() -> None:
    way = game.SPEED / game.TICK_RATE
    assert game.step(Spot(10, 10), Steer(3, 4)) == pytest.approx(
        (10 + 0.6 * way, 10 + 0.8 * way), abs=game.GRID
    )
    assert game.step(Spot(0, game.SIZE), Steer(-1, 1)) == (0, game.SIZE)


def test_coins_are_neither_made_nor_lost(played: Match) -> None:
    world = played.server.endpoint.world
    held = sum(runner.coins for runner in world.objects(Runner))
    assert held + len(world.objects(Coin)) == game.COINS
    assert held > 0


def test_a_thrown_coin_hits_others_and_not_its_thrower() -> None:
    with open_match(Options(clients=2, seconds=0.1, latency=5, jitter=1, world=0)) as begun:
        for phase in begun.play():
            if phase is Phase.DRAIN:
                break
        server = begun.server
        (thrower, one), (_, two) = server._runners.items()
        one.coins, two.health = 1, 50
        server._throw(thrower, Throw(two.x, two.y))
        server._throw(thrower, Throw(two.x, two.y))  # without a coin: nothing
        assert (one.coins, two.health, one.health) == (0, 50 - game.HIT, game.MAX_HEALTH)
