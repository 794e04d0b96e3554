"""Which tokens a server takes: restarts, lifetimes and clocks."""

from __future__ import annotations

import pytest
import tickwire as tw
from tickwire.testing import SimulatedNetwork, run


@tw.message
class Note:
    number: tw.u8


PROTOCOL = tw.Protocol(7, [Note])
KEY = bytes(range(32))
# The wall clock of simulated networks begins here.
EPOCH = 1_000_000_000


def try_token(
    server_settings: dict[str, int], *, now: int, expires_in: int = 30
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
    client = tw.Client(PROTOCOL, token, bind="10.0.0.2:0", network=network)
    run(network, server, client, seconds=1)
    return client.connected, server.counters


def test_without_a_maximum_lifetime_no_newcomer_waits() -> None:
    assert try_token({}, now=-5)[0]


def test_a_token_from_before_the_start_is_refused_under_a_maximum_lifetime() -> None:
    connected, counters = try_token({"max_token_lifetime": 30}, now=-5)
    assert not connected
    assert counters["netcode.token_before_start"] > 0
    assert try_token({"max_token_lifetime": 30}, now=0)[0]


def test_a_token_that_lives_longer_than_the_maximum_is_refused() -> None:
    connected, counters = try_token({"max_token_lifetime": 30}, now=0, expires_in=300)
    assert not connected
    assert counters["netcode.token_lifetime"] > 0


def test_clocks_that_differ_are_tolerated_by_a_setting() -> None:
    connected, counters = try_token({}, now=-32)
    assert not connected
    assert counters["netcode.token_just_expired"] > 0
    assert try_token({"clock_skew": 5}, now=-32)[0]


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
        tw.Server("10.0.0.1:1", PROTOCOL, network=SimulatedNetwork(), **{setting: value})
