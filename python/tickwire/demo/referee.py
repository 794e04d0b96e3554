"""Takes all processes through the phases of a match and collects what they report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tickwire.demo.display import Display
from tickwire.demo.options import Options
from tickwire.demo.processes import START_SECONDS, Processes
from tickwire.demo.report import Phase, Report
from tickwire.demo.summary import Ends, Links

DRAIN_SECONDS = 15.0
"""How long what was sent may take to arrive after play."""
END_SECONDS = 10.0
WAIT_SECONDS = 0.1
"""Between looks at the clock."""


@dataclass(frozen=True)
class Match:
    """What was reported."""

    played: Links
    """When play ended."""
    final: Links
    """When all had arrived, or the time for it was up."""
    ticks: int
    seconds: float


class Referee:
    def __init__(self, processes: Processes, display: Display, clients: int) -> None:
        self._processes = processes
        self._display = display
        self._clients = clients
        self._reports: dict[int, Report] = {}

    def hold(self, phase: Phase, seconds: float, done: Callable[[], bool]) -> float:
        """Has all processes be in this phase until it is done, or this long; returns how long it was."""
        self._processes.announce(phase)
        start = time.monotonic()
        while (elapsed := time.monotonic() - start) < seconds and not done():
            for number, report in self._processes.reports(min(WAIT_SECONDS, seconds - elapsed)):
                self._reports[number] = report
            self._display.show(phase, self.links())
        return elapsed

    def all_connected(self) -> bool:
        links = self.links().values()
        return sum(bool(ends.server and ends.bot and ends.bot.connected) for ends in links) == self._clients

    def all_settled(self) -> bool:
        """Whether each bot has got a connection or failed to."""
        bots = [ends.bot for ends in self.links().values() if ends.bot]
        failed = sum(bool(bot.reason) for bot in bots)
        return self.all_connected() or (failed > 0 and all(bot.connected or bot.reason for bot in bots))

    def all_in(self, phase: Phase) -> bool:
        """Whether all processes have reported from this phase."""
        reports = self._reports.values()
        return len(reports) == self._processes.count and all(report.phase is phase for report in reports)

    def all_delivered(self) -> bool:
        """Whether nothing is under way any more, and nothing new comes."""
        links = [link for report in self._reports.values() for link in report.links]
        return self.all_in(Phase.DRAIN) and not any(link.connected and link.queued for link in links)

    def links(self) -> Links:
        """What is known now of each connection, from both ends."""
        # The server was started first.
        server = {link.bot: link for link in self._reports[0].links} if 0 in self._reports else {}
        bots = {link.bot: link for number, report in self._reports.items() if number for link in report.links}
        return {bot: Ends(bots.get(bot), server.get(bot)) for bot in sorted(bots.keys() | server.keys())}

    @property
    def ticks(self) -> int:
        return self._reports[0].ticks if 0 in self._reports else 0


def play(options: Options, display: Display) -> Match:
    """Plays one match: connect, play, drain, end."""
    with Processes(options) as processes:
        display.start(processes.server_address)
        referee = Referee(processes, display, options.clients)
        referee.hold(Phase.CONNECT, START_SECONDS, referee.all_settled)
        seconds = 0.0
        if referee.all_connected():
            seconds = referee.hold(Phase.PLAY, options.seconds, lambda: False)
        played = referee.links()
        referee.hold(Phase.DRAIN, DRAIN_SECONDS, referee.all_delivered)
        referee.hold(Phase.END, END_SECONDS, lambda: referee.all_in(Phase.END))
        return Match(played, referee.links(), referee.ticks, seconds)
