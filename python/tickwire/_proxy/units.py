"""Amounts as people write them: ``50ms``, ``2%``, ``10mbit``, ``64kB``.

Each parser raises ValueError with the given text and the accepted forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction

_AMOUNT = re.compile(r"(\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})([a-z%]*)", re.ASCII)

_TIMES = {"us": Fraction(1, 10**6), "ms": Fraction(1, 1000), "s": Fraction(1), "min": Fraction(60)}
_SHARES = {"%": Fraction(1, 100), "": Fraction(1)}
_SIZES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_RATES = {
    "bit": Fraction(1, 8),
    "kbit": Fraction(125),
    "mbit": Fraction(125_000),
    "gbit": Fraction(125_000_000),
}


def duration(text: str) -> float:
    """Parses a duration such as ``50ms``, ``0.05s``, ``100us``, ``2min`` or ``0``. Returns seconds."""
    return float(_amount(text, _TIMES, "a time, like 50ms or 0.05s"))


def share(text: str) -> float:
    """Parses a share such as ``2%`` or ``0.02``. Returns 0 to 1."""
    accepted = "a share from 0 to 1, like 2% or 0.02"
    value = _amount(text, _SHARES, accepted)
    if value > 1:
        raise _refused(text, accepted)
    return float(value)


def rate(text: str) -> int:
    """Parses a rate such as ``10mbit``, ``512kbit`` or ``2.5mbit/s``. Returns whole bytes a second."""
    return round(_amount(text, _RATES, "a rate, like 10mbit or 512kbit", per_second=True))


def size(text: str) -> int:
    """Parses a size such as ``64kB``, ``64KiB`` or ``1500B``. Returns whole bytes."""
    return round(_amount(text, _SIZES, "a number of bytes, like 64kB, 64KiB or 1500B"))


def number(text: str) -> float:
    """Parses a number such as ``5`` or ``2.5``."""
    if re.fullmatch(r"\s*-[\d.]+\s*", text):
        raise ValueError(f"must be at least 0, not {text!r}")
    return float(_amount(text, {"": 1}, "a number, like 5"))


def pair(
    first: Callable[[str], float], second: Callable[[str], float], example: str, default: str | None = None
) -> Callable[[str], tuple[float, float]]:
    """Makes a parser for two amounts with a colon between them. The second amount may be left out if it has
    a default."""

    def parse(text: str) -> tuple[float, float]:
        left, colon, right = text.partition(":")
        if not colon:
            if default is None:
                raise ValueError(f"{text!r} is not a pair, like {example}")
            right = default
        return first(left), second(right)

    return parse


def _amount(
    text: str, units: Mapping[str, Fraction | int], accepted: str, *, per_second: bool = False
) -> Fraction:
    # Fractions, so that 50ms are 0.05 and 0.1kB are 100 bytes exactly.
    bare = text.strip().lower()
    match = _AMOUNT.fullmatch(bare.removesuffix("/s") if per_second else bare)
    if match is None:
        raise _refused(text, accepted)
    value, unit = Fraction(match[1]), match[2]
    if value == 0 and not unit:
        return value
    if unit not in units:
        raise _refused(text, accepted)
    return value * units[unit]


def _refused(text: str, accepted: str) -> ValueError:
    return ValueError(f"{text!r} is not {accepted}")
