"""How long an hour of eight players takes in virtual time: 60 ticks a second, a move of each player and an
answer to all in every tick, 40 +- 10 ms of latency, 2 % loss. Prints processor seconds.

    python benches/py/hour.py [HOURS]
"""

from __future__ import annotations

import sys
import time
from typing import Annotated

import tickwire as tw
from tickwire.testing import Conditions, Simulation


@tw.message
class Move:
    tick: tw.u16
    buttons: Annotated[int, tw.bits(8)]
    aim: Annotated[float, tw.quantized(-1, 1, 1 / 256)]


@tw.message
class State:
    tick: tw.u16
    x: tw.f32
    y: tw.f32


def main(hours: float) -> None:
    protocol = tw.Protocol(id=1, messages=[Move, State], channels=[tw.unreliable(), tw.sequenced()])
    began, received = time.process_time(), 0
    with Simulation(protocol, seed=1, conditions=Conditions(latency=0.04, jitter=0.01, loss=0.02)) as world:
        server = world.server()
        players = [world.client() for _ in range(8)]
        for tick in world.ticks(hours * 3600):
            received += len(world.inbox(server).messages)
            for player in players:
                received += len(world.inbox(player).messages)
                if player.connected:
                    player.send(Move(tick % 65_536, 1, 0.5))
            server.broadcast(State(tick % 65_536, 1.0, 2.0), channel=1)
        datagrams = world.network.counters["sent"]
    seconds = time.process_time() - began
    print(f"{hours:g} virtual hours, {datagrams} datagrams, {received} messages: {seconds:.1f} s of one core")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
