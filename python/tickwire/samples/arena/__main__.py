"""``python -m tickwire.samples.arena``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import tickwire as tw
from tickwire.arguments import Parser
from tickwire.samples import command
from tickwire.samples.arena.messages import MAX_PLAYERS, PROTOCOL
from tickwire.samples.arena.player import Bot, Player
from tickwire.samples.arena.rules import TICKS_PER_SECOND
from tickwire.samples.arena.server import Arena

# pygame greets on standard output unless told not to.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")


def serve(parsed: argparse.Namespace) -> None:
    """A dedicated server until Ctrl-C, perhaps with bots."""
    with command.open_server(parsed, PROTOCOL, max_clients=MAX_PLAYERS) as server:
        print(f"An arena on {server.address}; Ctrl-C closes it.", flush=True)
        with _bots(parsed, server) as bots:
            arena = Arena(server)
            for number, inbox in enumerate(tw.loop(server, TICKS_PER_SECOND)):
                if parsed.seconds is not None and number >= parsed.seconds * TICKS_PER_SECOND:
                    break
                arena.tick(inbox)
                for bot in bots:
                    bot.tick()


def join(parsed: argparse.Namespace) -> None:
    """A window onto a server elsewhere."""
    _show(parsed, lambda: None, [])


def play(parsed: argparse.Namespace) -> None:
    """A server, bots and a window in one program."""
    command.extra("pygame")
    parsed.listen, parsed.key = tw.Address("127.0.0.1:0"), None
    with (
        command.open_server(parsed, PROTOCOL, max_clients=MAX_PLAYERS) as server,
        _bots(parsed, server) as bots,
    ):
        parsed.address = server.address
        arena = Arena(server)

        def serve() -> None:
            with server.tick() as inbox:
                arena.tick(inbox)

        _show(parsed, serve, bots)


def _show(parsed: argparse.Namespace, serve: Callable[[], None], bots: list[Bot]) -> None:
    command.extra("pygame")
    from tickwire.samples.arena.window import Window

    with command.open_proxy(parsed) as proxy, command.dial_through(proxy, parsed, PROTOCOL) as client:
        player = Player(client, parsed.name)
        pilot = Bot(player, seed=MAX_PLAYERS) if parsed.auto else None
        with closing(Window(player, proxy, parsed.network)) as window:
            for _ in tw.ticks(TICKS_PER_SECOND, parsed.seconds):
                if not window.handle_events():
                    break
                serve()
                for bot in bots:
                    bot.tick()
                player.tick(window.controls() if pilot is None else pilot.controls())
                if player.ended is not None:
                    raise command.disconnected(player.ended, parsed.address)
                window.draw()
            if parsed.screenshot is not None:
                window.save(parsed.screenshot)


@contextmanager
def _bots(parsed: argparse.Namespace, server: tw.Server) -> Iterator[list[Bot]]:
    address = server.address
    if address.host in ("0.0.0.0", "::"):  # everywhere is nowhere to dial
        address = tw.Address(("::1" if address.is_ipv6 else "127.0.0.1", address.port))
    # They have a network of their own, so that their ways look like those of players.
    network = tw.Conditions(latency=0.03, jitter=0.01, loss=0.01)
    with ExitStack() as clients:
        bots: list[Bot] = []
        for number in range(parsed.bots):
            client = tw.Client.connect(
                address, PROTOCOL, key=parsed.key, client_id=number, conditions=network, seed=number
            )
            bots.append(Bot(Player(clients.enter_context(client), f"bot {number + 1}"), seed=number))
        yield bots


def _name(text: str) -> str:
    if not 1 <= len(text.encode()) <= 16:
        raise argparse.ArgumentTypeError(f"must be 1 to 16 bytes, not {text!r}")
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    prog = "python -m tickwire.samples.arena"
    parser = Parser(prog=prog, description="Players shoot at each other over a bad network.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    alone = commands.add_parser("play", help="play with bots: a server and a window in one")
    alone.set_defaults(run=play)
    server = commands.add_parser("serve", help="a server for players elsewhere")
    command.add_server_options(server)
    server.set_defaults(run=serve)
    client = commands.add_parser("join", help="a window onto a server elsewhere")
    command.add_client_options(client)
    client.set_defaults(run=join)

    for each, count in ((alone, 5), (server, 0)):
        kind = command.number(int, 0, MAX_PLAYERS - 1)
        each.add_argument(
            "--bots", type=kind, default=count, metavar="N", help=f"how many bots play ({count})"
        )
    for each in (alone, client):
        command.add_network_option(each, "wifi-bad")
        each.add_argument("--name", default="you", type=_name, help="yours, up to 16 bytes (you)")
        each.add_argument("--auto", action="store_true", help="let a bot steer you")
        text = "a picture of the window at its end, such as arena.png"
        each.add_argument("--screenshot", type=Path, metavar="FILE", help=text)
    for each in (alone, server, client):
        kind = command.number(float, 0.1, 1_000_000)
        each.add_argument("--seconds", type=kind, metavar="N", help="ends by itself after this long")
    return command.run(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
