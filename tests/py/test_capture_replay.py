"""A capture fed back into an endpoint gives the same events; with the same game, the same bytes too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tickwire as tw
from conftest import Chat, Move, make_protocol, paced
from tickwire.capture import Replay, read_capture
from tickwire.errors import KeysError
from tickwire.testing import Conditions

Endpoint = tw.Server | tw.Client
Game = Callable[[Any, tw.Inbox[Any]], None]

BAD = Conditions(latency=0.06, jitter=0.03, loss=0.1, duplicate=0.05, reorder=0.05)


def tick(endpoint: Any, told: list[Any], game: Game | None) -> None:
    with endpoint.tick() as inbox:
        told += inbox.events
        told += inbox.messages
        if game is not None:
            game(endpoint, inbox)


def server_game(server: tw.Server, inbox: tw.Inbox[Any]) -> None:
    """Answers each chat on the reliable channel, so that credit for messages of the game comes back."""
    for client, message in inbox.messages:
        if isinstance(message, Chat) and client in server.clients:
            server.send(client, Chat(0, message.text.upper()))


def client_game(client: tw.Client, inbox: tw.Inbox[Any]) -> None:
    if client.connected and inbox.messages:
        client.send(Move(len(inbox.messages), 0, 0.5), channel=1)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A server and three clients on a bad network: one leaves, one falls silent, one stays."""
    directory = tmp_path_factory.mktemp("replay")
    protocol, key = make_protocol(), tw.generate_key()
    network = tw.testing.SimulatedNetwork(seed=11, conditions=BAD)
    network.advance(3.25)
    capture = tw.capture.Capture(directory / "a.pcapng", keys=directory / "a.keys")
    server = tw.Server(
        "127.0.0.1:40000",
        protocol,
        key=key,
        network=network,
        debugging=tw.testing.Debugging(capture=capture),
        access=tw.tokens.Access(max_token_lifetime=60),
    )
    clients = [
        tw.Client.connect(
            server.address,
            protocol,
            key=key,
            client_id=number,
            tuning=tw.Tuning(timeout=3),
            network=network,
            debugging=tw.testing.Debugging(capture=capture if number == 0 else None),
        )
        for number in range(3)
    ]
    told: dict[str, list[Any]] = {"server": [], "client": []}
    for number in range(60 * 12):
        tick(server, told["server"], server_game)
        for client in clients:
            if client.closed or (client is clients[2] and number > 300):
                continue
            if client.connected and number % 6 == 0 and number < 500:
                client.send(Chat(1, f"line {number}"))
            if client is clients[0]:
                tick(client, told["client"], client_game)
            else:
                with client.tick():
                    pass
        if number == 400:
            clients[1].close()
        network.advance(1 / 60)
    capture.close()
    reasons = [event.reason for event in told["server"] if isinstance(event, tw.Disconnected)]
    assert reasons == [tw.DisconnectReason.TIMED_OUT, tw.DisconnectReason.PEER_DISCONNECTED] or reasons == [
        tw.DisconnectReason.PEER_DISCONNECTED,
        tw.DisconnectReason.TIMED_OUT,
    ]
    return {"path": directory / "a.pcapng", "keys": directory / "a.keys", "protocol": protocol, "told": told}


def plain(told: list[Any]) -> list[Any]:
    """Events and messages of different servers are equal when they look the same."""
    return [repr(what) for what in told]


def replayed(
    session: dict[str, Any], address: str, game: Game | None, capture: Path | None = None
) -> list[Any]:
    replay = Replay(session["path"], keys=session["keys"], address=address)
    endpoint: Endpoint
    if replay.role == "server":
        endpoint = tw.Server(
            replay.address,
            session["protocol"],
            key=replay.key,
            network=replay.network,
            access=tw.tokens.Access(max_token_lifetime=60),
            debugging=tw.testing.Debugging(capture=capture),
        )
    else:
        assert replay.token is not None
        endpoint = tw.Client(
            session["protocol"],
            replay.token,
            tuning=tw.Tuning(bind=replay.address),
            network=replay.network,
            debugging=tw.testing.Debugging(capture=capture),
        )
    told: list[Any] = []
    for _ in replay:
        tick(endpoint, told, game)
    return told


def addresses(session: dict[str, Any]) -> tuple[str, str]:
    lines = session["keys"].read_text().splitlines()
    assert len(lines) == 2
    server, client = (line.split('"address":"')[1].split('"')[0] for line in lines)
    return server, client


@pytest.mark.parametrize("game", [server_game, None], ids=["with its game", "without its game"])
def test_a_server_receives_the_same_events_and_messages(session: dict[str, Any], game: Game | None) -> None:
    server, _ = addresses(session)
    told = replayed(session, server, game)
    assert len(told) > 150
    assert plain(told) == plain(session["told"]["server"])


@pytest.mark.parametrize("game", [client_game, None], ids=["with its game", "without its game"])
def test_a_client_receives_the_same_events_and_messages(session: dict[str, Any], game: Game | None) -> None:
    _, client = addresses(session)
    told = replayed(session, client, game)
    assert len(told) > 50
    assert plain(told) == plain(session["told"]["client"])


def test_a_server_with_the_same_game_sends_the_same_bytes_at_the_same_times(
    session: dict[str, Any], tmp_path: Path
) -> None:
    server, _ = addresses(session)
    replayed(session, server, server_game, tmp_path / "again.pcapng")

    def of_the_server(path: Path) -> list[Any]:
        seen = [it for it in read_capture(path) if str(it.sender if it.outgoing else it.receiver) == server]
        return [(it.nanoseconds, it.sender, it.receiver, it.data) for it in seen]

    before = of_the_server(session["path"])
    after = of_the_server(tmp_path / "again.pcapng")
    assert len(before) > 800
    # It lives on for a second after the capture's end.
    assert after[: len(before)] == before


def test_a_capture_of_real_sockets_and_of_a_thread_is_replayed_too(
    tmp_path: Path, protocol: tw.Protocol
) -> None:
    path, keys = tmp_path / "real.pcapng", tmp_path / "real.keys"
    capture = tw.capture.Capture(path, keys=keys)
    told: list[Any] = []
    with (
        tw.Server(
            "127.0.0.1:0",
            protocol,
            debugging=tw.testing.Debugging(capture=capture),
            tuning=tw.Tuning(driver="thread"),
        ) as server,
        tw.Client.connect(server.address, protocol, client_id=5) as client,
    ):
        for number in paced(200):
            with server.tick() as inbox:
                told += inbox.events
                told += inbox.messages
                server_game(server, inbox)
            with client.tick():
                if client.connected:
                    client.send(Chat(1, f"line {number}"))
            if len(told) > 60:
                break
    capture.close()
    replay = Replay(path, keys=keys)
    again = tw.Server(replay.address, protocol, network=replay.network)
    heard: list[Any] = []
    for _ in replay:
        tick(again, heard, None)
    assert plain(heard)[: len(told)] == plain(told)


def test_what_can_not_be_replayed_is_said_in_a_sentence(session: dict[str, Any], tmp_path: Path) -> None:
    path, keys = session["path"], session["keys"]
    with pytest.raises(
        KeysError, match="has several endpoints, of which one must be chosen by its address: server"
    ):
        Replay(path, keys=keys)
    with pytest.raises(
        KeysError, match="has no endpoint at 127.0.0.1:1, only server 127.0.0.1:40000, client"
    ):
        Replay(path, keys=keys, address="127.0.0.1:1")
    alone = tmp_path / "key"
    alone.write_text("ab" * 32)
    with pytest.raises(KeysError, match="has only a private key: a replay needs the file"):
        Replay(path, keys=alone)
    alone.write_text("no key")
    with pytest.raises(KeysError, match="has no keys: it must be a file from"):
        Replay(path, keys=alone)
    with pytest.raises(FileNotFoundError):
        Replay(tmp_path / "nothing", keys=keys, address="127.0.0.1:40000")
