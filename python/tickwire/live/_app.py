"""The terminal view of a watched server."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static

from tickwire.errors import WatchError
from tickwire.live._table import COLUMNS, Column, cells, headline, sorted_clients
from tickwire.live._watcher import Watcher

__all__ = ["TopApp"]

POLL = 1 / 20
REFRESH = 0.5
MAX_ROWS = 200
"""The most clients in the table: the first clients in the chosen order."""


class TopApp(App[None]):
    """An app that shows a table of all connections. After its end, :attr:`failure` is its error, or None."""

    TITLE = "tickwire top"
    CSS = "#headline { height: 3; padding: 0 1; } DataTable { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("s", "next_column", "sort by the next column"),
        Binding("r", "reverse", "reverse"),
        Binding("space", "pause", "hold still"),
    ]

    def __init__(self, watcher: Watcher) -> None:
        super().__init__()
        self.watcher = watcher
        self.failure: str | None = None
        self.column: Column = COLUMNS[0]
        self.reverse = False
        self.paused = False

    def compose(self) -> ComposeResult:
        yield Static(id="headline")
        yield DataTable[str](cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        table: DataTable[str] = self.query_one(DataTable)
        for column in COLUMNS:
            table.add_column(column.title, key=column.title)
        self.set_interval(POLL, self._poll)
        self.set_interval(REFRESH, self.show)
        self.show()

    def on_data_table_header_selected(self, chosen: DataTable.HeaderSelected) -> None:
        """Sorts by the clicked column. A second click reverses the order."""
        column = COLUMNS[chosen.column_index]
        self.reverse = not self.reverse if column is self.column else column.largest_first
        self.column = column
        self.show()

    def action_next_column(self) -> None:
        self.column = COLUMNS[(COLUMNS.index(self.column) + 1) % len(COLUMNS)]
        self.reverse = self.column.largest_first
        self.show()

    def action_reverse(self) -> None:
        self.reverse = not self.reverse
        self.show()

    def action_pause(self) -> None:
        self.paused = not self.paused

    def show(self) -> None:
        """Draws the current state."""
        if self.paused:
            return
        self.query_one("#headline", Static).update(
            headline(self.watcher, self.column, self.reverse, MAX_ROWS)
        )
        table: DataTable[str] = self.query_one(DataTable)
        at = table.cursor_row
        table.clear()
        for client in sorted_clients(self.watcher, self.column, self.reverse)[:MAX_ROWS]:
            table.add_row(*cells(client, self.watcher), key=str(client.slot))
        table.move_cursor(row=at, animate=False)

    def _poll(self) -> None:
        try:
            self.watcher.poll()
        except WatchError as error:
            self.failure = str(error)
            self.exit()


def run(watcher: Watcher, make: Callable[[Watcher], TopApp] = TopApp) -> str | None:
    """Shows the table until the user quits. Returns the error, if there was one."""
    app = make(watcher)
    app.run()
    return app.failure
