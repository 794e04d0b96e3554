"""Yojimbo's framing from Python: what it takes, what it refuses, and two sides of it over a bad network."""

from __future__ import annotations

import hashlib
import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import pytest
import tickwire as tw
from conftest import paced
from tickwire.testing import advance, connected_pair
from tickwire.yojimbo import ChannelSettings, Profile

VECTORS = json.loads((Path(__file__).parents[1] / "vectors/yojimbo.json").read_text("utf-8"))


class Numbers(tw.messages.Message):
    """The vectors' first type, in the names that its C++ has."""

    seq: int
    a: int
    flag: bool
    f: float
    c: float
    p: int
    q: int
    u: int

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.seq = stream.serialize_bits(self.seq, 16)
        self.a = stream.serialize_int(self.a, -1000, 1000)
        self.flag = stream.serialize_bool(self.flag)
        self.f = stream.serialize_float(self.f)
        self.c = stream.serialize_compressed_float(self.c, 0, 10, 0.01)
        self.p = stream.serialize_uint32(self.p)
        self.q = stream.serialize_int_relative(self.p, self.q)
        self.u = stream.serialize_uint64(self.u)

    @classmethod
    def filled(cls, s: int) -> Numbers:
        return cls(
            seq=s & 0xFFFF,
            a=(s * 37) % 2001 - 1000,
            flag=bool(s & 1),
            f=s * 0.5,
            c=(s % 1001) * 0.01,
            p=s,
            q=s + 1 + 200 * (s % 7) ** 3,
            u=s * 0x9E3779B97F4A7C15 % 2**64,
        )


@tw.message
class Text:
    seq: tw.u16
    text: Annotated[str, tw.text(63)]
    data: Annotated[bytes, tw.data(32)]


@tw.message(block=True)
class Blob:
    seq: tw.u16


class OwnBlob(tw.messages.BlockMessage):
    seq: int = 0

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.seq = stream.serialize_uint16(self.seq)


NO_BLOCKS = Profile(channels=[ChannelSettings(disable_blocks=True)])
SMALL_BLOCKS = (ChannelSettings(), ChannelSettings(max_block_size=4096))


def make_protocol(**changes: Any) -> tw.Protocol:
    settings: dict[str, Any] = {
        "id": 0x11223344556677,
        "messages": [Numbers, Text, Blob, OwnBlob],
        "channels": [tw.reliable_ordered(), tw.unreliable()],
        "yojimbo": Profile() if "channels" in changes else Profile(channels=SMALL_BLOCKS),
    }
    return tw.Protocol(**{**settings, **changes})


def content(seq: int, size: int) -> bytes:
    return bytes((seq * 13 + i * 7) & 0xFF for i in range(size))


def test_own_code_reads_and_writes_what_the_recorded_packets_hold() -> None:
    protocol = make_protocol(messages=[Numbers, Text, Blob])
    for s in (0, 3, 7, 12345):
        message = Numbers.filled(s)
        read = protocol.decode(protocol.encode(message))
        assert read.c == pytest.approx(message.c, abs=0.005)
        read.c = message.c
        assert read == message
    # A packet with one message: 2 bits of entries, 1 of channel, 2 flags, 8 of count, 16 of id; the message.
    packet = next(v["packet"] for v in VECTORS["yojimbo"] if v["name"] == "one_numbers_reliable")
    bits = int.from_bytes(bytes.fromhex(packet), "little") >> (2 + 1 + 1 + 1 + 8 + 16)
    encoded = protocol.encode(Numbers.filled(12345))
    assert bits == int.from_bytes(encoded, "little")
    with pytest.raises(tw.errors.StreamError):
        protocol.decode(encoded[:5])


def test_every_call_has_its_name_in_cpp() -> None:
    class Every(tw.messages.Message):
        def serialize(self, stream: tw.messages.Stream) -> None:
            self.a = stream.serialize_int64(self.a, -(10**12), 10**12)
            self.b = stream.serialize_int128(self.b, -(2**100), 2**100)
            self.c = stream.serialize_uint8(self.c)
            self.d = stream.serialize_uint16(self.d)
            self.e = stream.serialize_uint128(self.e)
            self.f = stream.serialize_double(self.f)
            self.g = stream.serialize_fixed(self.g, 16, 16, -100, 100)
            self.h = stream.serialize_string(self.h, 16)
            self.i = stream.serialize_wstring(self.i, 16)
            stream.serialize_align()
            self.j = stream.serialize_bytes(self.j, 3)
            self.k = stream.serialize_sequence_relative(65_535, self.k)
            self.inner = stream.serialize_object(self.inner or Numbers())

        def __init__(self, **values: Any) -> None:
            self.__dict__.update(values)

    every = Every(
        a=-5,
        b=2**99,
        c=255,
        d=65_535,
        e=2**127,
        f=0.1,
        g=-99.5,
        h="fifteen bytes..",
        i="Grüße",
        j=b"xyz",
        k=3,
        inner=Numbers.filled(0),
    )
    protocol = make_protocol(messages=[Every])
    assert protocol.decode(protocol.encode(every)) == every
    every.h = "sixteen bytes..."
    with pytest.raises(tw.FieldError, match="at most 15 bytes"):
        protocol.encode(every)


@pytest.mark.parametrize("driver", ["polled", "thread"])
def test_messages_of_all_kinds_and_blocks_go_both_ways(driver: str) -> None:
    protocol = make_protocol()
    with (
        tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver=driver)) as server,
        tw.Client.connect(server.address, protocol, tuning=tw.Tuning(driver=driver)) as client,
    ):
        sent = mixed(40)
        received: dict[str, list[Any]] = {"server": [], "client": []}
        said = False
        for _ in paced(200):
            with server.tick() as inbox:
                received["server"] += [message for _, message in inbox.messages]
                for event in inbox.events:
                    if isinstance(event, tw.Connected):
                        for message in sent:
                            server.send(event.client, message)
            with client.tick() as inbox:
                received["client"] += inbox.messages
                if client.connected and not said:
                    said = True
                    for message in sent:
                        client.send(message)
            if all(len(got) == len(sent) for got in received.values()):
                break
        for got in received.values():
            assert_same(got, sent)


def mixed(count: int) -> list[Any]:
    """Messages of all kinds, with a block now and then."""
    sent: list[Any] = []
    for n in range(count):
        sent += [Numbers.filled(n), Text(n, f"text {n}", content(n, n % 33))]
        if n % 10 == 5:
            sent += [Blob(n, block=content(n, 3_000 + n)), OwnBlob(seq=n, block=content(n, 1 + n))]
    return sent


def assert_same(got: list[Any], sent: list[Any]) -> None:
    assert len(got) == len(sent)
    for read, written in zip(got, sent, strict=True):
        if isinstance(written, Numbers):
            assert read.c == pytest.approx(written.c, abs=0.006)
            read.c = written.c
        assert read == written
        assert getattr(read, "block", b"") == getattr(written, "block", b"")


def test_reliable_messages_and_blocks_survive_a_terrible_network() -> None:
    conditions = tw.Conditions(latency=0.04, jitter=0.02, loss=0.2, duplicate=0.1, reorder=0.1)
    network, server, client = connected_pair(make_protocol(), conditions=conditions, seed=1)
    sent = mixed(150)
    for message in sent:
        client.send(message)
        server.send(server.clients[0], message)
    at_server, at_client = advance(network, server, client, seconds=30)
    assert_same([message for _, message in at_server.messages], sent)
    assert_same(at_client.messages, sent)


def test_a_large_block_arrives_whole_and_in_well_under_four_seconds() -> None:
    conditions = tw.Conditions(latency=0.03, loss=0.1)
    network, server, client = connected_pair(make_protocol(), conditions=conditions, seed=2)
    block = content(1, 262_144)
    client.send(Blob(1, block=block))
    at_server, _ = advance(network, server, client, seconds=2)
    ((_, message),) = at_server.messages
    assert hashlib.sha256(message.block).digest() == hashlib.sha256(block).digest()


def test_unreliable_blocks_ride_with_their_message() -> None:
    network, server, client = connected_pair(make_protocol())
    client.send(Blob(3, block=content(3, 4096)), channel=1)
    client.send(Text(4, "small"), channel=1)
    client.send(OwnBlob(seq=5, block=b"x"), channel=1)
    at_server, _ = advance(network, server, client, seconds=1)
    got = sorted((message for _, message in at_server.messages), key=lambda message: message.seq)
    assert_same(got, [Blob(3, block=content(3, 4096)), Text(4, "small"), OwnBlob(seq=5, block=b"x")])


def test_what_a_peer_said_before_it_left_is_read() -> None:
    network, server, client = connected_pair(make_protocol())
    client.send(Numbers.filled(1))
    client.flush()
    network.advance(0.01)
    client.close()
    network.advance(0.01)
    with server.tick() as inbox:
        assert [message.seq for _, message in inbox.messages] == [1]
    with server.tick() as inbox:
        (event,) = inbox.events
        assert event.reason is tw.DisconnectReason.PEER_DISCONNECTED


def ended_by(theirs: tw.Protocol, ours: tw.Protocol, message: Any) -> tw.DisconnectReason:
    """Why a server of `ours` ends the connection of a client of `theirs` that sends this."""
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("127.0.0.1:40000", ours, network=network)
    client = tw.Client.connect(server.address, theirs, network=network)
    advance(network, server, client, seconds=1)
    for n in range(3):
        client.send(message(n))
    at_server, at_client = advance(network, server, client, seconds=1)
    (event,) = (event for event in at_server.events if isinstance(event, tw.Disconnected))
    (other,) = (event for event in at_client.events if isinstance(event, tw.Disconnected))
    assert other.reason is tw.DisconnectReason.PEER_DISCONNECTED, "this wire doesn't tell why"
    return event.reason


class Long(tw.messages.Message):
    def serialize(self, stream: tw.messages.Stream) -> None:
        self.n = stream.serialize_int(self.n, 0, 1_000_000)


class Short(tw.messages.Message):
    def serialize(self, stream: tw.messages.Stream) -> None:
        self.n = stream.serialize_int(self.n, 0, 2)
        stream.serialize_align()


def test_each_mismatch_has_its_reason() -> None:
    reason = tw.DisconnectReason
    ours = make_protocol(messages=[Short])
    # Another message body.
    assert (
        ended_by(make_protocol(messages=[Long]), ours, lambda n: Long(n=999_990 + n))
        is reason.FAILED_TO_SERIALIZE
    )
    # Another number of channels: an entry's number is cut off.
    one = make_protocol(messages=[Text], channels=[tw.reliable_ordered()])
    three = make_protocol(messages=[Text], channels=[tw.reliable_ordered()] * 3)
    named = {reason.READ_PACKET_FAILED, reason.FAILED_TO_SERIALIZE, reason.DESYNC}
    assert ended_by(one, three, lambda n: Text(n, "some text")) in named
    # Blocks where there are none.
    no_blocks = make_protocol(messages=[Blob], channels=[tw.reliable_ordered()], yojimbo=NO_BLOCKS)
    blocks = make_protocol(messages=[Blob], channels=[tw.reliable_ordered()])
    assert ended_by(blocks, no_blocks, lambda n: Blob(n, block=b"x" * 2000)) is reason.READ_PACKET_FAILED
    # Smaller fragments: those in the middle are too short, or the last one comes out as another.
    smaller = Profile(channels=[ChannelSettings(block_fragment_size=1000)])
    small = make_protocol(messages=[Blob], channels=[tw.reliable_ordered()], yojimbo=smaller)
    assert ended_by(small, blocks, lambda n: Blob(n, block=b"x" * 2500)) in named


def test_with_the_hash_folded_in_sides_that_differ_do_not_connect() -> None:
    ours = make_protocol(yojimbo=Profile(fold_hash=True, channels=SMALL_BLOCKS))
    same = make_protocol(yojimbo=Profile(fold_hash=True, channels=SMALL_BLOCKS))
    theirs = make_protocol(yojimbo=Profile(fold_hash=True))
    assert ours.id == same.id != theirs.id
    assert ours.id ^ ours.hash == 0x11223344556677
    assert make_protocol().id == 0x11223344556677
    network = tw.testing.SimulatedNetwork()
    server = tw.Server("127.0.0.1:40000", ours, network=network)
    clients = [
        tw.Client.connect(server.address, protocol, network=network, tuning=tw.Tuning(timeout=2))
        for protocol in (same, theirs)
    ]
    advance(network, server, *clients, seconds=4)
    assert [client.connected for client in clients] == [True, False]
    assert clients[1].disconnect_reason is tw.DisconnectReason.REFUSED


@pytest.mark.parametrize("error", [LookupError, tw.errors.StreamError, KeyboardInterrupt])
def test_own_code_that_raises_ends_the_connection(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    class Mistaken(tw.messages.Message):
        def serialize(self, stream: tw.messages.Stream) -> None:
            self.n = stream.serialize_bits(self.n, 8)
            if stream.reading and self.n == 2:
                raise error("a mistake")

    caplog.set_level("INFO", "tickwire")
    network, server, client = connected_pair(make_protocol(messages=[Mistaken]))
    for n in range(4):
        client.send(Mistaken(n=n))
    client.flush()
    network.advance(0.01)
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt, match="a mistake"):
            server.tick().__enter__()
    at_server, _ = advance(network, server, client, seconds=1)
    (event,) = at_server.events
    assert event.reason is tw.DisconnectReason.FAILED_TO_SERIALIZE
    assert at_server.messages == [], "a packet is read whole or not at all"
    said = {
        LookupError: "Mistaken: LookupError: a mistake",
        tw.errors.StreamError: "a mistake",
        KeyboardInterrupt: "KeyboardInterrupt: a mistake",
    }[error]
    (line,) = [
        record.getMessage()
        for record in caplog.records
        if " disconnected: " in record.getMessage() and "of the server" in record.getMessage()
    ]
    assert line.endswith(f"(a message of channel 0 is refused by its own serialize: {said})")
    assert server.counters["messages.raised"] == int(error is LookupError)


def test_a_server_that_does_not_read_loses_nobody() -> None:
    network, server, client = connected_pair(make_protocol(messages=[Text]))
    sent = 0
    for _ in range(3_000):
        sent += bool(client.send(Text(sent % 65_536, "x" * 60)))
        network.advance(1 / 60)
        server.pump()
        client.pump()
    assert client.connected
    assert sent < 3_000
    at_server, _ = advance(network, server, client, seconds=10)
    assert [message.seq for _, message in at_server.messages] == list(range(sent))


def test_mistakes_are_named() -> None:
    with pytest.raises(TypeError, match=r"Blob has a block, which needs yojimbo=tickwire"):
        make_protocol(yojimbo=None)
    with pytest.raises(TypeError, match="yojimbo must be a Profile or None, not str"):
        make_protocol(yojimbo="yes")
    with pytest.raises(TypeError, match="channels must be a list of ChannelSettings, not Channel"):
        make_protocol(yojimbo=Profile(channels=[tw.unreliable()]))  # type: ignore[list-item]
    with pytest.raises(TypeError, match="max_packet_size must be an int, not str"):
        make_protocol(yojimbo=Profile(max_packet_size="1"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="yojimbo has settings for 2 channels, and the protocol has 1"):
        make_protocol(channels=[tw.reliable_ordered()], yojimbo=Profile(channels=SMALL_BLOCKS))
    kinds = "channel 1 is latest; yojimbo has only reliable_ordered and unreliable"
    with pytest.raises(ValueError, match=kinds):
        make_protocol(channels=[tw.reliable_ordered(), tw.latest()])
    with pytest.raises(ValueError, match="channel 0 is chunks"):
        make_protocol(channels=[tw.chunks()])
    with pytest.raises(ValueError, match="block_fragment_size must be 1 to 8128, not 8129"):
        make_protocol(yojimbo=Profile(channels=[ChannelSettings(block_fragment_size=8129)]))
    with pytest.raises(ValueError, match="packet_fragment_size must be 128 to 1186, not 1187"):
        make_protocol(yojimbo=Profile(packet_fragment_size=1187))
    with pytest.raises(TypeError, match=r"Twice\.block is what block=True adds"):

        @tw.message(block=True)
        class Twice:
            block: tw.u8

    network, server, client = connected_pair(make_protocol())
    with pytest.raises(tw.FieldError, match=r"Blob\.block = b'' \(bytes\): must be bytes, at least one"):
        client.send(Blob(1))
    with pytest.raises(tw.errors.FieldTypeError, match=r"OwnBlob\.block = 'text' \(str\): must be bytes"):
        client.send(OwnBlob(seq=1, block="text"))
    with pytest.raises(
        tw.errors.MessageTooLargeError, match="the block must be 1 to 262144 bytes, not 262145"
    ):
        client.send(Blob(1, block=bytes(262_145)))
    with pytest.raises(tw.errors.MessageTooLargeError, match="the block must be 1 to 4096 bytes, not 4097"):
        client.send(Blob(1, block=bytes(4_097)), channel=1)
    with pytest.raises(ValueError, match="columns must be classes without a block, and .*Blob"):
        tw.Server("127.0.0.1:40001", make_protocol(), network=network, tuning=tw.Tuning(columns=[Blob]))
    assert client.stats.channels[0].queued == 0
    assert server.clients
    disabled = make_protocol(channels=[tw.reliable_ordered()], yojimbo=NO_BLOCKS)
    _, _, other = connected_pair(disabled)
    with pytest.raises(tw.errors.ChannelError, match="the channel takes no blocks"):
        other.send(Blob(1, block=b"x"))
    assert repr(OwnBlob(seq=7, block=b"abc")) == "OwnBlob(seq=7, block=<3 bytes>)"
    assert repr(Blob(7, block=b"abc")) == "Blob(seq=7)"


class Vec:
    def __init__(self, x: int = 0) -> None:
        self.x = x

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.x = stream.serialize_int(self.x, -100, 100)


def test_an_object_within_is_made_when_it_is_read() -> None:
    class Shot(tw.messages.Message):
        place: Vec
        target: Vec

        def serialize(self, stream: tw.messages.Stream) -> None:
            self.place = stream.serialize_object(self.place, Vec)
            self.target = stream.serialize_object(self.target or Vec())

    protocol = make_protocol(messages=[Shot])
    shot = protocol.decode(protocol.encode(Shot(place=Vec(-3), target=Vec(7))))
    assert (type(shot.place), shot.place.x, shot.target.x) == (Vec, -3, 7)
    with pytest.raises(TypeError, match=r"must be given an object with serialize\(stream\), not None"):
        protocol.encode(Shot(place=None, target=Vec()))


def test_an_object_that_nobody_made_is_named() -> None:
    class Shot(tw.messages.Message):
        place: Vec

        def serialize(self, stream: tw.messages.Stream) -> None:
            self.place = stream.serialize_object(self.place)

    protocol = make_protocol(messages=[Shot])
    data = protocol.encode(Shot(place=Vec(1)))
    with pytest.raises(TypeError, match=r"give the class as well, as in serialize_object\(self.part, Part\)"):
        protocol.decode(data)


@pytest.mark.parametrize(
    ("integer_bits", "fraction_bits"), [(32, 32), (48, 16), (64, 64), (16, 40), (63, 0), (2, 64)]
)
def test_wide_fixed_point_numbers_are_exact(integer_bits: int, fraction_bits: int) -> None:
    low, high = -(2 ** (integer_bits - 1)), 2 ** (integer_bits - 1) - 1

    class Wide(tw.messages.Message):
        value: Fraction

        def serialize(self, stream: tw.messages.Stream) -> None:
            self.value = stream.serialize_fixed(self.value, integer_bits, fraction_bits, low, high)

    protocol = make_protocol(messages=[Wide])

    def back(value: Any) -> Any:
        return protocol.decode(protocol.encode(Wide(value=value))).value

    one = 2**fraction_bits
    for raw in (low * one, low * one + 1, -1, 0, 1, high * one - 1, high * one, (high * one) // 3):
        assert back(Fraction(raw, one)) == Fraction(raw, one)
        assert type(back(Fraction(raw, one))) is Fraction
    assert back(Fraction(1, 2 * one)) == Fraction(1, one), "ties go away from zero"
    assert back(Fraction(-1, 2 * one)) == Fraction(-1, one)
    assert back(0.25) == back(Decimal("0.25")) == (Fraction(1, 4) if fraction_bits > 1 else 0)
    for value in (high + 1, low - 1, 2.0**200, Fraction(high * one + 1, one), math.nan, math.inf):
        with pytest.raises(tw.FieldError, match=r"Wide.stream.fixed = .*: must be "):
            back(value)
    with pytest.raises(tw.FieldError, match="must be a float"):
        back("1")


def test_fixed_point_numbers_of_53_bits_are_floats() -> None:
    writer = tw.articles.BitWriter()
    writer.fixed(-1.5, -(2**20), 2**20, 32)
    writer.fixed(1.5, -(2**21), 2**21 + 1, 32)
    reader = tw.articles.BitReader(writer.to_bytes())
    values = [reader.fixed(-(2**20), 2**20, 32), reader.fixed(-(2**21), 2**21 + 1, 32)]
    assert values == [-1.5, Fraction(3, 2)]
    assert [type(value) for value in values] == [float, Fraction]


class Single(tw.messages.Message):
    value: float = 0.0

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.value = stream.serialize_float(self.value)


@tw.message
class Declared:
    value: tw.f32


@pytest.mark.parametrize("bits", [0x7F800001, 0xFF800001, 0x7FBFFFFF, 0x7FC00000, 0xFFFFFFFF, 0x7F800000])
def test_every_pattern_of_a_single_comes_through(bits: int) -> None:
    protocol = make_protocol(messages=[Single, Declared])
    for class_ in (Single, Declared):
        data = bits.to_bytes(4, "little")
        # The type is a bit, and so the float lies one bit on.
        number = ((bits << 1) | (class_ is Declared)).to_bytes(5, "little")
        message = protocol.decode(number)
        assert protocol.encode(message) == number, data.hex()


def test_channels_without_blocks_fit_small_packets() -> None:
    profile = Profile(max_packet_size=300, channels=NO_BLOCKS.channels)
    protocol = make_protocol(messages=[Text], yojimbo=profile)
    network, server, client = connected_pair(protocol)
    for seq in range(20):
        client.send(Text(seq, "x" * 60, b"y" * 32), channel=seq % 2)
    at_server, _ = advance(network, server, client, seconds=1)
    assert sorted(message.seq for _, message in at_server.messages) == list(range(20))
    with pytest.raises(ValueError, match="block_fragment_size must be 1 to 236, not 1024"):
        make_protocol(yojimbo=Profile(max_packet_size=300))
