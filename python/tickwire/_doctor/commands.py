"""``tickwire doctor``: prints the findings of an examination."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from tickwire import _inspection as inspection
from tickwire._doctor.findings import Finding, Verdict
from tickwire._doctor.machine import examine_machine
from tickwire._doctor.way import examine_way
from tickwire.live._keys import read_key

WIDTH = 18


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", metavar="HOST:PORT", help="examine the path to this server too")
    parser.add_argument(
        "--protocol", metavar="MODULE:PROTOCOL", help="the server's protocol, to connect to it"
    )
    parser.add_argument(
        "--key-file",
        type=Path,
        metavar="FILE",
        help="its private key in hex digits; development mode without it",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def run(parsed: argparse.Namespace) -> int:
    """Examines and prints. Returns 1 if something is broken."""
    try:
        if parsed.to is None and (parsed.protocol or parsed.key_file):
            raise ValueError("--protocol and --key-file need --to HOST:PORT")
        protocol = None if parsed.protocol is None else inspection.find(parsed.protocol)
        key = None if parsed.key_file is None else read_key(parsed.key_file)
        found = report(examine_machine(), parsed.json)
        if parsed.to is not None:
            found += report(examine_way(parsed.to, protocol, key), parsed.json)
    except (OSError, ValueError) as error:
        print(f"tickwire doctor: {error}", file=sys.stderr)
        return 1
    if parsed.json:
        told = [{**vars(one), "verdict": one.verdict.value} for one in found]
        print(json.dumps(told, indent=2))
    return int(any(one.verdict is Verdict.BROKEN for one in found))


def report(findings: Iterable[Finding], quiet: bool) -> list[Finding]:
    """Prints each finding at once, and returns all findings."""
    found = []
    for one in findings:
        found.append(one)
        if not quiet:
            for line in lines(one, shutil.get_terminal_size().columns):
                print(line, flush=True)
    return found


def lines(finding: Finding, columns: int) -> list[str]:
    """A finding, wrapped to the width of a terminal. Long words, such as paths, aren't split."""
    beginning = f"{finding.verdict.value:<8} {finding.subject:<{WIDTH}} "
    indent = " " * len(beginning)
    written = _wrapped(finding.text, beginning, indent, columns)
    if finding.advice:
        written += _wrapped(finding.advice, f"{indent}-> ", f"{indent}   ", columns)
    return written


def _wrapped(text: str, beginning: str, indent: str, columns: int) -> list[str]:
    width = max(columns, len(indent) + 20)
    wrapper = textwrap.TextWrapper(
        width,
        initial_indent=beginning,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.wrap(text) or [beginning]
