"""Kinds of channels. They decide whether messages arrive, in which order, and what happens to old messages.

See ``docs/channels.md``.
"""

from tickwire._core import (
    Channel,
    chunks,
    latest,
    payload,
    redundant,
    reliable_ordered,
    reliable_unordered,
    sequenced,
    unreliable,
)

__all__ = [
    "Channel",
    "chunks",
    "latest",
    "payload",
    "redundant",
    "reliable_ordered",
    "reliable_unordered",
    "sequenced",
    "unreliable",
]
