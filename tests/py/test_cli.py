"""The ``tickwire`` command: what each of its commands does is tested beside it."""

from __future__ import annotations

import re

import pytest
from tickwire import cli


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^    (\w+) ", printed(capsys, "--help"), re.M)
    assert {"capture", "demo", "doctor", "inspect", "plot", "proxy", "soak", "top"} == set(commands)
    for command in commands:
        assert printed(capsys, command, "--help").startswith(f"usage: tickwire {command} ")
