"""How connections end: with a reason, and with a linger for messages sent before."""

from __future__ import annotations

import _thread
import asyncio
import threading
import time

import pytest
import tickwire as tw
from conftest import Chat, Move, make_protocol
from tickwire import aio
from tickwire.testing import Simulation, advance, connected_pair

REASON = tw.DisconnectReason
LOSSY = tw.Conditions(latency=0.03, jitter=0.02, loss=0.3)
PATIENCE = 20.0


def end(collected: object) -> tuple[tw.DisconnectReason, str | None]:
    (gone,) = [e for e in collected.events if isinstance(e, tw.Disconnected)]  # type: ignore[attr-defined]
    return gone.reason, gone.detail


def test_a_reason_is_told_to_both_sides(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    handle = server.clients[0]
    server.disconnect(handle, reason="you are banned, tschüß")
    at_server, at_client = advance(network, server, client, seconds=0.5)
    told = (REASON.KICKED, "you are banned, tschüß")
    assert end(at_server) == end(at_client) == told
    assert (client.disconnect_reason, client.disconnect_detail) == told
    assert repr(at_client.events[-1]) == (
        "Disconnected(client=None, reason=KICKED, detail='you are banned, tschüß')"
    )
    match at_client.events[-1]:
        case tw.Disconnected(None, REASON.KICKED, detail):
            assert detail == told[1]

    network, server, client = connected_pair(protocol)
    client.close(reason="gg")
    assert client.disconnect_detail == "gg"
    assert end(advance(network, server, seconds=0.5)[0]) == (REASON.PEER_DISCONNECTED, "gg")

    network, server, client = connected_pair(protocol)
    server.close(reason="back in five minutes")
    assert end(advance(network, client, seconds=0.5)[0]) == (REASON.SERVER_CLOSED, "back in five minutes")

    network, server, client = connected_pair(protocol)
    client.close()
    assert end(advance(network, server, seconds=0.5)[0]) == (REASON.PEER_DISCONNECTED, None)
    assert client.disconnect_detail is None


def test_the_log_has_the_words_escaped(protocol: tw.Protocol, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tickwire")
    network, server, client = connected_pair(protocol)
    client.close(reason="bye\x1b[2J\nroot logged in")
    advance(network, server, seconds=0.5)
    (line,) = [record.message for record in caplog.records if "disconnected" in record.message]
    assert line.endswith(r', "bye\u{1b}[2J\nroot logged in"')


@pytest.mark.parametrize("seed", range(10))
def test_a_client_of_a_world_lingers_in_its_time(protocol: tw.Protocol, seed: int) -> None:
    with Simulation(protocol, seed=seed, conditions=LOSSY) as world:
        server, client = world.server(), world.client()
        world.run(3)
        client.send(Chat(1, "I resign"))
        client.close(linger=5, reason="resigned")
        assert not client.closed
        assert not client.connected
        for call in (client.send, lambda move: client.send(move, 1)):
            with pytest.raises(tw.errors.ClosedError):
                call(Move())
        heard = world.run(5)[server]
        assert client.closed
        assert [message for _, message in heard.messages] == [Chat(1, "I resign")]
        assert end(heard) == (REASON.PEER_DISCONNECTED, "resigned")
        assert client.disconnect_reason is REASON.CLOSED


def test_a_server_kicks_after_its_last_words(protocol: tw.Protocol) -> None:
    with Simulation(protocol, seed=3, conditions=LOSSY) as world:
        server, client = world.server(), world.client()
        world.run(3)
        (handle,) = server.clients
        server.send(handle, Chat(0, "you are banned"))
        server.disconnect(handle, linger=5, reason="banned")
        assert server.clients == []
        assert server.broadcast(Chat(0, "to all")) == []
        assert server.broadcast(Chat(0, "to it"), clients=[handle]) == [handle]
        assert server.disconnect(handle) is False
        assert server.send(handle, Move()) is tw.SendResult.GONE
        assert server.set_budget(1000, 1000, handle) is False
        client.send(Chat(1, "but why"))
        heard = world.run(6)
        assert heard[client].messages == [Chat(0, "you are banned")]
        assert end(heard[client]) == (REASON.KICKED, "banned")
        assert heard[server].messages == []
        assert heard[server].events[-1].client is handle
        assert end(heard[server]) == (REASON.KICKED, "banned")


def test_a_server_of_a_world_closes_when_all_have_its_last_words(protocol: tw.Protocol) -> None:
    with Simulation(protocol, seed=4, conditions=LOSSY) as world:
        server = world.server()
        clients = [world.client() for _ in range(5)]
        world.run(3)
        assert len(server.clients) == 5
        server.broadcast(Chat(0, "you won"))
        server.close(linger=10, reason="over")
        since = world.now
        heard: dict[tw.Client, list[object]] = {client: [] for client in clients}
        while not server.closed:
            for endpoint, got in world.run(0.1).items():
                if isinstance(endpoint, tw.Client):
                    heard[endpoint] += got.messages
        assert world.now - since < 9
        assert list(heard.values()) == [[Chat(0, "you won")]] * 5
        world.run(1)
        assert {(c.disconnect_reason, c.disconnect_detail) for c in clients} == {
            (REASON.SERVER_CLOSED, "over")
        }


def test_a_linger_ends_at_its_time_and_at_a_second_close(protocol: tw.Protocol) -> None:
    for second_close in (False, True):
        network, server, client = connected_pair(protocol)
        network.partition([server.address], [client.address])
        client.send(Chat(1, "anyone?"))
        client.close(linger=3)
        advance(network, server, seconds=1)
        for _ in range(60):
            client.pump()
            network.advance(1 / 60)
        assert not client.closed
        if second_close:
            client.close()
            assert client.closed
            continue
        for _ in range(150):
            if not client.closed:
                client.flush()
            network.advance(1 / 60)
        assert client.closed
        with pytest.raises(tw.errors.ClosedError):
            client.flush()


def test_a_loop_of_steps_ends_a_linger_without_an_error(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    with client.tick():
        client.send(Move(1, 2, 0.5))
    client.close(linger=1, wait=False)
    for _ in range(200):
        if client.closed:
            break
        network.advance(0.01)
        server.pump()
        client._step()
    assert client.closed
    with pytest.raises(tw.errors.ClosedError):
        client._step()


def test_leaving_a_block_and_being_dropped_dont_linger(protocol: tw.Protocol) -> None:
    network, server, client = connected_pair(protocol)
    client.send(Chat(1, "anyone?"))
    client.close(linger=60, reason="gone")
    with client:
        pass
    assert client.closed
    assert end(advance(network, server, seconds=0.5)[0]) == (REASON.PEER_DISCONNECTED, "gone")
    network, server, client = connected_pair(protocol)
    client.close(linger=60)
    del client
    assert end(advance(network, server, seconds=0.5)[0]) == (REASON.PEER_DISCONNECTED, None)


def test_transfers_end_when_a_linger_begins() -> None:
    protocol = make_protocol(channels=[tw.reliable_ordered(), tw.chunks()])
    network, _, client = connected_pair(protocol)
    transfer = client.send_chunk(bytes(1_000_000))
    client.close(linger=5, wait=False)
    client.flush()
    network.advance(1 / 60)
    assert transfer.over
    assert not transfer.done


# --- real sockets ------------------------------------------------------------------------------------------


def until(done: object, *ticked: tw.Server | tw.Client) -> list[object]:
    deadline, messages = time.monotonic() + PATIENCE, []
    while not done():  # type: ignore[operator]
        assert time.monotonic() < deadline, "not done in time"
        for endpoint in ticked:
            with endpoint.tick() as inbox:
                messages += inbox.messages
    return messages


@pytest.mark.parametrize("driver", ["polled", "thread"])
def test_closing_waits_for_what_was_sent_over_a_socket(protocol: tw.Protocol, driver: str) -> None:
    with tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver="thread")) as server:
        client = tw.Client.connect(
            server.address,
            protocol,
            tuning=tw.Tuning(driver=driver),
            debugging=tw.testing.Debugging(conditions=LOSSY, seed=7),
        )
        until(lambda: client.connected and server.clients, server, client)
        for number in range(50):
            client.send(Chat(number, "going"))
        client.close(linger=PATIENCE)
        assert client.closed
        # It is all there, before the game looks.
        messages: list[object] = []
        ended: list[object] = []
        deadline = time.monotonic() + PATIENCE
        while not ended:
            assert time.monotonic() < deadline
            inbox = server.receive()
            messages += [message for _, message in inbox.messages]
            ended += [event for event in inbox.events if isinstance(event, tw.Disconnected)]
        assert messages == [Chat(number, "going") for number in range(50)]


def blocked(protocol: tw.Protocol, driver: str) -> tuple[tw.Server, tw.Client]:
    """A client whose messages nobody reads."""
    server = tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver="thread"))
    client = tw.Client.connect(server.address, protocol, tuning=tw.Tuning(driver=driver))
    until(lambda: client.connected and server.clients, server, client)
    for number in range(2_000):
        client.send(Chat(number % 64, "anyone?"))
    return server, client


def when_it_lingers(client: tw.Client, then: object) -> threading.Thread:
    def watch() -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                client.send(Move(), 1)
            except tw.errors.ClosedError:
                break
        then()  # type: ignore[operator]

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@pytest.mark.parametrize("driver", ["polled", "thread"])
def test_an_interrupt_ends_the_wait_and_closes(driver: str) -> None:
    protocol = make_protocol(channels=[tw.reliable_ordered(send_queue=4096), tw.unreliable()])
    server, client = blocked(protocol, driver)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        thread = when_it_lingers(client, _thread.interrupt_main)
        client.close(linger=60)
    thread.join()
    assert client.closed
    server.close()


def test_another_thread_goes_on_meanwhile_and_may_end_it() -> None:
    protocol = make_protocol(channels=[tw.reliable_ordered(send_queue=4096), tw.unreliable()])
    server, client = blocked(protocol, "polled")
    thread = when_it_lingers(client, client.close)
    client.close(linger=60)
    thread.join()
    assert client.closed
    server.close()


def test_a_wait_is_no_longer_than_its_linger() -> None:
    protocol = make_protocol(channels=[tw.reliable_ordered(send_queue=4096), tw.unreliable()])
    for driver in ("polled", "thread"):
        server, client = blocked(protocol, driver)
        since = time.monotonic()
        client.close(linger=0.2)
        assert client.closed
        assert 0.2 <= time.monotonic() - since < PATIENCE
        server.close()


def test_an_event_loop_goes_on_while_a_client_lingers(protocol: tw.Protocol) -> None:
    async def main() -> None:
        server = tw.Server("127.0.0.1:0", protocol)
        client = tw.Client.connect(
            server.address, protocol, debugging=tw.testing.Debugging(conditions=LOSSY, seed=9)
        )

        async def say() -> None:
            async with aio.run(client, 200, linger=PATIENCE, reason="off to bed") as ticks:
                async for _ in ticks:
                    if client.send(Chat(1, "bye")):
                        break

        talking = asyncio.create_task(say())
        messages, ended = [], []
        async with aio.run(server, 200) as ticks:
            async for _, inbox in ticks:
                messages += [message for _, message in inbox.messages]
                ended += [(e.reason, e.detail) for e in inbox.events if isinstance(e, tw.Disconnected)]
                if ended:
                    break
        assert messages == [Chat(1, "bye")]
        assert ended == [(REASON.PEER_DISCONNECTED, "off to bed")]
        await talking

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_cancelling_a_linger_closes(protocol: tw.Protocol) -> None:
    async def main() -> None:
        server = tw.Server("127.0.0.1:0", protocol)
        client = tw.Client.connect(server.address, protocol)

        async def say() -> None:
            async with aio.run(client, 200, linger=60) as ticks:
                async for _ in ticks:
                    if client.connected:
                        break
                for number in range(1_000):
                    client.send(Chat(number % 64, "anyone?"))

        closing = asyncio.create_task(say())
        while not server.clients:
            with server.tick():
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)  # the server acks nothing now
        assert not client.closed
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert client.closed
        server.close()

    asyncio.run(asyncio.wait_for(main(), PATIENCE))
