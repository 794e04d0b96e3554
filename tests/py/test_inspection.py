"""``tickwire inspect``: what it prints, and how it says that there is nothing to print."""

from __future__ import annotations

from pathlib import Path

import pytest
from tickwire import cli

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

class Odd(tw.Message):
    def serialize(self, stream):
        pass

CHANNELS = [tw.reliable_ordered("events", strict=True), tw.unreliable()]

class Game:
    protocol = tw.Protocol(0xABC, [Move, Ping, Odd], CHANNELS)
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
        "  1  unreliable, weight 1",
    ]
    assert lines[6:] == [
        "messages: 3, 2 bits for the type of each",
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
