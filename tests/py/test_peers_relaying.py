"""Players who don't reach each other and play by way of a third, on a simulated network."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import tickwire as tw
from tickwire.lockstep import Turn


@tw.message
class Chat:
    text: Annotated[str, tw.text(100)]


@tw.message
class Move:
    x: Annotated[int, tw.ranged(-1000, 1000)] = 0


PROTOCOL = tw.Protocol(0x9A4, [Chat], [tw.reliable_ordered(), tw.chunks()], peers=True)
BAD = tw.Conditions(latency=0.04, jitter=0.01, loss=0.03)


class Table:
    """Players of whom some pairs don't reach each other: player 0 hosts, the others join one by one."""

    def __init__(
        self, count: int, *blocked: tuple[int, int], relaying: dict[int, bool] | None = None, seed: int = 1
    ) -> None:
        self.network = tw.testing.SimulatedNetwork(conditions=BAD, seed=seed)
        for a, b in blocked:
            lost = tw.Conditions(loss=1.0)
            for one, other in ((a, b), (b, a)):
                self.network.set_conditions(lost, sender=self.at(one), receiver=self.at(other))
        self.peers: list[tw.peers.Peer[Chat]] = []
        self.heard: list[list[tuple[str, object]]] = []
        self.events: list[list[tw.peers.PeerEvent]] = []
        for number in range(count):
            given: dict[str, Any] = {
                "name": f"p{number}",
                "tuning": tw.Tuning(bind=self.at(number)),
                "network": self.network,
                "rendezvous": tw.peers.Rendezvous(relaying=(relaying or {}).get(number, True)),
            }
            if number == 0:
                self.add(tw.peers.Peer.host(PROTOCOL, players=8, **given))
            else:
                self.add(tw.peers.Peer.join(self.at(0), PROTOCOL, **given))
                self.until(lambda: self.peers[-1].me is not None or self.peers[-1].ended is not None)

    @staticmethod
    def at(number: int) -> str:
        return f"10.0.0.{number + 1}:7777"

    def add(self, peer: tw.peers.Peer[Chat]) -> None:
        self.peers.append(peer)
        self.heard.append([])
        self.events.append([])

    def run(self, seconds: float, silent: int | None = None) -> None:
        for _ in range(round(seconds * 60)):
            self.network.advance(1 / 60)
            for number, peer in enumerate(self.peers):
                if not peer.closed and number != silent:
                    with peer.tick() as inbox:
                        self.events[number] += inbox.events
                        self.heard[number] += [(player.name, what) for player, what in inbox.messages]

    def until(self, what: Any, seconds: float = 15) -> float:
        begun = self.network.now
        while not what():
            assert self.network.now < begun + seconds
            self.run(1 / 60)
        return self.network.now - begun

    def path(self, one: int, other: int) -> tuple[str, str | None] | None:
        peer = self.peers[one]
        (player,) = [player for player in peer.players if player.name == f"p{other}"]
        path = peer.path(player)
        return path and (path.kind, path.through and path.through.name)


def test_two_who_do_not_reach_each_other_play_by_way_of_a_third() -> None:
    table = Table(3, (1, 2))
    assert [len(peer.players) for peer in table.peers] == [3, 3, 3]
    assert table.path(1, 2) == ("relayed", "p0")
    assert table.path(2, 1) == ("relayed", "p0")
    assert table.path(0, 1) == ("direct", None)
    assert table.path(1, 1) is None
    for number, peer in enumerate(table.peers):
        peer.broadcast(Chat(f"from {number}"))
    table.run(1)
    for number in range(3):
        heard = {(name, what.text) for name, what in table.heard[number] if isinstance(what, Chat)}
        assert heard == {(f"p{other}", f"from {other}") for other in range(3) if other != number}
    assert table.peers[0].counters["carrying.carried"] > 10
    assert table.peers[1].counters["carrying.carried"] == 0
    assert table.peers[0].counters["carrying.refused"] == 0


def test_it_takes_the_patience_for_the_own_address_and_no_more() -> None:
    table = Table(2)
    table.network.set_conditions(tw.Conditions(loss=1.0), sender=table.at(1), receiver=table.at(2))
    joined = tw.peers.Peer.join(
        table.at(0), PROTOCOL, name="p2", tuning=tw.Tuning(bind=table.at(2)), network=table.network
    )
    table.add(joined)
    assert 1.5 < table.until(lambda: joined.me is not None) < 3


def test_a_host_that_does_not_want_it_refuses_them() -> None:
    table = Table(3, (1, 2), relaying={0: False})
    assert table.peers[2].ended is tw.peers.LeaveReason.UNREACHABLE
    assert len(table.peers[0].players) == 2
    assert "carrying.carried" not in table.peers[0].counters


def test_nobody_is_reached_by_way_of_others_who_does_not_want_it() -> None:
    table = Table(3, (1, 2), relaying={1: False})
    assert table.peers[2].ended is tw.peers.LeaveReason.UNREACHABLE


def test_when_who_carries_is_gone_another_one_does() -> None:
    for silent in (False, True):
        table = Table(4, (1, 2))
        assert table.path(1, 2) == ("relayed", "p0")
        if silent:
            table.network.unplug(table.at(0))
            table.run(9, silent=0)
        else:
            table.peers[0].close()
            table.run(3)
        assert [len(peer.players) for peer in table.peers[1:]] == [3, 3, 3]
        assert table.path(1, 2) == ("relayed", "p3")
        assert table.path(2, 1) == ("relayed", "p3")
        table.peers[1].broadcast(Chat("still here"))
        table.run(1)
        assert ("p1", Chat("still here")) in table.heard[2]
        lost = [event for event in table.events[2] if isinstance(event, tw.peers.PlayerLeft)]
        assert [event.player.name for event in lost] == ["p0"]


def test_chunks_go_by_a_third_at_a_bounded_rate() -> None:
    table = Table(3, (1, 2))
    (player,) = [player for player in table.peers[1].players if player.name == "p2"]
    payload = bytes(range(256)) * 2_000
    table.peers[1].send_chunk(player, payload)
    got: list[bytes] = []
    begun, before = table.network.now, table.peers[0].counters["carrying.carried_bytes"]
    while not got and table.network.now < begun + 60:
        table.network.advance(1 / 60)
        for number, peer in enumerate(table.peers):
            with peer.tick() as inbox:
                if number == 2:
                    got += [bytes(chunk.data) for chunk in inbox.chunks]
    assert got == [payload]
    seconds = table.network.now - begun
    carried = table.peers[0].counters["carrying.carried_bytes"] - before
    assert carried <= 2 * (128 << 10) * (seconds + 1)


def test_a_game_in_lockstep_runs_over_it() -> None:
    table = Table(4, (1, 2), (1, 3))
    locksteps: dict[int, tw.lockstep.Lockstep] = {}
    worlds: list[list[int]] = [[0, 0, 0, 0] for _ in table.peers]
    crcs: list[dict[int, int]] = [{} for _ in table.peers]

    def run(seconds: float) -> None:
        for _ in range(round(seconds * 60)):
            table.network.advance(1 / 60)
            for number, peer in enumerate(table.peers):
                with peer.tick() as inbox:
                    for event in inbox.events:
                        if isinstance(event, tw.peers.Started):
                            locksteps[number] = tw.lockstep.Lockstep(peer, event, [Move])
                    if (lockstep := locksteps.get(number)) is None:
                        continue
                    if round(table.network.now * 60) % 20 == 0:
                        lockstep.command(Move(number + 1))
                    for turn in lockstep.turns():
                        play(number, turn)

    def play(number: int, turn: Turn) -> None:
        for player, command in turn.commands:
            assert isinstance(command, Move)
            worlds[number][player] += command.x + turn.random.below(5)
        crcs[number][turn.number] = hash(tuple(worlds[number]))

    table.peers[0].start(countdown=1.0, seed=4)
    run(20)
    turns = set.intersection(*(set(each) for each in crcs))
    assert len(turns) > 150
    assert all(len({each[turn] for each in crcs}) == 1 for turn in turns)
    assert all(worlds[0])


def test_two_symmetric_nats_need_no_relay_where_a_player_reaches_both() -> None:
    network = tw.testing.SimulatedNetwork(conditions=BAD, seed=4)
    server = tw.peers.RendezvousServer("198.51.100.1:3478", network=network)
    for number in (1, 2):
        network.add_nat(f"203.0.113.{number}", [f"10.0.{number}.2"], kind="symmetric")
    binds = ["198.51.100.9:5000", "10.0.1.2:5000", "10.0.2.2:5000"]
    given: dict[str, Any] = {"network": network, "rendezvous": tw.peers.Rendezvous("198.51.100.1:3478")}
    peers = [tw.peers.Peer.host(PROTOCOL, tuning=tw.Tuning(bind=binds[0]), **given)]

    def run(until: Any) -> None:
        begun = network.now
        while not until():
            assert network.now < begun + 20
            network.advance(1 / 60)
            server.pump()
            for peer in peers:
                with peer.tick():
                    pass

    run(lambda: peers[0].code is not None)
    for bind in binds[1:]:
        peers.append(tw.peers.Peer.join(str(peers[0].code), PROTOCOL, tuning=tw.Tuning(bind=bind), **given))
        run(lambda: peers[-1].me is not None)
    paths = [peers[2].path(player) for player in peers[2].players]
    assert [path and path.kind for path in paths] == ["direct", "relayed", None]
    assert paths[1]
    assert paths[1].through == peers[2].players[0]
    server.close()


@pytest.mark.parametrize("relaying", [1, None, "yes"])
def test_a_setting_is_true_or_false(relaying: Any) -> None:
    with pytest.raises(TypeError, match="relaying must be True or False"):
        tw.peers.Peer.host(
            PROTOCOL, rendezvous=tw.peers.Rendezvous(relaying=relaying), network=tw.testing.SimulatedNetwork()
        )


def test_whoever_asks_a_player_that_reaches_the_master_by_way_of_a_third_gets_in() -> None:
    table = Table(4, (1, 2))
    table.peers[0].close()
    table.run(3)
    assert table.peers[1].is_master
    assert table.path(2, 1) == ("relayed", "p3")
    joined = tw.peers.Peer.join(
        table.at(2), PROTOCOL, name="p4", tuning=tw.Tuning(bind=table.at(4)), network=table.network
    )
    table.add(joined)
    table.until(lambda: joined.me is not None or joined.ended is not None, 60)
    assert joined.ended is None
    assert len(joined.players) == 4
