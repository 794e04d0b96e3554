"""Shows the state of the connections, in a live table in a terminal or in plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from tickwire._demo.ends import Bot, Load
from tickwire._demo.game import COINS, Runner
from tickwire._demo.match import Match
from tickwire._demo.options import Options

if TYPE_CHECKING:
    from rich.table import Table

BAR_WIDTH = 30

Show: TypeAlias = Callable[[Match], None]
"""A function that is called after each tick."""


@contextmanager
def open_display(options: Options) -> Iterator[Show]:
    """The display that fits the standard output."""
    if not options.plain and sys.stdout.isatty():
        try:
            from rich.live import Live
        except ImportError:
            print("For a live table: pip install '.[demo]' in a checkout; here are plain lines.")
        else:
            with Live(auto_refresh=False) as live:
                yield _every(0.25, lambda match, _: live.update(table(match), refresh=True))
            return
    yield _every(1.0, print_line)


def _every(seconds: float, show: Callable[[Match, float], None]) -> Show:
    start = time.monotonic()
    due = start + seconds

    def shown(match: Match) -> None:
        nonlocal due
        if (now := time.monotonic()) >= due:
            due += seconds * (1 + (now - due) // seconds)
            show(match, now - start)

    return shown


def print_line(match: Match, elapsed: float) -> None:
    """Prints a line about all connections."""
    stats = [bot.link.stats for bot in match.bots if bot.link.connected and bot.link.stats]
    if not stats:
        return
    (sent, delivered), load = match.reliable(), match.load
    loading = f"  world {load.fraction:.0%}" if load and load.intact is None and load.fraction else ""
    print(
        f"{elapsed:4.0f} s  {match.phase.value}: {len(stats)} connected  "
        f"RTT {fmean(each.rtt_ms for each in stats):.0f} ms  "
        f"jitter {fmean(each.jitter_ms for each in stats):.0f} ms  "
        f"loss {match.loss_percent():.1f} %  up {fmean(each.sent_kbps for each in stats):.0f} kbit/s  "
        f"down {fmean(each.received_kbps for each in stats):.0f} kbit/s  "
        f"reliable {delivered} of {sent} delivered{loading}",
        flush=True,
    )


def table(match: Match) -> Table:
    """A table with a row for each connection, in 80 columns."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = f"tickwire demo: {match.phase.value}"
    made = Table(title=title, box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    headings = "bot", "RTT\nms", "jitter\nms", "loss %\nup", "\ndown", "kbit/s\nup", "\ndown"
    for heading in (*headings, "reliable\nup", "\ndown", "corrected", "coins", "health"):
        made.add_column(heading, justify="right", no_wrap=True)
    captions = []
    for bot in match.bots:
        made.add_row(str(bot.number), *_cells(bot, match))
        if bot.link.reason:
            captions.append(f"Bot {bot.number}: {bot.link.reason}")
        if bot.load:
            captions.append(_progress(bot.number, bot.load))
    made.caption = "\n".join(captions)
    return made


def _cells(bot: Bot, match: Match) -> list[str]:
    here, there = bot.link, match.server.links.get(bot.number)
    if not here.connected or here.stats is None or there is None or there.stats is None:
        return ["..."]
    avatar = bot.client.world.mine(Runner)
    return [
        f"{here.stats.rtt_ms:.0f}",
        f"{here.stats.jitter_ms:.1f}",
        f"{here.stats.packet_loss_percent:.1f}",
        f"{there.stats.packet_loss_percent:.1f}",
        f"{here.stats.sent_kbps:.0f}",
        f"{here.stats.received_kbps:.0f}",
        str(there.received.count),
        str(here.received.count),
        str(bot.body.corrections if bot.body else 0),
        f"{avatar.coins if avatar else 0}/{COINS}",
        str(avatar.health if avatar else 0),
    ]


def _progress(bot: int, load: Load) -> str:
    if load.intact is not None:
        return f"Bot {bot} {'loaded' if load.intact else 'failed to load'} the world in {load.seconds:.1f} s"
    filled = round(BAR_WIDTH * load.fraction)
    bar = "█" * filled + "░" * (BAR_WIDTH - filled)
    return f"Bot {bot} loads the world {bar} {load.fraction:4.0%}"
