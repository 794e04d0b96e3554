"""While the server has no acks, it sends no more of a ghost that moves. A view doesn't take that for rest."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tickwire as tw

sys.path.insert(0, str(Path(__file__).parents[2] / "benches" / "latency"))

from lab import Lab, Note, Runner
from reaching import Key

RATE = 60

#: The time of an outage or a pause.
BEGIN = 8.0


class Drawn:
    """A ghost that is at the number of each tick, drawn in each frame, and another that moves at times."""

    def __init__(
        self, latency: float, *, has_inputs: bool = True, other_moves: bool = False, rate: int = RATE
    ) -> None:
        line = tw.Conditions(latency=latency)
        timing = {"inputs": Key, "tick_rate": rate} if has_inputs else {}
        self.lab = Lab(tw.Protocol(1, [Note], ghosts=[Runner], **timing), (line, line))
        self.client, self.has_inputs = self.lab.client(), has_inputs
        self.other_moves = other_moves
        self.runner, self.other = (self.lab.server.world.spawn(Runner()) for _ in range(2))
        #: The times until which the programs stand still.
        self.client_asleep = self.server_asleep = 0.0
        #: By frame: the time, the view's tick, what is drawn, the delay, and for how long it stood.
        self.frames: list[tuple[float, float, float, float, float]] = []
        self.lab.every(1 / rate, self.serve)
        self.lab.every(1 / RATE, self.play, phase=0.005)

    def serve(self) -> None:
        lab = self.lab
        if lab.now < self.server_asleep:
            return
        lab.server.receive()
        if self.has_inputs:
            list(lab.server.inputs)
        tick = lab.server.world.tick + 1
        self.runner.x, self.other.x = float(tick), float(tick // 13) * self.other_moves
        lab.server.flush()

    def play(self) -> None:
        client = self.client
        if self.lab.now < self.client_asleep:
            return
        client.receive()
        view = client.world.view()
        for runner in view.objects(Runner)[:1]:
            self.frames.append((self.lab.now, view.tick % 65536, runner.x, view.delay, view.stood))
        if self.has_inputs:
            client.send_input(Key(1))
        client.flush()

    def steps(self) -> Iterator[float]:
        """How far the ghost is drawn from frame to frame, in ticks."""
        return (after[2] - before[2] for before, after in itertools.pairwise(self.frames))

    def largest_miss(self) -> float:
        """The most ticks between the view's tick and what is drawn."""
        return max(abs(tick - place) for _, tick, place, *_ in self.frames)


@pytest.mark.parametrize("latency", [0.02, 0.1])
@pytest.mark.parametrize("length", [0.4, 0.5, 0.6, 0.7, 0.8])
@pytest.mark.parametrize("other_moves", [False, True])
def test_ghosts_do_not_jump_while_only_packets_to_the_server_are_lost(
    latency: float, length: float, other_moves: bool
) -> None:
    drawn = Drawn(latency, other_moves=other_moves)
    lab = drawn.lab
    lab.run(BEGIN)
    del drawn.frames[:-RATE]
    usual = drawn.frames[-1][3]
    lab.network.set_conditions(tw.Conditions(latency=latency, loss=1), receiver=lab.server.address)
    lab.run(length)
    lab.network.set_conditions(tw.Conditions(latency=latency), receiver=lab.server.address)
    lab.run(4)
    assert max(drawn.steps()) <= 3
    assert drawn.largest_miss() < 1
    still = sum(step < 0.01 for step in drawn.steps()) / RATE
    assert drawn.frames[-1][4] == pytest.approx(still, abs=0.05)
    assert still > length + 2 * latency - 32 / RATE - 0.04
    assert drawn.frames[-1][3] == pytest.approx(usual, abs=0.005)


@pytest.mark.parametrize("latency", [0.05, 0.1, 0.15, 0.2])
@pytest.mark.parametrize("length", [0.5, 0.7, 1.05, 1.4, 2.5])
@pytest.mark.parametrize(("has_inputs", "other_moves"), [(True, False), (False, False), (True, True)])
def test_ghosts_are_drawn_at_the_views_tick_after_a_pause_of_the_client(
    latency: float, length: float, has_inputs: bool, other_moves: bool
) -> None:
    drawn = Drawn(latency, has_inputs=has_inputs, other_moves=other_moves)
    drawn.lab.run(BEGIN)
    usual = drawn.frames[-1][3]
    drawn.client_asleep = BEGIN + length
    drawn.lab.run(length)
    drawn.frames.clear()
    drawn.lab.run(4)
    assert drawn.largest_miss() < 1
    jumps = [step for step in drawn.steps() if step > 3]
    assert len(jumps) <= 1
    assert not jumps or drawn.frames[-1][4] > 0.1
    assert drawn.frames[-1][3] == pytest.approx(usual, abs=0.005)


@pytest.mark.parametrize("outages", [(0.25, 0.1), (0.25, 0.25), (0.15, 0.15), (0.4, 0.2, 0.2)])
@pytest.mark.parametrize("between", [0.05, 0.1, 0.2])
def test_ghosts_do_not_jump_after_several_outages(outages: tuple[float, ...], between: float) -> None:
    """The ticks that were lost aren't taken for rest, though later ones are lost before they are drawn."""
    drawn = Drawn(0.02)
    lab = drawn.lab
    lab.run(BEGIN)
    for length in outages:
        lab.network.set_conditions(tw.Conditions(latency=0.02, loss=1), sender=lab.server.address)
        lab.run(length)
        lab.network.set_conditions(tw.Conditions(latency=0.02), sender=lab.server.address)
        lab.run(between)
    lab.run(4)
    del drawn.frames[:RATE]
    assert max(drawn.steps()) < 2.1


@pytest.mark.parametrize("own", [0.6, 1, 2, 4])
@pytest.mark.parametrize("offset", [-0.5, 0, 0.5, 1.5])
@pytest.mark.parametrize("length", [0.3, 0.6, 1])
@pytest.mark.parametrize("rate", [20, 60])
def test_a_pause_of_the_client_hides_no_shorter_one_of_the_server(
    own: float, offset: float, length: float, rate: int
) -> None:
    drawn = Drawn(0.05, has_inputs=False, rate=rate)
    drawn.lab.run(BEGIN - 0.5)
    usual = drawn.frames[-1][3]
    begins = sorted([(BEGIN, True), (BEGIN + offset, False)])
    for at, is_own in begins:
        drawn.lab.run(at - drawn.lab.now)
        if is_own:
            drawn.client_asleep = at + own
        else:
            drawn.server_asleep = at + length
    end = max(drawn.client_asleep, drawn.server_asleep)
    drawn.lab.run(end + 3 - drawn.lab.now)
    drawn.frames.clear()
    drawn.lab.run(5)
    assert max(delay for *_, delay, _ in drawn.frames) < usual + 2 / rate
