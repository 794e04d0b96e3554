"""``make soak``: plays random games on random bad networks in virtual time, and checks all that arrives."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import soak
from soak import options


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    options.add_arguments(parser)
    try:
        return soak.run(options.parse(parser.parse_args(arguments)))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
