"""A match of the demo, from the first connection to the result."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import fmean
from typing import TypeAlias

from tickwire._demo.ends import Bot, GameServer, Link, Load, picture
from tickwire._demo.game import TICK_RATE
from tickwire._demo.options import Options
from tickwire._pace import paced

CONNECT_SECONDS = 30.0
DRAIN_SECONDS = 15.0
"""The seconds in which sent messages must arrive after play."""
STALL_SECONDS = 5.0
"""The match failed if nothing more arrived for this long; if something did, time was too short to tell."""

Figures: TypeAlias = dict[str, "int | float | bool | None"]


class Phase(enum.Enum):
    """The phases of a match."""

    CONNECT = "connecting"
    PLAY = "playing"
    DRAIN = "waiting for the last messages"
    """Nothing new is sent. Both sides continue to tick until everything has arrived."""
    END = "done"


class Match:
    """A server and its bots, over real sockets."""

    def __init__(self, options: Options, server: GameServer, bots: list[Bot]) -> None:
        self.options, self.server, self.bots = options, server, bots
        self.phase = Phase.CONNECT
        self.played_ticks = 0
        self.rates: Figures = {}
        """The rates at the end of play, because later phases would distort them."""
        self._progress: tuple[float, ...] = ()
        self._progressed = 0.0
        """When the progress last changed, in seconds of the phase."""
        self.is_decided = True
        """Whether the faults would not have ended by waiting longer."""

    def play(self) -> Iterator[Phase]:
        """Runs the match. Yields the phase after each tick."""
        began = 0
        for tick in paced(TICK_RATE):
            playing = self.phase is Phase.PLAY
            self.server.tick(playing)
            for bot in self.bots:
                bot.tick(playing)
            self.played_ticks += playing
            phase = self._next((tick + 1 - began) / TICK_RATE)
            if phase is not self.phase:
                if playing:
                    self.rates = self._measured()
                self.phase, began = phase, tick + 1
            yield self.phase
            if self.phase is Phase.END:
                return

    def _next(self, seconds: float) -> Phase:
        """Returns the next phase, after a number of seconds in this phase."""
        match self.phase:
            case Phase.CONNECT if all(bot.link.connected or bot.link.reason for bot in self.bots):
                return Phase.PLAY if all(bot.link.connected for bot in self.bots) else Phase.END
            case Phase.CONNECT if seconds >= CONNECT_SECONDS:
                return Phase.END
            case Phase.PLAY if seconds >= self.options.seconds:
                return Phase.DRAIN
            case Phase.DRAIN:
                return self._drained(seconds)
        return self.phase

    def _drained(self, seconds: float) -> Phase:
        faults = self.faults()
        progress = (len(faults), self.load.fraction if self.load else 0.0, *self.reliable())
        if progress != self._progress:
            self._progress, self._progressed = progress, seconds
        self.is_decided = not faults or seconds >= self._progressed + STALL_SECONDS
        return Phase.END if self.is_decided or seconds >= DRAIN_SECONDS else Phase.DRAIN

    @property
    def load(self) -> Load | None:
        """The transfer of the world, if a bot loads it."""
        return self.bots[-1].load

    def ends(self) -> list[Link]:
        """All ends of connections."""
        return [*self.server.links.values(), *(bot.link for bot in self.bots)]

    def _measured(self) -> Figures:
        bots = [bot.link.stats for bot in self.bots if bot.link.stats]
        return {
            "rtt_ms": round(fmean(stats.rtt_ms for stats in bots), 2),
            "kbps_up": round(fmean(stats.sent_kbps for stats in bots), 2),
            "kbps_down": round(fmean(stats.received_kbps for stats in bots), 2),
        }

    def loss_percent(self) -> float:
        """The packet loss over all packets that were acked or lost, in both directions."""
        stats = [end.stats for end in self.ends() if end.stats]
        lost = sum(each.packets_lost for each in stats)
        return 100 * lost / max(1, lost + sum(each.packets_acked for each in stats))

    def reliable(self) -> tuple[int, int]:
        """How many reliable messages were sent, and how many arrived."""
        ends = self.ends()
        return sum(end.sent.count for end in ends), sum(end.received.count for end in ends)

    def figures(self) -> Figures:
        """The match in numbers. Rates are for one bot in the last second of play."""
        (sent, delivered), load = self.reliable(), self.load
        none = dict.fromkeys(("rtt_ms", "kbps_up", "kbps_down"), 0.0)
        return {
            "clients": len(self.bots),
            "ticks": self.played_ticks,
            "seconds": round(self.played_ticks / TICK_RATE, 1),
            "reliable_sent": sent,
            "reliable_delivered": delivered,
            **(self.rates or none),
            "loss_percent": round(self.loss_percent(), 2),
            "corrections": sum(bot.body.corrections for bot in self.bots if bot.body),
            "load_seconds": round(load.seconds, 2) if load else None,
            "load_intact": load.intact if load else None,
            "load_rtt_ms": round(fmean(load.rtts_ms), 2) if load and load.rtts_ms else None,
            "ok": not self.faults() and not self.unproven(),
        }

    def faults(self) -> list[str]:
        """A sentence for each failed check."""
        truth = picture(self.server.endpoint.world)
        return [fault for bot in self.bots for fault in self._faults(bot, truth)]

    def unproven(self) -> list[str]:
        """A sentence for each direction in which no reliable message was sent."""
        ways = [way for bot in self.bots for way in self._ways(bot)]
        return [f"No reliable message was sent {way}." for sender, _, way in ways if not sender.sent.count]

    def _ways(self, bot: Bot) -> list[tuple[Link, Link, str]]:
        """The sender and the receiver of a bot's two directions, and how sentences call the direction."""
        here, there = bot.link, self.server.links.get(bot.number)
        if there is None:
            return []
        return [
            (here, there, f"from bot {bot.number} to the server"),
            (there, here, f"from the server to bot {bot.number}"),
        ]

    def _faults(self, bot: Bot, truth: list[tuple[float, ...]]) -> Iterator[str]:
        here, there = bot.link, self.server.links.get(bot.number)
        reason = f": {here.reason}" if here.reason else ""
        if there is None or here.stats is None:
            yield f"Bot {bot.number} never got a connection{reason}."
            return
        if not here.connected:
            yield f"Bot {bot.number} lost its connection{reason}."
        elif not there.connected:
            yield f"The server lost its connection to bot {bot.number}: {there.reason}."
        elif picture(bot.client.world) != truth:
            yield f"Bot {bot.number} sees another world than the server's."
        if bot.load and not bot.load.intact:
            arrived = f"has only {bot.load.fraction:.0%} of the world"
            error = f"didn't get the world: {bot.load.error}" if bot.load.error else ""
            wrong = "got a world with the wrong hash" if bot.load.intact is False else ""
            yield f"Bot {bot.number} {error or wrong or arrived}."
        for sender, receiver, way in self._ways(bot):
            sent, received = sender.sent, receiver.received
            if sent.count != received.count:
                yield f"Of {sent.count} reliable messages {way}, {received.count} arrived."
            elif sent != received:
                yield f"Reliable messages {way} did not arrive as they were sent."


@contextmanager
def open_match(options: Options) -> Iterator[Match]:
    """Starts the server and its bots, and closes them at the end.

    Raises:
        OSError: the server's port can't be bound.
    """
    with ExitStack() as stack:
        server = GameServer(options)
        stack.callback(server.endpoint.close)
        bots = []
        for number in range(options.clients):
            bots.append(Bot(number, str(server.endpoint.address), options))
            stack.callback(bots[-1].client.close)
        yield Match(options, server, bots)
