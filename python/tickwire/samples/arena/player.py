"""The player's side: steers, predicts its own avatar, and shows other players as they were a moment ago."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

import tickwire as tw
from tickwire.samples.arena import rules
from tickwire.samples.arena.messages import Avatar, Move, Rocket, join, killed, shot
from tickwire.samples.arena.rules import Body, Spot, along, flown, free, is_stopped, moved


def step(body: Body, move: Move) -> Body:
    """Runs a tick of an avatar, on the server and in the prediction."""
    if not body.alive:
        return body
    return body._replace(position=moved(body.position, (move.x / rules.STEER, move.y / rules.STEER)))


class Controls(NamedTuple):
    """A player's controls."""

    steer: Spot = (0.0, 0.0)
    aim: float = 0.0
    weapon: int = 0


class Shot(NamedTuple):
    """A shot or an explosion."""

    slot: int
    weapon: int
    at: Spot
    to: Spot


class Player:
    """A player's view of the arena. Only the server's view is true."""

    def __init__(self, client: tw.Client, name: str = "") -> None:
        self.client, self.name = client, name
        self.avatar: Avatar | None = None  # our own, as it last arrived
        self.body: tw.predict.Prediction[Body, Move] | None = None
        self.spot: Spot | None = None  # where we are shown
        self.aim = 0.0
        self.shots: list[Shot] = []  # what was fired in the last tick
        self.news: list[tuple[int, int, int]] = []  # who killed whom in it, and by which weapon
        self.ended: tw.DisconnectReason | None = None
        self.attempt = 0  # of dialing again; 0 while it is connected
        self.predicts, self.interpolates, self.rewinds = True, True, True
        self.view = client.world.view()
        self._was_here = False
        self._ready = [0] * len(rules.WEAPONS)
        self.fired: tw.predict.Predicted[Rocket] = tw.predict.Predicted(ticks=20)
        self._flying: dict[Rocket, Rocket] = {}
        client.implement(shot, self._see_shot)
        client.implement(killed, self._hear)

    def tick(self, controls: Controls = Controls()) -> None:  # noqa: B008
        """Runs a tick: receives, and plays."""
        self.shots.clear()
        self.news.clear()
        with self.client.tick() as inbox:
            for event in inbox:  # runs calls in their places
                match event:
                    case tw.Connected():
                        self.attempt, self._was_here = 0, True
                        self.client.call(join, self.name)
                    case tw.connections.Reconnecting() if self._was_here:
                        self.attempt = event.attempt
                    case tw.connections.Reconnecting() | tw.Disconnected():
                        self.ended = event.reason
                    case _:
                        pass
            for change in inbox.ghosts:
                self._note(change)
            if self.avatar is not None and self.body is not None:
                self._play(self.avatar, self.body, controls)  # by what was seen in the frame before
            self.view = self.client.world.view()
            if not self.interpolates and self.client.clock.server_tick is not None:
                self.client.set_seen(self.client.clock.server_tick)  # the newest, then, is what is seen
            self.fired.take_back(self.client.clock.server_tick)

    def _note(self, change: object) -> None:
        match change:
            case tw.GhostSpawned(Avatar() as avatar) if self.client.world.owns(avatar):
                self.avatar, body = avatar, Body(avatar.position, avatar.alive)
                self.body = tw.predict.Prediction(
                    step, body, tolerance={"position": 1 / 8, "alive": 0}, snap=400
                )
            case tw.GhostSpawned(Rocket() as rocket) if self.client.world.owns(rocket):
                if (shown := self.fired.confirm(rocket.fired_at)) is not None:
                    self._flying[rocket] = shown  # goes on where it was shown, ahead of the real one
            case tw.GhostDespawned(ghost):
                self._flying.pop(ghost, None)
                if ghost is self.avatar:
                    self.avatar = self.body = self.spot = None
            case _:
                pass

    def _play(self, avatar: Avatar, body: tw.predict.Prediction[Body, Move], controls: Controls) -> None:
        (x, y), self.aim, weapon = controls
        now = self.client.clock.input_tick or 0
        fires = weapon if not avatar.alive or now >= self._ready[weapon] else 0
        move = Move(round(x * rules.STEER), round(y * rules.STEER), self.aim % 360, fires, self.rewinds)
        ticks = body.advance(self.client, move, avatar)
        shown = body.seen(1 / rules.TICKS_PER_SECOND)
        self.spot = shown.position if self.predicts else avatar.position
        if fires and ticks and avatar.alive:
            self._ready[fires] = ticks[0] + rules.WEAPONS[fires].ticks
            self._show(ticks[0], fires, round(self.aim * 8) / 8)

    def _show(self, tick: int, weapon: int, aim: float) -> None:
        """Shows a shot at once, before the server knows about it."""
        assert self.spot is not None and self.client.slot is not None  # noqa: PT018
        if weapon == rules.ROCKET:
            self.fired.show(tick, Rocket(self.spot, aim, tick))
        else:
            end = self.spot if weapon == rules.PULSE else along(self.spot, aim, free(self.spot, aim))
            self.shots.append(Shot(self.client.slot, weapon, self.spot, end))

    def _see_shot(self, slot: int, weapon: int, at: Spot, to: Spot) -> None:
        if slot != self.client.slot or weapon == rules.ROCKET:  # others of our own were shown
            self.shots.append(Shot(slot, weapon, at, to))

    def _hear(self, killer: int, victim: int, weapon: int) -> None:
        self.news.append((killer, victim, weapon))

    def avatars(self) -> list[Avatar]:
        """All players in their newest state, the best player first, for the scores."""
        return sorted(self.client.world.objects(Avatar), key=lambda avatar: (-avatar.score, avatar.slot))

    def others(self) -> list[Avatar]:
        """The other living players, as they should be drawn."""
        world = self.view if self.interpolates else self.client.world
        return [each for each in world.others(Avatar) if each.alive]

    def rockets(self) -> list[Spot]:
        """The rockets to draw: this player's at their predicted places, others as they were."""
        world = self.view if self.interpolates else self.client.world
        spots = [each.position for each in (world.others if self.predicts else world.objects)(Rocket)]
        if self.predicts and self.body is not None and self.body.tick is not None:
            for each in (*self.fired, *self._flying.values()):
                spot = flown(each.position, each.aim, self.body.tick - each.fired_at)
                spots += [] if is_stopped(spot) else [spot]
        return spots


class Bot:
    """A player without a window. It circles the nearest player, and shoots inaccurately."""

    def __init__(self, player: Player, seed: int) -> None:
        self.player = player
        self._random = random.Random(seed)
        self._side, self._error = 1.0, 0.0

    def tick(self) -> None:
        """Runs a tick of its player."""
        self.player.tick(self.controls())

    def controls(self) -> Controls:
        """Returns the bot's controls for this tick."""
        here = self.player.spot
        others = self.player.others()
        if here is None or not others:
            return Controls(weapon=rules.RIFLE)  # which asks for a respawn, too
        goal = min((each.position for each in others), key=lambda spot: math.dist(spot, here))
        way = math.degrees(math.atan2(goal[1] - here[1], goal[0] - here[0]))
        if self._random.random() < 0.02:
            self._side = self._random.choice((-1.0, 1.0))
        self._error = 0.9 * self._error + self._random.gauss(0, 2.0)
        far = math.dist(here, goal)
        is_clear = free(here, way) >= min(far, rules.WEAPONS[rules.RIFLE].reach)
        # Nearer until it is near enough, and to the side meanwhile.
        turn = self._side * (80 if far < 200 and is_clear else 35)
        steer = along((0.0, 0.0), way + turn, 0.85)
        weapon = rules.PULSE if far < 65 else rules.RIFLE
        if far > 160 and self._random.random() < 0.3:
            weapon = rules.ROCKET
        fires = is_clear and self._random.random() < 0.1
        is_dead = self.player.avatar is not None and not self.player.avatar.alive
        return Controls(steer, way + self._error, weapon if fires or is_dead else 0)
