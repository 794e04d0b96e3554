"""The demo's measurements and verdict: whether every reliable message arrived exactly once and in order,
and the newest value of each player's health."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import fmean

from tickwire._demo.report import Link


@dataclass(frozen=True)
class Ends:
    """Both ends of one connection, None for an end that wasn't heard from."""

    bot: Link | None
    server: Link | None


Links = Mapping[int, Ends]
"""By the bot's number."""


@dataclass(frozen=True)
class Summary:
    """The demo in figures. Rates are those of one bot, times those of the last second of play."""

    clients: int
    ticks: int
    seconds: float
    reliable_sent: int
    reliable_delivered: int
    misordered: int
    duplicates: int
    rtt_ms: float
    loss_percent: float
    kbps_up: float
    kbps_down: float
    load_seconds: float | None
    """How long the world took to load; None when none was."""
    load_intact: bool | None
    load_rtt_ms: float | None
    """The mean RTT of the bot that loaded it, meanwhile."""
    ok: bool

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def summarize(played: Links, final: Links, *, ticks: int, seconds: float, ok: bool) -> Summary:
    """Adds up the reports from both ends of all connections.

    Args:
        played: as it was when play ended: the drain after it would water down the rates.
        final: as it was when everything had arrived.
        ok: the verdict.
    """
    bots = [ends.bot for ends in played.values() if ends.bot]
    ends = [link for pair in final.values() for link in (pair.bot, pair.server) if link]
    acked, lost = sum(link.packets_acked for link in ends), sum(link.packets_lost for link in ends)
    load = next((link.load for link in ends if link.load), None)
    return Summary(
        clients=sum(1 for pair in final.values() if pair.bot and pair.server),
        ticks=ticks,
        seconds=round(seconds, 1),
        reliable_sent=sum(link.sent.count for link in ends),
        reliable_delivered=sum(link.received.delivered for link in ends),
        misordered=sum(link.received.misordered for link in ends),
        duplicates=sum(link.received.duplicates for link in ends),
        rtt_ms=_mean(link.rtt_ms for link in bots),
        loss_percent=round(100 * lost / (acked + lost), 2) if acked + lost else 0.0,
        kbps_up=_mean(link.sent_kbps for link in bots),
        kbps_down=_mean(link.received_kbps for link in bots),
        load_seconds=round(load.seconds, 2) if load else None,
        load_intact=load.intact if load else None,
        load_rtt_ms=round(load.rtt_ms, 2) if load else None,
        ok=ok,
    )


def find_faults(links: Links, clients: int) -> list[str]:
    """Compares what each end sent with what the other received: a sentence for each thing wrong, or none."""
    faults = []
    for number in range(clients):
        ends = links.get(number, Ends(None, None))
        reason = f": {ends.bot.reason}" if ends.bot and ends.bot.reason else ""
        if ends.bot is None or ends.server is None or not (ends.bot.connected or reason):
            faults.append(f"Bot {number} never got a connection{reason}.")
            continue
        if not ends.bot.connected:
            faults.append(f"Bot {number} lost its connection{reason}.")
        if not ends.server.connected:
            faults.append(f"The server lost its connection to bot {number}: {ends.server.reason}.")
        faults += _judge_load(ends.bot)
        if stale := stale_health(ends):
            faults.append(f"Bot {number} doesn't know the newest health of {stale} players.")
        faults += _compare(ends.bot, ends.server, f"from bot {number} to the server")
        faults += _compare(ends.server, ends.bot, f"from the server to bot {number}")
    return faults


def stale_health(ends: Ends) -> int:
    """For how many players the bot lacks the health that the server sent last; 0 while it is away."""
    if ends.bot is None or ends.server is None or not (ends.bot.connected and ends.server.connected):
        return 0
    heard = ends.bot.health
    return sum(heard.get(player) != health for player, health in ends.server.health.items())


def is_loading(link: Link) -> bool:
    """Whether this is a bot that still loads the world."""
    return link.load is not None and link.load.intact is None


def _judge_load(bot: Link) -> list[str]:
    if bot.load is None or bot.load.intact:
        return []
    if bot.load.error:
        return [f"Bot {bot.bot} did not get the world: {bot.load.error}."]
    if bot.load.intact is None:
        return [f"Bot {bot.bot} has only {bot.load.fraction:.0%} of the world."]
    return [f"Bot {bot.bot} got a world with the wrong hash."]


def _compare(sender: Link, receiver: Link, direction: str) -> list[str]:
    sent, received = sender.sent, receiver.received
    faults = []
    if not sent.count:
        faults.append(f"No reliable message was sent {direction}: nothing is proven.")
    if received.delivered != sent.count:
        faults.append(f"Of {sent.count} reliable messages {direction}, {received.delivered} arrived.")
    if received.duplicates:
        faults.append(f"{received.duplicates} reliable messages {direction} arrived more than once.")
    if received.misordered:
        faults.append(f"{received.misordered} reliable messages {direction} arrived out of order.")
    if receiver.stale:
        faults.append(f"{receiver.stale} inputs or positions {direction} arrived after newer ones.")
    if not faults and received.digest != sent.digest:
        faults.append(f"Reliable messages {direction} did not arrive as they were sent.")
    return faults


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return round(fmean(listed), 2) if listed else 0.0
