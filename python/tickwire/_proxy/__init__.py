"""``tickwire proxy``: bad network conditions for any game, in front of its server.

The proxy itself is :class:`tickwire.testing.Proxy`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import tickwire as tw
from tickwire._interrupts import until_interrupted
from tickwire._proxy.display import LiveLine, summary
from tickwire._proxy.options import Options

__all__ = ["Options", "run"]

REFRESH = 0.5


def run(options: Options) -> int:
    """Runs a proxy for the given time, or until Ctrl-C or SIGTERM. Returns the exit code.

    Raises:
        ValueError: the options are contradictory or out of bounds.
    """
    # With --json, standard output is for programs.
    out = sys.stderr if options.json else sys.stdout
    say: Callable[[str], None] = (
        (lambda _: None) if options.quiet else (lambda text: print(text, file=out, flush=True))
    )
    try:
        proxy = tw.testing.Proxy(
            options.listen,
            to=options.to,
            up=options.up,
            down=options.down,
            seed=options.seed,
            max_clients=options.max_clients,
            idle_timeout=options.idle_timeout,
            max_bytes=options.max_bytes,
        )
    except OSError as error:
        print(f"tickwire proxy: {error}", file=sys.stderr)
        return 1
    start = time.monotonic()
    with proxy, until_interrupted():
        say(f"{proxy.address} -> {proxy.to}, seed {options.seed}; Ctrl-C ends it")
        _watch(proxy, options, LiveLine(out) if out.isatty() and not options.quiet else None)
    seconds = time.monotonic() - start
    say(summary(proxy.counters, seconds))
    if options.json:
        print(json.dumps(_result(proxy, options, seconds)), flush=True)
    return 0


def _watch(proxy: tw.testing.Proxy, options: Options, line: LiveLine | None) -> None:
    end = None if options.seconds is None else time.monotonic() + options.seconds
    try:
        while (left := REFRESH if end is None else end - time.monotonic()) > 0:
            time.sleep(min(left, REFRESH))
            if line is not None:
                line.refresh(proxy.counters)
    finally:
        if line is not None:
            line.end()


def _result(proxy: tw.testing.Proxy, options: Options, seconds: float) -> dict[str, object]:
    return {
        "listen": str(proxy.address),
        "to": str(proxy.to),
        "seed": options.seed,
        "seconds": seconds,
        "up": repr(options.up),
        "down": repr(options.down),
        "counters": proxy.counters,
    }
