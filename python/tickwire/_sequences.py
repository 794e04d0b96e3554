"""Sequence numbers of 16 bits, which wrap around, and a buffer of values by sequence number."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Generic, TypeVar, overload

from tickwire._checks import check_within

__all__ = ["SequenceBuffer", "sequence_distance", "sequence_greater", "sequence_less"]

_T = TypeVar("_T")
_D = TypeVar("_D")

_HALF = 1 << 15
_LAST = (1 << 16) - 1


def sequence_greater(a: int, b: int, /) -> bool:
    """Whether ``a`` is more recent than ``b``, by the rule of the C library ``reliable``. This is true if
    counting up from ``b``, with 0 after 65,535, reaches ``a`` in 1 to 32,767 steps. At a distance of 32,768,
    the larger number is more recent.

    Args:
        a, b: sequence numbers, 0 to 65,535.

    Example:
        >>> sequence_greater(1, 65_535), sequence_greater(65_535, 1)
        (True, False)
    """
    distance = sequence_distance(a, b)
    return a > b if distance == -_HALF else distance > 0


def sequence_less(a: int, b: int, /) -> bool:
    """Whether ``a`` is older than ``b``.

    Example:
        >>> sequence_less(65_535, 1)
        True
    """
    distance = sequence_distance(a, b)
    return a < b if distance == -_HALF else distance < 0


def sequence_distance(a: int, b: int, /) -> int:
    """The distance by which ``a`` is ahead of ``b``, including wrap-around: -32,768 to 32,767, negative if
    ``a`` is behind.

    Example:
        >>> sequence_distance(1, 65_535), sequence_distance(65_535, 1)
        (2, -2)
    """
    return (_sequence("a", a) - _sequence("b", b) + 0x8000 & 0xFFFF) - 0x8000


class SequenceBuffer(Generic[_T]):
    """A buffer that can hold a value for each of the newest ``capacity`` sequence numbers (the window). The
    algorithm is the rolling buffer of the C library ``reliable`` 1.0.

    ``buffer[sequence]``, ``sequence in buffer``, ``del``, ``len`` and iteration (sequences, oldest first)
    work as with a dict. To store a value, call :meth:`insert`: ``buffer[sequence] = value`` doesn't work,
    because an assignment can't report that a number is older than the window. Iteration, and moving the
    window by many numbers, take time in proportion to the window; other operations are O(1). Use a buffer
    in one thread at a time.

    Args:
        capacity: a power of two, 1 to 32,768.

    Raises:
        ValueError: the capacity or a sequence number is out of its bounds.
        KeyError: there is no value for the sequence number.

    Example:
        >>> buffer = SequenceBuffer(256)
        >>> buffer.insert(65_535, "a"), buffer.insert(0, "b")
        (True, True)
        >>> buffer[0], 5 in buffer, list(buffer), buffer.newest
        ('b', False, [65535, 0], 0)
        >>> buffer.insert(300, "c"), buffer.insert(0, "too old")
        (True, False)
    """

    __slots__ = ("_begun", "_capacity", "_newest", "_values")

    _newest: int
    _values: dict[int, _T]

    def __init__(self, capacity: int, /) -> None:
        try:
            check_within("capacity", capacity, 1, _HALF, int)
            self._capacity = operator.index(capacity)
        except ValueError:
            self._capacity = 0
        if not self._capacity or self._capacity & self._capacity - 1:
            raise ValueError(f"capacity must be a power of two, 1 to {_HALF}, not {capacity}")
        self.reset()

    @property
    def capacity(self) -> int:
        """The number of sequence numbers that the window covers."""
        return self._capacity

    @property
    def newest(self) -> int | None:
        """The newest sequence number of the window; None before the first insert or advance."""
        return self._newest & _LAST if self._begun else None

    def is_stale(self, sequence: int, /) -> bool:
        """Whether a sequence number is older than the window, so it can't be inserted."""
        return self._full(sequence) <= self._newest - self._capacity

    def insert(self, sequence: int, value: _T, /) -> bool:
        """Stores a value for a sequence number, in place of an earlier value. Drops values that leave the
        window. Returns False, and stores nothing, if the number is older than the window.
        """
        newest, values = self._newest, self._values
        if type(sequence) is int and sequence == newest + 1 & _LAST:
            # The next number, as usual. The value that falls out may use the buffer while it goes.
            self._newest, self._begun = newest + 1, True
            values[newest + 1] = value
            values.pop(newest + 1 - self._capacity, None)
            return True
        full = self._full(sequence)
        if full > newest:
            self._move(full)
        elif full <= newest - self._capacity:
            return False
        self._begun = True
        values[full] = value
        return True

    def advance(self, sequence: int, /) -> None:
        """Moves the window so that ``sequence`` is its newest, without storing anything. Does nothing if the
        window is already there or beyond.
        """
        full = self._full(sequence)
        if full > self._newest:
            self._move(full)

    def _move(self, full: int) -> None:
        before, self._newest, self._begun = self._newest, full, True
        passed = range(before - self._capacity + 1, min(full - self._capacity, before) + 1)
        gone = [self._values.pop(number, None) for number in passed]
        # The values may use the buffer while they go.
        del gone

    @overload
    def get(self, sequence: int, /) -> _T | None: ...
    @overload
    def get(self, sequence: int, default: _D, /) -> _T | _D: ...
    def get(self, sequence: int, default: object = None, /) -> object:
        """The value for ``sequence``, or ``default``."""
        return self._values.get(self._full(sequence), default)

    @overload
    def remove(self, sequence: int, /) -> _T | None: ...
    @overload
    def remove(self, sequence: int, default: _D, /) -> _T | _D: ...
    def remove(self, sequence: int, default: object = None, /) -> object:
        """Removes and returns the value for ``sequence``; ``default`` if there is none."""
        return self._values.pop(self._full(sequence), default)

    def reset(self) -> None:
        """Empties the buffer; the window starts again at sequence 0."""
        self._newest = -1
        self._begun = False
        self._values = {}

    def __getitem__(self, sequence: int, /) -> _T:
        full = self._full(sequence)
        if full not in self._values:
            raise KeyError(sequence)
        return self._values[full]

    def __delitem__(self, sequence: int, /) -> None:
        if self._values.pop(self._full(sequence), self) is self:
            raise KeyError(sequence)

    def __contains__(self, sequence: int, /) -> bool:
        return self._full(sequence) in self._values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[int]:
        return iter([number & _LAST for number in sorted(self._values)])

    def __repr__(self) -> str:
        return f"<SequenceBuffer of {len(self)} in {self._capacity}>"

    def _full(self, sequence: int) -> int:
        """The number with these low bits that is nearest to the newest."""
        if type(sequence) is not int or not 0 <= sequence <= 0xFFFF:
            sequence = _sequence("sequence", sequence)
        newest = self._newest
        return newest + (sequence - newest + 0x8000 & 0xFFFF) - 0x8000


def _sequence(name: str, value: int) -> int:
    if type(value) is int and 0 <= value <= _LAST:
        return value
    check_within(name, value, 0, _LAST, int)
    return operator.index(value)
