"""The reports of the server and the bots to the process that started them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import tickwire as tw
from tickwire._demo.ledger import Received, Sent
from tickwire._demo.messages import RELIABLE


class Phase(enum.Enum):
    """The current phase of all processes."""

    CONNECT = enum.auto()
    PLAY = enum.auto()
    DRAIN = enum.auto()
    """Nothing new is sent; both sides tick on until all that was sent has arrived."""
    END = enum.auto()


@dataclass(frozen=True)
class ChannelCounts:
    """The messages of one channel so far."""

    sent: int
    received: int


@dataclass
class Load:
    """How the bot that loads the world is doing."""

    fraction: float = 0.0
    seconds: float = 0.0
    intact: bool | None = None
    """Whether it has the right hash; None while it is under way."""
    error: str = ""
    rtt_ms: float = 0.0
    """The mean RTT meanwhile: the game's packets on the same connection."""

    def note_rtt(self, ticks: int, rtt_ms: float) -> None:
        """Takes in the RTT at the latest of this many ticks."""
        self.rtt_ms += (rtt_ms - self.rtt_ms) / ticks


@dataclass
class Link:
    """One end of one connection."""

    bot: int
    connected: bool = False
    reason: str = ""
    """Why the connection ended, once it has."""

    sent: Sent = field(default_factory=Sent)
    """Reliable messages, as the game counted them."""
    received: Received = field(default_factory=Received)
    queued: int = 0
    """Reliable messages that the other side has not acked yet."""
    newest_tick: int = -1
    """Of the inputs or positions that came in at this end."""
    stale: int = 0
    """How many of them came after a newer one."""
    health: dict[int, int] = field(default_factory=dict)
    """The newest health of each player that the server told, or that the bot heard."""

    load: Load | None = None
    """Of the bot that loads the world."""

    rtt_ms: float = 0.0
    jitter_ms: float = 0.0
    sent_kbps: float = 0.0
    received_kbps: float = 0.0
    packets_acked: int = 0
    packets_lost: int = 0
    channels: dict[str, ChannelCounts] = field(default_factory=dict)

    @property
    def loss_percent(self) -> float:
        """Of the packets that this end sent and that were acked or lost."""
        known = self.packets_acked + self.packets_lost
        return 100 * self.packets_lost / known if known else 0.0

    def note_tick(self, tick: int) -> None:
        """An input or a position of this tick came in."""
        self.stale += tick <= self.newest_tick
        self.newest_tick = max(self.newest_tick, tick)

    def measure(self, stats: tw.connections.ConnectionStats) -> None:
        """Copies the transport's measurements."""
        self.rtt_ms, self.jitter_ms = stats.rtt_ms, stats.jitter_ms
        self.sent_kbps, self.received_kbps = stats.sent_kbps, stats.received_kbps
        self.packets_acked, self.packets_lost = stats.packets_acked, stats.packets_lost
        self.channels = {each.name: ChannelCounts(each.sent, each.received) for each in stats.channels}
        self.queued = stats.channels[RELIABLE].queued


@dataclass(frozen=True)
class Listening:
    """The server is up."""

    address: str


@dataclass(frozen=True)
class Failed:
    """The process can't do its work."""

    sentence: str


@dataclass(frozen=True)
class Report:
    """How a process's connections are doing."""

    phase: Phase
    ticks: int
    """Ticks of play so far."""
    links: list[Link]
