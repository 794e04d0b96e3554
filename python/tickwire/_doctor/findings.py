"""The findings of an examination."""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["Finding", "Verdict"]


class Verdict(enum.Enum):
    """The verdict on one examined thing."""

    FINE = "fine"
    NOTE = "note"
    """Information; nothing needs to be done."""
    WARNING = "warning"
    """It works, but not as well as it could."""
    BROKEN = "broken"
    """It doesn't work."""


@dataclass(frozen=True)
class Finding:
    """The result for one examined thing."""

    subject: str
    verdict: Verdict
    text: str
    """The finding, as a sentence."""
    advice: str = ""
    """The recommended change; empty if nothing needs to change."""
