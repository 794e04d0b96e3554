"""Functions by message class: their order and arguments."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import tickwire as tw
from tickwire.testing import Simulation


@tw.message
class Chat:
    text: Annotated[str, tw.text(20)]


@tw.message
class Move:
    x: tw.i8


@tw.message
class Other:
    pass


PROTOCOL: tw.Protocol[Chat | Move | Other] = tw.Protocol(1, [Chat, Move, Other])


def test_each_class_has_its_function_on_both_sides() -> None:
    told: list[Any] = []
    on_server, on_client = tw.messages.Handlers(), tw.messages.Handlers()

    @on_server.on(tw.Connected)
    def came(client: tw.ClientHandle, event: tw.Connected) -> None:
        told.append(("came", client.id, type(event)))

    @on_server.on(Move)
    @on_server.on(Chat)
    def said(client: tw.ClientHandle, message: Chat | Move) -> None:
        told.append((client.id, message))

    @on_server.on(tw.Disconnected)
    def left(client: tw.ClientHandle, event: tw.Disconnected) -> None:
        told.append(("left", client.id, event.reason))

    @on_client.on(Chat)
    def heard(message: Chat) -> None:
        told.append(message)

    @on_client.on(tw.Connected)
    def up(event: tw.Connected) -> None:
        told.append(type(event))

    with Simulation(PROTOCOL) as world:
        server, client = world.server(), world.client()
        for _ in range(60):
            with server.tick() as inbox:
                assert on_server.dispatch(inbox) == []
            with client.tick() as box:
                on_client.dispatch(box)
            world.network.advance(1 / 60)
        assert sorted(told, key=repr) == [("came", 1, tw.Connected), tw.Connected]
        server.broadcast(Chat("hi"))
        server.flush()
        world.network.advance(1 / 60)
        told.clear()
        with client.tick() as box:
            assert on_client.dispatch(box) == []
        assert told == [Chat("hi")]
        told.clear()
        client.send(Chat("hello"))
        client.send(Move(3))
        client.send(Other())
        client.flush()
        client.close()
        world.network.advance(1 / 60)
        with server.tick() as inbox:
            assert (len(inbox.events), len(inbox.messages)) == (0, 3)
            unhandled = on_server.dispatch(inbox)
        with server.tick() as inbox:
            assert on_server.dispatch(inbox) == []
    assert told == [(1, Chat("hello")), (1, Move(3)), ("left", 1, tw.DisconnectReason.PEER_DISCONNECTED)]
    assert [message for _, message in unhandled] == [Other()]


def test_a_client_that_reconnects_says_so() -> None:
    world = Simulation(PROTOCOL, seed=1)
    server = world.server()
    reconnect = tw.connections.Reconnect()
    player = tw.Client.connect(server.address, PROTOCOL, network=world.network, reconnect=reconnect)
    told: list[object] = []
    handlers = tw.messages.Handlers()
    handlers.on(tw.connections.Reconnecting)(told.append)
    unhandled: list[object] = []
    world.at(1, lambda: world.restart(server))
    for _ in world.ticks(5):
        with player.tick() as inbox:
            unhandled += tw.messages.Handlers().dispatch(inbox)
            handlers.dispatch(inbox)
    assert [type(event) for event in told] == [tw.connections.Reconnecting]
    assert [type(event) for event in unhandled] == [tw.Connected, tw.connections.Reconnecting, tw.Connected]


def test_who_takes_his_old_place_has_left_before_he_comes() -> None:
    told: list[str] = []
    handlers = tw.messages.Handlers()
    handlers.on(tw.Connected)(lambda client, _: told.append(f"came {client.id}"))
    handlers.on(tw.Disconnected)(lambda client, _: told.append(f"left {client.id}"))
    with Simulation(PROTOCOL) as world:
        server = world.server()
        world.client(client_id=7)
        for tick in range(120):
            if tick == 60:
                world.client(client_id=7)
            for client in world.clients:
                with client.tick():
                    pass
            # A server that ticks seldom finds both in one tick.
            if tick % 40 == 39:
                with server.tick() as inbox:
                    handlers.dispatch(inbox)
            else:
                server.pump()
            world.network.advance(1 / 60)
        with server.tick() as inbox:
            handlers.dispatch(inbox)
    assert told == ["came 7", "left 7", "came 7"]


def test_what_is_no_class_or_taken_is_refused() -> None:
    handlers = tw.messages.Handlers()
    with pytest.raises(TypeError, match="on.. takes a message class"):
        handlers.on(Chat("x"))  # type: ignore[arg-type]

    @handlers.on(Chat)
    def said(message: Chat) -> None: ...

    with pytest.raises(ValueError, match="Chat already has a function, .*said"):
        handlers.on(Chat)
