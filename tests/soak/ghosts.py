"""Ghosts in a soak: a world that comes, moves and goes at random, and what every client must see of it."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Annotated, Any

import tickwire as tw

from soak.model import Violation

MOST = 12
"""Ghosts that there are at a time."""

SPAWNS, ENDS, CHANGES, HANDOVERS = 0.05, 0.04, 0.1, 0.02
"""How likely each is in a tick: once, and of each ghost."""


@tw.ghost(capacity=16)
class Walker:
    number: Annotated[tw.u32, tw.initial] = tw.default()
    steps: tw.u32 = 0
    """Rises with each change."""
    place: Annotated[float, tw.quantized(-8, 8, 1 / 16)] = 0.0
    note: Annotated[bytes, tw.data(12)] = b""
    purse: Annotated[tw.u16, tw.world.owner_only] = 0


class Walkers:
    """The world of the server that there is now."""

    def __init__(self, server: tw.Server, rng: Random, born: int = 0, kind: type[Walker] = Walker) -> None:
        self.server = server
        self.rng = rng
        self.alive: list[Walker] = []
        self.born = born
        self.kind = kind

    def spawn(self, owner: tw.ClientHandle | None) -> None:
        """One more walker."""
        self.born += 1
        self.alive.append(self.server.world.spawn(self.kind(number=self.born), owner=owner))

    def live(self, handles: list[tw.ClientHandle]) -> None:
        """One tick of it."""
        rng, world = self.rng, self.server.world
        if len(self.alive) < MOST and rng.random() < SPAWNS:
            self.spawn(rng.choice([None, *handles]))
        if self.alive and rng.random() < ENDS:
            world.despawn(self.alive.pop(rng.randrange(len(self.alive))))
        for walker in self.alive:
            if rng.random() < CHANGES:
                walker.steps += 1
                walker.place = rng.randint(-128, 128) / 16
                walker.purse = walker.steps % 1000
                if rng.random() < 0.3:
                    walker.note = rng.randbytes(rng.randint(0, 12))
            if handles and rng.random() < HANDOVERS:
                world.set_owner(walker, rng.choice([None, *handles]))

    def shown(self, handle: tw.ClientHandle) -> list[tuple[Any, ...]]:
        """The world that a client must see in the end."""
        world = self.server.world
        return sorted(seen(walker, world.owner(walker) == handle) for walker in self.alive)


def seen(walker: Walker, owned: bool) -> tuple[Any, ...]:
    return (
        walker.number,
        walker.steps,
        walker.place,
        walker.note,
        walker.purse if owned else None,
    )


class Picture:
    """A client's picture of the world, compared with what it may see."""

    def __init__(self, name: str, client: tw.Client) -> None:
        self.name = name
        self.client = client
        self.steps: dict[Walker, int] = {}
        self.reported = 0

    def take(self, events: Iterable[Any], walkers: Walkers) -> None:
        """A tick of the client."""
        for event in events:
            self.reported += 1
            walker: Walker = event.ghost
            if isinstance(event, tw.GhostSpawned):
                if walker in self.steps:
                    self.fail(f"walker {walker.number} came twice")
                if not 0 < walker.number <= walkers.born:
                    self.fail(f"walker {walker.number} never was")
                self.steps[walker] = walker.steps
                continue
            if walker not in self.steps:
                self.fail(f"walker {walker.number} has news before it came: {event}")
            if isinstance(event, tw.GhostDespawned):
                del self.steps[walker]
            elif isinstance(event, tw.world.GhostChanged):
                if walker.steps < self.steps[walker]:
                    self.fail(f"walker {walker.number} went back to step {walker.steps}")
                if event.old.get("steps", self.steps[walker]) != self.steps[walker]:
                    self.fail(f"walker {walker.number} was not at step {event.old['steps']} before")
                self.steps[walker] = walker.steps
        there = self.client.world.objects(walkers.kind)
        if set(there) != self.steps.keys():
            self.fail(f"there are {len(there)} walkers, and {len(self.steps)} were reported")

    def agrees(self, walkers: Walkers, handle: tw.ClientHandle) -> bool:
        """Whether the client sees the world as it is."""
        world = self.client.world
        mine = sorted(seen(walker, world.owns(walker)) for walker in world.objects(walkers.kind))
        return mine == walkers.shown(handle)

    def fail(self, what: str) -> None:
        raise Violation(f"{self.name}: {what}")
