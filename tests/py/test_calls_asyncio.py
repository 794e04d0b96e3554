"""Requests that are awaited, and calls of endpoints with a thread: real sockets, bounded waits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any

import pytest
import tickwire as tw
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


async def listen(driver: aio.Driver[Any]) -> None:
    async for _ in driver:
        pass


def test_requests_are_awaited() -> None:
    async def main() -> None:
        async with aio.Driver(tw.Server("127.0.0.1:0", PROTOCOL)) as server:
            client = tw.Client.connect(server.endpoint.address, PROTOCOL)
            async with aio.Driver(client) as driver:
                await driver.connected()
                tasks = [asyncio.create_task(listen(each)) for each in (server, driver)]
                request = client.request(double, 21)
                client.flush()
                assert await request == 42
                assert await request == 42
                while not server.endpoint.clients:
                    await asyncio.sleep(0)
                back = server.endpoint.request(server.endpoint.clients[0], name)
                server.endpoint.flush()
                assert await back == "ann"
                for task in tasks:
                    task.cancel()

    run(main())


def test_a_driver_wakes_for_the_end_of_a_request() -> None:
    async def main() -> None:
        server = tw.Server("127.0.0.1:0", PROTOCOL)
        server.implement(double, lambda _caller, _number: 1)
        client = tw.Client.connect(server.address, PROTOCOL)
        async with aio.Driver(client) as driver:
            while not client.connected:
                server.pump()
                await asyncio.sleep(0.001)
            task = asyncio.create_task(listen(driver))
            request = client.request(double, 21)
            client.flush()
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
            task.cancel()
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
        for _ in tw.ticks(200, duration=PATIENCE):
            for endpoint in (server, client):
                with endpoint.tick():
                    pass
            if client.connected and request is None:
                request = client.request(double, 4)
            if request is not None and request.done:
                break
        assert request is not None
        assert request.result() == 8
