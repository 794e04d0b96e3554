"""Servers in a Kubernetes cluster, run by Agones.

::

    from tickwire.fleet import agones

    with agones.lifecycle(server) as life, tw.run(server, health=life, linger=2) as ticks:
        for tick, inbox in ticks:
            ...

The server reports to Agones that it is ready and healthy, and learns about its allocation. It uses the REST
interface of Agones' sidecar. See ``docs/scale.md``.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import queue
import socket
import ssl
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import quote

from tickwire._checks import check_within, encoded
from tickwire._core import Address, Server
from tickwire._run import Stop
from tickwire.errors import ClosedError
from tickwire.fleet._rooms import Place, Running, claim, options_of
from tickwire.fleet._store import Store, check_name

__all__ = ["Allocator", "GameServer", "Lifecycle", "lifecycle", "serve"]

VARIABLE = "AGONES_SDK_HTTP_PORT"
HEALTH_EVERY = 1.0
"""Seconds between two rounds, which report health and players, and repeat commands that failed."""

TIMEOUT = 2.0
"""Seconds in which the sidecar must answer."""

SILENCE = 2.0
"""Seconds without a tick after which the server isn't healthy."""

FIRST_DELAY = 0.1
MAX_DELAY = 5.0
"""The first and the longest delay, in seconds, before the sidecar is tried again after a failure."""

MAX_ANSWER_BYTES = 1 << 20
"""The most bytes that are read of an answer, and of a line of events."""

MAX_UNSAID = 16
"""The most commands that wait for the sidecar. The oldest are dropped."""

MAX_CHANGES = 32
"""The most players whose joining or leaving is reported in one round."""

ALLOCATION_TIMEOUT = 5.0
"""Seconds in which the allocator must answer."""

WAIT = 0.05
"""Seconds between two checks whether this server is allocated."""

LOG = logging.getLogger("tickwire")


@dataclass(frozen=True, slots=True)
class GameServer:
    """Agones' information about this server. Anyone who may allocate servers can set the server's labels and
    annotations, so treat them as untrusted input.
    """

    name: str = ""
    """The server's name."""
    state: str = ""
    """``"Ready"``, ``"Allocated"``, ``"Reserved"``, ``"Shutdown"`` or another of Agones' states."""
    address: str = ""
    """The node's address; players reach the server there."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """The node's ports, by their names in the manifest."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of this server in Kubernetes, by name."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """The annotations of this server in Kubernetes, by name."""

    @staticmethod
    def read(given: object) -> GameServer:
        """Reads Agones' JSON. Values of the wrong type are ignored."""
        meta, status = _dict(_dict(given).get("object_meta")), _dict(_dict(given).get("status"))
        ports = [_dict(each) for each in _list(status.get("ports"))]
        return GameServer(
            name=_text(meta.get("name")),
            state=_text(status.get("state")),
            address=_text(status.get("address")),
            ports={
                _text(each.get("name")): port
                for each in ports
                if type(port := each.get("port")) is int and 0 < port < 65536
            },
            labels=_texts(meta.get("labels")),
            annotations=_texts(meta.get("annotations")),
        )


def _dict(given: object) -> dict[Any, Any]:
    return given if isinstance(given, dict) else {}


def _list(given: object) -> list[Any]:
    return given if isinstance(given, list) else []


def _text(given: object) -> str:
    return given if isinstance(given, str) else ""


def _texts(given: object) -> dict[str, str]:
    return {key: text for key, text in _dict(given).items() if isinstance(key, str) and isinstance(text, str)}


def lifecycle(server: Server | None = None, *, players: str | None = "players") -> Lifecycle:
    """Returns a context manager that reports this server's state to Agones. It sends Ready after the first
    tick, Health while ticks happen, the list of connected players, and Shutdown at the end. To report ticks,
    pass the context manager to ``tw.run(server, health=life)``, or call :meth:`Lifecycle.tick` in your own
    loop.

    Agones' sidecar can start later than the server, be slow or fail. A separate thread repeats failed
    reports, and the game doesn't wait. Without Agones (if the variable ``AGONES_SDK_HTTP_PORT`` isn't set),
    the context manager only logs that Agones is missing.

    Args:
        server (Server | None, default None): the server whose players are listed; None: no list.
        players (str | None, default "players"): the name of Agones' list for client ids. The fleet's manifest
            must declare this list under ``lists``. The list's capacity is set to ``max_clients``. None: no
            list.

    Raises:
        TypeError, ValueError: an argument is invalid.
    """
    return Lifecycle(server, players)


class Lifecycle:
    """The context manager that :func:`lifecycle` returns."""

    def __init__(self, server: Server | None, players: str | None) -> None:
        if server is not None and not isinstance(server, Server):
            raise TypeError(f"server must be a Server or None, not {type(server).__name__}")
        if players is not None and not 1 <= len(encoded("players", players)) <= 63:
            raise ValueError(f"players must be the name of a list, 1 to 63 bytes, or None, not {players!r}")
        self._server = server
        self._list = players
        self._listed: set[int] | None = None  # None: the list isn't set up yet
        self._sidecar = _sidecar()
        self._gameserver = GameServer()
        self._ticked: float | None = None
        self._commands: queue.SimpleQueue[tuple[str, dict[str, Any]] | None] = queue.SimpleQueue()
        self._said_ready = False
        self._closed = False
        self._worker: threading.Thread | None = None
        self._watcher: _Watcher | None = None

    def __enter__(self) -> Lifecycle:
        if self._sidecar is None:
            LOG.info("%s isn't set: this server runs without Agones", VARIABLE)
            return self
        self._worker = threading.Thread(target=self._work, name="tickwire agones", daemon=True)
        self._watcher = _Watcher(self._sidecar, self._note)
        self._worker.start()
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._worker is None or self._closed:
            return
        self.shutdown()
        self._closed = True
        self._commands.put(None)
        self._worker.join(2 * TIMEOUT)
        assert self._watcher is not None
        self._watcher.close()

    @property
    def works(self) -> bool:
        """Whether there is a sidecar; False without Agones."""
        return self._sidecar is not None

    @property
    def gameserver(self) -> GameServer:
        """Agones' last report about this server; its fields are empty before the first report, and without
        Agones.
        """
        return self._gameserver

    def tick(self) -> None:
        """Reports that a tick happens. Health is sent only while ticks happen, so that Agones replaces a
        hung server.
        """
        self._ticked = time.monotonic()
        if not self._said_ready:
            self._said_ready = True
            self._say("/ready", {})

    def list_players(self, server: Server) -> None:
        """Sets the server whose players are listed. Use it if you make the server in the ``with`` block."""
        self._server = server

    def allocate(self) -> None:
        """Reports that a match runs here, so that Agones doesn't end the server. Use it if Agones didn't
        allocate the server.
        """
        self._say("/allocate", {})

    def reserve(self, seconds: int) -> None:
        """Reserves this server for this many seconds. Meanwhile Agones neither ends the server nor
        allocates it.

        Args:
            seconds (int): 1 to 86,400.
        """
        check_within("seconds", seconds, 1, 86_400, int)
        self._say("/reserve", {"seconds": str(int(seconds))})

    def ready(self) -> None:
        """Reports that this server can be allocated again; call it after a match. The first report, after the
        first tick, is automatic.
        """
        self._say("/ready", {})

    def shutdown(self) -> None:
        """Reports that this server is finished, so that Agones ends it. The end of the ``with`` block does
        this too.
        """
        self._say("/shutdown", {})

    def _say(self, path: str, body: dict[str, Any]) -> None:
        if self._worker is not None and not self._closed:
            self._commands.put((path, body))

    def _note(self, gameserver: GameServer) -> None:
        if gameserver.state != self._gameserver.state:
            LOG.info("Agones says that this server is %s", gameserver.state)
        self._gameserver = gameserver

    def _work(self) -> None:
        assert self._sidecar is not None
        unsaid: deque[tuple[str, dict[str, Any]]] = deque(maxlen=MAX_UNSAID)
        delay, say_at, look_at = FIRST_DELAY, 0.0, 0.0
        while True:
            now = time.monotonic()
            if unsaid and now >= say_at:
                # In order, and until it is heard: a server that isn't ready gets no players.
                if self._sidecar.ask("POST", *unsaid[0]) in (http.client.OK, http.client.BAD_REQUEST):
                    unsaid.popleft()
                    delay = FIRST_DELAY
                else:
                    say_at = now + delay
                    delay = min(2 * delay, MAX_DELAY)
            if now >= look_at:
                look_at = now + HEALTH_EVERY
                self._look()
            until = min(look_at, say_at) if unsaid else look_at
            try:
                command = self._commands.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                continue
            if command is None:
                break
            unsaid.append(command)
        for command in unsaid:
            if self._sidecar.ask("POST", *command) is None:
                break

    def _look(self) -> None:
        assert self._sidecar is not None
        ticked = self._ticked
        if ticked is not None and time.monotonic() - ticked <= SILENCE:
            self._sidecar.ask("POST", "/health", {})
        if self._list is not None and self._server is not None:
            self._list_players(self._server, f"/v1beta1/lists/{quote(self._list, safe='')}")

    def _list_players(self, server: Server, path: str) -> None:
        assert self._sidecar is not None
        if self._listed is None:
            status = self._sidecar.ask("PATCH", path, {"capacity": str(server.max_clients)})
            if status == http.client.NOT_FOUND:
                LOG.warning(
                    "Agones has no list %r: the fleet's manifest declares lists; players aren't listed",
                    self._list,
                )
                self._list = None
            elif status == http.client.OK:
                self._listed = set()
            return
        try:
            connected = {client.id for client in server.clients}
        except ClosedError:
            return
        changes = [("addValue", who) for who in connected - self._listed]
        changes += [("removeValue", who) for who in self._listed - connected]
        for verb, who in changes[:MAX_CHANGES]:
            # What is there already, or gone, was an allocation's doing, or a sidecar's that started anew.
            if self._sidecar.ask("POST", f"{path}:{verb}", {"value": str(who)}) is None:
                return
            self._listed ^= {who}


def _sidecar() -> _Sidecar | None:
    port = os.environ.get(VARIABLE, "")
    if not port:
        return None
    if not (port.isascii() and port.isdecimal() and 1 <= int(port) <= 65535):
        raise ValueError(f"{VARIABLE} must be a port, 1 to 65535, not {port!r}")
    return _Sidecar(int(port))


class _Sidecar:
    """Agones' process beside the server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._failing = False

    def ask(self, method: str, path: str, body: dict[str, Any]) -> int | None:
        """Sends a request. Returns the status of the answer; None if there was no answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        try:
            connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read(MAX_ANSWER_BYTES)
        except (OSError, http.client.HTTPException) as error:
            self._note(f"doesn't answer {path}: {error or type(error).__name__}")
            return None
        finally:
            connection.close()
        if answer.status >= 500:
            self._note(f"answers {path} with {answer.status}")
            return None
        self._failing = False
        return answer.status

    def _note(self, problem: str) -> None:
        # Once, until it answers again.
        if not self._failing:
            LOG.warning("Agones' sidecar at port %d %s; trying again", self.port, problem)
        self._failing = True


class _Watcher(threading.Thread):
    """Reads Agones' events about this server."""

    def __init__(self, sidecar: _Sidecar, note: Any) -> None:
        super().__init__(name="tickwire agones news", daemon=True)
        self._port = sidecar.port
        self._news = note
        self._closed = threading.Event()
        self._socket: socket.socket | None = None

    def run(self) -> None:
        delay = 0.1
        while not self._closed.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT)
            with suppress(OSError, http.client.HTTPException):
                if self._read(connection):
                    delay = 0.1
            connection.close()
            self._closed.wait(delay)
            delay = min(2 * delay, MAX_DELAY)

    def _read(self, connection: http.client.HTTPConnection) -> bool:
        """Reads until the stream ends. Returns whether there were any events."""
        connection.request("GET", "/watch/gameserver", headers={"Content-Type": "application/json"})
        self._socket = connection.sock
        assert self._socket is not None
        answer = connection.getresponse()
        self._socket.settimeout(None)  # news may be rare
        heard = False
        while line := answer.readline(MAX_ANSWER_BYTES):
            if self._closed.is_set():
                break
            try:
                result = _dict(json.loads(line)).get("result")
            except (ValueError, RecursionError):
                break  # no line of JSON: another sidecar, or one cut in the middle
            if isinstance(result, dict):
                self._news(GameServer.read(result))
                heard = True
        return heard

    def close(self) -> None:
        self._closed.set()
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self.join(TIMEOUT)


LABEL = "room"
"""The label with which an allocation names the room that a server must run."""


def serve(class_: type, address: Any, *, store: Store, port: str = "default", local: str = "local") -> None:
    """Runs a room in a pod. It waits until the server is allocated for a room, claims the room, and runs it
    to its end. If the pod must end before the room (SIGTERM), the world is saved, and the next server
    allocated for this room continues from this world.

    Args:
        class_ (type): the class, decorated with :func:`tickwire.fleet.room`.
        address (AddressLike): the address that the server listens on in the pod, such as
            ``"0.0.0.0:7777"``.
        store (Store): the store for the room's world.
        port (str, default "default"): the name of the port in the fleet's manifest.
        local (str, default "local"): the name of the room to run without Agones.

    Raises:
        RoomTakenError: another server runs the room.
        ValueError: the allocation's label isn't a valid room name, or the manifest has no such port.
        OSError: the address can't be bound, or the store can't be reached.
    """
    with lifecycle() as life:
        name, public = local, None
        if life.works:
            allocated = _wait_for_room(life)
            if allocated is None:
                return
            name = check_name(allocated.labels[LABEL])
            if port not in allocated.ports:
                raise ValueError(
                    f"port must be one of the manifest's, {sorted(allocated.ports)}, not {port!r}"
                )
            public = [(allocated.address, allocated.ports[port])]
        running = Running(class_, claim(store, name, time.sleep), address, store, public=public)
        life.list_players(running.server)
        running.run(health=life)


def _wait_for_room(life: Lifecycle) -> GameServer | None:
    """Waits until this server is allocated for a room. Returns None if the process must end before
    that."""
    stop = Stop()
    stop.begin()
    try:
        while not stop.requested:
            life.tick()
            if LABEL in life.gameserver.labels:
                return life.gameserver
            time.sleep(WAIT)
    finally:
        stop.end()
    return None


class Allocator:
    """Finds and starts rooms on an Agones fleet, through Agones' allocator service. Use it in a backend.

    Args:
        class_ (type): the class that the fleet's servers run, decorated with :func:`tickwire.fleet.room`.
        url (str): the allocator's URL, such as ``"https://agones-allocator.agones-system"``.
        fleet (str): the fleet's name.
        namespace (str, default "default"): the fleet's namespace.
        port (str, default "default"): the name of the server's port in the fleet's manifest.
        context (ssl.SSLContext | None, default None): the TLS settings, with the client certificate for the
            allocator.
    """

    def __init__(
        self,
        class_: type,
        url: str,
        fleet: str,
        *,
        namespace: str = "default",
        port: str = "default",
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._protocol_id = options_of(class_).protocol.id
        self._url = f"{url.rstrip('/')}/gameserverallocation"
        self._fleet = fleet
        self._namespace = namespace
        self._port = port
        self._context = context

    def find_or_create(self, room: str) -> Place:
        """See :meth:`tickwire.fleet.Engine.find_or_create`.

        Raises:
            OSError: no server is available, or the allocator doesn't answer.
        """
        fleet = {"agones.dev/fleet": self._fleet}
        body = {
            "namespace": self._namespace,
            # The server that runs the room already, if players still fit in; else one that waits.
            "gameServerSelectors": [
                {
                    "matchLabels": {**fleet, LABEL: check_name(room)},
                    "gameServerState": "ALLOCATED",
                    "lists": {"players": {"minAvailable": "1"}},
                },
                {"matchLabels": fleet, "gameServerState": "READY"},
            ],
            "metadata": {"labels": {LABEL: room}},
        }
        request = urllib.request.Request(
            self._url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=ALLOCATION_TIMEOUT, context=self._context) as answer:
                given = _dict(json.loads(answer.read(MAX_ANSWER_BYTES)))
        except (ValueError, RecursionError) as error:
            raise OSError(f"the allocator's answer can't be read: {error}") from None
        server = GameServer.read({"status": given})
        try:
            return Place(Address((server.address, server.ports[self._port])), self._protocol_id)
        except (KeyError, ValueError):
            raise OSError(f"the allocator names no address and port {self._port!r} of a server") from None
