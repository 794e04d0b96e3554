"""Common code of the samples: options, keys, and error sentences instead of tracebacks."""

from __future__ import annotations

import argparse
import importlib
import secrets
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import tickwire as tw
from tickwire._arguments import Parser as Parser
from tickwire._interrupts import exit_code
from tickwire._pace import paced as paced

DEFAULT = tw.Address("127.0.0.1:40000")
"""The default address of servers, for servers and clients."""
NETWORKS = ("none", "3g", "4g", "wifi-bad", "transatlantic", "satellite")
# Seconds: patience with a server that doesn't answer. Short, as the samples' servers are usually near.
TIMEOUT = 5
MAX_TOKEN_BYTES = 2048

DIAL = tw.Tuning()

T = TypeVar("T")


class SampleError(Exception):
    """The sample can't continue. The text is a sentence that says what to do."""


def run(parser: Parser, arguments: Sequence[str] | None) -> int:
    """Parses the command line and runs the chosen command (its default ``run``). Returns the exit code."""
    parsed = parser.parse_args(arguments)
    try:
        return exit_code(lambda: parsed.run(parsed))
    except SampleError as failure:
        print(f"{parser.prog}: {failure}", file=sys.stderr)
        return 1


def add_server_options(parser: argparse.ArgumentParser, default: tw.Address = DEFAULT) -> None:
    """Adds ``--listen`` and ``--key``."""
    address = argument(tw.Address)
    text = f"where to listen ({default}); with 0.0.0.0 everyone who can reach this machine may come"
    parser.add_argument("--listen", metavar="ADDRESS", type=address, default=default, help=text)
    _add_key_option(parser)


def add_client_options(parser: argparse.ArgumentParser) -> None:
    """Adds the server's address and ``--key``."""
    text = f"the server, like {DEFAULT} (the default) or play.example.org:{DEFAULT.port}"
    look_up = argument(_look_up)
    parser.add_argument("address", metavar="ADDRESS", type=look_up, nargs="?", default=DEFAULT, help=text)
    _add_key_option(parser)


def add_network_option(parser: argparse.ArgumentParser, default: str = "none") -> None:
    """Adds ``--network``: a simulated bad network, by name."""
    text = f"the network to play over: {', '.join(NETWORKS)} ({default})"
    parser.add_argument("--network", choices=NETWORKS, metavar="KIND", default=default, help=text)


def _add_key_option(parser: argparse.ArgumentParser) -> None:
    text = "a file with the key of both sides, 64 hex digits; without, everyone has the key"
    parser.add_argument("--key", metavar="FILE", type=argument(_read_key), help=text)


def open_server(parsed: argparse.Namespace, protocol: tw.Protocol, **settings: Any) -> tw.Server:
    """Makes the server for the options."""
    try:
        return tw.Server(parsed.listen, protocol, key=parsed.key, **settings)
    except OSError as error:
        raise SampleError(cannot_listen(error)) from None


def local_address(server: tw.Server) -> tw.Address:
    """The address of a server for clients in the same program. Clients can't connect to an address such as
    0.0.0.0.
    """
    address = server.address
    if address.host not in ("0.0.0.0", "::"):
        return address
    return tw.Address(("::1" if address.is_ipv6 else "127.0.0.1", address.port))


def fetch_token(
    kind: str, url: str, asked: urllib.request.Request, timeout: float, refused: Callable[[int, str], str]
) -> tw.ConnectToken:
    """Asks a web application for a token.

    Args:
        kind: the application's name in error sentences.
        url: the application's URL in error sentences.
        asked: the request.
        timeout: seconds in which the application must answer.
        refused: a function that makes the error sentence from a refusal's status and text.

    Raises:
        SampleError: no token was returned; the text says why.
    """
    try:
        with urllib.request.urlopen(asked, timeout=timeout) as answer:
            return tw.ConnectToken.from_bytes(answer.read(MAX_TOKEN_BYTES + 1))
    except urllib.error.HTTPError as error:
        with error:
            text = refused(error.code, error.read(200).decode(errors="replace").strip())
    except OSError as error:
        reason = getattr(error, "reason", error)
        text = f"no {kind} at {url} ({reason}): start one there, or name another with --backend"
    except ValueError as error:
        text = f"{url} sent no token ({error}): is it this sample's {kind}?"
    raise SampleError(text) from None


def local_clients(
    parsed: argparse.Namespace, protocol: tw.Protocol, stack: ExitStack, conditions: tw.Conditions
) -> Iterator[tw.Client]:
    """Makes the ``--bots`` clients of ``parsed.address``, each over its own simulated network."""
    for number in range(parsed.bots):
        debugging = tw.testing.Debugging(conditions=conditions, seed=number)
        client = tw.Client.connect(
            parsed.address, protocol, key=parsed.key, client_id=number, debugging=debugging
        )
        yield stack.enter_context(client)


def add_game(
    parser: Parser,
    arguments: Sequence[str] | None,
    host: Callable[[argparse.Namespace], None],
    join: Callable[[argparse.Namespace], None],
    max_players: int,
) -> list[str]:
    """Adds the commands of a game with a window: ``play``, ``host`` (also ``--host``), ``serve`` and
    ``join``. Returns the arguments to parse.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["--host"]:
        arguments[0] = "host"
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    kinds = {
        "play": ("play with bots: a server and a window in one", host, 5),
        "host": ("the same for others to join, over no bad network (also: --host)", host, 0),
        "serve": ("a server for players elsewhere", host, 0),
        "join": ("a window onto a server elsewhere", join, None),
    }
    for kind, (text, run, bots) in kinds.items():
        each, plays = commands.add_parser(kind, help=text), kind != "serve"
        each.set_defaults(run=run, plays=plays, is_alone=kind == "play")
        if kind == "play":
            each.set_defaults(listen=tw.Address("127.0.0.1:0"), key=None)
        elif kind == "join":
            add_client_options(each)
        else:
            add_server_options(each)
        if bots is not None:
            count, text = number(int, 0, max_players - 1), f"how many bots play ({bots})"
            each.add_argument("--bots", type=count, default=bots, metavar="N", help=text)
        if plays:
            add_network_option(each, "none" if kind == "host" else "wifi-bad")
            each.add_argument("--name", default="you", type=_name, help="yours, up to 16 bytes (you)")
            each.add_argument("--auto", action="store_true", help="let a bot steer you")
            text = "no window: a bot plays for you, and it says in the end how that went"
            each.add_argument("--headless", action="store_true", help=text)
            text = "a picture of the window at its end, such as arena.png"
            each.add_argument("--screenshot", type=Path, metavar="FILE", help=text)
        seconds = number(float, 0.1, 1_000_000)
        each.add_argument("--seconds", type=seconds, metavar="N", help="ends by itself after so long")
    return arguments


def _name(text: str) -> str:
    if not 1 <= len(text.encode()) <= 16:
        raise argparse.ArgumentTypeError(f"must be 1 to 16 bytes, not {text!r}")
    return text


def cannot_listen(error: OSError) -> str:
    """The sentence for an address that can't be bound."""
    return (
        f"can't listen: {error.strerror or error}; end what uses the port, or choose another address with "
        "--listen (port 0 picks a free one)"
    )


@contextmanager
def opening_game() -> Iterator[None]:
    """A context manager that turns errors of hosting or joining into sentences."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise SampleError(f"can't open a game: {error}") from None


def add_peer_options(parser: argparse.ArgumentParser, host: str, join: str) -> None:
    """Adds ``--host`` and ``--join`` with these help texts, and ``--seconds``, for a game between peers."""
    address, seconds, everywhere = argument(tw.Address), number(float, 0.1, 1_000_000), "0.0.0.0:40000"
    text = f"{host} ({everywhere}, also without any option)"
    parser.add_argument("--host", type=address, default=everywhere, metavar="ADDRESS", help=text)
    parser.add_argument("--join", type=argument(_look_up), metavar="ADDRESS", help=join)
    parser.add_argument("--seconds", type=seconds, metavar="N", help="end after N seconds")


@contextmanager
def dial(
    parsed: argparse.Namespace,
    protocol: tw.Protocol,
    *,
    tuning: tw.Tuning = DIAL,
    client_id: int | None = None,
) -> Iterator[tw.Client]:
    """Makes a client of the server, over the network of the options. It isn't connected yet."""
    if parsed.network == "none":
        client = tw.Client.connect(
            parsed.address,
            protocol,
            key=parsed.key,
            client_id=client_id,
            tuning=tuning.replace(timeout=TIMEOUT),
        )
        with client:
            yield client
    else:
        with (
            open_proxy(parsed) as proxy,
            dial_through(proxy, parsed, protocol, tuning=tuning, client_id=client_id) as client,
        ):
            yield client


def open_proxy(parsed: argparse.Namespace) -> tw.testing.Proxy:
    """Opens the network of the options: a proxy in front of the server, with bad conditions in both
    directions.
    """
    up, down = conditions(parsed.network)
    listen = "[::1]:0" if parsed.address.is_ipv6 else "127.0.0.1:0"
    return tw.testing.Proxy(listen, to=parsed.address, up=up, down=down)


def dial_through(
    proxy: tw.testing.Proxy,
    parsed: argparse.Namespace,
    protocol: tw.Protocol,
    *,
    tuning: tw.Tuning = DIAL,
    client_id: int | None = None,
    give_up_after: float | None = None,
) -> tw.Client:
    """Makes a client of the server behind the proxy. It isn't connected yet. With ``give_up_after``, it
    reconnects for this many seconds.
    """

    number = secrets.randbits(64) if client_id is None else client_id

    def token() -> tw.ConnectToken:
        # It names the proxy for the client to dial, and for the server its own address.
        return tw.ConnectToken.generate(
            protocol=protocol,
            key=parsed.key,
            client_id=number,
            servers=[proxy.address],
            internal_servers=[parsed.address],
            timeout=TIMEOUT,
        )

    reconnect = None
    if give_up_after is not None:
        source = None if parsed.key is None else token
        reconnect = tw.connections.Reconnect(source, give_up_after=give_up_after)
    if parsed.key is not None:
        return tw.Client(protocol, token(), reconnect=reconnect, tuning=tuning)
    tuning = tuning.replace(timeout=TIMEOUT)
    return tw.Client.connect(proxy.address, protocol, client_id=number, reconnect=reconnect, tuning=tuning)


def conditions(network: str) -> tuple[tw.Conditions, tw.Conditions]:
    """The conditions of ``--network``, up and down."""
    return (tw.Conditions(), tw.Conditions()) if network == "none" else tw.Conditions.preset(network)


def disconnected(reason: tw.DisconnectReason, address: object, words: str | None = None) -> SampleError:
    """The end of a connection as a sentence that says what to do, with the other side's text."""
    match reason:
        case (
            tw.DisconnectReason.REQUEST_TIMED_OUT
            | tw.DisconnectReason.RESPONSE_TIMED_OUT
            | tw.DisconnectReason.UNREACHABLE
        ):
            text = f"no server answers at {address}: start one there, and give both sides the same --key"
        case tw.DisconnectReason.REFUSED:
            text = f"the server at {address} refuses the connection: give both sides the same --key"
        case tw.DisconnectReason.PROTOCOL_MISMATCH:
            text = f"the server at {address} is another version of this sample: update the older one"
        case tw.DisconnectReason.SERVER_FULL:
            text = f"the server at {address} is full: try again later"
        case tw.DisconnectReason.TIMED_OUT:
            text = f"{address} fell silent: see whether network and server are up, and connect again"
        case _:
            why = str(reason) if words is None else f"{reason}: {words}"
            text = f"the connection to {address} is over ({why}): connect again to go on"
    return SampleError(text)


def extra(name: str) -> ModuleType:
    """Imports a module that isn't part of Tickwire."""
    try:
        return importlib.import_module(name)
    except ImportError:
        package = {"pygame": "pygame-ce"}.get(name, name)
        raise SampleError(f"needs {package}: pip install '.[samples]' in a checkout") from None


def argument(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Makes an argument type whose ValueErrors and OSErrors argparse prints as sentences."""

    def convert(text: str) -> T:
        try:
            return parse(text)
        except OSError as error:
            raise argparse.ArgumentTypeError(f"{text}: {error.strerror or error}") from None
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def number(kind: Callable[[str], float], low: float, high: float) -> Callable[[str], float]:
    """Makes an argument type for numbers from ``low`` to ``high``."""

    def parse(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            what = "a whole number" if kind is int else "a number"
            raise ValueError(f"must be {what} from {low:,} to {high:,}, not {text!r}")
        return value

    return argument(parse)


def _look_up(text: str) -> tw.Address:
    try:
        return tw.Address(text)
    except ValueError:
        return tw.resolve(text).result()[0]


def _read_key(path: str) -> bytes:
    try:
        key = bytes.fromhex(Path(path).read_text("ascii"))
    except ValueError:
        key = b""
    if len(key) != 32:
        raise ValueError(f"{path} must hold 64 hex digits, such as tickwire.generate_key().hex() makes")
    return key
