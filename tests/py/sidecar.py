"""Agones' sidecar and allocator as their published REST descriptions have them: states, lists and the news
of both."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def rightly(_path: str) -> None:
    """Answers as Agones does."""


class Sidecar:
    """One server's: serves at a port of the loopback address while the block runs."""

    def __init__(self, *, lists: dict[str, int] | None = None, port: int = 0) -> None:
        self.changed = threading.Condition()
        self.state = "Scheduled"
        self.calls: list[str] = []
        self.labels: dict[str, str] = {}
        self.lists = {name: {"capacity": capacity, "values": []} for name, capacity in (lists or {}).items()}
        self.answer: Callable[[str], tuple[int, bytes] | None] = rightly
        self.game_port = 7777
        self._news = 0
        self._ends = False
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self) -> Sidecar:
        return self

    def __exit__(self, *_: object) -> None:
        with self.changed:
            self._ends = True
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()

    def wait(self, condition: Callable[[], bool], seconds: float = 10.0) -> bool:
        """Waits until something holds of this sidecar."""
        with self.changed:
            return self.changed.wait_for(condition, seconds)

    def allocate(self, labels: dict[str, str]) -> None:
        """What Agones does for an allocation."""
        with self.changed:
            self.state = "Allocated"
            self.labels.update(labels)
            self._tell()

    def _tell(self) -> None:
        self._news += 1
        self.changed.notify_all()

    def gameserver(self) -> dict[str, Any]:
        """The resource, as the SDK shows it."""
        return {
            "object_meta": {"name": "fleet-1", "labels": dict(self.labels), "annotations": {}},
            "status": {
                "state": self.state,
                "address": "127.0.0.1",
                "ports": [{"name": "default", "port": self.game_port}],
            },
        }

    def _handle(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        states = {
            "/ready": "Ready",
            "/allocate": "Allocated",
            "/reserve": "Reserved",
            "/shutdown": "Shutdown",
        }
        with self.changed:
            self.calls.append(path)
            if method == "POST" and path in states:
                self.state = states[path]
            self._tell()
            if path == "/gameserver":
                return 200, self.gameserver()
            if path == "/gameserverallocation":
                return self._allocation(body)
            if not path.startswith("/v1beta1/lists/"):
                return 200, {}
            name, _, verb = path.removeprefix("/v1beta1/lists/").partition(":")
            kept = self.lists.get(name)
            if kept is None:
                return 404, {"code": 5, "message": "list not found"}
            if method == "PATCH":
                kept["capacity"] = int(body["capacity"])
            elif verb == "addValue":
                if body["value"] in kept["values"]:
                    return 409, {"code": 6}
                if len(kept["values"]) >= kept["capacity"]:
                    return 400, {"code": 11}
                kept["values"].append(body["value"])
            elif verb == "removeValue":
                if body["value"] not in kept["values"]:
                    return 404, {"code": 5}
                kept["values"].remove(body["value"])
            return 200, {"name": name, "capacity": str(kept["capacity"]), "values": kept["values"]}

    def _allocation(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The allocator service's answer, of a fleet that has this one server."""
        own = {"agones.dev/fleet": "attic", **self.labels}
        for selector in body["gameServerSelectors"]:
            matches = selector["matchLabels"].items() <= own.items()
            room = all(
                len(self.lists[name]["values"]) + int(asked["minAvailable"]) <= self.lists[name]["capacity"]
                for name, asked in selector.get("lists", {}).items()
            )
            if matches and room and selector["gameServerState"] == self.state.upper():
                self.state = "Allocated"
                self.labels.update(body["metadata"]["labels"])
                self._tell()
                status = self.gameserver()["status"]
                return 200, {
                    "gameServerName": "fleet-1",
                    "address": status["address"],
                    "ports": status["ports"],
                }
        return 429, {"code": 8, "message": "there is no available GameServer to allocate"}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        sidecar = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if self.path == "/watch/gameserver" and sidecar.answer(self.path) is None:
                    self.watch()
                else:
                    self.once()

            def once(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}")
                given = sidecar.answer(self.path)
                if given is None:
                    status, answer = sidecar._handle(self.command, self.path, body)
                    given = status, json.dumps(answer).encode()
                with suppress(OSError):  # the asker has stopped waiting
                    self.send_response(given[0])
                    self.send_header("Content-Length", str(len(given[1])))
                    self.end_headers()
                    self.wfile.write(given[1])

            do_POST = do_PATCH = do_PUT = once  # noqa: N815

            def watch(self) -> None:
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                told = -1
                while True:
                    with sidecar.changed:
                        while sidecar._news == told and not sidecar._ends:
                            sidecar.changed.wait()
                        if sidecar._ends:
                            return
                        told = sidecar._news
                        line = json.dumps({"result": sidecar.gameserver()}).encode() + b"\n"
                    try:
                        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                    except OSError:
                        return

            def log_message(self, *_: Any) -> None: ...

        return Handler
