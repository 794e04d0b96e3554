"""Counters and log lines, in virtual time."""

from __future__ import annotations

import logging
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tickwire as tw
from conftest import Chat, Odd, make_protocol, paced
from tickwire.testing import advance, connected_pair

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join((DOCS / name).read_text("utf-8") for name in ("counters.md", "networks.md"))
DROPPED = re.compile(r"(.*) dropped ([\d,]+) datagrams? in the last (second|\d+ seconds): (.*)")


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "tickwire")


def drops(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str, int, dict[str, int]]]:
    """Level, endpoint, total and reasons of each line about dropped datagrams."""
    lines = []
    for record in caplog.records:
        if match := DROPPED.fullmatch(record.getMessage()):
            endpoint, total, _, reasons = match.groups()
            pairs = (reason.split(" ")[:2] for reason in reasons.split(", "))
            counts = {name: int(count.replace(",", "")) for name, count in pairs}
            lines.append((record.levelno, endpoint, int(total.replace(",", "")), counts))
    return lines


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level]


def test_every_counter_is_documented(protocol: tw.Protocol) -> None:
    _, server, client = connected_pair(protocol)
    documented = re.findall(r"^\| `(\w+\.\w+)`", PAGE, re.M)
    assert sorted(documented) == sorted(server.counters) == sorted(client.counters)
    assert len(set(documented)) == len(documented)


def test_connections_are_told_with_the_reason_they_ended(
    protocol: tw.Protocol, caplog: pytest.LogCaptureFixture
) -> None:
    network, server, client = connected_pair(protocol)
    handle = server.clients[0]
    who = f"client {handle.id} ({client.address})"
    assert sorted(messages(caplog, logging.INFO)) == [
        f"{who} connected to the server at {server.address}, slot 0",
        f"the client at {client.address} of {server.address} connected, slot 0",
    ]
    caplog.clear()
    server.disconnect(handle)
    advance(network, server, client, seconds=0.5)
    assert sorted(messages(caplog, logging.INFO)) == [
        f"{who} of the server at {server.address} disconnected: the server ended the connection",
        f"the client at {client.address} of {server.address} disconnected: the server ended the connection",
    ]


def test_a_protocol_violation_is_told_with_what_it_was(caplog: pytest.LogCaptureFixture) -> None:
    class Strict(tw.messages.Message):
        n: int = 0

        def serialize(self, stream: tw.messages.Stream) -> None:
            self.n = stream.ranged(self.n, 0, 1)

    # The same messages as far as the protocols' hashes know.
    lenient = type("Strict", (Odd,), {})
    server_side, client_side = make_protocol(messages=[Strict]), make_protocol(messages=[lenient])
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", server_side, network=network)
    client = tw.Client.connect("10.0.0.1:5", client_side, network=network)
    advance(network, server, client, seconds=0.5)
    assert client.connected
    client.send(lenient(n=400))
    advance(network, server, client, seconds=0.5)
    (line,) = [
        line
        for line in messages(caplog, logging.INFO)
        if "disconnected" in line and "10.0.0.1:5" in line and line.startswith("client")
    ]
    assert "protocol violation" in line
    said = "Strict: serialize() leaves bits of the message unread"
    assert line.endswith(f"(a message is refused by its own serialize: {said})")


def test_a_flood_is_one_line_a_second_with_its_reasons(
    protocol: tw.Protocol, caplog: pytest.LogCaptureFixture
) -> None:
    with tw.Server("127.0.0.1:0", protocol) as server, tw.articles.Socket("127.0.0.1:0") as stranger:
        for _ in range(30):
            stranger.send_many([(server.address, b"\x00junk")] * 40 + [(server.address, b"")] * 10)
            server.pump()
        counted = {
            name: count for name, count in server.counters.items() if name.startswith("netcode") and count
        }
    lines = drops(caplog)
    assert 1 <= len(lines) <= 3, "some milliseconds of flood"
    level, endpoint, total, reasons = lines[0]
    assert (level, endpoint) == (logging.WARNING, f"the server at {server.address}")
    assert set(reasons) <= set(counted)
    assert total == sum(reasons.values()) > 0
    assert list(reasons.values()) == sorted(reasons.values(), reverse=True)


def test_lines_add_up_to_the_counters_and_come_at_most_once_a_second(
    protocol: tw.Protocol, caplog: pytest.LogCaptureFixture
) -> None:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", protocol, network=network, key=bytes(32))
    # Whose key is another's: each request is dropped.
    clients = [tw.Client.connect("10.0.0.1:5", protocol, network=network) for _ in range(5)]
    advance(network, server, *clients, seconds=4.5)
    lines = [line for line in drops(caplog) if line[1].startswith("the server")]
    assert 3 <= len(lines) <= 5
    assert {name for line in lines for name in line[3]} <= {
        "netcode.token_not_authentic",
        "netcode.source_limit",
    }
    counted = sum(count for name, count in server.counters.items() if name.startswith("netcode"))
    told = sum(line[2] for line in lines)
    assert counted * 0.7 < told <= counted
    caplog.clear()
    network.advance(10)
    server.pump()
    assert sum(line[2] for line in drops(caplog)) == counted - told
    assert messages(caplog, logging.WARNING)[0].count(" seconds: ") == 1, "nobody looked for longer"


def test_a_token_refused_for_its_clock_is_told_with_what_may_be_the_matter(
    protocol: tw.Protocol, caplog: pytest.LogCaptureFixture
) -> None:
    key = bytes(32)
    with tw.Server("127.0.0.1:0", protocol, key=key) as server:
        # From a backend whose clock is a minute and a half slow.
        token = tw.ConnectToken.generate(
            protocol=protocol, key=key, client_id=1, servers=[server.address], now=int(time.time()) - 90
        )
        with tw.Client(protocol, token) as client:
            for _ in paced(60, seconds=10):
                client.pump()
                server.pump()
                if drops(caplog):
                    break
    (line,) = messages(caplog, logging.WARNING)
    assert "netcode.token_just_expired" in line
    assert line.endswith("(the clocks of the login backend and this server may differ)")


def test_a_peer_of_another_version_of_netcode_is_told_by_that(
    protocol: tw.Protocol, caplog: pytest.LogCaptureFixture
) -> None:
    with tw.Server("127.0.0.1:0", protocol) as server, socket.socket(type=socket.SOCK_DGRAM) as peer:
        # As long as 1.01 has its requests.
        peer.sendto(b"\0NETCODE 1.01\0".ljust(1062, b"\7"), (server.address.host, server.address.port))
        for _ in paced(60, seconds=10):
            server.pump()
            if drops(caplog):
                break
        assert server.counters["netcode.wrong_version"] == 1
    (line,) = messages(caplog, logging.WARNING)
    assert line.endswith("netcode.wrong_version 1 (from netcode 1.01; this server has 1.02)")


def test_a_healthy_connection_over_a_bad_network_warns_of_nothing(
    protocol: tw.Protocol, caplog: pytest.LogCaptureFixture
) -> None:
    bad = tw.Conditions(latency=0.05, jitter=0.03, loss=0.1, duplicate=0.3, reorder=0.1)
    network, server, client = connected_pair(protocol, conditions=bad, seed=2)
    advance(network, server, client, seconds=5)
    server.disconnect(server.clients[0])
    advance(network, server, client, seconds=3)
    lines = drops(caplog)
    assert lines, "copies are dropped"
    assert {line[0] for line in lines} == {logging.DEBUG}


def test_a_flood_of_copies_is_a_warning(protocol: tw.Protocol, caplog: pytest.LogCaptureFixture) -> None:
    copies = tw.Conditions(duplicate=1)
    network, server, client = connected_pair(protocol, conditions=copies)
    for number in range(400):
        client.send(Chat(number % 64, "x" * 150), channel=1)
        client.flush()
    advance(network, server, client, seconds=2)
    assert logging.WARNING in {line[0] for line in drops(caplog) if line[1].startswith("the server")}


def test_lines_below_the_level_are_not_made(protocol: tw.Protocol, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "tickwire")
    network, server, client = connected_pair(protocol, conditions=tw.Conditions(duplicate=0.5))
    advance(network, server, client, seconds=2)
    assert caplog.records == []


def test_a_handler_may_use_the_endpoint(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    seen: list[dict[str, int]] = []

    class Handler(logging.Handler):
        def emit(self, _: logging.LogRecord) -> None:
            seen.append(server.counters)
            seen.append(client.counters)

    handler = Handler()
    logging.getLogger("tickwire").addHandler(handler)
    try:
        server.disconnect(server.clients[0])
        advance(network, server, client, seconds=2)
    finally:
        logging.getLogger("tickwire").removeHandler(handler)
    assert len(seen) >= 4


def test_an_interrupt_within_the_logger_reaches_the_game(protocol: tw.Protocol) -> None:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", protocol, network=network)
    client = tw.Client.connect("10.0.0.1:5", protocol, network=network)

    class Handler(logging.Handler):
        def emit(self, _: logging.LogRecord) -> None:
            raise KeyboardInterrupt

    handler = Handler()
    logging.getLogger("tickwire").addHandler(handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            advance(network, server, client, seconds=5)
    finally:
        logging.getLogger("tickwire").removeHandler(handler)
    assert len(server.clients) == 1


FLOODED = """
import logging, time
import tickwire as tw
{first}
server = tw.Server("127.0.0.1:0", tw.Protocol(1, [tw.message(type("M", (), {{}}))]))
start = time.monotonic()
with tw.articles.Socket("127.0.0.1:0") as stranger:
    while time.monotonic() < start + 2.5:
        stranger.send(server.address, b"\\0junk")
        server.pump()
        time.sleep(1 / 60)
assert server.counters["socket.received"] > 0
"""


def printed(first: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", FLOODED.format(first=first)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    return done.stderr.splitlines()


def test_without_logging_configured_servers_warn_on_stderr_once_a_second() -> None:
    lines = printed("")
    assert 1 <= len(lines) <= 3
    for line in lines:
        assert line.startswith("tickwire: the server at 127.0.0.1:")
        assert "netcode.too_short" in line


@pytest.mark.parametrize(
    "first",
    [
        "logging.getLogger('tickwire').addHandler(logging.NullHandler())",
        "logging.getLogger('tickwire').setLevel(logging.ERROR)",
        "logging.basicConfig(level=logging.ERROR)",
    ],
)
def test_the_games_own_settings_hold(first: str) -> None:
    assert printed(first) == []
