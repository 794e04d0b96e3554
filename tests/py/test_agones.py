"""A server's life under Agones, beside a sidecar as Agones publishes it; and beside one that isn't."""

from __future__ import annotations

import json
import logging
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import tickwire as tw
from conftest import paced
from sidecar import Sidecar, rightly
from tickwire import fleet
from tickwire.fleet import agones


@tw.message
class Shout:
    loud: bool


protocol = tw.Protocol(0xA605, [Shout])


@fleet.room(protocol, max_clients=4)
class Hall:
    """Its match is over at the first shout."""

    def __init__(self, server: tw.Server) -> None:
        self.server = server

    def tick(self, inbox: Any) -> bool:
        return any(isinstance(what, Shout) for _, what in inbox)


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port


@pytest.fixture
def sidecar(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sidecar]:
    with Sidecar(lists={"players": 1}) as sidecar:
        monkeypatch.setenv("AGONES_SDK_HTTP_PORT", str(sidecar.port))
        yield sidecar


def served(life: agones.Lifecycle, server: tw.Server, until: threading.Event) -> None:
    with tw.run(server, 50, health=life) as ticks:
        for _ in ticks:
            if until.is_set():
                return


def test_a_server_is_ready_after_its_first_tick_and_well_while_it_ticks(sidecar: Sidecar) -> None:
    done = threading.Event()
    with tw.Server("127.0.0.1:0", protocol) as server, agones.lifecycle(server) as life:
        thread = threading.Thread(target=served, args=(life, server, done))
        assert sidecar.wait(lambda: "/v1beta1/lists/players" in sidecar.calls)
        assert "/ready" not in sidecar.calls
        assert "/health" not in sidecar.calls
        thread.start()
        assert sidecar.wait(lambda: sidecar.calls.count("/health") >= 2)
        assert sidecar.calls.count("/ready") == 1
        done.set()
        thread.join()
    assert sidecar.state == "Shutdown"


def test_a_server_that_hangs_is_not_well(sidecar: Sidecar) -> None:
    with agones.lifecycle() as life:
        life.tick()
        assert sidecar.wait(lambda: "/health" in sidecar.calls)
        life._ticked = time.monotonic() - agones.SILENCE - 0.1
        before = sidecar.calls.count("/health")
        life._look()
        assert sidecar.calls.count("/health") == before
        life.tick()
        life._look()
        assert sidecar.calls.count("/health") > before


def test_players_are_listed_while_they_are_connected(sidecar: Sidecar) -> None:
    with tw.Server("127.0.0.1:0", protocol) as server, agones.lifecycle(server) as life:
        client = tw.Client.connect(server.address, protocol, client_id=7)
        for _ in paced(100, 10):
            life.tick()
            with server.tick(), client.tick():
                pass
            if sidecar.lists["players"]["values"]:
                break
        assert sidecar.lists["players"] == {"capacity": 64, "values": ["7"]}
        client.close()
        for _ in paced(100, 10):
            life.tick()
            with server.tick():
                pass
            if not sidecar.lists["players"]["values"]:
                break
        assert sidecar.lists["players"]["values"] == []


def test_an_allocation_is_heard_of(sidecar: Sidecar) -> None:
    with agones.lifecycle() as life:
        life.tick()
        assert sidecar.wait(lambda: sidecar.state == "Ready")
        sidecar.allocate({"room": "attic"})
        for _ in paced(100, 10):
            if life.gameserver.state == "Allocated":
                break
        assert life.gameserver.labels == {"room": "attic"}
        assert life.gameserver.ports == {"default": 7777}
        life.reserve(30)
        assert sidecar.wait(lambda: sidecar.state == "Reserved")


def test_a_sidecar_that_starts_later_hears_it_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    with Sidecar() as first:
        port = first.port
    monkeypatch.setenv("AGONES_SDK_HTTP_PORT", str(port))
    with agones.lifecycle() as life:
        life.tick()
        with Sidecar(port=port) as sidecar:
            assert sidecar.wait(lambda: sidecar.state == "Ready")


def test_a_server_without_agones_runs_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("AGONES_SDK_HTTP_PORT", raising=False)
    with caplog.at_level(logging.INFO, "tickwire"), agones.lifecycle() as life:
        life.tick()
        life.allocate()
        assert life.gameserver == agones.GameServer()
    assert "AGONES_SDK_HTTP_PORT isn't set" in caplog.text


@pytest.mark.parametrize(
    "answer",
    [
        (500, b""),
        (200, b"\xff\xfe nonsense"),
        (200, b"[" * 100_000),
        (200, json.dumps({"result": {"object_meta": [], "status": {"ports": [3, {"port": "x"}]}}}).encode()),
        (302, b"elsewhere"),
    ],
)
def test_nonsense_of_a_sidecar_harms_nothing(
    sidecar: Sidecar, answer: tuple[int, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    nonsense = threading.Event()

    def answered(_path: str) -> tuple[int, bytes]:
        nonsense.set()
        return answer

    sidecar.answer = answered
    with tw.Server("127.0.0.1:0", protocol) as server, agones.lifecycle(server) as life:
        life.tick()
        assert nonsense.wait(10)
        sidecar.answer = rightly
        life.tick()
        for _ in paced(100, 10):
            life.tick()
            if life.gameserver.state:
                break
        assert life.gameserver.state
    assert caplog.text.count("trying again") <= 1


def test_a_list_that_the_manifest_lacks_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Sidecar() as sidecar, tw.Server("127.0.0.1:0", protocol) as server:
        monkeypatch.setenv("AGONES_SDK_HTTP_PORT", str(sidecar.port))
        with agones.lifecycle(server) as life:
            for _ in paced(20, 30):
                life.tick()
                if sidecar.calls.count("/health") >= 2:
                    break
            assert sidecar.calls.count("/health") >= 2
    assert caplog.text.count("has no list 'players'") == 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"server": 3}, "server must be a Server or None, not int"),
        ({"players": ""}, "players must be the name of a list, 1 to 63 bytes, or None, not ''"),
        ({"players": 3}, "players must be a str, not int"),
    ],
)
def test_mistakes_are_named(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        agones.lifecycle(**given)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("port", ["no", "0", "65536", "-1"])
def test_a_port_that_is_none_is_refused(port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGONES_SDK_HTTP_PORT", port)
    with pytest.raises(ValueError, match="AGONES_SDK_HTTP_PORT must be a port, 1 to 65535, not "):
        agones.lifecycle()


def test_a_pod_plays_the_room_that_it_is_allocated_for(sidecar: Sidecar) -> None:
    sidecar.game_port = free_port()
    store = fleet.MemoryStore()
    allocator = agones.Allocator(Hall, f"http://127.0.0.1:{sidecar.port}", "attic")
    with pytest.raises(OSError, match="429"):
        allocator.find_or_create("hall")  # nothing is ready yet
    pod = threading.Thread(
        target=agones.serve, args=(Hall, ("127.0.0.1", sidecar.game_port)), kwargs={"store": store}
    )
    pod.start()
    assert sidecar.wait(lambda: sidecar.state == "Ready")
    place = allocator.find_or_create("hall")
    assert allocator.find_or_create("hall") == place
    with pytest.raises(OSError, match="429"):
        allocator.find_or_create("attic")  # the fleet has one server, which has a room
    with tw.Client.connect(place.address, protocol) as client:
        for _ in paced(50, 10):
            with client.tick():
                if client.connected:
                    client.send(Shout(True))
            if not pod.is_alive():
                break
    pod.join(10)
    assert sidecar.state == "Shutdown"
    claim = store.claim("hall", 1)
    assert claim is not None
    assert claim.world is None


@pytest.mark.parametrize("label", ["", "a b", "../etc", "x" * 64])
def test_a_forged_label_runs_no_room(sidecar: Sidecar, label: str) -> None:
    sidecar.allocate({"room": label})
    with pytest.raises(ValueError, match="room must be 1 to 63 letters"):
        agones.serve(Hall, "127.0.0.1:0", store=fleet.MemoryStore())
    assert sidecar.state == "Shutdown"


@pytest.mark.parametrize(
    "answer", [b"", b"[", b"{}", b'{"address": "x", "ports": [{"name": "default", "port": 7}]}']
)
def test_an_allocator_that_answers_nonsense_is_an_os_error(sidecar: Sidecar, answer: bytes) -> None:
    sidecar.answer = lambda _path: (200, answer)
    allocator = agones.Allocator(Hall, f"http://127.0.0.1:{sidecar.port}", "attic")
    with pytest.raises(OSError, match="the allocator"):
        allocator.find_or_create("hall")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_sidecar_that_hangs_does_not_hold_up_a_drain(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agones, "TIMEOUT", 0.2)
    sidecar.game_port = free_port()
    sidecar.allocate({"room": "hall"})
    ends = threading.Event()
    told: list[tw.Disconnected] = []

    def hang(_path: str) -> None:
        ends.wait(30)

    def play() -> None:
        with (
            tw.Client.connect(("127.0.0.1", sidecar.game_port), protocol) as client,
            tw.run(client, 50) as ticks,
        ):
            for _, inbox in ticks:
                if client.connected and sidecar.answer is rightly:
                    sidecar.answer = hang
                    signal.raise_signal(signal.SIGTERM)
                told.extend(what for what in inbox if isinstance(what, tw.Disconnected))

    player = threading.Thread(target=play)
    player.start()
    store = fleet.MemoryStore()
    agones.serve(Hall, ("127.0.0.1", sidecar.game_port), store=store)
    assert not ends.is_set()
    player.join()
    assert told[0].detail == "the room moves"
    assert store.claim("hall", 1) is not None, "the next server needn't wait for the lease"
    ends.set()


def test_a_pod_without_agones_plays_a_local_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGONES_SDK_HTTP_PORT", raising=False)
    store, port = fleet.MemoryStore(), free_port()
    pod = threading.Thread(target=agones.serve, args=(Hall, ("127.0.0.1", port)), kwargs={"store": store})
    pod.start()
    with tw.Client.connect(("127.0.0.1", port), protocol) as client:
        for _ in paced(50, 10):
            with client.tick():
                if client.connected:
                    client.send(Shout(True))
            if not pod.is_alive():
                break
    pod.join(10)
    assert not pod.is_alive()
