"""How a scenario ends: the network gets perfect, everything must come to rest, and nothing may be left."""

from __future__ import annotations

from collections.abc import Callable

import tickwire as tw

from soak.line import Line, Side
from soak.model import Violation
from soak.play import Play

TOKEN_LIFETIME = 30
"""Seconds after which no client dials any more."""

FREE = ("unreliable", "sequenced")
"""Channels whose messages wait for nobody."""

DEFAULT_BUDGET = (1_250_000.0, 65_536.0)
"""Bytes a second of messages, and at once, where no other is set."""

MIN_ASKED, MIN_CHUNKS = 5, 20_000
"""Messages, and bytes of chunks, after which those must have gone too."""


def settle(play: Play) -> None:
    """Ends a scenario.

    Raises:
        Violation: something is left that must not be.
    """
    play.network.heal()
    play.network.set_conditions(tw.Conditions(latency=0.01))
    play.stalled.clear()
    play.pumping.clear()
    play.raises = False
    play.dials_at = [float("inf")] * len(play.dials_at)
    play.server.set_budget(1e6, 65_536)
    for line in open_lines(play):
        line.client.set_budget(1e6, 65_536)
    until_quiet(play)
    agree(play)
    live = [line for line in open_lines(play) if line.client_over is None]
    # If only one packet may go out in a tick, it takes long: while there is progress, nothing hangs.
    before = -1
    while before < (now := progress(play, live)) and not rested(play, live):
        before = now
        run(play, 200 + 3000 / play.scenario.rate, lambda: rested(play, live))
    for line in live:
        stats = line.client.stats
        play.wraps += stats.packets_sent > 65_536 or any(channel.sent > 65_536 for channel in stats.channels)
        line.up.settled()
        line.down.settled()
        line.down.check(stats.channels)
        assert line.handle is not None
        walkers = play.walkers if line.client_over is None else None
        if walkers is not None and not line.picture.agrees(walkers, line.handle):
            raise Violation(f"client {line.number} doesn't see the world as it is")
        line.up.check(play.server.stats(line.handle).channels)
    slots_return(play, live)
    conserved(play)


def open_lines(play: Play) -> list[Line]:
    return [line for line in play.current if line is not None and not line.client.closed]


def at_rest(line: Line) -> bool:
    return line.client_over is not None or (line.up.is_settled() and line.down.is_settled())


def rested(play: Play, live: list[Line]) -> bool:
    """Whether nothing is in flight any more, and every client sees the world as it is."""
    if not all(at_rest(line) for line in live):
        return False
    walkers = play.walkers
    if walkers is None:
        return True
    return all(
        line.client_over is not None or line.handle is None or line.picture.agrees(walkers, line.handle)
        for line in live
    )


def progress(play: Play, live: list[Line]) -> int:
    """What has arrived so far: messages, and bytes of chunks."""
    sides = (side for line in live for side in (line.up, line.down))
    reported = sum(line.picture.reported for line in live)
    return play.received + reported + sum(transfer.bytes_done for side in sides for transfer in side.begun)


def run(play: Play, seconds: float, done: Callable[[], bool] = lambda: False) -> None:
    """Ticks without sending anything new, until it is done or the time is over."""
    for tick in range(round(seconds * play.scenario.rate)):
        if done():
            return
        play.tick(tick, sends=False)


def until_quiet(play: Play) -> None:
    """Runs until disconnected players have timed out, and dialling ones got in or gave up."""
    run(play, 2 * play.scenario.timeout + TOKEN_LIFETIME + 20 / play.scenario.rate)


def agree(play: Play) -> None:
    """Both sides think the same of each connection, and no client is in between."""
    for line in open_lines(play):
        if line.client_over is None and not line.client.connected:
            raise Violation(f"client {line.number} hangs: {line.client.state}")
        if line.client_over is None and (line.handle is None or line.handle not in play.server.clients):
            raise Violation(f"client {line.number} is connected, and the server doesn't know")
    live = {line.handle for line in open_lines(play) if line.client_over is None}
    for handle in play.server.clients:
        if handle not in live:
            raise Violation(f"the server has client {handle.id}, which is gone")


def slots_return(play: Play, live: list[Line]) -> None:
    """When all have left, all slots are free for others."""
    for line in open_lines(play):
        play.leave(line, float("inf"))
    run(play, 1 + 10 / play.scenario.rate)
    if play.server.clients:
        raise Violation(f"clients stay after they said goodbye: {play.server.clients}")
    for line in live:
        if line.server_over is None:
            raise Violation(f"nobody heard that client {line.number} left")
    play.server.close()


def conserved(play: Play) -> None:
    """The network lost nothing that it doesn't say."""
    play.network.advance(3600)
    counts = play.network.counters
    put_in = counts["sent"] + counts["duplicated"]
    ways_out = (
        "delivered",
        "lost",
        "lost_in_bursts",
        "lost_in_outages",
        "too_large",
        "queue_dropped",
        "overflowed",
        "unknown_destination",
        "mailbox_full",
        "nat_unmapped",
        "nat_filtered",
    )
    came_out = sum(counts[name] for name in ways_out)
    if counts["too_large"]:
        raise Violation(f"{counts['too_large']} datagrams were above an mtu of {play.scenario.mtu}")
    if put_in != came_out:
        raise Violation(f"of {put_in} datagrams the network accounts for {came_out}: {counts}")


def audit(play: Play) -> None:
    """Checks what must hold at any time.

    Raises:
        Violation: a connection sent more than its budget, or chunks silence its messages.
    """
    if "budget" in play.scenario.events:
        return
    for line in play.by_slot.values():
        if line.may_send_down and line.handle in play.server.clients:
            assert line.handle is not None
            audit_side(play, play.server.stats(line.handle), line.server_connected, line.down)
    for line in open_lines(play):
        if line.client_over is None and line.client.connected:
            audit_side(play, line.client.stats, line.client_connected, line.up)


def audit_side(play: Play, stats: tw.connections.ConnectionStats, since: float | None, side: Side) -> None:
    """Checks what must hold for a sender."""
    flows_on(play, stats, side)
    # Of one that is only kept alive, the game doesn't know yet.
    if play.scenario.budget is not None and since is not None:
        held(play, stats, since, side.name)


def flows_on(play: Play, stats: tw.connections.ConnectionStats, side: Side) -> None:
    """Messages go on while chunks move.

    Those that nothing holds back but the budget, of which some are left out each tick, but never all for
    longer than the budget needs for the largest one."""
    messages = sum(channel.bytes_sent for channel in stats.channels if channel.kind != "chunks")
    asked = sum(flow.sent for flow, plan in zip(side.flows, side.plans, strict=True) if plan.kind in FREE)
    now, chunks = play.network.now, stats.chunks.bytes_sent
    if side.went is None or messages != side.went[1]:
        side.went = (now, messages, chunks, asked)
        return
    then, _, chunks_then, asked_then = side.went
    rate, burst = play.scenario.budget or DEFAULT_BUDGET
    patience = 2 + 4 / play.scenario.rate + (largest(play) + burst) / rate
    if now - then > patience and asked - asked_then >= MIN_ASKED and chunks - chunks_then >= MIN_CHUNKS:
        raise Violation(
            f"{side.name} sent no message for {now - then:.1f} s beside {chunks - chunks_then} "
            f"bytes of chunks, though {asked - asked_then} could go at once"
        )


def largest(play: Play) -> int:
    """The bytes of the largest message, with what its fragments add."""
    return max(max(plan.sizes) for plan in play.scenario.channels) + 2048


def held(play: Play, stats: tw.connections.ConnectionStats, since: float, name: str) -> None:
    """Messages keep the budget. Chunks have a rate of their own.

    The last packet may overdraw it, by one message with its fragments."""
    assert play.scenario.budget is not None
    rate, burst = play.scenario.budget
    seconds = play.network.now - since + 2 / play.scenario.rate
    used = sum(channel.bytes_sent for channel in stats.channels if channel.kind != "chunks")
    if used > burst + rate * seconds + largest(play):
        raise Violation(
            f"{name} sent {used} bytes in {seconds:.1f} s, with {rate:.0f} a second and {burst:.0f}"
        )
