"""The native core of Tickwire. Import these names from :mod:`tickwire`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from enum import Enum, Flag
from fractions import Fraction
from os import PathLike
from pathlib import Path
from types import GenericAlias, TracebackType
from typing import Any, Final, Generic, Literal, Self, TypeAlias, TypeVar, final, overload
from typing import Protocol as Protocol_

from typing_extensions import Buffer, disjoint_base
from typing_extensions import TypeVar as DefaultTypeVar

from tickwire.connection import AddressLike, ClientState, DisconnectReason, Event, SendResult
from tickwire.ghost import Always, Chosen, Grid, Owner
from tickwire.hooks import AdmissionHook, PriorityHook
from tickwire.message import MessageFactory
from tickwire.rows import Row

__all__ = [
    "AckEndpoint",
    "Address",
    "BitMeasure",
    "BitReader",
    "BitWriter",
    "Bursts",
    "Candidates",
    "Capture",
    "Channel",
    "ChannelSnapshot",
    "ChannelStats",
    "Chunk",
    "ChunkProgress",
    "ChunkReceiver",
    "ChunkSender",
    "ChunkStats",
    "Client",
    "ClientHandle",
    "ClientWorld",
    "Clock",
    "Conditions",
    "Congestion",
    "ConnectToken",
    "Connected",
    "ConnectionStats",
    "Disconnected",
    "FieldType",
    "Ghost",
    "GhostArrays",
    "GhostChanged",
    "GhostDespawned",
    "GhostOwned",
    "GhostSpawned",
    "GoodBad",
    "Inbox",
    "IncomingChunk",
    "InputColumns",
    "InputStatus",
    "Inputs",
    "Link",
    "Notifications",
    "Outages",
    "PacketNotifications",
    "PacketOpener",
    "PacketStats",
    "Properties",
    "Property",
    "Protocol",
    "Proxy",
    "ReceivedChunk",
    "Room",
    "Rows",
    "Schema",
    "SequenceBuffer",
    "Server",
    "SimulatedNetwork",
    "Socket",
    "Stream",
    "Tick",
    "Transfer",
    "VirtualConnection",
    "World",
    "__version__",
    "angle",
    "arena",
    "bits",
    "boolean",
    "chunks",
    "common_of",
    "converted_of",
    "data",
    "dtype",
    "enum_of",
    "fixed",
    "flags",
    "flags_of",
    "float32",
    "float64",
    "generate_key",
    "items_of",
    "latest",
    "list_of",
    "literal_of",
    "map_of",
    "nested_of",
    "network_id",
    "optional_of",
    "pack",
    "payload",
    "quantized",
    "quaternion",
    "ranged",
    "raw",
    "redundant",
    "reliable_ordered",
    "reliable_unordered",
    "row_format",
    "sequence_distance",
    "sequence_greater",
    "sequence_less",
    "sequenced",
    "set_of",
    "signed_quaternion",
    "sparse_of",
    "text",
    "transform",
    "tuple_of",
    "uint128",
    "union_of",
    "unit_vector",
    "unpack",
    "unreliable",
    "vec2",
    "vec3",
    "wide_text",
]
__version__: Final[str]

_M = TypeVar("_M", covariant=True)
# What an inbox gives when it is iterated.
_W = DefaultTypeVar("_W", covariant=True, default=Any)
# What comes of latest channels.
_L = DefaultTypeVar("_L", covariant=True, default=Any)
# The messages of a protocol.
_P = DefaultTypeVar("_P", default=Any)
_Q = TypeVar("_Q")
_T = TypeVar("_T")
_Number = TypeVar("_Number", float, Fraction)
_D = TypeVar("_D")

# Within classes that have a method of that name.
_Bytes: TypeAlias = bytes

# --- addresses, keys, tokens -------------------------------------------------------------------------

@final
class Address:
    """An IPv4 or IPv6 address with a port: ``a.b.c.d:port`` or ``[v6]:port``. Immutable, hashable, ordered.

    Names are not resolved here; see :func:`tickwire.resolve`.

    Raises:
        ValueError: the text is not an address with a port.

    Example:
        >>> address = Address("[::1]:40000")
        >>> address.host, address.port, address.with_port(5)
        ('::1', 40000, Address('[::1]:5'))
    """

    def __new__(cls, address: AddressLike, /) -> Address: ...
    @property
    def host(self) -> str:
        """The numeric host, without brackets."""
    @property
    def port(self) -> int:
        """The port, 0 to 65,535."""
    @property
    def is_ipv6(self) -> bool:
        """Whether it is an IPv6 address."""
    @property
    def is_loopback(self) -> bool:
        """Whether it is an address of this machine only."""
    def with_port(self, port: int) -> Address:
        """The same host with another port, 0 to 65,535."""
    def __eq__(self, other: object, /) -> bool: ...
    def __lt__(self, other: Address, /) -> bool: ...
    def __le__(self, other: Address, /) -> bool: ...
    def __gt__(self, other: Address, /) -> bool: ...
    def __ge__(self, other: Address, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __str__(self) -> str: ...

def generate_key() -> bytes:
    """32 random bytes from the operating system: a private key to share between login backend and servers."""

@final
class ConnectToken:
    """A netcode 1.02 connect token: what a login backend hands to a client over HTTPS, and the client dials with.

    Example:
        >>> token = ConnectToken.generate(
        ...     protocol=0x7469636B, key=generate_key(), client_id=7, servers=["203.0.113.7:40000"], now=1_000_000
        ... )
        >>> ConnectToken.from_bytes(token.to_bytes())
        <ConnectToken for protocol 0x7469636b at 203.0.113.7:40000>
        >>> token.expires - token.created
        30
    """

    @staticmethod
    def generate(
        *,
        protocol: Protocol | int,
        key: bytes,
        client_id: int,
        servers: Sequence[AddressLike],
        internal_servers: Sequence[AddressLike] | None = None,
        expires_in: int | None = 30,
        timeout: int | None = 10,
        user_data: bytes = b"",
        now: int | None = None,
    ) -> ConnectToken:
        """Makes a token with fresh keys.

        Args:
            protocol (Protocol | int): the protocol, or its 64-bit id.
            key (bytes): the 32-byte private key shared with the servers.
            client_id (int): a number of the account, 0 to 2**64 - 1, unique among connected players.
            servers (Sequence[AddressLike]): 1 to 32 addresses that the client tries in order.
            internal_servers (Sequence[AddressLike] | None, default None): the same servers as they know themselves,
                when behind a fixed NAT mapping.
            expires_in (int | None, default 30): seconds until the token can't start a connection any more; None:
                never.
            timeout (int | None, default 10): seconds of silence that end the connection; None: no timeout.
            user_data (bytes, default b''): up to 256 bytes that reach the server sealed.
            now (int | None, default None): seconds since 1970 at which its life begins; None: by the system's clock.
                On a simulated network, its :attr:`SimulatedNetwork.unix`.

        Raises:
            ValueError: naming the argument, its value and its bound.
        """

    @staticmethod
    def from_bytes(data: bytes, /) -> ConnectToken:
        """Reads a token's 2,048 bytes.

        Raises:
            ValueError: saying what is wrong with them.
        """

    def to_bytes(self) -> _Bytes:
        """The token's 2,048 bytes, for :meth:`from_bytes`. They hold this client's keys: send them encrypted."""
    @property
    def protocol_id(self) -> int:
        """The 64-bit id of the protocol that it is for."""
    @property
    def servers(self) -> list[Address]:
        """The servers that the client tries, in this order."""
    @property
    def created(self) -> int:
        """When it was made, in seconds since 1970."""
    @property
    def expires(self) -> int:
        """From when on it starts no connection any more, in seconds since 1970."""
    @property
    def timeout(self) -> int | None:
        """Seconds of silence that end the connection; None: no timeout."""

# --- messages ----------------------------------------------------------------------------------------

@final
class FieldType:
    """How one field of a message is written. Made by :func:`bits`, :func:`ranged`, ..., used in ``Annotated``."""

    @property
    def default(self) -> Any:
        """The value of a field that its class gives none."""
    @property
    def is_mutable(self) -> bool:
        """Whether every object needs a default of its own."""
    @property
    def min_bits(self) -> int:
        """The least that the field costs."""
    @property
    def max_bits(self) -> int:
        """An upper bound of what the field costs, alignment included."""
    @property
    def python_type(self) -> type:
        """The type of the field's values."""

def bits(count: int, /) -> FieldType:
    """An unsigned integer of ``count`` bits, 1 to 64."""

def ranged(low: int, high: int, /) -> FieldType:
    """An integer from ``low`` to ``high``, both included, in the bits that ``high - low`` takes."""

def uint128() -> FieldType:
    """An unsigned integer of 128 bits."""

def boolean() -> FieldType:
    """True or False, in one bit."""

def float32() -> FieldType:
    """A float in 32 bits."""

def float64() -> FieldType:
    """A float in 64 bits."""

def quantized(low: float, high: float, resolution: float, /) -> FieldType:
    """A float from ``low`` to ``high`` in steps of about ``resolution``."""

def fixed(low: int, high: int, fraction_bits: int, /) -> FieldType:
    """A number from ``low`` to ``high`` with ``fraction_bits`` binary places."""

def text(max_bytes: int, /) -> FieldType:
    """Text of at most ``max_bytes`` bytes of UTF-8, without NUL."""

def wide_text(max_units: int, /) -> FieldType:
    """Text of at most ``max_units`` UTF-16 units, without NUL, in 32 bits each: serialize's wide string."""

def data(max_bytes: int, /) -> FieldType:
    """At most ``max_bytes`` bytes."""

def raw(count: int, /) -> FieldType:
    """Exactly ``count`` bytes, without their length; zeros if nothing is said."""

def angle(low: float, high: float, resolution: float, /) -> FieldType:
    """An angle on a circle from ``low`` to ``high``, which is ``low`` again, in steps of at most ``resolution``."""

def vec2(low: float, high: float, resolution: float, /) -> FieldType:
    """Two numbers from ``low`` to ``high``, each in steps of at most ``resolution``."""

def vec3(low: float, high: float, resolution: float, /) -> FieldType:
    """Three numbers from ``low`` to ``high``, each in steps of at most ``resolution``."""

def unit_vector(bits: int = 12, /) -> FieldType:
    """A direction in space: a vector of length 1, in two components of ``bits`` bits."""

def quaternion(bits: int = 9, /) -> FieldType:
    """A rotation (x, y, z, w), by its three smallest components of ``bits`` bits."""

def signed_quaternion() -> FieldType:
    """A rotation (x, y, z, w): x, y and z in 16 bits each and the sign of w."""

def transform(low: float, high: float, resolution: float, /, rotation_bits: int = 9) -> FieldType:
    """A translation from ``low`` to ``high`` along each axis, a rotation and a scale."""

def flags(*names: str) -> FieldType:
    """An int whose bits are booleans of these names, the first the lowest."""

def network_id(highest: int = 65_535, /) -> FieldType:
    """The network id of an object, up to ``highest``; 0 is none."""

def enum_of(class_: type[Enum], /) -> FieldType:
    """A member of an enumeration."""

def flags_of(class_: type[Flag], /) -> FieldType:
    """Flags of a class derived from :class:`enum.Flag` whose flags are 1, 2, 4 and so on."""

def common_of(item: FieldType, values: Sequence[Any], /) -> FieldType:
    """The field with one or two values that cost one or two bits."""

def optional_of(item: FieldType, /) -> FieldType:
    """A value or None."""

def list_of(item: FieldType, most: int, /) -> FieldType:
    """Up to ``most`` values."""

def sparse_of(item: FieldType, slots: int, /) -> FieldType:
    """Values of some of ``slots`` slots."""

def tuple_of(items: Sequence[FieldType], /) -> FieldType:
    """A tuple of parts that each have a field type of their own."""

def items_of(item: FieldType, most: int, /) -> FieldType:
    """Up to ``most`` values, as a tuple."""

def set_of(item: FieldType, most: int, frozen: bool, /) -> FieldType:
    """Up to ``most`` different values."""

def map_of(key: FieldType, item: FieldType, most: int, /) -> FieldType:
    """Up to ``most`` values by key."""

def literal_of(values: Sequence[Any], /) -> FieldType:
    """One of these values."""

def union_of(classes: Sequence[tuple[type, Schema]], /) -> FieldType:
    """An object of one of these message classes."""

def converted_of(
    class_: type, item: FieldType, to_wire: Callable[[Any], Any], from_wire: Callable[[Any], Any], /
) -> FieldType:
    """An object of a type of the game's own, as what ``item`` takes."""

def nested_of(class_: type, schema: Schema, /) -> FieldType:
    """The fields of a message class."""

@final
class Schema:
    """The compiled program of a message class declared by its fields.

    Raises:
        TypeError, ValueError: naming class, field, value and bound.
    """

    def __new__(cls, name: str, fields: Sequence[tuple[str, FieldType]], /) -> Schema: ...
    @property
    def name(self) -> str:
        """The message class's name."""
    @property
    def fields(self) -> list[tuple[str, FieldType]]:
        """Names and types of the fields, in order."""
    @property
    def min_bits(self) -> int:
        """The least that a message costs."""
    @property
    def max_bits(self) -> int:
        """An upper bound of what a message costs, alignment included."""
    def check(self, message: object, /) -> None:
        """Raises the FieldError that sending an object with these attributes would raise, if any."""

@final
class Properties:
    """The compiled program of a class made by :func:`tickwire.ghost`.

    Raises:
        TypeError, ValueError: naming class, property, value and bound.
    """

    def __new__(
        cls, name: str, fields: Sequence[tuple[str, FieldType, str]], capacity: int, /
    ) -> Properties: ...
    @property
    def name(self) -> str:
        """The ghost class's name."""
    @property
    def capacity(self) -> int:
        """How many ghosts there may be at a time."""
    @property
    def fields(self) -> list[tuple[str, FieldType, str]]:
        """Names, types and conditions of the properties, in order."""
    def set_defaults(self, ghost: object, /) -> None:
        """Takes the values of an object's attributes as the class's defaults. Raises the FieldError that spawning it would
        raise, if any."""

@final
class Property:
    """How the objects of a ghost class reach a property: a plain value until they are spawned, then a cell of the world."""

    def __new__(cls, properties: Properties, place: int, /) -> Property: ...
    @property
    def name(self) -> str:
        """What it is called."""
    @property
    def field_type(self) -> FieldType:
        """How it is sent."""
    def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...
    def __set__(self, instance: Any, value: Any, /) -> None: ...

# Of NumPy's arrays, whose stubs say that they are buffers only to type checkers of Python 3.12 and later.
class _HasType(Protocol_):
    @property
    def dtype(self) -> Any: ...

_Array: TypeAlias = Buffer | _HasType

# --- arrays of messages ------------------------------------------------------------------------------
# Arrays are `Any`: numpy.ndarray where NumPy is installed, else Rows. NumPy is no dependency.

def dtype(class_: type, /) -> Any:
    """The NumPy type of rows of a message class: ``numpy.zeros(n, tickwire.dtype(Move))`` are n rows.

    Raises:
        ImportError: NumPy is not installed; :func:`row_format` does without.
        TypeError: the class was not made by :func:`message`, or has no fields.
    """

def row_format(class_: type, /) -> str:
    """The format of rows of a message class, for the :mod:`struct` module.

    Raises:
        TypeError: the class was not made by :func:`message`, or has no fields.
    """

def pack(class_: type, rows: _Array, /, *, arena: _Array | None = None) -> bytes:
    """Writes messages of one class, a row each, one behind the other.

    Raises:
        FieldError: naming the first row that is wrong, its field, its value and what it must be.
        TypeError, ValueError: these are no rows of the class.
    """

def unpack(class_: type, data: bytes, count: int, /) -> Any:
    """Reads what :func:`pack` wrote: an array with NumPy, else :class:`Rows`.

    Raises:
        StreamError: saying what is refused, and in which row.
    """

@final
class Rows:
    """The rows of a message class, where NumPy is not installed: a structured array is there where it is.

    ``rows[0].hp`` is a field of a row, ``rows["hp"]`` that of all: a memoryview of numbers, without a copy, or a list of
    what else a field holds. ``for row in rows`` goes through them. Fields of a type of your own come as what is on the wire.
    The buffer has the format of :func:`row_format`.
    """

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
    @property
    def format(self) -> str:
        """How a row lies in memory, for the :mod:`struct` module."""
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int, /) -> Row: ...
    @overload
    def __getitem__(self, key: slice, /) -> list[Row]: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...
    def __iter__(self) -> Iterator[Row]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

def arena(rows: Any, /) -> memoryview:
    """The bytes in which the texts, data and lists of rows lie that Tickwire made; of views of these rows too.

    Raises:
        ValueError: these are no such rows, or a copy of them.
    """

@final
class Stream:
    """What a message's own ``serialize(stream)`` is given: one set of methods that writes, reads or measures.

    Each method takes the current value and returns it; when reading, the argument is ignored and the value
    read is returned. Layout: the serialize 1.0 standard.

    Raises:
        FieldError: writing or measuring a value out of its range.
        StreamError: reading bytes that the standard refuses. Let it pass through ``serialize``: it ends the
            connection of the peer that sent them.
    """

    @property
    def writing(self) -> bool:
        """Whether values are written."""
    @property
    def reading(self) -> bool:
        """Whether values are read: what is passed in doesn't matter."""
    @property
    def measuring(self) -> bool:
        """Whether bits are only counted."""
    @property
    def bits_processed(self) -> int:
        """Bits written or measured so far, or the bit position of the next read."""
    def flag(self, value: object, /) -> bool:
        """One bit: the truth of ``value``."""
    def bits(self, value: int | None, count: int, /) -> int:
        """An unsigned integer of ``count`` bits, 1 to 64."""
    def ranged(self, value: int | None, low: int, high: int, /) -> int:
        """An integer from ``low`` to ``high``, both included."""
    def uint128(self, value: int | None, /) -> int:
        """An unsigned integer of 128 bits."""
    def relative(self, value: int | None, previous: int, /) -> int:
        """An integer above ``previous``, in fewer bits the nearer it is; at most 2**31 - 1."""
    def sequence_relative(self, value: int | None, previous: int, /) -> int:
        """A sequence number after ``previous``, counting across the wrap, and not equal to it."""
    def float32(self, value: float | None, /) -> float:
        """A float in 32 bits."""
    def float64(self, value: float | None, /) -> float:
        """A float in 64 bits."""
    def quantized(self, value: float | None, low: float, high: float, resolution: float, /) -> float:
        """A float from ``low`` to ``high`` in steps of about ``resolution``."""
    def fixed(self, value: _Number | None, low: int, high: int, fraction_bits: int, /) -> _Number:
        """A number from ``low`` to ``high`` with ``fraction_bits`` binary places: a float, or a ``Fraction`` where a float
        has too few bits (more than 53) to be exact."""
    def text(self, value: str | None, max_bytes: int, /) -> str:
        """Text of at most ``max_bytes`` bytes of UTF-8, without NUL."""
    def wide_text(self, value: str | None, max_units: int, /) -> str:
        """Text of at most ``max_units`` UTF-16 units, without NUL, in 32 bits each."""
    def data(self, value: _Bytes | None, max_bytes: int, /) -> _Bytes:
        """At most ``max_bytes`` bytes."""
    def bytes(self, value: _Bytes | None, count: int, /) -> _Bytes:
        """Exactly ``count`` bytes, without their length."""
    def align(self) -> None:
        """Zero bits up to the next byte boundary."""

    # The names of serialize's macros in C++, with their arguments.
    def serialize_bits(self, value: int | None, bits: int, /) -> int:
        """As :meth:`bits`, by the name that it has in C++."""
    def serialize_bool(self, value: object, /) -> bool:
        """As :meth:`flag`, by the name that it has in C++."""
    def serialize_int(self, value: int | None, min: int, max: int, /) -> int:
        """As :meth:`ranged`, by the name that it has in C++."""
    def serialize_int64(self, value: int | None, min: int, max: int, /) -> int:
        """As :meth:`ranged`, by the name that it has in C++."""
    def serialize_int128(self, value: int | None, min: int, max: int, /) -> int:
        """As :meth:`ranged`, by the name that it has in C++."""
    def serialize_uint8(self, value: int | None, /) -> int:
        """An unsigned integer of 8 bits."""
    def serialize_uint16(self, value: int | None, /) -> int:
        """An unsigned integer of 16 bits."""
    def serialize_uint32(self, value: int | None, /) -> int:
        """An unsigned integer of 32 bits."""
    def serialize_uint64(self, value: int | None, /) -> int:
        """An unsigned integer of 64 bits."""
    def serialize_uint128(self, value: int | None, /) -> int:
        """As :meth:`uint128`, by the name that it has in C++."""
    def serialize_float(self, value: float | None, /) -> float:
        """As :meth:`float32`, by the name that it has in C++."""
    def serialize_double(self, value: float | None, /) -> float:
        """As :meth:`float64`, by the name that it has in C++."""
    def serialize_compressed_float(self, value: float | None, min: float, max: float, res: float, /) -> float:
        """As :meth:`quantized`, by the name that it has in C++."""
    def serialize_fixed(
        self, value: _Number | None, integer_bits: int, fraction_bits: int, min: int, max: int, /
    ) -> _Number:
        """As :meth:`fixed`; ``integer_bits`` is not on the wire."""
    def serialize_bytes(self, data: _Bytes | None, bytes: int, /) -> _Bytes:
        """As :meth:`bytes`, by the name that it has in C++."""
    def serialize_string(self, string: str | None, buffer_size: int, /) -> str:
        """Text of up to ``buffer_size - 1`` bytes: the last one is C++'s NUL."""
    def serialize_wstring(self, string: str | None, buffer_size: int, /) -> str:
        """Text of up to ``buffer_size - 1`` UTF-16 units."""
    def serialize_align(self) -> None:
        """As :meth:`align`, by the name that it has in C++."""
    def serialize_object(self, object: _T | None, class_: Callable[[], _T] | None = None, /) -> _T:
        """Calls ``object.serialize(self)`` and returns the object. When reading, ``class_()`` makes a new one; without it,
        the object given is read into, so there must be one."""
    def serialize_int_relative(self, previous: int, current: int | None, /) -> int:
        """Returns ``current``."""
    def serialize_sequence_relative(self, sequence1: int, sequence2: int | None, /) -> int:
        """Returns ``sequence2``."""

# --- protocol ----------------------------------------------------------------------------------------

@final
class Channel:
    """The settings of one channel. Made by :func:`reliable_ordered`, :func:`unreliable` and the like.

    All kinds take these arguments:

    Args:
        name: for people: it is in the statistics.
        max_message_bytes: the largest message. On reliable channels one above 1,024 bytes goes in fragments that are
            sent again one by one; on others one above about 1,180 bytes is lost with any of its fragments.
        strict: comes before all channels that are not strict, in the protocol's order. These keep a tenth of each
            packet, so that none of them starves.
        weight: the share among the channels that are not strict, relative to theirs; 1 to 1,000. What one doesn't
            use passes on to the others.

    Raises:
        ValueError: naming the argument, its value and its bound.
    """

    @property
    def kind(self) -> str:
        """Which promise it makes, such as ``reliable_ordered``."""
    @property
    def name(self) -> str:
        """Its name, for people; empty unless given."""
    @property
    def strict(self) -> bool:
        """Whether it comes before the channels that are not strict."""
    @property
    def weight(self) -> int:
        """Its share among the channels that are not strict."""
    @property
    def max_message_bytes(self) -> int:
        """The bytes of the largest message."""
    @property
    def keys(self) -> int:
        """How many keys a latest channel has; 0 of the other kinds."""
    @property
    def retain(self) -> bool:
        """Whether what is broadcast on it is sent to newcomers, too."""
    @property
    def retain_bytes(self) -> int:
        """How many bytes of values are kept for newcomers; 0 when none are."""
    @property
    def pulls(self) -> bool:
        """Whether clients may ask for chunks by name or hash."""

def reliable_ordered(
    name: str = "",
    *,
    send_queue: int = 1024,
    receive_window: int = 1024,
    receive_bytes: int = 1048576,
    max_message_bytes: int = 65536,
    resend_time: float | None = None,
    early_copies: int = 1,
    strict: bool = False,
    weight: int = 1,
    max_messages_per_packet: int | None = None,
    max_block_size: int | None = None,
    block_fragment_size: int | None = None,
    disable_blocks: bool = False,
) -> Channel:
    """Every message exactly once, in order.

    Args:
        name (str, default ''): for people, and for ``send``; a protocol has each once.
        send_queue (int, default 1024): messages that may wait unacked; of one more, ``send`` says ``FULL``.
        receive_window (int, default 1024): messages the receiver buffers before its game takes them.
        receive_bytes (int, default 1048576): bytes the receiver buffers before its game takes them.
        max_message_bytes (int, default 65536): bytes of the largest message, 1 to 261,120.
        resend_time (float | None, default None): seconds after which a message not yet acked is sent again. None:
            once the packets that carry it are lost, or the round trip time and its variance say so.
        early_copies (int, default 1): with ``resend_time=None``, packets that carry each message from the start, a
            tick apart, while the budget has room; 1 to 8.
        strict (bool, default False): whether it comes before all channels that are not strict.
        weight (int, default 1): its share among the channels that are not strict, 1 to 1,000.
        max_messages_per_packet (int | None, default None): for ``framing="yojimbo"``, as the other side has it. None:
            256.
        max_block_size (int | None, default None): for ``framing="yojimbo"``, bytes, as the other side has it. None:
            262,144.
        block_fragment_size (int | None, default None): for ``framing="yojimbo"``, bytes, as the other side has it.
            None: 1,024.
        disable_blocks (bool, default False): for ``framing="yojimbo"``: the channel takes no blocks.
    """

def reliable_unordered(
    name: str = "",
    *,
    send_queue: int = 1024,
    receive_window: int = 1024,
    receive_bytes: int = 1048576,
    max_message_bytes: int = 65536,
    resend_time: float | None = None,
    early_copies: int = 1,
    strict: bool = False,
    weight: int = 1,
) -> Channel:
    """Every message exactly once, as soon as it comes: one that was lost holds up none behind it.

    Args:
        name (str, default ''): for people, and for ``send``; a protocol has each once.
        send_queue (int, default 1024): messages that may wait; of one more, ``send`` says ``FULL``.
        receive_window (int, default 1024): messages the receiver buffers before its game takes them.
        receive_bytes (int, default 1048576): bytes the receiver buffers before its game takes them.
        max_message_bytes (int, default 65536): bytes of the largest message, 1 to 261,120.
        resend_time (float | None, default None): seconds after which a message not yet acked is sent again. None:
            once it is lost, as far as is known.
        early_copies (int, default 1): with ``resend_time=None``, packets that carry each message from the start, 1 to
            8.
        strict (bool, default False): whether it comes before all channels that are not strict.
        weight (int, default 1): its share among the channels that are not strict, 1 to 1,000.
    """

def unreliable(
    name: str = "",
    *,
    send_queue: int = 1024,
    receive_queue: int = 1024,
    max_message_bytes: int = 65536,
    strict: bool = False,
    weight: int = 1,
    max_messages_per_packet: int | None = None,
    max_block_size: int | None = None,
    disable_blocks: bool = False,
) -> Channel:
    """Each message at most once, in any order, never sent again. What the budget of a tick can't carry is dropped.

    Args:
        name (str, default ''): for people, and for ``send``; a protocol has each once.
        send_queue (int, default 1024): messages of one tick; of one more, ``send`` says ``FULL``.
        receive_queue (int, default 1024): messages the receiver keeps for its game; the oldest make room.
        max_message_bytes (int, default 65536): bytes of the largest message, 1 to 261,120.
        strict (bool, default False): whether it comes before all channels that are not strict.
        weight (int, default 1): its share among the channels that are not strict, 1 to 1,000.
        max_messages_per_packet (int | None, default None): for ``framing="yojimbo"``, as the other side has it. None:
            256.
        max_block_size (int | None, default None): for ``framing="yojimbo"``, bytes, as the other side has it. None:
            262,144.
        disable_blocks (bool, default False): for ``framing="yojimbo"``: the channel takes no blocks.
    """

def sequenced(
    name: str = "",
    *,
    send_queue: int = 1024,
    receive_queue: int = 1024,
    max_message_bytes: int = 65536,
    strict: bool = False,
    weight: int = 1,
) -> Channel:
    """As :func:`unreliable`, and never an older message after a newer one: an older one is dropped on arrival.

    Args:
        name (str, default ''): for people, and for ``send``; a protocol has each once.
        send_queue (int, default 1024): messages of one tick; of one more, ``send`` says ``FULL``.
        receive_queue (int, default 1024): messages the receiver keeps for its game; the oldest make room.
        max_message_bytes (int, default 65536): bytes of the largest message, 1 to 261,120.
        strict (bool, default False): whether it comes before all channels that are not strict.
        weight (int, default 1): its share among the channels that are not strict, 1 to 1,000.
    """

def redundant(
    name: str = "",
    *,
    copies: int | None = 3,
    send_queue: int = 1024,
    receive_queue: int = 1024,
    max_message_bytes: int = 65536,
    strict: bool = False,
    weight: int = 1,
) -> Channel:
    """Each message in several packets, a tick apart, so that a lost packet costs no time. Each is delivered once, in
    order; how many never came is in ``inbox.missed``.

    Args:
        name (str, default ''): for people, and for ``send``; a protocol has each once.
        copies (int | None, default 3): packets that carry each message, 1 to 255; None: all until one is acked.
        send_queue (int, default 1024): messages that wait or are under way; of one more, ``send`` says ``FULL``.
        receive_queue (int, default 1024): messages the receiver keeps for its game; the oldest make room.
        max_message_bytes (int, default 65536): bytes of the largest message, 1 to 261,120.
        strict (bool, default False): whether it comes before all channels that are not strict.
        weight (int, default 1): its share among the channels that are not strict, 1 to 1,000.
    """

def latest(
    name: str = "",
    *,
    keys: int = 1024,
    retain: bool = False,
    retain_bytes: int = 1048576,
    max_message_bytes: int = 65536,
    strict: bool = False,
    weight: int = 1,
) -> Channel:
    """Of each key the newest value, until the other side has it: what is sent, or sent again after a loss, is never
    anything older. Values come in ``inbox.latest``, and never an older one after a newer one of its key.

    Args:
        name (str, default ''): for people, and for ``send``; a protocol has each once.
        keys (int, default 1024): how many there are; the ``key`` argument of ``send`` is 0 to ``keys - 1``. 1 to
            65,536.
        retain (bool, default False): newcomers get, after their :class:`Connected`, the newest value of each key that
            was broadcast to everybody; and who is added to a :class:`Room`, those of the room. What was sent to one
            client, or broadcast to some of them (``clients=``), is theirs alone. :meth:`Server.forget` ends it for a
            key. The other side needn't know.
        retain_bytes (int, default 1048576): how many bytes of values a server, and each room, keeps of the channel
            for that, 1 to 2**30; a broadcast that needs more raises :class:`MessageTooLargeError` and sends nothing.
        max_message_bytes (int, default 65536): bytes of the largest message, 1 to 261,120.
        strict (bool, default False): whether it comes before all channels that are not strict.
        weight (int, default 1): its share among the channels that are not strict, 1 to 1,000.
    """

def payload(
    name: str = "",
    *,
    send_queue: int = 1024,
    receive_queue: int = 1024,
    max_message_bytes: int = 65536,
    strict: bool = False,
    weight: int = 1,
) -> Channel:
    """Bytes of your own instead of messages, each payload at most once, never sent again: see
    :meth:`Server.send_payload`. What became of each comes in ``inbox.notifications``, in the order of the packets.
    Arguments as for :func:`unreliable`.

    Args:
        name (str, default ''): for people, and for ``send``; a protocol has each once.
        send_queue (int, default 1024): messages of one tick; of one more, ``send`` says ``FULL``.
        receive_queue (int, default 1024): messages the receiver keeps for its game; the oldest make room.
        max_message_bytes (int, default 65536): bytes of the largest message, 1 to 261,120.
        strict (bool, default False): whether it comes before all channels that are not strict.
        weight (int, default 1): its share among the channels that are not strict, 1 to 1,000.
    """

def chunks(name: str = "", *, pulls: bool = False) -> Channel:
    """Large blocks of data, beside the messages: see :meth:`Server.send_chunk`. A protocol has at most one such channel,
    and messages don't go over it.

    Args:
        name (str, default ''): for people, and for ``send``; a protocol has each once.
        pulls (bool, default False): whether clients may ask for what the server offers (:class:`Catalogue`,
            :class:`Puller`). The protocol gets three message classes and a channel for that, behind the game's own.
    """

@final
class Capture:
    """A pcapng file for the datagrams of servers and clients (their argument ``capture``), which Wireshark reads.

    Several endpoints may share one. Received datagrams are captured as they arrive, sent ones as they leave, behind the
    simulated link of ``conditions=``; IP and UDP headers are made up from the addresses. Packets stay sealed:
    :func:`tickwire.capture.open_capture` opens them, for who has the keys.

    Args:
        path (str | PathLike[str]): the file; one of that name is overwritten.
        max_bytes (int, default 1073741824): what it may grow to, 4,096 to 2**40; further datagrams are counted as
            dropped.
        keys (str | PathLike[str] | None, default None): another file, for the secrets with which the captured packets
            can be opened and replayed, readable for its owner only; None: they are not written anywhere.

    Raises:
        OSError: a file can't be made; errno says why.
        ValueError: naming the argument, its value and its bound.
    """

    def __new__(
        cls,
        path: str | PathLike[str],
        *,
        max_bytes: int = 1073741824,
        keys: str | PathLike[str] | None = None,
    ) -> Capture: ...
    @property
    def path(self) -> Path:
        """Where it goes."""
    @property
    def packets(self) -> int:
        """Datagrams captured."""
    @property
    def size(self) -> int:
        """Bytes of the file, those that are still to be written included."""
    @property
    def dropped(self) -> int:
        """Datagrams not captured, because of ``max_bytes``, because writing failed, or after :meth:`close`."""
    def write(
        self,
        nanoseconds: int,
        sender: AddressLike,
        receiver: AddressLike,
        datagram: bytes,
        *,
        outgoing: bool,
        opened: bool = False,
    ) -> None:
        """Writes a datagram as an endpoint would: for tools.

        Args:
            nanoseconds: when, since 1970.
            sender, receiver: between whom.
            outgoing: it was sent, and not received.
            opened: it is one that was decrypted.

        Raises:
            ValueError: the datagram is longer than any, or the time is out of its bounds.
        """
    def flush(self) -> None:
        """Writes what is still in memory. It is written anyway, at the latest with the first datagram a second later, and
        when an endpoint closes."""
    def close(self) -> None:
        """Writes what is still in memory and closes the file. Endpoints that still capture go on without it.

        Raises:
            OSError: something could not be written, now or before: naming the file.
        """
    def __enter__(self) -> Capture: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class PacketOpener:
    """Opens captured packets, for whoever has their keys.

    Args:
        keys: private keys of servers, 32 bytes each.
        tokens: connect tokens of clients.
    """

    def __new__(cls, *, keys: Sequence[bytes] = (), tokens: Sequence[ConnectToken] = ()) -> PacketOpener: ...
    def open(self, sender: AddressLike, receiver: AddressLike, datagram: bytes) -> bytes | None:
        """Takes the next datagram of a capture. Returns it with its body in clear and without its tag, or None: it is a
        request, which is not sealed, or there is no key for it."""

@final
class Protocol(Generic[_P]):
    """What both sides must share: an id, the message classes in order, the channels in order.

    Args:
        id (int): 64-bit netcode protocol id: a number of your game (and its version).
        messages (Sequence[type]): classes made by :func:`tickwire.message` or derived from :class:`tickwire.Message`.
        channels (Sequence[Channel], default ...): 1 to 64 channels. The ``channel`` argument of ``send`` is the index
            in this list, or the name.
        ghosts (Sequence[type], default ()): classes made by :func:`tickwire.ghost`, up to 256: what the server's world
            consists of.
        inputs (type | None, default None): the message class of clients' inputs, one a tick: :meth:`Client.send_input`.
        tick_rate (int | None, default None): ticks a second that the server makes, 1 to 1,000; needed for ``inputs`` and
            for :attr:`Client.clock`.
        framing (Literal['native', 'yojimbo'], default 'native'): how packets look: ``"native"``, or ``"yojimbo"`` to
            talk to that C++ library (``docs/yojimbo.md``).
        fold_hash (bool, default False): yojimbo only: put :attr:`hash` into :attr:`id`, so that sides that differ
            don't connect.
        max_packet_size (int | None, default None): yojimbo only: bytes, as the other side has it; None: 8,192.
        packet_fragment_size (int | None, default None): yojimbo only: bytes, as the other side has it; None: 1,024.

    Raises:
        TypeError, ValueError: naming the class or argument, its value and its bound.
    """

    def __new__(
        cls,
        id: int,
        messages: Sequence[type[_P]],
        channels: Sequence[Channel] = ...,
        *,
        ghosts: Sequence[type] = (),
        inputs: type | None = None,
        tick_rate: int | None = None,
        framing: Literal["native", "yojimbo"] = "native",
        fold_hash: bool = False,
        max_packet_size: int | None = None,
        packet_fragment_size: int | None = None,
    ) -> Protocol[_P]: ...
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @property
    def id(self) -> int:
        """The netcode protocol id: with ``fold_hash``, the one given XOR :attr:`hash`."""
    @property
    def inputs(self) -> type | None:
        """The class of clients' inputs; None where there are none."""
    @property
    def tick_rate(self) -> int | None:
        """Ticks a second that the server makes; None where both sides have no time in common."""
    @property
    def framing(self) -> Literal["native", "yojimbo"]:
        """How packets look."""
    @property
    def hash(self) -> int:
        """64 bits over messages and channels, compared by the two sides when they connect; yojimbo's framing doesn't."""
    @property
    def description(self) -> str:
        """The canonical text that the hash is made of: each message with its fields, each channel."""
    @property
    def messages(self) -> list[type[_P]]:
        """The message classes, in order."""
    @property
    def ghosts(self) -> list[type]:
        """The classes of ghosts, in order."""
    @property
    def channels(self) -> list[Channel]:
        """The channels, in order."""
    def channel_number(self, name: str, /) -> int:
        """The number of the channel of this name.

        Raises:
            ChannelError: there is no such channel.
        """
    def encode(self, message: _P, /) -> bytes:
        """One message with its type, as it rides in a packet, padded with zero bits to whole bytes. Without its block.

        Raises:
            FieldError, UnregisteredMessageError, MessageTooLargeError
        """
    def decode(self, data: bytes, /) -> _P:
        """Reads what :meth:`encode` wrote.

        Raises:
            StreamError: saying what is refused.
        """
    def measure(self, message: _P, /) -> int:
        """An upper bound of the bits that :meth:`encode` would take (7 bits for each alignment)."""

# --- connections -------------------------------------------------------------------------------------

@final
class ClientHandle:
    """One player's connection on the server. Equal and hashed by identity of the connection: a handle of a
    player who left never reaches the next player in the same slot."""

    @property
    def id(self) -> int:
        """The client id of the connect token."""
    @property
    def slot(self) -> int:
        """The client slot, 0 to max_clients - 1."""
    @property
    def generation(self) -> int:
        """How many had the slot before."""
    @property
    def number(self) -> int:
        """Slot and generation in one number, as the ``client`` column of rows has it."""
    @property
    def address(self) -> Address:
        """Where its packets come from."""
    @property
    def user_data(self) -> bytes:
        """The 256 bytes of the connect token."""
    @property
    def data(self) -> Any:
        """Whatever the game keeps of this player; None until it is set. A player's handle is the same object in every
        event and list, so what is here is there until the last of them."""
    @data.setter
    def data(self, data: Any, /) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

# `client` is a handle on servers, where games use it, and None on clients, where nobody asks: hence Any.

@final
class Connected:
    """A connection is up."""

    __match_args__ = ("client",)
    @property
    def client(self) -> ClientHandle | Any:
        """Whose it is, on a server; None on the client's own side."""

@final
class Disconnected:
    """A connection ended."""

    __match_args__ = ("client", "reason", "detail")
    @property
    def client(self) -> ClientHandle | Any:
        """Whose it is, on a server; None on the client's own side."""
    @property
    def reason(self) -> DisconnectReason:
        """Why."""
    @property
    def detail(self) -> str | None:
        """What the side that ended it gave as ``reason`` to ``close`` or ``disconnect``, on both sides: 1 to 128 bytes in
        UTF-8. None if nothing. The other side's may be any text: show it as you show chat."""

@final
class ChannelStats:
    """Counts of one channel of one connection since it began."""

    @property
    def name(self) -> str:
        """The channel's name."""
    @property
    def kind(self) -> str:
        """The channel's kind, such as ``reliable_ordered``."""
    @property
    def queued(self) -> int:
        """Messages now waiting to be sent or acked."""
    @property
    def sent(self) -> int:
        """Messages sent, each counted once."""
    @property
    def resent(self) -> int:
        """Times a message was sent again."""
    @property
    def delivered(self) -> int:
        """Messages that the other side is known to have."""
    @property
    def lost(self) -> int:
        """Messages given up as lost; none of a reliable channel."""
    @property
    def received(self) -> int:
        """Messages received, each counted once."""
    @property
    def duplicates(self) -> int:
        """Messages received again, or too old to be of use, and dropped."""
    @property
    def missed(self) -> int:
        """Messages that the other side sent and that never came; known of redundant channels."""
    @property
    def dropped(self) -> int:
        """Messages pushed out before they were sent or read: by a full queue, the budget of a tick, or a newer
        value."""
    @property
    def bytes_sent(self) -> int:
        """Bytes of messages sent, each time they were."""
    @property
    def latency_ms(self) -> float:
        """Smoothed time from send to ack, in milliseconds; 0 before the first."""

@final
class ConnectionStats:
    """How one connection is doing. Times in milliseconds, rates in kilobits per second with UDP/IP headers."""

    @property
    def rtt_ms(self) -> float:
        """Round trip time, smoothed."""
    @property
    def rtt_min_ms(self) -> float:
        """The shortest of the last 128 round trips."""
    @property
    def rtt_max_ms(self) -> float:
        """The longest of the last 128 round trips."""
    @property
    def jitter_ms(self) -> float:
        """Smoothed difference of consecutive round trips."""
    @property
    def packet_loss_percent(self) -> float:
        """Of the packets we sent."""
    @property
    def packet_loss_received_percent(self) -> float:
        """Of the packets the other side sent."""
    @property
    def sent_kbps(self) -> float:
        """Rate of what is sent."""
    @property
    def received_kbps(self) -> float:
        """Rate of what is received."""
    @property
    def acked_kbps(self) -> float:
        """Rate of what the other side is known to have."""
    @property
    def packets_sent(self) -> int:
        """Packets sent."""
    @property
    def packets_received(self) -> int:
        """Packets received."""
    @property
    def packets_acked(self) -> int:
        """Packets that the other side is known to have."""
    @property
    def packets_lost(self) -> int:
        """Packets given up as lost."""
    @property
    def budget_bytes_per_second(self) -> float:
        """What may be sent: bytes a second, with UDP/IP headers."""
    @property
    def budget_burst_bytes(self) -> float:
        """What may be sent at once after a silence, in bytes."""
    @property
    def budget_adaptive(self) -> bool:
        """Whether less is sent while the line shows that it is full."""
    @property
    def bulk_rate(self) -> float:
        """At which chunks may go out now: bytes a second, with UDP/IP headers; 0 without a channel of chunks."""
    @property
    def chunks(self) -> ChunkStats:
        """Counts of its chunks."""
    @property
    def channels(self) -> list[ChannelStats]:
        """Counts by channel, in the protocol's order."""

@final
class ChunkStats:
    """Counts of the chunks of one connection since it began, both directions. A slice is a piece of a chunk that fills
    a packet."""

    @property
    def slices_sent(self) -> int:
        """Slices sent, each counted once."""
    @property
    def slices_resent(self) -> int:
        """Slices sent again."""
    @property
    def bytes_sent(self) -> int:
        """Bytes of slices sent, each time they were."""
    @property
    def slices_received(self) -> int:
        """Slices received, each counted once."""
    @property
    def slice_duplicates(self) -> int:
        """Slices received again, and dropped."""
    @property
    def slices_unexpected(self) -> int:
        """Slices dropped because their chunk is not open: unknown, over, or not accepted yet."""
    @property
    def slices_invalid(self) -> int:
        """Slices dropped because their place or length is not the chunk's."""
    @property
    def offers_invalid(self) -> int:
        """Offers dropped because they are out of turn, or contradict themselves."""
    @property
    def offers_too_fast(self) -> int:
        """Packets dropped, and not acked, because offers and withdrawals came too fast."""
    @property
    def chunks_reused(self) -> int:
        """Chunks that were here before they were offered, and were not sent again."""
    @property
    def answers_invalid(self) -> int:
        """Answers dropped because their chunk was never offered, or has no such slices."""

@final
class ChannelSnapshot:
    """Counts of all channels of all connections, as columns; each entry is one channel of one client. What they count
    is said at :class:`ChannelStats`."""

    def __len__(self) -> int: ...
    @property
    def slot(self) -> memoryview[int]:
        """The client slot."""
    @property
    def channel(self) -> memoryview[int]:
        """The channel's index."""
    @property
    def queued(self) -> memoryview[int]:
        """As :attr:`ChannelStats.queued`."""
    @property
    def sent(self) -> memoryview[int]:
        """As :attr:`ChannelStats.sent`."""
    @property
    def resent(self) -> memoryview[int]:
        """As :attr:`ChannelStats.resent`."""
    @property
    def delivered(self) -> memoryview[int]:
        """As :attr:`ChannelStats.delivered`."""
    @property
    def lost(self) -> memoryview[int]:
        """As :attr:`ChannelStats.lost`."""
    @property
    def received(self) -> memoryview[int]:
        """As :attr:`ChannelStats.received`."""
    @property
    def dropped(self) -> memoryview[int]:
        """As :attr:`ChannelStats.dropped`."""
    @property
    def bytes_sent(self) -> memoryview[int]:
        """As :attr:`ChannelStats.bytes_sent`."""
    @property
    def latency_ms(self) -> memoryview[float]:
        """As :attr:`ChannelStats.latency_ms`."""

# --- hooks and notifications -------------------------------------------------------------------------

@final
class Candidates:
    """Messages that wait and may go in any order, as columns: what a priority hook is given. They are those of
    unreliable, latest and payload channels.

    Each column is a read-only memoryview; ``numpy.asarray`` takes it without copying. It is made when it is first read,
    so what no hook reads costs nothing. Read it while the hook runs, before anything is sent or received: later there is
    a RuntimeError. A column that is kept stays as it was.
    """

    def __len__(self) -> int: ...
    @property
    def slot(self) -> memoryview[int]:
        """The client slot it is for; 0 on a client."""
    @property
    def channel(self) -> memoryview[int]:
        """The channel's index."""
    @property
    def message_type(self) -> memoryview[int]:
        """Index into ``protocol.messages``; 0 for payloads."""
    @property
    def age(self) -> memoryview[float]:
        """Seconds since it was sent."""
    @property
    def size(self) -> memoryview[int]:
        """Bytes of its body."""
    @property
    def key(self) -> memoryview[int]:
        """The key it is the value of; 0 but on latest channels."""
    @property
    def resends(self) -> memoryview[int]:
        """How often this value went out before."""
    @property
    def tag(self) -> memoryview[int]:
        """The tag it was sent with."""

@final
class Notifications:
    """What became of messages whose sender wanted to know, as columns (read-only memoryviews), in the order of the
    packets of each connection. What found no room in a tick's packets is told as lost at once, and so is a value that a
    newer one replaced while no packet carried it. When a connection ends, all that was still open is told as lost, with
    the :class:`Disconnected` event and before anything of the slot's next client; an endpoint that the game closes tells
    nothing more.

    Example:
        >>> for slot, tag, delivered in zip(told.slot, told.tag, told.delivered):  # doctest: +SKIP
        ...     print(tag, "arrived" if delivered else "is lost")
    """

    def __len__(self) -> int: ...
    @property
    def slot(self) -> memoryview[int]:
        """The client slot it was sent to; 0 on a client."""
    @property
    def channel(self) -> memoryview[int]:
        """The channel's index."""
    @property
    def tag(self) -> memoryview[int]:
        """The tag it was sent with."""
    @property
    def delivered(self) -> memoryview[bool]:
        """True: the other side has it. False: it is lost for good."""

@final
class PacketNotifications:
    """What became of packets, as columns (read-only memoryviews), in the order in which each connection sent them."""

    def __len__(self) -> int: ...
    @property
    def slot(self) -> memoryview[int]:
        """The client slot it was sent to; 0 on a client."""
    @property
    def sequence(self) -> memoryview[int]:
        """Its 16-bit sequence number."""
    @property
    def delivered(self) -> memoryview[bool]:
        """True: the other side has it. False: it counts as lost."""

# --- chunks ------------------------------------------------------------------------------------------

@final
class Chunk:
    """Something large to send, to one client or to many: it is read and hashed (SHA-256) once, here, and held once.

    That takes 0.5 to 4 ms for each MiB, depending on the processor; above 64 KiB other threads run meanwhile.

    Args:
        data: bytes (held, not copied), another contiguous buffer (copied once), or the path of a file. The file is
            opened here and read again while it is sent; when it changes meanwhile, the transfer fails.

    Raises:
        OSError: the file can't be read; errno and filename say why.
        TypeError: ``data`` is neither a buffer nor a path.
        ValueError: the buffer is not contiguous.

    Example:
        >>> chunk = Chunk(b"the world" * 1000)
        >>> chunk.size, chunk.hash.hex()[:8]
        (9000, 'd3a4bd2a')
    """

    def __new__(cls, data: Buffer | str | PathLike[str], /) -> Chunk: ...
    @property
    def size(self) -> int:
        """Bytes of the content."""
    @property
    def hash(self) -> bytes:
        """The SHA-256 of the content, 32 bytes."""
    @property
    def path(self) -> Path | None:
        """The file; None when the content is in memory."""

@final
class Transfer:
    """A chunk on its way to the peer. Its attributes change with the ticks of its endpoint; reading them waits for
    nothing. It doesn't keep its endpoint alive, and nothing happens to the chunk when it goes."""

    @property
    def client(self) -> ClientHandle | None:
        """The client it goes to; None on a client."""
    @property
    def label(self) -> str:
        """What it was named when it was sent."""
    @property
    def size(self) -> int:
        """Bytes of the chunk."""
    @property
    def hash(self) -> bytes:
        """The SHA-256 of the content, 32 bytes."""
    @property
    def bytes_done(self) -> int:
        """Bytes that the peer is known to have."""
    @property
    def slices(self) -> int:
        """Slices of the chunk: pieces that fill a packet."""
    @property
    def slices_done(self) -> int:
        """Slices that the peer is known to have."""
    @property
    def fraction(self) -> float:
        """Which part of it, from 0 to 1."""
    @property
    def rate(self) -> float:
        """Bytes a second, over the last second or so; as it was last once it is over."""
    @property
    def time_left(self) -> float | None:
        """Seconds that the rest takes at this rate; None while the rate is 0, and when it failed."""
    @property
    def done(self) -> bool:
        """Whether the peer has all of it, and has verified it."""
    @property
    def error(self) -> str | None:
        """Why it failed, a sentence; None while it is under way and when it is done."""
    @property
    def over(self) -> bool:
        """Whether it is done or failed."""
    @property
    def paused(self) -> bool:
        """Whether it is paused here, by :meth:`pause`."""
    @property
    def paused_by_peer(self) -> bool:
        """Whether the receiver has paused it."""
    def pause(self) -> bool:
        """Sends no more of it until :meth:`resume`. What is in flight may yet arrive, and nothing that came is lost. Up to
        three chunks behind it go on meanwhile; they are handed over after it. False when it is over already."""
    def resume(self) -> bool:
        """Goes on with what the peer doesn't have; also where it isn't paused. False when it is over already."""
    def cancel(self) -> bool:
        """Ends it for good; the peer is told, and throws away what it has. To go on later use :meth:`pause`. False when it
        is over already."""

@final
class IncomingChunk:
    """A chunk that the peer is sending, as it was when it was asked for."""

    @property
    def client(self) -> ClientHandle | None:
        """The client that sends it; None on a client."""
    @property
    def label(self) -> str:
        """What the peer calls it: whatever the peer likes."""
    @property
    def size(self) -> int:
        """Bytes of the chunk."""
    @property
    def hash(self) -> bytes:
        """The SHA-256 that the content is to have, 32 bytes."""
    @property
    def bytes_done(self) -> int:
        """Bytes that are here."""
    @property
    def slices(self) -> int:
        """Slices of the chunk: pieces that fill a packet."""
    @property
    def slices_done(self) -> int:
        """Slices that are here."""
    @property
    def fraction(self) -> float:
        """Which part of it, from 0 to 1."""
    @property
    def rate(self) -> float:
        """Bytes a second, over the last second or so."""
    @property
    def time_left(self) -> float | None:
        """Seconds that the rest takes at this rate; None while the rate is 0."""
    @property
    def paused(self) -> bool:
        """Whether it is paused here, by :meth:`pause`."""
    def pause(self) -> bool:
        """Asks the sender to send no more of it until :meth:`resume`; as :meth:`Transfer.pause`."""
    def resume(self) -> bool:
        """Asks the sender for what isn't here. False when it is over already."""
    def cancel(self) -> bool:
        """Ends it for good, and throws away what came: the sender is told, and ``inbox.chunk_failures`` has it. False when
        it is over already."""

@final
class ReceivedChunk:
    """A chunk that the peer sent, whole and verified. One in memory is a read-only buffer: ``bytes(chunk)``,
    ``memoryview(chunk)``, ``numpy.frombuffer(chunk, ...)``.

    Raises:
        BufferError: it is in a file, and was asked for its buffer.
    """

    @property
    def client(self) -> ClientHandle | None:
        """The client that sent it; None on a client."""
    @property
    def label(self) -> str:
        """What the peer calls it: whatever the peer likes."""
    @property
    def size(self) -> int:
        """Bytes of the content."""
    @property
    def hash(self) -> bytes:
        """The SHA-256 of the content, 32 bytes: verified."""
    @property
    def path(self) -> Path | None:
        """The file it is in; None when it is in memory."""
    @property
    def reused(self) -> bool:
        """Whether the file was in the ``chunk_directory`` before the peer offered it, so that it was not sent again."""
    @property
    def data(self) -> memoryview:
        """The content, read-only and without copying."""
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Congestion:
    """How fast chunks may go out. Messages don't wait for it (but with :meth:`good_bad`): they have their own budget, and
    what they take is counted here."""

    @staticmethod
    def adaptive(
        *,
        min_bytes_per_second: float = 4000.0,
        max_bytes_per_second: float = 125_000_000.0,
        initial_bytes: int = 32_768,
        max_burst_bytes: int = 262_144,
    ) -> Congestion:
        """As fast as the link carries it without a queue of more than some milliseconds: the default. It backs off when
        packets take longer or get lost.

        Args:
            min_bytes_per_second (float, default 4000.0): never slower, UDP/IP headers included.
            max_bytes_per_second (float, default 125000000.0): never faster, UDP/IP headers included.
            initial_bytes (int, default 32768): what may go out before anything is known of the link.
            max_burst_bytes (int, default 262144): the most that goes out at one time, and so with one tick.

        Raises:
            ValueError: naming the argument, its value and its bound.
        """
    @staticmethod
    def fixed(bytes_per_second: float, burst_bytes: float) -> Congestion:
        """At a fixed rate: where the link is known, or something else keeps it free.

        Args:
            bytes_per_second (float): UDP/IP headers included.
            burst_bytes (float): what may go out at once after a silence, and so at most with one tick.

        Raises:
            ValueError: naming the argument, its value and its bound.
        """
    @staticmethod
    def good_bad(
        *,
        bad_rtt: float = 0.25,
        good_packets_per_second: float = 30.0,
        bad_packets_per_second: float = 10.0,
        recovery_time: float = 4.0,
        min_recovery_time: float = 1.0,
        max_recovery_time: float = 60.0,
        double_below: float = 10.0,
        halve_every: float = 10.0,
    ) -> Congestion:
        """This many packets a second while the RTT is short, fewer while it isn't. It holds for all packets of the
        connection, those of messages too. Arguments as for :class:`GoodBad`.

        Args:
            bad_rtt (float, default 0.25): seconds of RTT above which the line counts as bad.
            good_packets_per_second (float, default 30.0): sent while it is good.
            bad_packets_per_second (float, default 10.0): sent while it is bad.
            recovery_time (float, default 4.0): seconds of good RTT after which it counts as good again, at first.
            min_recovery_time (float, default 1.0): seconds, the least that becomes of that.
            max_recovery_time (float, default 60.0): seconds, the most that becomes of that.
            double_below (float, default 10.0): seconds: bad again so soon after it was good doubles the recovery
                time.
            halve_every (float, default 10.0): seconds of good line that halve it.

        Raises:
            ValueError: naming the argument, its value and its bound.
        """

# --- endpoints ---------------------------------------------------------------------------------------

# --- ghosts -------------------------------------------------------------------------------------------

@disjoint_base
class Ghost:
    """The base of the classes that :func:`tickwire.ghost` makes."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...

@final
class GhostSpawned:
    """A ghost has appeared, with its first values."""

    __match_args__: Final = ("ghost",)
    @property
    def ghost(self) -> Any:
        """The ghost."""

@final
class GhostChanged:
    """Properties of a ghost have changed."""

    __match_args__: Final = ("ghost", "names")
    @property
    def ghost(self) -> Any:
        """The ghost, with its new values."""
    @property
    def names(self) -> tuple[str, ...]:
        """The names of those properties."""

@final
class GhostOwned:
    """From now on this client owns a ghost that it had already, or no longer."""

    __match_args__: Final = ("ghost", "owned")
    @property
    def ghost(self) -> Any:
        """The ghost."""
    @property
    def owned(self) -> bool:
        """Whether it is this client's."""

@final
class GhostDespawned:
    """A ghost is gone: it was despawned, or is no longer relevant. It keeps its last values."""

    __match_args__: Final = ("ghost",)
    @property
    def ghost(self) -> Any:
        """The ghost."""

@final
class GhostArrays:
    """The ghosts of a class as columns, a row a ghost: :meth:`World.arrays` and :meth:`ClientWorld.arrays` give it.

    ``arrays["position"]`` is the world's own memory: with NumPy an array, else a memoryview. On a server it is written to,
    and the next flush finds what changed; on a client it is read. A row is one ghost's as long as that lives, so views stay
    good; one that was made before the world grew has the rows that there were. Cells of rows in which nothing lives mean
    nothing, and may be written to.
    """

    @property
    def ghost_class(self) -> type:
        """The ghost class."""
    @property
    def names(self) -> list[str]:
        """The names of those properties that have a column, in order: all but texts, bytes, lists and the like."""
    @property
    def capacity(self) -> int:
        """How many ghosts there may be at a time."""
    @property
    def living(self) -> int:
        """How many ghosts live."""
    @property
    def alive(self) -> Any:
        """A column of bool that says which rows live."""
    @property
    def rows(self) -> Any:
        """The rows that live, rising, as uint32."""
    @property
    def owners(self) -> Any:
        """Whose each row is: on a server the :attr:`ClientHandle.number` of a client, and 2^64 - 1 where it is nobody's; on a
        client whether it is its own."""
    @property
    def spawned(self) -> Any:
        """The rows of ghosts that appeared in the last tick, on a client to which the class comes as columns."""
    @property
    def changed(self) -> Any:
        """The rows of ghosts that changed in the last tick; as :attr:`spawned`."""
    @property
    def despawned(self) -> Any:
        """The rows of ghosts that went away in the last tick; as :attr:`spawned`. Their cells have the last values."""
    def ghost(self, row: int, /) -> Any:
        """The object of a row, made when it is first asked for.

        Raises:
            GhostError: no ghost lives in this row.
        """
    def __len__(self) -> int: ...
    def __getitem__(self, name: str, /) -> Any: ...
    def __setitem__(self, name: str, value: Any, /) -> None: ...
    def __delitem__(self, name: str, /) -> None: ...
    def __contains__(self, name: str, /) -> bool: ...

@final
class World:
    """A server's ghosts: what is spawned here appears at its clients. :attr:`Server.world` has it."""

    @overload
    def spawn(self, ghost: type[_T], /, *, owner: ClientHandle | None = None) -> _T: ...
    @overload
    def spawn(self, ghost: _T, /, *, owner: ClientHandle | None = None) -> _T:
        """Puts a ghost into the world: an object, which is live from then on, or one of the class with its defaults. Returns
        it.

        Args:
            ghost: an object, or a class.
            owner: the client whose it is; None, or one that is gone: nobody's.

        Raises:
            FieldError: a property's value is not in its range.
            GhostError: it lives already, or there are as many as the class's capacity.
            StaleClientError: with ``strict=True``, the owner is gone.
        """
    def spawn_rows(self, ghost: object, count: int, /, *, owner: ClientHandle | None = None) -> Any:
        """Puts many ghosts into the world that begin alike, without an object for each. Returns their rows, as uint32.

        Args:
            ghost: an object whose values they begin with, or a class for its defaults.
            count: how many.
            owner: the client whose they are.

        Raises:
            As :meth:`spawn`; when there is no room for all of them none is there.
        """
    def despawn(self, ghost: object, /) -> None:
        """Takes a ghost out of the world, at all clients too. Its object keeps its last values, and is never live again.

        Raises:
            GhostError: it is not in this world, or not any more.
        """
    def despawn_rows(self, class_: type, rows: Any, /) -> None:
        """Takes many ghosts of a class out of the world, by row.

        Raises:
            GhostError: nothing lives in one of these rows, or one is there twice; none was taken out.
        """
    def objects(self, class_: type[_T], /) -> list[_T]:
        """The ghosts of a class, as objects, by row.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def arrays(self, class_: type, /) -> GhostArrays:
        """The ghosts of a class, as columns to write to: what changed is found at the flush.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def owner(self, ghost: object, /) -> ClientHandle | None:
        """The client that owns a ghost; None where it is nobody's, or its owner is gone.

        Raises:
            GhostError: it is not in this world, or not any more.
        """
    def set_owner(self, ghost: object, owner: ClientHandle | None, /) -> None:
        """Gives a ghost to a client, or to nobody.

        Raises:
            GhostError: it is not in this world, or not any more.
            StaleClientError: with ``strict=True``, the client is gone.
        """
    def row(self, ghost: object, /) -> int:
        """The row of a ghost in the columns of its class.

        Raises:
            GhostError: it is not in this world, or not any more.
        """
    def relevancy(self, class_: type, rule: Always | Owner | Grid | Chosen, /) -> None:
        """Says which clients are sent which ghosts of a class: :class:`Always`, as where nothing is said, :class:`Owner`,
        :class:`Grid` or :class:`Chosen`.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
            TypeError, ValueError: naming what is wrong with the rule.
        """
    def look_from(
        self, client: ClientHandle, class_: type, places: Iterable[Sequence[float]] | None, /
    ) -> bool:
        """Says from where a client looks at the ghosts of a class that has a :class:`Grid`: places of two or three numbers.
        None, or no places: from where its own are. False when the client is gone.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
            StaleClientError: with ``strict=True``, the client is gone.
        """
    def show(self, client: ClientHandle, class_: type, rows: _Array, /) -> bool:
        """Says which ghosts of a class that is :class:`Chosen` a client is sent from now on: a buffer of bool, a row each;
        rows beyond are not. False when the client is gone.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
            StaleClientError: with ``strict=True``, the client is gone.
        """
    def set_weights(self, class_: type, weights: _Array, /) -> None:
        """Says by how much the priorities of a class's ghosts are multiplied where not all that is due has room: a buffer of
        float32, a row each; rows beyond have 1. It holds until it is said again.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def costs(self) -> dict[str, dict[str, int]]:
        """The bits of all that ghosts have sent, by class and then by property. What is in parentheses is no class or
        property: what records and packets need besides. The sum is the payloads' on the wire."""
    def client_bits(self, client: ClientHandle, /) -> int:
        """The bits of all that ghosts have sent to a client that is connected."""
    def __contains__(self, ghost: object, /) -> bool: ...

@final
class Clock:
    """A client's estimate of its server's time: :attr:`Client.clock` has it.

    It shows nothing (None) before the first packets of both directions came, some two round trips after the connection came up,
    then runs within a few per cent of the server's rate, and never back. See ``docs/time.md``. It raises ValueError where
    the protocol has no ``tick_rate``.
    """

    @property
    def tick(self) -> float | None:
        """The server's tick now, with its fraction; None before it is known."""
    @property
    def input_tick(self) -> int | None:
        """The tick that an input is for which is sent now; None before it is known."""
    @property
    def error(self) -> float | None:
        """Seconds by which ``tick`` may be off, but for what one direction takes longer than the other; None before it is
        known."""
    @property
    def settled(self) -> bool:
        """Whether ``tick`` is as exact as it gets."""
    @property
    def rate(self) -> float:
        """Ticks a second, as the protocol says."""
    @property
    def speed(self) -> float:
        """How quickly it runs now: 1 where nothing is made up for."""
    @property
    def drift(self) -> float:
        """The drift of the server's clock against this one, as a fraction."""
    @property
    def lead(self) -> float | None:
        """Ticks by which inputs are ahead of ``tick``, besides their delay; None before it is known."""
    @property
    def delay(self) -> int:
        """Ticks between when an input is sent and when it is predicted, as :meth:`Client.set_inputs` was given."""
    @property
    def server_tick(self) -> int | None:
        """The newest tick of the server that is known by its word; None before."""
    @property
    def acked(self) -> int | None:
        """The newest tick whose input the server said that it has; None before."""
    @property
    def restarts(self) -> int:
        """How often it began again, as the server was more than a quarter of a second elsewhere."""

@final
class InputColumns:
    """The inputs of the tick that runs, as columns, by slot: :meth:`Inputs.columns` gives them."""

    @property
    def slot(self) -> memoryview:
        """The client slot."""
    @property
    def client(self) -> memoryview:
        """The :attr:`ClientHandle.number` of the client."""
    @property
    def here(self) -> memoryview:
        """True: the tick's own input is there."""
    @property
    def present(self) -> memoryview:
        """True: there is an input to run with, its own or the one before again."""
    @property
    def seen_tick(self) -> memoryview:
        """The tick that the player saw; 0 where that wasn't said."""
    @property
    def seen_fraction(self) -> memoryview:
        """The 1/256 of a tick behind it."""
    def __len__(self) -> int: ...

@final
class InputStatus:
    """How a client's inputs come: :meth:`Inputs.status` gives it."""

    @property
    def state(self) -> Literal["here", "late", "missing"] | None:
        """What became of the input of the tick that runs; None before there were any."""
    @property
    def early(self) -> float | None:
        """Ticks by which inputs come before they are needed, smoothed; below 0 they are late. None before the first."""
    @property
    def here(self) -> int:
        """Ticks whose input was there."""
    @property
    def missing(self) -> int:
        """Ticks that ran without their input."""
    @property
    def repeated(self) -> int:
        """Of these, ticks that ran with the one before again."""
    @property
    def late(self) -> int:
        """Inputs that came after their tick had run without them."""
    @property
    def duplicates(self) -> int:
        """Copies of inputs that were there already."""
    @property
    def far_ahead(self) -> int:
        """Inputs that were refused as their ticks were more than 128 ahead."""
    @property
    def far_behind(self) -> int:
        """Inputs that were refused as their ticks were 128 or more ago."""
    @property
    def skipped(self) -> int:
        """Inputs of ticks in which the server flushed and didn't receive."""

@final
class Inputs:
    """A server's inputs for the tick that runs, from ``receive`` until the next one behind a flush: :attr:`Server.inputs` has
    them. Iterating gives ``(client, input)`` of each client that ever sent one; the input is None where it is missing and not
    repeated. It raises ValueError where the protocol has no ``inputs``. See ``docs/time.md``."""

    @property
    def tick(self) -> int:
        """The number of the tick that runs, which the next flush sends: the same on clients and on the server."""
    def __iter__(self) -> Iterator[tuple[ClientHandle, Any]]: ...
    def __len__(self) -> int: ...
    def get(self, client: ClientHandle, /) -> Any:
        """The input of a client for the tick that runs; None where there is none."""
    def seen(self, client: ClientHandle, /) -> float | None:
        """The tick that a client's player saw when it gave the input of the tick that runs, with its fraction; None where
        the client didn't say (:meth:`Client.seen`). It is the client's word: bound it."""
    def status(self, client: ClientHandle, /) -> InputStatus:
        """How a client's inputs come."""
    def set_policy(self, missing: Literal["repeat", "none"], *, ticks: int = 8) -> None:
        """Sets what a tick gets whose input isn't there.

        Args:
            missing (Literal['repeat', 'none']): the newest one before again, or None.
            ticks (int, default 8): for how many ticks in a row it is repeated, 1 to 64; None then.

        Raises:
            ValueError: naming the argument, its value and its bound.
        """
    def columns(self) -> InputColumns:
        """Who has which input in the tick that runs, as columns."""
    def rows(self) -> Any:
        """The inputs of the tick that runs as rows of their class, in the order of :meth:`columns`: with NumPy an array. Zeros
        where there is none."""

@final
class ClientWorld:
    """What a server shows a client: its ghosts, as objects and as columns. Only the server changes them.
    :attr:`Client.world` has it."""

    def objects(self, class_: type[_T], /) -> list[_T]:
        """The ghosts of a class, as objects, by row.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def arrays(self, class_: type, /) -> GhostArrays:
        """The ghosts of a class, as columns that can only be read. They are of the newest tick when :meth:`Client.receive`
        returns, and change in place with the next.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def owns(self, ghost: object, /) -> bool:
        """Whether this client owns a ghost.

        Raises:
            GhostError: it is gone, or another client's.
        """
    def row(self, ghost: object, /) -> int:
        """The row of a ghost in the columns of its class.

        Raises:
            GhostError: it is gone, or another client's.
        """
    def __contains__(self, ghost: object, /) -> bool: ...

@final
class Inbox(Generic[_M, _W, _L]):
    """What arrived since the last tick.

    A client's :class:`Connected` comes at least a tick before all else of it, and its :class:`Disconnected` at least a tick
    after: so it doesn't matter which of the lists is read first. Iterating goes through events, messages and values of latest
    channels::

        for client, what in inbox:  # on a client: for what in inbox
            match what:
                case tw.Connected(): ...
                case Chat(text): ...
                case tw.Disconnected(): ...
    """

    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @property
    def events(self) -> list[Event]:
        """Connections that came up or ended, in order."""
    @property
    def messages(self) -> list[_M]:
        """``(client, message)`` pairs on a server, messages on a client; in order within a channel. Those of latest
        channels are in :attr:`latest`."""
    @property
    def latest(self) -> list[_L]:
        """Values of latest channels: ``(client, key, message)`` on a server, ``(key, message)`` on a client."""
    @property
    def payloads(self) -> list[Any]:
        """Of payload channels: ``(client, channel, data)`` on a server, ``(channel, data)`` on a client."""
    @property
    def missed(self) -> list[Any]:
        """Gaps in redundant channels, in which this many messages never came: ``(client, channel, count)`` on a server,
        ``(channel, count)`` on a client."""
    @property
    def chunks(self) -> list[ReceivedChunk]:
        """Chunks that the peer sent: whole, verified, in the order in which they were queued."""
    @property
    def chunk_failures(self) -> list[Any]:
        """Chunks that the peer was sending and that will not come: ``(client, label, error)`` on a server,
        ``(label, error)`` on a client. The error is a sentence."""
    @property
    def ghosts(self) -> list[GhostSpawned | GhostChanged | GhostOwned | GhostDespawned]:
        """What happened to a client's ghosts: first which came and went, in order, then what changed. None of classes that
        come as columns, and none on a server."""
    @property
    def notifications(self) -> Notifications:
        """What became of messages sent with ``notify=True``, and of payloads: each exactly once while its
        connection lasts."""
    def columns(self, class_: type, /) -> Any:
        """All messages of a class that comes as columns: a row each, read-only. With NumPy a structured array, else
        :class:`Rows`.

        Before the fields of the class stand ``client`` (see :meth:`Server.client`; 0 on a client), ``received`` (when
        its packet came, in seconds since the endpoint's start), ``slot``, ``key`` (of latest channels), ``sequence``
        (of its packet), ``missed`` (how many before it never came; of redundant channels) and ``channel``. Where the
        class has a field of such a name, an underscore stands behind ours.

        Raises:
            ValueError: the class comes as objects.
        """
    @property
    def packets(self) -> PacketNotifications:
        """What became of packets, of each connection's newest 1,024 at most, each once.

        Raises:
            AttributeError: the endpoint was made without ``packet_notifications=True``.
        """
    def __iter__(self) -> Iterator[_W]:
        """Events, messages, and the messages of :attr:`latest`, one after the other: on a server each as ``(client,
        what)``, on a client alone. Of each client :class:`Connected` comes first and :class:`Disconnected` last, as
        always: a tick that has one of them has nothing else of that client."""

@final
class Tick(Generic[_M, _W, _L]):
    """Receives on entry, sends on exit (also when the body or the entry raises, so that connections stay alive)."""

    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    def __enter__(self) -> Inbox[_M, _W, _L]: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Server(Generic[_P]):
    """A dedicated server on one UDP socket.

    Args:
        address (AddressLike): where to listen; port 0 picks one (see :attr:`address`). ``[::]`` is all addresses of
            IPv6 and of IPv4; any other is its own family's.
        protocol (Protocol): what both sides share.
        key (bytes | None, default None): the 32-byte private key shared with the login backend. None: development
            mode, a well-known key; anyone can connect, so a warning is given unless the address is loopback.
        max_clients (int, default 64): client slots, 1 to 65,536.
        public_addresses (Sequence[AddressLike] | None, default None): what connect tokens call this server, when not
            its own address.
        max_token_lifetime (int | None, default None): the longest ``expires_in``, in seconds, that the login backend
            gives to tokens: one that lives longer is refused. Tokens that other libraries make don't tell the server
            when they were made; with this, one that may be from before the server's start is refused, too. (Those of
            :meth:`ConnectToken.generate` tell, and are refused when they are from before the start, whatever this
            says.)
        clock_skew (int, default 0): seconds by which the clocks of backend and server may differ: tokens are taken
            this long after they expire, and from this long before the start.
        replace_duplicates (bool, default True): a client with a new token whose ``client_id`` is connected takes that
            one's place: the old connection ends with :attr:`DisconnectReason.REPLACED` on both sides, in front of the
            new one's :class:`Connected`. False: it gets in once the old one has left or timed out.
        stalled_timeout (float | None, default 5.0): seconds, 0.1 to 3,600. A player is dropped, with
            :attr:`DisconnectReason.STALLED` on both sides, when a reliable channel to it is full and nothing of it was
            delivered for so long; and when the channel goes on refusing messages, and as many as waited at first take
            more than twelve times as long. ``counters["connections.stalled"]`` counts them. None: nobody is dropped
            for that.
        strict (bool, default False): what a player does raises too, where a call names one client:
            :class:`StaleClientError` when it is gone, :class:`ChannelFullError` when it doesn't ack, where otherwise
            the call's result says so.
        factory (MessageFactory | None, default None): makes the message objects; None: plain construction.
        priority (PriorityHook | None, default None): called in each flush in which messages wait whose order is free,
            with their :class:`Candidates`, of all clients at once. Returns a buffer of float32 scores, one each:
            within its channel, a higher score goes first. Or None: the order stays. When it raises, or its scores are
            no such buffer or have a NaN, or something is sent or received while it runs, the packets go out in the
            order they have without it, and the exception reaches the caller of :meth:`flush` or leaves the ``with``
            of :meth:`tick`.
        admission (AdmissionHook | None, default None): called in each :meth:`receive` that has newcomers, with the
            list of their :class:`ClientHandle`, before the game hears of them. Returns those it refuses, as handles
            or client ids (others than the newcomers' don't matter), or None; a mapping of them has for each the text
            that it gets as its event's ``detail``, or None. These are disconnected (what they see is
            :attr:`DisconnectReason.KICKED`), and the game sees nothing of them: no event, no message, no chunk, no
            file in ``chunk_directory``. Who connects while the hook runs waits for the next :meth:`receive`. When it
            raises, all of these newcomers are refused, and the exception reaches the caller.
        slow_hook (float, default 0.005): seconds. The tick waits for its hooks; of one that takes longer the logger
            is told, at most once a second. What hooks take is in ``counters``.
        chunk_memory (int, default 0): bytes of chunks that each client may have in memory here, those under way and
            those that ``inbox.chunks`` has not handed over yet; 0: none are taken. A larger chunk is refused.
        chunk_directory (str | PathLike[str] | None, default None): where chunks go instead of memory: each into a
            file named by its hash in hex digits. Made if it isn't there. What a connection leaves unfinished stays,
            and is not sent again when the same peer offers the same content, also to another process.
        chunk_file_limit (int | None, default None): bytes of the largest of these files; None: 1 GiB. A larger chunk
            is refused.
        chunk_directory_limit (int | None, default None): bytes of all of these files together, those under way with
            their whole size; None: eight times ``chunk_file_limit``. A chunk that doesn't fit is refused.
        congestion (Congestion | None, default None): how fast chunks may go out; None: :meth:`Congestion.adaptive`.
        driver (Literal['polled', 'thread'], default 'polled'): ``"polled"``: the socket is read and written when the
            game ticks. ``"thread"``: a native thread keeps the connections going between ticks, and while the game is
            busy: it acks, paces chunks, and sends again what was lost. What a tick sends still goes out together,
            with its flush.
        conditions (Conditions | None, default None): a bad network to put on all that is sent, for tests. Give it to
            both sides. Its rate and its luck are those of one line: all peers share them.
        seed (int | None, default None): makes those conditions repeatable; None: random.
        network (SimulatedNetwork | None, default None): a simulated network with virtual time instead of a socket.
        columns (Sequence[type] | None, default None): message classes that come as columns (:meth:`Inbox.columns`)
            and not as objects.
        capture (Capture | str | PathLike[str] | None, default None): a :class:`Capture` of all datagrams, or the path
            of a new one. When it can't go on, the logger is told, and the game is not disturbed.
        mtu (int, default 1280): bytes of the largest IP packets to send, all headers included, 1,126 to 1,280. For
            paths that lose larger ones and don't say so. Each side sets its own. With ``framing="yojimbo"`` the
            protocol's ``packet_fragment_size`` bounds them instead.
        packet_notifications (bool, default False): whether :attr:`Inbox.packets` tells what became of each packet: nothing is
            kept of them otherwise.

    Raises:
        OSError: the address can't be bound, or the directory can't be made; errno says why.
        ValueError: naming the argument, its value and its bound.
    """

    def __new__(
        cls,
        address: AddressLike,
        protocol: Protocol[_P],
        *,
        key: bytes | None = None,
        max_clients: int = 64,
        public_addresses: Sequence[AddressLike] | None = None,
        max_token_lifetime: int | None = None,
        clock_skew: int = 0,
        replace_duplicates: bool = True,
        stalled_timeout: float | None = 5.0,
        strict: bool = False,
        factory: MessageFactory | None = None,
        priority: PriorityHook | None = None,
        admission: AdmissionHook | None = None,
        slow_hook: float = 0.005,
        chunk_memory: int = 0,
        chunk_directory: str | PathLike[str] | None = None,
        chunk_file_limit: int | None = None,
        chunk_directory_limit: int | None = None,
        congestion: Congestion | None = None,
        driver: Literal["polled", "thread"] = "polled",
        conditions: Conditions | None = None,
        seed: int | None = None,
        network: SimulatedNetwork | None = None,
        columns: Sequence[type] | None = None,
        capture: Capture | str | PathLike[str] | None = None,
        mtu: int = 1280,
        packet_notifications: bool = False,
    ) -> Server[_P]: ...
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @property
    def address(self) -> Address:
        """Where it listens, with the port that was picked."""
    @property
    def protocol(self) -> Protocol[_P]:
        """What both sides share."""
    @property
    def network(self) -> SimulatedNetwork | None:
        """The simulated network it is on; None on a real one."""
    @property
    def world(self) -> World:
        """Its ghosts: what is spawned here appears at its clients."""
    @property
    def inputs(self) -> Inputs:
        """The inputs of the tick that runs."""
    @property
    def max_clients(self) -> int:
        """The number of client slots."""
    @property
    def clients(self) -> list[ClientHandle]:
        """The connected clients, by slot."""
    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called, and what it lingered for is over."""
    @property
    def counters(self) -> dict[str, int]:
        """Everything counted since the start, drops by name."""
    def tick(
        self,
    ) -> Tick[tuple[ClientHandle, _P], tuple[ClientHandle, _P | Event], tuple[ClientHandle, int, _P]]:
        """``with server.tick() as inbox:`` receives on entry and sends on exit."""
    def receive(
        self,
    ) -> Inbox[tuple[ClientHandle, _P], tuple[ClientHandle, _P | Event], tuple[ClientHandle, int, _P]]:
        """The first half of a tick: takes what arrived."""
    def flush(self) -> None:
        """The second half of a tick: sends what is queued.

        Raises:
            Exception: what the priority hook raised. The packets are out then.
        """
    def pump(self) -> None:
        """Keeps connections alive without taking messages (while loading, say): they wait, and when the
        receive window is full their sender has to wait too. Nothing reliable is lost."""
    def step(self) -> float:
        """What needn't wait for a tick, for event loops to call when the socket is readable and when it is time: reads,
        acks, keeps alive, and sends chunks and again what was lost. Messages wait for :meth:`receive` as with
        :meth:`pump`. Returns the seconds after which it is time again, if nothing arrives or is sent before.

        Raises:
            OSError: receiving doesn't work any more.
            ClosedError: the server is closed.
        """
    @property
    def has_news(self) -> bool:
        """Whether the next :meth:`receive` has something that wasn't told: events, messages, notifications, chunks,
        ends of transfers."""
    def fileno(self) -> int:
        """The system's number of the socket, for event loops to watch: when it is readable, :meth:`step`.

        Raises:
            ValueError: there is no socket to watch: a thread does, or the network is simulated.
        """
    def send(
        self,
        client: ClientHandle,
        message: _P,
        channel: int | str | None = None,
        *,
        key: int = 0,
        tag: int = 0,
        notify: bool = False,
    ) -> SendResult:
        """Queues a message for the next flush. Never raises for what a player does: returns :attr:`SendResult.SENT`, which
        is true, or ``GONE`` (it left, maybe in this very tick) or ``FULL`` (it doesn't ack or read), which are false.
        Nothing is queued then.

        Args:
            client (ClientHandle): who gets it.
            message (message): an object of one of the protocol's classes.
            channel (int | str | None, default None): by number or by name; None: the one that the message's class
                names as its own, else the first.
            key (int, default 0): on a latest channel, what the message is the value of.
            tag (int, default 0): your own name for it, 32 bits: notifications and candidates have it.
            notify (bool, default False): tell in ``inbox.notifications`` what became of it, exactly once.

        Raises:
            FieldError: a field's value is not in its range.
            UnregisteredMessageError: the class is not in the protocol.
            MessageTooLargeError: more bytes than the channel takes.
            ChannelError: there is no such channel, it has no such key, or it is one for payloads.
            ValueError: the client is another server's, or a number is out of its bounds.
            ClosedError: the server is closed.
            StaleClientError, ChannelFullError: with ``strict=True``, in place of ``GONE`` and ``FULL``.
        """
    def send_payload(self, client: ClientHandle, data: bytes, channel: int | str, *, tag: int) -> SendResult:
        """Queues bytes on a payload channel for the next flush. What became of them comes in ``inbox.notifications``
        under ``tag``, exactly once, in the order of the packets. Returns what :meth:`send` does.

        Args:
            client (ClientHandle): who gets it.
            data (bytes): the payload.
            channel (int | str): a payload channel, by number or by name.
            tag (int): your own name for it, 32 bits: notifications and candidates have it.

        Raises:
            Exception: as :meth:`send`.
        """
    def send_chunk(
        self,
        client: ClientHandle,
        data: Chunk | Buffer | str | PathLike[str],
        /,
        *,
        label: str = "",
        burst: bool = False,
        ask_first: bool = False,
    ) -> Transfer:
        """Queues a large block of data for a client. It goes beside the messages, which come first, as fast as
        ``congestion`` allows, cut into slices; slices that are lost are sent again. The client has it in
        ``inbox.chunks`` when it is whole and verified. Chunks arrive in the order in which they were queued. When the client is
        gone, or 256 chunks for it wait already, the transfer that is returned is over, and its ``error`` says why.

        Args:
            client (ClientHandle): who gets it.
            data (Chunk | Buffer | str | PathLike[str]): bytes (held, not copied), another contiguous buffer (copied
                once), or the path of a file (read as it is sent). It is read and hashed in this call: see
                :class:`Chunk`, which is what to give when several clients get the same.
            label (str, default ''): your own name for it, up to 64 bytes of UTF-8.
            burst (bool, default False): while nothing is known of the link, send all of it within a round trip
                instead of feeling the way, at the risk that a slow link drops some, and messages with it. At most 256
                KiB; for load screens, when nothing else matters.
            ask_first (bool, default False): send nothing of it before the receiver has said what it has, so that a
                file that is there in its ``chunk_directory`` costs nothing at all. Others take a round trip more.

        Raises:
            StaleClientError, ChannelFullError: with ``strict=True``, in place of such a transfer.
            ChannelError: the protocol has no channel of chunks.
            MessageTooLargeError: the chunk is 2**40 bytes or more, or above 256 KiB with ``burst``.
            ValueError: the label is too long, or the buffer is not contiguous.
            TypeError: ``data`` is neither a buffer nor a path.
            OSError: the file can't be read; errno and filename say why.
            ClosedError: the server is closed.
        """
    def incoming_chunks(self, client: ClientHandle) -> list[IncomingChunk]:
        """The chunks of a client that are under way or waiting for room, as they are now; none when it is gone."""
    def broadcast(
        self,
        message: _P,
        channel: int | str | None = None,
        *,
        clients: Iterable[ClientHandle] | None = None,
        exclude: ClientHandle | None = None,
        key: int = 0,
        tag: int = 0,
        notify: bool = False,
    ) -> list[ClientHandle]:
        """Queues one message for every connected client, or for those given; it is encoded once. Returns the clients
        whose channel was full: the others have it. (Of those given, also the ones who left in this tick; who left
        earlier is skipped.)

        Args:
            message (message): an object of one of the protocol's classes.
            channel (int | str | None, default None): by number or by name; None: the one that the message's class
                names as its own, else the first.
            clients (Iterable[ClientHandle] | None, default None): these alone; None: all who are connected.
            exclude (ClientHandle | None, default None): one who doesn't get it.
            key (int, default 0): on a latest channel, what the message is the value of.
            tag (int, default 0): your own name for it, 32 bits: notifications and candidates have it.
            notify (bool, default False): tell in ``inbox.notifications`` what became of it, exactly once.
        """
    def send_columns(
        self,
        clients: Iterable[ClientHandle] | _Array,
        class_: type,
        rows: _Array,
        channel: int | str | None = None,
        *,
        arena: _Array | None = None,
        key: int | _Array = 0,
        tag: int | _Array = 0,
        notify: bool = False,
    ) -> list[int]:
        """Queues a row for each client. Returns the rows, by index, that were not queued because their client is gone
        or its channel is full; all others are. A client that is there twice gets both rows. Nothing is queued when
        a row is wrong.

        Args:
            clients (Iterable[ClientHandle] | array): handles, or their numbers (uint64), as the ``client`` column of
                rows has them.
            class_ (type): the message class that the rows are of.
            rows (array): an array of :func:`dtype`, or a buffer of rows packed by :func:`row_format`. It is copied
                before it is checked: when another thread writes to it meanwhile, what is sent is old in parts and new
                in others.
            channel (int | str | None, default None): by number or by name; None: the one that the message's class
                names as its own, else the first.
            arena (array | None, default None): where texts, data and lists of the rows lie; their cells are offset
                (from its start) and length.
            key (int | array, default 0): a number for all rows, or a buffer of uint32 with one for each.
            tag (int | array, default 0): a number for all rows, or a buffer of uint32 with one for each.
            notify (bool, default False): tell in ``inbox.notifications`` what became of it, exactly once.

        Raises:
            FieldError: naming the first row that is wrong, its field, its value and what it must be.
            TypeError, ValueError: these are no rows of the class.
            Exception: as :meth:`send`, but for clients that are gone and channels that are full.
        """
    def send_rows(
        self,
        client: ClientHandle,
        class_: type,
        rows: _Array,
        channel: int | str | None = None,
        *,
        arena: _Array | None = None,
        key: int | _Array = 0,
        tag: int | _Array = 0,
        notify: bool = False,
    ) -> list[int]:
        """Queues many rows for one client. Returns the rows, by index, that were not queued: those for which the channel had no
        room, or all when the client is gone.

        Args:
            client (ClientHandle): who gets them.
            class_ (type): the message class that the rows are of.
            rows (array): an array of :func:`dtype`, or a buffer of rows packed by :func:`row_format`.
            channel (int | str | None, default None): by number or by name; None: the one that the message's class
                names as its own, else the first.
            arena (array | None, default None): where texts, data and lists of the rows lie; their cells are offset
                (from its start) and length.
            key (int | array, default 0): on a latest channel, what the message is the value of.
            tag (int | array, default 0): your own name for it, 32 bits: notifications and candidates have it.
            notify (bool, default False): tell in ``inbox.notifications`` what became of it, exactly once.

        Raises:
            StaleClientError: with ``strict=True``, the client is gone.
            Exception: as :meth:`send_columns`.
        """
    def broadcast_rows(
        self,
        class_: type,
        rows: _Array,
        channel: int | str | None = None,
        *,
        arena: _Array | None = None,
        clients: Iterable[ClientHandle] | None = None,
        exclude: ClientHandle | None = None,
        key: int | _Array = 0,
        tag: int | _Array = 0,
        notify: bool = False,
    ) -> list[ClientHandle]:
        """Queues rows for every connected client, or for those given; each row is encoded once. Returns clients as
        :meth:`broadcast`: their channel had no room for all of the rows.

        Args:
            class_ (type): the message class that the rows are of.
            rows (array): an array of :func:`dtype`, or a buffer of rows packed by :func:`row_format`.
            channel (int | str | None, default None): by number or by name; None: the one that the message's class
                names as its own, else the first.
            arena (array | None, default None): where texts, data and lists of the rows lie; their cells are offset
                (from its start) and length.
            clients (Iterable[ClientHandle] | None, default None): these alone; None: all who are connected.
            exclude (ClientHandle | None, default None): one who doesn't get it.
            key (int | array, default 0): on a latest channel, what the message is the value of.
            tag (int | array, default 0): your own name for it, 32 bits: notifications and candidates have it.
            notify (bool, default False): tell in ``inbox.notifications`` what became of it, exactly once.

        Raises:
            Exception: as :meth:`send_columns`.
        """
    def room(self) -> Room:
        """A room of this server's clients, with nobody in it: :class:`Room`."""
    def forget(self, channel: int | str, key: int | None = None) -> int:
        """No longer sends newcomers the newest value of a key, or of all keys, of a channel with ``retain=True``. Those who have
        it keep it. Returns how many values that were.

        Args:
            channel (int | str): by number or by name.
            key (int | None, default None): None: all keys.

        Raises:
            ChannelError: there is no such channel.
            ValueError: the key is negative or above 2**32 - 1.
        """
    def client(self, number: int, /) -> ClientHandle | None:
        """The client of a :attr:`ClientHandle.number`, as the ``client`` column of rows has it; None when it is
        gone."""
    def disconnect(self, client: ClientHandle, *, reason: str | None = None, linger: float = 0.0) -> bool:
        """Ends one connection; its player sees :attr:`DisconnectReason.KICKED`. Never blocks. False when it is over already.

        Without ``linger`` it ends at once, and what was sent and isn't known to have arrived is lost, even if it was
        flushed: reliable messages are not sent again, and the goodbye may overtake them. With it, the following ticks
        go on until the player has every reliable message and the newest values of latest channels, and all else was
        sent and its packets' fates are known; then comes the goodbye. To the game the client is gone from now on: the
        handle is stale, what the player sends is dropped, and chunks under way end as with any connection that ends. Its
        slot is free, and its :class:`Disconnected` event comes, when it is over: after ``linger`` at the latest,
        whatever the player does.

        Args:
            client (ClientHandle): whose connection ends.
            reason (str | None, default None): a text for the player, as the ``detail`` of its event: 1 to 128 bytes
                in UTF-8. Not in yojimbo's framing.
            linger (float, default 0.0): seconds, 0 to 60.

        Raises:
            StaleClientError: with ``strict=True``, the client is gone already.
            ValueError: naming the argument, its value and its bound.
        """
    def stats(self, client: ClientHandle) -> ConnectionStats:
        """How the connection of a client is doing; of one that is gone, how it was at its end."""
    def channel_stats(self) -> ChannelSnapshot:
        """Counts of all channels of all connected clients."""
    def set_budget(
        self,
        bytes_per_second: float,
        burst_bytes: float,
        client: ClientHandle | None = None,
        *,
        adaptive: bool = True,
    ) -> bool:
        """Changes how many bytes of messages may be sent to a client, UDP/IP headers included; with None to each of them,
        those to come included. By default that is 1,250,000 bytes a second in bursts of 65,536. Chunks have a rate of their
        own (``congestion``) and take nothing of it. False when that client is gone.

        Args:
            bytes_per_second (float): what may be sent, UDP/IP headers included.
            burst_bytes (float): what may be sent at once after a silence. A tick's packets are such a burst.
            client (ClientHandle | None, default None): None: each of them, those to come included.
            adaptive (bool, default True): send less while the line shows that it is full: while round trips grow by
                100 ms or more, a fifth and more of what is sent is lost, or acks stay out. A window of bytes in
                flight, after TCP's (RFC 5681) and LEDBAT's (RFC 6817); 8 KiB may always be in flight, so that a usual
                game never meets it. False: the budget alone decides.

        Raises:
            ValueError: naming the argument, its value and its bound. Nothing was changed then.
            StaleClientError: with ``strict=True``, the client is gone.
        """
    def set_congestion(self, congestion: Congestion, client: ClientHandle | None = None, /) -> bool:
        """Changes how fast chunks may go to a client, from now on; with None to each of them, those to come included. Other
        settings of the same kind keep what is known of the link; another kind begins without. False when that client is gone.

        Args:
            congestion (Congestion): how fast chunks may go out.
            client (ClientHandle | None, default None): None: each of them, those to come included.

        Raises:
            StaleClientError: with ``strict=True``, the client is gone.
        """
    def close(self, *, linger: float = 0.0, reason: str | None = None, wait: bool = True) -> None:
        """Ends all connections (players see :attr:`DisconnectReason.SERVER_CLOSED`) and closes the socket.

        Without ``linger`` that is at once, and what was sent and isn't known to have arrived is lost, as with
        :meth:`disconnect`; what is queued and wasn't flushed is lost for certain. With it, all that is queued is flushed
        (without the priority hook), each player has until then what :meth:`disconnect` says, and nobody is let in any more.
        Meanwhile the calls of the game raise :class:`ClosedError`, and players' messages are dropped.

        Closing twice is fine: a second call without ``linger`` ends it at once. An interrupt (Ctrl-C) does too.

        Args:
            linger (float, default 0.0): seconds, 0 to 60.
            reason (str | None, default None): a text for the players, as for :meth:`disconnect`.
            wait (bool, default True): whether to block until it is over, other Python threads going on meanwhile. If
                not, go on with ticks, :meth:`step` or :meth:`pump` until :attr:`closed`. On a simulated network,
                where time passes only as the game has it, nothing blocks.

        Raises:
            ValueError: naming the argument, its value and its bound.
        """
    def __enter__(self) -> Server[_P]: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Room(Generic[_P]):
    """Some of a server's clients, to send to: a match, a lobby, a team.

    A client may be in several rooms. When it leaves the server it leaves them by itself: it is in none from the
    :meth:`Server.receive` on that hands over its :class:`Disconnected`. A room costs nothing when nobody uses it, and is gone
    when the game forgets it.
    """

    def __new__(cls, server: Server[_P]) -> Room[_P]: ...
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @property
    def server(self) -> Server[_P]:
        """The server whose clients these are."""
    def add(self, client: ClientHandle, /) -> bool:
        """Takes a client in. It is sent the newest value of each key of channels with ``retain=True`` that was broadcast to
        the room. False when it is in the room already, or gone.

        Raises:
            ValueError: the client is another server's.
            ClosedError: the server is closed.
        """
    def discard(self, client: ClientHandle, /) -> bool:
        """Takes a client out, who keeps what it was sent. False when it isn't in the room.

        Raises:
            ValueError: the client is another server's.
        """
    def clear(self) -> None:
        """Takes everybody out."""
    def broadcast(
        self,
        message: _P,
        channel: int | str | None = None,
        *,
        exclude: ClientHandle | None = None,
        key: int = 0,
        tag: int = 0,
        notify: bool = False,
    ) -> list[ClientHandle]:
        """Queues one message for everybody in the room; it is encoded once. Returns the clients whose channel was full: the
        others have it.

        Args:
            message (message): an object of one of the protocol's classes.
            channel (int | str | None, default None): by number or by name; None: the one that the message's class
                names as its own, else the first.
            exclude (ClientHandle | None, default None): one who doesn't get it.
            key (int, default 0): on a latest channel, what the message is the value of.
            tag (int, default 0): your own name for it, 32 bits: notifications and candidates have it.
            notify (bool, default False): tell in ``inbox.notifications`` what became of it, exactly once.

        Raises:
            Exception: as :meth:`Server.broadcast`.
        """
    def broadcast_rows(
        self,
        class_: type,
        rows: _Array,
        channel: int | str | None = None,
        *,
        arena: _Array | None = None,
        exclude: ClientHandle | None = None,
        key: int | _Array = 0,
        tag: int | _Array = 0,
        notify: bool = False,
    ) -> list[ClientHandle]:
        """Queues rows for everybody in the room; each row is encoded once. Returns the clients whose channel had no room for
        all of them.

        Args:
            class_ (type): the message class that the rows are of.
            rows (array): an array of :func:`dtype`, or a buffer of rows packed by :func:`row_format`.
            channel (int | str | None, default None): by number or by name; None: the one that the message's class
                names as its own, else the first.
            arena (array | None, default None): where texts, data and lists of the rows lie; their cells are offset
                (from its start) and length.
            exclude (ClientHandle | None, default None): one who doesn't get it.
            key (int | array, default 0): on a latest channel, what the message is the value of.
            tag (int | array, default 0): your own name for it, 32 bits: notifications and candidates have it.
            notify (bool, default False): tell in ``inbox.notifications`` what became of it, exactly once.

        Raises:
            Exception: as :meth:`Server.send_columns`.
        """
    def forget(self, channel: int | str, key: int | None = None) -> int:
        """No longer sends newcomers of the room the newest value of a key, or of all keys, as :meth:`Server.forget`.

        Args:
            channel (int | str): by number or by name.
            key (int | None, default None): None: all keys.
        """
    def __contains__(self, client: object, /) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[ClientHandle]:
        """Those who are in it now, by slot."""

@final
class Client(Generic[_P]):
    """A client of one server, dialling with a connect token.

    Args:
        protocol (Protocol): what both sides share.
        token (ConnectToken): from the login backend.
        bind (AddressLike | None, default None): the local address; None: any free port, of each family that the
            token's servers have.
        factory (MessageFactory | None, default None): makes the message objects; None: plain construction.
        priority (PriorityHook | None, default None): called in each flush in which messages wait whose order is free,
            with their :class:`Candidates`, of all clients at once. Returns a buffer of float32 scores, one each:
            within its channel, a higher score goes first. Or None: the order stays. When it raises, or its scores are
            no such buffer or have a NaN, or something is sent or received while it runs, the packets go out in the
            order they have without it, and the exception reaches the caller of :meth:`flush` or leaves the ``with``
            of :meth:`tick`.
        slow_hook (float, default 0.005): seconds. The tick waits for its hooks; of one that takes longer the logger
            is told, at most once a second. What hooks take is in ``counters``.
        chunk_memory (int, default 67108864): bytes of chunks that the server may have in memory here, those under way
            and those that ``inbox.chunks`` has not handed over yet; 0: none are taken. A larger chunk is refused.
        chunk_directory (str | PathLike[str] | None, default None): where chunks go instead of memory: each into a
            file named by its hash in hex digits. Made if it isn't there. What a connection leaves unfinished stays,
            and is not sent again when the same peer offers the same content, also to another process.
        chunk_file_limit (int | None, default None): bytes of the largest of these files; None: 1 GiB. A larger chunk
            is refused.
        chunk_directory_limit (int | None, default None): bytes of all of these files together, those under way with
            their whole size; None: eight times ``chunk_file_limit``. A chunk that doesn't fit is refused.
        resume (Client | None, default None): a client whose connection is over: what it has of chunks that didn't get
            through is not sent again when the server sends the same content. Chunks in a ``chunk_directory`` don't
            need it.
        congestion (Congestion | None, default None): how fast chunks may go out; None: :meth:`Congestion.adaptive`.
        driver (Literal['polled', 'thread'], default 'polled'): ``"polled"``: the socket is read and written when the
            game ticks. ``"thread"``: a native thread keeps the connections going between ticks, and while the game is
            busy: it acks, paces chunks, and sends again what was lost. What a tick sends still goes out together,
            with its flush.
        conditions (Conditions | None, default None): a bad network to put on all that is sent, for tests. Give it to
            both sides. Its rate and its luck are those of one line: all peers share them.
        seed (int | None, default None): makes those conditions repeatable; None: random.
        network (SimulatedNetwork | None, default None): a simulated network with virtual time instead of a socket.
        columns (Sequence[type] | None, default None): message classes that come as columns (:meth:`Inbox.columns`)
            and not as objects.
        capture (Capture | str | PathLike[str] | None, default None): a :class:`Capture` of all datagrams, or the path
            of a new one. When it can't go on, the logger is told, and the game is not disturbed.
        mtu (int, default 1280): bytes of the largest IP packets to send, all headers included, 1,126 to 1,280. For
            paths that lose larger ones and don't say so. Each side sets its own. With ``framing="yojimbo"`` the
            protocol's ``packet_fragment_size`` bounds them instead.
        packet_notifications (bool, default False): whether :attr:`Inbox.packets` tells what became of each packet: nothing is
            kept of them otherwise.
        strict (bool, default False): what the connection does raises too: :class:`NotConnectedError` and
            :class:`ChannelFullError`, where otherwise the call's result says so.

    Raises:
        OSError: no socket or directory could be made.
        ValueError: the token is for another protocol id, or another client of this process dials with it or has been
            connected with it, or an argument is out of its bounds, or the connection of ``resume`` is up.
    """

    def __new__(
        cls,
        protocol: Protocol[_P],
        token: ConnectToken,
        *,
        bind: AddressLike | None = None,
        factory: MessageFactory | None = None,
        priority: PriorityHook | None = None,
        slow_hook: float = 0.005,
        chunk_memory: int = 67108864,
        chunk_directory: str | PathLike[str] | None = None,
        chunk_file_limit: int | None = None,
        chunk_directory_limit: int | None = None,
        resume: Client[Any] | None = None,
        congestion: Congestion | None = None,
        driver: Literal["polled", "thread"] = "polled",
        conditions: Conditions | None = None,
        seed: int | None = None,
        network: SimulatedNetwork | None = None,
        columns: Sequence[type] | None = None,
        capture: Capture | str | PathLike[str] | None = None,
        mtu: int = 1280,
        packet_notifications: bool = False,
        strict: bool = False,
    ) -> Client[_P]: ...
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @staticmethod
    def connect(
        address: AddressLike,
        protocol: Protocol[_Q],
        *,
        key: bytes | None = None,
        client_id: int | None = None,
        timeout: int | None = 10,
        user_data: bytes = b"",
        bind: AddressLike | None = None,
        factory: MessageFactory | None = None,
        priority: PriorityHook | None = None,
        slow_hook: float = 0.005,
        chunk_memory: int = 67108864,
        chunk_directory: str | PathLike[str] | None = None,
        chunk_file_limit: int | None = None,
        chunk_directory_limit: int | None = None,
        resume: Client[Any] | None = None,
        congestion: Congestion | None = None,
        driver: Literal["polled", "thread"] = "polled",
        conditions: Conditions | None = None,
        seed: int | None = None,
        network: SimulatedNetwork | None = None,
        columns: Sequence[type] | None = None,
        capture: Capture | str | PathLike[str] | None = None,
        mtu: int = 1280,
        packet_notifications: bool = False,
        strict: bool = False,
    ) -> Client[_Q]:
        """Development mode: makes its own token, with the well-known key or a shared one. Not for
        production: whoever has the key can be anyone. A warning is given unless the address is loopback.

        Args:
            address (AddressLike): where the server is, with its port.
            protocol (Protocol): what both sides share.
            key (bytes | None, default None): the server's 32-byte private key; None: development mode's, which is
                public.
            client_id (int | None, default None): None picks a random one.
            timeout (int | None, default 10): seconds of silence that end the connection, and a dial; None: no
                timeout.
            user_data (bytes, default b''): up to 256 bytes that reach the server sealed.
            bind (AddressLike | None, default None): the local address; None: any free port.
            factory (MessageFactory | None, default None): makes the message objects; None: plain construction.
            priority (PriorityHook | None, default None): called in each flush in which messages wait whose order is
                free, with their :class:`Candidates`, of all clients at once. Returns a buffer of float32 scores, one
                each: within its channel, a higher score goes first. Or None: the order stays. When it raises, or its
                scores are no such buffer or have a NaN, or something is sent or received while it runs, the packets
                go out in the order they have without it, and the exception reaches the caller of :meth:`flush` or
                leaves the ``with`` of :meth:`tick`.
            slow_hook (float, default 0.005): seconds. The tick waits for its hooks; of one that takes longer the
                logger is told, at most once a second. What hooks take is in ``counters``.
            chunk_memory (int, default 67108864): bytes of chunks that the server may have in memory here, those under
                way and those that ``inbox.chunks`` has not handed over yet; 0: none are taken. A larger chunk is
                refused.
            chunk_directory (str | PathLike[str] | None, default None): where chunks go instead of memory: each into a
                file named by its hash in hex digits. Made if it isn't there. What a connection leaves unfinished
                stays, and is not sent again when the same peer offers the same content, also to another process.
            chunk_file_limit (int | None, default None): bytes of the largest of these files; None: 1 GiB. A larger
                chunk is refused.
            chunk_directory_limit (int | None, default None): bytes of all of these files together, those under way
                with their whole size; None: eight times ``chunk_file_limit``. A chunk that doesn't fit is refused.
            resume (Client | None, default None): a client whose connection is over: what is there of chunks from the
                same server is not sent again.
            congestion (Congestion | None, default None): how fast chunks may go out; None:
                :meth:`Congestion.adaptive`.
            driver (Literal['polled', 'thread'], default 'polled'): ``"polled"``: the socket is read and written when
                the game ticks. ``"thread"``: a native thread keeps the connections going between ticks, and while the
                game is busy: it acks, paces chunks, and sends again what was lost. What a tick sends still goes out
                together, with its flush.
            conditions (Conditions | None, default None): a bad network to put on all that is sent, for tests. Give it
                to both sides. Its rate and its luck are those of one line: all peers share them.
            seed (int | None, default None): makes those conditions repeatable; None: random.
            network (SimulatedNetwork | None, default None): a simulated network with virtual time instead of a
                socket.
            columns (Sequence[type] | None, default None): message classes that come as columns
                (:meth:`Inbox.columns`) and not as objects.
            capture (Capture | str | PathLike[str] | None, default None): a :class:`Capture` of all datagrams, or the
                path of a new one. When it can't go on, the logger is told, and the game is not disturbed.
            mtu (int, default 1280): bytes of the largest IP packets to send, all headers included, 1,126 to 1,280.
                For paths that lose larger ones and don't say so. Each side sets its own. With ``framing="yojimbo"``
                the protocol's ``packet_fragment_size`` bounds them instead.
            packet_notifications (bool, default False): whether :attr:`Inbox.packets` tells what became of each packet:
                nothing is kept of them otherwise.
            strict (bool, default False): what the connection does raises too: :class:`NotConnectedError` and
                :class:`ChannelFullError`, where otherwise the call's result says so.
        """
    @property
    def state(self) -> ClientState:
        """Where the connection stands, in netcode's terms."""
    @property
    def connected(self) -> bool:
        """Whether the connection is up."""
    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called, and what it lingered for is over."""
    @property
    def disconnect_reason(self) -> DisconnectReason | None:
        """Why the connection ended, or never came up; None before."""
    @property
    def disconnect_detail(self) -> str | None:
        """As :attr:`Disconnected.detail`; None before, and if nothing was said."""
    @property
    def address(self) -> Address:
        """The local address."""
    @property
    def server_address(self) -> Address:
        """The server dialled now."""
    @property
    def slot(self) -> int | None:
        """Our client slot on the server, once connected."""
    @property
    def protocol(self) -> Protocol[_P]:
        """What both sides share."""
    @property
    def network(self) -> SimulatedNetwork | None:
        """The simulated network it is on; None on a real one."""
    @property
    def world(self) -> ClientWorld:
        """What its server shows it: ghosts."""
    @property
    def clock(self) -> Clock:
        """The server's time."""
    def send_input(self, input: object, /) -> range:
        """Sends an input, once a tick, and gives the ticks that it is for: those behind the last input's to
        :attr:`Clock.input_tick`.

        One tick, as a rule; several where the client ticks more seldom than the server; none where the tick has its input
        already, which stays, or the time isn't known yet. After a silence of more than 16 ticks those between have none. It goes
        out with the next flush, and again in some packets after that until the server has it.

        Args:
            input (message): an object of the protocol's class of inputs.

        Raises:
            FieldError: naming class, field, value and bound.
            TypeError: it is of another class.
            ValueError: the protocol has no inputs.
        """
    def seen(self, tick: float, /) -> None:
        """Notes which tick of the server the player sees from now on, as where others are drawn: inputs carry it, to 1/256.

        Args:
            tick (float): with its fraction, 0 to 4,294,967,295.

        Raises:
            ValueError: it is out of its bounds, or the protocol has no ``tick_rate``.
        """
    def tick_of(self, ghost: object, /) -> int | None:
        """The newest tick of the server at which a ghost is known to have been as it is here; None where that isn't known, or
        the ghost isn't this client's own.

        Raises:
            GhostError: it is gone, or another client's.
            ValueError: the protocol has no ``tick_rate``.
        """
    def set_inputs(
        self, *, delay: int = 0, min_lead: float = 0.0, max_lead: float = 1.0, redundancy: int = 3
    ) -> None:
        """Sets how inputs are sent, from the next one on.

        Args:
            delay (int, default 0): ticks by which an input's own tick is later, besides the lead, 0 to 64: as many less are
                predicted.
            min_lead (float, default 0.0): seconds that the client runs ahead at least, up to 10.
            max_lead (float, default 1.0): seconds that it runs ahead at most, up to 10.
            redundancy (int, default 3): packets that carry each input until it is acked, 1 to 16.

        Raises:
            ValueError: naming the argument, its value and its bound.
        """
    @property
    def counters(self) -> dict[str, int]:
        """Everything counted since the start, drops by name."""
    def tick(self) -> Tick[_P, _P | Event, tuple[int, _P]]:
        """``with client.tick() as inbox:`` receives on entry and sends on exit."""
    def receive(self) -> Inbox[_P, _P | Event, tuple[int, _P]]:
        """The first half of a tick: takes what arrived."""
    def flush(self) -> None:
        """The second half of a tick: sends what is queued.

        Raises:
            Exception: what the priority hook raised. The packets are out then, in the order they have without it.
        """
    def pump(self) -> None:
        """Keeps the connection alive without taking messages, as :meth:`Server.pump`."""
    def step(self) -> float:
        """Between ticks, for event loops: as :meth:`Server.step`."""
    @property
    def has_news(self) -> bool:
        """Whether the next :meth:`receive` has something that wasn't told: events, messages, notifications, chunks,
        ends of transfers."""
    def fileno(self) -> int:
        """The system's number of the socket, as :meth:`Server.fileno`."""
    def send(
        self,
        message: _P,
        channel: int | str | None = None,
        *,
        key: int = 0,
        tag: int = 0,
        notify: bool = False,
    ) -> SendResult:
        """As :meth:`Server.send`: :attr:`SendResult.NOT_CONNECTED`, which is false, while the connection is not up (yet, or any
        more), and ``FULL`` when the server doesn't ack or read.

        Args:
            message (message): an object of one of the protocol's classes.
            channel (int | str | None, default None): by number or by name; None: the one that the message's class
                names as its own, else the first.
            key (int, default 0): on a latest channel, what the message is the value of.
            tag (int, default 0): your own name for it, 32 bits: notifications and candidates have it.
            notify (bool, default False): tell in ``inbox.notifications`` what became of it, exactly once.

        Raises:
            NotConnectedError, ChannelFullError: with ``strict=True``, in place of that.
        """
    def send_rows(
        self,
        class_: type,
        rows: _Array,
        channel: int | str | None = None,
        *,
        arena: _Array | None = None,
        key: int | _Array = 0,
        tag: int | _Array = 0,
        notify: bool = False,
    ) -> list[int]:
        """Queues many rows. Returns the rows, by index, that were not queued: those for which the channel had no room, or all
        while the connection is not up.

        Args:
            class_ (type): the message class that the rows are of.
            rows (array): an array of :func:`dtype`, or a buffer of rows packed by :func:`row_format`.
            channel (int | str | None, default None): by number or by name; None: the one that the message's class
                names as its own, else the first.
            arena (array | None, default None): where texts, data and lists of the rows lie; their cells are offset
                (from its start) and length.
            key (int | array, default 0): on a latest channel, what the message is the value of.
            tag (int | array, default 0): your own name for it, 32 bits: notifications and candidates have it.
            notify (bool, default False): tell in ``inbox.notifications`` what became of it, exactly once.

        Raises:
            NotConnectedError: with ``strict=True``, the connection is not up (yet, or any more).
            Exception: as :meth:`Server.send_columns`.
        """
    def send_payload(self, data: bytes, channel: int | str, *, tag: int) -> SendResult:
        """As :meth:`Server.send_payload`; false as :meth:`send` is.

        Args:
            data (bytes): the payload.
            channel (int | str): a payload channel, by number or by name.
            tag (int): your own name for it, 32 bits: notifications and candidates have it.
        """
    def send_chunk(
        self,
        data: Chunk | Buffer | str | PathLike[str],
        /,
        *,
        label: str = "",
        burst: bool = False,
        ask_first: bool = False,
    ) -> Transfer:
        """As :meth:`Server.send_chunk`, also where the connection is not up. A server takes no chunks unless it is told to.

        Args:
            data (Chunk | Buffer | str | PathLike[str]): bytes, another contiguous buffer, a path, or a
                :class:`Chunk`.
            label (str, default ''): your own name for it, up to 64 bytes of UTF-8.
            burst (bool, default False): send all of it within a round trip, instead of feeling the way; at most 256
                KiB.
            ask_first (bool, default False): send nothing of it before the receiver has said what it has.

        Raises:
            NotConnectedError, ChannelFullError: with ``strict=True``, in place of a transfer that is over.
        """
    def incoming_chunks(self) -> list[IncomingChunk]:
        """As :meth:`Server.incoming_chunks`; none without a connection."""
    def set_budget(self, bytes_per_second: float, burst_bytes: float, *, adaptive: bool = True) -> None:
        """As :meth:`Server.set_budget`, also before the connection is up.

        Args:
            bytes_per_second (float): what may be sent, UDP/IP headers included.
            burst_bytes (float): what may be sent at once after a silence.
            adaptive (bool, default True): send less while the line shows that it is full.
        """
    def set_congestion(self, congestion: Congestion, /) -> None:
        """As :meth:`Server.set_congestion`, also before the connection is up.

        Args:
            congestion (Congestion): how fast chunks may go out.
        """
    def stats(self) -> ConnectionStats:
        """How the connection is doing, or was at its end; zeros before it is up."""
    def close(self, *, linger: float = 0.0, reason: str | None = None, wait: bool = True) -> None:
        """Disconnects and closes the socket.

        Without ``linger`` that is at once, and what was sent and isn't known to have arrived is lost, even if it was
        flushed. With it, what is queued is flushed, and the connection ends when the server has every reliable message
        and the newest values of latest channels, and all else was sent and its packets' fates are known, or after
        ``linger``. Otherwise as :meth:`Server.close`; the server's event has ``reason`` as its ``detail``.

        Args:
            linger (float, default 0.0): seconds, 0 to 60.
            reason (str | None, default None): a text for the other side, 1 to 128 bytes in UTF-8.
            wait (bool, default True): whether to block until it is over.
        """
    def __enter__(self) -> Client[_P]: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

# --- parts to use alone ------------------------------------------------------------------------------

@final
class Socket:
    """A UDP socket that doesn't block: sending and receiving return at once, and only :meth:`wait` waits.

    An IPv6 socket carries IPv6 only; for both families, bind two. A peer whose port is closed, an interrupted
    call, full buffers: what passes by itself is counted and raises nothing. May be used from several threads.

    Args:
        address: where to bind; port 0 picks one (see :attr:`address`).
        send_buffer, receive_buffer: bytes to ask the system for. What it granted is in the attributes.
        max_datagram: the longest datagram in bytes, 1 to 65,507. By default whatever UDP carries: a longer one
            than ``max_datagram`` is never cut, but dropped and counted as ``too_long``; sending one raises. Over
            the internet, stay below 1,200: longer datagrams may be fragmented on the way, or not arrive at all.

    Raises:
        OSError: the address can't be bound; errno says why.
        ValueError: naming the argument, its value and its bound.
        ClosedError: from every method, once the socket is closed.

    Example:
        >>> with Socket("127.0.0.1:0") as a, Socket("127.0.0.1:0") as b:
        ...     assert a.send(b.address, b"hello")
        ...     assert b.wait(1.0)
        ...     data, source = b.receive()
        >>> data, source == a.address
        (b'hello', True)
    """

    def __new__(
        cls,
        address: AddressLike,
        *,
        send_buffer: int = 4194304,
        receive_buffer: int = 4194304,
        max_datagram: int = 65507,
    ) -> Socket: ...
    @property
    def address(self) -> Address:
        """The address bound to, with the port that was picked."""
    @property
    def send_buffer(self) -> int:
        """The send buffer granted, in bytes, as the system counts (Linux counts its own overhead in: twice)."""
    @property
    def receive_buffer(self) -> int:
        """The receive buffer granted, in bytes, as the system counts."""
    @property
    def max_datagram(self) -> int:
        """The longest datagram sent or received, in bytes."""
    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def counters(self) -> dict[str, int]:
        """What went through and what passed by: ``sent``, ``sent_gso``, ``send_calls``, ``received``,
        ``received_gro``, ``receive_calls``, ``kernel_drops``, ``too_long``, ``send_buffer_full``,
        ``unreachable``, ``interrupted``, ``send_errors``, ``gso_refused``. Those of ``server.counters`` have the
        same names."""
    def send(self, to: AddressLike, data: bytes, /) -> bool:
        """Sends one datagram, which may be empty. False when it could not go now, which is counted and no worse
        than a loss on the way.

        Raises:
            OSError: it can't be sent to this destination.
            ValueError: the data is above ``max_datagram``, or the destination has no port or is of another
                family.
        """
    def send_many(self, datagrams: Iterable[tuple[AddressLike, bytes]], /) -> int:
        """Sends ``(to, data)`` pairs in order, and goes on whatever becomes of each: that is in the counters.
        Returns how many went out.

        Raises:
            ValueError: as :meth:`send`, for any of them. Nothing was sent then.
        """
    def receive(self) -> tuple[bytes, Address] | None:
        """Receives one datagram that waits: ``(data, from)``; None when there is none.

        Raises:
            OSError: receiving doesn't work any more.
        """
    def receive_many(self, bound: int = 1500, /) -> list[tuple[bytes, Address]]:
        """Receives the datagrams that wait, as :meth:`receive`, reading at most ``bound``, so that a flood can't
        hold up a tick: what is left waits in the kernel. Those dropped count too."""
    def wait(self, timeout: float, /) -> bool:
        """Waits until a datagram waits, up to ``timeout`` seconds; True when one (or an error) does. Other
        threads of Python run meanwhile, and signals are handled.

        Raises:
            ClosedError: also when another thread closes the socket meanwhile, within 0.1 s.
        """
    def fileno(self) -> int:
        """The system's number of the socket, for ``select``, ``selectors`` and ``asyncio``'s ``add_reader``."""
    def close(self) -> None:
        """Closes the socket. Closing twice is fine."""
    def __enter__(self) -> Socket: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class BitWriter:
    """Writes bits: values of any width, little-endian, lowest bit first. Layout: the serialize 1.0 standard.

    Raises:
        FieldError: a value out of its bounds, naming the method, the value and the bound. Nothing was written.
        ValueError: a bound that can't be, naming it and its value.

    Example:
        >>> writer = BitWriter()
        >>> writer.bits(5, 3)
        >>> writer.ranged(-7, -10, 10)
        >>> writer.text("hi", 15)
        >>> writer.bits_written, writer.to_bytes()
        (32, b'\\x1d\\x02hi')
    """

    def __new__(cls) -> BitWriter: ...
    def flag(self, value: object, /) -> None:
        """One bit: the truth of ``value``."""
    def bits(self, value: int, count: int, /) -> None:
        """An unsigned integer of ``count`` bits, 1 to 64."""
    def ranged(self, value: int, low: int, high: int, /) -> None:
        """An integer from ``low`` to ``high``, both included, in the bits that ``high - low`` takes."""
    def uint128(self, value: int, /) -> None:
        """An unsigned integer of 128 bits."""
    def relative(self, value: int, previous: int, /) -> None:
        """An integer above ``previous``, in fewer bits the nearer it is; at most 2**31 - 1."""
    def sequence_relative(self, value: int, previous: int, /) -> None:
        """A sequence number after ``previous``, counting across the wrap, and not equal to it."""
    def float32(self, value: float, /) -> None:
        """A float in 32 bits."""
    def float64(self, value: float, /) -> None:
        """A float in 64 bits."""
    def quantized(self, value: float, low: float, high: float, resolution: float, /) -> None:
        """A float from ``low`` to ``high`` in steps of about ``resolution``."""
    def fixed(self, value: float | Fraction | Decimal, low: int, high: int, fraction_bits: int, /) -> None:
        """A number from ``low`` to ``high`` with ``fraction_bits`` binary places."""
    def text(self, value: str, max_bytes: int, /) -> None:
        """Text of at most ``max_bytes`` bytes of UTF-8, without NUL: its length, an align, its bytes."""
    def wide_text(self, value: str, max_units: int, /) -> None:
        """Text of at most ``max_units`` UTF-16 units, without NUL: its length, then 32 bits for each."""
    def data(self, value: _Bytes, max_bytes: int, /) -> None:
        """At most ``max_bytes`` bytes: their length, an align, the bytes."""
    def bytes(self, value: _Bytes, /) -> None:
        """An align, then bytes as they are, at most 65,535. The length is not written: the reader must know it."""
    def align(self) -> None:
        """Zero bits up to the next byte boundary."""
    @property
    def bits_written(self) -> int:
        """Bits written so far."""
    def to_bytes(self) -> _Bytes:
        """What was written, the unused bits of the last byte zero. Writing may go on afterwards."""

@final
class BitMeasure:
    """Takes the calls of a :class:`BitWriter` and counts, without writing: an upper bound of the bits that the
    write takes wherever it begins, with 7 bits for each align. For packet budgets.

    Raises:
        FieldError, ValueError: as a BitWriter.

    Example:
        >>> measure = BitMeasure()
        >>> measure.bits(5, 3)
        >>> measure.text("hi", 15)
        >>> measure.max_bits
        30
    """

    def __new__(cls) -> BitMeasure: ...
    def flag(self, value: object, /) -> None:
        """One bit: the truth of ``value``."""
    def bits(self, value: int, count: int, /) -> None:
        """An unsigned integer of ``count`` bits, 1 to 64."""
    def ranged(self, value: int, low: int, high: int, /) -> None:
        """An integer from ``low`` to ``high``, both included, in the bits that ``high - low`` takes."""
    def uint128(self, value: int, /) -> None:
        """An unsigned integer of 128 bits."""
    def relative(self, value: int, previous: int, /) -> None:
        """An integer above ``previous``, in fewer bits the nearer it is; at most 2**31 - 1."""
    def sequence_relative(self, value: int, previous: int, /) -> None:
        """A sequence number after ``previous``, counting across the wrap, and not equal to it."""
    def float32(self, value: float, /) -> None:
        """A float in 32 bits."""
    def float64(self, value: float, /) -> None:
        """A float in 64 bits."""
    def quantized(self, value: float, low: float, high: float, resolution: float, /) -> None:
        """A float from ``low`` to ``high`` in steps of about ``resolution``."""
    def fixed(self, value: float | Fraction | Decimal, low: int, high: int, fraction_bits: int, /) -> None:
        """A number from ``low`` to ``high`` with ``fraction_bits`` binary places."""
    def text(self, value: str, max_bytes: int, /) -> None:
        """Text of at most ``max_bytes`` bytes of UTF-8, without NUL: its length, an align, its bytes."""
    def wide_text(self, value: str, max_units: int, /) -> None:
        """Text of at most ``max_units`` UTF-16 units, without NUL: its length, then 32 bits for each."""
    def data(self, value: _Bytes, max_bytes: int, /) -> None:
        """At most ``max_bytes`` bytes: their length, an align, the bytes."""
    def bytes(self, value: _Bytes, /) -> None:
        """An align, then bytes as they are, at most 65,535. The length is not written: the reader must know it."""
    def align(self) -> None:
        """Zero bits up to the next byte boundary."""
    @property
    def max_bits(self) -> int:
        """The bound so far, in bits."""

@final
class BitReader:
    """Reads what a :class:`BitWriter` wrote: call the methods in the order in which the writer's were called,
    with the same bounds. Layout: the serialize 1.0 standard, whose refusals are all made; the first one is final.

    Args:
        data: what was written.

    Raises:
        StreamError: the bytes are not what the standard allows there. They came from someone: drop the packet.
        ValueError: a bound that can't be, naming it and its value.

    Example:
        >>> reader = BitReader(b"\\x1d\\x02hi")
        >>> reader.bits(3), reader.ranged(-10, 10), reader.text(15), reader.bits_left
        (5, -7, 'hi', 0)
        >>> reader.finish()
        >>> reader.bits(1)
        Traceback (most recent call last):
        tickwire.errors.StreamError: BitReader: bits: the read needs 1 bits and 0 are left
    """

    def __new__(cls, data: _Bytes, /) -> BitReader: ...
    @property
    def bits_read(self) -> int:
        """Bits read so far: all of them after a refusal."""
    @property
    def bits_left(self) -> int:
        """Bits left to read: none after a refusal."""
    def flag(self) -> bool:
        """One bit."""
    def bits(self, count: int, /) -> int:
        """An unsigned integer of ``count`` bits, 1 to 64."""
    def ranged(self, low: int, high: int, /) -> int:
        """An integer from ``low`` to ``high``, both included."""
    def uint128(self) -> int:
        """An unsigned integer of 128 bits."""
    def relative(self, previous: int, /) -> int:
        """An integer above ``previous``."""
    def sequence_relative(self, previous: int, /) -> int:
        """A sequence number after ``previous``, counting across the wrap."""
    def float32(self) -> float:
        """A float in 32 bits."""
    def float64(self) -> float:
        """A float in 64 bits."""
    def quantized(self, low: float, high: float, resolution: float, /) -> float:
        """A float from ``low`` to ``high`` in steps of about ``resolution``."""
    def fixed(self, low: int, high: int, fraction_bits: int, /) -> Any:
        """A number from ``low`` to ``high`` with ``fraction_bits`` binary places: a float, or a ``Fraction`` where a float
        has too few bits (more than 53) to be exact."""
    def text(self, max_bytes: int, /) -> str:
        """Text of at most ``max_bytes`` bytes of UTF-8."""
    def wide_text(self, max_units: int, /) -> str:
        """Text of at most ``max_units`` UTF-16 units."""
    def data(self, max_bytes: int, /) -> _Bytes:
        """At most ``max_bytes`` bytes, behind their length."""
    def bytes(self, count: int, /) -> _Bytes:
        """Exactly ``count`` bytes."""
    def align(self) -> None:
        """The zero bits up to the next byte boundary."""
    def finish(self) -> None:
        """Ends a strict read: what is left must be the zero rest of the last byte.

        Raises:
            StreamError: there is more.
        """

def sequence_greater(a: int, b: int, /) -> bool:
    """True when ``a`` is more recent than ``b``: ahead by less than half of the numbers, counting across the
    wrap. (At exactly half, 32,768, the larger number counts as more recent.) reliable 1.0.

    Args:
        a, b: sequence numbers, 0 to 65,535.

    Example:
        >>> sequence_greater(1, 65_535), sequence_greater(65_535, 1)
        (True, False)
    """

def sequence_less(a: int, b: int, /) -> bool:
    """True when ``a`` is older than ``b``.

    Example:
        >>> sequence_less(65_535, 1)
        True
    """

def sequence_distance(a: int, b: int, /) -> int:
    """How far ``a`` is ahead of ``b``, counting across the wrap: -32,768 to 32,767, negative when it is behind.

    Example:
        >>> sequence_distance(1, 65_535), sequence_distance(65_535, 1)
        (2, -2)
    """

@final
class SequenceBuffer(Generic[_T]):
    """A value per sequence number, for the newest ``capacity`` numbers: every operation O(1), and what is found
    under a sequence was inserted under exactly that sequence. Algorithm: the rolling buffer of reliable 1.0.

    ``buffer[sequence]``, ``sequence in buffer``, ``del``, ``len`` and iteration (sequences, oldest first) work as
    with a dict; the last two go through the whole window. There is no ``buffer[sequence] = value``: an insert
    older than the window is refused, and :meth:`insert` says so.

    Args:
        capacity: a power of two, 1 to 32,768.

    Raises:
        ValueError: naming the argument, its value and its bound. Also when a sequence is not 0 to 65,535.
        KeyError: there is nothing under the sequence.

    Example:
        >>> buffer = SequenceBuffer(256)
        >>> buffer.insert(65_535, "a"), buffer.insert(0, "b")
        (True, True)
        >>> buffer[0], 5 in buffer, list(buffer), buffer.newest
        ('b', False, [65535, 0], 0)
        >>> buffer.insert(300, "c"), buffer.insert(0, "too old")
        (True, False)
    """

    def __new__(cls, capacity: int, /) -> SequenceBuffer[_T]: ...
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @property
    def capacity(self) -> int:
        """How many sequence numbers the window covers."""
    @property
    def newest(self) -> int | None:
        """The newest sequence of the window; None before the first insert or advance."""
    def is_stale(self, sequence: int, /) -> bool:
        """Whether a sequence is older than the window: it can't be inserted."""
    def insert(self, sequence: int, value: _T, /) -> bool:
        """Stores ``value`` under ``sequence``, replacing what was there; what falls out of the window is
        forgotten. False when the sequence is older than the window, and nothing was stored."""
    def advance(self, sequence: int, /) -> None:
        """Moves the window so that ``sequence`` is its newest, without storing anything. Nothing happens when
        the window is already there or beyond."""
    @overload
    def get(self, sequence: int, /) -> _T | None:
        """What is stored under ``sequence``, or ``default``."""
    @overload
    def get(self, sequence: int, default: _D, /) -> _T | _D: ...
    @overload
    def remove(self, sequence: int, /) -> _T | None:
        """Takes out what is stored under ``sequence`` and returns it, or ``default``."""
    @overload
    def remove(self, sequence: int, default: _D, /) -> _T | _D: ...
    def reset(self) -> None:
        """Empties the buffer; the window starts again at sequence 0."""
    def __getitem__(self, sequence: int, /) -> _T: ...
    def __delitem__(self, sequence: int, /) -> None: ...
    def __contains__(self, sequence: int, /) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[int]: ...

@final
class AckEndpoint:
    """One end of a conversation of packets: each learns which of its packets arrived; large ones go in fragments.
    Nothing is sent again, ordered or encrypted. Bytes and arithmetic: reliable 1.0.

    It has no socket: what :meth:`send` returns is yours to transmit, and what you received goes to
    :meth:`receive`. Put something below it that keeps strangers out: whoever can send to an endpoint can move its
    windows. Times are seconds of a clock of your choice that doesn't go back.

    Args:
        profile: ``"standard"`` has reliable's own settings: packets up to 16 KiB, windows of 256, an RTT that
            follows by 0.25 % a sample. ``"large"``: packets up to 256 KiB in datagrams of at most 1,200 bytes,
            windows of 64 packets sent and 1,024 received that grow to 16,384, 10 % a sample. The settings below
            are None for the profile's.
        max_packet_size: the largest payload, in bytes.
        fragment_above: payloads longer than this are sent in fragments.
        fragment_size, max_fragments: the bytes of a fragment, and how many a packet may have, up to 256. Both
            ends need the same.
        reassembly_bytes: bytes that all partial packets together may take.
        sent_window, received_window: packets remembered, a power of two up to 32,768. More than packets a
            second times RTT, or packets count as lost before their ack can come.
        rtt_smoothing: the fraction by which each sample moves the RTT, above 0 and at most 1.
        lost_after: seconds without an ack after which a packet counts as lost.
        lost_after_rtts: as many round trips instead, but never sooner than ``lost_not_before`` seconds. Until a
            round trip was measured: one second.
        in_order_only: drop packets older than the newest one accepted. They are not acked either.

    Raises:
        ValueError: naming the argument, its value and its bound.

    Example:
        >>> a, b = AckEndpoint(), AckEndpoint()
        >>> sequence, datagrams = a.send(0.0, b"hello")
        >>> [b.receive(0.05, datagram) for datagram in datagrams]
        [b'hello']
        >>> _, answers = b.send(0.05, b"")
        >>> [a.receive(0.1, answer) for answer in answers]
        [b'']
        >>> a.acked(), a.lost(0.1), a.stats.rtt_ms
        ([0], [], 100.0)
    """

    MAX_OVERHEAD: Final[int]
    """Bytes by which the longest datagram exceeds its payload: headers of packet and fragment."""
    def __new__(
        cls,
        profile: Literal["standard", "large"] = "standard",
        *,
        max_packet_size: int | None = None,
        fragment_above: int | None = None,
        fragment_size: int | None = None,
        max_fragments: int | None = None,
        reassembly_bytes: int | None = None,
        sent_window: int | None = None,
        received_window: int | None = None,
        rtt_smoothing: float | None = None,
        lost_after: float = 1.0,
        lost_after_rtts: float | None = None,
        lost_not_before: float = 0.05,
        in_order_only: bool = False,
    ) -> AckEndpoint: ...
    @property
    def next_sequence(self) -> int:
        """The number of the next packet sent."""
    @property
    def newest_received(self) -> int | None:
        """The newest packet of the other end that was accepted; None before the first."""
    def send(self, now: float, payload: bytes, /) -> tuple[int, list[bytes]]:
        """Makes a packet of a payload, which may be empty.

        Returns:
            its number, by which :meth:`acked` and :meth:`lost` name it, and the datagrams to transmit: one, or
            its fragments.

        Raises:
            MessageTooLargeError: the payload is above ``max_packet_size``. Nothing was sent.
        """
    def receive(
        self, now: float, datagram: bytes, /, *, accept: Callable[[bytes], object] | None = None
    ) -> bytes | None:
        """Takes a datagram of the other end.

        Args:
            accept: called with the payload of a packet; a false result refuses it: the packet is not acked, and
                the other end counts it as lost. None accepts all. What it raises passes through, and refuses.

        Returns:
            the payload of the packet; None when it was refused, when more of its fragments are missing, or when
            the datagram was dropped, which :attr:`counters` has by reason.
        """
    def acked(self) -> list[int]:
        """The packets that the other end has accepted, in the order their acks came; each once, since the last
        call. Ask at least every 32,768 packets: of more, the oldest are forgotten."""
    def lost(self, now: float, /) -> list[int]:
        """The packets that count as lost by ``now``, oldest first; each once, and never one that was acked in
        time. Call it once a tick: it also brings packet loss and bandwidth up to date."""
    @property
    def stats(self) -> PacketStats:
        """RTT, jitter, packet loss and bandwidth."""
    @property
    def counters(self) -> dict[str, int]:
        """Everything counted since the start, drops by name."""

@final
class PacketStats:
    """What a conversation is like. Times in milliseconds, rates in kilobits per second with UDP/IP headers; all 0
    until measured. RTT is smoothed, its minimum, maximum and mean are of the last 128 round trips (512 in the standard
    profile). Loss and bandwidth are those of the last seconds, or in the standard profile of the older half of the windows (by
    default the packets sent 128 to 256 ago), as reliable 1.0 has it. ``jitter_ms`` is smoothed as in RFC 3550."""

    @property
    def rtt_ms(self) -> float:
        """Round trip time, smoothed."""
    @property
    def rtt_min_ms(self) -> float:
        """The shortest of those round trips."""
    @property
    def rtt_max_ms(self) -> float:
        """The longest of those round trips."""
    @property
    def rtt_avg_ms(self) -> float:
        """The mean of those round trips."""
    @property
    def jitter_ms(self) -> float:
        """Smoothed difference of consecutive round trips."""
    @property
    def jitter_stddev_ms(self) -> float:
        """Standard deviation of those round trips."""
    @property
    def packet_loss_percent(self) -> float:
        """Of the packets we sent, 0 to 100."""
    @property
    def packet_loss_received_percent(self) -> float:
        """Of the packets the other end sent, 0 to 100: those whose numbers are missing."""
    @property
    def sent_kbps(self) -> float:
        """Rate of what is sent."""
    @property
    def received_kbps(self) -> float:
        """Rate of what is received."""
    @property
    def acked_kbps(self) -> float:
        """Rate of what the other side is known to have."""

@final
class VirtualConnection:
    """The plain connection of two peers of the article "Virtual Connection over UDP": no handshake, no secrets. For
    LANs, for teaching, and as the ground of protocols of your own. Made by :meth:`listen` and :meth:`connect`.

    A datagram is the protocol id and a CRC-32 of all behind it, 4 bytes each, little-endian, then a packet of
    reliable 1.0, as an :class:`AckEndpoint` makes it. The first valid packet connects a listener to its sender;
    others are ignored until the peer has been silent for ``timeout``, when the listener listens again. A packet
    goes out at least each ``keep_alive`` seconds.

    Whoever knows the protocol id can connect, and can forge a peer's packets and address: over the internet use
    :class:`Server` and :class:`Client`. Until the peer has acked a packet, a listener sends at most one datagram for
    each it got, never a larger one; its packet numbers begin at random, so that an ack proves an address.

    It has no socket: transmit what :meth:`send` and :meth:`update` return. Times are seconds of a clock of your
    choice that doesn't go back.

    Example:
        >>> to_a, to_b = Address("10.0.0.1:5"), Address("10.0.0.2:5")
        >>> a = VirtualConnection.connect(0.0, to_b, protocol_id=7)
        >>> b = VirtualConnection.listen(protocol_id=7)
        >>> sequence, datagrams = a.send(0.0, b"hello")
        >>> [b.receive(0.05, to_a, datagram) for address, datagram in datagrams]
        [b'hello']
        >>> b.events(), b.state, b.peer
        ([('connected', Address('10.0.0.1:5'))], 'connected', Address('10.0.0.1:5'))
        >>> [a.receive(0.1, to_b, datagram) for address, datagram in b.update(0.05)]
        [None]
        >>> a.acked(), a.state
        ([0], 'connected')
    """

    @staticmethod
    def listen(
        *,
        protocol_id: int,
        timeout: float = 10.0,
        keep_alive: float = 0.1,
        lost_after: float = 1.0,
        lost_after_rtts: float | None = None,
        lost_not_before: float = 0.05,
        in_order_only: bool = False,
    ) -> VirtualConnection:
        """An end that waits for a peer.

        Args:
            protocol_id: 32 bits that name your protocol. Both ends need the same.
            timeout: seconds of silence after which a peer is given up.
            keep_alive: seconds of our own silence, at most.
            lost_after, lost_after_rtts, lost_not_before, in_order_only: as for :class:`AckEndpoint`.

        Raises:
            ValueError: naming the argument, its value and its bound.
        """

    @staticmethod
    def connect(
        now: float,
        address: AddressLike,
        /,
        *,
        protocol_id: int,
        timeout: float = 10.0,
        keep_alive: float = 0.1,
        lost_after: float = 1.0,
        lost_after_rtts: float | None = None,
        lost_not_before: float = 0.05,
        in_order_only: bool = False,
    ) -> VirtualConnection:
        """An end that connects to the listener at ``address``, from its first :meth:`send` or :meth:`update` on.
        When the peer never answers or falls silent, the connection has ended.

        Args:
            protocol_id and the rest: as for :meth:`listen`.
        """
    @property
    def state(self) -> Literal["listening", "connecting", "connected", "ended"]:
        """Where the connection stands: ``"listening"``, ``"connecting"`` (the peer hasn't answered yet),
        ``"connected"``, ``"ended"`` (only of one that was made by :meth:`connect`)."""
    @property
    def ready(self) -> bool:
        """Whether :meth:`send` takes payloads of any size: there is a peer, and a listener's has acked a packet."""
    @property
    def peer(self) -> Address | None:
        """The other end; None when there is none."""
    def send(self, now: float, payload: bytes, /) -> tuple[int, list[tuple[Address, bytes]]]:
        """Makes a packet of a payload. An empty one only keeps the connection alive.

        Returns:
            its number, by which :meth:`acked` and :meth:`lost` name it, and what to transmit: ``(address,
            datagram)`` pairs, as :meth:`Socket.send_many` takes them.

        Raises:
            NotConnectedError: there is no peer; or it is not :attr:`ready`, and this would be more than an
                answer to what it sent.
            MessageTooLargeError: the payload is above 256 KiB.
        """
    def receive(self, now: float, source: AddressLike, datagram: bytes, /) -> bytes | None:
        """Takes a datagram that came from ``source``.

        Returns:
            the payload it brought; None when it only keeps the connection alive, when more fragments are missing,
            or when it was dropped, which :attr:`counters` has by reason.
        """
    def update(self, now: float, /) -> list[tuple[Address, bytes]]:
        """Once a tick: keeps the connection alive, notices a silent peer, and brings losses and statistics up to
        date. Returns what to transmit, as :meth:`send` does."""
    def events(self) -> list[tuple[Literal["connected", "timed_out", "no_answer"], Address]]:
        """What happened since the last call: ``("connected", peer)``, ``("timed_out", peer)``, and ``("no_answer",
        peer)`` of one that connects."""
    def acked(self) -> list[int]:
        """The packets that the peer has received, each once, since the last call."""
    def lost(self) -> list[int]:
        """The packets that counted as lost in an :meth:`update`, oldest first, each once, since the last call."""
    @property
    def stats(self) -> PacketStats:
        """RTT, jitter, packet loss and bandwidth."""
    @property
    def counters(self) -> dict[str, int]:
        """Everything counted since the start, drops by name; those of packets begin with ``packets.``."""

@final
class ChunkSender:
    """The sending end of large blocks of data: a chunk is cut into slices of 1,024 bytes, which go out over and over, at a
    set rate, until the :class:`ChunkReceiver` at the other end has acked them all. One chunk is in flight at a time; more
    wait in a queue and arrive in order. The article "Sending Large Blocks of Data".

    It has no socket: what :meth:`update` returns is yours to transmit, and the acks that come back go to :meth:`receive`.
    Put something below it that keeps strangers out: whoever can send to it can ack what never arrived. Times are seconds
    of a clock of your choice that doesn't go back.

    Args:
        max_slices: the most slices of a chunk, up to 8,192. Both ends need the same.
        bytes_per_second: the rate, headers included. The article's are 32,000, 64,000 and 125,000.
        accumulator_bytes: the most that unused bytes add up to, and so what is sent at once after a pause. None: a tenth
            of a second's worth and one packet.
        overhead: bytes that the layers below add to each packet, counted in the rate.
        resend_delay: seconds between two sends of the same slice, at least, when :meth:`update` is given no RTT.
        max_queued: chunks that may wait behind the one in flight.
        initial_burst_bytes: the largest chunk that may be sent with ``burst=True``.
        initial_burst_wait: seconds of silence after an initial burst.

    Raises:
        ValueError: naming the argument, its value and its bound.

    Example:
        >>> sender, receiver = ChunkSender(), ChunkReceiver()
        >>> sender.send(b"the world" * 200)
        0
        >>> for packet in sender.update(0.0):
        ...     receiver.receive(0.05, packet)
        >>> len(receiver.read())
        1800
        >>> sender.receive(0.1, receiver.update(0.05))
        0
    """

    def __new__(
        cls,
        *,
        max_slices: int = 256,
        bytes_per_second: float = 32_000.0,
        accumulator_bytes: int | None = None,
        overhead: int = 28,
        resend_delay: float = 0.1,
        max_queued: int = 64,
        initial_burst_bytes: int = 262_144,
        initial_burst_wait: float = 0.1,
    ) -> ChunkSender: ...
    def send(self, chunk: bytes, /, *, burst: bool = False) -> int:
        """Queues a chunk.

        Args:
            burst: send all its slices at once when its turn has come, whatever the rate, and after a wait what is missing
                at the usual rate. For load screens, when nothing else that goes out is urgent. The socket buffers at both
                ends should hold twice the chunk.

        Returns:
            its number: 0 for the first, then one more each.

        Raises:
            MessageTooLargeError: the chunk is above ``max_slices`` slices, or too large for a burst.
            ChannelFullError: too many chunks wait.
            ValueError: the chunk is empty.
        """
    def cancel(self, number: int, /) -> bool:
        """Gives up a chunk. One in flight gives way to the next as soon as the receiver is known to have begun with it, and
        may still arrive if it has all of it by then.

        Returns:
            False when it is across, was cancelled before, or never was.
        """
    def update(self, now: float, /, *, rtt: float | None = None) -> list[bytes]:
        """Once a tick: the packets to transmit now.

        Args:
            rtt: seconds from a slice to its ack, the receiver's wait included. When given, a slice goes out again after
                1.25 times as long instead of ``resend_delay``.
        """
    def receive(self, now: float, datagram: bytes, /) -> int | None:
        """Takes an ack packet of the receiver. What is none, or claims what can't be, is dropped and counted.

        Returns:
            the number of the chunk that is now known to be across; None otherwise.
        """

    @staticmethod
    def is_ack(datagram: bytes, /) -> bool:
        """Whether a datagram is for a sender, when a socket brings packets of chunks both ways."""
    def set_bytes_per_second(self, bytes_per_second: float, /) -> None:
        """Changes the rate, from now on."""
    @property
    def bytes_per_second(self) -> float:
        """The rate."""
    @property
    def in_flight(self) -> int | None:
        """The number of the chunk in flight; None when there is none, or a cancelled one."""
    @property
    def progress(self) -> ChunkProgress | None:
        """How much of the chunk in flight is acked."""
    @property
    def queued(self) -> int:
        """Chunks that wait behind the one in flight."""
    @property
    def idle(self) -> bool:
        """Whether there is nothing to send."""
    @property
    def counters(self) -> dict[str, int]:
        """Everything counted since the start, drops by name."""

@final
class ChunkProgress:
    """How far a chunk is: acked, at the sender; received, at the receiver."""

    @property
    def bytes(self) -> int:
        """Bytes that are across."""
    @property
    def total_bytes(self) -> int:
        """Bytes of the chunk; at the receiver the most they can be, until the last slice has come."""
    @property
    def slices(self) -> int:
        """Slices that are across."""
    @property
    def total_slices(self) -> int:
        """Slices of the chunk."""
    @property
    def bytes_per_second(self) -> float:
        """The mean rate since the chunk's first slice, in bytes of the chunk; 0 at first."""
    @property
    def time_left(self) -> float | None:
        """Seconds that the rest takes at this rate; None while the rate is 0."""

@final
class ChunkReceiver:
    """The receiving end of large blocks of data; see :class:`ChunkSender`.

    It has no socket: the slices that arrive go to :meth:`receive`, and the acks that :meth:`update` returns are yours to
    transmit. Acks are few, and never more bytes than the slices they answer, so that nobody can use a receiver to amplify
    an attack. It holds one chunk at most, in memory that grows as slices come; the next chunk comes once this one was
    :meth:`read`.

    Args:
        max_slices: the most slices of a chunk, up to 8,192. Both ends need the same.
        ack_interval: seconds between two acks, at least.
        overhead: bytes that the layers below add to each packet, counted in slices and in acks.

    Raises:
        ValueError: naming the argument, its value and its bound.

    Example:
        >>> sender, receiver = ChunkSender(), ChunkReceiver()
        >>> number = sender.send(bytes(3000))
        >>> slices = sender.update(0.0)
        >>> receiver.receive(0.05, slices[0])
        >>> receiver.progress
        <ChunkProgress 1024 of 3072 bytes, 1 of 3 slices, 0 bytes/s>
        >>> for packet in slices[1:]:
        ...     receiver.receive(0.05, packet)
        >>> receiver.read() == bytes(3000)
        True
    """

    def __new__(
        cls, *, max_slices: int = 256, ack_interval: float = 0.05, overhead: int = 28
    ) -> ChunkReceiver: ...
    def receive(self, now: float, datagram: bytes, /) -> None:
        """Takes a slice packet of the sender. What is none, or can't be now, is dropped and counted."""
    def update(self, now: float, /) -> bytes | None:
        """Once a tick: the ack packet to transmit now; None when none is due."""
    def read(self) -> bytes | None:
        """The chunk that has come whole, once; None when there is none."""

    @staticmethod
    def is_slice(datagram: bytes, /) -> bool:
        """Whether a datagram is for a receiver, when a socket brings packets of chunks both ways."""
    @property
    def ready(self) -> bool:
        """Whether a chunk waits to be read."""
    @property
    def progress(self) -> ChunkProgress | None:
        """How much of the chunk that is coming, or waits to be read, has come; None when nothing has."""
    @property
    def counters(self) -> dict[str, int]:
        """Everything counted since the start, drops by name."""

@final
class GoodBad:
    """The simple binary congestion avoidance of the article "Reliability, Ordering and Congestion Avoidance over UDP": how
    many packets a second to send, by the RTT alone.

    Conditions are bad while the RTT is above ``bad_rtt``. Bad conditions lead from good mode to bad mode at once. In bad
    mode, conditions that were good for :attr:`recovery_time` without a break lead back. Good mode that lasted less than
    ``double_below`` doubles the recovery time; each ``halve_every`` of good mode halves it. It begins in good mode, counted
    from the first :meth:`update`. Times are seconds of a clock of your choice that doesn't go back.

    Args:
        bad_rtt: seconds.
        good_packets_per_second, bad_packets_per_second: what the modes allow.
        recovery_time: seconds, to begin with; the article names no number.
        min_recovery_time, max_recovery_time: its bounds.
        double_below, halve_every: seconds of good mode.

    Raises:
        ValueError: naming the argument, its value and its bound.

    Example:
        >>> mode = GoodBad(recovery_time=4.0)
        >>> mode.update(0.0, 0.1), mode.packets_per_second
        ('good', 30.0)
        >>> mode.update(1.0, 0.3), mode.packets_per_second, mode.recovery_time
        ('bad', 10.0, 8.0)
        >>> mode.update(2.0, 0.1), mode.update(10.0, 0.1)
        ('bad', 'good')
    """

    def __new__(
        cls,
        *,
        bad_rtt: float = 0.25,
        good_packets_per_second: float = 30.0,
        bad_packets_per_second: float = 10.0,
        recovery_time: float = 4.0,
        min_recovery_time: float = 1.0,
        max_recovery_time: float = 60.0,
        double_below: float = 10.0,
        halve_every: float = 10.0,
    ) -> GoodBad: ...
    def update(self, now: float, rtt: float, /) -> Literal["good", "bad"]:
        """Takes the RTT as it is now, in seconds. Call it each tick.

        Returns:
            the mode that follows.
        """
    @property
    def mode(self) -> Literal["good", "bad"]:
        """``"good"`` or ``"bad"``."""
    @property
    def packets_per_second(self) -> float:
        """What the mode allows."""
    @property
    def recovery_time(self) -> float:
        """Seconds of good conditions that lead from bad mode to good mode, now or next time."""

@final
class Link(Generic[_T]):
    """One direction of a bad link: what goes in comes out late, twice, out of order, or not at all. The same
    seed and the same calls give the same history.

    ``len(link)`` is how many are under way.

    Args:
        conditions: what the link does to each item; None: a perfect link.
        seed: 0 to 2**64 - 1.
        capacity: items under way at most; more are dropped and counted as ``overflowed``.

    Raises:
        ValueError: naming the argument, its value and its bound.

    Example:
        >>> link = Link(Conditions(latency=0.05), seed=1)
        >>> link.send(0.0, b"hello")
        >>> link.poll(0.04), link.next_delivery, link.poll(0.05)
        (None, 0.05, b'hello')
    """

    def __new__(
        cls, conditions: Conditions | None = None, *, seed: int = 0, capacity: int = 65536
    ) -> Link[_T]: ...
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    def send(self, now: float, item: _T, /, *, size: int | None = None) -> None:
        """Puts an item in.

        Args:
            now: seconds, of a clock that doesn't go back.
            item: any object, usually a datagram. A second copy is the same object.
            size: bytes that it takes on a link with a rate, beside the overhead; None: the length of ``bytes``
                and ``bytearray``, 0 for anything else.

        Raises:
            ValueError: naming the argument, its value and its bound.
        """
    def poll(self, now: float, /) -> _T | None:
        """The next item that has come out by ``now``, in order of arrival; None when there is none."""
    @property
    def next_delivery(self) -> float | None:
        """When to :meth:`poll` next, in seconds: an item comes out then, or leaves the queue of a link with a
        rate, and poll may give None. None when nothing is under way."""
    @property
    def queued_bytes(self) -> int:
        """Bytes in the queue of a link with a rate, overhead and the item in transmission included."""
    def set_conditions(self, conditions: Conditions, /) -> None:
        """Changes the conditions, from the latest time that the link was told on.

        Items in the queue leave under the new conditions, those beyond keep their fate. What is scheduled stays.
        """
    def schedule(self, at: float, conditions: Conditions, /) -> None:
        """As :meth:`set_conditions`, when ``at`` comes, in seconds; of changes at one time the last holds."""
    @property
    def counters(self) -> dict[str, int]:
        """What became of the items: ``sent``, ``too_large`` (above ``max_datagram``), ``queue_dropped`` (found the
        queue full), ``lost`` (each by itself), ``lost_in_bursts``, ``lost_in_outages``, ``duplicated``, ``reordered`` (held back),
        ``overflowed`` (too many were under way), ``delivered``."""
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

# --- bad networks on purpose -------------------------------------------------------------------------

@final
class Bursts:
    """Losses in bursts: a link is good or bad, and after each packet may turn from one to the other (the chain
    of Gilbert and Elliott). :meth:`mean` makes it of what one would measure.

    Args:
        to_bad: probability that a good link turns bad after a packet, 0 to 1.
        to_good: probability that a bad link turns good after a packet.
        good_loss: probability of loss while the link is good.
        bad_loss: probability of loss while the link is bad.

    Raises:
        ValueError: naming the argument, its value and its bound.
    """

    def __new__(
        cls, to_bad: float, to_good: float, *, good_loss: float = 0.0, bad_loss: float = 1.0
    ) -> Bursts: ...
    @staticmethod
    def mean(loss: float, length: float) -> Bursts:
        """Bursts that lose all their packets, ``length`` of them on average, and the fraction ``loss`` of all.

        Raises:
            ValueError: the length is below 1, or the loss above ``length / (length + 1)``: between two bursts
                at least one packet passes.
        """
    @property
    def to_bad(self) -> float:
        """Probability that a good link turns bad after a packet."""
    @property
    def to_good(self) -> float:
        """Probability that a bad link turns good after a packet."""
    @property
    def good_loss(self) -> float:
        """Probability of loss while the link is good."""
    @property
    def bad_loss(self) -> float:
        """Probability of loss while the link is bad."""

@final
class Outages:
    """Outages that come and go at random: while there is one, all that is transmitted is lost. Their durations
    and the times between them are exponential.

    Args:
        duration: seconds that an outage takes on average, up to an hour.
        fraction: of all time, 0 to 1.

    Raises:
        ValueError: naming the argument, its value and its bound.
    """

    def __new__(cls, duration: float, fraction: float) -> Outages: ...
    @property
    def duration(self) -> float:
        """Seconds that an outage takes on average."""
    @property
    def fraction(self) -> float:
        """The fraction of all time, 0 to 1."""

@final
class Conditions:
    """What a simulated link does to each packet, per direction.

    A packet first waits its turn at the bottleneck, then it may be lost, then doubled, and last it takes its
    time to arrive. A lost packet has had its turn too; a second copy needs none.

    Args:
        latency (float, default 0.0): seconds, one way, after the queue; at most 10.
        jitter (float, default 0.0): seconds, at most the latency; each packet is late by latency +- jitter,
            uniformly, so packets may overtake.
        random_walk (float, default 0.0): seconds; jitter in runs: a delay within +- random_walk that is similar for
            neighbouring packets, none of which overtakes for it. With the jitter at most the latency.
        random_walk_time (float, default 1.0): seconds for which that delay stays similar (its correlation time).
        loss (float, default 0.0): probability that a packet is lost by itself, 0 to 1.
        bursts (Bursts | None, default None): losses in bursts.
        outages (Outages | None, default None): times at which nothing passes.
        duplicate (float, default 0.0): probability that a packet arrives twice.
        reorder (float, default 0.0): probability that a packet is held back by a further ``reorder_delay`` seconds.
        reorder_delay (float, default 0.05): seconds by which packets are held back.
        rate (int | None, default None): bytes per second that pass, up to 12,500,000,000 (100 Gbit/s); None: any
            number at once.
        queue (int, default 65536): bytes that may wait for the rate, the packet in transmission included; what would
            be more is dropped and counted as ``queue_dropped``.
        overhead (int, default 28): bytes that each packet takes of rate and queue beside its own: 28 for IPv4 and
            UDP.
        max_datagram (int | None, default None): bytes of the largest datagram that passes, without headers, 1 to
            65,535; larger ones vanish and are counted as ``too_large``, as on a path with a small MTU that doesn't
            say so. None: any.

    Raises:
        ValueError: naming the argument, its value and its bound.
    """

    def __new__(
        cls,
        *,
        latency: float = 0.0,
        jitter: float = 0.0,
        random_walk: float = 0.0,
        random_walk_time: float = 1.0,
        loss: float = 0.0,
        bursts: Bursts | None = None,
        outages: Outages | None = None,
        duplicate: float = 0.0,
        reorder: float = 0.0,
        reorder_delay: float = 0.05,
        rate: int | None = None,
        queue: int = 65536,
        overhead: int = 28,
        max_datagram: int | None = None,
    ) -> Conditions: ...
    @staticmethod
    def preset(name: str, /) -> tuple[Conditions, Conditions]:
        """Plausible conditions of a kind of network, as a player has them: ``(up, down)``.

        ================= ====================================================================================
        ``3g``            phone (HSPA): 1 Mbit/s up, 3 down, 75 ms one way in runs, deep queues, handovers
        ``4g``            phone (LTE): 8 Mbit/s up, 25 down, 25 ms one way, few losses, short handovers
        ``wifi-bad``      crowded 2.4 GHz: 5 Mbit/s up, 10 down, 20 ms one way, 3 % lost in bursts, silences
        ``transatlantic`` fibre to another continent: 50 Mbit/s up, 100 down, 45 ms one way, 0.05 % lost
        ``satellite``     geostationary: 3 Mbit/s up, 25 down, 300 ms one way, losses in bursts
        ================= ====================================================================================

        Raises:
            ValueError: there is no preset of that name; it says which there are.
        """
    def replace(self, **changes: Any) -> Conditions:
        """The same conditions but for what is named here, as the constructor takes it."""
    @property
    def latency(self) -> float:
        """Seconds, one way, after the queue."""
    @property
    def jitter(self) -> float:
        """Seconds that each packet is early or late at most."""
    @property
    def random_walk(self) -> float:
        """The same of a delay that changes slowly."""
    @property
    def random_walk_time(self) -> float:
        """Seconds for which that delay stays similar."""
    @property
    def loss(self) -> float:
        """Probability that a packet is lost by itself."""
    @property
    def bursts(self) -> Bursts | None:
        """Losses in bursts."""
    @property
    def outages(self) -> Outages | None:
        """Times at which nothing passes."""
    @property
    def duplicate(self) -> float:
        """Probability that a packet arrives twice."""
    @property
    def reorder(self) -> float:
        """Probability that a packet is held back."""
    @property
    def reorder_delay(self) -> float:
        """Seconds for which it is held back."""
    @property
    def rate(self) -> int | None:
        """Bytes per second that pass; None: any number."""
    @property
    def queue(self) -> int:
        """Bytes that may wait for the rate."""
    @property
    def overhead(self) -> int:
        """Bytes that each packet takes beside its own."""
    @property
    def max_datagram(self) -> int | None:
        """Bytes of the largest datagram that passes; None: any."""

@final
class SimulatedNetwork:
    """A network in one process with a virtual clock: the same seed and the same calls, the same bytes.

    Servers and clients made with ``network=`` live on it; time passes only in :meth:`advance`. Each direction of
    each pair of hosts is a link of its own, with its own queue and its own luck.

    Args:
        seed (int, default 0): 0 to 2**64 - 1; what it does follows from it and from the calls.
        conditions (Conditions | None, default None): of all links; None: perfect ones.
    """

    def __new__(cls, *, seed: int = 0, conditions: Conditions | None = None) -> SimulatedNetwork: ...
    @staticmethod
    def _replaying(drawn: bytes, epoch: int) -> SimulatedNetwork: ...
    def _advance_to(self, nanoseconds: int) -> None: ...
    def _deliver(self, sender: AddressLike, receiver: AddressLike, datagram: bytes) -> None: ...
    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
    @property
    def unix(self) -> int:
        """Virtual seconds since 1970, by which connect tokens are judged: whole ones, from 1,000,000,000 on. So tokens for this
        network are made with ``ConnectToken.generate(now=network.unix, ...)``."""
    def advance(self, seconds: float, /) -> None:
        """Lets time pass, and delivers what arrives meanwhile."""
    def set_conditions(
        self,
        conditions: Conditions,
        *,
        sender: AddressLike | None = None,
        receiver: AddressLike | None = None,
    ) -> None:
        """From now on: for all links, or for those from ``sender``, to ``receiver``, or both. The most precise
        choice holds, ``sender`` before ``receiver``; for all links means that single ones are forgotten.

        Packets that wait for a link's rate leave under the new conditions, those beyond keep their fate.

        Args:
            conditions (Conditions): from now on.
            sender (AddressLike | None, default None): of what it sends alone; None: of all.
            receiver (AddressLike | None, default None): of what it receives alone; None: of all.
        """
    def schedule(
        self,
        at: float,
        conditions: Conditions,
        *,
        sender: AddressLike | None = None,
        receiver: AddressLike | None = None,
    ) -> None:
        """As :meth:`set_conditions`, when virtual time comes to ``at`` seconds since the start.

        Args:
            at (float): virtual seconds since the start.
            conditions (Conditions): from then on.
            sender (AddressLike | None, default None): of what it sends alone; None: of all.
            receiver (AddressLike | None, default None): of what it receives alone; None: of all.
        """
    def partition(self, *parts: Iterable[AddressLike]) -> None:
        """From now on hosts of different parts don't reach each other; those in no part reach all. What is under
        way arrives. The last partition holds; :meth:`heal` ends it.

        Args:
            parts: the addresses of the hosts of each.
        """
    def heal(self) -> None:
        """Ends the partition."""
    def move_host(self, address: AddressLike, to: AddressLike, /) -> Address:
        """Moves a host to another address, as when a player goes from Wi-Fi to a phone network: its endpoint sends
        from there and receives there. What is under way to the old address finds nobody.

        Args:
            address: where the host is now.
            to: port 0 picks one.

        Returns:
            where it is. (The ``address`` of its endpoint stays what it was bound to.)

        Raises:
            ValueError: there is no host at that address.
            OSError: ``to`` is in use.
        """
    def unplug(self, address: AddressLike, /) -> None:
        """Takes a host off the network, as when its machine loses power: its endpoint sends and receives nothing
        any more, and another one can have the address.

        Raises:
            ValueError: there is no host at that address.
        """
    def add_nat(
        self,
        public: str,
        inside: Sequence[str],
        *,
        kind: Literal["full-cone", "restricted", "port-restricted", "symmetric"] = "port-restricted",
        lifetime: float = 120.0,
    ) -> None:
        """Puts a box that translates addresses (NAT) between some hosts and all others, as home routers and carriers
        do. Those inside reach each other as before; all others see them as ports of the box, and reach them there if
        it lets them in. It knows how the ports it gives away belong to hosts as long as something goes out.

        Args:
            public: the IP address of the box.
            inside: the IP addresses of the hosts behind it, those to come too.
            kind: whom it lets in. ``"full-cone"``: anyone; ``"restricted"``: hosts to which the one inside has sent;
                ``"port-restricted"``: addresses to which it has sent; ``"symmetric"``: as that, with another port
                for each address it sends to.
            lifetime: seconds without anything going out after which a port is given back, up to 3,600.

        Raises:
            ValueError: naming the argument, its value and its bound, or the address that is in use.
        """
    def restart_nat(self, public: str, /) -> None:
        """A box forgets which ports belong to whom; the next ones are others. To those outside, the hosts behind it
        have other addresses then.

        Raises:
            ValueError: there is no box at that address.
        """
    @property
    def transcript(self) -> str:
        """SHA-256, in hex digits, over every datagram that was sent until now, with its time and addresses: two runs
        with the same transcript sent the same bytes at the same times."""
    @property
    def counters(self) -> dict[str, int]:
        """What became of all packets: the counts of :attr:`Link.counters` for all links together,
        ``unknown_destination`` (nobody was there), ``mailbox_full`` (nobody received), ``partitioned``, and of boxes
        that translate addresses ``nat_exhausted`` (no port was free), ``nat_unmapped`` (the port is nobody's) and
        ``nat_filtered`` (the sender isn't let in)."""

@final
class Proxy:
    """A UDP proxy that puts bad conditions between any clients and a server: datagrams pass as they are, whatever
    they carry. It works on a native thread, also while Python is busy, until it is closed.

    Each address that datagrams come from is a client. It gets a socket of its own towards the server, and a link
    in each direction with luck of its own.

    Args:
        listen (AddressLike): where clients send to; port 0 picks one (see :attr:`address`).
        to (AddressLike): the server.
        conditions (Conditions | None, default None): what the links do, in both directions; None: nothing.
        up (Conditions | None, default None): what the links to the server and to the clients do, where it is not
            ``conditions``.
        down (Conditions | None, default None): what the links to the server and to the clients do, where it is not
            ``conditions``.
        seed (int, default 0): 0 to 2**64 - 1. With the order in which clients come it gives their luck.
        max_clients (int, default 1024): clients at a time, 1 to 65,536; datagrams of more are dropped.
        idle_timeout (float, default 60.0): seconds of silence after which a client is forgotten, 1 to 86,400.
        max_bytes (int, default 67108864): memory of the datagrams under way, 131,072 to 2**40; more are dropped.

    Raises:
        OSError: the address can't be bound; errno says why.
        ValueError: naming the argument, its value and its bound; or a proxy to itself.

    Example:
        >>> with Socket("127.0.0.1:0") as server, Socket("127.0.0.1:0") as client:
        ...     with Proxy("127.0.0.1:0", to=server.address, conditions=Conditions(latency=0.05)) as proxy:
        ...         assert client.send(proxy.address, b"hello")
        ...         assert server.wait(10.0)
        ...         data, source = server.receive()
        >>> data, proxy.counters["up.forwarded"]
        (b'hello', 1)
    """

    def __new__(
        cls,
        listen: AddressLike,
        *,
        to: AddressLike,
        conditions: Conditions | None = None,
        up: Conditions | None = None,
        down: Conditions | None = None,
        seed: int = 0,
        max_clients: int = 1024,
        idle_timeout: float = 60.0,
        max_bytes: int = 67108864,
    ) -> Proxy: ...
    @property
    def address(self) -> Address:
        """Where clients send to, with the port that was picked."""
    @property
    def to(self) -> Address:
        """The server."""
    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def counters(self) -> dict[str, int]:
        """All that was counted, by name; once closed, the last counts. See docs/proxy.md for the names."""
    def set_conditions(
        self,
        conditions: Conditions | None = None,
        *,
        up: Conditions | None = None,
        down: Conditions | None = None,
    ) -> None:
        """Changes the conditions of all clients: of both directions, or of those named. What is not given stays.
        Datagrams that have left the queue of their rate keep their fate.

        Args:
            conditions (Conditions | None, default None): of both directions.
            up (Conditions | None, default None): of what goes to the server.
            down (Conditions | None, default None): of what comes from it.

        Raises:
            ClosedError: the proxy is closed.
        """
    def close(self) -> None:
        """Ends the proxy; what is under way is lost. Closing twice is fine."""
    def __enter__(self) -> Proxy: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
