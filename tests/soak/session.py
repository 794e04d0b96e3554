"""One scenario from its seed to its result."""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field

from tickwire import _inspection as inspection

from soak.events import Happenings
from soak.model import Violation
from soak.play import Play
from soak.scenario import draw
from soak.settle import audit, settle

AUDIT_EVERY = 128
"""Ticks."""


@dataclass
class Result:
    """The result of a scenario."""

    index: int
    name: str
    hours: float = 0.0
    seconds: float = 0.0
    ticks: int = 0
    attempts: int = 0
    connected: int = 0
    datagrams: int = 0
    sent: int = 0
    received: int = 0
    chunks: int = 0
    full: int = 0
    # Connections whose numbers wrapped.
    wraps: int = 0
    events: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    transcript: str = ""
    megabytes: float = 0.0
    failure: str | None = None


def play_scenario(seed: str, index: int, protocol: str | None = None) -> Result:
    """Plays a scenario and returns its result, also when something broke.

    Args:
        protocol: ``module:protocol``, whose channels are taken instead of random ones.
    """
    began = time.perf_counter()
    scenario = draw(seed, index, inspection.find(protocol).channels if protocol else None)
    result = Result(index, scenario.name)
    play = Play(scenario)
    play.raises = scenario.raising_hooks
    happenings = Happenings(play)
    try:
        for tick in range(round(scenario.seconds * scenario.rate)):
            result.ticks += 1
            happenings.happen()
            play.tick(tick, sends=True)
            if tick % AUDIT_EVERY == 0:
                audit(play)
        settle(play)
    except Violation as violation:
        result.failure = f"{violation} (at {play.network.now:.3f} s)"
    except Exception:  # Whatever it is, it is a finding.
        result.failure = f"{traceback.format_exc()}(at {play.network.now:.3f} s)"
    counters = play.network.counters
    result.hours = play.network.now / 3600
    result.seconds = time.perf_counter() - began
    result.attempts, result.sent, result.received = play.attempts, play.sent, play.received
    result.chunks, result.full = play.chunks, play.full
    result.wraps = play.wraps
    result.datagrams = counters["sent"] + counters["partitioned"]
    result.connected = sum(line.client_connected is not None for line in play.lines)
    result.events = Counter(happenings.counts)
    reasons = (line.client_over for line in play.lines if line.client_over is not None)
    result.ends = Counter(reason.name for reason in reasons)
    result.transcript = play.network.transcript
    result.megabytes = memory()
    return result


def memory() -> float:
    """The peak memory of this process in MiB; 0 if the system doesn't report it."""
    try:
        import resource
    except ImportError:  # Windows.
        return 0.0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)
