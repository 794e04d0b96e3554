"""The command line of ``tickwire replay``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tickwire as tw
from tickwire.lockstep import Turn


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's arguments."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a recording of a match")
    parser.add_argument(
        "other", type=Path, nargs="?", metavar="OTHER", help="another recording to compare with"
    )
    parser.add_argument(
        "--commands", metavar="MODULE:LIST", help="the list of commands' classes, such as game:COMMANDS"
    )
    parser.add_argument("--begin", type=int, metavar="TURN", help="show turns from this one on")
    parser.add_argument("--end", type=int, metavar="TURN", help="show turns before this one")
    parser.add_argument("--all", action="store_true", help="show turns without commands too")
    parser.add_argument("--damaged", action="store_true", help="read the complete part of a damaged file")


def run(parsed: argparse.Namespace) -> int:
    """Runs the command. Returns the exit code: 1 if two recordings differ, 2 if a recording can't be read."""
    try:
        recording = tw.lockstep.Recording.read(parsed.file, damaged=parsed.damaged)
        if parsed.other is not None:
            return _compare(recording, tw.lockstep.Recording.read(parsed.other, damaged=parsed.damaged))
        _show(recording, parsed)
    except (OSError, TypeError, ValueError, tw.TickwireError) as error:
        print(f"tickwire replay: {error}", file=sys.stderr)
        return 2
    return 0


def _classes(text: str) -> Sequence[type]:
    module, _, name = text.partition(":")
    sys.path.insert(0, "")
    try:
        found: Sequence[type] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--commands must be MODULE:LIST, not {text!r}: {error}") from None
    finally:
        sys.path.remove("")
    if not isinstance(found, list | tuple):
        raise ValueError(f"--commands must name a list of classes, not {text!r}, of {type(found).__name__}")
    return found


def _show(recording: tw.lockstep.Recording, parsed: argparse.Namespace) -> None:
    names = ", ".join(f"{number} {name}".strip() for number, name in recording.players.items())
    print(f"seed {recording.seed}, players: {names}")
    print(f"{len(recording)} turns, {recording.seconds:.0f} s, {len(recording.snapshots)} snapshots")
    crcs = recording.crcs()
    begin = -(2**31) if parsed.begin is None else parsed.begin
    end = 2**31 if parsed.end is None else parsed.end
    if parsed.commands is None:
        for number, _, _, _, _, _, left, given, _ in recording.raw_turns():
            if begin <= number < end and (given or left or parsed.all):
                _line(number, crcs.get(number), [f"{player}: {data.hex()}" for player, data in given])
    else:
        turn: Turn
        for turn in recording.turns(_classes(parsed.commands)):
            if begin <= turn.number < end and (turn.commands or turn.left or parsed.all):
                said = [f"{player}: {command}" for player, command in turn.commands]
                _line(turn.number, crcs.get(turn.number), said + [f"{player} left" for player in turn.left])
    if recording.damage is not None:
        print(f"and no more: {recording.damage}")


def _line(number: int, crc: int | None, said: list[str]) -> None:
    print(f"{number:6} {'--------' if crc is None else f'{crc:08x}'}  {'; '.join(said)}".rstrip())


def _compare(one: tw.lockstep.Recording, other: tw.lockstep.Recording) -> int:
    found: Any = one.first_difference(other)
    if found is None:
        print(f"the same: {len(one)} turns")
        return 0
    where = "before the first turn" if found.turn is None else f"turn {found.turn}"
    print(f"{where}: {found.what}")
    print(f"  first:  {_shown(found.first)}")
    print(f"  second: {_shown(found.second)}")
    return 1


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(f"{player}: {data.hex()}" for player, data in value) or "nothing"
    return str(value)
