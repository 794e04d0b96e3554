"""Prediction of a client's own objects. The game's step function predicts them ahead of the server, and the
server's state corrects them.

The method keeps a list of moves, as in Gambetta, "Fast-Paced Multiplayer", part 2, and in Glazer and
Madhav, "Multiplayer Game Programming", chapter 8. A decaying offset smooths corrections on the screen, as
in Fiedler, "State Synchronization".
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from tickwire._checks import check_callable, check_number, check_within
from tickwire._core import Client, Ghost
from tickwire.errors import PredictionError

__all__ = ["Predicted", "Prediction"]

KEPT_TO_DRAW = 2
"""The number of past ticks whose states :meth:`Prediction.seen` may need, even after the server confirmed
them.
"""

MAX_PREDICTED = 1024
"""The most things that a :class:`Predicted` keeps."""

_S = TypeVar("_S")
_M = TypeVar("_M")
_T = TypeVar("_T")


class Prediction(Generic[_S, _M]):
    """A predicted state, which the game's ``step`` computes ahead of the server. If the server's state at a
    tick differs from the prediction, the later ticks are run again (reconciliation).

    A state can be an object with attributes, a mapping, or a NumPy array with fields. If ``tolerance`` is a
    single number, the state must be a plain number, tuple, list or array instead. ``step`` gets a copy of the
    state, which it may change. ``corrections``, ``replayed``, ``capped`` and ``error`` show how well the
    prediction works.

    Args:
        step: a function that gets a state and a move (the player's input for a tick), and returns the next
            tick's state. The server must run the same function.
        state: the first state; it must not be a ghost. None: the first ``truth`` passed to :meth:`correct`
            becomes the first state, so this ``truth`` must not be a ghost either.
        tolerance: a mapping from the name of each compared property to the largest error that isn't
            corrected. If the state itself is a number, tuple, list or array, give a single number instead.
            For a vector (a tuple or a list), the tolerance applies to the length of the difference; for an
            array, to the element with the largest difference. Values that aren't numbers must be equal.
            Properties without a tolerance aren't compared. A ghost's property needs a tolerance of at least
            its resolution, because its values are rounded when they are sent.
        max_replay: the most ticks to replay, 1 to 1,024. If a correction needs more ticks, only the newest
            ticks are replayed, and ``capped`` counts the correction.
        smoothing: seconds after which half of a correction is visible. 0 shows the whole correction at
            once.
        snap: the largest correction that is smoothed, as a multiple of the tolerance. Larger corrections,
            such as teleports, are shown at once.
        wraps: a mapping from the name of each property that is an angle to the size of a full circle, such as
            360.

    Raises:
        TypeError, ValueError: an argument is invalid.
    """

    def __init__(
        self,
        step: Callable[[_S, _M], _S],
        state: _S | None = None,
        *,
        tolerance: Mapping[str, float] | float,
        max_replay: int = 64,
        smoothing: float = 0.1,
        snap: float = math.inf,
        wraps: Mapping[str, float] | None = None,
    ) -> None:
        check_number("snap", snap)
        check_within("max_replay", max_replay, 1, 1024, int)
        check_within("smoothing", smoothing, 0, 60)
        check_callable("step", step, 2, others=", as step(state, move)")
        if not snap > 0:
            raise ValueError(f"snap must be above 0, not {snap}")
        self._tolerance: dict[str | None, float] = {}
        if isinstance(tolerance, Mapping):
            self._tolerance.update(tolerance.items())
        else:
            self._tolerance[None] = tolerance
        if state is not None:
            _check_tolerance(state, self._tolerance)
        for name, most in self._tolerance.items():
            check_number(f"tolerance of {name or 'the state'}", most)
            if not 0 <= most < math.inf:
                raise ValueError(f"tolerance of {name or 'the state'} must be 0 or more, not {most}")
        for name, circle in (wraps or {}).items():
            if not 0 < circle < math.inf:
                raise ValueError(f"wraps of {name} must be above 0, a full circle, not {circle}")
        self._names = [name for name in self._tolerance if name is not None]
        self._plain: type | None = None
        self._step = step
        self._first = copy.copy(state)
        self._max_replay, self._smoothing, self._snap = max_replay, smoothing, snap
        self._wraps = dict(wraps or {})
        self._moves: dict[int, _M] = {}
        # The compared values of each predicted tick: the properties that have a tolerance.
        self._states: dict[int, tuple[Any, ...]] = {}
        self._offsets: dict[str | None, Any] = {}
        self._checked = -1
        # Whether the server's state was ever known, and whether a new connection's first one is awaited.
        self._is_checked = self._awaits_truth = False
        # Whose clock says which tick to draw.
        self._client: Client[Any] | None = None
        self.state: _S | None = state
        """The predicted state at :attr:`tick`; None before the first state."""
        self.tick: int | None = None
        """The newest predicted tick; None before the first."""
        self.corrections = 0
        """The number of times that the server's state differed by more than the tolerance."""
        self.replayed = 0
        """The number of ticks that were run again because of corrections."""
        self.capped = 0
        """The number of corrections that needed more than ``max_replay`` ticks."""
        self.error = 0.0
        """The largest difference in the last comparison, as a multiple of the tolerance."""

    def advance(self, client: Client[Any], move: _M, ghost: object | None = None) -> range:
        """Sends a move, predicts its result, and compares earlier predictions with ``ghost``, the client's
        own ghost. The prediction uses the move as the server reads it: numbers are rounded to their fields'
        precision. If the move is for several ticks, its key presses (:data:`tickwire.fields.press`) count
        only in the first of these ticks.

        After a lost connection, the prediction stands still. It continues from the first state of ``ghost``
        that the next connection brings.

        Returns the ticks that the move is for, possibly none: see :meth:`Client.send_input`.

        Raises:
            PredictionError: ``step`` raised, or didn't return a state. The move was sent and is kept.
        """
        newest = client.clock.input_tick
        # A game may have skipped what was between two connections; a server that began again counts lower.
        if self.tick is not None and (newest is None or newest < self._checked):
            self._lose_connection()
        ticks: range
        ticks, moves = client._send_input(move)  # type: ignore[attr-defined]
        self._client = client
        given = self._keep(zip(ticks, moves, strict=True))
        # The avatar may have been despawned since the game looked it up.
        if ghost is not None and ghost in client.world and (tick := client.tick_of(ghost)) is not None:
            self.correct(tick, ghost)
        if not self._awaits_truth:
            self._run(given, client.clock.delay)
        return ticks

    def _lose_connection(self) -> None:
        """Forgets the ticks of a connection that ended: the next server's may be others."""
        self._moves.clear()
        self._states.clear()
        self.tick, self._checked, self._awaits_truth = None, -1, self._is_checked

    def run(self, ticks: Iterable[int], move: _M, *, delay: int = 0) -> None:
        """Stores a copy of a move for these ticks, and predicts up to ``delay`` ticks before the newest of
        them (see :attr:`Clock.delay`).

        Raises:
            PredictionError: ``step`` raised, or didn't return a state. Moves and earlier states are kept, and
                the next call runs the missing ticks.
        """
        move = copy.copy(move)
        self._run(self._keep((tick, move) for tick in ticks), delay)

    def _keep(self, moves: Iterable[tuple[int, _M]]) -> tuple[int, int] | None:
        """Stores moves. Returns the oldest and the newest of their ticks."""
        oldest = newest = None
        for tick, move in moves:
            self._moves[tick] = move
            oldest, newest = tick if oldest is None else oldest, tick
        return None if oldest is None or newest is None else (oldest, newest)

    def _run(self, given: tuple[int, int] | None, delay: int) -> None:
        if given is None or self.state is None:
            return
        oldest, newest = given
        first = oldest - delay if self.tick is None else self.tick + 1
        for tick in range(max(first, newest - delay - self._max_replay), newest - delay + 1):
            if tick in self._moves:
                self.state = self._stepped(self.state, tick)
            self._states[tick], self.tick = self._read(self.state), tick
        # Ticks that the server never confirms are bounded too.
        while len(self._states) > 4 * self._max_replay:
            del self._states[next(iter(self._states))]
        while len(self._moves) > 4 * self._max_replay + 64:
            del self._moves[next(iter(self._moves))]

    def correct(self, tick: int, truth: object) -> bool:
        """Compares the prediction with the server's state at a tick. If they differ, replays the later
        moves and returns True.

        Args:
            tick: the server's tick, from :meth:`Client.tick_of`.
            truth: the server's state, or a ghost that has the properties named in the ``tolerance`` of this
                :class:`Prediction`.

        Raises:
            PredictionError: ``step`` raised, or didn't return a state, or ``truth`` has a number that isn't
                finite. Nothing was changed.
        """
        if tick <= self._checked:
            return False
        if self.state is None:
            _check_tolerance(truth, self._tolerance)
        said = self._adopted(truth)
        for name in self._tolerance:
            if not _is_finite(_get(said, name)):
                raise PredictionError(
                    f"truth of tick {tick} must be finite, not {name or 'state'} = {_get(said, name)}"
                )
        self._is_checked, self._awaits_truth = True, False
        if self.state is None or self.tick is None or tick > self.tick:
            # Nothing was predicted for that tick: it is the newest that is known.
            self._corrected(said, tick, said if self.state is None else self.state)
            return False
        predicted = self._states.get(tick)
        if predicted is not None:
            self.error = self._difference(predicted, self._read(said))
            if self.error <= 1.0:
                self._forget(tick)
                return False
        elif self._states and tick < next(iter(self._states)):
            # Older than all that is kept: a newer one will come.
            return False
        state, first = said, tick + 1
        if self.tick - tick > self._max_replay:
            first = self.tick - self._max_replay + 1
        state = copy.copy(state)
        step, moves, read = self._step, self._moves, self._read
        replayed = {tick: read(state)} if first == tick + 1 else {}
        each = first
        try:
            for each in range(first, self.tick + 1):
                if each in moves:
                    state = step(state, moves[each])
                replayed[each] = read(state)
        except Exception as error:
            raise PredictionError(f"step of tick {each} raised {type(error).__name__}: {error}") from error
        self._check(state, said, self.tick)
        self.corrections += 1
        self.replayed += self.tick + 1 - first
        self.capped += first > tick + 1
        before, newest = self.state, self.tick
        self._states = replayed
        self._corrected(state, newest, before)
        self._forget(tick)
        return True

    def seen(self, dt: float = 0.0) -> Any:
        """Returns the state to draw. Frames between two ticks get an interpolated state, and corrections
        become visible gradually. Only the properties in ``tolerance`` are interpolated; other properties
        are as in :attr:`state`.

        Args:
            dt: seconds since the last call.
        """
        if self.state is None:
            return None
        if dt > 0 and self._offsets:
            keep = 0.5 ** (dt / self._smoothing) if self._smoothing else 0.0
            self._offsets = {name: _scaled(offset, keep) for name, offset in self._offsets.items()}
        shown = self._between_ticks()
        for name, offset in self._offsets.items():
            shown = _with(shown, name, _sum(_get(shown, name), offset))
        return shown

    def _between_ticks(self) -> Any:
        """The predicted state at the clock's fraction of a tick, or the newest state if each frame has a
        tick.
        """
        at = None if self._client is None else self._client._drawn_tick()  # type: ignore[attr-defined]
        if at is None or self.tick is None or at >= self.tick:
            return self.state
        before = max(math.floor(at), self.tick - KEPT_TO_DRAW)
        old, new = self._states.get(before), self._states.get(before + 1)
        if old is None or new is None:
            return self.state
        shown, share = self.state, max(at - before, 0.0)
        for (name, most), was, is_ in zip(self._tolerance.items(), old, new, strict=True):
            if not _is_numeric(is_):
                continue
            way = _wrapped(_less(is_, was), self._wraps.get(name or ""))
            if _size(way) <= self._snap * most:
                shown = _with(shown, name, _sum(was, _scaled(way, share)))
        return shown

    def reset(self, state: _S | None = None) -> None:
        """Restarts from ``state``, for example after a respawn. None: restarts from the first state of this
        :class:`Prediction`.
        """
        self._moves.clear()
        self._states.clear()
        self._offsets.clear()
        self.state = copy.copy(self._first) if state is None else state
        self.tick, self._checked = None, -1

    def _stepped(self, state: _S, tick: int) -> _S:
        try:
            after = self._step(copy.copy(state), self._moves[tick])
        except Exception as error:
            raise PredictionError(f"step of tick {tick} raised {type(error).__name__}: {error}") from error
        self._check(after, state, tick)
        return after

    def _check(self, after: Any, state: Any, tick: int) -> None:
        """Refuses values that can't be states of this prediction."""
        if type(after) is not type(state) and not (_is_number(after) and _is_number(state)):
            want, got = type(state).__name__, type(after).__name__
            raise PredictionError(f"step of tick {tick} must return a state, {want}, not {got}")
        for name in self._tolerance:
            value = _get(after, name)
            if not _is_finite(value):
                raise PredictionError(
                    f"step of tick {tick} must return finite numbers, not {name or 'state'} = {value}"
                )

    def _read(self, state: Any) -> tuple[Any, ...]:
        """A copy of the state's compared values."""
        if type(state) is self._plain:
            return tuple([getattr(state, name) for name in self._names])
        read = tuple([_get(state, name) for name in self._tolerance])
        if any(hasattr(value, "dtype") for value in read):
            return tuple([copy.copy(value) for value in read])
        if not isinstance(state, Mapping) and None not in self._tolerance:
            # Attributes alone, none of them an array.
            self._plain = type(state)
        return read

    def _adopted(self, truth: Any) -> _S:
        """A state with the server's values, and with local values for the other names."""
        if None in self._tolerance or (self.state is None and not self._tolerance):
            return copy.copy(truth)  # type: ignore[no-any-return]
        if self.state is None or type(truth) is type(self.state):
            adopted: _S = copy.copy(truth)
            return adopted
        state: Any = self.state
        for name in self._tolerance:
            state = _with(state, name, _get(truth, name))
        return state  # type: ignore[no-any-return]

    def _corrected(self, state: _S, tick: int, before: _S) -> None:
        for name, most in self._tolerance.items():
            now = _get(state, name)
            if not _is_numeric(now):
                continue
            offset = _wrapped(_less(_get(before, name), now), self._wraps.get(name or ""))
            if name in self._offsets:
                offset = _sum(offset, self._offsets[name])
            if not self._smoothing or _size(offset) > self._snap * most:
                offset = _scaled(offset, 0.0)
            self._offsets[name] = offset
        self.state, self.tick = state, tick
        self._states[tick] = self._read(state)

    def _difference(self, predicted: tuple[Any, ...], said: tuple[Any, ...]) -> float:
        worst = 0.0
        for (name, most), mine, its in zip(self._tolerance.items(), predicted, said, strict=True):
            if not _is_numeric(its):
                worst = max(worst, 0.0 if mine == its else math.inf)
                continue
            off = _size(_wrapped(_less(mine, its), self._wraps.get(name or "")))
            worst = max(worst, off / most if most else (math.inf if off else 0.0))
        return worst

    def _forget(self, tick: int) -> None:
        """Drops moves and states before a compared tick, except states that are still drawn."""
        self._checked = tick
        newest = tick if self.tick is None else self.tick
        for kept, oldest in ((self._states, min(tick, newest - KEPT_TO_DRAW)), (self._moves, tick)):
            for old in [each for each in kept if each < oldest]:
                del kept[old]


class Predicted(Generic[_T]):
    """Things that a client shows before the server confirms them, such as new projectiles or effects. If the
    server confirms such a thing, a real ghost replaces it. If not, the thing is removed.

    At most 1,024 things are kept. If there are more, the oldest are dropped.

    Args:
        ticks: the number of ticks in which the server must confirm a thing.

    Raises:
        TypeError, ValueError: an argument is invalid.
    """

    def __init__(self, ticks: int = 60) -> None:
        check_within("ticks", ticks, 1, 10_000, int)
        self._ticks = ticks
        # By key, those of the same key in their order.
        self._open: dict[Hashable, deque[tuple[int, _T]]] = {}
        self._count = 0
        self.refused = 0
        """The number of things that were never confirmed."""

    def show(self, tick: int, thing: _T, key: Hashable = None) -> None:
        """Records a thing that the client shows from this tick on. ``key`` identifies it for :meth:`confirm`;
        None: the tick is the key. Things with the same key are confirmed in the order in which they were
        shown.
        """
        self._open.setdefault(tick if key is None else key, deque()).append((tick, thing))
        self._count += 1
        if self._count > MAX_PREDICTED:
            self._take(next(iter(self._open)))
            self.refused += 1

    def confirm(self, key: Hashable) -> _T | None:
        """Removes and returns the oldest thing with this key, so that the real ghost can replace it. Returns
        None if no thing has this key.
        """
        return self._take(key) if key in self._open else None

    def _take(self, key: Hashable) -> _T:
        """Removes and returns the oldest thing with this key."""
        things = self._open[key]
        _, thing = things.popleft()
        if not things:
            del self._open[key]
        self._count -= 1
        return thing

    def take_back(self, server_tick: int | None) -> list[_T]:
        """Removes and returns the things that the server didn't confirm in time, so that you stop showing
        them. Pass :attr:`Clock.server_tick`.
        """
        if server_tick is None:
            return []
        late = [
            key
            for key, things in self._open.items()
            for tick, _ in things
            if server_tick - tick > self._ticks
        ]
        self.refused += len(late)
        return [self._take(key) for key in late]

    def __iter__(self) -> Iterator[_T]:
        return iter([thing for things in self._open.values() for _, thing in things])

    def __len__(self) -> int:
        return self._count


def _check_tolerance(state: object, tolerance: Mapping[str | None, float]) -> None:
    """Refuses a tolerance that doesn't fit such states."""
    kind = type(state).__name__
    if isinstance(state, Ghost):
        raise TypeError(
            f"state must be one of the game's own, and {kind} is a ghost, which only the server changes: "
            "give Prediction(step, state, ...) one that step can change"
        )
    for name in tolerance:
        if name is None and not _is_numeric(state):
            raise TypeError(
                "tolerance must be by name, as tolerance={'position': 0.1}, for a state that is no number, "
                f"tuple or array but {kind}"
            )
        try:
            _get(state, name)
        except (AttributeError, KeyError, ValueError):
            raise ValueError(f"tolerance of {name!r} must be of a property of the state, {kind}") from None


def _get(state: Any, name: str | None) -> Any:
    if name is None:
        return state
    if name in getattr(state, "__dict__", ()):
        return state.__dict__[name]
    if isinstance(state, Mapping) or getattr(getattr(state, "dtype", None), "names", None):
        return state[name]
    return getattr(state, name)


def _with(state: Any, name: str | None, value: Any) -> Any:
    if name is None:
        return value
    if hasattr(state, "_replace"):
        return state._replace(**{name: value})
    if dataclasses.is_dataclass(state) and not isinstance(state, type):
        return dataclasses.replace(state, **{name: value})
    state = copy.copy(state)
    if isinstance(state, Mapping) or hasattr(state, "dtype"):
        state[name] = value
    else:
        setattr(state, name, value)
    return state


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_numeric(value: Any) -> bool:
    if hasattr(value, "dtype"):
        return bool(value.dtype.kind in "iuf")
    return _is_number(value) or (isinstance(value, (tuple, list)) and all(map(_is_number, value)))


def _is_finite(value: Any) -> bool:
    if hasattr(value, "dtype"):
        # Not a number is not equal to itself, and infinity less itself is none.
        return value.dtype.kind != "f" or not bool((value - value != 0).any())
    parts = value if isinstance(value, (tuple, list)) else (value,)
    return all(math.isfinite(part) for part in parts if _is_number(part))


def _each(value: Any, other: Any, change: Callable[[Any, Any], Any]) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(change(a, b) for a, b in zip(value, other, strict=True))
    return change(value, other)


def _less(value: Any, other: Any) -> Any:
    return _each(value, other, lambda a, b: a - b)


def _sum(value: Any, other: Any) -> Any:
    return _each(value, other, lambda a, b: a + b)


def _scaled(value: Any, by: float) -> Any:
    return _each(value, value, lambda a, _: a * by)


def _wrapped(value: Any, circle: float | None) -> Any:
    if circle is None:
        return value
    return _each(value, value, lambda a, _: (a + circle / 2) % circle - circle / 2)


def _size(value: Any) -> float:
    if isinstance(value, (tuple, list)):
        return math.hypot(*value)
    if hasattr(value, "dtype"):
        return float(abs(value).max()) if value.size else 0.0
    return abs(float(value))
