"""What only a driver's thread does: real sockets, bounded waits."""

from __future__ import annotations

import gc
import os
import re
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest
import tickwire as tw
from conftest import Blob, Chat, Move, make_protocol, paced
from tickwire import _core

PATIENCE = 20.0


def wait_until(done: Callable[[], bool], *ticked: tw.Server | tw.Client) -> list[list]:
    """Ticks these endpoints, and none of the others, until it is done; returns the messages of each."""
    collected: list[list] = [[] for _ in ticked]
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, "not done in time"
        for endpoint, into in zip(ticked, collected, strict=True):
            with endpoint.tick() as inbox:
                into += inbox.messages
        time.sleep(0.001)
    return collected


def receive_for_ever(endpoint: tw.Server | tw.Client) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        endpoint.receive()
        time.sleep(0.001)


@contextmanager
def pair(protocol: tw.Protocol, **options: object):
    with (
        tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver="thread"), **options) as server,
        tw.Client.connect(server.address, protocol, tuning=tw.Tuning(driver="thread")) as client,
    ):
        wait_until(lambda: client.connected and len(server.clients) == 1, server, client)
        yield server, client


TASKS = Path("/proc/self/task")


def threads() -> int:
    """The driver threads of this process; 0 where the system doesn't list them."""
    return sum(task.read_text("utf-8").startswith("tickwire-driver") for task in TASKS.glob("*/comm"))


def threads_are(count: int) -> bool:
    """Whether as many driver threads run; True where the system doesn't list them, as only Linux does."""
    return not TASKS.exists() or threads() == count


def test_the_driver_is_one_of_two_and_none_of_a_simulated_network(protocol: tw.Protocol) -> None:
    with pytest.raises(ValueError, match="driver must be 'polled' or 'thread', not 'threads'"):
        tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver="threads"))
    network = tw.testing.SimulatedNetwork()
    with pytest.raises(ValueError, match="driver must be 'polled' on a simulated network"):
        tw.Server("10.0.0.1:5", protocol, tuning=tw.Tuning(driver="thread"), network=network)
    with pytest.raises(ValueError, match="driver must be"):
        tw.Client.connect("10.0.0.1:5", protocol, tuning=tw.Tuning(driver="thread"), network=network)


def test_a_game_that_stalls_keeps_its_connections(protocol: tw.Protocol) -> None:
    with (
        tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver="thread")) as server,
        tw.Client.connect(server.address, protocol, tuning=tw.Tuning(timeout=1, driver="thread")) as client,
    ):
        wait_until(lambda: client.connected and len(server.clients) == 1, server, client)
        server.broadcast(Chat(1, "before"))
        server.flush()
        # Both fall silent for more than the timeout.
        before = time.monotonic()
        while time.monotonic() - before < 1.5:
            time.sleep(0.05)
        assert client.connected
        assert client.state is tw.connections.ClientState.CONNECTED
        assert client.receive().messages == [Chat(1, "before")]
        assert len(server.clients) == 1


def test_what_was_sent_before_a_stall_is_sent_again_when_it_is_lost(protocol: tw.Protocol) -> None:
    with (
        tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver="thread")) as server,
        tw.Client.connect(
            server.address,
            protocol,
            tuning=tw.Tuning(driver="thread"),
            debugging=tw.testing.Debugging(conditions=tw.Conditions(loss=0.5), seed=3),
        ) as client,
    ):
        wait_until(lambda: client.connected and len(server.clients) == 1, server, client)
        for number in range(200):
            client.send(Move(number))
            client.flush()
        # The client makes no call any more, until all has arrived.
        got: list = []
        deadline = time.monotonic() + PATIENCE
        while len(got) < 200:
            assert time.monotonic() < deadline
            with server.tick() as inbox:
                got += [message.tick for _, message in inbox.messages]
        assert got == list(range(200))
        assert client.stats.channels[0].resent > 0


def test_a_tick_has_what_came_before_it_whatever_the_thread_was_given_time_for(protocol: tw.Protocol) -> None:
    with (
        tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver="thread")) as server,
        tw.Client.connect(server.address, protocol) as client,
    ):
        wait_until(lambda: client.connected and len(server.clients) == 1, server, client)
        for number in range(300):
            client.send(Move(number))
            client.flush()
            # No pause, in which the thread could read it.
            with server.tick() as inbox:
                assert [message.tick for _, message in inbox.messages] == [number]
            client.receive()


def test_the_messages_of_a_tick_share_packets(protocol: tw.Protocol) -> None:
    with pair(protocol) as (server, client):
        wait_until(lambda: client.stats.channels[0].queued == 0, server, client)
        before, started = client.counters["packets.sent"], time.monotonic()
        for number in range(60):
            client.send(Move(number))
            # Time for the thread to take turns: it hears from the server, and wakes.
            server.flush()
        client.flush()
        sent = client.counters["packets.sent"] - before
        # One with messages; keep-alives and acks, the more the slower the machine.
        assert sent <= 3 + 30 * (time.monotonic() - started)
        (at_server,) = wait_until(lambda: client.stats.channels[0].queued == 0, server)
        assert [message.tick for _, message in at_server] == list(range(60))


def test_an_unread_inbox_is_bounded_and_its_sender_waits() -> None:
    protocol = make_protocol(
        channels=[tw.reliable_ordered(receive_window=16), tw.unreliable(receive_queue=8)]
    )
    with pair(protocol) as (server, client):
        wait_until(lambda: client.stats.channels[0].queued == 0, server, client)
        sent = 0
        before = server.counters["packets.received"]
        while server.counters["packets.received"] < before + 100:
            sent += bool(client.send(Move(sent)))
            client.send(Chat(1, "now"), channel=1)
            client.flush()
        inbox = [message for _, message in server.receive().messages]
        assert [type(message) for message in inbox] == [Move] * 16 + [Chat] * 8
        (at_server,) = wait_until(lambda: client.stats.channels[0].queued == 0, server)
        late = [message.tick for _, message in at_server if isinstance(message, Move)]
        assert [message.tick for message in inbox[:16]] + late == list(range(sent))


def test_closing_ends_the_thread_and_frees_the_port(protocol: tw.Protocol) -> None:
    before = threads()
    with pair(protocol) as (server, client):
        # A thread has its name from itself, when it first runs.
        assert any(threads_are(before + 2) for _ in paced(100, 5))
        address = server.address
        server.close()
        server.close()
        assert threads_are(before + 1)
        tw.Server(address, protocol).close()
        client.close()
        assert threads_are(before)
        for call in (server.receive, server.flush, server.pump, server._step, client.receive):
            with pytest.raises(tw.errors.ClosedError):
                call()


def test_an_exception_in_the_game_ends_the_thread_and_says_goodbye(protocol: tw.Protocol) -> None:
    before = threads()
    with tw.Client.connect("127.0.0.1:9", protocol), pytest.raises(ZeroDivisionError), pair(protocol):
        raise ZeroDivisionError
    assert threads_are(before)


def test_endpoints_that_are_dropped_or_in_cycles_end_their_threads(protocol: tw.Protocol) -> None:
    before = threads()
    server = tw.Server("127.0.0.1:0", protocol)
    client = tw.Client.connect(server.address, protocol, tuning=tw.Tuning(driver="thread"))
    wait_until(lambda: len(server.clients) == 1, server)

    class Pool(tw.messages.MessageFactory):
        pass

    pool = Pool()
    pool.endpoint = tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver="thread", factory=pool))
    gone = weakref.ref(pool)
    del client, pool
    wait_until(lambda: gc.collect() >= 0 and gone() is None)
    assert threads_are(before)
    wait_until(lambda: not server.clients, server)


EXITING = """
import sys, time
import tickwire as tw

@tw.message
class Move:
    tick: tw.u16

protocol = tw.Protocol(1, [Move])
server = tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver="thread"))
client = tw.Client.connect(server.address, protocol, tuning=tw.Tuning(driver="thread"))
while not client.connected:
    with server.tick() as inbox, client.tick():
        time.sleep(0.001)
client.send(Move(1))
"""


@pytest.mark.parametrize(
    "how", ["", "sys.exit(0)", "tick = server.tick(); tick.__enter__()", "kept = [server]; kept.append(kept)"]
)
def test_the_interpreter_exits_with_open_connections(how: str) -> None:
    done = subprocess.run([sys.executable, "-c", EXITING + how], capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


LEAVING = """
import time
import tickwire as tw

@tw.message
class Move:
    tick: tw.u16

client = tw.Client.connect(ADDRESS, tw.Protocol(1, [Move]), tuning=tw.Tuning(driver="thread"))
import builtins
builtins.kept = client  # outlives every module
while not client.connected:
    client.receive()
    time.sleep(0.001)
"""


def test_an_interpreter_that_exits_says_goodbye() -> None:
    @tw.message
    class Move:
        tick: tw.u16

    with tw.Server("127.0.0.1:0", tw.Protocol(1, [Move]), tuning=tw.Tuning(driver="thread")) as server:
        code = LEAVING.replace("ADDRESS", repr(str(server.address)))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        events = []
        deadline = time.monotonic() + 5
        while not any(isinstance(event, tw.Disconnected) for event in events):
            assert time.monotonic() < deadline, "it said so, well before the timeout"
            events += server.receive().events
        assert events[-1].reason is tw.DisconnectReason.PEER_DISCONNECTED


FORKING = """
import os, sys, time
import tickwire as tw

@tw.message
class Move:
    tick: tw.u16

protocol = tw.Protocol(1, [Move])
server = tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver=DRIVER))
client = tw.Client.connect(server.address, protocol, tuning=tw.Tuning(driver=DRIVER))
while not (client.connected and server.clients):
    with server.tick() as inbox, client.tick():
        time.sleep(0.001)

def complaint(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)

for _ in range(50):
    child = os.fork()
    if child == 0:
        import gc
        calls = [client.receive, client.flush, client.pump, client._step, lambda: client.send(Move(1)),
                 lambda: client.connected, lambda: client.closed, lambda: client.counters,
                 lambda: client.stats,
                 server.receive, lambda: server.clients, lambda: server.broadcast(Move(1))]
        good = all("after a fork, make a new one" in (complaint(call) or "") for call in calls)
        repr(client), repr(server)
        client.close()
        server.close()
        del client, server, calls
        gc.collect()
        # One of its own.
        with tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver=DRIVER)) as server:
            server.receive()
        os._exit(0 if good else 1)
    deadline = time.monotonic() + 20
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            os.kill(child, 9)
            sys.exit("the child hangs")
        with server.tick(), client.tick():
            time.sleep(0.001)
    if status:
        sys.exit(f"the child ended with {status}")
    if not client.connected or len(server.clients) != 1:
        sys.exit("the child said goodbye")
got = []
client.send(Move(7))
deadline = time.monotonic() + 20
while not got and time.monotonic() < deadline:
    with server.tick() as inbox, client.tick():
        got += inbox.messages
print([message.tick for _, message in got])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.parametrize("driver", ["thread", "polled"])
def test_a_forks_child_is_refused_and_harms_nothing(driver: str) -> None:
    code = FORKING.replace("DRIVER", repr(driver))
    # From Python 3.12 on a fork beside threads warns.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (0, b"", b"[7]\n")


def test_a_flood_doesnt_keep_the_game_from_its_turn(protocol: tw.Protocol) -> None:
    with pair(protocol) as (server, client), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flood:
        flood.connect((server.address.host, server.address.port))
        noise = bytes(range(1, 256)) * 4
        longest = 0.0
        for number in range(200):
            for _ in range(50):
                flood.send(noise)
            before = time.monotonic()
            client.send(Move(number))
            with server.tick(), client.tick():
                pass
            longest = max(longest, time.monotonic() - before)
        assert longest < 0.5
        wait_until(lambda: client.stats.channels[0].queued == 0, server, client)
        assert server.counters["netcode.unknown_source"] > 1000


def test_large_messages_are_paced_while_the_game_stalls() -> None:
    protocol = make_protocol(channels=[tw.reliable_ordered(max_message_bytes=60_000)])
    with pair(protocol) as (server, client):
        client.set_budget(2_000_000, 20_000)
        for _ in range(10):
            client.send(Blob(bytes(50_000)))
        client.flush()
        # Ten bursts and more: ended connections are sent goodbyes without the game.
        (at_server,) = wait_until(lambda: client.stats.channels[0].queued == 0, server)
        assert len(at_server) == 10


@pytest.mark.skipif(not hasattr(_core, "_break_thread"), reason="built without the feature `faults`")
def test_a_panic_of_the_thread_is_an_exception_and_harms_nothing_else(
    protocol: tw.Protocol, capfd: pytest.CaptureFixture[str]
) -> None:
    before = threads()
    lost = (
        "the server has failed: its thread panicked (a bug in Tickwire, please report it): broken on purpose"
    )
    with pair(protocol) as (server, client), pair(protocol) as (other, others_client):
        address = server.address
        _core._break_thread(server)
        with pytest.raises(RuntimeError, match=re.escape(lost)):
            receive_for_ever(server)
        calls: list[Callable[[], object]] = [
            server.receive,
            server.flush,
            server.pump,
            server._step,
            lambda: server.clients,
            lambda: server.broadcast(Move(1)),
            lambda: server.counters,
        ]
        for call in calls:
            with pytest.raises(RuntimeError, match=re.escape(lost)):
                call()
        assert repr(server) == "<Server (unusable after fork)>"
        # Its client's thread goes on, and so do other servers.
        assert client.connected
        others_client.send(Move(7))
        (got,) = wait_until(lambda: others_client.stats.channels[0].queued == 0, other)
        assert [message.tick for _, message in got] == [7]
        server.close()
        server.close()
        assert threads_are(before + 3)
        # Its port is free for another one.
        with (
            tw.Server(address, protocol, tuning=tw.Tuning(driver="thread")) as again,
            tw.Client.connect(address, protocol, tuning=tw.Tuning(driver="thread")) as newcomer,
        ):
            wait_until(lambda: newcomer.connected, again)
            _core._break_thread(newcomer)
            with pytest.raises(RuntimeError, match="the client has failed: its thread panicked"):
                receive_for_ever(newcomer)
    assert threads_are(before)
    assert capfd.readouterr().err.count("broken on purpose") == 2
