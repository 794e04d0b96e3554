"""Rooms: the class that a game writes, and the process that runs it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from tickwire._checks import check_within
from tickwire._core import Access, Address, Server
from tickwire._core import Protocol as Game
from tickwire._run import DEFAULT_RATE, run
from tickwire.errors import RoomTakenError
from tickwire.fleet._keeper import LEASE, Keeper
from tickwire.fleet._store import Claim, MemoryStore, Store

__all__ = ["Engine", "Local", "Place", "room", "serve"]

MOVED = "the room moves"
"""The text for players when their room moves to another machine."""

LINGER = 1.0
"""Seconds that a closing room's server has to deliver the text :data:`MOVED` to its players."""

CLAIM_EVERY = 0.25
"""Seconds between two tries to claim a room whose last process died."""


class Playing(Protocol):
    """The class that a game writes: it runs a room on a server."""

    def __init__(self, server: Any) -> None:
        """Starts the room, or continues it if ``server.world`` already has ghosts."""

    def tick(self, inbox: Any) -> bool | None:
        """Runs one tick. Returns True if the match is over; its world is then deleted."""


@dataclass(frozen=True, slots=True)
class Place:
    """The address and protocol of a fleet's room, for making a connect token."""

    address: Address
    """The address for players: ``servers=[place.address]`` in :meth:`ConnectToken.generate`."""
    protocol_id: int
    """The id of the room's protocol."""


class Engine(Protocol):
    """An object that runs rooms: a :class:`Local`, a :class:`tickwire.fleet.ray.Rooms` or a
    :class:`tickwire.fleet.agones.Allocator`.
    """

    def find_or_create(self, room: str) -> Place:
        """Returns the place of the room with this name. Starts the room if it isn't running."""


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of :func:`room`."""

    protocol: Game[Any]
    key: bytes | None
    max_clients: int
    save_every: float
    empty_rate: float


_R = TypeVar("_R", bound=type)


def room(
    protocol: Game[Any],
    *,
    key: bytes | None = None,
    max_clients: int = 64,
    save_every: float = 1.0,
    empty_rate: float | None = None,
) -> Callable[[_R], _R]:
    """Makes a class a room. The class must have ``__init__(self, server)`` and ``tick(self, inbox)``. An
    object of the class runs the game on the server passed to ``__init__``. If a room moves or its machine
    dies, a new room object is made for a server with the saved world. Only the world's ghosts survive this,
    so keep all lasting state in them (:meth:`World.save`).

    Args:
        protocol (Protocol): the game's protocol. It needs ghosts if any state of a room must survive.
        key (bytes | None, default None): the servers' private key; None: development mode.
        max_clients (int, default 64): the most players of a room.
        save_every (float, default 1.0): seconds between two saves of the world, 0.1 to 2. After a
            crash, the room continues from its last save.
        empty_rate (float | None, default None): ticks per second while the room is empty, at least 1 and at
            most the protocol's ``tick_rate``; None: 2, or ``tick_rate`` if it is lower. When a player
            connects, a tick starts at once. Use ``tick_rate`` if the world must continue without players.

    Raises:
        TypeError, ValueError: an argument is invalid.
    """
    if not isinstance(protocol, Game):
        raise TypeError(f"protocol must be a Protocol, not {type(protocol).__name__}")
    check_within("save_every", save_every, 0.1, 2)
    rate = protocol.tick_rate or DEFAULT_RATE
    if empty_rate is None:
        empty_rate = min(2.0, rate)
    check_within("empty_rate", empty_rate, 1, rate)
    options = Options(protocol, key, max_clients, save_every, empty_rate)

    def make(class_: _R) -> _R:
        class_._tickwire_room = options  # type: ignore[attr-defined]
        return class_

    return make


def options_of(class_: type) -> Options:
    """The arguments of :func:`room` for this class."""
    options = getattr(class_, "_tickwire_room", None)
    if not isinstance(options, Options):
        raise TypeError(f"class_ must be decorated with @fleet.room(protocol), not {class_!r}")
    return options


class Running:
    """A room in this process: its server, its game object and its claim."""

    def __init__(
        self,
        class_: type,
        claim: Claim,
        address: Any,
        store: Store,
        *,
        public: list[Any] | None = None,
        **simulated: Any,
    ) -> None:
        options = options_of(class_)
        network = simulated.pop("network", None)
        self._empty_rate = options.empty_rate
        self.keeper = Keeper(store, claim, options.save_every, **simulated)
        self.has_left = False
        self._over = False
        self._leaves = threading.Event()
        with ExitStack() as undo:
            undo.callback(self.keeper.release)
            self.server = Server(
                address,
                options.protocol,
                key=options.key,
                max_clients=options.max_clients,
                access=Access(public_addresses=public),
                network=network,
            )
            undo.callback(self.server.close)
            if claim.world:  # a protocol without ghosts saves nothing
                self.server.world.load(claim.world)
            self.room: Playing = class_(self.server)
            undo.pop_all()
        self.place = Place(Address(public[0]) if public else self.server.address, options.protocol.id)

    def tick(self, inbox: Any) -> bool:
        """Runs a tick. Returns False if the room ends here; then call :meth:`leave`."""
        if not self.keeper.acts:
            return False  # the process stood still, and another may have the room
        self._over = bool(self.room.tick(inbox))
        return self.keeper.tick(self.server.world.save) and not self._over and not self._leaves.is_set()

    def leave(self) -> None:
        """Saves the world, or deletes the saved world if the match is over. Then releases the room."""
        self.has_left = True
        self.keeper.close(None if self._over else self.server.world.save())

    def ask_to_leave(self) -> None:
        """Ends the room after its next tick. Any thread may call it."""
        self._leaves.set()

    def run(self, health: Any = None) -> None:
        """Runs the room until the match is over, the process is asked to end, or another process could
        already be running the room.
        """
        given: dict[str, Any] = {"health": health, "linger": LINGER, "reason": MOVED}
        with run(self.server, empty_rate=self._empty_rate, **given) as ticks:
            try:
                for _, inbox in ticks:
                    if not self.tick(inbox):
                        break
            except BaseException:
                # It goes on from its last save: what it has now may be half of a tick.
                self.has_left = True
                self.keeper.release()
                raise
            self.leave()


def claim(store: Store, name: str, wait: Callable[[float], Any], patience: float = 2 * LEASE) -> Claim:
    """Claims a room. Waits for the end of a dead process's lease."""
    waited = 0.0
    while True:
        try:
            claimed = store.claim(name, LEASE)
        except OSError:
            if waited >= patience:
                raise
            claimed = None
        if claimed is not None:
            return claimed
        if waited >= patience:
            raise RoomTakenError(f"room {name} runs elsewhere")
        wait(CLAIM_EVERY)
        waited += CLAIM_EVERY


def serve(
    class_: type,
    name: str,
    address: Any,
    *,
    store: Store,
    public_addresses: list[Any] | None = None,
    health: Any = None,
) -> None:
    """Runs one room in this process until its match is over, or until the process must end (Ctrl-C,
    SIGTERM). In the second case, the world is saved, and the next process that claims the room continues
    from this world.

    Args:
        class_ (type): the class, decorated with :func:`room`.
        name (str): the room's name, 1 to 63 bytes.
        address (AddressLike): the address that the room's server listens on.
        store (Store): the store for the room's world.
        public_addresses (list[AddressLike] | None, default None): the server's addresses in tokens, if they
            differ from ``address``.
        health (default None): as for :func:`tickwire.run`.

    Raises:
        RoomTakenError: another process runs the room.
        OSError: the address can't be bound, or the store can't be reached.
    """
    claimed = claim(store, name, threading.Event().wait)
    Running(class_, claimed, address, store, public=public_addresses).run(health)


class Local:
    """Runs rooms in this process, each in its own thread. Use it for development, and for a few rooms on
    one machine.

    Args:
        class_ (type): the class, decorated with :func:`room`.
        host (str, default "127.0.0.1"): the address that the rooms listen on, each with its own port.
        store (Store | None, default None): the store for worlds; None: memory.
    """

    def __init__(self, class_: type, host: str = "127.0.0.1", *, store: Store | None = None) -> None:
        options_of(class_)
        self._class = class_
        self._host = host
        self._store = MemoryStore() if store is None else store
        self._lock = threading.Lock()
        self._rooms: dict[str, tuple[Running, threading.Thread]] = {}

    def find_or_create(self, room: str) -> Place:
        """See :meth:`Engine.find_or_create`."""
        with self._lock:
            running, _ = self._rooms.get(room, (None, None))
            if running is None or running.has_left:
                claimed = claim(self._store, room, threading.Event().wait)
                running = Running(self._class, claimed, Address((self._host, 0)), self._store)
                thread = threading.Thread(target=running.run, name=f"room {room}", daemon=True)
                self._rooms[room] = running, thread
                thread.start()
            return running.place

    def close(self) -> None:
        """Ends all rooms. The store keeps their worlds."""
        while rooms := self._copied():
            for running, _ in rooms.values():
                running.ask_to_leave()
            for _, thread in rooms.values():
                if thread is not threading.current_thread():
                    thread.join()
            with self._lock:
                # A room may have begun another one meanwhile.
                self._rooms = {name: each for name, each in self._rooms.items() if rooms.get(name) != each}

    def _copied(self) -> dict[str, tuple[Running, threading.Thread]]:
        with self._lock:
            return self._rooms.copy()
