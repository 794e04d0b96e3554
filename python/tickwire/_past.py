"""Lag compensation: the world as a client saw it, and a record of each judgement, such as a hit.

:meth:`World.rewind` returns a :class:`Past`, and :attr:`World.judgements` has the records.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

from tickwire._checks import check_within
from tickwire._core import ClientHandle, Ghost, GhostArrays, World, WorldView
from tickwire.errors import GhostError

__all__ = ["MAX_JUDGEMENTS", "Judgement", "Judgements", "Past"]

_G = TypeVar("_G")

MAX_JUDGEMENTS = 1024
MAX_KEPT = 1_000_000
"""The default number of judgements to keep."""

Clamped = Literal["", "too old", "future", "unsaid"]


@dataclasses.dataclass(frozen=True, slots=True)
class Judgement:
    """A recorded judgement, such as a hit, with the ghosts that it is about."""

    number: int
    """The number of the judgement, counting from 1."""
    client: int | None
    """The :attr:`ClientHandle.number` of the client whose view was judged; None if there is no client."""
    now: int
    """The server's tick at the time of the judgement."""
    claimed: float
    """The tick that the client claimed to see."""
    tick: float
    """The tick that was used. It differs from the claim if the claim was out of bounds."""
    clamped: Clamped
    """The reason for a different tick, as in :attr:`Past.clamped`; empty if the claim was used."""
    verdict: Any
    """The decision, as passed to :meth:`Past.judge`."""
    ghosts: tuple[dict[str, Any], ...]
    """A dict for each ghost: ``class`` and ``row`` identify the ghost, ``shown`` is whether the client saw
    it, ``saw`` is its state as the client saw it, and ``was`` is its state at the time of the judgement. A
    state is None if the ghost didn't exist then.
    """
    facts: dict[str, Any]
    """The other values passed to :meth:`Past.judge`, by name."""


class Judgements:
    """The last judgements, oldest first, and counters of rewinds for which the client's tick couldn't be
    used.
    """

    def __init__(self, most: int = MAX_JUDGEMENTS) -> None:
        check_within("most", most, 0, MAX_KEPT, int)
        self._kept: deque[Judgement] = deque(maxlen=most)
        self._count = 0
        self.too_old = 0
        """The number of claimed ticks that were no longer recorded. The oldest recorded tick was used
        instead.
        """
        self.future = 0
        """The number of claimed ticks in the future. The newest tick was used instead."""
        self.unsaid = 0
        """The number of times that a client had reported no tick. The newest tick was used instead."""

    @property
    def most(self) -> int:
        """The maximum number of judgements to keep. You can set it."""
        return self._kept.maxlen or 0

    @most.setter
    def most(self, most: int) -> None:
        check_within("most", most, 0, MAX_KEPT, int)
        self._kept = deque(self._kept, maxlen=most)

    @property
    def count(self) -> int:
        """The number of judgements ever made."""
        return self._count

    def lines(self) -> Iterator[str]:
        """Yields each judgement as a line of JSON. Objects that JSON can't express are written as their
        repr.
        """
        for judgement in self._kept:
            yield json.dumps(_plain(dataclasses.asdict(judgement)), default=_plain)

    def write(self, path: str | Path) -> int:
        """Appends the judgements to a file, one line of JSON each. Returns the number of lines.

        Raises:
            OSError: the file can't be written.
        """
        with open(path, "a", encoding="utf-8") as file:
            for line in self.lines():
                file.write(line + "\n")
        return len(self._kept)

    def clear(self) -> None:
        """Deletes the judgements; the counts stay."""
        self._kept.clear()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Judgement]:
        return iter(list(self._kept))

    def __getitem__(self, index: int, /) -> Judgement:
        return self._kept[index]

    def __repr__(self) -> str:
        return (
            f"<Judgements: {len(self)} of {self.count}, {self.too_old} too old, {self.future} of the future>"
        )

    def _note(self, clamped: Clamped) -> None:
        self.too_old += clamped == "too old"
        self.future += clamped == "future"
        self.unsaid += clamped == "unsaid"

    def _add(self, **what: Any) -> Judgement:
        self._count += 1
        judgement = Judgement(number=self._count, **what)
        self._kept.append(judgement)
        return judgement


class Past:
    """A server's world as a client saw it. :meth:`World.rewind` returns it, for a ``with`` statement.

    It has its own columns and objects, so the present world doesn't change.
    """

    def __init__(
        self,
        world: World,
        view: WorldView,
        client: ClientHandle | None,
        claimed: float,
        now: int,
        clamped: Clamped,
    ) -> None:
        self._world = world
        self._view = view
        self.client = client
        """The client that saw this world; None if it isn't a client's view."""
        self.claimed = claimed
        """The requested tick."""
        self.now = now
        """The server's tick when this object was made."""
        self.clamped = clamped
        """The reason for using another tick than the requested one: "too old", "future", or "unsaid" if the
        client reported no tick. Empty if the requested tick is used.
        """
        world.judgements._note(clamped)

    @property
    def tick(self) -> float:
        """The tick of this world, with its fraction."""
        return self._view.tick

    def arrays(self, class_: type, /) -> GhostArrays:
        """The ghosts of a class at this tick, as columns.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
        return self._view.arrays(class_)

    def objects(self, class_: type[_G], /) -> list[_G]:
        """The ghosts of a class that existed at this tick, as objects.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
        return self._view.objects(class_)

    def shown(self, class_: type, /) -> Any:
        """Returns a column of bool for the rows of a class: True if the row's ghost was shown to the client.
        After :meth:`World.rewind_to`, all rows with a ghost are True.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
        return self._view.shown(class_)

    def ghost(self, ghost: _G, /) -> _G | None:
        """Returns a ghost of the present world as it was at this tick; None if it didn't exist then.

        Raises:
            GhostError: the ghost was never in this world.
        """
        return self._view.ghost(ghost)

    def replay(self) -> Iterator[tuple[Past, float]]:
        """Yields the later worlds, tick by tick up to now, for a projectile that was fired in this world.
        Each world comes with the number of ticks since the previous world. For the first world, this number
        can be a fraction.

        The client fires a projectile among ghosts of the past. So the server moves the projectile through the
        worlds that the client hadn't seen yet, and then continues in the present. Both sides then see the
        same hit. Bernier, "Latency compensation methods" (2001), describes lag compensation for instant
        shots.

        Raises:
            GhostError: the server has sent another tick since :meth:`World.rewind`.
        """
        tick = self.tick
        while tick < self.now:
            if self._world.tick != self.now:
                raise GhostError(f"replay must end in the tick in which it began, {self.now}: rewind again")
            after = min(math.floor(tick) + 1, self.now)
            if self.client is None:
                yield self._world.rewind_to(after), after - tick
            else:
                yield self._world.rewind(self.client, seen=after), after - tick
            tick = after

    def judge(self, verdict: Any, *ghosts: object, **facts: Any) -> Judgement:
        """Records a judgement, with its ghosts as the client saw them and as they are now. Returns the
        record.

        Args:
            verdict: the decision; any object.
            ghosts: the ghosts that the judgement is about, as objects of the present world.
            facts: other values to keep with the record.

        Raises:
            GhostError: one of the ghosts was never in this world.
        """
        seen = tuple(self._seen(ghost) for ghost in ghosts)
        client = None if self.client is None else self.client.number
        return self._world.judgements._add(
            client=client,
            now=self.now,
            claimed=self.claimed,
            tick=self.tick,
            clamped=self.clamped,
            verdict=verdict,
            ghosts=seen,
            facts=facts,
        )

    def _seen(self, ghost: object) -> dict[str, Any]:
        if not isinstance(ghost, Ghost):
            raise GhostError(f"ghosts must be objects of the world, not {type(ghost).__name__}")
        then = self.ghost(ghost)
        is_here = ghost in self._world
        row = self._world.row(ghost) if is_here else None
        return {
            "class": type(ghost).__name__,
            "row": row,
            # Of one that is gone by now its row isn't known any more.
            "shown": then is not None and (None if row is None else bool(self.shown(type(ghost))[row])),
            "saw": None if then is None else _values(then),
            "was": _values(ghost) if is_here else None,
        }

    def __enter__(self) -> Past:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        return None

    def __repr__(self) -> str:
        return f"<Past of tick {self.tick:.2f}, at {self.now}>"


def _values(ghost: Any) -> dict[str, Any]:
    return {field.name: getattr(ghost, field.name) for field in dataclasses.fields(ghost)}


def _plain(value: Any) -> Any:
    """Converts a value to a form that JSON can express."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return repr(value)
