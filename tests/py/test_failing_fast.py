"""Reports that come at once when no connection can come up, and those that never come."""

from __future__ import annotations

import logging
from typing import Annotated, Any

import pytest
import tickwire as tw
from conftest import Blob, Chat, Move, Odd, make_protocol, paced
from tickwire.testing import advance

KEY, OTHER_KEY = bytes(range(32)), bytes(32)
REASON = tw.DisconnectReason


def dial(
    server: dict[str, Any], client: dict[str, Any], seconds: float, *, address: str = "10.0.0.1:5"
) -> list[tw.Disconnected]:
    """How a dial ends of which the server's game hears nothing."""
    network = tw.testing.SimulatedNetwork(seed=1)
    listens = tw.Server(address, network=network, **{"protocol": make_protocol(), **server})
    dials = tw.Client.connect(address, network=network, **{"protocol": make_protocol(), **client})
    at_server, at_client = advance(network, listens, dials, seconds=seconds)
    assert at_server.events == []
    ended = [event for event in at_client.events if isinstance(event, tw.Disconnected)]
    assert len(ended) == len(at_client.events)
    return ended


@pytest.mark.parametrize(
    ("server", "client", "sentence"),
    [
        (
            {},
            {"protocol": make_protocol(id=0x99)},
            "the server has protocol id 0x7469636b, and this client 0x99: give both the same id",
        ),
        (
            {},
            {"key": KEY},
            "the server has another key: give both sides the same key, or none",
        ),
    ],
)
def test_development_says_at_once_what_differs(
    server: dict[str, Any], client: dict[str, Any], sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "tickwire"):
        ended = dial(server, client, 1.5)
    assert [(event.reason, event.detail) for event in ended] == [(REASON.REFUSED, sentence)]
    assert any("give both sides the same one" in record.getMessage() for record in caplog.records)


@tw.message
class Ping:
    number: tw.u8


def changed(**fields: Any) -> type:
    """Another class of the name, as an older client has it."""
    return tw.message(type("Move", (), {"__annotations__": fields}))


AIM = Annotated[float, tw.quantized(-1, 1, 1 / 256)]


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"messages": [Move, Chat, Blob, Odd, Ping]}, "Ping is unknown to the server"),
        (
            {"messages": [Move, Chat, Blob]},
            "the server has a message class that this client has not (1)",
        ),
        ({"messages": [Chat, Move, Blob, Odd]}, "the message classes are in another order"),
        (
            {"messages": [changed(tick=tw.u32, buttons=tw.u8, aim=AIM), Chat, Blob, Odd]},
            "Move.tick differs or is unknown to the server",
        ),
        (
            {"messages": [changed(tick=tw.u16, aim=AIM), Chat, Blob, Odd]},
            "Move has more fields at the server (3 there, 2 here)",
        ),
        (
            {
                "messages": [
                    changed(tick=tw.u16, jump=bool, buttons=tw.u8, aim=AIM, fly=bool),
                    Chat,
                    Blob,
                    Odd,
                ]
            },
            "Move.jump, Move.fly differ or are unknown to the server (3 fields there, 5 here)",
        ),
        ({"channels": [tw.reliable_ordered("events")]}, "channels: 2 at the server, 1 here"),
        (
            {
                "channels": [tw.reliable_ordered("events"), tw.sequenced("state")],
                "messages": [Move, Chat, Blob, Ping],
            },
            "Ping is unknown to the server; the server has a message class that this client has not (1); "
            "channel 1 (state) has another kind or other bounds",
        ),
    ],
)
def test_development_names_the_messages_and_channels_that_differ(
    other: dict[str, Any], sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "tickwire"):
        ended = dial({}, {"protocol": make_protocol(**other)}, 1.5)
    assert [(event.reason, event.detail) for event in ended] == [(REASON.PROTOCOL_MISMATCH, sentence)]
    assert any("each is told which" in record.getMessage() for record in caplog.records)
    (event,) = dial({}, {"protocol": make_protocol(**{**other, "id": 0x99})}, 1.5)
    assert event.reason is REASON.REFUSED
    assert event.detail is not None
    assert event.detail.endswith(f"give both the same id ({sentence})")


def test_production_names_no_message_that_differs() -> None:
    network = tw.testing.SimulatedNetwork(seed=1)
    server = tw.Server("10.0.0.1:5", make_protocol(), network=network, key=KEY)
    client = tw.Client.connect(server.address, make_protocol(messages=[Move]), network=network, key=KEY)
    advance(network, server, client, seconds=1)
    assert (client.disconnect_reason, client.disconnect_detail) == (REASON.PROTOCOL_MISMATCH, None)
    assert server.counters["netcode.protocol_differs"] == 0


@pytest.mark.parametrize("client", [{}, {"key": OTHER_KEY}, {"key": KEY, "protocol": make_protocol(id=0x99)}])
def test_production_stays_silent(client: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tickwire"):
        ended = dial({"key": KEY}, {"tuning": tw.Tuning(timeout=3), **client}, 4)
    assert [event.reason for event in ended] == [REASON.REQUEST_TIMED_OUT]
    assert any("give both sides the same one" in record.getMessage() for record in caplog.records)


def test_behind_a_relay_of_its_own_machine_a_server_with_a_key_is_silent_too() -> None:
    ended = dial({"key": KEY}, {"key": OTHER_KEY, "tuning": tw.Tuning(timeout=3)}, 4, address="127.0.0.1:5")
    assert [event.reason for event in ended] == [REASON.REQUEST_TIMED_OUT]


def test_a_client_with_a_backends_token_believes_no_explanation() -> None:
    network = tw.testing.SimulatedNetwork(seed=1)
    server = tw.Server("10.0.0.1:5", make_protocol(), network=network)
    token = tw.ConnectToken.generate(
        protocol=make_protocol(), key=KEY, client_id=1, servers=[server.address], timeout=2, now=network.unix
    )
    client = tw.Client(make_protocol(), token, network=network)
    advance(network, server, client, seconds=3)
    assert client.disconnect_reason is REASON.REQUEST_TIMED_OUT


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
@pytest.mark.parametrize("driver", ["polled", "thread"])
def test_a_closed_port_is_reported_within_a_second(host: str, driver: Any) -> None:
    with tw.articles.Socket(f"{host}:0") as closed:
        address = closed.address
    with tw.Client.connect(address, make_protocol(), tuning=tw.Tuning(driver=driver)) as client:
        passed = 0
        for tick in paced(60, seconds=5):
            passed = tick
            with client.tick():
                pass
            if client.disconnect_reason is not None:
                break
    if client.disconnect_reason is None:
        pytest.skip("this system doesn't tell")
    assert client.disconnect_reason is REASON.UNREACHABLE
    assert 40 <= passed <= 120
    assert "no program listens" in str(client.disconnect_reason)


def test_a_server_that_starts_a_little_later_is_found() -> None:
    protocol = make_protocol()
    with tw.articles.Socket("127.0.0.1:0") as closed:
        address = closed.address
    with tw.Client.connect(address, protocol) as client:
        server = None
        for tick in paced(60, seconds=5):
            with client.tick():
                pass
            if tick >= 20:
                server = server or tw.Server(address, protocol)
                with server.tick():
                    pass
            if client.connected:
                break
        assert client.connected


def test_one_server_has_players_of_both_families() -> None:
    protocol = make_protocol()
    try:
        server = tw.Server(
            "[::]:0", protocol, key=KEY, access=tw.tokens.Access(public_addresses=["127.0.0.1:1"])
        )
    except OSError:
        pytest.skip("this system has no IPv6")
    port = server.address.port
    clients = [
        tw.Client.connect((host, port), protocol, key=KEY, client_id=number)
        for number, host in enumerate(["127.0.0.1", "::1"])
    ]
    for _ in paced(60, seconds=5):
        with server.tick():
            pass
        for client in clients:
            with client.tick():
                pass
        if all(client.connected for client in clients):
            break
    assert sorted(client.address.is_ipv6 for client in server.clients) == [False, True]
    for end in (*clients, server):
        end.close()
