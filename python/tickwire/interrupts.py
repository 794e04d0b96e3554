"""The end of commands that run until somebody stops them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__: list[str] = []


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Ends its block at Ctrl-C, and at SIGTERM as well."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
