"""A bot, which sees the world and gives commands like a player."""

from __future__ import annotations

from collections.abc import Iterator

import tickwire as tw
from tickwire.samples.rts.messages import MAX_SELECTED, Attack, Build, Command, Gather, Kind, Train
from tickwire.samples.rts.rules import COST, IDLE, Battlefield, Thing

WORKERS = 10
SQUAD = 8
BARRACKS = 3


class Bot:
    """A bot that gathers, builds, trains, and attacks once it has a squad.

    It has its own random generator, because using the shared generator would desync the players.
    """

    def __init__(self, player: int, seed: int) -> None:
        self.player = player
        self.luck = tw.lockstep.Random(seed)

    def think(self, world: Battlefield) -> Iterator[Command]:
        """Returns the bot's commands. Call it about once a second."""
        workers = world.of(self.player, Kind.WORKER)
        idle = [worker.id for worker in workers if worker.order == IDLE]
        if idle:
            mines = [it for it in world.things.values() if it.kind == Kind.MINE and it.left]
            if mines:
                worker = workers[0]
                mine = min(mines, key=lambda it: (_far(worker, it), it.id))
                yield Gather(idle[:MAX_SELECTED], mine.id)
        gold = world.purses[self.player].gold
        barracks = world.of(self.player, Kind.BARRACKS)
        if len(barracks) < BARRACKS and workers and gold >= COST[Kind.BARRACKS]:
            yield Build(self.luck.choice(workers).id, Kind.BARRACKS)
        for base in world.of(self.player, Kind.BASE):
            if not base.left and len(workers) < WORKERS and gold >= COST[Kind.WORKER]:
                yield Train(base.id)
        for building in barracks:
            if not building.left and gold >= COST[Kind.SOLDIER]:
                yield Train(building.id)
        soldiers = [it.id for it in world.of(self.player, Kind.SOLDIER) if it.order == IDLE]
        others = [player for player in world.alive if player != self.player]
        if len(soldiers) >= SQUAD and others:
            enemy = self.luck.choice(others)
            targets = world.of(enemy, Kind.BARRACKS, Kind.BASE, Kind.WORKER)
            yield Attack(soldiers[:MAX_SELECTED], self.luck.choice(targets).id)


def _far(a: Thing, b: Thing) -> int:
    return (a.x - b.x) ** 2 + (a.y - b.y) ** 2
