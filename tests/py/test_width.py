"""What the commands print fits a terminal of 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from tickwire import _cli as cli
from tickwire._doctor.commands import lines
from tickwire._doctor.findings import Finding, Verdict

WIDTH = 80
HELPS = [(), *((name,) for name in cli.COMMANDS), *(("capture", name) for name in ("run", "open", "replay"))]


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))


def too_long(text: str) -> list[str]:
    return [line for line in text.splitlines() if len(line) > WIDTH]


@pytest.mark.parametrize("command", HELPS, ids=" ".join)
def test_each_help_fits(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main([*command, "--help"])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) > 5
    assert too_long(out) == []


def test_what_the_doctor_finds_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) in (0, 1)
    out = capsys.readouterr().out
    assert [line for line in too_long(out) if len(line.split()[-1]) < WIDTH // 2] == []


def test_a_finding_is_wrapped_behind_its_subject() -> None:
    finding = Finding("a subject", Verdict.FINE, "word " * 30, "advice " * 20)
    written = lines(finding, WIDTH)
    assert not too_long("\n".join(written))
    assert all(line.startswith(" " * 28) for line in written[1:])
    assert " ".join(" ".join(written).split()).endswith("word word -> " + "advice " * 19 + "advice")
    assert len(lines(finding, 10)) > len(written)


def test_what_inspect_says_fits(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
from typing import Annotated

import tickwire as tw


@tw.message
class Blob:
    data: Annotated[bytes, tw.data(60_000)]
    place: Annotated[tuple[float, float], tw.vec2(-100, 100, 0.01)]


protocol = tw.Protocol(1, [Blob], [tw.reliable_ordered("events"), tw.unreliable("state")])
"""
    (tmp_path / "narrow_game.py").write_text(code, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert cli.main(["inspect", "narrow_game:protocol"]) == 0
    assert too_long(capsys.readouterr().out) == []
