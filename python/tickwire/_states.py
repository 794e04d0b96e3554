"""States of a game as bytes: what a save gives, with what the library adds. Nothing in such bytes is run or
believed: they may come from any player."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping
from typing import Any

__all__: list[str] = []

_HEAD = struct.Struct("<4sBH")
_COUNT = struct.Struct("<BII")
_PART = struct.Struct("<HQ")
_MARK = b"TWS1"
_BYTES, _ARRAY, _DICT = range(3)
_PLAIN = re.compile(r"[<>|=]?[biufcSUVmM]\d{1,9}(\[\w{1,10}\])?", re.ASCII)
"""NumPy's names of numbers, texts and times."""
_MAX_PARTS = 1000
_MAX_DEPTH = 4


class BadStateError(Exception):
    """Bytes that are no state."""


def pack(state: object, counts: Mapping[tuple[int, int], int]) -> bytes:
    """The bytes of a state: bytes, a NumPy array or a dict of arrays by name; and how many messages of
    each player are in it, by number and joining."""
    head = b"".join(_COUNT.pack(number, joined, count) for (number, joined), count in counts.items())
    kind, parts = _parts(state)
    return b"".join((_HEAD.pack(_MARK, kind, len(counts)), head, *parts))


def _parts(state: object) -> tuple[int, list[bytes]]:
    if isinstance(state, bytes | bytearray | memoryview):
        return _BYTES, [bytes(state)]
    if isinstance(state, dict):
        if len(state) > _MAX_PARTS:
            raise ValueError(f"save must give a dict of at most {_MAX_PARTS} arrays, not {len(state)}")
        return _DICT, [part for name, array in state.items() for part in _array(f"[{name!r}]", name, array)]
    if hasattr(state, "__array_interface__"):
        return _ARRAY, _array("", "", state)
    raise TypeError(f"save must give bytes, an array or a dict of arrays, not {type(state).__name__}")


def _array(where: str, name: object, given: Any) -> list[bytes]:
    import numpy as np

    if not isinstance(name, str):
        raise TypeError(f"save{where}: names of arrays must be str, not {type(name).__name__}")
    if not hasattr(given, "__array_interface__"):
        raise TypeError(f"save{where} must be an array, not {type(given).__name__}")
    array = np.asarray(given)
    if array.dtype.hasobject:
        raise TypeError(f"save{where} must be an array of numbers, texts or records, not of Python objects")
    described = [name, np.lib.format.dtype_to_descr(array.dtype), array.shape]
    head, data = json.dumps(described).encode(), array.tobytes()
    try:
        is_read = array.dtype.itemsize > 0 and _described(json.loads(head)[1]) is not None
    except BadStateError:
        is_read = False
    if not is_read:
        # What no new host could load is no state.
        raise ValueError(
            f"save{where} must be an array whose elements have bytes, and records nested at most {_MAX_DEPTH}"
            f" deep, not of {array.dtype}"
        )
    if len(head) > 0xFFFF:
        raise ValueError(f"save{where} must be an array whose type takes at most 65535 bytes to describe")
    return [_PART.pack(len(head), len(data)), head, data]


def unpack(data: bytes) -> tuple[Any, dict[tuple[int, int], int]]:
    """What :func:`pack` was given; arrays are new ones that may be written to.

    Raises:
        BadStateError: the bytes are none of it.
    """
    try:
        mark, kind, players = _HEAD.unpack_from(data)
        if mark != _MARK or kind > _DICT or players > 256:
            raise BadStateError("no state")
        at, counts = _HEAD.size, {}
        for _ in range(players):
            number, joined, count = _COUNT.unpack_from(data, at)
            counts[number, joined] = count
            at += _COUNT.size
        if kind == _BYTES:
            return data[at:], counts
        arrays: dict[str, Any] = {}
        while at < len(data) and len(arrays) < _MAX_PARTS:
            name, array, at = _read_array(data, at)
            arrays[name] = array
        if at != len(data) or (kind == _ARRAY and list(arrays) != [""]):
            raise BadStateError("a truncated state")
    except (struct.error, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise BadStateError(str(error)) from None
    return (arrays[""] if kind == _ARRAY else arrays), counts


def _read_array(data: bytes, at: int) -> tuple[str, Any, int]:
    import numpy as np

    head, size = _PART.unpack_from(data, at)
    at += _PART.size
    name, described, shape = json.loads(data[at : at + head])
    at += head
    if not isinstance(name, str) or not all(type(length) is int and length >= 0 for length in shape):
        raise BadStateError("an array without a name or a shape")
    dtype = np.lib.format.descr_to_dtype(_described(described))
    # Before anything is allocated: the data must be there.
    if (
        dtype.hasobject
        or not dtype.itemsize
        or size != dtype.itemsize * math.prod(shape)
        or size > len(data) - at
    ):
        raise BadStateError("an array that isn't all there")
    array = np.frombuffer(data, dtype, math.prod(shape), at) if size else np.empty(shape, dtype)
    return name, array.reshape(shape).copy(), at + size


def _described(given: Any, depth: int = 0) -> Any:
    """A NumPy type's description, from JSON: lists of tuples, and texts that name no object."""
    if isinstance(given, str):
        if not _PLAIN.fullmatch(given):
            raise BadStateError("an array of no plain type")
        return given
    if not isinstance(given, list) or depth > _MAX_DEPTH:
        raise BadStateError("an array of no type")
    if len(given) == 2 and isinstance(given[1], list) and all(isinstance(each, int) for each in given[1]):
        return _described(given[0], depth + 1), tuple(given[1])  # rows of one type
    fields = []
    for field in given:
        if not isinstance(field, list) or len(field) not in (2, 3):
            raise BadStateError("an array of no type")
        name = field[0] if isinstance(field[0], str) else tuple(field[0])
        shape = (tuple(field[2]),) if len(field) == 3 else ()
        fields.append((name, _described(field[1], depth + 1), *shape))
    return fields
