"""The arena's server, which decides what happens."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import tickwire as tw
from tickwire.samples.arena import rules
from tickwire.samples.arena.messages import Avatar, Move, Rocket, join, killed, shot
from tickwire.samples.arena.player import step
from tickwire.samples.arena.rules import Body, Spot, along, flown, free, is_stopped, reached, start


@dataclass
class Guest:
    """The server's private data about a player."""

    avatar: Avatar
    ready: list[int] = field(default_factory=lambda: [0] * len(rules.WEAPONS))  # the next shots' ticks
    died_at: int = 0
    has_left: bool = False  # its rockets may still fly


class Arena:
    """The game on the server. Each :meth:`tick` is a tick of the world."""

    def __init__(self, server: tw.Server, seed: int | None = None) -> None:
        self._server, self._world = server, server.world
        self._world.remember(1.0)
        self._random = random.Random(seed)
        self._guests: dict[tw.ClientHandle, Guest] = {}
        self._rockets: dict[Rocket, tuple[Guest, Spot]] = {}
        server.implement(join, self._join)

    def tick(self, inbox: tw.Inbox[tuple[tw.ClientHandle, object]]) -> None:
        """Moves all players by their inputs, and handles shots and rockets."""
        for client, what in inbox:  # runs calls in their places
            if isinstance(what, tw.Disconnected) and client in self._guests:
                guest = self._guests.pop(client)
                guest.has_left = True
                self._world.despawn(guest.avatar)
        moves = [(client, move) for client, move in self._server.inputs if move and client in self._guests]
        for client, move in moves:
            avatar = self._guests[client].avatar
            avatar.position = step(Body(avatar.position, avatar.alive), move).position
            avatar.aim = move.aim
        for client, move in moves:
            self._fire(client, self._guests[client], move)
        for rocket, (guest, origin) in list(self._rockets.items()):
            self._fly(rocket, guest, origin)

    def _join(self, caller: tw.ClientHandle, name: str) -> None:
        if caller not in self._guests:
            avatar = Avatar(start(caller.slot), slot=caller.slot, name=name or f"player {caller.slot}")
            self._guests[caller] = Guest(self._world.spawn(avatar, owner=caller))

    def _fire(self, client: tw.ClientHandle, guest: Guest, move: Move) -> None:
        tick, weapon, avatar = self._server.inputs.tick, move.weapon, guest.avatar
        if weapon and not avatar.alive and tick >= guest.died_at + rules.RESPAWN_TICKS:
            avatar.position = start(self._random.randrange(100))
            avatar.health, avatar.alive = rules.FULL_HEALTH, True
            return
        if not weapon or not avatar.alive or tick < guest.ready[weapon]:
            return
        guest.ready[weapon] = tick + rules.WEAPONS[weapon].ticks
        if weapon == rules.ROCKET:
            at = flown(avatar.position, avatar.aim, 0)
            rocket = Rocket(position=at, aim=avatar.aim, fired_at=tick)
            self._rockets[self._world.spawn(rocket, owner=client)] = guest, avatar.position
            return
        with self._world.rewind(client) if move.rewinds else self._world.rewind_to(self._world.tick) as past:
            if move.rewinds:
                avatar.rewinds = (avatar.rewinds + 1) % 65_536
                avatar.rewound = min(1000, round(1000 * (past.now - past.tick) / rules.TICKS_PER_SECOND))
            end = avatar.position
            if weapon == rules.RIFLE:
                end = self._shoot(guest, past)
            else:
                self._blast(guest, end, rules.PULSE, past)
        self._server.call_all(shot, avatar.slot, weapon, avatar.position, end)

    def _targets(self, guest: Guest, past: tw.predict.Past | None) -> Iterator[tuple[Guest, Spot]]:
        """The other players, and the places at which they can be hit."""
        for other in self._guests.values():
            then = other.avatar if past is None else past.ghost(other.avatar)
            if other is not guest and other.avatar.alive and then is not None and then.alive:
                yield other, then.position

    def _shoot(self, guest: Guest, past: tw.predict.Past) -> Spot:
        avatar, hit = guest.avatar, None
        end = free(avatar.position, avatar.aim)
        for other, spot in self._targets(guest, past):
            distance = reached(avatar.position, avatar.aim, spot, rules.RADIUS)
            if distance < end:
                end, hit = distance, other
        if hit is not None:
            past.judge(True, hit.avatar, weapon="rifle", at=avatar.position, aim=avatar.aim)
            self._hurt(guest, hit, rules.RIFLE, rules.WEAPONS[rules.RIFLE].damage)
        return along(avatar.position, avatar.aim, end)

    def _blast(self, guest: Guest, middle: Spot, weapon: int, past: tw.predict.Past | None) -> None:
        """Hurts all players nearby; closer players lose more health."""
        kind = rules.WEAPONS[weapon]
        for other, spot in self._targets(guest, past):
            distance = max(0.0, math.dist(middle, spot) - rules.RADIUS)
            if distance < kind.reach:
                if past is not None:
                    past.judge(True, other.avatar, weapon=kind.name, at=middle)
                self._hurt(guest, other, weapon, round(kind.damage * (1 - distance / kind.reach / 2)))

    def _fly(self, rocket: Rocket, guest: Guest, origin: Spot) -> None:
        # Everybody sees it coming, so it is judged by the present.
        spot = flown(origin, rocket.aim, self._server.inputs.tick - rocket.fired_at)
        met = any(math.dist(spot, at) < rules.RADIUS + 4 for _, at in self._targets(guest, None))
        if not met and not is_stopped(spot):
            rocket.position = spot
            return
        self._blast(guest, spot, rules.ROCKET, None)
        self._server.call_all(shot, guest.avatar.slot, rules.ROCKET, spot, spot)
        self._world.despawn(rocket)
        del self._rockets[rocket]

    def _hurt(self, guest: Guest, victim: Guest, weapon: int, damage: int) -> None:
        mine, its = guest.avatar, victim.avatar
        its.health = max(0, its.health - damage)
        if its.health == 0 and its.alive:
            its.alive, victim.died_at = False, self._server.inputs.tick
            its.deaths = min(its.deaths + 1, 65_535)
            if not guest.has_left:
                mine.score = min(mine.score + 1, 65_535)
            self._server.call_all(killed, mine.slot, its.slot, weapon)
