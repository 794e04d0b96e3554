"""The socket by itself, on the loopback interface. Waits end with a datagram, or after some milliseconds."""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import tickwire as tw


@pytest.fixture
def pair() -> Iterator[tuple[tw.articles.Socket, tw.articles.Socket]]:
    with tw.articles.Socket("127.0.0.1:0") as a, tw.articles.Socket(("127.0.0.1", 0)) as b:
        yield a, b


Pair = tuple[tw.articles.Socket, tw.articles.Socket]


def receive_all(socket: tw.articles.Socket, count: int, bound: int = 1500) -> list[bytes]:
    got: list[bytes] = []
    while len(got) < count:
        assert socket.wait(5), f"only {len(got)} of {count} came"
        got += [data for data, _ in socket.receive_many(bound)]
    return got


def test_a_datagram_arrives_with_its_source(pair: Pair) -> None:
    a, b = pair
    assert b.receive() is None
    assert a.send(b.address, b"hello")
    assert a.send(str(b.address), b"")
    assert b.wait(5)
    assert b.receive() == (b"hello", a.address)
    assert b.wait(5)
    assert b.receive() == (b"", a.address)
    assert b.receive() is None
    assert (a.counters["sent"], b.counters["received"]) == (2, 2)


def test_many_are_sent_and_received_within_a_bound(pair: Pair) -> None:
    a, b = pair
    wanted = [bytes([number]) for number in range(5)]
    assert a.send_many((b.address, data) for data in wanted) == 5
    assert b.wait(5)
    first = b.receive_many(2)
    assert len(first) <= 2
    assert [data for data, _ in first] + receive_all(b, 5 - len(first)) == wanted
    assert b.receive_many() == []


def test_buffers_granted_are_read_back() -> None:
    with tw.articles.Socket("127.0.0.1:0", send_buffer=100_000, receive_buffer=200_000) as socket:
        assert socket.send_buffer >= 100_000
        assert socket.receive_buffer >= 200_000
    with tw.articles.Socket("127.0.0.1:0") as socket:
        assert min(socket.send_buffer, socket.receive_buffer) > 0


def test_any_datagram_that_udp_carries_arrives_whole(pair: Pair) -> None:
    a, b = pair
    a.send(b.address, bytes(range(256)) * 200)
    assert receive_all(b, 1) == [bytes(range(256)) * 200]


def test_a_datagram_above_the_longest_is_dropped_and_counted_and_never_cut(pair: Pair) -> None:
    a, _ = pair
    with tw.articles.Socket("127.0.0.1:0", max_datagram=100) as small:
        assert small.max_datagram == 100
        a.send_many([(small.address, bytes(101)), (small.address, bytes(5000)), (small.address, bytes(100))])
        assert receive_all(small, 1) == [bytes(100)]
        assert (small.counters["too_long"], small.counters["received"]) == (2, 1)
        with pytest.raises(ValueError, match="data must be at most 100 bytes, not 101"):
            small.send(a.address, bytes(101))


def test_a_flood_of_what_is_dropped_is_bounded_too(pair: Pair) -> None:
    a, _ = pair
    with tw.articles.Socket("127.0.0.1:0", max_datagram=10) as small:
        a.send_many([(small.address, bytes(11))] * 20 + [(small.address, b"good")])
        assert small.wait(5)
        assert small.receive_many(5) == []
        assert small.counters["too_long"] == 5


def test_waiting_ends_in_time_and_lets_others_run(pair: Pair) -> None:
    a, b = pair
    assert not b.wait(0)
    started = time.monotonic()
    assert not b.wait(0.01)
    assert time.monotonic() - started >= 0.01
    # Sent by a thread while this one waits, and only then.
    threading.Timer(0.02, a.send, (b.address, b"wake up")).start()
    assert b.wait(5)
    assert b.receive() == (b"wake up", a.address)


def test_other_threads_send_and_receive_while_one_waits(pair: Pair) -> None:
    a, b = pair
    waiting = threading.Thread(target=b.wait, args=(0.5,))
    waiting.start()
    started = time.monotonic()
    for _ in range(100):
        b.send(a.address, b"x")
        b.receive()
    assert time.monotonic() - started < 0.4, "the wait holds nobody up"
    a.send(b.address, b"end")
    waiting.join(5)
    assert not waiting.is_alive()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_signal_ends_a_wait_if_its_handler_raises(pair: Pair) -> None:
    a, b = pair
    handled: list[int] = []

    def handle(number: int, _: object) -> None:
        handled.append(number)
        if len(handled) > 1:
            raise LookupError("enough")

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        started = time.monotonic()
        with pytest.raises(LookupError, match="enough"):
            b.wait(30)
        assert time.monotonic() - started < 10
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(handled) == 2, "the first handler returned, and the wait went on"
    a.send(b.address, b"later")
    assert b.wait(5)
    assert b.wait(0), "it is ready until it is read"
    assert b.receive() == (b"later", a.address)
    assert not b.wait(0)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="lists its open files on Linux")
def test_waits_share_their_handles() -> None:
    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = open_files()
    socket = tw.articles.Socket("127.0.0.1:0")
    socket.wait(0)
    first = open_files()
    for _ in range(5):
        socket.wait(0)
    assert open_files() == first
    socket.close()
    assert open_files() == before


def test_closing_ends_a_wait_and_every_call_says_so(pair: Pair) -> None:
    a, b = pair
    a.send(b.address, b"lost with the socket")
    b.wait(5)
    b.receive()
    threading.Timer(0.02, b.close).start()
    with pytest.raises(tw.errors.ClosedError, match="the socket is closed"):
        b.wait(5)
    calls: list[Callable[[], object]] = [
        b.receive,
        b.receive_many,
        b.fileno,
        lambda: b.send(a.address, b""),
        lambda: b.send_many([(a.address, b"")]),
        lambda: b.wait(0),
        b.__enter__().receive,
    ]
    for call in calls:
        with pytest.raises(tw.errors.ClosedError, match="the socket is closed"):
            call()
    b.close()
    assert (b.closed, b.counters["received"]) == (True, 1)
    assert repr(b).endswith("closed>")


def test_closing_under_a_loop_that_sends_and_receives_ends_it_with_the_error(pair: Pair) -> None:
    a, b = pair
    ended: list[type] = []

    def play() -> None:
        try:
            while True:
                b.send(a.address, b"tick")
                b.receive_many()
        except Exception as error:  # What ended it is what is tested.
            ended.append(type(error))

    thread = threading.Thread(target=play)
    thread.start()
    a.wait(5)
    b.close()
    thread.join(5)
    assert ended == [tw.errors.ClosedError]


def test_an_endpoint_closed_under_its_tick_ends_the_tick_quietly_and_the_next_with_the_error(
    protocol: tw.Protocol,
) -> None:
    server = tw.Server("127.0.0.1:0", protocol)
    client = tw.Client.connect(server.address, protocol)
    for endpoint in (server, client):
        with endpoint.tick():
            endpoint.close()
        with pytest.raises(tw.errors.ClosedError, match="is closed"), endpoint.tick():
            pass


def test_a_server_closed_by_another_thread_ends_its_loop_with_the_error(protocol: tw.Protocol) -> None:
    server = tw.Server("127.0.0.1:0", protocol)
    ticked = threading.Event()
    ended: list[type] = []

    def play() -> None:
        try:
            while True:
                with server.tick():
                    ticked.set()
        except Exception as error:  # What ended it is what is tested.
            ended.append(type(error))

    thread = threading.Thread(target=play)
    thread.start()
    assert ticked.wait(5)
    server.close()
    thread.join(5)
    assert ended == [tw.errors.ClosedError]


def test_a_closed_port_stalls_nothing(pair: Pair) -> None:
    a, b = pair
    with tw.articles.Socket("127.0.0.1:0") as gone:
        nobody = gone.address
    for number in range(20):
        a.send(nobody, b"anyone?")
        while not a.send(b.address, bytes([number])):
            pass
        assert a.receive() is None
    assert receive_all(b, 20) == [bytes([number]) for number in range(20)]


def test_it_works_with_select(pair: Pair) -> None:
    a, b = pair
    a.send(b.address, b"ready")
    assert select.select([b], [], [], 5)[0] == [b]


def test_an_address_in_use_is_an_oserror_with_its_errno(pair: Pair) -> None:
    with pytest.raises(OSError, match=str(pair[0].address)) as raised:
        tw.articles.Socket(pair[0].address)
    assert raised.value.errno == errno.EADDRINUSE


def test_mistakes_are_named(pair: Pair) -> None:
    a, b = pair
    for setting in ("send_buffer", "receive_buffer"):
        with pytest.raises(ValueError, match=f"{setting} must be 1 to 1073741824, not 0"):
            tw.articles.Socket("127.0.0.1:0", **{setting: 0})
    with pytest.raises(ValueError, match="max_datagram must be 1 to 65507, not 65508"):
        tw.articles.Socket("127.0.0.1:0", max_datagram=65_508)
    with pytest.raises(ValueError, match="bound must be 1 to 1048576, not 0"):
        a.receive_many(0)
    for timeout in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="timeout must be 0 to 86400 seconds"):
            a.wait(timeout)
    with pytest.raises(ValueError, match="data must be at most 65507 bytes, not 65508"):
        a.send(b.address, bytes(65_508))
    with pytest.raises(ValueError, match="to must have a port to send to, not 127.0.0.1:0"):
        a.send("127.0.0.1:0", b"")
    with pytest.raises(ValueError, match=r"\[::1\]:5 can't be reached from 127.0.0.1"):
        a.send_many([(b.address, b"not sent"), ("[::1]:5", b"")])
    assert not b.wait(0.01), "nothing was sent"
    with pytest.raises(TypeError):
        a.send(b.address, "text")  # type: ignore[arg-type]
