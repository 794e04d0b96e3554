"""Rooms on a cluster of Ray: two nodes of it on this machine, one of which is lost."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tickwire as tw
from conftest import paced
from tickwire.samples.matchmaker import game

ray = pytest.importorskip("ray", reason="Ray isn't installed: pip install '.[ray]' in a checkout")
if not os.environ.get("TICKWIRE_TEST_RAY"):
    pytest.skip("Ray's tests take a minute: make test-ray", allow_module_level=True)

import psutil  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402
from tickwire._cli import main  # noqa: E402
from tickwire.fleet.ray import Rooms  # noqa: E402

BACK = 40.0
"""Seconds after which the rooms of a lost node must be back, on a machine however busy; it takes six."""


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head that runs no rooms, and two nodes that do."""
    # By default it takes Ray up to fifteen seconds to see that a node is lost.
    checks = {
        "health_check_initial_delay_ms": 0,
        "health_check_period_ms": 500,
        "health_check_failure_threshold": 3,
    }
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": checks})
    for _ in range(2):
        cluster.add_node(num_cpus=1, resources={"rooms": 3})
    ray.init(address=cluster.address, namespace="test", log_to_driver=False)
    cluster.wait_for_nodes()
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def token(rooms: Rooms, room: str, account: int) -> tw.ConnectToken:
    place = rooms.find_or_create(room)
    return tw.ConnectToken.generate(
        protocol=place.protocol_id, key=game.KEY, client_id=account, servers=[place.address], timeout=3
    )


def walked(client: tw.Client) -> int | None:
    walker = client.world.mine(game.Walker) if client.connected else None
    return None if walker is None else walker.x


def test_rooms_of_a_lost_node_are_back_with_their_worlds(cluster: Any) -> None:
    rooms = Rooms(game.Attic, resources={"rooms": 1}, scheduling_strategy="SPREAD")
    names = ["attic", "cellar", "hall"]
    with ExitStack() as stack:
        asking = stack.enter_context(ThreadPoolExecutor())
        clients = []
        for number, name in enumerate(names):
            first = token(rooms, name, number)
            ask = partial(asking.submit, token, rooms, name, number)
            reconnect = tw.connections.Reconnect(token=ask, max_delay=1)
            client = tw.Client(game.PROTOCOL, first, reconnect=reconnect)
            clients.append(stack.enter_context(client))
        for _ in paced(30, 5):
            for client in clients:
                with client.tick():
                    client.send_input(game.Walk(1))
        before = [walked(client) for client in clients]

        # A node with one or two of the rooms is gone, and its processes, as on a machine without power.
        node = next(iter(cluster.worker_nodes))
        for raylet in node.all_processes["raylet"]:
            for child in psutil.Process(raylet.process.pid).children(recursive=True):
                child.kill()
        cluster.remove_node(node, allow_graceful=False)
        died = time.monotonic()
        lost: set[tw.Client[Any]] = set()
        for _ in paced(30, BACK):
            for client in clients:
                with client.tick() as inbox:
                    lost.update(client for what in inbox if isinstance(what, tw.connections.Reconnecting))
            if lost and all(walked(client) is not None for client in clients):
                break
        took = time.monotonic() - died
        assert 1 <= len(lost) <= 2
        assert took < BACK
        print(f"{len(lost)} rooms were back after {took:.1f} s")
        for client, x in zip(clients, before, strict=True):
            now = walked(client)
            assert x is not None
            assert now is not None
            assert now >= x - 2 * game.TICKS_PER_SECOND


@pytest.mark.usefixtures("cluster")
def test_a_room_that_is_moved_loses_nothing() -> None:
    rooms = Rooms(game.Attic, resources={"rooms": 1})
    first = token(rooms, "attic", 7)
    reconnect = tw.connections.Reconnect(token=lambda: token(rooms, "attic", 7))
    with tw.Client(game.PROTOCOL, first, reconnect=reconnect) as client:
        for _ in paced(30, 3):
            with client.tick():
                client.send_input(game.Walk(1))
        walker, x = client.world.mine(game.Walker), walked(client)
        assert x
        rooms.move("attic")
        for _ in paced(30, 15):
            with client.tick():
                pass
            if client.connected and client.world.mine(game.Walker) is not None:
                break
        assert client.world.mine(game.Walker) is walker
        assert walked(client) >= x


@pytest.mark.usefixtures("cluster")
def test_a_room_that_hangs_is_begun_again(tmp_path: Path) -> None:
    hung = tmp_path / "hung"

    class Stuck(game.Attic):
        def tick(self, inbox: Any) -> None:
            if not hung.exists():
                hung.touch()
                time.sleep(1000)
            super().tick(inbox)

    rooms = Rooms(Stuck, resources={"rooms": 1})
    first = place = rooms.find_or_create("attic")
    began = time.monotonic()
    for _ in paced(4, BACK):
        with suppress(OSError):  # its process ends
            place = rooms.find_or_create("attic")
        if place != first:
            break
    assert place != first
    print(f"it was back after {time.monotonic() - began:.1f} s")


def test_a_cluster_carries_rooms_and_bots(cluster: Any, capfd: pytest.CaptureFixture[str]) -> None:
    given = ["--rooms", "4", "--players", "2", "--seconds", "1", "--processes", "2"]
    assert main(["fleet", "load", "--ray", cluster.address, *given]) == 0
    rooms, players = capfd.readouterr().out.splitlines()[1].split()[:2]
    assert (rooms, players) == ("4", "8")
