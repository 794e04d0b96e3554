"""Counts reliable messages, to prove from outside that the transport keeps its promise."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from tickwire._demo.messages import PROTOCOL, Numbered


@dataclass
class Sent:
    """The reliable messages that one end of a connection has sent. The next one's number is ``count``."""

    count: int = 0
    digest: int = 0
    """A checksum of all of them, in order."""

    def add(self, message: Numbered) -> None:
        self.count += 1
        self.digest = zlib.crc32(PROTOCOL.encode(message), self.digest)


@dataclass
class Received:
    """The reliable messages that one end has received, judged by their numbers."""

    delivered: int = 0
    """How many different ones."""
    duplicates: int = 0
    misordered: int = 0
    """How many didn't follow directly after the number before theirs."""
    digest: int = 0
    expected: int = 0
    skipped: set[int] = field(default_factory=set)

    def add(self, message: Numbered) -> None:
        number = message.number
        if number < self.expected and number not in self.skipped:
            self.duplicates += 1
            return
        if number != self.expected:
            self.misordered += 1
        if number >= self.expected:
            self.skipped.update(range(self.expected, number))
            self.expected = number + 1
        self.skipped.discard(number)
        self.delivered += 1
        self.digest = zlib.crc32(PROTOCOL.encode(message), self.digest)
