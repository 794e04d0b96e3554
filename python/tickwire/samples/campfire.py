"""``python -m tickwire.samples.campfire``: players keep a fire alive, and their host may leave."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

import tickwire as tw
from tickwire.samples import command

RATE = 20
FULL = 100.0
BURNS = 6.0
"""What a second takes of the fire, and a log gives."""


@tw.message
class Log:
    """A player puts a log on the fire: for the host."""


@tw.message
class Fire:
    """What the host shows the others."""

    heat: tw.f32
    seconds: tw.u32
    logs: tw.u32
    """How many the receiver brought."""


Said = Log | Fire
PROTOCOL: tw.Protocol[Said] = tw.Protocol(
    0x66697265, [Log, Fire], [tw.reliable_ordered(), tw.chunks()], peers=True
)


class Camp:
    """One player's side of it. What it shows is in ``seen`` on all sides, the world on the host's alone."""

    def __init__(self, peer: tw.peers.Peer[Said]) -> None:
        self.peer = peer
        self.game = tw.peers.Migrating(peer, save=self._save, load=self._load, every=0.5)
        self.heat, self.seconds = FULL, 0.0
        self.logs = np.zeros(16, np.uint32)
        self.seen, self.news, self.over = Fire(FULL, 0, 0), "looking for the fire", False

    def _save(self) -> dict[str, np.ndarray]:
        return {"fire": np.array([self.heat, self.seconds]), "logs": self.logs}

    def _load(self, state: dict[str, np.ndarray]) -> None:
        self.heat, self.seconds = (float(value) for value in state["fire"])
        self.logs = state["logs"]

    def tick(self, brings: bool) -> None:
        """A twentieth of a second, in which the player may bring a log."""
        with self.peer.tick() as inbox:
            for player, what in self.game.read(inbox):
                match what:
                    case Log() if player is not None:
                        self.heat = min(self.heat + BURNS, FULL)
                        self.logs[player.number] += 1
                    case Fire():
                        self.seen = what
                    case tw.peers.HostChanged(host, age, lost):
                        late = "" if age is None else f", as it was {age:.1f} s before"
                        self.news = f"{host.name} keeps the fire now{late}"
                        for message in lost:
                            self.game.send(message)
                    case tw.peers.PlayerJoined(player):
                        self.news = f"{player.name} sits down"
                    case tw.peers.PlayerLeft(player):
                        self.news = f"{player.name} is gone"
                        self.logs[player.number] = 0
                    case tw.peers.GameEnded(reason):
                        self.news, self.over = f"over: {reason}", True
                    case _:
                        pass
            if brings:
                self.game.send(Log())
            if self.game.is_host:
                self._burn()

    def _burn(self) -> None:
        self.seconds += 1 / RATE
        self.heat = max(self.heat - BURNS / RATE, 0.0)
        for player in self.peer.players:
            fire = Fire(self.heat, int(self.seconds), int(self.logs[player.number]))
            if player == self.peer.me:
                self.seen = fire
            else:
                self.peer.send(player, fire)

    def line(self) -> str:
        """What there is to see, in a line."""
        fire, host = self.seen, self.game.host
        who = host.name if host else "nobody"
        bar = "#" * round(20 * fire.heat / FULL)
        return f"[{bar:20}] {fire.seconds:4} s, {fire.logs} of your logs; {who} hosts; {self.news}"


def play(parsed: argparse.Namespace) -> None:
    """Says a line a second, and brings a log now and then."""
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
    """Runs the command line; returns the exit code."""
    text = "A fire that players keep: stop the one who hosts it, and another one goes on."
    parser = command.Parser(prog="python -m tickwire.samples.campfire", description=text)
    join = "the address of any player who is there: sit down at that player's fire"
    command.add_peer_options(parser, "light a fire, and let others join there", join)
    parser.add_argument("--name", metavar="NAME", help="what the others call you")
    parser.set_defaults(run=play)
    return command.run(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
