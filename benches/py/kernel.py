"""The scenes of ``benches/links.rs`` and ``benches/delivery.rs`` over a real kernel: processes in two network
namespaces, joined by an emulated line. Virtual time can't show the effects of sockets, schedulers, loops
that wake by arrival, and the kernel's own TCP.

``kernel.py links`` writes ``benches/links/results_kernel.json``, ``kernel.py delivery`` writes
``benches/delivery/results_kernel.json``. With more words, only the cases that contain one of them run, and
nothing is written. Both need Linux, root, ``ip`` and ``/dev/net/tun``; without them
they print a sentence and succeed. Other processes on the machine disturb the figures: each row has the load.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import heapq
import itertools
import json
import os
import random
import select
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tickwire as tw

SERVER, CLIENT = "10.99.0.1", "10.99.0.2"
PORT = 7000
SEEDS = 3
PAYLOAD, MESSAGES = 64, 1200
MAX_SECONDS = 60
NAMESPACES = "/var/run/netns"
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000

LINES = [(10, 50), (20, 40), (50, 50), (100, 20)]
"""Mbit/s and round trip in ms; the queue holds one bandwidth-delay product."""
BLOCKS = [256 << 10, 8 << 20]
ENDS = [
    ("ticks", "ticks"),
    ("ticks", "arrival"),
    ("thread", "ticks"),
    ("thread", "arrival"),
    ("arrival", "arrival"),
]
"""How the sender wakes, and the receiver."""
SHARED = [(20, 40), (50, 30)]
"""Lines that an endless transfer shares with another flow, of the kernel's TCP or of a second client."""
OTHERS = ["cubic", "bbr", "transfer"]
FIRST, SETTLE, WATCH = 5.0, 5.0, 30.0
"""Seconds between the starts of both flows, from there until their shares are counted, and of the count."""
ENDS_OF_NOTES = [("ticks", "ticks"), ("thread", "ticks"), ("thread", "thread"), ("arrival", "arrival")]


# --- the line --------------------------------------------------------------------------------------------


@dataclass
class Direction:
    """One direction of a line: a queue that drops at its tail, a rate, loss, and a delay."""

    mbit: float
    delay: float
    queue: float
    loss: float
    random: random.Random
    free_at: float = 0.0
    waiting: list[tuple[float, int, bytes]] = field(default_factory=list)
    packets: int = 0
    bytes: int = 0
    dropped: int = 0
    watched: tuple[float, float] = (0.0, 0.0)
    """The time in which bytes that leave the queue are counted by flow."""
    flows: dict[str, int] = field(default_factory=dict)
    """By protocol and source port."""

    def send(self, now: float, packet: bytes, number: int) -> None:
        self.packets += 1
        self.bytes += len(packet)
        begin = now
        if self.mbit:
            begin = max(self.free_at, now)
            if (begin - now) * self.mbit * 125_000 + len(packet) > self.queue:
                self.dropped += 1
                return
            self.free_at = begin = begin + len(packet) / (self.mbit * 125_000)
        if self.watched[0] <= begin < self.watched[1]:
            flow = f"{packet[9]} {int.from_bytes(packet[20:22])}"
            self.flows[flow] = self.flows.get(flow, 0) + len(packet)
        if self.random.random() >= self.loss:
            heapq.heappush(self.waiting, (begin + self.delay, number, packet))


def open_tun(namespace: str, address: str, other: str) -> int:
    """A TUN device inside a namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as home, open(f"{NAMESPACES}/{namespace}") as inside:
        if libc.setns(inside.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH14x", b"line0", IFF_TUN | IFF_NO_PI))
        finally:
            libc.setns(home.fileno(), 0)
    inside_of = ["ip", "-n", namespace]
    subprocess.run([*inside_of, "addr", "add", address, "peer", other, "dev", "line0"], check=True)
    subprocess.run([*inside_of, "link", "set", "line0", "up", "txqueuelen", "20000"], check=True)
    return tun


def forward(tuns: list[int], ways: list[Direction], stop: int) -> None:
    """Forwards packets until the descriptor ``stop`` can be read."""
    numbers = itertools.count()
    while True:
        now = time.monotonic()
        for way, tun in zip(ways, reversed(tuns), strict=True):
            while way.waiting and way.waiting[0][0] <= now:
                os.write(tun, heapq.heappop(way.waiting)[2])
        due = min((way.waiting[0][0] for way in ways if way.waiting), default=now + 1.0)
        readable, _, _ = select.select([*tuns, stop], [], [], max(0.0, due - time.monotonic()))
        if stop in readable:
            return
        for way, tun in zip(ways, tuns, strict=True):
            for _ in range(64 if tun in readable else 0):
                try:
                    packet = os.read(tun, 2048)
                except BlockingIOError:
                    break
                way.send(time.monotonic(), packet, next(numbers))


class Line:
    """Two namespaces and the process that joins them, within a ``with``."""

    def __init__(
        self,
        mbit: float,
        rtt_ms: float,
        *,
        loss: float = 0.0,
        seed: int = 1,
        watched: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.names = [f"tw{side}{os.getpid()}" for side in "ab"]
        line = mbit, rtt_ms / 2000, mbit * 125 * rtt_ms, loss
        self._ways = [Direction(*line, random.Random(2 * seed + way), watched=watched) for way in range(2)]

    def __enter__(self) -> Line:
        for name in self.names:
            subprocess.run(["ip", "netns", "add", name], check=True, capture_output=True)
        tuns = [
            open_tun(name, *ends)
            for name, ends in zip(self.names, [(SERVER, CLIENT), (CLIENT, SERVER)], strict=True)
        ]
        ours, theirs = socket.socketpair()
        self._pipe, self._process = ours, os.fork()
        if self._process == 0:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
            forward(tuns, self._ways, theirs.fileno())
            counted = ("packets", "bytes", "dropped", "flows")
            counts = [{name: getattr(way, name) for name in counted} for way in self._ways]
            theirs.sendall(json.dumps(counts).encode())
            os._exit(0)
        theirs.close()
        for tun in tuns:
            os.close(tun)
        return self

    def run(self, side: int, *words: object) -> subprocess.Popen[str]:
        """Starts this file with other words inside a namespace."""
        command = ["ip", "netns", "exec", self.names[side], sys.executable, __file__, *map(str, words)]
        # Development mode warns.
        environment = os.environ | {"PYTHONWARNINGS": "ignore"}
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    def finish(self) -> list[dict[str, Any]]:
        """Ends the line: the counts of each direction, the server's first."""
        self._pipe.sendall(b"x")
        counts: list[dict[str, Any]] = json.loads(self._pipe.recv(4096))
        return counts

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)


# --- the ends --------------------------------------------------------------------------------------------


@tw.message
class Note:
    content: Annotated[bytes, tw.data(PAYLOAD)]


PROTOCOL = tw.Protocol(0x6B, [Note], [tw.reliable_ordered(), tw.chunks()])


def woken(endpoint: Any) -> Iterator[Any]:
    """Inboxes as something arrives: what an event loop does with a descriptor."""
    while True:
        wait = endpoint._step()
        yield endpoint.receive()
        endpoint.flush()
        select.select([endpoint._fileno()], [], [], wait)


def serve(ends: str) -> None:
    """Receives chunks and notes until it is killed: answers chunks, and prints the times of notes."""
    latencies: list[float] = []
    server = tw.Server(
        (SERVER, PORT),
        PROTOCOL,
        transfers=tw.transfer.Transfers(memory=64 << 20),
        tuning=tw.Tuning(driver="thread" if ends == "thread" else "polled"),
    )

    def take(inbox: Any) -> None:
        for chunk in inbox.chunks:
            server.send(chunk.client, Note(b"done"), 0)
        for _, note in inbox.messages:
            if note.content == b"end":
                print(json.dumps(latencies), flush=True)
                continue
            latencies.append(time.monotonic() - struct.unpack_from("d", note.content)[0])

    if ends == "arrival":
        for inbox in woken(server):
            take(inbox)
    else:
        with tw.run(server, 60) as ticks:
            for _, inbox in ticks:
                take(inbox)


def play(ends: str, turn: Any) -> None:
    """Runs a client's loop until ``turn`` returns true."""
    client = tw.Client.connect(
        (SERVER, PORT), PROTOCOL, tuning=tw.Tuning(driver="thread" if ends == "thread" else "polled")
    )

    async def play_woken() -> None:
        async with tw.aio.run(client, 60) as ticks:
            async for _, inbox in ticks:
                if turn(client, inbox):
                    return

    if ends == "arrival":
        asyncio.run(play_woken())
    else:
        with tw.run(client, 60) as ticks:
            for _, inbox in ticks:
                if turn(client, inbox):
                    return


def send_chunk(ends: str, size: int, at: float) -> None:
    """Sends a chunk at a time of the monotonic clock, and prints how long it took."""
    content, began = os.urandom(size), 0.0

    def turn(client: Any, inbox: Any) -> bool:
        nonlocal began
        if not began and client.connected and time.monotonic() >= at:
            began = time.monotonic()
            client.send_chunk(content)
        if len(inbox.messages):
            print(json.dumps(time.monotonic() - began), flush=True)
            return True
        return False

    play(ends, turn)


def send_on(ends: str, at: float) -> None:
    """Sends chunk after chunk from a time on."""
    content, under_way = os.urandom(8 << 20), 0

    def turn(client: Any, inbox: Any) -> bool:
        nonlocal under_way
        under_way -= len(inbox.messages)
        while client.connected and time.monotonic() >= at and under_way < 2:
            client.send_chunk(os.urandom(8) + content)
            under_way += 1
        return False

    play(ends, turn)


def take_tcp() -> None:
    with socket.create_server((SERVER, PORT)) as listener:
        other, _ = listener.accept()
        while other.recv(1 << 16):
            pass


def send_tcp(control: str, at: float) -> None:
    """Sends on a TCP connection with this congestion control from a time on."""
    with socket.create_connection((SERVER, PORT)) as other:
        other.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        time.sleep(max(0.0, at - time.monotonic()))
        content = bytes(1 << 16)
        while True:
            other.sendall(content)


def send_notes(ends: str) -> None:
    sent = 0

    def turn(client: Any, _: Any) -> bool:
        nonlocal sent
        if client.connected:
            sent += 1
            if sent <= MESSAGES:
                client.send(Note(struct.pack("d", time.monotonic()).ljust(PAYLOAD, b"x")), 0)
            elif sent == MESSAGES + 60:
                client.send(Note(b"end"), 0)
        return sent > MESSAGES + 180

    play(ends, turn)


# --- the tables ------------------------------------------------------------------------------------------


def wanted(case: str, words: list[str]) -> bool:
    return not words or any(word in case for word in words)


def links(words: list[str]) -> list[dict[str, Any]]:
    rows = []
    cases = [(line, ends, block, 1) for ends in ENDS for line in LINES for block in BLOCKS]
    cases += [(line, ends, 8 << 20, 2) for ends in ENDS[:2] for line in [(20, 40), (50, 20)]]
    for (mbit, rtt), (sender, receiver), block, flows in cases:
        case = f"{mbit} Mbit/s, {rtt} ms, {sender} to {receiver}, {flows} x {block >> 10} KiB"
        if not wanted(case, words):
            continue
        runs = [transfer(mbit, rtt, sender, receiver, block, flows, seed) for seed in range(1, SEEDS + 1)]
        seconds = statistics.median(max(times) for times, _ in runs)
        row = {
            "case": case,
            "seconds": round(seconds, 3),
            "ratio": round(seconds / (flows * block * 8e-6 / mbit + rtt / 1000), 3),
            "jain": round(statistics.median(jain([1 / each for each in times]) for times, _ in runs), 3),
            "dropped_percent": round(statistics.median(dropped for _, dropped in runs), 2),
            "most_dropped_percent": round(max(dropped for _, dropped in runs), 2),
            "load": round(os.getloadavg()[0], 1),
        }
        print(*row.values(), sep=" | ", flush=True)
        rows.append(row)
    return rows


def shares(words: list[str]) -> list[dict[str, Any]]:
    """What a transfer gets of a line beside another flow that starts before or after it."""
    rows = []
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    others = [other for other in OTHERS if other in known or other == "transfer"]
    for (mbit, rtt), other, first in itertools.product(SHARED, others, ["it", "we"]):
        case = f"{mbit} Mbit/s, {rtt} ms, beside {other}, {first} first"
        if not wanted(case, words) or (other, first) == ("transfer", "it"):
            continue
        runs = [share(mbit, rtt, other, first == "we", seed) for seed in range(1, SEEDS + 1)]
        ours = sorted(100 * us / (us + it) for us, it, _ in runs)
        row = {
            "case": case,
            "our_percent": round(statistics.median(ours), 1),
            "least_percent": round(ours[0], 1),
            "jain": round(statistics.median(jain([us, it]) for us, it, _ in runs), 3),
            "all_mbit": round(statistics.median((us + it) * 8e-6 / WATCH for us, it, _ in runs), 1),
            "dropped_percent": round(statistics.median(dropped for *_, dropped in runs), 2),
            "load": round(os.getloadavg()[0], 1),
        }
        print(*row.values(), sep=" | ", flush=True)
        rows.append(row)
    return rows


def share(mbit: int, rtt: int, other: str, we_first: bool, seed: int) -> tuple[int, int, float]:
    """Bytes of a transfer and of another flow, and the percentage of packets that the queue dropped."""
    at = time.monotonic() + 2.0 + 0.013 * seed
    ours, theirs = (at, at + FIRST) if we_first else (at + FIRST, at)
    until = at + FIRST + SETTLE + WATCH
    with Line(mbit, rtt, seed=seed, watched=(until - WATCH, until)) as line:
        processes = [line.run(0, "serve", "arrival"), line.run(0, "take-tcp")]
        time.sleep(0.5)
        processes.append(line.run(1, "on", "thread", ours))
        again = ("on", "thread", theirs) if other == "transfer" else ("tcp", other, theirs)
        processes.append(line.run(1, *again))
        time.sleep(until - time.monotonic())
        for process in reversed(processes):
            process.kill()
            process.wait()
        _, there = line.finish()
    flows: dict[str, int] = there["flows"]
    by_kind = [[of for name, of in flows.items() if name.startswith(kind)] for kind in ("17 ", "6 ")]
    us, it = by_kind[0] if other == "transfer" else map(sum, by_kind)
    return us, it, 100 * there["dropped"] / there["packets"]


def jain(rates: list[float]) -> float:
    """Jain's index of fairness: 1 if all are equal."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def transfer(
    mbit: int, rtt: int, sender: str, receiver: str, block: int, flows: int, seed: int
) -> tuple[list[float], float]:
    """Seconds until each of some chunks arrived, and the percentage of packets that the queue dropped."""
    with Line(mbit, rtt, seed=seed) as line:
        server = line.run(0, "serve", receiver)
        at = time.monotonic() + 2.0 + 0.013 * seed
        clients = [line.run(1, "chunk", sender, block, at) for _ in range(flows)]
        try:
            seconds = [json.loads(client.communicate(timeout=MAX_SECONDS)[0]) for client in clients]
        finally:
            for process in [server, *clients]:
                process.kill()
                process.wait()
        _, back = line.finish()
        return seconds, 100 * back["dropped"] / back["packets"]


def delivery(words: list[str]) -> list[dict[str, Any]]:
    rows = []
    for sender, receiver in ENDS_OF_NOTES:
        case = f"100 ms, 5 % loss, {sender} to {receiver}"
        if not wanted(case, words):
            continue
        latencies: list[float] = []
        sent = back = 0
        for seed in range(1, SEEDS + 1):
            with Line(0, 100, loss=0.05, seed=seed) as line:
                server = line.run(0, "serve", receiver)
                time.sleep(0.7)
                client = line.run(1, "notes", sender)
                try:
                    assert server.stdout is not None
                    latencies += json.loads(server.stdout.readline())
                finally:
                    for process in (server, client):
                        process.kill()
                        process.wait()
                answers, notes = line.finish()
                sent, back = sent + notes["bytes"], back + answers["bytes"]
        latencies.sort()
        payload = MESSAGES * SEEDS * PAYLOAD
        row = {
            "case": case,
            "arrived": len(latencies),
            "p50_ms": round(1000 * latencies[len(latencies) // 2], 1),
            "p99_ms": round(1000 * latencies[len(latencies) * 99 // 100], 1),
            "sent_a_payload_byte": round(sent / payload, 2),
            "answered_a_payload_byte": round(back / payload, 2),
            "load": round(os.getloadavg()[0], 1),
        }
        print(*row.values(), sep=" | ", flush=True)
        rows.append(row)
    return rows


def obstacle() -> str | None:
    """The reason why this machine can't run it."""
    if sys.platform != "linux":
        return "network namespaces need Linux"
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None or not Path("/dev/net/tun").exists():
        return "the command ip or the device /dev/net/tun is missing"
    try:
        with Line(0, 0):
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        return f"the namespaces can't be made: {error}"


def main() -> None:
    match sys.argv[1:]:
        case ["serve", ends]:
            serve(ends)
        case ["chunk", ends, size, at]:
            send_chunk(ends, int(size), float(at))
        case ["on", ends, at]:
            send_on(ends, float(at))
        case ["take-tcp"]:
            take_tcp()
        case ["tcp", control, at]:
            send_tcp(control, float(at))
        case ["notes", ends]:
            send_notes(ends)
        case ["links" | "delivery" as table, *words]:
            if (why := obstacle()) is not None:
                print(f"Skipped, because {why}.")
                return
            rows = links(words) + shares(words) if table == "links" else delivery(words)
            if words:
                return
            folder = Path(__file__).parent.parent / table
            folder.mkdir(exist_ok=True)
            (folder / "results_kernel.json").write_text(json.dumps(rows, indent=2) + "\n")
        case _:
            sys.exit("usage: kernel.py links|delivery [WORD...]")


if __name__ == "__main__":
    main()
