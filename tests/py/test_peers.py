"""Games without a server: who joins, who leaves, who is the master, and when it starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
import tickwire as tw


@tw.message
class Chat:
    text: Annotated[str, tw.text(100)]


CHANNELS = [tw.reliable_ordered(), tw.unreliable(), tw.chunks()]
PROTOCOL = tw.Protocol(0x9A3, [Chat], CHANNELS, peers=True)
BAD = tw.Conditions(latency=0.05, jitter=0.01, loss=0.05, duplicate=0.02, reorder=0.02)


class Game:
    """Peers on one simulated network, each at an address of its own, and their events."""

    def __init__(self, seed: int = 1, conditions: tw.Conditions | None = None, **settings: Any) -> None:
        self.network = tw.testing.SimulatedNetwork(conditions=conditions or BAD, seed=seed)
        self.peers: list[tw.peers.Peer[Chat]] = []
        self.events: list[list[tw.peers.PeerEvent]] = []
        self.messages: list[list[tuple[int, str]]] = []
        self.known: list[set[int]] = []
        self.timeout: int | None = settings.pop("timeout", None)
        self.add(lambda **given: tw.peers.Peer.host(PROTOCOL, **given, **settings))

    def add(self, make: Callable[..., tw.peers.Peer[Chat]], timeout: int | None = None) -> int:
        number = len(self.peers)
        tuning = tw.Tuning(
            bind=f"10.0.0.{number + 1}:7", timeout=self.timeout if timeout is None else timeout
        )
        self.peers.append(make(name=f"peer {number}", tuning=tuning, network=self.network))
        self.events.append([])
        self.messages.append([])
        self.known.append(set())
        return number

    def join(
        self,
        contact: int = 0,
        protocol: tw.Protocol[Chat] = PROTOCOL,
        timeout: int | None = None,
        **given: Any,
    ) -> int:
        address = f"10.0.0.{contact + 1}:7"
        return self.add(lambda **more: tw.peers.Peer.join(address, protocol, **more, **given), timeout)

    def run(self, seconds: float, paused: set[int] | None = None) -> None:
        for _ in range(round(seconds * 60)):
            self.network.advance(1 / 60)
            for number, peer in enumerate(self.peers):
                if not peer.closed and number not in (paused or ()):
                    self.tick(number, peer)

    def tick(self, number: int, peer: tw.peers.Peer[Chat]) -> None:
        known = self.known[number]
        with peer.tick() as inbox:
            for event in inbox.events:
                self.events[number].append(event)
                if isinstance(event, tw.peers.PlayerJoined):
                    known.add(event.player.number)
                if isinstance(event, tw.peers.PlayerLeft):
                    known.remove(event.player.number)
            for player, message in inbox.messages:
                assert player.number in known, "nobody says anything before it is known or after its end"
                self.messages[number].append((player.number, message.text))

    def of(self, number: int, kind: type) -> list[Any]:
        return [event for event in self.events[number] if isinstance(event, kind)]

    def names(self, number: int) -> list[str]:
        return [player.name for player in self.peers[number].players]


def game_of(count: int, seed: int = 1, conditions: tw.Conditions | None = None, **settings: Any) -> Game:
    game = Game(seed, conditions, players=8, **settings)
    for _ in range(count - 1):
        game.join()
    game.run(5)
    for number in range(count):
        assert game.names(number) == [player.name for player in game.peers[0].players]
        assert len(game.names(number)) == count
    return game


@pytest.mark.parametrize("seed", range(4))
def test_all_hear_each_other_over_a_bad_network(seed: int) -> None:
    game = game_of(5, seed)
    for peer in game.peers:
        me = peer.me
        assert me is not None
        for text in range(20):
            peer.broadcast(Chat(f"{text} of {me.number}"))
    game.run(3)
    for peer, messages in zip(game.peers, game.messages, strict=True):
        assert peer.me is not None
        for other in peer.players:
            said = [text for number, text in messages if number == other.number]
            assert said == ([] if other == peer.me else [f"{text} of {other.number}" for text in range(20)])


def test_a_newcomer_asks_anyone_and_is_sent_on() -> None:
    game = game_of(3)
    late = game.join(contact=2)
    game.run(3)
    assert [len(game.names(number)) for number in range(4)] == [4] * 4
    assert game.peers[late].me is not None
    assert game.peers[late].master == game.peers[late].players[0]


def test_one_player_is_spoken_to_alone() -> None:
    game = game_of(3)
    ann = game.peers[0]
    to = ann.players[1]
    assert ann.send(to, Chat("psst")) is tw.SendResult.SENT
    game.run(1)
    heard = [messages for messages in game.messages if messages]
    assert heard == [[(0, "psst")]]
    assert ann.stats(to).rtt_ms > 50
    with pytest.raises(ValueError, match="not the peer's own"):
        ann.send(ann.players[0], Chat("to myself"))
    with pytest.raises(ValueError, match="belongs to another peer"):
        ann.send(game.peers[1].players[1], Chat("whose?"))
    to.data = "kept"
    assert ann.players[1].data == "kept"


@pytest.mark.parametrize("seed", range(6))
def test_all_start_within_milliseconds(seed: int) -> None:
    game = game_of(4, seed)
    assert not game.peers[1].start()
    assert game.peers[0].start(countdown=1.5, seed=99)
    assert not game.peers[0].start()
    game.run(4)
    starts = [start for number in range(4) for start in game.of(number, tw.peers.Started)]
    assert [start.seed for start in starts] == [99] * 4
    # The peers of one network share its clock.
    moments = [start.at for start in starts]
    assert max(moments) - min(moments) < 0.012


def test_who_comes_late_is_refused_or_told_of_the_start() -> None:
    for late_joining in (False, True):
        game = game_of(2)
        game.peers[0].start(seed=5, late_joining=late_joining)
        game.run(2)
        late = game.join()
        game.run(3)
        if late_joining:
            assert [start.seed for start in game.of(late, tw.peers.Started)] == [5]
            assert abs(game.of(late, tw.peers.Started)[0].at - game.of(0, tw.peers.Started)[0].at) < 0.05
        else:
            assert game.peers[late].ended is tw.peers.LeaveReason.STARTED
            assert [event.reason for event in game.of(late, tw.peers.GameEnded)] == [
                tw.peers.LeaveReason.STARTED
            ]
            assert [type(event) for event in game.events[late]] == [tw.peers.GameEnded]


def test_a_full_game_says_so() -> None:
    game = Game(players=2)
    first = game.join()
    game.run(2)
    second = game.join()
    game.run(3)
    assert game.peers[first].ended is None
    assert game.peers[second].ended is tw.peers.LeaveReason.FULL
    assert len(game.names(0)) == 2


def test_nobody_answers_and_another_protocol() -> None:
    game = Game()
    alone = game.join(contact=7, timeout=2)
    other = game.join(protocol=tw.Protocol(0x9A3, [Chat], [tw.reliable_ordered()], peers=True))
    game.run(8)
    assert game.peers[alone].ended is tw.peers.LeaveReason.NO_ANSWER
    assert game.peers[other].ended is tw.peers.LeaveReason.MISMATCH
    assert game.names(0) == ["peer 0"]


def test_peers_that_ask_each_other_get_no_answer_soon() -> None:
    game = Game()
    pair = [game.join(contact=2), game.join(contact=1)]
    game.run(5)
    for peer in pair:
        assert game.peers[peer].ended is tw.peers.LeaveReason.NO_ANSWER
    assert game.names(0) == ["peer 0"]


@pytest.mark.parametrize("ahead", [0.0, 1.0, 3.0, 4.5])
@pytest.mark.parametrize("latency", [0.0, 0.1])
def test_who_asks_a_peer_that_asks_a_dead_address_hears_within_six_seconds(
    ahead: float, latency: float
) -> None:
    game = Game(conditions=tw.Conditions(latency=latency))
    asking = game.join(contact=7)
    game.run(ahead)
    late = game.join(contact=asking)
    took = 0.0
    while game.peers[late].ended is None:
        game.run(0.1)
        took += 0.1
        assert took < 6.2
    assert game.peers[late].ended is tw.peers.LeaveReason.NO_ANSWER
    assert game.names(0) == ["peer 0"]


def test_a_peer_cannot_ask_itself() -> None:
    game = Game()
    with pytest.raises(ValueError, match="address must be another player's address, not the peer's own"):
        game.join(contact=1)


def test_a_key_keeps_strangers_out() -> None:
    key = bytes(range(32))
    game = Game(key=key)
    friend, stranger = game.join(key=key), game.join(timeout=2)
    game.run(8)
    assert game.peers[friend].me is not None
    assert game.peers[stranger].ended is tw.peers.LeaveReason.NO_ANSWER
    assert len(game.names(0)) == 2


def test_leaving_and_coming_again() -> None:
    game = game_of(3)
    game.peers[1].close()
    game.run(1)
    for number in (0, 2):
        assert [event.reason for event in game.of(number, tw.peers.PlayerLeft)] == [tw.peers.LeaveReason.LEFT]
        assert len(game.names(number)) == 2
    gone = game.of(0, tw.peers.PlayerLeft)[0].player
    assert game.peers[0].send(gone, Chat("are you there?")) is tw.SendResult.GONE
    again = game.join()
    game.run(3)
    assert game.peers[again].me is not None
    assert game.peers[again].me.number == gone.number
    here = next(player for player in game.peers[0].players if player.number == gone.number)
    assert here != gone, "the next one with that number is another player"


def test_the_master_sends_someone_away() -> None:
    game = game_of(3)
    victim = game.peers[0].players[1]
    number = next(n for n, peer in enumerate(game.peers) if peer.me and peer.me.number == victim.number)
    assert not game.peers[number].kick(game.peers[number].players[0])
    assert game.peers[0].kick(victim)
    assert not game.peers[0].kick(victim), "it is on its way out"
    game.run(2)
    assert game.peers[number].ended is tw.peers.LeaveReason.KICKED
    for other in {0, 1, 2} - {number}:
        assert [event.reason for event in game.of(other, tw.peers.PlayerLeft)] == [
            tw.peers.LeaveReason.KICKED
        ]


@pytest.mark.parametrize("seed", range(4))
def test_a_master_that_falls_silent_is_replaced(seed: int) -> None:
    game = game_of(4, seed, timeout=3)
    game.peers[0].start(seed=7)
    game.run(0.3 * seed)
    began = game.network.now
    changed = None
    for _ in range(600):
        game.run(1 / 60, paused={0})
        if all(game.of(number, tw.peers.MasterChanged) for number in (1, 2, 3)):
            changed = game.network.now - began
            break
    assert changed is not None
    assert changed < 3 + 1, "within the timeout and a second"
    game.run(3, paused={0})
    for number in (1, 2, 3):
        assert len(game.of(number, tw.peers.MasterChanged)) == 1
        assert [event.reason for event in game.of(number, tw.peers.PlayerLeft)] == [tw.peers.LeaveReason.LOST]
        assert len(game.names(number)) == 3
        assert game.peers[number].master is not None
        assert game.peers[number].master.number == min(player.number for player in game.peers[number].players)
    assert len({len(game.of(number, tw.peers.Started)) for number in (1, 2, 3)}) == 1
    # The old one finds out that it is alone.
    game.run(5)
    assert game.peers[0].ended is tw.peers.LeaveReason.MINORITY
    # And the new one lets others in.
    if not game.of(1, tw.peers.Started):
        late = game.join(contact=2)
        game.run(3)
        assert len(game.names(late)) == 4


def test_of_two_the_one_that_remains_goes_on() -> None:
    for gone in (0, 1):
        game = game_of(2, timeout=2)
        game.run(4, paused={gone})
        other = 1 - gone
        assert game.peers[other].ended is None
        assert len(game.names(other)) == 1
        assert game.peers[other].is_master


def test_chunks_go_between_players() -> None:
    game = game_of(2)
    game.peers[0].send_chunk(game.peers[0].players[1], b"state" * 1000, label="state")
    taken: list[Any] = []
    for _ in range(180):
        game.network.advance(1 / 60)
        for peer in game.peers:
            with peer.tick() as inbox:
                taken += inbox.chunks
    assert [(chunk.client.number, chunk.label, bytes(chunk)) for chunk in taken] == [
        (0, "state", b"state" * 1000)
    ]


def test_mistakes_name_what_is_wrong() -> None:
    network = tw.testing.SimulatedNetwork()
    plain = tw.Protocol(1, [Chat])
    with pytest.raises(ValueError, match="peers=True"):
        tw.peers.Peer.host(plain, network=network)
    with pytest.raises(ValueError, match="players must be 1 to 16, not 17"):
        tw.peers.Peer.host(PROTOCOL, players=17, network=network)
    with pytest.raises(ValueError, match="name must be 0 to 32 bytes"):
        tw.peers.Peer.host(PROTOCOL, name="n" * 33, network=network)
    with pytest.raises(ValueError, match="timeout must be 1 to 60 between peers, not 61"):
        tw.peers.Peer.host(PROTOCOL, tuning=tw.Tuning(timeout=61), network=network)
    with pytest.raises(ValueError, match="address must be a player's address"):
        tw.peers.Peer.join("10.0.0.1:0", PROTOCOL, network=network)
    with pytest.raises(TypeError, match="unexpected keyword argument 'wrong'"):
        tw.peers.Peer.host(PROTOCOL, wrong=1, network=network)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="countdown must be 0 to 60"):
        tw.peers.Peer.host(PROTOCOL, network=network).start(countdown=61)


def test_a_protocol_without_peers_has_the_bytes_it_had() -> None:
    plain = tw.Protocol(0x9A3, [Chat], CHANNELS)
    assert "peers" not in plain.description
    assert plain.hash != PROTOCOL.hash
    assert len(PROTOCOL.channels) == len(plain.channels) == 3
    assert PROTOCOL.messages == plain.messages


def test_a_peer_may_be_played_over_real_sockets() -> None:
    host = tw.peers.Peer.host(PROTOCOL, name="ann", tuning=tw.Tuning(bind="127.0.0.1:0"))
    other = tw.peers.Peer.join(host.address, PROTOCOL, name="bob", tuning=tw.Tuning(bind="127.0.0.1:0"))
    names: list[str] = []
    for _ in range(2000):
        for peer in (host, other):
            with peer.tick() as inbox:
                names += [
                    event.player.name for event in inbox.events if isinstance(event, tw.peers.PlayerJoined)
                ]
        if len(names) == 4:
            break
    host.close()
    other.close()
    assert sorted(names) == ["ann", "ann", "bob", "bob"]


@pytest.mark.parametrize("wait", [0.3, 0.6, 0.9])
def test_who_takes_the_number_of_a_player_who_is_gone_stays(wait: float) -> None:
    game = Game(conditions=tw.Conditions(latency=0.01))
    for _ in range(3):
        game.join()
        game.run(2)
    game.peers[0].close()  # the others report to the new master that they don't reach number 0 any more
    game.run(wait)
    newcomer = game.join(contact=1)
    game.run(6)
    me = game.peers[newcomer].me
    assert me is not None
    assert me.number == 0
    assert game.peers[newcomer].ended is None
    assert [len(peer.players) for peer in game.peers[1:]] == [4, 4, 4, 4]


def test_nothing_comes_after_the_end_of_the_game() -> None:
    conditions = tw.Conditions(latency=0.03, jitter=0.02)
    for seed in range(20):
        game = game_of(3, seed, conditions)
        last = game.peers[0].players[2]
        known = [peer.me.number for peer in game.peers if peer.me is not None]
        number = known.index(last.number)
        victim, others = game.peers[number], [0, 3 - number]
        for turn in range(60):
            for other in others:
                game.peers[other].broadcast(Chat(f"{turn}"))
            if turn == 20:
                assert game.peers[0].kick(last)
            game.network.advance(1 / 60)
            for other in others:
                game.tick(other, game.peers[other])
            with victim.tick() as inbox:
                what = [what for _, what in inbox]
            if any(isinstance(each, tw.peers.GameEnded) for each in what):
                assert isinstance(what[-1], tw.peers.GameEnded), seed
                break
        else:
            raise AssertionError("it was not kicked")


@pytest.mark.parametrize("timeout", [5, 2])
@pytest.mark.parametrize("ahead", [1.3, 1.1, 0.9, 0.7, 0.3, 0.0, -1.0, -2.5, -4.8])
def test_a_newcomer_beside_a_dead_host_is_in_soon_after_there_is_another(timeout: int, ahead: float) -> None:
    game = Game(conditions=tw.Conditions(latency=0.04), timeout=timeout)
    for _ in range(2):
        game.join(0)
        game.run(2)
    crash, step, late, master_at = 3.0, 1 / 30, None, None
    for now in (step * number for number in range(600)):
        if late is None and now >= crash - ahead:
            late = game.join(1)
        game.run(step, {0} if now >= crash else None)
        if master_at is None and game.of(1, tw.peers.MasterChanged):
            master_at = now
        if late is not None and game.peers[late].me is not None:
            break
    # It joins before the host dies, or a second after there is another host and it asks.
    assert late is not None
    assert game.peers[late].ended is None
    assert master_at is None or now <= max(master_at, crash - ahead) + 1.2, (master_at, now)
    assert master_at is None or master_at <= crash + timeout + 1


def test_a_newcomer_beside_a_dead_host_gets_in_over_a_slow_line() -> None:
    """The election takes longer there than a newcomer waits for an answer."""
    game = Game(conditions=tw.Conditions(latency=0.3), timeout=5)
    for _ in range(3):
        game.join(0)
        game.run(3)
    late = game.join(1)
    took = 0.0
    while game.peers[late].me is None:
        game.run(0.1, {0})
        took += 0.1
        assert game.peers[late].ended is None, took
    assert 6 < took < 13
