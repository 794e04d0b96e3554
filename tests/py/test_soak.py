"""The soak: it runs, it repeats, it notices what is wrong; and what it found stays found."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
import soak
import tickwire as tw
from conftest import Blob, Chat, Move
from soak import plot
from soak.__main__ import main
from soak.ghosts import Picture, Walker, Walkers
from soak.model import FLOWS, Violation
from soak.scenario import draw
from tickwire.testing import Conditions, Simulation, advance, connected_pair


def test_ten_minutes_break_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "test", "--hours", "0.17", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert summary["failure"] is None
    assert summary["virtual_hours"] >= 0.17
    assert 1000 < summary["received"] < summary["sent"]


def test_a_scenario_is_the_same_each_time_and_another_one_with_another_seed() -> None:
    one, again, other = (soak.play_scenario(seed, 3) for seed in ("a", "a", "b"))
    assert one.failure is None
    assert (one.transcript, one.received) == (again.transcript, again.received)
    assert one.transcript != other.transcript


@pytest.mark.parametrize(("seed", "scenario"), [("long", 203), ("long", 1597), ("final", 1327), ("ci", 73)])
def test_chunks_go_on_where_they_hung(seed: str, scenario: int) -> None:
    # Behind a flood of messages at a fixed rate; at ticks of which every other one found the peer silent; for
    # want of the memory that chunks behind them had taken.
    result = soak.play_scenario(seed, scenario)
    assert result.failure is None
    assert result.chunks


@pytest.mark.parametrize("scenario", [35, 288])
def test_a_world_is_seen_as_it_is(scenario: int) -> None:
    assert draw("ghosts", scenario).ghosts
    result = soak.play_scenario("ghosts", scenario)
    assert result.failure is None
    assert result.connected


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda picture, _: picture.steps.clear(), "walker 1 has news before it came|were reported"),
        (lambda picture, walker: picture.steps.update({walker: 9}), "walker 1 went back to step 2"),
        (lambda picture, walker: picture.steps.update({walker: 0}), "walker 1 was not at step 1 before"),
    ],
)
def test_what_a_client_is_told_of_a_world_is_held_to_the_model(spoil: Any, sentence: str) -> None:
    protocol = tw.Protocol(1, [Chat], ghosts=[Walker])
    network, server, client = connected_pair(protocol)
    walkers, picture = Walkers(server, Random(1)), Picture("client 1", client)
    walkers.born = 1
    walker = server.world.spawn(Walker(number=1, steps=1))
    walkers.alive.append(walker)
    picture.take(advance(network, server, client, seconds=0.2)[1].ghosts, walkers)
    [handle] = server.clients
    assert picture.agrees(walkers, handle)
    spoil(picture, client.world.objects(Walker)[0])
    walker.steps = 2
    assert not picture.agrees(walkers, handle)
    with pytest.raises(Violation, match=sentence):
        picture.take(advance(network, server, client, seconds=0.2)[1].ghosts, walkers)


def test_several_processes_do_the_same_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    summaries = []
    for jobs in ("1", "2"):
        assert main(["--seed", "jobs-339", "--hours", "0.018", "--jobs", jobs, "--json"]) == 0
        summary = json.loads(capsys.readouterr().out.splitlines()[-1])
        summaries.append(
            {name: summary[name] for name in ("scenarios", "sent", "received", "datagrams", "ends")}
        )
    assert summaries[0] == summaries[1]


def test_the_channels_of_a_game_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "soaked.py").write_text(
        "import tickwire as tw\n"
        "@tw.message\n"
        "class Hit:\n"
        "    hard: bool\n"
        "channels = [tw.channels.redundant(max_message_bytes=64), tw.latest(keys=3), tw.chunks()]\n"
        "protocol = tw.Protocol(1, [Hit], channels)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["soaked:protocol", "--hours", "0.2"]) == 0
    with pytest.raises(SystemExit):
        main(["soaked:nothing"])
    assert "soaked has no nothing" in capsys.readouterr().err


def test_a_failure_names_the_command_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FLOWS["reliable_ordered"], "_has", lambda *_: 1 / 0)
    assert main(["--seed", "a b", "--hours", "5", "--json"]) == 1
    out = capsys.readouterr().out
    failure = json.loads(out.splitlines()[-1])["failure"]
    assert "ZeroDivisionError" in failure["failure"]
    assert failure["again"] == f"PYTHONPATH=tests python -m soak --seed 'a b' --only {failure['scenario']}"
    assert failure["again"] in out
    assert main(["--seed", "a b", "--only", str(failure["scenario"])]) == 1


def test_an_interrupt_tells_what_was_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def play(seed: str, index: int, protocol: str | None) -> soak.Result:
        if index == 2:
            raise KeyboardInterrupt
        return soak.Result(index, "game", hours=0.01 * len(seed), chunks=0 if protocol else 1)

    monkeypatch.setattr("soak.report.play_scenario", play)
    assert main(["--seed", "x", "--hours", "100", "--json"]) == 130
    out = capsys.readouterr().out.splitlines()
    assert out[-2] == "interrupted"
    assert json.loads(out[-1])["scenarios"] == 2


@pytest.mark.parametrize("options", [["--hours", "0"], ["--jobs", "0"], ["--only", "-1"]])
def test_options_out_of_their_bounds_are_named(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([*options])
    assert f"{options[0]} must be" in capsys.readouterr().err


# What each kind must not do: (sent numbers, received numbers).
WRONG = {
    "reliable_ordered": [([1, 2], [2]), ([1], [1, 1]), ([], [1])],
    "reliable_unordered": [([1], [1, 1]), ([1], [2])],
    "unreliable": [([1], [1, 1]), ([], [1])],
    "sequenced": [([1, 2], [2, 1]), ([1], [1, 1]), ([1], [2])],
    "redundant": [([1, 2], [2, 1]), ([1], [1, 1])],
    "latest": [([1, 2], [2, 1]), ([], [1])],
    "payload": [([1], [1, 1]), ([], [1])],
}


@pytest.mark.parametrize("kind", WRONG)
def test_the_model_notices_what_must_not_be(kind: str) -> None:
    for sent, received in WRONG[kind]:
        flow = FLOWS[kind]("here")
        for number in sent:
            flow.send(number, 0, notify=False)
        for number in received[:-1]:
            flow.receive(number, 0)
        with pytest.raises(Violation, match="here: "):
            flow.receive(received[-1], 0)


def test_the_model_notices_what_never_comes() -> None:
    for kind in ("reliable_ordered", "reliable_unordered", "latest"):
        flow = FLOWS[kind]("here")
        flow.send(1, 0, notify=False)
        assert not flow.is_settled()
        with pytest.raises(Violation, match="here: "):
            flow.settled()
    flow = FLOWS["payload"]("here")
    flow.send(1, 0, notify=True)
    for check in (flow.at_end, flow.settled):
        with pytest.raises(Violation, match="never notified|still not notified"):
            check()
    flow.notified(1, False)
    with pytest.raises(Violation, match="notified twice"):
        flow.notified(1, True)
    flow.send(2, 0, notify=True)
    flow.notified(2, True)
    assert flow.unseen() == [2]
    flow.receive(2, 0)
    assert flow.unseen() == []


# --- what it found -----------------------------------------------------------------------------------------

CHUNKED = [tw.reliable_ordered(), tw.unreliable(), tw.chunks()]


def chunked() -> tw.Protocol:
    return tw.Protocol(1, [Move, Chat, Blob], CHUNKED)


def test_chunks_begin_once_messages_that_filled_the_link_are_over() -> None:
    # What the first slices were allowed was spent while there was no room for them, and
    # messages owed it then, at the least rate, for hours.
    with Simulation(chunked(), rate=50, conditions=Conditions(latency=0.35)) as world:
        server = world.server()
        client = world.client()
        world.run(3)
        transfer = None
        for tick in world.ticks(10):
            for _ in range(8):
                server.broadcast(Blob(bytes(1000)), channel=1)
            if tick == 200:
                transfer = server.send_chunk(server.clients[0], bytes(10_000))
        world.run(20)
        assert transfer is not None
        assert transfer.done
        assert client.connected


# --- drawing it -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [None, {"scenario": 1, "failure": "7 came twice", "again": "make soak"}])
def test_a_soak_is_drawn_from_the_last_line_it_printed(
    tmp_path: Path, failure: object, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    assert main(["--seed", "plot", "--hours", "0.001", "--json"]) == 0
    *head, line = capsys.readouterr().out.splitlines()
    path = tmp_path / "soak.txt"
    path.write_text("\n".join([*head, json.dumps({**json.loads(line), "failure": failure})]) + "\n")
    printed = plot.read_soak(path)
    assert printed is not None
    assert printed.title.startswith("soak of seed plot: 1 scenarios, ")
    assert printed.groups["in all"]["datagrams"] > 0
    assert printed.failure == (None if failure is None else "7 came twice")
    plot.draw(printed, tmp_path / "soak.png")
    assert (tmp_path / "soak.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize("text", ["", "{}", "[]\n1\n", '{"seed": 1, "failure": 3}', "hello"])
def test_what_is_no_soak_is_taken_for_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "soak.txt"
    path.write_text(text)
    assert plot.read_soak(path) is None
