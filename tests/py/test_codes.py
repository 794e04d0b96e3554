"""Servers that clients reach by a code, through NATs or a relay; in virtual time."""

from __future__ import annotations

import itertools
from typing import Annotated

import pytest
import tickwire as tw

KEY = bytes(range(32))
SERVER = "198.51.100.1:3478"
RELAY = "198.51.100.2:3480"
KINDS = ("full-cone", "restricted", "port-restricted", "symmetric")


@tw.message
class Chat:
    text: Annotated[str, tw.text(100)]


PROTOCOL = tw.Protocol(77, [Chat])
Client = tw.Client[Chat]


class Internet:
    """A simulated network with a rendezvous server, a relay, a server, and clients, each behind a NAT."""

    def __init__(
        self, host: str | None, *, seed: int = 1, loss: float = 0.0, title: str = "", **settings: object
    ) -> None:
        conditions = tw.Conditions(latency=0.03, jitter=0.005, loss=loss)
        self.network = tw.testing.SimulatedNetwork(conditions=conditions, seed=seed)
        self.rendezvous = tw.peers.RendezvousServer(SERVER, relay=RELAY, relay_key=KEY, network=self.network)
        self.relay = tw.peers.Relay(RELAY, key=KEY, network=self.network)
        self.numbers = itertools.count(1)
        self.server = tw.Server(
            self.place(host),
            PROTOCOL,
            network=self.network,
            rendezvous=tw.peers.Rendezvous(SERVER, title=title),
            **settings,  # type: ignore[arg-type]
        )
        self.clients: list[Client] = []
        self.events: dict[Client, list[object]] = {}
        self.texts: list[tuple[int, str]] = []

    def place(self, kind: str | None) -> str:
        number = next(self.numbers)
        if kind is None:
            return f"192.0.2.{number}:5000"
        self.network.add_nat(f"203.0.113.{number}", [f"10.0.{number}.2"], kind=kind)
        return f"10.0.{number}.2:5000"

    def connect(
        self,
        kind: str | None,
        code: str | None = None,
        protocol: tw.Protocol[Chat] = PROTOCOL,
        *,
        timeout: int | None = None,
        **more: object,
    ) -> Client:
        code = code or self.server.code
        assert code is not None
        client = tw.Client.connect(
            tw.peers.Code(code, rendezvous=SERVER),
            protocol,
            network=self.network,
            tuning=tw.Tuning(bind=self.place(kind), timeout=timeout),
            **more,  # type: ignore[arg-type]
        )
        self.clients.append(client)
        self.events[client] = []
        return client

    def run(self, seconds: float, *, relay: bool = True, server: bool = True) -> None:
        for _ in range(round(seconds * 60)):
            self.network.advance(1 / 60)
            self.rendezvous.pump()
            if relay:
                self.relay.pump()
            if server:
                with self.server.tick() as inbox:
                    for client, message in inbox.messages:
                        self.texts.append((client.id, message.text))
                        self.server.send(client, message)
            for client in self.clients:
                if not client.closed:
                    with client.tick() as inbox:
                        self.events[client] += inbox.events
                        self.events[client] += inbox.messages

    def ended(self, client: Client) -> tuple[tw.DisconnectReason, str | None]:
        event = self.events[client][-1]
        assert isinstance(event, tw.Disconnected)
        assert event.reason is client.disconnect_reason
        return event.reason, event.detail


@pytest.mark.parametrize("host", [None, *KINDS])
@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_clients_behind_all_kinds_of_boxes_reach_a_server_by_its_code(host: str | None, loss: float) -> None:
    net = Internet(host, seed=2, loss=loss)
    assert net.server.code is None
    net.run(1)
    for number, kind in enumerate((None, *KINDS)):
        # As people type it.
        code = str(net.server.code)
        net.connect(kind, f"{code[:3]}-{code[3:]} ".lower(), client_id=number)
    net.run(4)
    assert [client.connected for client in net.clients] == [True] * 5
    assert len(net.server.clients) == 5
    for client in net.clients:
        client.send(Chat("hello"))
    net.run(2)
    assert sorted(net.texts) == [(number, "hello") for number in range(5)]
    assert all(net.events[client][-1] == Chat("hello") for client in net.clients)
    assert net.relay.counters["channels"] >= (1 if host == "symmetric" else 0)
    assert loss or net.relay.counters["channels"] == (1 if host == "symmetric" else 0)


def test_two_symmetric_nats_play_over_the_relay_until_it_stops() -> None:
    net = Internet("symmetric")
    net.run(1)
    client = net.connect("symmetric")
    net.run(2)
    assert client.connected
    assert net.relay.counters["channels"] == 1
    net.run(15, relay=False)
    assert net.ended(client)[0] is tw.DisconnectReason.TIMED_OUT
    assert net.server.clients == []
    # The relay is back, and so are the players.
    again = net.connect("symmetric")
    net.run(3)
    assert again.connected


def test_without_a_relay_two_symmetric_nats_end_in_no_path() -> None:
    net = Internet("symmetric")
    net.run(1)
    client = net.connect("symmetric")
    net.run(8, relay=False)
    reason, detail = net.ended(client)
    assert reason is tw.DisconnectReason.NO_PATH
    assert detail is not None
    assert "the two NATs need a relay" in detail


def test_a_code_of_no_game_ends_at_once() -> None:
    net = Internet(None)
    net.run(1)
    client = net.connect("symmetric", "BCDFGH")
    net.run(1)
    assert net.ended(client) == (
        tw.DisconnectReason.UNKNOWN_CODE,
        "no game has this code, or it has ended",
    )


def test_a_server_that_closes_takes_its_code_with_it() -> None:
    net = Internet("port-restricted")
    net.run(1)
    code = net.server.code
    client = net.connect("symmetric")
    net.run(2)
    net.server.close()
    net.run(1, server=False)
    assert net.ended(client)[0] is tw.DisconnectReason.SERVER_CLOSED
    late = net.connect(None, code)
    net.run(1, server=False)
    assert net.ended(late)[0] is tw.DisconnectReason.UNKNOWN_CODE
    assert net.server.code is None


def test_a_server_that_dies_leaves_a_code_that_leads_nowhere() -> None:
    net = Internet("port-restricted")
    net.run(1)
    client = net.connect("port-restricted")
    net.run(9, server=False)
    assert net.ended(client)[0] is tw.DisconnectReason.NO_PATH


def test_a_code_of_another_protocol_is_refused() -> None:
    net = Internet("full-cone")
    net.run(1)
    client = net.connect("full-cone", protocol=tw.Protocol(78, [Chat]))
    net.run(1)
    reason, detail = net.ended(client)
    assert reason is tw.DisconnectReason.PROTOCOL_MISMATCH
    assert detail is not None
    assert "has another protocol id" in detail


def test_a_full_server_lets_nobody_look_for_it() -> None:
    net = Internet("full-cone", max_clients=1)
    net.run(1)
    net.connect(None)
    net.run(2)
    late = net.connect(None)
    net.run(1)
    assert net.ended(late) == (tw.DisconnectReason.SERVER_FULL, "the game with this code is full")
    net.clients[0].close()
    net.run(1)
    next_one = net.connect(None)
    net.run(2)
    assert next_one.connected


def test_a_silent_rendezvous_server_is_named_on_both_sides() -> None:
    net = Internet("full-cone")
    net.run(1)
    code = net.server.code
    assert net.server.code_error is None
    net.rendezvous.close()
    client = net.connect("full-cone")
    net.run(4)
    assert net.ended(client) == (tw.DisconnectReason.NO_PATH, "the rendezvous server doesn't answer")
    net.run(12)
    assert net.server.code == code
    assert net.server.code_error == "the rendezvous server doesn't answer"
    # It comes back, with another code.
    net.rendezvous = tw.peers.RendezvousServer(SERVER, relay=RELAY, relay_key=KEY, network=net.network)
    net.run(5)
    assert net.server.code_error is None
    late = net.connect("full-cone")
    net.run(2)
    assert late.connected


def test_a_rendezvous_server_that_is_full_is_named() -> None:
    net = Internet(None)
    net.rendezvous.close()
    net.rendezvous = tw.peers.RendezvousServer(SERVER, network=net.network, max_games=1)
    net.run(1)
    second = tw.Server(
        "192.0.2.99:5000", PROTOCOL, network=net.network, rendezvous=tw.peers.Rendezvous(SERVER)
    )
    for _ in range(60):
        net.run(1 / 60)
        with second.tick():
            pass
    assert second.code is None
    assert (
        second.code_error
        == "the rendezvous server has the maximum number of games, or of games from this network"
    )


def test_the_key_keeps_strangers_out_of_a_game_with_a_code() -> None:
    net = Internet("port-restricted", key=KEY)
    net.run(1)
    friend = net.connect("port-restricted", key=KEY)
    stranger = net.connect("port-restricted", timeout=3)
    net.run(5)
    assert friend.connected
    assert net.ended(stranger)[0] is tw.DisconnectReason.REQUEST_TIMED_OUT
    assert len(net.server.clients) == 1


def test_a_title_lists_the_game_and_a_code_is_not_dialled_again() -> None:
    net = Internet("full-cone", title="Ann's game")
    net.run(1)
    code = tw.peers.Code(str(net.server.code), rendezvous=SERVER)
    with pytest.raises(ValueError, match="reconnect must be None with a Code: the host may have another"):
        tw.Client.connect(code, PROTOCOL, reconnect=tw.connections.Reconnect(), network=net.network)
    client = tw.Client.connect(code, PROTOCOL, network=net.network)
    for _ in range(120):
        net.run(1 / 60)
        with client.tick():
            pass
    assert client.connected


def test_forty_players_join_at_once() -> None:
    net = Internet("restricted", max_clients=64)
    net.run(1)
    clients = [net.connect("restricted") for _ in range(40)]
    net.run(6)
    assert sum(client.connected for client in clients) == 40


def test_codes_are_values() -> None:
    code = tw.peers.Code("bcd-fgh", rendezvous="203.0.113.5:3478")
    same = tw.peers.Code("BCDFGH", rendezvous=("203.0.113.5", 3478))
    assert (code, hash(code), str(code)) == (same, hash(same), "BCDFGH")
    assert code != tw.peers.Code("BCDFGH", rendezvous="203.0.113.5:3479")
    assert repr(code) == "Code('BCDFGH', rendezvous='203.0.113.5:3478')"
    assert code.rendezvous == tw.Address("203.0.113.5:3478")
    network = tw.testing.SimulatedNetwork()
    client = tw.Client.connect(code, PROTOCOL, network=network)
    assert repr(client) == "<Client of code BCDFGH, SendingRequest>"


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="code must be 6 letters of"):
        tw.peers.Code("AAAAAA", rendezvous=SERVER)
    with pytest.raises(ValueError, match="rendezvous must be a rendezvous server's"):
        tw.peers.Code("BCDFGH", rendezvous="0.0.0.0:5")
    with pytest.raises(TypeError, match="rendezvous must be a Rendezvous or None"):
        tw.Server("127.0.0.1:0", PROTOCOL, rendezvous=SERVER)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="address must be an Address"):
        tw.Client.connect(5, PROTOCOL)  # type: ignore[call-overload]
    with pytest.warns(UserWarning, match="connecting to code BCDFGH in development mode"):
        tw.Client.connect(tw.peers.Code("BCDFGH", rendezvous="203.0.113.5:3478"), PROTOCOL).close()
