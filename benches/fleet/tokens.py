"""How many tokens a second one matchmaker gives, on one core, over HTTP on the loopback address."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import time
from typing import Any

import tickwire as tw
from tickwire.fleet import Place
from tickwire.samples.matchmaker import game
from tickwire.samples.matchmaker.backend import Matchmaker, make_app, sign_ticket

SECRET = b"between login and matchmaker"
CONNECTIONS = 32
SECONDS = 5.0
ROOMS = 100


class Engine:
    """Rooms that all run already."""

    def find_or_create(self, room: str) -> Place:
        """See :class:`tickwire.fleet.Engine`."""
        return Place(tw.Address(f"203.0.113.7:{40_000 + int(room)}"), game.PROTOCOL.id)


class Unlimited:
    """Counts nothing: this bench asks from one address."""

    def count(self, _who: str) -> int:
        """See :class:`tickwire.samples.matchmaker.limits.Limits`."""
        return 1


def serve(listening: socket.socket) -> None:
    """The matchmaker, on the first core."""
    import uvicorn

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    app = make_app(Matchmaker(Engine(), game.KEY, SECRET, Unlimited()))
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])


async def ask(port: int, number: int, until: float) -> int:
    """Asks on one connection, again and again; returns how many tokens came."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    ticket = sign_ticket(SECRET, f"player-{number}", 4_000_000_000)
    body = f'{{"room": "{number % ROOMS}"}}'
    request = (
        f"POST /join HTTP/1.1\r\nHost: matchmaker\r\nAuthorization: Bearer {ticket}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()
    count = 0
    while time.perf_counter() < until:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        await reader.readexactly(2048)
        count += 1
    writer.close()
    return count


async def measure(port: int) -> float:
    """Tokens a second."""
    begun = time.perf_counter()
    counts = await asyncio.gather(*(ask(port, number, begun + SECONDS) for number in range(CONNECTIONS)))
    return sum(counts) / (time.perf_counter() - begun)


def main() -> None:
    """Measures and prints."""
    begun = time.perf_counter()
    made = 0
    place: Any = Place(tw.Address("203.0.113.7:40000"), game.PROTOCOL.id)
    maker = Matchmaker(Engine(), game.KEY, SECRET, Unlimited())
    while time.perf_counter() - begun < 1:
        maker.token(f"player-{made}", place)
        made += 1
    print(f"{made:,} tokens a second without HTTP")
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        process = multiprocessing.get_context("spawn").Process(target=serve, args=(listening,), daemon=True)
        process.start()
        print(
            f"{asyncio.run(measure(listening.getsockname()[1])):,.0f} tokens a second over HTTP, on one core"
        )
        process.terminate()


if __name__ == "__main__":
    main()
