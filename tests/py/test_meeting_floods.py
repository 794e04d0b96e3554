"""Floods against the servers where peers meet, as their classes run them: on loopback, each on a thread."""

from __future__ import annotations

import os
import random
import socket
import sys
import time
from pathlib import Path
from typing import Annotated

import pytest
import tickwire as tw


@tw.message
class Chat:
    text: Annotated[str, tw.text(100)]


PROTOCOL = tw.Protocol(0x1A7, [Chat], peers=True)
FLOOD = 6_000


def resident_bytes() -> int:
    """Memory of this process; 0 where the system doesn't say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


def first_words() -> bytes:
    """What a host sends its rendezvous server first, taken by a socket in that server's place."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as place:
        place.bind(("127.0.0.1", 0))
        place.settimeout(0.01)
        host = tw.peers.Peer.host(
            PROTOCOL,
            tuning=tw.Tuning(bind="127.0.0.1:0"),
            rendezvous=tw.peers.Rendezvous(f"127.0.0.1:{place.getsockname()[1]}"),
        )
        while True:
            with host.tick():
                pass
            try:
                data = place.recv(2048)
            except TimeoutError:
                continue
            host.close()
            return data


def flood(service: tw.peers.RendezvousServer | tw.peers.Relay, datagrams: list[bytes]) -> tuple[int, int]:
    """Sends datagrams from 20 sources as fast as it goes; gives the bytes sent, and those answered."""
    sent = answered = 0
    to = (service.address.host, service.address.port)
    sources = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(20)]
    try:
        for number in range(FLOOD):
            source = sources[number % len(sources)]
            source.setblocking(False)
            sent += source.sendto(datagrams[number % len(datagrams)], to)
            if number % 100 == 0:
                time.sleep(0)
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            for source in sources:
                try:
                    answered += len(source.recv(2048))
                except BlockingIOError:
                    continue
    finally:
        for source in sources:
            source.close()
    return sent, answered


@pytest.mark.skipif(sys.platform == "win32", reason="answers to closed sockets are errors there")
@pytest.mark.parametrize("kind", ["rendezvous", "relay"])
def test_a_flood_has_smaller_answers_and_leaves_the_memory_flat(kind: str) -> None:
    luck, register = random.Random(3), first_words()
    junk = [luck.randbytes(luck.randrange(1, 1_200)) for _ in range(100)]
    marked = [register[:1] + luck.randbytes(luck.randrange(1, 200)) for _ in range(100)]
    changed = [
        bytes(byte if luck.random() > 0.02 else luck.randrange(256) for byte in register) for _ in range(100)
    ]
    service: tw.peers.RendezvousServer | tw.peers.Relay
    service = (
        tw.peers.RendezvousServer("127.0.0.1:0")
        if kind == "rendezvous"
        else tw.peers.Relay("127.0.0.1:0", key=bytes(32))
    )
    with service:
        flood(service, junk)
        before = resident_bytes()
        for datagrams in (junk, marked, changed, [register]):
            sent, answered = flood(service, datagrams)
            assert answered <= sent
        counters = service.counters
        assert resident_bytes() - before < 4 << 20
        assert counters["datagrams_received"] > FLOOD / 10
        assert counters["datagrams_sent"] <= counters["datagrams_received"]
        # Nobody who doesn't answer a cookie has anything kept.
        assert counters["games" if kind == "rendezvous" else "channels"] == 0
        # And it still does its work.
        if isinstance(service, tw.peers.RendezvousServer):
            host = tw.peers.Peer.host(
                PROTOCOL,
                tuning=tw.Tuning(bind="127.0.0.1:0"),
                rendezvous=tw.peers.Rendezvous(service.address),
            )
            until = time.monotonic() + 20
            while host.code is None:
                assert time.monotonic() < until
                with host.tick():
                    pass
                time.sleep(0.001)
            host.close()
