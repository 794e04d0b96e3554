"""How long a view stays behind after a moment without ticks: the player's program stood still (a window is
dragged, a level is loaded), the line held packets back, or the server's program stood still."""

from __future__ import annotations

import statistics
from typing import Any

import tickwire as tw
from lab import LINES, Lab, Note, Runner

HZ = 60
STALLS = 6
PERIOD = 12.0
AFTER = (0.5, 1.0, 2.0, 4.0, 6.0)


def measure(what: str, name: str, stall: float, every: float = PERIOD, seed: int = 1) -> dict[str, float]:
    """How much later than before a stall is shown what others do, in milliseconds, by the seconds since."""
    lab = Lab(tw.Protocol(1, [Note], ghosts=[Runner], tick_rate=HZ), LINES[name], seed)
    client = lab.client()
    runner = lab.server.world.spawn(Runner())
    until = 0.0
    down = LINES[name][1]
    shown: list[tuple[float, float]] = []

    def serve() -> None:
        if what == "server" and lab.now < until:
            return
        held = max(0.0, until - lab.now) if what == "line" else 0.0
        given = {"latency": down.latency + held, "jitter": down.jitter, "loss": down.loss}
        lab.network.set_conditions(tw.Conditions(**given), sender=lab.server.address)
        lab.server.receive()
        runner.x += 0.1
        lab.server.flush()

    def watch() -> None:
        if what == "client" and lab.now < until:
            return
        client.receive()
        view = client.world.view()
        if view.tick is not None:
            shown.append((lab.now, (lab.server.world.tick - view.tick) / HZ))
        client.flush()

    lab.every(1 / HZ, serve)
    lab.every(1 / HZ, watch, phase=0.4 / HZ)
    lab.run(10.0)
    behind: dict[float, list[float]] = {after: [] for after in AFTER}
    before = statistics.fmean(late for _, late in shown[-3 * HZ :])
    for _ in range(STALLS):
        over = until = lab.now + stall
        lab.run(every)
        for after in AFTER:
            behind[after] += [late - before for at, late in shown if over + after - 0.25 < at <= over + after]
    found = {
        f"after {after:g} s, ms": 1000 * statistics.fmean(late) for after, late in behind.items() if late
    }
    return {**found, "stood, s": client.world.view().stood, "delay, ms": 1000 * client.world.view().delay}


def average(what: str, name: str, stall: float, every: float = PERIOD, seeds: int = 8) -> dict[str, Any]:
    """The average of as many seeds."""
    runs = [measure(what, name, stall, every, seed) for seed in range(1, seeds + 1)]
    means = {key: round(statistics.fmean(run[key] for run in runs), 2) for key in runs[0]}
    return {"what": what, "line": name, "stall, s": stall, "every, s": every, **means}


def rows() -> list[dict[str, Any]]:
    """A row for each line and length."""
    lines = ("50 ms", "100 +- 30 ms, 5 % loss")
    whats = ("client", "line", "server")
    found = [average(what, name, stall) for what in whats for name in lines for stall in (0.1, 0.3, 0.45)]
    return [*found, *(average(what, name, 0.3, 1.5) for what in whats for name in lines)]


if __name__ == "__main__":
    for row in rows():
        print(row, flush=True)
