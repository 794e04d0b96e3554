"""The command line of ``make soak``."""

from __future__ import annotations

import argparse
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    seed: str
    hours: float
    only: int | None
    jobs: int
    json: bool
    protocol: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.add_argument(
        "protocol",
        nargs="?",
        metavar="MODULE:PROTOCOL",
        help="take the channels of this protocol, such as game:protocol, instead of random ones",
    )
    parser.add_argument(
        "--seed", default="0", metavar="TEXT", help="anything; all follows from it (default 0)"
    )
    parser.add_argument(
        "--hours", type=float, default=1.0, metavar="H", help="virtual hours of play at least (default 1)"
    )
    parser.add_argument("--only", type=int, metavar="N", help="play only the scenario with this number")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes that share it (default 1)"
    )
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")


def parse(parsed: argparse.Namespace) -> Options:
    """The requested options.

    Raises:
        ValueError: an option is out of its bounds.
    """
    if not 0 < parsed.hours <= 1_000_000:
        raise ValueError(f"--hours must be above 0 and at most 1000000, not {parsed.hours:g}")
    if not 1 <= parsed.jobs <= 256:
        raise ValueError(f"--jobs must be 1 to 256, not {parsed.jobs}")
    if parsed.only is not None and parsed.only < 0:
        raise ValueError(f"--only must be 0 or more, not {parsed.only}")
    return Options(parsed.seed, parsed.hours, parsed.only, parsed.jobs, parsed.json, parsed.protocol)
