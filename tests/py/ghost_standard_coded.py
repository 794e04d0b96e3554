"""Coded records of ghosts, read and written by the standard's text alone (``STANDARD.md``, "Coded classes").

It shares no code with Tickwire: what both say of the same payload is compared in
``test_ghost_standard_coded.py``. A coder either reads decisions or writes those that it is given, so one
walk serves both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ghost_motion import Motion
from ghost_standard import Class, Ghosts, Reader, Record, Writer, in_order

DIGIT = 1 << 32
# By a decision's name: how often it was 0 and 1.
Counts = dict[Any, list[int]]
Trail = tuple[int | None, int | None]
UNKNOWN: Trail = (None, None)


class Coder:
    """The range coder; `data` to read, None to write."""

    def __init__(self, data: bytes | None) -> None:
        self.data, self.counts, self.seen, self.range = data, Counts(), Counts(), (1 << 64) - 1
        # Of `low`, what is above 64 bits is the output.
        self.at = self.code = self.low = 0
        self.digits = 0
        self._take(8)

    def _take(self, count: int) -> None:
        if self.data is not None:
            following = self.data[self.at : self.at + count].ljust(count, b"\0")
            self.code, self.at = self.code << 8 * count | int.from_bytes(following), self.at + count

    def _normalize(self) -> None:
        if self.range < DIGIT:
            self.range, self.low, self.digits = self.range * DIGIT, self.low * DIGIT, self.digits + 1
            self._take(4)

    def _end(self) -> tuple[int, int]:
        """How many bytes it takes if it ends here, and how many behind them aren't sent."""
        rest = (self.range.bit_length() - 1) // 8
        return 8 + 4 * self.digits - rest, rest

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
        """What was written: to the next number whose last bytes are 0."""
        count, rest = self._end()
        return (-(-self.low >> 8 * rest)).to_bytes(count)

    def is_at_end(self) -> bool:
        return self.data is not None and self._end()[0] == len(self.data)


@dataclass
class CodedRecord(Record):
    """Whether it deviates and `residuals` by property, of an update whose words aren't whole."""

    whole: bool = False
    deviates: dict[int, bool] = field(default_factory=dict)
    residuals: dict[int, list[int]] = field(default_factory=dict)


@dataclass
class Noted:
    """What a list has of a ghost: its words' trails, and what its record was."""

    trails: dict[Any, Trail]
    mask: int = 0
    deviated: int = 0
    first: int = 0
    times: int = 0


@dataclass
class Sample:
    """What a tick's packets had, by class: decisions, and the listed ghosts by id."""

    counts: dict[int, Counts] = field(default_factory=dict)
    lists: dict[int, dict[int, Noted]] = field(default_factory=dict)


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
            walk = Section(self, coder, class_id, (tick, tick - age if age else 0), named)
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
            ticks = (tick, tick - part.age if part.age else 0)
            Section(self, coder, class_id, ticks, named).write(records)
        coder.raw(1, 0)
        for byte in coder.finished():
            writer.bits(byte, 8)


class Section:
    """A walk through a class's records in a packet."""

    def __init__(
        self, ghosts: CodedGhosts, coder: Coder, class_id: int, ticks: tuple[int, int], named: list[Sample]
    ) -> None:
        self.ghosts, self.coder, self.class_id = ghosts, coder, class_id
        self.class_ = ghosts.classes[class_id]
        coder.counts, coder.seen = Counts(), Counts()
        for sample in named:
            add(coder.counts, sample.counts.get(class_id, {}))
        self.listed = named[0].lists.get(class_id, {}) if named else {}
        self.places = sorted(self.listed)
        self.list: dict[int, Noted] = {}
        # Of the base before: its tick, how far states are apart, and whether its tick was as before.
        self.tick, self.baseline = ticks
        self.past, self.was_same, self.was_steps = 1, True, False
        self.created: dict[Any, int] = {}

    def keep(self, sample: Sample) -> None:
        add(sample.counts.setdefault(self.class_id, {}), self.coder.seen)
        sample.lists.setdefault(self.class_id, {}).update(self.list)

    def read(self) -> list[CodedRecord]:
        records = []
        self.following, self.was = 0, False
        while (place := self.code_place(None)) is not None:
            records.append(self.record(CodedRecord(self.class_id, -1, ""), place, True))
        self.following, self.was = 0, False
        while (place := self.code_id(None)) is not None:
            records.append(self.record(CodedRecord(self.class_id, -1, ""), place, False))
        return records

    def write(self, records: list[CodedRecord]) -> None:
        self.following, self.was = 0, False
        for record in [record for record in records if record.id in self.listed]:
            place = self.places.index(record.id)
            self.code_place(place)
            self.record(record, place, True)
        self.code_place(None)
        self.following, self.was = 0, False
        for record in [record for record in records if record.id not in self.listed]:
            self.code_id(record.id)
            self.record(record, record.id, False)
        self.code_id(None)

    def code_place(self, place: int | None) -> int | None:
        """The next listed ghost with a record."""
        coder, count = self.coder, len(self.places)
        if count and self.following == 0:
            if not coder.decision(("more", True), place is not None):
                return None
            self.following, self.was = coder.number("start", (place or 0) + 1), True
            return self.following - 1
        while self.following < count:
            at = self.following
            if at % 16 == 0 and not coder.decision(("more", True), place is not None):
                return None
            noted = self.listed[self.places[at]]
            self.was = coder.decision(("has", noted.times, self.was), at == place)
            self.following = at + 1
            if self.was:
                return at
        return None

    def code_id(self, id_: int | None) -> int | None:
        coder = self.coder
        if not coder.decision(("more", False), id_ is not None):
            return None
        gap = (id_ or 0) - self.following
        self.was = coder.decision(("apart", self.was), gap > 0)
        found = self.following + (coder.number("gap", gap) if self.was else 0)
        self.following = found + 1
        return found

    # --- records -----------------------------------------------------------------------------------------

    def record(self, record: CodedRecord, place: int, by_place: bool) -> CodedRecord:
        coder = self.coder
        record.id = self.places[place] if by_place else place
        assert record.id < self.class_.capacity
        noted = self.listed[record.id] if by_place else None
        if coder.decision(("update", by_place), record.op == "update"):
            record.op = "update"
            self.update(record, noted)
        elif coder.decision("create", record.op == "create"):
            record.op = "create"
            record.owner = coder.decision("owner", record.owner)
            record.chosen = self.class_.chosen() and coder.decision("owner", record.chosen)
            self.create(record, noted)
        else:
            record.op = "destroy"
            if coder.data is not None:
                self.ghosts.keep_destroy(record, self.tick)
        return record

    def code_base(self, base: tuple[Any, ...], noted: Noted | None) -> tuple[Any, ...]:
        coder, listed = self.coder, noted is not None
        _, baseline, past, run = base or ("up to", 0, 1, 0)
        self.was_same = coder.decision(("same base", listed, self.was_same), baseline == self.baseline)
        if not self.was_same:
            self.baseline = self.tick - coder.number("age", self.tick - baseline)
        self.was_steps = coder.decision(("steps", listed, self.was_steps), (past, run) == (0, 3))
        if self.was_steps:
            return ("up to", self.baseline, 0, 3)
        expected = 0
        if noted is not None and self.was_same:
            expected = min(12, max(0, self.baseline - noted.first) // self.past)
        if coder.decision(("run", listed, self.was_same), run == expected):
            run = expected
        else:
            run = coder.number(("runs", self.was_same), run + 1) - 1
        assert run <= 12
        if run and not coder.decision("steady", past == self.past):
            self.past = coder.number("past", past)
        return ("up to", self.baseline, self.past if run else 1, run)

    def code_mask(self, record: CodedRecord, noted: Noted | None) -> None:
        coder, count = self.coder, len(self.class_.properties)
        record.whole = coder.decision("whole", record.whole)
        if record.whole:
            record.mask = coder.raw(count, record.mask)
            return
        mask, before = 0, None
        for at in range(count):
            of_list = None if noted is None else noted.mask >> at & 1
            before = coder.decision(("mask", at, of_list, before), record.mask >> at & 1)
            mask |= before << at
        record.mask = mask

    def update(self, record: CodedRecord, noted: Noted | None) -> None:
        coder, trails = self.coder, dict(noted.trails) if noted else {}
        record.base = self.code_base(record.base, noted)
        self.code_mask(record, noted)
        self.most = 0
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
            self.code_words(record, with_words, states, (trails, noted))
        self.list[record.id] = self.noted(record, noted, trails)
        self.bodies(record, [place for place in places if place not in with_words])
        if coder.data is not None and states:
            self.ghosts.keep_update(record, self.tick)

    def noted(self, record: CodedRecord, noted: Noted | None, trails: dict[Any, Trail]) -> Noted:
        _, tick, past, run = record.base
        first = tick - run * past if run else self.tick if noted is None else noted.first
        deviated = sum(deviates << place for place, deviates in record.deviates.items())
        deviated |= noted.deviated & ~record.mask if noted else 0
        times = min(noted.times + 1, 3) if noted else 0
        return Noted(trails, record.mask, deviated, first, times)

    def code_words(
        self,
        record: CodedRecord,
        places: list[int],
        states: list[dict[int, tuple[int, ...]]] | None,
        known_of_it: tuple[dict[Any, Trail], Noted | None],
    ) -> None:
        trails, noted = known_of_it
        _, baseline, past, run = record.base
        context = 0
        for place in places:
            each = self.class_.properties[place]
            deviates = record.deviates.get(place, False)
            deviates = record.deviates[place] = self.code_deviates(place, run, noted, deviates)
            if context < 4:
                context = 3 if deviates else 0 if run == 0 else 1 if run < 4 else 2
            given = record.values.get(place)
            found: list[int] = []
            residuals: list[int] = []
            motion = None
            if states:
                rows = [state.get(place, (0,) * len(each.words)) for state in states]
                ages = (past, self.tick - baseline) if past else (1, 1)
                motion = Motion(each, rows, ages, deviates=deviates)
            for at, word in enumerate(each.words):
                base = motion.word(at, found) if motion else None
                if self.coder.data is not None:
                    residual = 0
                elif given is not None and base is not None:
                    residual = word.residual(given[at], base)
                else:
                    residual = record.residuals[place][at]
                residual = self.code_residual((place, at), context, trails, residual)
                self.most = max(self.most, (residual + 1) // 2)
                context = 4 + min(5, (self.most.bit_length() + 1) // 2)
                residuals.append(residual)
                if base is not None:
                    found.append(word.word(residual, base))
            record.residuals[place] = residuals
            if states:
                record.values[place] = tuple(found)

    def code_deviates(self, place: int, run: int, noted: Noted | None, deviates: bool) -> bool:
        if run == 0:
            return False
        of_list = None
        if noted is not None:
            of_list = noted.deviated >> place & 1 if noted.mask >> place & 1 else "unsaid"
        return self.coder.decision(("deviates", place, of_list), deviates)

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
                found = found << (bits - 2) | coder.raw(bits - 2, size & ((1 << (bits - 2)) - 1))
            residual = 2 * (found - 1) + side + 1
            distance = (residual + 1) // 2 * (1 if residual % 2 else -1)
        else:
            residual = 0
        trails[word] = (max(-2, min(2, distance)), last)
        return residual

    def create(self, record: CodedRecord, noted: Noted | None) -> None:
        coder, created = self.coder, self.class_.created(record.owner, record.chosen)
        trails = dict(noted.trails) if noted else {}
        self.list[record.id] = Noted(trails, sum(1 << place for place in created), first=self.tick)
        places = in_order(self.class_, created)
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
