"""Large blocks of data (chunks) and their transfers.

Chunks are sent on a channel made by :func:`tickwire.chunks`. See ``docs/chunks.md``.
"""

from tickwire._core import Chunk, ChunkStats, Congestion, IncomingChunk, ReceivedChunk, Transfer, Transfers

__all__ = [
    "Chunk",
    "ChunkStats",
    "Congestion",
    "IncomingChunk",
    "ReceivedChunk",
    "Transfer",
    "Transfers",
]
