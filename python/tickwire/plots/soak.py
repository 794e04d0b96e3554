"""The result of a soak run: the JSON line that ``tickwire soak --json`` ends with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Soak", "read_soak"]

PCAPNG = b"\n\r\r\n"
"""The first bytes of a capture, which isn't searched."""

MAX_BYTES = 16 << 20
"""No soak's output is larger."""

GROUPS = {"kinds": "scenarios", "events": "what happened in them", "ends": "how connections ended"}
TOTALS = ("attempts", "connected", "datagrams", "sent", "received", "chunks", "full")


@dataclass(frozen=True)
class Soak:
    """A soak's counters, by group."""

    title: str
    groups: dict[str, dict[str, float]]
    failure: str | None


def read_soak(path: Path) -> Soak | None:
    """The last line of JSON in a soak's output; None if there is none.

    Raises:
        OSError: the file can't be read.
    """
    with path.open("rb") as file:
        head = file.read(len(PCAPNG))
        text = "" if head == PCAPNG else (head + file.read(MAX_BYTES)).decode(errors="replace")
    for line in reversed(text.splitlines()):
        try:
            return _soak(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return None


def _soak(said: dict[str, object]) -> Soak:
    groups = {"in all": {name: said[name] for name in TOTALS}}
    groups |= {title: said[name] for name, title in GROUPS.items()}  # type: ignore[misc]
    numbers = {
        title: {str(name): float(value) for name, value in counts.items()}  # type: ignore[arg-type]
        for title, counts in groups.items()
    }
    failure = said["failure"]
    title = (
        f"soak of seed {said['seed']}: {said['scenarios']} scenarios, {said['virtual_hours']} virtual hours"
    )
    return Soak(title, numbers, None if failure is None else str(failure["failure"]))  # type: ignore[index]
