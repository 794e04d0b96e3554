"""The capture of a process that ``tickwire capture run`` started."""

from __future__ import annotations

import functools
import os
import threading
from pathlib import Path

from tickwire._core import Capture

__all__: list[str] = []

_LOCK = threading.Lock()


def process_capture() -> Capture:
    """The capture that the environment variable ``TICKWIRE_CAPTURE`` asks for. All endpoints of a process
    share it.
    """
    with _LOCK:
        return _made(os.getpid())


@functools.cache
def _made(process: int) -> Capture:
    keys = os.environ.get("TICKWIRE_CAPTURE_KEYS")
    bound = os.environ.get("TICKWIRE_CAPTURE_MAX_BYTES", "")
    most = {"max_bytes": int(bound)} if bound.isdecimal() else {}
    path = _own(os.environ["TICKWIRE_CAPTURE"], process)
    return Capture(path, keys=None if keys is None else _own(keys, process), **most)


def _own(plain: str, process: int) -> Path:
    """The path for this process: with its process id if another process has the plain one."""
    path = Path(plain)
    try:
        path.open("xb").close()
    except OSError:
        return path.with_stem(f"{path.stem}.{process}") if path.exists() else path
    return path
