"""What is measured: for each table, a measurement of one contender once. Values come as lists by (table,
metric, unit); all runs' lists are put together and summed up in the end."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import ModuleType

import tickwire as tw
from contenders.endpoint import Options
from processes import FailedError, Process, Processes, processes

Values = dict[tuple[str, str, str], list[float]]
MICROSECONDS, MILLISECONDS = "µs", "ms"
NEVER = 60_000.0
"""Milliseconds that a message counts with that never arrived."""


@dataclass(frozen=True)
class Plan:
    """How long and how often."""

    repeats: int
    seconds: float
    server_seconds: float
    server_sizes: tuple[int, ...]
    server_repeats: int
    links: tuple[str, ...]
    blocks: tuple[int, ...]
    latency_links: tuple[str, ...]
    latency_seconds: float
    latency_seeds: int
    """With few messages over one link, none may be lost, and no percentile tells of sending again."""


FULL = Plan(
    2,
    1.0,
    2.0,
    (64, 256, 1000),
    2,
    ("10 Mbit/s 50 ms 2 %", "50 Mbit/s 100 ms 1 %"),
    (256 << 10, 4 << 20),
    ("10 Mbit/s 50 ms 5 %",),
    8.0,
    5,
)
QUICK = Plan(1, 0.3, 0.5, (64,), 1, ("10 Mbit/s 50 ms 2 %",), (256 << 10,), ("10 Mbit/s 50 ms 5 %",), 0.5, 1)

LINKS = {
    "10 Mbit/s 50 ms 5 %": (1_250_000, 0.050, 0.05),
    "10 Mbit/s 50 ms 2 %": (1_250_000, 0.050, 0.02),
    "50 Mbit/s 100 ms 1 %": (6_250_000, 0.100, 0.01),
}
"""Rate in bytes a second, round trip time, loss of each direction. The queue holds one bandwidth-delay
product."""


MAX_TIMES_IDEAL, PATIENCE = 6, 5.0
"""A block that takes longer, and more than some seconds, is not waited for."""


def percentile(values: list[float], percent: int) -> float:
    return (
        statistics.quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else values[0]
    )


def median(values: list[float]) -> float:
    return statistics.median(values)


def p999(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(len(ordered) * 0.999))]


def p99(values: list[float]) -> float:
    return percentile(values, 99)


SUMMARY: dict[str, Callable[[list[float]], float]] = {
    "p50": median,
    "p99": p99,
    "p99.9": p999,
    "arrived": statistics.fmean,
}
"""How the values of all runs become one, by the end of the metric's name; the rest are medians."""


def summed_up(metric: str, values: list[float]) -> float:
    return SUMMARY.get(metric.rpartition(" ")[2], median)(values)


def flood(contender: ModuleType, variant: str, plan: Plan, reliable: bool = False) -> Values:
    table = "reliable" if reliable else "flood"
    options = Options(reliable=reliable, seconds=plan.seconds)
    with processes() as started:
        receiver = started.role(contender, variant, "flood_receive", options)
        options.port = receiver.hear("port", 10)
        sender = started.role(contender, variant, "flood_send", options)
        received = receiver.hear("result", 20)
        sent = sender.hear("result", 20)
    delivered = sent["credited"]
    if not delivered or not received["messages"]:
        raise FailedError("nothing arrived while it was measured")
    receiving = received["cpu"] / received["messages"] * 1e6
    sending = sent["cpu"] / delivered * 1e6
    return {
        (table, "delivered", "1/s"): [received["messages"] / received["seconds"]],
        (table, "CPU of the receiver a message", MICROSECONDS): [receiving],
        (table, "CPU of the sender a message", MICROSECONDS): [sending],
        (table, "CPU of both a message", MICROSECONDS): [receiving + sending],
        (table, "lost", "%"): [100 * sent["lost"]],
    }


def reliable(contender: ModuleType, variant: str, plan: Plan) -> Values:
    return flood(contender, variant, plan, reliable=True)


def ping(contender: ModuleType, variant: str, plan: Plan) -> Values:
    options = Options(seconds=2 * plan.seconds, reliable=not contender.UNRELIABLE)
    with processes() as started:
        server = started.role(contender, variant, "echo", options)
        options.port = server.hear("port", 10)
        client = started.role(contender, variant, "ping", options)
        times = client.hear("result", 30)["times"]
    if not times:
        raise FailedError("no ping was answered")
    return {("ping", "time p50", MILLISECONDS): times, ("ping", "time p99", MILLISECONDS): times}


def servers(
    contender: ModuleType,
    variant: str,
    plan: Plan,
    clients: int,
    watch: Callable[[int], None] = lambda _pid: None,
) -> Values:
    """``watch`` is called with the server's process as it begins to be measured."""
    table = f"servers/{clients}"
    kind = contender.swarm(variant) if hasattr(contender, "swarm") else contender.SWARM
    options = Options(clients=clients, warm=1.0, seconds=plan.server_seconds)
    with processes() as started:
        server = started.role(contender, variant, "ticks", options)
        swarm = started.swarm(kind, server.hear("port", 10), clients)
        server.hear("measuring", 40)
        swarm.say("mark")
        watch(server.process.pid)
        result = server.hear("result", 40)
        swarm.finish()
        heard = swarm.hear("result", 10)
    took = [second * 1e3 for second in result["took"]]
    spent = [second * 1e3 for second in result.get("spent", [])]
    due = plan.server_seconds * 60
    held = sum(time < 1000 / 60 for time in took) / due * 100
    messages = result["received"] + result["sent"]
    return {
        (table, "tick done after p50", MILLISECONDS): took,
        (table, "tick done after p99", MILLISECONDS): took,
        (table, "CPU of a tick p99", MILLISECONDS): spent,
        (table, "ticks held", "%"): [min(held, 100.0)],
        (table, "CPU of the server", "s/s"): [result["cpu"] / result["seconds"]],
        (table, "CPU of the server a message", MICROSECONDS): [result["cpu"] / messages * 1e6],
        (table, "received by the server", "%"): [result["received"] / result["seconds"] / clients / 0.6],
        (table, "received of what was sent to it", "%"): [share(result, heard)],
        (table, "dropped by the system", "%"): [dropped(result, heard)],
        (table, "received by the clients", "%"): [heard["received"] / heard["seconds"] / clients / 0.6],
        (table, "CPU of the clients", "s/s"): [heard["cpu"] / heard["seconds"]],
    }


def share(receiver: dict[str, float], sender: dict[str, float]) -> float:
    """Percent of what one end sent that the other received, each in its own time."""
    return 100 * (receiver["received"] / receiver["seconds"]) / (sender["sent"] / sender["seconds"])


def dropped(server: dict[str, float], clients: dict[str, float]) -> float:
    """Percent of what the clients sent that the server's system dropped, where the server tells."""
    return 100 * server.get("dropped", 0) / server["seconds"] / (clients["sent"] / clients["seconds"])


def woken(contender: ModuleType, variant: str, plan: Plan, clients: int) -> Values:
    table = f"woken/{clients}"
    kind = contender.swarm(variant) if hasattr(contender, "swarm") else contender.SWARM
    options = Options(clients=clients, warm=1.0, seconds=plan.server_seconds)
    with processes() as started:
        server = started.role(contender, variant, "woken", options)
        swarm = started.swarm(kind, server.hear("port", 10), clients)
        server.hear("measuring", 60)
        swarm.say("mark")
        result = server.hear("result", 60)
        swarm.finish()
        heard = swarm.hear("result", 10)
    seconds, messages = result["seconds"], result["received"] + result["sent"]
    return {
        (table, "CPU of the server a message", MICROSECONDS): [result["cpu"] / messages * 1e6],
        (table, "CPU of the server", "s/s"): [result["cpu"] / seconds],
        (table, "ticks", "1/s"): [len(result["took"]) / seconds],
        (table, "awakenings", "1/s"): [result["wakes"] / seconds],
        (table, "tick done after p99", MILLISECONDS): [second * 1e3 for second in result["took"]],
        (table, "received of what was sent to it", "%"): [share(result, heard)],
        (table, "dropped by the system", "%"): [dropped(result, heard)],
        (table, "CPU of the clients", "s/s"): [heard["cpu"] / heard["seconds"]],
    }


def bots(contender: ModuleType, variant: str, plan: Plan, clients: int) -> Values:
    table = f"bots/{clients}"
    seconds = plan.server_seconds
    with processes() as started:
        # It goes on for longer than what the bots measure.
        options = Options(clients=clients, warm=1.0, seconds=seconds + 2.0)
        server = started.role(contender, variant, "ticks", options)
        options = Options(clients=clients, warm=1.0, seconds=seconds, port=server.hear("port", 10))
        result = started.role(contender, variant, "bots", options).hear("result", 90)
        there = server.hear("result", 60)
    messages = result["received"] + result["sent"]
    return {
        (table, "CPU of the bots a message", MICROSECONDS): [result["cpu"] / messages * 1e6],
        (table, "CPU of the bots", "s/s"): [result["cpu"] / result["seconds"]],
        (table, "sent by the bots", "%"): [result["sent"] / result["seconds"] / clients / 0.6],
        (table, "received of what was sent to them", "%"): [share(result, there)],
        (table, "received by the server of what they sent", "%"): [share(there, result)],
    }


def conditions(link: str) -> tw.Conditions:
    rate, round_trip, loss = LINKS[link]
    return tw.Conditions(
        latency=round_trip / 2,
        loss=loss,
        bottleneck=tw.testing.Bottleneck(rate, queue=int(rate * round_trip)),
    )


def latency(contender: ModuleType, variant: str, plan: Plan, link: str, seed: int) -> Values:
    with processes() as started:
        options = Options(reliable=True, warm=0.5, seconds=plan.latency_seconds)
        receiver = through_proxy(started, contender, variant, link, "stamps", options, seed)[0]
        result = receiver.hear("result", 40)
    came, sent = result["times"], result["sent"]
    # Of all that were sent: what never came took longer than anything that did.
    times = came + [NEVER] * (sent - len(came))
    table = f"links/{link}"
    return {
        (table, "arrived", "%"): [100 * len(came) / sent],
        (table, "latency p50", MILLISECONDS): times,
        (table, "latency p99", MILLISECONDS): times,
        (table, "latency p99.9", MILLISECONDS): times,
    }


def block(contender: ModuleType, variant: str, _plan: Plan, link: str, size: int) -> Values:
    """From the call that sends a block to the last byte in the receiver's hands."""
    rate, round_trip, _ = LINKS[link]
    ideal = size / rate + round_trip
    with processes() as started:
        options = Options(reliable=True, block=size)
        receiver, sender = through_proxy(started, contender, variant, link, "block", options)
        began = sender.hear("result", 30)["at"]
        took = receiver.hear("result", max(MAX_TIMES_IDEAL * ideal, PATIENCE))["at"] - began
    return {(f"links/{link}", f"block of {size >> 10} KiB, times ideal", ""): [took / ideal]}


def through_proxy(
    started: Processes,
    contender: ModuleType,
    variant: str,
    link: str,
    what: str,
    options: Options,
    seed: int = 7,
) -> tuple[Process, Process]:
    """Both ends of a role over a link."""
    receiver = started.role(contender, variant, f"{what}_receive", options)
    proxy = tw.testing.Proxy(
        ("127.0.0.1", 0), to=("127.0.0.1", receiver.hear("port", 10)), conditions=conditions(link), seed=seed
    )
    started.stack.callback(proxy.close)
    options.port = proxy.address.port
    return receiver, started.role(contender, variant, f"{what}_send", options)


@dataclass(frozen=True)
class Measurement:
    """What one contender does once: a ``kind`` of measurement, whose ``name`` says which of them."""

    table: str
    kind: str
    name: str
    run: Callable[[ModuleType, str, Plan], Values]
    left_out: Callable[[ModuleType], str | None]
    """Why a contender can't do it, if so."""
    repeats: int

    def why_not(self, contender: ModuleType, variant: str) -> str | None:
        """Why a variant of a contender is not measured, if so."""
        skips = getattr(contender, "skips", None)
        return self.left_out(contender) or (skips and skips(variant, self.kind))


def everyone(_contender: ModuleType) -> str | None:
    return None


def unreliable_only(contender: ModuleType) -> str | None:
    return None if contender.UNRELIABLE else "all its messages are reliable: see there"


def reliable_only(contender: ModuleType) -> str | None:
    return None if contender.RELIABLE else "it has no reliable messages"


def swarming(contender: ModuleType) -> str | None:
    return None if contender.SWARM else contender.NO_SWARM


def waking(contender: ModuleType) -> str | None:
    return None if contender.WAKES is True else contender.WAKES


def woken_swarming(contender: ModuleType) -> str | None:
    return waking(contender) or swarming(contender)


def lossy(contender: ModuleType) -> str | None:
    if not contender.DATAGRAMS:
        return "TCP doesn't pass a UDP proxy"
    return reliable_only(contender)


def measurements(plan: Plan) -> Iterator[Measurement]:
    yield Measurement("flood", "flood", "flood", flood, unreliable_only, plan.repeats)
    yield Measurement("reliable", "reliable", "reliable", reliable, reliable_only, plan.repeats)
    yield Measurement("ping", "ping", "ping", ping, everyone, 1)
    for clients in plan.server_sizes:
        run = partial(servers, clients=clients)
        # The largest is what the goals are about.
        repeats = plan.server_repeats if clients == max(plan.server_sizes) else 1
        yield Measurement("servers", "servers", f"{clients} clients", run, swarming, repeats)
    most = max(plan.server_sizes)
    name, run = f"{most} clients, woken", partial(woken, clients=most)
    yield Measurement("woken", "woken", name, run, woken_swarming, plan.server_repeats)
    run = partial(bots, clients=most)
    yield Measurement("bots", "bots", f"{most} bots", run, waking, plan.server_repeats)
    for link in plan.latency_links:
        for seed in range(1, plan.latency_seeds + 1):
            name = f"latency at {link}, seed {seed}"
            run = partial(latency, link=link, seed=seed)
            yield Measurement("links", "latency over links", name, run, lossy, 1)
    for link in plan.links:
        for size in plan.blocks:
            name = f"{size >> 10} KiB at {link}"
            run = partial(block, link=link, size=size)
            yield Measurement("links", "blocks over links", name, run, lossy, 1)
