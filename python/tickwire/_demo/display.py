"""Shows how the connections are doing: a live table in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import fmean
from typing import TYPE_CHECKING

from tickwire._demo.options import Options
from tickwire._demo.report import ChannelCounts, Link, Load, Phase
from tickwire._demo.summary import Ends, Links

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

BAR_WIDTH = 30

TITLES = {
    Phase.CONNECT: "connecting",
    Phase.PLAY: "playing",
    Phase.DRAIN: "waiting for the last messages",
    Phase.END: "done",
}


@contextmanager
def open_display(options: Options) -> Iterator[Display]:
    """The display that fits the standard output."""
    if not options.plain and sys.stdout.isatty():
        try:
            from rich.live import Live
        except ImportError:
            print("For a live table: pip install '.[demo]' in a checkout; here are plain lines.")
        else:
            with Live(refresh_per_second=4) as live:
                yield LiveTable(options, live)
            return
    yield PlainLines(options)


class Display(ABC):
    """The output on which the match is shown."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def start(self, address: str) -> None:
        """The server is up."""
        given = self._options
        print(
            f"A server on {address}, {given.clients} bots, {given.rate:g} ticks a second for "
            f"{given.seconds:g} s, seed {given.seed}. Each way: {given.latency:g} ms +- {given.jitter:g} ms, "
            f"{given.loss:g} % loss, {given.duplicate:g} % duplicates, {given.reorder:g} % held back.",
            flush=True,
        )

    @abstractmethod
    def show(self, phase: Phase, links: Links) -> None:
        """Called a few times a second."""


class PlainLines(Display):
    """A line about all connections each second."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._start = time.monotonic()
        self._next = 1.0

    def show(self, phase: Phase, links: Links) -> None:
        elapsed = time.monotonic() - self._start
        bots = [ends.bot for ends in links.values() if ends.bot and ends.bot.connected]
        if elapsed < self._next or not bots:
            return
        self._next = int(elapsed) + 1.0
        ends = [link for pair in links.values() for link in (pair.bot, pair.server) if link]
        mean = _mean_over(bots)
        print(
            f"{elapsed:4.0f} s  {TITLES[phase]}: {len(bots)} connected  "
            f"RTT {mean(lambda bot: bot.rtt_ms):.0f} ms  jitter {mean(lambda bot: bot.jitter_ms):.0f} ms  "
            f"loss {_mean_over(ends)(lambda end: end.loss_percent):.1f} %  "
            f"up {mean(lambda bot: bot.sent_kbps):.0f} kbit/s  "
            f"down {mean(lambda bot: bot.received_kbps):.0f} kbit/s  "
            f"reliable {sum(end.received.delivered for end in ends)}"
            f" of {sum(end.sent.count for end in ends)} delivered" + _loading(bots),
            flush=True,
        )


def _loading(bots: list[Link]) -> str:
    """How much of the world has come, while it comes."""
    loads = [bot.load for bot in bots if bot.load and bot.load.intact is None and bot.load.fraction]
    return "".join(f"  world {load.fraction:.0%}" for load in loads)


class LiveTable(Display):
    """A row for each connection, redrawn in place."""

    def __init__(self, options: Options, live: Live) -> None:
        super().__init__(options)
        self._live = live

    def show(self, phase: Phase, links: Links) -> None:
        self._live.update(_table(phase, links))


def _table(phase: Phase, links: Links) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    # Narrow enough for 80 columns.
    title = f"tickwire demo: {TITLES[phase]}"
    table = Table(title=title, box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    headings = "bot", "RTT\nms", "jitter\nms", "loss %\nup", "\ndown", "kbit/s\nup", "\ndown"
    for heading in (*headings, "reliable\nup", "\ndown", "inputs", "places", "health"):
        table.add_column(heading, justify="right", no_wrap=True)
    captions: list[str] = []
    for number, ends in links.items():
        table.add_row(str(number), *_cells(ends))
        if ends.bot and ends.bot.reason:
            captions.append(f"Bot {number}: {ends.bot.reason}")
        if ends.bot and ends.bot.load:
            captions.append(_progress(number, ends.bot.load))
    table.caption = "\n".join(captions)
    return table


def _cells(ends: Ends) -> list[str]:
    bot, server = ends.bot, ends.server
    if bot is None or server is None or not bot.connected:
        return ["..."]
    up, down = server.channels, bot.channels
    none = ChannelCounts(0, 0)
    return [
        f"{bot.rtt_ms:.0f}",
        f"{bot.jitter_ms:.1f}",
        f"{bot.loss_percent:.1f}",
        f"{server.loss_percent:.1f}",
        f"{bot.sent_kbps:.0f}",
        f"{bot.received_kbps:.0f}",
        *(str(side.get("reliable", none).received) for side in (up, down)),
        str(up.get("inputs", none).received),
        *(str(down.get(channel, none).received) for channel in ("positions", "health")),
    ]


def _progress(bot: int, load: Load) -> str:
    if load.intact is not None:
        return f"Bot {bot} {'loaded' if load.intact else 'failed to load'} the world in {load.seconds:.1f} s"
    filled = round(BAR_WIDTH * load.fraction)
    bar = "█" * filled + "░" * (BAR_WIDTH - filled)
    return f"Bot {bot} loads the world {bar} {load.fraction:4.0%}"


def _mean_over(links: list[Link]) -> Callable[[Callable[[Link], float]], float]:
    return lambda figure: fmean(figure(link) for link in links)
