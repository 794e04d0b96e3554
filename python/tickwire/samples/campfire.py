"""``python -m tickwire.samples.campfire``: players keep a fire alive, and their host may leave."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Annotated, Any

import tickwire as tw
from tickwire.samples import command

RATE = 20
FULL = 100.0
BURNS = 6.0
"""The fuel that the fire loses in a second, and gains from a log."""


@tw.ghost
class Fire:
    """The fire that the players keep alive."""

    heat: tw.f32 = FULL
    seconds: tw.f32 = 0


@tw.ghost
class Camper:
    """A player at the fire."""

    name: Annotated[str, tw.text(32), tw.initial] = ""
    logs: Annotated[int, tw.u32] = 0
    """The number of logs that the player brought."""


@tw.call(tw.to_server, rate=2, burst=4)
def bring(caller: tw.ClientHandle) -> None:
    """A player puts a log on the fire."""
    raise NotImplementedError


PROTOCOL: tw.Protocol[Any] = tw.Protocol(
    0x66697265, [], ghosts=[Fire, Camper], calls=[bring], tick_rate=RATE, peers=True
)


class Game:
    """The world, on the host. It continues with the ghosts of an earlier host."""

    def __init__(self, server: tw.Server[Any], peer: tw.peers.Peer[Any]) -> None:
        self.server, self.world, self.peer = server, server.world, peer
        self.fire = next(iter(self.world.objects(Fire)), None) or self.world.spawn(Fire())
        server.implement(bring, self._burn_log)

    def tick(self) -> None:
        """Runs a tick, a twentieth of a second."""
        with self.server.tick() as inbox:
            for client, what in inbox:
                if isinstance(what, tw.Connected) and self.camper_of(client) is None:
                    self.world.spawn(Camper(name=self._name_of(client)), owner=client)
            here = {player.client_id for player in self.peer.players}
            for camper, client_id in self.world.waiting(Camper).items():
                if client_id not in here:
                    self.world.despawn(camper)
            self.fire.seconds += 1 / RATE
            self.fire.heat = max(self.fire.heat - BURNS / RATE, 0.0)

    def camper_of(self, client: tw.ClientHandle) -> Camper | None:
        """Returns a player's camper."""
        campers = self.world.objects(Camper)
        return next((camper for camper in campers if self.world.owner(camper) == client), None)

    def _name_of(self, client: tw.ClientHandle) -> str:
        return next((player.name for player in self.peer.players if player.client_id == client.id), "")

    def _burn_log(self, caller: tw.ClientHandle) -> None:
        self.fire.heat = min(self.fire.heat + BURNS, FULL)
        camper = self.camper_of(caller)
        if camper is not None:
            camper.logs += 1


class Camp:
    """A player's side, and the game while this player is the host."""

    def __init__(self, peer: tw.peers.Peer[Any]) -> None:
        self.peer, self.client = peer, peer.client
        self.game: Game | None = None
        self.news, self.over = "looking for the fire", False

    def tick(self, brings: bool) -> None:
        """Runs a tick, a twentieth of a second, in which the player may bring a log."""
        with self.peer.tick() as inbox:
            for _, what in inbox:
                self._hear(what)
        server = self.peer.server
        if server is not None:
            if self.game is None or self.game.server is not server:
                self.game = Game(server, self.peer)
            self.game.tick()
        with self.client.tick():
            if brings and self.client.connected:
                self.client.call(bring)

    def _hear(self, what: object) -> None:
        match what:
            case tw.peers.HostChanged(host, age):
                late = "" if age is None else f", as it was {age:.1f} s before"
                self.news = f"{host.name} keeps the fire now{late}"
            case tw.peers.PlayerJoined(player):
                self.news = f"{player.name} sits down"
            case tw.peers.PlayerLeft(player):
                self.news = f"{player.name} is gone"
            case tw.peers.GameEnded(reason):
                self.news, self.over = f"over: {reason}", True
            case _:
                pass

    def fire(self) -> Fire | None:
        """The fire as this player sees it."""
        return next(iter(self.client.world.objects(Fire)), None)

    def line(self) -> str:
        """The state of the camp, in a line."""
        fire, camper, host = self.fire(), self.client.world.mine(Camper), self.peer.master
        if fire is None:
            return self.news
        bar = "#" * round(20 * fire.heat / FULL)
        logs = camper.logs if camper is not None else 0
        who = host.name if host is not None else "nobody"
        return f"[{bar:20}] {int(fire.seconds):4} s, {logs} of your logs; {who} hosts; {self.news}"


def play(parsed: argparse.Namespace) -> None:
    """Prints a line a second, and brings a log now and then."""
    with ExitStack() as stack:
        with command.opening_game():
            if parsed.join is None:
                name = parsed.name or "host"
                peer = tw.peers.Peer.host(
                    PROTOCOL, name=name, players=8, tuning=tw.Tuning(bind=parsed.host, timeout=2)
                )
            else:
                name = parsed.name or f"guest {random.randrange(100)}"
                peer = tw.peers.Peer.join(parsed.join, PROTOCOL, name=name, tuning=tw.Tuning(timeout=2))
        camp = Camp(stack.enter_context(peer))
        for tick in command.paced(RATE, parsed.seconds):
            camp.tick(random.random() < 1 / (RATE * max(1, len(peer.players))))
            if camp.over:
                raise command.SampleError(f"the game is {camp.news}")
            if tick % RATE == 0:
                print(camp.line(), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code."""
    text = "A fire that players keep: stop the one who hosts it, and another one goes on."
    parser = command.Parser(prog="python -m tickwire.samples.campfire", description=text)
    join = "the address of any player who is there: sit down at that player's fire"
    command.add_peer_options(parser, "light a fire, and let others join there", join)
    parser.add_argument("--name", metavar="NAME", help="what the others call you")
    parser.set_defaults(run=play)
    return command.run(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
