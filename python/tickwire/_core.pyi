"""The native core of Tickwire. Import these names from :mod:`tickwire` and its public modules."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from os import PathLike
from pathlib import Path
from types import GenericAlias, TracebackType
from typing import (
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    final,
    overload,
)
from typing import Protocol as Protocol_

from typing_extensions import Buffer, disjoint_base
from typing_extensions import TypeVar as DefaultTypeVar

from tickwire._calls import Call, ClientCall, Request, ServerCall
from tickwire._connection import (
    AddressLike,
    ClientState,
    DisconnectReason,
    Event,
    LeaveReason,
    PeerEvent,
    SendResult,
)
from tickwire._ghost import Always, Chosen, Declared, Grid, Hook, Owner
from tickwire._hooks import AdmissionHook, PriorityHook
from tickwire._message import MessageFactory
from tickwire._past import Judgements, Past
from tickwire._reconnect import Reconnect
from tickwire._rows import Row
from tickwire._states import Load, Save
from tickwire.yojimbo import Profile

__all__ = [
    "Access",
    "AckEndpoint",
    "Address",
    "Advance",
    "Batch",
    "BitMeasure",
    "BitReader",
    "BitWriter",
    "Bottleneck",
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
    "Code",
    "Conditions",
    "Congestion",
    "ConnectToken",
    "Connected",
    "ConnectionStats",
    "Debugging",
    "Desync",
    "Disconnected",
    "FieldType",
    "Fragments",
    "GameEnded",
    "Ghost",
    "GhostArrays",
    "GhostChanged",
    "GhostDespawned",
    "GhostLinked",
    "GhostOwned",
    "GhostSpawned",
    "GoodBad",
    "HostChanged",
    "Inbox",
    "IncomingChunk",
    "InputColumns",
    "InputStatus",
    "Inputs",
    "Latency",
    "Link",
    "LockstepCore",
    "MasterChanged",
    "Notifications",
    "Outages",
    "PacketOpener",
    "PacketStats",
    "Peer",
    "Player",
    "PlayerJoined",
    "PlayerLeft",
    "PlayerOut",
    "PlayerPath",
    "Properties",
    "Property",
    "Protocol",
    "Proxy",
    "Random",
    "RandomWalk",
    "ReceivedChunk",
    "Relay",
    "Rendezvous",
    "RendezvousServer",
    "Rollback",
    "Room",
    "Rows",
    "Schema",
    "Server",
    "SimulatedNetwork",
    "Socket",
    "Spectator",
    "SpectatorLost",
    "Started",
    "StateArrays",
    "Stream",
    "SyncTest",
    "Tick",
    "Timing",
    "Transfer",
    "Transfers",
    "Tuning",
    "VirtualConnection",
    "World",
    "WorldView",
    "__version__",
    "angle",
    "arena",
    "bits",
    "boolean",
    "chunks",
    "common_of",
    "composed",
    "converted_of",
    "data",
    "dtype",
    "fixed",
    "flags",
    "float32",
    "float64",
    "generate_key",
    "latest",
    "member_of",
    "nested_of",
    "network_id",
    "pack",
    "payload",
    "pressed",
    "quantized",
    "quaternion",
    "ranged",
    "raw",
    "read_recording",
    "recording_settings",
    "recording_snapshot",
    "recording_turn",
    "redundant",
    "reliable_ordered",
    "reliable_unordered",
    "replayed_crc",
    "row_format",
    "sequenced",
    "signed_quaternion",
    "state_sum",
    "text",
    "transform",
    "uint128",
    "unit_vector",
    "unpack",
    "unreliable",
    "vec2",
    "vec3",
    "wide_text",
]
__version__: Final[str]

# A field's label, its Python type, its default, and whether the default is a function that makes one.
_About: TypeAlias = tuple[str, type, Any, bool]
_M = TypeVar("_M", covariant=True)
_I = TypeVar("_I")
# The requests to a rollback game. If the library saves the game's states, these are only frames.
_Do = DefaultTypeVar("_Do", covariant=True, default=Advance[Any])
_A = ParamSpec("_A")
_R = TypeVar("_R")
# The items of an iteration over an inbox.
_W = DefaultTypeVar("_W", covariant=True, default=Any)
# Values of latest channels.
_L = DefaultTypeVar("_L", covariant=True, default=Any)
# Events.
_V = DefaultTypeVar("_V", covariant=True, default=Event)
# The messages of a protocol.
_P = DefaultTypeVar("_P", default=Any)
_Q = TypeVar("_Q")
_T = TypeVar("_T")
_Number = TypeVar("_Number", float, Fraction)
_D = TypeVar("_D")

# For classes with a method named bytes.
_Bytes: TypeAlias = bytes

# --- addresses, keys, tokens -------------------------------------------------------------------------

@final
class Address:
    """An IPv4 or IPv6 address with a port: ``a.b.c.d:port`` or ``[v6]:port``. Addresses are immutable, hashable and
    ordered. To resolve a host name, use :func:`tickwire.resolve`.

    Raises:
        ValueError: the argument isn't an IPv4 or IPv6 address with a port.

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
        """Whether this is an IPv6 address."""
    @property
    def is_loopback(self) -> bool:
        """Whether this is a loopback address, such as 127.0.0.1."""
    def with_port(self, port: int) -> Address:
        """Returns an address with the same host and another port, 0 to 65,535."""
    def __eq__(self, other: object, /) -> bool: ...
    def __lt__(self, other: Address, /) -> bool: ...
    def __le__(self, other: Address, /) -> bool: ...
    def __gt__(self, other: Address, /) -> bool: ...
    def __ge__(self, other: Address, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __str__(self) -> str: ...

def generate_key() -> bytes:
    """Returns 32 random bytes from the operating system: a private key for the login backend and the servers."""

@final
class ConnectToken:
    """A netcode 1.02 connect token. A login backend gives it to a client over HTTPS, and the client connects with
    it.

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
            client_id (int): the account's number, 0 to 2**64 - 1, unique among connected players.
            servers (Sequence[AddressLike]): 1 to 32 addresses that the client tries in order.
            internal_servers (Sequence[AddressLike] | None, default None): if a NAT forwards packets to the servers, the
                servers' own addresses behind the NAT, in the same order as ``servers``. None: the same as ``servers``.
            expires_in (int | None, default 30): seconds for which the token can start a connection; None: forever.
            timeout (int | None, default 10): seconds of silence that end the connection; None: no timeout on the
                client. A server ends a connection after 300 seconds of silence at the latest.
            user_data (bytes, default b''): up to 256 bytes for the server, encrypted.
            now (int | None, default None): the time of creation, in seconds since 1970; None: the system's clock.
                On a simulated network, pass :attr:`SimulatedNetwork.unix`.

        Raises:
            ValueError: an argument is out of its bounds.
        """

    @staticmethod
    def from_bytes(data: bytes, /) -> ConnectToken:
        """Reads a token from its 2,048 bytes.

        Raises:
            ValueError: the bytes aren't a token; the error says why.
        """

    def to_bytes(self) -> _Bytes:
        """The token's 2,048 bytes, for :meth:`from_bytes`. They contain the client's keys, so send them encrypted."""
    @property
    def protocol_id(self) -> int:
        """The protocol's 64-bit id."""
    @property
    def servers(self) -> list[Address]:
        """The servers' addresses, in the order in which the client tries them."""
    @property
    def created(self) -> int:
        """The time of creation, in seconds since 1970."""
    @property
    def expires(self) -> int:
        """The time at which the token expires, in seconds since 1970."""
    @property
    def timeout(self) -> int | None:
        """Seconds of silence that end the connection; None: no timeout."""

# --- messages ----------------------------------------------------------------------------------------

@final
class FieldType:
    """The encoding of one field of a message, for use in ``Annotated``. Functions such as :func:`bits` and
    :func:`ranged` return objects of this class.
    """

    @property
    def default(self) -> Any:
        """The field's default value if the message class doesn't declare one."""
    @property
    def is_mutable(self) -> bool:
        """Whether the field's values are mutable. If so, each message object needs its own copy of the default."""
    @property
    def min_bits(self) -> int:
        """The smallest number of bits that the field takes."""
    @property
    def max_bits(self) -> int:
        """The largest number of bits that the field takes, including alignment."""
    @property
    def python_type(self) -> type:
        """The type of the field's values."""

def bits(count: int, /) -> FieldType:
    """An unsigned integer of ``count`` bits; ``count`` is 1 to 64."""

def ranged(low: int, high: int, /) -> FieldType:
    """An integer from ``low`` to ``high``, both included, in the fewest bits for this range."""

def uint128() -> FieldType:
    """An unsigned integer of 128 bits."""

def boolean() -> FieldType:
    """True or False, in one bit."""

def pressed() -> FieldType:
    """A key press, in one bit: see :data:`press`."""

def float32() -> FieldType:
    """A float in 32 bits."""

def float64() -> FieldType:
    """A float in 64 bits."""

def quantized(low: float, high: float, resolution: float, /) -> FieldType:
    """A float from ``low`` to ``high`` in steps of about ``resolution``."""

def fixed(low: int, high: int, fraction_bits: int, /) -> FieldType:
    """A number from ``low`` to ``high`` with ``fraction_bits`` bits after the binary point."""

def text(max_bytes: int, /) -> FieldType:
    """Text of at most ``max_bytes`` bytes of UTF-8, without NUL."""

def wide_text(max_units: int, /) -> FieldType:
    """Text of at most ``max_units`` UTF-16 units, without NUL. Each unit takes 32 bits, as in the C++ library
    ``serialize``.
    """

def data(max_bytes: int, /) -> FieldType:
    """A bytes value of at most ``max_bytes`` bytes."""

def raw(count: int, /) -> FieldType:
    """A bytes value of exactly ``count`` bytes, sent without a length. By default, all bytes are 0."""

def angle(low: float, high: float, resolution: float, /) -> FieldType:
    """An angle from ``low`` to ``high``, in steps of at most ``resolution``. ``high`` is the same angle as ``low``."""

def vec2(low: float, high: float, resolution: float, /) -> FieldType:
    """Two numbers from ``low`` to ``high``, each in steps of at most ``resolution``."""

def vec3(low: float, high: float, resolution: float, /) -> FieldType:
    """Three numbers from ``low`` to ``high``, each in steps of at most ``resolution``."""

def unit_vector(bits: int = 12, /) -> FieldType:
    """A direction in space: a vector of length 1, sent as two components in ``bits`` bits each."""

def quaternion(bits: int = 9, /) -> FieldType:
    """A rotation (x, y, z, w), sent as its three smallest components in ``bits`` bits each."""

def signed_quaternion() -> FieldType:
    """A rotation (x, y, z, w), sent as x, y and z in 16 bits each and the sign of w."""

def transform(low: float, high: float, resolution: float, /, rotation_bits: int = 9) -> FieldType:
    """A translation from ``low`` to ``high`` along each axis, a rotation and a scale."""

def flags(*names: str) -> FieldType:
    """An int with a named boolean in each bit. The first name is the lowest bit."""

def network_id(highest: int = 65_535, /) -> FieldType:
    """The network id of an object, up to ``highest``; 0 means no object."""

def common_of(item: FieldType, values: Sequence[Any], about: _About, /) -> FieldType:
    """A field with one common value, which takes one bit, or two common values, which take two bits each. All other
    values take one bit more than with the field type ``item`` alone.
    """

def composed(form: str, parts: Sequence[FieldType], count: int, about: _About, /) -> FieldType:
    """A field made of parts, each with its own field type."""

def member_of(
    form: str, class_: type, members: Sequence[tuple[str, int, Any]], about: _About, /
) -> FieldType:
    """One of several numbered objects, such as enum members; or a set of flags."""

def nested_of(classes: Sequence[tuple[type, Schema]], union: bool, about: _About, /) -> FieldType:
    """A nested message of one class, or of one of several classes."""

def converted_of(
    class_: type,
    item: FieldType,
    to_wire: Callable[[Any], Any],
    from_wire: Callable[[Any], Any],
    about: _About,
    /,
) -> FieldType:
    """An object of one of the game's own types, sent as a value of the field type ``item``."""

@final
class Schema:
    """The compiled form of a message class that declares fields.

    Raises:
        TypeError, ValueError: a field is declared wrongly; the error names it.
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
        """The smallest number of bits that a message takes."""
    @property
    def max_bits(self) -> int:
        """The largest number of bits that a message takes, including alignment."""
    def check(self, message: object, /) -> None:
        """Checks that an object's attributes are valid values of the fields; otherwise raises FieldError."""

@final
class Properties:
    """The compiled form of a class made by :func:`tickwire.ghost`.

    Raises:
        TypeError, ValueError: a property is declared wrongly; the error names it.
    """

    def __new__(
        cls,
        schema: Schema,
        conditions: Sequence[str],
        capacity: int,
        rules: Sequence[tuple[int, str, int, float, float]],
        coded: bool,
        references: Sequence[str | None],
        declared: Declared,
        /,
    ) -> Properties: ...
    @property
    def name(self) -> str:
        """The ghost class's name."""
    @property
    def capacity(self) -> int:
        """The maximum number of living ghosts."""
    @property
    def declared(self) -> Declared:
        """The class's declarations: properties, display rules and references."""
    def set_defaults(self, ghost: object, /) -> None:
        """Uses an object's attributes as the class's defaults. Raises FieldError if a value is out of its range."""

@final
class Property:
    """The descriptor of a property in a :class:`Ghost` class. Until a ghost is spawned, its object holds the property's
    value. From then on, the world holds the value.
    """

    def __new__(cls, properties: Properties, place: int, /) -> Property: ...
    @property
    def name(self) -> str:
        """The property's name."""
    @property
    def field_type(self) -> FieldType:
        """The property's encoding."""
    def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...
    def __set__(self, instance: Any, value: Any, /) -> None: ...

# For NumPy's arrays, whose stubs declare them as buffers only for Python 3.12 and later.
class _HasType(Protocol_):
    @property
    def dtype(self) -> Any: ...

_Array: TypeAlias = Buffer | _HasType

# --- arrays of messages ------------------------------------------------------------------------------
# Arrays are `Any`: numpy.ndarray where NumPy is installed, else Rows. NumPy is no dependency.

def dtype(class_: type, /) -> Any:
    """Returns the NumPy type for rows of a message class. Each row holds one message. For example, ``numpy.zeros(n,
    tickwire.columns.dtype(Move))`` makes ``n`` rows.

    Raises:
        ImportError: NumPy is not installed; :func:`row_format` works without NumPy.
        TypeError: the class was not made by :func:`message`, or has no fields.
    """

def row_format(class_: type, /) -> str:
    """Returns the format string for rows of a message class, in the syntax of the :mod:`struct` module. Each row holds
    one message.

    Raises:
        TypeError: the class was not made by :func:`message`, or has no fields.
    """

def pack(class_: type, rows: _Array, /, *, arena: _Array | None = None) -> bytes:
    """Encodes rows as consecutive messages of one class.

    Raises:
        FieldError: a value is out of its range; the error names the first wrong row and its field.
        TypeError, ValueError: the rows don't have the class's format.
    """

def unpack(class_: type, data: bytes, count: int, /) -> Any:
    """Decodes ``count`` messages from the bytes that :func:`pack` returned. Returns a NumPy array, or :class:`Rows` if
    NumPy isn't installed.

    Raises:
        StreamError: the bytes are invalid; the error names the row and the reason.
    """

@final
class Batch:
    """Many messages of one class, as rows, to send in one call: see :meth:`Server.send` and :meth:`Server.broadcast`.

    Args:
        class_ (type): the rows' message class.
        rows (array): an array of :func:`dtype`, or a buffer of rows in the format of :func:`row_format`. The
            rows are copied and checked when you send them. If another thread writes to them meanwhile, the copy can
            mix old and new values.
        arena (array | None, default None): the buffer that holds the texts, bytes and lists of the rows. Instead of
            such a value, a row holds the value's position in this buffer and its length.

    Raises:
        TypeError: the class was not made by :func:`message`, or has no fields.
    """

    def __new__(cls, class_: type, rows: _Array, *, arena: _Array | None = None) -> Batch: ...

@final
class Rows:
    """Messages of one class as rows, if NumPy isn't installed. With NumPy, you get a structured array instead.

    ``rows[0].hp`` is the field ``hp`` of one row, and ``rows["hp"]`` is the column of this field. A column of numbers
    is a memoryview of the rows' memory; every other column is a list. A field with a converter holds the value that is
    sent, not the game's own object. The :class:`Rows` object is also a buffer, and :attr:`format` describes the layout
    of its rows.
    """

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
    @property
    def format(self) -> str:
        """The memory layout of a row, for the :mod:`struct` module."""
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
    """Returns the buffer that holds the texts, data and lists of ``rows``. ``rows`` must be an array or a :class:`Rows`
    object that Tickwire made, or a view of such an object.

    Raises:
        ValueError: Tickwire did not make these rows, or they are a copy.
    """

@final
class Stream:
    """The argument of a message's ``serialize(stream)`` method. The stream's methods write, read or measure values,
    depending on why ``serialize`` is called.

    When writing or measuring, each method takes a value and returns it. When reading, each method ignores the given
    value and returns the value from the packet. The bits are laid out as in version 1.0 of the C++ library
    ``serialize``.

    Raises:
        FieldError: a value to write or measure is out of its range.
        StreamError: the bytes to read are invalid. Don't catch this error in ``serialize``, because it has to end
            the connection of the peer that sent the bytes.
    """

    @property
    def writing(self) -> bool:
        """Whether values are written."""
    @property
    def reading(self) -> bool:
        """Whether values are read."""
    @property
    def measuring(self) -> bool:
        """Whether bits are only counted."""
    @property
    def bits_processed(self) -> int:
        """Bits written or measured so far, or the bit position of the next read."""
    def flag(self, value: object, /) -> bool:
        """One bit: the truth of ``value``."""
    def bits(self, value: int | None, count: int, /) -> int:
        """An unsigned integer of ``count`` bits; ``count`` is 1 to 64."""
    def ranged(self, value: int | None, low: int, high: int, /) -> int:
        """An integer from ``low`` to ``high``, both included."""
    def uint128(self, value: int | None, /) -> int:
        """An unsigned integer of 128 bits."""
    def relative(self, value: int | None, previous: int, /) -> int:
        """An integer above ``previous``, at most 2**31 - 1. A smaller difference takes fewer bits."""
    def sequence_relative(self, value: int | None, previous: int, /) -> int:
        """A 16-bit sequence number after ``previous``. It may wrap around, but must not equal ``previous``."""
    def float32(self, value: float | None, /) -> float:
        """A float in 32 bits."""
    def float64(self, value: float | None, /) -> float:
        """A float in 64 bits."""
    def quantized(self, value: float | None, low: float, high: float, resolution: float, /) -> float:
        """A float from ``low`` to ``high`` in steps of about ``resolution``."""
    def fixed(self, value: _Number | None, low: int, high: int, fraction_bits: int, /) -> _Number:
        """A number from ``low`` to ``high`` with ``fraction_bits`` bits after the binary point. The result is
        a float, or a ``Fraction`` if numbers in this range can need more than 53 bits.
        """
    def text(self, value: str | None, max_bytes: int, /) -> str:
        """Text of at most ``max_bytes`` bytes of UTF-8, without NUL."""
    def wide_text(self, value: str | None, max_units: int, /) -> str:
        """Text of at most ``max_units`` UTF-16 units, without NUL. Each unit takes 32 bits."""
    def data(self, value: _Bytes | None, max_bytes: int, /) -> _Bytes:
        """A bytes value of at most ``max_bytes`` bytes."""
    def bytes(self, value: _Bytes | None, count: int, /) -> _Bytes:
        """Exactly ``count`` bytes, sent without a length."""
    def align(self) -> None:
        """Padding up to the next byte boundary. All its bits are 0."""

    # The names of serialize's macros in C++, with their arguments.
    def serialize_bits(self, value: int | None, bits: int, /) -> int:
        """The C++ name of :meth:`bits`."""
    def serialize_bool(self, value: object, /) -> bool:
        """The C++ name of :meth:`flag`."""
    def serialize_int(self, value: int | None, min: int, max: int, /) -> int:
        """The C++ name of :meth:`ranged`."""
    def serialize_int64(self, value: int | None, min: int, max: int, /) -> int:
        """The C++ name of :meth:`ranged`."""
    def serialize_int128(self, value: int | None, min: int, max: int, /) -> int:
        """The C++ name of :meth:`ranged`."""
    def serialize_uint8(self, value: int | None, /) -> int:
        """An unsigned integer of 8 bits."""
    def serialize_uint16(self, value: int | None, /) -> int:
        """An unsigned integer of 16 bits."""
    def serialize_uint32(self, value: int | None, /) -> int:
        """An unsigned integer of 32 bits."""
    def serialize_uint64(self, value: int | None, /) -> int:
        """An unsigned integer of 64 bits."""
    def serialize_uint128(self, value: int | None, /) -> int:
        """The C++ name of :meth:`uint128`."""
    def serialize_float(self, value: float | None, /) -> float:
        """The C++ name of :meth:`float32`."""
    def serialize_double(self, value: float | None, /) -> float:
        """The C++ name of :meth:`float64`."""
    def serialize_compressed_float(self, value: float | None, min: float, max: float, res: float, /) -> float:
        """The C++ name of :meth:`quantized`."""
    def serialize_fixed(
        self, value: _Number | None, integer_bits: int, fraction_bits: int, min: int, max: int, /
    ) -> _Number:
        """The C++ name of :meth:`fixed`. ``integer_bits`` has no effect."""
    def serialize_bytes(self, data: _Bytes | None, bytes: int, /) -> _Bytes:
        """The C++ name of :meth:`bytes`."""
    def serialize_string(self, string: str | None, buffer_size: int, /) -> str:
        """Text of up to ``buffer_size - 1`` bytes, because C++ needs the last byte for its NUL."""
    def serialize_wstring(self, string: str | None, buffer_size: int, /) -> str:
        """Text of up to ``buffer_size - 1`` UTF-16 units."""
    def serialize_align(self) -> None:
        """The C++ name of :meth:`align`."""
    def serialize_object(self, object: _T | None, class_: Callable[[], _T] | None = None, /) -> _T:
        """Calls ``object.serialize(self)`` and returns the object. When reading, ``class_()`` makes a new object.
        Without ``class_``, reading fills the given object.
        """
    def serialize_int_relative(self, previous: int, current: int | None, /) -> int:
        """The C++ name of :meth:`relative`, with swapped arguments. Returns ``current``."""
    def serialize_sequence_relative(self, sequence1: int, sequence2: int | None, /) -> int:
        """The C++ name of :meth:`sequence_relative`, with swapped arguments. Returns ``sequence2``."""

# --- protocol ----------------------------------------------------------------------------------------

@final
class Channel:
    """The settings of one channel, as made by :func:`reliable_ordered`, :func:`unreliable` and so on.

    All kinds take these arguments, except :func:`chunks`, which takes only a name:

    Args:
        name: the name for ``send`` and statistics.
        max_message_bytes: the maximum size of a message, in bytes. A reliable channel splits messages above 1,024
            bytes into fragments and resends only lost fragments. On other channels, a message above about 1,180
            bytes is lost if one of its fragments is lost.
        strict: whether the channel sends before all channels that aren't strict. Several strict channels send in the
            order of the protocol's ``channels``. A tenth of each packet is reserved for channels that aren't strict, so
            that strict channels can't block them.
        weight: the channel's share of the packets, 1 to 1,000, relative to the weights of the other channels that
            aren't strict. If a channel doesn't use its whole share, the other channels get the rest.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    @property
    def kind(self) -> str:
        """The channel's kind, such as ``reliable_ordered``."""
    @property
    def name(self) -> str:
        """The channel's name; empty unless given."""
    @property
    def strict(self) -> bool:
        """Whether the channel sends before all channels that aren't strict."""
    @property
    def weight(self) -> int:
        """The channel's share of the packets, relative to the other channels that aren't strict."""
    @property
    def max_message_bytes(self) -> int:
        """The maximum size of a message, in bytes."""
    @property
    def keys(self) -> int:
        """The number of keys of a :func:`latest` channel; 0 for other kinds."""
    @property
    def retain(self) -> bool:
        """Whether new clients get the newest values that were broadcast on this channel."""
    @property
    def retain_bytes(self) -> int:
        """The maximum size of the values kept for new clients, in bytes; 0 if none are kept."""

def reliable_ordered(
    name: str = "",
    *,
    send_queue: int = 1024,
    receive_window: int = 1024,
    receive_bytes: int = 1048576,
    resend_time: float | None = None,
    early_copies: int = 1,
    max_message_bytes: int = 65536,
    strict: bool = False,
    weight: int = 1,
) -> Channel:
    """A channel that delivers every message exactly once, in order.

    Args:
        name (str, default ''): the name for ``send`` and statistics, unique in the protocol.
        send_queue (int, default 1024): the maximum number of unacked messages; beyond it, ``send`` returns ``FULL``.
        receive_window (int, default 1024): the maximum number of messages that the receiver buffers for its game.
        receive_bytes (int, default 1048576): the maximum bytes that the receiver buffers for its game.
        resend_time (float | None, default None): seconds after which an unacked message is resent. None: it is resent
            when its packets are lost, or after a timeout computed from the RTT and the RTT's variance.
        early_copies (int, default 1): with ``resend_time=None``, the number of packets that carry each new message even
            if none is lost, 1 to 8. They are sent in successive ticks, if the budget has room.
        max_message_bytes (int, default 65536): the maximum size of a message, 1 to 261,120 bytes.
        strict (bool, default False): whether the channel sends before all channels that aren't strict.
        weight (int, default 1): the channel's share of the packets, 1 to 1,000, relative to the weights of the other
            channels that aren't strict.
    """

def reliable_unordered(
    name: str = "",
    *,
    send_queue: int = 1024,
    receive_window: int = 1024,
    receive_bytes: int = 1048576,
    resend_time: float | None = None,
    early_copies: int = 1,
    max_message_bytes: int = 65536,
    strict: bool = False,
    weight: int = 1,
) -> Channel:
    """A channel that delivers every message exactly once, as soon as it arrives. A lost message doesn't delay later
    messages.

    Args:
        name (str, default ''): the name for ``send`` and statistics, unique in the protocol.
        send_queue (int, default 1024): the maximum number of unacked messages; beyond it, ``send`` returns ``FULL``.
        receive_window (int, default 1024): the maximum number of messages that the receiver buffers for its game.
        receive_bytes (int, default 1048576): the maximum bytes that the receiver buffers for its game.
        resend_time (float | None, default None): seconds after which an unacked message is resent. None: it is resent
            when its packets are lost, or after a timeout computed from the RTT and the RTT's variance.
        early_copies (int, default 1): with ``resend_time=None``, the number of packets that carry each new message even
            if none is lost, 1 to 8. They are sent in successive ticks, if the budget has room.
        max_message_bytes (int, default 65536): the maximum size of a message, 1 to 261,120 bytes.
        strict (bool, default False): whether the channel sends before all channels that aren't strict.
        weight (int, default 1): the channel's share of the packets, 1 to 1,000, relative to the weights of the other
            channels that aren't strict.
    """

def unreliable(
    name: str = "",
    *,
    send_queue: int = 1024,
    receive_queue: int = 1024,
    max_message_bytes: int = 65536,
    strict: bool = False,
    weight: int = 1,
) -> Channel:
    """A channel that delivers each message at most once, in any order, and never resends. Messages that don't fit
    into a tick's budget are dropped.

    Args:
        name (str, default ''): the name for ``send`` and statistics, unique in the protocol.
        send_queue (int, default 1024): the maximum number of messages per tick; beyond it, ``send`` returns ``FULL``.
        receive_queue (int, default 1024): the maximum number of messages that the receiver keeps for its game; beyond
            it, the oldest are dropped.
        max_message_bytes (int, default 65536): the maximum size of a message, 1 to 261,120 bytes.
        strict (bool, default False): whether the channel sends before all channels that aren't strict.
        weight (int, default 1): the channel's share of the packets, 1 to 1,000, relative to the weights of the other
            channels that aren't strict.
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
    """Like :func:`unreliable`, but drops messages that arrive after a newer message.

    Args:
        name (str, default ''): the name for ``send`` and statistics, unique in the protocol.
        send_queue (int, default 1024): the maximum number of messages per tick; beyond it, ``send`` returns ``FULL``.
        receive_queue (int, default 1024): the maximum number of messages that the receiver keeps for its game; beyond
            it, the oldest are dropped.
        max_message_bytes (int, default 65536): the maximum size of a message, 1 to 261,120 bytes.
        strict (bool, default False): whether the channel sends before all channels that aren't strict.
        weight (int, default 1): the channel's share of the packets, 1 to 1,000, relative to the weights of the other
            channels that aren't strict.
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
    """A channel that sends each message in several packets, one tick apart, so a lost packet causes no long delay. Each
    message is delivered at most once, in order. ``inbox.missed`` counts messages that never arrived.

    Args:
        name (str, default ''): the name for ``send`` and statistics, unique in the protocol.
        copies (int | None, default 3): the number of packets that carry each message, 1 to 255; None: every packet
            carries the message until one of these packets is acked.
        send_queue (int, default 1024): the maximum number of messages that wait or are in flight; beyond it, ``send``
            returns ``FULL``.
        receive_queue (int, default 1024): the maximum number of messages that the receiver keeps for its game; beyond
            it, the oldest are dropped.
        max_message_bytes (int, default 65536): the maximum size of a message, 1 to 261,120 bytes.
        strict (bool, default False): whether the channel sends before all channels that aren't strict.
        weight (int, default 1): the channel's share of the packets, 1 to 1,000, relative to the weights of the other
            channels that aren't strict.
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
    """A channel for values with a numeric key. It sends the newest value of each key until the other side has this
    value. Values arrive in ``inbox.latest``. An older value of a key never arrives after a newer value.

    Args:
        name (str, default ''): the name for ``send`` and statistics, unique in the protocol.
        keys (int, default 1024): the number of keys, 1 to 65,536; the ``key`` argument of ``send`` is 0 to ``keys -
            1``.
        retain (bool, default False): whether the server keeps the newest broadcast value of each key for new clients.
            After its :class:`Connected` event, a client gets the values that were broadcast to all clients. A client
            that is added to a :class:`Room` gets the values that were broadcast to this room. Values that were sent to
            one client or to selected clients aren't kept. :meth:`Server.forget` drops the kept value of a key. Server
            and client may have different values of ``retain``.
        retain_bytes (int, default 1048576): the maximum size in bytes of the values kept for all clients, and also of
            the values kept for each room, 1 to 2**30. A broadcast that would exceed this size raises
            :class:`MessageTooLargeError` and sends nothing.
        max_message_bytes (int, default 65536): the maximum size of a message, 1 to 261,120 bytes.
        strict (bool, default False): whether the channel sends before all channels that aren't strict.
        weight (int, default 1): the channel's share of the packets, 1 to 1,000, relative to the weights of the other
            channels that aren't strict.
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
    """A channel for your own bytes instead of messages: see :meth:`Server.send_payload`. Each payload arrives at
    most once and is never resent. ``inbox.notifications`` reports each payload as delivered or lost, in packet
    order.

    Args:
        name (str, default ''): the name for ``send_payload`` and statistics, unique in the protocol.
        send_queue (int, default 1024): the maximum number of payloads per tick; beyond it, ``send_payload`` returns
            ``FULL``.
        receive_queue (int, default 1024): the maximum number of payloads that the receiver keeps for its game; beyond
            it, the oldest are dropped.
        max_message_bytes (int, default 65536): the maximum size of a payload, 1 to 261,120 bytes.
        strict (bool, default False): whether the channel sends before all channels that aren't strict.
        weight (int, default 1): the channel's share of the packets, 1 to 1,000, relative to the weights of the other
            channels that aren't strict.
    """

def chunks(name: str = "") -> Channel:
    """The channel for large blocks of data: see :meth:`Server.send_chunk`. It carries no messages. A protocol has
    at most one such channel.

    Args:
        name (str, default ''): the name for statistics, unique in the protocol.
    """

@final
class Capture:
    """A pcapng file with the datagrams of servers and clients, for Wireshark: see :class:`Debugging`.

    Several endpoints can share one capture. Received datagrams are captured on arrival. If :class:`Conditions` are
    set, sent datagrams are captured when they leave the simulated link. IP and UDP headers are generated from the
    addresses. Packets stay encrypted; :func:`tickwire.capture.open_capture` decrypts them if it has the keys.

    Args:
        path (str | PathLike[str]): the file; an existing file is overwritten.
        max_bytes (int, default 1073741824): the file's maximum size, 4,096 to 2**40. Datagrams that don't fit are
            counted in :attr:`dropped`.
        keys (str | PathLike[str] | None, default None): a second file, for the keys that decrypt the captured
            packets. Only the file's owner can read it. None: no keys are written.

    Raises:
        OSError: a file can't be created; errno says why.
        ValueError: an argument is out of its bounds.
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
        """The file's path."""
    @property
    def packets(self) -> int:
        """The number of captured datagrams."""
    @property
    def size(self) -> int:
        """The file's size in bytes, including bytes that are still in memory."""
    @property
    def dropped(self) -> int:
        """The number of datagrams that weren't captured because the file had reached ``max_bytes``, was closed
        (:meth:`close`), or couldn't be written.
        """
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
        """Adds a datagram to the file; for tools.

        Args:
            nanoseconds: the time at which the datagram was sent or received, in nanoseconds since 1970.
            sender, receiver: the addresses from which and to which the datagram was sent.
            outgoing: True if the datagram was sent, False if it was received.
            opened: whether ``datagram`` is already decrypted.

        Raises:
            ValueError: the datagram is too long, or the time is out of its bounds.
        """
    def flush(self) -> None:
        """Writes datagrams that are still in memory. Endpoints do this once a second and when they close."""
    def close(self) -> None:
        """Writes datagrams that are still in memory and closes the file. Endpoints continue without capturing.

        Raises:
            OSError: writing failed, now or earlier; the error names the file.
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
    """Decrypts captured packets with the server's private key or a client's connect token.

    Args:
        keys: private keys of servers, 32 bytes each.
        tokens: connect tokens of clients.
    """

    def __new__(cls, *, keys: Sequence[bytes] = (), tokens: Sequence[ConnectToken] = ()) -> PacketOpener: ...
    def open(self, sender: AddressLike, receiver: AddressLike, datagram: bytes) -> bytes | None:
        """Decrypts the next datagram of a capture, and removes its authentication tag. Returns None if no key fits,
        or if the datagram is a connection request, which isn't encrypted.
        """

@final
class Protocol(Generic[_P]):
    """The definition that both sides share: an id, the message classes in order, and the channels in order.

    Args:
        id (int): the 64-bit netcode protocol id: any number that other games don't use, the same in all versions of
            your game.
        messages (Sequence[type], default ()): classes made by :func:`tickwire.message` or derived from
            :class:`tickwire.messages.Message`. The list may be empty only if the protocol has ghosts, calls, a tick
            rate or peers.
        channels (Sequence[Channel], default ...): 1 to 64 channels. ``send`` selects a channel by its index in this
            list, or by its name.
        ghosts (Sequence[type], default ()): up to 256 classes of the server's world, made by :func:`tickwire.ghost`.
        calls (Sequence[Call[..., Any]], default ()): functions decorated with :func:`tickwire.call`. The protocol makes
            message classes for their arguments and replies, and adds these classes to :attr:`messages`, after your own.
        inputs (type | None, default None): the message class of clients' inputs, one input per tick: see
            :meth:`Client.send_input`.
        tick_rate (int | None, default None): the server's ticks per second, 1 to 1,000; needed for ``inputs`` and
            for :attr:`Client.clock`.
        peers (bool, default False): whether the protocol is for games without a server (:class:`Peer`).
        yojimbo (Profile | None, default None): the settings for talking to programs that use the C++ library
            yojimbo; None: Tickwire's own wire format.

    Raises:
        TypeError, ValueError: a class or an argument is invalid.
    """

    def __new__(
        cls,
        id: int,
        messages: Sequence[type[_P]] = (),
        channels: Sequence[Channel] = ...,
        *,
        ghosts: Sequence[type] = (),
        calls: Sequence[Call[..., Any]] = (),
        inputs: type | None = None,
        tick_rate: int | None = None,
        peers: bool = False,
        yojimbo: Profile | None = None,
    ) -> Protocol[_P]: ...
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @property
    def id(self) -> int:
        """The netcode protocol id. With :class:`~tickwire.yojimbo.Profile` ``(fold_hash=True)``, this is the given id
        XOR :attr:`hash`.
        """
    @property
    def inputs(self) -> type | None:
        """The class of clients' inputs; None if the protocol has none."""
    @property
    def tick_rate(self) -> int | None:
        """The server's ticks per second; None if not given."""
    @property
    def framing(self) -> Literal["native", "yojimbo"]:
        """The wire format of packets."""
    @property
    def hash(self) -> int:
        """A 64-bit hash of the messages, channels, ghosts, calls and inputs. Both sides compare it when they connect,
        except with yojimbo's framing.
        """
    @property
    def description(self) -> str:
        """The text from which :attr:`hash` is computed. It lists each message, ghost, call and input with its fields,
        and each channel.
        """
    @property
    def messages(self) -> list[type[_P]]:
        """The message classes, in order."""
    @property
    def ghosts(self) -> list[type]:
        """The classes of ghosts, in order."""
    @property
    def channels(self) -> list[Channel]:
        """The channels, in order."""
    @property
    def calls(self) -> list[Call[..., Any]]:
        """The calls, in order, as :func:`tickwire.call` made them."""
    def channel_number(self, name: str, /) -> int:
        """Returns the index of the channel with this name.

        Raises:
            ChannelError: there is no such channel.
        """
    def encode(self, message: _P, /) -> bytes:
        """Encodes a message with its type, as in a packet, and pads the result to whole bytes. The block of a
        :class:`~tickwire.messages.BlockMessage` isn't included.

        Raises:
            FieldError, UnregisteredMessageError, MessageTooLargeError: as :meth:`Server.send`.
        """
    def decode(self, data: bytes, /) -> _P:
        """Decodes the bytes that :meth:`encode` returned.

        Raises:
            StreamError: the bytes are invalid; the error says why.
        """
    def measure(self, message: _P, /) -> int:
        """Returns the largest number of bits that :meth:`encode` can use for this message. Each alignment counts as 7
        bits.
        """

# --- connections -------------------------------------------------------------------------------------

@final
class ClientHandle:
    """One client's connection on the server. Handles are equal if they refer to the same connection. A handle never
    refers to a later client in the same :attr:`slot`.
    """

    @property
    def id(self) -> int:
        """The client id of the connect token."""
    @property
    def slot(self) -> int:
        """The client's place on the server, 0 to ``max_clients - 1``."""
    @property
    def generation(self) -> int:
        """The number of clients that used this slot before."""
    @property
    def number(self) -> int:
        """Slot and generation as one number, as in the ``client`` column of :meth:`Inbox.columns`."""
    @property
    def address(self) -> Address:
        """The address from which the client's packets come."""
    @property
    def user_data(self) -> bytes:
        """The 256 bytes of user data from the connect token."""
    @property
    def data(self) -> Any:
        """Any object that the game keeps for this client; None until it is set. All events and lists contain this same
        handle until the client's last event, so you can read the object from any of them.
        """
    @data.setter
    def data(self, data: Any, /) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

# `client` is a handle on servers and None on clients. `Any` spares the games on servers a check for None.

@final
class Connected:
    """A connection was made."""

    __match_args__ = ("client",)
    @property
    def client(self) -> ClientHandle | Any:
        """On a server, the client; on a client, None."""

@final
class Disconnected:
    """A connection has ended."""

    __match_args__ = ("client", "reason", "detail")
    @property
    def client(self) -> ClientHandle | Any:
        """On a server, the client; on a client, None."""
    @property
    def reason(self) -> DisconnectReason:
        """The reason why the connection ended."""
    @property
    def detail(self) -> str | None:
        """The text that either side passed as the argument ``reason`` of ``close`` or ``disconnect``, 1 to 128 bytes in
        UTF-8; None if there is no text. The other side can send any text here, so treat it with the same care as a chat
        message.
        """

@final
class ChannelStats:
    """Counts of one channel of a connection since the connection started."""

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
        """The number of times that messages were resent."""
    @property
    def delivered(self) -> int:
        """Messages that the other side has acked."""
    @property
    def lost(self) -> int:
        """Messages declared lost; 0 on a reliable channel."""
    @property
    def received(self) -> int:
        """Messages received, each counted once."""
    @property
    def duplicates(self) -> int:
        """Messages dropped because they had been received before, or were too old."""
    @property
    def missed(self) -> int:
        """Messages from the other side that never arrived; only on :func:`redundant` channels."""
    @property
    def dropped(self) -> int:
        """Messages dropped before they were sent or read: the queue was full, the tick's budget was used up, or a
        newer value replaced them.
        """
    @property
    def bytes_sent(self) -> int:
        """Bytes of messages sent, resends included."""
    @property
    def latency_ms(self) -> float:
        """Smoothed time from send to ack, in milliseconds; 0 before the first ack."""

@final
class ConnectionStats:
    """Statistics of one connection. Names ending in ``_ms`` are times in milliseconds, and names ending in ``_kbps``
    are rates in kilobits per second, including UDP/IP headers. These rates and the packet losses in percent are
    averages over about the last 3 seconds.
    """

    @property
    def rtt_ms(self) -> float:
        """The smoothed round trip time."""
    @property
    def rtt_min_ms(self) -> float:
        """The shortest of the last 128 round trips."""
    @property
    def rtt_max_ms(self) -> float:
        """The longest of the last 128 round trips."""
    @property
    def jitter_ms(self) -> float:
        """The smoothed difference between consecutive round trips."""
    @property
    def packet_loss_percent(self) -> float:
        """The share of this side's packets that were lost, in percent."""
    @property
    def packet_loss_received_percent(self) -> float:
        """The share of the other side's packets that were lost, in percent."""
    @property
    def sent_kbps(self) -> float:
        """The rate of data sent."""
    @property
    def received_kbps(self) -> float:
        """The rate of data received."""
    @property
    def acked_kbps(self) -> float:
        """The rate of data that the other side has acked."""
    @property
    def packets_sent(self) -> int:
        """Packets sent."""
    @property
    def packets_received(self) -> int:
        """Packets received."""
    @property
    def packets_acked(self) -> int:
        """Packets that the other side has acked."""
    @property
    def packets_lost(self) -> int:
        """Packets declared lost."""
    @property
    def budget_bytes_per_second(self) -> float:
        """The rate limit for messages, in bytes per second, including UDP/IP headers."""
    @property
    def budget_burst_bytes(self) -> float:
        """The maximum number of bytes that are sent at once after a pause."""
    @property
    def budget_adaptive(self) -> bool:
        """Whether the connection sends less while the link is congested."""
    @property
    def bulk_rate(self) -> float:
        """The current rate limit for chunks, in bytes per second, including UDP/IP headers; 0 if the protocol has no
        channel for chunks.
        """
    @property
    def chunks(self) -> ChunkStats:
        """Counts of chunks."""
    @property
    def channels(self) -> list[ChannelStats]:
        """The counts of each channel, in the protocol's order. The payload channels behind them are Tickwire's own:
        "ghosts", and "time" for inputs and the clock.
        """

@final
class ChunkStats:
    """Counts of chunks in both directions since the connection started. The sender first offers a chunk, and the
    receiver answers. A chunk is sent in slices, and each slice fills a packet.
    """

    @property
    def slices_sent(self) -> int:
        """Slices sent, each counted once."""
    @property
    def slices_resent(self) -> int:
        """Slices sent again."""
    @property
    def bytes_sent(self) -> int:
        """Bytes of slices sent, resends included."""
    @property
    def slices_received(self) -> int:
        """Slices received, each counted once."""
    @property
    def slice_duplicates(self) -> int:
        """Slices dropped because they had been received before."""
    @property
    def slices_unexpected(self) -> int:
        """Slices dropped because their chunk was unknown, was not yet accepted, or had already ended."""
    @property
    def slices_invalid(self) -> int:
        """Slices dropped because their index or length doesn't fit the chunk."""
    @property
    def offers_invalid(self) -> int:
        """Offers dropped because they were out of order or inconsistent."""
    @property
    def offers_too_fast(self) -> int:
        """Packets that were dropped and not acked, because the offers and cancellations in them arrived too fast."""
    @property
    def chunks_reused(self) -> int:
        """Chunks that the other side didn't need to send, because this side already had them."""
    @property
    def answers_invalid(self) -> int:
        """Answers dropped because they named a chunk that wasn't offered, or slices beyond the end of a chunk."""

@final
class ChannelSnapshot:
    """Counts of all channels of all connections, as columns. Each row is one channel of one client.
    :class:`ChannelStats` describes the counts.
    """

    def __len__(self) -> int: ...
    @property
    def slot(self) -> memoryview[int]:
        """The client's :attr:`ClientHandle.slot`."""
    @property
    def channel(self) -> memoryview[int]:
        """The channel's index."""
    @property
    def queued(self) -> memoryview[int]:
        """Like :attr:`ChannelStats.queued`."""
    @property
    def sent(self) -> memoryview[int]:
        """Like :attr:`ChannelStats.sent`."""
    @property
    def resent(self) -> memoryview[int]:
        """Like :attr:`ChannelStats.resent`."""
    @property
    def delivered(self) -> memoryview[int]:
        """Like :attr:`ChannelStats.delivered`."""
    @property
    def lost(self) -> memoryview[int]:
        """Like :attr:`ChannelStats.lost`."""
    @property
    def received(self) -> memoryview[int]:
        """Like :attr:`ChannelStats.received`."""
    @property
    def dropped(self) -> memoryview[int]:
        """Like :attr:`ChannelStats.dropped`."""
    @property
    def bytes_sent(self) -> memoryview[int]:
        """Like :attr:`ChannelStats.bytes_sent`."""
    @property
    def latency_ms(self) -> memoryview[float]:
        """Like :attr:`ChannelStats.latency_ms`."""

# --- hooks and notifications -------------------------------------------------------------------------

@final
class Candidates:
    """The argument of a priority hook (:class:`Tuning`): queued messages that can be sent in any order, as columns.
    The messages belong to unreliable, latest and payload channels.

    Each column is a read-only memoryview, which ``numpy.asarray`` wraps without copying. A column is made when it is
    first read, so unread columns cost nothing. After the hook has returned, reading a column for the first time raises
    RuntimeError. Columns that you read earlier stay valid and don't change.
    """

    def __len__(self) -> int: ...
    @property
    def slot(self) -> memoryview[int]:
        """The receiver's :attr:`ClientHandle.slot`; 0 on a client."""
    @property
    def channel(self) -> memoryview[int]:
        """The channel's index."""
    @property
    def message_type(self) -> memoryview[int]:
        """The index of the message's class in ``protocol.messages``; 0 for payloads."""
    @property
    def age(self) -> memoryview[float]:
        """Seconds since ``send``."""
    @property
    def size(self) -> memoryview[int]:
        """The size of the encoded message in bytes, without headers."""
    @property
    def key(self) -> memoryview[int]:
        """The ``key`` given to ``send``; 0 except on :func:`latest` channels."""
    @property
    def resends(self) -> memoryview[int]:
        """1 for a message that was sent before and lost, otherwise 0. Only :func:`latest` channels have a 1."""
    @property
    def tag(self) -> memoryview[int]:
        """The ``tag`` given to ``send``."""

@final
class Notifications:
    """Delivery reports for payloads, and for messages sent with ``notify=True`` (:meth:`Server.send`). The columns are
    read-only memoryviews. The reports of each connection are in packet order. If a message is dropped before it is
    sent, it is reported as lost at once. This happens if the packets of the message's tick are full, or if a newer
    value of the same key replaces the message. When a connection ends, its remaining messages are reported as lost, one
    inbox before the :class:`Disconnected` event. After the game closes an endpoint, nothing more is reported.

    Example:
        >>> for slot, tag, delivered in zip(reports.slot, reports.tag, reports.delivered):  # doctest: +SKIP
        ...     print(tag, "arrived" if delivered else "is lost")
    """

    def __len__(self) -> int: ...
    @property
    def slot(self) -> memoryview[int]:
        """The receiver's :attr:`ClientHandle.slot`; 0 on a client."""
    @property
    def channel(self) -> memoryview[int]:
        """The channel's index."""
    @property
    def tag(self) -> memoryview[int]:
        """The ``tag`` given to ``send``."""
    @property
    def delivered(self) -> memoryview[bool]:
        """True: delivered. False: lost."""

# --- chunks ------------------------------------------------------------------------------------------

@final
class Chunk:
    """A large block of data, to send to one or many clients. The data is hashed (SHA-256) once, when the object
    is made.

    Hashing takes 0.5 to 4 ms per MiB, depending on the processor; other threads run meanwhile if the data is longer
    than 64 KiB.

    Args:
        data: bytes (not copied), another contiguous buffer (copied once), or a path. A file is read when the object
            is made, and again while it is sent; if the file changes in between, the transfer fails.

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
        """The file's path; None if the content is in memory."""

@final
class Transfer:
    """A chunk that is being sent. Each tick of the sending endpoint updates the attributes. This object doesn't keep
    the endpoint alive, and deleting this object doesn't cancel the transfer.
    """

    @property
    def client(self) -> ClientHandle | None:
        """The receiving client; None if a client or a :class:`Peer` sends the chunk."""
    @property
    def label(self) -> str:
        """The ``label`` given to ``send_chunk``."""
    @property
    def size(self) -> int:
        """Bytes of the chunk."""
    @property
    def hash(self) -> bytes:
        """The SHA-256 of the content, 32 bytes."""
    @property
    def bytes_done(self) -> int:
        """Bytes that the receiver has acked."""
    @property
    def slices(self) -> int:
        """The number of slices. Each slice fills a packet."""
    @property
    def slices_done(self) -> int:
        """Slices that the receiver has acked."""
    @property
    def fraction(self) -> float:
        """The share of the chunk that the receiver has acked, 0 to 1."""
    @property
    def rate(self) -> float:
        """Bytes per second, over about the last second; constant after the transfer's end."""
    @property
    def time_left(self) -> float | None:
        """Seconds until the transfer is done at this :attr:`rate`; None while the rate is 0, and after a failure."""
    @property
    def done(self) -> bool:
        """Whether the receiver has the whole chunk and has verified its hash."""
    @property
    def error(self) -> str | None:
        """The reason for the failure, as a sentence; None if the transfer hasn't failed."""
    @property
    def over(self) -> bool:
        """Whether the transfer is done or has failed."""
    @property
    def paused(self) -> bool:
        """Whether this side has paused the transfer by :meth:`pause`."""
    @property
    def paused_by_peer(self) -> bool:
        """Whether the receiver has paused the transfer."""
    def pause(self) -> bool:
        """Stops sending this chunk until :meth:`resume`. Slices in flight can still arrive, and the receiver keeps all
        slices that it has. Meanwhile, up to three later chunks are sent, but they arrive in the inbox only after this
        chunk. Returns False if the transfer is over.
        """
    def resume(self) -> bool:
        """Continues with the slices that the receiver lacks. Returns False if the transfer is over."""
    def cancel(self) -> bool:
        """Ends the transfer; the receiver discards the slices that it has. To continue later, use :meth:`pause`.
        Returns False if the transfer is over.
        """

@final
class IncomingChunk:
    """A chunk that is arriving. The attributes show the chunk's state when :meth:`Server.incoming_chunks` was called.
    Later, only :attr:`paused` changes.
    """

    @property
    def client(self) -> ClientHandle | None:
        """The sending client; None on a client."""
    @property
    def label(self) -> str:
        """The sender's name for the chunk. It can be any text."""
    @property
    def size(self) -> int:
        """Bytes of the chunk."""
    @property
    def hash(self) -> bytes:
        """The SHA-256 that the sender announced, 32 bytes."""
    @property
    def bytes_done(self) -> int:
        """Bytes received."""
    @property
    def slices(self) -> int:
        """The number of slices. Each slice fills a packet."""
    @property
    def slices_done(self) -> int:
        """Slices received."""
    @property
    def fraction(self) -> float:
        """The share of the chunk that has arrived, 0 to 1."""
    @property
    def rate(self) -> float:
        """Bytes per second, over about the last second."""
    @property
    def time_left(self) -> float | None:
        """Seconds until the chunk is complete at this rate; None while the rate is 0."""
    @property
    def paused(self) -> bool:
        """Whether this side has paused the chunk by :meth:`pause`."""
    def pause(self) -> bool:
        """Asks the sender to :meth:`pause <Transfer.pause>`. Returns False if the chunk is complete or has failed."""
    def resume(self) -> bool:
        """Asks the sender for the missing slices. Returns False if the chunk is complete or has failed."""
    def cancel(self) -> bool:
        """Ends the transfer and discards the slices that arrived. The sender is notified. ``inbox.chunk_failures`` doesn't
        report the chunk. Returns False if the chunk is complete or has failed.
        """

@final
class ReceivedChunk:
    """A complete chunk that the other side has sent, with a verified hash. A chunk in memory is a read-only buffer:
    ``bytes(chunk)``, ``memoryview(chunk)``, ``numpy.frombuffer(chunk, ...)``.

    Raises:
        BufferError: the buffer was requested, but the chunk is in a file.
    """

    @property
    def client(self) -> ClientHandle | Any:
        """The client that sent the chunk; on a :class:`Peer`, the :class:`Player`; None on a client."""
    @property
    def label(self) -> str:
        """The sender's name for the chunk. It can be any text."""
    @property
    def size(self) -> int:
        """Bytes of the content."""
    @property
    def hash(self) -> bytes:
        """The verified SHA-256 of the content, 32 bytes."""
    @property
    def path(self) -> Path | None:
        """The file that holds the chunk; None if the chunk is in memory."""
    @property
    def reused(self) -> bool:
        """Whether the file was already in the ``directory`` of :class:`Transfers`, so that the sender didn't send it."""
    @property
    def data(self) -> memoryview:
        """The content of a chunk in memory, as a read-only view without a copy."""
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Congestion:
    """The rate limit for chunks. Messages have their own budget and aren't delayed by this limit, but their bytes
    count toward it.

    The rate adapts to the link. It aims for the highest rate at which packets wait only a few milliseconds in the
    link's queue. The rate falls when packets wait longer or are lost.

    Args:
        min_bytes_per_second (float, default 4000.0): the lowest rate, including UDP/IP headers.
        max_bytes_per_second (float, default 125000000.0): the highest rate, including UDP/IP headers.
        initial_bytes (int, default 32768): the maximum bytes in flight before the first measurement of the link.
        max_burst_bytes (int, default 262144): the maximum bytes sent at once, and therefore per tick.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    def __new__(
        cls,
        *,
        min_bytes_per_second: float = 4000.0,
        max_bytes_per_second: float = 125_000_000.0,
        initial_bytes: int = 32_768,
        max_burst_bytes: int = 262_144,
    ) -> Congestion: ...

# --- endpoints ---------------------------------------------------------------------------------------

# --- ghosts -------------------------------------------------------------------------------------------

@disjoint_base
class Ghost:
    """The base of all ghost classes. Ghosts are objects that a server copies to its clients: see
    :func:`tickwire.ghost`.
    """

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
        """The names of the changed properties."""
    @property
    def old(self) -> dict[str, Any]:
        """The values of the changed properties before this tick, by name."""

@final
class GhostOwned:
    """This client has become the owner of a ghost that spawned earlier, or is no longer its owner."""

    __match_args__: Final = ("ghost", "owned")
    @property
    def ghost(self) -> Any:
        """The ghost."""
    @property
    def owned(self) -> bool:
        """Whether this client owns the ghost now."""

@final
class GhostLinked:
    """The target of a reference (:data:`Ref`) has arrived or is gone."""

    __match_args__: Final = ("ghost", "name", "target")
    @property
    def ghost(self) -> Any:
        """The ghost with the reference."""
    @property
    def name(self) -> str:
        """The name of the property that holds the reference."""
    @property
    def target(self) -> Any:
        """The property's new value; None if the target is gone."""

@final
class GhostDespawned:
    """A ghost is gone, because it was despawned or is no longer relevant. Its object keeps the last values."""

    __match_args__: Final = ("ghost",)
    @property
    def ghost(self) -> Any:
        """The ghost."""

@final
class GhostArrays:
    """The ghosts of a class as columns, with a row for each ghost. :meth:`World.arrays` and
    :meth:`ClientWorld.arrays` return this object.

    ``arrays["position"]`` is the world's own memory: with NumPy an array, otherwise a memoryview. On a server, you
    can write to it, and the next flush detects the changes. On a client, it is read-only. A ghost keeps its row as
    long as it lives, so you can keep a column. When the world grows, a column that you kept doesn't get the new rows.
    Cells of rows without a ghost have no meaning.
    """

    @property
    def ghost_class(self) -> type:
        """The ghost class."""
    @property
    def names(self) -> list[str]:
        """The names of the properties that have a column, in order. Strings, bytes, lists and similar values have no
        column.
        """
    @property
    def capacity(self) -> int:
        """The maximum number of living ghosts."""
    @property
    def living(self) -> int:
        """The number of living ghosts."""
    @property
    def alive(self) -> Any:
        """A column of bool: True for rows with a ghost."""
    @property
    def rows(self) -> Any:
        """The numbers of the rows that have a ghost, as uint32, in rising order."""
    @property
    def network_ids(self) -> Any:
        """The network ids of the rows, as uint32. References hold these ids, for example
        ``tanks["target"][3] = crates.network_ids[7]``. Ids of rows without a ghost have no meaning.

        Raises:
            GhostError: the class's ghosts have no ids, because no :data:`Ref` of the protocol points to this class.
        """
    @property
    def owners(self) -> Any:
        """The owner of each row's ghost. On a server: the :attr:`ClientHandle.number`, or 2**64 - 1 for no owner. On
        a client: whether the client owns the ghost.
        """
    @property
    def spawned(self) -> Any:
        """The rows of ghosts that appeared in the last tick; only on a client that lists the class in
        :attr:`Tuning.columns`.
        """
    @property
    def changed(self) -> Any:
        """The rows of ghosts that changed in the last tick: see :attr:`spawned`."""
    @property
    def despawned(self) -> Any:
        """The rows of ghosts that disappeared in the last tick: see :attr:`spawned`. Their cells keep the last values."""
    def ghost(self, row: int, /) -> Any:
        """Returns the object of the ghost in a row. If the ghost has no object yet, this call makes the object.

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
    """A server's ghosts. Objects that you spawn here appear on the clients. See :attr:`Server.world`."""

    @overload
    def spawn(self, ghost: type[_T], /, *, owner: ClientHandle | None = None) -> _T: ...
    @overload
    def spawn(self, ghost: _T, /, *, owner: ClientHandle | None = None) -> _T:
        """Spawns a ghost: the given object, or a new object of the given class with the class's defaults. Returns the
        ghost.

        Args:
            ghost: an object, or a class.
            owner: the client that owns the ghost; None: no owner. If the client has left and its :class:`Disconnected`
                has already arrived, the ghost has no owner. If the event arrives only in the next tick, the ghost
                :meth:`waits <waiting>` for the client.

        Raises:
            FieldError: a property's value is not in its range.
            GhostError: the ghost is already spawned, or the class is at its capacity.
            StaleClientError: with :class:`Debugging` ``(strict=True)``, the owner has left.
        """
    def spawn_rows(self, ghost: object, count: int, /, *, owner: ClientHandle | None = None) -> Any:
        """Spawns many ghosts with equal values, without making an object for each. Returns their rows, as uint32.

        Args:
            ghost: an object with the first values, or a class to use its defaults.
            count: the number of ghosts.
            owner: the client that owns the ghosts.

        Raises:
            Exception: as :meth:`spawn`. If there isn't room for all ghosts, no ghost is spawned.
        """
    def despawn(self, ghost: object, /) -> None:
        """Removes a ghost from the world and from all clients. Its object keeps the last values and can't be
        spawned again.

        Raises:
            GhostError: the ghost isn't in this world.
        """
    def despawn_rows(self, class_: type, rows: Any, /) -> None:
        """Removes many ghosts of a class from the world, by row.

        Raises:
            GhostError: a row has no ghost or is given twice. In this case, no ghost is removed.
        """
    def objects(self, class_: type[_T], /) -> list[_T]:
        """Returns the ghosts of a class as objects, in the order of their rows in :meth:`arrays`.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def arrays(self, class_: type, /) -> GhostArrays:
        """Returns the ghosts of a class as writable columns. The next flush detects your changes.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def save(self) -> bytes:
        """Returns the world as bytes, so that another server can :meth:`load` it. The bytes contain the tick and all
        ghosts, with their properties, owners and network ids, and the ids by which each client knows its ghosts.
        Numbers are saved exactly, without rounding to a property's resolution. A ghost with a value out of its range is
        saved with the ghost's last valid values.

        Raises:
            ClosedError: the server was closed.
        """
    def load(self, data: bytes, /) -> None:
        """Loads a saved world into a new server, before the server's first tick and spawn.

        Args:
            data: the bytes from :meth:`save`.

        Raises:
            BadWorldError: the bytes aren't a saved world, or the saved world has other ghost classes. This world
                stays empty.
            GhostError: this world isn't new.
            ClosedError: the server was closed.
        """
    def waiting(self, class_: type[_T], /) -> dict[_T, int]:
        """Returns a class's ghosts whose owners have left, each with its owner's client id. When a client connects with
        this id, it owns the ghost again. :meth:`set_owner` and :meth:`despawn` end the wait.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def owner(self, ghost: object, /) -> ClientHandle | None:
        """Returns the client that owns a ghost; None if the ghost has no owner or the owner has left.

        Raises:
            GhostError: the ghost isn't in this world.
        """
    def set_owner(self, ghost: object, owner: ClientHandle | None, /) -> None:
        """Gives a ghost to a client, or to no client if ``owner`` is None.

        Raises:
            GhostError: the ghost isn't in this world.
            StaleClientError: with :class:`Debugging` ``(strict=True)``, the client has left.
        """
    def row(self, ghost: object, /) -> int:
        """Returns the row of a ghost in the columns of its class.

        Raises:
            GhostError: the ghost isn't in this world.
        """
    def set_relevancy(self, class_: type, rule: Always | Owner | Grid | Chosen | Hook, /) -> None:
        """Sets the rule that decides which clients get which ghosts of a class: :class:`Always` (the default),
        :class:`Owner`, :class:`Grid`, :class:`Chosen` or :class:`Hook`.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
            TypeError, ValueError: the rule is invalid.
        """
    def set_condition_hook(
        self,
        class_: type,
        name: str,
        hook: Callable[[list[ClientHandle], GhostArrays], Any] | None,
        /,
    ) -> None:
        """Sets a function that decides, in each flush, which clients get the properties that have the :func:`when`
        condition ``name``. The function gets the clients and the class's :class:`GhostArrays`, like the function of
        :class:`Hook`, and returns a bool for each client and row.

        Args:
            class_: the ghost class.
            name: the condition's name.
            hook: the function. None removes the current function, but its last result stays in effect.

        Raises:
            GhostError: the class is not among the protocol's ghosts, or has no such condition.
            TypeError: the hook can't be called.
        """
    def set_condition(self, client: ClientHandle, class_: type, name: str, rows: _Array, /) -> bool:
        """Selects ghosts of a class by a mask. From now on, the client gets the properties with the :func:`when`
        condition ``name`` only for the selected ghosts. Ghosts in rows beyond the mask, and ghosts that spawn later,
        aren't selected. Returns False if the client has left.

        Args:
            client: the receiving client.
            class_: the ghost class.
            name: the condition's name.
            rows: the mask, a bool for each row.

        Raises:
            GhostError: the class is not among the protocol's ghosts, or has no such condition.
            StaleClientError: with :class:`Debugging` ``(strict=True)``, the client has left.
        """
    def set_priority(self, class_: type, hook: Callable[[GhostArrays], Any] | None, /) -> None:
        """Sets a function that computes the weights of :meth:`set_weights` in each flush. The function gets the
        class's :class:`GhostArrays`, and returns a buffer with a float32 for each row, or None to keep the last
        weights. If ``hook`` is None, the current function is removed.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
            TypeError: the hook can't be called.
        """
    def look_from(
        self, client: ClientHandle, class_: type, places: Iterable[Sequence[float]] | None, /
    ) -> bool:
        """Sets the places from which a client sees the ghosts of a class. The class must have the :class:`Grid` rule. A
        place is two or three numbers. If ``places`` is None or empty, the client sees from the places of its own
        ghosts. Returns False if the client has left.

        Raises:
            GhostError: the class is not among the protocol's ghosts, or doesn't have this rule.
            StaleClientError: with :class:`Debugging` ``(strict=True)``, the client has left.
        """
    def show(self, client: ClientHandle, class_: type, rows: _Array, /) -> bool:
        """Sets which ghosts of a class a client gets from now on. The class must have the :class:`Chosen` rule.
        ``rows`` is a buffer with a bool for each row. Ghosts in rows beyond the buffer, and ghosts that spawn later,
        aren't sent. Returns False if the client has left.

        Raises:
            GhostError: the class is not among the protocol's ghosts, or doesn't have this rule.
            StaleClientError: with :class:`Debugging` ``(strict=True)``, the client has left.
        """
    def id_of(self, client: ClientHandle, ghost: object, /) -> int | None:
        """Returns the number by which a client knows a ghost, for use in a message to this client. Returns None if the
        client doesn't get the ghost or has left. :meth:`ClientWorld.ghost_of` turns the number into the ghost. For
        32,768 flushes after this call, the number can't refer to another ghost.

        Raises:
            GhostError: the ghost isn't in this world.
            StaleClientError: with :class:`Debugging` ``(strict=True)``, the client has left.
        """
    def ghost_of(self, client: ClientHandle, class_: type[_T], number: int, /) -> _T | None:
        """Returns the ghost to which a number from the client's :meth:`ClientWorld.id_of` refers. Returns None if the
        ghost is gone, the client has left, or the client never got the ghost.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
            StaleClientError: with :class:`Debugging` ``(strict=True)``, the client has left.
        """
    def set_weights(self, class_: type, weights: _Array, /) -> None:
        """Sets factors for the priorities of a class's ghosts. If a tick has no room for everything that is due, the
        priorities decide which ghosts are sent first. ``weights`` is a buffer with a float32 for each row. Ghosts in
        rows beyond this buffer, and ghosts that spawn later, have the factor 1. The factors stay until you set them
        again.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def set_must_know(self, class_: type, rows: _Array | None, /) -> None:
        """Marks the urgent ghosts of a class, such as flags, doors or the ghost that holds the score. If a client's
        packets have no room for everything that is due, up to half of the client's budget is used for the marked ghosts
        first. Marked ghosts beyond this half are sent by priority, like other ghosts. The relevancy rule still decides
        which clients get them.

        Args:
            class_: the ghost class.
            rows: a buffer with a bool for each row. Ghosts in rows beyond it, and ghosts that spawn later, aren't
                marked. None: no ghosts are marked.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    @property
    def costs(self) -> dict[str, dict[str, int]]:
        """The bits that were sent for ghosts, by class and then by property. Names in parentheses, such as
        ``(updates)`` and ``(packets)``, count the overhead. The entries add up to all bits that were sent for ghosts.
        """
    def client_bits(self, client: ClientHandle, /) -> int:
        """Returns the bits that were sent to a connected client for ghosts."""
    def remember(self, seconds: float) -> None:
        """Records the world from now on, for :meth:`rewind`. For each recorded tick, each number in a property takes 4
        bytes of memory, or 8 bytes if the number needs more than 32 bits.

        Args:
            seconds: the longest time that :meth:`rewind` can go back. It must be at most 250 ticks at the protocol's
                ``tick_rate``; if the protocol has no tick rate, 60 ticks per second are assumed. 0 deletes the record.

        Raises:
            ValueError: an argument is out of its bounds.
        """
    @property
    def past_bytes(self) -> int:
        """Bytes of memory that :meth:`remember` takes."""
    @property
    def tick(self) -> int:
        """The tick that was sent last. A client's :attr:`WorldView.tick` counts the same ticks."""
    def rewind(self, client: ClientHandle, /, *, seen: float | None = None) -> Past:
        """Returns the world as a client saw it: a :class:`tickwire.predict.Past`, for a ``with`` statement.

        Args:
            client: the client whose view is returned. :meth:`Past.shown <tickwire.predict.Past.shown>` returns which
                ghosts this client had.
            seen: the tick that the client saw, which is the client's :attr:`WorldView.tick`. None: the tick that came
                with the client's input for the current tick (:meth:`Inputs.seen`), or the newest tick if the client
                reported no tick.

        Raises:
            GhostError: nothing is recorded: see :meth:`remember`.
            ValueError: ``seen`` isn't a finite number, or it is None and the protocol has no inputs.
        """
    def rewind_to(self, tick: float, /) -> Past:
        """Like :meth:`rewind`, but returns the world at a given tick, independently of clients.

        Args:
            tick: the tick; a fraction means a time between two ticks. The newest tick is :attr:`tick`.

        Raises:
            GhostError: nothing is recorded: see :meth:`remember`.
            ValueError: the tick is not a finite number.
        """
    @property
    def judgements(self) -> Judgements:
        """The judgements recorded by :meth:`Past.judge <tickwire.predict.Past.judge>`, such as hits. The newest
        judgement is last: see :class:`tickwire.predict.Judgements`.
        """
    def __contains__(self, ghost: object, /) -> bool: ...

@final
class Latency:
    """The parts of the time from a key press to another player's screen, in seconds: see :attr:`Client.latency`.
    The figures assume that the other player has the same :attr:`line` and :attr:`view` as this client.
    """

    @property
    def line(self) -> float:
        """The round trip, including the waits for the client's next frame and the server's next tick."""
    @property
    def lead(self) -> float:
        """The time by which inputs are ahead of the server's clock. It covers the trip to the server, jitter,
        losses, and the wait for a tick. 0.0 if the protocol has no inputs.
        """
    @property
    def view(self) -> float:
        """The time for which :meth:`ClientWorld.view` delays states, so that the next state arrives before the view
        needs it.
        """
    @property
    def total(self) -> float:
        """The sum: ``lead + line / 2 + view``."""

@final
class Clock:
    """A client's estimate of its server's time: see :attr:`Client.clock`.

    The time is unknown until packets have arrived in both directions, a round trip and five ticks after the connection is
    up. The clock then runs within a few percent of the server's rate, and never backwards. All attributes raise
    ValueError if the protocol has no ``tick_rate``. See ``docs/time.md``.
    """

    @property
    def tick(self) -> float | None:
        """The server's tick now, with its fraction; None while the time is unknown."""
    @property
    def input_tick(self) -> int | None:
        """The tick of an input that is sent now; None while the time is unknown."""
    @property
    def error(self) -> float | None:
        """The likely error of ``tick``, in seconds, if packets take equally long both ways; None while unknown."""
    @property
    def settled(self) -> bool:
        """Whether ``tick`` has converged to the server's tick."""
    @property
    def rate(self) -> float:
        """The protocol's ticks per second."""
    @property
    def speed(self) -> float:
        """The clock's speed relative to ``rate``: about 1, except while the clock corrects an error."""
    @property
    def drift(self) -> float:
        """The fraction by which the server's clock runs faster than this machine's clock; negative if slower."""
    @property
    def lead(self) -> float | None:
        """The number of ticks by which inputs are ahead of ``tick``, not counting :attr:`delay`; None while unknown."""
    @property
    def delay(self) -> int:
        """Ticks added to :attr:`lead`, so that inputs take effect later and the client predicts fewer ticks: see
        :meth:`Client.set_inputs`.
        """
    @property
    def server_tick(self) -> int | None:
        """The newest tick that the server has reported; None before the first report."""
    @property
    def acked(self) -> int | None:
        """The newest tick whose input the server has acked; None before the first ack."""
    @property
    def restarts(self) -> int:
        """How often the clock restarted because its error was above a quarter of a second."""

@final
class InputColumns:
    """Columns about the inputs of the current tick, with one row per client: see :meth:`Inputs.columns`."""

    @property
    def slot(self) -> memoryview:
        """The client's :attr:`ClientHandle.slot`."""
    @property
    def client(self) -> memoryview:
        """The :attr:`ClientHandle.number` of the client."""
    @property
    def here(self) -> memoryview:
        """Whether the input for this tick has arrived."""
    @property
    def present(self) -> memoryview:
        """Whether the client has an input for this tick: the tick's own input, or a repeated earlier input."""
    @property
    def seen_tick(self) -> memoryview:
        """The tick that the player saw; 0 if the client reported no tick."""
    @property
    def seen_fraction(self) -> memoryview:
        """The fraction of ``seen_tick``, in units of 1/256."""
    def __len__(self) -> int: ...

@final
class InputStatus:
    """Counts of a client's inputs: see :meth:`Inputs.status`."""

    @property
    def state(self) -> Literal["here", "late", "missing"] | None:
        """``"here"``: the current tick's input arrived in time; ``"late"``: too late; ``"missing"``: not at all; None:
        before the first input.
        """
    @property
    def early(self) -> float | None:
        """The smoothed number of ticks by which inputs are early; negative if they are late. None before the first
        input.
        """
    @property
    def here(self) -> int:
        """Ticks whose input arrived in time."""
    @property
    def missing(self) -> int:
        """Ticks that ran without their input."""
    @property
    def repeated(self) -> int:
        """Ticks that ran without their input and repeated the previous input instead."""
    @property
    def late(self) -> int:
        """Inputs that arrived after their tick had run without them."""
    @property
    def duplicates(self) -> int:
        """Copies of inputs that had arrived already."""
    @property
    def far_ahead(self) -> int:
        """Inputs refused because they were for ticks more than 128 ticks after the current tick."""
    @property
    def far_behind(self) -> int:
        """Inputs refused because they were for ticks at least 128 ticks before the current tick."""
    @property
    def skipped(self) -> int:
        """Inputs that weren't used, because the server flushed their tick without calling ``receive`` before."""

@final
class Inputs:
    """The clients' inputs for a server's current tick: see :attr:`Server.inputs`. A tick lasts from ``receive`` until
    the first ``receive`` after a flush. Iterating yields ``(client, input)`` for each client that has ever sent an
    input. A missing input is replaced by the newest earlier input or by None: see :meth:`set_policy`. All methods raise
    ValueError if the protocol has no ``inputs``. See ``docs/time.md``.
    """

    @property
    def tick(self) -> int:
        """The number of the current tick. The next flush sends this number. Clients and server use the same numbers."""
    def __iter__(self) -> Iterator[tuple[ClientHandle, Any]]: ...
    def __len__(self) -> int: ...
    def get(self, client: ClientHandle, /) -> Any:
        """Returns a client's input for the current tick. A missing input is replaced by the newest earlier input or by
        None: see :meth:`set_policy`.
        """
    def seen(self, client: ClientHandle, /) -> float | None:
        """Returns the tick, with its fraction, that the player saw when giving the input for the current tick. None
        if the client didn't report it (:meth:`Client.set_seen`). A client can lie, so refuse ticks that are too old.
        """
    def status(self, client: ClientHandle, /) -> InputStatus:
        """Returns counts of a client's inputs."""
    def set_policy(self, missing: Literal["repeat", "none"], *, ticks: int = 8) -> None:
        """Sets the replacement for a missing input.

        Args:
            missing (Literal['repeat', 'none']): ``"repeat"``: the newest earlier input; ``"none"``: None.
            ticks (int, default 8): the maximum number of consecutive ticks that repeat an input, 1 to 64. In later
                ticks, the input is None.

        Raises:
            ValueError: an argument is out of its bounds.
        """
    def columns(self) -> InputColumns:
        """Returns columns about the current tick's inputs, with one row per client."""
    def rows(self) -> Any:
        """Returns the current tick's inputs as rows of their class, in the order of :meth:`columns`. With NumPy, this
        is an array. If a client has no input for this tick, not even a repeated input, its row is all zeros.
        """

@final
class ClientWorld:
    """The ghosts that a server shows to a client, as objects and as columns. Only the server changes them. See
    :attr:`Client.world`.
    """

    def objects(self, class_: type[_T], /) -> list[_T]:
        """Returns the ghosts of a class as objects, in the order of their rows in :meth:`arrays`.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def arrays(self, class_: type, /) -> GhostArrays:
        """Returns the ghosts of a class as read-only columns. Each :meth:`Client.receive` updates the columns in
        place to the newest tick.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def owns(self, ghost: object, /) -> bool:
        """Whether this client owns a ghost.

        Raises:
            GhostError: the ghost is gone, or belongs to another client's world.
        """
    def mine(self, class_: type[_T], /) -> _T | None:
        """Returns this client's own ghost of a class, such as its avatar; None if there is none. If the client owns
        several, returns the ghost in the first row. To find the others, check ghosts with :meth:`owns`.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def others(self, class_: type[_T], /) -> list[_T]:
        """Returns all ghosts of a class except this client's own, in the order of their rows in :meth:`arrays`.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def row(self, ghost: object, /) -> int:
        """Returns the row of a ghost in the columns of its class.

        Raises:
            GhostError: the ghost is gone, or belongs to another client's world.
        """
    def id_of(self, ghost: object, /) -> int | None:
        """Returns the number by which this client knows a ghost, for use in a message to the server. Returns None
        after a :class:`Connected`, until the world of the new connection arrives. :meth:`World.ghost_of` turns the
        number into the ghost.

        Raises:
            GhostError: the ghost is gone, or belongs to another client's world.
            ClosedError: the client is closed.
        """
    def ghost_of(self, class_: type[_T], number: int, /) -> _T | None:
        """Returns the ghost for a number from the server's :meth:`World.id_of`. Returns None if the ghost is gone or
        hasn't arrived yet: see :meth:`awaits`.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def awaits(self, class_: type, number: int, /) -> bool:
        """Returns True if the ghost with this number hasn't arrived yet.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def view(self) -> WorldView:
        """Returns the world to draw now, between two ticks of the server. Each call updates the same object.

        If the protocol has inputs, each input reports this view's tick to the server from now on, as with
        :meth:`Client.set_seen`.

        Raises:
            ClosedError: the client is closed.
        """
    def set_playout(
        self, *, delay: float | None = None, extrapolation: float = 0.0, rest: float = 0.0
    ) -> None:
        """Sets how far the view stays behind the server.

        Args:
            delay: seconds between a state's arrival and its display. The delay must be 1 to 62 ticks long, because
                states are kept for 64 ticks. The protocol's ``tick_rate`` sets the length of a tick. Without a
                ``tick_rate``, a tick lasts 1/60 s. None: chosen by measuring the connection.
            extrapolation: seconds for which ``hermite`` properties continue to move beyond the newest tick.
            rest: seconds up to which a ghost counts as moving between two states, so the view interpolates between
                them. Set ``rest`` if updates exceed the budget, because the server then updates moving ghosts only
                every few ticks. Without ``delay``, the delay is longer by this time less a tick, so that the next
                state arrives before it is needed.

        Raises:
            ValueError: an argument is out of its bounds.
            ClosedError: the client is closed.
        """
    def __contains__(self, ghost: object, /) -> bool: ...

@final
class WorldView:
    """The world at a time between two ticks. :meth:`ClientWorld.view` returns the view to draw. On a server,
    :meth:`World.rewind` uses a view to show the world as a client saw it.

    The view interpolates each property between two states of the ghost, by the property's interpolation rule. A ghost
    appears at the tick in which it spawned, and disappears at the tick in which it left. The next call of
    :meth:`ClientWorld.view` changes the columns in place.
    """

    def arrays(self, class_: type, /) -> GhostArrays:
        """Returns the ghosts of a class as columns, at the view's tick. The next call of :meth:`ClientWorld.view`
        changes the columns in place.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def objects(self, class_: type[_T], /) -> list[_T]:
        """Returns the ghosts of a class that exist at the view's tick, as objects, in the order of their rows in
        :meth:`arrays`. Strings, bytes and lists have their newest value.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def mine(self, class_: type[_T], /) -> _T | None:
        """Returns this client's own ghost of a class, at the view's tick; None if there is none. If the client predicts
        this ghost, draw :meth:`Prediction.seen` instead.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def others(self, class_: type[_T], /) -> list[_T]:
        """Returns all ghosts of a class at the view's tick except this client's own, in the order of their rows.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """
    def owns(self, ghost: object, /) -> bool:
        """Whether this client owns a ghost of this view.

        Raises:
            GhostError: the ghost isn't in this view.
        """
    def ghost(self, ghost: _T, /) -> _T | None:
        """Returns a ghost at the view's tick; None if the ghost doesn't exist at this tick. Strings, bytes and lists
        have their newest value.

        Raises:
            GhostError: the ghost was never in a world, or is in another world.
        """
    def at(self, tick: float, /) -> WorldView:
        """Moves the view to another tick, with its fraction, until the next :meth:`ClientWorld.view`. A tick
        beyond the newest tick means the newest tick. Returns the view.

        Raises:
            ValueError: ``tick`` isn't a valid tick.
            GhostError: the view belongs to a server and shows only one tick.
        """
    @property
    def tick(self) -> float:
        """The view's tick, with its fraction; 0 before anything has arrived. A client reports this tick to the server
        with its inputs.
        """
    @property
    def delay(self) -> float:
        """Seconds between a state's arrival and its display; 0 on a server."""
    @property
    def period(self) -> float:
        """The measured length of a server tick, in seconds; 0 on a server."""
    @property
    def stood(self) -> float:
        """The total seconds for which the view stood still because updates were late; 0 on a server. The wait for a
        late update is added when the update arrives.
        """
    def shown(self, class_: type, /) -> Any:
        """Returns a column of bool for a rewound world: True for the rows that were shown to the client. After
        :meth:`World.rewind_to`, all rows with a ghost are True.

        Raises:
            GhostError: the class is not among the protocol's ghosts.
        """

@final
class Inbox(Generic[_M, _W, _L, _V]):
    """Everything that arrived since the last tick.

    A client's :class:`Connected` arrives at least a tick before everything else from this client. Its
    :class:`Disconnected` arrives at least a tick after everything else. So you can read the lists in any order.
    Iterating yields events, messages and values of latest channels::

        for client, what in inbox:  # on a client: for what in inbox
            match what:
                case tw.Connected(): ...
                case Chat(text): ...
                case tw.Disconnected(): ...
    """

    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @property
    def events(self) -> list[_V]:
        """Events about connections, such as :class:`Connected`, in order; on a :class:`Peer`, about players."""
    @property
    def messages(self) -> list[_M]:
        """``(client, message)`` pairs on a server, messages on a client; in order within a channel. Values of
        latest channels are in :attr:`latest` instead.
        """
    @property
    def latest(self) -> list[_L]:
        """Values of latest channels: ``(client, key, message)`` on a server, ``(key, message)`` on a client."""
    @property
    def payloads(self) -> list[Any]:
        """Payloads: ``(client, channel, data)`` on a server, ``(channel, data)`` on a client."""
    @property
    def missed(self) -> list[Any]:
        """Counts of messages that never arrived on redundant channels: ``(client, channel, count)`` on a server,
        ``(channel, count)`` on a client.
        """
    @property
    def chunks(self) -> list[ReceivedChunk]:
        """Complete chunks with verified hashes, in the order in which the other side sent them."""
    @property
    def chunk_failures(self) -> list[Any]:
        """Incoming chunks that failed: ``(client, label, error)`` on a server, ``(label, error)`` on a client. The
        error is a text that gives the reason. Chunks that this program cancelled aren't listed.
        """
    @property
    def ghosts(self) -> list[GhostSpawned | GhostChanged | GhostOwned | GhostLinked | GhostDespawned]:
        """Events of a client's ghosts: first spawns and despawns in order, then changes. Classes in
        :attr:`Tuning.columns` have no events. Empty on a server.
        """
    @property
    def notifications(self) -> Notifications:
        """Delivery reports for payloads, and for messages sent with ``notify=True`` (:meth:`Server.send`). Each such
        payload or message is reported exactly once; when a connection ends, its remaining messages are reported as
        lost.
        """
    @property
    def has_calls(self) -> bool:
        """Whether this inbox has calls that haven't run yet."""
    def run_calls(self, before: int | None = None) -> int:
        """Runs the calls (see docs/calls.md) that haven't run yet, in order of arrival. Returns how many ran. Calls
        also run automatically, in order with the messages, when you iterate over the inbox or use
        :meth:`Handlers.dispatch`. The remaining calls run when this tick is flushed. If the body of this tick's
        ``with`` raises an exception, the remaining calls run in the next tick instead. The inbox of an earlier tick has
        no calls left.

        Args:
            before (int | None, default None): only the calls that arrived before ``messages[before]``; None: all.
        """
    def columns(self, class_: type, /) -> Any:
        """Returns all messages of a class, read-only, with one message per row. The class must be listed in
        :attr:`Tuning.columns`. With NumPy this is a structured array, otherwise :class:`Rows`.

        Each row begins with columns about the message: ``client`` (see :meth:`Server.client`; 0 on a client),
        ``received`` (when its packet arrived, in seconds since the endpoint's start), ``slot``, ``key`` (on latest
        channels), ``sequence`` (of its packet), ``missed`` (on redundant channels: how many messages directly before
        this message never arrived) and ``channel``. The class's fields follow. If the class has a field with the same
        name as an added column, the added column's name gets an underscore at the end.

        Raises:
            ValueError: the class is delivered as objects.
        """
    def __iter__(self) -> Iterator[_W]:
        """Yields events, messages, and the messages of :attr:`latest`, in this order. On a server, each item is a
        pair ``(client, what)``. A tick with a client's :class:`Connected` or :class:`Disconnected` has nothing else
        from this client.
        """

@final
class Tick(Generic[_M, _W, _L, _V]):
    """A context manager that receives on entry and sends on exit. It sends even if the body raises, so that
    connections stay alive.
    """

    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    def __enter__(self) -> Inbox[_M, _W, _L, _V]: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Tuning:
    """Settings of an endpoint's socket, thread and hooks. Several servers, clients and peers can share one ``Tuning``.

    Args:
        driver (Literal['polled', 'thread'], default 'polled'): ``"polled"``: the socket is read and written when
            the game ticks. ``"thread"``: a native thread also serves connections between ticks and while the game
            is busy: it acks packets, resends messages and sends chunks. A tick's messages still go out together, at
            its flush.
        bind (AddressLike | None, default None): the local address of a client or peer; None: any free port. A
            server has its own ``address`` argument instead.
        timeout (int | None, default None): seconds of silence that end a connection or an attempt to connect; None: 10
            seconds, or 5 seconds between peers. :meth:`Client.connect` and peers use this timeout (peers: at most 60
            seconds). Connect tokens have their own timeout. A server ends a connection after 300 seconds of silence at
            the latest.
        mtu (int, default 1280): bytes of the largest IP packets to send, all headers included, 1,126 to 1,280.
            Lower it for paths that silently drop larger packets. Each side sets it for its own packets.
        stalled_timeout (float | None, default 5.0): seconds, 0.1 to 3,600. A server disconnects a client if a reliable
            channel to this client is full and delivers nothing for this long. The server also disconnects the client if
            a full channel doesn't deliver its whole queue within twelve times this long. Both sides see
            :attr:`DisconnectReason.STALLED`, and ``counters["connections.stalled"]`` counts these clients. None: no
            client is disconnected for this reason.
        priority (PriorityHook | None, default None): a function that is called once per flush with the
            :class:`Candidates` of all receivers, if there are any. It returns a buffer of float32
            scores, one per candidate, or None to keep the order. Within a channel, messages with higher scores are
            sent first. If the hook fails, returns anything else, or itself sends or receives, messages are sent in
            their usual order. :meth:`Server.flush`, or the ``with`` of :meth:`Server.tick`, then raises an
            exception.
        factory (MessageFactory | None, default None): an object whose ``create`` method makes the objects for received
            messages, for example to reuse them; None: Tickwire makes a new object for each message.
        columns (Sequence[type] | None, default None): classes delivered as columns instead of objects: messages
            (:meth:`Inbox.columns`) and, on a client, ghosts (:class:`GhostArrays`).

    Raises:
        ValueError: an argument is out of its bounds.
    """

    def __new__(
        cls,
        *,
        driver: Literal["polled", "thread"] = "polled",
        bind: AddressLike | None = None,
        timeout: int | None = None,
        mtu: int = 1280,
        stalled_timeout: float | None = 5.0,
        priority: PriorityHook | None = None,
        factory: MessageFactory | None = None,
        columns: Sequence[type] | None = None,
    ) -> Tuning: ...
    @property
    def driver(self) -> str:
        """``"polled"`` or ``"thread"``."""
    @property
    def bind(self) -> Address | None:
        """The local address, if one was given."""
    @property
    def timeout(self) -> int | None:
        """Seconds of silence that end a connection; None: the default."""
    @property
    def mtu(self) -> int:
        """Bytes of the largest IP packets to send."""
    @property
    def stalled_timeout(self) -> float | None:
        """Seconds for which a reliable channel may be full; None: no limit."""
    @property
    def priority(self) -> PriorityHook | None:
        """The function that scores queued messages."""
    @property
    def factory(self) -> MessageFactory | None:
        """The factory that makes the message objects."""
    @property
    def columns(self) -> list[type]:
        """The classes that are delivered as columns."""
    def replace(self, **changes: Any) -> Tuning:
        """A copy with other values for the named arguments."""

@final
class Transfers:
    """Limits for the chunks that an endpoint accepts, and the rate of the chunks that it sends.

    Args:
        memory (int | None, default None): the maximum memory, in bytes, for the chunks that arrive on one connection,
            including chunks that the game hasn't read yet. Larger chunks are refused; 0 refuses all. None: 0 on a
            server, 64 MiB on a client and between peers.
        directory (str | PathLike[str] | None, default None): a directory in which received chunks are stored as files,
            instead of in memory. Files are named by their hash in hex. The directory is created if missing. Unfinished
            files are kept. If the same sender sends the same content again, even after a restart of this program, only
            the missing part is sent.
        file_limit (int | None, default None): the maximum size of a file in bytes, at most ``directory_limit``; None:
            1 GiB. Larger chunks are refused.
        directory_limit (int | None, default None): the maximum size of all files together, in bytes. For an unfinished
            file, only the 4 KiB blocks that have arrived count, but on Windows its full size counts. None: eight times
            ``file_limit``. Chunks that don't fit are refused.
        congestion (Congestion | None, default None): the rate limit for sent chunks; None: the defaults of
            :class:`Congestion`.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    def __new__(
        cls,
        *,
        memory: int | None = None,
        directory: str | PathLike[str] | None = None,
        file_limit: int | None = None,
        directory_limit: int | None = None,
        congestion: Congestion | None = None,
    ) -> Transfers: ...
    @property
    def memory(self) -> int | None:
        """The maximum memory for the chunks that arrive on one connection, in bytes, if given."""
    @property
    def directory(self) -> Path | None:
        """The directory for received files; None: chunks are received into memory."""
    @property
    def file_limit(self) -> int | None:
        """The maximum size of a file in bytes, if given."""
    @property
    def directory_limit(self) -> int | None:
        """The maximum size of all files together, in bytes, if given."""
    @property
    def congestion(self) -> Congestion | None:
        """The rate limit for sent chunks, if given."""

@final
class Debugging:
    """Settings for finding mistakes: strict errors, bad networks, captures.

    Args:
        strict (bool, default False): whether methods raise instead of returning a false result:
            :class:`StaleClientError` if the client in the arguments has left, :class:`NotConnectedError` on a client
            without a connection, and :class:`ChannelFullError` if a channel is full.
        conditions (Conditions | None, default None): a simulated bad network for everything that this side sends. Set
            it on both sides. All connections of this side share the rate and losses, as on a single link.
        seed (int | None, default None): the seed that makes the random events of ``conditions`` repeatable; None: a
            random seed.
        capture (Capture | str | PathLike[str] | None, default None): a :class:`Capture` for all datagrams, or the
            path of a new capture. If writing fails, the error is logged and the game continues.
        slow_hook (float, default 0.005): seconds after which a hook is logged as slow, at most once a second. The
            tick waits for hooks. :attr:`Server.counters` has the times of all hooks.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    def __new__(
        cls,
        *,
        strict: bool = False,
        conditions: Conditions | None = None,
        seed: int | None = None,
        capture: Capture | str | PathLike[str] | None = None,
        slow_hook: float = 0.005,
    ) -> Debugging: ...
    @property
    def strict(self) -> bool:
        """Whether methods raise instead of returning a false result."""
    @property
    def conditions(self) -> Conditions | None:
        """The simulated bad network for everything sent."""
    @property
    def seed(self) -> int | None:
        """The seed of the conditions, if given."""
    @property
    def capture(self) -> Capture | str | PathLike[str] | None:
        """The capture, or its path."""
    @property
    def slow_hook(self) -> float:
        """Seconds after which a hook is logged as slow."""
    def replace(self, **changes: Any) -> Debugging:
        """A copy with other values for the named arguments."""

@final
class Access:
    """Rules that decide which clients may connect to a server.

    Args:
        admission (AdmissionHook | None, default None): a function that decides about new clients before the game sees
            them. Each :meth:`Server.receive` calls it with a list of new clients (:class:`ClientHandle`). The function
            returns None, or the clients to refuse, as handles or client ids. To give reasons, it returns a mapping from
            these clients to texts, which become the ``detail`` of their :class:`Disconnected`. Refused clients are
            disconnected with :attr:`DisconnectReason.KICKED`, and the game sees no event, message, chunk or file from
            them. Clients that connect while the hook runs wait for the next :meth:`Server.receive`. If the hook raises,
            all clients in its list are refused, and :meth:`Server.receive` raises the exception.
        public_addresses (Sequence[AddressLike] | None, default None): the server's addresses in connect tokens,
            if they differ from its ``address``.
        max_token_lifetime (int | None, default None): the longest ``expires_in`` that the login backend uses, in
            seconds. Tokens that live longer are refused. Tokens that were made before the server's start are always
            refused, except as ``clock_skew`` allows. Tokens from other libraries don't contain their time of creation.
            With this setting, such tokens are refused if they could be from before the server's start.
        clock_skew (int, default 0): the largest difference between the clocks of backend and server, in seconds.
            Tokens are accepted for this long after they expire. Tokens that were made up to this long before the
            server's start are accepted too.
        replace_duplicates (bool, default True): whether a client whose ``client_id`` is already connected replaces
            the old connection. The old connection then ends with :attr:`DisconnectReason.REPLACED` on both sides,
            before the new :class:`Connected`. False: the new client waits until the old client has left or timed
            out.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    def __new__(
        cls,
        *,
        admission: AdmissionHook | None = None,
        public_addresses: Sequence[AddressLike] | None = None,
        max_token_lifetime: int | None = None,
        clock_skew: int = 0,
        replace_duplicates: bool = True,
    ) -> Access: ...
    @property
    def admission(self) -> AdmissionHook | None:
        """The function that decides about new clients."""
    @property
    def public_addresses(self) -> list[Address] | None:
        """The server's addresses in connect tokens, if given."""
    @property
    def max_token_lifetime(self) -> int | None:
        """The longest lifetime of accepted tokens, in seconds; None: any."""
    @property
    def clock_skew(self) -> int:
        """The largest difference between the clocks of backend and server, in seconds."""
    @property
    def replace_duplicates(self) -> bool:
        """Whether a client's newer connection replaces the older connection."""

@final
class Rendezvous:
    """Settings for finding players and for reaching them behind NATs.

    Args:
        address (AddressLike | None, default None): a rendezvous server (:class:`RendezvousServer`). It gives the
            game a code (:attr:`Peer.code`, :attr:`Server.code`) with which players behind NATs join. None: players
            join by address only.
        title (str, default ''): the game's name in the rendezvous server's list, up to 48 bytes; '': not listed.
        relaying (bool, default True): whether this player forwards packets between players who can't reach each other,
            at up to 128 KiB a second, and accepts packets that others forward. If the :attr:`Peer.master` sets False,
            new players who can't reach all players are refused. A :class:`Server` never forwards packets.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    def __new__(
        cls, address: AddressLike | None = None, *, title: str = "", relaying: bool = True
    ) -> Rendezvous: ...
    @property
    def address(self) -> Address | None:
        """The rendezvous server, if given."""
    @property
    def title(self) -> str:
        """The game's name in the rendezvous server's list."""
    @property
    def relaying(self) -> bool:
        """Whether this player forwards packets for other players."""

@final
class Server(Generic[_P]):
    """A dedicated server on one UDP socket.

    Args:
        address (AddressLike): the address to listen on; port 0 picks a free port (see :attr:`address`). ``[::]``
            listens on all IPv6 and IPv4 addresses.
        protocol (Protocol): the protocol of both sides.
        key (bytes | None, default None): the 32-byte private key shared with the login backend. None: development mode.
            This mode has a public key, so anyone can connect. At an address other than loopback, the mode causes a
            warning.
        max_clients (int, default 64): the maximum number of clients, 1 to 65,536.
        access (Access | None, default None): the rules for connecting.
        rendezvous (Rendezvous | None, default None): a rendezvous server, which gives this game server a :attr:`code`.
            With the code, clients reach the game server through NATs. None: clients reach the game server by address
            only.
        network (SimulatedNetwork | None, default None): a simulated network with virtual time instead of a socket.
        transfers (Transfers | None, default None): limits for chunks.
        tuning (Tuning | None, default None): settings of the socket, the thread and the hooks.
        debugging (Debugging | None, default None): strict errors, bad networks, captures.

    Raises:
        OSError: the address can't be bound, or the ``directory`` of :class:`Transfers` can't be created; see errno.
        ValueError: an argument is out of its bounds.
    """

    def __new__(
        cls,
        address: AddressLike,
        protocol: Protocol[_P],
        *,
        key: bytes | None = None,
        max_clients: int = 64,
        access: Access | None = None,
        rendezvous: Rendezvous | None = None,
        network: SimulatedNetwork | None = None,
        transfers: Transfers | None = None,
        tuning: Tuning | None = None,
        debugging: Debugging | None = None,
    ) -> Server[_P]: ...
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @property
    def address(self) -> Address:
        """The address that the server listens on, with the actual port."""
    @property
    def code(self) -> str | None:
        """The code with which clients reach this server (:class:`tickwire.peers.Code`); None until the
        rendezvous server has answered.
        """
    @property
    def code_error(self) -> str | None:
        """The reason why there is no :attr:`code`, or why the code may have become invalid; None without a problem.
        Tickwire repeats the request for a code.
        """
    @property
    def protocol(self) -> Protocol[_P]:
        """The protocol of both sides."""
    @property
    def network(self) -> SimulatedNetwork | None:
        """The simulated network of this server; None on a real network."""
    @property
    def world(self) -> World:
        """The server's ghosts: see :class:`World`."""
    @property
    def inputs(self) -> Inputs:
        """The clients' inputs for the current tick."""
    @property
    def max_clients(self) -> int:
        """The maximum number of clients."""
    @property
    def clients(self) -> list[ClientHandle]:
        """The connected clients, in the order of :attr:`ClientHandle.slot`."""
    @property
    def closed(self) -> bool:
        """Whether the server is closed. False while it lingers: see :meth:`close`."""
    @property
    def counters(self) -> dict[str, int]:
        """All counters since the start, by name. Every dropped datagram is counted."""
    def tick(
        self,
    ) -> Tick[tuple[ClientHandle, _P], tuple[ClientHandle, _P | Event], tuple[ClientHandle, int, _P]]:
        """``with server.tick() as inbox:`` receives on entry and sends on exit."""
    def receive(
        self,
    ) -> Inbox[tuple[ClientHandle, _P], tuple[ClientHandle, _P | Event], tuple[ClientHandle, int, _P]]:
        """The first half of a tick: receives everything that has arrived."""
    def flush(self) -> None:
        """The second half of a tick: sends everything queued.

        Raises:
            Exception: the :class:`PriorityHook` failed. The messages were sent anyway, in their usual order.
        """
    def pump(self) -> None:
        """Keeps connections alive without delivering messages, for example while the game loads. Messages wait for
        the next :meth:`receive`. When a channel's ``receive_window`` (:func:`reliable_ordered`) is full, the sender
        waits too, so no reliable message is lost.
        """
    def _step(self) -> float:
        """Does the work between ticks: receiving, acks, keep-alives, resends, chunks. Returns the seconds until the
        next call is due. Event loops also call it when the socket is readable. Messages wait for :meth:`receive`, as
        with :meth:`pump`.

        Raises:
            OSError: the socket failed.
            ClosedError: the server is closed.
        """
    @property
    def _moves_chunks(self) -> bool:
        """Whether :meth:`_step` should be called each millisecond between ticks, because chunks are in flight."""
    @property
    def _has_news(self) -> bool:
        """Whether the next :meth:`receive` returns anything: events, messages, notifications, chunks or ended
        transfers.
        """
    def _fileno(self) -> int:
        """The file descriptor for event loops: call :meth:`_step` when it is readable. On Linux it isn't the socket. If
        about 16,000 datagrams or more arrive per second, it becomes readable only every two milliseconds, so that each
        :meth:`_step` reads many datagrams.

        Raises:
            ValueError: there is no socket to watch: a thread owns it, or the network is simulated.
            OSError: the process has no descriptor to spare.
        """
    @overload
    def send(  # type: ignore[overload-overlap]
        self,
        client: ClientHandle | Iterable[ClientHandle] | _Array,
        message: Batch,
        channel: int | str | None = None,
        *,
        key: int | _Array = 0,
        tag: int | _Array = 0,
        notify: bool = False,
    ) -> list[int]:
        """Queues a message for the next flush. Returns :attr:`SendResult.SENT`, which is true, or a false result:
        ``GONE`` (the client has left) or ``FULL`` (the client doesn't ack or read, or this tick has sent too much).
        With a false result, nothing was queued. With :class:`Debugging` ``(strict=True)``, ``send`` raises an exception
        instead of returning a false result.

        With a :class:`~tickwire.columns.Batch`, queues all rows for one client, or one row for each of several
        clients. Returns the indices of the rows that were not queued, because the row's client has left or its
        channel is full. A client listed twice gets both rows. If any row is invalid, nothing is queued.

        Args:
            client (ClientHandle | Iterable[ClientHandle] | array): the receiver. A batch can also have one receiver for
                each row: an iterable of handles, or a buffer of their :attr:`ClientHandle.number` (uint64).
            message (message | Batch): an object of a class of the protocol, or a batch.
            channel (int | str | None, default None): index or name; None: the channel that the class names, or else the
                protocol's first channel.
            key (int | array, default 0): the key, on a latest channel. For a batch, one number for all rows, or a
                buffer of uint32, one per row.
            tag (int | array, default 0): your own 32-bit number, repeated in :class:`Notifications` and in
                :class:`Candidates`. For a batch, like ``key``.
            notify (bool, default False): whether ``inbox.notifications`` reports the message as delivered or lost.

        Raises:
            FieldError: a field's value is out of its range; for a batch, the error names the first wrong row.
            UnregisteredMessageError: the class is not in the protocol.
            MessageTooLargeError: the message has more bytes than the channel allows.
            ChannelError: the channel doesn't exist, doesn't have this key, or is for payloads.
            ValueError: the client belongs to another server, or a number is out of its bounds.
            TypeError: the rows don't have the class's format.
            ClosedError: the server is closed.
            StaleClientError, ChannelFullError: with ``strict=True``, instead of ``GONE`` and ``FULL``.
        """
    @overload
    def send(
        self,
        client: ClientHandle,
        message: _P,
        channel: int | str | None = None,
        *,
        key: int = 0,
        tag: int = 0,
        notify: bool = False,
    ) -> SendResult: ...
    def send_payload(self, client: ClientHandle, data: bytes, channel: int | str, *, tag: int) -> SendResult:
        """Queues bytes on a :func:`payload` channel for the next flush. ``inbox.notifications`` reports each payload
        once, with its ``tag``, as delivered or lost, in packet order. Returns the same results as :meth:`send`.

        Args:
            client (ClientHandle): the receiver.
            data (bytes): the payload.
            channel (int | str): a :func:`payload` channel, by index or name.
            tag (int): your own 32-bit number, repeated in :class:`Notifications` and in :class:`Candidates`.

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
        """Queues a large block of data for a client. The data is sent in slices, as fast as :class:`Congestion` allows.
        Messages have priority, and lost slices are resent. The client gets the complete, verified chunk in
        ``inbox.chunks``. Chunks arrive in the order of these calls. If the client has left, or if 256 chunks for this
        client are waiting, the returned transfer is already over and has an :attr:`~Transfer.error`.

        Args:
            client (ClientHandle): the receiver.
            data (Chunk | Buffer | str | PathLike[str]): bytes (not copied), another contiguous buffer (copied
                once), or a path. This call reads and hashes all data; a file is read again while it is sent. To
                send the same data to several clients, make one :class:`Chunk`.
            label (str, default ''): your own name for the chunk, up to 64 bytes of UTF-8.
            burst (bool, default False): whether to send the whole chunk within a round trip, instead of starting slowly
                on a link that isn't measured yet. A slow link then drops packets, including packets with messages. Use
                a burst for loading screens, with chunks up to 256 KiB.
            ask_first (bool, default False): whether to ask the receiver first which content it already has. Content
                that is already in the receiver's :attr:`Transfers.directory` isn't sent. For other content, asking
                takes one more round trip.

        Raises:
            StaleClientError, ChannelFullError: with :class:`Debugging` ``(strict=True)``, instead of a failed transfer.
            ChannelError: the protocol has no channel for chunks.
            MessageTooLargeError: the chunk is 2**40 bytes or more, or above 256 KiB with ``burst``.
            ValueError: the label is too long, or the buffer is not contiguous.
            TypeError: ``data`` is neither a buffer nor a path.
            OSError: the file can't be read; errno and filename say why.
            ClosedError: the server is closed.
        """
    def incoming_chunks(self, client: ClientHandle) -> list[IncomingChunk]:
        """The chunks that are arriving from a client, or that wait for free space (:class:`Transfers`); empty if the
        client has left.
        """
    def broadcast(
        self,
        message: _P | Batch,
        channel: int | str | None = None,
        *,
        clients: Iterable[ClientHandle] | _Array | None = None,
        exclude: ClientHandle | None = None,
        key: int | _Array = 0,
        tag: int | _Array = 0,
        notify: bool = False,
    ) -> list[ClientHandle]:
        """Queues a message, or the rows of a batch, for every connected client or for ``clients``. Each message or
        row is encoded only once. Returns the clients that left in this tick, and the clients whose channel didn't
        have enough space. Clients that left earlier are skipped.

        Args:
            message, channel, key, tag, notify: as for :meth:`send`.
            clients (Iterable[ClientHandle] | array | None, default None): the receivers, by handle or number; None: all
                connected clients.
            exclude (ClientHandle | None, default None): a client that doesn't get the message.

        Raises:
            Exception: as :meth:`send`, but never because a client has left or a channel is full.
        """
    @overload
    def call(
        self, client: ClientHandle, call: ClientCall[_A, Any], /, *args: _A.args, **kwargs: _A.kwargs
    ) -> SendResult: ...
    @overload
    def call(
        self,
        client: Iterable[ClientHandle],
        call: ClientCall[_A, Any],
        /,
        *args: _A.args,
        **kwargs: _A.kwargs,
    ) -> list[ClientHandle]:
        """Makes a client run a call. Only a call declared with :data:`tickwire.to_all` can go to several clients. For
        one client, returns the same results as :meth:`send`, or ``HIDDEN`` if a ghost in the arguments isn't sent to
        the client. For several clients, returns the clients that are gone or whose channel is full.

        Args:
            client (ClientHandle | Iterable[ClientHandle]): the client or clients that run the call, or a
                :class:`Room`.
            call (ClientCall): a call of the protocol; its arguments follow.

        Raises:
            TypeError: the arguments don't fit the call's parameters.
            FieldError: an argument is out of its range.
            UnregisteredMessageError: the protocol doesn't have this call.
            ValueError: servers run this call, or the call is for one client but ``client`` names several.
            GhostError: a ghost in the arguments isn't in this world.
            StaleClientError, ChannelFullError: with :class:`Debugging` ``(strict=True)``, instead of a false result for one client.
        """
    def call_all(
        self, call: ClientCall[_A, Any], /, *args: _A.args, **kwargs: _A.kwargs
    ) -> list[ClientHandle]:
        """Makes all clients run a call. If the arguments contain ghosts, only the clients that get all these ghosts
        run the call. Returns the clients whose channel was full.

        Args:
            call (ClientCall): a call declared with :data:`tickwire.to_all`; its arguments follow.

        Raises:
            Exception: as :meth:`call`.
        """
    def request(
        self, client: ClientHandle, call: ClientCall[_A, _R], /, *args: _A.args, **kwargs: _A.kwargs
    ) -> Request[_R]:
        """Makes a client run a call, and returns a request for its result. The request fails if no reply can arrive
        any more. At most 256 requests to one client wait at a time.

        Args:
            client (ClientHandle): the client that runs the call.
            call (ClientCall): a call of the protocol; its arguments follow.

        Raises:
            TypeError: the call is declared with ``-> None``, or the arguments don't fit its parameters.
            FieldError, UnregisteredMessageError, ValueError, GhostError: as :meth:`call`.
            StaleClientError, ChannelFullError: with :class:`Debugging` ``(strict=True)``, instead of a failed request.
        """
    def implement(
        self, call: ServerCall[_A, _R], function: Callable[Concatenate[ClientHandle, _A], _R], /
    ) -> None:
        """Sets the function that the server runs for a call.

        Args:
            call (ServerCall): a call of the protocol.
            function (Callable): a function with the declared function's parameters, not a coroutine function.
        """
    def room(self) -> Room:
        """Makes an empty :class:`Room`, a group of this server's clients."""
    def forget(self, channel: int | str, key: int | None = None) -> int:
        """Drops the values that a :func:`latest` channel with ``retain=True`` keeps for new clients. Clients that
        have a value keep it. Returns the number of dropped values.

        Args:
            channel (int | str): index or name.
            key (int | None, default None): the key of the value to drop; None: all keys.

        Raises:
            ChannelError: there is no such channel.
            ValueError: the key is negative or above 2**32 - 1.
        """
    def client(self, number: int, /) -> ClientHandle | None:
        """The client with this :attr:`ClientHandle.number`, for example from the ``client`` column of
        :meth:`Inbox.columns`; None if the client has left.
        """
    def disconnect(self, client: ClientHandle, reason: str | None = None, *, linger: float = 0.0) -> bool:
        """Ends one connection; the client sees :attr:`DisconnectReason.KICKED`. Never blocks. Returns False if the
        connection is already over.

        Without ``linger``, the connection ends at once. Messages that aren't acked yet are lost, even if they were
        flushed. With ``linger``, the following ticks continue to send until nothing is left to deliver: the client has
        acked every reliable message and the newest values of :func:`latest` channels, and every other packet has
        arrived or is known to be lost. For the game, the client leaves at once: its handle is stale, its messages are
        dropped, and its chunks end. When the connection is over, after ``linger`` seconds at the latest, the
        :class:`Disconnected` event arrives and the slot becomes free.

        Args:
            client (ClientHandle): the client to disconnect.
            reason (str | None, default None): a text for the client's :attr:`Disconnected.detail`, 1 to 128 bytes in
                UTF-8. In protocols with ``yojimbo=``, it must be None.
            linger (float, default 0.0): the longest time to continue sending, in seconds, 0 to 60.

        Raises:
            StaleClientError: with :class:`Debugging` ``(strict=True)``, the client has left already.
            ValueError: an argument is out of its bounds.
        """
    def stats(self, client: ClientHandle) -> ConnectionStats:
        """Statistics of a client's connection; the last values if the client has left."""
    @property
    def channel_stats(self) -> ChannelSnapshot:
        """Counts for each channel of each connected client."""
    def set_budget(
        self,
        bytes_per_second: float,
        burst_bytes: float,
        client: ClientHandle | None = None,
        *,
        adaptive: bool = True,
    ) -> bool:
        """Sets the budget for messages to a client, or to every client, present and future. The default is 1,250,000
        bytes a second, in bursts of up to 65,536 bytes. Chunks don't use the budget; they have their own rate
        (:class:`Congestion`). Returns False if the client has left.

        Args:
            bytes_per_second (float): the rate, including UDP/IP headers.
            burst_bytes (float): the most bytes sent at once after a pause, for example by one flush.
            client (ClientHandle | None, default None): one client; None: every client, present and future.
            adaptive (bool, default True): whether to send less while the link is congested. A link is congested if
                round trips grow by 100 ms or more, if a fifth or more of the packets are lost, or if acks stop. A
                window then limits the bytes in flight, as in TCP (RFC 5681) and LEDBAT (RFC 6817). The window is at
                least 8 KiB, and most games never have that many bytes in flight. False: only the budget limits sending.

        Raises:
            ValueError: an argument is out of its bounds. Nothing is changed.
            StaleClientError: with :class:`Debugging` ``(strict=True)``, the client has left.
        """
    def set_congestion(self, congestion: Congestion, client: ClientHandle | None = None, /) -> bool:
        """Changes the rate limit for chunks to a client, or to every client, present and future. The measurements of
        the link are kept. Returns False if the client has left.

        Args:
            congestion (Congestion): the rate limit for chunks.
            client (ClientHandle | None, default None): one client; None: every client, present and future.

        Raises:
            StaleClientError: with :class:`Debugging` ``(strict=True)``, the client has left.
        """
    def close(self, *, linger: float = 0.0, reason: str | None = None, wait: bool = True) -> None:
        """Ends all connections (clients see :attr:`DisconnectReason.SERVER_CLOSED`) and closes the socket. A server
        that belongs to a :class:`Peer` closes with its peer instead.

        Without ``linger``, the server closes at once. Messages that aren't acked yet are lost, as with
        :meth:`disconnect`, and so are messages queued since the last flush. With ``linger``, the queue is flushed
        without the :class:`PriorityHook`, and each connection ends as :meth:`disconnect` describes. Meanwhile, no
        client can connect, sending raises :class:`ClosedError`, and arriving messages are dropped. A second call
        without ``linger``, or Ctrl-C, closes the server at once.

        Args:
            linger (float, default 0.0): the longest time to continue sending, in seconds, 0 to 60.
            reason (str | None, default None): a text for the clients, as for :meth:`disconnect`.
            wait (bool, default True): whether to block until the server is closed, while other Python threads run.
                If False, continue to call :meth:`tick` or :meth:`pump` until the server is :attr:`closed`. On a
                simulated network, the call never blocks.

        Raises:
            ValueError: an argument is out of its bounds, or a peer owns this server.
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
    """A group of a server's clients to send to: a match, a lobby, a team.

    A client can be in several rooms. A client that disconnects leaves all its rooms, during the
    :meth:`Server.receive` that returns its :class:`Disconnected` event. You don't have to close rooms.
    """

    def __new__(cls, server: Server[_P]) -> Room[_P]: ...
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @property
    def server(self) -> Server[_P]:
        """The server whose clients can be in this room."""
    def add(self, client: ClientHandle, /) -> bool:
        """Adds a client. On :func:`latest` channels with ``retain=True``, the client gets the newest value that was
        broadcast to the room for each key. Returns False if the client is already in the room or has left the server.

        Raises:
            ValueError: the client belongs to another server.
            ClosedError: the server is closed.
        """
    def discard(self, client: ClientHandle, /) -> bool:
        """Removes a client. The client keeps the values that it has received. Returns False if the client isn't in
        the room.

        Raises:
            ValueError: the client belongs to another server.
        """
    def clear(self) -> None:
        """Removes all clients."""
    def broadcast(
        self,
        message: _P | Batch,
        channel: int | str | None = None,
        *,
        exclude: ClientHandle | None = None,
        key: int | _Array = 0,
        tag: int | _Array = 0,
        notify: bool = False,
    ) -> list[ClientHandle]:
        """Queues a message, or the rows of a batch, for all clients in the room. Each message or row is encoded only
        once. Returns the clients whose channel didn't have enough space.

        Args:
            message, channel, key, tag, notify: as for :meth:`Server.send`.
            exclude (ClientHandle | None, default None): a client that doesn't get the message.

        Raises:
            Exception: as :meth:`Server.broadcast`.
        """
    def forget(self, channel: int | str, key: int | None = None) -> int:
        """Drops the values that a channel keeps for new members of the room: see :meth:`Server.forget`.

        Args:
            channel (int | str): index or name.
            key (int | None, default None): the key of the value to drop; None: all keys.
        """
    def __contains__(self, client: object, /) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[ClientHandle]:
        """The current members, in the order of their slots."""

@final
class Client(Generic[_P]):
    """A client that connects to one server with a connect token.

    Args:
        protocol (Protocol): the protocol of both sides.
        token (ConnectToken): the token from the login backend.
        reconnect (Reconnect | None, default None): settings for reconnecting, with fresh tokens, when the connection is
            lost or can't be made. The client stays the same object; its :attr:`state` is ``RECONNECTING`` until the
            next attempt. Its events are a :class:`Reconnecting` before each attempt, a :class:`Connected` after each
            success, and one :class:`Disconnected` at the end. Its :attr:`world` doesn't change until the next
            connection. The client gives up at once if it was kicked, if the same player connected elsewhere, or if the
            protocols differ.
        ghosts (dict[type, type] | None, default None): maps ghost classes of the protocol to the subclasses that this
            client uses instead.
        network (SimulatedNetwork | None, default None): a simulated network with virtual time instead of a socket.
        transfers (Transfers | None, default None): limits for chunks.
        tuning (Tuning | None, default None): settings of the socket, the thread and the hooks.
        debugging (Debugging | None, default None): strict errors, bad networks, captures.

    Raises:
        OSError: the socket, or the directory of ``transfers``, can't be created.
        ValueError: the token has another protocol id, or another client of this process used it; or an argument is
            out of its bounds.
    """

    def __new__(
        cls,
        protocol: Protocol[_P],
        token: ConnectToken,
        *,
        reconnect: Reconnect | None = None,
        ghosts: dict[type, type] | None = None,
        network: SimulatedNetwork | None = None,
        transfers: Transfers | None = None,
        tuning: Tuning | None = None,
        debugging: Debugging | None = None,
    ) -> Client[_P]: ...
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @staticmethod
    def connect(
        address: AddressLike | Code,
        protocol: Protocol[_Q],
        *,
        key: bytes | None = None,
        client_id: int | None = None,
        reconnect: Reconnect | None = None,
        ghosts: dict[type, type] | None = None,
        network: SimulatedNetwork | None = None,
        transfers: Transfers | None = None,
        tuning: Tuning | None = None,
        debugging: Debugging | None = None,
    ) -> Client[_Q]:
        """Connects in development mode: the client makes its own token, with a public key that everyone has, or with
        ``key``. Don't use this mode in production, because anyone with the key can connect as any player. An
        address other than loopback causes a warning.

        Args:
            address (AddressLike | Code): the server's address with its port, or its code at a rendezvous server
                (:class:`tickwire.peers.Code`).
            protocol (Protocol): the protocol of both sides.
            key (bytes | None, default None): the server's 32-byte private key; None: the public key of development
                mode.
            client_id (int | None, default None): the client's id; None: a random id.
            reconnect (Reconnect | None, default None): settings for reconnecting, with the same ``client_id``: see
                :class:`Client`.
            ghosts (dict[type, type] | None, default None): maps ghost classes of the protocol to the subclasses that
                this client uses instead.
            network (SimulatedNetwork | None, default None): a simulated network with virtual time instead of a socket.
            transfers (Transfers | None, default None): limits for chunks.
            tuning (Tuning | None, default None): settings of the socket, the thread and the hooks.
            debugging (Debugging | None, default None): strict errors, bad networks, captures.
        """
    @staticmethod
    def local(
        server: Server[_Q],
        *,
        client_id: int | None = None,
        ghosts: dict[type, type] | None = None,
        transfers: Transfers | None = None,
        tuning: Tuning | None = None,
        debugging: Debugging | None = None,
    ) -> Client[_Q]:
        """Makes a client in the server's own process, such as the client of the player who hosts the game. Its
        packets pass through memory, so it has no socket, loses no packets, and needs no token or key. For the
        server, it is a client like any other: it has a slot and a handle, and the :class:`AdmissionHook` accepts or
        refuses it.

        Tick the server first, then its local clients. The clients then receive what the server sent in the same tick.
        The client has the server's protocol, simulated network and time. The server's :attr:`Debugging.conditions`
        don't apply to it.

        Args:
            server (Server): the server, in the same process.
            client_id (int | None, default None): the client's id; None: a random id.
            ghosts (dict[type, type] | None, default None): maps ghost classes of the protocol to the subclasses that
                this client uses instead.
            transfers (Transfers | None, default None): limits for chunks.
            tuning (Tuning | None, default None): the settings; ``driver`` and ``bind`` must have their defaults.
            debugging (Debugging | None, default None): strict errors and captures; ``conditions`` must be None.

        Raises:
            ClosedError: the server is closed.
            ValueError: an argument is out of its bounds.
        """
    @property
    def state(self) -> ClientState:
        """The state of the connection."""
    @property
    def connected(self) -> bool:
        """Whether the connection is up."""
    @property
    def silence(self) -> float:
        """Seconds since anything arrived from the server; 0.0 unless connected. On a working connection, packets
        arrive at least ten times a second. So show "connection lost" while the client isn't :attr:`connected`, and
        after one or two seconds of silence.
        """
    @property
    def quality(self) -> int:
        """The quality of the connection from 0 to 4, for example to show as an icon. The worst of round trip, jitter
        and loss decides. 4: up to 100 ms, 20 ms and 1 %. 3: up to 180 ms, 45 ms and 4 %. 2: up to 300 ms, 100 ms and 10
        %. 1: worse. 0: nothing has arrived for a second, or there is no connection.
        """
    @property
    def latency(self) -> Latency:
        """The parts of the time from a key press on this machine to another player's screen."""
    @property
    def closed(self) -> bool:
        """Whether the client is closed. False while it lingers: see :meth:`close`."""
    @property
    def disconnect_reason(self) -> DisconnectReason | None:
        """The reason why the connection ended or couldn't be made; None before the end, and while the client
        reconnects.
        """
    @property
    def disconnect_detail(self) -> str | None:
        """The text that the server gave as the reason: see :attr:`Disconnected.detail`. None without a text."""
    @property
    def address(self) -> Address:
        """The local address."""
    @property
    def server_address(self) -> Address:
        """The server's address."""
    @property
    def id(self) -> int | None:
        """This client's id, which is :attr:`ClientHandle.id` on the server. None before the client has its first token,
        and if its token was made by another implementation of netcode.
        """
    @property
    def slot(self) -> int | None:
        """This client's slot on the server; None before it is connected."""
    @property
    def protocol(self) -> Protocol[_P]:
        """The protocol of both sides."""
    @property
    def network(self) -> SimulatedNetwork | None:
        """The simulated network of this client; None on a real network."""
    @property
    def world(self) -> ClientWorld:
        """The ghosts that the server shows to this client."""
    @property
    def clock(self) -> Clock:
        """The estimate of the server's time."""
    def send_input(self, input: object, /) -> range:
        """Sends an input; call it once a tick. Returns the ticks that the input is for: all ticks since the previous
        input, up to :attr:`Clock.input_tick`. This is usually one tick, or several if the client ticks less often than
        the server. The range is empty if the tick already has an input or the time isn't known yet. Presses
        (:data:`press`) count only in the first of these ticks. If the range is empty, they count with the next input;
        without a connection, they are dropped.
        After a gap of more than 16 ticks, the ticks in the gap have no input. The next flush sends the input. Later
        packets repeat the input: see ``redundancy`` of :meth:`set_inputs`. If the packets with a press are lost, later
        packets repeat the press for up to 31 ticks, if that many inputs fit into a packet.

        Args:
            input (message): an object of the protocol's class of inputs.

        Raises:
            FieldError: a value is out of its range; the error names its field.
            TypeError: the input is of another class.
            ValueError: the protocol has no inputs.
        """
    def set_seen(self, tick: float, /) -> None:
        """Sets the server tick at which the player now sees other players. Inputs report this tick to the server,
        in steps of 1/256.

        Args:
            tick (float): the tick, with its fraction, 0 to 4,294,967,295.

        Raises:
            ValueError: the tick is out of its bounds, or the protocol has no ``tick_rate``.
        """
    def tick_of(self, ghost: object, /) -> int | None:
        """The newest server tick for which this client knows the state of a ghost that it owns. None if there is no
        such tick yet, or if this client doesn't own the ghost.

        Raises:
            GhostError: the ghost is gone, or belongs to another client's world.
            ValueError: the protocol has no ``tick_rate``.
        """
    def set_inputs(
        self, *, delay: int = 0, min_lead: float = 0.0, max_lead: float = 1.0, redundancy: int = 3
    ) -> None:
        """Sets how inputs are sent, starting with the next input.

        Args:
            delay (int, default 0): ticks added to :attr:`Clock.lead`, 0 to 64: inputs take effect later.
                The client predicts this many fewer ticks.
            min_lead (float, default 0.0): the minimum of :attr:`Clock.lead`, given in seconds, 0 to 10.
            max_lead (float, default 1.0): the maximum of :attr:`Clock.lead`, given in seconds, ``min_lead`` to 10.
            redundancy (int, default 3): the number of packets that carry each input, 1 to 16. An input that is acked
                earlier isn't repeated further. After losses, more packets carry an input, as long as it can reach the
                server before its tick.

        Raises:
            ValueError: an argument is out of its bounds.
        """
    @property
    def counters(self) -> dict[str, int]:
        """All counters since the start, by name. Every dropped datagram is counted."""
    def tick(self) -> Tick[_P, _P | Event, tuple[int, _P]]:
        """``with client.tick() as inbox:`` receives on entry and sends on exit."""
    def receive(self) -> Inbox[_P, _P | Event, tuple[int, _P]]:
        """The first half of a tick: receives everything that has arrived."""
    def flush(self) -> None:
        """The second half of a tick: sends everything queued.

        Raises:
            Exception: the :class:`PriorityHook` failed. The messages were sent anyway, in their usual order.
        """
    def pump(self) -> None:
        """Keeps the connection alive without delivering messages, like :meth:`Server.pump`."""
    def _step(self) -> float:
        """Serves the connection between ticks, for event loops, like :meth:`Server._step`."""
    @property
    def _moves_chunks(self) -> bool:
        """Whether :meth:`_step` should be called each millisecond between ticks, because chunks are in flight."""
    @property
    def _has_news(self) -> bool:
        """Whether the next :meth:`receive` returns anything: events, messages, notifications, chunks or ended
        transfers.
        """
    def _fileno(self) -> int:
        """The file descriptor for event loops, like :meth:`Server._fileno`."""
    @overload
    def send(  # type: ignore[overload-overlap]
        self,
        message: Batch,
        channel: int | str | None = None,
        *,
        key: int | _Array = 0,
        tag: int | _Array = 0,
        notify: bool = False,
    ) -> list[int]:
        """Queues a message for the server, like :meth:`Server.send`. The false results are
        :attr:`SendResult.NOT_CONNECTED` (there is no connection) and ``FULL`` (the server doesn't ack or read). For
        a batch, returns the indices of the rows that weren't queued.

        Args:
            message, channel, key, tag, notify: as for :meth:`Server.send`.

        Raises:
            NotConnectedError, ChannelFullError: with ``strict=True``, instead of a false result.
        """
    @overload
    def send(
        self,
        message: _P,
        channel: int | str | None = None,
        *,
        key: int = 0,
        tag: int = 0,
        notify: bool = False,
    ) -> SendResult: ...
    def call(self, call: ServerCall[_A, Any], /, *args: _A.args, **kwargs: _A.kwargs) -> SendResult:
        """Makes the server run a call. Returns the same results as :meth:`send`.

        Args:
            call (ServerCall): a call of the protocol; its arguments follow, without the :class:`ClientHandle`.

        Raises:
            TypeError: the arguments don't fit the call's parameters.
            FieldError: an argument is out of its range.
            UnregisteredMessageError: the protocol doesn't have this call.
            ValueError: clients run this call.
            GhostError: a ghost in the arguments is gone.
            NotConnectedError, ChannelFullError: with :class:`Debugging` ``(strict=True)``, instead of a false result.
        """
    def request(self, call: ServerCall[_A, _R], /, *args: _A.args, **kwargs: _A.kwargs) -> Request[_R]:
        """Makes the server run a call, and returns a request for its result. The request fails if no reply can
        arrive any more. At most 256 requests wait at a time.

        Args:
            call (ServerCall): a call of the protocol; its arguments follow, without the :class:`ClientHandle`.

        Raises:
            TypeError: the call is declared with ``-> None``, or the arguments don't fit its parameters.
            FieldError, UnregisteredMessageError, ValueError, GhostError: as :meth:`call`.
            NotConnectedError, ChannelFullError: with :class:`Debugging` ``(strict=True)``, instead of a failed request.
        """
    def implement(self, call: ClientCall[_A, _R], function: Callable[_A, _R], /) -> None:
        """Sets the function that this client runs for a call.

        Args:
            call (ClientCall): a call of the protocol.
            function (Callable): a function with the declared function's parameters, not a coroutine function.
        """
    def send_payload(self, data: bytes, channel: int | str, *, tag: int) -> SendResult:
        """Queues bytes for the server, like :meth:`Server.send_payload`. Returns the same results as :meth:`send`.

        Args:
            data (bytes): the payload.
            channel (int | str): a :func:`payload` channel, by index or name.
            tag (int): your own 32-bit number, repeated in :class:`Notifications` and in :class:`Candidates`.
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
        """Queues a large block of data for the server, like :meth:`Server.send_chunk`. Without a connection, the
        transfer fails at once. Servers accept no chunks by default: see :class:`Transfers`.

        Args:
            data (Chunk | Buffer | str | PathLike[str]): bytes, another contiguous buffer, a path, or a
                :class:`Chunk`.
            label (str, default ''): your own name for the chunk, up to 64 bytes of UTF-8.
            burst (bool, default False): whether to send the whole chunk within a round trip instead of starting
                slowly; at most 256 KiB.
            ask_first (bool, default False): whether to ask the receiver first which content it already has.

        Raises:
            NotConnectedError, ChannelFullError: with :class:`Debugging` ``(strict=True)``, instead of a failed
                transfer.
        """
    def incoming_chunks(self) -> list[IncomingChunk]:
        """The chunks that are arriving from the server, or that wait for free space (:class:`Transfers`)."""
    def set_budget(self, bytes_per_second: float, burst_bytes: float, *, adaptive: bool = True) -> None:
        """Sets the budget for messages, like :meth:`Server.set_budget`. You may call it before the client is
        connected.

        Args:
            bytes_per_second (float): the rate, including UDP/IP headers.
            burst_bytes (float): the most bytes sent at once after a pause.
            adaptive (bool, default True): whether to send less while the link is congested.
        """
    def set_congestion(self, congestion: Congestion, /) -> None:
        """Changes the rate limit for chunks, like :meth:`Server.set_congestion`. You may call it before the client
        is connected.

        Args:
            congestion (Congestion): the rate limit for chunks.
        """
    @property
    def stats(self) -> ConnectionStats:
        """Statistics of the connection: zeros before the first connection, the last values after the end."""
    def close(self, *, linger: float = 0.0, reason: str | None = None, wait: bool = True) -> None:
        """Disconnects and closes the socket.

        Without ``linger``, the client closes at once, and messages that aren't acked yet are lost, even if they
        were flushed. With ``linger``, the queue is flushed. The connection then ends when nothing is left to
        deliver, as :meth:`Server.disconnect` describes, but after ``linger`` seconds at the latest. In all
        other respects, this method is like :meth:`Server.close`.

        Args:
            linger (float, default 0.0): the longest time to continue sending, in seconds, 0 to 60.
            reason (str | None, default None): a text for the server, 1 to 128 bytes in UTF-8.
            wait (bool, default True): whether to block until the client is closed.
        """
    def __enter__(self) -> Client[_P]: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Player:
    """A player of a game between peers. All events and lists of a :class:`Peer` have the same object for the same
    player. A later player with the same number has another object.
    """

    @property
    def number(self) -> int:
        """The player's number in the game, 0 to 15, the same on all peers. When a player leaves, its number can be
        reused.
        """
    @property
    def name(self) -> str:
        """The name that the player chose: any text of at most 32 bytes."""
    @property
    def client_id(self) -> int:
        """The :attr:`ClientHandle.id` of this player's client on the game's server. The id stays the same when the
        host changes.
        """
    @property
    def address(self) -> Address | None:
        """The player's address as the :attr:`Peer.master` sees it; None for this peer itself."""
    @property
    def data(self) -> Any:
        """Any object that the game keeps for this player; None until it is set."""
    @data.setter
    def data(self, data: Any, /) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class PlayerPath:
    """The path to a player: see :meth:`Peer.path`."""

    __match_args__ = ("kind", "through")
    @property
    def kind(self) -> Literal["direct", "punched", "relayed"]:
        """The kind of path. ``'direct'``: to the player's own address; ``'punched'``: through NATs; ``'relayed'``:
        through another player or a relay server.
        """
    @property
    def through(self) -> Player | None:
        """The player who forwards the packets; None if no player does."""

@final
class PlayerJoined:
    """A player has joined the game. A new peer also gets this event for itself and for all players in the game."""

    __match_args__ = ("player",)
    @property
    def player(self) -> Player:
        """The new player."""

@final
class PlayerLeft:
    """A player has left the game."""

    __match_args__ = ("player", "reason")
    @property
    def player(self) -> Player:
        """The player who left."""
    @property
    def reason(self) -> LeaveReason:
        """The reason, the same on all peers."""

@final
class MasterChanged:
    """Another player has become the :attr:`Peer.master`, because the previous master is gone."""

    __match_args__ = ("player",)
    @property
    def player(self) -> Player:
        """The new master."""

@final
class HostChanged:
    """Another player hosts the game now. All peers get this event, including the new host."""

    __match_args__ = ("host", "age")
    @property
    def host(self) -> Player:
        """The new host."""
    @property
    def age(self) -> float | None:
        """The age, in seconds, of the saved world from which the new host continues. If no player had a saved world,
        the age is None and the new world is empty.
        """

@final
class Started:
    """The game starts. The event arrives in the first tick after the countdown. A player who joins later gets it
    after joining.
    """

    __match_args__ = ("seed", "at")
    @property
    def seed(self) -> int:
        """64 random bits, the same on all peers."""
    @property
    def at(self) -> float:
        """The start of the game, in seconds of :attr:`Peer.time`. It is the same moment on all peers, to within a
        few milliseconds.
        """
    @property
    def players(self) -> tuple[int, ...]:
        """The numbers of the players at the start, the same on all peers, even if some players have left since."""

@final
class GameEnded:
    """This peer has left the game, or couldn't join. The peer gets no event after this one."""

    __match_args__ = ("reason",)
    @property
    def reason(self) -> LeaveReason:
        """The reason why this peer left or couldn't join."""

@final
class Peer(Generic[_P]):
    """One player's side of a game without a dedicated server. A peer uses one UDP port. :meth:`host` and :meth:`join`
    make peers.

    Every player is connected to every other player. One player, at first the host, is the master, which admits
    players and starts the game. When the master is gone, the players elect a new master automatically.
    """

    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @staticmethod
    def host(
        protocol: Protocol[_Q],
        *,
        name: str = "",
        players: int = 4,
        key: bytes | None = None,
        ghosts: dict[type, type] | None = None,
        rendezvous: Rendezvous | None = None,
        network: SimulatedNetwork | None = None,
        transfers: Transfers | None = None,
        tuning: Tuning | None = None,
        debugging: Debugging | None = None,
    ) -> Peer[_Q]:
        """Hosts a game. This peer is the game's first player and its master.

        Args:
            protocol (Protocol): the protocol of all peers, made with ``peers=True``.
            name (str, default ''): the player's name, up to 32 bytes in UTF-8.
            players (int, default 4): the maximum number of players, including this one, 1 to 16.
            key (bytes | None, default None): 32 secret bytes that all peers of the game share; None: development
                mode, in which anyone can join.
            ghosts (dict[type, type] | None, default None): subclasses for the ghosts of :attr:`client`, as in
                :meth:`Client.connect`.
            rendezvous (Rendezvous | None, default None): a rendezvous server and NAT settings; None: players join
                by address only.
            network (SimulatedNetwork | None, default None): a simulated network with virtual time instead of a socket.
            transfers (Transfers | None, default None): limits for chunks.
            tuning (Tuning | None, default None): settings of the socket, the thread and the hooks.
            debugging (Debugging | None, default None): strict errors, bad networks, captures.

        Raises:
            OSError: the address can't be bound.
            ValueError: an argument is out of its bounds.
        """
    @staticmethod
    def join(
        address: AddressLike,
        protocol: Protocol[_Q],
        *,
        name: str = "",
        key: bytes | None = None,
        ghosts: dict[type, type] | None = None,
        rendezvous: Rendezvous | None = None,
        network: SimulatedNetwork | None = None,
        transfers: Transfers | None = None,
        tuning: Tuning | None = None,
        debugging: Debugging | None = None,
    ) -> Peer[_Q]:
        """Joins a game. The first events report the result: :class:`PlayerJoined` for each player including this
        one, or :class:`GameEnded` with the reason.

        Args:
            address (AddressLike): the address of any player in the game. With ``rendezvous``: the code of any
                player.
            protocol (Protocol): the protocol of all peers, made with ``peers=True``.
            name (str, default ''): the player's name, up to 32 bytes in UTF-8.
            key (bytes | None, default None): the 32 secret bytes that all peers of the game share; None: development
                mode, in which anyone can join.
            ghosts (dict[type, type] | None, default None): as in :meth:`host`.
            rendezvous (Rendezvous | None, default None): the rendezvous server that knows the code in ``address``.
            network (SimulatedNetwork | None, default None): a simulated network with virtual time instead of a socket.
            transfers (Transfers | None, default None): limits for chunks.
            tuning (Tuning | None, default None): settings of the socket, the thread and the hooks.
            debugging (Debugging | None, default None): strict errors, bad networks, captures.

        Raises:
            OSError: the address can't be bound.
            ValueError: an argument is out of its bounds.
        """
    @property
    def address(self) -> Address:
        """The local address, with the actual port."""
    @property
    def code(self) -> str | None:
        """The code with which other players join; None until the rendezvous server has answered."""
    @property
    def code_error(self) -> str | None:
        """The reason why there is no :attr:`code`, or why the code may have become invalid; None without a problem.
        Tickwire repeats the request for a code.
        """
    @property
    def network(self) -> SimulatedNetwork | None:
        """The simulated network of this peer; None on a real network."""
    @property
    def protocol(self) -> Protocol[_P]:
        """The protocol of all peers."""
    @property
    def players(self) -> list[Player]:
        """The players in the game, including this one, in the order of their numbers. The list changes in the tick
        that reports :class:`PlayerJoined` or :class:`PlayerLeft`.
        """
    @property
    def me(self) -> Player | None:
        """This player; None until it is in the game."""
    @property
    def master(self) -> Player | None:
        """The master; None until this peer is in the game."""
    @property
    def is_master(self) -> bool:
        """Whether this peer is the master."""
    @property
    def server(self) -> Server[_P] | None:
        """The game's server, if this player hosts the game. Tick both the server and the peer. None on the other peers,
        and on a host that has lost contact with too many players. Always None if the protocol has no ghosts, calls,
        inputs or tick rate.
        """
    @property
    def client(self) -> Client[_P]:
        """This player's client for the game's server. It stays the same object when another player becomes the host.
        While this player is the host, the client's packets pass through memory.

        Raises:
            ValueError: the protocol has no ghosts, calls, inputs or tick rate.
        """
    @property
    def ended(self) -> LeaveReason | None:
        """The reason why this peer is out of the game; None while it is in the game."""
    @property
    def time(self) -> float:
        """Seconds since this peer was made. :attr:`Started.at` uses this clock."""
    @property
    def closed(self) -> bool:
        """Whether the peer is closed. False while it lingers: see :meth:`close`."""
    @property
    def counters(self) -> dict[str, int]:
        """All counters since the start, by name. Every dropped datagram is counted."""
    def tick(
        self,
    ) -> Tick[tuple[Player, _P], tuple[Player | None, _P | PeerEvent], tuple[Player, int, _P], PeerEvent]:
        """``with peer.tick() as inbox:`` receives on entry and sends on exit."""
    def receive(
        self,
    ) -> Inbox[tuple[Player, _P], tuple[Player | None, _P | PeerEvent], tuple[Player, int, _P], PeerEvent]:
        """The first half of a tick: receives everything that has arrived."""
    def flush(self) -> None:
        """The second half of a tick: sends everything queued.

        Raises:
            Exception: the :class:`PriorityHook` failed. The messages were sent anyway, in their usual order.
        """
    def pump(self) -> None:
        """Keeps connections alive without delivering messages, like :meth:`Server.pump`."""
    def _step(self) -> float:
        """Serves the connections between ticks, for event loops, like :meth:`Server._step`."""
    @property
    def _moves_chunks(self) -> bool:
        """Whether :meth:`_step` should be called each millisecond between ticks, because chunks are in flight."""
    @property
    def _has_news(self) -> bool:
        """Whether the next :meth:`receive` returns anything: events, messages, notifications, chunks or ended
        transfers.
        """
    def _fileno(self) -> int:
        """The file descriptor for event loops, like :meth:`Server._fileno`."""
    def start(self, *, countdown: float = 1.0, seed: int | None = None, late_joining: bool = False) -> bool:
        """Starts the game for all players at the same moment. Returns False if this peer isn't the master, or if
        the game has started.

        Args:
            countdown (float, default 1.0): seconds until the start, 0 to 60. The packet that announces the start
                must reach all players in this time.
            seed (int | None, default None): the :attr:`Started.seed` that all players get; None: 64 random bits.
            late_joining (bool, default False): whether players may join after the start.

        Raises:
            ValueError: an argument is out of its bounds.
        """
    def kick(self, player: Player, /) -> bool:
        """Removes a player from the game. Returns False if this peer isn't the master, or if the player is gone or
        is already being removed.

        Args:
            player (Player): the player to remove.
        """
    def path(self, player: Player, /) -> PlayerPath | None:
        """The path to a player; None for this peer itself, and for a player who is gone.

        Args:
            player (Player): the other player.
        """
    @overload
    def send(  # type: ignore[overload-overlap]
        self,
        player: Player,
        message: Batch,
        channel: int | str | None = None,
        *,
        key: int | _Array = 0,
        tag: int | _Array = 0,
        notify: bool = False,
    ) -> list[int]:
        """Queues a message that the next flush sends to one player. Returns the same results as :meth:`Server.send`;
        for a batch, returns the indices of the rows that weren't queued.

        Args:
            player (Player): the receiver, any other player.
            message, channel, key, tag, notify: as for :meth:`Server.send`.

        Raises:
            Exception: as :meth:`Server.send`.
        """
    @overload
    def send(
        self,
        player: Player,
        message: _P,
        channel: int | str | None = None,
        *,
        key: int = 0,
        tag: int = 0,
        notify: bool = False,
    ) -> SendResult: ...
    def broadcast(
        self,
        message: _P | Batch,
        channel: int | str | None = None,
        *,
        key: int | _Array = 0,
        tag: int | _Array = 0,
        notify: bool = False,
    ) -> list[Player]:
        """Queues a message, or the rows of a batch, for all other players. Returns the players whose channel didn't
        have enough space.

        Args:
            message, channel, key, tag, notify: as for :meth:`Server.send`.

        Raises:
            Exception: as :meth:`Server.broadcast`.
        """
    def send_chunk(
        self,
        player: Player,
        data: Chunk | Buffer | str | PathLike[str],
        /,
        *,
        label: str = "",
        burst: bool = False,
        ask_first: bool = False,
    ) -> Transfer:
        """Queues a large block of data for one player, like :meth:`Server.send_chunk`.

        Args:
            player (Player): the receiver, any other player.
            data (Chunk | Buffer | str | PathLike[str]): bytes, another contiguous buffer, a path, or a :class:`Chunk`.
            label (str, default ''): your own name for the chunk, up to 64 bytes of UTF-8.
            burst (bool, default False): whether to send the whole chunk within a round trip instead of starting
                slowly; at most 256 KiB.
            ask_first (bool, default False): whether to ask the receiver first which content it already has.
        """
    def stats(self, player: Player, /) -> ConnectionStats:
        """Statistics of the connection to a player; zeros once the player is gone.

        Args:
            player (Player): the other player.
        """
    def close(self, *, linger: float = 0.0, wait: bool = True) -> None:
        """Leaves the game and closes the socket. The other players are notified at once, and elect a new master if
        this peer was the master. A host first saves the world, and waits up to two seconds until the players who
        can host next have received the world; a second call doesn't wait. In all other respects, this method
        is like :meth:`Client.close`.

        Args:
            linger (float, default 0.0): the longest wait for the delivery of queued messages, in seconds, 0 to 60.
            wait (bool, default True): whether to block until the peer is closed.
        """
    def __enter__(self) -> Self: ...
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
    """A non-blocking UDP socket. Sending and receiving return at once, and only :meth:`wait` waits.

    An IPv6 socket carries only IPv6; for both families, bind two sockets. Transient errors (a closed port at the
    destination, an interrupted call, full buffers) are counted and never raised. Several threads can share a socket.

    Args:
        address: the address to bind; port 0 picks a free port (see :attr:`address`).
        send_buffer, receive_buffer: the requested buffer sizes, in bytes. The attributes have the granted sizes.
        max_datagram: the longest datagram in bytes, 1 to 65,507, which is UDP's limit. A longer datagram that
            arrives is dropped and counted as ``too_long``; sending a longer datagram raises ValueError. Over the
            internet, stay below 1,200: longer datagrams can be fragmented or lost.

    Raises:
        OSError: the address can't be bound; see errno.
        ValueError: an argument is out of its bounds.
        ClosedError: a method is called after the socket was closed.

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
        """The bound address, with the actual port."""
    @property
    def send_buffer(self) -> int:
        """The granted send buffer, in bytes. (On Linux, data can use only half of it; the other half is Linux's own
        overhead.)
        """
    @property
    def receive_buffer(self) -> int:
        """The granted receive buffer, in bytes."""
    @property
    def max_datagram(self) -> int:
        """The longest datagram that can be sent or received, in bytes."""
    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def counters(self) -> dict[str, int]:
        """All counters by name: ``sent``, ``sent_gso``, ``send_calls``, ``received``, ``received_gro``,
        ``receive_calls``, ``kernel_drops``, ``too_long``, ``send_buffer_full``, ``unreachable``, ``interrupted``,
        ``send_errors``, ``gso_refused``. ``server.counters`` uses the same names.
        """
    def send(self, to: AddressLike, data: bytes, /) -> bool:
        """Sends one datagram, which may be empty. Returns False if the datagram couldn't be sent now; treat this
        like a lost packet.

        Raises:
            OSError: the system can't send to this destination.
            ValueError: the data is longer than ``max_datagram``, or the destination has port 0 or another address
                family.
        """
    def send_many(self, datagrams: Iterable[tuple[AddressLike, bytes]], /) -> int:
        """Sends ``(to, data)`` pairs in order, and continues if a pair fails. Returns the number of sent pairs. The
        :attr:`counters` count the failures.

        Raises:
            ValueError: as :meth:`send`, for any pair. Nothing was sent.
        """
    def receive(self) -> tuple[bytes, Address] | None:
        """Receives one waiting datagram as ``(data, from)``; None if there is none.

        Raises:
            OSError: the socket failed.
        """
    def receive_many(self, bound: int = 1500, /) -> list[tuple[bytes, Address]]:
        """Receives at most ``bound`` waiting datagrams. Datagrams that the socket drops, such as too long ones, count
        toward this bound too, so a flood can't delay a tick. The remaining datagrams wait in the kernel.
        """
    def wait(self, timeout: float, /) -> bool:
        """Waits up to ``timeout`` seconds for a datagram. Returns True if a datagram or an error has arrived. Other
        Python threads run meanwhile, and signals are handled.

        Raises:
            ClosedError: another thread closed the socket.
        """
    def fileno(self) -> int:
        """The socket's file descriptor, for ``select``, ``selectors`` and ``asyncio``'s ``add_reader``."""
    def close(self) -> None:
        """Closes the socket. A second call does nothing."""
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
    """A writer of values that each take any number of bits. The order is little-endian, lowest bit first. The layout is
    the same as in the C++ library serialize 1.0.

    Raises:
        FieldError: a value is out of its bounds. Nothing was written.
        ValueError: a bound is invalid.

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
        """An integer from ``low`` to ``high``, both included, in the fewest bits for this range."""
    def uint128(self, value: int, /) -> None:
        """An unsigned integer of 128 bits."""
    def relative(self, value: int, previous: int, /) -> None:
        """An integer above ``previous``, at most 2**31 - 1. A smaller difference takes fewer bits."""
    def sequence_relative(self, value: int, previous: int, /) -> None:
        """A 16-bit sequence number after ``previous``. It may wrap around, but must not equal ``previous``."""
    def float32(self, value: float, /) -> None:
        """A float in 32 bits."""
    def float64(self, value: float, /) -> None:
        """A float in 64 bits."""
    def quantized(self, value: float, low: float, high: float, resolution: float, /) -> None:
        """A float from ``low`` to ``high`` in steps of about ``resolution``."""
    def fixed(self, value: float | Fraction | Decimal, low: int, high: int, fraction_bits: int, /) -> None:
        """A number from ``low`` to ``high`` with ``fraction_bits`` bits after the binary point."""
    def text(self, value: str, max_bytes: int, /) -> None:
        """Text of at most ``max_bytes`` bytes of UTF-8, without NUL. The length, and then :meth:`align`, come before
        the text.
        """
    def wide_text(self, value: str, max_units: int, /) -> None:
        """Text of at most ``max_units`` UTF-16 units, without NUL. Its length comes first. Each unit takes 32 bits."""
    def data(self, value: _Bytes, max_bytes: int, /) -> None:
        """At most ``max_bytes`` bytes. The number of bytes, and then :meth:`align`, come before the bytes."""
    def bytes(self, value: _Bytes, /) -> None:
        """At most 65,535 bytes. :meth:`align` comes first. The length isn't written, so the reader must know it."""
    def align(self) -> None:
        """Bits with the value 0, up to the next byte boundary."""
    @property
    def bits_written(self) -> int:
        """Bits written so far."""
    def to_bytes(self) -> _Bytes:
        """The bytes written so far. Unused bits of the last byte are zero. You may continue to write."""

@final
class BitMeasure:
    """A counter of the bits that a :class:`BitWriter` would write. It has the writer's methods for values. The result
    is an upper bound, because each :meth:`align` counts as 7 bits. Use this bound to plan packets.

    Raises:
        FieldError, ValueError: as for :class:`BitWriter`.

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
        """An integer from ``low`` to ``high``, both included, in the fewest bits for this range."""
    def uint128(self, value: int, /) -> None:
        """An unsigned integer of 128 bits."""
    def relative(self, value: int, previous: int, /) -> None:
        """An integer above ``previous``, at most 2**31 - 1. A smaller difference takes fewer bits."""
    def sequence_relative(self, value: int, previous: int, /) -> None:
        """A 16-bit sequence number after ``previous``. It may wrap around, but must not equal ``previous``."""
    def float32(self, value: float, /) -> None:
        """A float in 32 bits."""
    def float64(self, value: float, /) -> None:
        """A float in 64 bits."""
    def quantized(self, value: float, low: float, high: float, resolution: float, /) -> None:
        """A float from ``low`` to ``high`` in steps of about ``resolution``."""
    def fixed(self, value: float | Fraction | Decimal, low: int, high: int, fraction_bits: int, /) -> None:
        """A number from ``low`` to ``high`` with ``fraction_bits`` bits after the binary point."""
    def text(self, value: str, max_bytes: int, /) -> None:
        """Text of at most ``max_bytes`` bytes of UTF-8, without NUL. The length, and then :meth:`align`, come before
        the text.
        """
    def wide_text(self, value: str, max_units: int, /) -> None:
        """Text of at most ``max_units`` UTF-16 units, without NUL. Its length comes first. Each unit takes 32 bits."""
    def data(self, value: _Bytes, max_bytes: int, /) -> None:
        """At most ``max_bytes`` bytes. The number of bytes, and then :meth:`align`, come before the bytes."""
    def bytes(self, value: _Bytes, /) -> None:
        """At most 65,535 bytes. :meth:`align` comes first. The length isn't written, so the reader must know it."""
    def align(self) -> None:
        """Bits with the value 0, up to the next byte boundary."""
    @property
    def max_bits(self) -> int:
        """The most bits that a :class:`BitWriter` would write for the values so far."""

@final
class BitReader:
    """A reader for the output of a :class:`BitWriter`. Call the methods in the writer's order, with the same
    bounds. The reader makes all checks of the C++ library serialize 1.0. After the first error, all reads fail.

    Args:
        data: the writer's output.

    Raises:
        StreamError: the bytes are invalid. Drop the packet.
        ValueError: a bound is invalid.

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
        """The number of bits read so far. After an error, all bits count as read."""
    @property
    def bits_left(self) -> int:
        """The number of bits left to read; 0 after an error."""
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
        """A 16-bit sequence number after ``previous``. It may wrap around."""
    def float32(self) -> float:
        """A float in 32 bits."""
    def float64(self) -> float:
        """A float in 64 bits."""
    def quantized(self, low: float, high: float, resolution: float, /) -> float:
        """A float from ``low`` to ``high`` in steps of about ``resolution``."""
    def fixed(self, low: int, high: int, fraction_bits: int, /) -> Any:
        """A number from ``low`` to ``high`` with ``fraction_bits`` bits after the binary point. The result is
        a float, or a ``Fraction`` if numbers in this range can need more than 53 bits.
        """
    def text(self, max_bytes: int, /) -> str:
        """Text of at most ``max_bytes`` bytes of UTF-8."""
    def wide_text(self, max_units: int, /) -> str:
        """Text of at most ``max_units`` UTF-16 units."""
    def data(self, max_bytes: int, /) -> _Bytes:
        """At most ``max_bytes`` bytes; their number is read first."""
    def bytes(self, count: int, /) -> _Bytes:
        """Exactly ``count`` bytes."""
    def align(self) -> None:
        """Skips the bits up to the next byte boundary. These bits must be zero."""
    def finish(self) -> None:
        """Checks that everything was read. Only zero bits of the last byte may be left.

        Raises:
            StreamError: whole bytes, or bits that aren't zero, are left.
        """

@final
class Fragments:
    """Settings for splitting large packets in an :class:`AckEndpoint`. If a setting is None, the endpoint's ``profile``
    determines it.

    Args:
        above (int | None, default None): the largest payload, in bytes, that isn't split.
        size (int | None, default None): bytes of a fragment; must be equal at both ends.
        count (int | None, default None): the most fragments of a packet, up to 256; must be equal at both ends.
        reassembly_bytes (int | None, default None): the most bytes that all incomplete packets together may take.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    def __new__(
        cls,
        *,
        above: int | None = None,
        size: int | None = None,
        count: int | None = None,
        reassembly_bytes: int | None = None,
    ) -> Fragments: ...
    @property
    def above(self) -> int | None:
        """The largest payload, in bytes, that isn't split; None: the endpoint's profile determines it."""
    @property
    def size(self) -> int | None:
        """Bytes of a fragment; None: the endpoint's profile determines the number."""
    @property
    def count(self) -> int | None:
        """The most fragments of a packet; None: the endpoint's profile determines the number."""
    @property
    def reassembly_bytes(self) -> int | None:
        """The most bytes that all incomplete packets together may take; None: the endpoint's profile determines the
        number.
        """

@final
class AckEndpoint:
    """One end of a packet exchange, compatible with the C library reliable 1.0. Each end learns which of its
    packets arrived. Large packets are sent in fragments. Packets aren't resent, ordered or encrypted.

    An endpoint has no socket: transmit the datagrams that :meth:`send` returns, and pass received datagrams to
    :meth:`receive`. Use it above a layer that authenticates peers, because anyone who can send to an endpoint can
    disturb it. Times are seconds of any clock that doesn't go back.

    Args:
        profile: the settings for all arguments that are None. ``"standard"`` has the settings of reliable: packets up
            to 16 KiB, windows of 256 packets, RTT smoothing of 0.25 %. ``"large"`` has packets up to 256 KiB in
            datagrams of at most 1,200 bytes, a window of 64 sent packets that grows up to 16,384, a window of 1,024
            received packets, and RTT smoothing of 10 %.
        max_packet_size: the largest payload, in bytes.
        fragments: the settings for splitting packets.
        sent_window, received_window: the number of packets to remember, a power of two up to 32,768. If more packets
            are sent during one RTT than the window holds, packets count as lost before their ack can arrive.
        rtt_smoothing: the weight of each new sample in the RTT, above 0 and at most 1.
        lost_after: seconds without an ack after which a packet counts as lost.
        lost_after_rtts: round trips without an ack after which a packet counts as lost. The wait for the ack is at
            least ``lost_not_before`` seconds; until the RTT is measured, it is one second. None: ``lost_after``
            applies.
        in_order_only: whether to drop, and not ack, packets older than the newest accepted packet.

    Raises:
        ValueError: an argument is out of its bounds.

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
    """The most bytes of headers in a datagram: the headers of the packet and of a fragment."""
    def __new__(
        cls,
        profile: Literal["standard", "large"] = "standard",
        *,
        max_packet_size: int | None = None,
        fragments: Fragments | None = None,
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
        """The number that the next sent packet will have."""
    @property
    def newest_received(self) -> int | None:
        """The number of the newest accepted packet from the other end; None before the first packet."""
    def send(self, now: float, payload: bytes, /) -> tuple[int, list[bytes]]:
        """Makes a packet from a payload, which may be empty.

        Returns:
            the packet's number for :meth:`acked` and :meth:`lost`, and the datagrams to transmit: the whole packet in
            one datagram, or several fragments.

        Raises:
            MessageTooLargeError: the payload is above ``max_packet_size``. Nothing was sent.
        """
    def receive(
        self, now: float, datagram: bytes, /, *, accept: Callable[[bytes], object] | None = None
    ) -> bytes | None:
        """Handles a datagram from the other end.

        Args:
            accept: a function that gets the payload of a packet. If it returns a false value or raises, the packet
                is refused: it isn't acked, and the other end counts it as lost. None: all packets are accepted.

        Returns:
            the payload of the packet. None if the packet was refused, if fragments are missing, or if the datagram
            was dropped (:attr:`counters` has the reasons).
        """
    def acked(self) -> list[int]:
        """The numbers of the packets whose acks have arrived since the last call, each once, in order of arrival. Call
        this method at least every 32,768 packets; otherwise, the oldest acks are forgotten.
        """
    def lost(self, now: float, /) -> list[int]:
        """The packets that count as lost at the time ``now``, oldest first, each once. Call this method once a tick,
        because it updates packet loss and bandwidth too.
        """
    @property
    def stats(self) -> PacketStats:
        """RTT, jitter, packet loss and bandwidth."""
    @property
    def counters(self) -> dict[str, int]:
        """All counters since the start, by name. Every dropped datagram is counted."""

@final
class PacketStats:
    """Statistics of a packet exchange. Times are in milliseconds. Rates are in kilobits per second and include UDP/IP
    headers. Each value is 0 until it is measured. Minimum, maximum and mean RTT cover the last 128 round trips, or 512
    if the :class:`AckEndpoint` has the profile ``"standard"``. Loss and bandwidth cover about the last three seconds.
    With the profile ``"standard"``, ``packet_loss_percent`` and the rates cover the older half of the ``sent_window``
    or ``received_window`` packets instead, as in the C library ``reliable``. ``jitter_ms`` is smoothed as in RFC 3550.
    """

    @property
    def rtt_ms(self) -> float:
        """The smoothed round trip time."""
    @property
    def rtt_min_ms(self) -> float:
        """The shortest of the last round trips."""
    @property
    def rtt_max_ms(self) -> float:
        """The longest of the last round trips."""
    @property
    def rtt_avg_ms(self) -> float:
        """The mean of the last round trips."""
    @property
    def jitter_ms(self) -> float:
        """The smoothed difference between consecutive round trips."""
    @property
    def jitter_stddev_ms(self) -> float:
        """The standard deviation of the last round trips."""
    @property
    def packet_loss_percent(self) -> float:
        """The share of this end's packets that were lost, 0 to 100."""
    @property
    def packet_loss_received_percent(self) -> float:
        """The share of the other end's packets that are missing at this end, 0 to 100. Gaps in the packet numbers show
        which packets are missing.
        """
    @property
    def sent_kbps(self) -> float:
        """The rate of data sent."""
    @property
    def received_kbps(self) -> float:
        """The rate of data received."""
    @property
    def acked_kbps(self) -> float:
        """The rate of data that the other side has acked."""

@final
class VirtualConnection:
    """The simple connection between two peers from the article "Virtual Connection over UDP". It has no handshake
    and no secrets. Use it on LANs, for teaching, and as a base for your own protocols. :meth:`listen` and
    :meth:`connect` make its two ends.

    A datagram has the protocol id, a CRC-32 of the bytes that follow the CRC, and a packet of an :class:`AckEndpoint`.
    Id and CRC are 4 bytes each, little-endian. A listener connects to the sender of the first valid packet. Other
    senders are ignored until the peer has been silent for ``timeout``; then the listener listens again. A packet is
    sent at least every ``keep_alive`` seconds.

    Anyone who knows the protocol id can connect, and can forge a peer's packets and address. Over the internet, use
    :class:`Server` and :class:`Client`. Until the peer has acked a packet, a listener answers each received datagram
    with at most one datagram, which is never larger than the received datagram. A listener's first packet number is
    random, so an ack proves that the peer receives at its address.

    A connection has no socket: transmit the datagrams that :meth:`send` and :meth:`update` return. Times are seconds
    of any clock that doesn't go back.

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
        """Makes an end that waits for a peer.

        Args:
            protocol_id: the 32-bit id of your protocol, equal at both ends.
            timeout: seconds of silence that end the connection.
            keep_alive: the longest time in seconds without sending.
            lost_after, lost_after_rtts, lost_not_before, in_order_only: as for :class:`AckEndpoint`.

        Raises:
            ValueError: an argument is out of its bounds.
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
        """Makes an end that connects to the listener at ``address``. The first call of :meth:`send` or :meth:`update`
        starts the connection attempt. If the peer doesn't answer or falls silent, the connection ends.

        Args:
            protocol_id and the rest: as for :meth:`listen`.
        """
    @property
    def state(self) -> Literal["listening", "connecting", "connected", "ended"]:
        """The state of the connection: ``"listening"``, ``"connecting"`` (the peer hasn't answered yet),
        ``"connected"``, or ``"ended"`` (listeners never end).
        """
    @property
    def ready(self) -> bool:
        """Whether :meth:`send` accepts payloads of any size. A listener is ready once its peer has acked a packet."""
    @property
    def peer(self) -> Address | None:
        """The other end's address; None if there is no peer."""
    def send(self, now: float, payload: bytes, /) -> tuple[int, list[tuple[Address, bytes]]]:
        """Makes a packet from a payload. An empty payload only keeps the connection alive.

        Returns:
            the packet's number for :meth:`acked` and :meth:`lost`, and the datagrams to transmit: ``(address,
            datagram)`` pairs, as for :meth:`Socket.send_many`.

        Raises:
            NotConnectedError: there is no peer, or this end isn't :attr:`ready` and would send more than it
                received.
            MessageTooLargeError: the payload is above 256 KiB.
        """
    def receive(self, now: float, source: AddressLike, datagram: bytes, /) -> bytes | None:
        """Handles a datagram from ``source``.

        Returns:
            the payload. None if the datagram only keeps the connection alive, if fragments are missing, or if the
            datagram was dropped (:attr:`counters` has the reasons).
        """
    def update(self, now: float, /) -> list[tuple[Address, bytes]]:
        """Keeps the connection alive, detects a silent peer, and updates losses and statistics; call it once a
        tick. Returns the datagrams to transmit, like :meth:`send`.
        """
    def events(self) -> list[tuple[Literal["connected", "timed_out", "no_answer"], Address]]:
        """The events since the last call: ``("connected", peer)``, ``("timed_out", peer)`` if the peer fell silent, and
        ``("no_answer", peer)`` if the listener never answered.
        """
    def acked(self) -> list[int]:
        """The numbers of the packets that the peer has acked since the last call, each once."""
    def lost(self) -> list[int]:
        """The numbers of the packets that :meth:`update` declared lost since the last call, oldest first, each once."""
    @property
    def stats(self) -> PacketStats:
        """RTT, jitter, packet loss and bandwidth."""
    @property
    def counters(self) -> dict[str, int]:
        """All counters since the start, by name. Names of packet counters start with ``packets.``."""

@final
class ChunkSender:
    """A sender of large blocks of data (chunks), as in the article "Sending Large Blocks of Data". It splits a chunk
    into slices of 1,024 bytes and sends them at a set rate. It resends unacked slices until the :class:`ChunkReceiver`
    has acked all slices. One chunk is in flight at a time; later chunks wait in a queue and arrive in order.

    A sender has no socket: transmit the datagrams that :meth:`update` returns, and pass received acks to
    :meth:`receive`. Use it above a layer that authenticates peers, because an attacker could ack slices that never
    arrived. Times are seconds of any clock that doesn't go back.

    Args:
        max_slices: the most slices of a chunk, up to 8,192; sender and receiver must have the same number.
        bytes_per_second: the rate, including headers. The article uses 32,000, 64,000 and 125,000.
        accumulator_bytes: the most bytes that may be sent at once after a pause. None: the bytes that the rate allows
            in a tenth of a second, plus one packet.
        overhead: bytes of headers that other layers add to each packet; the rate includes them.
        resend_delay: seconds without an ack before a slice is resent, if :meth:`update` gets no RTT.
        max_queued: the most chunks that may wait in the queue, in addition to the chunk in flight.
        initial_burst_bytes: bytes of the largest chunk that may be sent with ``burst=True``.
        initial_burst_wait: seconds to wait after an initial burst before missing slices are resent.

    Raises:
        ValueError: an argument is out of its bounds.

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
            burst: whether to send all slices at once, above the rate. After ``initial_burst_wait``, missing slices are
                resent at the usual rate. Use a burst for loading screens, while nothing else is urgent. The socket
                buffers at both ends should have room for twice the chunk's size.

        Returns:
            the chunk's number, counting from 0.

        Raises:
            MessageTooLargeError: the chunk has more than ``max_slices`` slices, or is too large for a burst.
            ChannelFullError: ``max_queued`` chunks are waiting already.
            ValueError: the chunk is empty.
        """
    def cancel(self, number: int, /) -> bool:
        """Cancels a chunk. A chunk in flight may still arrive if the receiver already has all of it.

        Returns:
            False if the chunk has arrived, was canceled before, or doesn't exist.
        """
    def update(self, now: float, /, *, rtt: float | None = None) -> list[bytes]:
        """Returns the packets to transmit now; call it once a tick.

        Args:
            rtt: seconds between sending a slice and receiving its ack, including the receiver's ``ack_interval``. If
                given, a slice is resent after ``1.25 * rtt`` seconds instead of ``resend_delay``.
        """
    def receive(self, now: float, datagram: bytes, /) -> int | None:
        """Handles an ack packet from the receiver. Invalid acks are dropped and counted.

        Returns:
            the number of a chunk that has arrived completely; otherwise None.
        """

    @staticmethod
    def is_ack(datagram: bytes, /) -> bool:
        """Whether a datagram is for a :class:`ChunkSender`. Use this if a socket carries chunks both ways."""
    def set_bytes_per_second(self, bytes_per_second: float, /) -> None:
        """Changes the rate."""
    @property
    def bytes_per_second(self) -> float:
        """The rate, including headers."""
    @property
    def in_flight(self) -> int | None:
        """The number of the chunk in flight; None if no chunk is in flight, or if this chunk was canceled."""
    @property
    def progress(self) -> ChunkProgress | None:
        """The progress of the chunk in flight; None if there is none."""
    @property
    def queued(self) -> int:
        """The number of chunks that wait in the queue. The chunk in flight doesn't count."""
    @property
    def idle(self) -> bool:
        """Whether there is nothing to send."""
    @property
    def counters(self) -> dict[str, int]:
        """All counters since the start, by name. Every dropped datagram is counted."""

@final
class ChunkProgress:
    """The progress of a chunk: the acked part at the sender, or the received part at the receiver."""

    @property
    def bytes(self) -> int:
        """Bytes that have arrived."""
    @property
    def total_bytes(self) -> int:
        """Bytes of the chunk. At the receiver, this is an upper bound until the last slice has arrived."""
    @property
    def slices(self) -> int:
        """Slices that have arrived."""
    @property
    def total_slices(self) -> int:
        """Slices of the chunk."""
    @property
    def bytes_per_second(self) -> float:
        """The average number of bytes that arrived per second, since the chunk's first slice; 0 at first."""
    @property
    def time_left(self) -> float | None:
        """Seconds until the chunk is complete at the rate :attr:`bytes_per_second`; None while this rate is 0."""

@final
class ChunkReceiver:
    """A receiver of large blocks of data from a :class:`ChunkSender`.

    A receiver has no socket: pass received slices to :meth:`receive`, and transmit the acks that :meth:`update`
    returns. A chunk's acks never have more bytes than the slices that arrived, so an attacker can't use a receiver to
    amplify an attack. The receiver holds at most one chunk, and its memory use grows as slices of this chunk arrive.
    The next chunk can start after :meth:`read`, or when the sender has canceled an incomplete chunk.

    Args:
        max_slices: the most slices of a chunk, up to 8,192; sender and receiver must have the same number.
        ack_interval: the shortest time in seconds between two ack packets.
        overhead: bytes of headers that other layers add to each packet. They count as bytes of slices and acks when the
            receiver limits its acks.

    Raises:
        ValueError: an argument is out of its bounds.

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
        """Handles a slice packet from the sender. Invalid or unexpected slices are dropped and counted."""
    def update(self, now: float, /) -> bytes | None:
        """Returns the ack packet to transmit now, or None; call it once a tick."""
    def read(self) -> bytes | None:
        """Removes and returns the complete chunk; None if there is none."""

    @staticmethod
    def is_slice(datagram: bytes, /) -> bool:
        """Whether a datagram is for a :class:`ChunkReceiver`. Use this if a socket carries chunks both ways."""
    @property
    def ready(self) -> bool:
        """Whether a chunk waits to be read."""
    @property
    def progress(self) -> ChunkProgress | None:
        """The progress of the chunk that is arriving or waits to be read; None if there is none."""
    @property
    def counters(self) -> dict[str, int]:
        """All counters since the start, by name. Every dropped datagram is counted."""

@final
class GoodBad:
    """A simple congestion control with two packet rates, from the article "Reliability, Ordering and Congestion
    Avoidance over UDP". The RTT alone selects the rate.

    Conditions are bad while the RTT is above ``bad_rtt``. Bad conditions end good mode at once. Good mode returns
    after :attr:`recovery_time` seconds of good conditions without a break. If good mode lasted less than
    ``double_below`` seconds, the recovery time doubles. Every ``halve_every`` seconds of good mode, the recovery
    time halves. The first mode is good. Times are seconds of any clock that doesn't go back.

    Args:
        bad_rtt: the RTT in seconds above which conditions are bad.
        good_packets_per_second, bad_packets_per_second: the packet rates of the two modes.
        recovery_time: the initial recovery time in seconds.
        min_recovery_time, max_recovery_time: the bounds of the recovery time.
        double_below, halve_every: seconds of good mode that change the recovery time, as described above.

    Raises:
        ValueError: an argument is out of its bounds.

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
        """Updates the mode with the current RTT, in seconds; call it once a tick.

        Returns:
            the resulting mode.
        """
    @property
    def mode(self) -> Literal["good", "bad"]:
        """The current mode."""
    @property
    def packets_per_second(self) -> float:
        """The current mode's rate."""
    @property
    def recovery_time(self) -> float:
        """Seconds of good conditions after which bad mode ends."""

@final
class Link(Generic[_T]):
    """One direction of a simulated bad link. Items arrive late, twice, out of order, or not at all. The same seed
    and the same calls give the same result.

    ``len(link)`` is the number of items in flight.

    Args:
        conditions: the delays and losses of the link; None: a perfect link.
        seed: the seed of the random numbers, 0 to 2**64 - 1.
        capacity: the most items in flight; further items are dropped and counted as ``overflowed``.

    Raises:
        ValueError: an argument is out of its bounds.

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
        """Sends an item.

        Args:
            now: the time in seconds, of any clock that doesn't go back.
            item: any object, usually a datagram. If the link duplicates the item, both copies are the same object.
            size: the item's size in bytes, without overhead. None: the length of ``bytes`` and ``bytearray``, 0 for
                other objects. A :class:`Bottleneck` and ``max_datagram`` use the size.

        Raises:
            ValueError: an argument is out of its bounds.
        """
    def poll(self, now: float, /) -> _T | None:
        """Returns the next item that has arrived by ``now``, in order of arrival; None if there is none."""
    @property
    def next_delivery(self) -> float | None:
        """The time, in seconds, at which to call :meth:`poll` next; None if no item is in flight. At this time, an item
        arrives, an item leaves the queue of the :class:`Bottleneck`, or scheduled conditions start. If no item has
        arrived, ``poll`` returns None.
        """
    @property
    def queued_bytes(self) -> int:
        """Bytes in the queue of the :class:`Bottleneck`, including overhead and the item in transmission."""
    def set_conditions(self, conditions: Conditions, /) -> None:
        """Changes the conditions, starting at the latest ``now`` that the link was given. Items that have left the
        queue of the :class:`Bottleneck` keep the old conditions. Changes from :meth:`schedule` still happen.
        """
    def schedule(self, at: float, conditions: Conditions, /) -> None:
        """Changes the conditions at a later time, ``at``, in seconds. If several changes have the same time, the last
        call applies.
        """
    @property
    def counters(self) -> dict[str, int]:
        """Counts of items: ``sent``, ``too_large`` (above ``max_datagram``), ``queue_dropped`` (the queue was
        full), ``lost`` (by ``Conditions.loss``), ``lost_in_bursts``, ``lost_in_outages``, ``duplicated``,
        ``reordered`` (delayed by 50 ms), ``overflowed`` (above ``capacity``), ``delivered``.
        """
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

# --- bad networks on purpose -------------------------------------------------------------------------

@final
class Bursts:
    """Losses in bursts, by the Gilbert-Elliott model: a link is good or bad, and may change after each packet.
    :meth:`mean` makes the model from measured values.

    Args:
        to_bad: probability that a good link turns bad after a packet, 0 to 1.
        to_good: probability that a bad link turns good after a packet.
        good_loss: probability of loss while the link is good.
        bad_loss: probability of loss while the link is bad.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    def __new__(
        cls, to_bad: float, to_good: float, *, good_loss: float = 0.0, bad_loss: float = 1.0
    ) -> Bursts: ...
    @staticmethod
    def mean(loss: float, length: float) -> Bursts:
        """Makes bursts of ``length`` lost packets on average. In total, the fraction ``loss`` of all packets is lost.

        Raises:
            ValueError: the length is below 1, or the loss is above ``length / (length + 1)``. A larger loss is
                impossible, because at least one packet passes between two bursts.
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
    """Outages at random times. During an outage, all packets are lost. The durations, and the times between outages,
    are exponentially distributed.

    Args:
        duration: the average length of an outage in seconds, up to an hour.
        fraction: the share of the time in outages, 0 to 1.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    def __new__(cls, duration: float, fraction: float) -> Outages: ...
    @property
    def duration(self) -> float:
        """The average length of an outage in seconds."""
    @property
    def fraction(self) -> float:
        """The share of the time in outages, 0 to 1."""

@final
class RandomWalk:
    """Slowly changing jitter: a delay that drifts at random. Consecutive packets have similar delays, so they keep
    their order.

    Args:
        delay: the most seconds by which packets are early or late, up to 10. In :class:`Conditions`, this delay and
            ``jitter`` together must not exceed ``latency``.
        time: seconds for which the delay stays similar (its correlation time).

    Raises:
        ValueError: an argument is out of its bounds.
    """

    def __new__(cls, delay: float, time: float = 1.0) -> RandomWalk: ...
    @property
    def delay(self) -> float:
        """The most seconds by which packets are early or late."""
    @property
    def time(self) -> float:
        """Seconds for which the delay stays similar."""

@final
class Bottleneck:
    """The slowest part of a link. Packets pass it at a limited rate, and further packets wait in a finite queue.

    Args:
        rate (int): bytes per second that pass, up to 12,500,000,000 (100 Gbit/s).
        queue (int, default 65536): bytes that may wait, including the packet in transmission. A packet that doesn't
            fit is dropped and counted as ``queue_dropped``.
        overhead (int, default 28): bytes of headers that the rate and the queue count for each packet, in addition to
            its datagram. IPv4 and UDP headers have 28 bytes.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    def __new__(cls, rate: int, *, queue: int = 65536, overhead: int = 28) -> Bottleneck: ...
    @property
    def rate(self) -> int:
        """Bytes per second that pass."""
    @property
    def queue(self) -> int:
        """Bytes that may wait in the queue."""
    @property
    def overhead(self) -> int:
        """Bytes of headers that count for each packet, in addition to its datagram."""

@final
class Conditions:
    """The conditions of one direction of a simulated link.

    A packet first waits at the bottleneck, then it can be lost or duplicated, and then it is delayed. So a lost packet
    uses the bottleneck, but a duplicate doesn't.

    Args:
        latency (float, default 0.0): the one-way delay in seconds, added after the time in the queue; at most 10.
        jitter (float, default 0.0): the most seconds by which a packet is early or late; at most ``latency``. The
            delays are uniformly distributed, so packets may overtake each other.
        random_walk (RandomWalk | None, default None): slowly changing jitter.
        loss (float, default 0.0): probability that a packet is lost, independently of other packets, 0 to 1.
        bursts (Bursts | None, default None): losses in bursts.
        outages (Outages | None, default None): times at which all packets are lost.
        duplicate (float, default 0.0): probability that a packet arrives twice.
        reorder (float, default 0.0): probability that a packet is delayed by another 50 ms.
        bottleneck (Bottleneck | None, default None): the rate and queue of the link's slowest part; None: no limit.
        max_datagram (int | None, default None): bytes of the largest datagram that passes, without headers, 1 to
            65,535. Larger datagrams are lost without an error and counted as ``too_large``, as on a path with a
            small MTU. None: no limit.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    def __new__(
        cls,
        *,
        latency: float = 0.0,
        jitter: float = 0.0,
        random_walk: RandomWalk | None = None,
        loss: float = 0.0,
        bursts: Bursts | None = None,
        outages: Outages | None = None,
        duplicate: float = 0.0,
        reorder: float = 0.0,
        bottleneck: Bottleneck | None = None,
        max_datagram: int | None = None,
    ) -> Conditions: ...
    @staticmethod
    def preset(name: str, /) -> tuple[Conditions, Conditions]:
        """Returns typical conditions of a player's network: ``(up, down)``.

        ================= ====================================================================================
        ``3g``            phone (HSPA): 1 Mbit/s up, 3 down, 75 ms one way, deep queues, handovers
        ``4g``            phone (LTE): 8 Mbit/s up, 25 down, 25 ms one way, few losses, short handovers
        ``wifi-bad``      crowded 2.4 GHz: 5 Mbit/s up, 10 down, 20 ms one way, 3 % lost in bursts, outages
        ``transatlantic`` fiber to another continent: 50 Mbit/s up, 100 down, 45 ms one way, 0.05 % lost
        ``satellite``     geostationary: 3 Mbit/s up, 25 down, 300 ms one way, losses in bursts
        ================= ====================================================================================

        Raises:
            ValueError: there is no preset of this name; the error lists the names.
        """
    def replace(self, **changes: Any) -> Conditions:
        """Returns a copy with other values for the named settings."""
    @property
    def latency(self) -> float:
        """The one-way delay in seconds, added after the time in the queue."""
    @property
    def jitter(self) -> float:
        """The most seconds by which a packet is early or late."""
    @property
    def random_walk(self) -> RandomWalk | None:
        """Slowly changing jitter."""
    @property
    def loss(self) -> float:
        """Probability that a packet is lost, independently of other packets."""
    @property
    def bursts(self) -> Bursts | None:
        """Losses in bursts."""
    @property
    def outages(self) -> Outages | None:
        """Times at which all packets are lost."""
    @property
    def duplicate(self) -> float:
        """Probability that a packet arrives twice."""
    @property
    def reorder(self) -> float:
        """Probability that a packet is delayed by another 50 ms."""
    @property
    def bottleneck(self) -> Bottleneck | None:
        """The rate and queue of the link's slowest part; None: no limit."""
    @property
    def max_datagram(self) -> int | None:
        """Bytes of the largest datagram that passes; None: no limit."""

@final
class SimulatedNetwork:
    """A network in one process with a virtual clock. The same seed and the same calls give the same bytes.

    Pass the network to servers and clients as ``network``. Time passes only in :meth:`advance`. Each direction
    between two hosts is a link with its own queue and its own random numbers.

    Args:
        seed (int, default 0): 0 to 2**64 - 1.
        conditions (Conditions | None, default None): the conditions of all links; None: perfect links.
    """

    def __new__(cls, *, seed: int = 0, conditions: Conditions | None = None) -> SimulatedNetwork: ...
    @staticmethod
    def _replaying(drawn: bytes, epoch: int) -> SimulatedNetwork: ...
    def _advance_to(self, nanoseconds: int) -> None: ...
    def _deliver(self, sender: AddressLike, receiver: AddressLike, datagram: bytes) -> None: ...
    def _random(self) -> int: ...
    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
    @property
    def unix(self) -> int:
        """The virtual time in whole seconds since 1970. It starts at 1,000,000,000. Connect tokens are checked against
        this time, so make them with ``ConnectToken.generate(now=network.unix, ...)``.
        """
    def advance(self, seconds: float, /) -> None:
        """Advances the virtual clock, and delivers the packets that arrive meanwhile."""
    def set_conditions(
        self,
        conditions: Conditions,
        *,
        sender: AddressLike | None = None,
        receiver: AddressLike | None = None,
    ) -> None:
        """Sets the conditions of all links, of the links from ``sender``, of the links to ``receiver``, or of the link
        from ``sender`` to ``receiver``. If a link has its own conditions, they apply; otherwise its sender's
        conditions; otherwise its receiver's conditions. A call for all links removes all earlier, more specific
        conditions.

        The new conditions apply to packets in a link's queue, but not to packets that have left the queue.

        Args:
            conditions (Conditions): the new conditions.
            sender (AddressLike | None, default None): the sender of the links; None: all senders.
            receiver (AddressLike | None, default None): the receiver of the links; None: all receivers.
        """
    def schedule(
        self,
        at: float,
        conditions: Conditions,
        *,
        sender: AddressLike | None = None,
        receiver: AddressLike | None = None,
    ) -> None:
        """Sets conditions at a later virtual time, like :meth:`set_conditions`.

        Args:
            at (float): virtual seconds since the start.
            conditions (Conditions): the new conditions.
            sender (AddressLike | None, default None): the sender of the links; None: all senders.
            receiver (AddressLike | None, default None): the receiver of the links; None: all receivers.
        """
    def partition(self, *parts: Iterable[AddressLike]) -> None:
        """Splits the network: hosts in different parts can't reach each other. A host that isn't in any part reaches
        all hosts. Packets in flight still arrive. A new partition replaces the last one. :meth:`heal` ends the
        partition.

        Args:
            parts: for each part, the addresses of its hosts.
        """
    def heal(self) -> None:
        """Ends the partition."""
    def move_host(self, address: AddressLike, to: AddressLike, /) -> Address:
        """Moves a host to another address, as when a player changes from Wi-Fi to a phone network. Its endpoint
        then sends and receives at the new address. Packets in flight to the old address are lost.

        Args:
            address: the host's current address.
            to: the new address; port 0 picks a free port.

        Returns:
            the new address. (The endpoint's property ``address`` still has the old address.)

        Raises:
            ValueError: there is no host at that address.
            OSError: ``to`` is in use.
        """
    def unplug(self, address: AddressLike, /) -> None:
        """Removes a host from the network, as when its machine loses power. Its endpoint no longer sends or
        receives, and another host can use the address.

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
        """Puts some hosts behind a NAT, like a home router. Hosts inside reach each other as before. When an inside
        host sends to an outside host, the NAT maps one of its own ports to the inside host (a mapping). A packet from
        outside to this port reaches the inside host if the NAT lets the packet's sender in.

        Args:
            public: the IP address of the NAT.
            inside: the IP addresses of the hosts behind the NAT, including hosts that don't exist yet.
            kind: the senders that the NAT lets in. ``"full-cone"``: all senders. ``"restricted"``: hosts to which the
                inside host has sent. ``"port-restricted"``: addresses, including the port, to which the inside host has
                sent. ``"symmetric"``: as ``"port-restricted"``, but the NAT uses a different port for each destination
                address.
            lifetime: seconds without outgoing packets after which a mapping ends, up to 3,600.

        Raises:
            ValueError: an argument is out of its bounds, or an address is in use.
        """
    def restart_nat(self, public: str, /) -> None:
        """Makes a NAT forget its mappings. The NAT then uses other ports, so hosts outside see other addresses.

        Raises:
            ValueError: there is no NAT at that address.
        """
    @property
    def transcript(self) -> str:
        """The SHA-256 hash, in hex digits, of all datagrams sent so far, with their times and addresses. Two runs with
        the same transcript sent the same bytes at the same times.
        """
    @property
    def counters(self) -> dict[str, int]:
        """Counts of packets: the sums of the :attr:`Link.counters` of all links, under the same names. Other counters
        are ``unknown_destination`` (no host at the address), ``mailbox_full`` (4,096 packets wait at a host),
        ``partitioned``, ``nat_exhausted`` (no free port), ``nat_unmapped`` (the port has no mapping) and
        ``nat_filtered`` (the NAT didn't let the sender in).
        """

@final
class Code:
    """A game's join code together with its rendezvous server. Use it as the address in
    :meth:`tickwire.Client.connect`.

    Args:
        code (str): six letters. Case, spaces and hyphens don't matter.
        rendezvous (AddressLike): the rendezvous server's address.

    Raises:
        ValueError: the text isn't a code, or the address isn't a valid destination.

    Example:
        >>> code = Code("bcd-fgh", rendezvous="203.0.113.5:3478")
        >>> code.code, code.rendezvous
        ('BCDFGH', Address('203.0.113.5:3478'))
    """

    def __new__(cls, code: str, *, rendezvous: AddressLike) -> Code: ...
    @property
    def code(self) -> str:
        """The six letters, in upper case."""
    @property
    def rendezvous(self) -> Address:
        """The rendezvous server's address."""
    def __hash__(self) -> int: ...

@final
class RendezvousServer:
    """A rendezvous server. It gives a game a code, and connects players to the game's host when they enter this code.
    It sees no game data. It runs on a native thread, even while Python is busy, until it is closed.

    It never sends more bytes to an unverified address than it received from there, and stores nothing about the
    address.

    Args:
        listen (AddressLike): the address to bind; port 0 picks a free port (see :attr:`address`).
        second_port (int | None, default 0): a second port at the same address. With two ports, each peer finds out how
            its NAT assigns ports, so that other peers can guess the NAT's next port. 0 picks a free port. None: no
            second port and no guesses.
        relay (AddressLike | None, default None): the public address of a :class:`Relay`, for peers that can't reach
            each other.
        relay_key (bytes | None, default None): the relay's ``key``, 32 bytes.
        relay_bytes_per_second (int, default 100000): the relay's rate for each pair of peers, 1,000 to 2**32 - 1.
        max_games (int, default 10000): the most games at a time, 1 to 1,000,000.
        network (SimulatedNetwork | None, default None): a simulated network instead of sockets; then call
            :meth:`pump`.

    Raises:
        OSError: an address can't be bound; see errno.
        ValueError: an argument is out of its bounds.

    Example:
        >>> with RendezvousServer("127.0.0.1:0") as server:
        ...     server.counters["games"]
        0
    """

    def __new__(
        cls,
        listen: AddressLike,
        *,
        second_port: int | None = 0,
        relay: AddressLike | None = None,
        relay_key: bytes | None = None,
        relay_bytes_per_second: int = 100000,
        max_games: int = 10000,
        network: SimulatedNetwork | None = None,
    ) -> RendezvousServer: ...
    @property
    def address(self) -> Address:
        """The bound address, with the actual port."""
    @property
    def second_address(self) -> Address | None:
        """The address with the second port, if there is one."""
    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def counters(self) -> dict[str, int]:
        """All counters by name; after :meth:`close`, the last values. See docs/nat.md for the names."""
    def pump(self) -> None:
        """Answers the datagrams that have arrived on a simulated network. With a socket, the native thread does
        this.
        """
    def close(self) -> None:
        """Closes the server; running games continue. A second call does nothing."""
    def __enter__(self) -> RendezvousServer: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Relay:
    """A relay for peers that can't reach each other. It forwards their encrypted datagrams. Peers need a token from
    a rendezvous server with the same key. The relay runs on a native thread until it is closed.

    Args:
        listen (AddressLike): the address to bind; port 0 picks a free port (see :attr:`address`).
        key (bytes): the rendezvous server's ``relay_key``, 32 bytes.
        max_channels (int, default 4096): the most pairs of peers at a time, 1 to 1,000,000.
        max_bytes_per_second (float, default 12500000.0): the rate of all pairs together, 1,000 to 12.5e9;
            datagrams beyond this rate are dropped.
        network (SimulatedNetwork | None, default None): a simulated network instead of a socket; then call
            :meth:`pump`.

    Raises:
        OSError: the address can't be bound; see errno.
        ValueError: an argument is out of its bounds.

    Example:
        >>> key = generate_key()
        >>> with Relay("127.0.0.1:0", key=key) as relay:
        ...     with RendezvousServer("127.0.0.1:0", relay=relay.address, relay_key=key) as server:
        ...         relay.counters["channels"]
        0
    """

    def __new__(
        cls,
        listen: AddressLike,
        *,
        key: bytes,
        max_channels: int = 4096,
        max_bytes_per_second: float = 12500000.0,
        network: SimulatedNetwork | None = None,
    ) -> Relay: ...
    @property
    def address(self) -> Address:
        """The bound address, with the actual port."""
    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def counters(self) -> dict[str, int]:
        """All counters by name; after :meth:`close`, the last values. See docs/nat.md for the names."""
    def pump(self) -> None:
        """Forwards the datagrams that have arrived on a simulated network. With a socket, the native thread does
        this.
        """
    def close(self) -> None:
        """Closes the relay, which ends all paths through the relay. A second call does nothing."""
    def __enter__(self) -> Relay: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Proxy:
    """A UDP proxy that simulates a bad network between clients and a server. It doesn't read or change the
    datagrams. It runs on a native thread, even while Python is busy, until it is closed.

    Each source address is a client. Each client has its own socket to the server, and its own link in each
    direction.

    Args:
        listen (AddressLike): the address for clients; port 0 picks a free port (see :attr:`address`).
        to (AddressLike): the server's address.
        conditions (Conditions | None, default None): the conditions of both directions; None: perfect links.
        up (Conditions | None, default None): the conditions for datagrams to the server, instead of ``conditions``.
        down (Conditions | None, default None): the conditions for datagrams to the clients, instead of ``conditions``.
        seed (int, default 0): the seed of the random numbers, 0 to 2**64 - 1. The numbers also depend on the order in
            which clients first send.
        max_clients (int, default 1024): the most clients at a time, 1 to 65,536; datagrams from further clients are
            dropped.
        idle_timeout (float, default 60.0): seconds of silence after which a client is forgotten, 1 to 86,400.
        max_bytes (int, default 67108864): the most bytes of memory for datagrams in flight, 131,072 to 2**40;
            further datagrams are dropped.

    Raises:
        OSError: the address can't be bound; see errno.
        ValueError: an argument is out of its bounds, or the proxy would forward to itself.

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
        """The address for clients, with the actual port."""
    @property
    def to(self) -> Address:
        """The server's address."""
    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def counters(self) -> dict[str, int]:
        """All counters by name; after :meth:`close`, the last values. See docs/proxy.md for the names."""
    def set_conditions(
        self,
        conditions: Conditions | None = None,
        *,
        up: Conditions | None = None,
        down: Conditions | None = None,
    ) -> None:
        """Changes the conditions of all clients, in both directions or in one. Datagrams that have left a link's
        queue are unaffected.

        Args:
            conditions (Conditions | None, default None): the new conditions for both directions. A direction without
                new conditions keeps its old conditions.
            up (Conditions | None, default None): the new conditions for datagrams to the server.
            down (Conditions | None, default None): the new conditions for datagrams to the clients.

        Raises:
            ClosedError: the proxy is closed.
        """
    def close(self) -> None:
        """Closes the proxy; datagrams in flight are lost. A second call does nothing."""
    def __enter__(self) -> Proxy: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Advance(Generic[_I]):
    """A request to run one frame of the game."""

    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @property
    def frame(self) -> int:
        """The frame's number, from 0 on."""
    @property
    def inputs(self) -> tuple[_I, ...]:
        """All players' inputs, in the order of player numbers."""
    @property
    def again(self) -> bool:
        """Whether the frame ran before, with other inputs. If so, don't play its sounds again."""
    @property
    def status(self) -> tuple[Literal["given", "guessed", "left"], ...]:
        """The origin of each input: ``"given"`` (by the player), ``"guessed"``, or ``"left"`` (the player has left, so
        the input is zero).
        """
    @property
    def confirmed(self) -> bool:
        """Whether all inputs are known, so that the frame won't run again."""

@final
class PlayerOut:
    """A player has left a rollback game. All other players remove this player at the same frame."""

    __match_args__ = ("player", "frame")
    @property
    def player(self) -> int:
        """The player's number."""
    @property
    def frame(self) -> int:
        """The first frame without this player."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class Desync:
    """Another player's state differs from this player's state, because some code of the game isn't deterministic."""

    __match_args__ = ("player", "frame", "last_equal", "fields")
    @property
    def player(self) -> int:
        """The other player's number."""
    @property
    def frame(self) -> int:
        """The first frame at which the compared states differed."""
    @property
    def last_equal(self) -> int | None:
        """The newest frame at which the compared states were equal; None: never."""
    @property
    def fields(self) -> list[str]:
        """The names of the fields in this player's state that have another value in the other player's state, or are
        missing there. The list is empty if the differing fields are unknown, or if the only difference is additional
        fields in the other player's state.
        """
    def __eq__(self, other: object, /) -> bool: ...

@final
class Timing:
    """The delay, window and rate of a rollback game.

    Args:
        delay (int, default 2): frames by which this player's own input is delayed, 0 to 32. Each frame of delay saves
            the other players one guessed frame.
        window (int, default 8): the most frames that run with guessed inputs before the game waits, 1 to 32.
        rate (int, default 60): frames per second, 1 to 1000, equal for all players.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    def __new__(cls, *, delay: int = 2, window: int = 8, rate: int = 60) -> Timing: ...
    @property
    def delay(self) -> int:
        """Frames by which this player's own input is delayed."""
    @property
    def window(self) -> int:
        """The most frames that run with guessed inputs."""
    @property
    def rate(self) -> int:
        """Frames a second."""

@final
class SpectatorLost:
    """A spectator is missing frames that the players no longer keep, so it must start again from a newer state."""

    __match_args__ = ("index",)
    @property
    def index(self) -> int:
        """The spectator's number."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class Rollback(Generic[_I, _Do]):
    """A rollback game, as in GGPO. Each player's machine runs frames without waiting for the other players: it guesses
    their inputs, and runs frames again when a guess was wrong.

    In each frame, :meth:`advance` takes this player's input and yields requests. The peer's ticks do everything
    else. Without a peer, :meth:`fill` returns payloads to send to the other players over any unreliable connection,
    and :meth:`read` takes the payloads that arrive. See ``docs/rollback.md``.

    Args:
        peer (Peer | None): the peer that transmits the payloads; its :class:`Started` event must have arrived. None:
            your own code transmits them.
        inputs (int | type): the type of a player's input in a frame: a number of bits, 1 to 64, if inputs are ints; or
            a class made by :func:`message`, of at most 128 bytes. In frames before a player's first input, the game
            uses an input whose encoding has only zero bits, so this encoding must be valid. For example, a ``u16``
            field can't have :func:`tickwire.fields.common` for the value 0, because 0 then has a shorter encoding.
        players (Sequence[int] | int | None, default None): the numbers of the players who play, or their count; all
            other players watch. None: all players that the peer knows now.
        me (int | None, default None): this player's number; None: the peer's number.
        timing (Timing | None, default None): the delay, window and rate; None: ``Timing()``.
        state (Any, default None): the state as a C-contiguous array, or a mapping of names to such arrays. It is
            saved and loaded automatically. Change the arrays only in place.
        save (Callable[[], Any] | None, default None): a function that returns a copy of the state. The game must
            not change the copy.
        load (Callable[[Any], object] | None, default None): a function that restores the state from a saved copy.
        check (Callable[[], Any] | None, default None): a function that returns a value for :attr:`Save.checksum`.
        check_every (int, default 16): frames between two comparisons of states; 0: no comparisons.

    Without ``state``, ``save`` and ``load``, :meth:`advance` yields :class:`Save` and :class:`Load` too.

    Raises:
        ValueError: an argument is out of its bounds.
        TypeError: an argument has the wrong type.
    """

    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @overload
    def __new__(
        cls,
        peer: Peer[Any] | None,
        inputs: int,
        *,
        players: Sequence[int] | int | None = None,
        me: int | None = None,
        timing: Timing | None = None,
        state: None = None,
        save: None = None,
        load: None = None,
        check: Callable[[], Any] | None = None,
        check_every: int = 16,
    ) -> Rollback[int, Save | Load | Advance[int]]: ...
    @overload
    def __new__(
        cls,
        peer: Peer[Any] | None,
        inputs: type[_I],
        *,
        players: Sequence[int] | int | None = None,
        me: int | None = None,
        timing: Timing | None = None,
        state: None = None,
        save: None = None,
        load: None = None,
        check: Callable[[], Any] | None = None,
        check_every: int = 16,
    ) -> Rollback[_I, Save | Load | Advance[_I]]: ...
    @overload
    def __new__(
        cls,
        peer: Peer[Any] | None,
        inputs: int,
        *,
        players: Sequence[int] | int | None = None,
        me: int | None = None,
        timing: Timing | None = None,
        state: object = None,
        save: Callable[[], Any] | None = None,
        load: Callable[[Any], object] | None = None,
        check: Callable[[], Any] | None = None,
        check_every: int = 16,
    ) -> Rollback[int, Advance[int]]: ...
    @overload
    def __new__(
        cls,
        peer: Peer[Any] | None,
        inputs: type[_I],
        *,
        players: Sequence[int] | int | None = None,
        me: int | None = None,
        timing: Timing | None = None,
        state: object = None,
        save: Callable[[], Any] | None = None,
        load: Callable[[Any], object] | None = None,
        check: Callable[[], Any] | None = None,
        check_every: int = 16,
    ) -> Rollback[_I, Advance[_I]]: ...
    def advance(self, input: _I, *, now: float | None = None) -> Iterator[_Do]:
        """Takes this player's input, and yields requests in order: first for frames that run again with corrected
        inputs, then for the next frame. If :attr:`Timing.window` frames have run with guessed inputs, no new frame runs
        and the input isn't used: see :attr:`waiting_for`.

        If ``save``, ``load`` or ``check`` raised, or the loop was left, the next call yields only the remaining
        requests, and its input isn't used. It starts with the request that raised, or with the :class:`Save` or
        :class:`Load` after which no request was taken. An :class:`Advance` isn't repeated: if the game's own step
        raises, the game must end, because its state is half a frame ahead.

        Args:
            input (Any): this player's input, of the type of ``inputs``.
            now (float | None, default None): seconds on any clock that doesn't go back. None: the peer's clock, or
                without a peer, the machine's clock.

        Raises:
            ValueError, TypeError: the input isn't valid for ``inputs``. Nothing was changed.
            RuntimeError: nothing was taken from the last call's iterator, which still has requests.
        """
    def read(self, player: int, payload: bytes, *, now: float | None = None) -> str | None:
        """Handles a payload from another player or a spectator.

        Args:
            player (int): the sender's number.
            payload (bytes): the bytes from the sender's :meth:`fill`.
            now (float | None, default None): as for :meth:`advance`.

        Returns:
            None, or the reason why the payload is invalid. If it is invalid, end the connection to this player.
        """
    def fill(self, player: int, *, max_bytes: int = 1024, now: float | None = None) -> bytes | None:
        """Returns a payload for another player or a spectator; None if there is nothing to send now. Call it
        once a frame, after :meth:`advance`.

        Args:
            player (int): the receiver's number.
            max_bytes (int, default 1024): the largest size of the payload, 8 or more.
            now (float | None, default None): as for :meth:`advance`.
        """
    def note_left(self, player: int, *, now: float | None = None) -> None:
        """Reports that a player can't be reached any more. The remaining players agree on the first frame without the
        lost player: see :class:`PlayerOut`.
        """
    def events(self) -> list[PlayerOut | Desync | SpectatorLost]:
        """The events since the last call: :class:`PlayerOut`, :class:`Desync`, :class:`SpectatorLost`."""
    @property
    def frame(self) -> int:
        """The frame that runs next."""
    @property
    def confirmed(self) -> int:
        """The number of confirmed frames. For all frames below this number, the inputs of all players are known."""
    @property
    def delay(self) -> int:
        """Frames between an input and the frame that uses it, 0 to 32. You may change the delay at any time. An
        increase repeats this player's last input; a decrease drops inputs.
        """
    @delay.setter
    def delay(self, value: int) -> None: ...
    @property
    def waiting_for(self) -> tuple[int, ...]:
        """The players whose inputs are missing for the oldest unconfirmed frame. If :attr:`can_advance` is False, the
        game waits for these inputs.
        """
    @property
    def can_advance(self) -> bool:
        """Whether the next :meth:`advance` runs a new frame."""
    @property
    def players(self) -> tuple[int, ...]:
        """The players who haven't left."""
    @property
    def ahead(self) -> float:
        """The frames by which this player is ahead of the slowest other player; 0 if it isn't ahead."""
    @property
    def pace(self) -> float:
        """The frames per second at which to run now: :attr:`Timing.rate`, or up to a tenth less while this player is
        ahead of other players.
        """
    @property
    def stats(self) -> dict[str, int]:
        """Counters by name: see ``docs/rollback.md``."""

@final
class Spectator(Generic[_I]):
    """A spectator of a rollback game. It runs only confirmed frames, some time after the players. See
    ``docs/rollback.md``.

    Args:
        peer (Peer | None): the peer that watches; its :class:`Started` event must have arrived. None: your own code
            transmits the payloads.
        inputs (int | type): the type of a player's input, as in :class:`Rollback`.
        players (Sequence[int] | int): the numbers of the players, or their count.
        frame (int, default 0): the first frame to run. If it isn't 0, a player must send the state before this frame to
            the spectator, for example as a chunk.
        buffer (int, default 2): the number of frames to hold back for smooth playback, 0 to 60.
        rate (int, default 60): frames a second, 1 to 1000.

    Raises:
        ValueError: an argument is out of its bounds.
        TypeError: an argument has the wrong type.
    """

    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @overload
    def __new__(
        cls,
        peer: Peer[Any] | None,
        inputs: int,
        *,
        players: Sequence[int] | int,
        frame: int = 0,
        buffer: int = 2,
        rate: int = 60,
    ) -> Spectator[int]: ...
    @overload
    def __new__(
        cls,
        peer: Peer[Any] | None,
        inputs: type[_I],
        *,
        players: Sequence[int] | int,
        frame: int = 0,
        buffer: int = 2,
        rate: int = 60,
    ) -> Self: ...
    def advance(self, limit: int = 4) -> list[Advance[_I]]:
        """Returns the frames to run now: usually one, several after a gap, or none if too few have arrived. Run all of
        them, because no frame is returned twice.

        Args:
            limit (int, default 4): the most frames to return, 1 to 64.
        """
    def read(self, player: int, payload: bytes, *, now: float | None = None) -> str | None:
        """Handles a player's payload, like :meth:`Rollback.read`."""
    def fill(self, player: int, *, now: float | None = None) -> bytes | None:
        """Returns a payload that requests frames from a player; None if no request to this player is due."""
    def note_left(self, player: int, *, now: float | None = None) -> None:
        """Reports that a player can't be reached any more. Another player then sends the frames."""
    @property
    def frame(self) -> int:
        """The frame that runs next."""
    @property
    def behind(self) -> int:
        """The number of frames that have arrived but haven't run yet."""
    @property
    def lost(self) -> bool:
        """Whether the spectator is missing frames that the players no longer keep. If so, it must start again from
        a newer state.
        """

@final
class SyncTest(Generic[_I, _Do]):
    """A test of a rollback game on one machine. Each frame runs again from a saved state, with the same inputs, and
    must have the same result.

    It finds causes of desyncs: code that reads a clock, uses its own random numbers, or depends on data that isn't
    saved. Use it like a :class:`Rollback`, with the inputs of all players.

    Args:
        inputs (int | type): see :class:`Rollback`.
        players (int, default 2): the number of players, 1 to 16.
        back (int, default 7): frames that run again after each frame, 1 to 32.
        state (Any, default None): see :class:`Rollback`. The fields of the state are compared.
        save (Callable[[], Any] | None, default None): a function that returns a copy of the state. The copy must not
            share data that the game changes. Copies are compared by ``==``; dicts, and objects with attributes, are
            compared name by name.
        load (Callable[[Any], object] | None, default None): a function that restores the state from a saved copy.

    Raises:
        ValueError: an argument is out of its bounds.
        TypeError: an argument has the wrong type.
    """

    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @overload
    def __new__(
        cls,
        inputs: int,
        *,
        players: int = 2,
        back: int = 7,
        state: None = None,
        save: None = None,
        load: None = None,
    ) -> SyncTest[int, Save | Load | Advance[int]]: ...
    @overload
    def __new__(
        cls,
        inputs: type[_I],
        *,
        players: int = 2,
        back: int = 7,
        state: None = None,
        save: None = None,
        load: None = None,
    ) -> SyncTest[_I, Save | Load | Advance[_I]]: ...
    @overload
    def __new__(
        cls,
        inputs: int,
        *,
        players: int = 2,
        back: int = 7,
        state: object = None,
        save: Callable[[], Any] | None = None,
        load: Callable[[Any], object] | None = None,
    ) -> SyncTest[int, Advance[int]]: ...
    @overload
    def __new__(
        cls,
        inputs: type[_I],
        *,
        players: int = 2,
        back: int = 7,
        state: object = None,
        save: Callable[[], Any] | None = None,
        load: Callable[[Any], object] | None = None,
    ) -> SyncTest[_I, Advance[_I]]: ...
    def advance(self, inputs: Iterable[_I]) -> Iterator[_Do]:
        """Runs one frame: yields requests like :meth:`Rollback.advance`.

        Nothing is lost if the iteration ends early. If a function of the game raised, a difference was found, or the
        loop was left, the next call yields only the remaining requests, and its inputs aren't used.

        Args:
            inputs (Sequence[Any]): the inputs of all players.

        Raises:
            ValueError, TypeError: an input isn't valid, or a player has no input. Nothing was changed.
            RuntimeError: the last call wasn't iterated.
            SyncTestError: during the iteration, if a frame had another result when it ran again; the error names
                the frame and the fields.
            ValueError: during the iteration, if a saved state changed; the error names the parts that changed.
        """
    @property
    def frame(self) -> int:
        """The frame that runs next."""

@final
class StateArrays:
    """The states of a rollback game as copies of its arrays."""

    def __new__(
        cls, arrays: list[tuple[str, Any, list[tuple[str, str | None, int, int]]]], count: int
    ) -> StateArrays: ...
    def save(self, frame: int, checked: bool) -> None:
        """Saves a copy of the arrays as the state before a frame."""
    def load(self, frame: int) -> None:
        """Copies the state before a frame into the arrays."""
    def sums(self, frame: int) -> tuple[list[str], list[int]]:
        """The names of the fields, and the fields' checksums in the state before a frame."""
    def compare(self, frame: int) -> None:
        """Asks :meth:`finish_comparison` to compare the arrays with the state before a frame."""
    def finish_comparison(self) -> None:
        """Raises ``SyncTestError`` once if the arrays differ from that state."""

def state_sum(name: str | None, value: object) -> int:
    """Returns a checksum over a value (an int, float, str, bytes or a buffer) and its ``name``; None: a value without a
    name.
    """

# --- lockstep ----------------------------------------------------------------------------------------

@final
class Random:
    """A seeded random generator with the same numbers on every machine and in every version: xoshiro256** (Blackman
    and Vigna, 2018), seeded through SplitMix64. Don't use it for secrets.

    In lockstep, all players take the same numbers in the same order from :attr:`tickwire.lockstep.Turn.random`. Use
    another generator for effects that aren't part of the game's state, such as sparks and sounds.

    Args:
        seed: 64 bits that determine the whole sequence.

    Example:
        >>> random = Random(42)
        >>> random.below(6)
        0
        >>> random.between(1, 6)
        3
    """

    def __new__(cls, seed: int) -> Random: ...
    @staticmethod
    def from_state(state: bytes, /) -> Random:
        """Makes a generator that continues from a :attr:`state`.

        Raises:
            ValueError: the bytes aren't a state.
        """
    @property
    def state(self) -> bytes:
        """The complete state, 32 bytes. You may set it."""
    @state.setter
    def state(self, state: bytes) -> None: ...
    def bits(self, count: int = 64, /) -> int:
        """A whole number of ``count`` random bits; ``count`` is 1 to 64."""
    def below(self, bound: int, /) -> int:
        """A whole number from 0 to ``bound - 1``. All numbers are equally likely.

        Raises:
            ValueError: ``bound`` isn't 1 to 2**64 - 1.
        """
    def between(self, low: int, high: int, /) -> int:
        """A whole number from ``low`` to ``high``, both included. All numbers are equally likely.

        Raises:
            ValueError: the bounds don't fit signed 64 bits, or ``high`` is below ``low``.
        """
    def unit(self) -> float:
        """A float from 0 up to, but not including, 1, with 53 random bits. It is the same on every machine, but
        floating-point arithmetic with it may have different results on different machines.
        """
    def choice(self, items: Sequence[_T], /) -> _T:
        """A random item of a sequence.

        Raises:
            IndexError: the sequence is empty.
        """
    def shuffle(self, items: list[Any], /) -> None:
        """Shuffles a list in place; all orders are equally likely."""
    def fill(self, array: Buffer, /, bound: int | None = None) -> None:
        """Fills an array with random numbers, in order. Integers get random bits, or numbers below ``bound``;
        floats get numbers from 0 up to, but not including, 1.

        Args:
            array: a contiguous buffer of float64, or of integers of 8 to 64 bits.
            bound: the exclusive upper bound, for integers.

        Raises:
            TypeError: the array has another element type.
            ValueError: ``bound`` doesn't fit the array's type, or was given for floats.
        """
    def copy(self) -> Random:
        """Returns another generator with the same state."""

@final
class LockstepCore:
    """The native state machine of :class:`tickwire.lockstep.Lockstep`. Players are numbers from 0 to 15, sets of
    players are bit masks, and times are in seconds.
    """

    def __new__(
        cls,
        me: int,
        players: int,
        master: int,
        *,
        start: float,
        step: float = 0.033,
        steps: int = 3,
        delay: int = 2,
        adapt: bool = True,
        max_steps: int | None = None,
        max_delay: int | None = None,
        resend: float | None = None,
        log_turns: int = 32,
        joins: bool = False,
        admits: bool = False,
        heals: bool = False,
    ) -> LockstepCore: ...
    def command(self, command: bytes, /) -> None:
        """Adds a command to the next turn that has room for it.

        Raises:
            MessageTooLargeError: the command has more than 480 bytes.
            ChannelFullError: 4,096 commands are waiting already.
        """
    def attach(self, peer: Peer[Any], commands: int = 0, objects: int = 0, /) -> None:
        """Lets a peer transmit the payloads, from its next tick on. ``commands`` and ``objects`` are hashes of the
        command and object classes, which must be equal for all players; 0 matches any hash.
        """
    def pause(self, paused: bool, /) -> None:
        """Pauses or resumes the game, for all players at the same turn."""
    def set_speed(self, speed: int, /) -> None:
        """Sets the speed, as a number of steps of 10 %, for all players at the same turn."""
    def set_master(self, player: int, /) -> None:
        """Sets the player who is the master (see :attr:`Peer.master`), by number."""
    def note_left(self, now: float, player: int, /) -> None:
        """Reports that a player can't be reached any more."""
    def vote(self, now: float, player: int, out: bool, /) -> None:
        """Votes for removing a player, or withdraws the vote."""
    def read(self, now: float, player: int, payload: bytes, /) -> str | None:
        """Handles a player's payload. Returns None, or the reason why the payload is invalid. If it is invalid, end
        the player's connection.
        """
    def fill(self, now: float, player: int, max_bytes: int = 1000, /) -> bytes | None:
        """Returns a payload for a player, of at most ``max_bytes``; None if there is nothing to send now."""
    def poll_turn(
        self, now: float, /
    ) -> tuple[int, int, int, int, bool, int, int, list[tuple[int, bytes]], int] | None:
        """Returns the next turn, if it is due and its data has arrived. The turn is a tuple ``(turn, steps, delay,
        speed, paused, players, left, commands, joined)``, which starts with the turn's number.
        """
    def check(
        self,
        now: float,
        turn: int,
        draw: int,
        rows: list[tuple[str, tuple[str, ...], list[Any]]],
        arrays: list[tuple[str, Any]] | None = None,
        /,
    ) -> int:
        """Records the world after a turn, for comparison with the other players' worlds. Returns the turn's CRC.

        Args:
            draw: 16 bits from the random generator that all players share.
            rows: a tuple for each class, in the order of class numbers: the class's name, the names of its fields, and
                a list of objects. Each object is a tuple of its id, followed by the values of its fields.
            arrays: names and arrays of numbers, compared element by element.

        Raises:
            ValueError: two objects of a class have the same id, a number is out of its bounds, the turn isn't the
                newest or was already checked, or the world has more than 60,000 objects or 1,048,576 values.
            TypeError: a value has a type that can't be compared.
        """
    def states_wanted(self) -> list[int]:
        """The players who are waiting for a copy of the world."""
    def state_head(self, now: float, player: int, /) -> bytes | None:
        """Returns the header for the world after the newest turn. Send the header to the player, followed by the world.
        None if the player no longer needs a world.
        """
    def is_served(self, player: int, /) -> bool:
        """Whether a player still needs the world that is being sent to it."""
    def refuse(self, now: float, player: int, reason: int, /) -> None:
        """Refuses a player's request for the world. ``reason`` is the reason's number, 0 to 5."""
    def take_state(self, peer: Peer[Any], /) -> tuple[int, bytes] | None:
        """Removes and returns the next world that a peer received: the sending player, and the bytes."""
    def expects(self, player: int, state: bytes, /) -> tuple[int, int] | None:
        """The turn of a received world, and the number of bytes in its header; None if the world wasn't requested."""
    def load(self, now: float, player: int, state: bytes, /) -> bool:
        """Continues from a received world that the game has loaded. Returns False if the world wasn't requested."""
    def give_up(self, reason: int, /) -> None:
        """Gives up joining. ``reason`` is the reason's number, 0 to 5."""
    def ask_again(self, now: float, /) -> None:
        """Starts a new request to join, for example after a refusal."""
    def heal_again(self, now: float, /) -> None:
        """Requests another world, because the game can't continue from the received world."""
    def note_healed(self) -> None:
        """Reports that the game has loaded the other players' world and run up to the newest turn."""
    @property
    def joining(self) -> bool:
        """Whether this player joins late and doesn't play yet."""
    @property
    def healing(self) -> bool:
        """Whether another player's world will replace this player's world."""
    def resume(self, turn: int, /) -> None:
        """Resumes comparing worlds after this turn, because the worlds of all players are equal again."""
    def poll_event(self) -> tuple[Any, ...] | None:
        """Removes and returns the oldest event, as a tuple of its name and values; None if there is none."""
    @property
    def waiting(self) -> tuple[int, int, float] | None:
        """The turn that is due but waits: its number, the missing players, and the time at which the wait began;
        None if no turn waits.
        """
    @property
    def turn(self) -> int:
        """The newest turn that started."""
    @property
    def due(self) -> float:
        """The time at which the next turn is due."""
    @property
    def length(self) -> float:
        """The length of the current turn in seconds."""
    @property
    def pace(self) -> tuple[int, int]:
        """The number of steps in a turn, and the number of turns between giving a command and running it."""
    @property
    def players(self) -> list[int]:
        """The players in the current turn."""
    @property
    def excluded(self) -> bool:
        """Whether the other players continue without this player."""
    @property
    def counters(self) -> dict[str, int]:
        """All counters by name."""

def recording_settings(
    seed: int, hash: int, step_us: int, players: int, names: bytes, about: bytes, /
) -> bytes:
    """Returns a recording's first bytes: the settings of the match."""

def recording_turn(
    turn: tuple[int, int, int, int, bool, int, int, list[tuple[int, bytes]], int],
    check: tuple[int, int] | None,
    /,
) -> bytes:
    """Returns the record of a turn, with CRC and random bits if the turn was checked."""

def recording_snapshot(turn: int, random: bytes, state: bytes, /) -> bytes:
    """Returns the record of the world after a turn."""

def read_recording(data: bytes, /) -> tuple[list[Any], str | None]:
    """Returns all complete records of a recording, and the reason why reading stopped early; the reason is None if all
    data was read.

    Raises:
        ValueError: the bytes aren't a recording.
    """

def replayed_crc(
    turn: tuple[int, int, int, int, bool, int, int, list[tuple[int, bytes]], int],
    draw: int,
    rows: list[tuple[str, tuple[str, ...], list[Any]]],
    arrays: list[tuple[str, Any]] | None = None,
    /,
) -> int:
    """Returns the CRC of a turn in a replay. It covers the players' commands and the world after the turn. It equals
    the CRC from :meth:`LockstepCore.check`.
    """
