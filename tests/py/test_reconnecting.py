"""A client that reconnects, in virtual time."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tickwire as tw
from conftest import Chat, make_protocol
from tickwire import aio
from tickwire.capture import read_capture
from tickwire.testing import Simulation

KEY = bytes(range(32))


def dialling(
    world: Simulation,
    address: tw.connections.AddressLike,
    give_up_after: float | None = 120.0,
    **settings: Any,
) -> tw.Client:
    """A client in development mode that reconnects."""
    more = {name: settings.pop(name) for name in ("first_delay", "max_delay") if name in settings}
    reconnect = tw.connections.Reconnect(give_up_after=give_up_after, **more)
    tuning = tw.Tuning(**{name: settings.pop(name) for name in ("bind", "timeout") if name in settings})
    return tw.Client.connect(
        address, world.protocol, network=world.network, reconnect=reconnect, tuning=tuning, **settings
    )


class Game:
    """A world with a server and one player who reconnects, and that player's events."""

    def __init__(self, server: dict[str, Any] | None = None, seed: int = 1, **settings: Any) -> None:
        self.world = Simulation(make_protocol(channels=[tw.reliable_ordered(), tw.chunks()]), seed=seed)
        self.server = self.world.server(**(server or {}))
        settings = {"client_id": 7, "bind": "10.1.0.1:0", **settings}
        self.player = dialling(self.world, self.server.address, **settings)
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
    assert game.world.servers[0].clients[0].id == game.player.id == 7
    game.world.servers[0].broadcast(Chat(1, "welcome back"))
    game.run(1)
    assert game.messages == [Chat(1, "welcome back")]


def test_it_comes_back_after_a_crash_and_a_long_outage() -> None:
    game = Game(timeout=2, give_up_after=None)
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
    game = Game(max_delay=2, timeout=1, give_up_after=None)
    game.run(1)
    game.world.restart(game.server)
    game.run(1.5)
    assert game.player.connected
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
    game = Game(timeout=1, give_up_after=give_up_after)
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
    game = Game(timeout=1)
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
    player = tw.Client.connect(
        server.address, other, network=world.network, reconnect=tw.connections.Reconnect()
    )
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
        game = Game(seed=seed, timeout=1)
        game.server.close()
        return [event.delay for event in game.run(20) if isinstance(event, tw.connections.Reconnecting)]

    assert delays(3) == delays(3) != delays(4)


def test_chunks_are_resumed() -> None:
    world = Simulation(make_protocol(channels=[tw.reliable_ordered(), tw.chunks()]), seed=1)
    slow = tw.transfer.Congestion(max_bytes_per_second=400_000)
    server = world.server(transfers=tw.transfer.Transfers(congestion=slow))
    player = dialling(world, server.address, timeout=2)
    data = bytes(range(256)) * 4_000
    got, sent = [], []
    for tick in world.ticks(15):
        for event in world.inbox(server).events:
            if isinstance(event, tw.Connected) and event.client:
                sent.append(server.send_chunk(event.client, data))
        if tick == 90:
            world.network.partition([server.address], [player.address])
        if tick == 300:
            world.network.heal()
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


def with_backend(
    give_up_after: float | None = 120.0, **settings: Any
) -> tuple[Simulation, Backend, tw.Client]:
    world = Simulation(make_protocol(), seed=1)
    server = world.server(key=KEY)
    backend = Backend(world, server)
    reconnect = tw.connections.Reconnect(backend.token, give_up_after=give_up_after)
    token = backend.token()
    tuning = tw.Tuning(**settings)
    player = tw.Client(world.protocol, token, network=world.network, reconnect=reconnect, tuning=tuning)
    return world, backend, player


def play(world: Simulation, player: tw.Client, seconds: float) -> list[tw.connections.Event]:
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


def test_a_future_that_fails_to_be_cancelled_leaves_the_client_closed() -> None:
    class Stubborn(concurrent.futures.Future[tw.ConnectToken]):
        def cancel(self) -> bool:
            raise RuntimeError("its event loop is closed")

    world, backend, player = with_backend()
    backend.answers = {2: Stubborn}
    play(world, player, 1)
    world.restart(world.servers[0])
    play(world, player, 6)
    with pytest.raises(RuntimeError, match="its event loop is closed"):
        player.close()
    assert player.closed


def test_a_with_block_whose_future_fails_to_be_cancelled_closes_the_client() -> None:
    class Stubborn(concurrent.futures.Future[tw.ConnectToken]):
        def cancel(self) -> bool:
            raise RuntimeError("its event loop is closed")

    world, backend, player = with_backend()
    backend.answers = {2: Stubborn}
    with pytest.raises(RuntimeError, match="its event loop is closed"), player:  # noqa: PT012
        play(world, player, 1)
        world.restart(world.servers[0])
        play(world, player, 6)
    assert player.closed


def test_a_rejected_close_goes_on_reconnecting() -> None:
    world, _, player = with_backend()
    play(world, player, 1)
    with pytest.raises(ValueError, match="linger must be 0 to 60"):
        player.close(linger=1e9)
    world.restart(world.servers[0])
    play(world, player, 6)
    assert player.connected


def test_a_run_ends_when_its_tokens_source_closes_the_client() -> None:
    world, backend, player = with_backend()

    def closing() -> tw.ConnectToken:
        player.close()
        return backend.fresh()

    backend.answers = {2: closing}
    play(world, player, 1)
    world.servers[0].close()
    with tw.run(player, 60) as ticks:
        assert sum(1 for _ in ticks) < 1_000
    assert player.closed


@pytest.mark.parametrize("name", ["first_delay", "max_delay", "jitter", "give_up_after"])
@pytest.mark.parametrize("given", [int, True, "1"])
def test_settings_that_are_no_numbers_are_named(name: str, given: object) -> None:
    with pytest.raises(TypeError, match=f"{name} must be a number, not {type(given).__name__}"):
        tw.connections.Reconnect(**{name: given})  # type: ignore[arg-type]


def test_none_gives_up() -> None:
    world, backend, player = with_backend()
    backend.answers = {2: None}
    play(world, player, 1)
    world.servers[0].close()
    events = play(world, player, 5)
    assert names(events) == ["Reconnecting", "Disconnected"]
    assert player.disconnect_reason is tw.DisconnectReason.SERVER_CLOSED
    assert play(world, player, 100) == []


def cancelled() -> Any:
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    future.cancel()
    loop.close()
    return future


@pytest.mark.parametrize("bind", [None, "10.1.0.1:40001"])
def test_a_token_that_is_refused_is_a_dial_that_failed(bind: str | None) -> None:
    world, backend, player = with_backend(bind=bind)
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
            assert player._step() >= 0
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


def test_one_needs_a_token_source_exactly_if_it_has_no_key() -> None:
    world = Simulation(make_protocol(), seed=1)
    backend = Backend(world, world.server(key=KEY))
    with pytest.raises(ValueError, match=r"reconnect must have a token source"):
        tw.Client(world.protocol, backend.fresh(), reconnect=tw.connections.Reconnect())
    with pytest.raises(ValueError, match=r"reconnect must have no token source with Client.connect"):
        tw.Client.connect("127.0.0.1:1", world.protocol, reconnect=tw.connections.Reconnect(backend.token))
    with pytest.raises(TypeError, match=r"reconnect must be a Reconnect or None, not bool"):
        tw.Client.connect("127.0.0.1:1", world.protocol, reconnect=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"first_delay": 0}, r"first_delay must be above 0 to 86400 seconds, not 0"),
        ({"max_delay": 0.1}, r"max_delay must be first_delay \(0.5\) to 86400 seconds, not 0.1"),
        ({"jitter": 1.5}, r"jitter must be 0 to 1, not 1.5"),
        ({"jitter": "some"}, r"jitter must be a number, not str"),
        ({"give_up_after": -1}, r"give_up_after must be 0 to 1e9 seconds, or None, not -1"),
        (
            {"token": b"token"},
            r"token must be callable, and make a token for each attempt, or None, not b",
        ),
    ],
)
def test_mistakes(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        tw.connections.Reconnect(**settings)


# --- loops, on real sockets ------------------------------------------------------------------------------

SOON = tw.connections.Reconnect(first_delay=0.01)


@pytest.mark.parametrize("driver", ["polled", "thread"])
def test_it_runs_in_a_loop(driver: Any) -> None:
    protocol = make_protocol()
    server = tw.Server("127.0.0.1:0", protocol)
    player = tw.Client.connect(
        server.address, protocol, reconnect=SOON, tuning=tw.Tuning(timeout=1, driver=driver)
    )
    told: list[tw.connections.Event] = []
    with tw.run(player, 100) as ticks:
        for tick, inbox in ticks:
            told += inbox.events
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
    reconnect = tw.connections.Reconnect(first_delay=0.01, give_up_after=0)
    told: list[tw.connections.Event] = []
    with tw.run(
        tw.Client.connect(address, protocol, reconnect=reconnect, tuning=tw.Tuning(timeout=1)), 100
    ) as ticks:
        for _, inbox in ticks:
            told += inbox.events
    assert names(told) == ["Disconnected"]


def test_it_reconnects_on_asyncio() -> None:
    protocol = make_protocol()

    async def game() -> list[str]:
        server = tw.Server(
            "127.0.0.1:0", protocol, key=KEY, access=tw.tokens.Access(public_addresses=["127.0.0.1:0"])
        )
        address = server.address
        server.close()
        calls = 0

        async def token() -> tw.ConnectToken:
            nonlocal calls
            calls += 1
            await asyncio.sleep(0.01)
            return tw.ConnectToken.generate(protocol=protocol, key=KEY, client_id=7, servers=[address])

        async def serve() -> None:
            async with aio.run(tw.Server(address, protocol, key=KEY)) as ticks:
                async for tick, _ in ticks:
                    if tick > 20:
                        break
            async with aio.run(
                tw.Server(address, protocol, key=KEY, access=tw.tokens.Access(clock_skew=5))
            ) as ticks:
                async for _ in ticks:
                    pass

        serving = asyncio.create_task(serve())
        reconnect = tw.connections.Reconnect(token, first_delay=0.01)
        told: list[tw.connections.Event] = []
        async with aio.run(tw.Client(protocol, await token(), reconnect=reconnect)) as ticks:
            async for _, inbox in ticks:
                told += inbox.events
                if names(told).count("Connected") == 2:
                    break
        serving.cancel()
        assert calls == 2
        return names(told)

    assert asyncio.run(asyncio.wait_for(game(), 20)) == ["Connected", "Reconnecting", "Connected"]


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


# --- the same client ---


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
    world = Simulation(tw.Protocol(1, ghosts=[Puck], inputs=Push, tick_rate=60), seed=1)
    server = world.server()
    player = dialling(world, server.address, timeout=1)
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


@pytest.mark.parametrize(
    ("restarts", "resets", "skips"),
    [
        (False, False, False),
        (False, True, False),
        (True, False, False),
        (True, True, False),
        # A game that doesn't call advance between two connections.
        (True, False, True),
    ],
)
def test_a_prediction_continues_from_the_first_state_after_a_reconnect(
    restarts: bool, resets: bool, skips: bool
) -> None:
    line = tw.Conditions(latency=0.05)
    world = Simulation(tw.Protocol(1, ghosts=[Puck], inputs=Push, tick_rate=60), seed=1, conditions=line)
    server = world.server()
    player = dialling(world, server.address, timeout=1)
    mine = tw.predict.Prediction(step, Body(), tolerance={"x": 0.5}, snap=2)
    pucks: dict[int, Puck] = {}
    # What is predicted, how far that is from the server's state, and whether the server's state is known.
    seen: list[tuple[float, float, bool]] = []

    def play(seconds: float) -> None:
        for _ in range(round(seconds * 60)):
            with server.tick():
                for client, push in server.inputs:
                    if client.id not in pucks:
                        pucks[client.id] = server.world.spawn(Puck(), owner=client)
                    if push is not None:
                        pucks[client.id].x += push.x
            with player.tick() as inbox:
                puck = player.world.mine(Puck)
                if resets and seen and any(isinstance(event, tw.Connected) for event in inbox.events):
                    mine.reset(Body(0.0 if puck is None else puck.x))
                if not skips or player.clock.input_tick is not None:
                    mine.advance(player, Push(1), puck)
            assert mine.state is not None
            truth = next((puck.x for puck in pucks.values()), 0.0)
            is_known = puck is not None and player.tick_of(puck) is not None
            seen.append((mine.state.x, abs(mine.state.x - truth), is_known))
            world.network.advance(1 / 60)

    play(3)
    world.network.set_conditions(tw.Conditions(loss=1.0))
    play(2)
    if restarts:
        pucks.clear()
        server = world.restart(server)
    else:
        (puck,) = pucks.values()
        puck.x = 10_000.0
    world.network.set_conditions(line)
    play(5)
    after = seen[-300:]
    assert len({x for x, _, is_known in after if not is_known}) == 1 + resets, "it stands still"
    assert max(off for _, off, is_known in after if is_known) < 15, "it is ahead by its lead"
    assert mine.corrections <= 1


def test_its_state_says_so_until_the_next_attempt() -> None:
    game = Game()
    game.run(1)
    slot, state = game.player.slot, tw.connections.ClientState
    assert (slot, game.player.state) == (0, state.CONNECTED)
    game.world.restart(game.server)
    seen = []
    for _ in range(240):
        game.run(1 / 60)
        seen.append((game.player.state, game.player.disconnect_reason))
        if game.player.state is not state.CONNECTED:
            assert not game.player.connected
            assert game.player.send(Chat(1, "lost")) is tw.SendResult.NOT_CONNECTED
    assert {reason for _, reason in seen} == {None}
    order = list(dict.fromkeys(state for state, _ in seen))
    assert order[0] is state.RECONNECTING or order[:2] == [state.CONNECTED, state.RECONNECTING]
    assert seen[-1][0] is state.CONNECTED


def test_its_world_stays_with_its_objects() -> None:
    world = Simulation(tw.Protocol(1, [Push], ghosts=[Puck], tick_rate=60), seed=1)
    server = world.server()
    player = dialling(world, server.address, timeout=1)
    kept, view = player.world, player.world.view()
    server.world.spawn(Puck(3.0))
    log: list[str] = []

    def play(seconds: float) -> None:
        for _ in range(round(seconds * 60)):
            with server.tick():
                pass
            with player.tick() as inbox:
                log.extend(names(inbox.events))
                log.extend(type(event).__name__ for event in inbox.ghosts)
                assert len(view.objects(Puck)) <= 1
                assert player.world.view() is view
            world.network.advance(1 / 60)

    play(2)
    (puck,) = kept.objects(Puck)
    for seconds, loss in [(2, 1.0), (5, 0.0)]:
        world.network.set_conditions(tw.Conditions(loss=loss))
        play(seconds)
    assert log[:3] == ["Connected", "GhostSpawned", "Reconnecting"]
    assert log[-1] == "Connected"
    assert log.count("GhostSpawned") == 1
    assert "GhostDespawned" not in log
    assert player.world is kept
    assert kept.objects(Puck) == [puck]
    assert puck.x == 3.0


def test_until_the_world_arrives_the_server_knows_none_of_its_ghosts() -> None:
    @tw.call(tw.to_server)
    def push(caller: tw.ClientHandle, puck: Puck) -> None: ...

    protocol = tw.Protocol(1, [Push], ghosts=[Puck], calls=[push])
    line = tw.Conditions(latency=0.05)
    numbers: list[int | None] = []
    with Simulation(protocol, seed=1, conditions=line) as simulation:
        server = simulation.server()
        player = simulation.client(reconnect=tw.connections.Reconnect(first_delay=0.1))
        simulation.run(0.5)
        server.world.spawn(Puck(3.0), owner=server.clients[0])
        simulation.run(0.5)
        (puck,) = player.world.objects(Puck)
        assert player.world.id_of(puck) is not None
        server = simulation.restart(server)
        for _ in simulation.ticks(3):
            simulation.inbox(server)
            if puck in player.world and player.connected:
                numbers.append(player.world.id_of(puck))
                if numbers[-1] is None:
                    assert player.call(push, puck) is tw.SendResult.HIDDEN
    assert None in numbers


def test_requests_and_notifications_end_with_their_connection() -> None:
    @tw.call(tw.to_server)
    def ask(_: tw.ClientHandle) -> tw.u8:
        return 1

    world = Simulation(tw.Protocol(1, [Chat], calls=[ask]), seed=1)
    server = world.server()
    player = dialling(world, server.address, timeout=1)
    play(world, player, 1)
    world.network.partition([server.address], [player.address])
    request = player.request(ask)
    assert player.send(Chat(1, "lost"), tag=9, notify=True)
    fates: list[Any] = []
    for _ in world.ticks(3):
        with player.tick() as inbox:
            fates += zip(inbox.notifications.tag, inbox.notifications.delivered, strict=True)
    assert isinstance(request.error, tw.errors.NotConnectedError)
    assert fates == [(9, False)]
    world.network.heal()
    assert names(play(world, player, 10))[-1] == "Connected"
    answered = player.request(ask)
    play(world, player, 0.5)
    assert answered.result() == 1


def test_budgets_and_implementations_stay() -> None:
    @tw.call(tw.to_client)
    def ready() -> bool: ...

    world = Simulation(tw.Protocol(1, [Chat], calls=[ready]), seed=1)
    server = world.server()
    player = dialling(world, server.address)
    player.implement(ready, lambda: True)
    play(world, player, 1)
    server = world.restart(server)
    assert names(play(world, player, 3)) == ["Reconnecting", "Connected"]
    request = server.request(server.clients[0], ready)
    play(world, player, 0.5)
    assert request.result() is True
