"""Whether rockets hit what the shooter aimed at: with replay of the past, and judged by the present alone."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import tickwire as tw
from lab import LINES, Lab, Note

RATE = 60
SPEED = 4.0  # of a rocket, a tick
RADIUS = 6.0
REACH = 90  # ticks

Spot = tuple[float, float]


@tw.message
class Aim:
    fires: tw.fields.press = False
    x: tw.f32 = 0.0
    y: tw.f32 = 0.0


@tw.ghost(capacity=16)
class Target:
    position: Annotated[tw.Vec2, tw.vec2(-2000, 2000, 1 / 64)] = (0, 0)


@dataclass
class Rocket:
    """Flies from the middle of the arena."""

    way: Spot
    spot: Spot = (0.0, 0.0)
    age: float = 0.0

    def fly(self, ticks: float) -> None:
        self.age += ticks
        self.spot = self.way[0] * SPEED * self.age, self.way[1] * SPEED * self.age

    def hits(self, targets: list[Target]) -> bool:
        return any(math.dist(self.spot, target.position) < RADIUS for target in targets)


@dataclass
class Projectiles:
    """What one run showed."""

    line: str
    replay: bool
    shots: int
    hit_percent: float


def aimed(target: Spot, velocity: Spot) -> Spot:
    """The direction in which a rocket meets a target that keeps its velocity."""
    ticks = 0.0
    for _ in range(30):
        met = target[0] + velocity[0] * ticks, target[1] + velocity[1] * ticks
        ticks = math.hypot(*met) / SPEED
    return met[0] / math.hypot(*met), met[1] / math.hypot(*met)


def measure(name: str, *, replay: bool, shots: int = 400, seed: int = 1) -> Projectiles:
    """A client shoots at targets that run evenly, where it sees them."""
    protocol = tw.Protocol(1, [Note], ghosts=[Target], inputs=Aim, tick_rate=RATE)
    lab = Lab(protocol, LINES[name], seed)
    server, client = lab.server, lab.client()
    server.world.remember(1.0)
    targets = [server.world.spawn(Target()) for _ in range(8)]
    flying: list[Rocket] = []
    counts = {"tick": 0, "fired": 0, "launched": 0, "hit": 0, "frame": 0}
    before: dict[int, Spot] = {}

    def run(number: int, tick: int) -> Spot:
        """To and fro on a line that passes the middle, each target on its own."""
        angle, phase = number * math.pi / 4, (tick + 100 * number) % 400
        along = 1.5 * (phase if phase < 200 else 400 - phase) - 150.0
        away = 60.0 + 10 * number
        return (
            away * math.cos(angle) - along * math.sin(angle),
            away * math.sin(angle) + along * math.cos(angle),
        )

    def serve() -> None:
        server.receive()
        counts["tick"] += 1
        for number, target in enumerate(targets):
            target.position = run(number, counts["tick"])
        for rocket in list(flying):
            rocket.fly(1)
            if rocket.hits(targets) or rocket.age > REACH:
                counts["hit"] += rocket.age <= REACH
                flying.remove(rocket)
        for handle, aim in server.inputs:
            if aim is not None and aim.fires:
                launch(handle, Rocket((aim.x, aim.y)))
        server.flush()

    def launch(handle: tw.ClientHandle, rocket: Rocket) -> None:
        counts["launched"] += 1
        if replay:
            with server.world.rewind(handle) as past:
                for then, ticks in past.replay():
                    rocket.fly(ticks)
                    if rocket.hits(then.objects(Target)):
                        counts["hit"] += 1
                        return
        flying.append(rocket)

    def play() -> None:
        client.receive()
        counts["frame"] += 1
        view = client.world.view()
        aim = Aim()
        seen = {client.world.id_of(each): view.ghost(each) for each in client.world.objects(Target)}
        now = {number: each.position for number, each in seen.items() if each is not None}
        if counts["frame"] % 12 == 0 and counts["frame"] > 300 and counts["fired"] < shots:
            number = counts["frame"] // 12 % 8
            at, was = list(now.values())[number], list(before.values())[number]
            phase = (view.tick + 100 * number) % 200
            if phase < 130:  # it doesn't turn before it is hit
                x, y = aimed(at, (at[0] - was[0], at[1] - was[1]))
                aim = Aim(True, x, y)
                counts["fired"] += 1
        before.clear()
        before.update(now)
        client.send_input(aim)
        client.flush()

    lab.every(1 / RATE, serve, phase=0.003)
    lab.every(1 / RATE, play, phase=0.0071)
    lab.run(8 + shots * 12 / RATE * 2)
    return Projectiles(name, replay, counts["launched"], round(100 * counts["hit"] / counts["launched"], 1))


def rows(shots: int = 400) -> list[dict[str, Any]]:
    """All of it."""
    lines = ["localhost", "50 ms", "100 +- 30 ms, 5 % loss"]
    return [asdict(measure(name, replay=replay, shots=shots)) for name in lines for replay in (False, True)]


if __name__ == "__main__":
    for row in rows():
        print(row)
