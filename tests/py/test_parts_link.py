"""One direction of a simulated link, by itself."""

from __future__ import annotations

import gc
import weakref

import pytest
import tickwire as tw

BAD = tw.Conditions(latency=0.05, jitter=0.02, loss=0.2, duplicate=0.2, reorder=0.1, reorder_delay=0.1)


def history(link: tw.Link[int], count: int = 200) -> list[tuple[float, int]]:
    for number in range(count):
        link.send(number / 100, number)
    arrived = []
    while (now := link.next_delivery) is not None:
        item = link.poll(now)
        assert item is not None, "it comes out when it says"
        arrived.append((now, item))
    return arrived


def test_a_perfect_link_is_a_queue() -> None:
    assert history(tw.Link()) == [(number / 100, number) for number in range(200)]


def test_nothing_comes_out_before_its_time() -> None:
    link: tw.Link[str] = tw.Link(tw.Conditions(latency=0.05))
    link.send(1.0, "a")
    assert (link.poll(1.049), link.next_delivery, len(link), bool(link)) == (None, 1.05, 1, True)
    assert (link.poll(1.05), link.next_delivery, len(link), bool(link)) == ("a", None, 0, True)


@pytest.mark.parametrize("start", [0.0, 1e3, 1.7e9 + 0.123456789, 5e9])
def test_the_time_of_the_next_delivery_can_be_polled_at_whatever_the_clock(start: float) -> None:
    link: tw.Link[int] = tw.Link(BAD, seed=3)
    for number in range(100):
        link.send(start + number / 7, number)
    while (now := link.next_delivery) is not None:
        assert link.poll(now) is not None


def test_the_same_seed_gives_the_same_history_and_the_counters_add_up() -> None:
    link: tw.Link[int] = tw.Link(BAD, seed=5)
    first = history(link)
    assert history(tw.Link(BAD, seed=5)) == first != history(tw.Link(BAD, seed=6))
    counters = link.counters
    assert counters["sent"] == 200
    assert counters["lost"] > 0
    assert counters["reordered"] > 0
    assert counters["delivered"] == len(first) == 200 - counters["lost"] + counters["duplicated"]


def test_conditions_change_for_what_is_sent_later() -> None:
    link: tw.Link[str] = tw.Link()
    link.send(0.0, "early")
    link.set_conditions(tw.Conditions(loss=1))
    link.send(0.0, "late")
    assert (link.poll(1.0), link.poll(1.0)) == ("early", None)


def test_a_full_link_drops_and_counts() -> None:
    link: tw.Link[int] = tw.Link(capacity=3)
    for number in range(5):
        link.send(0.0, number)
    assert (len(link), link.counters["overflowed"]) == (3, 2)


def test_copies_are_the_same_object_and_cycles_are_collected() -> None:
    class Item:
        link: tw.Link[Item]

    link: tw.Link[Item] = tw.Link(tw.Conditions(latency=1, duplicate=1))
    item = Item()
    item.link = link
    link.send(0.0, item)
    link.send(0.0, item)
    gc.collect()
    assert link.poll(1.0) is link.poll(1.0) is item
    there = weakref.ref(item)
    del link, item
    gc.collect()
    assert there() is None


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="seed must be 0 to 18446744073709551615, not -1"):
        tw.Link(seed=-1)
    with pytest.raises(ValueError, match="capacity must be 1 to 16777216, not 0"):
        tw.Link(capacity=0)
    link: tw.Link[int] = tw.Link()
    for now in (-1.0, float("nan"), float("inf"), 1e12):
        with pytest.raises(ValueError, match="now must be 0 to 6324480000 seconds, not"):
            link.send(now, 1)
        with pytest.raises(ValueError, match="now must be 0 to 6324480000 seconds, not"):
            link.poll(now)
