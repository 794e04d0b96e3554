"""The native core of Tickwire. Import these names from :mod:`tickwire`."""

from collections.abc import Sequence
from types import GenericAlias, TracebackType
from typing import Any, ClassVar, Final, Generic, TypeVar, final

from tickwire.connection import AddressLike, ClientState, DisconnectReason, Event
from tickwire.message import Message, MessageFactory

__all__ = [
    "Address",
    "Channel",
    "ChannelStats",
    "Client",
    "ClientHandle",
    "Conditions",
    "ConnectToken",
    "Connected",
    "ConnectionStats",
    "Disconnected",
    "FieldType",
    "Inbox",
    "Protocol",
    "Schema",
    "Server",
    "SimulatedNetwork",
    "Stream",
    "Tick",
    "__version__",
    "bits",
    "boolean",
    "data",
    "fixed",
    "float32",
    "float64",
    "generate_key",
    "quantized",
    "ranged",
    "reliable_ordered",
    "text",
    "uint128",
    "unreliable",
    "wide_text",
]
__version__: Final[str]

_M = TypeVar("_M", covariant=True)

# --- addresses, keys, tokens -------------------------------------------------------------------------

@final
class Address:
    """An IPv4 or IPv6 address with a port: ``a.b.c.d:port`` or ``[v6]:port``. Immutable, hashable, ordered.

    Names are not resolved here; see :func:`tickwire.resolve`.

    Raises:
        ValueError: the text is not an address with a port.
    """

    def __new__(cls, address: AddressLike, /) -> Address: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def is_ipv6(self) -> bool: ...
    @property
    def is_loopback(self) -> bool: ...
    def with_port(self, port: int) -> Address: ...
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
    """A netcode 1.02 connect token: what a login backend hands to a client over HTTPS, and the client dials with."""

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
    ) -> ConnectToken:
        """Makes a token with fresh keys.

        Args:
            protocol: the protocol, or its 64-bit id.
            key: the 32-byte private key shared with the servers.
            client_id: a number of the account, 0 to 2**64 - 1, unique among connected players.
            servers: 1 to 32 addresses that the client tries in order.
            internal_servers: the same servers as they know themselves, when behind a fixed NAT mapping.
            expires_in: seconds until the token can't start a connection any more; None: never.
            timeout: seconds of silence that end the connection; None: no timeout.
            user_data: up to 256 bytes that reach the server sealed.

        Raises:
            ValueError: naming the argument, its value and its bound.
        """

    @staticmethod
    def from_bytes(data: bytes, /) -> ConnectToken:
        """Reads a token's 2,048 bytes.

        Raises:
            ValueError: saying what is wrong with them.
        """

    def to_bytes(self) -> bytes: ...
    @property
    def protocol_id(self) -> int: ...
    @property
    def servers(self) -> list[Address]: ...
    @property
    def created(self) -> int: ...
    @property
    def expires(self) -> int: ...
    @property
    def timeout(self) -> int | None: ...

# --- messages ----------------------------------------------------------------------------------------

@final
class FieldType:
    """How one field of a message is written. Made by :func:`bits`, :func:`ranged`, ..., used in ``Annotated``."""

    @property
    def default(self) -> Any: ...
    @property
    def max_bits(self) -> int:
        """An upper bound of what the field costs, alignment included."""
    @property
    def python_type(self) -> type: ...

def bits(count: int, /) -> FieldType: ...
def ranged(low: int, high: int, /) -> FieldType: ...
def uint128() -> FieldType: ...
def boolean() -> FieldType: ...
def float32() -> FieldType: ...
def float64() -> FieldType: ...
def quantized(low: float, high: float, resolution: float, /) -> FieldType: ...
def fixed(low: int, high: int, fraction_bits: int, /) -> FieldType: ...
def text(max_bytes: int, /) -> FieldType: ...
def wide_text(max_units: int, /) -> FieldType: ...
def data(max_bytes: int, /) -> FieldType: ...

@final
class Schema:
    """The compiled program of a message class declared by its fields.

    Raises:
        TypeError, ValueError: naming class, field, value and bound.
    """

    def __new__(cls, name: str, fields: Sequence[tuple[str, FieldType]], /) -> Schema: ...
    @property
    def name(self) -> str: ...
    @property
    def fields(self) -> list[tuple[str, FieldType]]: ...
    @property
    def min_bits(self) -> int: ...
    @property
    def max_bits(self) -> int: ...
    def check(self, message: object, /) -> None:
        """Raises the FieldError that sending an object with these attributes would raise, if any."""

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
    def writing(self) -> bool: ...
    @property
    def reading(self) -> bool: ...
    @property
    def measuring(self) -> bool: ...
    @property
    def bits_processed(self) -> int: ...
    def flag(self, value: object, /) -> bool: ...
    def bits(self, value: int | None, count: int, /) -> int: ...
    def ranged(self, value: int | None, low: int, high: int, /) -> int: ...
    def uint128(self, value: int | None, /) -> int: ...
    def relative(self, value: int | None, previous: int, /) -> int: ...
    def float32(self, value: float | None, /) -> float: ...
    def float64(self, value: float | None, /) -> float: ...
    def quantized(self, value: float | None, low: float, high: float, resolution: float, /) -> float: ...
    def fixed(self, value: float | None, low: int, high: int, fraction_bits: int, /) -> float: ...
    def text(self, value: str | None, max_bytes: int, /) -> str: ...
    def wide_text(self, value: str | None, max_units: int, /) -> str: ...
    def data(self, value: bytes | None, max_bytes: int, /) -> bytes: ...
    def align(self) -> None: ...

# --- protocol ----------------------------------------------------------------------------------------

@final
class Channel:
    """The settings of one channel. Made by :func:`reliable_ordered` and :func:`unreliable`."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...

def reliable_ordered(
    name: str = "",
    *,
    send_queue: int = 1024,
    receive_window: int = 1024,
    receive_bytes: int = 1048576,
    max_message_bytes: int = 65536,
    resend_time: float = 0.1,
) -> Channel:
    """Every message exactly once, in order.

    Args:
        send_queue: messages that may wait unacked; one more raises :class:`ChannelFullError`.
        receive_window: messages the receiver buffers before its game takes them.
        receive_bytes: bytes the receiver buffers before its game takes them.
        max_message_bytes: the largest message; above about 1,180 bytes a message is fragmented.
        resend_time: seconds after which a message not yet acked is sent again.
    """

def unreliable(
    name: str = "", *, send_queue: int = 1024, receive_queue: int = 1024, max_message_bytes: int = 65536
) -> Channel:
    """Each message at most once, in any order, never sent again.

    Args:
        send_queue: messages of one tick; one more raises :class:`ChannelFullError`.
        receive_queue: messages the receiver keeps for its game; the oldest make room.
        max_message_bytes: the largest message; above about 1,180 bytes a message is fragmented.
    """

@final
class Protocol:
    """What both sides must share: an id, the message classes in order, the channels in order.

    Args:
        id: 64-bit netcode protocol id: a number of your game (and its version).
        messages: classes made by :func:`tickwire.message` or derived from :class:`tickwire.Message`.
        channels: 1 to 64 channels; the index in this list is the ``channel`` argument of ``send``.

    Raises:
        TypeError, ValueError: naming the class or argument, its value and its bound.
    """

    def __new__(cls, id: int, messages: Sequence[type], channels: Sequence[Channel] = ...) -> Protocol: ...
    @property
    def id(self) -> int: ...
    @property
    def hash(self) -> int:
        """64 bits over messages and channels, compared by the two sides when they connect."""
    @property
    def messages(self) -> list[type]: ...
    @property
    def channels(self) -> list[Channel]: ...
    def encode(self, message: Message | Any, /) -> bytes:
        """One message with its type, as it rides in a packet, padded with zero bits to whole bytes.

        Raises:
            FieldError, UnregisteredMessageError, MessageTooLargeError
        """
    def decode(self, data: bytes, /) -> Any:
        """Reads what :meth:`encode` wrote.

        Raises:
            StreamError: saying what is refused.
        """
    def measure(self, message: Message | Any, /) -> int:
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
    def generation(self) -> int: ...
    @property
    def address(self) -> Address: ...
    @property
    def user_data(self) -> bytes:
        """The 256 bytes of the connect token."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Connected:
    """A connection is up. ``client`` is None on the client's own side."""

    __match_args__: ClassVar[tuple[str, ...]]
    @property
    def client(self) -> ClientHandle | None: ...

@final
class Disconnected:
    """A connection ended. ``client`` is None on the client's own side."""

    __match_args__: ClassVar[tuple[str, ...]]
    @property
    def client(self) -> ClientHandle | None: ...
    @property
    def reason(self) -> DisconnectReason: ...

@final
class ChannelStats:
    """Counts of one channel of one connection since it began."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
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
    def received(self) -> int:
        """Messages received, each counted once."""
    @property
    def duplicates(self) -> int:
        """Messages received again and dropped."""
    @property
    def dropped(self) -> int:
        """Messages that a full queue, on either side of this end, pushed out."""

@final
class ConnectionStats:
    """How one connection is doing. Times in milliseconds, rates in kilobits per second with UDP/IP headers."""

    @property
    def rtt_ms(self) -> float: ...
    @property
    def rtt_min_ms(self) -> float: ...
    @property
    def rtt_max_ms(self) -> float: ...
    @property
    def jitter_ms(self) -> float: ...
    @property
    def packet_loss_percent(self) -> float:
        """Of the packets we sent."""
    @property
    def sent_kbps(self) -> float: ...
    @property
    def received_kbps(self) -> float: ...
    @property
    def acked_kbps(self) -> float: ...
    @property
    def packets_sent(self) -> int: ...
    @property
    def packets_received(self) -> int: ...
    @property
    def packets_acked(self) -> int: ...
    @property
    def packets_lost(self) -> int: ...
    @property
    def channels(self) -> list[ChannelStats]: ...

# --- endpoints ---------------------------------------------------------------------------------------

@final
class Inbox(Generic[_M]):
    """What arrived since the last tick."""

    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @property
    def events(self) -> list[Event]: ...
    @property
    def messages(self) -> list[_M]:
        """``(client, message)`` pairs on a server, messages on a client; in order within a channel."""

@final
class Tick(Generic[_M]):
    """Receives on entry, sends on exit (also when the body or the entry raises, so that connections stay alive)."""

    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    def __enter__(self) -> Inbox[_M]: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Server:
    """A dedicated server on one UDP socket.

    Args:
        address: where to listen; port 0 picks one (see :attr:`address`).
        protocol: what both sides share.
        key: the 32-byte private key shared with the login backend. None: development mode, a well-known
            key; anyone can connect, so a warning is given unless the address is loopback.
        max_clients: client slots, 1 to 65,536.
        public_addresses: what connect tokens call this server, when not its own address.
        factory: makes the message objects; None: plain construction.
        conditions: a bad network to put on all that is sent, for tests. Give it to both sides.
        seed: makes those conditions repeatable; None: random.
        network: a simulated network with virtual time instead of a socket.

    Raises:
        OSError: the address can't be bound; errno says why.
        ValueError: naming the argument, its value and its bound.
    """

    def __new__(
        cls,
        address: AddressLike,
        protocol: Protocol,
        *,
        key: bytes | None = None,
        max_clients: int = 64,
        public_addresses: Sequence[AddressLike] | None = None,
        factory: MessageFactory | None = None,
        conditions: Conditions | None = None,
        seed: int | None = None,
        network: SimulatedNetwork | None = None,
    ) -> Server: ...
    @property
    def address(self) -> Address: ...
    @property
    def protocol(self) -> Protocol: ...
    @property
    def max_clients(self) -> int: ...
    @property
    def clients(self) -> list[ClientHandle]:
        """The connected clients, by slot."""
    @property
    def closed(self) -> bool: ...
    @property
    def counters(self) -> dict[str, int]:
        """Everything counted since the start, drops by name."""
    def tick(self) -> Tick[tuple[ClientHandle, Any]]:
        """``with server.tick() as inbox:`` receives on entry and sends on exit."""
    def receive(self) -> Inbox[tuple[ClientHandle, Any]]:
        """The first half of a tick: takes what arrived."""
    def flush(self) -> None:
        """The second half of a tick: sends what is queued."""
    def pump(self) -> None:
        """Keeps connections alive without taking messages (while loading, say): they wait, and when the
        receive window is full their sender has to wait too. Nothing reliable is lost."""
    def send(self, client: ClientHandle, message: Message | Any, channel: int = 0) -> None:
        """Queues a message for the next flush.

        Raises:
            FieldError: a field's value is not in its range.
            UnregisteredMessageError: the class is not in the protocol.
            MessageTooLargeError: more bytes than the channel takes.
            ChannelFullError: too many messages wait on the channel.
            ChannelError: there is no such channel.
            StaleClientError: the client is gone.
            ClosedError: the server is closed.
        """
    def broadcast(
        self, message: Message | Any, channel: int = 0, *, exclude: ClientHandle | None = None
    ) -> list[ClientHandle]:
        """Queues one message for every connected client; it is encoded once. Returns the clients whose
        channel was full: the others have it."""
    def disconnect(self, client: ClientHandle) -> None:
        """Ends one connection; its player sees :attr:`DisconnectReason.KICKED`. Queued messages are dropped.

        Raises:
            StaleClientError: the client is gone already.
        """
    def stats(self, client: ClientHandle) -> ConnectionStats: ...
    def close(self) -> None:
        """Ends all connections (players see :attr:`DisconnectReason.SERVER_CLOSED`) and closes the socket.
        Closing twice is fine."""
    def __enter__(self) -> Server: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Client:
    """A client of one server, dialling with a connect token.

    Args:
        protocol: what both sides share.
        token: from the login backend.
        bind: the local address; None: any free port.
        factory, conditions, seed, network: as for :class:`Server`.

    Raises:
        OSError: no socket could be made.
        ValueError: the token is for another protocol id.
    """

    def __new__(
        cls,
        protocol: Protocol,
        token: ConnectToken,
        *,
        bind: AddressLike | None = None,
        factory: MessageFactory | None = None,
        conditions: Conditions | None = None,
        seed: int | None = None,
        network: SimulatedNetwork | None = None,
    ) -> Client: ...
    @staticmethod
    def connect(
        address: AddressLike,
        protocol: Protocol,
        *,
        key: bytes | None = None,
        client_id: int | None = None,
        timeout: int | None = 10,
        user_data: bytes = b"",
        bind: AddressLike | None = None,
        factory: MessageFactory | None = None,
        conditions: Conditions | None = None,
        seed: int | None = None,
        network: SimulatedNetwork | None = None,
    ) -> Client:
        """Development mode: makes its own token, with the well-known key or a shared one. Not for
        production: who holds the key can be anyone. A warning is given unless the address is loopback.

        Args:
            client_id: None picks a random one.
        """
    @property
    def state(self) -> ClientState: ...
    @property
    def connected(self) -> bool: ...
    @property
    def closed(self) -> bool: ...
    @property
    def disconnect_reason(self) -> DisconnectReason | None: ...
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
    def protocol(self) -> Protocol: ...
    @property
    def counters(self) -> dict[str, int]: ...
    def tick(self) -> Tick[Any]: ...
    def receive(self) -> Inbox[Any]: ...
    def flush(self) -> None: ...
    def pump(self) -> None: ...
    def send(self, message: Message | Any, channel: int = 0) -> None:
        """As :meth:`Server.send`.

        Raises:
            NotConnectedError: the connection is not up (yet, or any more).
        """
    def stats(self) -> ConnectionStats: ...
    def close(self) -> None:
        """Disconnects and closes the socket. Closing twice is fine."""
    def __enter__(self) -> Client: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

# --- bad networks on purpose -------------------------------------------------------------------------

@final
class Conditions:
    """What a simulated link does to each packet, per direction.

    Args:
        latency: seconds, one way.
        jitter: seconds, at most the latency; each packet is late by latency +- jitter, uniformly, so packets
            may overtake.
        loss: probability that a packet is lost, 0 to 1.
        duplicate: probability that a packet arrives twice.
        reorder: probability that a packet is held back by a further ``reorder_delay`` seconds.

    Raises:
        ValueError: naming the argument, its value and its bound.
    """

    def __new__(
        cls,
        *,
        latency: float = 0.0,
        jitter: float = 0.0,
        loss: float = 0.0,
        duplicate: float = 0.0,
        reorder: float = 0.0,
        reorder_delay: float = 0.05,
    ) -> Conditions: ...
    @property
    def latency(self) -> float: ...
    @property
    def jitter(self) -> float: ...
    @property
    def loss(self) -> float: ...
    @property
    def duplicate(self) -> float: ...
    @property
    def reorder(self) -> float: ...
    @property
    def reorder_delay(self) -> float: ...

@final
class SimulatedNetwork:
    """A network in one process with a virtual clock: the same seed and the same calls, the same bytes.

    Servers and clients made with ``network=`` live on it; time passes only in :meth:`advance`.
    """

    def __new__(cls, *, seed: int = 0, conditions: Conditions | None = None) -> SimulatedNetwork: ...
    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
    def advance(self, seconds: float, /) -> None: ...
    def set_conditions(
        self,
        conditions: Conditions,
        *,
        sender: AddressLike | None = None,
        receiver: AddressLike | None = None,
    ) -> None:
        """From now on: for all links, or for those from ``sender``, to ``receiver``, or both."""
