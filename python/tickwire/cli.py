"""The ``tickwire`` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

import tickwire
from tickwire import demo, inspection, proxy, soak
from tickwire.arguments import Parser
from tickwire.capture import commands as capture_commands
from tickwire.demo import options as demo_options
from tickwire.doctor import commands as doctor
from tickwire.live import commands as top
from tickwire.plots import commands as plot
from tickwire.proxy import options as proxy_options
from tickwire.soak import options as soak_options


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line (by default this process's); returns the exit code."""
    parser = _make_parser()
    parsed = parser.parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = parsed.run
    return run(parsed)


def _make_parser() -> Parser:
    parser = Parser(prog="tickwire", description="Real-time game networking for Python.")
    parser.add_argument("--version", action="version", version=f"tickwire {tickwire.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_proxy(commands)
    _add_inspect(commands)
    text = "capture a game's packets for Wireshark; open, show and replay captures"
    capture_commands.add_commands(_add(commands, "capture", text))
    top.add_arguments(
        _add(commands, "top", "watch the connections of a server that has a stats port", top.run)
    )
    text = "draw a capture's rates and losses, or a soak's counts, as a PNG"
    plot.add_arguments(_add(commands, "plot", text, plot.run))
    text = "examine this machine, and the way to a server, and say what to change"
    doctor.add_arguments(_add(commands, "doctor", text, doctor.run))
    _add_soak(commands)
    return parser


def _add(
    commands: argparse._SubParsersAction[Parser],
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], int] | None = None,
) -> Parser:
    """A command, with what it does in a sentence; ``run`` may be set later."""
    parser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    if run:
        parser.set_defaults(run=run)
    return parser


def _add_demo(commands: argparse._SubParsersAction[Parser]) -> None:
    text = "play a small game over real sockets and a bad network, and check every reliable message"
    parser = _add(commands, "demo", text)
    demo_options.add_arguments(parser)

    def run(parsed: argparse.Namespace) -> int:
        try:
            options = demo_options.parse(parsed)
        except ValueError as error:
            parser.error(str(error))
        return demo.run(options)

    parser.set_defaults(run=run)


def _add_proxy(commands: argparse._SubParsersAction[Parser]) -> None:
    text = "put bad network conditions between any UDP clients and their server"
    parser = _add(commands, "proxy", text)
    proxy_options.add_arguments(parser)

    def run(parsed: argparse.Namespace) -> int:
        try:
            return proxy.run(proxy_options.parse(parsed))
        except ValueError as error:
            parser.error(str(error))

    parser.set_defaults(run=run)


def _add_inspect(commands: argparse._SubParsersAction[Parser]) -> None:
    text = "show what each field of a protocol's messages costs, and its channels"
    parser = _add(commands, "inspect", text)
    parser.add_argument("protocol", metavar="MODULE:PROTOCOL", help="where it is, such as game:protocol")

    def run(parsed: argparse.Namespace) -> int:
        try:
            protocol = inspection.find(parsed.protocol)
        except ValueError as error:
            parser.error(str(error))
        print(inspection.describe(protocol))
        return 0

    parser.set_defaults(run=run)


def _add_soak(commands: argparse._SubParsersAction[Parser]) -> None:
    text = "play random games on random bad networks in virtual time, and check all that arrives"
    parser = _add(commands, "soak", text)
    soak_options.add_arguments(parser)

    def run(parsed: argparse.Namespace) -> int:
        try:
            return soak.run(soak_options.parse(parsed))
        except ValueError as error:
            parser.error(str(error))

    parser.set_defaults(run=run)


if __name__ == "__main__":
    sys.exit(main())
