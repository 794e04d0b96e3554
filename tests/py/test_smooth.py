"""What is drawn moves evenly: at screens and ticks that differ, on a line without loss."""

from __future__ import annotations

import dataclasses
import itertools
import sys
from pathlib import Path

import pytest
import tickwire as tw

sys.path.insert(0, str(Path(__file__).parents[2] / "benches" / "latency"))

from lab import LINES, Lab, Note, Runner
from reaching import Key

SPEED = 10.0


@dataclasses.dataclass
class Body:
    x: float = 0.0


def largest_deviation(drawn: list[float]) -> float:
    """The largest difference of a step from the mean step, as a fraction of the mean."""
    steps = [after - before for before, after in itertools.pairwise(drawn)]
    mean = sum(steps) / len(steps)
    return max(abs(step - mean) for step in steps) / mean


@pytest.mark.parametrize("frames", [60, 75, 144, 240])
@pytest.mark.parametrize("rate", [15, 30, 60])
def test_own_and_others_move_evenly(rate: int, frames: int) -> None:
    protocol = tw.Protocol(1, [Note], ghosts=[Runner], inputs=Key, tick_rate=rate)
    lab = Lab(protocol, LINES["50 ms"])
    first, second = lab.client(), lab.client()
    runners: dict[tw.ClientHandle, Runner] = {}

    def run(body: Body, key: Key) -> Body:
        body.x += key.x * SPEED / rate
        return body

    mine = tw.predict.Prediction(run, Body(), tolerance={"x": 0.01})
    own: list[float] = []
    other: list[float] = []

    def serve() -> None:
        lab.server.receive()
        for client, key in lab.server.inputs:
            runner = runners.get(client)
            if runner is None:
                runner = runners[client] = lab.server.world.spawn(Runner(), owner=client)
            if key is not None:
                runner.x += key.x * SPEED / rate
        lab.server.flush()

    def play() -> None:
        first.receive()
        mine.advance(first, Key(1), first.world.mine(Runner))
        first.flush()
        own.append(mine.seen(1 / frames).x)
        other.extend(runner.x for runner in first.world.view().others(Runner))

    def move() -> None:
        second.receive()
        second.send_input(Key(1))
        second.flush()

    lab.every(1 / rate, serve)
    lab.every(1 / frames, play, phase=0.005)
    lab.every(1 / frames, move, phase=0.007)
    lab.run(12)
    measured = 5 * frames
    assert largest_deviation(own[-measured:]) <= (0.06 if frames == 75 else 0.05)
    assert largest_deviation(other[-measured:]) <= 0.05
