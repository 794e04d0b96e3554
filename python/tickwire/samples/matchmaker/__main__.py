"""``python -m tickwire.samples.matchmaker``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import urllib.request
from collections.abc import Sequence
from functools import partial
from typing import Any

import tickwire as tw
from tickwire import fleet
from tickwire.samples import command
from tickwire.samples.matchmaker import game

BACKEND = "http://127.0.0.1:8001"
TICKET_SECONDS = 3600
TIMEOUT = 20.0


def _secret() -> bytes:
    return os.environ.get("TICKET_SECRET", "for development only").encode()


def ticket(parsed: argparse.Namespace) -> None:
    """Prints a ticket, like a login service."""
    command.extra("starlette")
    from tickwire.samples.matchmaker.backend import sign_ticket

    print(sign_ticket(_secret(), parsed.name, int(time.time()) + TICKET_SECONDS))


def _engine(parsed: argparse.Namespace, redis: Any) -> fleet.Engine:
    store = None if redis is None else fleet.RedisStore(redis)
    if parsed.engine == "ray":
        ray: Any = command.extra("ray")
        from tickwire.fleet.ray import Rooms

        ray.init(ignore_reinit_error=True)
        return Rooms(game.Attic, store=store)
    if parsed.engine == "agones":
        from tickwire.fleet.agones import Allocator

        return Allocator(game.Attic, os.environ["AGONES_ALLOCATOR"], os.environ.get("AGONES_FLEET", "attic"))
    return fleet.Local(game.Attic, store=store)


def room(parsed: argparse.Namespace) -> None:
    """Runs one room in an Agones pod."""
    from tickwire.fleet import agones

    redis = _redis()
    store = fleet.MemoryStore() if redis is None else fleet.RedisStore(redis)
    agones.serve(game.Attic, parsed.listen, store=store)


def _redis() -> Any:
    url = os.environ.get("REDIS_URL")
    if not url:
        return None
    redis: Any = command.extra("redis")
    return redis.Redis.from_url(url, socket_timeout=1)


def serve(parsed: argparse.Namespace) -> None:
    """Runs the matchmaker until Ctrl-C."""
    command.extra("starlette")
    command.extra("uvicorn")
    import uvicorn

    from tickwire.samples.matchmaker import backend, limits

    redis = _redis()
    counts: limits.Limits = limits.LocalLimits() if redis is None else limits.RedisLimits(redis)
    maker = backend.Matchmaker(_engine(parsed, redis), game.KEY, _secret(), counts)
    listen = parsed.listen
    uvicorn.run(backend.make_app(maker), host=listen.host, port=listen.port, access_log=False)


def ask(url: str, room: str, ticket: str) -> tw.ConnectToken:
    """Asks a matchmaker for a token.

    Raises:
        SampleError: the matchmaker refuses; the text says why.
    """
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {ticket}"}
    asked = urllib.request.Request(f"{url}/join", json.dumps({"room": room}).encode(), headers)
    return command.fetch_token("matchmaker", url, asked, TIMEOUT, lambda _, said: f"{url} refuses: {said}")


def play(parsed: argparse.Namespace) -> None:
    """Walks through a room for some seconds."""
    asking = partial(ask, parsed.backend, parsed.room, parsed.ticket)
    with game.joined(asking(), asking) as client, tw.run(client) as ticks:
        for tick, _ in ticks:
            client.send_input(game.Walk(1))
            if tick % game.TICKS_PER_SECOND == 0:
                walker = client.world.mine(game.Walker)
                print("We wait to come in." if walker is None else f"We are at {walker.x}.", flush=True)
            if tick >= parsed.seconds * game.TICKS_PER_SECOND:
                return


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code."""
    prog = "python -m tickwire.samples.matchmaker"
    parser = command.Parser(prog=prog, description="A matchmaker, rooms behind it, and a player.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    login = commands.add_parser("ticket", help="print a ticket, as a login would give it")
    login.add_argument("name", metavar="NAME", help="the account")
    login.set_defaults(run=ticket)

    server = commands.add_parser("serve", help="the matchmaker")
    address = command.argument(tw.Address)
    text = "where to listen (127.0.0.1:8001)"
    server.add_argument(
        "--listen", metavar="ADDRESS", type=address, default=tw.Address("127.0.0.1:8001"), help=text
    )
    text = "where rooms run: local (this process, the default), ray or agones"
    server.add_argument("--engine", choices=("local", "ray", "agones"), default="local", help=text)
    server.set_defaults(run=serve)

    pod = commands.add_parser("room", help="one room, in a pod of Agones")
    text = "where to listen (127.0.0.1:7777)"
    pod.add_argument(
        "--listen", metavar="ADDRESS", type=address, default=tw.Address("127.0.0.1:7777"), help=text
    )
    pod.set_defaults(run=room)

    player = commands.add_parser("play", help="enter a room")
    player.add_argument("room", metavar="ROOM", help="the room's name")
    player.add_argument("--ticket", required=True, metavar="TICKET", help="what `ticket NAME` prints")
    text = f"the matchmaker ({BACKEND})"
    player.add_argument("--backend", default=BACKEND, metavar="URL", help=text)
    player.add_argument("--seconds", type=float, default=10.0, metavar="N", help="how long to play (10)")
    player.set_defaults(run=play)
    return command.run(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
