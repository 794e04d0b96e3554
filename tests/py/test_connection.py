"""Servers and clients in virtual time."""

from __future__ import annotations

import contextlib
import gc
import logging
import weakref
from typing import Any

import pytest
import tickwire as tw
from conftest import Blob, Chat, Move, Odd, make_protocol
from tickwire.testing import Collected, advance, connected_pair

REASON = tw.DisconnectReason
BAD = tw.Conditions(latency=0.1, jitter=0.05, loss=0.2, duplicate=0.1, reorder=0.1)


def ends(*collected: Collected) -> list[list[tw.DisconnectReason]]:
    return [[e.reason for e in c.events if isinstance(e, tw.Disconnected)] for c in collected]


def test_both_sides_see_the_connection_come_up(protocol: tw.Protocol) -> None:
    network = tw.testing.SimulatedNetwork()
    key = bytes(32)
    server = tw.Server("10.0.0.1:5", protocol, key=key, network=network, max_clients=2)
    token = tw.ConnectToken.generate(
        protocol=protocol,
        key=key,
        client_id=77,
        servers=[server.address],
        user_data=b"ann",
        now=network.unix,
    )
    client = tw.Client(protocol, token, network=network)
    assert (client.state, client.connected, client.slot) == (
        tw.connections.ClientState.SENDING_REQUEST,
        False,
        None,
    )
    at_server, at_client = advance(network, server, client, seconds=0.5)
    match at_server.events, at_client.events:
        case [tw.Connected(handle)], [tw.Connected(None)]:
            assert handle is server.clients[0]
        case other:
            pytest.fail(f"{other}")
    assert (handle.id, handle.slot, handle.address) == (77, 0, client.address)
    assert handle.user_data == b"ann" + bytes(253)
    assert (client.state, client.connected, client.slot) == (tw.connections.ClientState.CONNECTED, True, 0)
    assert client.server_address == server.address == tw.Address("10.0.0.1:5")
    assert (server.max_clients, server.protocol, client.protocol) == (2, protocol, protocol)


def test_messages_of_every_kind_go_both_ways_in_order_over_a_bad_network(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol, conditions=BAD, seed=3)
    handle = server.clients[0]
    sent: list[Any] = [Chat(n % 64, f"number {n}") for n in range(200)]
    sent += [Odd(n=n) if n <= 500 else Odd(n=n, extra=n) for n in range(0, 1000, 100)]
    sent += [Blob(bytes(range(256)) * 20), Move(1, 2, 0.5)]
    for message in sent:
        client.send(message)
        server.send(handle, message, channel=0)
    # The blob takes a packet of 26 datagrams, of which all must arrive: that is a matter of many tries.
    at_server, at_client = advance(network, server, client, seconds=120)
    assert at_client.messages == sent
    assert at_server.messages == [(handle, message) for message in sent]
    stats = client.stats
    assert 180 < stats.rtt_ms < 320
    assert stats.packets_lost > 0
    events = stats.channels[0]
    assert (events.name, events.kind, events.queued) == ("events", "reliable_ordered", 0)
    assert (events.sent, events.received) == (len(sent), len(sent))
    assert events.resent > 0


def test_unreliable_messages_arrive_at_most_once(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol, conditions=BAD, seed=4)
    received: list[int] = []
    for number in range(600):
        client.send(Move(number), channel=1)
        (at_server, _) = advance(network, server, client, seconds=1 / 60)
        received += [message.tick for _, message in at_server.messages]
    assert len(set(received)) == len(received)
    assert 350 < len(received) < 600


def test_a_broadcast_reaches_all_but_one(protocol: tw.Protocol) -> None:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", protocol, network=network)
    clients = [tw.Client.connect("10.0.0.1:5", protocol, network=network) for _ in range(5)]
    advance(network, server, *clients, seconds=0.5)
    assert [handle.slot for handle in server.clients] == [0, 1, 2, 3, 4]
    assert server.broadcast(Chat(1, "hello"), exclude=server.clients[2]) == []
    _, *collected = advance(network, server, *clients, seconds=0.5)
    heard = {client.slot: got.messages for client, got in zip(clients, collected, strict=True)}
    assert heard == {slot: [] if slot == 2 else [Chat(1, "hello")] for slot in range(5)}


def test_a_kicked_player_is_told_and_its_handle_is_stale(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    handle = server.clients[0]
    server.disconnect(handle)
    assert ends(*advance(network, server, client, seconds=1)) == [[REASON.KICKED], [REASON.KICKED]]
    assert client.disconnect_reason is REASON.KICKED
    assert str(client.disconnect_reason) == "the server ended the connection"
    again = tw.Client.connect(server.address, protocol, network=network)
    advance(network, server, again, seconds=0.5)
    assert server.clients[0].slot == handle.slot
    assert server.clients[0] != handle
    assert server.send(handle, Move()) is tw.SendResult.GONE
    assert server.disconnect(handle) is False
    assert server.stats(handle).packets_received > 0
    assert advance(network, server, again, seconds=0.5)[1].messages == []


def test_a_handle_of_another_server_is_a_mistake(protocol: tw.Protocol) -> None:
    _, server, _ = connected_pair(protocol)
    _, other, _ = connected_pair(protocol)
    assert server.clients[0] != other.clients[0]
    with pytest.raises(ValueError, match="client must belong to this server"):
        server.send(other.clients[0], Move())


def test_closing_is_told_to_the_other_side(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    client.close()
    client.close()
    assert client.disconnect_reason is REASON.CLOSED
    assert ends(*advance(network, server, seconds=0.5)) == [[REASON.PEER_DISCONNECTED]]
    network, server, client = connected_pair(protocol)
    with server:
        pass
    assert server.closed
    assert ends(*advance(network, client, seconds=0.5)) == [[REASON.SERVER_CLOSED]]


def test_a_silent_peer_times_out(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    assert ends(*advance(network, server, seconds=11)) == [[REASON.TIMED_OUT]]
    network, server, client = connected_pair(protocol)
    assert ends(*advance(network, client, seconds=11)) == [[REASON.TIMED_OUT]]
    assert client.state is tw.connections.ClientState.TIMED_OUT


def test_a_full_server_says_so(protocol: tw.Protocol) -> None:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", protocol, network=network, max_clients=1)
    clients = [tw.Client.connect("10.0.0.1:5", protocol, network=network) for _ in range(2)]
    advance(network, server, *clients, seconds=1)
    assert [client.disconnect_reason for client in clients] == [None, REASON.SERVER_FULL]
    assert clients[1].state is tw.connections.ClientState.DENIED


def test_nobody_answers_at_an_empty_address(protocol: tw.Protocol) -> None:
    network = tw.testing.SimulatedNetwork()
    client = tw.Client.connect("10.0.0.1:5", protocol, network=network, tuning=tw.Tuning(timeout=3))
    assert ends(*advance(network, client, seconds=4)) == [[REASON.REQUEST_TIMED_OUT]]


@pytest.mark.parametrize(
    "other",
    [
        make_protocol(messages=[Chat, Move, Blob, Odd]),
        make_protocol(messages=[Move, Chat, Blob]),
        make_protocol(channels=[tw.reliable_ordered()]),
        make_protocol(channels=[tw.reliable_ordered(receive_window=64), tw.unreliable()]),
    ],
)
def test_different_protocols_are_a_mismatch_on_both_sides(protocol: tw.Protocol, other: tw.Protocol) -> None:
    network = tw.testing.SimulatedNetwork()
    key = bytes(range(32))  # in development mode no connection comes up
    server = tw.Server("10.0.0.1:5", protocol, network=network, key=key)
    client = tw.Client.connect("10.0.0.1:5", other, network=network, key=key)
    collected = advance(network, server, client, seconds=1)
    assert ends(*collected) == [[REASON.PROTOCOL_MISMATCH], [REASON.PROTOCOL_MISMATCH]]
    assert "protocol mismatch" in str(client.disconnect_reason)


def test_a_full_channel_says_so_and_queues_nothing() -> None:
    protocol = make_protocol(channels=[tw.reliable_ordered(send_queue=4), tw.unreliable(send_queue=2)])
    network, server, client = connected_pair(protocol)
    for number in range(4):
        assert client.send(Move(number)) is tw.SendResult.SENT
    assert client.send(Move(4)) is tw.SendResult.FULL
    for _ in range(2):
        assert server.broadcast(Move(), channel=1) == []
    assert server.broadcast(Move(), channel=1) == server.clients
    at_server, at_client = advance(network, server, client, seconds=1)
    assert [message.tick for _, message in at_server.messages] == [0, 1, 2, 3]
    assert len(at_client.messages) == 2
    client.send(Move(5))


def test_calls_that_make_no_sense_are_named(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    handle = server.clients[0]
    for channel in (2, -1):
        with pytest.raises(tw.errors.ChannelError, match=f"channel must be 0 to 1, not {channel}"):
            client.send(Move(), channel=channel)
        with pytest.raises(LookupError):
            server.broadcast(Move(), channel=channel)
    with pytest.raises(tw.FieldError, match="Move.tick"):
        server.send(handle, Move(-1))
    with pytest.raises(TypeError, match="is not among the protocol's messages"):
        client.send("hello")
    with pytest.raises(TypeError):
        server.send("ann", Move())
    small = make_protocol(channels=[tw.reliable_ordered(max_message_bytes=100)])
    network, server, client = connected_pair(small)
    with pytest.raises(
        tw.errors.MessageTooLargeError,
        match=r"Blob on channel 0: .* at most 100 bytes, .*max_message_bytes, not",
    ):
        client.send(Blob(bytes(101)))
    with pytest.raises(tw.errors.MessageTooLargeError):
        server.broadcast(Blob(bytes(101)))
    assert all(not got.messages for got in advance(network, server, client, seconds=1))
    server.close()
    client.close()
    calls: list[Any] = [server.receive, server.flush, server.pump, client.receive, client.flush, client.pump]
    calls += [
        lambda: server.broadcast(Move()),
        lambda: client.send(Move()),
        lambda: server.tick().__enter__(),
    ]
    for call in calls:
        with pytest.raises(tw.errors.ClosedError, match="is closed"):
            call()


def test_sending_before_the_connection_is_up_is_named(protocol: tw.Protocol) -> None:
    client = tw.Client.connect("10.0.0.1:5", protocol, network=tw.testing.SimulatedNetwork())
    assert client.send(Move()) is tw.SendResult.NOT_CONNECTED
    stats = client.stats
    assert (stats.rtt_ms, stats.packets_sent, len(stats.channels)) == (0, 0, 2)


def test_a_tick_sends_also_when_its_body_raises(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    server.broadcast(Move(1))
    with pytest.raises(ZeroDivisionError), server.tick():
        raise ZeroDivisionError
    network.advance(0.01)
    assert client.receive().messages == [Move(1)]
    with client.tick():
        client.close()


def test_pumping_keeps_a_loading_game_connected(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    for number in range(3):
        server.broadcast(Move(number))
    for _ in range(30 * 10):
        client.pump()
        server.pump()
        network.advance(0.1)
    assert client.connected
    assert client.receive().messages == [Move(0), Move(1), Move(2)]


@tw.ghost
class Lamp:
    is_lit: bool = False


def test_pumping_makes_no_tick() -> None:
    shared = tw.Protocol(1, ghosts=[Lamp], inputs=Move, tick_rate=60)
    network, server, client = connected_pair(shared)
    ticks = []
    for _ in range(10):
        with server.tick():
            ticks.append(server.world.tick)
        for _ in range(3):
            network.advance(1 / 180)
            server.pump()
            client.pump()
    assert ticks == list(range(ticks[0], ticks[0] + 10))


class Poison(tw.messages.Message):
    """Raises when it reads a number that the game doesn't like."""

    number: int = 0
    error: type[Exception] = ValueError

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.number = stream.bits(self.number, 8)
        if stream.reading and self.number == 13:
            raise self.error("thirteen")


def poisoned() -> tuple[tw.testing.SimulatedNetwork, tw.Server, tw.Client]:
    return connected_pair(tw.Protocol(1, [Poison]))


def test_an_interrupt_in_serialize_reaches_the_caller_and_loses_only_its_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Poison, "error", KeyboardInterrupt)
    network, server, client = poisoned()
    for number in (11, 12, 13, 14, 13, 15):
        client.send(Poison(number=number))
    client.flush()
    network.advance(0.05)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt, match="thirteen"):
            server.receive()
    assert [message.number for _, message in server.receive().messages] == [11, 12, 14, 15]
    client.send(Poison(number=16))
    (at_server, _) = advance(network, server, client, seconds=0.5)
    assert [message.number for _, message in at_server.messages] == [16]
    assert server.counters["messages.raised"] == 0


def test_a_raising_receive_in_a_tick_still_keeps_connections_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Poison, "error", SystemExit)
    network, server, client = poisoned()
    for _ in range(15 * 20):
        client.send(Poison(number=13))
        client.flush()
        network.advance(0.05)
        # A tick's leftovers come before the next one is taken.
        with contextlib.suppress(SystemExit), server.tick() as inbox:
            assert not inbox.messages
        client.receive()
    assert client.connected


@pytest.mark.parametrize(
    "error", [tw.errors.StreamError, ValueError, AttributeError, MemoryError, RecursionError]
)
def test_whatever_a_serialize_raises_ends_the_peers_connection_only(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tickwire")
    monkeypatch.setattr(Poison, "error", error)
    network, server, client = poisoned()
    other = tw.Client.connect(server.address, server.protocol, network=network)
    advance(network, server, client, other, seconds=0.5)
    for number in (12, 13, 14):
        client.send(Poison(number=number))
    other.send(Poison(number=15))
    at_server, at_client, at_other = advance(network, server, client, other, seconds=1)
    assert [message.number for _, message in at_server.messages] == [12, 15]
    violation = [REASON.PROTOCOL_VIOLATION]
    assert ends(at_server, at_client, at_other) == [violation, violation, []]
    counted = {name: count for name, count in server.counters.items() if name.startswith("messages.")}
    refused = error is tw.errors.StreamError
    assert counted == {"messages.refused": int(refused), "messages.raised": int(not refused)}
    (line,) = [
        record
        for record in caplog.records
        if "of the server" in record.getMessage() and "disc" in record.getMessage()
    ]
    said = "thirteen" if refused else f"Poison: {error.__name__}: thirteen"
    assert line.getMessage().endswith(f"(a message is refused by its own serialize: {said})")
    tracebacks = [record.exc_info for record in caplog.records if record.exc_info]
    assert [traceback[0] for traceback in tracebacks] == ([] if refused else [error])
    assert all(traceback[2] is not None for traceback in tracebacks)


def test_a_client_leaves_a_server_whose_bytes_make_serialize_raise(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Poison, "error", ValueError)
    network, server, client = poisoned()
    for number in (12, 13, 14):
        server.broadcast(Poison(number=number))
    at_server, at_client = advance(network, server, client, seconds=1)
    assert [message.number for message in at_client.messages] == [12]
    assert ends(at_server, at_client) == [[REASON.PROTOCOL_VIOLATION]] * 2
    assert client.counters["messages.raised"] == 1
    (record,) = [record for record in caplog.records if record.exc_info]
    assert record.levelname == "ERROR"
    written = logging.Formatter().format(record)
    assert "Traceback (most recent call last):" in written
    assert f'File "{__file__}", line ' in written
    assert "in serialize" in written
    said = 'ends the connection of a peer: reading a message of it, a Poison, raised ValueError: "thirteen"'
    assert record.getMessage() == f"the client at {client.address} of {server.address} {said}"


class Pool(tw.messages.MessageFactory):
    def __init__(self) -> None:
        self.made: list[Any] = []
        self.fail = False

    def create(self, cls: type[Any]) -> Any:
        if self.fail:
            raise RuntimeError("the pool is empty")
        self.made.append(super().create(cls))
        return self.made[-1]


def test_a_factory_makes_the_objects(protocol: tw.Protocol) -> None:
    pool = Pool()
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", protocol, network=network, tuning=tw.Tuning(factory=pool))
    client = tw.Client.connect("10.0.0.1:5", protocol, network=network)
    advance(network, server, client, seconds=0.5)
    client.send(Move(7))
    client.send(Odd(n=600, extra=3))
    (at_server, _) = advance(network, server, client, seconds=0.5)
    assert [message for _, message in at_server.messages] == pool.made == [Move(7), Odd(n=600, extra=3)]
    pool.fail = True
    client.send(Move(8))
    client.send(Move(9))
    client.flush()
    network.advance(0.05)
    assert server.receive().messages == [], "which message is made is the peer's choice"
    (event,) = server.receive().events
    assert event.reason is REASON.PROTOCOL_VIOLATION
    assert server.counters["messages.raised"] == 1


def test_a_factory_may_call_the_endpoint_but_not_receive_again(protocol: tw.Protocol) -> None:
    class Nosy(tw.messages.MessageFactory):
        def create(self, cls: type[Any]) -> Any:
            assert len(server.clients) == 1
            server.broadcast(Move(99))
            with pytest.raises(RuntimeError, match="still running"):
                server.receive()
            return super().create(cls)

    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", protocol, network=network, tuning=tw.Tuning(factory=Nosy()))
    client = tw.Client.connect("10.0.0.1:5", protocol, network=network)
    advance(network, server, client, seconds=0.5)
    client.send(Move(1))
    at_server, at_client = advance(network, server, client, seconds=0.5)
    assert [message for _, message in at_server.messages] == [Move(1)]
    assert at_client.messages == [Move(99)]


def test_endpoints_in_cycles_are_collected_and_say_goodbye(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    pool = Pool()
    client.close()
    client = tw.Client.connect(server.address, protocol, network=network, tuning=tw.Tuning(factory=pool))
    advance(network, server, client, seconds=0.5)
    pool.client = client
    gone = weakref.ref(pool)
    del client, pool
    gc.collect()
    assert gone() is None
    assert ends(*advance(network, server, seconds=0.5)) == [[REASON.PEER_DISCONNECTED]]


def test_the_same_seed_and_calls_give_the_same_history(protocol: tw.Protocol) -> None:
    def play(seed: int) -> list[Any]:
        network, server, client = connected_pair(protocol, conditions=BAD, seed=seed)
        for number in range(50):
            client.send(Move(number), channel=1)
            client.send(Chat(1, str(number)))
            advance(network, server, client, seconds=1 / 60)
        history = advance(network, server, client, seconds=3)[0].messages
        return [network.now, client.stats.rtt_ms, server.counters, [message for _, message in history]]

    assert play(5) == play(5)
    assert play(5) != play(6)


def test_conditions_can_change_and_differ_by_direction(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    network.set_conditions(tw.Conditions(loss=1), sender=client.address)
    client.send(Move(1))
    server.broadcast(Move(2))
    at_server, at_client = advance(network, server, client, seconds=1)
    assert (at_server.messages, at_client.messages) == ([], [Move(2)])
    network.set_conditions(tw.Conditions())
    (at_server, _) = advance(network, server, client, seconds=1)
    assert [message for _, message in at_server.messages] == [Move(1)]


def test_hundreds_of_clients_play_in_one_process(protocol: tw.Protocol) -> None:
    network = tw.testing.SimulatedNetwork(
        conditions=tw.Conditions(latency=0.03, jitter=0.01, loss=0.02), seed=1
    )
    server = tw.Server("10.0.0.1:5", protocol, network=network, max_clients=200)
    clients = [tw.Client.connect("10.0.0.1:5", protocol, network=network) for _ in range(200)]
    advance(network, server, *clients, seconds=2, rate=20)
    assert len(server.clients) == 200
    for client in clients:
        client.send(Chat(1, f"{client.slot}"))
    (at_server, *_) = advance(network, server, *clients, seconds=2, rate=20)
    assert all(message.text == f"{handle.slot}" for handle, message in at_server.messages)
    assert len(at_server.messages) == 200
