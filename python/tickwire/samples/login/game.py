"""The game behind the login: its server greets players by the name that is sealed into their token."""

from __future__ import annotations

import contextlib
from typing import Annotated

import tickwire as tw

TICKS_PER_SECOND = 30
# From login to connection. Short: a token that someone steals is of use for no longer.
TOKEN_SECONDS = 30


@tw.message
class Welcome:
    """To a player: who it is."""

    name: Annotated[str, tw.text(64)]


PROTOCOL = tw.Protocol(id=0x7469636B_6C6F6769, messages=[Welcome], channels=[tw.reliable_ordered()])


def name_of(client: tw.ClientHandle) -> str:
    """The account's name, as the backend put it into the token."""
    return client.user_data.rstrip(b"\0").decode(errors="replace")


def tick(server: tw.Server) -> None:
    """A tick of the server: greets who comes."""
    with server.tick() as inbox:
        for event in inbox.events:
            match event:
                case tw.Connected(client):
                    print(f"{name_of(client)} is here, account {client.id}", flush=True)
                    with contextlib.suppress(tw.StaleClientError):  # it left again in this very tick
                        server.send(client, Welcome(name_of(client)))
                case tw.Disconnected(client, reason):
                    print(f"{name_of(client)} is gone: {reason}", flush=True)


def play(token: tw.ConnectToken) -> str | tw.DisconnectReason:
    """A player who comes in, hears its name and leaves; the name, or why it didn't get in."""
    with tw.Client(PROTOCOL, token) as client:
        for _ in tw.ticks(TICKS_PER_SECOND):
            with client.tick() as inbox:
                for message in inbox.messages:
                    return message.name
            if client.disconnect_reason is not None:
                return client.disconnect_reason
    raise AssertionError("ticks go on for ever")
