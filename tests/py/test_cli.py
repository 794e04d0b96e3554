"""The ``tickwire`` command: what each of its commands does is tested beside it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from tickwire import _cli as cli


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^    (\w+)(?: |$)", printed(capsys, "--help"), re.M)
    assert {
        "capture",
        "demo",
        "doctor",
        "fleet",
        "inspect",
        "plot",
        "proxy",
        "relay",
        "rendezvous",
        "replay",
        "top",
    } == set(commands)
    for command in commands:
        assert printed(capsys, command, "--help").startswith(f"usage: tickwire {command} ")


def test_an_argument_that_a_command_does_not_have_is_said_by_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["doctor", "--fish", "3"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said == "tickwire doctor: unrecognized arguments: --fish 3; try tickwire doctor --help.\n"


def test_only_the_command_that_is_asked_for_is_loaded() -> None:
    script = (
        "import sys\nfrom tickwire import _cli as cli\n"
        "try:\n    cli.main(['inspect', '--help'])\nexcept SystemExit:\n    pass\n"
        "print(*(name for name in sys.modules if name.startswith('tickwire.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "tickwire._inspection" in loaded
    others = ("capture", "_demo", "_doctor", "live", "_meeting", "_plots", "_proxy")
    assert not loaded & {f"tickwire.{name}" for name in others}
