"""Ends interrupted programs properly."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from tickwire._run import Stop

__all__: list[str] = []

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells define it."""


class _Terminated(BaseException):
    """SIGTERM arrived."""


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise _Terminated


@contextmanager
def until_interrupted() -> Iterator[None]:
    """A context manager that ends its block at Ctrl-C or SIGTERM."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except _Terminated:
        pass
    except KeyboardInterrupt:
        Stop.interrupted = True
    finally:
        signal.signal(signal.SIGTERM, before)


def exit_code(run: Callable[[], int | None]) -> int:
    """Runs a program. Returns its exit code, or :data:`INTERRUPTED` if Ctrl-C ended the program and it
    returned no error code.
    """
    Stop.interrupted = False
    try:
        code = run()
    except KeyboardInterrupt:
        return INTERRUPTED
    return code or (INTERRUPTED if Stop.interrupted else 0)
