"""The binary congestion avoidance by itself: RTT traces in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
import tickwire as tw

TICK = 0.1


def play(good_bad: tw.articles.GoodBad, start: float, seconds: float, rtt: float) -> float:
    """Updates each tick up to, not including, the returned time."""
    for tick in range(round(seconds / TICK)):
        good_bad.update(start + tick * TICK, rtt)
    return start + seconds


def test_a_trace_goes_through_all_rules_of_the_article() -> None:
    good_bad = tw.articles.GoodBad()
    assert (good_bad.mode, good_bad.packets_per_second, good_bad.recovery_time) == ("good", 30.0, 4.0)
    # 20 s of good mode halve the recovery time twice.
    now = play(good_bad, 0.0, 20, 0.1)
    assert good_bad.update(now, 0.25) == "good"
    assert good_bad.recovery_time == 1.0
    # Bad at once, and not punished after so long.
    assert good_bad.update(now + 0.1, 0.251) == "bad"
    assert (good_bad.packets_per_second, good_bad.recovery_time) == (10.0, 1.0)
    # Good again after 1 s of good conditions without a break.
    now = play(good_bad, now + 0.2, 0.9, 0.1)
    assert good_bad.update(now, 0.3) == "bad"
    now = play(good_bad, now + 0.1, 1, 0.1)
    assert good_bad.mode == "bad"
    assert good_bad.update(now, 0.1) == "good"
    # Short good modes double it, up to a minute.
    for expected in (2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0):
        now = play(good_bad, now, 5, 0.1)
        assert good_bad.update(now, 1.0) == "bad"
        assert good_bad.recovery_time == expected
        now = play(good_bad, now + 0.1, expected, 0.1)
        assert good_bad.mode == "bad"
        now = play(good_bad, now, 2 * TICK, 0.1)
        assert good_bad.mode == "good"
    # Lasting good modes bring it down again, to a second.
    for expected in (30.0, 15.0, 7.5, 3.75, 1.875, 1.0, 1.0):
        now = play(good_bad, now, 10, 0.1)
        assert good_bad.recovery_time == expected


def test_every_number_can_be_set() -> None:
    good_bad = tw.articles.GoodBad(
        bad_rtt=0.08,
        good_packets_per_second=60,
        bad_packets_per_second=20,
        recovery_time=0.5,
        min_recovery_time=0.25,
        max_recovery_time=0.75,
        double_below=1,
        halve_every=2,
    )
    assert good_bad.packets_per_second == 60.0
    assert good_bad.update(0.0, 0.09) == "bad"
    assert (good_bad.packets_per_second, good_bad.recovery_time) == (20.0, 0.75)
    assert (good_bad.update(1.0, 0.08), good_bad.update(1.75, 0.08)) == ("bad", "good")
    good_bad.update(3.75, 0.0)
    assert good_bad.recovery_time == 0.375
    good_bad.update(5.75, 0.0)
    assert good_bad.recovery_time == 0.25
    assert repr(good_bad) == "<GoodBad: good, 60 packets/s>"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"bad_rtt": -1.0}, "bad_rtt must be 0 to 86400 seconds, not -1"),
        (
            {"recovery_time": 61.0},
            r"^recovery_time must be at most max_recovery_time \(60\), not 61",
        ),
        ({"min_recovery_time": 61.0}, r"min_recovery_time must be at most recovery_time \(4\), not 61"),
        ({"good_packets_per_second": 0.0}, "good_packets_per_second must be above 0 and finite, not 0"),
        (
            {"bad_packets_per_second": float("inf")},
            "bad_packets_per_second must be above 0 and finite, not inf",
        ),
        ({"halve_every": 0.0}, "halve_every must be above 0 and finite, not 0"),
    ],
)
def test_settings_out_of_bounds_are_named(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        tw.articles.GoodBad(**settings)


def test_calls_that_make_no_sense_are_named() -> None:
    good_bad = tw.articles.GoodBad()
    with pytest.raises(ValueError, match="rtt must be 0 to 86400 seconds, not NaN"):
        good_bad.update(0.0, float("nan"))
    with pytest.raises(ValueError, match="now must be 0 to"):
        good_bad.update(-1.0, 0.1)
