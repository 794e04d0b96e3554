"""Prediction: corrections, how they look, and the cost of predicting."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import tickwire as tw
from lab import LINES, Lab, percentile

#: Units by which a position may be off: players run at 5 a second.
TOLERANCE = 0.1


@tw.message
class Move:
    x: Annotated[int, tw.ranged(-1, 1)]
    y: Annotated[int, tw.ranged(-1, 1)]


@tw.ghost
class Player:
    position: Annotated[tw.Vec2, tw.vec2(-512, 512, 1 / 1024)] = tw.default()


@dataclass
class Body:
    """The state that a step moves."""

    position: tuple[float, float] = (0.0, 0.0)


def stepper(rate: int) -> Any:
    """A step of a game with this many ticks a second."""
    by = 5 / rate

    def step(body: Body, move: Move) -> Body:
        x, y = body.position
        body.position = (max(-500.0, min(500.0, x + by * move.x)), max(-500.0, min(500.0, y + by * move.y)))
        return body

    return step


@dataclass
class Predicting:
    """What one run showed."""

    line: str
    server_hz: int
    client_hz: int
    compared: int
    corrections: int
    visible_error_p99: float
    largest_jump: float
    tolerance: float


def measure(
    name: str, server_hz: int = 60, client_hz: int = 60, *, seconds: float = 60.0, seed: int = 2
) -> Predicting:
    """A player that changes its mind three times a second, on a server that runs the same step."""
    protocol = tw.Protocol(1, ghosts=[Player], inputs=Move, tick_rate=server_hz)
    lab, step = Lab(protocol, LINES[name], seed), stepper(server_hz)
    server, client = lab.server, lab.client()
    bodies: dict[tw.ClientHandle, tuple[Body, Player]] = {}
    truth: dict[int, tuple[float, float]] = {}
    mine: tw.predict.Prediction[Body, Move] = tw.predict.Prediction(step, tolerance={"position": TOLERANCE})
    counts = {"compared": 0, "turn": 0}
    shown: list[tuple[float, tuple[float, float]]] = []
    jumps: list[float] = []

    def serve() -> None:
        for handle, what in server.receive():
            if isinstance(what, tw.Connected):
                bodies[handle] = (Body(), server.world.spawn(Player(), owner=handle))
        for handle, move in server.inputs:
            body, ghost = bodies[handle]
            ghost.position = (step(body, move) if move else body).position
        for body, _ in bodies.values():
            truth[server.inputs.tick] = body.position
        server.flush()

    def play() -> None:
        client.receive()
        counts["turn"] += 1
        phase = counts["turn"] * 3 // client_hz
        ghost = next((each for each in client.world.objects(Player) if client.world.owns(each)), None)
        if ghost is not None:
            if mine.state is None:
                mine.reset(Body(ghost.position))
            before = client.tick_of(ghost)
            corrected = mine.corrections
            mine.advance(client, Move(phase % 3 - 1, phase // 3 % 3 - 1), ghost)
            counts["compared"] += before is not None and before != counts.get("last")
            counts["last"] = before or 0
            seen = mine.seen(1 / client_hz)
            if mine.tick is not None and mine.tick > 0:
                drawn = client._drawn_tick()  # type: ignore[attr-defined]
                shown.append((mine.tick if drawn is None else min(drawn, mine.tick), seen.position))
            if mine.corrections != corrected and len(shown) > 1:
                jumps.append(math.dist(shown[-1][1], shown[-2][1]))
        client.flush()

    lab.every(1 / server_hz, serve, phase=0.003)
    lab.every(1 / client_hz, play, phase=0.0071)
    lab.run(4)
    begin, corrections = len(shown), mine.corrections
    lab.run(seconds)
    errors = [math.dist(at, between(truth, tick)) for tick, at in shown[begin:] if math.ceil(tick) in truth]
    return Predicting(
        name,
        server_hz,
        client_hz,
        counts["compared"],
        mine.corrections - corrections,
        round(percentile(errors, 99), 4),
        round(max(jumps, default=0.0), 4),
        TOLERANCE,
    )


def between(truth: dict[int, tuple[float, float]], tick: float) -> tuple[float, float]:
    """The server's position at a tick with a fraction."""
    before, after = truth[math.floor(tick)], truth[math.ceil(tick)]
    share = tick % 1
    return before[0] + share * (after[0] - before[0]), before[1] + share * (after[1] - before[1])


def costs() -> dict[str, float]:
    """Thread CPU of the step, of a client's replay of 8 moves, and of 64 players' inputs on a server."""
    step, move = stepper(60), Move(1, 0)

    def clocked(work: Any, times: int) -> float:
        best = math.inf
        for _ in range(5):
            began = time.thread_time()
            for _ in range(times):
                work()
            best = min(best, time.thread_time() - began)
        return best / times * 1e6

    body = Body()
    alone = clocked(lambda: step(body, move), 20_000)
    mine = tw.predict.Prediction(step, Body(), tolerance={"position": TOLERANCE})

    def replay() -> None:
        mine.reset(Body())
        mine.run(range(1, 10), move)
        mine.correct(1, Body((400.0, 0.0)))

    def run_only() -> None:
        mine.reset(Body())
        mine.run(range(1, 10), move)

    return {
        "step_us": round(alone, 3),
        "replay_of_8_us": round(clocked(replay, 1_000) - clocked(run_only, 1_000), 2),
        **server_costs(step, clocked),
    }


def server_costs(step: Any, clocked: Any, players: int = 64) -> dict[str, float]:
    """A server's tick with the inputs of so many players, beside the game's steps alone."""
    protocol = tw.Protocol(1, inputs=Move, tick_rate=60)
    lab = Lab(protocol, LINES["localhost"])
    clients = [lab.client() for _ in range(players)]
    for turn in range(120):
        for client in clients:
            client.receive()
            client.send_input(Move(turn % 3 - 1, 0))
            client.flush()
        lab.server.receive()
        lab.server.flush()
        lab.run(1 / 60)
    bodies = {handle: Body() for handle in lab.server.clients}
    moves = [Move(1, 0)] * players

    def with_inputs() -> None:
        for handle, move in lab.server.inputs:
            step(bodies[handle], move or moves[0])

    def alone() -> None:
        for handle, move in zip(bodies, moves, strict=True):
            step(bodies[handle], move)

    return {
        "players": players,
        "steps_of_players_us": round(clocked(alone, 500), 1),
        "steps_with_inputs_us": round(clocked(with_inputs, 500), 1),
        "input_rows_us": round(
            clocked(lambda: (lab.server.inputs.columns(), lab.server.inputs.rows()), 500), 1
        ),
    }


def rows() -> list[dict[str, Any]]:
    """All of it but costs."""
    runs = [measure(name) for name in LINES]
    runs += [
        measure("50 ms", 15, 60),
        measure("localhost", 15, 60),
        measure("50 ms", 60, 240),
        measure("50 ms", 60, 30),
    ]
    return [asdict(run) for run in runs]


if __name__ == "__main__":
    for row in rows():
        print(row)
    print(costs())
