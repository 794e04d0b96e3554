"""One co-op game, dedicated, hosted by a player, or reached by a code: the same code and results."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import tickwire as tw
from wolves import PROTOCOL, RATE, Bot, Game, Hunter, Player, Wolf

SERVER = "198.51.100.1:3478"
RELAY = "198.51.100.2:3480"
KEY = bytes(range(32))
Client = tw.Client[object]


class Party:
    """A game on a simulated network of bad lines, with three players."""

    def __init__(self, seed: int) -> None:
        conditions, _ = tw.Conditions.preset("wifi-bad")
        self.network = tw.testing.SimulatedNetwork(conditions=conditions, seed=seed)
        self.rendezvous = tw.peers.RendezvousServer(SERVER, relay=RELAY, relay_key=KEY, network=self.network)
        self.relay = tw.peers.Relay(RELAY, key=KEY, network=self.network)
        self.game: Game
        self.bots: list[Bot] = []
        self.peers: list[tw.peers.Peer] = []

    def host(self, bind: str, **more: object) -> tw.Server:
        server = tw.Server(bind, PROTOCOL, network=self.network, **more)  # type: ignore[arg-type]
        self.game = Game(server)
        return server

    def add(self, client: tw.Client, name: str) -> None:
        self.bots.append(Bot(Player(client, name), len(self.bots)))

    def connect(self, address: object, *binds: str) -> None:
        for bind in binds:
            tuning = tw.Tuning(bind=bind)
            client = tw.Client.connect(
                address,  # type: ignore[arg-type]
                PROTOCOL,
                network=self.network,
                tuning=tuning,
            )
            self.add(client, bind)

    def open(self, *binds: str, rendezvous: tw.peers.Rendezvous | None = None) -> None:
        """A game that survives its host: the first peer hosts, and the others join."""
        for bind in binds:
            more = {"name": bind, "network": self.network, "tuning": tw.Tuning(bind=bind)}
            more["rendezvous"] = rendezvous
            if not self.peers:
                peer = tw.peers.Peer.host(PROTOCOL, **more)  # type: ignore[arg-type]
                assert peer.server is not None
                self.game = Game(peer.server)
            else:
                host = self.peers[0]
                peer = tw.peers.Peer.join(host.code or host.address, PROTOCOL, **more)  # type: ignore[arg-type]
            self.peers.append(peer)
            self.run(3)
        for peer in self.peers:
            self.add(peer.client, "local" if peer.server is not None else str(peer.address))

    def behind(self, kind: str, number: int) -> str:
        self.network.add_nat(f"203.0.113.{number}", [f"10.0.{number}.2"], kind=kind)
        return f"10.0.{number}.2:5000"

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * RATE)):
            self.network.advance(1 / RATE)
            self.rendezvous.pump()
            self.relay.pump()
            for peer in self.peers:
                with peer.tick():
                    pass
            self.game.tick()
            for bot in self.bots:
                bot.tick()


def dedicated(party: Party) -> None:
    server = party.host("192.0.2.1:40000")
    party.connect(server.address, "192.0.2.2:5000", "192.0.2.3:5000", "192.0.2.4:5000")


def hosted(party: Party) -> None:
    server = party.host("192.0.2.1:40000")
    party.add(tw.Client.local(server), "local")
    party.connect(server.address, "192.0.2.3:5000", "192.0.2.4:5000")


def by_code(party: Party, host: str, guest: str) -> None:
    server = party.host(party.behind(host, 1), rendezvous=tw.peers.Rendezvous(SERVER))
    party.run(2)
    party.add(tw.Client.local(server), "local")
    code = tw.peers.Code(str(server.code), rendezvous=SERVER)
    party.connect(code, party.behind(guest, 2), party.behind(guest, 3))


def punched(party: Party) -> None:
    by_code(party, "port-restricted", "restricted")


def relayed(party: Party) -> None:
    by_code(party, "symmetric", "symmetric")


def among_peers(party: Party) -> None:
    party.open("192.0.2.1:40000", "192.0.2.3:5000", "192.0.2.4:5000")


def among_relayed_peers(party: Party) -> None:
    binds = [party.behind("symmetric", number) for number in (1, 2, 3)]
    party.open(*binds, rendezvous=tw.peers.Rendezvous(SERVER))


@pytest.mark.parametrize("open_game", [dedicated, hosted, punched, relayed, among_peers, among_relayed_peers])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_co_op_game_is_the_same_however_it_is_hosted(open_game: Callable[[Party], None], seed: int) -> None:
    party = Party(seed)
    open_game(party)
    party.run(60)
    for bot in party.bots:
        bot.still = True
    party.run(1)
    party.game.still = True
    party.run(3)
    game, players = party.game, [bot.player for bot in party.bots]
    assert [player.ended for player in players] == [None] * 3
    assert sorted(player.joined for player in players) == [1, 2, 3]
    is_relayed = open_game in (relayed, among_relayed_peers)
    # The three players of a mesh have a path to each other, too.
    assert party.relay.counters["channels"] == (0 if not is_relayed else 2 if open_game is relayed else 3)
    for player in players:
        check_world(game, player)
        check_play(game, player, 0.85 if is_relayed else 0.9)


def check_world(game: Game, player: Player) -> None:
    """A player has the same ghosts as the server, by id, and the same values."""
    here, there = game.world, player.client.world
    (client,) = (client for client, (hunter, _) in game.hunters.items() if hunter.name == player.name)
    for kind in (Hunter, Wolf):
        ours, theirs = here.objects(kind), there.objects(kind)
        assert len(theirs) == len(ours) > 0
        for ghost in theirs:
            same = here.ghost_of(client, kind, there.id_of(ghost) or 0)
            assert same is not None
            assert vars_of(ghost) == vars_of(same)


def vars_of(ghost: Hunter | Wolf) -> tuple[object, ...]:
    # Positions travel in steps of 1/32.
    x, y = (round(32 * number) for number in ghost.position)
    rest = (ghost.name, ghost.kills) if isinstance(ghost, Hunter) else (ghost.number, ghost.lives)
    return (x, y, *rest)


def check_play(game: Game, player: Player, hits: float) -> None:
    """A player was hardly corrected, hit what it saw, and heard of each kill once.

    Over the relay each packet passes two bad lines, so that fewer shots hit.
    """
    is_local = player.name == "local"
    assert player.body.corrections <= (0 if is_local else 40), "of 3,600 ticks"
    shots = game.shots[player.name]
    assert len(shots) > 100
    assert sum(shots) >= (1.0 if is_local else hits) * len(shots)
    assert game.kills > 50
    assert player.kills == game.kills
    assert len(player.howls) == len(set(player.howls))
    assert len(player.howls) == game.kills
