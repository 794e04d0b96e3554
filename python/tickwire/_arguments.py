"""The parser of command lines. It has its own module, so that the command of a sample doesn't load all other
commands.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

__all__ = ["Parser"]


class Parser(argparse.ArgumentParser):
    """Reports errors in one sentence, without the usage text."""

    fill: Callable[[Parser], None] | None = None
    """A function that adds the arguments. It is called when the parser is first used, so that only the chosen
    command is loaded.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        # What begins like a number is no option: -5%, too, is for the argument's own parser to refuse.
        self._negative_number_matcher = re.compile(r"^-\.?\d")

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; try {self.prog} --help.\n")

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Refuses unknown arguments. The error names the command that got them, not its parent."""
        fill, self.fill = self.fill, None
        if fill:
            fill(self)
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown
