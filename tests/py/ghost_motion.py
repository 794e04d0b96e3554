"""Where words of coded ghosts go on to, by the text of ``STANDARD.md`` alone ("Where words go on to").

It shares no code with Tickwire; see ``ghost_standard_coded.py``.
"""

from __future__ import annotations

import numpy as np
from ghost_standard import Property, Word

F = np.float32
Quaternion = tuple[np.float32, ...]


class Motion:
    """What a property's words are predicted to be, from states `past` ticks apart, the newest first."""

    def __init__(
        self, each: Property, rows: list[tuple[int, ...]], ages: tuple[int, int], *, deviates: bool
    ) -> None:
        self.each = each
        goes = moves_on(each.words, rows) != deviates and len(rows) > 1 and ages[1] <= 255
        self.rotation: Quaternion | None = None
        self.words = list(rows[0])
        if goes:
            self.words = [on(word, [row[at] for row in rows], ages) for at, word in enumerate(each.words)]
        if each.rotation:
            self.reach = Reach(each.words[1].last // 2)
            turned = self.reach.on(rows, ages) if goes else None
            self.rotation = turned or self.reach.quaternion(rows[0])
            self.words = (
                [largest(turned), *self.reach.levels(turned, largest(turned))] if turned else list(rows[0])
            )

    def word(self, at: int, found: list[int]) -> int:
        """A word's prediction, by the words in front of it in this record."""
        if self.rotation is not None and at > 0 and found[0] != self.words[0]:
            return self.reach.levels(self.rotation, found[0])[at - 1]
        return self.words[at]


def moves(word: Word) -> bool:
    return word.last < 1 << 32 and word.metric in ("line", "circle")


def moves_on(words: tuple[Word, ...], rows: list[tuple[int, ...]]) -> bool:
    """Whether it is likelier to go on than to stay."""
    if len(rows) < 3:
        return len(rows) > 1
    stay = go = 0
    for at, word in enumerate(words):
        if moves(word):
            step, before = off(word, rows[0][at], rows[1][at]), off(word, rows[1][at], rows[2][at])
            stay, go = stay + abs(step), go + abs(step - before)
    return go // 2 < stay


def off(word: Word, value: int, other: int) -> int:
    """How far a value is from another, on a circle by the shorter way."""
    if word.metric != "circle":
        return value - other
    ahead, behind = (value - other) % (word.last + 1), (other - value) % (word.last + 1)
    return ahead if ahead <= behind else -behind


def on(word: Word, values: list[int], ages: tuple[int, int]) -> int:
    if not moves(word):
        return values[0]
    steps = [F(off(word, value, values[0])) for value in values]
    value = values[0] + nearest(track(steps, F(ages[1]) / F(ages[0]), F(1), bends=True))
    return value % (word.last + 1) if word.metric == "circle" else max(0, min(word.last, value))


def nearest(number: np.float32) -> int:
    return int(np.floor(float(number) + 0.5))


def track(were: list[np.float32], ahead: np.float32, tolerance: np.float32, *, bends: bool) -> np.float32:
    """Where a number goes on to from the newest state, by how far from there it was that many states ago."""
    states, line, low, high = len(were) - 1, 0, F(0), F(0)
    for i in range(1, states + 1):
        part = F(1) / F(i)
        least, most = (-were[i] - tolerance) * part, (-were[i] + tolerance) * part
        if line:
            least, most = max(low, least), min(high, most)
        if least > most:
            break
        low, high, line = least, most, i
    if line == 12:
        return fit(were, ahead, bends=False)
    if line < states:
        bent = bend_of(were, tolerance) if bends else 0
        if bent > line + 2:
            return fit(were[: bent + 1], ahead, bends=True)
        steps = 1 if ahead < 2 else 2
        if line < steps <= states:
            return -were[steps] * ahead * (F(1) / F(steps))
    return (low + high) * ahead * F(0.5) if line else F(0)


def bend_of(were: list[np.float32], tolerance: np.float32) -> int:
    """How many states in front of the newest lie on a parabola with it."""
    bent, states = 0, len(were) - 1
    if states < 6 or abs(were[3] - F(3) * (were[2] - were[1])) > F(7) * tolerance:
        return 0
    for n in range(3, states // 2 + 1):
        part = F(0.5) * (F(1) / F(n))
        slope, bend = (
            (F(4) * were[n] - were[2 * n]) * part,
            (were[2 * n] - F(2) * were[n]) * part * part * F(2),
        )
        misses = [were[i] - F(i) * (slope + F(i) * bend) for i in range(1, 2 * n)]
        if max(map(abs, misses)) > tolerance:
            break
        bent = 2 * n
    return bent


def fit(were: list[np.float32], ahead: np.float32, *, bends: bool) -> np.float32:
    count = F(len(were))
    to = count - F(1) + F(2) * ahead
    one, four = count * count - F(1), count * count - F(4)
    a = b = c = F(0)
    for i, was in enumerate(were):
        at = count - F(1) - F(2) * F(i)
        a, b, c = a + was, b + at * was, c + (F(3) * at * at - one) * was
    bend = F(1.25) * (F(3) * to * to - one) * c / four if bends else F(0)
    return (a + (F(3) * to * b + bend) / one) / count


def largest(of: Quaternion) -> int:
    return max(range(4), key=lambda at: (abs(of[at]), -at))


def product(left: Quaternion, right: Quaternion) -> Quaternion:
    (a, b, c, d), (e, f, g, h) = left, right
    return (
        a * h + b * g - c * f + d * e,
        b * h - a * g + c * e + d * f,
        a * f - b * e + c * h + d * g,
        d * h - a * e - b * f - c * g,
    )


class Reach:
    """Quaternions for a place and three levels from -reach to reach."""

    def __init__(self, reach: int) -> None:
        self.reach = reach
        self.one = F(np.sqrt(2)) * F(reach)
        self.level = F(1) / self.one

    def quaternion(self, words: tuple[int, ...]) -> Quaternion:
        a, b, c = numbers = [F(word - self.reach) * self.level for word in words[1:]]
        left = F(1) - a * a - b * b - c * c
        numbers.insert(words[0], np.sqrt(max(F(0), left)))
        return tuple(numbers)

    def levels(self, of: Quaternion, place: int) -> list[int]:
        one = -self.one if of[place] < 0 else self.one
        steps = [nearest(one * number) for at, number in enumerate(of) if at != place]
        return [max(-self.reach, min(self.reach, step)) + self.reach for step in steps]

    def on(self, rows: list[tuple[int, ...]], ages: tuple[int, int]) -> Quaternion | None:
        newest, *older = [self.quaternion(row) for row in rows]
        vectors = [(F(0), F(0), F(0))]
        for state in older:
            vector = between(state, newest)
            if vector is None:
                break
            vectors.append(vector)
        ahead = F(ages[1]) / F(ages[0])
        to = [track([vector[at] for vector in vectors], ahead, self.level, bends=False) for at in range(3)]
        square = sum((part * part for part in to), F(0))
        if square < self.level * self.level / F(64) or square >= F(1.5):
            return None
        return product(turn(to, square), newest)


def between(of: Quaternion, other: Quaternion) -> tuple[np.float32, np.float32, np.float32] | None:
    """The vector of half the turn from one rotation to another."""
    x, y, z, cosine = product(of, (-other[0], -other[1], -other[2], other[3]))
    if abs(cosine) < F(0.8):
        return None
    square = F(1) - cosine * cosine
    wider = F(1) + square * (F(1) / F(6) + square * (F(3) / F(40)))
    wider = -wider if cosine < 0 else wider
    return x * wider, y * wider, z * wider


def turn(vector: list[np.float32], square: np.float32) -> Quaternion:
    def series(*terms: int) -> np.float32:
        total = F(0)
        for term in reversed(terms):
            total = F(1) / F(term) - square * total
        return total

    sine = series(1, 6, 120, 5_040)
    return (*(part * sine for part in vector), F(1) - square * series(2, 24, 720, 40_320))
