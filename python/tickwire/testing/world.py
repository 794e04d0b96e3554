"""A virtual internet with a game on it: servers, clients, a script, one loop."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, overload

from tickwire._core import (
    Address,
    Client,
    ClientHandle,
    Conditions,
    Inbox,
    Protocol,
    Server,
    SimulatedNetwork,
)
from tickwire.checks import check_number, check_seconds
from tickwire.connection import AddressLike, Event
from tickwire.testing.pair import Collected

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    _P = TypeVar("_P", default=Any)
else:
    from typing import TypeVar

    _P = TypeVar("_P")
_E = TypeVar("_E", bound=Server[Any] | Client[Any])
_Received: TypeAlias = Inbox[
    tuple[ClientHandle, _P], tuple[ClientHandle, _P | Event], tuple[ClientHandle, int, _P]
]

SERVER_ADDRESS = "10.0.0.1:40000"


class World(Generic[_P]):
    """Servers and clients of one protocol on a :class:`tickwire.SimulatedNetwork`, all ticked by one loop.

    Everything follows from the seed and the calls: the same test does the same to the last byte
    (``world.network.transcript``). ``world.network`` is there for conditions, partitions and NAT.

    Args:
        protocol: what all of them share.
        seed: 0 to 2**64 - 1.
        conditions: of all links; None: perfect ones.
        rate: ticks a second, of all endpoints.

    Example:
        >>> with World(protocol, seed=1) as world:
        ...     server = world.server()
        ...     players = [world.client() for _ in range(8)]
        ...     received = world.run(1)
        ...     len(server.clients), received[server].events[0].client.id
        (8, 1)
    """

    def __init__(
        self,
        protocol: Protocol[_P],
        *,
        seed: int = 0,
        conditions: Conditions | None = None,
        rate: float = 60.0,
    ) -> None:
        if not isinstance(protocol, Protocol):
            raise TypeError(f"protocol must be a Protocol, not {type(protocol).__name__}")
        check_number("rate", rate)
        if not 0.01 <= rate <= 10_000:
            raise ValueError(f"rate must be 0.01 to 10000 ticks a second, not {rate}")
        self.protocol = protocol
        self.seed = seed
        self.rate = rate
        self.network = SimulatedNetwork(seed=seed, conditions=conditions)
        self._settings: dict[Server | Client, dict[str, Any]] = {}
        self._places: dict[Server | Client, Address] = {}
        self._inboxes: dict[Server | Client, Inbox[Any]] = {}
        self._stalled: dict[Server | Client, float] = {}
        self._script: list[tuple[float, int, Callable[[], object]]] = []
        self._scheduled = 0
        self._players = 0

    # --- who is there ------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
        return self.network.now

    @property
    def servers(self) -> list[Server[_P]]:
        """Those that are not closed, in the order they came."""
        return [endpoint for endpoint in self._open() if isinstance(endpoint, Server)]

    @property
    def clients(self) -> list[Client[_P]]:
        """Those that are not closed, in the order they came."""
        return [endpoint for endpoint in self._open() if isinstance(endpoint, Client)]

    def server(self, address: AddressLike = SERVER_ADDRESS, **settings: Any) -> Server[_P]:
        """A server. Settings are those of :class:`tickwire.Server`."""
        settings = {"address": address, **settings}
        server = Server(protocol=self.protocol, network=self.network, **settings)
        return self._add(server, server.address, settings)

    def client(
        self, server: Server | AddressLike | None = None, *, at: AddressLike | None = None, **settings: Any
    ) -> Client[_P]:
        """A client that dials a server with a token of its own.

        Args:
            server: None: the first one of the world.
            at: where it is; None: an IP address that nobody else has. Behind a NAT, an address inside it.
            settings: those of :meth:`tickwire.Client.connect`; ``client_id`` counts from 1 unless given.
        """
        if server is None:
            if not self.servers:
                raise ValueError("there is no server to dial: make one first, or give its address")
            server = self.servers[0]
        self._players += 1
        number = self._players
        settings = {
            "address": server.address if isinstance(server, Server) else server,
            "bind": f"10.{1 + number // 65_536}.{number // 256 % 256}.{number % 256}:0" if at is None else at,
            "client_id": number,
            **settings,
        }
        client = Client.connect(protocol=self.protocol, network=self.network, **settings)
        return self._add(client, client.address, settings)

    def where(self, endpoint: Server | Client) -> Address:
        """The address of an endpoint, also after it moved. Behind a NAT, that inside."""
        return self._known(endpoint)

    # --- what happens to them ----------------------------------------------------------------------------

    def move(self, endpoint: Server | Client, to: AddressLike) -> Address:
        """Gives an endpoint another address, as when a phone leaves the Wi-Fi. Its connections don't survive
        that: netcode binds them to addresses, so both sides time out. Port 0 picks one."""
        self._places[endpoint] = self.network.move_host(self._known(endpoint), to)
        return self._places[endpoint]

    def reconnect(self, client: Client[_P], **changes: Any) -> Client[_P]:
        """Another client in place of this one, with a new token for the same player, at the address where it
        is now; the old one is closed. What it has of chunks is not sent again.

        Args:
            changes: settings that are new.
        """
        self._known(client)
        client.close()
        settings = {**self._settings[client], "bind": self._places[client], "resume": client, **changes}
        self._forget(client)
        new = Client.connect(protocol=self.protocol, network=self.network, **settings)
        del settings["resume"]
        return self._add(new, new.address, settings)

    def restart(self, server: Server[_P], *, crash: bool = False, **changes: Any) -> Server[_P]:
        """Another server in place of this one, at its address.

        Args:
            crash: nobody is told; otherwise clients see ``SERVER_CLOSED``.
            changes: settings that are new.
        """
        place, settings = self._known(server), {**self._settings[server], **changes}
        if crash:
            self.network.unplug(place)
        server.close()
        self._forget(server)
        return self.server(**{**settings, "address": place})

    def stall(self, endpoint: Server | Client, seconds: float) -> None:
        """Lets the game of an endpoint hang: it doesn't tick for so long."""
        self._known(endpoint)
        check_seconds("seconds", seconds)
        self._stalled[endpoint] = self.now + seconds

    def at(self, seconds: float, action: Callable[[], object]) -> None:
        """Calls something before the first tick at or after ``seconds`` of virtual time; what is due at one
        time, in the order it was asked for."""
        check_seconds("seconds", seconds)
        if not callable(action):
            raise TypeError(f"action must be callable, not {type(action).__name__}")
        heapq.heappush(self._script, (seconds, self._scheduled, action))
        self._scheduled += 1

    # --- the loop ----------------------------------------------------------------------------------------

    def ticks(self, seconds: float) -> Iterator[int]:
        """Lets this much time pass. In each tick all endpoints receive, the body of the loop runs (see
        :meth:`inbox`), and all send."""
        check_seconds("seconds", seconds)
        for tick in range(round(seconds * self.rate)):
            while self._script and self._script[0][0] <= self.now:
                heapq.heappop(self._script)[2]()
            awake = [endpoint for endpoint in self._open() if self._stalled.get(endpoint, 0) <= self.now]
            self._inboxes = {endpoint: endpoint.receive() for endpoint in awake}
            yield tick
            for endpoint in awake:
                if not endpoint.closed:
                    endpoint.flush()
            self.network.advance(1 / self.rate)

    @overload
    def inbox(self, endpoint: Server[_P]) -> _Received[_P]: ...

    @overload
    def inbox(self, endpoint: Client[_P]) -> Inbox[_P, _P | Event, tuple[int, _P]]: ...

    def inbox(self, endpoint: Server[_P] | Client[_P]) -> Inbox[Any]:
        """What an endpoint received in this tick."""
        self._known(endpoint)
        if endpoint not in self._inboxes:
            if endpoint.closed:
                raise ValueError(f"{endpoint!r} was closed before this tick, and receives nothing any more")
            self._inboxes[endpoint] = endpoint.receive()
        return self._inboxes[endpoint]

    def run(self, seconds: float) -> dict[Server | Client, Collected]:
        """As :meth:`ticks` without a body. Returns what each endpoint received."""
        collected: dict[Server | Client, Collected] = {}
        for _ in self.ticks(seconds):
            for endpoint, inbox in self._inboxes.items():
                collected.setdefault(endpoint, Collected()).take(inbox)
        for stalled in self._open():
            collected.setdefault(stalled, Collected())
        return collected

    def close(self) -> None:
        """Closes all endpoints."""
        for endpoint in self._open():
            endpoint.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<World of seed {self.seed} at {self.now:.3f} seconds>"

    def _known(self, endpoint: Server | Client) -> Address:
        """Its address, if it is one of this world's."""
        place = self._places.get(endpoint)
        if place is None:
            raise ValueError(
                f"{endpoint!r} must be an endpoint of this world, made by its server() or client() and not "
                "replaced by reconnect() or restart()"
            )
        return place

    def _open(self) -> list[Server | Client]:
        return [endpoint for endpoint in self._settings if not endpoint.closed]

    def _add(self, endpoint: _E, place: Address, settings: dict[str, Any]) -> _E:
        self._settings[endpoint] = settings
        self._places[endpoint] = place
        return endpoint

    def _forget(self, endpoint: Server | Client) -> None:
        for kept in (self._settings, self._places, self._inboxes, self._stalled):
            kept.pop(endpoint, None)
