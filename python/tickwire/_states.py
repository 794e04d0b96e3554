"""The states of rollback games: saving, loading and comparing them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

from tickwire._core import StateArrays, state_sum
from tickwire.errors import SyncTestError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Load", "Save"]

MAX_FIELDS = 64
"""The most names of a checksum."""


@final
class Save:
    """A request to copy the game's state: set ``state`` to the copy."""

    __slots__ = ("_checksum", "checked", "frame", "state", "sums")

    frame: int
    """The frame that starts from this state."""
    checked: bool
    """Whether ``checksum`` is compared with other players' checksums when this frame is confirmed."""
    state: Any
    """The copy of the game's state. A later :class:`Load` may contain it, so don't change the copy."""

    def __init__(self, frame: int, checked: bool) -> None:
        self.frame = frame
        self.checked = checked
        self.state = None
        self._checksum: object = None
        self.sums: dict[str, int] = {}

    @property
    def checksum(self) -> Any:
        """The value to compare: an int, float, str, bytes, a buffer, or a mapping of up to 64 names to such
        values; None: the frame isn't compared.
        """
        return self._checksum

    @checksum.setter
    def checksum(self, value: object) -> None:
        if isinstance(value, Mapping):
            if not all(isinstance(name, str) for name in value):
                raise TypeError("checksum's names must be str")
            if len(value) > MAX_FIELDS:
                raise ValueError(f"checksum must have at most {MAX_FIELDS} names, not {len(value)}")
            # Players may have added the names in different orders.
            self.sums = {name: state_sum(name, value[name]) for name in sorted(value)}
        else:
            self.sums = {} if value is None else {"state": state_sum(None, value)}
        self._checksum = value

    def __repr__(self) -> str:
        return f"<Save of frame {self.frame}>"


@final
class Load:
    """A request to restore a saved state."""

    __slots__ = ("frame", "state")

    frame: int
    """The frame that starts from this state."""
    state: Any
    """The value of :attr:`Save.state`. Don't change it, because it may be needed again."""

    def __init__(self, frame: int, state: Any) -> None:
        self.frame = frame
        self.state = state

    def __repr__(self) -> str:
        return f"<Load of frame {self.frame}>"


def states_of(
    state: Any,
    functions: tuple[Callable[[], Any] | None, Callable[[Any], object] | None, Callable[[], Any] | None],
    count: int,
    is_test: bool,
) -> StateArrays | Copies:
    """Returns an object that stores the states of ``count`` frames. The other arguments are from
    :class:`tickwire.rollback.Rollback` or :class:`tickwire.rollback.SyncTest`.
    """
    save, load, check = functions
    if state is None:
        if (save is None) is not (load is None):
            raise ValueError("save and load must be given together")
        if save is None and check is not None:
            raise ValueError("check must be None if save and load aren't given")
        return (TestedCopies if is_test else Copies)(save, load, check, count)
    if save is not None or load is not None:
        raise ValueError("state must be None if save and load are given")
    if check is not None:
        raise ValueError("check must be None with state: its fields are compared")
    return StateArrays(list(arrays_of(state)), count)


class Copies:
    """States of the game's own type. The game copies them: with its ``save`` and ``load``, or by answering
    :class:`Save` and :class:`Load`."""

    def __init__(
        self,
        save: Callable[[], Any] | None,
        load: Callable[[Any], object] | None,
        check: Callable[[], Any] | None,
        count: int,
    ) -> None:
        self._save, self._load, self._check = save, load, check
        self._saved: list[Save | None] = [None] * count
        self._compared: Save | None = None

    def save(self, frame: int, checked: bool) -> Save | None:
        """Saves the state before a frame, or returns a request to save it."""
        request = Save(frame, checked)
        asked = self._fill(request)
        self._saved[frame % len(self._saved)] = request
        return asked

    def load(self, frame: int) -> Load | None:
        """Loads the state before a frame, or returns a request to load it."""
        state = self._state(self._find(frame), frame)
        if self._load is None:
            return Load(frame, state)
        self._load(state)
        return None

    def sums(self, frame: int) -> tuple[list[str], list[int]]:
        """Returns the names of the saved state's fields before a frame, and the fields' checksums."""
        found = self._find(frame)
        sums = found.sums if found else {}
        return list(sums), list(sums.values())

    def compare(self, frame: int) -> Save | None:
        """Saves the state before a frame again, to compare both copies."""
        request = Save(frame, False)
        asked = self._fill(request)
        self._compared = request
        return asked

    def finish_comparison(self) -> None:
        """Raises ``SyncTestError`` if the state differed when it was saved again."""
        again, self._compared = self._compared, None
        if again is None or (before := self._find(again.frame)) is None:
            return
        frame = again.frame
        if fields := differing(self._state(before, frame), self._state(again, frame)):
            self._saved[frame % len(self._saved)] = again  # The test goes on with the new result.
            raise SyncTestError(frame, fields)

    def _fill(self, request: Save) -> Save | None:
        if self._save is None:
            return request
        request.state = self._save()
        if request.checked and self._check is not None:
            request.checksum = self._check()
        return None

    def _find(self, frame: int) -> Save | None:
        found = self._saved[frame % len(self._saved)]
        return found if found and found.frame == frame else None

    @staticmethod
    def _state(save: Save | None, frame: int) -> Any:
        if save is None or save.state is None:
            raise RuntimeError(
                f"state must be set for each Save, which frame {frame} misses: request.state = copy"
            )
        return save.state


@final
class TestedCopies(Copies):
    """The copies of a sync test. It also finds copies that the game changes later. Comparing states can't
    find them: if a copy shares a list with the game, both change together.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._seals: list[tuple[Save, dict[Any, bytes | None]] | None] = [None] * len(self._saved)

    def save(self, frame: int, checked: bool) -> Save | None:
        self._check_seal(frame % len(self._saved))
        return super().save(frame, checked)

    def load(self, frame: int) -> Load | None:
        self._check_seal(frame % len(self._saved))
        return super().load(frame)

    def finish_comparison(self) -> None:
        for place, saved in enumerate(self._saved):
            seal = self._seals[place]
            if saved and saved.state is not None and (seal is None or seal[0] is not saved):
                self._seals[place] = (saved, _pickled(saved.state))
        super().finish_comparison()

    def _check_seal(self, place: int) -> None:
        saved, seal = self._saved[place], self._seals[place]
        if saved is None or seal is None or seal[0] is not saved:
            return
        if fields := differing(seal[1], _pickled(saved.state)):
            self._seals[place] = None  # It is reported once, and the test goes on.
            raise ValueError(
                f"save must return a copy that shares nothing with the game, but {', '.join(fields)} of the "
                f"state before frame {saved.frame} changed later: save, and load, a copy.deepcopy()"
            )


def _pickled(state: Any) -> dict[Any, bytes | None]:
    """The parts of a state as bytes; None for those that can't be pickled."""
    pickled: dict[Any, bytes | None] = {}
    for name, part in (_attributes(state) or {"state": state}).items():
        try:
            pickled[name] = pickle.dumps(part)
        except Exception:  # Whatever the game's own types raise.
            pickled[name] = None
    return pickled


def arrays_of(state: Any) -> Iterator[tuple[str, Any, list[tuple[str, str | None, int, int]]]]:
    """Yields each array with its name in errors and a list of its fields. Each field has a name, a type, an
    offset and a size.

    A field without a size is the whole array. A field without a type has the buffer's format.
    """
    named = state.items() if isinstance(state, Mapping) else (("", state),)
    # Players may have added the names in different orders.
    for name, array in sorted(named, key=lambda item: str(item[0])):
        if not isinstance(name, str):
            raise TypeError(f"state must have keys of str, not {type(name).__name__}")
        shown = f"state[{json.dumps(name, ensure_ascii=False)}]" if name else "state"
        dtype: Any = getattr(array, "dtype", None)
        fields: list[tuple[str, str | None, int, int]]
        if getattr(dtype, "hasobject", False):
            # Copies of object pointers would not be counted as references.
            objects = [own for own in dtype.names or () if dtype.fields[own][0].hasobject]
            shown += f"[{json.dumps(objects[0], ensure_ascii=False)}]" if objects else ""
            raise TypeError(
                f"{shown} must be an array of numbers, not of Python objects: give save and load for these"
            )
        if names := getattr(dtype, "names", None):
            whole = f"{name}." if name else ""
            about = [(own, *dtype.fields[own][:2]) for own in names]
            fields = [(f"{whole}{own}", str(kind), offset, kind.itemsize) for own, kind, offset in about]
        else:
            fields = [(name or "state", getattr(dtype, "str", None), 0, 0)]
        yield shown, array, fields


def differing(one: Any, other: Any) -> list[str]:
    """The names of the parts that differ between two states of the game's own type."""
    ones, others = _attributes(one), _attributes(other)
    if ones is not None and others is not None and (ones or others):
        return [
            str(name)
            for name in {**ones, **others}
            if name not in ones or name not in others or not _equal(ones[name], others[name])
        ]
    return [] if _equal(one, other) else ["state"]


def _attributes(state: Any) -> dict[Any, Any] | None:
    own = state if isinstance(state, dict) else getattr(state, "__dict__", None)
    return own if isinstance(own, dict) else None


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other) or bool(one != one and other != other)  # NaN is equal to NaN.
    except Exception:
        # Arrays compare item by item, in all their dimensions.
        return len(one) == len(other) and all(map(_equal, one, other))
