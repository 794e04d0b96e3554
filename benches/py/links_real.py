"""Blocks over real sockets: through a proxy with the links of ``benches/links.rs``, and over clean loopback
for what they cost both ends' processors. Prints a table and writes ``benches/links/results_real.json``.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import time
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

import tickwire as tw

KIB, MIB = 1024, 1024 * 1024
RUNS = 3


@tw.message
class Note:
    text: Annotated[str, tw.text(20)]


def protocol() -> tw.Protocol:
    return tw.Protocol(id=1, messages=[Note], channels=[tw.unreliable(), tw.chunks()])


def link(mbit: int, rtt: float, **losses: Any) -> tw.Conditions:
    """One direction, with a queue of one bandwidth-delay product."""
    rate = mbit * 125_000
    return tw.Conditions(
        latency=rtt / 2, bottleneck=tw.testing.Bottleneck(rate, queue=int(rate * rtt)), **losses
    )


LINKS = {
    "10 Mbit/s, 50 ms, 0 % loss": (10, 0.05, {}),
    "10 Mbit/s, 50 ms, 2 % loss": (10, 0.05, {"loss": 0.02}),
    "50 Mbit/s, 100 ms, 1 % loss": (50, 0.1, {"loss": 0.01}),
    "100 Mbit/s, 30 ms, 5 % loss in bursts of 5": (100, 0.03, {"bursts": tw.testing.Bursts.mean(0.05, 5)}),
    "100 Mbit/s, 30 ms, outages of 5 ms, 5 %": (100, 0.03, {"outages": tw.testing.Outages(0.005, 0.05)}),
    "2 Mbit/s, 150 ms, 3 % loss": (2, 0.15, {"loss": 0.03}),
}


def processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def send(pipe: Connection, driver: str) -> None:
    """A process that sends blocks of the sizes it is told, and says what each took of its processor."""
    with tw.Server("127.0.0.1:0", protocol(), tuning=tw.Tuning(driver=driver)) as server:
        pipe.send(str(server.address))
        while True:
            with server.tick():
                pass
            if not pipe.poll(0.001):
                continue
            told = pipe.recv()
            if told is None:
                return
            size, burst = told
            content = os.urandom(size)
            spent, began = processor_seconds(), time.monotonic()
            transfer = server.send_chunk(server.clients[0], content, burst=burst)
            while not transfer.over:
                with server.tick():
                    pass
                time.sleep(0.001)
            pipe.send((began, processor_seconds() - spent, transfer.error))


class Sender:
    """The other process."""

    def __init__(self, driver: str = "thread") -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=send, args=(theirs, driver), daemon=True)
        self.process.start()
        self.address = self.pipe.recv()

    def close(self) -> None:
        self.pipe.send(None)
        self.process.join(10)


def block(
    sender: Sender, address: Any, size: int, driver: Literal["polled", "thread"] = "thread"
) -> tuple[float, float, float]:
    """Sends one block over a connection of its own; seconds it took, of the sender's processor, and of the
    receiver's."""
    with tw.Client.connect(
        address,
        protocol(),
        tuning=tw.Tuning(driver=driver),
        transfers=tw.transfer.Transfers(memory=256 * MIB),
    ) as client:
        settled = time.monotonic() + 1.0
        while time.monotonic() < settled or not client.connected:
            with client.tick():
                pass
            time.sleep(0.001)
        receiving = processor_seconds()
        sender.pipe.send((size, size <= 256 * KIB))
        while True:
            with client.tick() as inbox:
                if inbox.chunks:
                    arrived, received = time.monotonic(), processor_seconds() - receiving
                    break
                assert client.connected, client.disconnect_reason
            time.sleep(0.0005)
        while not sender.pipe.poll(0.001):
            with client.tick():
                pass
        began, spent, error = sender.pipe.recv()
        assert error is None, error
        # Both processes read the same clock.
        return arrived - began, spent, received


def main() -> None:
    results: list[dict[str, object]] = []
    for name, (mbit, rtt, losses) in LINKS.items():
        for size in (256 * KIB, 8 * MIB):
            seconds = []
            for seed in range(RUNS):
                sender = Sender()
                conditions = link(mbit, rtt, **losses)
                with tw.testing.Proxy(
                    "127.0.0.1:0", to=sender.address, conditions=conditions, seed=seed
                ) as proxy:
                    seconds.append(block(sender, proxy.address, size)[0])
                sender.close()
            ideal = size * 8 / (mbit * 1e6) + rtt
            ratio = median(seconds) / ideal
            print(f"{name:44} {size // KIB:>5} KiB: {ratio:.3f} x ideal", flush=True)
            results.append(
                {
                    "link": name,
                    "block_bytes": size,
                    "seconds": round(median(seconds), 4),
                    "ideal_seconds": round(ideal, 4),
                    "ratio": round(ratio, 3),
                }
            )
    drivers: tuple[Literal["polled", "thread"], ...] = ("thread", "polled")
    for driver in drivers:
        sender = Sender(driver)
        taken = [block(sender, sender.address, 64 * MIB, driver) for _ in range(RUNS)]
        sender.close()
        per_second = 64 * MIB / 1e6 / median(spent for _, spent, _ in taken)
        received = 16 * median(received for _, _, received in taken)
        rate = 64 * MIB / 1e6 / median(seconds for seconds, _, _ in taken)
        figures = f"{per_second:.0f} MB a processor second of the sender, {rate:.0f} MB/s"
        print(f"loopback, 64 MiB, {driver}: {figures}, {received:.2f} s a GiB of the receiver")
        results.append(
            {
                "link": f"loopback, {driver}",
                "block_bytes": 64 * MIB,
                "megabytes_per_cpu_second": round(per_second, 1),
                "megabytes_per_second": round(rate, 1),
                "receiver_cpu_seconds_per_gib": round(received, 2),
            }
        )
    path = Path(__file__).parents[1] / "links" / "results_real.json"
    path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
