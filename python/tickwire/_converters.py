"""Converters for fields whose type is one of Python's own classes.

They are in a separate module, because most games don't need these classes.
"""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Final

from tickwire._core import FieldType, ranged
from tickwire._fields import Converter, i64, u128

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def _microseconds(at: datetime) -> int:
    if at.utcoffset() is None:
        raise ValueError("a datetime must be aware, as datetime.now(timezone.utc) is")
    return (at - _EPOCH) // _MICROSECOND


def _ordinal(day: date) -> int:
    if isinstance(day, datetime):
        raise TypeError("a datetime is not a date: take its date()")
    return day.toordinal()


def _range_of_datetimes() -> FieldType:
    bounds = (edge.replace(tzinfo=UTC) for edge in (datetime.min, datetime.max))
    return ranged(*map(_microseconds, bounds))


CONVERTERS: Final[dict[type, Converter]] = {
    uuid.UUID: Converter(u128, lambda value: value.int, lambda number: uuid.UUID(int=number)),
    datetime: Converter(
        Annotated[int, _range_of_datetimes()],
        _microseconds,
        lambda number: _EPOCH + timedelta(microseconds=number),
    ),
    timedelta: Converter(
        i64, lambda value: value // _MICROSECOND, lambda number: timedelta(microseconds=number)
    ),
    date: Converter(
        Annotated[int, ranged(date.min.toordinal(), date.max.toordinal())], _ordinal, date.fromordinal
    ),
}
