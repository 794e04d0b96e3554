"""Games in the same network, asked for on this machine's own interfaces."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
import tickwire as tw
from tickwire import _lan as lan


@tw.message
class Chat:
    text: Annotated[str, tw.text(100)]


PROTOCOL = tw.Protocol(0x1A4, [Chat], peers=True)
OTHER_VERSION = tw.Protocol(0x1A4, [Chat], [tw.unreliable()], peers=True)
OTHER_GAME = tw.Protocol(0x1A5, [Chat], peers=True)


@pytest.fixture
def port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def host() -> Iterator[tw.peers.Peer[Chat]]:
    peer = tw.peers.Peer.host(PROTOCOL, name="ann", tuning=tw.Tuning(bind="127.0.0.1:0"))
    with peer.tick():
        pass
    yield peer
    peer.close()


def ask(port: int, data: bytes, seconds: float = 0.3) -> bytes | None:
    """What one datagram to this machine is answered with."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.settimeout(seconds)
        asker.sendto(data, ("127.0.0.1", port))
        try:
            return asker.recv(2048)
        except TimeoutError:
            return None


def query(protocol: tw.Protocol[Any] = PROTOCOL) -> bytes:
    return lan._QUERY_HEAD.pack(lan._QUERY, b"12345678", protocol.id).ljust(lan.QUERY_BYTES, b"\0")


def test_a_game_is_found_until_it_is_not_announced_any_more(host: tw.peers.Peer[Chat], port: int) -> None:
    assert tw.peers.find_lan(PROTOCOL, seconds=0.1, port=port) == []
    with tw.peers.LanAnnouncement(host, "Ann's game", max_players=4, port=port) as announcement:
        games = tw.peers.find_lan(PROTOCOL, seconds=0.2, port=port)
        assert games == [tw.peers.LanGame(host.address, "Ann's game", 1, 4, True)]
        assert announcement.title == "Ann's game"
        assert announcement.answers >= 1
        assert [game.same_version for game in tw.peers.find_lan(OTHER_VERSION, seconds=0.2, port=port)] == [
            False
        ]
        assert tw.peers.find_lan(OTHER_GAME, seconds=0.2, port=port) == []
    assert tw.peers.find_lan(PROTOCOL, seconds=0.1, port=port) == []
    announcement.close()


def test_closing_after_the_host_is_no_error(port: int) -> None:
    peer = tw.peers.Peer.host(PROTOCOL, tuning=tw.Tuning(bind="127.0.0.1:0"))
    announcement = tw.peers.LanAnnouncement(peer, "Ann's game", port=port)
    peer.close()
    ask(port, b"wakes its thread", 0.01)
    announcement._thread.join(5)
    assert not announcement._thread.is_alive()
    announcement.close()
    assert announcement._waker.fileno() < 0
    announcement.close()


def test_several_hosts_of_one_machine_are_found_and_one_at_all_its_addresses_once(port: int) -> None:
    binds = ["127.0.0.1:0", "0.0.0.0:0"] + (["[::]:0"] if socket.has_ipv6 else [])
    peers = [tw.peers.Peer.host(PROTOCOL, tuning=tw.Tuning(bind=bind), key=bytes(32)) for bind in binds]
    announced = [tw.peers.LanAnnouncement(peer, f"game {i}", port=port) for i, peer in enumerate(peers)]
    with tw.peers.LanSearch(PROTOCOL, port=port) as search:
        until = time.monotonic() + 5
        while len(search.poll()) < len(peers) and time.monotonic() < until:
            time.sleep(0.01)
        games = search.poll()
    assert [game.title for game in games] == [f"game {i}" for i in range(len(peers))]
    assert [game.address.port for game in games] == [peer.address.port for peer in peers]
    for announcement, peer in zip(announced, peers, strict=True):
        announcement.close()
        peer.close()


def test_a_dedicated_server_is_found_too(port: int) -> None:
    protocol = tw.Protocol(0x1A4, [Chat])
    with tw.Server("127.0.0.1:0", protocol) as server, tw.peers.LanAnnouncement(server, "arena", port=port):
        (game,) = tw.peers.find_lan(protocol, seconds=0.2, port=port)
        assert game == tw.peers.LanGame(server.address, "arena", 0, 0, True)


def test_whoever_found_it_joins_it(host: tw.peers.Peer[Chat], port: int) -> None:
    with tw.peers.LanAnnouncement(host, "Ann's game", port=port):
        (game,) = tw.peers.find_lan(PROTOCOL, seconds=0.2, port=port)
    bob = tw.peers.Peer.join(game.address, PROTOCOL, name="bob", tuning=tw.Tuning(bind="127.0.0.1:0"))
    until = time.monotonic() + 5
    while len(bob.players) < 2 and time.monotonic() < until:
        for peer in (host, bob):
            with peer.tick():
                pass
    assert [player.name for player in bob.players] == ["ann", "bob"]
    bob.close()


def test_no_answer_is_longer_than_its_question_and_only_questions_have_one(
    host: tw.peers.Peer[Chat], port: int
) -> None:
    title = "é" * 24
    with tw.peers.LanAnnouncement(host, title, port=port) as announcement:
        answer = ask(port, query())
        assert answer is not None
        assert len(answer) == len(query()) == lan.QUERY_BYTES
        well = query()
        bad = [
            b"",
            well[:-1],
            well + b"\0",
            well[: lan._QUERY_HEAD.size],
            b"TWLANQ2\0" + well[8:],
            query(OTHER_GAME),
            answer,
            bytes(lan.QUERY_BYTES),
        ]
        assert [ask(port, data, 0.05) for data in bad] == [None] * len(bad)
        assert announcement.answers == 1
        assert announcement.ignored == len(bad)


def test_a_flood_of_questions_has_a_bounded_number_of_answers(host: tw.peers.Peer[Chat], port: int) -> None:
    with (
        tw.peers.LanAnnouncement(host, "Ann's game", port=port) as announcement,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flooder,
    ):
        begun = time.monotonic()
        for _ in range(2_000):
            flooder.sendto(query(), ("127.0.0.1", port))
        until = time.monotonic() + 5
        while announcement.answers + announcement.ignored < 200 and time.monotonic() < until:
            time.sleep(0.01)
        most = lan._ANSWERS_PER_SECOND * (2 + time.monotonic() - begun)
        assert 1 <= announcement.answers <= most


def test_a_search_takes_nothing_but_answers_to_its_own_question(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        tw.peers.LanSearch(PROTOCOL, port=port) as search,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as liar,
    ):
        to = ("127.0.0.1", search._sockets[0].getsockname()[1])
        title = b"a title"

        def answer(**changes: Any) -> bytes:
            fields = {
                "magic": lan._ANSWER,
                "nonce": search._nonce,
                "key": b"abcdefgh",
                "id": PROTOCOL.id,
                "mark": 1,
                "port": 7,
                "players": 1,
                "most": 2,
                "length": len(title),
            } | changes
            return lan._ANSWER_HEAD.pack(*fields.values()) + title

        lies = [
            answer(magic=lan._QUERY),
            answer(nonce=b"other..."),
            answer(id=OTHER_GAME.id),
            answer(port=0),
            answer(length=3),
            answer() + b"x" * 60,
            answer()[:-3],
            answer(length=len(title))[: -len(title)] + b"\xff" * len(title),
            answer()[: -len(title)] + b"a\ntitle",
            b"",
            b"\0" * 20,
        ]
        for lie in lies:
            liar.sendto(lie, to)
        assert search.poll() == []
        for number in range(lan.MAX_LAN_GAMES + 20):
            liar.sendto(answer(key=struct.pack("<Q", number)), to)
        # There is room for others beside whoever makes up games.
        assert len(search.poll()) == lan._MAX_GAMES_OF_ONE < lan.MAX_LAN_GAMES
        monkeypatch.setattr(lan, "_MAX_GAMES_OF_ONE", 1_000)
        for number in range(lan.MAX_LAN_GAMES + 20):
            liar.sendto(answer(key=struct.pack("<Q", number)), to)
        assert len(search.poll()) == lan.MAX_LAN_GAMES
        search.close()
        search.close()


@pytest.mark.parametrize("host", ["8.8.8.8", "2001:4860::1", "no address"])
def test_nobody_outside_is_answered(host: str) -> None:
    assert not lan._is_near(host)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "192.168.1.9", "10.1.2.3", "169.254.3.4", "fe80::1%eth0", "fd00::1"]
)
def test_whoever_is_near_is(host: str) -> None:
    assert lan._is_near(host)


@pytest.mark.parametrize("title", ["\ud800", "a\nb", "", "x" * 49, "a\u202eb"])
def test_a_title_that_no_list_can_show_is_named(host: tw.peers.Peer[Chat], port: int, title: str) -> None:
    with pytest.raises(ValueError, match="title must be 1 to 48 bytes in UTF-8 of printable"):
        tw.peers.LanAnnouncement(host, title, port=port)


def test_games_are_found_with_more_than_a_thousand_open_files(host: tw.peers.Peer[Chat], port: int) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1200:
        pytest.skip("the system allows fewer open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1050):
            stack.enter_context(open(os.devnull))
        with tw.peers.LanAnnouncement(host, "Ann's game", max_players=4, port=port):
            games = tw.peers.find_lan(PROTOCOL, seconds=0.2, port=port)
    assert [game.title for game in games] == ["Ann's game"]
