"""The hooks: priority and admission, and the effects of their mistakes."""

from __future__ import annotations

import array
import gc
import math
import re
import sys
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import tickwire as tw
from conftest import Chat, Move, make_protocol
from tickwire.testing import advance, connected_pair

PROTOCOL = make_protocol(
    channels=[tw.reliable_ordered(), tw.unreliable(), tw.latest(keys=100), tw.channels.payload()],
)


def a_pair(**hooks: Any) -> tuple[tw.testing.SimulatedNetwork, tw.Server, tw.Client]:
    """A connected pair whose server has these hooks."""
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", PROTOCOL, network=network, **hooks)
    client = tw.Client.connect("10.0.0.1:5", PROTOCOL, network=network)
    advance(network, server, client, seconds=0.5)
    return network, server, client


def scores(values: Iterable[float]) -> array.array[float]:
    return array.array("f", values)


def order_of_arrival(network: tw.testing.SimulatedNetwork, client: tw.Client) -> list[int]:
    network.advance(0.1)
    return [message.tick for message in client.receive().messages]


# --- priority ---


def test_a_higher_score_goes_first() -> None:
    asked: list[tw.columns.Candidates] = []

    def by_tag(candidates: tw.columns.Candidates) -> array.array[float]:
        asked.append(candidates)
        return scores(candidates.tag)

    network, server, client = a_pair(tuning=tw.Tuning(priority=by_tag))
    for tick in range(50):
        server.send(server.clients[0], Move(tick, 0, 0.0), 1, tag=tick)
    server.flush()
    assert order_of_arrival(network, client) == list(range(49, -1, -1))
    assert len(asked) == 1, "once per flush, and not when nothing waits"


def test_under_a_small_budget_only_the_highest_scores_go() -> None:
    network, server, client = a_pair(tuning=tw.Tuning(priority=lambda candidates: scores(candidates.tag)))
    server.set_budget(1000.0, 1000.0)
    for tick in range(1000):
        server.send(server.clients[0], Move(tick, 0, 0.0), 1, tag=tick)
    server.flush()
    got = order_of_arrival(network, client)
    assert got == list(range(999, 999 - len(got), -1))
    assert 0 < len(got) < 1000


def test_candidates_are_columns_of_what_waits_and_has_no_order() -> None:
    seen: list[dict[str, list[Any]]] = []
    names = ["slot", "channel", "message_type", "age", "size", "key", "resends", "tag"]

    def look(candidates: tw.columns.Candidates) -> None:
        columns = {name: getattr(candidates, name) for name in names}
        assert [column.format for column in columns.values()] == list("IBHfIIII")
        assert all(column.readonly and len(column) == len(candidates) for column in columns.values())
        seen.append({name: column.tolist() for name, column in columns.items()})

    network, server, _ = a_pair(tuning=tw.Tuning(priority=look))
    player = server.clients[0]
    server.send(player, Chat(0, "in order"), 0, tag=1)
    server.send(player, Move(1, 0, 0.0), 1, tag=2)
    server.send(player, Chat(0, "hello"), 2, key=42, tag=3)
    server.send_payload(player, b"12345", 3, tag=4)
    network.advance(0.25)
    server.flush()
    (columns,) = seen
    assert columns["slot"] == [player.slot] * 3
    assert columns["channel"] == [1, 2, 3]
    assert columns["message_type"] == [0, 1, 0]
    assert columns["age"] == [0.25] * 3
    assert columns["key"] == [0, 42, 0]
    assert columns["resends"] == [0, 0, 0]
    assert columns["tag"] == [2, 3, 4]
    assert columns["size"][2] == 5


def test_a_client_has_the_hook_too() -> None:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", PROTOCOL, network=network)
    client = tw.Client.connect(
        "10.0.0.1:5",
        PROTOCOL,
        network=network,
        tuning=tw.Tuning(priority=lambda candidates: scores(candidates.tag)),
    )
    advance(network, server, client, seconds=0.5)
    for tick in range(10):
        client.send(Move(tick, 0, 0.0), 1, tag=tick)
    client.flush()
    network.advance(0.1)
    assert [message.tick for _, message in server.receive().messages] == list(range(9, -1, -1))


def raise_it(_: tw.columns.Candidates) -> Any:
    raise KeyError("the hook's own")


@pytest.mark.parametrize(
    ("hook", "error", "said"),
    [
        (raise_it, KeyError, "the hook's own"),
        (
            lambda _: scores([1.0]),
            ValueError,
            "the priority hook must return 5 scores, one for each candidate, not 1",
        ),
        (lambda c: scores([0.0] * (len(c) + 1)), ValueError, "must return 5 scores.*not 6"),
        (lambda _: scores([0.0, 1.0, math.nan, 2.0, 3.0]), ValueError, "score 2 is NaN"),
        (lambda c: array.array("d", [0.0] * len(c)), TypeError, "float32.*not one of format 'd'"),
        (lambda c: array.array("i", [0] * len(c)), TypeError, "float32"),
        (lambda c: [0.0] * len(c), TypeError, "not list"),
        (lambda _: memoryview(bytes(20)).cast("f", (1, 5)), ValueError, "1 dimension, not 2"),
    ],
)
def test_a_hook_s_mistake_reaches_the_caller_and_the_packets_go_out(
    hook: Callable[[tw.columns.Candidates], Any], error: type[Exception], said: str
) -> None:
    network, server, client = a_pair(tuning=tw.Tuning(priority=hook))
    for tick in range(5):
        server.send(server.clients[0], Move(tick, 0, 0.0), 1)
    with pytest.raises(error, match=said):
        server.flush()
    assert order_of_arrival(network, client) == list(range(5)), "in the order they have without it"
    server.flush()
    assert server.stats(server.clients[0]).channels[1].dropped == 0


def test_a_hook_s_exception_leaves_the_with_block_chained_to_the_body_s() -> None:
    _, server, _ = a_pair(tuning=tw.Tuning(priority=raise_it))
    with pytest.raises(KeyError, match="the hook's own"), server.tick():
        server.send(server.clients[0], Move(1, 0, 0.0), 1)
    server.send(server.clients[0], Move(1, 0, 0.0), 1)
    with pytest.raises(KeyError) as caught, server.tick():
        raise IndexError("the body's own")
    assert isinstance(caught.value.__context__, IndexError)


def test_a_hook_that_sends_gets_no_say() -> None:
    def busy(candidates: tw.columns.Candidates) -> array.array[float]:
        by_tag = scores(candidates.tag)
        server.send(server.clients[0], Move(77, 0, 0.0), 1)
        return by_tag

    network, server, client = a_pair(tuning=tw.Tuning(priority=busy))
    for tick in range(3):
        server.send(server.clients[0], Move(tick, 0, 0.0), 1, tag=tick)
    with pytest.raises(RuntimeError, match="the hook must not send or receive"):
        server.flush()
    assert order_of_arrival(network, client) == [0, 1, 2, 77]


def test_a_hook_that_flushes_is_told() -> None:
    def again(_: tw.columns.Candidates) -> None:
        with pytest.raises(RuntimeError, match="while the priority hook runs"):
            server.flush()

    network, server, client = a_pair(tuning=tw.Tuning(priority=again))
    server.send(server.clients[0], Move(1, 0, 0.0), 1)
    server.flush()
    assert order_of_arrival(network, client) == [1]


def test_a_hook_that_closes_the_server_is_harmless() -> None:
    _, server, _ = a_pair(tuning=tw.Tuning(priority=lambda _: server.close()))
    server.send(server.clients[0], Move(1, 0, 0.0), 1)
    with pytest.raises(tw.errors.ClosedError):
        server.flush()
    with pytest.raises(tw.errors.ClosedError):
        server.receive()


def test_candidates_that_are_kept_stay_as_they_were() -> None:
    kept: list[memoryview[int]] = []
    _, server, _ = a_pair(tuning=tw.Tuning(priority=lambda candidates: kept.append(candidates.tag)))
    for tag in (1, 2):
        server.send(server.clients[0], Move(1, 0, 0.0), 1, tag=tag)
        server.flush()
    assert [column.tolist() for column in kept] == [[1], [2]]


def test_candidates_are_read_while_the_hook_runs() -> None:
    kept: list[tw.columns.Candidates] = []

    def keep(candidates: tw.columns.Candidates) -> None:
        kept.append(candidates)
        assert candidates.tag.tolist() == [7]

    _, server, _ = a_pair(tuning=tw.Tuning(priority=keep))
    server.send(server.clients[0], Move(1, 0, 0.0), 1, tag=7)
    server.flush()
    assert (len(kept[0]), kept[0].tag.tolist()) == (1, [7])
    with pytest.raises(RuntimeError, match="read their columns while the hook runs"):
        _ = kept[0].age


def test_a_column_read_after_something_was_sent_is_refused() -> None:
    def busy(candidates: tw.columns.Candidates) -> None:
        server.send(server.clients[0], Move(77, 0, 0.0), 1)
        with pytest.raises(RuntimeError, match="before anything is sent or received"):
            _ = candidates.tag

    network, server, client = a_pair(tuning=tw.Tuning(priority=busy))
    server.send(server.clients[0], Move(1, 0, 0.0), 1)
    server.flush()
    assert order_of_arrival(network, client) == [1, 77]


def test_a_hook_s_exception_does_not_hide_that_receiving_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken(tw.messages.MessageFactory):
        def create(self, cls: type[Any]) -> Any:
            raise GeneratorExit(f"no more {cls.__name__}")

    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    network, server, client = a_pair(tuning=tw.Tuning(priority=raise_it, factory=Broken()))
    client.send(Chat(0, "hello"))
    client.flush()
    network.advance(0.1)
    server.send(server.clients[0], Move(5, 0, 0.0), 1)
    with pytest.raises(GeneratorExit, match="no more Chat"), server.tick():
        pass
    assert [type(told.exc_value) for told in unraisable] == [KeyError]
    assert order_of_arrival(network, client) == [5]


def test_a_server_and_a_game_that_is_its_hook_are_collected() -> None:
    class Game:
        def __init__(self) -> None:
            self.server = tw.Server(
                "10.0.0.1:5",
                PROTOCOL,
                network=tw.testing.SimulatedNetwork(),
                tuning=tw.Tuning(priority=self.score),
                access=tw.tokens.Access(admission=self.admit),
            )

        def score(self, _: tw.columns.Candidates) -> None: ...

        def admit(self, _: list[tw.ClientHandle]) -> None: ...

    game = weakref.ref(Game())
    gc.collect()
    assert game() is None


@pytest.mark.parametrize(("settings", "name"), [(tw.Tuning, "priority"), (tw.tokens.Access, "admission")])
def test_a_hook_must_be_callable(settings: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be callable or None, not int"):
        settings(**{name: 5})


def test_a_hook_may_look_at_its_server() -> None:
    def look(candidates: tw.columns.Candidates) -> array.array[float]:
        (player,) = server.clients
        assert player.slot == candidates.slot[0]
        return scores([server.stats(player).rtt_ms, server.channel_stats.queued[1]])

    network, server, client = a_pair(tuning=tw.Tuning(priority=look))
    for tick in range(2):
        server.send(server.clients[0], Move(tick, 0, 0.0), 1)
    server.flush()
    assert sorted(order_of_arrival(network, client)) == [0, 1]


# --- admission ---


def join(
    server: tw.Server, network: tw.testing.SimulatedNetwork, *ids: int
) -> tuple[list[tw.Client], list[Any]]:
    """Clients of these ids that dial the server, and the events it saw meanwhile."""
    clients = [tw.Client.connect("10.0.0.1:5", PROTOCOL, client_id=id_, network=network) for id_ in ids]
    at_server, *_ = advance(network, server, *clients, seconds=1)
    return clients, at_server.events


@pytest.mark.parametrize("by", ["handle", "id"])
def test_admission_refuses_before_the_game_hears_of_them(by: str) -> None:
    asked: list[tw.ClientHandle] = []

    def admit(newcomers: list[tw.ClientHandle]) -> list[tw.ClientHandle | int]:
        asked.extend(newcomers)
        return [new if by == "handle" else new.id for new in newcomers if new.id % 2]

    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", PROTOCOL, network=network, access=tw.tokens.Access(admission=admit))
    clients, events = join(server, network, 1, 2, 3, 4)
    assert sorted(new.id for new in asked) == [1, 2, 3, 4]
    assert sorted(event.client.id for event in events) == [2, 4]
    assert all(isinstance(event, tw.Connected) for event in events)
    assert sorted(client.id for client in server.clients) == [2, 4]
    reasons = [client.disconnect_reason for client in clients]
    kicked = tw.DisconnectReason.KICKED
    assert reasons == [kicked, None, kicked, None]


@pytest.mark.parametrize("by", ["handle", "id"])
def test_admission_may_say_why(by: str) -> None:
    def admit(newcomers: list[tw.ClientHandle]) -> dict[tw.ClientHandle | int, str | None]:
        words = {7: "banned until Friday", 8: None}
        refused = [newcomer for newcomer in newcomers if newcomer.id in words]
        return {one if by == "handle" else one.id: words[one.id] for one in refused}

    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", PROTOCOL, network=network, access=tw.tokens.Access(admission=admit))
    clients = [tw.Client.connect("10.0.0.1:5", PROTOCOL, network=network, client_id=n) for n in (7, 8, 9)]
    advance(network, server, *clients, seconds=1)
    kicked = tw.DisconnectReason.KICKED
    told = [(client.disconnect_reason, client.disconnect_detail) for client in clients]
    assert told == [(kicked, "banned until Friday"), (kicked, None), (None, None)]
    assert [handle.id for handle in server.clients] == [9]


def test_admission_may_answer_with_a_list_of_banned_ids() -> None:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server(
        "10.0.0.1:5", PROTOCOL, network=network, access=tw.tokens.Access(admission=lambda _: {7, 8, 9})
    )
    _, events = join(server, network, 6, 7)
    assert [event.client.id for event in events] == [6]


def test_what_the_refused_sent_is_dropped() -> None:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server(
        "10.0.0.1:5",
        PROTOCOL,
        network=network,
        access=tw.tokens.Access(admission=lambda newcomers: newcomers),
    )
    client = tw.Client.connect("10.0.0.1:5", PROTOCOL, network=network)
    while not client.connected:
        # Connected without the game's knowing: the server doesn't receive.
        server.pump()
        client.pump()
        network.advance(1 / 60)
    client.send(Chat(0, "let me in"))
    client.flush()
    network.advance(1 / 60)
    assert server.broadcast(Chat(0, "all")) == []
    inbox = server.receive()
    assert (inbox.events, inbox.messages, server.clients) == ([], [], [])


def refuse_badly(_: list[tw.ClientHandle]) -> Any:
    raise KeyError("the hook's own")


@pytest.mark.parametrize(
    ("hook", "error", "said"),
    [
        (refuse_badly, KeyError, "the hook's own"),
        (lambda _: 5, TypeError, "the admission hook must return.*not int"),
        (lambda new: {new[0]: 5}, TypeError, "the admission hook's mapping must have a text or None"),
        (lambda new: {new[0]: ""}, ValueError, "reason must be 1 to 128 bytes in UTF-8, not 0"),
        (lambda _: ["somebody"], TypeError, "not str"),
    ],
)
def test_without_a_proper_answer_nobody_gets_in(
    hook: Callable[..., Any], error: type[Exception], said: str
) -> None:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", PROTOCOL, network=network, access=tw.tokens.Access(admission=hook))
    client = tw.Client.connect("10.0.0.1:5", PROTOCOL, network=network)
    with pytest.raises(error, match=said):
        advance(network, server, client, seconds=1)
    assert server.clients == []
    at_server, _ = advance(network, server, client, seconds=1)
    assert at_server.events == []
    assert client.disconnect_reason is tw.DisconnectReason.KICKED


def test_a_refused_player_s_place_is_free_at_once_and_the_goodbyes_are_few() -> None:
    network = tw.testing.SimulatedNetwork()
    admit: list[bool] = []
    server = tw.Server(
        "10.0.0.1:5",
        PROTOCOL,
        network=network,
        max_clients=1,
        access=tw.tokens.Access(admission=lambda newcomers: None if admit else newcomers),
    )
    refused = tw.Client.connect("10.0.0.1:5", PROTOCOL, network=network)
    advance(network, server, refused, seconds=0.1)
    admit.append(True)
    welcome = tw.Client.connect("10.0.0.1:5", PROTOCOL, network=network)
    advance(network, server, welcome, seconds=0.1)
    assert welcome.connected
    advance(network, server, refused, welcome, seconds=1)
    assert refused.disconnect_reason is tw.DisconnectReason.KICKED
    assert refused.counters["packets.received"] <= 10


# --- what hooks take ---


def test_the_logger_is_told_of_slow_hooks_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    # Whatever a hook does takes longer than no time.
    network, server, client = a_pair(
        tuning=tw.Tuning(priority=lambda _: None),
        access=tw.tokens.Access(admission=lambda _: None),
        debugging=tw.testing.Debugging(slow_hook=0.0),
    )
    caplog.clear()
    before = server.counters
    for tick in range(3):
        server.send(server.clients[0], Move(tick, 0, 0.0), 1)
        server.flush()
    assert order_of_arrival(network, client) == [0, 1, 2], "the tick waited"
    after = server.counters
    grown = {name: after[name] - before[name] for name in after if name.startswith("hooks.")}
    assert (grown["hooks.calls"], grown["hooks.slow"]) == (3, 3)
    told = [record.getMessage() for record in caplog.records if "hook" in record.getMessage()]
    assert len(told) <= 1, "the admission hook was told of just now"


def test_a_slow_hook_s_time_is_counted_and_told(caplog: pytest.LogCaptureFixture) -> None:
    _, server, _ = a_pair(tuning=tw.Tuning(priority=lambda _: time.sleep(0.01)))
    server.send(server.clients[0], Move(1, 0, 0.0), 1)
    server.flush()
    (record,) = [record for record in caplog.records if "slow_hook" in record.getMessage()]
    assert record.levelname == "WARNING"
    said = r"the priority hook of the server at 10.0.0.1:5 took [\d.]+ ms, more than slow_hook's 5.0 ms: .*"
    assert re.fullmatch(said, record.getMessage())
    assert server.counters["hooks.microseconds"] >= 10_000
    assert (server.counters["hooks.calls"], server.counters["hooks.slow"]) == (1, 1)


def test_nobody_is_told_of_hooks_that_may_take_forever(caplog: pytest.LogCaptureFixture) -> None:
    _, server, _ = a_pair(
        tuning=tw.Tuning(priority=lambda _: time.sleep(0.01)),
        debugging=tw.testing.Debugging(slow_hook=math.inf),
    )
    server.send(server.clients[0], Move(1, 0, 0.0), 1)
    server.flush()
    assert not [record for record in caplog.records if "slow_hook" in record.getMessage()]
    assert (server.counters["hooks.calls"], server.counters["hooks.slow"]) == (1, 0)


@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_the_bound_of_slow_hooks_is_checked(bad: float) -> None:
    with pytest.raises(ValueError, match="slow_hook must be 0 or more seconds, not"):
        a_pair(debugging=tw.testing.Debugging(slow_hook=bad))


# --- budget and statistics ---


def test_a_budget_is_set_for_all_or_one_and_shown() -> None:
    _, server, client = connected_pair(PROTOCOL)
    player = server.clients[0]
    assert server.stats(player).budget_bytes_per_second == 1_250_000
    server.set_budget(5000, 2000)
    stats = server.stats(player)
    assert (stats.budget_bytes_per_second, stats.budget_burst_bytes) == (5000, 2000)
    server.set_budget(9000.5, 2000, player)
    assert server.stats(player).budget_bytes_per_second == 9000.5
    client.set_budget(7000, 3000)
    assert client.stats.budget_bytes_per_second == 7000


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf])
@pytest.mark.parametrize("name", ["bytes_per_second", "burst_bytes"])
def test_a_budget_out_of_bounds_is_named_and_changes_nothing(name: str, bad: float) -> None:
    _, server, client = connected_pair(PROTOCOL)
    numbers = {"bytes_per_second": 1000.0, "burst_bytes": 1000.0, name: bad}
    for endpoint in (server, client):
        with pytest.raises(ValueError, match=f"(?i){name} must be above 0 and finite, not {bad}"):
            endpoint.set_budget(**numbers)
    assert server.stats(server.clients[0]).budget_bytes_per_second == 1_250_000


def test_a_budget_for_a_player_who_left_is_harmless() -> None:
    network, server, client = connected_pair(PROTOCOL)
    player = server.clients[0]
    client.close()
    advance(network, server, seconds=0.1)
    assert server.set_budget(1000, 1000, player) is False
    assert server.set_budget(1000, 1000) is True


def test_channel_stats_are_columns_over_all_connections() -> None:
    network, server, client = connected_pair(PROTOCOL)
    other = tw.Client.connect(server.address, PROTOCOL, network=network)
    advance(network, server, client, other, seconds=0.5)
    for player in server.clients:
        for _ in range(1 + player.slot):
            server.send(player, Chat(0, "hello"), 0)
    advance(network, server, client, other, seconds=0.5)
    snapshot = server.channel_stats
    assert len(snapshot) == 2 * 4
    assert snapshot.slot.tolist() == [0] * 4 + [1] * 4
    assert snapshot.channel.tolist() == [0, 1, 2, 3] * 2
    assert snapshot.delivered.tolist() == [1, 0, 0, 0, 2, 0, 0, 0]
    for player in server.clients:
        stats = server.stats(player).channels[0]
        row = player.slot * 4
        for name in ("queued", "sent", "resent", "delivered", "lost", "received", "dropped", "bytes_sent"):
            assert getattr(snapshot, name)[row] == getattr(stats, name), name
        assert snapshot.latency_ms[row] == pytest.approx(stats.latency_ms)
        assert stats.latency_ms > 0
        assert stats.bytes_sent > 0


def test_loss_is_told_in_both_directions() -> None:
    _, server, client = connected_pair(PROTOCOL)
    assert client.stats.packet_loss_received_percent == 0
    assert server.stats(server.clients[0]).channels[0].missed == 0
