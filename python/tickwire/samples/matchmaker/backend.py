"""The matchmaker's web application. A player with a ticket names a room, and gets a connect token."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

import tickwire as tw
from tickwire.fleet import Engine, Place
from tickwire.samples.matchmaker.limits import Limits

MAX_REQUEST_BYTES = 1024
MAX_TICKET_BYTES = 512
TOKEN_SECONDS = 30
TIMEOUT = 3
"""Seconds of silence after which a player asks for the room's new place, because its machine may be gone.
"""
PLACE_SECONDS = 1.0
"""Seconds for which the place of a room is cached."""
MAX_PLACES = 10_000
MAX_WAIT = 15.0
"""Seconds for which a player waits until a room starts."""
MAX_FINDING = 8
"""The most rooms that are searched at once; further requests wait."""
PER_ACCOUNT = 20
PER_ADDRESS = 200
"""The most tokens for an address in each time window of :mod:`~tickwire.samples.matchmaker.limits`."""

LOG = logging.getLogger(__name__)


def sign_ticket(secret: bytes, account: str, expires: int) -> str:
    """Makes a ticket, with which a player proves its identity until a time, in seconds since 1970."""
    body = base64.urlsafe_b64encode(json.dumps([account, expires]).encode()).decode()
    return f"{body}.{_sign(secret, body)}"


def account_of(secret: bytes, ticket: str, now: float) -> str | None:
    """Returns the account of a ticket; None if the ticket is invalid or expired."""
    body, _, signature = ticket.partition(".")
    if len(ticket) > MAX_TICKET_BYTES or not ticket.isascii():
        return None
    if not hmac.compare_digest(_sign(secret, body), signature):
        return None
    account, expires = json.loads(base64.urlsafe_b64decode(body))
    return account if now < expires else None


def _sign(secret: bytes, body: str) -> str:
    return hmac.new(secret, body.encode(), hashlib.sha256).hexdigest()


@dataclass(slots=True)
class _Known:
    place: Future[Place]
    until: float


class Matchmaker:
    """Finds rooms and makes tokens. It shares no state with other matchmakers.

    Args:
        engine: the engine that runs rooms.
        key: the private key, shared with the game's servers.
        secret: the secret shared with the login that signs tickets.
        limits: the counter of requests.
    """

    def __init__(self, engine: Engine, key: bytes, secret: bytes, limits: Limits) -> None:
        self._engine = engine
        self._key = key
        self._secret = secret
        self._limits = limits
        self._finders = ThreadPoolExecutor(MAX_FINDING, "matchmaker")
        self._known: dict[str, _Known] = {}

    def place(self, room: str, clock: Callable[[], float] = time.monotonic) -> Future[Place]:
        """Returns the place of a room. Several requests at once ask the engine only once."""
        now = clock()
        known = self._known.get(room)
        if known is None or (known.place.done() and (now >= known.until or known.place.exception())):
            if len(self._known) >= MAX_PLACES:
                self._known = {name: each for name, each in self._known.items() if now < each.until}
            known = _Known(self._finders.submit(self._engine.find_or_create, room), now + PLACE_SECONDS)
            self._known[room] = known
        return known.place

    def token(self, account: str, place: Place) -> bytes:
        """Makes a token for an account."""
        return tw.ConnectToken.generate(
            protocol=place.protocol_id,
            key=self._key,
            client_id=tw.tokens.client_id(account),
            servers=[place.address],
            expires_in=TOKEN_SECONDS,
            timeout=TIMEOUT,
            user_data=account.encode()[:256],
        ).to_bytes()

    async def join(self, request: Request) -> Response:
        """``POST /join`` with ``{"room": NAME}`` and ``Authorization: Bearer TICKET`` returns a token."""
        address = request.client.host if request.client else ""
        if self._limits.count(f"address:{address}") > PER_ADDRESS:
            return PlainTextResponse("too many requests\n", 429)
        ticket = request.headers.get("authorization", "").removeprefix("Bearer ")
        account = account_of(self._secret, ticket, time.time())
        if account is None:
            return PlainTextResponse("log in first\n", 401)
        if self._limits.count(f"account:{account}") > PER_ACCOUNT:
            return PlainTextResponse("too many requests\n", 429)
        room = await _room(request)
        if room is None:
            text = f"send the room's name as JSON, in {MAX_REQUEST_BYTES} bytes at most\n"
            return PlainTextResponse(text, 400)
        try:
            place = self.place(room)
            found = place.result() if place.done() else await run_in_threadpool(place.result, MAX_WAIT)
        except ValueError as error:  # no name of a room
            return PlainTextResponse(f"{error}\n", 400)
        except (OSError, TimeoutError) as error:
            LOG.warning("no room %s: %s", room, error)
            return PlainTextResponse("no server to be had, try again\n", 503, {"Retry-After": "2"})
        headers = {"Cache-Control": "no-store"}  # the answer holds this player's keys
        return Response(self.token(account, found), headers=headers, media_type="application/octet-stream")


async def _room(request: Request) -> str | None:
    """Returns the requested room's name; None if the request has no name."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_REQUEST_BYTES:
            return None
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        return None
    match given:
        case {"room": str(room)}:
            return room
        case _:
            return None


def make_app(matchmaker: Matchmaker) -> Starlette:
    """Makes the web application of the matchmaker."""
    return Starlette(routes=[Route("/join", matchmaker.join, methods=["POST"])])
