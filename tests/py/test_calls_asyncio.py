"""Requests that are awaited, and calls of endpoints with a thread: real sockets, bounded waits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any

import pytest
import tickwire as tw
from conftest import paced
from tickwire import aio

PATIENCE = 20.0


@tw.call(tw.to_server, timeout=0.3)
def double(_caller: tw.ClientHandle, number: tw.u16) -> tw.u32:
    return 2 * number


@tw.call(tw.to_client)
def name() -> Annotated[str, tw.text(20)]:
    return "ann"


PROTOCOL: tw.Protocol[Any] = tw.Protocol(1, [], calls=[double, name])


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(asyncio.wait_for(main, PATIENCE))


async def play(endpoint: Any) -> None:
    async with aio.run(endpoint, 200) as ticks:
        async for _ in ticks:
            pass


def test_requests_are_awaited() -> None:
    async def main() -> None:
        server = tw.Server("127.0.0.1:0", PROTOCOL)
        client = tw.Client.connect(server.address, PROTOCOL)
        tasks = [asyncio.create_task(play(each)) for each in (server, client)]
        while not (client.connected and server.clients):
            await asyncio.sleep(0.001)
        request = client.request(double, 21)
        assert await request == 42
        assert await request == 42
        assert await server.request(server.clients[0], name) == "ann"
        for task in tasks:
            task.cancel()

    run(main())


def test_the_end_of_a_request_wakes_its_task() -> None:
    async def main() -> None:
        server = tw.Server("127.0.0.1:0", PROTOCOL)
        client = tw.Client.connect(server.address, PROTOCOL)
        task = asyncio.create_task(play(client))
        while not client.connected:
            server.pump()
            await asyncio.sleep(0.001)
        request = client.request(double, 21)
        with pytest.raises(tw.errors.CallTimeoutError):
            await request
        cancelled = asyncio.ensure_future(client.request(double, 1))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        pending = client.request(double, 1)
        client.close()
        with pytest.raises(tw.errors.NotConnectedError):
            await pending
        await task
        server.close()

    run(main())


def test_a_cancelled_wait_cancels_the_request() -> None:
    async def main() -> None:
        network = tw.testing.SimulatedNetwork()
        server = tw.Server("10.0.0.1:5", PROTOCOL, network=network)
        client = tw.Client.connect(server.address, PROTOCOL, network=network)
        for _ in range(60):
            for each in (server, client):
                with each.tick():
                    pass
            network.advance(1 / 60)
        request = client.request(double, 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(request, 0.01)
        assert isinstance(request.error, tw.errors.CallCancelledError)

    run(main())


def test_endpoints_with_a_thread_call_and_answer() -> None:
    with (
        tw.Server("127.0.0.1:0", PROTOCOL, tuning=tw.Tuning(driver="thread")) as server,
        tw.Client.connect(server.address, PROTOCOL, tuning=tw.Tuning(driver="thread")) as client,
    ):
        request: tw.calls.Request[int] | None = None
        for _ in paced(200, seconds=PATIENCE):
            for endpoint in (server, client):
                with endpoint.tick():
                    pass
            if client.connected and request is None:
                request = client.request(double, 4)
            if request is not None and request.done:
                break
        assert request is not None
        assert request.result() == 8
