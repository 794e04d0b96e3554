"""Encoding and decoding one message: round trips, and every refusal with its name."""

from __future__ import annotations

import contextlib
import enum
import math
import struct
from typing import Annotated, Any

import pytest
import tickwire as tw
from conftest import Blob, Chat, Move, Odd, make_protocol
from hypothesis import given
from hypothesis import strategies as st


@tw.message
class Every:
    """A field of every kind."""

    flag: bool
    plain: float
    u8: tw.u8
    u16: tw.u16
    u32: tw.u32
    u64: tw.u64
    u128: tw.u128
    i8: tw.i8
    i64: tw.i64
    f32: tw.f32
    f64: tw.f64
    narrow: Annotated[int, tw.bits(3)]
    ranged: Annotated[int, tw.ranged(-7, 1000)]
    huge: Annotated[int, tw.ranged(-(2**100), 2**100)]
    only: Annotated[int, tw.ranged(5, 5)]
    steps: Annotated[float, tw.quantized(-1, 1, 0.01)]
    fixed: Annotated[float, tw.fields.fixed(-100, 100, 8)]
    text: Annotated[str, tw.text(40)]
    wide: Annotated[str, tw.fields.wide_text(20)]
    data: Annotated[bytes, tw.data(30)]


every = tw.Protocol(1, [Every, Odd])

characters = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
texts = st.text(characters, max_size=10)
single = st.floats(width=32)

everything = st.builds(
    Every,
    flag=st.booleans(),
    plain=st.floats(),
    u8=st.integers(0, 2**8 - 1),
    u16=st.integers(0, 2**16 - 1),
    u32=st.integers(0, 2**32 - 1),
    u64=st.integers(0, 2**64 - 1),
    u128=st.integers(0, 2**128 - 1),
    i8=st.integers(-(2**7), 2**7 - 1),
    i64=st.integers(-(2**63), 2**63 - 1),
    f32=single,
    f64=st.floats(),
    narrow=st.integers(0, 7),
    ranged=st.integers(-7, 1000),
    huge=st.integers(-(2**100), 2**100),
    only=st.just(5),
    steps=st.integers(0, 200).map(lambda step: step / 100 - 1),
    fixed=st.integers(-25600, 25600).map(lambda raw: raw / 256),
    text=texts,
    wide=texts,
    data=st.binary(max_size=30),
)


def same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return struct.pack("d", a) == struct.pack("d", b) or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


@given(everything)
def test_what_is_encoded_is_decoded(message: Every) -> None:
    data = every.encode(message)
    back = every.decode(data)
    assert type(back) is Every
    for name in Every.__dataclass_fields__:
        before, after = getattr(message, name), getattr(back, name)
        if name == "steps":
            assert abs(before - after) < 1e-6
        else:
            assert same(before, after), name
    assert len(data) * 8 - 7 <= every.measure(message) <= Every.__tickwire_schema__.max_bits + 1
    assert every.encode(back) == data, "what was read can be sent again"


@given(st.integers(0, 1000), st.integers(0, 4095))
def test_a_class_with_its_own_serialize_makes_a_round_trip(n: int, extra: int) -> None:
    message = Odd(n=n, extra=extra) if n > 500 else Odd(n=n)
    back = every.decode(every.encode(message))
    assert back == message
    assert "_tickwire_reading" not in vars(back)
    assert len(every.encode(message)) * 8 - 7 <= every.measure(message)


@given(st.binary(max_size=60))
def test_random_bytes_are_a_message_or_refused(data: bytes) -> None:
    try:
        message = every.decode(data)
    except tw.errors.StreamError:
        return
    every.encode(message)


@given(everything, st.data())
def test_altered_bytes_are_a_message_or_refused(message: Every, data: st.DataObject) -> None:
    encoded = bytearray(every.encode(message))
    bit = data.draw(st.integers(0, len(encoded) * 8 - 1))
    encoded[bit // 8] ^= 1 << bit % 8
    with contextlib.suppress(tw.errors.StreamError):
        every.decode(bytes(encoded))
    with pytest.raises(tw.errors.StreamError):
        every.decode(bytes(encoded[: len(encoded) // 2]))
    with pytest.raises(tw.errors.StreamError):
        every.decode(every.encode(message) + b"\0")


class Weapon(enum.IntEnum):
    AXE = 2


class Index:
    def __index__(self) -> int:
        return 9


def test_numbers_of_other_types_are_taken_as_numbers(protocol: tw.Protocol) -> None:
    message: Any = Move(Index(), Weapon.AXE, 1)
    assert protocol.decode(protocol.encode(message)) == Move(9, 2, 1.0)
    assert protocol.decode(protocol.encode(Move(True, 0, False))).tick == 1


@pytest.mark.parametrize(
    ("message", "error", "complaint"),
    [
        (Move(65536), ValueError, "Move.tick = 65536: must be 0 to 65535"),
        (Move(-1), ValueError, "Move.tick = -1: must be 0 to 65535"),
        (Move(2**70), ValueError, "Move.tick = 1180591620717411303424: must be 0 to 65535"),
        (Move(2**200), ValueError, r"Move.tick = 16069.*\.\.\.: must be a number of at most 128 bits"),
        (Move(aim=1.5), ValueError, "Move.aim = 1.5: must be -1 to 1"),
        (Move(aim=math.nan), ValueError, "Move.aim = nan: must be a finite number"),
        (Move(aim=math.inf), ValueError, "Move.aim = inf: must be a finite number"),
        (Move(aim=10**400), ValueError, r"Move.aim = 1000.*\.\.\.: must be"),
        (Move("1"), TypeError, r"Move.tick = '1' \(str\): must be an int"),
        (Move(1.0), TypeError, r"Move.tick = 1.0 \(float\): must be an int"),
        (Move(None), TypeError, r"Move.tick = None \(NoneType\): must be an int"),
        (Move(aim="1"), TypeError, r"Move.aim = '1' \(str\): must be a float"),
        (Chat(64, ""), ValueError, "Chat.sender = 64: must be 0 to 63"),
        (Chat(0, "x" * 201), ValueError, "Chat.text = 'xxx.*: must be at most 200 bytes, not 201"),
        (Chat(0, "é" * 101), ValueError, "must be at most 200 bytes, not 202"),
        (Chat(0, "a\0b"), ValueError, r"Chat.text = 'a\\x00b': must be text without NUL"),
        (Chat(0, "\ud800"), ValueError, r"Chat.text = '\\ud800': must be text without lone surrogates"),
        (Chat(0, b"x"), TypeError, r"Chat.text = b'x' \(bytes\): must be a str"),
        (Blob("x"), TypeError, r"Blob.data = 'x' \(str\): must be bytes"),
        (Every(flag=1), TypeError, r"Every.flag = 1 \(int\): must be True or False"),
        (Every(f32=1e300), ValueError, "Every.f32 = 1e.300: must be -3.402.*e38 to 3.402"),
        (Odd(n=1001), ValueError, r"Odd.stream.ranged = 1001: must be 0 to 1000"),
        (Odd(n="x"), TypeError, r"Odd.stream.ranged = 'x' \(str\): must be an int"),
        (Odd(n=501, extra=4096), ValueError, r"Odd.stream.bits = 4096: must be 0 to 4095"),
        (Odd(n=501, extra=-1), ValueError, r"Odd.stream.bits = -1: must be 0 to 4095"),
    ],
)
def test_a_value_that_does_not_fit_is_named(message: Any, error: type[Exception], complaint: str) -> None:
    protocol = make_protocol(messages=[Move, Chat, Blob, Odd, Every])
    with pytest.raises(error, match=complaint) as raised:
        protocol.encode(message)
    assert isinstance(raised.value, tw.FieldError)
    assert raised.value.class_name == type(message).__name__
    assert str(raised.value.bound) in str(raised.value)
    with pytest.raises(error, match=complaint):
        protocol.measure(message)


def test_an_error_has_its_parts() -> None:
    with pytest.raises(tw.FieldError) as raised:
        make_protocol().encode(Move(70_000))
    error = raised.value
    assert (error.class_name, error.field, error.value, error.bound) == ("Move", "tick", 70_000, "0 to 65535")


def test_a_class_that_is_not_in_the_protocol_is_named(protocol: tw.Protocol) -> None:
    for stranger in (object(), None, type("SubMove", (Move,), {})()):
        with pytest.raises(
            tw.errors.UnregisteredMessageError, match=r"is not among .* \(Move, Chat, Blob, Odd\)"
        ):
            protocol.encode(stranger)


class Growing(tw.messages.Message):
    max_bytes = 8
    count: int = 0

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.count = stream.bits(self.count, 8)
        for _ in range(self.count):
            stream.bits(1, 8)


def test_an_own_message_may_not_outgrow_its_bound() -> None:
    protocol = tw.Protocol(1, [Growing])
    assert protocol.decode(protocol.encode(Growing(count=7))).count == 7
    with pytest.raises(
        tw.errors.MessageTooLargeError, match="Growing must take at most 8 bytes, its max_bytes, not 9"
    ):
        protocol.encode(Growing(count=8))


def test_a_missing_attribute_is_named_on_sending(protocol: tw.Protocol) -> None:
    with pytest.raises(AttributeError, match="Odd object has no attribute 'extra'"):
        protocol.encode(Odd(n=501))
    move = Move()
    del move.tick
    with pytest.raises(AttributeError, match="tick"):
        protocol.encode(move)


class Greedy(tw.messages.Message):
    """Reads in another way than it writes."""

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.n = stream.bits(1, 4 if stream.reading else 8)


class Keeping(tw.messages.Message):
    kept: tw.messages.Stream | None = None

    def serialize(self, stream: tw.messages.Stream) -> None:
        Keeping.kept = stream
        stream.bits(1, 1)


def test_bits_left_unread_are_refused() -> None:
    protocol = tw.Protocol(1, [Greedy])
    with pytest.raises(
        tw.errors.StreamError, match="Greedy: serialize\\(\\) leaves bits of the message unread"
    ):
        protocol.decode(protocol.encode(Greedy()))


def test_a_stream_lives_only_while_serialize_runs() -> None:
    tw.Protocol(1, [Keeping]).encode(Keeping())
    assert Keeping.kept is not None
    with pytest.raises(RuntimeError, match="the stream can be used only while"):
        Keeping.kept.bits(1, 1)


class Everywhere(tw.messages.Message):
    """Every method of a stream."""

    def serialize(self, stream: tw.messages.Stream) -> None:
        assert [stream.writing, stream.reading, stream.measuring].count(True) == 1
        self.flag = stream.flag(self.flag)
        self.bits = stream.bits(self.bits, 64)
        self.ranged = stream.ranged(self.ranged, -(2**99), 2**99)
        self.uint128 = stream.uint128(self.uint128)
        self.relative = stream.relative(self.relative, 1000)
        self.float32 = stream.float32(self.float32)
        self.float64 = stream.float64(self.float64)
        self.quantized = stream.quantized(self.quantized, 0, 10, 0.5)
        self.fixed = stream.fixed(self.fixed, -10, 10, 4)
        self.text = stream.text(self.text, 20)
        self.wide = stream.wide_text(self.wide, 20)
        stream.align()
        self.data = stream.data(self.data, 20)
        assert stream.bits_processed > 300


def test_a_stream_has_every_primitive() -> None:
    protocol = tw.Protocol(1, [Everywhere, Odd])
    values: dict[str, Any] = {
        "flag": True,
        "bits": 2**64 - 1,
        "ranged": -(2**99),
        "uint128": 2**128 - 1,
        "relative": 5000,
        "float32": 0.5,
        "float64": 0.1,
        "quantized": 2.5,
        "fixed": -3.0625,
        "text": "Grüße",
        "wide": "𝄞",
        "data": b"\0\xff",
    }
    message = Everywhere(**values)
    assert vars(protocol.decode(protocol.encode(message))) == values
    assert protocol.measure(message) >= len(protocol.encode(message)) * 8 - 7
    for name, value in {"flag": 1, "relative": 1000, "quantized": 11, "fixed": 10.5, "data": "x"}.items():
        if name != "flag":
            with pytest.raises(tw.FieldError):
                protocol.encode(Everywhere(**{**values, name: value}))


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: tw.bits(0), "count must be 1 to 64, not 0"),
        (lambda: tw.bits(65), "count must be 1 to 64, not 65"),
        (lambda: tw.ranged(5, 4), r"ranged\(5, 4\): low must be at most high \(4\), not 5"),
        (lambda: tw.ranged(0, 2**128), "high must be"),
        (lambda: tw.quantized(1, -1, 0.1), "quantized"),
        (lambda: tw.quantized(0, 1, 0), "resolution must be above 0"),
        (lambda: tw.quantized(0, math.nan, 0.1), "NaN"),
        (lambda: tw.fields.fixed(0, 1, 65), "fraction_bits must be 0 to 64, not 65"),
        (lambda: tw.text(70_000), "max_bytes must be 0 to 65535, not 70000"),
        (lambda: tw.fields.wide_text(-1), "max_units must be 0 to 65535, not -1"),
        (lambda: tw.data(2**200), "max_bytes must be 0 to 65535"),
        (lambda: tw.reliable_ordered(send_queue=0), "send_queue must be 1 to 16384, not 0"),
        (lambda: tw.reliable_ordered(receive_window=-1), "receive_window must be"),
        (lambda: tw.reliable_ordered(resend_time=math.nan), "resend_time must be 0 to 60 seconds, not NaN"),
        (lambda: tw.unreliable(max_message_bytes=10**9), "max_message_bytes must be 1 to .*, not 1000000000"),
        (lambda: make_protocol(id=-1), "id must be 0 to 18446744073709551615, not -1"),
        (lambda: make_protocol(channels=[]), "number of channels must be 1 to 64, not 0"),
        (lambda: make_protocol(messages=[]), "messages must have at least one class"),
        (lambda: tw.Conditions(loss=1.5), "loss"),
        (lambda: tw.Conditions(latency=-1), "latency must be 0 to"),
        (lambda: tw.Conditions(latency=0.01, jitter=0.02), "jitter"),
        (lambda: tw.testing.SimulatedNetwork().advance(-1), "seconds must be 0 to"),
    ],
)
def test_a_setting_out_of_its_bounds_is_named(make: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        make()


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([Move, int], r"messages\[1\]: <class 'int'> is neither made by @tickwire.message nor derived"),
        ([Move, 5], r"messages\[1\]: 5 is not a class"),
        ([Move, Move], "messages must be different classes, and Move appears twice"),
        ([tw.messages.Message], r"messages\[0\]: .*Message'> must define serialize\(self, stream\)"),
        ([type("Silent", (tw.messages.Message,), {})], "must define serialize"),
        ([type("SubMove", (Move,), {})], "is neither made by @tickwire.message"),
    ],
)
def test_a_class_that_is_no_message_is_refused(messages: list[Any], complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        make_protocol(messages=messages)


def test_the_hash_is_of_what_both_sides_must_share(protocol: tw.Protocol) -> None:
    assert protocol.hash == make_protocol().hash
    assert protocol.hash != make_protocol(messages=[Chat, Move, Blob, Odd]).hash
    assert protocol.hash != make_protocol(channels=[tw.reliable_ordered()]).hash
    assert protocol.messages == [Move, Chat, Blob, Odd]
    assert [(channel.kind, channel.name) for channel in protocol.channels] == [
        ("reliable_ordered", "events"),
        ("unreliable", "state"),
    ]


def test_a_protocol_needs_no_messages_beside_layers() -> None:
    layers: list[dict[str, Any]] = [{"inputs": Move, "tick_rate": 60}, {"tick_rate": 60}, {"peers": True}]
    for settings in layers:
        assert tw.Protocol(1, **settings).messages == tw.Protocol(1, [], **settings).messages == []
    with pytest.raises(ValueError, match="messages must have at least one class, unless"):
        tw.Protocol(1)


def test_inputs_alone_reach_the_server() -> None:
    network = tw.testing.SimulatedNetwork(seed=1)
    protocol: tw.Protocol[Any] = tw.Protocol(1, inputs=Move, tick_rate=60)
    server = tw.Server("10.0.0.1:7", protocol, network=network)
    client = tw.Client.connect("10.0.0.1:7", protocol, network=network)
    taken = 0
    for _ in range(120):
        network.advance(1 / 60)
        with client.tick():
            client.send_input(Move(1, 2, 0.5))
        with server.tick():
            taken += sum(each == Move(1, 2, 0.5) for _, each in server.inputs)
    assert taken > 60
