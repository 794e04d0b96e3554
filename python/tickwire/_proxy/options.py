"""The command line of ``tickwire proxy``."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tickwire as tw
from tickwire._proxy import units

PRESETS = ("3g", "4g", "wifi-bad", "transatlantic", "satellite")


@dataclass(frozen=True)
class Options:
    listen: tw.Address
    to: tw.Address
    up: tw.Conditions
    down: tw.Conditions
    seed: int
    max_clients: int
    idle_timeout: float
    max_bytes: int
    seconds: float | None
    quiet: bool
    json: bool


@dataclass(frozen=True)
class _Setting:
    """An option for the links, in three forms: for both directions, up and down."""

    name: str
    metavar: str
    parse: Callable[[str], Any]
    help: str
    change: Callable[[Any], dict[str, Any]]
    """The arguments of :class:`tickwire.Conditions` that the option sets."""


_SETTINGS = [
    _Setting(
        "delay", "TIME", units.duration, "time a datagram takes, like 50ms", lambda time: {"latency": time}
    ),
    _Setting(
        "jitter",
        "TIME",
        units.duration,
        "most that each is early or late, by itself; up to the delay",
        lambda time: {"jitter": time},
    ),
    _Setting(
        "random-walk",
        "TIME[:TIME]",
        units.pair(units.duration, units.duration, "10ms:1s", default="1s"),
        "jitter in runs: the same of a delay that changes slowly, and how long it stays similar (1s)",
        lambda pair: {"random_walk": tw.testing.RandomWalk(*pair)},
    ),
    _Setting(
        "loss", "SHARE", units.share, "datagrams lost each by itself, like 2%% or 0.02", lambda p: {"loss": p}
    ),
    _Setting(
        "burst",
        "SHARE:COUNT",
        units.pair(units.share, units.number, "5%:5"),
        "datagrams lost in bursts, and how many in a row on average, like 5%%:5",
        lambda pair: {"bursts": tw.testing.Bursts.mean(*pair)},
    ),
    _Setting(
        "outage",
        "SHARE:TIME",
        units.pair(units.share, units.duration, "1%:2s"),
        "time at which nothing passes, and how long on average, like 1%%:2s",
        lambda pair: {"outages": tw.testing.Outages(pair[1], pair[0])},
    ),
    _Setting("duplicate", "SHARE", units.share, "datagrams that arrive twice", lambda p: {"duplicate": p}),
    _Setting(
        "reorder",
        "SHARE",
        units.share,
        "datagrams held back by 50ms, so that later ones overtake them",
        lambda p: {"reorder": p},
    ),
    _Setting(
        "rate",
        "RATE",
        units.rate,
        "what passes at most, like 10mbit (unlimited)",
        lambda rate: {"rate": rate},
    ),
    _Setting(
        "queue",
        "SIZE",
        units.size,
        "bytes that may wait for the rate; what is more is dropped (64KiB)",
        lambda size: {"queue": size},
    ),
    _Setting(
        "overhead",
        "SIZE",
        units.size,
        "headers that count against rate and queue with each datagram (28B)",
        lambda size: {"overhead": size},
    ),
]

# The options of the bottleneck; without the rate the others are useless.
_BOTTLENECK = ("rate", "queue", "overhead")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "Each option of the links is also there for one direction: --up-loss 5% for what\n"
        "goes to the server, --down-loss 5% for what comes from it. The more precise\n"
        "option holds: one direction before both, both before the preset. Each client\n"
        "has links of its own.\n\n"
        "example:\n"
        "  tickwire proxy 127.0.0.1:5000 --to 127.0.0.1:4000 --delay 50ms --loss 2%"
    )
    parser.add_argument("listen", type=_argument(_listen), help="where clients send to, like 127.0.0.1:5000")
    parser.add_argument(
        "--to",
        required=True,
        metavar="ADDRESS",
        help="the server, like 127.0.0.1:4000 or play.example.org:4000",
    )
    links = parser.add_argument_group("links")
    links.add_argument("--preset", choices=PRESETS, help="a whole network; other options override it")
    for setting in _SETTINGS:
        parse = _argument(setting.parse)
        links.add_argument(f"--{setting.name}", type=parse, metavar=setting.metavar, help=setting.help)
        for direction in ("up", "down"):
            links.add_argument(f"--{direction}-{setting.name}", type=parse, help=argparse.SUPPRESS)
    links.add_argument(
        "--seed", type=_whole(0, 2**64 - 1), metavar="N", help="makes luck repeatable (random)"
    )
    running = parser.add_argument_group("running")
    running.add_argument(
        "--seconds", type=_argument(units.number), metavar="N", help="ends by itself after N seconds"
    )
    running.add_argument(
        "--max-clients",
        type=_whole(1, 65_536),
        default=1024,
        metavar="N",
        help="datagrams of more are dropped (1024)",
    )
    running.add_argument(
        "--idle-timeout",
        type=_argument(units.duration),
        default=60.0,
        metavar="TIME",
        help="silence after which a client is forgotten (60s)",
    )
    running.add_argument(
        "--max-bytes",
        type=_argument(units.size),
        default=64 << 20,
        metavar="SIZE",
        help="memory of the datagrams under way; what is more is dropped (64MiB)",
    )
    running.add_argument("--quiet", action="store_true", help="print nothing but errors, and --json's line")
    running.add_argument("--json", action="store_true", help="end with all counts as one line of JSON")


def parse(arguments: argparse.Namespace) -> Options:
    """Returns the options, and looks up the server's name if it has one.

    Raises:
        ValueError: the options contradict each other, or the name is not found.
    """
    seed = arguments.seed
    return Options(
        listen=arguments.listen,
        to=_server(arguments.to, arguments.listen),
        up=_conditions(arguments, "up"),
        down=_conditions(arguments, "down"),
        seed=secrets.randbelow(2**32) if seed is None else seed,
        max_clients=arguments.max_clients,
        idle_timeout=arguments.idle_timeout,
        max_bytes=arguments.max_bytes,
        seconds=arguments.seconds,
        quiet=arguments.quiet,
        json=arguments.json,
    )


def _conditions(arguments: argparse.Namespace, direction: str) -> tw.Conditions:
    """The conditions of a direction: the preset, changed by the options for both directions, then by the
    options for this direction.
    """
    conditions = tw.Conditions()
    if arguments.preset is not None:
        up, down = tw.Conditions.preset(arguments.preset)
        conditions = up if direction == "up" else down
    changes: dict[str, Any] = {}
    slowest: dict[str, int] = {}
    if (given := conditions.bottleneck) is not None:
        slowest = {name: getattr(given, name) for name in _BOTTLENECK}
    for setting in _SETTINGS:
        for flag in (setting.name, f"{direction}-{setting.name}"):
            value = getattr(arguments, flag.replace("-", "_"))
            if value is None:
                continue
            try:
                (slowest if setting.name in _BOTTLENECK else changes).update(setting.change(value))
            except ValueError as error:
                raise ValueError(f"argument --{flag}: {error}") from None
            if setting.name in _BOTTLENECK and not _has_rate(arguments, direction):
                raise ValueError(f"argument --{flag}: needs a --rate")
    try:
        if slowest:
            changes["bottleneck"] = tw.testing.Bottleneck(**slowest)
        return conditions.replace(**changes)
    except ValueError as error:
        raise ValueError(f"the link {direction}: {error}") from None


def _has_rate(arguments: argparse.Namespace, direction: str) -> bool:
    given = (arguments.preset, arguments.rate, getattr(arguments, f"{direction}_rate"))
    return any(value is not None for value in given)


def _listen(text: str) -> tw.Address:
    """The proxy's own address. It may have a name, such as localhost:5000."""
    try:
        return tw.Address(text)
    except ValueError as error:
        # What looks names up in Python does it here too.
        error = ValueError(str(error).partition("; tickwire.resolve()")[0])
        host = text.rpartition(":")[0]
        if not host or host[0] == "[":
            raise error from None
        try:
            return tw.resolve(text).result()[0]
        except (OSError, ValueError):
            raise error from None


def _server(text: str, listen: tw.Address) -> tw.Address:
    """The server's address. If the name has several addresses, one with the proxy's address family."""
    try:
        return tw.Address(text)
    except ValueError:
        pass
    try:
        found = tw.resolve(text).result()
    except (OSError, ValueError) as error:
        raise ValueError(f"argument --to: {error}") from None
    return next((address for address in found if address.is_ipv6 == listen.is_ipv6), found[0])


def _argument(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Makes an argument type whose ValueErrors argparse prints unchanged."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def _whole(low: int, high: int) -> Callable[[str], int]:
    """Makes an argument type for whole numbers from ``low`` to ``high``."""

    def convert(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"must be a whole number from {low} to {high}, not {text!r}")
        return int(text)

    return convert
