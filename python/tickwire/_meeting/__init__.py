"""``tickwire rendezvous`` and ``tickwire relay``: servers for peers behind NATs.

The servers themselves are :class:`tickwire.peers.RendezvousServer` and :class:`tickwire.peers.Relay`.
"""

from __future__ import annotations

import json
import sys
import time

import tickwire as tw
from tickwire._interrupts import until_interrupted
from tickwire._meeting.options import RelayOptions, RendezvousOptions, Running

__all__ = ["RelayOptions", "RendezvousOptions", "run_relay", "run_rendezvous"]


def run_rendezvous(options: RendezvousOptions) -> int:
    """Runs a rendezvous server for the given time, or until Ctrl-C or SIGTERM. Returns the exit code."""
    try:
        server = tw.peers.RendezvousServer(
            options.listen,
            second_port=options.second_port,
            relay=options.relay,
            relay_key=options.key,
            relay_bytes_per_second=options.relay_rate,
            max_games=options.max_games,
        )
    except OSError as error:
        print(f"tickwire rendezvous: {error}", file=sys.stderr)
        return 1
    second = "" if server.second_address is None else f", second port {server.second_address.port}"
    relay = "" if options.relay is None else f", relay {options.relay}"
    return _run(server, f"{server.address}{second}{relay}; Ctrl-C ends it", options.running)


def run_relay(options: RelayOptions) -> int:
    """Runs a relay for the given time, or until Ctrl-C or SIGTERM. Returns the exit code."""
    try:
        relay = tw.peers.Relay(
            options.listen,
            key=options.key,
            max_channels=options.max_channels,
            max_bytes_per_second=options.max_rate,
        )
    except OSError as error:
        print(f"tickwire relay: {error}", file=sys.stderr)
        return 1
    return _run(relay, f"{relay.address}; Ctrl-C ends it", options.running)


def _run(service: tw.peers.RendezvousServer | tw.peers.Relay, greeting: str, running: Running) -> int:
    # With --json, standard output is for programs.
    out = sys.stderr if running.json else sys.stdout
    with service, until_interrupted():
        if running.metrics is not None:
            from tickwire.metrics import serve_meeting

            serve_meeting(service, running.metrics.host, running.metrics.port)
        if not running.quiet:
            print(greeting, file=out, flush=True)
        time.sleep(1e9 if running.seconds is None else running.seconds)
    if running.json:
        print(json.dumps({"listen": str(service.address), "counters": service.counters}), flush=True)
    elif not running.quiet:
        counted = {name: count for name, count in service.counters.items() if count}
        print("  ".join(f"{name} {count}" for name, count in counted.items()), flush=True)
    return 0
