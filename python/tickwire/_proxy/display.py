"""The output of ``tickwire proxy``: one line that is refreshed, and a summary."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from typing import TextIO

LOSSES = (
    "memory_full",
    "too_large",
    "queue_dropped",
    "lost",
    "lost_in_bursts",
    "lost_in_outages",
    "overflowed",
    "send_buffer_full",
)
"""The counters of datagrams that don't arrive, in one direction."""

_Counters = Mapping[str, int]


class LiveLine:
    """A line in a terminal, which each refresh overwrites."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._start = self._last = time.monotonic()
        self._before: _Counters = {}

    def refresh(self, counters: _Counters) -> None:
        """Shows rates since the last refresh, and losses since the start."""
        now = time.monotonic()
        period = max(now - self._last, 1e-3)
        clients = counters["clients.present"]
        parts = [f"{now - self._start:.0f} s", f"{clients} client{'' if clients == 1 else 's'}"]
        for direction in ("up", "down"):
            packets, octets = (
                (counters[name] - self._before.get(name, 0)) / period
                for name in (f"{direction}.forwarded", f"{direction}.forwarded_bytes")
            )
            lost = f"{lost_share(counters, direction):.1%} lost"
            parts.append(f"{direction} {packets:,.0f}/s {octets * 8 / 1e6:.1f} Mbit/s, {lost}")
        parts.append(f"{counters['under_way.datagrams']:,} under way")
        columns = shutil.get_terminal_size().columns
        print("\r" + "  ".join(parts)[: columns - 1] + "\x1b[K", end="", file=self._out, flush=True)
        self._last, self._before = now, counters

    def end(self) -> None:
        print(file=self._out, flush=True)


def lost_share(counters: _Counters, direction: str) -> float:
    """The share of received datagrams that won't be forwarded."""
    lost = sum(counters[f"{direction}.{name}"] for name in LOSSES)
    return lost / max(counters[f"{direction}.received"], 1)


def summary(counters: _Counters, seconds: float) -> str:
    """All counts above 0, with both directions side by side."""
    lines = [f"{seconds:.1f} s, {counters['clients.admitted']:,} clients", f"{'':<18}{'up':>16}{'down':>16}"]
    names = [name.removeprefix("up.") for name in counters if name.startswith("up.")]
    for name in names:
        up, down = counters[f"up.{name}"], counters[f"down.{name}"]
        if up or down:
            lines.append(f"{name.replace('_', ' '):<18}{up:>16,}{down:>16,}")
    for name in ("clients.refused", "clients.without_socket", "clients.forgotten"):
        if counters[name]:
            lines.append(f"{name.replace('.', ' ').replace('_', ' ')} {counters[name]:,}")
    return "\n".join(lines)
