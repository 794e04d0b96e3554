"""Servers and clients on asyncio: real sockets, real event loops, bounded waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import pytest
import tickwire as tw
from conftest import Chat, Move, make_protocol
from tickwire import aio

PATIENCE = 20.0


def uvloop() -> ModuleType:
    return pytest.importorskip("uvloop")


class Proactor(asyncio.SelectorEventLoop):
    """Can't watch sockets, as Windows' default can't."""

    def add_reader(self, *_: Any) -> None:
        raise NotImplementedError

    def remove_reader(self, *_: Any) -> bool:
        raise NotImplementedError


FACTORIES: dict[str, Callable[[], Callable[[], asyncio.AbstractEventLoop]]] = {
    "asyncio": lambda: asyncio.SelectorEventLoop,
    "proactor": lambda: Proactor,
    "uvloop": lambda: uvloop().new_event_loop,
}


@pytest.fixture(params=FACTORIES)
def run(request: pytest.FixtureRequest) -> Callable[[Awaitable[Any]], Any]:
    factory = FACTORIES[request.param]()

    def runs(main: Awaitable[Any]) -> Any:
        async def bounded() -> Any:
            return await asyncio.wait_for(main, PATIENCE)

        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(bounded())

    return runs


Drivers = tuple[aio.Driver[tw.Server], aio.Driver[tw.Client]]


@asynccontextmanager
async def pair(protocol: tw.Protocol, **options: Any) -> AsyncIterator[Drivers]:
    """A server, and a client that is connected."""
    async with aio.Driver(tw.Server("127.0.0.1:0", protocol, **options)) as server:
        client = tw.Client.connect(server.endpoint.address, protocol)
        async with aio.Driver(client) as driver:
            await driver.connected()
            yield server, driver


def test_a_token_with_servers_of_both_families_reaches_each(run: Any, protocol: tw.Protocol) -> None:
    async def main() -> None:
        key = bytes(32)
        async with aio.Driver(tw.Server("[::1]:0", protocol, key=key)) as server:
            token = tw.ConnectToken.generate(
                protocol=protocol,
                key=key,
                client_id=1,
                servers=["127.0.0.1:1", server.endpoint.address],
                timeout=1,
            )
            async with aio.Driver(tw.Client(protocol, token)) as client:
                await client.connected()
                assert client.endpoint.server_address == server.endpoint.address

    run(main())


async def echo(driver: aio.Driver[tw.Server]) -> None:
    async for inbox in driver:
        for client, message in inbox.messages:
            driver.endpoint.send(client, message)


def test_messages_come_as_soon_as_they_are_there(run: Any, protocol: tw.Protocol) -> None:
    async def main() -> list[Any]:
        async with pair(protocol) as (server, client):
            echoing = asyncio.create_task(echo(server))
            answers: list[Any] = []
            client.endpoint.send(Move(0))
            client.endpoint.flush()
            async for inbox in client:
                for message in inbox.messages:
                    answers.append(message.tick)
                    client.endpoint.send(Move(message.tick + 1))
                if len(answers) >= 100:
                    break
            echoing.cancel()
            return answers

    assert run(main()) == list(range(100))


class Own(tw.messages.Message):
    """Only Python can read it."""

    number: int = 0

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.number = stream.serialize_bits(self.number, 16)


def test_messages_that_only_python_reads_wake_as_well(run: Any) -> None:
    async def main() -> list[Any]:
        protocol = tw.Protocol(
            1, [Own], [tw.reliable_ordered(), tw.unreliable()], yojimbo=tw.yojimbo.Profile()
        )
        async with pair(protocol) as (server, client):
            answers: list[Any] = []
            echoing = asyncio.create_task(echo(server))
            client.endpoint.send(Own(), 0)
            client.endpoint.flush()
            async for inbox in client:
                for message in inbox.messages:
                    answers.append(message.number)
                    message.number += 1
                    client.endpoint.send(message, 0)
                if len(answers) >= 10:
                    break
            echoing.cancel()
            return answers

    assert run(main()) == list(range(10))


def test_a_paced_loop_has_its_ticks_and_its_messages(run: Any, protocol: tw.Protocol) -> None:
    async def main() -> None:
        async with pair(protocol) as (server, client):
            echoing = asyncio.create_task(echo(server))
            loop = asyncio.get_running_loop()
            started, count, heard = loop.time(), 0, []
            async for inbox in client.ticks(100, duration=0.5):
                heard += inbox.messages
                client.endpoint.send(Move(count), channel=1)
                count += 1
            assert loop.time() - started > 0.45
            assert count <= 50
            assert len(heard) > 3
            echoing.cancel()

    run(main())


def test_a_game_may_tick_by_itself_beside_its_driver(run: Any, protocol: tw.Protocol) -> None:
    async def main() -> None:
        async with pair(protocol) as (server, client):
            got: list[Any] = []
            async for tick in aio.ticks(100):
                with client.endpoint.tick():
                    client.endpoint.send(Move(tick % 65_536))
                with server.endpoint.tick() as inbox:
                    got += [message.tick for _, message in inbox.messages]
                if len(got) > 5:
                    break
            assert got == sorted(got)

    run(main())


def test_ticks_skip_what_a_slow_body_missed(run: Any) -> None:
    async def main() -> list[int]:
        numbers = []
        async for number in aio.ticks(50, duration=0.2):
            numbers.append(number)
            if number == 2:
                await asyncio.sleep(0.07)
        return numbers

    numbers = run(main())
    assert numbers[:3] == [0, 1, 2]
    assert numbers == sorted(set(numbers))
    assert 3 not in numbers
    with pytest.raises(ValueError, match="rate must be above 0"):
        run(anext(aio.ticks(0)))


def test_a_connection_that_fails_says_why(run: Any, protocol: tw.Protocol) -> None:
    async def full() -> None:
        async with aio.Driver(tw.Server("127.0.0.1:0", protocol, max_clients=1)) as server:
            address = server.endpoint.address
            async with aio.Driver(tw.Client.connect(address, protocol)) as first:
                await first.connected()
                async with aio.Driver(tw.Client.connect(address, protocol)) as second:
                    with pytest.raises(tw.errors.ConnectFailedError, match="the server is full") as failed:
                        await second.connected()
                assert failed.value.reason is tw.DisconnectReason.SERVER_FULL
                assert isinstance(failed.value, ConnectionError)
                with pytest.raises(TypeError, match="a server has no connection to wait for"):
                    await server.connected()

    async def nobody() -> None:
        async with aio.Driver(
            tw.Client.connect("127.0.0.1:9", protocol, tuning=tw.Tuning(timeout=1))
        ) as driver:
            with pytest.raises(tw.errors.ConnectFailedError, match="no server answered|no program listens"):
                await driver.connected()

    run(full())
    run(nobody())


def test_an_iteration_ends_with_the_connection(run: Any, protocol: tw.Protocol) -> None:
    async def main() -> list[Any]:
        async with pair(protocol) as (server, client):
            events: list[Any] = []

            async def listen() -> None:
                async for inbox in client:
                    events.extend(inbox.events)

            listening = asyncio.create_task(listen())
            await asyncio.sleep(0)
            server.close()
            await listening
            async for _ in client.ticks(60):
                pytest.fail("it is over")
            return events

    connected, disconnected = run(main())
    assert isinstance(connected, tw.Connected)
    assert disconnected.reason is tw.DisconnectReason.SERVER_CLOSED


def test_closing_ends_those_who_wait(run: Any, protocol: tw.Protocol) -> None:
    async def main() -> None:
        async with pair(protocol) as (server, _):

            async def listen() -> int:
                return len([inbox async for inbox in server])

            listening = asyncio.create_task(listen())
            while not server.endpoint.clients:
                await asyncio.sleep(0.001)
            server.close()
            server.close()
            assert await listening >= 1
            async for _ in server:
                pytest.fail("it is closed")

    run(main())


def test_cancelling_whoever_waits_loses_nothing(run: Any, protocol: tw.Protocol) -> None:
    async def main() -> list[Any]:
        async with pair(protocol) as (server, client):
            got: list[int] = []

            async def listen() -> None:
                async for inbox in server:
                    got.extend(message.tick for _, message in inbox.messages)

            for number in range(100):
                listening = asyncio.create_task(listen())
                await asyncio.sleep(0)
                client.endpoint.send(Move(number))
                client.endpoint.flush()
                await asyncio.sleep(0.001 * (number % 3))
                listening.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await listening
            listening = asyncio.create_task(listen())
            while len(got) < 100:
                await asyncio.sleep(0.001)
            with pytest.raises(RuntimeError, match="something else waits"):
                await listen()
            listening.cancel()
            return got

    assert run(main()) == list(range(100))


def test_what_was_queued_before_leaving_is_sent(run: Any, protocol: tw.Protocol) -> None:
    async def main() -> list[Any]:
        async with aio.Driver(tw.Server("127.0.0.1:0", protocol)) as server:
            async with aio.Driver(tw.Client.connect(server.endpoint.address, protocol)) as client:
                await client.connected()
                async for _ in client:
                    client.endpoint.send(Chat(1, "bye"))
                    break
            async for inbox in server:
                if inbox.messages:
                    return [message for _, message in inbox.messages]
            return []

    assert run(main()) == [Chat(1, "bye")]


def test_an_idle_connection_wakes_only_for_keep_alives(protocol: tw.Protocol) -> None:
    ends: list[str] = []

    async def main() -> tuple[list[int], list[int]]:
        async with pair(protocol) as drivers:
            # What the beginning brings is over.
            await asyncio.sleep(0.3)
            before = [driver.wakes for driver in drivers]
            packets = [driver.endpoint.counters["socket.sent"] for driver in drivers]
            await asyncio.sleep(1)
            for driver in drivers:
                driver._check()  # an error of its own would have stopped it
            # The server's shows how many clients it has, the client's whether it is connected.
            ends.extend(repr(driver.endpoint) for driver in drivers)
            wakes = [driver.wakes - wakes for driver, wakes in zip(drivers, before, strict=True)]
            sent = [
                driver.endpoint.counters["socket.sent"] - sent
                for driver, sent in zip(drivers, packets, strict=True)
            ]
            return wakes, sent

    wakes, sent = asyncio.run(main())
    # Ten keep-alives a second each way: one wake to send each of ours, one to read each of theirs.
    assert all(5 <= count <= 13 for count in sent), (sent, ends)
    assert all(count <= 2 * 11 + 3 for count in wakes), wakes


def test_slices_and_resends_go_out_without_a_tick(run: Any) -> None:
    protocol = make_protocol(channels=[tw.reliable_ordered(max_message_bytes=60_000)])

    async def main() -> int:
        async with pair(
            protocol, debugging=tw.testing.Debugging(conditions=tw.Conditions(loss=0.3), seed=1)
        ) as (server, client):
            async for inbox in server:
                if inbox.events:
                    break
            for number in range(50):
                server.endpoint.broadcast(Move(number))
            server.endpoint.flush()
            # The server makes no call any more.
            got: list[int] = []
            async for inbox in client:
                got += [message.tick for message in inbox.messages]
                if len(got) == 50:
                    break
            assert got == list(range(50))
            return server.endpoint.stats(server.endpoint.clients[0]).channels[0].resent

    assert run(main()) >= 0


def test_an_event_loop_that_cant_watch_sockets_leaves_no_thread(protocol: tw.Protocol) -> None:
    def watching() -> int:
        return sum(thread.name == "tickwire-watch" for thread in threading.enumerate())

    async def main() -> None:
        for _ in range(50):
            async with pair(protocol):
                assert watching() == 2
            assert watching() == 0

    with asyncio.Runner(loop_factory=Proactor) as runner:
        runner.run(main())


def test_drivers_refuse_what_they_cant_drive(protocol: tw.Protocol) -> None:
    async def enter(endpoint: Any) -> None:
        async with aio.Driver(endpoint):
            pytest.fail("it can't")

    with pytest.raises(ValueError, match="the server has a thread"):
        asyncio.run(enter(tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver="thread"))))
    with pytest.raises(ValueError, match="is on a simulated network and has no socket"):
        asyncio.run(enter(tw.Server("10.0.0.1:5", protocol, network=tw.testing.SimulatedNetwork())))

    async def misuse() -> None:
        driver = aio.Driver(tw.Client.connect("127.0.0.1:9", protocol))
        with pytest.raises(RuntimeError, match="works between its `async with`"):
            await driver.connected()
        async with driver:
            pass
        with pytest.raises(RuntimeError, match="was entered before"):
            async with driver:
                pass

    asyncio.run(misuse())


def test_an_interrupt_in_a_factory_leaves_the_rest_for_the_next_iteration(
    run: Any, protocol: tw.Protocol
) -> None:
    class Stop(BaseException): ...

    class Picky(tw.messages.MessageFactory):
        def create(self, cls: type[Any]) -> Any:
            if cls is Chat:
                raise Stop("no chat today")
            return super().create(cls)

    async def main() -> list[Any]:
        async with pair(protocol, tuning=tw.Tuning(factory=Picky())) as (server, client):
            for message in (Move(1), Chat(1, "hi"), Move(2)):
                client.endpoint.send(message)
            client.endpoint.flush()
            with pytest.raises(Stop, match="no chat today"):
                async for _ in server:
                    pass
            async for inbox in server:
                return [message for _, message in inbox.messages]
            return []

    assert run(main()) == [Move(1), Move(2)]
