"""The chat's text interface, made with Textual. Its timer ticks the client, so no other loop is needed."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.widgets import Footer, Header, Input, RichLog, Static

import tickwire as tw
from tickwire.samples import command
from tickwire.samples.chat.room import MAX_NAME, MAX_TEXT, TALK, Hello, People, Said, Say, printable, shorten

TICKS_PER_SECOND = 30


class ChatApp(App[command.SampleError | None]):
    """The application: the room's lines, its members, the state of the connection, and an input line. It
    returns the reason why it ended.
    """

    CSS = """
    #people { width: 26; padding: 0 1; border-left: solid $primary; }
    #lines { padding: 0 1; }
    """
    BINDINGS: ClassVar = [("ctrl+q", "quit", "Leave")]

    def __init__(self, client: tw.Client, name: str, address: object) -> None:
        super().__init__()
        self.title = f"Chat at {address}"
        self.sub_title = "connecting"
        self._client = client
        self._who = name
        self._address = address
        self._ticks = 0
        self._lines = RichLog(id="lines", wrap=True)
        self._people = Static(id="people")

    def compose(self) -> ComposeResult:
        """Makes the widgets."""
        yield Header()
        with Horizontal():
            yield self._lines
            yield self._people
        yield Input(placeholder="Say something", id="say")
        yield Footer()

    def on_mount(self) -> None:
        """Starts the ticks."""
        self.query_one(Input).focus()
        self.set_interval(1 / TICKS_PER_SECOND, self._tick)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Sends the line."""
        text = shorten(event.value.strip(), MAX_TEXT)
        if not text:
            return
        if self._client.send(Say(text), TALK):
            event.input.clear()
        else:
            self.bell()  # the line stays, to be sent when the network is back

    def _tick(self) -> None:
        if not (self._lines.is_attached and self._people.is_attached):
            return  # the screen is being put up or taken down
        with self._client.tick() as inbox:
            for event in inbox.events:
                match event:
                    case tw.Connected():
                        self._client.send(Hello(shorten(self._who, MAX_NAME)), TALK)
                    case tw.Disconnected(_, reason, detail):
                        words = None if detail is None else printable(detail)
                        self.exit(command.disconnected(reason, self._address, words))
                    case _:
                        pass
            for message in inbox.messages:
                if isinstance(message, Said):
                    self._lines.write(_line(message))
            for _, people in inbox.latest:
                if isinstance(people, People):
                    names = "\n".join(printable(name) for name in people.names)
                    self._people.update(Text(names))
        self._ticks += 1
        if self._client.connected and self._ticks % TICKS_PER_SECOND == 0:
            stats = self._client.stats
            self.sub_title = f"RTT {stats.rtt_ms:.0f} ms, loss {stats.packet_loss_percent:.1f} %"


def _line(said: Said) -> Text:
    # The server is another's program: what it sends is printed, never obeyed.
    text = printable(said.text)
    if not said.name:
        return Text(text, "dim italic")
    return Text.assemble((printable(said.name), "bold cyan"), f"  {text}")
