"""``python -m tickwire.samples.chat``."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Sequence

import tickwire as tw
from tickwire.samples import command
from tickwire.samples.chat.room import MAX_PEOPLE, PROTOCOL, Room

TICKS_PER_SECOND = 30


def serve(parsed: argparse.Namespace) -> None:
    """Runs a room until Ctrl-C."""
    with command.open_server(parsed, PROTOCOL, max_clients=MAX_PEOPLE) as server:
        print(f"A room on {server.address}; Ctrl-C closes it.", flush=True)
        room = Room(server)
        with tw.run(server, TICKS_PER_SECOND, linger=1, reason="the room closed") as ticks:
            for _, inbox in ticks:
                room.tick(inbox, 1 / TICKS_PER_SECOND)


def join(parsed: argparse.Namespace) -> None:
    """Shows a room in the terminal."""
    command.extra("textual")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise command.SampleError("needs a terminal: run it in one, not in a pipe or in the background")
    from tickwire.samples.chat.screen import ChatApp

    with command.dial(parsed, PROTOCOL) as client:
        failure = ChatApp(client, parsed.name, parsed.address).run()
        client.close(linger=1)  # so that the last line arrives
    if failure is not None:
        raise failure


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code."""
    parser = command.Parser(prog="python -m tickwire.samples.chat", description="A chat in the terminal.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    server = commands.add_parser("serve", help="open a room")
    command.add_server_options(server)
    server.set_defaults(run=serve)
    client = commands.add_parser("join", help="enter a room")
    command.add_client_options(client)
    command.add_network_option(client)
    client.add_argument("--name", default=_own_name(), help="what others call you (the name of your account)")
    client.set_defaults(run=join)
    return command.run(parser, arguments)


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # an account without a name, as in some containers
        return "someone"


if __name__ == "__main__":
    sys.exit(main())
