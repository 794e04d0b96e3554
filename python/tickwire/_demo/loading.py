"""The data that one bot loads before it plays: a few megabytes that both sides can generate, so that it can
be checked from outside that they arrive intact.
"""

from __future__ import annotations

import hashlib
import random
import time

import tickwire as tw
from tickwire._demo.options import Options
from tickwire._demo.report import Load


def make_world(options: Options) -> bytes:
    """The same bytes from the same seed, in every process."""
    return random.Random(options.seed).randbytes(options.world_bytes)


class Loader:
    """Follows the world's transfer to a client."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._start: float | None = None
        self._ticks = 0
        self.load = Load()

    @property
    def under_way(self) -> bool:
        """Whether the world is neither there nor lost."""
        return self.load.intact is None

    def tick(self, client: tw.Client, inbox: tw.Inbox[object]) -> bool:
        """Handles the chunks of one tick; returns whether the world is loaded now."""
        if self._start is None:
            self._start = time.monotonic()
        self._ticks += 1
        if client.connected:
            self.load.note_rtt(self._ticks, client.stats.rtt_ms)
        self.load.seconds = time.monotonic() - self._start
        for incoming in client.incoming_chunks():
            self.load.fraction = incoming.fraction
        for _, error in inbox.chunk_failures:
            self.load.error, self.load.intact = error, False
        for chunk in inbox.chunks:
            expected = hashlib.sha256(make_world(self._options)).digest()
            self.load.fraction = 1.0
            self.load.intact = hashlib.sha256(chunk.data).digest() == expected
        return not self.under_way
