"""One scenario of a soak. Everything random is drawn here, or from the scenario's own generators."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

import tickwire as tw

NAT_KINDS: tuple[Literal["full-cone", "restricted", "port-restricted", "symmetric"], ...] = (
    "full-cone",
    "restricted",
    "port-restricted",
    "symmetric",
)

KINDS = (
    tw.reliable_ordered,
    tw.reliable_unordered,
    tw.unreliable,
    tw.sequenced,
    tw.channels.redundant,
    tw.latest,
    tw.channels.payload,
    tw.chunks,
)

SMALLEST = 32
"""Bytes that a message may take beside its filling."""


@dataclass
class ChannelPlan:
    """A channel and its traffic."""

    channel: tw.channels.Channel
    kind: str
    keys: int = 1
    # Bytes of the messages' filling, in turn.
    sizes: list[int] = field(default_factory=lambda: [0])
    # The chance that an endpoint sends something in a tick, and how many then at most.
    chance: float = 0.1
    burst: int = 1


@dataclass
class Scenario:
    """A game, its players, their network and what happens to them."""

    seed: str
    index: int
    name: str
    rate: float
    seconds: float
    players: int
    max_clients: int
    # Each player's game ticks once in this many ticks of the server.
    paces: list[int]
    channels: list[ChannelPlan]
    conditions: tw.Conditions
    down: tw.Conditions
    nats: list[Literal["full-cone", "restricted", "port-restricted", "symmetric"] | None]
    nat_lifetime: float
    timeout: int
    # Of both sides, and of the paths until the weather changes.
    mtu: int
    budget: tuple[float, float] | None
    max_bulk_rate: int | None
    chunk_memory: int
    # The games take rows instead of objects, and all messages are of the class that has them.
    columns: bool
    priority: bool
    admission: bool
    factory: bool
    raising_hooks: bool
    # The server has a world, which everybody is shown.
    ghosts: bool
    # Mean seconds between what happens to somebody, by name; nothing happens that isn't there.
    events: dict[str, float]

    def rng(self, purpose: str) -> Random:
        """A generator of its own for one purpose."""
        return Random(f"{self.seed}/{self.index}/{purpose}")


EVENTS = (
    "kick",
    "leave",
    "restart",
    "crash",
    "move",
    "nat_restart",
    "partition",
    "weather",
    "stall",
    "pump",
    "jump",
    "budget",
    "cancel",
)


HEADERS = 48
"""Bytes of IPv6 and UDP."""


def draw(seed: str, index: int, given: list[tw.channels.Channel] | None = None) -> Scenario:
    """The scenario of a seed with this number. The mix: ordinary games, slow ones (many hours), quick ones
    with full packets, and long ones whose sequence numbers wrap.

    Args:
        given: the channels, if they are not to be random.
    """
    rng = Random(f"{seed}/{index}/scenario")
    name = rng.choices(["game", "slow", "busy", "wrap"], [4, 7, 1, 1])[0]
    ticks = {"game": 3000, "slow": 3000, "busy": 1200, "wrap": 12_000}[name] * rng.uniform(0.5, 1.5)
    rate = {
        "game": rng.uniform(5, 60),
        "slow": 2 ** rng.uniform(-1, 3),
        "busy": rng.uniform(20, 120),
        "wrap": rng.uniform(30, 120),
    }[name]
    players = 1 if name == "wrap" else rng.choices([1, 2, 3, 5, 8], [3, 4, 3, 2, 1])[0]
    mild = name == "wrap" or rng.random() < 0.2
    # With ticks slower than the timeout no connection can last.
    timeout = rng.randint(max(3, round(6 / rate)), 15)
    channels = [_channel(rng, name) for _ in range(1 if name == "wrap" else rng.choice([1, 2, 3, 4, 6, 10]))]
    chunked = [plan for plan in channels if plan.kind == "chunks"]
    channels = [plan for plan in channels if plan.kind != "chunks"] or [_channel(rng, name, tw.sequenced)]
    channels += chunked[:1]
    rng.shuffle(channels)
    if given is not None:
        channels = [_traffic(rng, name, channel) for channel in given]
    events = {
        event: rng.uniform(5, 120) * ticks / 3000 * 30 / rate
        for event in EVENTS
        if not mild and rng.random() < 0.5
    }
    mtu = Random(f"{seed}/{index}/mtu").choice([1280, 1280, 1200, 1126])
    return Scenario(
        seed=seed,
        index=index,
        name=name,
        rate=rate,
        seconds=ticks / rate,
        players=players,
        max_clients=max(1, players - (rng.random() < 0.2)),
        paces=[rng.choice([1, 1, 1, 2, 3]) for _ in range(players)],
        channels=channels,
        conditions=weather(rng, mild).replace(max_datagram=mtu - HEADERS),
        down=weather(rng, mild).replace(max_datagram=mtu - HEADERS),
        nats=[rng.choice(NAT_KINDS) if rng.random() < 0.3 else None for _ in range(players)],
        nat_lifetime=rng.uniform(5, 120),
        timeout=timeout,
        mtu=mtu,
        budget=(10 ** rng.uniform(3.5, 6), rng.uniform(2000, 65_536)) if rng.random() < 0.4 else None,
        max_bulk_rate=rng.choice([None, None, 60_000, 20_000]),
        chunk_memory=rng.choice([0, 2**18, 2**20, 2**22]),
        columns=rng.random() < 0.3,
        priority=rng.random() < 0.3,
        admission=rng.random() < 0.2,
        factory=rng.random() < 0.2,
        raising_hooks=rng.random() < 0.1,
        ghosts=given is None and Random(f"{seed}/{index}/ghosts").random() < 0.4,
        events=events,
    )


def _channel(rng: Random, name: str, make: Any = None) -> ChannelPlan:
    make = make or rng.choice(KINDS)
    settings: dict[str, Any] = {}
    if make is tw.chunks:
        return ChannelPlan(tw.chunks(), "chunks", chance=rng.choice([0.002, 0.02]))
    if rng.random() < 0.3:
        settings["strict"] = True
    if rng.random() < 0.3:
        settings["weight"] = rng.randint(1, 1000)
    if make in (tw.reliable_ordered, tw.reliable_unordered):
        if rng.random() < 0.5:
            settings["resend_time"] = rng.choice([None, None, 0.02, 0.1, 0.5])
        if settings.get("resend_time", 0) is None:
            settings["early_copies"] = rng.randint(1, 4)
        if rng.random() < 0.3:
            settings["send_queue"] = rng.choice([1, 16, 256, 4096])
            settings["receive_window"] = rng.choice([4, 16, 256, 4096])
        if rng.random() < 0.2:
            settings["receive_bytes"] = rng.choice([131_200, 300_000])
    elif (
        make in (tw.unreliable, tw.sequenced, tw.channels.redundant, tw.channels.payload)
        and rng.random() < 0.3
    ):
        settings["send_queue"] = rng.choice([1, 8, 64])
        settings["receive_queue"] = rng.choice([1, 8, 64])
    if make is tw.latest:
        settings["keys"] = rng.choice([1, 2, 50, 1024])
    if make is tw.channels.redundant:
        settings["copies"] = rng.choice([1, 2, 3, 3, 10, None])
    return _traffic(rng, name, make("", **settings))


def _traffic(rng: Random, name: str, channel: tw.channels.Channel) -> ChannelPlan:
    """The traffic of a channel."""
    if channel.kind == "chunks":
        return ChannelPlan(channel, channel.kind, chance=rng.choice([0.002, 0.02]))
    largest = rng.choice([0, 20, 20, 200, 1000, 5000])
    if name == "busy":
        largest = rng.choice([200, 1100, 3000])
    chance = rng.choice([0.01, 0.1, 0.5, 1.0])
    burst = rng.choice([1, 1, 3, 20])
    if name == "wrap":
        # Small messages make message numbers wrap, large ones packet numbers.
        largest, chance, burst = rng.choice([20, 1100]), 1.0, 40
    largest = max(0, min(largest, channel.max_message_bytes - SMALLEST))
    sizes = [rng.randint(0, largest) for _ in range(16)]
    # A bad network and a budget can't carry more than this many bytes in the long run.
    while chance * burst * (sum(sizes) / 16 + 20) > 8000:
        burst = max(1, burst // 2)
        chance /= 2
    keys = max(1, channel.keys)
    return ChannelPlan(channel, channel.kind, keys, sizes, chance, burst)


def weather(rng: Random, mild: bool) -> tw.Conditions:
    """Conditions of one direction."""
    if mild:
        return tw.Conditions(latency=rng.uniform(0, 0.1), loss=rng.choice([0, 0, 0.01, 0.05]))
    latency = rng.choice([0, 0.02, 0.05, 0.1, 0.3, 0.8]) * rng.uniform(0.5, 1.5)
    jitter = latency * rng.choice([0, 0.2, 0.5])
    settings: dict[str, Any] = {"latency": latency, "jitter": jitter}
    if rng.random() < 0.3:
        settings["random_walk"] = tw.testing.RandomWalk((latency - jitter) * rng.random())
    if rng.random() < 0.6:
        settings["loss"] = rng.choice([0.01, 0.05, 0.2, 0.4])
    if rng.random() < 0.2:
        settings["bursts"] = tw.testing.Bursts.mean(rng.uniform(0, 0.4), rng.uniform(1, 30))
    if rng.random() < 0.2:
        settings["outages"] = tw.testing.Outages(rng.uniform(0.1, 8), rng.uniform(0, 0.2))
    if rng.random() < 0.3:
        settings["duplicate"] = rng.uniform(0, 0.3)
    if rng.random() < 0.3:
        settings["reorder"] = rng.uniform(0, 0.3)
        rng.choice([0.01, 0.1, 2.0])  # keeps the scenarios of seeds that found something
    if rng.random() < 0.2:
        rate = round(10 ** rng.uniform(3.7, 6))
        settings["bottleneck"] = tw.testing.Bottleneck(rate, queue=rng.choice([3000, 20_000, 200_000]))
    return tw.Conditions(**settings)
