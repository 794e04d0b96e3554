"""The log of servers until the game configures :mod:`logging`."""

from __future__ import annotations

import logging
import sys
import time

__all__ = ["UnconfiguredLog"]

PERIOD = 1.0
"""Seconds from one line to the next."""


class UnconfiguredLog(logging.Handler):
    """Writes warnings of servers to stderr, at most one line a second, until the game configures logging.

    It is a handler of the logger ``tickwire``. Any other handler of this logger, or of the root logger,
    replaces it. ``logging.basicConfig()`` shows all lines;
    ``logging.getLogger("tickwire").addHandler(logging.NullHandler())`` shows none.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.terminator = "\n"
        self._next = 0.0
        self._left_out = 0

    def handle(self, record: logging.LogRecord) -> bool:
        """Writes the record if no other handler does."""
        if logging.getLogger().handlers or logging.getLogger("tickwire").handlers != [self]:
            return False
        return bool(super().handle(record))

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a line about a server, if the next line is due."""
        try:
            text = record.getMessage()
            # Clients don't print: the game decides what its player sees.
            if "the server at " not in text:
                return
            now = time.monotonic()
            if now < self._next:
                self._left_out += 1
                return
            more = f" (and {self._left_out} more lines)" if self._left_out else ""
            self._next, self._left_out = now + PERIOD, 0
            stream = sys.stderr
            # There is none in a program without a console.
            if stream is not None:
                stream.write(f"tickwire: {text}{more}{self.terminator}")
                stream.flush()
        except Exception:
            self.handleError(record)
