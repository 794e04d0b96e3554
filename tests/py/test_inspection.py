"""``tickwire inspect``: its output, and its errors if there is nothing to print."""

from __future__ import annotations

from pathlib import Path

import pytest
from tickwire import _cli as cli

GAME = """
from typing import Annotated
import tickwire as tw

@tw.message
class Move:
    tick: tw.u16
    yaw: Annotated[float, tw.angle(0, 360, 0.1)]
    target: tw.u8 | None
    note: Annotated[str, tw.text(100)]

@tw.message
class Ping:
    pass

class Odd(tw.messages.Message):
    def serialize(self, stream):
        pass

@tw.message
class Snapshot:
    players: Annotated[list[Move], tw.up_to(60)]

@tw.message(channel="events")
class Level:
    cells: Annotated[bytes, tw.data(3000)]

@tw.message(channel="state")
class State:
    cells: Annotated[bytes, tw.data(3000)]

CHANNELS = [tw.reliable_ordered("events", strict=True), tw.unreliable("state")]

class Game:
    protocol = tw.Protocol(0xABC, [Move, Ping, Odd, Snapshot, Level, State], CHANNELS)
"""


@pytest.fixture(autouse=True)
def game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_game.py").write_text(GAME)
    (tmp_path / "broken_game.py").write_text("import nothing_of_this_name")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_it_prints_what_each_field_costs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", "some_game:Game.protocol"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("protocol 0xabc, hash ")
    assert lines[2:5] == [
        "channels: 2",
        "  0  reliable_ordered 'events', strict",
        "  1  unreliable 'state', weight 1",
    ]
    assert lines[6:] == [
        "messages: 6, 3 bits for the type of each",
        "",
        "Move: 36 to 851 bits, at most 107 bytes",
        "  tick          16 bits  bits(16)",
        "  yaw           12 bits  angle(0, 360, 0.1)",
        "  target    1 to 9 bits  bits(8) | None",
        "  note    7 to 814 bits  text(100)",
        "",
        "Ping: 0 bits, at most 0 bytes",
        "",
        "Odd: writes itself, at most 1,024 bytes",
        "",
        "Snapshot: 6 to 51,066 bits, at most 6,384 bytes",
        "  ! may not fit a packet: up to 7 fragments;",
        "    2% loss loses up to 13% of these messages, but on reliable channels",
        "  players  6 to 51,066 bits  list[Move], up_to(60)",
        "",
        "Level: 12 to 24,019 bits, at most 3,003 bytes, on events",
        "  ! may not fit a packet: up to 3 fragments,",
        "    each sent again by itself until it is there",
        "  cells  12 to 24,019 bits  data(3000)",
        "",
        "State: 12 to 24,019 bits, at most 3,003 bytes, on state",
        "  ! may not fit a packet: up to 3 fragments;",
        "    2% loss loses up to 6% of these messages",
        "  cells  12 to 24,019 bits  data(3000)",
    ]


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("some_game", "'some_game' is not of the form module:protocol"),
        (":protocol", "':protocol' is not of the form module:protocol"),
        ("no_such_game:protocol", "importing no_such_game failed: ModuleNotFoundError: No module named"),
        (
            "broken_game:protocol",
            "importing broken_game failed: ModuleNotFoundError: No module",
        ),
        ("some_game:protocol", "some_game has no protocol"),
        ("some_game:Game", "some_game:Game is a type, not a tickwire.Protocol"),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(
    target: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["inspect", target])
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(f"tickwire inspect: {complaint}")
    assert error.count("\n") == 1
