"""The command lines' parser. Apart from the commands, so that a sample needn't load them all."""

from __future__ import annotations

import argparse
from typing import NoReturn

__all__ = ["Parser"]


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, without the usage in front of it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; try {self.prog} --help.\n")
