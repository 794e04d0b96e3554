"""Classes and functions that handle many messages at once, as rows or as columns for NumPy. They use the
buffer protocol.

See ``docs/columns.md``.
"""

from tickwire._core import (
    Batch,
    Candidates,
    ChannelSnapshot,
    Notifications,
    Rows,
    arena,
    dtype,
    pack,
    row_format,
    unpack,
)
from tickwire._hooks import PriorityHook

__all__ = [
    "Batch",
    "Candidates",
    "ChannelSnapshot",
    "Notifications",
    "PriorityHook",
    "Rows",
    "arena",
    "dtype",
    "pack",
    "row_format",
    "unpack",
]
