"""Coded records of ghosts, read and written by the standard's text alone (``STANDARD.md``, "Coded classes").

It shares no code with Tickwire: what both say of the same payload is compared in
``test_ghost_standard_coded.py``. A coder either reads decisions or writes those that it is given, so one
walk serves both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isqrt
from typing import Any

from ghost_standard import Class, Ghosts, Property, Reader, Record, Word, Writer, in_order

TOP = 1 << 24
# By a decision's name: how often it was 0 and 1.
Counts = dict[Any, list[int]]
Trail = tuple[int | None, int | None]
UNKNOWN: Trail = (None, None)


class Coder:
    """The range coder; `data` to read, None to write."""

    def __init__(self, data: bytes | None) -> None:
        self.data, self.counts, self.seen, self.range = data, Counts(), Counts(), (1 << 32) - 1
        self.at = self.code = self.low = 0
        self.out = bytearray()
        for _ in range(4):
            self._take()

    def _take(self) -> None:
        if self.data is not None:
            following = self.data[self.at] if self.at < len(self.data) else 0
            self.code, self.at = self.code << 8 | following, self.at + 1

    def _normalize(self) -> None:
        while self.range < TOP:
            self.range <<= 8
            self._put(self.low >> 24)
            self.low = (self.low & (TOP - 1)) << 8
            self._take()

    def _put(self, upper: int) -> None:
        """Puts eight bits, and a carry into what is in front of them."""
        at = len(self.out) - 1
        while upper >> 8 and self.out[at] == 255:
            self.out[at] = 0
            at -= 1
        if upper >> 8:
            self.out[at] += 1
        self.out.append(upper & 255)

    def raw(self, count: int, value: int = 0) -> int:
        found = 0
        for at in range(0, count, 16):
            bits = min(16, count - at)
            self.range >>= bits
            part = value >> at & ((1 << bits) - 1) if self.data is None else self.code // self.range
            assert part < 1 << bits
            self.low += part * self.range
            self.code -= part * self.range
            found |= part << at
            self._normalize()
        return found

    def decision(self, name: Any, value: Any = False) -> bool:
        zeros, ones = self.counts.get(name, (0, 0))
        bound = (self.range >> 12) * max(16, min(4080, (ones + 1 << 12) // (zeros + ones + 2)))
        bit = bool(value) if self.data is None else self.code < bound
        if bit:
            self.range = bound
        else:
            self.low, self.code, self.range = self.low + bound, self.code - bound, self.range - bound
        self.seen.setdefault(name, [0, 0])[bit] += 1
        self._normalize()
        return bit

    def number(self, name: Any, value: int = 1) -> int:
        bits = 1
        while self.decision((name, "longer", min(bits, 12)), value.bit_length() > bits):
            bits += 1
        if bits == 1:
            return 1
        second = self.decision((name, "second", min(bits, 12)), value >> (bits - 2) & 1)
        rest = self.raw(bits - 2, value & ((1 << (bits - 2)) - 1))
        return (2 | second) << (bits - 2) | rest

    def finished(self) -> bytes:
        """What was written: to the next number whose low 24 bits are 0."""
        self._put((self.low + TOP - 1) // TOP)
        return bytes(self.out)

    def is_at_end(self) -> bool:
        return self.data is not None and self.at == len(self.data) + 3


@dataclass
class CodedRecord(Record):
    """`guesses` and `residuals` by property, of an update whose words aren't whole."""

    whole: bool = False
    guesses: dict[int, str] = field(default_factory=dict)
    residuals: dict[int, list[int]] = field(default_factory=dict)


@dataclass
class Sample:
    """What a tick's packets had, by class: decisions, and the listed ghosts' trails by id."""

    counts: dict[int, Counts] = field(default_factory=dict)
    lists: dict[int, dict[int, dict[Any, Trail]]] = field(default_factory=dict)


@dataclass
class CodedPart:
    """The age of the newest tick that it names, the older ones (None for all), and the sections' records."""

    age: int
    older: int | None
    sections: list[tuple[int, list[CodedRecord]]]


class CodedGhosts(Ghosts):
    """A client's ghosts, of which some classes are coded."""

    def __init__(self, classes: list[Class], coded: set[int]) -> None:
        super().__init__(classes)
        self.coded = coded
        self.packets: dict[int, list[Sample]] = {}
        self.part: CodedPart | None = None

    def _read_rest(self, reader: Reader, tick: int) -> list[Record]:
        self.part = None
        if reader.at == reader.end:
            return []
        age = reader.bits(6)
        older = None if age == 0 or reader.bits(1) else reader.bits(15)
        named = self.named(tick, age, older)
        assert (reader.end - reader.at) % 8 == 0
        data = bytes(reader.bits(8) for _ in range((reader.end - reader.at) // 8))
        coder, part = Coder(data), CodedPart(age, older, [])
        sample = Sample()
        while coder.raw(1):
            class_id = coder.raw((len(self.classes) - 1).bit_length())
            walk = Section(self, coder, class_id, tick, named)
            part.sections.append((class_id, walk.read()))
            walk.keep(sample)
        assert coder.is_at_end()
        packets = self.packets.setdefault(tick, [])
        if sample not in packets:
            packets.append(sample)
        self.part = part
        return [record for _, records in part.sections for record in records]

    def named(self, tick: int, age: int, older: int | None) -> list[Sample]:
        """The samples of the ticks that a packet names, the newest first."""
        if age == 0:
            return []
        back = [at for at in range(1, 16) if older is None or older >> (at - 1) & 1]
        newest = tick - age
        assert newest in self.packets
        assert older is None or all(newest - at in self.packets for at in back)
        return [whole(self.packets[newest - at]) for at in [0, *back] if newest - at in self.packets]

    def _write_rest(self, writer: Writer, tick: int) -> None:
        if self.part is None:
            return
        coder, part = Coder(None), self.part
        writer.bits(part.age, 6)
        if part.age:
            writer.bits(part.older is None, 1)
            if part.older is not None:
                writer.bits(part.older, 15)
        named = self.named(tick, part.age, part.older)
        for class_id, records in part.sections:
            coder.raw(1, 1)
            coder.raw((len(self.classes) - 1).bit_length(), class_id)
            Section(self, coder, class_id, tick, named).write(records)
        coder.raw(1, 0)
        for byte in coder.finished():
            writer.bits(byte, 8)


class Section:
    """A walk through a class's records in a packet."""

    def __init__(
        self, ghosts: CodedGhosts, coder: Coder, class_id: int, tick: int, named: list[Sample]
    ) -> None:
        self.ghosts, self.coder, self.class_id, self.tick = ghosts, coder, class_id, tick
        self.class_ = ghosts.classes[class_id]
        coder.counts, coder.seen = Counts(), Counts()
        for sample in named:
            add(coder.counts, sample.counts.get(class_id, {}))
        self.listed = named[0].lists.get(class_id, {}) if named else {}
        self.places = sorted(self.listed)
        self.list: dict[int, dict[Any, Trail]] = {}
        self.base: tuple[Any, ...] = ("newest", 0)
        self.mask = 0
        self.created: dict[Any, int] = {}

    def keep(self, sample: Sample) -> None:
        add(sample.counts.setdefault(self.class_id, {}), self.coder.seen)
        sample.lists.setdefault(self.class_id, {}).update(self.list)

    def read(self) -> list[CodedRecord]:
        records = []
        for by_place in [True, False] if self.listed else [False]:
            following, was_apart = 0, False
            while self.coder.decision(("more", by_place)):
                was_apart = self.coder.decision(("apart", by_place, was_apart))
                gap = self.coder.number(("gap", by_place)) if was_apart else 0
                place = following + gap
                following = place + 1
                records.append(self.record(CodedRecord(self.class_id, -1, ""), place, by_place))
        return records

    def write(self, records: list[CodedRecord]) -> None:
        for by_place in [True, False] if self.listed else [False]:
            following, was_apart = 0, False
            for record in records:
                if (record.id in self.listed) != by_place:
                    continue
                place = self.places.index(record.id) if by_place else record.id
                gap = place - following
                self.coder.decision(("more", by_place), 1)
                was_apart = self.coder.decision(("apart", by_place, was_apart), gap > 0)
                if gap:
                    self.coder.number(("gap", by_place), gap)
                following = place + 1
                self.record(record, place, by_place)
            self.coder.decision(("more", by_place), 0)

    # --- records -----------------------------------------------------------------------------------------

    def record(self, record: CodedRecord, place: int, by_place: bool) -> CodedRecord:
        coder = self.coder
        record.id = self.places[place] if by_place else place
        assert record.id < self.class_.capacity
        if coder.decision("update", record.op == "update"):
            record.op = "update"
            self.update(record)
        elif coder.decision("create", record.op == "create"):
            record.op = "create"
            record.owner = coder.decision("owner", record.owner)
            record.chosen = self.class_.chosen() and coder.decision("owner", record.chosen)
            self.create(record)
        else:
            record.op = "destroy"
            if coder.data is not None:
                self.ghosts.keep_destroy(record, self.tick)
        return record

    def code_base(self, base: tuple[Any, ...]) -> tuple[Any, ...]:
        coder = self.coder
        if coder.decision("same base", base == self.base):
            return self.base
        newest = base[:1] == ("newest",)
        if coder.decision("newest", newest):
            depth = base[1] if newest else 0
            some = coder.decision("depth", depth > 0)
            self.base = ("newest", some + (some and coder.decision("deeper", depth > 1)))
            return self.base
        _, baseline, older = base or ("named", self.tick - 1, 0)
        baseline = self.tick - coder.number("age", self.tick - baseline)
        has_older = coder.decision("older", older > 0)
        older = baseline - coder.number("older age", max(1, baseline - older)) if has_older else 0
        self.base = ("named", baseline, older)
        return self.base

    def code_mask(self, record: CodedRecord) -> None:
        coder, count = self.coder, len(self.class_.properties)
        record.whole = coder.decision("whole", record.whole)
        if record.whole:
            record.mask = coder.raw(count, record.mask)
        elif coder.decision("same mask", record.mask == self.mask):
            record.mask = self.mask
        else:
            bits = [
                coder.decision(("mask", at, self.mask >> at & 1), record.mask >> at & 1)
                for at in range(count)
            ]
            record.mask = self.mask = sum(bit << at for at, bit in enumerate(bits))

    def update(self, record: CodedRecord) -> None:
        coder, trails = self.coder, dict(self.listed.get(record.id, {}))
        self.list[record.id] = trails
        record.base = self.code_base(record.base)
        self.code_mask(record)
        places = in_order(
            self.class_, [p for p in range(len(self.class_.properties)) if record.mask >> p & 1]
        )
        with_words = [place for place in places if self.class_.properties[place].words]
        states = self.ghosts.states_of(record, self.tick)
        if record.whole:
            for place in with_words:
                words = self.class_.properties[place].words
                given = record.values.get(place, (0,) * len(words))
                record.values[place] = tuple(
                    coder.raw(word.last.bit_length(), value) for word, value in zip(words, given, strict=True)
                )
        else:
            self.code_words(record, with_words, states, trails)
        self.bodies(record, [place for place in places if place not in with_words])
        if coder.data is not None and states:
            self.ghosts.keep_update(record, self.tick)

    def code_words(
        self,
        record: CodedRecord,
        places: list[int],
        states: list[dict[int, tuple[int, ...]]] | None,
        trails: dict[Any, Trail],
    ) -> None:
        older = record.base[1] if record.base[0] == "newest" else int(record.base[2] > 0)
        times = (1, 1) if record.base[0] == "newest" else self.times(record.base)
        known: int | None = None
        for place in places:
            each = self.class_.properties[place]
            guess = record.guesses[place] = self.code_guess(place, older, record.guesses.get(place, ""))
            first = known is None
            if known is None:
                known = ["stays", "goes on", "of three", "bends"].index(guess)
            assert not first or known < 4
            given = record.values.get(place)
            found: list[int] = []
            residuals: list[int] = []
            rows = states and [state.get(place, (0,) * len(each.words)) for state in states]
            for at, word in enumerate(each.words):
                base = predicted(each, at, guess, rows, times, found) if rows else None
                if self.coder.data is not None:
                    residual = 0
                elif given is not None and base is not None:
                    residual = word.residual(given[at], base)
                else:
                    residual = record.residuals[place][at]
                context = known if isinstance(known, int) else 0
                residual = self.code_residual((place, at), context, trails, residual)
                distance = (residual + 1) // 2
                self.most = max(self.most, distance) if context >= 4 else distance
                known = 4 + min(5, (self.most.bit_length() + 1) // 2)
                residuals.append(residual)
                if base is not None:
                    found.append(word.word(residual, base))
            record.residuals[place] = residuals
            if rows:
                record.values[place] = tuple(found)

    def times(self, base: tuple[Any, ...]) -> tuple[int, int]:
        _, baseline, older = base
        return baseline - older, self.tick - baseline

    def code_guess(self, place: int, older: int, guess: str) -> str:
        coder = self.coder
        if older == 0:
            return "stays"
        if older == 1:
            return "goes on" if coder.decision(("goes on", place), guess == "goes on") else "stays"
        if not coder.decision(("moves", place), guess in ("of three", "bends")):
            return "stays"
        return "bends" if coder.decision(("bends", place), guess == "bends") else "of three"

    def code_residual(self, word: Any, context: int, trails: dict[Any, Trail], residual: int) -> int:
        coder = self.coder
        last, before = trails.get(word, UNKNOWN)
        by: Any = (word, context)
        if last is not None:
            by = (word, "trail", last, before, 0 if context < 4 else min(context - 3, 3))
        distance = 0
        if coder.decision((*by, "other"), residual > 0):
            side = coder.decision((*by, "side"), (residual - 1) % 2)
            size, bits, by = (residual - 1) // 2 + 1, 1, (word, context)
            while coder.decision((*by, "longer", min(bits, 14)), size.bit_length() > bits):
                bits += 1
            found = 1
            if bits > 1:
                found = 2 | coder.decision((*by, "second", min(bits, 14)), size >> (bits - 2) & 1)
            if bits > 2:
                name = (*by, "third", min(bits, 14), found)
                found = 2 * found | coder.decision(name, size >> (bits - 3) & 1)
            if bits > 3:
                found = found << (bits - 3) | coder.raw(bits - 3, size & ((1 << (bits - 3)) - 1))
            residual = 2 * (found - 1) + side + 1
            distance = (residual + 1) // 2 * (1 if residual % 2 else -1)
        else:
            residual = 0
        trails[word] = (max(-2, min(2, distance)), last)
        return residual

    def create(self, record: CodedRecord) -> None:
        coder = self.coder
        self.list[record.id] = dict(self.listed.get(record.id, {}))
        places = in_order(self.class_, self.class_.created(record.owner, record.chosen))
        for place in places:
            words = []
            for at, word in enumerate(self.class_.properties[place].words):
                before = self.created.get((place, at), 0)
                value = record.values[place][at] if place in record.values else 0
                if coder.decision(("as before", place, at), value == before):
                    value = before
                else:
                    value = coder.raw(word.last.bit_length(), value)
                self.created[place, at] = value
                words.append(value)
            if words:
                record.values[place] = tuple(words)
        self.bodies(record, [place for place in places if not self.class_.properties[place].words])
        if coder.data is not None:
            self.ghosts.keep_create(record, self.tick)

    def bodies(self, record: CodedRecord, places: list[int]) -> None:
        if not places:
            return
        coder, writer = self.coder, Writer(0)
        if coder.data is None:
            for place in places:
                self.ghosts.write_value(writer, self.class_.properties[place], record.values[place])
        bits = coder.number("bodies", writer.at + 1) - 1
        number = coder.raw(bits, writer.number)
        if coder.data is not None:
            reader = Reader(number.to_bytes((bits + 7) // 8, "little"), 0, bits)
            for place in places:
                record.values[place] = self.ghosts.read_value(reader, self.class_.properties[place])
            assert reader.at == reader.end


def whole(packets: list[Sample]) -> Sample:
    """The sample of a tick."""
    sample = Sample()
    for packet in packets:
        for class_id, counts in packet.counts.items():
            add(sample.counts.setdefault(class_id, {}), counts)
            sample.lists.setdefault(class_id, {}).update(packet.lists[class_id])
    return sample


def add(counts: Counts, others: Counts) -> None:
    for name, seen in others.items():
        total = counts.setdefault(name, [0, 0])
        for bit in (0, 1):
            total[bit] += seen[bit]


# --- predictions ---------------------------------------------------------------------------------------


def predicted(
    each: Property,
    at: int,
    guess: str,
    rows: list[tuple[int, ...]],
    times: tuple[int, int],
    found: list[int],
) -> int:
    """What a word of a property is predicted to be, by the words in front of it in this record."""
    word = each.words[at]
    if each.rotation and at > 0:
        rows = [turned(row, found[0], word.last // 2) for row in rows]
    a, *others = [row[at] for row in rows]
    wide = word.last.bit_length() > 32
    if guess == "stays" or word.metric in ("choice", "float"):
        return a
    if guess == "goes on" or (guess == "of three" and wide):
        return word.extrapolated(others[0], a, *times)
    if wide:
        return a
    # On a circle by the shorter way from the newest.
    b, c = (a + short(word, a, other) for other in others[:2])
    if guess == "bends":
        return held(word, 3 * a - 3 * b + c)
    if abs(a - 2 * b + c) > 2:
        return word.extrapolated(others[0], a, *times)
    return held(word, (2 * (4 * a + b - 2 * c) + 3) // 6)


def short(word: Word, before: int, after: int) -> int:
    if word.metric == "line":
        return after - before
    ahead, behind = (after - before) % (word.last + 1), (before - after) % (word.last + 1)
    return ahead if ahead <= behind else -behind


def held(word: Word, value: int) -> int:
    return value % (word.last + 1) if word.metric == "circle" else max(0, min(word.last, value))


def turned(row: tuple[int, ...], largest: int, reach: int) -> tuple[int, ...]:
    """A rotation's words with another component left out."""
    if row[0] == largest:
        return row
    levels = [level - reach for level in row[1:]]
    square = max(0, 2 * reach**2 - sum(level**2 for level in levels))
    # Rounded to the nearest.
    levels.insert(row[0], (isqrt(4 * square) + 1) // 2)
    if levels.pop(largest) < 0:
        levels = [-level for level in levels]
    return largest, *(max(-reach, min(reach, level)) + reach for level in levels)
