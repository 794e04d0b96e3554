"""How the world between ticks looks over bad lines, whether hits are judged as seen, and what a view costs.

In virtual time with seeds, but for the cost, which is the thread's own processor time. `run.py` calls it;
alone:

    python benches/latency/views.py [--quick]
"""

from __future__ import annotations

import math
import sys
import time
from typing import Annotated, Any

import numpy as np
import tickwire as tw
from tickwire.testing import connected_pair

STEP = 1 / 60
TARGETS = 40
RADIUS = 0.5
QUICK = "--quick" in sys.argv

LINES: dict[str, tw.Conditions | None] = {
    "lossless, 50 ms": tw.Conditions(latency=0.05),
    "100 +- 30 ms": tw.Conditions(latency=0.1, jitter=0.03),
    "100 +- 30 ms, 5 % loss": tw.Conditions(latency=0.1, jitter=0.03, loss=0.05),
    "100 +- 30 ms, 15 % loss": tw.Conditions(latency=0.1, jitter=0.03, loss=0.15),
}


@tw.ghost(capacity=2000)
class Target:
    position: Annotated[tw.Vec2, tw.vec2(-2000, 2000, 1 / 256)] = (0, 0)
    number: Annotated[int, tw.ranged(0, 2000), tw.initial] = 0


@tw.message
class Shot:
    seen: tw.f64
    number: tw.u16
    x: tw.f64
    y: tw.f64


PROTOCOL = tw.Protocol(id=1, messages=[Shot], ghosts=[Target])


class Scene:
    def __init__(self, line: tw.Conditions | None, seed: int, targets: int = TARGETS) -> None:
        self.network, self.server, self.client = connected_pair(PROTOCOL, seed=seed)
        (self.player,) = self.server.clients
        self.world = self.server.world
        self.world.remember(1.0)
        for number in range(targets):
            self.world.spawn(Target(number=number))
        if line is not None:
            self.network.set_conditions(line)
        self.rng = np.random.default_rng(seed)
        self.angles = self.rng.uniform(0, 6.28, targets)
        self.speeds = self.rng.uniform(0.02, 0.2, targets)
        self.columns = self.world.arrays(Target)
        self.columns["position"][:] = self.rng.uniform(-50, 50, (targets, 2))

    def move(self) -> None:
        self.angles += self.rng.normal(0, 0.05, len(self.angles))
        ways = np.stack([np.cos(self.angles), np.sin(self.angles)], 1)
        self.columns["position"] += ways * self.speeds[:, None]


def smoothness(line: tw.Conditions | None, seconds: float, seed: int = 1) -> dict[str, Any]:
    """The largest drawn step relative to the true one, and how evenly time ran."""
    scene = Scene(line, seed)
    ratios, ticks, delays = [], [], []
    before: dict[int, tuple[float, float]] = {}
    settled = 300
    for frame in range(settled + round(seconds / STEP)):
        with scene.client.tick():
            pass
        view = scene.client.world.view()
        ticks.append(view.tick)
        arrays = view.arrays(Target)
        rows = arrays.rows
        now = dict(
            zip(arrays["number"][rows].tolist(), map(tuple, arrays["position"][rows].tolist()), strict=True)
        )
        if frame > settled:
            ratios += [math.dist(now[n], before[n]) / scene.speeds[n] for n in now if n in before]
            delays.append(view.delay)
        before = now
        scene.move()
        with scene.server.tick():
            pass
        scene.network.advance(STEP)
    return {
        "largest step, by the true one": round(float(max(ratios)), 3),
        "p99.9": round(float(np.quantile(ratios, 0.999)), 3),
        "time ran back": int((np.diff(ticks) < 0).sum()),
        "stood, s in all": round(view.stood, 3),
        "delay, ms": round(1000 * float(np.mean(delays)), 1),
    }


def hits(line: tw.Conditions | None, shots: int, seed: int = 2) -> dict[str, Any]:
    """A client aims at the rim of what it sees; how many shots the server judges as the client saw them."""
    scene = Scene(line, seed)
    expected: dict[tuple[float, int], bool] = {}
    asked = agreed = off = 0
    frame = 0
    while asked < shots:
        with scene.client.tick():
            view = scene.client.world.view()
            arrays = view.arrays(Target)
            rows = arrays.rows
            if frame > 300 and len(rows):
                row = int(scene.rng.choice(rows))
                x, y = arrays["position"][row]
                # Half of them hit; the nearest to the rim by a hundredth of a step and more.
                distance = RADIUS * scene.rng.uniform(0.9, 1.1)
                angle = scene.rng.uniform(0, 6.28)
                at = (x + distance * math.cos(angle), y + distance * math.sin(angle))
                shot = Shot(view.tick, int(arrays["number"][row]), float(at[0]), float(at[1]))
                expected[(shot.seen, shot.number)] = math.dist((shot.x, shot.y), (x, y)) <= RADIUS
                scene.client.send(shot)
        scene.move()
        with scene.server.tick() as inbox:
            for _, shot in inbox.messages:
                with scene.world.rewind(scene.player, seen=shot.seen) as past:
                    then = past.arrays(Target)
                    (row,) = np.flatnonzero((then["number"] == shot.number) & then.alive)
                    distance = math.dist((shot.x, shot.y), then["position"][row])
                    asked += 1
                    saw = expected.pop((shot.seen, shot.number))
                    agreed += saw == (distance <= RADIUS)
                    off += past.clamped != ""
        scene.network.advance(STEP)
        frame += 1
    return {"shots": asked, "as seen, %": round(100 * agreed / asked, 2), "out of bounds": off}


def cost(ghosts: int = 1000) -> dict[str, Any]:
    """Thread processor time of a view in which all have moved on by a tick, and of the same one again."""
    scene = Scene(None, 3, ghosts)
    scene.server.set_budget(100_000_000, 10_000_000, scene.player, adaptive=False)
    moved, same = [], []
    for _ in range(120 if QUICK else 600):
        scene.move()
        with scene.server.tick():
            pass
        scene.network.advance(STEP)
        with scene.client.tick():
            pass
        for times in (moved, same):
            began = time.thread_time_ns()
            scene.client.world.view()
            times.append((time.thread_time_ns() - began) / 1000)
    began = time.thread_time_ns()
    rewinds = 50
    tick = scene.world.tick - 3.5
    for _ in range(rewinds):
        scene.world.rewind_to(tick)
    rewound = (time.thread_time_ns() - began) / 1000 / rewinds
    return {
        "a view of 1,000, a tick on, us": round(float(np.median(moved[60:])), 1),
        "the same tick again, us": round(float(np.median(same[60:])), 1),
        "a rewound world of 1,000, us": round(rewound, 1),
        "bytes that a second of them takes": scene.world.past_bytes,
    }


def rows() -> list[dict[str, Any]]:
    """A row for each link, and one for the cost of a view."""
    seconds, shots = (10, 300) if QUICK else (60, 3000)
    lines = [
        {"line": name, "smoothness": smoothness(line, seconds), "hits": hits(line, shots)}
        for name, line in LINES.items()
    ]
    return [*lines, {"cost": cost()}]


if __name__ == "__main__":
    for row in rows():
        print(row, flush=True)
