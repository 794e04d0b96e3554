"""Clocks and inputs: how exact a client's tick is, how soon it settles, and how many inputs are on time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import tickwire as tw
from lab import LINES, Lab, percentile


@tw.message
class Move:
    x: tw.i8
    fire: bool


@dataclass
class Timing:
    """What one run showed."""

    line: str
    server_hz: int
    client_hz: int
    drift_ppm: int
    settled_s: float | None
    clock_error_p99_ms: float
    on_time_percent: float
    late: int
    missing: int
    lead_ticks: float
    early_ticks: float


def measure(
    name: str,
    server_hz: int = 60,
    client_hz: int = 60,
    *,
    drift: float = 0.0,
    seconds: float = 60.0,
    seed: int = 1,
) -> Timing:
    """Runs a server and a client whose clock drifts by this fraction."""
    protocol = tw.Protocol(1, inputs=Move, tick_rate=server_hz)
    lab = Lab(protocol, LINES[name], seed)
    server, client = lab.server, lab.client()
    clock = client.clock
    ticked_at = [0, 0.0]
    errors: list[float] = []
    settled: list[float] = []
    shown = [0.0]
    begun: list[float] = []
    leads: list[float] = []

    def serve() -> None:
        server.receive()
        ticked_at[:] = [server.inputs.tick, lab.now]
        for _ in server.inputs:
            pass
        server.flush()

    def play() -> None:
        client.receive()
        client.send_input(Move(1, False))
        client.flush()
        if client.connected and not begun:
            begun.append(lab.now)
        tick = clock.tick
        if tick is None:
            return
        assert tick >= shown[0], "time ran back"
        shown[0] = tick
        true = ticked_at[0] + (lab.now - ticked_at[1]) * server_hz * (1 + drift)
        if clock.settled:
            settled.append(lab.now - begun[0])
        if lab.now - begun[0] > 2:
            errors.append(abs(tick - true) / server_hz * 1000)
            leads.append(clock.lead or 0.0)

    # The server's clock is the one that drifts.
    lab.every(1 / server_hz / (1 + drift), serve, phase=0.003)
    lab.every(1 / client_hz, play, phase=0.0071)
    lab.run(4.0)
    (handle,) = server.clients
    before = server.inputs.status(handle)
    lab.run(seconds)
    after = server.inputs.status(handle)
    here, missing = after.here - before.here, after.missing - before.missing
    return Timing(
        name,
        server_hz,
        client_hz,
        round(drift * 1e6),
        round(settled[0], 2) if settled else None,
        round(percentile(errors, 99), 2),
        round(100 * here / (here + missing), 3),
        after.late - before.late,
        missing,
        round(sum(leads) / len(leads), 2),
        round(after.early or 0.0, 2),
    )


def rows() -> list[dict[str, Any]]:
    """All of it."""
    runs = [measure(name) for name in LINES]
    runs += [measure("localhost", 15, 60), measure("localhost", 15, 15), measure("50 ms", 15, 60)]
    runs += [measure("100 +- 30 ms, 5 % loss", 60, 240), measure("100 +- 30 ms, 5 % loss", 60, 30)]
    runs += [measure("100 +- 30 ms, 5 % loss", drift=drift) for drift in (200e-6, -200e-6)]
    return [asdict(run) for run in runs]


if __name__ == "__main__":
    for row in rows():
        print(row)
