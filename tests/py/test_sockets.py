"""Real sockets on the loopback interface: bounded, and without sleeping longer than a poll."""

from __future__ import annotations

import errno
import random
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import pytest
import tickwire as tw
from conftest import Chat, Move, make_protocol

KEY = bytes(range(32))


def tick_until(
    done: Callable[[], bool], *endpoints: tw.Server | tw.Client, seconds: float = 10
) -> list[list]:
    """Ticks the endpoints until `done`; returns the messages of each."""
    collected: list[list] = [[] for _ in endpoints]
    deadline = time.monotonic() + seconds
    while True:
        for endpoint, into in zip(endpoints, collected, strict=True):
            with endpoint.tick() as inbox:
                into += inbox.messages
        if done():
            return collected
        assert time.monotonic() < deadline, "not done in time"
        time.sleep(0.001)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_plays_over_real_sockets_without_any_key(protocol: tw.Protocol, host: str) -> None:
    with (
        tw.Server(f"{host}:0", protocol) as server,
        tw.Client.connect(server.address, protocol) as client,
    ):
        assert server.address.port != 0
        tick_until(lambda: client.connected and len(server.clients) == 1, server, client)
        client.send(Chat(3, "hi"))
        server.broadcast(Move(5), channel=1)
        got: list[object] = []
        for _ in range(1000):
            at_server, at_client = tick_until(lambda: True, server, client)
            got += [message for _, message in at_server] + at_client
            if len(got) == 2:
                break
            time.sleep(0.001)
        assert sorted(map(repr, got)) == sorted(map(repr, [Chat(3, "hi"), Move(5)]))
        assert server.counters["socket.received"] > 0
        client.close()
        tick_until(lambda: not server.clients, server)


def test_connects_with_a_token_of_a_login_backend(protocol: tw.Protocol) -> None:
    with tw.Server("127.0.0.1:0", protocol, key=KEY) as server:
        token = tw.ConnectToken.generate(
            protocol=protocol, key=KEY, client_id=9, servers=["127.0.0.1:1", server.address], timeout=1
        )
        assert (token.protocol_id, token.timeout) == (protocol.id, 1)
        assert token.servers == [tw.Address("127.0.0.1:1"), server.address]
        assert token.expires == token.created + 30
        token = tw.ConnectToken.from_bytes(token.to_bytes())
        with tw.Client(protocol, token) as client:
            tick_until(lambda: client.connected, server, client)
            assert server.clients[0].id == 9
            assert client.server_address == server.address, "the first server of the token is not there"


@pytest.mark.parametrize(
    ("changes", "counter"),
    [
        ({"key": bytes(32)}, "netcode.token_not_authentic"),
        ({"protocol": 99}, "netcode.wrong_protocol"),
        ({"internal_servers": ["10.0.0.1:5"]}, "netcode.token_for_other_server"),
    ],
)
def test_what_a_server_drops_silently_it_counts_by_name(
    protocol: tw.Protocol, changes: dict[str, object], counter: str
) -> None:
    with tw.Server("127.0.0.1:0", protocol, key=KEY) as server:
        settings: dict[str, object] = {
            "protocol": protocol,
            "key": KEY,
            "client_id": 1,
            "servers": [server.address],
        }
        token = tw.ConnectToken.generate(**{**settings, **changes})
        other = make_protocol(id=token.protocol_id)
        with tw.Client(other, token) as client:
            tick_until(lambda: server.counters[counter] > 0, client, server)
            assert not client.connected


def test_a_token_that_expired_says_so(protocol: tw.Protocol) -> None:
    token = tw.ConnectToken.generate(
        protocol=protocol, key=KEY, client_id=1, servers=["127.0.0.1:5"], expires_in=0
    )
    with tw.Client(protocol, token) as client:
        tick_until(lambda: client.disconnect_reason is not None, client)
        assert client.disconnect_reason is tw.DisconnectReason.TOKEN_EXPIRED
        assert client.state is tw.connections.ClientState.TOKEN_EXPIRED


def test_noise_from_strangers_is_counted_and_never_answered(protocol: tw.Protocol) -> None:
    rng = random.Random(1)
    with (
        tw.Server("127.0.0.1:0", protocol) as server,
        tw.Client.connect(server.address, protocol) as client,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
    ):
        tick_until(lambda: client.connected, server, client)
        stranger.setblocking(False)
        lengths = [0, 1, 17, 1200, 1300, 1301, 9000, *(rng.randrange(1, 1500) for _ in range(300))]
        for length in lengths:
            stranger.sendto(rng.randbytes(length), (server.address.host, server.address.port))
        before = server.counters
        tick_until(lambda: server.counters["socket.too_long"] > 1, server, client)
        client.send(Move(1))
        (at_server, _) = tick_until(lambda: client.stats.channels[0].queued == 0, server, client)
        assert [message for _, message in at_server] == [Move(1)]
        counters = server.counters
        dropped = sum(count - before[name] for name, count in counters.items() if name.startswith("netcode"))
        assert dropped + counters["socket.too_long"] == len(lengths)
        with pytest.raises(BlockingIOError):
            stranger.recv(2048)


FLOODING = """
import os, socket, sys
flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
flood.connect((sys.argv[1], int(sys.argv[2])))
noise = [os.urandom(length) for length in (1, 17, 18, 100, 400, 1200)] * 10
for _ in range(200_000 // len(noise)):
    for datagram in noise:
        flood.send(datagram)
"""


def test_stray_datagrams_cost_each_tick_its_bound_and_stop_no_game(protocol: tw.Protocol) -> None:
    with (
        tw.Server("127.0.0.1:0", protocol) as server,
        tw.Client.connect(server.address, protocol) as client,
    ):
        tick_until(lambda: client.connected, server, client)
        command = [sys.executable, "-c", FLOODING, server.address.host, str(server.address.port)]
        most = sent = 0
        got: list[int] = []
        deadline = time.monotonic() + 120
        before = server.counters["socket.received"]
        with subprocess.Popen(command) as flood:
            while flood.poll() is None or len(got) < sent:
                assert time.monotonic() < deadline
                received = server.counters["socket.received"]
                with server.tick() as inbox, client.tick():
                    got += [message.tick for _, message in inbox.messages]
                    if flood.poll() is None and sent < 60_000 and sent - len(got) < 100:
                        client.send(Move(sent))
                        sent += 1
                most = max(most, server.counters["socket.received"] - received)
        assert flood.returncode == 0
        # A call for the datagrams of a tick reads 3,000.
        assert 0 < most <= 3000
        assert client.connected
        assert got == list(range(sent))
        counters = server.counters
        strays = counters["socket.received"] - before + counters["socket.kernel_drops"]
        if sys.platform == "linux":
            assert strays >= 199_980
        assert counters["netcode.unknown_source"] > 0


def test_an_address_in_use_is_an_oserror_with_its_errno(protocol: tw.Protocol) -> None:
    with tw.Server("127.0.0.1:0", protocol) as server:
        with pytest.raises(OSError, match=str(server.address)) as raised:
            tw.Server(server.address, protocol)
        assert raised.value.errno == errno.EADDRINUSE
        network = tw.testing.SimulatedNetwork()
        kept = tw.Server("10.0.0.1:5", protocol, network=network)
        with pytest.raises(OSError, match="10.0.0.1:5") as raised:
            tw.Server("10.0.0.1:5", protocol, network=network)
        assert raised.value.errno == errno.EADDRINUSE
        del kept
    with pytest.raises(OSError, match=r"192\.0\.2\.1:5") as raised:
        tw.Client.connect(server.address, protocol, tuning=tw.Tuning(bind="192.0.2.1:5"))
    assert raised.value.errno == errno.EADDRNOTAVAIL


def test_bad_arguments_are_named(protocol: tw.Protocol) -> None:
    token = tw.ConnectToken.generate(protocol=1, key=KEY, client_id=1, servers=["127.0.0.1:5"])
    good = {"protocol": protocol, "key": KEY, "client_id": 1, "servers": ["127.0.0.1:5"]}

    def generate(**changes: object) -> object:
        return tw.ConnectToken.generate(**{**good, **changes})

    for call, complaint in [
        (lambda: tw.Server("localhost:5", protocol), "'localhost:5' is not an address with a port"),
        (lambda: tw.Server("127.0.0.1:0", protocol, key=b"short"), "key must be 32 bytes, not 5"),
        (lambda: tw.Server("127.0.0.1:0", protocol, max_clients=0), "max_clients must be 1 to 65536, not 0"),
        (
            lambda: tw.Client(protocol, token),
            "token must be for the client's protocol, whose id is 0x7469636b, not for 0x1",
        ),
        (lambda: tw.Client.connect("127.0.0.1:0", protocol), "address must have a port to connect to"),
        (
            lambda: tw.Client.connect("127.0.0.1:5", protocol, tuning=tw.Tuning(timeout=0)),
            "timeout must be 1 to",
        ),
        (lambda: generate(key=b""), "key must be 32 bytes, not 0"),
        (lambda: generate(client_id=2**64), "client_id must be 0 to 18446744073709551615"),
        (lambda: generate(client_id=-1), "client_id must be 0 to"),
        (lambda: generate(servers=[]), "servers must be 1 to 32 addresses, not 0"),
        (lambda: generate(servers=["127.0.0.1:5"] * 33), "servers must be 1 to 32 addresses, not 33"),
        (lambda: generate(user_data=bytes(257)), "user_data must be at most 256 bytes, not 257"),
        (lambda: generate(expires_in=-1), "expires_in must be 0 to"),
        (lambda: tw.ConnectToken.from_bytes(b""), "must be 2048 bytes, not 0"),
        (lambda: tw.ConnectToken.from_bytes(bytes(2048)), "not a connect token"),
    ]:
        with pytest.raises(ValueError, match=complaint):
            call()
    assert len(tw.generate_key()) == 32
    assert tw.generate_key() != tw.generate_key()


def test_development_mode_warns_beyond_loopback(protocol: tw.Protocol) -> None:
    with pytest.warns(UserWarning, match="has no key: it is in development mode and anyone can connect"):
        server = tw.Server("0.0.0.0:0", protocol)
    with pytest.warns(UserWarning, match="in development mode"):
        tw.Client.connect("192.0.2.1:5", protocol)
    with pytest.warns(UserWarning, match="connect tokens can't contain the address 0.0.0.0:0"):
        tw.Server("0.0.0.0:0", protocol, key=KEY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tw.Server("0.0.0.0:0", protocol, key=KEY, access=tw.tokens.Access(public_addresses=["192.0.2.1:5"]))
        client = tw.Client.connect(f"127.0.0.1:{server.address.port}", protocol)
    tick_until(lambda: client.connected, server, client)


def test_a_simulated_link_in_front_of_a_socket_delays_what_is_sent(protocol: tw.Protocol) -> None:
    bad = tw.Conditions(latency=0.03)
    with (
        tw.Server("127.0.0.1:0", protocol, debugging=tw.testing.Debugging(conditions=bad, seed=1)) as server,
        tw.Client.connect(
            server.address, protocol, debugging=tw.testing.Debugging(conditions=bad, seed=2)
        ) as client,
    ):
        start = time.monotonic()
        tick_until(lambda: client.connected, server, client)
        assert 0.1 < time.monotonic() - start < 2, "two round trips"
        tick_until(lambda: client.stats.rtt_ms > 0, server, client)
        assert 55 < client.stats.rtt_ms < 200
        assert client.counters["simulator.delivered"] > 0


EXITING = """
import sys
import tickwire as tw

@tw.message
class Move:
    tick: tw.u16

protocol = tw.Protocol(1, [Move])
server = tw.Server("127.0.0.1:0", protocol)
client = tw.Client.connect(server.address, protocol)
while not client.connected:
    with server.tick() as inbox, client.tick():
        pass
client.send(Move(1))
"""


@pytest.mark.parametrize("how", ["", "sys.exit(0)", "tick = server.tick(); tick.__enter__()"])
def test_the_interpreter_exits_with_open_connections(how: str) -> None:
    done = subprocess.run([sys.executable, "-c", EXITING + how], capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
