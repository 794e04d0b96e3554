"""Who is let in and who is heard, with each driver: also of those who come and go while the hook runs."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tickwire as tw
from conftest import Chat, Move, make_protocol
from tickwire.testing import advance

PATIENCE = 20.0
BANNED = 666
PROTOCOL = make_protocol(channels=[tw.reliable_ordered(), tw.latest(keys=100), tw.chunks()])


def wait_until(done: Callable[[], bool], *pumped: tw.Server | tw.Client) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, "not done in time"
        for endpoint in pumped:
            endpoint.pump()
        time.sleep(0.001)


def dial(server: tw.Server, protocol: tw.Protocol, id_: int) -> tw.Client:
    """A client that is connected, by a thread of its own. The game need not know of it."""
    client = tw.Client.connect(server.address, protocol, client_id=id_, tuning=tw.Tuning(driver="thread"))
    wait_until(lambda: client.connected)
    return client


def say(client: tw.Client, message: Any) -> None:
    """Sends it, and waits until the other side's thread has it."""
    client.send(message)
    client.flush()
    wait_until(lambda: client.stats.channels[0].delivered == 1)


class Heard:
    """The events of the game, by sender."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.told: list[tuple[str, int]] = []
        self.messages: list[tuple[int, Any]] = []

    def tick(self, server: tw.Server) -> None:
        with server.tick() as inbox:
            for event in inbox.events:
                assert event.client is not None
                self.told.append((type(event).__name__, event.client.id))
            self.messages += [(client.id, message) for client, message in inbox.messages]
            assert [client for client, *_ in inbox.latest] == []


def test_what_the_hook_notes_at_a_handle_is_there_when_the_game_is_told() -> None:
    network = tw.testing.SimulatedNetwork(seed=1)
    asked: list[tw.ClientHandle] = []

    def admit(newcomers: list[tw.ClientHandle]) -> list[int]:
        for newcomer in newcomers:
            newcomer.data = f"account {newcomer.id}"
        asked.extend(newcomers)
        return [BANNED]

    with tw.Server(
        "10.0.0.1:5", PROTOCOL, network=network, access=tw.tokens.Access(admission=admit)
    ) as server:
        clients = [
            tw.Client.connect(server.address, PROTOCOL, network=network, client_id=id_)
            for id_ in (1, 2, BANNED)
        ]
        events = list(advance(network, server, *clients, seconds=1)[0].events)
        connected = [event.client for event in events if isinstance(event, tw.Connected) and event.client]
        assert sorted((client.id, client.data) for client in connected) == [
            (1, "account 1"),
            (2, "account 2"),
        ]
        assert all(any(client is handle for handle in asked) for client in connected)
        clients[0].close()
        events = list(advance(network, server, *clients[1:], seconds=1)[0].events)
        assert [event.client and event.client.data for event in events] == ["account 1"]


def test_a_refused_newcomers_handle_goes_with_it() -> None:
    network = tw.testing.SimulatedNetwork(seed=1)
    asked: list[Callable[[], Any]] = []

    class Note:
        pass

    def refuse(newcomers: list[tw.ClientHandle]) -> list[int]:
        for newcomer in newcomers:
            newcomer.data = Note()
            asked.append(weakref.ref(newcomer.data))
        return [newcomer.id for newcomer in newcomers]

    with tw.Server(
        "10.0.0.1:5", PROTOCOL, network=network, access=tw.tokens.Access(admission=refuse)
    ) as server:
        client = tw.Client.connect(server.address, PROTOCOL, network=network)
        advance(network, server, client, seconds=1)
        assert [note() for note in asked] == [None]


def test_nobody_is_heard_whom_a_slow_hook_was_not_asked_about() -> None:
    heard, clients = Heard(), []

    def admit(newcomers: list[tw.ClientHandle]) -> list[int]:
        heard.asked += [newcomer.id for newcomer in newcomers]
        if not clients:
            # While the hook looks into its database, say.
            clients.append(dial(server, PROTOCOL, BANNED))
            say(clients[0], Chat(0, "I am banned"))
        return [BANNED]

    with (
        tw.Server(
            "127.0.0.1:0",
            PROTOCOL,
            tuning=tw.Tuning(driver="thread"),
            access=tw.tokens.Access(admission=admit),
        ) as server,
        dial(server, PROTOCOL, 1) as client,
    ):
        say(client, Chat(0, "hello"))
        heard.tick(server)
        assert heard.asked == [1]
        heard.tick(server)
        assert heard.asked == [1, BANNED]
        wait_until(lambda: clients[0].disconnect_reason is not None)
        assert clients[0].disconnect_reason is tw.DisconnectReason.KICKED
        heard.tick(server)
    assert heard.told == [("Connected", 1)]
    assert heard.messages == [(1, Chat(0, "hello"))]


def test_the_last_words_of_those_who_leave_while_the_hook_runs_are_heard() -> None:
    heard = Heard()
    leavers: dict[int, tw.Client] = {}

    def admit(newcomers: list[tw.ClientHandle]) -> None:
        heard.asked += [newcomer.id for newcomer in newcomers]
        if 2 not in leavers:
            return
        say(leavers[7], Chat(0, "gg, well played"))
        leavers[7].close()
        wait_until(lambda: not server.clients)
        # And a client that came before its answer, and goes.
        say(leavers[2], Chat(0, "bye"))
        leavers.pop(2).close()

    with tw.Server(
        "127.0.0.1:0", PROTOCOL, tuning=tw.Tuning(driver="thread"), access=tw.tokens.Access(admission=admit)
    ) as server:
        leavers[7] = dial(server, PROTOCOL, 7)
        heard.tick(server)
        assert heard.told == [("Connected", 7)]
        leavers[2] = dial(server, PROTOCOL, 2)
        deadline = time.monotonic() + PATIENCE
        while len(heard.told) < 4:
            assert time.monotonic() < deadline
            heard.tick(server)
    assert heard.asked == [7, 2]
    assert heard.told[1:] == [("Connected", 2), ("Disconnected", 7), ("Disconnected", 2)]
    assert heard.messages == [(7, Chat(0, "gg, well played")), (2, Chat(0, "bye"))]


def test_who_leaves_while_its_messages_are_read_loses_none() -> None:
    class Slow(tw.messages.Message):
        number: int = 0

        def serialize(self, stream: tw.messages.Stream) -> None:
            self.number = stream.serialize_bits(self.number, 8)
            if stream.reading and self.number == 1 and not leaver.closed:
                # The thread goes on meanwhile.
                leaver.send(Slow(number=2))
                leaver.flush()
                wait_until(lambda: leaver.stats.channels[0].delivered == 2)
                leaver.close()
                wait_until(lambda: not server.clients)

    protocol = tw.Protocol(1, [Slow], yojimbo=tw.yojimbo.Profile(), channels=[tw.reliable_ordered()])
    heard = Heard()
    with tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver="thread")) as server:
        leaver = dial(server, protocol, 7)
        heard.tick(server)
        say(leaver, Slow(number=1))
        deadline = time.monotonic() + PATIENCE
        while len(heard.told) < 2:
            assert time.monotonic() < deadline
            heard.tick(server)
    assert [message.number for _, message in heard.messages] == [1, 2]
    assert heard.told == [("Connected", 7), ("Disconnected", 7)]


def test_a_hook_that_pumps_lets_nobody_slip_in() -> None:
    heard, network, clients = Heard(), tw.testing.SimulatedNetwork(), []

    def admit(newcomers: list[tw.ClientHandle]) -> list[int]:
        heard.asked += [newcomer.id for newcomer in newcomers]
        if not clients:
            banned = tw.Client.connect("10.0.0.1:5", PROTOCOL, client_id=BANNED, network=network)
            clients.append(banned)
            while not banned.connected:
                network.advance(0.01)
                server.pump()
                banned.pump()
            banned.send(Chat(0, "I am banned"))
            banned.send(Chat(0, "a value"), 1, key=3)
            banned.flush()
            network.advance(0.01)
            server.pump()
        return [BANNED]

    server = tw.Server("10.0.0.1:5", PROTOCOL, network=network, access=tw.tokens.Access(admission=admit))
    client = tw.Client.connect("10.0.0.1:5", PROTOCOL, client_id=1, network=network)
    while not client.connected:
        network.advance(0.01)
        server.pump()
        client.pump()
    for expected in ([1], [1, BANNED], [1, BANNED]):
        heard.tick(server)
        assert heard.asked == expected
    assert heard.told == [("Connected", 1)]
    assert heard.messages == []


@pytest.mark.parametrize("leaves", [True, False])
def test_the_chunks_of_the_refused_take_no_place(tmp_path: Path, leaves: bool) -> None:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server(
        "10.0.0.1:5",
        PROTOCOL,
        network=network,
        access=tw.tokens.Access(admission=lambda newcomers: [new for new in newcomers if new.id == BANNED]),
        transfers=tw.transfer.Transfers(directory=tmp_path),
    )
    for _ in range(3):
        banned = tw.Client.connect("10.0.0.1:5", PROTOCOL, client_id=BANNED, network=network)
        sent = False
        for _ in range(60):
            network.advance(1 / 60)
            server.pump()
            banned.pump()
            if banned.connected and not sent:
                sent = True
                banned.send_chunk(b"x" * 5_000, label="smuggled")
        assert sent
        if leaves:
            banned.close()
            network.advance(1 / 60)
        inbox = server.receive()
        assert (inbox.events, inbox.chunks, inbox.chunk_failures) == ([], [], [])
        network.advance(1)
        assert list(tmp_path.iterdir()) == []
    honest = tw.Client.connect("10.0.0.1:5", PROTOCOL, client_id=1, network=network)
    advance(network, server, honest, seconds=0.5)
    transfer = honest.send_chunk(b"y" * 5_000)
    at_server, _ = advance(network, server, honest, seconds=1)
    assert transfer.done
    assert [chunk.client.id for chunk in at_server.chunks] == [1]


def test_a_newcomer_s_chunk_goes_on_once_it_is_let_in() -> None:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server(
        "10.0.0.1:5",
        PROTOCOL,
        network=network,
        access=tw.tokens.Access(admission=lambda _: None),
        transfers=tw.transfer.Transfers(memory=10_000),
    )
    client = tw.Client.connect("10.0.0.1:5", PROTOCOL, client_id=1, network=network)
    while not client.connected:
        network.advance(1 / 60)
        server.pump()
        client.pump()
    transfer = client.send_chunk(b"y" * 5_000)
    for _ in range(60):
        network.advance(1 / 60)
        server.pump()
        client.pump()
    assert transfer.bytes_done == 0
    at_server, _ = advance(network, server, client, seconds=1)
    assert transfer.done
    assert [type(event) for event in at_server.events] == [tw.Connected]
    assert len(at_server.chunks) == 1


def test_a_hook_that_closes_the_server_is_harmless() -> None:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server(
        "10.0.0.1:5", PROTOCOL, network=network, access=tw.tokens.Access(admission=lambda _: server.close())
    )
    client = tw.Client.connect("10.0.0.1:5", PROTOCOL, network=network)
    while not client.connected:
        network.advance(1 / 60)
        server.pump()
        client.pump()
    inbox = server.receive()
    assert [type(event) for event in inbox.events] == [tw.Connected]
    with pytest.raises(tw.errors.ClosedError):
        server.receive()


def test_a_refused_message_leaves_others_to_the_next_tick() -> None:
    heard = Heard()

    class Strict(tw.messages.Message):
        number: int = 0

        def serialize(self, stream: tw.messages.Stream) -> None:
            self.number = stream.bits(self.number, 8)
            if stream.reading and self.number == 13:
                raise ValueError(13)

    protocol = tw.Protocol(1, [Strict, Move])
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", protocol, network=network)
    client = tw.Client.connect("10.0.0.1:5", protocol, client_id=1, network=network)
    while not client.connected:
        network.advance(1 / 60)
        server.pump()
        client.pump()
    for number in (1, 13, 2):
        client.send(Strict(number=number))
    client.flush()
    network.advance(1 / 60)
    heard.tick(server)
    assert heard.told == [("Connected", 1)]
    client.send(Strict(number=3))
    client.flush()
    network.advance(1 / 60)
    assert server._has_news
    heard.tick(server)
    assert heard.told == [("Connected", 1)]
    assert [message.number for _, message in heard.messages] == [1]
    heard.tick(server)
    assert heard.told == [("Connected", 1), ("Disconnected", 1)]
    assert [message.number for _, message in heard.messages] == [1]
