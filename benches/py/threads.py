"""Eight servers with their clients in virtual time, ticked by one Python thread, then by two.

    python benches/py/threads.py [SECONDS]

Throughput is server ticks per second of the clock, so ask on an idle machine. CPU per tick is of the threads
alone, and grows where they wait actively or share cache lines. With a GIL both are about 1.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Annotated

import tickwire as tw

SERVERS, CLIENTS, RATE = 8, 8, 60


@tw.message
class State:
    tick: tw.u16
    x: tw.f32
    y: tw.f32
    health: Annotated[int, tw.ranged(0, 100)]


def game(number: int) -> Callable[[], None]:
    """One tick of a server that answers each message of its clients, and of its network."""
    protocol = tw.Protocol(7, [State], [tw.reliable_ordered(), tw.unreliable()])
    network = tw.testing.SimulatedNetwork(seed=number)
    server = tw.Server("10.0.0.1:5", protocol, network=network)
    clients = [tw.Client.connect("10.0.0.1:5", protocol, network=network) for _ in range(CLIENTS)]
    tick = 0

    def run() -> None:
        nonlocal tick
        tick = (tick + 1) & 0xFFFF
        for client in clients:
            with client.tick() as inbox:
                for message in inbox.messages:
                    assert message.health == 50
                if client.connected:
                    client.send(State(tick, 1.0, 2.0, 50), 1)
        network.advance(1 / RATE)
        with server.tick() as inbox:
            for sender, message in inbox.messages:
                server.send(sender, message, 1)

    for _ in range(RATE):
        run()
    assert len(server.clients) == CLIENTS
    return run


def measured(threads: int, seconds: float) -> tuple[float, float]:
    """Ticks per second of the clock, and microseconds of CPU per tick, of all servers."""
    games = [game(number) for number in range(SERVERS)]
    start, counts, cpu = threading.Barrier(threads + 1), [0] * threads, [0.0] * threads
    over = 0.0

    def work(thread: int) -> None:
        mine, count = games[thread::threads], 0
        start.wait()
        before = time.thread_time()
        while time.perf_counter() < over:
            for run in mine:
                run()
            count += len(mine)
        counts[thread], cpu[thread] = count, time.thread_time() - before

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    began = time.perf_counter()
    over = began + seconds
    start.wait()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - began), sum(cpu) / sum(counts) * 1e6


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"CPython {sys.version.split()[0]}, {'with' if gil else 'without'} a GIL")
    figures = {}
    for threads in (1, 2):
        figures[threads] = ticks, cpu = measured(threads, seconds)
        print(f"{threads} thread(s): {ticks:8,.0f} ticks/s, {cpu:6.1f} us of CPU per tick")
    (one, one_cpu), (two, two_cpu) = figures[1], figures[2]
    print(f"two threads: {two / one:.2f} times as much, {two_cpu / one_cpu:.2f} times the CPU per tick")


if __name__ == "__main__":
    main()
