"""The ghosts' scenes by hand: NumPy finds the rows that changed, and all get the same bytes, without acks.

Each row that changed goes as 17 bytes: its number, the position in 3 x 21 bits, the rotation's smallest
three in 9 bits each, health, flags. A 64th of all rows goes besides each tick, changed or not, so that what
was lost is mended within about two seconds. Where clients see 200 m, each gets those rows that are near it.
Measured as in `play.rs`: CPU time of this thread, without sockets. Prints a row of JSON for each scene; with
names of scenes, only these; with `--list`, their names.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scene import SEED, Scene, Walkers

ROW = np.dtype([("id", "<u2"), ("position", "<u8"), ("rotation", "<u4"), ("health", "<u2"), ("flags", "u1")])
CLIENTS = {"S1": 16, "S2": 64, "S3": 64, "S6": 64, "S6b": 64, "C901": 1}
SIGHT = {"S6": 200.0, "S6b": 200.0}
REFRESH = 64
WARM, MEASURED = 60, 150
OTHERS = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
LEVEL = 255 * 2**0.5

Rows = NDArray[np.void]


def packed(scene: Scene, rows: NDArray[np.intp]) -> Rows:
    """These rows, quantised."""
    out = np.empty(len(rows), ROW)
    steps = np.rint((scene.position[rows].astype(np.float64) + 2000) * 512).astype(np.uint64)
    out["id"] = rows
    out["position"] = steps[:, 0] | steps[:, 1] << np.uint64(21) | steps[:, 2] << np.uint64(42)
    q = scene.rotation[rows]
    largest = np.abs(q).argmax(axis=1)
    sign = np.where(np.take_along_axis(q, largest[:, None], 1) < 0, -LEVEL, LEVEL)
    levels = (np.rint(np.take_along_axis(q, OTHERS[largest], 1) * sign) + 255).astype(np.uint32)
    nine, eighteen = np.uint32(9), np.uint32(18)
    rotation = levels[:, 0] | levels[:, 1] << nine | levels[:, 2] << eighteen
    out["rotation"] = rotation << np.uint32(2) | largest.astype(np.uint32)
    out["health"], out["flags"] = scene.health[rows], scene.flags[rows]
    return out


class Server:
    """Knows the world as it was sent last."""

    def __init__(self, scene: Scene, walkers: Walkers, clients: int, sight: float | None) -> None:
        self._scene, self._walkers, self._clients, self._sight = scene, walkers, clients, sight
        self._before = [np.zeros_like(column) for column in self._columns()]

    def _columns(self) -> tuple[NDArray[Any], ...]:
        scene = self._scene
        return scene.position, scene.rotation, scene.health, scene.flags

    def _cells(self, places: NDArray[np.float32]) -> NDArray[np.intp]:
        """The cells of places: from 0 to 31 along x and z."""
        return np.floor(places / (self._sight or 1.0)).astype(np.intp) + 16

    def tick(self) -> list[bytes]:
        """The payload of each client."""
        scene, n = self._scene, self._scene.plan.entities
        due = np.zeros(n, bool)
        for now, before in zip(self._columns(), self._before, strict=True):
            differs = now != before
            due |= differs if differs.ndim == 1 else differs.any(axis=1)
            before[:] = now
        due[scene.tick % REFRESH :: REFRESH] = True
        rows = np.flatnonzero(due)
        body = packed(scene, rows)
        if self._sight is None:
            return [body.tobytes()] * self._clients
        # Sorted by cells as wide as clients see, so that each looks at three runs of rows.
        at = scene.position[rows, ::2]
        keys = self._cells(at) @ (1, 32)
        order = keys.argsort(kind="stable")
        at, body = at[order], body[order]
        starts = np.searchsorted(keys[order], np.arange(32 * 32))
        payloads = []
        eyes = self._walkers.position
        for eye, (x, z) in zip(eyes, self._cells(eyes), strict=True):
            runs = [
                slice(starts[line + x - 1], starts[line + x + 2])
                for line in ((z - 1) * 32, z * 32, (z + 1) * 32)
            ]
            parts = []
            for run in runs:
                apart = at[run] - eye
                parts.append(body[run][np.einsum("ij,ij->i", apart, apart) <= self._sight**2].tobytes())
            payloads.append(b"".join(parts))
        return payloads


class Client:
    """The world as it arrived."""

    def __init__(self, rows: int) -> None:
        self.position, self.rotation = np.zeros((rows, 3)), np.zeros((rows, 4), np.float32)
        self.health, self.flags = np.zeros(rows, np.uint16), np.zeros(rows, np.uint8)

    def take(self, payload: bytes) -> None:
        body = np.frombuffer(payload, ROW)
        rows, position, rotation = body["id"], body["position"], body["rotation"]
        for axis in range(3):
            steps = position >> np.uint64(21 * axis) & np.uint64((1 << 21) - 1)
            self.position[rows, axis] = steps / 512 - 2000
        largest = rotation & np.uint32(3)
        levels = [rotation >> np.uint32(2 + 9 * i) & np.uint32(511) for i in range(3)]
        three = (np.stack(levels, axis=1).astype(np.float32) - 255) / np.float32(LEVEL)
        q = np.empty((len(rows), 4), np.float32)
        np.put_along_axis(q, OTHERS[largest], three, 1)
        fourth = np.sqrt(np.maximum(0, 1 - (three * three).sum(axis=1)))
        np.put_along_axis(q, largest[:, None].astype(np.intp), fourth[:, None], 1)
        self.rotation[rows] = q
        self.health[rows], self.flags[rows] = body["health"], body["flags"]


def measured(name: str) -> dict[str, Any]:
    """One scene's row."""
    scene, clients = Scene(name), CLIENTS[name]
    walkers = Walkers(SEED, clients, scene.plan.reach[0], scene.plan.hz)
    server, client = Server(scene, walkers, clients, SIGHT.get(name)), Client(scene.plan.entities)
    server_ms, client_ms, sent, updates = [], [], 0, 0
    warm = 1200 if name == "C901" else WARM
    for tick in range(warm + MEASURED):
        scene.step()
        walkers.step()
        start = time.thread_time()
        payloads = server.tick()
        between = time.thread_time()
        client.take(payloads[0])
        if tick >= warm:
            server_ms.append((between - start) * 1e3)
            client_ms.append((time.thread_time() - between) * 1e3)
            sent += sum(map(len, payloads))
            updates += _updates(scene, walkers, clients, SIGHT.get(name))
    rate = scene.plan.hz / clients
    return {
        "scene": name,
        "clients": clients,
        "server_ms": round(statistics.median(server_ms), 3),
        "bytes_a_client_and_second": round(sent / MEASURED * rate),
        "bytes_an_update": round(sent / updates, 3) if updates else None,
        "client_ms": round(statistics.median(client_ms), 3),
    }


def _updates(scene: Scene, walkers: Walkers, clients: int, sight: float | None) -> int:
    """Objects that moved, for each client that sees them."""
    if sight is None:
        return len(scene.moved) * clients
    at = scene.position[scene.moved, ::2]
    apart = (at - eye for eye in walkers.position)
    return sum(int((np.einsum("ij,ij->i", each, each) <= sight**2).sum()) for each in apart)


def main() -> None:
    words = sys.argv[1:]
    for name in CLIENTS:
        if "--list" in words:
            print(name)
        elif not words or name in words:
            print(json.dumps(measured(name)), flush=True)


if __name__ == "__main__":
    main()
