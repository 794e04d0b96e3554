"""One end of one measurement, in a process of its own: ``roles.py CONTENDER VARIANT ROLE OPTIONS``.

It speaks in lines of JSON on standard output: ``port`` once it listens, ``measuring`` when the time that
counts begins, ``result`` in the end. It ends by itself, or when its standard input does.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import resource
import select
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

import contenders
from contenders.endpoint import Endpoint, Options

RATE = 60
REQUEST, ANSWER = bytes(64), bytes(200)
PATIENCE = 30.0
STEPS = 16
"""Steps in which the bots of a tick take their turns, as the clients of the native swarm do."""
SETTLE = 0.2
"""A flood settles how much was lost after this many seconds."""
SILENCE = 5.0
"""Seconds after which what did not come counts as lost."""


def tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def system_drops(end: Endpoint) -> int:
    """How many datagrams the system has dropped that came for this end."""
    rows = (line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:])
    return sum(int(row[-1]) for row in rows if int(row[1].rpartition(":")[2], 16) == end.port)


async def connected(end: Endpoint, count: int) -> None:
    """Waits until this many peers are there."""
    until = time.monotonic() + PATIENCE
    while len(end.peers) < count:
        if time.monotonic() > until:
            raise TimeoutError(f"{len(end.peers)} of {count} peers connected in {PATIENCE:.0f} s")
        await end.receive(0.005)
        await end.flush()


async def flood_receive(end: Endpoint, options: Options) -> None:
    """Counts messages and tells the sender how many arrived."""
    total = at_mark = 0
    first = mark = cpu = 0.0
    silent = time.monotonic() + PATIENCE
    while True:
        came = await end.count(0.05)
        now = time.monotonic()
        if not came:
            await end.flush()
            if now > silent:
                raise TimeoutError(f"nothing came for {PATIENCE:.0f} s")
            continue
        silent = now + PATIENCE
        total += came
        end.send(end.peers[0], struct.pack("<Q56x", total))
        await end.flush()
        first = first or now
        if not mark and now - first >= options.warm:
            mark, at_mark, cpu = now, total, cpu_seconds()
        elif mark and now - mark >= options.seconds:
            tell(result={"messages": total - at_mark, "seconds": now - mark, "cpu": cpu_seconds() - cpu})
            mark = math.inf  # The sender has its own end to come to: go on until both are ended.


async def flood_send(end: Endpoint, options: Options) -> None:
    """Sends batches as long as the window has room; after a silence, what was not credited counts as lost.
    Now and then it waits until all is credited or lost: else what was lost would fill the window unseen while
    the rest comes."""
    await connected(end, 1)
    peer = end.peers[0]
    sent = credited = lost = 0
    window, batch = options.window, options.batch
    mark = cpu = 0.0
    credited_then = 0
    started = heard = settled = time.monotonic()
    while True:
        if credited + lost >= sent:
            settled = heard
        room = sent + batch <= credited + lost + window and heard - settled < SETTLE
        if room:
            end.send_many(peer, REQUEST, batch)
            sent += batch
            await end.flush()
        news = await end.receive(0.0 if room else 0.02)
        now = time.monotonic()
        if news:
            credited, heard = struct.unpack_from("<Q", news[-1][1])[0], now
        elif now - heard > 0.1 and not options.reliable:
            lost, heard = sent - credited, now
        if not room:
            await end.flush()
        if not mark and now - started >= options.warm:
            mark, cpu, credited_then = now, cpu_seconds(), credited
        elif mark and now - mark >= options.seconds:
            spent = cpu_seconds() - cpu
            tell(result={"credited": credited - credited_then, "cpu": spent, "lost": lost / sent})
            mark = math.inf


async def echo(end: Endpoint, _options: Options) -> None:
    while True:
        for peer, data in await end.receive(1.0):
            end.send(peer, data)
        await end.flush()


async def ping(end: Endpoint, options: Options) -> None:
    """Sixty pings a second."""
    await connected(end, 1)
    times = []
    count = int(options.seconds * RATE)
    for _ in range(count):
        sent = time.perf_counter()
        end.send(end.peers[0], REQUEST)
        await end.flush()
        while not (news := await end.receive(0.2 - (time.perf_counter() - sent))):
            if time.perf_counter() - sent > 0.2:
                break
        if news:
            times.append((time.perf_counter() - sent) * 1e3)
        await end.idle(1 / RATE - (time.perf_counter() - sent))
    tell(result={"times": times, "sent": count})


async def ticks(end: Endpoint, options: Options) -> None:
    """A server's ticks: receives all, sends 200 bytes to each client. What is told is how long after its
    due time each tick was done, and the processor time since the tick before."""
    await connected(end, options.clients)
    warm, measured = int(options.warm * RATE), int(options.seconds * RATE)
    took, spent = [], []
    received = sent = dropped = 0
    cpu = since = 0.0
    due = time.perf_counter()
    spent_before = time.process_time()
    for tick in range(warm + measured):
        if tick == warm:
            tell(measuring=True)
            received = sent = 0
            dropped = system_drops(end)
            cpu, since = cpu_seconds(), time.perf_counter()
        await end.idle(due - time.perf_counter())
        received += await end.count(0.0)
        end.send_all(ANSWER)
        sent += len(end.peers)
        await end.flush()
        now = time.perf_counter()
        spent_now = time.process_time()
        if tick >= warm:
            took.append(now - due)
            spent.append(spent_now - spent_before)
        spent_before = spent_now
        due = max(due + 1 / RATE, now - 1 / RATE)
    passed = time.perf_counter() - since
    counts = {"received": received, "sent": sent, "seconds": passed, "cpu": cpu_seconds() - cpu}
    tell(result={**counts, "took": took, "spent": spent, "dropped": system_drops(end) - dropped})


async def woken(end: Endpoint, options: Options) -> None:
    """A server's ticks, as those of ``ticks``, that also acts whenever something arrives between them."""
    await connected(end, options.clients)
    poll, number = select.epoll(), end.fileno()
    if number is not None:
        poll.register(number, select.EPOLLIN)
    warm, measured = int(options.warm * RATE), int(options.seconds * RATE)
    took = []
    received = sent = wakes = dropped = 0
    cpu = since = 0.0
    due = time.perf_counter()
    for tick in range(warm + measured):
        if tick == warm:
            tell(measuring=True)
            received = sent = wakes = 0
            dropped = system_drops(end)
            cpu, since = cpu_seconds(), time.perf_counter()
        # Once in each tick, however late it is.
        while True:
            left = due - time.perf_counter()
            if number is None:
                time.sleep(min(max(left, 0.0), 1 / RATE / STEPS))
            if number is None or poll.poll(max(left, 0.0)):
                received += end.woken()
                wakes += 1
            if due <= time.perf_counter():
                break
        end.send_all(ANSWER)
        sent += len(end.peers)
        await end.flush()
        now = time.perf_counter()
        if tick >= warm:
            took.append(now - due)
        due = max(due + 1 / RATE, now - 1 / RATE)
    passed = time.perf_counter() - since
    counts = {"received": received, "sent": sent, "seconds": passed, "cpu": cpu_seconds() - cpu}
    tell(result={**counts, "took": took, "wakes": wakes, "dropped": system_drops(end) - dropped})


async def bots(ends: list[Endpoint], options: Options) -> None:
    """Many clients in one process, which packets wake. Each sends 64 bytes sixty times a second."""
    poll = select.epoll()
    by_number = {end.fileno(): end for end in ends}
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    until = time.monotonic() + PATIENCE
    while waiting := [end for end in ends if not end.peers]:
        if time.monotonic() > until:
            raise TimeoutError(f"{len(waiting)} of {len(ends)} bots did not connect in {PATIENCE:.0f} s")
        for end in waiting:
            end.woken()
        for number, _ in poll.poll(0.05):
            by_number[number].woken()
    pairs = [(end, end.peers[0]) for end in ends]
    received = sent = 0
    cpu, due = 0.0, time.perf_counter()
    begins, ends_at = due + options.warm, math.inf
    # After its result it goes on until it is ended, for the server to come to its own.
    for step in itertools.count():
        now = time.perf_counter()
        if now >= ends_at:
            counts = {"received": received, "sent": sent, "cpu": cpu_seconds() - cpu}
            tell(result={**counts, "seconds": now - begins})
            ends_at = math.inf
        elif now >= begins and not cpu:
            begins, ends_at = now, now + options.seconds
            received, sent, cpu = 0, 0, cpu_seconds()
        while True:
            for number, _ in poll.poll(max(due - time.perf_counter(), 0.0)):
                received += by_number[number].woken()
            if due <= time.perf_counter():
                break
        for end, peer in pairs[step % STEPS :: STEPS]:
            end.send(peer, REQUEST)
            await end.flush()
            sent += 1
        due = max(due + 1 / RATE / STEPS, time.perf_counter() - 1 / RATE)


async def block_send(end: Endpoint, options: Options) -> None:
    await connected(end, 1)
    # Round trip times are known by now, as in a game that runs.
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        await end.receive(0.01)
        await end.flush()
    tell(result={"at": time.monotonic()})
    end.send_block(end.peers[0], os.urandom(options.block))
    while True:
        await end.flush()
        await end.receive(0.001)


async def block_receive(end: Endpoint, options: Options) -> None:
    came = 0
    while came < options.block:
        came += sum(len(data) for _, data in await end.receive(0.001))
        await end.flush()
    tell(result={"at": time.monotonic()})


def microseconds() -> int:
    """The time, in 32 bits."""
    return int(time.monotonic() * 1e6) % 2**32


def stamped(options: Options) -> tuple[int, int]:
    """The first message whose time counts, and how many do."""
    return int(options.warm * RATE), int(options.seconds * RATE)


async def stamps_send(end: Endpoint, options: Options) -> None:
    """Sixty messages a second that say when they were sent, and which they are. After the last one it
    stays, to send again what is lost."""
    await connected(end, 1)
    due = time.monotonic()
    for number in itertools.count():
        if number < sum(stamped(options)):
            end.send(end.peers[0], struct.pack("<II56x", number, microseconds()))
        due += 1 / RATE
        while True:
            await end.flush()
            left = due - time.monotonic()
            if left <= 0:
                break
            await end.receive(min(left, 0.001))


async def stamps_receive(end: Endpoint, options: Options) -> None:
    """How long each took, until all have come or nothing has for long; and how many there should be."""
    first, count = stamped(options)
    times: dict[int, float] = {}
    heard = math.inf
    while len(times) < count and time.monotonic() - heard < SILENCE:
        for _, data in await end.receive(0.001):
            heard = time.monotonic()
            # Both in the first eight bytes: all that a column of numbers shows of it.
            number, sent = struct.unpack_from("<II", data)
            if number >= first:
                times.setdefault(number, (microseconds() - sent) % 2**32 / 1e3)
        await end.flush()
    tell(result={"times": list(times.values()), "sent": count})


SERVERS = {
    "flood_receive": flood_receive,
    "echo": echo,
    "ticks": ticks,
    "woken": woken,
    "block_receive": block_receive,
    "stamps_receive": stamps_receive,
}
CLIENTS = {
    "flood_send": flood_send,
    "ping": ping,
    "block_send": block_send,
    "stamps_send": stamps_send,
}


async def play(contender: Any, variant: str, role: str, options: Options) -> None:
    if role in SERVERS:
        end = await contender.serve(variant, options)
        tell(port=end.port)
        await SERVERS[role](end, options)
    elif role == "bots":
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        ends = [await contender.connect(variant, options.port, options) for _ in range(options.clients)]
        await bots(ends, options)
    else:
        end = await contender.connect(variant, options.port, options)
        await CLIENTS[role](end, options)


def end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    name, variant, role, given = sys.argv[1:]
    contender = contenders.load(name)
    if role == "missing":
        tell(missing=contender.missing(variant))
        return
    threading.Thread(target=end_with_parent, daemon=True).start()
    contender.run(variant, play(contender, variant, role, Options(**json.loads(given))))
    sys.stdout.flush()
    # Event loops and libraries that have not closed yet don't matter any more.
    os._exit(0)


if __name__ == "__main__":
    main()
