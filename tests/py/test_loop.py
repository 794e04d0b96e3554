"""tw.loop and aio.loop: how they tick, and how they end. What signals do to programs: test_visitors.py."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import tickwire as tw
from conftest import Chat, Move
from tickwire import aio
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
                server.receive()
                server.flush()
            yield server, client


def heard(client: tw.Client) -> tuple[list[object], REASON | None]:
    """A client's events until its end."""
    messages: list[object] = []
    for inbox in tw.loop(client, FAST):
        messages += inbox.messages
    return messages, client.disconnect_reason


def test_what_the_body_queues_is_sent_and_the_loop_ends_with_the_connection(
    pair: tuple[tw.Server, tw.Client],
) -> None:
    server, client = pair
    for number, _ in enumerate(tw.loop(server, FAST)):
        server.broadcast(Move(number))
        if number == 4:
            server.close(linger=5)  # of the game's own
    assert server.closed
    messages, reason = heard(client)
    assert [message.tick for message in messages if isinstance(message, Move)] == [0, 1, 2, 3, 4]
    assert reason is REASON.SERVER_CLOSED
    assert client.closed


def test_a_body_that_leaves_the_loop_closes_the_endpoint(pair: tuple[tw.Server, tw.Client]) -> None:
    server, client = pair
    for _ in tw.loop(server, FAST, linger=5, reason="enough"):
        server.broadcast(Move(7))
        break
    assert server.closed
    messages, reason = heard(client)
    assert messages == [Move(7)]
    assert (reason, client.disconnect_detail) == (REASON.SERVER_CLOSED, "enough")


def test_what_the_body_raises_comes_after_the_goodbye(pair: tuple[tw.Server, tw.Client]) -> None:
    server, client = pair
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        for _ in tw.loop(server, FAST):
            print(1 / 0)
    assert server.closed
    assert heard(client)[1] is REASON.SERVER_CLOSED


def test_the_pace_is_that_of_ticks(protocol: tw.Protocol) -> None:
    begun = time.perf_counter()
    for _ in itertools.islice(tw.loop(tw.Server("127.0.0.1:0", protocol), 100), 21):
        pass
    assert 0.19 < time.perf_counter() - begun < 2


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_every_loop_and_is_as_before_then(
    protocol: tw.Protocol, number: signal.Signals
) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    server = tw.Server("127.0.0.1:0", protocol)
    client = tw.Client.connect(server.address, protocol)
    loops = zip(tw.loop(server, FAST), tw.loop(client, FAST), strict=False)
    for ticks, _ in enumerate(loops):
        assert ticks < 1000
        if ticks == 10:
            os.kill(os.getpid(), number)
    del loops
    assert server.closed
    assert client.closed
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


@posix
def test_a_second_interrupt_is_one(protocol: tw.Protocol) -> None:
    server = tw.Server("127.0.0.1:0", protocol)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        for _ in tw.loop(server, FAST):
            os.kill(os.getpid(), signal.SIGINT)  # asks it to end
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
    assert server.closed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_kept_loop_is_closed_by_a_with_statement(protocol: tw.Protocol) -> None:
    before = signal.getsignal(signal.SIGINT)
    server = tw.Server("127.0.0.1:0", protocol)
    loop = tw.loop(server, FAST)
    with pytest.raises(LookupError), contextlib.closing(loop) as inboxes:  # noqa: PT012
        for _ in inboxes:
            raise LookupError("of the body")
    assert server.closed
    assert signal.getsignal(signal.SIGINT) is before


@posix
def test_a_loop_that_was_left_and_is_kept_swallows_no_interrupt(
    protocol: tw.Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = tw.Server("127.0.0.1:0", protocol)
    loop = tw.loop(server, FAST)
    for _ in loop:
        break
    monkeypatch.setattr(sys.modules["tickwire._loop"], "MAX_WAIT", -1)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    loop.close()
    assert server.closed


@posix
def test_an_interrupt_ends_the_linger_of_a_loop_that_was_left(protocol: tw.Protocol) -> None:
    server = tw.Server("127.0.0.1:0", protocol)
    # It never reads, so that the server has something to wait for.
    client = tw.Client.connect(server.address, protocol)
    loop = tw.loop(server, FAST, linger=60)
    while not server.clients:
        next(loop)
        client.receive()
        client.flush()
    server.broadcast(Chat(1, "wait"))
    pressed = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    pressed.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        loop.close()  # as a break does
    assert time.monotonic() - begun < 20
    assert server.closed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    client.close()


@posix
def test_what_is_ignored_stays_so(protocol: tw.Protocol) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for ticks, _ in enumerate(tw.loop(tw.Server("127.0.0.1:0", protocol), FAST)):
            os.kill(os.getpid(), signal.SIGINT)
            if ticks == 5:
                break
        assert ticks == 5
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_no_signal_is_minded(protocol: tw.Protocol) -> None:
    before = signal.getsignal(signal.SIGTERM)
    server = tw.Server("127.0.0.1:0", protocol)
    seen: list[object] = []

    def serve() -> None:
        for _ in tw.loop(server, FAST):
            seen.append(signal.getsignal(signal.SIGTERM))
            if len(seen) == 3:
                server.close()

    thread = threading.Thread(target=serve)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert seen == [before] * 3


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
    for ticks, _ in enumerate(tw.loop(tw.Server("127.0.0.1:0", protocol), FAST, health=port)):
        answer = ask(port)
        assert answer.startswith("HTTP/1.1 200 OK\r\n")
        assert answer.endswith("\r\n\r\nticking\n")
        if ticks == 3:
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
    for _ in tw.loop(tw.Server("127.0.0.1:0", protocol), FAST, health=f"127.0.0.1:{port}"):
        with socket.create_connection(("127.0.0.1", port)):
            assert "200 OK" in ask(port)
        break


def test_a_port_of_health_that_is_taken_is_told_at_once(protocol: tw.Protocol) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, tw.Server("127.0.0.1:0", protocol) as server:
        with pytest.raises(OSError, match=r"(?i)in use"):
            tw.loop(server, health=taken.getsockname()[1])
        assert not server.closed


def test_health_is_told_beside_many_who_say_nothing(protocol: tw.Protocol) -> None:
    port = free_port()
    for _ in tw.loop(tw.Server("127.0.0.1:0", protocol), FAST, health=port):
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
        begun = time.monotonic()
        assert "200 OK" in ask(port)
        assert time.monotonic() - begun < 0.8, "each cost a second"
        break
    assert time.monotonic() - begun < 0.8
    for each in idle:
        each.close()


def test_a_loop_that_never_starts_leaves_no_thread_and_no_port(protocol: tw.Protocol) -> None:
    port = free_port()
    with tw.Server("127.0.0.1:0", protocol) as server:
        before = threading.active_count()
        unused = tw.loop(server, health=port)
        assert threading.active_count() == before
        del unused
    with pytest.raises(ConnectionRefusedError):
        ask(port)


@posix
def test_a_loop_that_ends_in_another_thread_leaves_the_signals_as_they_were(protocol: tw.Protocol) -> None:
    caught: list[int] = []

    def own(number: int, _: object) -> None:
        caught.append(number)

    def elsewhere() -> None:
        loop = tw.loop(tw.Server("127.0.0.1:0", protocol), FAST)
        next(loop)
        thread = threading.Thread(target=loop.close)  # type: ignore[attr-defined]
        thread.start()
        thread.join()

    before = signal.signal(signal.SIGTERM, own)
    try:
        elsewhere()
        os.kill(os.getpid(), signal.SIGTERM)
        assert caught == [signal.SIGTERM], "it went to nobody"
        elsewhere()
        for _ in tw.loop(tw.Server("127.0.0.1:0", protocol), FAST):
            break
        assert signal.getsignal(signal.SIGTERM) is own
        for _ in tw.loop(tw.Server("127.0.0.1:0", protocol), FAST):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            break
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN, "the game's own"
    finally:
        signal.signal(signal.SIGTERM, before)


# --- asyncio ---


def run(main: Any) -> Any:
    return asyncio.run(asyncio.wait_for(main, 30))


def test_on_asyncio_what_the_body_queues_is_sent(pair: tuple[tw.Server, tw.Client]) -> None:
    server, client = pair

    async def serve() -> None:
        number = 0
        async for _ in aio.loop(server, FAST, linger=5, reason="enough"):
            server.broadcast(Move(number))
            number += 1
            if number == 5:
                server.close(linger=5, reason="enough", wait=False)
                for _ in range(1000):
                    if server.closed:
                        break
                    server.step()
                    await asyncio.sleep(0.005)

    run(serve())
    assert server.closed
    messages, reason = heard(client)
    assert [message.tick for message in messages if isinstance(message, Move)] == [0, 1, 2, 3, 4]
    assert (reason, client.disconnect_detail) == (REASON.SERVER_CLOSED, "enough")


@pytest.mark.parametrize("how", ["raise", "break", "cancel"])
def test_on_asyncio_every_end_says_goodbye_at_once(pair: tuple[tw.Server, tw.Client], how: str) -> None:
    server, client = pair

    async def serve() -> None:
        async for _ in aio.loop(server, FAST):
            if how == "raise":
                raise LookupError("of the body")
            if how == "break":
                break

    async def play() -> None:
        task = asyncio.create_task(serve())
        await asyncio.sleep(0.05)
        task.cancel()
        try:
            await task
        except (asyncio.CancelledError, LookupError) as error:
            assert isinstance(error, LookupError) == (how == "raise")  # noqa: PT017
        assert server.closed

    run(play())
    assert heard(client)[1] is REASON.SERVER_CLOSED


def test_on_asyncio_a_kept_loop_is_closed_by_a_with_statement(protocol: tw.Protocol) -> None:
    before = signal.getsignal(signal.SIGTERM)
    server = tw.Server("127.0.0.1:0", protocol)
    loop = aio.loop(server, FAST)

    async def serve() -> None:
        async with contextlib.aclosing(loop) as inboxes:
            async for _ in inboxes:
                raise LookupError("of the body")

    with pytest.raises(LookupError):
        run(serve())
    assert server.closed
    assert signal.getsignal(signal.SIGTERM) is before


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_on_asyncio_a_signal_ends_it_between_two_ticks(
    pair: tuple[tw.Server, tw.Client], number: signal.Signals
) -> None:
    server, client = pair

    async def serve() -> int:
        ticks = 0
        async for _ in aio.loop(server, 0.01, linger=5):
            ticks += 1
            server.broadcast(Move(9))
            asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), number)
        return ticks

    before = signal.getsignal(number)
    assert run(serve()) == 1
    assert server.closed
    assert signal.getsignal(signal.SIGTERM) is not None
    assert number is signal.SIGINT or signal.getsignal(number) is before
    messages, reason = heard(client)
    assert messages == [Move(9)]
    assert reason is REASON.SERVER_CLOSED


@posix
def test_a_signal_after_the_event_loop_was_closed_raises_nothing(protocol: tw.Protocol) -> None:
    event_loop = asyncio.new_event_loop()
    loop = aio.loop(tw.Server("127.0.0.1:0", protocol), FAST)
    event_loop.run_until_complete(anext(loop))
    event_loop.close()
    os.kill(os.getpid(), signal.SIGTERM)
    del loop


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


# --- virtual time ----------------------------------------------------------------------------------------


def test_on_a_simulated_network_virtual_time_passes(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    begun, start = network.now, time.perf_counter()
    heard: list[object] = []
    for tick, (_, inbox) in enumerate(zip(tw.loop(server, 50), tw.loop(client, 50), strict=False)):
        assert round((network.now - begun) * 50) == tick  # one loop doesn't add to the other's
        server.broadcast(Move(tick))
        heard += inbox.messages
        if tick == 1000:
            break
    assert len(heard) > 990
    assert time.perf_counter() - start < 10, "20 virtual seconds"


def test_a_loop_lingers_in_virtual_time(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    begun = network.now
    for _ in tw.loop(server, linger=3):
        server.broadcast(Chat(1, "nobody reads this"))
        break
    assert server.closed
    assert 3 <= network.now - begun < 3.1
    client.close()


def test_virtual_time_passes_on_asyncio_too(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)

    async def play() -> list[object]:
        heard: list[object] = []
        ticks = 0
        async for inbox in aio.loop(server, 50, linger=1):
            heard += inbox.messages
            with client.tick():
                client.send(Move(ticks))
            ticks += 1
            if ticks == 500:
                server.close()
        return heard

    begun, start = network.now, time.perf_counter()
    assert len(asyncio.run(play())) > 490
    assert 9.9 < network.now - begun < 10.1
    assert time.perf_counter() - start < 8
    client.close()
