"""A co-op game that survives its host: the same world, objects and owners, whatever goes wrong."""

from __future__ import annotations

from typing import Any

import pytest
import tickwire as tw
from wolves import PROTOCOL, RATE, Bot, Game, Hunter, Player, Score, Wolf

SERVER = "198.51.100.1:3478"
RELAY = "198.51.100.2:3480"
TIMEOUT = 3


class Seat:
    """A player, and the game while that player hosts."""

    def __init__(self, peer: tw.peers.Peer[Any], number: int) -> None:
        self.peer, self.number = peer, number
        self.game: Game | None = None
        self.games: list[Game] = []
        self.bot = Bot(Player(peer.client, f"p{number}"), number)
        self.events: list[Any] = []
        self.silent = self.leaves = False

    def leave(self) -> None:
        self.peer.close()
        self.silent = self.leaves = True

    @property
    def player(self) -> Player:
        return self.bot.player

    def tick(self) -> bool:
        with self.peer.tick() as inbox:
            self.events += inbox.events
        server = self.peer.server
        if server is not None:
            if self.game is None or self.game.server is not server:
                self.game = Game(server)
                self.games.append(self.game)
            self.game.tick()
        self.bot.tick()
        return server is not None

    def told(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


class Party:
    def __init__(self, players: int, seed: int = 1, preset: str = "wifi-bad", **host: Any) -> None:
        conditions, _ = tw.Conditions.preset(preset)
        self.network = tw.testing.SimulatedNetwork(conditions=conditions, seed=seed)
        self.services: list[Any] = []
        self.seats: list[Seat] = []
        self.most_hosts = 0
        self.more = host
        for _ in range(players):
            self.add()
            self.run(3)

    def add(self, **more: Any) -> Seat:
        number = len(self.seats)
        bind = f"10.0.{number}.2:7"
        given = {
            "name": f"p{number}",
            "network": self.network,
            "tuning": tw.Tuning(bind=bind, timeout=TIMEOUT),
        }
        given |= more
        if number == 0:
            peer = tw.peers.Peer.host(PROTOCOL, players=8, **given, **self.more)
        else:
            peer = tw.peers.Peer.join("10.0.0.2:7", PROTOCOL, **given)
        self.seats.append(Seat(peer, number))
        return self.seats[-1]

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * RATE)):
            self.network.advance(1 / RATE)
            for service in self.services:
                service.pump()
            live = [seat for seat in self.seats if not seat.silent and not seat.peer.closed]
            self.most_hosts = max(self.most_hosts, sum([seat.tick() for seat in live]))
            for seat in self.seats:
                if seat.leaves and not seat.peer.closed:
                    seat.peer.pump()

    def settle(self) -> None:
        for seat in self.seats:
            seat.bot.still = True
        self.run(1)
        for seat in self.seats:
            if seat.game is not None:
                seat.game.still = True
        self.run(3)

    def hosts(self) -> list[Seat]:
        return [seat for seat in self.seats if not seat.silent and seat.peer.server is not None]


def hunter_of(seat: Seat) -> Hunter:
    hunter = seat.player.client.world.mine(Hunter)
    assert hunter is not None
    return hunter


def check_worlds(host: Seat, seats: list[Seat]) -> None:
    """All players have the host's ghosts, by id, with their values and owners."""
    assert host.game is not None
    here = host.game.world
    for seat in seats:
        there, me = seat.player.client.world, seat.peer.me
        assert me is not None
        (client,) = (it for it in host.game.server.clients if it.id == me.client_id)
        assert seat.player.client.id == client.id
        for kind in (Hunter, Wolf):
            ours, theirs = here.objects(kind), there.objects(kind)
            assert len(theirs) == len(ours) > 0
            for ghost in theirs:
                same = here.ghost_of(client, kind, there.id_of(ghost) or 0)
                assert same is not None
                assert vars_of(ghost) == vars_of(same)
        mine = here.ghost_of(client, Hunter, there.id_of(hunter_of(seat)) or 0)
        assert mine is not None
        assert here.owner(mine) == client
        assert mine.name == seat.player.name


def vars_of(ghost: Hunter | Wolf) -> tuple[object, ...]:
    x, y = (round(32 * number) for number in ghost.position)
    rest = (ghost.name, ghost.kills) if isinstance(ghost, Hunter) else (ghost.number, ghost.lives)
    return (x, y, *rest)


@pytest.mark.parametrize(("ends", "reason"), [("close", "SERVER_CLOSED"), ("vanish", "TIMED_OUT")])
def test_a_client_knows_how_its_host_ended(ends: str, reason: str) -> None:
    network = tw.testing.SimulatedNetwork(conditions=tw.Conditions(latency=0.02), seed=1)

    def given(number: int) -> dict[str, Any]:
        tuning = tw.Tuning(bind=f"10.0.0.{number}:7", timeout=TIMEOUT)
        return {"name": f"p{number}", "network": network, "tuning": tuning}

    host = tw.peers.Peer.host(PROTOCOL, **given(1))
    other = tw.peers.Peer.join("10.0.0.1:7", PROTOCOL, **given(2))
    seen: list[Any] = []

    def play() -> None:
        for _ in range(6 * RATE):
            network.advance(1 / RATE)
            for peer in [each for each in peers if not each.closed]:
                leaves = ended and peer is host
                for end in (peer,) if leaves else filter(None, (peer, peer.server, peer.client)):
                    with end.tick() as inbox:
                        if end is other.client:
                            seen.extend(inbox.events)

    peers, ended = [host, other], False
    play()
    if ends == "close":
        host.close()
    else:
        peers.remove(host)
    ended = True
    del seen[:]
    play()
    reconnecting, connected = seen
    assert isinstance(reconnecting, tw.connections.Reconnecting)
    assert reconnecting.reason is tw.DisconnectReason[reason]
    assert isinstance(connected, tw.Connected)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_game_goes_on_when_its_host_is_killed(seed: int) -> None:
    party = Party(4, seed)
    party.run(30)
    old, others = party.seats[0], party.seats[1:]
    assert old.game is not None
    assert old.game.kills > 20
    before = [
        (hunter_of(seat), (seat.player.client.world.id_of(hunter_of(seat)) or 0) & 0xFFFF) for seat in others
    ]
    clients = [seat.peer.client for seat in others]
    kills = old.game.kills
    old.silent = True
    party.run(TIMEOUT + 2)
    (host,) = party.hosts()
    assert host is party.seats[1]
    assert host.game is not None
    assert 0 <= kills - host.game.kills <= 5 or host.game.kills >= kills
    party.run(25)
    party.settle()
    assert host.game.kills > kills + 10
    assert party.most_hosts == 1
    assert [seat.peer.client for seat in others] == clients
    assert [seat.player.ended for seat in others] == [None] * 3
    for seat, (hunter, number) in zip(others, before, strict=True):
        assert hunter_of(seat) is hunter
        assert (seat.player.client.world.id_of(hunter) or 0) & 0xFFFF == number
        (change,) = seat.told(tw.peers.HostChanged)
        assert change.host.name == "p1"
        assert change.age is not None
        assert change.age < TIMEOUT + 2.5
        assert len(seat.player.howls) == len(set(seat.player.howls)), "each kill is heard of once"
        # It plays as before: hardly corrected, and it hits what it sees.
        shots = host.game.shots[seat.player.name]
        assert seat.player.body.corrections <= 100, "of 3,600 ticks"
        assert len(shots) > 50
        assert sum(shots) >= 0.85 * len(shots)
    check_worlds(host, others)


def test_a_host_that_leaves_is_replaced_at_once_again_and_again() -> None:
    party = Party(4, preset="4g")
    for leaver, seat in enumerate(party.seats[:3]):
        party.run(4)
        assert party.hosts() == [seat]
        seat.leave()
        party.run(2)
        assert seat.peer.closed
        assert party.hosts() == [party.seats[leaver + 1]]
    last = party.seats[3]
    party.settle()
    check_worlds(last, [last])
    assert party.most_hosts == 1
    assert [change.host.name for change in last.told(tw.peers.HostChanged)] == ["p1", "p2", "p3"]
    with pytest.raises(tw.errors.ClosedError), party.seats[0].peer.client.tick():
        pass


@pytest.mark.parametrize("seed", range(4))
def test_a_host_that_leaves_takes_nothing_with_it(seed: int) -> None:
    party = Party(4, seed)
    party.run(2 + 0.07 * seed)
    old, new = party.seats[:2]
    assert old.game is not None
    before = {}
    for hunter in old.game.world.objects(Hunter):
        hunter.kills += 1000  # no tick follows
        before[hunter.name] = hunter.kills
    old.leave()
    party.run(4)
    assert (party.hosts(), old.peer.closed) == ([new], True)
    assert new.game is not None
    after = {hunter.name: hunter.kills for hunter in new.game.world.objects(Hunter)}
    assert set(after) == set(before)
    assert all(after[name] >= kills for name, kills in before.items())
    party.settle()
    check_worlds(new, party.seats[1:])


def test_a_host_with_nobody_to_hand_over_to_leaves_in_bounded_time() -> None:
    party = Party(3, preset="4g")
    party.run(1)
    old, others = party.seats[0], party.seats[1:]
    for seat in others:
        seat.silent = True
    old.leave()
    assert not old.peer.closed
    party.run(2.2)
    assert old.peer.closed
    party = Party(1, preset="4g")
    party.seats[0].peer.close()
    assert party.seats[0].peer.closed, "it is alone"


def test_only_its_peer_closes_the_server_of_a_hosted_game() -> None:
    party = Party(2, preset="4g")
    party.run(1)
    seat = party.seats[0]
    server = seat.peer.server
    assert server is not None
    for _ in range(2):
        with pytest.raises(ValueError, match=r"must be closed by its peer: call peer\.close\(\) to leave"):
            server.close()
    with pytest.raises(ValueError, match="must be closed by its peer"), server:
        pass
    party.run(1)
    assert party.hosts() == [seat]
    assert [player.client.connected for player in (seat.player, party.seats[1].player)] == [True, True]
    seat.leave()
    server.close()
    party.run(3)
    assert party.hosts() == [party.seats[1]]


def test_the_client_of_a_player_who_never_got_in_hears_of_it_once() -> None:
    network = tw.testing.SimulatedNetwork()

    def tuning(number: int) -> tw.Tuning:
        return tw.Tuning(bind=f"10.0.0.{number}:7", timeout=TIMEOUT)

    host: tw.peers.Peer[Any] = tw.peers.Peer.host(PROTOCOL, players=1, tuning=tuning(1), network=network)
    late: tw.peers.Peer[Any] = tw.peers.Peer.join("10.0.0.1:7", PROTOCOL, tuning=tuning(2), network=network)
    events: list[Any] = []
    for _ in range(3 * RATE):
        network.advance(1 / RATE)
        for peer in (host, late):
            with peer.tick():
                pass
        with late.client.tick() as inbox:
            events += inbox.events
    assert late.ended is tw.peers.LeaveReason.FULL
    assert [event.reason for event in events] == [tw.DisconnectReason.SERVER_FULL]
    assert late.client.disconnect_reason is tw.DisconnectReason.SERVER_FULL
    assert late.client.state is tw.connections.ClientState.DISCONNECTED


def test_a_request_under_way_is_reported_as_lost() -> None:
    party = Party(3, preset="4g")
    party.run(2)
    party.seats[0].silent = True
    asked = party.seats[2].peer.client.request(PROTOCOL.calls[0], "x")
    party.run(TIMEOUT + 3)
    assert asked.done
    with pytest.raises(tw.errors.NotConnectedError):
        asked.result()
    assert party.hosts() == [party.seats[1]]


def test_two_parts_of_a_split_game_have_one_host_and_the_small_part_is_out() -> None:
    party = Party(5, preset="4g")
    party.network.partition(
        [str(seat.peer.address) for seat in party.seats[:2]],
        [str(seat.peer.address) for seat in party.seats[2:]],
    )
    party.run(TIMEOUT + 4)
    assert party.hosts() == [party.seats[2]]
    party.network.heal()
    party.run(3)
    assert (party.hosts(), party.most_hosts) == ([party.seats[2]], 1)
    for seat in party.seats[:2]:
        (ended,) = seat.told(tw.peers.GameEnded)
        assert ended.reason is tw.peers.LeaveReason.MINORITY
        assert seat.player.ended is tw.DisconnectReason.TIMED_OUT
        assert seat.peer.server is None
    party.settle()
    check_worlds(party.seats[2], party.seats[2:])


def test_a_kicked_player_who_comes_back_is_another_player() -> None:
    party = Party(3, preset="4g")
    party.run(2)
    host, kicked = party.seats[0], party.seats[2]
    assert host.game is not None
    (player,) = (player for player in host.peer.players if player.name == "p2")
    former = player.client_id
    assert host.peer.kick(player)
    party.run(2)
    assert kicked.player.ended is tw.DisconnectReason.KICKED
    assert former not in {client.id for client in host.game.server.clients}
    kicked.peer.close()
    kicked.silent = True
    again = party.add(name="innocent")
    party.run(3)
    assert again.peer.me is not None
    assert again.peer.me.client_id != former
    assert len(host.game.server.clients) == 3
    waiting = host.game.world.waiting(Hunter)
    assert former not in {host.game.world.owner(hunter) for hunter in host.game.world.objects(Hunter)}
    assert again.peer.me.client_id not in waiting.values()


@pytest.mark.parametrize("pause", [0.05, 0.2, 0.4, 0.8])
def test_a_host_may_die_while_players_join(pause: float) -> None:
    party = Party(3, preset="4g")
    party.run(1)
    newcomers = [party.add() for _ in range(2)]
    party.run(pause)
    party.seats[0].silent = True
    party.run(TIMEOUT + 6)
    assert party.hosts() == [party.seats[1]]
    assert party.most_hosts == 1
    members = [seat for seat in party.seats[1:] if seat.peer.ended is None and seat.peer.me is not None]
    assert {1, 2} <= {seat.number for seat in members}
    for seat in newcomers:
        assert seat.peer.ended in (None, tw.peers.LeaveReason.NO_ANSWER, tw.peers.LeaveReason.UNREACHABLE)
    party.settle()
    check_worlds(party.seats[1], [seat for seat in members if seat.player.client.connected])


def test_when_the_relay_stops_the_players_hear_that_they_are_alone() -> None:
    party = Party(0)
    key = bytes(range(32))
    party.services = [
        tw.peers.RendezvousServer(SERVER, relay=RELAY, relay_key=key, network=party.network),
        relay := tw.peers.Relay(RELAY, key=key, network=party.network),
    ]
    meeting = tw.peers.Rendezvous(SERVER)
    for number in range(3):
        party.network.add_nat(f"203.0.113.{number + 1}", [f"10.0.{number}.2"], kind="symmetric")
        if number == 0:
            party.more = {"rendezvous": meeting}
            party.add()
        else:
            code = party.seats[0].peer.code
            assert code is not None
            tuning = tw.Tuning(bind=f"10.0.{number}.2:7", timeout=TIMEOUT)
            peer = tw.peers.Peer.join(
                code, PROTOCOL, name=f"p{number}", network=party.network, tuning=tuning, rendezvous=meeting
            )
            party.seats.append(Seat(peer, number))
        party.run(4)
    assert all(seat.player.client.connected for seat in party.seats)
    party.services.remove(relay)
    relay.close()
    party.run(TIMEOUT + 5)
    assert party.hosts() == []
    assert [seat.peer.ended for seat in party.seats] == [tw.peers.LeaveReason.MINORITY] * 3
    assert [seat.player.ended for seat in party.seats] == [tw.DisconnectReason.TIMED_OUT] * 3
    assert party.most_hosts == 1


@pytest.mark.parametrize(
    ("found", "ended", "reason"),
    [
        ("other version", tw.peers.LeaveReason.MISMATCH, tw.DisconnectReason.PROTOCOL_MISMATCH),
        ("other game", tw.peers.LeaveReason.MISMATCH, tw.DisconnectReason.PROTOCOL_MISMATCH),
        ("over", tw.peers.LeaveReason.UNKNOWN_CODE, tw.DisconnectReason.UNKNOWN_CODE),
        ("silent", tw.peers.LeaveReason.NO_ANSWER, tw.DisconnectReason.TIMED_OUT),
    ],
)
def test_a_code_that_leads_to_no_such_game_ends_the_joining_with_a_reason(
    found: str, ended: tw.peers.LeaveReason, reason: tw.DisconnectReason
) -> None:
    party = Party(0, preset="4g")
    party.services = [tw.peers.RendezvousServer(SERVER, network=party.network)]
    party.more = {"rendezvous": tw.peers.Rendezvous(SERVER)}
    host = party.add()
    party.run(2)
    code = host.peer.code
    assert code is not None
    if found == "over":
        host.leave()
    host.silent = found in ("over", "silent")
    party.run(2)
    own: tw.Protocol[Any] = tw.Protocol(
        PROTOCOL.id + (found == "other game"), ghosts=[Hunter], tick_rate=RATE, peers=True
    )
    late: tw.peers.Peer[Any] = tw.peers.Peer.join(
        code,
        PROTOCOL if host.silent else own,
        network=party.network,
        tuning=tw.Tuning(bind="10.0.9.2:7"),
        **party.more,
    )
    events: list[Any] = []
    for _ in range((10 if found == "silent" else 2) * RATE):
        party.run(1 / RATE)
        with late.tick() as inbox:
            events += inbox.events
        with late.client.tick() as news:
            events += news.events
    assert [event.reason for event in events] == [ended, reason]
    assert host.silent or party.hosts() == [host]


def test_strangers_reach_neither_the_server_nor_a_client() -> None:
    party = Party(2, preset="4g")
    party.run(1)
    for target in party.seats:
        for datagram in (
            b"\xf9",
            b"\xf9" + bytes(1_200),
            b"\xf9\x01" + PROTOCOL.id.to_bytes(8, "little") * 20,
        ):
            party.network._deliver("6.6.6.6:6", str(target.peer.address), datagram)
        party.run(0.1)
        assert target.peer.counters["hosted.refused"] == 3
        assert (
            target.peer.counters["hosting.malformed_notes"]
            == target.peer.counters["hosting.refused_worlds"]
            == 0
        )
    assert [len(seat.player.client.world.objects(Hunter)) for seat in party.seats] == [2, 2]


def test_players_also_send_each_other_messages() -> None:
    party = Party(3, preset="4g")
    party.seats[1].peer.broadcast(Score(7))
    heard: dict[int, list[Any]] = {0: [], 2: []}
    for _ in range(60):
        party.network.advance(1 / RATE)
        for seat in party.seats:
            with seat.peer.tick() as inbox:
                heard.setdefault(seat.number, []).extend(inbox)
    assert [heard[number] for number in (0, 2)] == [
        [(party.seats[number].peer.players[1], Score(7))] for number in (0, 2)
    ]


def test_only_protocols_of_hosted_games_have_clients() -> None:
    network = tw.testing.SimulatedNetwork()
    peer: tw.peers.Peer[Any] = tw.peers.Peer.host(
        tw.Protocol(7, [], ghosts=[], peers=True), tuning=tw.Tuning(bind="10.0.0.1:7"), network=network
    )
    assert peer.server is None
    with pytest.raises(ValueError, match="protocol must have ghosts, calls, inputs or a tick_rate"):
        _ = peer.client


def test_a_game_that_a_player_hosts_is_no_lockstep_or_rollback_game() -> None:
    party = Party(1, preset="4g")
    peer = party.seats[0].peer
    with pytest.raises(
        ValueError, match="peer must have a protocol without ghosts, calls, inputs and tick_rate"
    ):
        tw.rollback.Rollback(peer, 6, players=1, me=0)
    party.run(1)
    assert party.hosts() == [party.seats[0]]


def test_a_peers_client_makes_the_games_own_subclasses_of_ghosts() -> None:
    class Drawn(Wolf):
        seen = 0

        def on_spawned(self) -> None:
            Drawn.seen += 1

    party = Party(2, ghosts={Wolf: Drawn})
    late = party.add(ghosts={Wolf: Drawn})
    party.run(2)
    wolves = [wolf for seat in (party.seats[0], late) for wolf in seat.player.client.world.objects(Wolf)]
    assert wolves
    assert {type(wolf) for wolf in wolves} == {Drawn}
    assert len(wolves) <= Drawn.seen
    party.seats[0].silent = True
    party.run(8)
    assert party.seats[1].peer.server is not None
    assert {type(wolf) for wolf in late.player.client.world.objects(Wolf)} == {Drawn}
    # Its mistakes raise before there is a socket.
    for ghosts, sentence in (
        ({Wolf: int}, "must be a class derived from it"),
        ({Chatter: Chatter}, "is not among the protocol's ghosts"),
    ):
        with pytest.raises(TypeError, match=sentence):
            tw.peers.Peer.host(PROTOCOL, network=party.network, ghosts=ghosts)


class Chatter:
    pass
