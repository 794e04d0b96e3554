"""The game behind the login. Its server greets players by the name in their token."""

from __future__ import annotations

from typing import Annotated

import tickwire as tw

TICKS_PER_SECOND = 30
# From login to connection. Short: a token that someone steals is of use for no longer.
TOKEN_SECONDS = 30


@tw.message
class Welcome:
    """To a player: the name that the server read from the token."""

    name: Annotated[str, tw.text(64)]


PROTOCOL = tw.Protocol(id=0x7469636B_6C6F6769, messages=[Welcome], channels=[tw.reliable_ordered()])


def name_of(client: tw.ClientHandle) -> str:
    """Returns the account's name, which the backend put into the token."""
    return client.user_data.rstrip(b"\0").decode(errors="replace")


def tick(server: tw.Server, inbox: tw.Inbox[tuple[tw.ClientHandle, object]]) -> None:
    """Runs a tick of the server: greets new players."""
    for client, what in inbox:
        match what:
            case tw.Connected():
                print(f"{name_of(client)} is here, account {client.id}", flush=True)
                server.send(client, Welcome(name_of(client)))
            case tw.Disconnected(_, reason):
                print(f"{name_of(client)} is gone: {reason}", flush=True)
            case _:
                pass  # players have nothing to say


def play(token: tw.ConnectToken) -> str | tw.DisconnectReason:
    """Connects a player, receives its name and leaves. Returns the name, or the reason why it couldn't
    connect.
    """
    with tw.Client(PROTOCOL, token) as client, tw.run(client, TICKS_PER_SECOND) as ticks:
        for _, inbox in ticks:
            for what in inbox:
                match what:
                    case Welcome(name):
                        return name
                    case tw.Disconnected(_, reason):
                        return reason
                    case _:
                        pass
    raise KeyboardInterrupt
