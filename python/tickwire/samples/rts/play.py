"""``play``: a window, with other players or bots as opponents."""

from __future__ import annotations

import argparse
import os
import socket
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import tickwire as tw
from tickwire.samples import command
from tickwire.samples.rts.messages import MAX_PLAYERS, PROTOCOL
from tickwire.samples.rts.player import Player

# pygame greets on standard output unless told not to.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
FRAMES = 60
COUNTDOWN = 1.0
DEFAULT = "0.0.0.0:40000"


def add_play(commands: Any) -> None:
    """Adds the command and its options."""
    each: argparse.ArgumentParser = commands.add_parser("play", help="a window: against bots, or with others")
    text = f"let others join there ({DEFAULT}); without --host and --join you play against bots"
    each.add_argument("--host", nargs="?", const=DEFAULT, metavar="ADDRESS", help=text)
    text = "join the game of a player there; with --rendezvous: the game that has this code"
    each.add_argument("--join", metavar="CODE_OR_ADDRESS", help=text)
    text = "a rendezvous server, by whose code others join through their NATs"
    each.add_argument("--rendezvous", metavar="HOST:PORT", help=text)
    count = command.number(int, 1, MAX_PLAYERS)
    text = "people to wait for, you among them (1, with --host 2); bots take the other seats"
    each.add_argument("--people", type=count, metavar="N", help=text)
    seats = command.number(int, 0, MAX_PLAYERS - 1)
    text = "seats to keep free of bots, for players that join while the game runs (0)"
    each.add_argument("--open", type=seats, default=0, metavar="N", help=text)
    each.add_argument("--name", default="you", help="your name, up to 32 bytes (you)")
    each.add_argument("--record", type=Path, metavar="FILE", help="write the match to this file")
    each.add_argument("--auto", action="store_true", help="let a bot play for you")
    each.add_argument("--headless", action="store_true", help="no window: a bot plays for you")
    text = "a picture of the window at its end, such as rts.png"
    each.add_argument("--screenshot", type=Path, metavar="FILE", help=text)
    seconds = command.number(float, 0.1, 1_000_000)
    each.add_argument("--seconds", type=seconds, metavar="N", help="end after N seconds")
    each.set_defaults(run=play)


class Lobby:
    """A game that waits for its players. Bots take the free seats, and then the game starts.

    Args:
        host: the peer that hosts the game.
        people: the number of players to wait for, including the host.
        dial: the host's address for bots; with a rendezvous server, bots use the code instead.
        free: the number of seats that bots leave free for late players.
    """

    def __init__(
        self,
        host: tw.peers.Peer,
        people: int,
        dial: tw.Address,
        rendezvous: tw.Address | None = None,
        free: int = 0,
    ) -> None:
        self._seats = MAX_PLAYERS - free
        self.bots: list[Player] = []
        self._host, self._people, self._dial, self._rendezvous = host, people, dial, rendezvous
        self._is_open = True

    def tick(self, is_enough: bool) -> None:
        """Runs a frame. With ``is_enough``, it stops waiting for further players."""
        present = len(self._host.players)
        if self._is_open and (is_enough or present >= self._people) and present >= 1:
            where = self._dial if self._rendezvous is None else self._host.code
            if not self.bots and where is not None:
                for number in range(1, self._seats - present + 1):
                    peer = tw.peers.Peer.join(
                        where,
                        PROTOCOL,
                        name=f"bot {number}",
                        rendezvous=tw.peers.Rendezvous(self._rendezvous),
                    )
                    self.bots.append(Player(peer, bot=True))
            if present >= self._seats:
                self._host.start(countdown=COUNTDOWN, late_joining=True)
                self._is_open = False
        for bot in self.bots:
            bot.tick()

    def close(self) -> None:
        """Makes the bots leave."""
        for bot in self.bots:
            bot.close()


def play(parsed: argparse.Namespace) -> None:
    """Opens or joins a game, and shows it until it ends or the player leaves."""
    if parsed.host is not None and parsed.join is not None:
        raise command.SampleError("give --host or --join, not both")
    if parsed.headless:
        os.environ["SDL_VIDEODRIVER"] = "dummy"
    command.extra("pygame")
    from tickwire.samples.rts.window import Window

    with ExitStack() as stack:
        peer, lobby = _open(parsed, stack)
        player = Player(peer, bot=parsed.auto or parsed.headless, record=parsed.record)
        stack.callback(player.close)
        window = Window(player)
        stack.enter_context(closing(window.screen))
        if parsed.screenshot is not None:
            stack.callback(window.screen.save, parsed.screenshot)
        code = None
        for _ in command.paced(FRAMES, parsed.seconds):
            if not window.handle_events():
                break
            player.tick()
            if lobby is not None:
                lobby.tick(window.wants_start)
            if player.ended is not None:
                raise command.SampleError(f"the game is over: {player.ended.reason}")
            if peer.code != code:
                code = peer.code
                print(f"Others join with --join {code} --rendezvous {parsed.rendezvous}", flush=True)
            window.draw()
        if parsed.headless and player.lockstep is not None and player.world is not None:
            print(f"turn {player.lockstep.turn}, {len(player.world.alive)} players at the end")


def _open(parsed: argparse.Namespace, stack: ExitStack) -> tuple[tw.peers.Peer, Lobby | None]:
    if parsed.join is not None and parsed.rendezvous is None and ":" not in parsed.join:
        text = "give an address such as 192.0.2.7:40000, or with a code --rendezvous"
        raise command.SampleError(f"{parsed.join!r} has no port: {text}")
    try:
        rendezvous = None if parsed.rendezvous is None else tw.resolve(parsed.rendezvous).result()[0]
        if parsed.join is not None:
            where = parsed.join if rendezvous is not None else tw.resolve(parsed.join).result()[0]
            return tw.peers.Peer.join(
                where, PROTOCOL, name=parsed.name, rendezvous=tw.peers.Rendezvous(rendezvous)
            ), None
        bind = tw.Address(parsed.host or ("0.0.0.0:0" if rendezvous else "127.0.0.1:0"))
        host = tw.peers.Peer.host(
            PROTOCOL,
            name=parsed.name,
            players=MAX_PLAYERS,
            tuning=tw.Tuning(bind=bind),
            rendezvous=tw.peers.Rendezvous(rendezvous, title="strategy" if rendezvous is not None else ""),
        )
    except (OSError, ValueError) as error:
        raise command.SampleError(f"can't open a game: {error}") from None
    is_alone = parsed.host is None and rendezvous is None
    if not is_alone:
        print(f"A game on {host.address}, for others to join; Enter in the window starts it.", flush=True)
    people = parsed.people or (1 if is_alone else 2)
    lobby = Lobby(host, people, _reachable(host.address), rendezvous, parsed.open)
    stack.callback(lobby.close)
    return host, lobby


def _reachable(address: tw.Address) -> tw.Address:
    """Returns the host's address for bots. It isn't the loopback address, so that other players can reach
    the bots.
    """
    if address.host != "0.0.0.0":
        return address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Sends nothing: the system only picks the address it would send from.
            probe.connect(("192.0.2.1", 9))
            own = probe.getsockname()[0]
        except OSError:
            own = "127.0.0.1"
    return tw.Address((own, address.port))
