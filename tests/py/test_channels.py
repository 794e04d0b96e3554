"""Channel kinds from Python: what each promises, over a bad network in virtual time."""

from __future__ import annotations

import pytest
import tickwire as tw
from conftest import Chat, Move, make_protocol
from tickwire.testing import Collected, Conditions, advance, connected_pair

BAD = Conditions(latency=0.05, jitter=0.03, loss=0.3, duplicate=0.1, reorder=0.1)


def pair(
    channel: tw.channels.Channel, conditions: Conditions | None = BAD
) -> tuple[tw.testing.SimulatedNetwork, tw.Server, tw.Client]:
    return connected_pair(make_protocol(channels=[channel]), conditions=conditions, seed=3)


def numbers(collected: Collected) -> list[int]:
    return [message.tick for _, message in collected.messages]


def play(channel: tw.channels.Channel, ticks: int = 300) -> tuple[list[int], Collected]:
    """A client sends a numbered move each tick; what the server got, and all it got."""
    network, server, client = pair(channel)
    all_of_it = Collected()
    for tick in range(ticks):
        client.send(Move(tick, 0, 0.0))
        at_server, _ = advance(network, server, client, seconds=1 / 60)
        all_of_it.messages += at_server.messages
        all_of_it.missed += at_server.missed
    at_server, _ = advance(network, server, client, seconds=3)
    all_of_it.messages += at_server.messages
    all_of_it.missed += at_server.missed
    return numbers(all_of_it), all_of_it


@pytest.mark.parametrize("resend_time", [0.1, None])
def test_reliable_ordered_gives_each_once_in_order(resend_time: float | None) -> None:
    got, _ = play(tw.reliable_ordered(resend_time=resend_time))
    assert got == list(range(300))


@pytest.mark.parametrize("copies", [1, 3])
def test_reliable_unordered_gives_each_once_and_holds_up_none(copies: int) -> None:
    got, _ = play(tw.reliable_unordered(resend_time=None, early_copies=copies))
    assert sorted(got) == list(range(300))
    assert got != sorted(got)


def test_sequenced_never_gives_an_older_one_after_a_newer() -> None:
    got, _ = play(tw.sequenced())
    assert got == sorted(set(got))
    assert 100 < len(got) < 300


def test_redundant_gives_each_once_in_order_and_tells_the_gaps() -> None:
    got, all_of_it = play(tw.channels.redundant(copies=3))
    assert got == sorted(set(got))
    gaps = [count for _, channel, count in all_of_it.missed if channel == 0]
    assert sum(gaps) == got[-1] + 1 - len(got)
    assert len(got) > 270, "three copies of each; once, it would be 210"


def test_redundant_until_acked_misses_next_to_nothing() -> None:
    got, _ = play(tw.channels.redundant(copies=None))
    assert got == sorted(set(got))
    assert len(got) > 295


def test_latest_ends_with_the_newest_value_of_each_key() -> None:
    network, server, client = pair(tw.latest(keys=10))
    seen: dict[int, list[int]] = {key: [] for key in range(10)}
    for tick in range(200):
        server.send(server.clients[0], Move(tick, 0, 0.0), key=tick % 10)
        _, at_client = advance(network, server, client, seconds=1 / 60)
        for key, message in at_client.latest:
            seen[key].append(message.tick)
    _, at_client = advance(network, server, client, seconds=3)
    for key, message in at_client.latest:
        seen[key].append(message.tick)
    assert not at_client.messages
    for key, values in seen.items():
        assert values == sorted(set(values)), "never an older value over a newer one"
        assert values[-1] == 190 + key


def test_latest_on_a_server_names_the_client() -> None:
    network, server, client = pair(tw.latest(keys=2), None)
    client.send(Chat(3, "hello"), key=1)
    at_server, _ = advance(network, server, client, seconds=0.1)
    assert at_server.latest == [(server.clients[0], 1, Chat(3, "hello"))]


def test_payloads_arrive_as_they_were_or_are_told_lost() -> None:
    network, server, client = pair(tw.channels.payload())
    sent = {tag: bytes([tag, 255, 0]) * (tag % 50) for tag in range(200)}
    arrived: list[tuple[tw.ClientHandle, int, bytes]] = []
    told: list[tuple[int, int, int, bool]] = []
    for tag, data in sent.items():
        client.send_payload(data, 0, tag=tag)
        at_server, at_client = advance(network, server, client, seconds=1 / 60)
        arrived += at_server.payloads
        told += at_client.notifications
    at_server, at_client = advance(network, server, client, seconds=3)
    arrived += at_server.payloads
    told += at_client.notifications
    assert {handle for handle, _, _ in arrived} == set(server.clients)
    fates = {tag: delivered for _, _, tag, delivered in told}
    assert [tag for _, _, tag, _ in told] == sorted(sent), "each once, in the order of the packets"
    assert {True, False} == set(fates.values())
    received = [data for _, _, data in arrived]
    assert all(sent[tag] in received for tag, delivered in fates.items() if delivered)


def test_what_finds_no_room_is_told_as_lost() -> None:
    channels = [tw.channels.payload(), tw.unreliable()]
    network, server, client = connected_pair(make_protocol(channels=channels))
    server.set_budget(2000, 2000)
    for tag in range(100):
        server.send_payload(server.clients[0], bytes(200), 0, tag=tag)
        server.send(server.clients[0], Chat(0, "x" * 100), 1, tag=1000 + tag, notify=True)
    at_server, at_client = advance(network, server, client, seconds=3)
    told = [tag for _, _, tag, _ in at_server.notifications]
    assert sorted(told) == [*range(100), *range(1000, 1100)], "each once"
    delivered = sum(delivered for *_, delivered in at_server.notifications)
    assert 0 < delivered == len(at_client.payloads) + len(at_client.messages) < 100


def test_a_value_that_a_newer_one_replaced_is_told_once() -> None:
    network, server, client = pair(tw.latest(keys=4), None)
    for tag in range(3):
        server.send(server.clients[0], Chat(0, ""), key=1, tag=tag, notify=True)
    at_server, at_client = advance(network, server, client, seconds=0.5)
    slot = server.clients[0].slot
    assert at_server.notifications == [(slot, 0, 0, False), (slot, 0, 1, False), (slot, 0, 2, True)]
    assert len(at_client.latest) == 1


def test_when_a_connection_ends_what_was_open_is_told_as_lost_before_its_event() -> None:
    network, server, client = pair(tw.reliable_ordered(), None)
    slot = server.clients[0].slot
    server.send(server.clients[0], Chat(0, "on its way"), tag=7, notify=True)
    client.send(Chat(0, "on its way"), tag=8, notify=True)
    server.flush()
    client.flush()
    server.disconnect(server.clients[0])
    inbox, last = server.receive(), server.receive()
    assert inbox.events == []
    assert [type(event) for event in last.events] == [tw.Disconnected]
    assert len(last.notifications.tag) == 0
    told = inbox.notifications
    assert [*zip(told.slot, told.tag, told.delivered, strict=True)] == [(slot, 7, False)]
    network.advance(0.1)
    inbox, last = client.receive(), client.receive()
    assert inbox.events == []
    assert [type(event) for event in last.events] == [tw.Disconnected]
    assert [*zip(inbox.notifications.tag, inbox.notifications.delivered, strict=True)] == [(8, False)]
    assert len(client.receive().notifications) == len(server.receive().notifications) == 0


def test_messages_and_payloads_keep_to_their_own_channels() -> None:
    _, server, client = connected_pair(make_protocol(channels=[tw.unreliable(), tw.channels.payload()]))
    with pytest.raises(tw.errors.ChannelError, match="channel 0"):
        client.send_payload(b"x", 0, tag=1)
    with pytest.raises(tw.errors.ChannelError, match="Chat on channel 1"):
        server.send(server.clients[0], Chat(0, ""), 1)
    with pytest.raises(tw.errors.ChannelError, match="channel must be 0 to 1, not 2"):
        client.send_payload(b"x", 2, tag=1)
    with pytest.raises(tw.errors.MessageTooLargeError, match="at most 65536 bytes, .* not 70000"):
        client.send_payload(bytes(70_000), 1, tag=1)


def test_notifications_tell_of_messages_that_asked() -> None:
    network, server, client = pair(tw.reliable_ordered(), None)
    server.send(server.clients[0], Chat(0, "told"), tag=7, notify=True)
    server.send(server.clients[0], Chat(0, "not told"), tag=8)
    at_server, _ = advance(network, server, client, seconds=0.5)
    assert at_server.notifications == [(server.clients[0].slot, 0, 7, True)]
    told = server.receive().notifications
    assert (len(told), list(told.tag)) == (0, [])


def test_columns_are_read_only_buffers_that_outlive_their_tick() -> None:
    network, server, client = pair(tw.reliable_ordered(), None)
    for tag in range(100):
        client.send(Chat(0, ""), tag=tag, notify=True)
    client.flush()
    kept = None
    for _ in range(30):
        network.advance(1 / 60)
        with server.tick(), client.tick() as inbox:
            if len(inbox.notifications):
                kept = inbox.notifications.tag
                delivered = inbox.notifications.delivered
    assert kept is not None
    assert (kept.format, kept.readonly, delivered.format) == ("I", True, "?")
    assert kept.tolist() == list(range(100))
    assert all(delivered)
    with pytest.raises(TypeError, match="read-only"):
        kept[0] = 1


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tw.channels.redundant(copies=0), "copies must be 1 to 255, not 0"),
        (lambda: tw.channels.redundant(copies=256), "copies must be 1 to 255, not 256"),
        (lambda: tw.latest(keys=0), "keys.*0"),
        (lambda: tw.latest(keys=65_537), "keys.*65537"),
        (lambda: tw.unreliable(weight=0), "weight.*0"),
        (lambda: tw.channels.payload(weight=1001), "weight.*1001"),
        (lambda: tw.sequenced(receive_queue=0), "receive_queue.*0"),
        (
            lambda: tw.reliable_unordered(early_copies=9, resend_time=None),
            "early_copies must be 1 to 8, not 9",
        ),
        (
            lambda: tw.reliable_ordered(early_copies=2, resend_time=0.1),
            "early_copies must be 1 with a fixed resend_time",
        ),
        (lambda: tw.reliable_ordered(resend_time=float("nan")), "resend_time"),
    ],
)
def test_settings_out_of_bounds_are_named(make: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(("name", "value"), [("key", -1), ("key", 2**32), ("tag", -1), ("tag", 2**64)])
def test_options_out_of_bounds_are_named_and_send_nothing(name: str, value: int) -> None:
    _, _, client = pair(tw.latest(), None)
    with pytest.raises(ValueError, match=f"{name} must be 0 to 4294967295, not {value}"):
        client.send(Chat(0, ""), **{name: value})
    assert client.stats.channels[0].queued == 0


def test_a_key_beyond_the_channel_is_named() -> None:
    _, server, client = pair(tw.latest(keys=5), None)
    with pytest.raises(tw.errors.ChannelError, match="Chat on channel 0: key must be 0 to 4, not 5"):
        client.send(Chat(0, ""), key=5)
    with pytest.raises(tw.errors.ChannelError, match="key must be 0 to 4, not 5"):
        server.broadcast(Chat(0, ""), key=5)


def test_channels_say_their_share() -> None:
    channel = tw.sequenced("positions", strict=True, weight=7)
    assert (channel.kind, channel.name, channel.strict, channel.weight) == ("sequenced", "positions", True, 7)
