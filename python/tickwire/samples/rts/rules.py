"""The world and its rules: integers, the shared generator, and objects in the order of their ids.

Every peer checks every command here by the same rules, for example that the player owns the units and has
enough gold.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Iterable

import tickwire as tw
from tickwire.lockstep import Turn
from tickwire.samples.rts.messages import MAX_PLAYERS, SIZE, Attack, Build, Command, Gather, Kind, Move, Train

SPEED = {Kind.WORKER: 6, Kind.SOLDIER: 8}
"""The distance that a unit moves in a lockstep step."""
HEALTH = {Kind.MINE: 1, Kind.BASE: 3000, Kind.BARRACKS: 800, Kind.WORKER: 60, Kind.SOLDIER: 120}
COST = {Kind.BASE: 400, Kind.BARRACKS: 150, Kind.WORKER: 50, Kind.SOLDIER: 80}
TRAINED = {Kind.BASE: Kind.WORKER, Kind.BARRACKS: Kind.SOLDIER}
TRAINING = 150
"""Lockstep steps that training a unit takes."""
LOAD = 10
"""Gold that a worker carries."""
RANGE = 60
SIGHT = 240
SPACE = 28
"""The size of the square that one unit needs."""
PUSH = 3
"""The distance by which units make room in a lockstep step."""
WAYS = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
MAX_UNITS = 75
"""The most units of a player."""
NOBODY = 255
MINES = 8
MINE_GOLD = 20_000

IDLE, MOVING, GATHERING, RETURNING, ATTACKING = range(5)


@dataclasses.dataclass(slots=True)
class Thing:
    """A unit, a building or a mine."""

    id: int
    owner: int
    kind: int
    x: int
    y: int
    health: int
    order: int = IDLE
    target: int = 0
    to_x: int = 0
    to_y: int = 0
    left: int = 0
    """Gold in a mine, or carried by a worker; for a building, lockstep steps until its new unit is ready.
    """


@dataclasses.dataclass(slots=True)
class Purse:
    """A player's gold."""

    id: int
    gold: int = 200
    lost: int = 0


FIELDS = {
    Thing: ("owner", "kind", "x", "y", "health", "order", "target", "to_x", "to_y", "left"),
    Purse: ("gold", "lost"),
}
"""The fields that players compare after each turn."""

_THING = struct.Struct("<HBBhhiBHhhi")
_PURSE = struct.Struct("<Bii")


class Battlefield:
    """The world, which is the same on all machines after the same turns."""

    def __init__(self, players: Iterable[int], seed: int) -> None:
        self.purses = {player: Purse(player) for player in sorted(players)}
        self.things: dict[int, Thing] = {}
        self.next_id = 1
        luck = tw.lockstep.Random(seed)
        for number in range(MINES):
            place = (SIZE // 4 * (1 + number % 4) - SIZE // 8, SIZE // 2 * (number // 4) + SIZE // 4)
            x, y = (each + luck.between(-200, 200) for each in place)
            self._add(NOBODY, Kind.MINE, x, y).left = MINE_GOLD
        for place_, player in enumerate(self.purses):
            self._settle(player, place_)

    def _settle(self, player: int, corner: int) -> None:
        """Gives a player its first base and workers."""
        x, y = _corner(corner)
        base = self._add(player, Kind.BASE, x, y)
        self._add(player, Kind.BARRACKS, x + 220, y)
        mines = [thing for thing in self.things.values() if thing.kind == Kind.MINE]
        mine = min(mines, key=lambda it: (_far(base, it), it.id))
        for i in range(4):
            worker = self._add(player, Kind.WORKER, x - 90 + 60 * i, y + 120)
            worker.order, worker.target = GATHERING, mine.id
        for i in range(3):
            self._add(player, Kind.SOLDIER, x + 60 * i, y - 140)

    def _join(self, player: int) -> None:
        """Settles a new player in the first corner without a base."""
        self.purses = dict(sorted({**self.purses, player: Purse(player)}.items()))
        bases = [thing for thing in self.things.values() if thing.kind == Kind.BASE]
        for corner in range(MAX_PLAYERS):
            x, y = _corner(corner)
            if all(abs(it.x - x) > SIZE // 8 or abs(it.y - y) > SIZE // 8 for it in bases):
                return self._settle(player, corner)
        return self._settle(player, player)

    def _add(self, owner: int, kind: Kind, x: int, y: int) -> Thing:
        x, y = max(0, min(SIZE - 1, x)), max(0, min(SIZE - 1, y))
        thing = Thing(self.next_id, owner, kind, x, y, HEALTH[kind])
        self.things[thing.id] = thing
        # Ids rise, so the dictionary's order is that of the ids.
        self.next_id += 1
        return thing

    def of(self, player: int, *kinds: Kind) -> list[Thing]:
        """Returns a player's objects of these kinds, in the order of their ids."""
        return [thing for thing in self.things.values() if thing.owner == player and thing.kind in kinds]

    def objects(self) -> list[Thing | Purse]:
        """Returns all objects that are compared."""
        return [*self.things.values(), *self.purses.values()]

    def step(self, turn: Turn) -> None:
        """Runs a turn."""
        for player in sorted(turn.left):
            for thing in self.of(player, *Kind):
                del self.things[thing.id]
        for player in sorted(turn.joined):
            self._join(player)
        for player, command in turn.commands:
            self._obey(player, command)
        if turn.steps:
            self._act(turn)

    def _own(self, player: int, ids: Iterable[int], kinds: tuple[Kind, ...]) -> list[Thing]:
        found = [self.things.get(id_) for id_ in ids]
        return [it for it in found if it is not None and it.owner == player and it.kind in kinds]

    def _obey(self, player: int, command: Command) -> None:
        movers = (Kind.WORKER, Kind.SOLDIER)
        match command:
            case Move(units, x, y):
                # In rows, so that they don't all go to one place.
                for i, unit in enumerate(self._own(player, units, movers)):
                    unit.order, unit.to_x, unit.to_y = MOVING, x + i % 4 * 30, y + i // 4 * 30
            case Gather(units, mine):
                if self._is(mine, Kind.MINE):
                    for unit in self._own(player, units, (Kind.WORKER,)):
                        unit.order, unit.target = GATHERING, mine
            case Attack(units, target):
                enemy = self.things.get(target)
                if enemy is not None and enemy.owner not in (player, NOBODY):
                    for unit in self._own(player, units, (Kind.SOLDIER,)):
                        unit.order, unit.target = ATTACKING, target
            case Build(worker, kind):
                for builder in self._own(player, [worker], (Kind.WORKER,)):
                    if kind in (Kind.BASE, Kind.BARRACKS) and self._pay(player, kind):
                        self._add(player, kind, builder.x, builder.y)
            case Train(building):
                for it in self._own(player, [building], (Kind.BASE, Kind.BARRACKS)):
                    count = len(self.of(player, *movers))
                    if not it.left and count < MAX_UNITS and self._pay(player, TRAINED[Kind(it.kind)]):
                        it.left = TRAINING

    def _is(self, id_: int, kind: Kind) -> bool:
        thing = self.things.get(id_)
        return thing is not None and thing.kind == kind

    def _pay(self, player: int, kind: Kind) -> bool:
        purse = self.purses[player]
        if purse.gold < COST[kind]:
            return False
        purse.gold -= COST[kind]
        return True

    def _act(self, turn: Turn) -> None:
        steps = turn.steps
        bases = {player: self.of(player, Kind.BASE) for player in self.purses}
        look = turn.number % 8 == 0
        grid = self._grid() if look else {}
        for thing in list(self.things.values()):
            kind, order = thing.kind, thing.order
            if kind <= Kind.BARRACKS:
                if thing.left and kind != Kind.MINE:
                    self._train(thing, turn)
            elif order == MOVING:
                if _go(thing, thing.to_x, thing.to_y, SPEED[Kind(kind)] * steps):
                    thing.order = IDLE
            elif order in (GATHERING, RETURNING):
                self._carry(thing, steps, bases[thing.owner])
            elif order == ATTACKING:
                self._fight(thing, steps, turn.random)
            elif look and kind == Kind.SOLDIER:
                enemy = self._nearest_enemy(thing, grid)
                if enemy is not None:
                    thing.order, thing.target = ATTACKING, enemy.id
        self._spread(PUSH * steps)
        for thing in [thing for thing in self.things.values() if thing.health <= 0]:
            self.purses[thing.owner].lost += 1
            del self.things[thing.id]

    def _train(self, building: Thing, turn: Turn) -> None:
        building.left = max(0, building.left - turn.steps)
        if not building.left:
            x, y = building.x + turn.random.between(-80, 80), building.y + 90
            self._add(building.owner, TRAINED[Kind(building.kind)], x, y)

    def _carry(self, worker: Thing, steps: int, bases: list[Thing]) -> None:
        if worker.order == GATHERING:
            mine = self.things.get(worker.target)
            if mine is None or not mine.left:
                worker.order = IDLE
            elif _go(worker, mine.x, mine.y, SPEED[Kind.WORKER] * steps):
                worker.left = min(LOAD, mine.left)
                mine.left -= worker.left
                worker.order = RETURNING
        elif not bases:
            worker.order = IDLE
        else:
            base = min(bases, key=lambda it: (_far(worker, it), it.id))
            if _go(worker, base.x, base.y, SPEED[Kind.WORKER] * steps):
                self.purses[worker.owner].gold += worker.left
                worker.left, worker.order = 0, GATHERING

    def _fight(self, soldier: Thing, steps: int, random: tw.lockstep.Random) -> None:
        enemy = self.things.get(soldier.target)
        if enemy is None:
            soldier.order = IDLE
        elif _far(soldier, enemy) > RANGE * RANGE:
            _go(soldier, enemy.x, enemy.y, SPEED[Kind.SOLDIER] * steps)
        else:
            enemy.health -= random.between(0, 2 * steps)

    def _spread(self, push: int) -> None:
        """Makes units spread: if several units are on one square, all except the first move away."""
        taken: set[tuple[int, int]] = set()
        for unit in [it for it in self.things.values() if it.kind in (Kind.WORKER, Kind.SOLDIER)]:
            square = unit.x // SPACE, unit.y // SPACE
            if square in taken:
                x, y = WAYS[unit.id % len(WAYS)]
                _go(unit, unit.x + x * push, unit.y + y * push, 2 * push)
            taken.add(square)

    def _grid(self) -> dict[tuple[int, int], list[Thing]]:
        grid: dict[tuple[int, int], list[Thing]] = {}
        for thing in self.things.values():
            if thing.owner != NOBODY:
                grid.setdefault((thing.x // SIGHT, thing.y // SIGHT), []).append(thing)
        return grid

    def _nearest_enemy(self, soldier: Thing, grid: dict[tuple[int, int], list[Thing]]) -> Thing | None:
        x, y, found, best = soldier.x // SIGHT, soldier.y // SIGHT, None, (SIGHT * SIGHT, 0)
        for place in ((x + i, y + j) for i in (-1, 0, 1) for j in (-1, 0, 1)):
            for thing in grid.get(place, ()):
                if thing.owner != soldier.owner and (_far(soldier, thing), thing.id) < best:
                    found, best = thing, (_far(soldier, thing), thing.id)
        return found

    @property
    def alive(self) -> list[int]:
        """Returns the numbers of the players who have a building or a worker."""
        kinds = (Kind.BASE, Kind.BARRACKS, Kind.WORKER)
        return [player for player in self.purses if self.of(player, *kinds)]

    def save(self) -> bytes:
        """Returns the world as bytes."""
        things = b"".join(
            _THING.pack(*(getattr(it, name) for name in Thing.__slots__)) for it in self.things.values()
        )
        purses = b"".join(_PURSE.pack(it.id, it.gold, it.lost) for it in self.purses.values())
        return struct.pack("<HBH", self.next_id, len(self.purses), len(self.things)) + purses + things

    def load(self, state: bytes) -> None:
        """Restores the world from the bytes of :meth:`save`.

        Raises:
            ValueError: the bytes aren't a saved world.
        """
        try:
            self.next_id, purses, things = struct.unpack_from("<HBH", state)
            end = 5 + purses * _PURSE.size
            made = {it[0]: Purse(*it) for it in _PURSE.iter_unpack(state[5:end])}
            found = {it[0]: Thing(*it) for it in _THING.iter_unpack(state[end:])}
        except struct.error as error:
            raise ValueError(f"no saved world: {error}") from None
        if len(made) != purses or len(found) != things:
            raise ValueError("no saved world: it is truncated")
        self.purses, self.things = made, found


def _corner(number: int) -> tuple[int, int]:
    return SIZE // 8 + SIZE * 3 // 4 * (number % 2), SIZE // 8 + SIZE * 3 // 4 * (number // 2 % 2)


def _far(a: Thing, b: Thing) -> int:
    return (a.x - b.x) ** 2 + (a.y - b.y) ** 2


def _go(thing: Thing, x: int, y: int, speed: int) -> bool:
    """Moves an object toward a place. Returns whether it has arrived."""
    dx, dy = x - thing.x, y - thing.y
    far = math.isqrt(dx * dx + dy * dy)
    if far <= speed:
        thing.x, thing.y = max(0, min(SIZE - 1, x)), max(0, min(SIZE - 1, y))
        return True
    # Integer division gives the same result everywhere.
    thing.x += dx * speed // far
    thing.y += dy * speed // far
    return False
