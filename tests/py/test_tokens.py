"""Which tokens a server takes: restarts, lifetimes and clocks."""

from __future__ import annotations

from typing import Any

import pytest
import tickwire as tw
from test_sockets import tick_until
from tickwire.testing import SimulatedNetwork, advance


@tw.message
class Note:
    number: tw.u8


PROTOCOL = tw.Protocol(7, [Note])
KEY = bytes(range(32))
# The wall clock of simulated networks begins here.
EPOCH = 1_000_000_000


def make_token(server: tw.Server, *, client_id: int = 1, user_data: bytes = b"") -> tw.ConnectToken:
    return tw.ConnectToken.generate(
        protocol=PROTOCOL,
        key=KEY,
        client_id=client_id,
        servers=[server.address],
        user_data=user_data,
        now=EPOCH,
    )


def try_token(
    server_settings: dict[str, Any], *, now: int, expires_in: int = 30
) -> tuple[bool, dict[str, int]]:
    """Whether a token made at `now`, seconds after the server's start, lets a client in within a second."""
    network = SimulatedNetwork(seed=1)
    server = tw.Server("10.0.0.1:40000", PROTOCOL, key=KEY, network=network, **server_settings)
    token = tw.ConnectToken.generate(
        protocol=PROTOCOL,
        key=KEY,
        client_id=1,
        servers=[server.address],
        expires_in=expires_in,
        now=EPOCH + now,
    )
    client = tw.Client(PROTOCOL, token, tuning=tw.Tuning(bind="10.0.0.2:0"), network=network)
    advance(network, server, client, seconds=1)
    return client.connected, server.counters


def test_a_client_knows_its_id_from_its_token() -> None:
    network = SimulatedNetwork(seed=1)
    server = tw.Server("10.0.0.1:40000", PROTOCOL, key=KEY, network=network)
    data = make_token(server, client_id=2**64 - 1).to_bytes()
    token = tw.ConnectToken.from_bytes(data)
    client = tw.Client(PROTOCOL, token, tuning=tw.Tuning(bind="10.0.0.2:0"), network=network)
    assert client.id == 2**64 - 1
    advance(network, server, client, seconds=1)
    assert server.clients[0].id == client.id
    # The token of another netcode has zeros behind its keys.
    other = tw.ConnectToken.from_bytes(data.rstrip(b"\0")[:-9].ljust(2048, b"\0"))
    bind = tw.Tuning(bind="10.0.0.3:0")
    assert tw.Client(PROTOCOL, other, tuning=bind, network=SimulatedNetwork(seed=2)).id is None


@pytest.mark.parametrize("lifetime", [None, 30])
def test_a_token_from_before_the_start_is_refused_and_no_other(lifetime: int | None) -> None:
    settings = {"access": tw.tokens.Access(max_token_lifetime=lifetime)}
    connected, counters = try_token(settings, now=-5)
    assert not connected
    assert counters["netcode.token_before_start"] > 0
    assert try_token(
        {**settings, "access": tw.tokens.Access(clock_skew=5, max_token_lifetime=lifetime)}, now=-5
    )[0]
    assert try_token(settings, now=0)[0]
    assert try_token(settings, now=0, expires_in=10)[0], "a shorter life than the longest makes nobody wait"


def test_a_token_that_lives_longer_than_the_maximum_is_refused() -> None:
    connected, counters = try_token(
        {"access": tw.tokens.Access(max_token_lifetime=30)}, now=0, expires_in=300
    )
    assert not connected
    assert counters["netcode.token_lifetime"] > 0


def test_clocks_that_differ_are_tolerated_by_a_setting() -> None:
    connected, counters = try_token({}, now=-3, expires_in=1)
    assert not connected
    assert counters["netcode.token_just_expired"] > 0
    assert try_token({"access": tw.tokens.Access(clock_skew=5)}, now=-3, expires_in=1)[0]


@pytest.mark.parametrize(
    ("setting", "value", "bound"),
    [
        ("max_token_lifetime", 0, "1 to 31536000"),
        ("clock_skew", -1, "0 to 3600"),
        ("clock_skew", 3601, "0 to 3600"),
    ],
)
def test_settings_out_of_bounds_are_named(setting: str, value: int, bound: str) -> None:
    with pytest.raises(ValueError, match=f"{setting} must be {bound}, not {value}"):
        tw.tokens.Access(**{setting: value})  # type: ignore[arg-type]


def test_a_token_is_one_clients() -> None:
    network = SimulatedNetwork(seed=1)
    server = tw.Server("10.0.0.1:40000", PROTOCOL, key=KEY, network=network)
    token = make_token(server)
    client = tw.Client(PROTOCOL, token, tuning=tw.Tuning(bind="10.0.0.2:0"), network=network)
    sentence = "token must be new, and another client of this process used it"
    with pytest.raises(ValueError, match=sentence):
        tw.Client(PROTOCOL, token, network=network)
    advance(network, server, client, seconds=1)
    assert client.connected
    client.close()
    for again in (token, tw.ConnectToken.from_bytes(token.to_bytes())):
        with pytest.raises(ValueError, match=sentence):
            tw.Client(PROTOCOL, again, network=network)


def test_a_token_that_nobody_answered_is_good_for_another_try() -> None:
    network = SimulatedNetwork(seed=1)
    server = tw.Server("10.0.0.1:40000", PROTOCOL, key=KEY, network=network)
    token = make_token(server)
    server.close()
    client = tw.Client(PROTOCOL, token, tuning=tw.Tuning(bind="10.0.0.2:0"), network=network)
    advance(network, client, seconds=11)
    assert client.disconnect_reason is tw.DisconnectReason.REQUEST_TIMED_OUT
    tw.Client(PROTOCOL, token, tuning=tw.Tuning(bind="10.0.0.3:0"), network=network)


@pytest.mark.parametrize(
    "wrong", [{"tuning": tw.Tuning(columns=[int])}, {"ghosts": {int: int}}, {"tuning": 1}, {"transfers": 1}]
)
def test_a_setting_that_is_wrong_costs_no_token(wrong: dict[str, object]) -> None:
    network = SimulatedNetwork(seed=1)
    server = tw.Server("10.0.0.1:40000", PROTOCOL, key=KEY, network=network)
    token = make_token(server)
    with pytest.raises((TypeError, ValueError)):
        tw.Client(PROTOCOL, token, network=network, **wrong)  # type: ignore[arg-type]
    client = tw.Client(PROTOCOL, token, network=network)
    advance(network, server, client, seconds=1)
    assert client.connected


def test_tokens_of_sockets_are_remembered_by_the_process() -> None:
    with tw.Server("127.0.0.1:0", PROTOCOL, key=KEY) as server:
        token = tw.ConnectToken.generate(protocol=PROTOCOL, key=KEY, client_id=1, servers=[server.address])
        with tw.Client(PROTOCOL, token):
            copy = tw.ConnectToken.from_bytes(token.to_bytes())
            with pytest.raises(ValueError, match="token must be new"):
                tw.Client(PROTOCOL, copy, tuning=tw.Tuning(driver="thread"))


def test_coming_back_takes_the_place_of_the_old_connection() -> None:
    network = SimulatedNetwork(seed=1)
    server = tw.Server("10.0.0.1:40000", PROTOCOL, key=KEY, max_clients=1, network=network)
    old = tw.Client(PROTOCOL, make_token(server), tuning=tw.Tuning(bind="10.0.0.2:0"), network=network)
    advance(network, server, old, seconds=1)
    (before,) = server.clients
    token = make_token(server, user_data=b"back")
    new = tw.Client(PROTOCOL, token, tuning=tw.Tuning(bind="10.0.0.3:0"), network=network)
    received = advance(network, server, old, new, seconds=1)
    gone, come = received[0].events
    assert isinstance(gone, tw.Disconnected)
    assert isinstance(come, tw.Connected)
    assert (gone.client, gone.reason) == (before, tw.DisconnectReason.REPLACED)
    assert come.client is not None
    assert come.client.user_data.startswith(b"back")
    assert old.disconnect_reason is tw.DisconnectReason.REPLACED
    assert new.connected


def test_coming_back_waits_where_duplicates_are_not_replaced() -> None:
    network = SimulatedNetwork(seed=1)
    server = tw.Server(
        "10.0.0.1:40000",
        PROTOCOL,
        key=KEY,
        access=tw.tokens.Access(replace_duplicates=False),
        network=network,
    )
    old = tw.Client(PROTOCOL, make_token(server), tuning=tw.Tuning(bind="10.0.0.2:0"), network=network)
    advance(network, server, old, seconds=1)
    new = tw.Client(PROTOCOL, make_token(server), tuning=tw.Tuning(bind="10.0.0.3:0"), network=network)
    advance(network, server, old, new, seconds=1)
    assert (old.connected, new.connected) == (True, False)
    assert server.counters["netcode.client_id_connected"] > 0
    old.close()
    advance(network, server, new, seconds=1)
    assert new.connected


@pytest.mark.parametrize("hangs", ["client", "server"])
def test_whoever_hung_learns_at_once_that_it_was_given_up(hangs: str) -> None:
    network = SimulatedNetwork(seed=1)
    server = tw.Server("10.0.0.1:40000", PROTOCOL, key=KEY, network=network)
    client = tw.Client(PROTOCOL, make_token(server), tuning=tw.Tuning(bind="10.0.0.2:0"), network=network)
    advance(network, server, client, seconds=1)
    (handle,) = server.clients
    awake, hung = (server, client) if hangs == "client" else (client, server)
    advance(network, awake, seconds=12)
    with hung.tick() as inbox:
        (event,) = inbox.events
        assert isinstance(event, tw.Disconnected)
        assert event.reason is tw.DisconnectReason.TIMED_OUT
        assert event.client is (None if hangs == "client" else handle)


@pytest.mark.parametrize("driver", ["polled", "thread"])
@pytest.mark.parametrize("dead", ["127.0.0.1:1", "[::1]:1"])
def test_a_token_with_servers_of_both_families_reaches_each(driver: str, dead: str) -> None:
    """The first server isn't there, and the second listens on an address of the other family."""
    where = "[::1]:0" if dead.startswith("127") else "127.0.0.1:0"
    with tw.Server(where, PROTOCOL, key=KEY) as server:
        token = tw.ConnectToken.generate(
            protocol=PROTOCOL, key=KEY, client_id=1, servers=[dead, server.address], timeout=1
        )
        with tw.Client(PROTOCOL, token, tuning=tw.Tuning(driver=driver)) as client:  # type: ignore[call-overload]
            tick_until(lambda: client.connected, server, client)
            assert client.server_address == server.address


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_server_on_all_addresses_has_both_families(host: str) -> None:
    with tw.Server(
        "[::]:0", PROTOCOL, key=KEY, access=tw.tokens.Access(public_addresses=["127.0.0.1:5", "[::1]:5"])
    ) as server:
        token = tw.ConnectToken.generate(
            protocol=PROTOCOL,
            key=KEY,
            client_id=1,
            servers=[(host, server.address.port)],
            internal_servers=[(host, 5)],
        )
        with tw.Client(PROTOCOL, token) as client:
            tick_until(lambda: client.connected, server, client)
            assert server.clients[0].address.host == host


def test_a_world_reaches_servers_of_both_families() -> None:
    network = SimulatedNetwork(seed=1)
    server = tw.Server("[2001:db8::1]:40000", PROTOCOL, key=KEY, network=network)
    token = tw.ConnectToken.generate(
        protocol=PROTOCOL,
        key=KEY,
        client_id=1,
        servers=["10.0.0.1:40000", server.address],
        timeout=1,
        now=EPOCH,
    )
    client = tw.Client(PROTOCOL, token, tuning=tw.Tuning(bind="10.0.0.2:0"), network=network)
    advance(network, server, client, seconds=2)
    assert client.connected
