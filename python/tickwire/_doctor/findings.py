"""The findings of an examination."""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["Finding", "Verdict"]


class Verdict(enum.Enum):
    """The verdict on one examined thing."""

    FINE = "fine"
    NOTE = "note"
    """Worth knowing; nothing need be done."""
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
    """What was found."""
    advice: str = ""
    """What to change; nothing when it is fine."""
