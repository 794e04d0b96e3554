"""Endpoints that several Python threads use: nothing crashes, hangs or is lost, with a GIL or without."""

from __future__ import annotations

import gc
import subprocess
import sys
import sysconfig
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import tickwire as tw
from tickwire.testing import connected_pair

PATIENCE = 60.0


@tw.message
class Numbered:
    thread: tw.u8
    number: tw.u16


@tw.ghost
class Tank:
    x: tw.u16 = 0


PROTOCOL = tw.Protocol(0x7468, [Numbered], [tw.reliable_ordered()], ghosts=[Tank])


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """With a GIL, threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@contextmanager
def joined(*works: Callable[[], None]) -> Iterator[None]:
    """Runs each in a thread of its own; raises what the first of them raised."""
    raised: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    yield
    deadline = time.monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        assert not thread.is_alive(), "a thread hangs"
    if raised:
        raise raised[0]


def test_importing_the_module_leaves_the_gil_off() -> None:
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this Python has a GIL")
    code = "import sys, tickwire; print(sys._is_gil_enabled())"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, timeout=60, check=False
    )
    assert (done.stdout.strip(), done.stderr) == (b"False", b"")


def test_two_threads_send_and_one_receives_and_no_message_is_lost() -> None:
    network, server, client = connected_pair(PROTOCOL)
    (handle,) = server.clients
    count, over = 2000, threading.Event()
    got: dict[int, list[int]] = defaultdict(list)

    def sends(thread: int) -> Callable[[], None]:
        def work() -> None:
            number = 0
            while number < count:
                if server.send(handle, Numbered(thread, number)):
                    number += 1
                else:
                    # The window is full: the other threads empty it.
                    time.sleep(0)

        return work

    def looks() -> None:
        while not over.is_set():
            assert len(server.clients) <= 1
            assert server.counters["packets.sent"] >= 0
            server.stats(handle)
            repr(server)
            gc.collect(0)

    def plays() -> None:
        try:
            deadline = time.monotonic() + PATIENCE
            while sum(map(len, got.values())) < 2 * count:
                assert time.monotonic() < deadline
                with server.tick():
                    pass
                network.advance(1 / 60)
                with client.tick() as inbox:
                    for message in inbox.messages:
                        got[message.thread].append(message.number)
        finally:
            over.set()

    with joined(sends(0), sends(1), looks, plays):
        pass
    # Each thread's own come in its order.
    assert got == {0: list(range(count)), 1: list(range(count))}
    server.close()


def test_of_two_receives_at_once_one_is_refused_and_nothing_is_lost() -> None:
    network, server, client = connected_pair(PROTOCOL)
    count, sent_all = 1500, threading.Event()
    got: list[int] = []
    adding, received = threading.Lock(), 0

    def receives() -> None:
        nonlocal received
        deadline = time.monotonic() + PATIENCE
        while len(got) < count:
            assert time.monotonic() < deadline
            # Which of both comes first is theirs; so the order of the numbers isn't asked.
            try:
                inbox = server.receive()
            except RuntimeError as error:
                assert "another receive() is still running" in str(error)  # noqa: PT017 - seldom raised
                continue
            with adding:
                got.extend(message.number for _, message in inbox.messages)
                received += 1
            server.flush()

    def plays() -> None:
        number, seen, deadline = 0, -1, time.monotonic() + PATIENCE
        while len(got) < count:
            assert time.monotonic() < deadline
            # Where the others don't run for long, the client would be gone in virtual time.
            if received == seen:
                time.sleep(0)
                continue
            seen = received
            while number < count and client.send(Numbered(0, number)):
                number += 1
            client.flush()
            network.advance(1 / 60)
            client.receive()
        sent_all.set()

    with joined(receives, receives, plays):
        pass
    assert sent_all.is_set()
    assert sorted(got) == list(range(count))
    server.close()


def test_an_inbox_that_two_threads_go_through_gives_each_message_once() -> None:
    """Looking into a list may wait for other threads, which may wait for a collection of garbage."""
    network, server, client = connected_pair(PROTOCOL)
    count, got, over = 1000, list[int](), threading.Event()

    def collects() -> None:
        while not over.is_set():
            gc.collect(0)

    def plays() -> None:
        number, deadline = 0, time.monotonic() + PATIENCE
        try:
            while len(got) < count:
                assert time.monotonic() < deadline
                while number < count and client.send(Numbered(0, number)):
                    number += 1
                client.flush()
                network.advance(1 / 60)
                everything = iter(server.receive())

                def goes_through(everything: Iterator[Any] = everything) -> None:
                    got.extend(what.number for _, what in everything)

                with joined(goes_through, goes_through):
                    pass
                server.flush()
                client.receive()
        finally:
            over.set()

    with joined(collects, plays):
        pass
    assert sorted(got) == list(range(count))
    server.close()


def test_servers_and_clients_of_all_threads_at_once() -> None:
    """Each thread plays a server and its client, and looks at those of all others meanwhile."""
    count, rounds = 4, 60
    pairs = [connected_pair(PROTOCOL) for _ in range(count)]
    got: list[list[int]] = [[] for _ in pairs]

    def plays(mine: int) -> Callable[[], None]:
        network, server, client = pairs[mine]

        def work() -> None:
            tank = server.world.spawn(Tank())
            for number in range(rounds):
                tank.x = number
                assert server.broadcast(Numbered(mine, number)) == []
                with server.tick():
                    pass
                network.advance(1 / 60)
                with client.tick() as inbox:
                    got[mine].extend(message.number for message in inbox.messages)
                for _, other, others_client in pairs:
                    (handle,) = other.clients
                    other.stats(handle)
                    assert other.client(handle.number) is handle
                    assert others_client.connected
                    assert others_client.stats
                    repr(other), repr(others_client), other.counters
                    # Its server's thread takes them.
                    others_client.send(Numbered(mine, number))
                if number % 10 == 0:
                    gc.collect(0)

        return work

    with joined(*map(plays, range(count))):
        pass
    for (network, server, client), numbers in zip(pairs, got, strict=True):
        for _ in range(30):
            with server.tick():
                pass
            network.advance(1 / 60)
            with client.tick() as inbox:
                numbers.extend(message.number for message in inbox.messages)
        assert numbers == list(range(rounds))
        assert [tank.x for tank in client.world.objects(Tank)] == [rounds - 1]
        server.close()


def test_ghosts_changed_by_two_threads_arrive_as_they_are_last() -> None:
    network, server, client = connected_pair(PROTOCOL)
    over = threading.Event()
    tanks = [server.world.spawn(Tank()) for _ in range(8)]

    def drives(half: list[Tank], last: int) -> Callable[[], None]:
        def work() -> None:
            for round_ in range(400):
                for tank in half:
                    tank.x = round_ + last
                extra = server.world.spawn(Tank(x=round_))
                server.world.despawn(extra)

        return work

    def plays() -> None:
        while not over.is_set():
            tick()

    def tick() -> None:
        with server.tick():
            pass
        network.advance(1 / 60)
        with client.tick():
            pass

    def ends() -> None:
        try:
            with joined(drives(tanks[:4], 1000), drives(tanks[4:], 2000)):
                pass
        finally:
            over.set()

    with joined(ends, plays):
        pass
    for _ in range(60):
        tick()
    assert sorted(tank.x for tank in client.world.objects(Tank)) == [1399] * 4 + [2399] * 4
    server.close()


def test_real_sockets_used_and_closed_by_several_threads() -> None:
    """Endpoints in their own threads, with a driver's thread each, that another thread closes."""

    def plays() -> None:
        for _ in range(5):
            with (
                tw.Server("127.0.0.1:0", PROTOCOL, tuning=tw.Tuning(driver="thread")) as server,
                tw.Client.connect(server.address, PROTOCOL, tuning=tw.Tuning(driver="thread")) as client,
            ):
                deadline = time.monotonic() + PATIENCE
                got = 0
                while got < 20:
                    assert time.monotonic() < deadline
                    if client.connected:
                        client.send(Numbered(0, got))
                    with server.tick() as inbox, client.tick():
                        got += len(inbox.messages)
                    time.sleep(0.001)

                def receives(endpoint: tw.Server | tw.Client) -> None:
                    deadline = time.monotonic() + PATIENCE
                    try:
                        while time.monotonic() < deadline:
                            endpoint.receive()
                            time.sleep(0)
                    except tw.errors.ClosedError:
                        return
                    raise AssertionError("its close was never noticed")

                with joined(lambda: receives(server), lambda: receives(client)):
                    server.close()
                    client.close()

    with joined(plays, plays):
        pass
