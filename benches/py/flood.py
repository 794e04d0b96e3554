"""A server whose clients play while strangers flood its socket with a million datagrams, polled and threaded.

Prints the longest tick's work, how many datagrams a tick read at most, how long messages of the clients took
at worst, and what became of the strangers' datagrams. Run it by itself:
`.venv/bin/python benches/py/flood.py [datagrams]`.
"""

from __future__ import annotations

import multiprocessing
import socket
import sys
import time
from contextlib import ExitStack
from typing import Annotated, Literal

import tickwire as tw

CLIENTS = 8
TICK = 1 / 60
# The maximum that a receive() of the game reads.
BOUND = 3000


@tw.message
class Note:
    number: Annotated[int, tw.bits(32)]


def flood(address: tuple[str, int], datagrams: int) -> None:
    """Sends datagrams as fast as it can: some too short, some like requests, some like payloads."""
    strange = [bytes([kind]) * size for kind, size in ((5, 10), (0, 1078), (0x15, 100), (0xFF, 1200))]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for number in range(datagrams):
            stranger.sendto(strange[number % 4], address)


def play(driver: Literal["polled", "thread"], datagrams: int) -> dict[str, float]:
    protocol = tw.Protocol(1, [Note], [tw.reliable_ordered(), tw.unreliable()])
    with ExitStack() as stack:
        server = stack.enter_context(tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver=driver)))
        clients = [stack.enter_context(tw.Client.connect(server.address, protocol)) for _ in range(CLIENTS)]
        while len(server.clients) < CLIENTS or not all(client.connected for client in clients):
            for endpoint in (server, *clients):
                with endpoint.tick():
                    pass
        before = counted(server)
        host, port = str(server.address).rsplit(":", 1)
        stranger = multiprocessing.get_context("spawn").Process(
            target=flood, args=((host, int(port)), datagrams)
        )
        stranger.start()
        work, read, waits, sent_at, taken = [], [], [], {}, 0
        began = time.perf_counter()
        number = 0
        while stranger.is_alive() or taken < number * CLIENTS:
            due = began + (len(work) + 1) * TICK
            number += stranger.is_alive()
            sent_at.setdefault(number, time.perf_counter())
            for client in clients:
                with client.tick():
                    if stranger.is_alive():
                        client.send(Note(number), channel=0)
            received = server.counters["socket.received"]
            start, cpu = time.perf_counter(), time.thread_time()
            with server.tick() as inbox:
                for _, note in inbox.messages:
                    waits.append(start - sent_at[note.number])
                taken += len(inbox.messages)
                if any(isinstance(event, tw.Disconnected) for event in inbox.events):
                    raise SystemExit("a client was lost")
            work.append(time.thread_time() - cpu)
            read.append(server.counters["socket.received"] - received)
            if time.perf_counter() - began > 120:
                raise SystemExit("messages don't come through")
            time.sleep(max(0.0, due - time.perf_counter()))
        stranger.join()
        after = counted(server)
        work.sort()
        waits.sort()
        return {
            "seconds": time.perf_counter() - began,
            "messages": taken,
            "tick CPU, p99 (ms)": work[len(work) * 99 // 100] * 1000,
            "tick CPU, most (ms)": work[-1] * 1000,
            "datagrams read in a tick, most": max(read),
            "wait of a message, p50 (ms)": waits[len(waits) // 2] * 1000,
            "wait of a message, p99 (ms)": waits[len(waits) * 99 // 100] * 1000,
            "read and refused": after[0] - before[0],
            "dropped by the kernel": after[1] - before[1],
        }


def counted(server: tw.Server) -> tuple[int, int]:
    counters = server.counters
    refused = sum(count for name, count in counters.items() if name.startswith("netcode."))
    return refused, counters["socket.kernel_drops"]


def main() -> None:
    datagrams = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for driver in ("polled", "thread"):
        print(f"{driver}, {datagrams:,} stray datagrams")
        for what, value in play(driver, datagrams).items():
            print(f"  {what:<32} {value:>12,.2f}")


if __name__ == "__main__":
    main()
