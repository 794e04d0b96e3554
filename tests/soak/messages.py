"""The messages of a soak. Each one carries its number, from which its other fields follow."""

from __future__ import annotations

from random import Random
from typing import Annotated, Any

import tickwire as tw

_PATTERN = Random(7).randbytes(70_000)


@tw.message
class Parcel:
    """Declared by its fields, of any size."""

    channel: tw.u8
    number: tw.u32
    filling: Annotated[bytes, tw.data(65_000)]


class Scroll(tw.messages.Message):
    """Writes itself, of any size."""

    max_bytes = 65_536
    channel: int = 0
    number: int = 0
    filling: bytes = b""

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.channel = stream.bits(self.channel, 6)
        self.number = stream.bits(self.number, 32)
        self.filling = stream.data(self.filling, 65_000)


@tw.message
class Row:
    """Small, for endpoints that take columns."""

    place: tw.u8
    number: tw.u32
    check: tw.u32


CLASSES = [Parcel, Scroll, Row]

FIELDS_BEFORE = 7
"""Columns that stand before a row's own fields."""


def filling(number: int, size: int) -> bytes:
    """The bytes of a message."""
    start = number * 31 % 4096
    return _PATTERN[start : start + size]


def make(channel: int, number: int, size: int, rows: bool) -> Any:
    """The message with this number; a row if there are only rows."""
    if rows or number % 3 == 2:
        return Row(channel, number, check(number))
    if number % 3 == 0:
        return Parcel(channel, number, filling(number, size))
    scroll = Scroll()
    scroll.channel, scroll.number, scroll.filling = channel, number, filling(number, size)
    return scroll


def check(number: int) -> int:
    """Whether a row's fields follow from its number."""
    return number * 2_654_435_761 % 2**32


def is_right(message: Any, sizes: list[int]) -> bool:
    """Whether a message is the one that it says."""
    number: int = message.number
    if isinstance(message, Row):
        return message.check == check(number)
    right: bool = message.filling == filling(number, sizes[number % len(sizes)])
    return right and isinstance(message, Parcel) == (number % 3 == 0)


def payload(number: int, size: int) -> bytes:
    """The bytes of a payload."""
    return number.to_bytes(4, "little") + filling(number, size)
