"""Rooms, and the values of latest channels that newcomers get."""

from __future__ import annotations

import gc
import weakref
from typing import Annotated, Any

import pytest
import tickwire as tw
from conftest import Chat, Move, make_protocol
from tickwire.testing import Conditions, Simulation

np = pytest.importorskip("numpy")


@tw.message
class Score:
    name: Annotated[str, tw.text(40)]
    points: tw.u16


CHAT, SCORES, PLAIN = 0, 1, 2


def game(**latest: Any) -> tw.Protocol:
    channels = [
        tw.reliable_ordered("chat"),
        tw.latest("scores", keys=100, retain=True, **latest),
        tw.latest("plain", keys=100),
    ]
    return make_protocol(messages=[Score, Chat, Move], channels=channels)


def world(seed: int = 1, **latest: Any) -> Simulation:
    return Simulation(game(**latest), seed=seed, conditions=Conditions(latency=0.02, jitter=0.01, loss=0.05))


def handle(server: tw.Server, client: tw.Client) -> tw.ClientHandle:
    return next(known for known in server.clients if known.slot == client.slot)


def texts(world: Simulation, client: tw.Client, seconds: float = 1) -> list[str]:
    return [message.text for message in world.run(seconds)[client].messages]


def scores(collected: Any) -> dict[int, tuple[str, int]]:
    return {key: (score.name, score.points) for key, score in collected.latest}


# --- rooms -----------------------------------------------------------------------------------------------


def test_a_room_sends_to_its_members_alone() -> None:
    with world() as w:
        server = w.server()
        players = [w.client() for _ in range(4)]
        w.run(1)
        room = server.room()
        assert isinstance(room, tw.Room)
        assert room.server is server
        handles = [handle(server, player) for player in players]
        assert [room.add(handles[n]) for n in (2, 0, 2)] == [True, True, False]
        assert len(room) == 2
        assert list(room) == [handles[0], handles[2]]
        assert handles[0] in room
        assert handles[1] not in room
        assert "anything" not in room
        assert room.broadcast(Chat(1, "all")) == []
        assert room.broadcast(Chat(1, "but one"), exclude=handles[2]) == []
        got = w.run(1)
        assert [[chat.text for chat in got[player].messages] for player in players] == [
            ["all", "but one"],
            [],
            ["all"],
            [],
        ]
        assert room.discard(handles[0])
        assert not room.discard(handles[0])
        assert list(room) == [handles[2]]
        room.clear()
        assert len(room) == 0
        assert room.broadcast(Chat(1, "nobody")) == []


def test_a_client_may_be_in_several_rooms() -> None:
    with world() as w:
        server, player = w.server(), w.client()
        w.run(1)
        red, all_of_them = tw.Room(server), tw.Room(server)
        for room in (red, all_of_them):
            room.add(server.clients[0])
            room.broadcast(Chat(1, "red" if room is red else "all"))
        assert texts(w, player) == ["red", "all"]


@pytest.mark.parametrize("how", ["close", "crash", "kick"])
def test_whoever_leaves_the_server_leaves_its_rooms(how: str) -> None:
    with world() as w:
        server, stays, goes = w.server(), w.client(), w.client()
        w.run(1)
        rooms = [server.room() for _ in range(3)]
        gone = handle(server, goes)
        for room in rooms:
            assert room.add(handle(server, stays))
            assert room.add(gone)
        if how == "close":
            goes.close()
        elif how == "crash":
            w.stall(goes, 100)
        else:
            server.disconnect(gone)
        seen = None
        for _ in w.ticks(15):
            for event in w.inbox(server).events:
                assert isinstance(event, tw.Disconnected)
                assert event.client == gone
                seen = [list(room) for room in rooms]
        assert seen == [[handle(server, stays)]] * 3
        assert [room.add(gone) for room in rooms] == [False] * 3


def test_the_next_in_the_slot_is_not_in_the_room() -> None:
    with world() as w:
        server, first = w.server(), w.client()
        w.run(1)
        room = server.room()
        room.add(server.clients[0])
        first.close()
        w.run(1)
        second = w.client()
        w.run(1)
        room.broadcast(Chat(1, "secret"))
        assert server.clients[0] not in room
        assert texts(w, second) == []


def test_rooms_of_columns() -> None:
    with world() as w:
        server, player, other = w.server(), w.client(), w.client(tuning=tw.Tuning(columns=[Move]))
        w.run(1)
        room = server.room()
        room.add(handle(server, other))
        rows = np.zeros(3, tw.columns.dtype(Move))
        rows["tick"] = [1, 2, 3]
        assert room.broadcast(tw.columns.Batch(Move, rows)) == []
        ticks = []
        for _ in w.ticks(1):
            ticks += w.inbox(other).columns(Move)["tick"].tolist()
            assert w.inbox(player).messages == []
        assert ticks == [1, 2, 3]


def test_a_full_channel_is_told_of() -> None:
    channels = [tw.reliable_ordered("chat", send_queue=16)]
    with Simulation(make_protocol(channels=channels), seed=1) as w:
        server, _ = w.server(), w.client()
        w.run(1)
        room = server.room()
        room.add(server.clients[0])
        full = [room.broadcast(Chat(1, "much")) for _ in range(17)]
        assert full == [[]] * 16 + [[server.clients[0]]]


def test_a_room_is_gone_when_it_is_forgotten() -> None:
    with world() as w:
        server, player = w.server(), w.client()
        w.run(1)
        room = server.room()
        room.add(server.clients[0])
        forgotten = weakref.ref(room)
        del room
        gc.collect()
        assert forgotten() is None
        player.close()
        w.run(1)
        assert server.clients == []


def test_mistakes_with_rooms() -> None:
    with world() as w:
        server, other = w.server(), w.server("10.0.0.2:40000")
        w.client(), w.client(other)
        w.run(1)
        room = server.room()
        with pytest.raises(ValueError, match="client must belong to this server"):
            room.add(other.clients[0])
        assert other.clients[0] not in room
        with pytest.raises(TypeError):
            tw.Room(w)  # type: ignore[arg-type]
        with pytest.raises(tw.errors.UnregisteredMessageError):
            room.broadcast("text")
        with pytest.raises(tw.errors.ChannelError):
            room.broadcast(Chat(1, ""), 9)
        client = server.clients[0]
        server.close()
        with pytest.raises(tw.errors.ClosedError):
            room.broadcast(Chat(1, ""))
        with pytest.raises(tw.errors.ClosedError):
            room.add(client)


# --- retained values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_newcomers_get_the_newest_of_each_key_after_their_connected(seed: int) -> None:
    with world(seed) as w:
        server, first = w.server(), w.client()
        w.run(1)
        for points in range(5):
            server.broadcast(Score("ann", points), SCORES, key=7)
        server.broadcast(Score("bob", 3), SCORES, key=8)
        server.broadcast(Score("not kept", 1), PLAIN, key=9)
        assert scores(w.run(1)[first]) == {7: ("ann", 4), 8: ("bob", 3), 9: ("not kept", 1)}
        second = w.client()
        heard: list[Any] = []
        for _ in w.ticks(1):
            inbox = w.inbox(second)
            heard += [*inbox.events, *inbox.latest]
        assert isinstance(heard[0], tw.Connected)
        assert dict(heard[1:]) == {7: Score("ann", 4), 8: Score("bob", 3)}
        assert len(heard) == 3


def test_it_goes_on_from_before_anybody_came() -> None:
    with world() as w:
        server = w.server()
        server.broadcast(Score("map", 3), SCORES, key=0)
        player = w.client()
        assert scores(w.run(1)[player]) == {0: ("map", 3)}


def test_what_was_for_some_is_not_told_to_others() -> None:
    with world() as w:
        server, first, second = w.server(), w.client(), w.client()
        w.run(1)
        one, two = handle(server, first), handle(server, second)
        server.send(one, Score("secret", 1), SCORES, key=1)
        server.broadcast(Score("secret", 2), SCORES, key=2, clients=[one, two])
        room = server.room()
        room.add(one)
        room.broadcast(Score("secret", 3), SCORES, key=3)
        server.broadcast(Score("all but one", 4), SCORES, key=4, exclude=one)
        w.run(1)
        late = w.client()
        assert scores(w.run(1)[late]) == {4: ("all but one", 4)}
        # Of the room, when it joins the room.
        room.add(handle(server, late))
        assert scores(w.run(1)[late]) == {3: ("secret", 3)}


def test_a_newcomer_never_gets_an_older_value_after_a_newer() -> None:
    with world() as w:
        server = w.server()
        got: dict[tw.Client, list[int]] = {}
        for tick in w.ticks(5):
            server.broadcast(Score("tick", tick), SCORES, key=1)
            if tick % 20 == 0:
                got[w.client()] = []
            for client, points in got.items():
                points += [score.points for _, score in w.inbox(client).latest]
        for points in got.values():
            assert points == sorted(set(points))
        assert sum(len(points) > 5 for points in got.values()) > 10


def test_forgetting() -> None:
    with world() as w:
        server = w.server()
        room = server.room()
        for key in range(5):
            server.broadcast(Score("all", key), SCORES, key=key)
            room.broadcast(Score("room", key), SCORES, key=10 + key)
        assert (server.forget(SCORES, 3), server.forget(SCORES, 3), room.forget(SCORES, 3)) == (1, 0, 0)
        assert room.forget(SCORES) == 5
        server.forget(PLAIN)
        player = w.client()
        assert sorted(scores(w.run(1)[player])) == [0, 1, 2, 4]
        assert not room.broadcast(Score("room", 1), SCORES, key=20)
        room.add(server.clients[0])
        assert sorted(scores(w.run(1)[player])) == [20]


def test_retained_columns() -> None:
    with world() as w:
        server = w.server()
        rows = np.zeros(4, tw.columns.dtype(Move))
        rows["tick"] = [10, 11, 12, 13]
        keys = np.array([3, 1, 2, 3], np.uint32)
        server.broadcast(tw.columns.Batch(Move, rows), SCORES, key=keys)
        room = server.room()
        room.broadcast(tw.columns.Batch(Move, rows[:1]), SCORES, key=50)
        player = w.client(tuning=tw.Tuning(columns=[Move]))
        seen: list[tuple[int, int]] = []
        for tick in w.ticks(2):
            seen += w.inbox(player).columns(Move)[["key", "tick"]].tolist()
            if tick == 60:
                assert sorted(seen) == [(1, 11), (2, 12), (3, 13)]
                room.add(server.clients[0])
        assert sorted(seen) == [(1, 11), (2, 12), (3, 13), (50, 10)]


def test_it_is_bounded_by_keys_and_bytes() -> None:
    with world(retain_bytes=100) as w:
        server = w.server()
        with pytest.raises(tw.errors.ChannelError, match="key"):
            server.broadcast(Score("", 0), SCORES, key=100)
        for again in range(10):
            server.broadcast(Score("x" * 20, again), SCORES, key=0)
        for key in range(1, 4):
            server.broadcast(Score("x" * 20, 9), SCORES, key=key)
        with pytest.raises(
            tw.errors.MessageTooLargeError, match="retain_bytes of channel 1 must be at least"
        ):
            server.broadcast(Score("x" * 20, 9), SCORES, key=4)
        assert server.forget(SCORES) == 4
        server.broadcast(Score("x" * 20, 9), SCORES, key=4)
        player = w.client()
        assert sorted(scores(w.run(1)[player])) == [4]


def test_the_other_side_need_not_know() -> None:
    keeps, keeps_not = tw.latest("a", retain=True, retain_bytes=9), tw.latest("a")
    assert (keeps.retain, keeps.retain_bytes, keeps_not.retain, keeps_not.retain_bytes) == (True, 9, False, 0)
    assert make_protocol(channels=[keeps]).hash == make_protocol(channels=[keeps_not]).hash
    for wrong in (0, -1, 2**30 + 1):
        with pytest.raises(ValueError, match=f"retain_bytes must be 1 to 1073741824, not {wrong}"):
            tw.latest("a", retain=True, retain_bytes=wrong)


def test_same_seed_same_bytes() -> None:
    def play() -> str:
        with world(9) as w:
            server = w.server()
            room = server.room()
            for number, tick in enumerate(w.ticks(3)):
                if tick % 30 == 0:
                    w.client()
                server.broadcast(Score("all", number), SCORES, key=number % 7)
                for client in server.clients:
                    room.add(client)
                room.broadcast(Score("room", number), SCORES, key=50 + number % 3)
            return repr(w.network.transcript)

    assert play() == play()
