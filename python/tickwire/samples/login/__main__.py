"""``python -m tickwire.samples.login``."""

from __future__ import annotations

import argparse
import getpass
import json
import ssl
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import tickwire as tw
from tickwire.samples import command
from tickwire.samples.login import game

BACKEND = "http://127.0.0.1:8000"
TIMEOUT = 10.0


def make_key(parsed: argparse.Namespace) -> None:
    """Writes a new key to a file that only this user can read."""
    try:
        parsed.file.touch(mode=0o600, exist_ok=False)
        parsed.file.write_text(tw.generate_key().hex() + "\n", "ascii")
    except OSError as error:
        text = f"can't make {parsed.file}: {error.strerror}; name a file that isn't there yet"
        raise command.SampleError(text) from None
    print(f"{parsed.file} is the key of backend and servers. Keep it from everyone else.")


def serve_logins(parsed: argparse.Namespace) -> None:
    """Runs the backend until Ctrl-C."""
    command.extra("flask")
    from werkzeug.serving import make_server

    from tickwire.samples.login.backend import Backend, make_app

    app = make_app(Backend(_key(parsed), parsed.server or [command.DEFAULT], dict(parsed.account)))
    encryption = _encryption(*parsed.tls) if parsed.tls else None
    host, port = parsed.listen.host, parsed.listen.port
    # If the port is in use, this prints so and ends the program.
    with make_server(host, port, app, threaded=True, ssl_context=encryption) as server:
        kind = "https" if parsed.tls else "http"
        print(f"Logins at {kind}://{host}:{server.port}/login; Ctrl-C ends it.", flush=True)
        server.serve_forever()


def _encryption(certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        text = f"can't use {certificate}: {error.strerror or error}; give --tls PEM files of both"
        raise command.SampleError(text) from None
    return context


def serve(parsed: argparse.Namespace) -> None:
    """Runs the game server until Ctrl-C."""
    _key(parsed)
    with command.open_server(
        parsed, game.PROTOCOL, access=tw.tokens.Access(max_token_lifetime=game.TOKEN_SECONDS)
    ) as server:
        print(f"The game is at {server.address}; Ctrl-C ends it.", flush=True)
        with tw.run(server, game.TICKS_PER_SECOND) as ticks:
            for _, inbox in ticks:
                game.tick(server, inbox)


def play(parsed: argparse.Namespace) -> None:
    """Logs in, and plays with the token."""
    if sys.stdin.isatty():
        password = getpass.getpass(f"Password of {parsed.name}: ")
    else:
        password = sys.stdin.readline().rstrip("\n")
    token = log_in(parsed.backend, parsed.name, password)
    outcome = game.play(token)
    if isinstance(outcome, tw.DisconnectReason):
        raise command.disconnected(outcome, token.servers[0])
    print(f"The server knows us as {outcome}.")


def log_in(backend: str, name: str, password: str) -> tw.ConnectToken:
    """Asks a backend for a token.

    Raises:
        SampleError: the backend refuses; the text says why.
    """
    body = json.dumps({"name": name, "password": password}).encode()
    headers = {"Content-Type": "application/json"}

    def refused(code: int, _said: str) -> str:
        if code == 401:
            return f"{backend} doesn't let {name} in: wrong name or password; try again"
        return f"{backend} answered {code}: is it this sample's backend?"

    asked = urllib.request.Request(f"{backend}/login", body, headers)
    return command.fetch_token("backend", backend, asked, TIMEOUT, refused)


def _key(parsed: argparse.Namespace) -> bytes:
    if parsed.key is None:
        raise command.SampleError("needs --key FILE: the command `key FILE` makes one")
    key: bytes = parsed.key
    return key


def _account(text: str) -> tuple[str, str]:
    name, colon, password = text.partition(":")
    if not (name and colon and password) or len(name.encode()) > 64:
        raise ValueError(f"must be NAME:PASSWORD, the name of up to 64 bytes, not {text!r}")
    return name, password


def _backend(text: str) -> str:
    url = urlsplit(text)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError(f"must be an address like {BACKEND}, not {text!r}")
    if url.scheme == "http" and url.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise ValueError(f"passwords and tokens go over https, other than on this machine; not {text!r}")
    return text.rstrip("/")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code."""
    prog = "python -m tickwire.samples.login"
    parser = command.Parser(prog=prog, description="A login backend, a game server behind it, and a player.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    key = commands.add_parser("key", help="make a key for backend and server")
    key.add_argument("file", metavar="FILE", type=Path, help="the file to write")
    key.set_defaults(run=make_key)

    backend = commands.add_parser("backend", help="give tokens to players who log in")
    command.add_server_options(backend, tw.Address("127.0.0.1:8000"))
    backend.set_defaults(run=serve_logins)
    account = command.argument(_account)
    text = "an account; give as many as there are"
    backend.add_argument(
        "--account", type=account, action="append", required=True, metavar="NAME:PASSWORD", help=text
    )
    address = command.argument(tw.Address)
    text = f"a game server, as players reach it ({command.DEFAULT}); give as many as there are"
    backend.add_argument("--server", type=address, action="append", metavar="ADDRESS", help=text)
    text = "certificate and key, to speak HTTPS"
    backend.add_argument("--tls", nargs=2, metavar=("CERTIFICATE", "KEY"), help=text)

    server = commands.add_parser("serve", help="the game server")
    command.add_server_options(server)
    server.set_defaults(run=serve)

    player = commands.add_parser("play", help="log in and enter the game")
    player.add_argument(
        "name", metavar="NAME", help="the account; the password is asked for, or read from a pipe"
    )
    url = command.argument(_backend)
    player.add_argument(
        "--backend", type=url, default=BACKEND, metavar="URL", help=f"where to log in ({BACKEND})"
    )
    player.set_defaults(run=play)
    return command.run(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
