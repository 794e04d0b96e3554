"""Peers over real sockets: on asyncio, with a native thread, and what watches a game; bounded waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw
from tickwire import aio

PATIENCE = 20.0


@tw.message
class Chat:
    text: Annotated[str, tw.text(100)]


PROTOCOL = tw.Protocol(0x9A4, [Chat], [tw.reliable_ordered(), tw.chunks()], peers=True)


LOCAL = tw.Tuning(bind="127.0.0.1:0")


def host(tuning: tw.Tuning = LOCAL, players: int = 4) -> tw.peers.Peer[Chat]:
    return tw.peers.Peer.host(
        PROTOCOL, name="ann", players=players, tuning=tuning.replace(bind="127.0.0.1:0")
    )


def join(peer: tw.peers.Peer[Chat], name: str = "bob", tuning: tw.Tuning = LOCAL) -> tw.peers.Peer[Chat]:
    tuning = tuning.replace(bind="127.0.0.1:0")
    return tw.peers.Peer.join(peer.address, PROTOCOL, name=name, tuning=tuning)


def until(done: Callable[[], bool], each: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, "it takes too long"
        each()


def test_peers_play_on_asyncio() -> None:
    async def play() -> list[str]:
        seen: list[str] = []
        ann = host()
        bob = join(ann)

        async def listen() -> None:
            async with aio.run(ann, 200) as ticks:
                async for _, inbox in ticks:
                    for event in inbox.events:
                        if isinstance(event, tw.peers.PlayerJoined) and event.player != ann.me:
                            path = ann.path(event.player)
                            assert path is not None
                            assert path.kind == "direct"
                            ann.broadcast(Chat("of ann"))
                    seen.extend(message.text for _, message in inbox.messages)
                    if "of bob" in seen and len(ann.players) == 1:
                        break

        async def talk() -> None:
            async with aio.run(bob, 200, linger=0.2) as ticks:
                async for _, inbox in ticks:
                    seen.extend(message.text for _, message in inbox.messages)
                    if len(bob.players) == 2 and "of ann" in seen:
                        bob.broadcast(Chat("of bob"))
                        break

        await asyncio.gather(listen(), talk())
        return seen

    assert asyncio.run(asyncio.wait_for(play(), PATIENCE)) == ["of ann", "of bob"]


def test_a_peer_on_asyncio_ends_with_its_game() -> None:
    async def play() -> list[object]:
        ann = host(tuning=tw.Tuning(driver="thread"))
        other = tw.Protocol(0x9A5, [Chat], peers=True)
        stranger = tw.peers.Peer.join(ann.address, other, tuning=tw.Tuning(bind="127.0.0.1:0"))
        with pytest.raises(ValueError, match="reason must be None with a Peer"):
            aio.run(stranger, reason="why")
        async with aio.run(stranger, 200) as ticks:
            found = [event async for _, inbox in ticks for event in inbox.events]
        assert stranger.closed
        ann.close()
        return list(found)

    (ended,) = asyncio.run(asyncio.wait_for(play(), PATIENCE))
    assert isinstance(ended, tw.peers.GameEnded)


@pytest.mark.parametrize("threads", [(True, True), (True, False), (False, True)])
def test_threads_keep_a_game_while_python_is_busy(threads: tuple[bool, bool]) -> None:
    kinds = ["thread" if each else "polled" for each in threads]
    with (
        host(tuning=tw.Tuning(driver=kinds[0], timeout=1)) as ann,
        join(ann, tuning=tw.Tuning(driver=kinds[1], timeout=1)) as bob,
    ):
        events: dict[tw.peers.Peer[Chat], list[Any]] = {ann: [], bob: []}
        chunks: list[bytes] = []

        def tick(*peers: tw.peers.Peer[Chat]) -> None:
            for peer in peers or (ann, bob):
                with peer.tick() as inbox:
                    events[peer] += inbox.events
                    events[peer] += [(player.name, message.text) for player, message in inbox.messages]
                    chunks.extend(bytes(chunk) for chunk in inbox.chunks)
            time.sleep(0.002)

        until(lambda: len(ann.players) == len(bob.players) == 2, tick)
        ann.broadcast(Chat("hello"))
        bob.send_chunk(bob.players[0], bytes(300_000))
        until(lambda: bool(chunks) and ("ann", "hello") in events[bob], tick)
        assert chunks == [bytes(300_000)]
        busy = [peer for peer, thread in zip((ann, bob), threads, strict=True) if thread]
        others = [peer for peer in (ann, bob) if peer not in busy]
        # Longer than the timeout: whoever has no thread ticks on, whoever has one does nothing.
        end = time.monotonic() + 1.6
        while time.monotonic() < end:
            tick(*others) if others else time.sleep(0.01)
        for _ in range(20):
            tick()
        assert not [
            event for peer in events for event in events[peer] if isinstance(event, tw.peers.PlayerLeft)
        ]
        assert ann.start(countdown=0.05, seed=4)
        until(
            lambda: all(any(isinstance(e, tw.peers.Started) for e in each) for each in events.values()), tick
        )


@tw.ghost
class Beacon:
    count: tw.u32 = 0


HOSTED: tw.Protocol[Any] = tw.Protocol(0x9A7, [], ghosts=[Beacon], tick_rate=60, peers=True)


def test_with_threads_the_game_goes_on_with_another_host() -> None:
    threaded = tw.Tuning(driver="thread", bind="127.0.0.1:0")
    peers = {"ann": tw.peers.Peer.host(HOSTED, name="ann", tuning=threaded)}
    changes: list[tw.peers.HostChanged] = []

    def tick() -> None:
        for peer in peers.values():
            if peer.closed:
                continue
            with peer.tick() as inbox:
                changes.extend(what for _, what in inbox if isinstance(what, tw.peers.HostChanged))
            if peer.server is not None:
                with peer.server.tick():
                    world = peer.server.world
                    beacon = next(iter(world.objects(Beacon)), None) or world.spawn(Beacon())
                    beacon.count += 1
            with peer.client.tick():
                pass
        time.sleep(0.002)

    def seen(name: str) -> int:
        return sum(beacon.count for beacon in peers[name].client.world.objects(Beacon))

    for name in ("bob", "cid"):
        peers[name] = tw.peers.Peer.join(peers["ann"].address, HOSTED, name=name, tuning=threaded)
        until(lambda: len(peers["ann"].players) == len(peers), tick)
    until(lambda: seen("cid") > 100, tick)
    until(lambda: seen("bob") > 300, tick)
    peers["ann"].close()
    before = seen("cid")
    until(lambda: len(changes) == 2, tick)
    until(lambda: seen("cid") > before, tick)
    assert peers["bob"].server is not None
    assert {change.host.name for change in changes} == {"bob"}
    for peer in peers.values():
        peer.close()


def test_a_rollback_game_is_watched_over_real_sockets() -> None:
    ann = host(players=3)
    bob, cid = join(ann), join(ann, "cid")
    peers = (ann, bob, cid)
    started: dict[tw.peers.Peer[Chat], tw.peers.Started] = {}
    ended: list[Any] = []

    def tick() -> None:
        for peer in peers:
            with peer.tick() as inbox:
                for event in inbox.events:
                    if isinstance(event, tw.peers.Started):
                        started[peer] = event
                    if isinstance(event, tw.peers.PlayerLeft | tw.peers.GameEnded):
                        ended.append(event)
        time.sleep(0.001)

    until(lambda: all(len(peer.players) == 3 for peer in peers), tick)
    assert ann.start(countdown=0.05)
    until(lambda: len(started) == 3, tick)
    me = cid.me
    assert me is not None
    playing = [player.number for player in ann.players if player.name != "cid"]
    states = [np.zeros(3, np.int64) for _ in peers]
    games = [
        tw.rollback.Rollback(peer, 4, players=playing, state=state)
        for peer, state in zip(peers[:2], states, strict=False)
    ]
    watcher = tw.rollback.Spectator(cid, 4, players=playing)

    def step(state: Any, inputs: Any) -> None:
        state[:2] += inputs[:2]
        state[2] = state[2] * 31 % 65_521 + state[0] - state[1]

    history: dict[int, list[int]] = {}

    def play() -> None:
        for number, game in enumerate(games):
            for request in game.advance((game.frame * (3 + number)) % 16):
                if isinstance(request, tw.rollback.Advance):
                    step(states[number], request.inputs)
                    if number == 0:
                        history[request.frame] = states[0].tolist()
        for advance in watcher.advance():
            step(states[2], advance.inputs)
        tick()

    until(lambda: watcher.frame > 300, play)
    assert not watcher.lost
    assert not ended
    # What it saw is what the players had confirmed.
    assert history[watcher.frame - 1] == states[2].tolist()
    for peer in peers:
        peer.close()
