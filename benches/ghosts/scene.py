"""The world of the ghosts' benches, tick by tick: the same as `scene.rs` makes, bit for bit.

Random numbers are a hash of (seed, stream, tick, entity); all else is float32 under + - * / and square
roots, each rounded by itself, in the order of the Rust code, which says what the scenes are.
"""

from __future__ import annotations

import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SEED = 20_240_607
ALL = 1 << 32
HURT, FLAGGED, KICK = ALL // 100, ALL // 200, ALL // 200
GOLDEN = 0x9E37_79B9
POSITION, ROTATION, HEALTH, FLAGS, MOVES, VELOCITY, SPIN, HEALTH_CHANGES, FLAGS_CHANGE, KICKED = (
    0, 3, 7, 8, 9, 10, 13, 16, 18, 20,
)  # fmt: skip
CHECKSUMS = Path(__file__).with_name("checksums.txt")

Words = NDArray[np.uint32]
Floats = NDArray[np.float32]
F = np.float32


@dataclass(frozen=True)
class Plan:
    """What a scene is made of: entities, those of 2^32 draws that move, where they are, ticks a second."""

    name: str
    entities: int
    moving: int
    reach: tuple[float, float, float]
    hz: int = 30
    cubes: bool = False


_CUBE, _PLAIN = (1000.0, 1000.0, 1000.0), (2000.0, 2000.0, 10.0)
PLANS = {
    plan.name: plan
    for plan in (
        Plan("S1", 1000, ALL, _CUBE),
        Plan("S2", 10_000, ALL // 10, _CUBE),
        Plan("S3", 10_000, 0, _CUBE),
        Plan("S6", 10_000, ALL, _PLAIN),
        Plan("S6b", 10_000, ALL // 10, _PLAIN),
        Plan("C901", 901, 0, (50.0, 50.0, 100.0), 60, cubes=True),
    )
}


def mix(x: Words) -> Words:
    x = x ^ (x >> np.uint32(16))
    x = x * np.uint32(0x7FEB_352D)
    x = x ^ (x >> np.uint32(15))
    x = x * np.uint32(0x846C_A68B)
    return x ^ (x >> np.uint32(16))


def normalized(q: Floats) -> Floats:
    x, y, z, w = q.T
    return np.asarray(q / np.sqrt(x * x + y * y + z * z + w * w)[:, None])


def turned(q: Floats, spin: Floats, half: F) -> Floats:
    """A rotation after a spin for twice the time `half`."""
    (x, y, z, w), (a, b, c) = q.T, spin.T
    parts = (
        x + half * (a * w + b * z - c * y),
        y + half * (b * w + c * x - a * z),
        z + half * (c * w + a * y - b * x),
        w - half * (a * x + b * y + c * z),
    )
    return normalized(np.stack(parts, axis=1))


class Scene:
    """A scene in one of its ticks."""

    def __init__(self, name: str) -> None:
        self.plan = plan = PLANS[name]
        self.tick, n = 0, plan.entities
        self._hashes = np.arange(n, dtype=np.uint32) * np.uint32(GOLDEN)
        self.every = np.arange(n)
        every = self.every
        self.moved = every[:0]
        self._reach = np.array(plan.reach, F)
        self._dt = F(1) / F(plan.hz)
        if plan.cubes:
            height = self._unit(POSITION, every) * F(9) + F(1)
            row, column = (every // 30).astype(F), (every % 30).astype(F)
            self.position = np.stack((column - F(15), row - F(15), height), axis=1)
            self.health, self.flags = np.full(n, 1000, np.uint16), np.zeros(n, np.uint8)
        else:
            self.position = self._three(POSITION, every) * self._reach
            self.health = (self._draws(HEALTH, every) % np.uint32(1001)).astype(np.uint16)
            self.flags = self._draws(FLAGS, every).astype(np.uint8)
        q = np.stack([self._signed(ROTATION + axis, every) for axis in range(4)], axis=1)
        q[:, 3] += F(2)
        self.rotation = normalized(q)
        still = F(0 if plan.cubes else 1)
        self._velocity = self._three(VELOCITY, every) * (F(2.5) * still)
        self._spin = self._three(SPIN, every) * still

    def _draws(self, stream: int, entities: NDArray[np.intp]) -> Words:
        first = mix(np.array([SEED ^ (stream * GOLDEN & (ALL - 1))], np.uint32))
        key = mix(first + np.uint32(self.tick))
        return mix(key + self._hashes[entities])

    def _unit(self, stream: int, entities: NDArray[np.intp]) -> Floats:
        return (self._draws(stream, entities) >> np.uint32(8)).astype(F) * F(1 / 16_777_216)

    def _signed(self, stream: int, entities: NDArray[np.intp]) -> Floats:
        return self._unit(stream, entities) * F(2) - F(1)

    def _three(self, stream: int, entities: NDArray[np.intp]) -> Floats:
        return np.stack([self._signed(stream + axis, entities) for axis in range(3)], axis=1)

    def step(self) -> None:
        """Goes on by a tick."""
        self.tick += 1
        if self.plan.cubes:
            self._step_cubes()
            return
        if self.plan.moving == 0:
            return
        m = self.moved = np.flatnonzero(self._draws(MOVES, self.every) < self.plan.moving)
        v = self._velocity[m] * F(0.98) + self._three(VELOCITY, m) * F(0.5)
        p = self.position[m] + v * self._dt
        out = (p > self._reach) | (p < -self._reach)
        self._velocity[m] = np.where(out, -v, v)
        self.position[m] = np.maximum(np.minimum(p, self._reach), -self._reach)
        self._spin[m] = self._spin[m] * F(0.98) + self._three(SPIN, m) * F(0.2)
        self.rotation[m] = turned(self.rotation[m], self._spin[m], self._dt * F(0.5))
        hurt = m[self._draws(HEALTH_CHANGES, m) < HURT]
        self.health[hurt] = self._draws(HEALTH_CHANGES + 1, hurt) % np.uint32(1001)
        flagged = m[self._draws(FLAGS_CHANGE, m) < FLAGGED]
        self.flags[flagged] = self._draws(FLAGS_CHANGE + 1, flagged).astype(np.uint8)

    def _step_cubes(self) -> None:
        floor, dt = F(0.2), self._dt
        kicked = np.flatnonzero((self.flags == 1) & (self._draws(KICKED, self.every) < KICK))
        sideways = [self._signed(VELOCITY + axis, kicked) * F(2) for axis in range(2)]
        upwards = self._unit(VELOCITY + 2, kicked) * F(3) + F(3)
        self._velocity[kicked] = np.stack((*sideways, upwards), axis=1)
        self._spin[kicked] = self._three(SPIN, kicked) * F(4)
        self.flags[kicked] = 0
        m = self.moved = np.flatnonzero(self.flags == 0)
        v, p, spin = self._velocity[m], self.position[m], self._spin[m]
        v[:, 2] -= F(9.81) * dt
        p += v * dt
        reach = self._reach[:2]
        out = (p[:, :2] > reach) | (p[:, :2] < -reach)
        v[:, :2] = np.where(out, -v[:, :2], v[:, :2])
        p[:, :2] = np.maximum(np.minimum(p[:, :2], reach), -reach)
        self.rotation[m] = turned(self.rotation[m], spin, dt * F(0.5))
        down = p[:, 2] < floor
        rests = down & (v[:, 2] > F(-1))
        bounces = down & ~rests
        p[down, 2] = floor
        v[bounces] *= np.array([0.7, 0.7, -0.5], F)
        spin[bounces] *= F(0.7)
        v[rests], spin[rests] = 0, 0
        self.flags[m[rests]] = 1
        self._velocity[m], self.position[m], self._spin[m] = v, p, spin

    def checksum(self, before: int) -> int:
        """CRC-32 of all that is seen and of what moved, after `before`."""
        for part in (self.position, self.rotation, self.health, self.flags, self.moved.astype("<u4")):
            before = zlib.crc32(part.tobytes(), before)
        return before


def checksums() -> str:
    """A line for each scene: the CRC-32 of its start and its first hundred ticks."""
    lines = []
    for name in PLANS:
        scene = Scene(name)
        checksum = scene.checksum(0)
        for _ in range(100):
            scene.step()
            checksum = scene.checksum(checksum)
        lines.append(f"{name} {checksum:08x}\n")
    return "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(checksums())
