"""Captures: what is in the file, as an independent reader finds it, and what becomes of the game when it
can't grow."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import struct
import subprocess
import sys
from pathlib import Path

import dpkt
import pytest
import tickwire as tw
from conftest import Chat, Move, paced
from tickwire.capture import read_capture
from tickwire.errors import CaptureError
from tickwire.testing import Conditions, advance

RAW_IP = 101
EPOCH = 1_000_000_000
"""Where virtual time begins, in seconds since 1970."""


def play(
    protocol: tw.Protocol, capture: tw.capture.Capture | Path, *, seconds: float = 2, host: str = "127.0.0.1"
) -> tuple[tw.testing.SimulatedNetwork, tw.Server, tw.Client]:
    """A server that captures, and a client, which talk for a while in virtual time."""
    network = tw.testing.SimulatedNetwork(seed=3, conditions=Conditions(latency=0.03, loss=0.1))
    server = tw.Server(
        f"{host}:40000", protocol, network=network, debugging=tw.testing.Debugging(capture=capture)
    )
    client = tw.Client.connect(server.address, protocol, network=network)
    for tick in range(round(seconds * 60)):
        advance(network, server, client, seconds=1 / 60)
        if client.connected and server.clients:
            client.send(Move(tick, 1, 0.5), channel=1)
            server.send(server.clients[0], Chat(1, f"tick {tick}"))
    return network, server, client


def packets(path: Path) -> list[tuple[float, dpkt.ip.IP | dpkt.ip6.IP6]]:
    """The findings of an independent reader, which checks headers."""
    found = []
    with path.open("rb") as file:
        reader = dpkt.pcapng.Reader(file)
        assert reader.datalink() == RAW_IP
        for time, data in reader:
            packet = dpkt.ip6.IP6(data) if data[0] >> 4 == 6 else dpkt.ip.IP(data)
            datagram = packet.data
            assert isinstance(datagram, dpkt.udp.UDP)
            assert datagram.ulen == 8 + len(datagram.data)
            written = bytes(packet)
            # Written again, with checksums computed by the reader.
            datagram.sum = 0
            if packet.v == 4:
                assert packet.len == len(data)
                packet.sum = 0
            assert bytes(packet) == written == data
            found.append((time, packet))
    return found


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_an_independent_reader_finds_every_datagram_with_its_time_and_addresses(
    tmp_path: Path, protocol: tw.Protocol, host: str
) -> None:
    path = tmp_path / "server.pcapng"
    with tw.capture.Capture(path) as capture:
        network, server, client = play(protocol, capture, host=host)
        stats = server.stats(server.clients[0])
        captured = capture.packets
    found = packets(path)
    assert len(found) == captured > 200
    assert path.stat().st_size == capture.size
    ports = {40000, client.address.port}
    assert {frozenset((packet.data.sport, packet.data.dport)) for _, packet in found} == {frozenset(ports)}
    sent = [packet for _, packet in found if packet.data.sport == 40000]
    assert len(sent) >= stats.packets_sent > 100
    assert len(found) - len(sent) >= stats.packets_received > 50
    times = [float(time) for time, _ in found]
    assert times == sorted(times)
    assert times[0] == pytest.approx(EPOCH + 0.03, abs=1 / 60)
    assert times[-1] == pytest.approx(EPOCH + network.now, abs=0.1)


def test_our_reader_finds_the_same(tmp_path: Path, protocol: tw.Protocol) -> None:
    path = tmp_path / "server.pcapng"
    with tw.capture.Capture(path) as capture:
        play(protocol, capture)
    ours = list(read_capture(path))
    theirs = packets(path)
    assert [bytes(packet.data.data) for _, packet in theirs] == [datagram.data for datagram in ours]
    assert [packet.data.sport for _, packet in theirs] == [datagram.sender.port for datagram in ours]
    assert all(datagram.outgoing == (datagram.sender.port == 40000) for datagram in ours)
    assert [float(time) for time, _ in theirs] == pytest.approx([it.nanoseconds / 1e9 for it in ours])


def test_endpoints_share_a_capture_and_sockets_and_threads_have_one(
    tmp_path: Path, protocol: tw.Protocol
) -> None:
    path = tmp_path / "both.pcapng"
    capture = tw.capture.Capture(path)
    with (
        tw.Server(
            "127.0.0.1:0",
            protocol,
            debugging=tw.testing.Debugging(capture=capture),
            tuning=tw.Tuning(driver="thread"),
        ) as server,
        tw.Client.connect(
            server.address, protocol, debugging=tw.testing.Debugging(capture=capture)
        ) as client,
    ):
        for _ in paced(200):
            with client.tick(), server.tick():
                pass
            if client.connected and server.clients:
                break
    capture.close()
    seen = list(read_capture(path))
    sent_by_client = [it.data for it in seen if it.outgoing and it.receiver == server.address]
    received = [it.data for it in seen if not it.outgoing and it.receiver == server.address]
    # Each datagram is there twice: sent and received. Both read the clock of the same machine.
    assert received
    assert set(received) <= set(sent_by_client)
    assert abs(seen[0].nanoseconds - seen[-1].nanoseconds) < 60 * 10**9
    assert len(packets(path)) == len(seen)


def test_a_capture_holds_no_secret_and_keys_only_their_owner_reads(
    tmp_path: Path, protocol: tw.Protocol
) -> None:
    path, keys = tmp_path / "a.pcapng", tmp_path / "a.keys"
    key = tw.generate_key()
    network = tw.testing.SimulatedNetwork()
    capture = tw.capture.Capture(path, keys=keys)
    server = tw.Server(
        "127.0.0.1:40000", protocol, key=key, network=network, debugging=tw.testing.Debugging(capture=capture)
    )
    client = tw.Client.connect(
        server.address, protocol, key=key, network=network, debugging=tw.testing.Debugging(capture=capture)
    )
    advance(network, server, client, seconds=1)
    assert client.connected
    client.send(Chat(1, "a secret text"))
    advance(network, server, client, seconds=1)
    capture.close()
    assert b"a secret text" not in path.read_bytes()
    assert key not in path.read_bytes()
    assert key.hex() in keys.read_text()
    if sys.platform != "win32":
        assert stat.S_IMODE(keys.stat().st_mode) == 0o600


def test_a_capture_stays_within_its_bound_and_the_game_goes_on(
    tmp_path: Path, protocol: tw.Protocol, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "small.pcapng"
    capture = tw.capture.Capture(path, max_bytes=8192)
    _, server, client = play(protocol, capture)
    assert client.connected
    assert len(server.clients) == 1
    assert capture.dropped > 100
    capture.close()
    assert 6000 < path.stat().st_size == capture.size <= 8192
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert lines == [
        f"the server at 127.0.0.1:40000 stopped capturing: {path} has reached its bound of 8192 bytes"
    ]
    assert len(list(read_capture(path))) == capture.packets


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_is_told_with_the_path_and_the_game_goes_on(tmp_path: Path) -> None:
    # In a process of its own, whose files may be no larger than this.
    script = """
import logging, resource, signal, sys
import tickwire as tw
from conftest import make_protocol
from test_capture import play
logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(message)s")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
capture = tw.capture.Capture("full.pcapng")
_, server, client = play(make_protocol(), capture, seconds=4)
print(client.connected, len(server.clients))
try:
    capture.close()
except OSError as error:
    print(type(error).__name__, error.errno, error.filename)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told, game, error = done.stdout.splitlines()
    assert told.startswith(
        "the server at 127.0.0.1:40000 stopped capturing: can't write full.pcapng: File too large"
    )
    assert game == "True 1"
    assert error == "OSError 27 full.pcapng"


def test_a_place_that_can_not_be_written_is_an_error_with_the_path(
    tmp_path: Path, protocol: tw.Protocol
) -> None:
    nowhere = tmp_path / "nothing" / "a.pcapng"
    with pytest.raises(FileNotFoundError) as caught:
        tw.capture.Capture(nowhere)
    assert caught.value.filename == str(nowhere)
    with pytest.raises(FileNotFoundError, match="nothing"):
        tw.Server("127.0.0.1:0", protocol, debugging=tw.testing.Debugging(capture=nowhere))
    with pytest.raises(FileNotFoundError, match="nothing"):
        tw.capture.Capture(tmp_path / "a.pcapng", keys=nowhere)


def test_mistakes_name_the_argument_its_value_and_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    with pytest.raises(ValueError, match="max_bytes must be 4096 to 1099511627776, not 10"):
        tw.capture.Capture(path, max_bytes=10)
    with pytest.raises(ValueError, match="keys must be another file than path"):
        tw.capture.Capture(path, keys=path)
    capture = tw.capture.Capture(path)
    with pytest.raises(ValueError, match="datagram must be at most 65507 bytes, not 70000"):
        capture.write(0, "127.0.0.1:1", "127.0.0.1:2", bytes(70000), outgoing=False)
    with pytest.raises(ValueError, match="nanoseconds must be 0 to 18446744073709551615, not -1"):
        capture.write(-1, "127.0.0.1:1", "127.0.0.1:2", b"", outgoing=False)


def test_files_that_are_no_captures_are_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    with tw.capture.Capture(path) as capture:
        for size in (0, 1, 1200):
            capture.write(5, "127.0.0.1:1", "127.0.0.1:2", bytes(size), outgoing=True)
    good = path.read_bytes()
    assert len(list(read_capture(path))) == 3

    def read(data: bytes) -> list[object]:
        path.write_bytes(data)
        return list(read_capture(path))

    assert len(read(good[:-1])) == 2, "a last block that is cut short"
    with pytest.raises(CaptureError, match="is not a pcapng file"):
        read(b"")
    with pytest.raises(CaptureError, match="is not a pcapng file"):
        read(b"#!/bin/sh\nexit 1\n")
    with pytest.raises(CaptureError, match="a block of it has 4294967295 bytes, which none can have"):
        read(good + struct.pack("<II", 6, 0xFFFFFFFF))
    # Whatever byte is altered, it is read or refused.
    for at in range(0, len(good), 3):
        with contextlib.suppress(CaptureError):
            read(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forks_child_writes_nothing_into_its_parents_capture(tmp_path: Path) -> None:
    script = """
import os, sys, warnings
import tickwire as tw
from conftest import make_protocol
from tickwire.testing import advance
network, protocol = tw.testing.SimulatedNetwork(), make_protocol()
capture = tw.capture.Capture("forked.pcapng")
debugging = tw.testing.Debugging(capture=capture)
server = tw.Server("127.0.0.1:40000", protocol, network=network, debugging=debugging)
client = tw.Client.connect(server.address, protocol, network=network)
advance(network, server, client, seconds=0.5)
child = os.fork()
if child == 0:
    advance(network, server, client, seconds=5)
    capture.flush()
    sys.exit(0)
os.waitpid(child, 0)
advance(network, server, client, seconds=0.5)
capture.close()
print(capture.packets)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(packets(tmp_path / "forked.pcapng")) == int(done.stdout) > 10
