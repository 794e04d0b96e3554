"""The states of rollback games: which fields their arrays have, and how two of them differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__: list[str] = []


def arrays_of(state: Any) -> Iterator[tuple[str, Any, list[tuple[str, str | None, int, int]]]]:
    """For each array: how errors call it, itself, and its fields: name, type, offset and size.

    A field without a size is all of the array, and one without a type has the buffer's format.
    """
    for name, array in state.items() if isinstance(state, Mapping) else (("", state),):
        if not isinstance(name, str):
            raise TypeError(f"state must have keys of str, not {type(name).__name__}")
        shown = f"state[{json.dumps(name, ensure_ascii=False)}]" if name else "state"
        dtype: Any = getattr(array, "dtype", None)
        fields: list[tuple[str, str | None, int, int]]
        if getattr(dtype, "hasobject", False):
            # Copies of object pointers would not be counted as references.
            objects = [own for own in dtype.names or () if dtype.fields[own][0].hasobject]
            shown += f"[{json.dumps(objects[0], ensure_ascii=False)}]" if objects else ""
            raise TypeError(
                f"{shown} must be an array of numbers, not of Python objects: give save and load for these"
            )
        if names := getattr(dtype, "names", None):
            whole = f"{name}." if name else ""
            about = [(own, *dtype.fields[own][:2]) for own in names]
            fields = [(f"{whole}{own}", str(kind), offset, kind.itemsize) for own, kind, offset in about]
        else:
            fields = [(name or "state", getattr(dtype, "str", None), 0, 0)]
        yield shown, array, fields


def differing(one: Any, other: Any) -> list[str]:
    """The names of what differs between two states of the game's own type."""
    ones, others = _attributes(one), _attributes(other)
    if ones is not None and others is not None and (ones or others):
        return [
            str(name)
            for name in {**ones, **others}
            if name not in ones or name not in others or not _equal(ones[name], others[name])
        ]
    return [] if _equal(one, other) else ["state"]


def _attributes(state: Any) -> dict[Any, Any] | None:
    own = state if isinstance(state, dict) else getattr(state, "__dict__", None)
    return own if isinstance(own, dict) else None


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other) or bool(one != one and other != other)  # NaN is equal to NaN.
    except Exception:
        # Arrays compare item by item, in all their dimensions.
        return len(one) == len(other) and all(map(_equal, one, other))
