"""How long a key takes to the screen of another player, and where that time goes."""

from __future__ import annotations

import dataclasses
import random
import statistics
from dataclasses import asdict
from typing import Annotated, Any

import tickwire as tw
from lab import LINES, Lab, Note, Runner, percentile

SPEED = 4.0
SEEDS = 8


@tw.message
class Key:
    x: Annotated[int, tw.ranged(-1, 1)]


@dataclasses.dataclass
class Reaching:
    """What one run showed, or several on average."""

    line: str
    server_hz: int
    client_hz: int
    min_lead_ms: float
    key_to_other_p50_ms: float
    key_to_other_p99_ms: float
    on_time_percent: float
    lead_ms: float
    half_line_ms: float
    view_ms: float


def measure(
    name: str,
    server_hz: int = 60,
    client_hz: int = 60,
    *,
    min_lead: float = 0.0,
    seconds: float = 60.0,
    seed: int = 1,
) -> Reaching:
    """One player turns now and then; another sees it. Each seed has its own phases of the three loops."""
    protocol = tw.Protocol(1, [Note], ghosts=[Runner], inputs=Key, tick_rate=server_hz)
    lab = Lab(protocol, LINES[name], seed)
    first, second = lab.client(), lab.client()
    first.set_inputs(min_lead=min_lead)
    phases = random.Random(seed)
    runners: dict[tw.ClientHandle, Runner] = {}
    state = {"turn": 0, "way": 1, "x": 0.0}
    turned: list[float] = []
    waits: list[float] = []

    def serve() -> None:
        lab.server.receive()
        for client, key in lab.server.inputs:
            runner = runners.get(client)
            if runner is None:
                runner = runners[client] = lab.server.world.spawn(Runner(), owner=client)
            if key is not None:
                runner.x += key.x * SPEED / server_hz
        lab.server.flush()

    def play() -> None:
        first.receive()
        state["turn"] += 1
        # Not in step with ticks.
        if state["turn"] % 47 == 0:
            state["way"] = -state["way"]
            turned[:] = [lab.now]
        first.send_input(Key(int(state["way"])))
        first.flush()

    def watch() -> None:
        second.receive()
        second.send_input(Key(0))
        for runner in second.world.view().others(Runner):
            step, state["x"] = runner.x - state["x"], runner.x
            if turned and step * state["way"] > 0:
                waits.append(lab.now - turned.pop())
        second.flush()

    lab.every(1 / server_hz, serve, phase=phases.random() / server_hz)
    lab.every(1 / client_hz, play, phase=phases.random() / client_hz)
    lab.every(1 / client_hz, watch, phase=phases.random() / client_hz)
    lab.run(6.0)
    waits.clear()
    turned.clear()
    (handle, *_) = lab.server.clients
    before = lab.server.inputs.status(handle)
    lab.run(seconds)
    after = lab.server.inputs.status(handle)
    here, missing = after.here - before.here, after.missing - before.missing
    return Reaching(
        name,
        server_hz,
        client_hz,
        1000 * min_lead,
        round(1000 * percentile(waits, 50), 1),
        round(1000 * percentile(waits, 99), 1),
        round(100 * here / (here + missing), 3),
        round(1000 * first.latency.lead, 1),
        round(500 * second.latency.line, 1),
        round(1000 * second.latency.view, 1),
    )


def average(name: str, server_hz: int = 60, min_lead: float = 0.0) -> Reaching:
    """The average of as many seeds."""
    runs = [measure(name, server_hz, min_lead=min_lead, seed=seed) for seed in range(1, SEEDS + 1)]
    means = {
        field.name: round(statistics.fmean(getattr(run, field.name) for run in runs), 2)
        for field in dataclasses.fields(Reaching)
        if field.name.endswith(("_ms", "_percent"))
    }
    return dataclasses.replace(runs[0], **means)


def rows() -> list[dict[str, Any]]:
    """All of it."""
    lines = ["100 +- 30 ms, 5 % loss", "100 +- 30 ms", "50 ms", "25 ms", "localhost", "wifi-bad"]
    found = [average(name) for name in lines]
    found += [average("wifi-bad", 20), average("wifi-bad", 30), average("wifi-bad", min_lead=0.2)]
    return [asdict(row) for row in found]


if __name__ == "__main__":
    for row in rows():
        print(row)
