"""Calls: functions that the other side runs, requests and their replies, in virtual time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from random import Random
from typing import Annotated, Any

import pytest
import tickwire as tw
from tickwire.testing import Conditions, Simulation

TOLD: list[Any] = []
BAD = Conditions(latency=0.05, jitter=0.02, loss=0.1, duplicate=0.05, reorder=0.05)


@tw.message(channel="orders")
class Note:
    number: tw.u16


@tw.call(tw.to_server, channel="orders")
def order(caller: tw.ClientHandle, number: tw.u16, loud: bool = False) -> None:
    TOLD.append((caller.id, number, loud))


@tw.call(tw.to_server, channel="orders", timeout=2)
def buy(caller: tw.ClientHandle, item: Annotated[str, tw.text(20)], *, count: tw.u8 = 1) -> tw.u16:
    if item == "trap":
        raise ValueError("the server's own text")
    if item == "wrong":
        return -1
    TOLD.append((caller.id, item, count))
    return 100 * count


@tw.call(tw.to_server, channel="state", rate=10, burst=5)
def shout(_caller: tw.ClientHandle, number: tw.u16) -> None:
    TOLD.append(number)


@tw.call(tw.to_server, channel="orders", rate=1, burst=3, abuse="disconnect")
def vote(_caller: tw.ClientHandle) -> None:
    TOLD.append("vote")


@tw.call(tw.to_client, channel="orders", timeout=2)
def ask(question: Annotated[str, tw.text(20)]) -> bool:
    TOLD.append(question)
    return question == "ready?"


@tw.call(tw.to_all, channel="orders")
def announce(text: Annotated[str, tw.text(20)]) -> None:
    TOLD.append(text)


PROTOCOL: tw.Protocol[Note] = tw.Protocol(
    7,
    [Note],
    [tw.sequenced("state"), tw.reliable_ordered("orders"), tw.latest("values", keys=4)],
    calls=[order, buy, shout, vote, ask, announce],
)
Setting = tuple[Simulation[Note], tw.Server[Note], tw.Client[Note]]


@pytest.fixture(autouse=True)
def nothing_told() -> Iterator[None]:
    TOLD.clear()
    yield
    TOLD.clear()


def connected(conditions: Conditions | None = None, **settings: Any) -> Setting:
    world = Simulation(PROTOCOL, seed=5, conditions=conditions)
    server, client = world.server(), world.client(**settings)
    world.run(1)
    assert client.connected
    return world, server, client


def test_a_call_runs_on_the_server_with_its_caller() -> None:
    world, server, client = connected()
    assert client.call(order, 3) is tw.SendResult.SENT
    assert client.call(order, number=4, loud=True)
    world.run(0.2)
    assert TOLD == [(1, 3, False), (1, 4, True)]
    assert server.counters["calls.run"] == 2


def test_calls_keep_their_order_over_bad_lines() -> None:
    world, _, client = connected(BAD)
    for number in range(100):
        client.call(order, number)
        world.run(1 / 60)
    world.run(3)
    assert [(1, number, False) for number in range(100)] == TOLD


def exchange(client: tw.Client[Note], world: Simulation[Note]) -> None:
    client.send(Note(1))
    client.call(order, 2)
    client.send(Note(3))
    client.call(order, 4)
    client.flush()
    world.network.advance(0.1)


def test_calls_stand_in_their_place_when_an_inbox_is_gone_through() -> None:
    world, server, client = connected()
    exchange(client, world)
    for _, what in server.receive():
        TOLD.append(what)
    assert [Note(1), (1, 2, False), Note(3), (1, 4, False)] == TOLD


def test_calls_stand_in_their_place_when_an_inbox_is_dispatched() -> None:
    world, server, client = connected()
    handlers = tw.messages.Handlers()
    handlers.on(Note)(lambda _, note: TOLD.append(note))
    exchange(client, world)
    inbox = server.receive()
    assert inbox.has_calls
    assert handlers.dispatch(inbox) == []
    assert not inbox.has_calls
    assert [Note(1), (1, 2, False), Note(3), (1, 4, False)] == TOLD


def editors(handle: Any = None) -> dict[str, Callable[[list[Any]], object]]:
    return {
        "nothing": lambda _: None,
        "delete the first": lambda messages: messages.pop(0),
        "delete the second": lambda messages: messages.pop(1),
        "turn round": lambda messages: messages.reverse(),
        "add a message": lambda messages: messages.insert(0, (handle, Note(9))),
        "clear": lambda messages: messages.clear(),
    }


@pytest.mark.parametrize("way", ["iterate", "dispatch"])
@pytest.mark.parametrize("edit", editors())
def test_calls_keep_their_place_when_the_game_edits_the_messages(way: str, edit: str) -> None:
    world, server, client = connected()
    for number in range(1, 7):
        if number % 2:
            client.send(Note(number))
        else:
            client.call(order, number)
    client.flush()
    world.network.advance(0.1)
    handlers = tw.messages.Handlers()
    handlers.on(Note)(lambda _client, note: TOLD.append(note))
    with server.tick() as inbox:
        editors(server.clients[0])[edit](inbox.messages)
        if way == "dispatch":
            handlers.dispatch(inbox)
        else:
            for _, what in inbox:
                TOLD.append(what)
    first, second, third = Note(1), Note(3), Note(5)
    calls = [(1, number, False) for number in (2, 4, 6)]
    assert {
        "nothing": [first, calls[0], second, calls[1], third, calls[2]],
        "delete the first": [calls[0], second, calls[1], third, calls[2]],
        "delete the second": [first, *calls[:2], third, calls[2]],
        "turn round": [*calls[:2], third, second, first, calls[2]],
        "add a message": [Note(9), first, calls[0], second, calls[1], third, calls[2]],
        "clear": calls,
    }[edit] == TOLD


def test_messages_alone_never_show_calls_and_the_flush_runs_them() -> None:
    world, server, client = connected()
    exchange(client, world)
    with server.tick() as inbox:
        assert [note for _, note in inbox.messages] == [Note(1), Note(3)]
        assert TOLD == []
    assert TOLD == [(1, 2, False), (1, 4, False)]
    assert inbox.run_calls() == 0


def test_calls_run_when_the_game_says_so() -> None:
    world, server, client = connected()
    exchange(client, world)
    inbox = server.receive()
    assert inbox.run_calls(0) == 0
    assert inbox.run_calls(1) == 1
    assert TOLD == [(1, 2, False)]
    assert inbox.run_calls() == 1


def test_what_a_tick_left_the_next_one_runs_first() -> None:
    world, server, client = connected()
    exchange(client, world)
    old = server.receive()
    server.receive()
    assert TOLD == [(1, 2, False), (1, 4, False)]
    assert old.run_calls() == 0


def test_a_body_that_raises_leaves_its_calls_to_the_next_tick() -> None:
    world, server, client = connected()
    exchange(client, world)
    with pytest.raises(ZeroDivisionError), server.tick():
        raise ZeroDivisionError
    assert TOLD == []
    with server.tick():
        assert TOLD == [(1, 2, False), (1, 4, False)]


def test_a_handler_may_tick_and_call_without_running_others() -> None:
    world, server, client = connected()
    exchange(client, world)

    def nested(caller: tw.ClientHandle, number: int, _loud: bool) -> None:
        TOLD.append(f"begin {number}")
        server.flush()
        assert server.call(caller, announce, "heard")
        TOLD.append(f"end {number}")

    server.implement(order, nested)
    server.receive().run_calls()
    assert TOLD == ["begin 2", "end 2", "begin 4", "end 4"]
    world.run(0.2)
    assert TOLD[4:] == ["heard", "heard"]


def test_a_request_gets_what_the_function_returns() -> None:
    world, _, client = connected(BAD)
    result = client.request(buy, "sword", count=2)
    assert not result.done
    with pytest.raises(tw.errors.CallPendingError, match="buy: no reply yet"):
        result.result()
    world.run(1)
    assert result.done
    assert result.result() == 200
    assert TOLD == [(1, "sword", 2)]


def test_requests_are_answered_once_each_over_bad_lines() -> None:
    world, server, client = connected(BAD)
    results = [client.request(buy, "arrow", count=n) for n in range(1, 60)]
    world.run(2)
    assert [result.result() for result in results] == [100 * n for n in range(1, 60)]
    assert client.counters["calls.late_replies"] == 0
    assert server.counters["calls.run"] == 59


def test_a_server_may_request_of_a_client() -> None:
    world, server, _ = connected()
    yes, no = (
        server.request(server.clients[0], ask, "ready?"),
        server.request(server.clients[0], ask, "sure?"),
    )
    world.run(0.5)
    assert (yes.result(), no.result()) == (True, False)


def test_an_exception_ends_the_call_alone(caplog: pytest.LogCaptureFixture) -> None:
    world, server, client = connected()
    with caplog.at_level(logging.ERROR, "tickwire"):
        trap, wrong = client.request(buy, "trap"), client.request(buy, "wrong")
        client.call(buy, "trap")
        fine = client.request(buy, "shield")
        world.run(0.5)
    assert client.connected
    assert fine.result() == 100
    for request in (trap, wrong):
        with pytest.raises(tw.errors.CallFailedError) as caught:
            request.result()
        assert (caught.value.name, caught.value.reason) == ("buy", "failed")
        assert "own text" not in str(caught.value)
    assert server.counters["calls.failed"] == 3
    assert "the call buy of client 1" in caplog.text
    assert "the server's own text" in caplog.text


def test_what_ends_programs_is_raised_and_the_others_wait() -> None:
    world, server, client = connected()

    def interrupt(_caller: tw.ClientHandle, number: int, _loud: bool) -> None:
        if number == 2:
            raise KeyboardInterrupt
        TOLD.append(number)

    server.implement(order, interrupt)
    exchange(client, world)
    inbox = server.receive()
    with pytest.raises(KeyboardInterrupt):
        inbox.run_calls()
    assert inbox.run_calls() == 1
    assert TOLD == [4]


def test_requests_time_out_in_virtual_time() -> None:
    world, server, client = connected()
    server.implement(buy, lambda *_, **__: 1)
    result = client.request(buy, "late")
    client.flush()
    for _ in range(19):
        world.network.advance(0.1)
        client.receive()
        client.flush()
    assert not result.done
    world.network.advance(0.2)
    client.receive()
    with pytest.raises(tw.errors.CallTimeoutError, match="buy: no reply in time"):
        result.result()
    assert isinstance(result.error, TimeoutError)
    assert client.counters["calls.timed_out"] == 1
    world.run(1)
    assert client.counters["calls.late_replies"] == 1


def test_cancelled_requests_take_no_reply() -> None:
    world, _, client = connected()
    result = client.request(buy, "sword")
    assert result.cancel()
    assert not result.cancel()
    world.run(0.5)
    with pytest.raises(tw.errors.CallCancelledError):
        result.result()
    assert client.counters["calls.late_replies"] == 1


def test_requests_fail_with_their_connection() -> None:
    world, server, client = connected()
    handle = server.clients[0]
    result, back = client.request(buy, "sword"), server.request(handle, ask, "ready?")
    server.disconnect(handle)
    world.network.advance(0.1)
    client.receive()
    server.receive()
    with pytest.raises(
        tw.errors.NotConnectedError, match=r"the connection ended before the reply came: the server ended"
    ):
        result.result()
    with pytest.raises(tw.errors.StaleClientError, match="the connection ended before the reply came"):
        back.result()


@pytest.mark.parametrize("way", ["close", "with"])
def test_requests_fail_when_this_side_closes(way: str) -> None:
    _, server, client = connected()
    result = client.request(buy, "sword")
    back = server.request(server.clients[0], ask, "ready?")
    if way == "close":
        client.close()
        server.close()
    else:
        with client, server:
            pass
    with pytest.raises(tw.errors.NotConnectedError, match="closed by this side"):
        result.result()
    with pytest.raises(tw.errors.StaleClientError):
        back.result()


def test_no_more_requests_wait_than_may() -> None:
    _, _, client = connected()
    results = [client.request(buy, "sword") for _ in range(257)]
    assert [result.done for result in results] == [False] * 256 + [True]
    with pytest.raises(tw.errors.ChannelFullError, match="256 requests wait"):
        results[-1].result()
    results[0].cancel()
    assert not client.request(buy, "sword").done


def test_too_many_calls_are_dropped_and_counted() -> None:
    world, server, client = connected()
    for number in range(300):
        client.call(shout, number)
        world.run(1 / 60)
    world.run(0.2)
    # Five at once, then ten a second for five seconds.
    assert 54 <= len(TOLD) <= 56
    assert server.counters["calls.limited"] + len(TOLD) == 300
    assert client.connected


def test_too_many_calls_are_a_violation_by_setting() -> None:
    world, server, client = connected()
    for _ in range(4):
        client.call(vote)
    world.run(0.5)
    assert TOLD == ["vote"] * 3  # what came before stands
    assert not client.connected
    assert server.counters["calls.limited"] == 1


def test_one_client_s_limit_is_not_another_s() -> None:
    world, _, client = connected()
    other = world.client()
    world.run(0.5)
    for each in (client, other):
        for _ in range(3):
            each.call(vote)
    world.run(0.5)
    assert TOLD == ["vote"] * 6


def test_calls_for_all_and_for_some() -> None:
    world, server, _ = connected()
    world.client()
    world.client()
    world.run(0.5)
    assert server.call_all(announce, "all") == []
    world.run(0.2)
    assert TOLD == ["all"] * 3
    assert server.call(server.clients[:2], announce, "some") == []
    room = server.room()
    room.add(server.clients[2])
    assert server.call(room, announce, "room") == []
    assert server.call(server.clients[0], announce, "one")
    world.run(0.2)
    assert sorted(TOLD[3:]) == ["one", "room", "some", "some"]
    gone = server.clients[0]
    server.disconnect(gone)
    assert server.call(gone, announce, "gone") is tw.SendResult.GONE
    assert server.call([gone], announce, "gone") == [gone]


def test_functions_are_replaced_by_endpoint() -> None:
    world, server, client = connected()
    server.implement(order, lambda _caller, number, _loud: TOLD.append(number))
    client.implement(ask, lambda question: question == "other?")
    client.call(order, 9)
    answer = server.request(server.clients[0], ask, "other?")
    world.run(0.5)
    assert TOLD == [9]
    assert answer.result()


def test_a_call_runs_here_as_a_plain_function() -> None:
    assert ask("ready?") is True
    assert ask.__name__ == "ask"
    assert repr(ask) == "<to_client call ask>"
    assert ask.direction is tw.to_client


def test_calls_are_part_of_the_protocol() -> None:
    fewer = tw.Protocol(7, [Note], PROTOCOL.channels, calls=[order, buy, shout, vote, ask])
    assert fewer.hash != PROTOCOL.hash
    again = tw.Protocol(7, PROTOCOL.messages, PROTOCOL.channels, calls=PROTOCOL.calls)
    assert again.hash == PROTOCOL.hash
    assert PROTOCOL.calls == [order, buy, shout, vote, ask, announce]
    world = Simulation(PROTOCOL, seed=1)
    server = world.server()
    other = tw.Client.connect(server.address, fewer, network=world.network)
    for _ in range(60):
        world.run(1 / 60)
        other.receive()
        other.flush()
    assert other.disconnect_reason in (tw.DisconnectReason.PROTOCOL_MISMATCH, tw.DisconnectReason.REFUSED)


def test_inspect_says_what_calls_cost() -> None:
    from tickwire._inspection import describe

    text = describe(PROTOCOL)
    assert "calls: 6, messages of their arguments" in text
    assert "order: 17 bits, at most 3 bytes, on orders, to_server" in text
    assert "buy_reply: 32 bits, at most 4 bytes, on orders" in text


def test_before_a_connection_nothing_is_called() -> None:
    world = Simulation(PROTOCOL, seed=1)
    world.server()
    client = world.client()
    assert client.call(order, 1) is tw.SendResult.NOT_CONNECTED
    result = client.request(buy, "sword")
    with pytest.raises(tw.errors.NotConnectedError):
        result.result()
    strict = world.client(debugging=tw.testing.Debugging(strict=True))
    with pytest.raises(tw.errors.NotConnectedError):
        strict.call(order, 1)
    with pytest.raises(tw.errors.NotConnectedError):
        strict.request(buy, "sword")
    client.close()
    with pytest.raises(tw.errors.ClosedError):
        client.call(order, 1)
    with pytest.raises(tw.errors.ClosedError):
        client.request(buy, "sword")


def test_a_client_that_reconnects_calls_and_keeps_its_functions() -> None:
    world = Simulation(PROTOCOL, seed=3)
    server = world.server()
    reconnect = tw.connections.Reconnect(first_delay=0.1, jitter=0)
    client = tw.Client.connect(
        server.address, PROTOCOL, network=world.network, client_id=77, reconnect=reconnect
    )
    client.implement(ask, lambda question: question == "again?")

    def run(seconds: float) -> None:
        for _ in range(round(seconds * 60)):
            world.run(1 / 60)
            client.receive()
            client.flush()

    run(0.5)
    first = client.request(buy, "sword")
    run(0.5)
    assert first.result() == 100
    server = world.restart(server)
    lost = client.request(buy, "sword")
    run(12)
    assert client.connected
    assert isinstance(lost.error, tw.errors.NotConnectedError | tw.errors.CallTimeoutError)
    answer = server.request(server.clients[0], ask, "again?")
    assert client.call(order, 5)
    run(0.5)
    assert answer.result()
    assert TOLD[-1] == (77, 5, False)
    client.close()


def test_a_client_that_makes_calls_of_clients_is_disconnected() -> None:
    world, server, client = connected()
    client.send(ask._declared.message("ready?"), "orders")  # type: ignore[arg-type]
    world.run(0.2)
    assert TOLD == []
    assert client.disconnect_reason is tw.DisconnectReason.PROTOCOL_VIOLATION
    assert server.clients == []


def test_replies_to_no_request_are_counted_and_dropped() -> None:
    world, server, client = connected()
    asked = server.request(server.clients[0], ask, "ready?")
    server.flush()
    assert ask._declared.reply is not None
    assert buy._declared.reply is not None
    for number in (0, 2, 65_535):
        client.send(ask._declared.reply(number, True), "orders")
    # Of the right number, and of another call.
    client.send(buy._declared.reply(1, 5), "orders")
    client.flush()
    world.network.advance(0.1)
    server.receive()
    assert server.counters["calls.late_replies"] == 4
    assert not asked.done
    world.run(0.2)
    assert asked.result() is True
    # A second one of the same request.
    client.send(ask._declared.reply(1, False), "orders")
    world.run(0.2)
    assert asked.result() is True
    assert server.counters["calls.late_replies"] == 5


def test_random_replies_and_calls_hurt_nobody() -> None:
    random = Random(7)
    world, server, client = connected(BAD)
    replies = [each._declared.reply for each in (ask, buy)]
    for _ in range(300):
        client.send(
            random.choice(replies)(random.randrange(65_536), value=True),
            "orders",
        )
        client.call(shout, random.randrange(65_536))
        world.run(1 / 60)
    world.run(1)
    assert client.connected
    assert server.counters["calls.late_replies"] == 300


def test_the_highest_rate_needs_no_burst() -> None:
    @tw.call(tw.to_server, rate=1e6)
    def spray(_caller: tw.ClientHandle) -> None: ...

    tw.Protocol(9, [], [tw.reliable_ordered("orders")], calls=[spray])


def test_an_unknown_message_names_only_the_game_s_own() -> None:
    _, server, _ = connected()
    with pytest.raises(tw.errors.UnregisteredMessageError) as refused:
        server.broadcast([])
    assert "reply" not in str(refused.value)
    assert "tickwire_" not in str(refused.value)
