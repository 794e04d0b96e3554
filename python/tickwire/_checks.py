"""Checks of arguments in the Python modules, with errors that name the argument."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
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


NOT_PLAIN = {
    inspect.iscoroutinefunction: "a coroutine function",
    inspect.isasyncgenfunction: "an async generator",
    inspect.isgeneratorfunction: "a generator",
}
"""Functions that only return an object when they are called, and would never run."""


def check_callable(name: str, function: object, *counts: int, others: str = "") -> None:
    """Refuses objects that can't be called with one of these numbers of arguments, and functions that would
    never run.
    """
    if not callable(function):
        raise TypeError(f"{name} must be callable{others}, not {type(function).__name__}")
    for is_one, kind in NOT_PLAIN.items():
        if is_one(function) or is_one(inspect.getattr_static(function, "__call__", None)):
            raise TypeError(f"{name} must be a plain function, not {kind}: {_shown(function)}")
    if not counts:
        return  # The caller checks its arguments.
    wanted = " or ".join(map(str, counts)) + (" argument" if counts == (1,) else " arguments")
    check_takes(name, function, wanted, *(range(count) for count in counts))


def check_takes(
    name: str, function: object, wanted: str, *positional: Sequence[object], keywords: Sequence[str] = ()
) -> None:
    """Refuses functions that none of these lists of arguments fits; ``wanted`` says what they are."""
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return  # A function of C's says nothing of its parameters.
    for given in positional:
        try:
            signature.bind(*given, **dict.fromkeys(keywords))
        except TypeError as error:
            wrong = error
        else:
            return
    raise TypeError(f"{name} must take {wanted}, and {_shown(function)} doesn't: {wrong}")


def _shown(function: object) -> str:
    return getattr(function, "__name__", type(function).__name__)


def encoded(name: str, text: object) -> bytes:
    """Encodes a string in UTF-8."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str, not {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be text without lone surrogates") from None
