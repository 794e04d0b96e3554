"""The events of lockstep, and reports about worlds that differ."""

from __future__ import annotations

import dataclasses
import operator
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

_FIRST_CLASS = 2
_NOTHING = -(2**63) + 1
_ROW = 32


@dataclasses.dataclass(frozen=True, slots=True)
class Dropped:
    """A player left or was voted out. The game continues without this player."""

    player: int
    """The player's number."""
    turn: int
    """The first turn without the player, the same on all peers."""


@dataclasses.dataclass(frozen=True, slots=True)
class Excluded:
    """The other players continue without this player, and no more turns will arrive."""


@dataclasses.dataclass(frozen=True, slots=True)
class PaceChanged:
    """The length of turns, or the delay of commands, has changed."""

    turn: int
    """The first turn with the new pace, the same on all peers."""
    steps: int
    """Steps in a turn."""
    delay: int
    """Turns between giving a command and running it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Joined:
    """A new player takes part in the running game."""

    player: int
    """The player's number."""
    turn: int
    """The first turn with the player, the same on all peers."""


@dataclasses.dataclass(frozen=True, slots=True)
class JoinRefused:
    """This player can't join the running game, or can't get a world to heal a desync."""

    reason: str
    """The reason, as a sentence."""


@dataclasses.dataclass(frozen=True, slots=True)
class Healed:
    """A player's world equals the other players' worlds again."""

    player: int
    """The player's number."""
    turn: int
    """The turn after which the worlds were equal."""


@dataclasses.dataclass(frozen=True, slots=True)
class Diverged:
    """The players' worlds have diverged."""

    turn: int
    """The first turn after which the worlds differ."""
    right: frozenset[int]
    """Numbers of the players in the majority with equal worlds; empty if there is no majority."""
    odd: frozenset[int]
    """Numbers of the other players."""


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """One value that differs between two players."""

    object: str
    """The class's name, ``"commands"`` (a player's commands in the turn), ``"random"`` (the shared
    generator) or ``"arrays"``.
    """
    id: int
    """The object's id; for ``"commands"`` the player's number; for ``"arrays"`` the element's index in the
    flattened array.
    """
    field: str | None
    """The field's name, or the array's name; None: only one of the two players has the object."""
    mine: int | float | None
    """This player's value; strings and bytes as a hash. If only one of the two players has the object: 1 if
    this player has it, otherwise None.
    """
    theirs: int | float | None
    """The other player's value, as the other player reported it."""


@dataclasses.dataclass(frozen=True, slots=True)
class DesyncReport:
    """The differences between the worlds of this player and another player."""

    turn: int
    """The turn after which the worlds differ."""
    player: int
    """The other player's number."""
    differences: list[Difference]
    """The first differences, sorted by class and id, at most 16; empty if the other player didn't report
    any.
    """

    def __str__(self) -> str:
        lines = [f"after turn {self.turn}, player {self.player} has a different world:"]
        for it in self.differences:
            what = f"{it.object} {it.id}" + (f".{it.field}" if it.field else "")
            if it.object == "arrays":
                what = f"{it.field}[{it.id}]"
            lines.append(f"  {what}: {it.mine} here, {it.theirs} there")
        return "\n".join(lines)


LockstepEvent = Dropped | Excluded | PaceChanged | Joined | JoinRefused | Healed | Diverged | DesyncReport
"""The events of :meth:`Lockstep.events`."""


class Objects:
    """The classes and fields that are compared."""

    def __init__(
        self, objects: Mapping[Any, Sequence[str]], arrays: Callable[[], Mapping[str, Any]] | None = None
    ) -> None:
        self.arrays = arrays
        self.array_names: list[str] = []
        self.classes: list[tuple[str, tuple[str, ...], Callable[[Any], tuple[Any, ...]]]] = []
        self.number: dict[type, int] = {}
        self.floats: set[tuple[int, int]] = set()
        if len(objects) > 100:
            raise ValueError(f"objects must have at most 100 classes, not {len(objects)}")
        for cls, fields in objects.items():
            names = tuple(fields)
            if not isinstance(cls, type) or not names or len(names) > 63:
                raise ValueError(f"objects[{cls!r}] must be 1 to 63 names of fields, not {names!r}")
            self.number[cls] = len(self.classes)
            self.classes.append((cls.__name__, names, operator.attrgetter("id", *names)))
        described = repr([(name, fields) for name, fields, _ in self.classes])
        described += "" if arrays is None else " and arrays"
        self.mark = zlib.crc32(described.encode()) % 0xFFFF + 1
        """A checksum of the names of classes and fields, in order. It must be the same on all sides."""

    def rows(self, objects: Iterable[Any]) -> list[tuple[str, tuple[str, ...], list[Any]]]:
        """The objects' values, class by class."""
        rows: list[list[Any]] = [[] for _ in self.classes]
        for it in objects:
            try:
                number = self.number[type(it)]
            except KeyError:
                raise TypeError(f"{type(it).__name__} isn't among the classes of objects=") from None
            rows[number].append(self.classes[number][2](it))
        for number, found in enumerate(rows):
            for place, value in enumerate(found[0][1:] if found else ()):
                if isinstance(value, float):
                    self.floats.add((number, place))
        return [(name, fields, found) for (name, fields, _), found in zip(self.classes, rows, strict=True)]

    def all_arrays(self, given: Mapping[str, Any] | None = None) -> list[tuple[str, Any]] | None:
        """The arrays in the order of their names, which is the same on all sides."""
        if self.arrays is not None:
            given = self.arrays()
        elif given is None:
            return None
        if not isinstance(given, Mapping):
            raise TypeError(f"arrays must give a mapping of names to arrays, not {type(given).__name__}")
        self.array_names = sorted(given)
        for place, name in enumerate(self.array_names):
            try:
                kind = memoryview(given[name]).format
            except (TypeError, ValueError):
                # NumPy's own types, such as dates, have no view: the core names them.
                if not hasattr(given[name], "dtype"):
                    text = f"arrays[{name!r}] must be an array, not {type(given[name]).__name__}"
                    raise TypeError(text) from None
                continue
            if kind.lstrip("@=<>!") in ("f", "d"):
                self.floats.update((len(self.classes) + place, field) for field in range(_ROW))
        return [(name, given[name]) for name in self.array_names]

    def difference(self, class_: int, number: int, field: int | None, mine: Any, theirs: Any) -> Difference:
        """Makes a :class:`Difference` with names from a difference with numbers, which the core found."""
        if class_ == 0:
            names: tuple[str, ...] = ("count", "crc")
            kind = "commands"
        elif class_ == 1:
            names, kind = ("draw",), "random"
        elif class_ - _FIRST_CLASS < len(self.classes):
            kind, names, _ = self.classes[class_ - _FIRST_CLASS]
        elif class_ - _FIRST_CLASS - len(self.classes) < len(self.array_names):
            array = self.array_names[class_ - _FIRST_CLASS - len(self.classes)]
            # A row has this many elements of the flattened array.
            kind, names, number = "arrays", (array,) * _ROW, number * _ROW + (field or 0)
        else:
            kind, names = f"class {class_}", ()
        name = None
        if field is not None:
            name = names[field] if field < len(names) else str(field)
        is_float = (class_ - _FIRST_CLASS, field) in self.floats

        def value(word: int | None) -> int | float | None:
            if word is None or word == _NOTHING:
                return None
            if is_float:
                number: float = struct.unpack("<d", struct.pack("<q", word))[0]
                return number
            return word

        return Difference(kind, number, name, value(mine), value(theirs))
