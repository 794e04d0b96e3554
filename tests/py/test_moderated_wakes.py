"""What wakes an event loop for a busy server: on Linux a descriptor of its own, elsewhere the socket."""

from __future__ import annotations

import os
import select
import socket
import sys
from collections.abc import Callable, Iterator

import pytest
import tickwire as tw
from conftest import make_protocol

LONG_MS = 20_000
"""Practically forever, for a test."""
BURST = 4_000
FITS = 200
"""Datagrams for which any system's receive buffer has room, several times as many as a step reads."""
ATTEMPTS = 50
"""A machine that is busy with other things may send a burst too slowly."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the socket itself, as ever")


@pytest.fixture
def server() -> Iterator[tw.Server]:
    with tw.Server("127.0.0.1:0", make_protocol()) as server:
        server.flush()  # it is ticked
        yield server


@pytest.fixture
def stranger() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        yield stranger


def readable(number: int, within_ms: int) -> bool:
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(within_ms))


def wakes_of_a_burst(server: tw.Server, stranger: socket.socket) -> int:
    """Sends datagrams one after the other, and lets the server read whenever it is woken."""
    wakes = 0
    for _ in range(BURST):
        stranger.sendto(b"nonsense", (server.address.host, server.address.port))
        if readable(server._fileno(), 0):
            server._step()
            wakes += 1
    return wakes


def make_busy(server: tw.Server, stranger: socket.socket) -> None:
    assert any(wakes_of_a_burst(server, stranger) < BURST // 2 for _ in range(ATTEMPTS))


def received(server: tw.Server) -> int:
    return server.counters["socket.received"]


def test_each_datagram_wakes_a_quiet_server(server: tw.Server, stranger: socket.socket) -> None:
    number = server._fileno()
    assert server._fileno() == number
    for count in range(1, 20):
        assert not readable(number, 0)
        stranger.sendto(b"nonsense", (server.address.host, server.address.port))
        assert readable(number, LONG_MS)
        assert readable(number, 0)  # it hasn't read
        server._step()
        assert received(server) == count


def test_a_busy_server_is_woken_for_many_datagrams_and_for_all(
    server: tw.Server, stranger: socket.socket
) -> None:
    server._fileno()
    make_busy(server, stranger)
    while received(server) % BURST:
        assert readable(server._fileno(), LONG_MS)
        server._step()
    # The last wakes of the busy time come without a datagram.
    while readable(server._fileno(), 50):
        server._step()
    stranger.sendto(b"nonsense", (server.address.host, server.address.port))
    assert readable(server._fileno(), LONG_MS)


def test_a_busy_server_that_sleeps_is_woken_and_one_that_only_receives(
    server: tw.Server, stranger: socket.socket
) -> None:
    server._fileno()
    for reads in (server.receive, server.pump):
        make_busy(server, stranger)
        before = received(server)
        stranger.sendto(b"nonsense", (server.address.host, server.address.port))
        while received(server) == before:
            assert readable(server._fileno(), LONG_MS)
            reads()


@pytest.mark.parametrize("busy", [False, True])
def test_any_selector_takes_the_descriptor(server: tw.Server, stranger: socket.socket, busy: bool) -> None:
    duplicate = os.dup(server._fileno())
    edge = select.epoll()
    edge.register(server._fileno(), select.EPOLLIN | select.EPOLLET)
    if busy:
        make_busy(server, stranger)
    while server._step() == 0.0 or edge.poll(0.05):
        pass
    for _ in range(100):
        before = received(server)
        stranger.sendto(b"nonsense", (server.address.host, server.address.port))
        while received(server) == before:
            assert edge.poll(LONG_MS / 1_000)
            server._step()
        assert not select.select([duplicate], [], [], 0.0)[0]
    edge.close()
    stranger.sendto(b"nonsense", (server.address.host, server.address.port))
    assert select.select([duplicate], [], [], LONG_MS / 1_000)[0]
    os.close(duplicate)


def test_what_a_call_leaves_wakes_again_at_once(server: tw.Server, stranger: socket.socket) -> None:
    number = server._fileno()
    for _ in range(FITS):
        stranger.sendto(b"nonsense", (server.address.host, server.address.port))
    while received(server) < FITS:
        assert readable(number, LONG_MS)
        server._step()


def test_the_descriptor_goes_with_the_server(server: tw.Server) -> None:
    number = server._fileno()
    os.fstat(number)
    server.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
    with pytest.raises(tw.errors.ClosedError):
        server._fileno()


def end(child: Callable[[], None]) -> int:
    """What becomes of a fork that does this."""
    pid = os.fork()
    if pid == 0:
        try:
            child()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_leaves_its_parents_wakes_alone(server: tw.Server, stranger: socket.socket) -> None:
    number = server._fileno()
    assert end(server.close) == 0
    for _ in range(3):
        stranger.sendto(b"nonsense", (server.address.host, server.address.port))
        assert readable(number, LONG_MS)
        server._step()
    assert received(server) == 3


def test_a_client_has_its_socket(server: tw.Server) -> None:
    with (
        tw.Client.connect(server.address, make_protocol()) as client,
        socket.socket(fileno=os.dup(client._fileno())) as same,
    ):
        assert same.getsockname()[1] == client.address.port
