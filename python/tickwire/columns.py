"""Many messages at once, through the buffer protocol: rows, and columns for NumPy.

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
