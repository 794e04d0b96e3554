"""``tickwire demo``: a small game over real sockets and a bad network, which checks every message.

Read :mod:`~tickwire._demo.game` first (the messages, ghosts and rules), then :mod:`~tickwire._demo.ends`
(the server and the bots). :mod:`~tickwire._demo.match` runs a match and checks it.
"""

from __future__ import annotations

import json
import sys

from tickwire._demo.display import open_display
from tickwire._demo.game import TICK_RATE
from tickwire._demo.match import Match, open_match
from tickwire._demo.options import Options
from tickwire._interrupts import INTERRUPTED


def run(options: Options) -> int:
    """Runs the demo. Returns the exit code."""
    try:
        with open_match(options) as match:
            _introduce(options, str(match.server.endpoint.address))
            with open_display(options) as show:
                for _ in match.play():
                    show(match)
            return _judge(match, options)
    except OSError as error:
        place = f"127.0.0.1:{options.port}"
        print(f"tickwire demo: Can't listen on {place}: {error.strerror or error}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("tickwire demo: interrupted.", file=sys.stderr)
        return INTERRUPTED


def _introduce(options: Options, address: str) -> None:
    print(
        f"A server on {address}, {options.clients} bots, {TICK_RATE} ticks a second for "
        f"{options.seconds:g} s, seed {options.seed}. Each way: {options.latency:g} ms "
        f"+- {options.jitter:g} ms, {options.loss:g} % loss, {options.duplicate:g} % duplicates, "
        f"{options.reorder:g} % held back.",
        flush=True,
    )


def _judge(match: Match, options: Options) -> int:
    figures, faults, load = match.figures(), match.faults(), match.load
    print(
        f"\nBots: {figures['clients']}. Play: {figures['seconds']} s, {figures['ticks']} ticks of the "
        f"server. RTT {figures['rtt_ms']:.0f} ms, packet loss {figures['loss_percent']:.1f} %, "
        f"each bot {figures['kbps_up']:.0f} kbit/s up and {figures['kbps_down']:.0f} down.\n"
        f"Of {figures['reliable_sent']} reliable messages {figures['reliable_delivered']} arrived. The bots "
        f"predicted their own moves, and the server corrected them {figures['corrections']} times."
    )
    if load and load.intact:
        print(
            f"Bot {options.loader} loaded {options.world:g} MiB in {load.seconds:.1f} s while the "
            f"others played, and the hash is right. Its RTT meanwhile: {figures['load_rtt_ms']:.0f} ms."
        )
    for sentence in faults or match.unproven():
        print(sentence)
    print(_verdict(match))
    if options.json:
        print(json.dumps(figures))
    return 0 if figures["ok"] else 1


def _verdict(match: Match) -> str:
    if not match.is_decided:
        return "UNDECIDED: more arrived until the end. Lower --loss, --latency, --clients or --world."
    if match.faults():
        return "FAILED."
    if match.unproven():
        return "UNDECIDED: play longer, with --seconds, so that both sides send something."
    kept = "every reliable message arrived once and in order, both ways, and all bots see the server's world"
    return f"OK: {kept}."
