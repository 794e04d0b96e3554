"""The demo: played for real for a few seconds, and its game, its books and its verdict alone."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import cast

import pytest
from tickwire._demo.display import Display, LiveTable, PlainLines, open_display
from tickwire._demo.ledger import Received, Sent
from tickwire._demo.loading import make_world
from tickwire._demo.messages import Throw
from tickwire._demo.options import Options
from tickwire._demo.processes import Processes
from tickwire._demo.referee import DRAIN_SECONDS, Match, Referee
from tickwire._demo.report import ChannelCounts, Link, Load, Phase, Report
from tickwire._demo.summary import Ends, Links, find_faults, summarize
from tickwire._demo.world import COINS, HEAL, HIT, MAX_HEALTH, REACH, SIZE, SPEED, Placed, Taken, World

COMMAND = [sys.executable, "-m", "tickwire", "demo"]

# --- the command ---


def run_demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_a_short_match_is_played_and_judged() -> None:
    done = run_demo("--clients", "4", "--seconds", "3", "--seed", "7", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    summary = json.loads(done.stdout.splitlines()[-1])
    assert list(summary) == [
        "clients",
        "ticks",
        "seconds",
        "reliable_sent",
        "reliable_delivered",
        "misordered",
        "duplicates",
        "rtt_ms",
        "loss_percent",
        "kbps_up",
        "kbps_down",
        "load_seconds",
        "load_intact",
        "load_rtt_ms",
        "ok",
    ]
    assert summary["ok"] is True
    assert summary["clients"] == 4
    assert summary["seconds"] >= 3
    assert 0 < summary["ticks"] <= 60 * summary["seconds"] + 1
    # Each bot throws four times a second and is notified of the coins.
    assert summary["reliable_sent"] == summary["reliable_delivered"] >= 4 * (COINS + 1)
    assert summary["misordered"] == summary["duplicates"] == 0
    assert summary["rtt_ms"] >= 80
    assert 0 < summary["loss_percent"] < 20
    assert summary["load_intact"] is True
    assert 0 < summary["load_seconds"] < 20
    assert summary["load_rtt_ms"] >= 80
    if summary["ticks"] > 160:  # bandwidth is measured over the older half of the last 256 packets
        assert summary["kbps_up"] > 0
        assert summary["kbps_down"] > 0


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--clients", "0"], "--clients"),
        (["--clients", "65"], "--clients"),
        (["--clients", "2.5"], "--clients"),
        (["--seconds", "nan"], "--seconds"),
        (["--rate", "fast"], "--rate"),
        (["--loss", "101"], "--loss"),
        (["--loss", "-1"], "--loss"),
        (["--latency", "5", "--jitter", "6"], "--jitter"),
        (["--world", "33"], "--world"),
        (["--port", "65536"], "--port"),
        (["--seed", "-1"], "--seed"),
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


@pytest.mark.skipif(sys.platform == "win32", reason="process groups and signals of POSIX")
# By name, as Windows lacks the second one.
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGKILL", -9)])
def test_no_process_outlives_the_demo(name: str, code: int) -> None:
    demo = subprocess.Popen(
        [*COMMAND, "--clients", "2", "--seconds", "600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert demo.stdout is not None
    assert demo.stderr is not None
    with demo, demo.stdout, demo.stderr:
        next(line for line in demo.stdout if "playing" in line)
        # Ctrl-C reaches the whole group, a kill only its target.
        (os.killpg if name == "SIGINT" else os.kill)(demo.pid, signal.Signals[name])
        assert demo.wait(timeout=30) == code
        assert "Traceback" not in demo.stderr.read()
    wait_until(lambda: not group_exists(demo.pid))


def group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# --- the referee ---


class ScriptedProcesses:
    """A server and a process of bots that report what a test wrote down for each phase, in virtual time."""

    count = 2

    def __init__(self, script: dict[Phase, list[Link]], monkeypatch: pytest.MonkeyPatch) -> None:
        self._script = script
        self._now = 100.0
        self.phases: list[Phase] = []
        monkeypatch.setattr(time, "monotonic", lambda: self._now)

    def announce(self, phase: Phase) -> None:
        self.phases.append(phase)

    def reports(self, seconds: float) -> Iterator[tuple[int, Report]]:
        self._now += seconds
        for number, end in enumerate(self._script[self.phases[-1]]):
            yield number, Report(self.phases[-1], ticks=7, links=[end])


class NoDisplay(Display):
    def show(self, phase: Phase, links: Links) -> None:
        pass


def play_scripted(processes: ScriptedProcesses) -> Match:
    return Referee(cast(Processes, processes), NoDisplay(Options()), clients=1).play(seconds=20)


def test_a_match_goes_through_all_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    script = {phase: [link(0), link(0)] for phase in Phase}
    script[Phase.PLAY] = [link(0, queued=3), link(0, rtt_ms=50.0)]
    processes = ScriptedProcesses(script, monkeypatch)
    match = play_scripted(processes)
    assert processes.phases == list(Phase)
    assert match.seconds == pytest.approx(20)
    assert match.ticks == 7
    assert match.played == {0: Ends(bot=script[Phase.PLAY][1], server=script[Phase.PLAY][0])}
    assert match.final == {0: Ends(bot=script[Phase.END][1], server=script[Phase.END][0])}


def test_without_a_connection_there_is_no_play(monkeypatch: pytest.MonkeyPatch) -> None:
    script = {phase: [link(1), link(0, connected=False, reason="no server answered")] for phase in Phase}
    processes = ScriptedProcesses(script, monkeypatch)
    match = play_scripted(processes)
    assert processes.phases == [Phase.CONNECT, Phase.DRAIN, Phase.END]
    assert find_faults(match.final, clients=1) == ["Bot 0 never got a connection: no server answered."]


def test_waiting_for_the_last_messages_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    script = {phase: [link(0, queued=1), link(0)] for phase in Phase}
    processes = ScriptedProcesses(script, monkeypatch)
    started = time.monotonic()
    play_scripted(processes)
    assert processes.phases == list(Phase)
    assert time.monotonic() - started < 20 + DRAIN_SECONDS + 1


@pytest.mark.parametrize(("intact", "seconds"), [(None, DRAIN_SECONDS), (True, 0.5)])
def test_a_world_that_is_still_loading_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, intact: bool | None, seconds: float
) -> None:
    script = {phase: [link(0), link(0, load=Load(intact=intact))] for phase in Phase}
    processes = ScriptedProcesses(script, monkeypatch)
    started = time.monotonic()
    play_scripted(processes)
    assert time.monotonic() - started == pytest.approx(20 + seconds, abs=1)


# --- the display ---


def show_all(display: Display, links: Links) -> None:
    for phase in Phase:
        display.show(phase, links)


def some_links() -> Links:
    counts = {"reliable": ChannelCounts(sent=30, received=28), "inputs": ChannelCounts(400, 390)}
    return {
        0: Ends(link(0, rtt_ms=123.4, received_kbps=77.7, channels=counts), link(0, channels=counts)),
        1: Ends(link(1, connected=False, reason="the server is full"), None),
        2: Ends(None, link(2)),
        3: Ends(link(3, load=Load(fraction=0.52)), link(3)),
    }


def test_plain_lines_come_once_a_second(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with open_display(Options()) as display:
        for _ in range(35):
            now += 0.1
            display.show(Phase.PLAY, some_links())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "playing: 2 connected  RTT 62 ms" in lines[0]
    assert lines[0].endswith("delivered  world 52%")


def test_the_live_table_has_a_row_for_each_bot(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "140")
    with open_display(Options()) as display:
        assert isinstance(display, LiveTable)
        show_all(display, {})
        show_all(display, some_links())
    shown = capsys.readouterr().out
    assert "123" in shown
    assert "78" in shown
    assert "the server is full" in shown


def test_the_live_table_fits_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    counts = {name: ChannelCounts(123_456, 99_999) for name in ("reliable", "inputs", "positions", "health")}
    busy = link(19, rtt_ms=1110.4, jitter_ms=123.4, sent_kbps=12345.0, channels=counts)
    with open_display(Options()) as display:
        show_all(display, {19: Ends(busy, busy), **some_links()})
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().out)
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    for word in ("1110", "123.4", "12345", "99999", "reliable", "places", "health"):
        assert word in shown


def test_a_wrong_seed_is_told_with_its_whole_bounds() -> None:
    done = run_demo("--seed", "")
    assert done.returncode == 2
    assert "argument --seed: must be a whole number from 0 to 4294967295, not ''" in done.stderr


@pytest.mark.parametrize(
    ("load", "caption"),
    [
        (Load(fraction=0.5), f"Bot 0 loads the world {'█' * 15}{'░' * 15}  50%"),
        (Load(seconds=1.23, intact=True), "Bot 0 loaded the world in 1.2 s"),
        (Load(seconds=1.23, intact=False), "Bot 0 failed to load the world in 1.2 s"),
    ],
)
def test_the_live_table_has_a_bar_for_the_world(
    load: Load, caption: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "140")
    with open_display(Options()) as display:
        display.show(Phase.PLAY, {0: Ends(link(0, load=load), link(0))})
    assert caption in capsys.readouterr().out


def test_without_rich_a_terminal_gets_plain_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setitem(sys.modules, "rich.live", None)
    with open_display(Options()) as display:
        assert isinstance(display, PlainLines)
    assert "pip install '.[demo]'" in capsys.readouterr().out


# --- the world ---


def test_a_player_runs_at_its_speed_and_no_faster() -> None:
    world = World(seed=1)
    world.join(0)
    world.players[0].spot = (10.0, 10.0)
    world.steer(0, 300, 400)
    world.step(0.5)
    assert world.players[0].spot == pytest.approx((10 + 0.6 * SPEED * 0.5, 10 + 0.8 * SPEED * 0.5))


def test_a_player_stays_on_the_field() -> None:
    world = World(seed=1)
    world.join(0)
    world.steer(0, -1, 1)
    for _ in range(100):
        world.step(0.1)
    assert world.players[0].spot == (0.0, SIZE)


def test_a_coin_in_reach_is_taken_once() -> None:
    world = World(seed=1)
    world.join(3)
    world.coins = {5: (50.0 + REACH / 2, 50.0), 6: (50.0 + 2 * REACH, 50.0)}
    world.players[3].spot = (50.0, 50.0)
    assert world.step(0.1) == [Taken(5, player=3)]
    assert world.step(0.1) == []
    assert world.players[3].purse == [5]
    assert list(world.coins) == [6]


def test_a_thrown_coin_lands_and_can_be_taken_again() -> None:
    world = World(seed=1)
    world.join(0)
    world.coins = {}
    world.players[0].spot = (50.0, 50.0)
    world.players[0].purse = [7]
    world.throw(0, (50.0, 50.0))
    world.throw(0, (10.0, 10.0))
    assert world.step(0.1) == [Placed(7, (50.0, 50.0)), Taken(7, player=0)]


def test_a_thrown_coin_hits_others_and_a_coin_picked_up_heals() -> None:
    world = World(seed=1)
    for number, x in enumerate((50.0, 55.0, 80.0)):
        world.join(number)
        world.players[number].spot = (x, 50.0)
    world.coins = {}
    world.players[0].purse = [7]
    world.throw(0, (50.0, 50.0))
    world.throw(0, (50.0, 50.0))
    healths = [player.health for player in world.players.values()]
    assert healths == [MAX_HEALTH, MAX_HEALTH - HIT, MAX_HEALTH]
    world.coins = {8: (55.0, 50.0)}
    world.step(0.0)
    assert world.players[1].health == MAX_HEALTH - HIT + HEAL


def test_coins_are_neither_made_nor_lost() -> None:
    world = World(seed=2)
    for number in range(5):
        world.join(number)
    for step in range(2_000):
        number = step % 5
        if step == 1_000:
            world.leave(4)
        if number in world.players:
            world.steer(number, (step % 7) - 3, (step % 11) - 5)
            if step % 4 == 0:
                world.throw(number, (step % SIZE, 50.0))
        world.step(1 / 60)
    in_purses = [coin for player in world.players.values() for coin in player.purse]
    assert sorted([*world.coins, *in_purses]) == list(range(COINS))


# --- the books ---


def throws(numbers: Iterable[int]) -> list[Throw]:
    return [Throw(number % 100, 5.0, number) for number in numbers]


def receive(numbers: Iterable[int]) -> Received:
    received = Received()
    for throw in throws(numbers):
        received.add(throw)
    return received


def send(count: int) -> Sent:
    sent = Sent()
    for throw in throws(range(count)):
        sent.add(throw)
    return sent


def counts(received: Received) -> tuple[int, int, int]:
    return received.delivered, received.duplicates, received.misordered


@pytest.mark.parametrize(
    ("numbers", "delivered", "duplicates", "misordered"),
    [
        ([], 0, 0, 0),
        ([0, 1, 2], 3, 0, 0),
        ([0, 1, 1, 2, 0], 3, 2, 0),
        ([0, 2, 3], 3, 0, 1),
        ([0, 2, 1, 3], 4, 0, 2),
        ([1, 0, 0], 2, 1, 2),
    ],
)
def test_what_comes_in_is_judged_by_its_numbers(
    numbers: list[int], delivered: int, duplicates: int, misordered: int
) -> None:
    assert counts(receive(numbers)) == (delivered, duplicates, misordered)


def test_both_sides_have_the_same_digest_of_the_same_messages() -> None:
    sent, received = send(50), receive(range(50))
    assert sent.digest == received.digest
    swapped = [*range(48), 49, 48]
    assert len({send(49).digest, receive(swapped).digest, sent.digest}) == 3


def link(bot: int, **values: object) -> Link:
    made = Link(bot=bot, connected=True, sent=send(30), received=receive(range(30)))
    for name, value in values.items():
        setattr(made, name, value)
    return made


def altered() -> Received:
    """As many messages as were sent, in order, but one with other content."""
    received = Received()
    for throw in throws(range(30)):
        throw.x = 99.0 if throw.number == 15 else throw.x
        received.add(throw)
    return received


def test_a_clean_report_passes() -> None:
    links = {number: Ends(link(number), link(number)) for number in range(3)}
    assert find_faults(links, clients=3) == []


@pytest.mark.parametrize(
    ("doctored", "fault"),
    [
        ({"received": receive(range(29))}, "29 arrived"),
        ({"received": receive([*range(15), *range(16, 30)])}, "29 arrived"),
        ({"received": receive([*range(30), 29])}, "more than once"),
        ({"received": receive([0, 2, 1, *range(3, 30)])}, "out of order"),
        ({"received": altered()}, "not arrive as they were sent"),
        ({"sent": send(31)}, "30 arrived"),
        ({"sent": Sent(), "received": receive(range(30))}, "nothing is proven"),
        ({"stale": 2}, "2 inputs or positions"),
        ({"connected": False, "reason": "nothing was heard"}, "lost its connection"),
    ],
)
@pytest.mark.parametrize("end", ["bot", "server"])
def test_a_doctored_report_fails(doctored: dict[str, object], fault: str, end: str) -> None:
    ends = {"bot": link(1), "server": link(1), end: link(1, **doctored)}
    links = {0: Ends(link(0), link(0)), 1: Ends(ends["bot"], ends["server"])}
    faults = find_faults(links, clients=2)
    assert any(fault in sentence for sentence in faults)
    assert all("bot 1" in sentence.lower() for sentence in faults)


def test_a_bot_must_know_the_newest_health_of_all() -> None:
    told = link(0, health={0: 90, 1: 100})
    assert find_faults({0: Ends(link(0, health={0: 90, 1: 100, 2: 5}), told)}, clients=1) == []
    for heard in ({0: 90}, {0: 100, 1: 100}):
        assert find_faults({0: Ends(link(0, health=heard), told)}, clients=1) == [
            "Bot 0 doesn't know the newest health of 1 players."
        ]


@pytest.mark.parametrize(
    ("load", "fault"),
    [
        (Load(fraction=0.5), "Bot 0 has only 50% of the world."),
        (Load(intact=False), "Bot 0 got a world with the wrong hash."),
        (Load(intact=False, error="it was cancelled"), "Bot 0 did not get the world: it was cancelled."),
        (Load(intact=True), None),
    ],
)
def test_the_world_must_arrive_intact(load: Load, fault: str | None) -> None:
    faults = find_faults({0: Ends(link(0, load=load), link(0))}, clients=1)
    assert faults == ([fault] if fault else [])


def test_ticks_that_come_after_newer_ones_are_counted() -> None:
    end = Link(bot=0)
    for tick in (3, 4, 2, 4, 9):
        end.note_tick(tick)
    assert (end.newest_tick, end.stale) == (9, 2)


def test_a_bot_that_nobody_heard_of_fails() -> None:
    links = {0: Ends(link(0), link(0)), 1: Ends(link(1, connected=False, reason="the server is full"), None)}
    assert find_faults(links, clients=3) == [
        "Bot 1 never got a connection: the server is full.",
        "Bot 2 never got a connection.",
    ]


def test_a_bot_that_was_still_connecting_fails() -> None:
    assert find_faults({0: Ends(link(0, connected=False), link(0))}, clients=1) == [
        "Bot 0 never got a connection."
    ]


def test_the_summary_adds_up_both_directions() -> None:
    pairs = {
        number: Ends(
            link(number, rtt_ms=100.0 + number, sent_kbps=10.0, received_kbps=30.0, packets_acked=99),
            link(number, packets_acked=98, packets_lost=3),
        )
        for number in range(2)
    }
    summary = summarize(pairs, pairs, ticks=120, seconds=2.04, ok=True)
    assert (summary.clients, summary.ticks, summary.seconds) == (2, 120, 2.0)
    assert (summary.reliable_sent, summary.reliable_delivered) == (120, 120)
    assert (summary.rtt_ms, summary.kbps_up, summary.kbps_down) == (100.5, 10.0, 30.0)
    assert summary.loss_percent == 1.5
    assert (summary.load_seconds, summary.load_intact, summary.load_rtt_ms) == (None, None, None)


def test_the_summary_tells_of_the_world() -> None:
    load = Load(seconds=1.234, intact=True)
    for tick, rtt_ms in enumerate((100.0, 110.0, 120.0), 1):
        load.note_rtt(tick, rtt_ms)
    pairs = {0: Ends(link(0), link(0)), 1: Ends(link(1, load=load), link(1))}
    summary = summarize(pairs, pairs, ticks=120, seconds=2.0, ok=True)
    assert (summary.load_seconds, summary.load_intact, summary.load_rtt_ms) == (1.23, True, 110.0)


def test_the_last_bot_loads_the_world_unless_there_is_none() -> None:
    assert (Options(clients=5).loader, Options(clients=5, world=0).loader) == (4, None)
    assert make_world(Options(world=0.5)) == make_world(Options(world=0.5))
    assert len(make_world(Options(world=0.5))) == 512 * 1024
    assert make_world(Options(seed=2)) != make_world(Options(seed=3))
