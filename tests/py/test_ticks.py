import asyncio
import time
import warnings
from collections.abc import Callable

import pytest
import tickwire as tw


class Clock:
    """A clock that only sleeping and work move."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock.perf_counter)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    return clock


def collect(clock: Clock, work: Callable[[int], float], **arguments: float) -> list[tuple[int, float]]:
    seen = []
    for number in tw.ticks(**arguments):
        seen.append((number, round(clock.now - 100, 6)))
        clock.now += work(number)
    return seen


def test_ticks_come_at_their_rate_without_drift(clock: Clock) -> None:
    seen = collect(clock, lambda _: 0.003, rate=60, duration=2)
    assert [number for number, _ in seen] == list(range(120))
    assert all(abs(at - number / 60) < 1e-6 for number, at in seen)


def test_missed_ticks_are_skipped_not_bunched(clock: Clock) -> None:
    seen = collect(clock, lambda number: 0.35 if number == 2 else 0.0, rate=10, duration=1)
    assert [number for number, _ in seen] == [0, 1, 2, 5, 6, 7, 8, 9]


def test_refuses_a_rate_that_is_none() -> None:
    for rate in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="rate must be above 0"):
            tw.ticks(rate)


@pytest.mark.usefixtures("clock")
def test_in_a_coroutine_it_warns_of_stopping_the_event_loop() -> None:
    async def play() -> list[int]:
        with pytest.warns(RuntimeWarning, match=r"use tickwire\.aio\.ticks"):
            return list(tw.ticks(60, duration=0.05))

    assert asyncio.run(play()) == [0, 1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(tw.ticks(60, duration=0.01)) == [0]
