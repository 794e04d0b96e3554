"""Servers and clients on asyncio: real sockets, real event loops, bounded waits."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable
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


def test_a_token_with_servers_of_both_families_reaches_each(run: Any, protocol: tw.Protocol) -> None:
    async def main() -> None:
        key = bytes(32)
        server = tw.Server("[::1]:0", protocol, key=key)
        token = tw.ConnectToken.generate(
            protocol=protocol, key=key, client_id=1, servers=["127.0.0.1:1", server.address], timeout=1
        )
        client = tw.Client(protocol, token)
        serving = asyncio.create_task(echo(server))
        async with aio.run(client, 200) as ticks:
            async for _ in ticks:
                if client.connected:
                    break
            assert client.server_address == server.address
        serving.cancel()

    run(main())


async def echo(server: tw.Server[Any]) -> None:
    async with aio.run(server, 500) as ticks:
        async for _, inbox in ticks:
            for client, message in inbox.messages:
                server.send(client, message)


async def ask(client: tw.Client[Any], questions: list[Any]) -> list[Any]:
    """The answers of a server that echoes."""
    answers: list[Any] = []
    async with aio.run(client, 500) as ticks:
        async for _, inbox in ticks:
            answers += inbox.messages
            for event in inbox.events:
                if isinstance(event, tw.Connected):
                    for question in questions:
                        client.send(question)
            if len(answers) >= len(questions):
                break
    return answers


class Own(tw.messages.Message):
    """Only Python can read it."""

    number: int = 0

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.number = stream.serialize_bits(self.number, 16)


@pytest.mark.parametrize("driver", ["polled", "thread"])
def test_messages_come_and_go(run: Any, driver: Any) -> None:
    protocol = make_protocol(messages=[Move, Own])
    own = Own()
    own.number = 7

    async def main() -> list[Any]:
        server = tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver=driver))
        client = tw.Client.connect(server.address, protocol, tuning=tw.Tuning(driver=driver))
        echoing = asyncio.create_task(echo(server))
        answers = await ask(client, [*map(Move, range(50)), own])
        echoing.cancel()
        return answers

    *moves, last = run(main())
    assert moves == [Move(number) for number in range(50)]
    assert last.number == 7


def test_an_interrupt_in_a_factory_leaves_the_rest_for_the_next_tick(run: Any, protocol: tw.Protocol) -> None:
    class Stop(BaseException): ...

    class Picky(tw.messages.MessageFactory):
        def create(self, cls: type[Any]) -> Any:
            if cls is Chat:
                raise Stop("no chat today")
            return super().create(cls)

    async def main() -> list[Any]:
        server = tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(factory=Picky()))
        client = tw.Client.connect(server.address, protocol, tuning=tw.Tuning(driver="thread"))
        while not (client.connected and server.clients):
            client.receive()
            with server.tick():
                await asyncio.sleep(0.001)
        for message in (Move(1), Chat(1, "hi"), Move(2)):
            client.send(message)
        client.flush()
        got: list[Any] = []
        stopped = False
        while len(got) < 2:
            try:
                with server.tick() as inbox:
                    got += [message for _, message in inbox.messages]
            except Stop:
                stopped = True
            await asyncio.sleep(0.001)
        client.close()
        server.close()
        assert stopped
        return got

    assert run(main()) == [Move(1), Move(2)]


def test_what_arrives_between_ticks_is_acked_at_once() -> None:
    async def main() -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        server = tw.Server("127.0.0.1:0", make_protocol())
        client = tw.Client.connect(server.address, server.protocol)

        async def serve() -> int:
            async with aio.run(server, 1) as ticks:
                async for tick, _ in ticks:
                    if client.closed:
                        return tick
            raise AssertionError

        async def play() -> float:
            while not client.connected:
                with client.tick():
                    await asyncio.sleep(0.002)
            began = loop.time()
            for count in range(1, 6):
                client.send(Chat(0, "hello"))
                while client.stats.channels[0].delivered < count:
                    with client.tick():
                        await asyncio.sleep(0.002)
            client.close()
            return loop.time() - began

        return await asyncio.gather(serve(), play())

    _, seconds = asyncio.run(asyncio.wait_for(main(), PATIENCE))
    assert seconds < 2.5, "five round trips of a second each without it"


def test_a_closed_endpoint_has_no_tick_and_leaves_no_handler() -> None:
    async def main() -> int:
        server = tw.Server("127.0.0.1:0", make_protocol())
        server.close()
        async with aio.run(server, 60) as ticks:
            return len([tick async for tick, _ in ticks])

    before = signal.getsignal(signal.SIGTERM)
    assert asyncio.run(asyncio.wait_for(main(), PATIENCE)) == 0
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_error_of_a_step_between_ticks_reaches_the_game() -> None:
    class Failing:
        closed = False

        def __init__(self) -> None:
            self.mine, self.other = socket.socketpair()

        def _fileno(self) -> int:
            return self.mine.fileno()

        def _step(self) -> float:
            raise OSError("the network is gone")

    async def main() -> None:
        endpoint = Failing()
        watch = aio.Watch(endpoint)
        endpoint.other.send(b"x")
        while watch._error is None:
            await asyncio.sleep(0)
        try:
            watch.check()
        finally:
            endpoint.mine.close()
            endpoint.other.close()

    with pytest.raises(OSError, match="the network is gone"):
        asyncio.run(asyncio.wait_for(main(), PATIENCE))
