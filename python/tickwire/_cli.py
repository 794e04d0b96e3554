"""The ``tickwire`` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

import tickwire
from tickwire._arguments import Parser
from tickwire._interrupts import exit_code


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command with these arguments; None: with this process's arguments. Returns the exit code."""
    return exit_code(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = Parser(prog="tickwire", description="Real-time game networking for Python.")
    parser.add_argument("--version", action="version", version=f"tickwire {tickwire.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, (text, fill) in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        command.fill = fill
    parsed = parser.parse_args(arguments)
    code: int = parsed.run(parsed)
    return code


def _demo(parser: Parser) -> None:
    from tickwire import _demo as demo
    from tickwire._demo import options

    options.add_arguments(parser)

    def run(parsed: argparse.Namespace) -> int:
        try:
            chosen = options.parse(parsed)
        except ValueError as error:
            parser.error(str(error))
        return demo.run(chosen)

    parser.set_defaults(run=run)


def _proxy(parser: Parser) -> None:
    from tickwire import _proxy as proxy
    from tickwire._proxy import options

    options.add_arguments(parser)

    def run(parsed: argparse.Namespace) -> int:
        try:
            return proxy.run(options.parse(parsed))
        except ValueError as error:
            parser.error(str(error))

    parser.set_defaults(run=run)


def _rendezvous(parser: Parser) -> None:
    from tickwire import _meeting as meeting
    from tickwire._meeting import options

    options.add_rendezvous(parser)

    def run(parsed: argparse.Namespace) -> int:
        try:
            return meeting.run_rendezvous(options.parse_rendezvous(parsed))
        except ValueError as error:
            parser.error(str(error))

    parser.set_defaults(run=run)


def _relay(parser: Parser) -> None:
    from tickwire import _meeting as meeting
    from tickwire._meeting import options

    options.add_relay(parser)

    def run(parsed: argparse.Namespace) -> int:
        try:
            return meeting.run_relay(options.parse_relay(parsed))
        except ValueError as error:
            parser.error(str(error))

    parser.set_defaults(run=run)


def _inspect(parser: Parser) -> None:
    from tickwire import _inspection as inspection

    parser.add_argument(
        "protocol", metavar="MODULE:PROTOCOL", help="the protocol's name, such as game:protocol"
    )

    def run(parsed: argparse.Namespace) -> int:
        try:
            protocol = inspection.find(parsed.protocol)
        except ValueError as error:
            parser.error(str(error))
        print(inspection.describe(protocol))
        return 0

    parser.set_defaults(run=run)


def _capture(parser: Parser) -> None:
    from tickwire.capture import _commands as commands

    commands.add_commands(parser)


def _top(parser: Parser) -> None:
    from tickwire.live import _commands as commands

    commands.add_arguments(parser)
    parser.set_defaults(run=commands.run)


def _plot(parser: Parser) -> None:
    from tickwire._plots import commands

    commands.add_arguments(parser)
    parser.set_defaults(run=commands.run)


def _doctor(parser: Parser) -> None:
    from tickwire._doctor import commands

    commands.add_arguments(parser)
    parser.set_defaults(run=commands.run)


def _replay(parser: Parser) -> None:
    from tickwire._replay import commands

    commands.add_arguments(parser)
    parser.set_defaults(run=commands.run)


def _fleet(parser: Parser) -> None:
    from tickwire.fleet import _load as load

    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    text = "fill rooms on this machine with bots over real sockets, and measure"
    load.add_arguments(commands.add_parser("load", help=text, description=f"{text[0].upper()}{text[1:]}."))


COMMANDS: dict[str, tuple[str, Callable[[Parser], None]]] = {
    "demo": (
        "play a small game over real sockets and a bad network, and check every reliable message",
        _demo,
    ),
    "proxy": ("put bad network conditions between any UDP clients and their server", _proxy),
    "rendezvous": ("give games codes, and introduce peers behind NATs to each other", _rendezvous),
    "relay": ("carry datagrams for peers that can't reach each other", _relay),
    "inspect": ("show what each field of a protocol's messages costs, and its channels", _inspect),
    "capture": ("capture a game's packets for Wireshark; open, show and replay captures", _capture),
    "top": ("watch the connections of a server that has a stats port", _top),
    "plot": ("draw a capture's rates and losses as a PNG", _plot),
    "doctor": ("examine this machine and the path to a server, and say what to change", _doctor),
    "fleet": ("what rooms on many machines need: load, to find how many one carries", _fleet),
    "replay": ("show the turns, commands and CRCs of a recorded match, or where two matches differ", _replay),
}
"""Each command's description, and the function that imports the command and adds its arguments."""


if __name__ == "__main__":
    sys.exit(main())
