"""A co-op game of all features: players move by prediction, and shoot wolves where they see them.

The game knows a server, or a client, and nothing else: who hosts it, and how the others reach it, is in a
line outside (``test_hosted.py``).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, TypeAlias

import tickwire as tw

RATE = 60
SPEED = 2.0
"""Units a player goes in a tick, at most."""
STEER = 16
RADIUS = 3.0
"""How far a shot may be from the middle of a wolf."""
RELOAD = 15
"""Ticks between two shots."""
WOLVES = 12
LIVES = 3

Place: TypeAlias = Annotated[tw.Vec2, tw.vec2(-1024, 1023, 1 / 32)]
Name: TypeAlias = Annotated[str, tw.text(16)]


@tw.message
class Move:
    """A player's input of a tick: where to go, and at what to shoot."""

    x: Annotated[int, tw.ranged(-STEER, STEER)] = 0
    y: Annotated[int, tw.ranged(-STEER, STEER)] = 0
    fires: bool = False
    aim: Place = (0, 0)


@tw.message
class Score:
    """The hunters' score: to all of them, in their room."""

    kills: tw.u32


@tw.ghost(capacity=16)
class Hunter:
    """A player."""

    position: Place = (0, 0)
    name: Annotated[Name, tw.initial] = ""
    kills: Annotated[int, tw.u16] = 0


@tw.ghost(capacity=64)
class Wolf:
    """It runs in a circle around the fire."""

    position: Place = (0, 0)
    lives: Annotated[int, tw.ranged(0, LIVES)] = LIVES
    number: Annotated[int, tw.u16, tw.initial] = 0


@tw.call(tw.to_server, rate=1, burst=4)
def join(caller: tw.ClientHandle, name: Name) -> tw.u16:
    """Gives the caller a hunter, and returns how many there are."""
    raise NotImplementedError


@tw.call(tw.to_all)
def howled(wolf: tw.u16, killer: Name) -> None:
    """A wolf is dead: exactly once for each."""


PROTOCOL = tw.Protocol(
    0x776F6C66,
    [Score],
    [tw.reliable_ordered("news")],
    ghosts=[Hunter, Wolf],
    inputs=Move,
    tick_rate=RATE,
    calls=[join, howled],
    peers=True,
)


@dataclasses.dataclass
class Body:
    """The part of a hunter that is predicted."""

    position: tw.Vec2 = (0.0, 0.0)


def step(body: Body, move: Move) -> Body:
    """A tick of a hunter, the same on both sides."""
    x, y = body.position
    x = max(-500.0, min(500.0, x + SPEED * move.x / STEER))
    y = max(-500.0, min(500.0, y + SPEED * move.y / STEER))
    return Body((x, y))


def is_at(wolf: Wolf | None, aim: tw.Vec2) -> bool:
    """Whether a shot meets a wolf."""
    return wolf is not None and math.dist(wolf.position, aim) < RADIUS


class Game:
    """The server's side."""

    def __init__(self, server: tw.Server[Score]) -> None:
        self.server, self.world = server, server.world
        self.world.remember(1.0)
        self.room = server.room()
        self.hunters: dict[tw.ClientHandle, tuple[Hunter, Body]] = {}
        self.ready: dict[tw.ClientHandle, int] = {}
        # A world that another server has begun goes on, and its hunters wait for their players.
        self.wolves: list[Wolf] = self.world.objects(Wolf)
        self.next_wolf = max((wolf.number for wolf in self.wolves), default=0)
        self.kills = sum(hunter.kills for hunter in self.world.objects(Hunter))
        self.still = False
        self.shots: dict[str, list[bool]] = {}
        """The verdicts about each hunter's shots."""
        server.implement(join, self._join)

    def tick(self) -> None:
        """A tick of the world."""
        with self.server.tick() as inbox:
            for client, what in inbox:  # runs calls in their places
                if isinstance(what, tw.Disconnected) and client in self.hunters:
                    self.world.despawn(self.hunters.pop(client)[0])
            for client, move in self.server.inputs:
                if move is not None and client in self.hunters:
                    self._play(client, move)
            if not self.still:
                self._run_wolves()

    def _join(self, caller: tw.ClientHandle, name: str) -> int:
        if caller not in self.hunters:
            ours = (hunter for hunter in self.world.objects(Hunter) if self.world.owner(hunter) == caller)
            hunter = next(ours, None) or self.world.spawn(Hunter(name=name), owner=caller)
            self.hunters[caller] = hunter, Body(hunter.position)
            self.room.add(caller)
        return len(self.hunters)

    def _play(self, client: tw.ClientHandle, move: Move) -> None:
        hunter, body = self.hunters[client]
        body = step(body, move)
        self.hunters[client] = hunter, body
        hunter.position = body.position
        tick = self.server.inputs.tick
        if not move.fires or tick < self.ready.get(client, 0):
            return
        self.ready[client] = tick + RELOAD
        with self.world.rewind(client) as past:
            hit = next((wolf for wolf in self.wolves if is_at(past.ghost(wolf), move.aim)), None)
            # The wolf may have died since, by another hunter's shot.
            was_hit = any(is_at(wolf, move.aim) for wolf in past.objects(Wolf))
            if hit is not None:
                past.judge(True, hit, weapon="bow")
        self.shots.setdefault(hunter.name, []).append(was_hit)
        if hit is not None:
            self._hurt(hit, hunter)

    def _hurt(self, wolf: Wolf, hunter: Hunter) -> None:
        wolf.lives -= 1
        if wolf.lives == 0:
            self.kills += 1
            hunter.kills += 1
            self.wolves.remove(wolf)
            self.world.despawn(wolf)
            self.server.call_all(howled, wolf.number, hunter.name)
            self.room.broadcast(Score(self.kills))

    def _run_wolves(self) -> None:
        while len(self.wolves) < WOLVES:
            self.next_wolf += 1
            self.wolves.append(self.world.spawn(Wolf(number=self.next_wolf)))
        for wolf in self.wolves:
            angle = self.server.inputs.tick / (50 + wolf.number % 7) + wolf.number
            wolf.position = (200 * math.cos(angle), 200 * math.sin(angle))


class Player:
    """A player's side."""

    def __init__(self, client: tw.Client[Score], name: str) -> None:
        self.client, self.name = client, name
        self.body = tw.predict.Prediction(step, Body(), tolerance={"position": 1 / 16})
        self.hunter: Hunter | None = None
        self.request: tw.calls.Request[int] | None = None
        self.joined, self.kills = 0, 0
        self.howls: list[tuple[int, str]] = []
        self.ended: tw.DisconnectReason | None = None
        self.detail: str | None = None
        client.implement(howled, self._hear)

    def tick(self, move: Move) -> None:
        """A tick: hears the server, and plays."""
        with self.client.tick() as inbox:
            for what in inbox:  # runs calls in their places
                match what:
                    case tw.Connected():
                        self.request = self.client.request(join, self.name)
                    case tw.Disconnected():
                        self.ended, self.detail = what.reason, what.detail
                    case Score():
                        self.kills = what.kills
                    case _:
                        pass
            if self.request is not None and self.request.done:
                self.joined, self.request = self.request.result(), None
            self.hunter = self.client.world.mine(Hunter)
            if self.hunter is not None:
                self.body.advance(self.client, move, self.hunter)
                self.body.seen(1 / RATE)

    def _hear(self, wolf: int, killer: str) -> None:
        self.howls.append((wolf, killer))

    def target(self) -> tw.Vec2 | None:
        """Where the wolf is drawn that is next to this hunter."""
        wolves = self.client.world.view().objects(Wolf)
        here = self.body.state.position
        spots = sorted((wolf.position for wolf in wolves), key=lambda spot: math.dist(spot, here))
        return spots[0] if spots else None


class Bot:
    """Walks in a square, and shoots at what it sees."""

    def __init__(self, player: Player, seed: int) -> None:
        self.player, self.seed, self.frame = player, seed, 0
        self.still = False

    def tick(self) -> None:
        """A tick of its player."""
        self.frame += 1
        if self.still:
            return self.player.tick(Move())
        side = (self.frame // 90 + self.seed) % 4
        x, y = ((1, 0), (0, 1), (-1, 0), (0, -1))[side]
        target = self.player.target() if self.frame % 20 == self.seed else None
        move = Move(STEER * x, STEER * y, target is not None, target or (0, 0))
        return self.player.tick(move)
