"""Contents that clients pull by name or hash, in virtual time."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tickwire as tw
from conftest import Chat, make_protocol
from tickwire import _pulls as wire
from tickwire._pulls import (
    MAX_ASKED,
    MAX_REQUESTS,
    MAX_SERVED,
    MAX_WAITING,
    PullAnswer,
    PullCancel,
    PullRequest,
)
from tickwire.testing import Simulation

SLOW = {"transfers": tw.transfer.Transfers(congestion=tw.transfer.Congestion.fixed(1_000_000, 20_000))}
FOREST, HARBOUR = bytes(range(256)) * 400, b"harbour" * 20_000


def game(**settings: Any) -> tw.Protocol:
    return make_protocol(channels=[tw.reliable_ordered(), tw.chunks(pulls=True)], **settings)


class Game:
    """A server with a catalogue, and one player with pulls."""

    serves = True

    def __init__(
        self,
        allow: tw.transfer.PullHook | None = None,
        *,
        loss: float = 0.0,
        seed: int = 1,
        server: dict[str, Any] | None = None,
        make: Callable[[Simulation, tw.Server], Any] | None = None,
        **client: Any,
    ) -> None:
        conditions = tw.Conditions(latency=0.03, jitter=0.01, loss=loss)
        self.world = Simulation(game(), seed=seed, conditions=conditions)
        self.server = self.world.server(**(server or {}))
        self.catalogue = tw.transfer.Catalogue(self.server, allow=allow)
        self.catalogue.offer("maps/forest.bin", FOREST)
        self.catalogue.offer("maps/harbour.bin", HARBOUR)
        self.player = make(self.world, self.server) if make else self.world.client(**client)
        self.puller = tw.transfer.Puller(self.player)
        self.ended: list[tw.transfer.Pull] = []
        self.left: list[Any] = []  # what the game sees, on either side

    def run(self, seconds: float, each: Callable[[], object] = lambda: None) -> list[tw.transfer.Pull]:
        before = len(self.ended)
        ends: tuple[Any, ...] = (self.server, self.player)
        for _ in range(round(seconds * 60)):
            for end in ends:
                if end.closed:
                    continue
                with end.tick() as inbox:
                    if end is self.server:
                        if not self.serves:
                            continue
                        self.catalogue.serve(inbox)
                    else:
                        self.ended += self.puller.take(inbox)
                        each()
                    self.left += [*inbox.messages, *inbox.chunks, *inbox.chunk_failures]
            self.world.network.advance(1 / 60)
        return self.ended[before:]


class Rude(Game):
    """A client that sends made-up requests."""

    def run(self, seconds: float, each: Callable[[], object] = lambda: None) -> list[tw.transfer.Pull]:
        self.answers: list[PullAnswer] = getattr(self, "answers", [])
        for _ in range(round(seconds * 60)):
            with self.server.tick() as inbox:
                self.catalogue.serve(inbox)
                self.left += inbox.messages
            if not self.player.closed:
                with self.player.tick() as inbox:
                    self.answers += inbox._pulls
                    each()
            self.world.network.advance(1 / 60)
        return []


# --- what it is for --------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_a_pull_by_name_or_by_hash_brings_the_content(loss: float) -> None:
    game = Game(loss=loss)
    forest = game.puller.pull("maps/forest.bin")  # before it is connected
    assert not forest.over
    assert (forest.size, forest.hash, forest.fraction) == (None, None, 0.0)
    fractions: list[float] = []
    ended = game.run(8, lambda: fractions.append(forest.fraction))
    assert ended == [forest]
    assert forest.chunk is not None
    assert bytes(forest.chunk) == FOREST
    assert forest.hash == hashlib.sha256(FOREST).digest()
    assert (forest.done, forest.error, forest.fraction, forest.size) == (True, None, 1.0, len(FOREST))
    assert fractions == sorted(fractions)
    assert any(0 < fraction < 1 for fraction in fractions)

    harbour = game.puller.pull(hashlib.sha256(HARBOUR).digest())
    assert game.run(8) == [harbour]
    assert harbour.chunk is not None
    assert bytes(harbour.chunk) == HARBOUR
    assert harbour.name is None
    assert game.left == []
    assert game.catalogue.counters["sent"] == 2
    assert game.catalogue.transfers(game.server.clients[0]) == []


@pytest.mark.parametrize("serves", [True, False])
def test_requests_dont_move_calls_behind_messages(serves: bool) -> None:
    told: list[Any] = []

    @tw.call(tw.to_server)
    def order(_caller: tw.ClientHandle, number: tw.u8) -> None:
        told.append(number)

    world = Simulation(game(calls=[order]), seed=1)
    server = world.server()
    catalogue = tw.transfer.Catalogue(server)
    first, second = world.client(), world.client()
    world.run(1)
    puller = tw.transfer.Puller(first)
    puller.pull("maps/forest.bin"), puller.pull("maps/harbour.bin")
    second.call(order, 1)
    second.send(Chat(2, "after the call"))
    first.flush(), second.flush()
    world.network.advance(0.1)
    with server.tick() as inbox:
        if serves:
            catalogue.serve(inbox)
        for _, what in inbox:
            told.append(what)
    assert told == [1, Chat(2, "after the call")]
    assert catalogue.counters["unknown"] == 2 * serves


def test_the_game_sees_its_own_messages_and_chunks_only() -> None:
    game = Game()
    game.puller.pull("maps/forest.bin")
    game.puller.pull("nothing")
    game.run(0.5)
    player = game.server.clients[0]
    game.server.send(player, Chat(1, "to you"))
    game.server.send_chunk(player, b"pushed", label="pushed")
    game.player.send(Chat(2, "to you"))
    game.run(3)
    messages = [item for item in game.left if isinstance(item, Chat | tuple)]
    chunks = [item for item in game.left if isinstance(item, tw.transfer.ReceivedChunk)]
    assert sorted(messages, key=repr) == [(player, Chat(2, "to you")), Chat(1, "to you")]
    assert [bytes(chunk) for chunk in chunks] == [b"pushed"]
    assert len(game.left) == 3


def test_each_error_has_a_name_and_a_sentence() -> None:
    def allow(_: tw.ClientHandle, name: str) -> bool | str:
        return "for members" if name == "maps/harbour.bin" else True

    game = Game(allow, transfers=tw.transfer.Transfers(memory=200_000))
    game.catalogue.offer("huge", bytes(300_000))
    found = {name: game.puller.pull(name) for name in ("maps/forest.bin", "maps/harbour.bin", "no", "huge")}
    by_hash = game.puller.pull(hashlib.sha256(HARBOUR).digest())
    game.run(3)
    assert {name: pull.error for name, pull in found.items()} == {
        "maps/forest.bin": None,
        "maps/harbour.bin": tw.transfer.PullError.REFUSED,
        "no": tw.transfer.PullError.UNKNOWN,
        "huge": tw.transfer.PullError.FAILED,
    }
    assert (by_hash.error, by_hash.detail) == (tw.transfer.PullError.REFUSED, "for members")
    assert found["maps/harbour.bin"].detail == "for members"
    assert found["no"].detail is None
    assert "takes no chunk of this size" in (found["huge"].detail or "")
    assert str(tw.transfer.PullError.UNKNOWN) == "the server offers nothing of this name or hash"
    counters = game.catalogue.counters
    assert {name: count for name, count in counters.items() if count} == {
        "sent": 1,
        "unknown": 1,
        "refused": 2,
        "failed": 1,
    }
    assert game.left == []


def test_pulls_end_with_the_connection() -> None:
    game = Game()
    game.run(0.5)
    forest = game.puller.pull("maps/forest.bin")
    game.server.close()
    assert game.run(1) == [forest]
    assert forest.error is tw.transfer.PullError.DISCONNECTED
    assert game.puller.pull("maps/harbour.bin").error is tw.transfer.PullError.DISCONNECTED


def test_pulls_are_cancelled_and_refused_after_the_client_was_closed() -> None:
    game = Game(server=SLOW)
    game.run(0.5)
    forest = game.puller.pull("maps/forest.bin")
    game.run(0.1)
    game.player.close()
    assert forest.cancel()
    assert forest.error is tw.transfer.PullError.CANCELLED
    assert game.puller.pull("maps/harbour.bin").error is tw.transfer.PullError.DISCONNECTED


def test_pulls_of_a_redialler_are_asked_for_again() -> None:
    def make(world: Simulation, server: tw.Server) -> tw.connections.Redialler[Any]:
        return tw.connections.Redialler.connect(server.address, world.protocol, network=world.network, seed=1)

    game = Game(make=make, server=SLOW)
    game.catalogue.offer("world", bytes(3_000_000))
    game.run(0.5)
    world = game.puller.pull("world")
    while world.fraction < 0.3:
        game.run(0.1)
    game.server.disconnect(game.server.clients[0])  # as an end that is meant: it stays so
    game.run(0.5)
    assert world.error is tw.transfer.PullError.DISCONNECTED

    game = Game(make=make, server=SLOW)
    game.catalogue.offer("world", bytes(3_000_000))
    game.run(0.5)
    world = game.puller.pull("world")
    while world.fraction < 0.3:
        game.run(0.1)
    game.server = game.world.restart(game.server)
    game.catalogue = tw.transfer.Catalogue(game.server)
    assert game.run(0.2) == []
    assert not world.over
    game.catalogue.offer("world", bytes(3_000_000))
    assert game.run(30) == [world]
    assert world.done
    assert game.server.stats(game.server.clients[0]).chunks.bytes_sent < 2_500_000
    assert game.left == []


@pytest.mark.parametrize("seed", range(8))
def test_a_restarted_server_may_offer_another_content(seed: int) -> None:
    def make(world: Simulation, server: tw.Server) -> tw.connections.Redialler[Any]:
        return tw.connections.Redialler.connect(server.address, world.protocol, network=world.network, seed=1)

    game = Game(make=make, server=SLOW, loss=0.35, seed=seed)
    game.catalogue.offer("world", bytes(3_000_000))
    game.run(2)
    world = game.puller.pull("world")
    while world.hash is None:
        game.run(0.1)
    game.server = game.world.restart(game.server)
    game.catalogue = tw.transfer.Catalogue(game.server)
    game.catalogue.offer("world", b"new")
    game.run(20)
    assert world.chunk is not None, world.error
    assert bytes(world.chunk) == b"new"
    assert game.left == []


def test_what_the_player_has_is_not_sent_again(tmp_path: Path) -> None:
    game = Game(transfers=tw.transfer.Transfers(directory=tmp_path))
    game.puller.pull("maps/forest.bin")
    game.run(3)
    sent = game.server.stats(game.server.clients[0]).chunks.bytes_sent
    assert sent >= len(FOREST)
    again = game.puller.pull("maps/forest.bin")
    assert game.run(2) == [again]
    assert again.chunk is not None
    assert again.chunk.reused
    assert game.server.stats(game.server.clients[0]).chunks.bytes_sent == sent


def test_a_pull_is_paused_and_resumed_and_cancelled() -> None:
    game = Game(server=SLOW)
    game.catalogue.offer("world", bytes(3_000_000))
    world = game.puller.pull("world")
    assert world.pause()  # before it comes
    game.run(3)
    assert world.paused
    assert not world.over
    assert world.bytes_done == 0
    assert world.resume()
    while world.fraction < 0.3:
        game.run(0.1)
    assert world.pause()
    game.run(0.5)
    there = world.bytes_done
    game.run(1)
    assert world.bytes_done == there
    assert world.resume()
    game.run(0.2)
    assert world.cancel()
    assert not world.cancel()
    assert not world.pause()
    assert game.run(1) == [world]
    assert world.error is tw.transfer.PullError.CANCELLED
    assert game.left == []
    assert game.catalogue.counters["cancelled"] == 1
    again = game.puller.pull("world")
    assert again is not world
    game.run(10)
    assert again.done
    assert game.left == []


def test_many_pulls_wait_for_their_turn_and_all_come() -> None:
    game = Game(loss=0.1)
    for number in range(100):
        game.catalogue.offer(f"small/{number}", number.to_bytes(2, "big") * 50)
    pulls = [game.puller.pull(f"small/{number}") for number in range(100)]
    assert game.puller.pull("small/7") is pulls[7]
    most = 0

    def count() -> None:
        nonlocal most
        most = max([most, *(len(game.catalogue.transfers(each)) for each in game.server.clients)])

    game.run(30, count)
    assert all(pull.done for pull in pulls)
    assert 1 < most <= MAX_SERVED
    assert game.catalogue.counters["too_many"] == game.catalogue.counters["dropped"] == 0
    assert game.left == []


def test_pulls_and_cancels_at_every_moment_leave_nothing_behind() -> None:
    game = Game(loss=0.1)
    for number in range(20):
        game.catalogue.offer(f"{number}", bytes(20_000 + number))
    asked: list[tw.transfer.Pull] = []
    for frame in range(300):
        asked.append(game.puller.pull(f"{frame * 7 % 20}"))
        if frame % 2:
            asked[frame * 5 % len(asked)].cancel()
        game.run(1 / 60)
    game.run(20)
    assert all(pull.over for pull in asked)
    assert {pull.error for pull in asked} == {None, tw.transfer.PullError.CANCELLED}
    assert game.puller.open == []
    assert not game.puller._asked
    assert game.left == []
    last = game.puller.pull("3")
    game.run(5)
    assert last.done
    assert game.catalogue.counters["dropped"] == 0


@pytest.mark.parametrize("in_files", [False, True])
@pytest.mark.parametrize(("loss", "seed"), [(0.0, 1), (0.35, 1), (0.35, 2), (0.35, 3)])
def test_what_was_cancelled_at_any_tick_reaches_nobody(
    tmp_path: Path, in_files: bool, loss: float, seed: int
) -> None:
    game = Game(
        loss=loss, seed=seed, transfers=tw.transfer.Transfers(directory=tmp_path if in_files else None)
    )
    game.run(2)
    for ticks in range(31):
        for offers_new in (False, True):
            old, new = f"old {ticks} {offers_new}".encode(), f"new {ticks}".encode()
            game.catalogue.offer("map", old)
            there = game.puller.pull("map")
            while in_files and not there.over:  # and then it costs no slice
                game.run(1 / 60)
            cancelled = game.puller.pull("map")
            game.run(ticks / 60)
            was_over = cancelled.over
            assert cancelled.cancel() is not was_over
            expected = new if offers_new else old
            game.catalogue.offer("map", expected)
            again = game.puller.pull("map")
            for _ in range(600):
                if again.over:
                    break
                game.run(1 / 60)
            assert again.chunk is not None, (ticks, again.error)
            content = again.chunk.path.read_bytes() if again.chunk.path else bytes(again.chunk)
            assert content == expected, ticks
            assert (cancelled.error is tw.transfer.PullError.CANCELLED) is not was_over
    game.run(10)
    assert game.left == []
    assert game.catalogue.counters["dropped"] == 0
    assert not game.puller._asked


def test_what_is_remembered_of_cancelled_pulls_is_bounded() -> None:
    game = Game()
    game.run(0.5)
    most = 0
    for _ in range(MAX_WAITING * 2):
        cancelled = game.puller.pull("maps/forest.bin")
        game.run(1 / 60)
        cancelled.cancel()
        most = max(most, len(game.puller._labels))
    # A new request forgets the oldest beyond the bound. Between requests there may be fewer: a tick that
    # reports the end of a withdrawn chunk forgets it, too.
    assert most == MAX_WAITING
    forest = game.puller.pull("maps/forest.bin")
    game.run(2)
    assert forest.done
    assert game.left == []


@pytest.mark.parametrize("strict", [False, True])
def test_a_cancel_for_which_there_is_no_room_is_sent_later(strict: bool) -> None:
    game = Game(server=SLOW, debugging=tw.testing.Debugging(strict=strict))
    game.catalogue.offer("world", bytes(3_000_000))
    game.run(0.5)
    worlds = [game.puller.pull("world"), game.puller.pull("maps/forest.bin")]
    while worlds[0].fraction < 0.1:
        game.run(0.1)
    try:
        while game.player.send(PullCancel(60_000)):
            pass
    except tw.errors.ChannelFullError:
        pass
    assert all(pull.cancel() for pull in worlds)
    harbour = game.puller.pull("maps/harbour.bin")
    assert len(game.puller._to_cancel) == 2
    game.run(1.5)
    assert harbour.done, "and it didn't wait for three million bytes"
    assert game.catalogue.counters["cancelled"] == 2
    assert game.catalogue._active == {}
    assert not game.puller._to_cancel
    assert game.left == []


def test_a_name_is_given_another_content_or_withdrawn() -> None:
    game = Game()
    game.catalogue.offer("maps/forest.bin", b"new")
    forest = game.puller.pull("maps/forest.bin")
    gone = game.puller.pull(hashlib.sha256(FOREST).digest())
    game.run(1)
    assert forest.chunk is not None
    assert bytes(forest.chunk) == b"new"
    assert gone.error is tw.transfer.PullError.UNKNOWN
    assert game.catalogue.withdraw("maps/forest.bin")
    assert not game.catalogue.withdraw("maps/forest.bin")
    assert game.catalogue.names == ["maps/harbour.bin"]
    assert game.puller.pull("maps/forest.bin") is not forest
    assert [pull.error for pull in game.run(1)] == [tw.transfer.PullError.UNKNOWN]


def test_a_file_is_offered_and_told_when_it_changed(tmp_path: Path) -> None:
    game = Game()
    path = tmp_path / "world.bin"
    path.write_bytes(bytes(2_000_000))
    assert game.catalogue.offer("world", path).size == 2_000_000
    world = game.puller.pull("world")
    while world.fraction < 0.2:
        game.run(0.1)
    path.write_bytes(b"short")
    game.run(5)
    assert world.error is tw.transfer.PullError.FAILED
    assert world.detail == "the server can't read it any more", "where it lies there is for the log"
    assert game.left == []


def test_a_hooks_sentence_may_have_a_nul() -> None:
    game = Game(lambda _, __: "not\0now")
    pull = game.puller.pull("maps/forest.bin")
    game.run(1)
    assert (pull.error, pull.detail) == (tw.transfer.PullError.REFUSED, "not now")


# --- servers that don't answer ---------------------------------------------------------------------------


class Mute(Game):
    """A server without a catalogue, until it starts to serve."""

    serves = False


def test_pulls_of_a_server_without_a_catalogue_end() -> None:
    game = Mute()
    game.run(1)
    cancelled = [game.puller.pull(f"{number}") for number in range(MAX_ASKED)]
    for pull in cancelled:
        pull.cancel()
    pulls = [game.puller.pull(f"maps/{number}") for number in range(100)]
    game.run(9)
    assert not any(pull.over for pull in pulls)
    game.run(12)
    assert {pull.error for pull in pulls} == {tw.transfer.PullError.UNANSWERED}
    assert (
        str(tw.transfer.PullError.UNANSWERED)
        == "the server did not answer in time: perhaps it has no Catalogue"
    )
    assert len(game.ended) == len(pulls) + len(cancelled)
    assert game.puller.open == []
    assert not game.puller._asked

    game.serves = True
    forest = game.puller.pull("maps/forest.bin")
    game.run(2)
    assert forest.done
    assert game.left == []


def test_a_pull_that_is_answered_too_late_reaches_nobody() -> None:
    game = Mute()
    game.puller = tw.transfer.Puller(game.player, timeout=2)
    game.run(1)
    late = game.puller.pull("maps/forest.bin")
    game.run(1.9)
    assert not late.over
    game.run(0.2)
    assert late.error is tw.transfer.PullError.UNANSWERED
    game.serves = True
    game.server.send_chunk(game.server.clients[0], FOREST, label="0:maps/forest.bin")
    again = game.puller.pull("maps/forest.bin")
    game.run(2)
    assert again.done
    assert game.left == []


def test_one_unanswered_request_ends_that_pull_only() -> None:
    game = Game()
    game.puller = tw.transfer.Puller(game.player, timeout=3)
    game.run(0.5)
    dropped = game.puller.pull("maps/forest.bin")
    for _ in range(6):  # in which the server misses it
        with game.player.tick() as inbox:
            game.puller.take(inbox)
        game.world.network.advance(1 / 60)
        with game.server.tick():
            pass
    fine = game.puller.pull("maps/harbour.bin")
    game.catalogue.offer("world", bytes(4_000_000))
    slow = game.puller.pull("world")
    slow.pause()
    game.run(2)
    assert fine.done
    assert not dropped.over
    assert game.run(20) == [dropped]
    assert dropped.error is tw.transfer.PullError.UNANSWERED
    assert not slow.over, "it comes, and may take its time"


def test_pulls_wait_for_ever_where_that_is_asked_for() -> None:
    game = Mute()
    game.puller = tw.transfer.Puller(game.player, timeout=None)
    forest = game.puller.pull("maps/forest.bin")
    game.run(60)
    assert not forest.over


def test_a_failure_of_which_the_server_says_nothing_ends_the_pull() -> None:
    game = Mute(transfers=tw.transfer.Transfers(memory=1000))
    game.run(0.5)
    forest = game.puller.pull("maps/forest.bin")
    game.run(0.5)
    game.server.send_chunk(game.server.clients[0], FOREST, label="0:maps/forest.bin")
    game.run(9)
    assert not forest.over
    game.run(3)
    assert forest.error is tw.transfer.PullError.FAILED
    assert forest.detail
    assert game.left == []


@pytest.mark.parametrize(
    ("timeout", "error", "sentence"),
    [
        (0, ValueError, "timeout must be above 0 seconds and finite, or None, not 0"),
        (-1.0, ValueError, "timeout must be above 0 seconds and finite, or None, not -1.0"),
        (float("nan"), ValueError, "timeout must be above 0 seconds and finite, or None, not nan"),
        (float("inf"), ValueError, "timeout must be above 0 seconds and finite, or None, not inf"),
        ("3", TypeError, "timeout must be a number, not str"),
    ],
)
def test_wrong_timeouts_are_named(timeout: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        tw.transfer.Puller(Game().player, timeout=timeout)


# --- mistakes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "name must be 1 to 64 bytes of UTF-8, not 0"),
        ("ä" * 33, "name must be 1 to 64 bytes of UTF-8, not 66"),
        ("a\nb", r"name must be printable characters, not 'a\nb'"),
        ("\ud800", r"name must be valid Unicode, not '\ud800'"),
        ("a" * 64, "name must not look like a hash, as " + repr("a" * 64) + " does: give bytes for one"),
    ],
)
def test_wrong_names_are_refused_where_they_are_given(name: str, sentence: str) -> None:
    game = Game()
    for call in (lambda: game.catalogue.offer(name, b""), lambda: game.puller.pull(name)):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            call()


def test_other_mistakes_raise() -> None:
    game = Game()
    plain = Simulation(make_protocol())
    for make in (lambda: tw.transfer.Catalogue(plain.server()), lambda: tw.transfer.Puller(plain.client())):
        with pytest.raises(ValueError, match=r"the protocol has no pulls: .*chunks\(pulls=True\)"):
            make()
    with pytest.raises(TypeError, match="name must be a str, not int"):
        game.catalogue.offer(3, b"")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a hash must be 32 bytes, not 3"):
        game.puller.pull(b"abc")
    with pytest.raises(TypeError, match="allow must be callable, or None, not int"):
        tw.transfer.Catalogue(game.server, allow=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_names must be 1 to 1000000, not 0"):
        tw.transfer.Catalogue(game.server, max_names=0)
    with pytest.raises(FileNotFoundError):
        game.catalogue.offer("maps/forest.bin", "no/such/file")
    assert "maps/forest.bin" in game.catalogue.names, "what was there stays"
    full = tw.transfer.Catalogue(game.server, max_names=2)
    full.offer("a", b"")
    full.offer("b", b"")
    full.offer("a", b"again")
    with pytest.raises(ValueError, match=r"the catalogue has max_names \(2\) names: withdraw some first"):
        full.offer("c", b"")


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda _: tw.transfer.Catalogue("x"), TypeError, "server must be a Server, not str"),
        (lambda game: tw.transfer.Catalogue(game.player), TypeError, "server must be a Server, not Client"),
        (
            lambda _: tw.transfer.Puller(None),
            TypeError,
            "client must be a Client or a Redialler, not NoneType",
        ),
        (
            lambda game: tw.transfer.Puller(game.server),
            TypeError,
            "client must be a Client or a Redialler, not Server",
        ),
        (lambda game: game.catalogue.serve(None), TypeError, "inbox must be an Inbox, not NoneType"),
        (lambda game: game.puller.take(None), TypeError, "inbox must be an Inbox, not NoneType"),
        (lambda game: game.puller.take([]), TypeError, "inbox must be an Inbox, not list"),
        (
            lambda game: tw.transfer.Catalogue(game.server, max_names="3"),
            TypeError,
            "max_names must be an int, 1 to 1000000, not str",
        ),
        (
            lambda game: tw.transfer.Catalogue(game.server, max_names=1.5),
            TypeError,
            "max_names must be an int, 1 to 1000000, not float",
        ),
        (
            lambda game: tw.transfer.Catalogue(game.server, max_names=True),
            TypeError,
            "max_names must be an int, 1 to 1000000, not bool",
        ),
        (
            lambda game: tw.transfer.Catalogue(game.server, max_names=-1),
            ValueError,
            "max_names must be 1 to 1000000, not -1",
        ),
        (
            lambda game: game.puller.pull(bytearray(32)),
            TypeError,
            "what must be a name (str) or a hash (32 bytes), not bytearray",
        ),
        (
            lambda game: game.puller.pull(None),
            TypeError,
            "what must be a name (str) or a hash (32 bytes), not NoneType",
        ),
        (lambda game: game.catalogue.withdraw(3), TypeError, "name must be a str, not int"),
        (
            lambda game: game.catalogue.transfers(None),
            TypeError,
            "client must be a ClientHandle, not NoneType",
        ),
    ],
)
def test_wrong_arguments_are_named(
    call: Callable[[Game], Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        call(Game())


def test_what_the_hook_raises_is_told_after_all_others_were_served() -> None:
    def allow(_: tw.ClientHandle, name: str) -> bool:
        return names[name]

    names = {"maps/harbour.bin": True}
    game = Game(allow)
    game.run(0.5)
    broken, fine = game.puller.pull("maps/forest.bin"), game.puller.pull("maps/harbour.bin")
    with pytest.raises(KeyError, match="forest"):
        game.run(1)
    game.run(3)
    assert broken.error is tw.transfer.PullError.REFUSED
    assert fine.done


def test_a_protocol_made_of_another_ones_parts_is_the_same() -> None:
    first = game()
    same = tw.Protocol(id=first.id, messages=first.messages, channels=first.channels)
    assert same.hash == first.hash != make_protocol(channels=[tw.reliable_ordered(), tw.chunks()]).hash
    assert first.messages[-3:] == wire.MESSAGES
    assert [channel.pulls for channel in first.channels] == [False, True, False]
    assert [channel.name for channel in first.channels] == ["", "", "tickwire.pulls"]


def test_more_pulls_than_may_wait_are_over_at_once() -> None:
    game = Game()
    pulls = [game.puller.pull(f"{number}") for number in range(MAX_WAITING + 3)]
    assert [pull.error for pull in pulls[-4:]] == [None, *[tw.transfer.PullError.TOO_MANY] * 3]
    assert game.run(0) == []
    game.run(60)
    assert {pull.error for pull in pulls[:MAX_WAITING]} == {tw.transfer.PullError.UNKNOWN}
    assert game.ended[:3] == pulls[-3:]
    assert len(game.ended) == len(pulls)


# --- hostile clients -------------------------------------------------------------------------------------


def test_ten_thousand_requests_are_bounded_and_counted() -> None:
    looks: list[str] = []

    def allow(_: tw.ClientHandle, name: str) -> bool:
        looks.append(name)
        return True

    game = Rude(allow)
    game.run(0.5)
    sent = 0
    most_looks = 0

    def flood() -> None:
        nonlocal sent, most_looks
        while sent < 10_000 and game.player.send(PullRequest(sent, "maps/forest.bin", b"")):
            sent += 1
        most_looks = max(most_looks, len(looks))
        assert all(len(active) <= MAX_SERVED for active in game.catalogue._active.values())

    game.run(20, flood)
    assert sent == 10_000
    counters = game.catalogue.counters
    assert counters["sent"] + counters["too_many"] + counters["dropped"] == 10_000
    assert counters["sent"] == len(looks)
    assert counters["dropped"] > 1_000
    assert game.left == []


def test_a_tick_looks_at_so_many_requests_of_a_client_and_no_more() -> None:
    game = Rude()
    other = game.world.client()
    game.run(0.5)
    for number in range(200):
        game.player.send(PullRequest(number, "no", b""))
    game.run(2)
    counters = game.catalogue.counters
    assert counters["unknown"] + counters["dropped"] == 200
    assert counters["dropped"] >= 200 - 4 * MAX_REQUESTS
    assert len(game.answers) == counters["unknown"]
    other.close()


def test_asking_and_cancelling_is_bounded_and_counted() -> None:
    game = Rude()
    game.run(0.5)
    number = 0

    def flood() -> None:
        nonlocal number
        for _ in range(40):
            game.player.send(PullRequest(number, "maps/forest.bin", b""))
            game.player.send(PullCancel(number))
            number = (number + 1) % 65_536
        assert all(len(active) <= MAX_SERVED for active in game.catalogue._active.values())

    game.run(10, flood)
    counters = game.catalogue.counters
    assert counters["cancelled"] > 100
    game.run(5)
    assert game.catalogue._active == {}
    assert game.left == []


def test_nonsense_of_a_client_is_dropped_and_counted() -> None:
    game = Rude()
    game.run(0.5)
    nonsense = [
        PullAnswer(1, 0, bytes(32), "to the server"),
        PullRequest(1, "", b"short"),
        PullRequest(2, "../../etc/passwd", b""),
        PullRequest(3, "", b""),
        PullRequest(4, "", bytes(32)),
        PullRequest(5, "maps/forest.bin", b""),
        PullRequest(5, "maps/forest.bin", b""),
        PullCancel(77),
    ]
    for item in nonsense:
        game.player.send(item)
    game.run(3)
    assert {name: count for name, count in game.catalogue.counters.items() if count} == {
        "sent": 1,
        "unknown": 3,
        "dropped": 3,
    }
    assert game.left == []


def test_a_client_that_leaves_leaves_nothing() -> None:
    game = Rude(server={"debugging": tw.testing.Debugging(strict=True)})
    game.catalogue.offer("world", bytes(5_000_000))
    game.run(0.5)
    for number in range(12):
        game.player.send(PullRequest(number, "world", b""))
    game.run(0.3)
    assert len(game.catalogue._active) == 1
    game.player.close()
    game.run(0.5)
    assert game.catalogue._active == {}


def test_a_client_that_never_reads_its_answers_costs_a_queue() -> None:
    game = Rude(server={"tuning": tw.Tuning(stalled_timeout=2.0)})
    game.run(0.5)
    ends: list[tw.Disconnected] = []
    for _ in range(1200):
        with game.server.tick() as inbox:
            game.catalogue.serve(inbox)
            ends += [event for event in inbox.events if isinstance(event, tw.Disconnected)]
        for _ in range(60):
            game.player.send(PullRequest(0, "no", b""))
        game.player.pump()
        game.world.network.advance(1 / 60)
    assert [event.reason for event in ends] == [tw.DisconnectReason.STALLED]
    assert game.catalogue.counters["unanswered"] > 0


def test_a_server_that_sends_another_content_fails_the_pull() -> None:
    game = Game()
    game.run(0.5)
    pull = game.puller.pull(bytes(32))
    game.server.send_chunk(game.server.clients[0], b"other", label="0:" + "00" * 31)
    with game.server.tick():
        pass
    for _ in range(30):
        game.world.network.advance(1 / 60)
        with game.player.tick() as inbox:
            game.puller.take(inbox)
            assert inbox.chunks == []
        with game.server.tick():
            pass
    assert (pull.error, pull.detail) == (tw.transfer.PullError.FAILED, "the server sent another content")


def test_a_server_that_answers_nonsense_harms_nothing() -> None:
    game = Game()
    game.run(0.5)
    player = game.server.clients[0]
    pulls = [game.puller.pull("maps/forest.bin"), game.puller.pull("maps/harbour.bin")]
    for number in range(MAX_ASKED):
        game.server.send(player, PullAnswer(number, 200, b"", ""))
        game.server.send(player, PullAnswer(number, 0, b"short", ""))
        game.server.send(player, PullAnswer(number + 500, 1, b"", ""))
    game.server.send(player, PullRequest(0, "of a server", b""))
    game.server.send(player, PullCancel(0))
    game.run(3)
    assert all(pull.done for pull in pulls)
    assert game.left == []
