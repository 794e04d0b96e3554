"""One direction of a simulated link, by itself."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import tickwire as tw
from public import EVERY_NAME

BAD = tw.Conditions(latency=0.05, jitter=0.02, loss=0.2, duplicate=0.2, reorder=0.1)


def history(link: tw.testing.Link[int], count: int = 200) -> list[tuple[float, int]]:
    for number in range(count):
        link.send(number / 100, number)
    arrived = []
    while (now := link.next_delivery) is not None:
        item = link.poll(now)
        assert item is not None, "it comes out when it says"
        arrived.append((now, item))
    return arrived


def test_a_perfect_link_is_a_queue() -> None:
    assert history(tw.testing.Link()) == [(number / 100, number) for number in range(200)]


def test_nothing_comes_out_before_its_time() -> None:
    link: tw.testing.Link[str] = tw.testing.Link(tw.Conditions(latency=0.05))
    link.send(1.0, "a")
    assert (link.poll(1.049), link.next_delivery, len(link), bool(link)) == (None, 1.05, 1, True)
    assert (link.poll(1.05), link.next_delivery, len(link), bool(link)) == ("a", None, 0, True)


@pytest.mark.parametrize("start", [0.0, 1e3, 1.7e9 + 0.123456789, 5e9])
def test_the_time_of_the_next_delivery_can_be_polled_at_whatever_the_clock(start: float) -> None:
    link: tw.testing.Link[int] = tw.testing.Link(BAD, seed=3)
    for number in range(100):
        link.send(start + number / 7, number)
    while (now := link.next_delivery) is not None:
        assert link.poll(now) is not None


def test_the_same_seed_gives_the_same_history_and_the_counters_add_up() -> None:
    link: tw.testing.Link[int] = tw.testing.Link(BAD, seed=5)
    first = history(link)
    assert history(tw.testing.Link(BAD, seed=5)) == first != history(tw.testing.Link(BAD, seed=6))
    counters = link.counters
    assert counters["sent"] == 200
    assert counters["lost"] > 0
    assert counters["reordered"] > 0
    assert counters["delivered"] == len(first) == 200 - counters["lost"] + counters["duplicated"]


def test_conditions_change_for_what_is_sent_later() -> None:
    link: tw.testing.Link[str] = tw.testing.Link()
    link.send(0.0, "early")
    link.set_conditions(tw.Conditions(loss=1))
    link.send(0.0, "late")
    assert (link.poll(1.0), link.poll(1.0)) == ("early", None)


def test_a_full_link_drops_and_counts() -> None:
    link: tw.testing.Link[int] = tw.testing.Link(capacity=3)
    for number in range(5):
        link.send(0.0, number)
    assert (len(link), link.counters["overflowed"]) == (3, 2)


def test_copies_are_the_same_object_and_cycles_are_collected() -> None:
    class Item:
        link: tw.testing.Link[Item]

    link: tw.testing.Link[Item] = tw.testing.Link(tw.Conditions(latency=1, duplicate=1))
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
        tw.testing.Link(seed=-1)
    with pytest.raises(ValueError, match="capacity must be 1 to 16777216, not 0"):
        tw.testing.Link(capacity=0)
    link: tw.testing.Link[int] = tw.testing.Link()
    for now in (-1.0, float("nan"), float("inf"), 1e12):
        with pytest.raises(ValueError, match="now must be 0 to 6324480000 seconds, not"):
            link.send(now, 1)
        with pytest.raises(ValueError, match="now must be 0 to 6324480000 seconds, not"):
            link.poll(now)


def everything() -> tw.Conditions:
    return tw.Conditions(
        latency=0.05,
        jitter=0.01,
        random_walk=tw.testing.RandomWalk(0.02, 0.3),
        loss=0.01,
        bursts=tw.testing.Bursts.mean(loss=0.02, length=4),
        outages=tw.testing.Outages(duration=0.2, fraction=0.02),
        duplicate=0.03,
        reorder=0.04,
        bottleneck=tw.testing.Bottleneck(125_000, queue=30_000, overhead=48),
    )


def test_packets_wait_for_the_rate_and_a_full_queue_drops() -> None:
    link: tw.testing.Link[bytes] = tw.testing.Link(
        tw.Conditions(bottleneck=tw.testing.Bottleneck(100_000, queue=3000))
    )
    for _ in range(5):
        link.send(0.0, bytes(972))
    assert (len(link), link.queued_bytes, link.counters["queue_dropped"]) == (3, 3000, 2)
    times = []
    while (now := link.next_delivery) is not None:
        assert link.poll(now) == bytes(972)
        times.append(now)
    assert times == [0.01, 0.02, 0.03]


def test_the_size_of_an_item_is_that_of_its_bytes_or_the_one_said() -> None:
    link: tw.testing.Link[object] = tw.testing.Link(
        tw.Conditions(bottleneck=tw.testing.Bottleneck(1000, queue=100_000, overhead=0))
    )
    sizes = []
    for item, size in ((b"ab", None), (bytearray(3), None), ("text", None), ("text", 40), (b"ab", 50)):
        before = link.queued_bytes
        link.send(0.0, item, size=size)
        sizes.append(link.queued_bytes - before)
    assert sizes == [2, 3, 0, 40, 50]
    with pytest.raises(ValueError, match="size must be 0 to 1099511627776, not -1"):
        link.send(0.0, b"", size=-1)


def test_a_script_changes_the_conditions_at_its_times() -> None:
    link: tw.testing.Link[int] = tw.testing.Link(tw.Conditions(latency=0.02))
    link.schedule(2.0, tw.Conditions(latency=0.05))
    link.schedule(1.0, tw.Conditions(loss=1))
    for tenth in range(30):
        link.send(tenth / 10, tenth)
    arrived = []
    while (now := link.next_delivery) is not None:
        arrived.append((link.poll(now), round(now, 3)))
    expected = [(tenth, round(tenth / 10 + 0.02, 3)) for tenth in range(10)]
    assert arrived == expected + [(tenth, round(tenth / 10 + 0.05, 3)) for tenth in range(20, 30)]
    with pytest.raises(ValueError, match="at must be 0 to 6324480000 seconds, not -1"):
        link.schedule(-1, tw.Conditions())


def test_every_loss_has_its_name() -> None:
    link: tw.testing.Link[int] = tw.testing.Link(everything(), seed=1)
    for number in range(20_000):
        link.send(number / 100, number, size=1252)
    while (now := link.next_delivery) is not None:
        link.poll(now)
    counters = link.counters
    lost = ("queue_dropped", "lost", "lost_in_bursts", "lost_in_outages")
    assert all(counters[name] > 50 for name in lost), counters
    passed = counters["sent"] - sum(counters[name] for name in lost)
    assert counters["delivered"] == passed + counters["duplicated"]


def test_conditions_are_values_that_print_as_they_are_made() -> None:
    conditions = everything()
    names = {
        name: EVERY_NAME[name] for name in ("Conditions", "Bottleneck", "Bursts", "Outages", "RandomWalk")
    }
    assert eval(repr(conditions), names) == conditions
    assert eval(repr(tw.Conditions()), names) == tw.Conditions()
    assert conditions.replace() == conditions
    faster = conditions.replace(bottleneck=None, latency=0.04)
    assert (faster.bottleneck, faster.latency) == (None, 0.04)
    assert faster.replace(bottleneck=conditions.bottleneck, latency=0.05) == conditions
    with pytest.raises(TypeError, match="'ratee'"):
        conditions.replace(ratee=3)
    assert tw.testing.Bursts.mean(0.2, 4) == tw.testing.Bursts(0.0625, 0.25, good_loss=0, bad_loss=1)


def test_presets_are_pairs_by_name() -> None:
    for name in ("3g", "4g", "wifi-bad", "transatlantic", "satellite"):
        up, down = tw.Conditions.preset(name)
        assert up.bottleneck is not None
        assert down.bottleneck is not None
        assert up.bottleneck.rate < down.bottleneck.rate
        assert up.latency == down.latency > 0
    with pytest.raises(ValueError, match="one of 3g, 4g, wifi-bad, transatlantic, satellite, not '5g'"):
        tw.Conditions.preset("5g")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: tw.testing.Bottleneck(0), "rate must be 1 to 12500000000, not 0"),
        (lambda: tw.testing.Bottleneck(1, queue=0), "queue must be 1 to 1073741824, not 0"),
        (lambda: tw.testing.Bottleneck(1, overhead=-1), "overhead must be 0 to 65535, not -1"),
        (lambda: tw.testing.RandomWalk(-1), "delay must be 0 to 10 seconds, not -1"),
        (
            lambda: tw.testing.RandomWalk(0.1, 0),
            r"time must be 1µs to 3600s, not 0ns",
        ),
        (
            lambda: tw.Conditions(latency=0.1, jitter=0.06, random_walk=tw.testing.RandomWalk(0.06)),
            "together must be at most the latency, 100ms",
        ),
    ],
)
def test_settings_out_of_bounds_are_named(make: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


def test_bursts_and_outages_out_of_bounds_are_named() -> None:
    with pytest.raises(ValueError, match="to_bad must be a probability, 0 to 1, not 2"):
        tw.testing.Bursts(2, 0.1)
    with pytest.raises(ValueError, match="length must be 1 to 1e9 packets, the mean of bursts, not 0.5"):
        tw.testing.Bursts.mean(0.1, 0.5)
    with pytest.raises(ValueError, match="loss must be 0 to 0.8 by bursts of 4 packets, not 0.9"):
        tw.testing.Bursts.mean(0.9, 4)
    with pytest.raises(ValueError, match="fraction of outages must be a probability, 0 to 1, not 1.5"):
        tw.testing.Outages(1, 1.5)
    with pytest.raises(ValueError, match="duration of outages must be 1µs to 3600s, not 0ns"):
        tw.testing.Outages(0, 0.5)


def test_a_lost_item_may_call_the_link_when_it_goes() -> None:
    class Item:
        def __del__(self) -> None:
            seen.append(len(link))

    seen: list[int] = []
    link: tw.testing.Link[Item] = tw.testing.Link(
        tw.Conditions(bottleneck=tw.testing.Bottleneck(100, overhead=0), loss=1)
    )
    for _ in range(3):
        link.send(0.0, Item(), size=100)
    assert (len(link), seen) == (3, [])
    assert link.poll(1.5) is None
    assert seen == [2], "it was lost when it left the queue"
    link.send(2.5, Item(), size=100)
    assert seen == [2, 2]
