"""Where words of coded ghosts go on to, by the text of ``STANDARD.md`` alone ("Where words go on to").

It shares no code with Tickwire; see ``ghost_standard_coded.py``.
"""

from __future__ import annotations

from math import isqrt

from ghost_standard import Property, Word

ONE = 1 << 30
Quaternion = tuple[int, ...]


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
    steps = [16 * off(word, value, values[0]) for value in values]
    value = values[0] + (track(steps, ages, 16) + 8) // 16
    return value % (word.last + 1) if word.metric == "circle" else max(0, min(word.last, value))


def nearest(product: int, by: int) -> int:
    return (product + by // 2) // by


def track(were: list[int], ages: tuple[int, int], tolerance: int) -> int:
    """Where a number goes on to from the newest state, by how far from there it was that many states ago."""
    (past, ahead), states = ages, len(were) - 1
    low = high = line = 0
    for i in range(1, states + 1):
        part = 27_720 // i
        least, most = (-were[i] - tolerance) * part, (-were[i] + tolerance) * part
        if line:
            least, most = max(low, least), min(high, most)
        if least > most:
            break
        low, high, line = least, most, i
    if line == 12:
        return fit(were, past, ahead, bends=False)
    if line < states:
        bent = 0
        for n in range(3, states // 2 + 1):
            slope, bend = n * (were[2 * n] - 4 * were[n]), were[2 * n] - 2 * were[n]
            misses = [2 * n * n * were[i] + i * slope - i * i * bend for i in range(1, 2 * n)]
            if max(map(abs, misses)) > 2 * n * n * tolerance:
                break
            bent = 2 * n
        if bent > line + 2:
            return fit(were[: bent + 1], past, ahead, bends=True)
        steps = max(1, min(2, ahead // past))
        if line < steps <= states:
            return nearest(-were[steps] * ahead, steps * past)
    return nearest((low + high) * ahead, 2 * 27_720 * past) if line else 0


def fit(were: list[int], past: int, ahead: int, *, bends: bool) -> int:
    last = len(were) - 1
    count, to = last + 1, last * past + 2 * ahead
    one, four = count**2 - 1, count**2 - 4
    at = [last - 2 * i for i in range(count)]
    a = sum(were)
    b = sum(u * was for u, was in zip(at, were, strict=True))
    c = sum((3 * u * u - one) * was for u, was in zip(at, were, strict=True))
    product = 4 * one * four * past**2 * a + 12 * four * past * to * b
    if bends:
        product += 5 * (3 * to * to - one * past**2) * c
    return nearest(product, 4 * count * one * four * past**2)


def largest(of: Quaternion) -> int:
    return max(range(4), key=lambda at: (abs(of[at]), -at))


def times(a: int, b: int) -> int:
    return a * b >> 30


class Reach:
    """Quaternions in 2^-30 for a place and three levels from -reach to reach."""

    def __init__(self, reach: int) -> None:
        self.reach = reach
        self.level = isqrt((1 << 92) // (2 * reach**2))
        self.one = isqrt(2 * reach**2 << 32)

    def quaternion(self, words: tuple[int, ...]) -> Quaternion:
        numbers = [(word - self.reach) * self.level >> 16 for word in words[1:]]
        left = max(0, (1 << 60) - sum(number**2 for number in numbers))
        numbers.insert(words[0], isqrt(left))
        return tuple(numbers)

    def levels(self, of: Quaternion, place: int) -> list[int]:
        sign = -1 if of[place] < 0 else 1
        others = [number for at, number in enumerate(of) if at != place]
        steps = [(sign * number * self.one + (1 << 45)) >> 46 for number in others]
        return [max(-self.reach, min(self.reach, step)) + self.reach for step in steps]

    def on(self, rows: list[tuple[int, ...]], ages: tuple[int, int]) -> Quaternion | None:
        newest, *older = [self.quaternion(row) for row in rows]
        vectors = [(0, 0, 0)]
        for state in older:
            vector = between(state, newest)
            if vector is None:
                break
            vectors.append(vector)
        to = [track([vector[at] for vector in vectors], ages, self.level >> 16) for at in range(3)]
        return turned(newest, to) if any(to) else None


def between(of: Quaternion, other: Quaternion) -> tuple[int, int, int] | None:
    """The vector of half the turn from one rotation to another."""
    cosine = sum(a * b for a, b in zip(of, other, strict=True)) >> 30
    if abs(cosine) < ONE // 5 * 4:
        return None
    (a, b, c, d), (e, f, g, h) = of, other
    vector = (a * h - d * e + c * f - b * g, b * h - d * f + a * g - c * e, c * h - d * g + b * e - a * f)
    square = max(0, ONE - times(cosine, cosine))
    wider = ONE + square // 6 + times(square, square) * 3 // 40
    x, y, z = (times((part >> 30) * (1 if cosine > 0 else -1), wider) for part in vector)
    return x, y, z


def turned(of: Quaternion, vector: list[int]) -> Quaternion | None:
    if any(abs(part) > ONE // 2 * 3 for part in vector):
        return None
    square = sum(times(part, part) for part in vector)
    if square > ONE // 2 * 3:
        return None
    fourth = times(square, square)
    sixth = times(fourth, square)
    h = ONE - square // 2 + fourth // 24 - sixth // 720 + times(fourth, fourth) // 40_320
    sine = ONE - square // 6 + fourth // 120 - sixth // 5_040
    e, f, g = (times(part, sine) for part in vector)
    a, b, c, d = of
    product = (
        h * a + e * d + f * c - g * b,
        h * b + f * d + g * a - e * c,
        h * c + g * d + e * b - f * a,
        h * d - e * a - f * b - g * c,
    )
    return tuple(part >> 30 for part in product)
