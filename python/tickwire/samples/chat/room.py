"""The messages of the chat, and the server's side."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import tickwire as tw

MAX_PEOPLE = 32
MAX_NAME = 24
MAX_TEXT = 400
# How much one client may send in a second before the room ends its connection.
LINES_PER_SECOND = 20

Name: TypeAlias = Annotated[str, tw.text(MAX_NAME)]


@tw.message
class Hello:
    """To the server: the name of a new client."""

    name: Name


@tw.message
class Say:
    """To the server: a line for everyone."""

    text: Annotated[str, tw.text(MAX_TEXT)]


@tw.message
class Said:
    """To everyone: a line and its author. Lines of the room itself have no author."""

    name: Name
    text: Annotated[str, tw.text(MAX_TEXT)]


@tw.message
class People:
    """To everyone: the current members. Only the newest list matters, so it is the value of a latest
    channel.
    """

    names: Annotated[list[Name], tw.up_to(MAX_PEOPLE)]


TALK, PEOPLE = range(2)
PROTOCOL: tw.Protocol[Hello | Say | Said | People] = tw.Protocol(
    id=0x7469636B_63686174,
    messages=[Hello, Say, Said, People],
    channels=[tw.reliable_ordered("talk"), tw.latest("people", keys=1)],
)


class Room:
    """The server's side. It broadcasts lines, and keeps the list of members."""

    def __init__(self, server: tw.Server) -> None:
        self._server = server
        self._names: dict[tw.ClientHandle, str] = {}
        self._said: dict[tw.ClientHandle, float] = {}

    def tick(self, inbox: tw.Inbox[tuple[tw.ClientHandle, object]], seconds: float) -> None:
        """Runs a tick, ``seconds`` after the last."""
        for client in self._said:
            self._said[client] = max(0.0, self._said[client] - seconds * LINES_PER_SECOND)
        for client, what in inbox:
            self._handle(client, what)

    def _handle(self, client: tw.ClientHandle, what: object) -> None:
        match what:
            case tw.Disconnected() if client in self._names:
                self._said.pop(client)
                self._tell(Said("", f"{self._names.pop(client)} left"))
                self._list_people()
            case Hello(name) if client not in self._names:
                self._names[client] = self._free_name(printable(name).strip() or "someone")
                self._said[client] = 0.0
                self._tell(Said("", f"{self._names[client]} is here"))
                self._list_people()
            case Say(text) if client in self._names:
                self._said[client] += 1
                if self._said[client] > LINES_PER_SECOND:
                    reason = f"more than {LINES_PER_SECOND} lines a second"
                    self._server.disconnect(client, reason=reason)
                elif line := printable(text).strip():
                    self._tell(Said(self._names[client], line))
            case _:
                pass  # a newcomer without a name yet, a line without one, or a second name

    def _free_name(self, wanted: str) -> str:
        taken, number, name = set(self._names.values()), 2, shorten(wanted, MAX_NAME)
        while name in taken:
            name = f"{shorten(wanted, MAX_NAME - 3)}-{number}"
            number += 1
        return name

    def _tell(self, message: Said) -> None:
        for client in self._server.broadcast(message, TALK, clients=self._names):
            # Too much waits for it to catch up.
            self._server.disconnect(client, reason="your line is too slow")

    def _list_people(self) -> None:
        self._server.broadcast(People(sorted(self._names.values())), PEOPLE, clients=self._names)


def printable(text: str) -> str:
    """Returns a text without control characters, because a terminal would execute them."""
    return "".join(letter for letter in text if letter.isprintable())


def shorten(text: str, most_bytes: int) -> str:
    """Returns the longest beginning of a text that fits into a number of bytes of UTF-8."""
    return text.encode()[:most_bytes].decode(errors="ignore")
