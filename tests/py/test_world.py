"""The virtual internet: scripts, restarts, players who move, NAT, partitions, the same bytes each time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tickwire as tw
from conftest import Chat, Move, make_protocol
from tickwire.testing import Conditions, Simulation

BAD = Conditions(latency=0.05, jitter=0.02, loss=0.05, duplicate=0.02, reorder=0.02)

# Of play(1). It changes with whatever changes the bytes of packets or their times: then look at why, and pin
# the new one.
TRANSCRIPT = "0cc837defa03cdaac17260725051fcb11a499c45f781d2da05875f9f42493376"


def play(seed: int) -> Simulation:
    """Ten seconds of eight players; one moves, one hangs, one is kicked, and the server restarts."""
    world = Simulation(make_protocol(), seed=seed, conditions=BAD)
    server = world.server()
    players = [world.client() for _ in range(8)]
    world.at(2, lambda: world.move(players[0], "10.9.9.9:5000"))
    world.at(3, lambda: world.stall(players[1], 2))
    world.at(4, lambda: server.disconnect(server.clients[2]))
    world.at(6, lambda: world.restart(server))
    world.at(7, lambda: [world.reconnect(player) for player in players[1:]])
    for tick in world.ticks(10):
        for player in world.clients:
            if player.connected:
                player.send(Move(tick, 1, 0.5), channel=1)
                if tick % 30 == 0:
                    player.send(Chat(1, f"tick {tick}"))
        for _, message in world.inbox(world.servers[0]).messages:
            world.servers[0].broadcast(message, channel=1 if isinstance(message, Move) else 0)
    return world


def transcript(seed: int) -> str:
    world = play(seed)  # Kept meanwhile: endpoints say goodbye when they go.
    return world.network.transcript


def test_the_same_seed_gives_the_same_bytes_in_every_process() -> None:
    assert transcript(1) == TRANSCRIPT
    assert transcript(2) != TRANSCRIPT
    code = "from test_world import transcript; print(transcript(1))"
    other = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert other.stdout.strip() == TRANSCRIPT


def test_all_who_came_back_play_on_the_restarted_server() -> None:
    world = play(3)
    world.run(1)
    assert sorted(player.id for player in world.servers[0].clients) == [2, 3, 4, 5, 6, 7, 8]


def test_a_player_who_moves_times_out_and_comes_back_with_a_new_token() -> None:
    with Simulation(make_protocol(), conditions=BAD) as world:
        server = world.server()
        client = world.client()
        world.run(1)
        assert client.connected
        place = world.move(client, "10.9.9.9:5000")
        assert world.where(client) == place == tw.Address("10.9.9.9:5000")
        received = world.run(11)
        assert client.disconnect_reason is tw.DisconnectReason.TIMED_OUT
        assert [event.reason for event in received[server].events] == [tw.DisconnectReason.TIMED_OUT]
        client = world.reconnect(client)
        world.run(1)
        assert client.connected
        assert [player.address for player in server.clients] == [place]


@pytest.mark.parametrize("kind", ["full-cone", "restricted", "port-restricted", "symmetric"])
def test_players_behind_a_nat_play_until_it_restarts(kind: str) -> None:
    with Simulation(make_protocol(), conditions=BAD) as world:
        server = world.server()
        world.network.add_nat("203.0.113.1", ["192.168.0.2", "192.168.0.3"], kind=kind, lifetime=30)  # type: ignore[arg-type]
        players = [world.client(at=f"192.168.0.{n}:5000") for n in (2, 3)]
        world.run(40)
        assert all(player.connected for player in players), "keep-alives keep the mappings"
        assert {player.address.host for player in server.clients} == {"203.0.113.1"}
        world.network.restart_nat("203.0.113.1")
        world.run(11)
        assert [player.disconnect_reason for player in players] == [tw.DisconnectReason.TIMED_OUT] * 2
        again = [world.reconnect(player) for player in players]
        world.run(1)
        assert all(player.connected for player in again)
        assert world.network.counters["nat_unmapped"] > 0


def test_a_short_partition_is_survived_and_a_long_one_is_not() -> None:
    with Simulation(make_protocol()) as world:
        server = world.server()
        near, far = world.client(), world.client()
        world.run(1)
        world.network.partition([world.where(server), world.where(near)], [world.where(far)])
        world.run(8)
        world.network.heal()
        world.run(1)
        assert near.connected
        assert far.connected
        world.network.partition([world.where(server)], [world.where(far)])
        world.run(11)
        assert near.connected
        assert far.disconnect_reason is tw.DisconnectReason.TIMED_OUT
        assert len(server.clients) == 1


def test_a_crash_tells_nobody_and_a_restart_tells_all() -> None:
    for crash, reason in [(False, "SERVER_CLOSED"), (True, "TIMED_OUT")]:
        with Simulation(make_protocol()) as world:
            server = world.server(max_clients=5)
            client = world.client()
            world.run(1)
            new = world.restart(server, crash=crash)
            assert new.address == server.address
            assert new.max_clients == 5
            world.run(11)
            assert client.disconnect_reason is tw.DisconnectReason[reason]


def test_a_game_that_hangs_sends_nothing_and_gets_all_later() -> None:
    with Simulation(make_protocol()) as world:
        server, client = world.server(), world.client()
        world.run(1)
        world.stall(client, 5)
        for tick in world.ticks(4):
            if tick < 100:
                server.broadcast(Chat(1, f"line {tick}"))
        received = world.run(3)
        assert [message.text for message in received[client].messages] == [f"line {n}" for n in range(100)]


def test_a_script_runs_in_the_order_of_its_times() -> None:
    ran: list[tuple[str, float]] = []
    with Simulation(make_protocol(), rate=10) as world:
        for at, name in [(0.5, "c"), (0.2, "a"), (0.2, "b"), (0.01, "first"), (99, "never")]:
            world.at(at, lambda name=name: ran.append((name, round(world.now, 3))))
        world.run(1)
    assert ran == [("first", 0.1), ("a", 0.2), ("b", 0.2), ("c", 0.5)]


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="rate must be 0.01 to 10000 ticks a second, not 0"):
        Simulation(make_protocol(), rate=0)
    world = Simulation(make_protocol())
    network = world.network
    with pytest.raises(ValueError, match="there is no server to connect to"):
        world.client()
    server = world.server()
    with pytest.raises(ValueError, match="kind must be one of full-cone, restricted, .* not 'cone'"):
        network.add_nat("203.0.113.1", [], kind="cone")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'203.0.113' is not an IP address"):
        network.add_nat("203.0.113", [])
    with pytest.raises(ValueError, match="lifetime must be above 0 and at most 3600 seconds, not 0"):
        network.add_nat("203.0.113.1", [], lifetime=0)
    with pytest.raises(ValueError, match="10.0.0.1 is in use on this network"):
        network.add_nat("10.0.0.1", [])
    with pytest.raises(ValueError, match="there is no NAT at 203.0.113.1"):
        network.restart_nat("203.0.113.1")
    with pytest.raises(ValueError, match="there is no host at 10.0.0.2:5 on this network"):
        network.move_host("10.0.0.2:5", "10.0.0.3:5")
    with pytest.raises(ValueError, match="there is no host at 10.0.0.2:5 on this network"):
        network.unplug("10.0.0.2:5")
    with pytest.raises(OSError, match="10.0.0.1:40000"):
        network.move_host(server.address, server.address)
    with pytest.raises(ValueError, match="not an address"):
        network.partition(["nowhere"])
