"""How commands end that run until they are interrupted."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__: list[str] = []


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Leaves its block at Ctrl-C, and at SIGTERM as well."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
