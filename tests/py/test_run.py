"""tw.run and aio.run: how they tick, and how they end. What signals do to programs: test_visitors.py."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any, assert_type

import pytest
import tickwire as tw
from conftest import Chat, Move
from tickwire import aio
from tickwire._run import Arrivals
from tickwire.testing import connected_pair

REASON = tw.DisconnectReason
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
FAST = 500


@pytest.fixture
def pair(protocol: tw.Protocol) -> Iterator[tuple[tw.Server, tw.Client]]:
    """Connected over sockets; the client's thread keeps it going."""
    with tw.Server("127.0.0.1:0", protocol) as server:
        client = tw.Client.connect(server.address, protocol, tuning=tw.Tuning(driver="thread"))
        with client:
            while not (client.connected and server.clients):
                with server.tick():
                    pass
            yield server, client


def received(client: tw.Client) -> tuple[list[object], REASON | None]:
    """A client's messages until its end."""
    messages: list[object] = []
    with tw.run(client, FAST) as ticks:
        for _, inbox in ticks:
            messages += inbox.messages
    return messages, client.disconnect_reason


def start(protocol: tw.Protocol) -> tw.Server:
    return tw.Server("127.0.0.1:0", protocol)


def run_async(main: Any) -> Any:
    return asyncio.run(asyncio.wait_for(main, 30))


# --- the pace ---


class Clock:
    """A clock that only sleeping and work move."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock.perf_counter)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    monkeypatch.setattr(Arrivals, "sleep", lambda _, longest: clock.sleep(longest))
    return clock


def paced(
    clock: Clock, server: tw.Server, rate: float | None, count: int, slow: int = -1
) -> list[tuple[int, float]]:
    """The number and the time of each tick, of which one is slow."""
    seen: list[tuple[int, float]] = []
    with tw.run(server, rate) as ticks:
        for tick, _ in ticks:
            seen.append((tick, round(clock.now - 100, 6)))
            clock.now += 0.35 if tick == slow else 0.003
            if len(seen) == count:
                break
    return seen


def test_ticks_come_at_their_rate_without_drift(clock: Clock, protocol: tw.Protocol) -> None:
    seen = paced(clock, start(protocol), 40, 120)
    assert [tick for tick, _ in seen] == list(range(120))
    assert all(abs(at - tick / 40) < 1e-6 for tick, at in seen)


def test_missed_ticks_are_skipped_not_bunched(clock: Clock, protocol: tw.Protocol) -> None:
    seen = paced(clock, start(protocol), 10, 8, slow=2)
    assert [tick for tick, _ in seen] == [0, 1, 2, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("tick_rate", "rate", "seconds"), [(20, None, 1.0), (None, None, 1 / 3), (20, 40, 0.5)]
)
def test_the_rate_is_the_protocols_unless_it_is_given(
    clock: Clock, tick_rate: int | None, rate: float | None, seconds: float
) -> None:
    seen = paced(clock, start(tw.Protocol(1, [Move], tick_rate=tick_rate)), rate, 21)
    assert seen[-1] == (20, pytest.approx(seconds))


def test_an_empty_server_ticks_at_its_lower_rate_and_skips_numbers(
    clock: Clock, protocol: tw.Protocol
) -> None:
    seen: list[tuple[int, float]] = []
    with tw.run(start(protocol), 30, empty_rate=2) as ticks:
        for tick, _ in ticks:
            seen.append((tick, round(clock.now - 100, 6)))
            if len(seen) == 4:
                break
    assert seen == [(0, 0.0), (15, 0.5), (30, 1.0), (45, 1.5)]


def test_a_client_ends_the_rest_of_an_empty_server(protocol: tw.Protocol) -> None:
    with tw.Server("127.0.0.1:0", protocol) as server:
        began = time.monotonic()
        tuning = tw.Tuning(driver="thread")
        with (
            tw.Client.connect(server.address, protocol, tuning=tuning),
            tw.run(server, 30, empty_rate=0.1) as ticks,
        ):
            connected_at = next(
                tick for tick, inbox in ticks if any(isinstance(what, tw.Connected) for _, what in inbox)
            )
            next_tick = next(ticks)[0]
    assert time.monotonic() - began < 5, "a rest takes ten seconds"
    assert 1 <= next_tick - connected_at <= 10, "with a client it ticks at its own rate"


@pytest.mark.skipif(sys.platform == "win32", reason="select of Windows takes every number")
def test_between_ticks_it_acks_with_more_descriptors_than_select_takes(
    monkeypatch: pytest.MonkeyPatch, protocol: tw.Protocol
) -> None:
    monkeypatch.setattr("tickwire._run.MAX_SELECTED", 0)
    with tw.Server("127.0.0.1:0", protocol) as server:
        tuning = tw.Tuning(driver="thread")
        with (
            tw.Client.connect(server.address, protocol, tuning=tuning),
            tw.run(server, 30, empty_rate=0.1) as ticks,
        ):
            for _, inbox in ticks:
                if any(isinstance(what, tw.Connected) for _, what in inbox):
                    break


def test_between_ticks_it_acks_what_arrives(pair: tuple[tw.Server, tw.Client]) -> None:
    server, client = pair
    with tw.run(server, 1) as ticks:
        next(ticks)
        client.send(Chat(0, "hello"), 0)
        client.flush()
        began = time.monotonic()
        stopping = threading.Thread(target=stop_once_delivered, args=(client, server))
        stopping.start()
        for _ in ticks:
            pass
    stopping.join()
    assert time.monotonic() - began < 0.8, "its next tick is a second after the first"


def stop_once_delivered(client: tw.Client, server: tw.Server) -> None:
    while client.stats.channels[0].queued:
        time.sleep(0.005)
    server.close()


def test_in_a_coroutine_it_warns_of_stopping_the_event_loop(protocol: tw.Protocol) -> None:
    async def play() -> None:
        with pytest.warns(RuntimeWarning, match=r"use tickwire\.aio\.run"), tw.run(start(protocol)):
            pass

    asyncio.run(play())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tw.run(start(protocol)):
            pass


def test_it_must_be_entered(protocol: tw.Protocol) -> None:
    server = start(protocol)
    with pytest.raises(TypeError, match="with tw.run"):
        iter(tw.run(server))  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="async with tw.aio.run"):
        aiter(aio.run(server))  # type: ignore[type-var]
    assert not server.closed
    server.close()


def test_types_of_messages_reach_the_loop() -> None:
    """For type checkers: each line is an error if the inbox holds Any or another class."""
    protocol: tw.Protocol[Chat] = tw.Protocol(1, [Chat])

    async def game(client: tw.Client[Chat], server: tw.Server[Chat]) -> None:
        with tw.run(client) as ticks:
            for tick, inbox in ticks:
                assert_type(tick, int)
                assert_type(inbox.messages, list[Chat])
        async with aio.run(server) as async_ticks:
            async for _, at_server in async_ticks:
                assert_type(at_server.messages, list[tuple[tw.ClientHandle, Chat]])

    assert game is not None
    assert protocol is not None


# --- the end ---


def test_what_the_body_queues_is_sent_and_the_loop_ends_with_the_connection(
    pair: tuple[tw.Server, tw.Client],
) -> None:
    server, client = pair
    with tw.run(server, FAST) as ticks:
        for number, _ in enumerate(ticks):
            server.broadcast(Move(number))
            if number == 4:
                server.close(linger=5)  # of the game's own
    assert server.closed
    messages, reason = received(client)
    assert [message.tick for message in messages if isinstance(message, Move)] == [0, 1, 2, 3, 4]
    assert reason is REASON.SERVER_CLOSED
    assert client.closed


def test_a_body_that_leaves_the_block_closes_the_endpoint(pair: tuple[tw.Server, tw.Client]) -> None:
    server, client = pair
    with tw.run(server, FAST, linger=5, reason="enough") as ticks:
        for _ in ticks:
            server.broadcast(Move(7))
            break
    assert server.closed
    messages, reason = received(client)
    assert messages == [Move(7)]
    assert (reason, client.disconnect_detail) == (REASON.SERVER_CLOSED, "enough")


@pytest.mark.parametrize("caught", [False, True])
def test_what_the_body_raises_comes_after_the_goodbye(
    pair: tuple[tw.Server, tw.Client], caught: bool
) -> None:
    before = signal.getsignal(signal.SIGINT)
    server, client = pair
    kept = tw.run(server, FAST, linger=5, reason="good game")
    with pytest.raises(ZeroDivisionError), kept as ticks:  # noqa: PT012
        for tick, _ in ticks:
            server.broadcast(Move(tick))
            if caught and not tick:
                continue
            print(1 / 0)
    assert server.closed
    assert signal.getsignal(signal.SIGINT) is before
    messages, reason = received(client)
    assert messages[-1] == Move(int(caught)), "queued by the body that raised"
    assert reason is REASON.SERVER_CLOSED
    assert not client.disconnect_detail, "the reason is of a planned end"


@pytest.mark.parametrize("error", [LookupError, SystemExit, KeyboardInterrupt])
def test_the_reason_is_not_sent_if_the_body_raises(
    pair: tuple[tw.Server, tw.Client], error: type[BaseException]
) -> None:
    server, client = pair
    with pytest.raises(error), tw.run(server, FAST, reason="good game") as ticks:  # noqa: PT012
        for _ in ticks:
            raise error
    assert received(client)[1] is REASON.SERVER_CLOSED
    assert not client.disconnect_detail


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_every_loop_and_is_as_before_then(
    protocol: tw.Protocol, number: signal.Signals
) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    server = start(protocol)
    client = tw.Client.connect(server.address, protocol)
    with tw.run(server, FAST) as at_server, tw.run(client, FAST) as at_client:
        for ticks, _ in enumerate(zip(at_server, at_client, strict=False)):
            assert ticks < 1000
            if ticks == 10:
                os.kill(os.getpid(), number)
    assert server.closed
    assert client.closed
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


@posix
def test_a_second_interrupt_is_one(protocol: tw.Protocol) -> None:
    server = start(protocol)
    with pytest.raises(KeyboardInterrupt), tw.run(server, FAST, linger=60) as ticks:  # noqa: PT012
        for _ in ticks:
            os.kill(os.getpid(), signal.SIGINT)  # asks it to end
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
    assert server.closed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@posix
def test_a_second_interrupt_is_one_for_a_program_with_the_systems_own_handler(protocol: tw.Protocol) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        server = start(protocol)
        with pytest.raises(KeyboardInterrupt), tw.run(server, FAST) as ticks:  # noqa: PT012
            for _ in ticks:
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)


@posix
def test_an_interrupt_ends_the_linger(protocol: tw.Protocol) -> None:
    server = start(protocol)
    # It never reads, so that the server has something to wait for.
    client = tw.Client.connect(server.address, protocol)
    pressed = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), tw.run(server, FAST, linger=60) as ticks:  # noqa: PT012
        for _ in ticks:
            with client.tick():
                pass
            if server.clients:
                break
        server.broadcast(Chat(1, "wait"))
        pressed.start()
    assert time.monotonic() - begun < 20
    assert server.closed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    client.close()


@posix
def test_ignored_signals_and_the_games_own_handlers_stay(protocol: tw.Protocol) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with tw.run(start(protocol), FAST) as ticks:
            for tick, _ in ticks:
                os.kill(os.getpid(), signal.SIGINT)
                if tick >= 5:
                    break
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.signal(signal.SIGINT, before)
        with tw.run(start(protocol)):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN, "the game's own"
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_no_signal_is_handled(protocol: tw.Protocol) -> None:
    before = signal.getsignal(signal.SIGTERM)
    server = start(protocol)
    seen: list[object] = []

    def serve() -> None:
        with tw.run(server, FAST) as ticks:
            for _ in ticks:
                seen.append(signal.getsignal(signal.SIGTERM))
                if len(seen) == 3:
                    server.close()

    thread = threading.Thread(target=serve)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert seen == [before] * 3


# --- health ---


def ask(port: int) -> str:
    with socket.create_connection(("127.0.0.1", port), 10) as asker:
        asker.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        answer = b""
        while more := asker.recv(1000):
            answer += more
    return answer.decode()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def test_health_is_told_while_it_ticks_and_when_it_hangs(
    protocol: tw.Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setattr("tickwire._health.SILENCE", 0.2)
    hung = ""
    with tw.run(start(protocol), FAST, health=port) as ticks:
        for count, _ in enumerate(ticks):
            answer = ask(port)
            assert answer.startswith("HTTP/1.1 200 OK\r\n")
            assert answer.endswith("\r\n\r\nticking\n")
            if count == 3:
                deadline = time.monotonic() + 20
                while "503" not in hung and time.monotonic() < deadline:
                    hung = ask(port)
                break
    assert hung.startswith("HTTP/1.1 503 Service Unavailable\r\n")
    assert "no tick for 0." in hung
    with pytest.raises(ConnectionRefusedError):
        ask(port)


def test_health_answers_one_who_says_nothing_only_so_long(
    protocol: tw.Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickwire._health.TIMEOUT", 0.1)
    port = free_port()
    with (
        tw.run(start(protocol), FAST, health=f"127.0.0.1:{port}"),
        socket.create_connection(("127.0.0.1", port)),
    ):
        assert "200 OK" in ask(port)


def test_a_port_of_health_that_is_taken_is_told_at_once(protocol: tw.Protocol) -> None:
    before = signal.getsignal(signal.SIGINT)
    with socket.create_server(("127.0.0.1", 0)) as taken, start(protocol) as server:
        with pytest.raises(OSError, match=r"(?i)in use"), tw.run(server, health=taken.getsockname()[1]):
            pass
        assert not server.closed
        assert signal.getsignal(signal.SIGINT) is before


def test_health_is_told_beside_many_who_say_nothing(protocol: tw.Protocol) -> None:
    port = free_port()
    with tw.run(start(protocol), FAST, health=port):
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
        begun = time.monotonic()
        assert "200 OK" in ask(port)
        assert time.monotonic() - begun < 0.8, "each cost a second"
    assert time.monotonic() - begun < 0.8
    for each in idle:
        each.close()


# --- asyncio ---


def test_on_asyncio_what_the_body_queues_is_sent(pair: tuple[tw.Server, tw.Client]) -> None:
    server, client = pair
    turns = 0

    async def beside() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def serve() -> None:
        task = asyncio.create_task(beside())
        async with aio.run(server, FAST, linger=5, reason="enough") as ticks:
            async for tick, _ in ticks:
                server.broadcast(Move(tick))
                if tick >= 4:
                    break
        task.cancel()

    run_async(serve())
    assert server.closed
    assert turns > 10
    messages, reason = received(client)
    assert [message.tick for message in messages if isinstance(message, Move)][-1] >= 4
    assert (reason, client.disconnect_detail) == (REASON.SERVER_CLOSED, "enough")


@pytest.mark.parametrize("how", ["raise", "break", "cancel", "cancel a late tick"])
def test_on_asyncio_every_end_says_goodbye(pair: tuple[tw.Server, tw.Client], how: str) -> None:
    server, client = pair
    before = signal.getsignal(signal.SIGTERM)

    async def serve() -> None:
        rate, linger = 1 if "late" in how else FAST, 30 if "cancel" in how else 1
        async with aio.run(server, rate, linger=linger, reason="good game") as ticks:
            async for _ in ticks:
                if how == "raise":
                    raise LookupError("of the body")
                if how == "break":
                    break

    async def play() -> None:
        task = asyncio.create_task(serve())
        if "cancel" in how:
            await asyncio.sleep(0.05)
            task.cancel()
        try:
            await task
        except (asyncio.CancelledError, LookupError) as error:
            assert isinstance(error, LookupError) == (how == "raise")  # noqa: PT017
        assert server.closed

    begun = time.monotonic()
    run_async(play())
    assert time.monotonic() - begun < 10, "one that is cancelled doesn't linger"
    assert signal.getsignal(signal.SIGTERM) is before
    assert received(client)[1] is REASON.SERVER_CLOSED
    assert (client.disconnect_detail == "good game") == (how == "break"), (
        "the reason belongs to a planned end"
    )


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_on_asyncio_a_signal_ends_it_between_two_ticks(
    pair: tuple[tw.Server, tw.Client], number: signal.Signals
) -> None:
    server, client = pair

    async def serve() -> int:
        count = 0
        async with aio.run(server, 0.01, linger=5, reason="good night") as ticks:
            async for _ in ticks:
                count += 1
                server.broadcast(Move(9))
                asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), number)
        return count

    before = signal.getsignal(number)
    assert run_async(serve()) == 1
    assert server.closed
    assert signal.getsignal(number) is before
    messages, reason = received(client)
    assert messages == [Move(9)]
    assert (reason, client.disconnect_detail) == (REASON.SERVER_CLOSED, "good night")


# --- inboxes, one thing after the other ---


def test_an_inbox_is_gone_through_in_order() -> None:
    protocol = tw.Protocol(1, [Move, Chat], [tw.reliable_ordered(), tw.latest(keys=4)])
    network, server, client = connected_pair(protocol)
    (handle,) = server.clients
    other = tw.Client.connect(server.address, protocol, network=network)
    seen: list[tuple[tw.ClientHandle, object]] = []
    at_client: list[object] = []
    client.send(Chat(1, "hello"))
    client.send(Move(5), 1, key=2)
    server.send(handle, Move(6))
    server.send(handle, Chat(2, "value"), 1, key=3)
    for ticks in range(60):
        for endpoint in (client, other):
            if not endpoint.closed:
                endpoint.flush()
        network.advance(1 / 60)
        with server.tick() as inbox:
            seen += inbox
            assert len(list(inbox)) == len(inbox.events) + len(inbox.messages) + len(inbox.latest)
        with client.tick() as own:
            at_client += own
        if ticks == 30:
            other.close()
        elif not other.closed:
            other.receive()
    assert [what for client_, what in seen if client_ == handle] == [Chat(1, "hello"), Move(5)]
    of_other = [type(what) for client_, what in seen if client_ != handle]
    assert of_other == [tw.Connected, tw.Disconnected]
    assert sorted(map(repr, at_client)) == sorted(map(repr, [Move(6), Chat(2, "value")]))
    client.close()


# --- virtual time ---


def test_on_a_simulated_network_virtual_time_passes(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    begun, started = network.now, time.perf_counter()
    messages: list[object] = []
    with tw.run(server, 50) as at_server, tw.run(client, 50) as at_client:
        for (tick, _), (_, inbox) in zip(at_server, at_client, strict=False):
            assert round((network.now - begun) * 50) == tick  # one loop doesn't add to the other's
            server.broadcast(Move(tick))
            messages += inbox.messages
            if tick == 1000:
                break
    assert len(messages) > 990
    assert time.perf_counter() - started < 10, "20 virtual seconds"


@pytest.mark.parametrize("on_asyncio", [False, True])
def test_a_loop_lingers_in_virtual_time(protocol: tw.Protocol, on_asyncio: bool) -> None:
    network, server, client = connected_pair(protocol)
    begun = network.now

    async def play() -> None:
        async with aio.run(server, linger=3) as ticks:
            async for _ in ticks:
                server.broadcast(Chat(1, "nobody reads this"))
                break

    if on_asyncio:
        asyncio.run(play())
    else:
        with tw.run(server, linger=3) as ticks:
            next(ticks)
            server.broadcast(Chat(1, "nobody reads this"))
    assert server.closed
    assert 3 <= network.now - begun < 3.1
    client.close()


def test_virtual_time_passes_on_asyncio_too(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)

    async def play() -> list[object]:
        messages: list[object] = []
        async with aio.run(server, 50, linger=1) as ticks:
            async for tick, inbox in ticks:
                messages += inbox.messages
                with client.tick():
                    client.send(Move(tick))
                if tick == 500:
                    server.close()
        return messages

    begun, started = network.now, time.perf_counter()
    assert len(asyncio.run(play())) > 490
    assert 9.9 < network.now - begun < 10.1
    assert time.perf_counter() - started < 8
    client.close()
