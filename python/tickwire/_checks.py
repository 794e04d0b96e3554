"""Checks of arguments in the Python modules, with errors that name the argument."""

from __future__ import annotations

import math
from typing import SupportsFloat, SupportsIndex

__all__: list[str] = []


def check_number(name: str, value: object) -> None:
    """Refuses values that aren't numbers."""
    is_other = isinstance(value, str | bytes | bool | type)
    if is_other or not isinstance(value, SupportsFloat | SupportsIndex):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")


def check_within(name: str, value: object, low: float, high: float, kind: type = float) -> None:
    """Refuses values that have another type or are out of the given bounds."""
    if isinstance(value, bool) or (kind is int and not isinstance(value, SupportsIndex)):
        what = "an int" if kind is int else "a number"
        raise TypeError(f"{name} must be {what}, {low} to {high}, not {type(value).__name__}")
    check_number(name, value)
    if not low <= value <= high:  # type: ignore[operator]
        raise ValueError(f"{name} must be {low} to {high}, not {value!r}")


def check_truth(name: str, value: object) -> None:
    """Refuses values that aren't True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")


def check_seconds(name: str, value: float) -> None:
    """Refuses values that aren't a number of seconds."""
    check_number(name, value)
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be at least 0 seconds and finite, not {value!r}")


def encoded(name: str, text: object) -> bytes:
    """Encodes a string in UTF-8."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str, not {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be text without lone surrogates") from None
