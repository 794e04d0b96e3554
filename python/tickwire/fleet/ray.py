"""Rooms on a Ray cluster. Each room is a named, detached actor with its own server.

::

    rooms = tickwire.fleet.ray.Rooms(Deathmatch)
    place = rooms.find_or_create("deathmatch")

Ray decides where an actor runs, and restarts it after failures. See ``docs/scale.md``.
"""

from __future__ import annotations

import os
import threading
from typing import Any

try:
    import ray as _ray
except ImportError as error:
    raise ImportError("tickwire.fleet.ray needs the package ray: pip install 'tickwire[ray]'") from error

from tickwire.fleet._rooms import Place, Running, claim, options_of
from tickwire.fleet._store import Claim, MemoryStore, Store, check_name

__all__ = ["ActorStore", "Rooms"]

ray: Any = _ray  # whose types know nothing of actors' options

NAMESPACE = "tickwire"
TIMEOUT = 30.0
"""Seconds in which a room must start. An actor's process takes one or two."""


class Rooms:
    """Runs the rooms of a game on the Ray cluster that this process is connected to (``ray.init``).

    Args:
        class_ (type): the class, decorated with :func:`tickwire.fleet.room`.
        store (Store | None, default None): the store for worlds; None: an actor of the cluster,
            :class:`ActorStore`.
        options: the options of ``ray.remote`` for the rooms' actors, such as ``num_cpus=0.1``,
            ``resources={...}`` or ``scheduling_strategy=...``.
    """

    def __init__(self, class_: type, *, store: Store | None = None, **options: Any) -> None:
        options_of(class_)
        self._class = class_
        self._store = ActorStore() if store is None else store
        self._options = {"num_cpus": 0.1, **options}

    def find_or_create(self, room: str) -> Place:
        """See :meth:`tickwire.fleet.Engine.find_or_create`.

        Raises:
            OSError: the room didn't start in time.
        """
        actor = _Actor.options(
            name=f"room {check_name(room)}",
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            max_restarts=-1,  # a lost node costs a room its place, not its life
            **self._options,
        ).remote(self._class, room, self._store)
        place: Place = _get(actor.place.remote(), TIMEOUT)
        return place

    def move(self, room: str) -> None:
        """Moves a room, for example before its machine is shut down. The room ends on its machine, and
        continues on the machine on which Ray starts it again.

        Raises:
            ValueError: there is no such room.
        """
        actor = ray.get_actor(f"room {room}", namespace=NAMESPACE)
        _get(actor.leave.remote(), TIMEOUT)
        ray.kill(actor, no_restart=False)


class _Room:
    """The process of a room."""

    def __init__(self, class_: type, name: str, store: Store) -> None:
        host = ray.util.get_node_ip_address()
        claimed = claim(store, name, threading.Event().wait)
        self._running = Running(class_, claimed, (host, 0), store)
        self._left = False
        self._thread = threading.Thread(target=self._run, name=f"room {name}")
        self._thread.start()

    def _run(self) -> None:
        failed = True
        try:
            self._running.run()
            failed = False
        finally:
            if not self._left:
                # A room that failed is started again by Ray, from its last save; one whose match is over
                # isn't.
                os._exit(1) if failed else ray.actor.exit_actor()

    def place(self) -> Place:
        if self._running.keeper.is_over:
            os._exit(1)  # the room hangs, and Ray starts another process for it
        return self._running.place

    def leave(self) -> None:
        self._left = True
        self._running.ask_to_leave()
        self._thread.join()


_Actor = ray.remote(max_concurrency=4)(_Room)


class ActorStore:
    """A :class:`tickwire.fleet.Store` in an actor of the cluster. It exists as long as the cluster's head
    node. For rooms that must survive the head node, use :class:`tickwire.fleet.RedisStore`.
    """

    def __init__(self) -> None:
        self._actor = _Store.options(
            name="store",
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            num_cpus=0,
            resources={"node:__internal_head__": 0.001},  # which outlives the others
        ).remote()

    def claim(self, room: str, seconds: float) -> Claim | None:
        """See :meth:`tickwire.fleet.Store.claim`."""
        claimed: Claim | None = _get(self._actor.claim.remote(room, seconds))
        return claimed

    def keep(self, claim: Claim, seconds: float, world: bytes | None = None) -> bool:
        """See :meth:`tickwire.fleet.Store.keep`."""
        return bool(_get(self._actor.keep.remote(claim, seconds, world)))

    def release(self, claim: Claim) -> None:
        """See :meth:`tickwire.fleet.Store.release`."""
        _get(self._actor.release.remote(claim))

    def forget(self, claim: Claim) -> None:
        """See :meth:`tickwire.fleet.Store.forget`."""
        _get(self._actor.forget.remote(claim))


_Store = ray.remote(MemoryStore)


def _get(answer: Any, timeout: float = 2.0) -> Any:
    try:
        return ray.get(answer, timeout=timeout)
    except ray.exceptions.RayError as error:
        raise OSError(f"ray: {error}") from error
