"""The command lines of ``tickwire rendezvous`` and ``tickwire relay``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tickwire as tw
from tickwire._proxy import units


@dataclass(frozen=True)
class Running:
    seconds: float | None
    quiet: bool
    json: bool
    metrics: tw.Address | None


@dataclass(frozen=True)
class RendezvousOptions:
    listen: tw.Address
    second_port: int | None
    relay: tw.Address | None
    key: bytes | None
    relay_rate: int
    max_games: int
    running: Running


@dataclass(frozen=True)
class RelayOptions:
    listen: tw.Address
    key: bytes
    max_channels: int
    max_rate: float
    running: Running


def add_rendezvous(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("listen", type=_argument(tw.Address), help="the address to bind: a.b.c.d:port")
    parser.add_argument(
        "--second-port",
        type=_argument(_second_port),
        default=0,
        metavar="PORT",
        help="a second port, by which peers learn how their NAT assigns ports; or 'none' (any free one)",
    )
    parser.add_argument(
        "--relay",
        type=_argument(tw.Address),
        metavar="ADDRESS",
        help="the relay's address, as peers reach it; needs --key-file",
    )
    parser.add_argument(
        "--key-file", type=_argument(_key), metavar="FILE", help="64 hex digits, the same as the relay's"
    )
    parser.add_argument(
        "--relay-rate",
        type=_argument(units.rate),
        default=100_000,
        metavar="RATE",
        help="the relay's rate for each pair (800kbit)",
    )
    parser.add_argument("--max-games", type=int, default=10_000, metavar="N", help="more are refused (10000)")
    _add_running(parser)


def add_relay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("listen", type=_argument(tw.Address), help="the address to bind: a.b.c.d:port")
    parser.add_argument(
        "--key-file",
        type=_argument(_key),
        metavar="FILE",
        required=True,
        help="64 hex digits, the same as the rendezvous server's",
    )
    parser.add_argument("--max-channels", type=int, default=4096, metavar="N", help="more are refused (4096)")
    parser.add_argument(
        "--max-rate",
        type=_argument(units.rate),
        default=12_500_000,
        metavar="RATE",
        help="the rate of all pairs together; more is dropped (100mbit)",
    )
    _add_running(parser)


def _add_running(parser: argparse.ArgumentParser) -> None:
    running = parser.add_argument_group("running")
    running.add_argument(
        "--metrics",
        type=_argument(tw.Address),
        metavar="ADDRESS",
        help="serve counters to Prometheus over HTTP here, such as 127.0.0.1:9101",
    )
    running.add_argument("--seconds", type=_argument(units.number), metavar="N", help="end after N seconds")
    running.add_argument("--quiet", action="store_true", help="print nothing but errors, and --json's line")
    running.add_argument("--json", action="store_true", help="end with all counts as one line of JSON")


def parse_rendezvous(arguments: argparse.Namespace) -> RendezvousOptions:
    """The options from the arguments.

    Raises:
        ValueError: the options contradict each other.
    """
    if (arguments.relay is None) != (arguments.key_file is None):
        raise ValueError("argument --relay: must be given together with --key-file")
    return RendezvousOptions(
        listen=arguments.listen,
        second_port=arguments.second_port,
        relay=arguments.relay,
        key=arguments.key_file,
        relay_rate=arguments.relay_rate,
        max_games=arguments.max_games,
        running=_running(arguments),
    )


def parse_relay(arguments: argparse.Namespace) -> RelayOptions:
    """The options from the arguments."""
    return RelayOptions(
        listen=arguments.listen,
        key=arguments.key_file,
        max_channels=arguments.max_channels,
        max_rate=float(arguments.max_rate),
        running=_running(arguments),
    )


def _running(arguments: argparse.Namespace) -> Running:
    return Running(
        seconds=arguments.seconds, quiet=arguments.quiet, json=arguments.json, metrics=arguments.metrics
    )


def _second_port(text: str) -> int | None:
    if text == "none":
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= 65_535):
        raise ValueError(f"must be a port or 'none', not {text!r}")
    return int(text)


def _key(text: str) -> bytes:
    """Reads the key from a file. If it were an argument, the list of processes would show it."""
    try:
        digits = Path(text).read_text("ascii").strip()
        key = bytes.fromhex(digits)
    except OSError as error:
        raise ValueError(f"{text}: {error.strerror}") from None
    except ValueError:
        key = b""
    if len(key) != 32:
        raise ValueError(f"{text} must have 64 hex digits, as of: openssl rand -hex 32")
    return key


def _argument(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Makes an argument type whose ValueErrors argparse prints unchanged."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert
