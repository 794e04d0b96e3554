"""Large data beside the game's messages: chunks, and pulls of named content.

Chunks are sent on a channel made by :func:`tickwire.chunks`. See ``docs/chunks.md``.
"""

from tickwire._core import Chunk, ChunkStats, Congestion, IncomingChunk, ReceivedChunk, Transfer, Transfers
from tickwire._pulls import Catalogue, Pull, Puller, PullError, PullHook

__all__ = [
    "Catalogue",
    "Chunk",
    "ChunkStats",
    "Congestion",
    "IncomingChunk",
    "Pull",
    "PullError",
    "PullHook",
    "Puller",
    "ReceivedChunk",
    "Transfer",
    "Transfers",
]
