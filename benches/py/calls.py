"""What a call costs beside a message with a function for it: thread CPU of both sides, in turns.

    python benches/py/calls.py

The two exchange the same fields over one kind of channel on a simulated network: made, sent, received, and
handed to a function.
A ratio of times measured in turns is steadier than the times themselves, on a busy machine above all.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Annotated

import tickwire as tw
from tickwire.testing import connected_pair

BATCH = 100
ROUNDS = 300
TAKEN: list[int] = []


@tw.message
class Order:
    tick: tw.u16
    buttons: Annotated[int, tw.bits(8)]
    aim: Annotated[float, tw.quantized(-1, 1, 1 / 256)]
    running: bool


@tw.call(tw.to_server, rate=1e5, burst=1e6)
def order(
    _caller: tw.ClientHandle,
    tick: tw.u16,
    _buttons: Annotated[int, tw.bits(8)],
    _aim: Annotated[float, tw.quantized(-1, 1, 1 / 256)],
    _running: bool,
) -> None:
    TAKEN.append(tick)


PROTOCOL: tw.Protocol[Order] = tw.Protocol(1, [Order], [tw.reliable_ordered()], calls=[order])
handlers = tw.messages.Handlers()


@handlers.on(Order)
def ordered(_client: tw.ClientHandle, message: Order) -> None:
    TAKEN.append(message.tick)


def rounds() -> dict[str, Callable[[], None]]:
    """By name: sends a batch and has the server take it."""
    network, server, client = connected_pair(PROTOCOL)

    def tick() -> None:
        client.flush()
        network.advance(1 / 60)
        with server.tick() as inbox:
            handlers.dispatch(inbox)
        network.advance(1 / 60)
        client.receive()

    def messages() -> None:
        for number in range(BATCH):
            client.send(Order(number, 3, 0.5, True))
        tick()

    def calls() -> None:
        for number in range(BATCH):
            client.call(order, number, 3, 0.5, True)
        tick()

    return {"message": messages, "call": calls}


def main() -> None:
    """Measures, and prints."""
    all_rounds = rounds()
    spent: dict[str, list[float]] = {name: [] for name in all_rounds}
    for _ in range(ROUNDS):
        for name, run in all_rounds.items():
            TAKEN.clear()
            start = time.thread_time()
            run()
            spent[name].append(time.thread_time() - start)
            assert len(TAKEN) == BATCH, name
    for name, times in spent.items():
        print(f"{name}: {statistics.median(times) / BATCH * 1e6:.2f} us of thread CPU each, both sides")
    ratios = [call / message for message, call in zip(spent["message"], spent["call"], strict=True)]
    print(f"a call costs {statistics.median(ratios):.2f} times a message with a function")


if __name__ == "__main__":
    main()
