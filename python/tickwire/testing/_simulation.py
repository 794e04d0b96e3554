"""A simulation of a game in virtual time: servers, clients, and one loop."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, overload

from tickwire._checks import check_callable, check_number, check_seconds
from tickwire._connection import AddressLike, Event
from tickwire._core import (
    Address,
    Client,
    ClientHandle,
    Conditions,
    Inbox,
    Protocol,
    Server,
    SimulatedNetwork,
    Tuning,
)
from tickwire.testing._pair import Collected

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


class Simulation(Generic[_P]):
    """Servers and clients of one protocol on a :class:`SimulatedNetwork`, all ticked by one loop.

    The same seed and the same calls produce the same bytes (``sim.network.transcript``). Use
    ``sim.network`` for conditions, partitions and NATs.

    Args:
        protocol: the protocol of all endpoints.
        seed: the seed of all random numbers in the simulation, 0 to 2**64 - 1.
        conditions: the conditions of all links; None: perfect links.
        rate: ticks per second of all endpoints.

    Example:
        >>> with Simulation(protocol, seed=1) as sim:
        ...     server = sim.server()
        ...     players = [sim.client() for _ in range(8)]
        ...     received = sim.run(1)
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
        """The servers that aren't closed, in order of creation."""
        return [endpoint for endpoint in self._open() if isinstance(endpoint, Server)]

    @property
    def clients(self) -> list[Client[_P]]:
        """The clients that aren't closed, in order of creation."""
        return [endpoint for endpoint in self._open() if isinstance(endpoint, Client)]

    def server(self, address: AddressLike = SERVER_ADDRESS, **settings: Any) -> Server[_P]:
        """Makes a server, with the settings of :class:`tickwire.Server`."""
        settings = {"address": address, **settings}
        server = Server(protocol=self.protocol, network=self.network, **settings)
        return self._add(server, server.address, settings)

    def client(
        self, server: Server | AddressLike | None = None, *, at: AddressLike | None = None, **settings: Any
    ) -> Client[_P]:
        """Makes a client that connects to a server with its own token.

        Args:
            server: the server; None: the simulation's first server.
            at: the client's address (behind a NAT, its inner address); None: an unused IP address.
            settings: the settings of :meth:`tickwire.Client.connect`. By default, ``client_id`` counts from
                1.
        """
        if server is None:
            if not self.servers:
                raise ValueError("there is no server to connect to: make one first, or give its address")
            server = self.servers[0]
        self._players += 1
        number = self._players
        tuning: Tuning = settings.get("tuning") or Tuning()
        place = f"10.{1 + number // 65_536}.{number // 256 % 256}.{number % 256}:0" if at is None else at
        settings = {
            "address": server.address if isinstance(server, Server) else server,
            "client_id": number,
            **settings,
            "tuning": tuning.replace(bind=tuning.bind or place),
        }
        client = Client.connect(protocol=self.protocol, network=self.network, **settings)
        return self._add(client, client.address, settings)

    def where(self, endpoint: Server | Client) -> Address:
        """The current address of an endpoint; behind a NAT, its inner address."""
        return self._known(endpoint)

    # --- what happens to them ----------------------------------------------------------------------------

    def move(self, endpoint: Server | Client, to: AddressLike) -> Address:
        """Gives an endpoint another address, as when a phone leaves the Wi-Fi. Netcode binds connections to
        addresses, so the endpoint's connections time out on both sides. Port 0 picks a free port.
        """
        self._places[endpoint] = self.network.move_host(self._known(endpoint), to)
        return self._places[endpoint]

    def reconnect(self, client: Client[_P], **changes: Any) -> Client[_P]:
        """Closes a client, and makes a new client with a new token for the same player, at the same
        address.

        Args:
            changes: settings that replace the old ones.
        """
        self._known(client)
        client.close()
        settings = {**self._settings[client], **changes}
        settings["tuning"] = settings["tuning"].replace(bind=self._places[client])
        self._forget(client)
        new = Client.connect(protocol=self.protocol, network=self.network, **settings)
        return self._add(new, new.address, settings)

    def restart(self, server: Server[_P], *, crash: bool = False, **changes: Any) -> Server[_P]:
        """Closes a server, and makes a new server at the same address.

        Args:
            crash: whether the server closes without a goodbye; otherwise clients see ``SERVER_CLOSED``.
            changes: settings that replace the old ones.
        """
        place, settings = self._known(server), {**self._settings[server], **changes}
        if crash:
            self.network.unplug(place)
        server.close()
        self._forget(server)
        return self.server(**{**settings, "address": place})

    def stall(self, endpoint: Server | Client, seconds: float) -> None:
        """Makes an endpoint's game hang: the endpoint doesn't tick for this many seconds."""
        self._known(endpoint)
        check_seconds("seconds", seconds)
        self._stalled[endpoint] = self.now + seconds

    def at(self, seconds: float, action: Callable[[], object]) -> None:
        """Schedules a function to run before the first tick at or after ``seconds`` of virtual time.
        Functions with the same time run in the order in which they were scheduled.
        """
        check_seconds("seconds", seconds)
        check_callable("action", action, 0)
        heapq.heappush(self._script, (seconds, self._scheduled, action))
        self._scheduled += 1

    # --- the loop ----------------------------------------------------------------------------------------

    def ticks(self, seconds: float) -> Iterator[int]:
        """Advances the time. In each tick, all endpoints receive, the body of the loop runs, and all
        endpoints send. In the body, :meth:`inbox` returns what an endpoint received.
        """
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
        """Returns an endpoint's inbox of this tick."""
        self._known(endpoint)
        if endpoint not in self._inboxes:
            if endpoint.closed:
                raise ValueError(f"{endpoint!r} was closed before this tick, and receives nothing any more")
            self._inboxes[endpoint] = endpoint.receive()
        return self._inboxes[endpoint]

    def run(self, seconds: float) -> dict[Server | Client, Collected]:
        """Advances the time, like a loop over :meth:`ticks` with an empty body. Returns everything that
        each endpoint received.
        """
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
        return f"<Simulation of seed {self.seed} at {self.now:.3f} seconds>"

    def _known(self, endpoint: Server | Client) -> Address:
        """The endpoint's address, if the endpoint belongs to this simulation."""
        place = self._places.get(endpoint)
        if place is None:
            raise ValueError(
                f"{endpoint!r} must be an endpoint of this simulation, made by its server() or client() and "
                "not replaced by reconnect() or restart()"
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
