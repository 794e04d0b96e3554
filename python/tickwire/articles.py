"""Building blocks for your own protocols: sockets, bits, acks, chunks and more.

They follow the articles of Gaffer On Games and the libraries serialize 1.0 and reliable 1.0. A game with a
:class:`~tickwire.Server` and its clients doesn't need them. The building blocks are independent of each
other. They have no clock: you pass them the time.
"""

from tickwire._core import (
    AckEndpoint,
    BitMeasure,
    BitReader,
    BitWriter,
    ChunkProgress,
    ChunkReceiver,
    ChunkSender,
    Fragments,
    GoodBad,
    PacketStats,
    Socket,
    VirtualConnection,
)
from tickwire._sequences import SequenceBuffer, sequence_distance, sequence_greater, sequence_less

__all__ = [
    "AckEndpoint",
    "BitMeasure",
    "BitReader",
    "BitWriter",
    "ChunkProgress",
    "ChunkReceiver",
    "ChunkSender",
    "Fragments",
    "GoodBad",
    "PacketStats",
    "SequenceBuffer",
    "Socket",
    "VirtualConnection",
    "sequence_distance",
    "sequence_greater",
    "sequence_less",
]
