"""``tickwire demo``: a small game over real sockets and a bad network, checked to the last message.

Read :mod:`~tickwire._demo.messages` first (the messages), then :mod:`~tickwire._demo.server` and
:mod:`~tickwire._demo.bot` (both ends), with :mod:`~tickwire._demo.world` for the game itself. The rest starts
the processes, shows how their connections are doing, and judges what they report.
"""

from __future__ import annotations

import sys

from tickwire._demo.display import open_display
from tickwire._demo.options import Options
from tickwire._demo.processes import DemoError
from tickwire._demo.referee import play
from tickwire._demo.summary import find_faults, summarize


def run(options: Options) -> int:
    """Plays the demo; returns the exit code."""
    try:
        with open_display(options) as display:
            match = play(options, display)
    except DemoError as error:
        print(f"tickwire demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("tickwire demo: interrupted.", file=sys.stderr)
        return 130
    faults = find_faults(match.final, options.clients)
    summary = summarize(match.played, match.final, ticks=match.ticks, seconds=match.seconds, ok=not faults)
    print(
        f"\nBots: {summary.clients}. Play: {summary.seconds:g} s, {summary.ticks} ticks of the server. "
        f"RTT {summary.rtt_ms:.0f} ms, packet loss {summary.loss_percent:.1f} %, "
        f"each bot {summary.kbps_up:.0f} kbit/s up and {summary.kbps_down:.0f} down.\n"
        f"Of {summary.reliable_sent} reliable messages {summary.reliable_delivered} arrived, "
        f"{summary.misordered} out of order, {summary.duplicates} more than once."
    )
    if summary.load_intact:
        print(
            f"Bot {options.loader} loaded {options.world:g} MiB in {summary.load_seconds:.1f} s while the "
            f"others played, and the hash is right. Its RTT meanwhile: {summary.load_rtt_ms:.0f} ms."
        )
    for fault in faults:
        print(fault)
    print("FAILED." if faults else "OK: every reliable message arrived exactly once, in order, both ways.")
    if options.json:
        print(summary.to_json())
    return 1 if faults else 0
