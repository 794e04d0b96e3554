"""What is drawn moves evenly: at screens and ticks that differ, on a line without loss."""

from __future__ import annotations

import dataclasses
import itertools
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import tickwire as tw

sys.path.insert(0, str(Path(__file__).parents[2] / "benches" / "latency"))

from lab import LINES, Lab, Note, Runner
from reaching import Key

SPEED = 10.0

LATENCY = 0.03


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


@tw.message
class Frame:
    number: tw.u16 = 0


def play_stalls(rate: int, frames: int, is_held: bool) -> None:
    """Three stalls, in which nothing arrives from the server: what is drawn is of the tick that the view
    names, and the server rewinds to what was drawn."""
    lab = Lab(tw.Protocol(1, [Note], ghosts=[Runner], inputs=Frame, tick_rate=rate), LINES["localhost"])
    lab.network.set_conditions(tw.Conditions(latency=LATENCY))
    client = lab.client()
    runner = lab.server.world.spawn(Runner())
    lab.server.world.remember(2.0)
    stall = (math.inf, math.inf)
    # By frame: the time, what is drawn, the view's delay, and for how long it stood by its own count.
    drawn: list[tuple[float, float, float, float]] = []
    rewound = 0

    def serve() -> None:
        nonlocal rewound
        is_stalled = stall[0] <= lab.now < stall[1]
        held = max(stall[1] - lab.now, 0.0) if is_stalled and is_held else 0.0
        loss = 1.0 if is_stalled and not is_held else 0.0
        lab.network.set_conditions(
            tw.Conditions(latency=LATENCY + held, loss=loss), sender=lab.server.address
        )
        lab.server.receive()
        runner.x = lab.server.inputs.tick * SPEED / rate
        for player, frame in lab.server.inputs:
            if frame is not None and frame.number > frames:
                with lab.server.world.rewind(player) as past:
                    assert past.ghost(runner).x == pytest.approx(
                        drawn[frame.number][1], abs=SPEED / rate / 64
                    )
                rewound += 1
        lab.server.flush()

    def play() -> None:
        client.receive()
        view = client.world.view()
        for each in view.objects(Runner):
            drawn.append((lab.now, each.x, view.delay, view.stood))
            assert each.x == pytest.approx(view.tick % 65536 * SPEED / rate, abs=SPEED / rate / 256)
            client.send_input(Frame(len(drawn) - 1))
        client.flush()

    lab.every(1 / rate, serve)
    lab.every(1 / frames, play, phase=0.005)
    lab.run(5)
    for length in (0.3, 0.5, 0.8):
        first, usual, stood = len(drawn), drawn[-1][2], drawn[-1][3]
        stall = (lab.now, lab.now + length)
        lab.run(length + 6)
        during = drawn[first:]
        steps = [(after[1] - before[1]) * frames for before, after in itertools.pairwise(during)]
        assert 0 <= min(steps) <= max(steps) <= 2.1 * SPEED, "it catches up, and doesn't jump"
        stands = sum(step < 0.01 for step in steps) / frames
        assert length - 1.5 / rate - 2 / frames < stands < length + LATENCY + 2 / rate + 2 / frames
        assert drawn[-1][3] - stood == pytest.approx(stands, abs=1 / rate + 2 / frames)
        assert max(delay for *_, delay, _ in during) == pytest.approx(
            usual + stands, abs=2 / rate + 2 / frames
        )
        assert drawn[-1][2] == pytest.approx(usual, abs=0.005), "it is as late as before"
    assert rewound > 10 * rate


@pytest.mark.parametrize("frames", [60, 144])
@pytest.mark.parametrize("rate", [15, 30, 60])
@pytest.mark.parametrize("is_held", [True, False])
def test_a_view_names_the_tick_that_it_draws_in_stalls(rate: int, frames: int, is_held: bool) -> None:
    play_stalls(rate, frames, is_held)


@pytest.mark.parametrize("timing", [{}, {"tick_rate": 60}, {"tick_rate": 60, "inputs": Frame}])
def test_a_quiet_world_is_no_stall(timing: dict[str, Any]) -> None:
    lab = Lab(tw.Protocol(1, [Note], ghosts=[Runner], **timing), LINES["25 ms"])
    client = lab.client()
    runner = lab.server.world.spawn(Runner())
    drawn: list[float] = []

    def serve() -> None:
        lab.server.receive()
        # It moves for three seconds and rests for three.
        runner.x += SPEED / 60 * (lab.now % 6 < 3)
        lab.server.flush()

    def play() -> None:
        client.receive()
        if "inputs" in timing:
            client.send_input(Frame(1))
        view = client.world.view()
        drawn.extend(each.x for each in view.objects(Runner))
        if lab.now > 4:
            # Packets with ticks, or others, arrive at least every quarter of a second.
            assert view.delay < 0.3
            assert (lab.server.world.tick - view.tick) % 65536 < 0.35 * 60
        client.flush()

    lab.every(1 / 60, serve)
    lab.every(1 / 60, play, phase=0.005)
    lab.run(20)
    assert client.world.view().stood < 0.02
    steps = [after - before for before, after in itertools.pairwise(drawn[300:])]
    assert 0 <= min(steps) <= max(steps) < 1.1 * SPEED / 60, "a motion after a rest is as fast as any"
