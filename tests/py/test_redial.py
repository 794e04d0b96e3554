"""A client that dials again, in virtual time."""

from __future__ import annotations

import ast
import asyncio
import concurrent.futures
import contextlib
import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, assert_type

import pytest
import tickwire as tw
from conftest import Chat, make_protocol
from tickwire import aio
from tickwire.capture import read_capture
from tickwire.testing import Simulation

KEY = bytes(range(32))


class Game:
    """A world with a server and one redialling player, and that player's events."""

    def __init__(self, server: dict[str, Any] | None = None, **settings: Any) -> None:
        self.world = Simulation(make_protocol(channels=[tw.reliable_ordered(), tw.chunks()]), seed=1)
        self.server = self.world.server(**(server or {}))
        settings = {"client_id": 7, "tuning": tw.Tuning(bind="10.1.0.1:0"), "seed": 1, **settings}
        self.player = tw.connections.Redialler.connect(
            self.server.address, self.world.protocol, network=self.world.network, **settings
        )
        self.told: list[tuple[float, tw.connections.Event]] = []
        self.messages: list[Any] = []

    def run(self, seconds: float) -> list[tw.connections.Event]:
        before = len(self.told)
        for _ in self.world.ticks(seconds):
            if not self.player.closed:
                with self.player.tick() as inbox:
                    self.told += [(round(self.world.now, 3), event) for event in inbox.events]
                    self.messages += inbox.messages
        return [event for _, event in self.told[before:]]


def names(events: list[tw.connections.Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def test_it_comes_back_after_the_server_was_restarted() -> None:
    game = Game()
    assert names(game.run(1)) == ["Connected"]
    game.world.restart(game.server)
    events = game.run(3)
    assert names(events) == ["Reconnecting", "Connected"]
    assert isinstance(events[0], tw.connections.Reconnecting)
    assert (events[0].attempt, events[0].reason) == (1, tw.DisconnectReason.SERVER_CLOSED)
    assert 0.25 <= events[0].delay <= 0.5
    assert game.player.connected
    assert game.player.attempt == 1
    assert game.world.servers[0].clients[0].id == 7
    game.world.servers[0].broadcast(Chat(1, "welcome back"))
    game.run(1)
    assert game.messages == [Chat(1, "welcome back")]


def test_it_comes_back_after_a_crash_and_a_long_outage() -> None:
    game = Game(tuning=tw.Tuning(timeout=2), give_up_after=None)
    game.run(1)
    game.world.network.unplug(game.server.address)
    game.server.close()
    events = game.run(60)
    tries = [event for event in events if isinstance(event, tw.connections.Reconnecting)]
    assert len(tries) == len(events) >= 4
    assert [event.attempt for event in tries] == list(range(1, len(tries) + 1))
    assert tries[0].reason is tw.DisconnectReason.TIMED_OUT
    assert {event.reason for event in tries[1:]} == {tw.DisconnectReason.REQUEST_TIMED_OUT}
    for event in tries:
        most = min(30, 0.5 * 2 ** (event.attempt - 1))
        assert most / 2 <= event.delay <= most
    game.world.server(game.server.address)
    assert names(game.run(60))[-1] == "Connected"


def test_attempts_begin_anew_after_a_connection_that_lasted() -> None:
    game = Game(max_delay=2, tuning=tw.Tuning(timeout=1), give_up_after=None)
    game.run(1)
    game.world.restart(game.server)
    game.run(1.5)
    assert (game.player.connected, game.player.attempt) == (True, 1)
    game.world.restart(game.world.servers[0])
    again = game.run(1.5)[0]
    assert isinstance(again, tw.connections.Reconnecting)
    assert again.attempt == 2, "it had not lasted"
    game.run(4)
    game.world.restart(game.world.servers[0])
    again = game.run(1.5)[0]
    assert isinstance(again, tw.connections.Reconnecting)
    assert again.attempt == 1


@pytest.mark.parametrize("give_up_after", [0, 5, 20])
def test_it_gives_up(give_up_after: float) -> None:
    game = Game(tuning=tw.Tuning(timeout=1), give_up_after=give_up_after)
    game.run(1)
    lost = game.world.now
    game.server.close()
    events = game.run(40)
    assert isinstance(events[-1], tw.Disconnected)
    assert set(names(events[:-1])) <= {"Reconnecting"}
    assert game.told[-1][0] - lost <= give_up_after + 2
    assert game.player.disconnect_reason is events[-1].reason
    assert game.run(5) == []


def test_the_first_dial_is_tried_again_too() -> None:
    game = Game(tuning=tw.Tuning(timeout=1))
    game.server.close()
    assert set(names(game.run(4))) == {"Reconnecting"}
    game.world.server(game.server.address)
    assert names(game.run(8))[-1] == "Connected"


def test_all_attempts_have_one_client_id_in_virtual_time_too() -> None:
    game = Game(client_id=None)
    game.run(1)
    first = game.server.clients[0].id
    game.server.close()
    game.run(4)
    server = game.world.server(game.server.address)
    assert names(game.run(8))[-1] == "Connected"
    assert server.clients[0].id == first


def kicked(game: Game) -> None:
    game.server.disconnect(game.server.clients[0], reason="banned")


def replaced(game: Game) -> None:
    game.world.client(client_id=7)


def closed_by_hand(game: Game) -> None:
    game.player.close()


@pytest.mark.parametrize("end", [kicked, replaced, closed_by_hand])
def test_ends_that_are_meant_are_ends(end: Callable[[Game], None]) -> None:
    game = Game()
    game.run(1)
    end(game)
    events = game.run(30)
    assert not game.player.connected
    assert names(events) == ([] if end is closed_by_hand else ["Disconnected"])
    assert game.player.disconnect_reason is not None
    if end is kicked:
        assert isinstance(events[0], tw.Disconnected)
        assert (events[0].reason, events[0].detail) == (tw.DisconnectReason.KICKED, "banned")
        assert game.player.disconnect_detail == "banned"


def test_a_banned_player_who_comes_back_is_sent_away_once() -> None:
    asked = []

    def admission(newcomers: list[tw.ClientHandle]) -> list[tw.ClientHandle]:
        asked.append(len(newcomers))
        return newcomers

    game = Game(server={"access": tw.tokens.Access(admission=admission)})
    events = game.run(30)
    assert names(events)[-1] == "Disconnected"
    assert "Reconnecting" not in names(events)
    assert asked == [1]
    assert game.player.disconnect_reason is tw.DisconnectReason.KICKED


def test_a_mismatch_is_an_end() -> None:
    world = Simulation(make_protocol(), seed=1)
    server = world.server()
    other = make_protocol(channels=[tw.unreliable()])
    player = tw.connections.Redialler.connect(server.address, other, network=world.network)
    events: list[tw.connections.Event] = []
    for _ in world.ticks(20):
        with player.tick() as inbox:
            events += inbox.events
    assert names(events)[-1] == "Disconnected"
    assert player.disconnect_reason is tw.DisconnectReason.PROTOCOL_MISMATCH
    assert names(events).count("Reconnecting") == 0


def test_a_full_server_is_tried_until_there_is_room() -> None:
    game = Game(server={"max_clients": 1})
    other = game.world.client()
    game.world.run(1)  # the player's game doesn't tick yet
    assert other.connected
    events = game.run(3)
    assert {event.reason for event in events} == {tw.DisconnectReason.SERVER_FULL}
    assert set(names(events)) == {"Reconnecting"}
    other.close()
    assert names(game.run(10))[-1] == "Connected"


def test_same_seed_same_delays() -> None:
    def delays(seed: int) -> list[float]:
        game = Game(seed=seed, tuning=tw.Tuning(timeout=1, bind="10.1.0.1:0"))
        game.server.close()
        return [event.delay for event in game.run(20) if isinstance(event, tw.connections.Reconnecting)]

    assert delays(3) == delays(3) != delays(4)


def test_chunks_are_resumed() -> None:
    world = Simulation(make_protocol(channels=[tw.reliable_ordered(), tw.chunks()]), seed=1)
    server = world.server(
        transfers=tw.transfer.Transfers(congestion=tw.transfer.Congestion.fixed(400_000, 20_000))
    )
    player = tw.connections.Redialler.connect(
        server.address, world.protocol, network=world.network, tuning=tw.Tuning(timeout=2)
    )
    data = bytes(range(256)) * 4_000
    got, sent = [], []
    for tick in world.ticks(15):
        for event in world.inbox(server).events:
            if isinstance(event, tw.Connected) and event.client:
                sent.append(server.send_chunk(event.client, data))
        if tick == 90:
            world.network.unplug(player.address)
        with player.tick() as inbox:
            got += inbox.chunks
    assert [bytes(chunk.data) for chunk in got] == [data]
    assert len(sent) == 2
    assert server.stats(server.clients[0]).chunks.bytes_sent < 0.9 * len(data)


# --- tokens ----------------------------------------------------------------------------------------------


class Backend:
    def __init__(self, world: Simulation, server: tw.Server) -> None:
        self.world, self.server = world, server
        self.calls = 0
        self.answers: dict[int, Any] = {}

    def token(self) -> Any:
        self.calls += 1
        answer = self.answers.get(self.calls, self.fresh)
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer

    def fresh(self) -> tw.ConnectToken:
        return tw.ConnectToken.generate(
            protocol=self.world.protocol,
            key=KEY,
            client_id=7,
            servers=[self.server.address],
            now=self.world.network.unix,
        )


def with_backend(**settings: Any) -> tuple[Simulation, Backend, tw.connections.Redialler]:
    world = Simulation(make_protocol(), seed=1)
    server = world.server(key=KEY)
    backend = Backend(world, server)
    player = tw.connections.Redialler(world.protocol, backend.token, network=world.network, **settings)
    return world, backend, player


def play(world: Simulation, player: tw.connections.Redialler, seconds: float) -> list[tw.connections.Event]:
    events: list[tw.connections.Event] = []
    for _ in world.ticks(seconds):
        with player.tick() as inbox:
            events += inbox.events
    return events


def test_each_dial_has_a_fresh_token() -> None:
    world, backend, player = with_backend()
    assert names(play(world, player, 1)) == ["Connected"]
    for count in (2, 3):
        # A server that is new refuses tokens of before its start.
        world.restart(world.servers[0])
        assert names(play(world, player, 5)) == ["Reconnecting", "Connected"]
        assert backend.calls == count


def test_what_the_callback_raises_is_a_dial_that_failed() -> None:
    world, backend, player = with_backend()
    backend.answers = {2: OSError("backend is down"), 3: RuntimeError("odd"), 4: concurrent.futures.Future()}
    play(world, player, 1)
    world.restart(world.servers[0])
    events = play(world, player, 6)
    tries = [event for event in events if isinstance(event, tw.connections.Reconnecting)]
    assert [str(event.error) for event in tries] == ["None", "backend is down", "odd"]
    assert {event.reason for event in tries} == {tw.DisconnectReason.SERVER_CLOSED}
    assert not player.connected
    backend.answers[4].set_result(backend.fresh())
    assert names(play(world, player, 2)) == ["Connected"]
    assert backend.calls == 4


def test_a_token_that_never_comes_ends_with_the_patience() -> None:
    world, backend, player = with_backend(give_up_after=5)
    backend.answers = {2: concurrent.futures.Future()}
    play(world, player, 1)
    world.restart(world.servers[0])
    assert names(play(world, player, 8)) == ["Reconnecting", "Disconnected"]
    assert backend.answers[2].cancelled()
    assert play(world, player, 20) == []


@pytest.mark.parametrize("fails", [False, True])
def test_one_closed_while_its_token_is_made_stays_closed(fails: bool) -> None:
    world, backend, player = with_backend()

    def cancelled_by_the_player() -> tw.ConnectToken:
        player.close()
        if fails:
            raise OSError("and the backend is down")
        return backend.fresh()

    backend.answers = {2: cancelled_by_the_player}
    play(world, player, 1)
    server = world.restart(world.servers[0])
    events = []
    for _ in world.ticks(6):
        # The tick in which it is closed can't receive any more, nor can those after it.
        with contextlib.suppress(tw.errors.ClosedError), player.tick() as inbox:
            events += inbox.events
    assert names(events) == ["Reconnecting"]
    assert (player.closed, player.connected, len(server.clients)) == (True, False, 0)


def test_a_future_made_while_it_is_closed_is_cancelled() -> None:
    world, backend, player = with_backend()
    future: concurrent.futures.Future[tw.ConnectToken] = concurrent.futures.Future()

    def cancelled_by_the_player() -> concurrent.futures.Future[tw.ConnectToken]:
        player.close()
        return future

    backend.answers = {2: cancelled_by_the_player}
    play(world, player, 1)
    world.restart(world.servers[0])
    with pytest.raises(tw.errors.ClosedError):
        play(world, player, 6)
    assert future.cancelled()


def test_none_gives_up() -> None:
    world, backend, player = with_backend()
    backend.answers = {2: None}
    play(world, player, 1)
    world.servers[0].close()
    events = play(world, player, 5)
    assert names(events) == ["Reconnecting", "Disconnected"]
    assert player.disconnect_reason is tw.DisconnectReason.SERVER_CLOSED
    assert play(world, player, 100) == []


def test_the_first_token_raises_where_it_is_asked_for() -> None:
    world = Simulation(make_protocol(), seed=1)

    def refuses() -> tw.ConnectToken:
        raise PermissionError("wrong password")

    with pytest.raises(PermissionError, match="wrong password"):
        tw.connections.Redialler(world.protocol, refuses, network=world.network)

    async def coroutine() -> tw.ConnectToken:
        raise AssertionError

    with pytest.raises(TypeError, match=r"use tickwire\.aio\.redialler"):
        tw.connections.Redialler(world.protocol, coroutine, network=world.network)


def test_a_first_token_that_isnt_there_yet_is_refused_with_a_sentence() -> None:
    world = Simulation(make_protocol(), seed=1)
    loop = asyncio.new_event_loop()
    future: asyncio.Future[tw.ConnectToken] = loop.create_future()
    with pytest.raises(TypeError, match=r"use tickwire\.aio\.redialler"):
        tw.connections.Redialler(world.protocol, lambda: future, network=world.network)
    loop.close()


def cancelled() -> Any:
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    future.cancel()
    loop.close()
    return future


@pytest.mark.parametrize("bind", [None, "10.1.0.1:40001"])
def test_a_token_that_is_refused_is_a_dial_that_failed(bind: str | None) -> None:
    world, backend, player = with_backend(tuning=tw.Tuning(bind=bind))
    same = backend.fresh()
    other = tw.ConnectToken.generate(
        protocol=make_protocol(id=5), key=KEY, client_id=7, servers=[world.servers[0].address]
    )
    backend.answers = {2: same, 3: same, 4: other, 5: b"token", 6: cancelled}
    play(world, player, 1)
    address = player.address
    world.restart(world.servers[0], access=tw.tokens.Access(clock_skew=60))
    play(world, player, 3)
    assert backend.calls == 2
    world.restart(world.servers[0])
    told: list[tw.connections.Event] = []
    for _ in world.ticks(30):
        with player.tick() as inbox:
            told += inbox.events
        if not player.connected:
            assert player.send(Chat(1, "")) is tw.SendResult.NOT_CONNECTED
            assert player.step() >= 0
            assert player.server_address == world.servers[0].address
    errors = [str(event.error) for event in told if isinstance(event, tw.connections.Reconnecting)]
    assert len(errors) == 5, errors
    assert "token must be new" in errors[1]
    assert "protocol" in errors[2]
    assert "ConnectToken" in errors[3]
    assert errors[4] == "the future of a token was cancelled"
    assert names(told)[-1] == "Connected"
    if bind is not None:
        assert player.address == address


def test_an_interrupt_while_a_token_is_fetched_leaves_it_dialling() -> None:
    world, backend, player = with_backend()

    def interrupted() -> Any:
        raise KeyboardInterrupt

    backend.answers = {2: interrupted}
    play(world, player, 1)
    world.restart(world.servers[0])
    with pytest.raises(KeyboardInterrupt):
        play(world, player, 3)
    assert names(play(world, player, 3)) == ["Connected"]


def test_a_port_that_is_taken_at_a_later_dial_is_a_dial_that_failed() -> None:
    world, _, player = with_backend(tuning=tw.Tuning(bind="10.1.0.1:40001"))
    play(world, player, 1)
    make = player._make

    def taken(**_: Any) -> tw.Client:
        player._make = make
        raise OSError("address in use")

    player._make = taken
    world.restart(world.servers[0])
    events = play(world, player, 5)
    assert names(events) == ["Reconnecting", "Reconnecting", "Connected"]
    assert isinstance(events[1], tw.connections.Reconnecting)
    assert str(events[1].error) == "address in use"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"first_delay": 0}, r"first_delay must be above 0 to 86400 seconds, not 0"),
        ({"max_delay": 0.1}, r"max_delay must be first_delay \(0.5\) to 86400 seconds, not 0.1"),
        ({"jitter": 1.5}, r"jitter must be 0 to 1, not 1.5"),
        ({"give_up_after": -1}, r"give_up_after must be at least 0 seconds, or None, not -1"),
        ({"resume": None}, r"resume is what a Redialler gives itself"),
    ],
)
def test_mistakes(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        tw.connections.Redialler.connect("127.0.0.1:1", make_protocol(), **settings)


# --- loops, on real sockets ------------------------------------------------------------------------------


def test_it_goes_in_a_loop() -> None:
    protocol = make_protocol()
    server = tw.Server("127.0.0.1:0", protocol)
    player = tw.connections.Redialler.connect(
        server.address, protocol, first_delay=0.01, tuning=tw.Tuning(timeout=1)
    )
    told: list[tw.connections.Event] = []
    for tick, inbox in enumerate(tw.loop(player, 100)):
        told += inbox.events
        if not server.closed:
            with server.tick():
                pass
        if tick == 30:
            address = server.address
            server.close()
            server = tw.Server(address, protocol)
        if names(told).count("Connected") == 2 or tick > 500:
            break
    assert names(told) == ["Connected", "Reconnecting", "Connected"]
    assert player.closed
    server.close()


def test_a_loop_ends_when_it_gives_up() -> None:
    protocol = make_protocol()
    with tw.Server("127.0.0.1:0", protocol) as server:
        address = server.address
    player = tw.connections.Redialler.connect(
        address, protocol, first_delay=0.01, tuning=tw.Tuning(timeout=1), give_up_after=0
    )
    told = [event for inbox in tw.loop(player, 100) for event in inbox.events]
    assert names(told) == ["Disconnected"]


def test_it_goes_on_asyncio() -> None:
    protocol = make_protocol()

    async def game() -> list[str]:
        server = tw.Server(
            "127.0.0.1:0", protocol, key=KEY, access=tw.tokens.Access(public_addresses=["127.0.0.1:0"])
        )
        address = server.address
        server.close()
        server = tw.Server(address, protocol, key=KEY)
        calls = 0

        async def token() -> tw.ConnectToken:
            nonlocal calls
            calls += 1
            await asyncio.sleep(0.01)
            return tw.ConnectToken.generate(protocol=protocol, key=KEY, client_id=7, servers=[address])

        player = await aio.redialler(protocol, token, first_delay=0.01)
        told: list[tw.connections.Event] = []

        async def serve() -> None:
            nonlocal server
            async with aio.Driver(server) as driver:
                async for _ in driver.ticks(60, 0.3):
                    pass
            server = tw.Server(address, protocol, key=KEY, access=tw.tokens.Access(clock_skew=5))
            async with aio.Driver(server) as driver:
                async for _ in driver.ticks(60):
                    pass

        serving = asyncio.create_task(serve())
        async with aio.Driver(player) as driver:
            await driver.connected()
            async for inbox in driver:
                told += inbox.events
                if names(told).count("Connected") == 2:
                    break
        serving.cancel()
        assert calls == 2
        return names(told)

    assert asyncio.run(asyncio.wait_for(game(), 20)) == ["Connected", "Reconnecting", "Connected"]


def test_the_new_socket_is_watched_though_it_has_the_number_of_the_old_one() -> None:
    protocol = make_protocol()

    async def game() -> list[float]:
        server = tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver="thread"))
        address = server.address
        with tw.Client.connect(address, protocol) as other:
            bind = other.address
        player = tw.connections.Redialler.connect(
            address, protocol, first_delay=0.01, tuning=tw.Tuning(bind=bind, timeout=5)
        )
        numbers, waits = [player.fileno()], []
        async with aio.Driver(player) as driver:
            await driver.connected()
            server.close()
            server = tw.Server(address, protocol, tuning=tw.Tuning(driver="thread"))
            holes = [os.dup(2)]  # lower numbers that are free
            while holes[-1] < numbers[0]:
                holes.append(os.dup(2))
            while True:
                await anext(aiter(driver))
                if player.connected and player.client.fileno() and player.attempt:
                    break
            numbers.append(player.fileno())
            with server.tick():
                pass
            for _ in range(5):
                wakes = driver.wakes
                with server.tick():
                    server.broadcast(Chat(1, "x"))
                begun = asyncio.get_running_loop().time()
                async for inbox in driver:
                    if inbox.messages:
                        break
                waits.append(asyncio.get_running_loop().time() - begun)
                assert driver.wakes > wakes
        for hole in holes:
            os.close(hole)
        assert numbers[0] == numbers[1]
        server.close()
        return waits

    assert sorted(asyncio.run(asyncio.wait_for(game(), 20)))[2] < 0.02


def test_one_capture_has_all_dials(tmp_path: Path) -> None:
    path = tmp_path / "game.pcapng"
    game = Game(debugging=tw.testing.Debugging(capture=path))
    game.run(1)
    game.world.restart(game.server)
    game.run(3)
    assert game.player.connected
    game.player.close()
    captured = list(read_capture(path))
    moments = [packet.nanoseconds / 1e9 for packet in captured]
    assert max(moments) - min(moments) > 3


def test_attempt_is_0_while_it_is_up_for_long() -> None:
    game = Game(max_delay=2)
    game.run(1)
    game.world.restart(game.server)
    game.run(1.5)
    assert (game.player.connected, game.player.attempt) == (True, 1)
    game.run(3)
    assert (game.player.connected, game.player.attempt) == (True, 0)


# --- what it has of a client -----------------------------------------------------------------------------


def test_a_message_class_keeps_its_own_channel() -> None:
    @tw.message(channel=1)
    class Wave:
        strength: tw.u8

    world = Simulation(
        make_protocol(messages=[Wave], channels=[tw.reliable_ordered(), tw.unreliable()]), seed=1
    )
    server = world.server()
    player = tw.connections.Redialler.connect(server.address, world.protocol, network=world.network)
    play(world, player, 1)
    sent_on = []
    for _ in range(3):
        player.send(Wave(1))
        play(world, player, 0.1)
        sent_on.append(player.client.stats.channels[1].sent)
    assert sent_on == [1, 2, 3]


def signatures(file: str, class_: str) -> dict[str, str]:
    """Name, arguments and result of each public method and property, but for how messages are typed."""
    tree = ast.parse((Path(tw.__file__).parent / file).read_text())
    (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_]
    signs = {}
    for node in found.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            text = f"{ast.unparse(node.args)} -> {ast.unparse(node.returns) if node.returns else None}"
            text = text.replace("_Array", "Buffer").replace("_P", "Any")
            signs[node.name] = text.replace("Event | Reconnecting", "Event")
    return signs


def test_its_methods_are_those_of_a_client() -> None:
    client = signatures("_core.pyi", "Client")
    redialler = signatures("_redial.py", "Redialler")
    for signs in (client, redialler):
        del signs["tick"]  # each has its own kind
        del signs["connect"]
    del client["local"]  # its connection is lost with its server
    assert {name: redialler.get(name) for name in client} == client
    assert redialler.keys() - client.keys() == {"client", "attempt"}
    # copyreg leaves `__slotnames__` on a class when another test has tried to pickle one of its objects.
    names = set(dir(tw.Client)) - {"__slotnames__", "local"}
    assert names <= set(dir(tw.connections.Redialler)), "the library's own methods too"


@tw.message
class Push:
    x: tw.i8


@tw.ghost
class Puck:
    x: float = 0.0


@dataclasses.dataclass
class Body:
    x: float = 0.0


def step(body: Body, push: Push) -> Body:
    body.x += push.x
    return body


def test_its_player_is_predicted_before_and_after_a_reconnect() -> None:
    world = Simulation(tw.Protocol(1, [Push], ghosts=[Puck], inputs=Push, tick_rate=60), seed=1)
    server = world.server()
    player = tw.connections.Redialler.connect(
        server.address, world.protocol, network=world.network, tuning=tw.Tuning(timeout=1)
    )
    mine = tw.predict.Prediction(step, Body(), tolerance={"x": 0.5})
    pucks: dict[tw.ClientHandle, tuple[Body, Puck]] = {}
    connected = 0

    def play(seconds: float) -> None:
        nonlocal connected
        for _ in range(round(seconds * 60)):
            with server.tick() as inbox:
                for event in inbox.events:
                    if isinstance(event, tw.Disconnected):
                        server.world.despawn(pucks.pop(event.client)[1])
                for client, push in server.inputs:
                    if client not in pucks:
                        pucks[client] = Body(), server.world.spawn(Puck(), owner=client)
                    body, puck = pucks[client]
                    if push is not None:
                        puck.x = step(body, push).x
            with player.tick() as inbox:
                if any(isinstance(event, tw.Connected) for event in inbox.events):
                    mine.reset(Body())
                    connected += 1
                mine.advance(player, Push(1), player.world.mine(Puck))
            world.network.advance(1 / 60)

    for seconds, loss in [(3, 0.0), (3, 1.0), (5, 0.0)]:
        world.network.set_conditions(tw.Conditions(loss=loss))
        play(seconds)
    assert connected == 2
    ((body, _),) = pucks.values()
    assert mine.state is not None
    assert mine.tick is not None
    # The server is past its flush, so this is the next tick.
    assert mine.state.x - body.x == mine.tick - (server.inputs.tick - 1)
    assert mine.error == 0


def test_types_of_messages_reach_the_loop() -> None:
    """For type checkers: each line is an error if what comes is Any or another."""
    protocol: tw.Protocol[Chat] = tw.Protocol(1, [Chat])

    def game() -> None:
        player = tw.connections.Redialler.connect("127.0.0.1:1", protocol)
        for inbox in tw.loop(player):
            assert_type(inbox.messages, list[Chat])
        assert_type(aio.Driver(player).endpoint.client, tw.Client[Chat])

    assert game is not None
