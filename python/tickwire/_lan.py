"""Games in the local network. A search sends a question to all machines, and the hosts of games answer."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import selectors
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from tickwire._checks import check_within
from tickwire._core import Address, Peer, Protocol, Server

__all__ = ["LAN_PORT", "MAX_LAN_GAMES", "LanAnnouncement", "LanGame", "LanSearch", "find_lan"]

LAN_PORT = 47_584
"""The UDP port on which hosts are asked for their games."""

MAX_LAN_GAMES = 64
"""The most games that a search keeps."""

# Of one address: a single liar doesn't fill the list.
_MAX_GAMES_OF_ONE = 16

MAX_TITLE_BYTES = 48

# Groups of the local network: an administratively scoped one (RFC 2365), and a link-local one (RFC 4291).
_GROUP4, _GROUP6 = "239.255.84.87", "ff12::5457:4c41"

_QUERY, _ANSWER = b"TWLANQ1\0", b"TWLANA1\0"
_QUERY_HEAD = struct.Struct("<8s8sQ")
_ANSWER_HEAD = struct.Struct("<8s8s8sQQHHHB")

# As long as the longest answer: who forges where it asks from has nobody sent more than it sent.
QUERY_BYTES = _ANSWER_HEAD.size + MAX_TITLE_BYTES

_ASK_INTERVAL = 0.5
_FORGOTTEN_AFTER = 3.0
_ANSWERS_PER_SECOND = 20


@dataclass(frozen=True)
class LanGame:
    """A game in the same network, with its host's description."""

    address: Address
    """The address to connect to or join."""
    title: str
    """The game's name."""
    players: int
    """The number of players."""
    max_players: int
    """The maximum number of players; 0: unknown."""
    same_version: bool
    """Whether the game has exactly the same protocol (:attr:`Protocol.hash`). If not, the game refuses
    this program.
    """


def _check_title(title: str) -> bytes:
    if not isinstance(title, str):
        raise TypeError(f"title must be a str, not {type(title).__name__}")
    # What is no text, such as half of a pair of surrogates, isn't printable either.
    data = title.encode() if title.isprintable() else b""
    if not data or len(data) > MAX_TITLE_BYTES:
        raise ValueError(
            f"title must be 1 to {MAX_TITLE_BYTES} bytes in UTF-8 of printable characters, not {title!r}"
        )
    return data


def _numeric(source: Any, port: int) -> str:
    """The address of the host that answered, with a port. The system gives the interface as a number."""
    host = str(source[0])
    if ":" not in host:
        return f"{host}:{port}"
    scope = f"%{source[3]}" if source[3] else ""
    return f"[{host.partition('%')[0]}{scope}]:{port}"


def _is_near(host: str) -> bool:
    """Returns whether an address belongs to a local network. Questions from other networks are ignored."""
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return ip.is_private or ip.is_link_local or ip.is_loopback


def _interfaces() -> list[int]:
    """The system's network interfaces, by number."""
    with contextlib.suppress(OSError, AttributeError):
        return [index for index, _ in socket.if_nameindex()]
    return []


def _selector(sockets: list[socket.socket]) -> selectors.BaseSelector:
    """Makes a selector for these sockets. `select.select` can't handle descriptors above 1,023."""
    selector = selectors.DefaultSelector()
    for each in sockets:
        selector.register(each, selectors.EVENT_READ)
    return selector


def _listeners(port: int) -> list[socket.socket]:
    """Makes sockets that receive questions by multicast and by broadcast. Programs on one machine share the
    port."""
    listeners = []
    for family, any_address in ((socket.AF_INET, ""), (socket.AF_INET6, "::")):
        try:
            listener = socket.socket(family, socket.SOCK_DGRAM)
        except OSError:
            continue
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "SO_REUSEPORT"):
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.setblocking(False)
            listener.bind((any_address, port))
        except OSError:
            listener.close()
            # Without IPv6 there is IPv4.
            if family == socket.AF_INET:
                raise
            continue
        # Number 0 is the one that the system chooses.
        for index in [0, *_interfaces()]:
            # An interface may be down, or have no address of the family.
            with contextlib.suppress(OSError):
                if family == socket.AF_INET:
                    member = struct.pack("=4s4si", socket.inet_aton(_GROUP4), b"\0\0\0\0", index)
                    listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
                else:
                    member = socket.inet_pton(socket.AF_INET6, _GROUP6) + struct.pack("=I", index)
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)
        listeners.append(listener)
    return listeners


class LanAnnouncement:
    """Announces a game in the local network, so that :func:`find_lan` finds the game. The announcement ends
    when you close it, or when the host is closed.

    A thread answers searches for games with the host's protocol id. The thread sends nothing else.

    Args:
        host (Peer | Server): the game's host.
        title (str): the game's name in lists: printable characters, 1 to 48 bytes in UTF-8.
        max_players (int, default 0): the maximum number of players, up to 65,535; 0: unknown.
        port (int, default 47584): the UDP port for questions, equal on all sides.

    Raises:
        OSError: another program uses the port and doesn't share it.
        ValueError: an argument is out of its bounds.

    Example:
        >>> with tw.peers.LanAnnouncement(peer, "Ann's game"):
        ...     play(peer)
    """

    def __init__(
        self, host: Peer[Any] | Server[Any], title: str, *, max_players: int = 0, port: int = LAN_PORT
    ) -> None:
        if not isinstance(host, Peer | Server):
            raise TypeError(f"host must be a Peer or a Server, not {type(host).__name__}")
        if host.network is not None:
            raise ValueError("host must be on a real network, not on a simulated network")
        check_within("max_players", max_players, 0, 65_535, int)
        check_within("port", port, 1, 65_535, int)
        self._title = _check_title(title)
        # A host that is found at several addresses is one game.
        self._id = os.urandom(8)
        self._host = host
        self._max_players = max_players
        self._answers = self._asked = 0
        self._allowance, self._refilled = float(_ANSWERS_PER_SECOND), time.monotonic()
        self._listeners = _listeners(port)
        self._woken, self._waker = socket.socketpair()
        self._closing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="tickwire-lan", daemon=True)
        self._thread.start()

    @property
    def title(self) -> str:
        """The game's name in lists."""
        return self._title.decode()

    @property
    def answers(self) -> int:
        """The number of answered questions."""
        return self._answers

    @property
    def ignored(self) -> int:
        """The number of datagrams without an answer: invalid datagrams, questions about other games or from
        other networks, and questions above the limit of 20 answers a second.
        """
        return self._asked - self._answers

    def close(self) -> None:
        """Ends the announcement, so that searches no longer find the game. A second call does nothing."""
        with self._closing:
            if self._waker.fileno() < 0:
                return
            # Where the host was closed before, the thread has ended and nobody listens.
            with contextlib.suppress(OSError):
                self._waker.send(b"\0")
            if threading.current_thread() is not self._thread:
                self._thread.join()
            self._waker.close()

    def __enter__(self) -> LanAnnouncement:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        with contextlib.ExitStack() as stack, _selector([*self._listeners, self._woken]) as selector:
            for each in [*self._listeners, self._woken]:
                stack.enter_context(each)
            while True:
                ready = [key.fileobj for key, _ in selector.select(5.0)]
                if self._woken in ready or self._host.closed:
                    return
                for listener in self._listeners:
                    # An error of one question is none of the next one's.
                    if listener in ready:
                        with contextlib.suppress(OSError):
                            self._answer(listener)

    def _answer(self, listener: socket.socket) -> None:
        for _ in range(64):
            try:
                data, source = listener.recvfrom(QUERY_BYTES + 1)
            except BlockingIOError:
                return
            self._asked += 1
            if len(data) != QUERY_BYTES or not _is_near(source[0]) or not self._is_allowed():
                continue
            magic, nonce, protocol_id = _QUERY_HEAD.unpack_from(data)
            if magic != _QUERY or protocol_id != self._host.protocol.id:
                continue
            self._allowance -= 1
            if self._send(listener, nonce, source):
                self._answers += 1

    def _is_allowed(self) -> bool:
        now = time.monotonic()
        gained = (now - self._refilled) * _ANSWERS_PER_SECOND
        self._allowance, self._refilled = min(self._allowance + gained, _ANSWERS_PER_SECOND), now
        return self._allowance >= 1

    def _send(self, listener: socket.socket, nonce: bytes, to: Any) -> bool:
        host, own = self._host, self._host.address
        players = host.players if isinstance(host, Peer) else host.clients
        head = _ANSWER_HEAD.pack(
            _ANSWER,
            nonce,
            self._id,
            host.protocol.id,
            host.protocol.hash,
            own.port,
            min(len(players), 65_535),
            self._max_players,
            len(self._title),
        )
        ip = ipaddress.ip_address(own.host.partition("%")[0])
        if (listener.family == socket.AF_INET6) != (ip.version == 6) and not (
            ip.version == 6 and int(ip) == 0
        ):
            # The game isn't reached by this family.
            return False
        if int(ip) == 0:
            listener.sendto(head + self._title, to)
            return True
        # From the game's own address: it is where the game is found.
        with socket.socket(listener.family, socket.SOCK_DGRAM) as sender:
            sender.bind((own.host, 0))
            sender.sendto(head + self._title, to)
        return True


class LanSearch:
    """A continuous search for games in the same network, for a menu. Call :meth:`poll` as often as you
    like, such as once a frame.

    While you poll, the search sends a question every half second, by broadcast and multicast on all
    interfaces. If a game's host is silent for three seconds, :meth:`poll` no longer returns the game.

    Args:
        protocol (Protocol): the protocol; only games with its id are found.
        port (int, default 47584): the UDP port for questions, equal on all sides.

    Raises:
        OSError: the system can't create a socket.
        ValueError: an argument is out of its bounds.

    Example:
        >>> with tw.peers.LanSearch(protocol) as search:
        ...     for game in search.poll():
        ...         print(game.title, game.address)
    """

    def __init__(self, protocol: Protocol[Any], *, port: int = LAN_PORT) -> None:
        if not isinstance(protocol, Protocol):
            raise TypeError(f"protocol must be a Protocol, not {type(protocol).__name__}")
        check_within("port", port, 1, 65_535, int)
        self._port = port
        self._protocol = protocol
        self._nonce = os.urandom(8)
        self._found: dict[bytes, tuple[float, LanGame]] = {}
        self._ask_at = 0.0
        self._sockets: list[socket.socket] = []
        for family, any_address in ((socket.AF_INET, ""), (socket.AF_INET6, "::")):
            with contextlib.suppress(OSError):
                sender = socket.socket(family, socket.SOCK_DGRAM)
                self._sockets.append(sender)
                sender.setblocking(False)
                if family == socket.AF_INET:
                    sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                else:
                    sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                sender.bind((any_address, 0))
        if not self._sockets:
            raise OSError("the system has no socket to spare")

    def poll(self) -> list[LanGame]:
        """Sends a question if one is due, reads the answers that have arrived, and returns the games,
        sorted by title.
        """
        now = time.monotonic()
        if now >= self._ask_at:
            self._ask_at = now + _ASK_INTERVAL
            self._ask()
        for sender in self._sockets:
            for key, game in self._take(sender):
                known = self._found.get(key)
                # Of several addresses the first stays; one of IPv4, which others can be told, is better.
                is_other = known is not None and known[1].address != game.address
                if known is not None and is_other and (game.address.is_ipv6 or not known[1].address.is_ipv6):
                    continue
                if known is not None or self._has_room(game):
                    self._found[key] = (now, game)
        self._found = {key: it for key, it in self._found.items() if now - it[0] < _FORGOTTEN_AFTER}
        return sorted((game for _, game in self._found.values()), key=lambda game: (game.title, game.address))

    def _has_room(self, game: LanGame) -> bool:
        of_one = sum(it.address.host == game.address.host for _, it in self._found.values())
        return len(self._found) < MAX_LAN_GAMES and of_one < _MAX_GAMES_OF_ONE

    def close(self) -> None:
        """Ends the search. A second call does nothing."""
        for sender in self._sockets:
            sender.close()
        self._sockets = []

    def __enter__(self) -> LanSearch:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self) -> None:
        query = _QUERY_HEAD.pack(_QUERY, self._nonce, self._protocol.id).ljust(QUERY_BYTES, b"\0")
        for sender in self._sockets:
            is_4 = sender.family == socket.AF_INET
            group = _GROUP4 if is_4 else _GROUP6
            asked = False
            for index in _interfaces():
                # Of an interface that is down, or without the family.
                with contextlib.suppress(OSError):
                    if is_4:
                        by = struct.pack("=4s4si", b"\0\0\0\0", b"\0\0\0\0", index)
                        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, by)
                        sender.sendto(query, (group, self._port))
                    else:
                        sender.sendto(query, (group, self._port, 0, index))
                    asked = True
            if not asked:
                # Some systems have no interfaces by number: there is one that they choose.
                with contextlib.suppress(OSError):
                    sender.sendto(query, (group, self._port))
            if is_4:
                # Where multicast is off, as on some Wi-Fi.
                with contextlib.suppress(OSError):
                    sender.sendto(query, ("255.255.255.255", self._port))

    def _take(self, sender: socket.socket) -> Iterator[tuple[bytes, LanGame]]:
        for _ in range(4 * MAX_LAN_GAMES):
            try:
                data, source = sender.recvfrom(QUERY_BYTES + 1)
            except OSError:
                return
            if not _ANSWER_HEAD.size < len(data) <= QUERY_BYTES:
                continue
            magic, nonce, key, protocol_id, mark, port, players, most, length = _ANSWER_HEAD.unpack_from(data)
            if (magic, nonce, protocol_id) != (_ANSWER, self._nonce, self._protocol.id) or port == 0:
                continue
            with contextlib.suppress(ValueError):
                title = data[_ANSWER_HEAD.size :].decode()
                if len(data) - _ANSWER_HEAD.size == length and title.isprintable():
                    same = mark == self._protocol.hash
                    yield key, LanGame(Address(_numeric(source, port)), title, players, most, same)


def find_lan(protocol: Protocol[Any], *, seconds: float = 1.0, port: int = LAN_PORT) -> list[LanGame]:
    """Searches for games in the same network, waits, and returns the games that answered, sorted by title.
    For a menu that must not wait, use :class:`LanSearch`.

    Args:
        protocol (Protocol): the protocol; only games with its id are found.
        seconds (float, default 1.0): the seconds to wait, 0 to 60. The search is repeated during this time,
            because datagrams may be lost.
        port (int, default 47584): the UDP port for questions, equal on all sides.

    Raises:
        OSError: the system can't create a socket.
        ValueError: an argument is out of its bounds.
    """
    check_within("seconds", seconds, 0, 60)
    with LanSearch(protocol, port=port) as search, _selector(search._sockets) as selector:
        until = time.monotonic() + seconds
        games = search.poll()
        while (left := until - time.monotonic()) > 0:
            selector.select(min(left, 0.1))
            games = search.poll()
        return games
