"""Takes all processes through the phases of a match and collects their reports."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tickwire._demo.display import Display
from tickwire._demo.options import Options
from tickwire._demo.processes import SERVER, START_SECONDS, Processes
from tickwire._demo.report import Phase, Report
from tickwire._demo.summary import Ends, Links, is_loading, stale_health

DRAIN_SECONDS = 15.0
"""How long what was sent may take to arrive after play."""
END_SECONDS = 10.0
WAIT_SECONDS = 0.1
"""Between looks at the clock."""


@dataclass(frozen=True)
class Match:
    """The reports of a match."""

    played: Links
    """When play ended."""
    final: Links
    """When all had arrived, or the time for it was up."""
    ticks: int
    seconds: float


class Referee:
    """Decides when a phase is over."""

    def __init__(self, processes: Processes, display: Display, clients: int) -> None:
        self._processes = processes
        self._display = display
        self._clients = clients
        self._reports: dict[int, Report] = {}

    def play(self, seconds: float) -> Match:
        """Takes the processes through one match. Without all bots connected, there is no play."""
        self._hold(Phase.CONNECT, START_SECONDS, self._all_settled)
        elapsed = 0.0
        if self._all_connected():
            elapsed = self._hold(Phase.PLAY, seconds, lambda: False)
        played = self._links()
        self._hold(Phase.DRAIN, DRAIN_SECONDS, self._all_delivered)
        self._hold(Phase.END, END_SECONDS, lambda: self._all_in(Phase.END))
        ticks = self._reports[SERVER].ticks if SERVER in self._reports else 0
        return Match(played, self._links(), ticks, elapsed)

    def _hold(self, phase: Phase, seconds: float, done: Callable[[], bool]) -> float:
        """Keeps all processes in this phase until it is done, or for this long; returns how long it
        took."""
        self._processes.announce(phase)
        start = time.monotonic()
        while (elapsed := time.monotonic() - start) < seconds and not done():
            for number, report in self._processes.reports(min(WAIT_SECONDS, seconds - elapsed)):
                self._reports[number] = report
            self._display.show(phase, self._links())
        return elapsed

    def _all_connected(self) -> bool:
        links = self._links().values()
        return sum(bool(ends.server and ends.bot and ends.bot.connected) for ends in links) == self._clients

    def _all_settled(self) -> bool:
        """Whether each bot has got a connection or failed to."""
        bots = [ends.bot for ends in self._links().values() if ends.bot]
        failed = sum(bool(bot.reason) for bot in bots)
        return self._all_connected() or (failed > 0 and all(bot.connected or bot.reason for bot in bots))

    def _all_in(self, phase: Phase) -> bool:
        """Whether all processes have reported from this phase."""
        reports = self._reports.values()
        return len(reports) == self._processes.count and all(report.phase is phase for report in reports)

    def _all_delivered(self) -> bool:
        """Whether nothing is under way any more, and nothing new comes."""
        links = [link for report in self._reports.values() for link in report.links]
        waiting = any(link.connected and (link.queued or is_loading(link)) for link in links)
        return (
            self._all_in(Phase.DRAIN) and not waiting and not any(map(stale_health, self._links().values()))
        )

    def _links(self) -> Links:
        """The state of each connection, from both ends."""
        server = {link.bot: link for link in self._reports[SERVER].links} if SERVER in self._reports else {}
        bots = {
            link.bot: link
            for number, report in self._reports.items()
            if number != SERVER
            for link in report.links
        }
        return {bot: Ends(bots.get(bot), server.get(bot)) for bot in sorted(bots.keys() | server.keys())}


def play(options: Options, display: Display) -> Match:
    """Starts the processes and has them play one match."""
    with Processes(options) as processes:
        display.start(processes.server_address)
        return Referee(processes, display, options.clients).play(options.seconds)
