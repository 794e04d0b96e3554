"""What players do is never an error of the game: they leave, stall, and come with another protocol."""

from __future__ import annotations

import gc
import re
import struct
import time
from typing import Any

import pytest
import tickwire as tw
from conftest import Chat, Move, make_protocol
from tickwire.testing import Simulation, advance, connected_pair

REASON = tw.DisconnectReason
RESULT = tw.SendResult
MOVE = struct.pack(tw.columns.row_format(Move), 1, 2, 0.5)


def test_results_are_true_when_the_message_was_queued_and_else_say_why() -> None:
    assert [bool(result) for result in RESULT] == [True, False, False, False, False]
    for result in RESULT:
        assert re.match(r"(the (message|client|channel|connection)|a ghost) ", str(result))


def test_a_result_is_made_once(protocol: tw.Protocol) -> None:
    _, server, client = connected_pair(protocol)
    assert client.send(Move()) is client.send(Move()) is RESULT.SENT
    assert server.send(server.clients[0], Move(), 1) is RESULT.SENT


def test_all_that_names_a_player_who_is_gone_is_harmless() -> None:
    channels = [tw.reliable_ordered(), tw.channels.payload(), tw.chunks()]
    network, server, client = connected_pair(tw.Protocol(1, [Move], channels))
    (gone,) = server.clients
    advance(network, server, client, seconds=1)
    client.close()
    advance(network, server, seconds=0.1)
    assert server.send(gone, Move()) is RESULT.GONE
    assert server.send_payload(gone, b"x", 1, tag=1) is RESULT.GONE
    assert server.send(gone, tw.columns.Batch(Move, MOVE * 3)) == [0, 1, 2]
    assert server.send([gone], tw.columns.Batch(Move, MOVE)) == [0]
    assert server.send_chunk(gone, b"x").error == "the client is gone"
    assert server.broadcast(Move(), clients=[gone]) == []
    assert server.incoming_chunks(gone) == []
    assert server.set_budget(1000, 1000, gone) is False
    assert server.disconnect(gone, reason="late") is False
    assert server.client(gone.number) is None
    stats = server.stats(gone)
    assert stats.packets_received > 5
    assert server.stats(gone).packets_sent == stats.packets_sent
    assert gone.user_data == bytes(256)
    assert client.stats.packets_sent > 5
    assert client.stats.channels[0].name == client.protocol.channels[0].name


def test_mistakes_go_on_raising_for_players_who_are_gone(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    (gone,) = server.clients
    client.close()
    advance(network, server, seconds=0.1)
    with pytest.raises(tw.FieldError):
        server.send(gone, Move(-1))
    with pytest.raises(tw.errors.ChannelError):
        server.send(gone, Move(), 9)
    with pytest.raises(TypeError):
        server.send(gone, "hello")
    with pytest.raises(ValueError, match="linger"):
        server.disconnect(gone, linger=-1)


def test_strict_endpoints_raise_for_what_players_do(protocol: tw.Protocol) -> None:
    with Simulation(protocol) as world:
        server, client = (
            world.server(debugging=tw.testing.Debugging(strict=True)),
            world.client(debugging=tw.testing.Debugging(strict=True)),
        )
        with pytest.raises(tw.errors.NotConnectedError):
            client.send(Move())
        world.run(1)
        (handle,) = server.clients
        client.close()
        world.run(0.1)
        calls: list[Any] = [
            lambda: server.send(handle, Move()),
            lambda: server.disconnect(handle),
            lambda: server.set_budget(1000, 1000, handle),
            lambda: server.send(handle, tw.columns.Batch(Move, MOVE)),
        ]
        for call in calls:
            with pytest.raises(tw.errors.StaleClientError, match="the client has left"):
                call()
        assert server.stats(handle).packets_received > 0


# --- the order ---


class Journal:
    """A server's events, tick by tick."""

    def __init__(self, server: tw.Server) -> None:
        self.server = server
        self.ticks: list[list[tuple[int, str]]] = []

    def tick(self) -> None:
        with self.server.tick() as inbox:
            told = [(event.client.id, type(event).__name__) for event in inbox.events if event.client]
            told += [(client.id, "said") for client, _ in inbox.messages]
            told += [(client.id, "said") for client, _, _ in inbox.latest]
            told += [(client.id, "said") for client, _, _ in inbox.payloads]
            told += [(chunk.client.id, "said") for chunk in inbox.chunks if chunk.client]
            if Chat in (self.columns or []):
                told += [(self.by_number[number], "said") for number in columns_of(inbox)]
            came = [event.client for event in inbox.events if event.client]
            self.by_number.update({client.number: client.id for client in came})
        self.ticks.append(told)

    columns: list[type] | None = None
    by_number: dict[int, int] = {}  # noqa: RUF012


def columns_of(inbox: Any) -> list[int]:
    return [int(number) for number in inbox.columns(Chat)["client"]]


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("stall", [1, 2, 3, 10])
def test_players_who_come_talk_and_leave_at_any_moment_are_told_of_in_order(
    stall: int, columns: bool
) -> None:
    pytest.importorskip("numpy")
    channels = [tw.reliable_ordered(), tw.latest(keys=2), tw.channels.payload(), tw.chunks()]
    protocol = tw.Protocol(1, [Move, Chat], channels)
    with Simulation(protocol, seed=stall) as world:
        classes: list[type] | None = [Chat] if columns else None
        server = world.server(
            transfers=tw.transfer.Transfers(memory=10_000), tuning=tw.Tuning(columns=classes)
        )
        journal = Journal(server)
        journal.columns, journal.by_number = classes, {}
        players: list[tw.Client] = []
        for tick in range(400):
            if tick < 300 and tick % 3 == 0:
                players.append(world.client())
            for number, player in enumerate(players):
                if player.closed:
                    continue
                player.receive()
                if player.connected:
                    player.send(Chat(1, "hello"))
                    player.send(Move(1), 1, key=1)
                    player.send_payload(b"x", 2, tag=1)
                    player.send_chunk(b"chunk")
                player.flush()
                if player.connected and tick % (number % 7 + 1) == 0:
                    player.close()
            # The game hangs now and then, and the connections go on.
            if tick % stall == 0:
                journal.tick()
            else:
                server.pump()
            world.network.advance(1 / 60)
        for _ in range(5):
            journal.tick()
            world.network.advance(1 / 60)
        told = [(number, who, what) for number, tick in enumerate(journal.ticks) for who, what in tick]
        came = {who for _, who, what in told if what == "Connected"}
        assert len(came) > 80
        talked = 0
        for who in came:
            own = [(number, what) for number, of, what in told if of == who]
            names = [what for _, what in own]
            talked += "said" in names
            assert names == ["Connected", *["said"] * (len(own) - 2), "Disconnected"], names
            numbers = [number for number, _ in own]
            assert numbers.count(numbers[0]) == numbers.count(numbers[-1]) == 1, "alone in their ticks"
        assert talked > 50


def test_a_client_is_told_of_its_connection_apart_from_all_else(protocol: tw.Protocol) -> None:
    with Simulation(protocol) as world:
        server, client = world.server(), world.client()
        told: list[list[str]] = []
        for tick in world.ticks(2):
            if tick <= 60 and any(isinstance(one, tw.Connected) for one in world.inbox(server).events):
                server.broadcast(Move(1))
            inbox = world.inbox(client)
            told.append([type(what).__name__ for what in inbox])
            if tick == 60:
                server.broadcast(Move(2))
                server.flush()
                server.close()
        seen = [tick for tick in told if tick]
        assert seen == [["Connected"], ["Move"], ["Move"], ["Disconnected"]]


# --- players who let a channel run full ---


def test_a_player_who_stalls_is_dropped_counted_and_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "tickwire")
    protocol = make_protocol(channels=[tw.reliable_ordered(send_queue=8), tw.unreliable()])
    with Simulation(protocol) as world:
        server, client, other = (
            world.server(tuning=tw.Tuning(stalled_timeout=1.5)),
            world.client(),
            world.client(),
        )
        world.run(1)
        handle = next(each for each in server.clients if each.id == 1)
        since = world.now
        ends: list[Any] = []
        for _ in world.ticks(4):
            for each in world.servers[0].clients:
                server.send(each, Move())
            if world.now < since + 0.1:
                world.stall(client, 2.0)
            ends += [event for event in world.inbox(server).events if isinstance(event, tw.Disconnected)]
            if ends and world.now > since + 3:
                break
        assert [(event.client, event.reason) for event in ends] == [(handle, REASON.STALLED)]
        assert server.counters["connections.stalled"] == 1
        assert client.disconnect_reason is REASON.STALLED
        assert other.connected
    lines = [record.getMessage() for record in caplog.records if "disconnected" in record.getMessage()]
    assert lines[0].startswith("client 1 (10.1.0.1:")
    assert len(lines) == 2, "the client's own log has one too"
    assert all(line.endswith(str(REASON.STALLED)) for line in lines)


def test_a_player_who_comes_back_in_time_stays() -> None:
    protocol = make_protocol(channels=[tw.reliable_ordered(send_queue=8), tw.unreliable()])
    with Simulation(protocol) as world:
        server, client = world.server(tuning=tw.Tuning(stalled_timeout=1.5)), world.client()
        world.run(1)
        (handle,) = server.clients
        full = 0
        for tick in world.ticks(10):
            if tick % 120 == 0:
                world.stall(client, 1.2)
            full += server.send(handle, Move()) is RESULT.FULL
        assert full > 100
        assert client.connected


def test_nobody_is_dropped_without_the_setting() -> None:
    protocol = make_protocol(channels=[tw.reliable_ordered(send_queue=8), tw.unreliable()])
    with Simulation(protocol) as world:
        server, client = world.server(tuning=tw.Tuning(stalled_timeout=None)), world.client()
        world.run(1)
        (handle,) = server.clients
        world.stall(client, 8)
        for _ in world.ticks(9):
            server.send(handle, Move())
        assert client.connected


# --- another protocol ---


def test_a_stranger_whose_protocol_differs_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "tickwire")
    network = tw.testing.SimulatedNetwork()
    asked: list[Any] = []
    key = bytes(range(32))  # in development mode no connection comes up
    server = tw.Server(
        "10.0.0.1:5",
        make_protocol(),
        network=network,
        key=key,
        access=tw.tokens.Access(admission=asked.append),
    )
    client = tw.Client.connect("10.0.0.1:5", tw.Protocol(0x7469636B, [Move]), network=network, key=key)
    for _ in range(60):
        server.pump()
        client.pump()
        network.advance(1 / 60)
    assert [*server.receive(), *server.receive()] == []
    assert asked == []
    assert server.clients == []
    assert server.counters["connections.mismatched"] == 1
    (event,) = [*client.receive(), *client.receive()]
    assert isinstance(event, tw.Disconnected)
    assert event.reason is REASON.PROTOCOL_MISMATCH
    assert any("turned away 1 whose protocol differs" in record.getMessage() for record in caplog.records)


# --- clients that nobody ticks ---


def test_a_client_that_is_never_ticked_warns_at_its_end(protocol: tw.Protocol) -> None:
    quick = tw.Client.connect("127.0.0.1:9", protocol)
    quick.close()
    del quick
    client = tw.Client.connect("127.0.0.1:9", protocol)
    ticked = tw.Client.connect("127.0.0.1:9", protocol)
    ticked.pump()
    time.sleep(1.05)  # by the computer's clock: it is about forgetting
    sentence = r"the client at .* of 127.0.0.1:9 was never ticked"
    with pytest.warns(ResourceWarning, match=sentence) as warned:  # noqa: PT031
        del client
        gc.collect()
    assert len(warned) == 1
    del ticked
    gc.collect()
