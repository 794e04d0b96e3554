"""The worlds of the ghosts' benches, tick by tick: the same as `scene.rs` makes, bit for bit.

Random numbers are a hash of (seed, tick, entity, lane). Everything else is float32 under + - * / and square
roots, each rounded by itself, in the order of the Rust code, which describes the scenes.
"""

from __future__ import annotations

import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SEED = 20_240_607
CHECKSUMS = Path(__file__).with_name("checksums.txt")

Words = NDArray[np.uint64]
Floats = NDArray[np.float32]
F = np.float32
U64 = np.uint64


@dataclass(frozen=True)
class Plan:
    """A scene: which entities move ("all", "tenth", "none", "cubes"), how far they get, and the rate."""

    name: str
    entities: int
    motion: str
    reach: tuple[float, float, float]
    hz: int = 30


_WIDE, _FLAT = (1000.0, 1000.0, 1000.0), (2000.0, 10.0, 2000.0)
PLANS = {
    plan.name: plan
    for plan in (
        Plan("S1", 1000, "all", _WIDE),
        Plan("S2", 10_000, "tenth", _WIDE),
        Plan("S3", 10_000, "none", _WIDE),
        Plan("S6", 10_000, "all", _FLAT),
        Plan("S6b", 10_000, "tenth", _FLAT),
        Plan("C901", 901, "cubes", (16.0, 4.0, 16.0), 60),
    )
}


def splitmix(x: Words) -> Words:
    z = x + U64(0x9E37_79B9_7F4A_7C15)
    z = (z ^ (z >> U64(30))) * U64(0xBF58_476D_1CE4_E5B9)
    z = (z ^ (z >> U64(27))) * U64(0x94D0_49BB_1331_11EB)
    return z ^ (z >> U64(31))


def bits(seed: int, tick: int, entities: Words, lane: int) -> Words:
    """The random numbers of entities."""
    key = splitmix(np.array([(seed ^ (tick << 40)) & 0xFFFF_FFFF_FFFF_FFFF], U64))
    return splitmix(key ^ (entities << U64(8)) ^ U64(lane))


def signed(seed: int, tick: int, entities: Words, lane: int) -> Floats:
    """Random numbers from -1 to below 1."""
    return (bits(seed, tick, entities, lane) >> U64(40)).astype(F) / F(8_388_608) - F(1)


def three(seed: int, tick: int, entities: Words, lane: int) -> Floats:
    """The random numbers of this lane and the next two."""
    return np.stack([signed(seed, tick, entities, lane + axis) for axis in range(3)], axis=1)


def normalized(q: Floats) -> Floats:
    a, b, c, d = q.T
    return np.asarray(q / np.sqrt(a * a + b * b + c * c + d * d)[:, None])


def turned(q: Floats, spin: Floats, dt: F) -> Floats:
    """Rotations after a spin for this time."""
    (a, b, c, d), (x, y, z) = q.T, (spin * (F(0.5) * dt)).T
    parts = (
        a - (x * b + y * c + z * d),
        b + (x * a + y * d - z * c),
        c + (y * a + z * b - x * d),
        d + (z * a + x * c - y * b),
    )
    return normalized(np.stack(parts, axis=1))


class Scene:
    """A scene in one of its ticks."""

    def __init__(self, name: str, seed: int = SEED) -> None:
        self.plan = plan = PLANS[name]
        self.tick, self._seed = 0, seed
        self._ids = e = np.arange(plan.entities, dtype=U64)
        self.moved = np.arange(0)
        self._reach, self._dt = np.array(plan.reach, F), F(1) / F(plan.hz)
        self.position = three(seed, 0, e, 0) * self._reach
        self._velocity = three(seed, 0, e, 3) * F(5)
        # w, x, y, z.
        self.rotation = normalized(np.stack([signed(seed, 0, e, lane) for lane in range(6, 10)], axis=1))
        self._spin = three(seed, 0, e, 10)
        self.health = (bits(seed, 0, e, 13) % U64(1001)).astype(np.uint16)
        self.flags = (bits(seed, 0, e, 14) & U64(0xFF)).astype(np.uint8)
        if plan.motion == "cubes":
            self.position[:, 1] = F(0.2) + (signed(seed, 0, e, 1) + F(1)) * self._reach[1]
            self._velocity[:] = 0
            self._spin *= F(4)
            self.health[:], self.flags[:] = 0, 0

    def step(self) -> None:
        """Advances by a tick."""
        self.tick += 1
        match self.plan.motion:
            case "all":
                self._walk(np.arange(self.plan.entities))
            case "tenth":
                self._walk(np.flatnonzero(bits(self._seed, self.tick, self._ids, 7) % U64(10) == 0))
            case "cubes":
                self._fall()

    def _walk(self, m: NDArray[np.intp]) -> None:
        """Moves entities by their random walks."""
        self.moved, e, reach = m, self._ids[m], self._reach
        v = self._velocity[m] + three(self._seed, self.tick, e, 0)
        v = np.minimum(np.maximum(v, F(-10)), F(10))
        p = self.position[m] + v * self._dt
        self._velocity[m] = np.where((p > reach) | (p < -reach), -v, v)
        self.position[m] = np.maximum(np.minimum(p, reach), -reach)
        spin = self._spin[m] + three(self._seed, self.tick, e, 3) * F(0.2)
        self._spin[m] = np.minimum(np.maximum(spin, F(-2)), F(2))
        self.rotation[m] = turned(self.rotation[m], self._spin[m], self._dt)
        drawn = bits(self._seed, self.tick, e, 6)
        hit = drawn % U64(100) == 0
        self.health[m[hit]] = (drawn[hit] >> U64(32)) % U64(1001)
        hit = (drawn >> U64(8)) % U64(200) == 0
        self.flags[m[hit]] = drawn[hit] >> U64(56)

    def _kick(self) -> None:
        """Kicks some of the cubes that rest."""
        rests = (self.flags & 1) == 1
        k = np.flatnonzero(rests & (bits(self._seed, self.tick, self._ids, 0) % U64(249) == 0))
        drawn = three(self._seed, self.tick, self._ids[k], 1)
        self.flags[k] &= 0xFE
        x, y, z = drawn.T
        self._velocity[k] = np.stack((x * F(4), F(5.5) + y * F(2.5), z * F(4)), axis=1)
        self._spin[k] = three(self._seed, self.tick, self._ids[k], 4) * F(4)

    def _fall(self) -> None:
        """Moves cubes through the air; they bounce, and come to rest when they are slow."""
        self._kick()
        m = self.moved = np.flatnonzero((self.flags & 1) == 0)
        v, p, spin = self._velocity[m], self.position[m], self._spin[m]
        v[:, 1] -= F(9.8125) * self._dt
        p += v * self._dt
        for axis in (0, 2):
            reach = self._reach[axis]
            out = (p[:, axis] > reach) | (p[:, axis] < -reach)
            v[:, axis] = np.where(out, -v[:, axis], v[:, axis])
            p[:, axis] = np.maximum(np.minimum(p[:, axis], reach), -reach)
        down = p[:, 1] < F(0.2)
        p[down, 1] = F(0.2)
        bounces = down & (v[:, 1] < 0)
        v[bounces, 1] *= F(-0.5)
        v[down, 0] *= F(0.7)
        v[down, 2] *= F(0.7)
        spin[down] *= F(0.7)
        rests = down & (v[:, 1] < F(0.4))
        v[rests], spin[rests] = 0, 0
        self.flags[m[rests]] |= 1
        self._velocity[m], self.position[m], self._spin[m] = v, p, spin
        self.rotation[m] = turned(self.rotation[m], spin, self._dt)

    def checksum(self, before: int) -> int:
        """CRC-32 of everything that clients see and of the entities that moved, after `before`."""
        for part in (self.position, self.rotation, self.health, self.flags, self.moved.astype("<u4")):
            before = zlib.crc32(np.ascontiguousarray(part).tobytes(), before)
        return before


class Walkers:
    """The places from which clients look at a flat scene, along x and z: they walk at random."""

    def __init__(self, seed: int, count: int, reach: float, hz: int) -> None:
        self._seed, self._reach, self._dt, self._tick = seed, F(reach), F(1) / F(hz), 0
        self._ids = e = np.arange(count, dtype=U64)
        self.position = np.stack([signed(seed, 0, e, lane) * self._reach for lane in (100, 101)], axis=1)
        self._velocity = np.stack([signed(seed, 0, e, lane) * F(10) for lane in (102, 103)], axis=1)

    def step(self) -> None:
        """Advances by a tick."""
        self._tick += 1
        drawn = np.stack([signed(self._seed, self._tick, self._ids, lane) for lane in (102, 103)], axis=1)
        v = np.minimum(np.maximum(self._velocity + drawn, F(-20)), F(20))
        p = self.position + v * self._dt
        self._velocity = np.where((p > self._reach) | (p < -self._reach), -v, v)
        self.position = np.maximum(np.minimum(p, self._reach), -self._reach)


def checksums() -> str:
    """A line for each scene and for the walkers: the CRC-32 of the start and the first hundred ticks."""
    lines = []
    for name in PLANS:
        scene = Scene(name)
        checksum = scene.checksum(0)
        for _ in range(100):
            scene.step()
            checksum = scene.checksum(checksum)
        lines.append(f"{name} {checksum:08x}\n")
    walkers = Walkers(SEED, 64, 2000, 30)
    checksum = zlib.crc32(walkers.position.tobytes())
    for _ in range(100):
        walkers.step()
        checksum = zlib.crc32(walkers.position.tobytes(), checksum)
    return "".join([*lines, f"walkers {checksum:08x}\n"])


if __name__ == "__main__":
    sys.stdout.write(checksums())
