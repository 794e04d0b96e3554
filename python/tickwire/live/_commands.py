"""``tickwire top``: watches a server in a terminal."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from pathlib import Path

import tickwire as tw
from tickwire.errors import WatchError
from tickwire.live import _table as table
from tickwire.live._keys import read_key
from tickwire.live._watcher import Watcher

LOOK_AGAIN = 0.05
SETTLE = 1.0
"""Seconds until all clients of a small server have been published."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("address", metavar="HOST:PORT", help="the stats port of a server")
    parser.add_argument(
        "--key-file",
        type=Path,
        required=True,
        metavar="FILE",
        help="the file that the stats port has its key in",
    )
    parser.add_argument("--once", action="store_true", help="print the table once, and end")
    titles = [column.title for column in table.COLUMNS]
    # argparse formats help texts with %.
    one_of = f"one of: {', '.join(titles)}".replace("%", "%%")
    parser.add_argument("--sort", choices=titles, default=titles[0], metavar="COLUMN", help=one_of)


def run(parsed: argparse.Namespace) -> int:
    """Watches until the user quits, and returns the exit code."""
    try:
        key = read_key(parsed.key_file)
        if not parsed.once:
            _check_terminal()
        watcher = Watcher(_resolved(parsed.address), key)
        try:
            return _print_once(watcher, parsed.sort) if parsed.once else _show(watcher, parsed.sort)
        finally:
            watcher.close()
    except (OSError, ValueError, WatchError) as error:
        print(f"tickwire top: {error}", file=sys.stderr)
        return 1


def _resolved(address: str) -> tw.Address:
    try:
        return tw.resolve(address).result(timeout=10)[0]
    except OSError as error:
        raise OSError(f"{address.rpartition(':')[0]} is not found: {error.strerror or error}") from None


def _check_terminal() -> None:
    if importlib.util.find_spec("textual") is None:
        raise ValueError(
            "the view needs the package textual: pip install '.[top]' in a checkout; --once does without it"
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ValueError("the view needs a terminal; --once prints the table and does without one")


def _column(title: str) -> table.Column:
    return next(column for column in table.COLUMNS if column.title == title)


def _show(watcher: Watcher, sort: str) -> int:
    from tickwire.live._app import TopApp

    app = TopApp(watcher)
    app.column = _column(sort)
    app.reverse = app.column.largest_first
    app.run()
    if app.failure is not None:
        raise WatchError(app.failure)
    return 0


def _print_once(watcher: Watcher, sort: str) -> int:
    heard: float | None = None
    while heard is None or time.monotonic() - heard < SETTLE:
        watcher.poll()
        if heard is None and watcher.summary is not None:
            heard = time.monotonic()
        if watcher.summary is not None and len(watcher.clients) >= watcher.summary.clients:
            break
        time.sleep(LOOK_AGAIN)
    column = _column(sort)
    print(table.text(watcher, column, column.largest_first))
    return 0
