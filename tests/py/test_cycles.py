"""Python objects that point at an endpoint that points at them are collected: nothing keeps a game alive."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw
from conftest import Move, make_protocol
from tickwire.testing import connected_pair


@pytest.fixture(autouse=True)
def only_the_collector() -> Iterator[None]:
    """Nothing is collected by chance: each test asks for it."""
    gc.disable()
    yield
    gc.enable()


class Game:
    """A game's objects: its endpoints and their messages, with hooks that are its methods."""

    def __init__(self) -> None:
        self.held: list[Any] = [self]

    def score(self, candidates: tw.columns.Candidates) -> np.ndarray[Any, Any]:
        return np.zeros(len(candidates.age), np.float32)

    def admit(self, _: list[Any]) -> list[Any]:
        return []

    def create(self, kind: type[Any]) -> Any:
        return kind.__new__(kind)


def hooked(game: Game) -> None:
    server = tw.Server(
        "127.0.0.1:0",
        make_protocol(),
        tuning=tw.Tuning(priority=game.score),
        access=tw.tokens.Access(admission=game.admit),
    )
    game.held += [server, server.protocol]


def threaded(game: Game) -> None:
    game.held.append(
        tw.Server(
            "127.0.0.1:0",
            make_protocol(),
            access=tw.tokens.Access(admission=game.admit),
            tuning=tw.Tuning(driver="thread"),
        )
    )


def played(game: Game) -> None:
    network, server, client = connected_pair(make_protocol())
    for _ in range(10):
        with server.tick() as inbox:
            game.held += [inbox, list(inbox.messages), inbox.events]
        with client.tick():
            client.send(Move(1, 2, 0.5), channel=1)
        network.advance(1 / 60)
    game.held += [network, server, client]


def kept_in_a_buffer(game: Game) -> None:
    buffer = tw.articles.SequenceBuffer(8)
    buffer.insert(0, game)
    game.held.append(buffer)


def made_by_a_factory(game: Game) -> None:
    game.held.append(tw.Server("127.0.0.1:0", make_protocol(), tuning=tw.Tuning(factory=game)))


def kept_with_players(game: Game) -> None:
    channels = [tw.reliable_ordered(), tw.chunks()]
    network, server, client = connected_pair(tw.Protocol(1, [Move], channels))
    handle = server.clients[0]
    room = server.room()
    room.add(handle)
    client.send_chunk(bytes(100))
    for _ in range(20):
        with server.tick() as inbox, client.tick():
            network.advance(1 / 60)
    transfer = server.send_chunk(handle, bytes(9))
    (left,) = server.clients
    assert left is handle
    handle.data = [game, handle, server, room, transfer, inbox, server.incoming_chunks(handle)]


def kept_with_one_who_left(game: Game) -> None:
    network, server, client = connected_pair(make_protocol())
    handle = server.clients[0]
    client.close()
    events: list[object] = []
    for _ in range(20):
        with server.tick() as inbox:
            events += inbox.events
        network.advance(1 / 60)
    assert events
    handle.data = [game, events]


def declared_with_a_call(game: Game) -> None:
    """As in a game's module: the classes refer to the module, which refers to the protocol."""

    @tw.ghost
    class Tank:
        health: Annotated[int, tw.ranged(0, 9)] = 9

    def fire(_caller: tw.ClientHandle, _tank: Tank) -> None:
        assert game

    fire.__annotations__["_tank"] = Tank
    call = tw.call(tw.to_server)(fire)
    Tank.module = (game, tw.Protocol(1, ghosts=[Tank], calls=[call]))  # type: ignore[attr-defined]
    game.held.append(Tank)


@pytest.mark.parametrize(
    "play",
    [
        declared_with_a_call,
        hooked,
        threaded,
        played,
        kept_in_a_buffer,
        made_by_a_factory,
        kept_with_players,
        kept_with_one_who_left,
    ],
)
def test_a_game_and_its_endpoints_are_collected_together(play: Callable[[Game], None]) -> None:
    game = Game()
    play(game)
    gone = weakref.ref(game)
    del game
    assert gone() is not None, "there is a cycle"
    gc.collect()
    assert gone() is None


def test_playing_leaves_no_objects_behind() -> None:
    """As many objects after a thousand ticks as after a hundred."""
    network, server, client = connected_pair(make_protocol())

    def ticks(count: int) -> int:
        for _ in range(count):
            with server.tick() as inbox:
                for player, message in inbox.messages:
                    server.send(player, message, channel=1)
            with client.tick() as inbox:
                list(inbox.messages)
                client.send(Move(1, 2, 0.5), channel=1)
            network.advance(1 / 60)
        gc.collect()
        return len(gc.get_objects())

    before = ticks(100)
    assert abs(ticks(1000) - before) < 20
