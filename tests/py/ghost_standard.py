"""Plain records of ghosts, read and written by the text of the standard alone (``STANDARD.md``, "Ghosts").

It shares no code with Tickwire: what both say of the same payload is compared in ``test_ghost_standard.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

TIERS = (2, 5, 8, 12, 16, 24, 32, 48)
GAPS = ((0, 0, 0), (1, 3, 8), (9, 6, 72), (73, 10, 1096))


class Reader:
    def __init__(self, data: bytes, at: int, bits: int) -> None:
        self.number = int.from_bytes(data, "little") >> at & ((1 << bits) - 1)
        # Where it lies, for what is aligned.
        self.at, self.end = at, at + bits

    def bits(self, count: int) -> int:
        assert self.at + count <= self.end, "ends too early"
        value = self.number & ((1 << count) - 1)
        self.number >>= count
        self.at += count
        return value

    def up_to(self, most: int) -> int:
        value = self.bits(most.bit_length())
        assert value <= most
        return value

    def align(self) -> None:
        assert self.bits(-self.at % 8) == 0


class Writer:
    def __init__(self, at: int) -> None:
        self.number, self.first, self.at = 0, at, at

    def bits(self, value: int, count: int) -> None:
        assert 0 <= value < 1 << count
        self.number |= value << (self.at - self.first)
        self.at += count

    def up_to(self, value: int, most: int) -> None:
        self.bits(value, most.bit_length())

    def align(self) -> None:
        self.bits(0, -self.at % 8)


@dataclass(frozen=True)
class Word:
    """The range of a word; `stays`: a choice with a flag of its own for no change."""

    last: int
    metric: str = "line"
    stays: bool = False

    def tiers(self) -> list[int]:
        return [] if self.metric == "choice" else [b for b in TIERS if b <= self.last.bit_length() - 4]

    def residual(self, word: int, base: int) -> int:
        match self.metric:
            case "choice":
                return 0 if word == base else word + (word < base)
            case "circle":
                ahead = (word - base) % (self.last + 1)
                behind = (base - word) % (self.last + 1)
                return 0 if ahead == 0 else 2 * ahead - 1 if ahead <= behind else 2 * behind
        both = min(base, self.last - base)
        off = abs(word - base)
        if off <= both:
            return 0 if off == 0 else 2 * off - (word > base)
        return both + off

    def word(self, residual: int, base: int) -> int:
        match self.metric:
            case "choice":
                return base if residual == 0 else residual - (residual <= base)
            case "circle":
                step = (residual + 1) // 2
                return (base + (step if residual % 2 else -step)) % (self.last + 1)
        both = min(base, self.last - base)
        if residual <= 2 * both:
            step = (residual + 1) // 2
            return base + step if residual % 2 else base - step
        off = residual - both
        return base + off if base == both else base - off

    def read(self, reader: Reader, base: int) -> int:
        if self.stays:
            return base if reader.bits(1) else self.word(1 + reader.up_to(self.last - 1), base)
        first = 0
        for bits in self.tiers():
            if reader.bits(1):
                return self.word(first + reader.bits(bits), base)
            first += 1 << bits
        return self.word(first + reader.up_to(self.last - first), base)

    def write(self, writer: Writer, word: int, base: int) -> None:
        residual = self.residual(word, base)
        if self.stays:
            writer.bits(int(residual == 0), 1)
            if residual:
                writer.up_to(residual - 1, self.last - 1)
            return
        first = 0
        for bits in self.tiers():
            here = residual < first + (1 << bits)
            writer.bits(int(here), 1)
            if here:
                writer.bits(residual - first, bits)
                return
            first += 1 << bits
        writer.up_to(residual - first, self.last - first)

    def extrapolated(self, older: int, newer: int, past: int, ahead: int) -> int:
        size = self.last + 1
        match self.metric:
            case "line":
                step = abs(newer - older) * ahead // past
                return max(0, min(self.last, newer + (step if newer > older else -step)))
            case "circle":
                forth, back = (newer - older) % size, (older - newer) % size
                if forth <= back:
                    return (newer + forth * ahead // past) % size
                return (newer - back * ahead // past) % size
        return newer


@dataclass(frozen=True)
class Property:
    """`words`, or the most bytes of a text; who gets it: a, i, o, e or c; and its one common value."""

    name: str
    gets: str
    words: tuple[Word, ...] = ()
    text: int = 0
    common: int | None = None
    rotation: bool = False


@dataclass(frozen=True)
class Class:
    name: str
    capacity: int
    properties: tuple[Property, ...]

    def chosen(self) -> bool:
        return any(each.gets == "c" for each in self.properties)

    def created(self, owner: bool, chosen: bool) -> list[int]:
        """The places of the properties that a create has."""
        hidden = ("e" if owner else "o") + ("" if chosen else "c")
        return [place for place, each in enumerate(self.properties) if each.gets not in hidden]


@dataclass
class Record:
    """What a record says; the words and texts are what it makes of the ghost."""

    class_id: int
    id: int
    op: str
    owner: bool = False
    chosen: bool = False
    base: tuple[Any, ...] = ()
    mask: int = 0
    goes_on: bool = False
    values: dict[int, Any] = field(default_factory=dict)


@dataclass
class Ghost:
    """States by tick, of which the 64 newest and the newest count; and the newest texts."""

    owner: bool
    states: dict[int, dict[int, tuple[int, ...]]]
    texts: dict[int, str]

    def words(self, tick: int, place: int, width: int) -> tuple[int, ...]:
        return self.states[tick].get(place, (0,) * width)


class Ghosts:
    """A client's ghosts, by class and id."""

    def __init__(self, classes: list[Class]) -> None:
        self.classes = classes
        self.alive: dict[tuple[int, int], Ghost] = {}
        self.destroyed: dict[tuple[int, int], int] = {}
        self.tick = 0
        self.visit: tuple[int, int, tuple[int, int] | None] | None = None
        """Of the last packet: its number, the high bits of the tick, and what it continues."""

    # --- reading -----------------------------------------------------------------------------------------

    def read(self, data: bytes, at: int, bits: int) -> tuple[int, list[Record]]:
        reader = Reader(data, at, bits)
        low = reader.bits(16)
        near = self.tick or 1 << 16
        tick = near + (low - near + (1 << 15)) % (1 << 16) - (1 << 15)
        self.tick = max(self.tick, tick)
        self.visit = None
        if reader.bits(1):
            number, high = reader.bits(64), reader.bits(16)
            self.visit = (number, high, (reader.bits(64), reader.bits(32)) if reader.bits(1) else None)
        records: list[Record] = []
        base: tuple[Any, ...] = ()
        while reader.bits(1):
            class_id = reader.up_to(len(self.classes) - 1)
            class_, id_, mask = self.classes[class_id], 0, 0
            while reader.bits(1):
                id_ += self._gap(reader)
                assert id_ < class_.capacity
                if reader.bits(1):
                    base = self._base(reader, tick, base)
                    mask = mask if reader.bits(1) else reader.bits(len(class_.properties))
                    records.append(self._update(reader, class_id, id_, tick, base, mask))
                elif reader.bits(1):
                    records.append(self._create(reader, class_id, id_, tick))
                else:
                    records.append(Record(class_id, id_, "destroy"))
                    self.keep_destroy(records[-1], tick)
                id_ += 1
        return tick, records + self._read_rest(reader, tick)

    def _read_rest(self, reader: Reader, tick: int) -> list[Any]:  # noqa: ARG002
        """What is behind the sections: records of coded classes."""
        assert reader.at == reader.end
        return []

    def _gap(self, reader: Reader) -> int:
        for first, bits, _ in GAPS:
            if reader.bits(1):
                return first + reader.bits(bits)
        return reader.bits(16)

    def _base(self, reader: Reader, tick: int, before: tuple[Any, ...]) -> tuple[Any, ...]:
        if reader.bits(1):
            assert before
            return before
        if reader.bits(1):
            return ("newest", reader.bits(2))
        age = reader.bits(6) + 1
        if age == 64:
            age = (tick - reader.bits(16)) % (1 << 16)
        older = tick - age - reader.bits(6) - 1 if reader.bits(1) else 0
        return ("named", tick - age, older)

    def _value(self, reader: Reader, each: Property, base: tuple[int, ...] | None) -> Any:
        if each.text:
            length = reader.up_to(each.text)
            reader.align()
            return bytes(reader.bits(8) for _ in range(length)).decode()
        if base is None:
            if each.common is not None and reader.bits(1):
                return (each.common,)
            return tuple(reader.up_to(word.last) for word in each.words)
        return tuple(word.read(reader, at) for word, at in zip(each.words, base, strict=True))

    def read_value(self, reader: Reader, each: Property) -> Any:
        return self._value(reader, each, None)

    def write_value(self, writer: Writer, each: Property, value: Any) -> None:
        self._write_value(writer, each, value, None)

    def _create(self, reader: Reader, class_id: int, id_: int, tick: int) -> Record:
        class_ = self.classes[class_id]
        owner = bool(reader.bits(1))
        chosen = class_.chosen() and bool(reader.bits(1))
        record = Record(class_id, id_, "create", owner=owner, chosen=chosen)
        for place in in_order(class_, class_.created(owner, chosen)):
            record.values[place] = self._value(reader, class_.properties[place], None)
        self.keep_create(record, tick)
        return record

    def keep_create(self, record: Record, tick: int) -> None:
        class_id, id_, class_ = record.class_id, record.id, self.classes[record.class_id]
        if tick <= self.destroyed.get((class_id, id_), 0):
            return
        ghost = self.alive.get((class_id, id_)) or Ghost(record.owner, {}, {})
        is_newest = tick > max(ghost.states, default=0)
        before = ghost.states[max(ghost.states)] if ghost.states else {}
        state = {**before, **{p: v for p, v in record.values.items() if class_.properties[p].words}}
        ghost.states[tick] = state
        if is_newest:
            ghost.owner = record.owner
            ghost.texts |= {p: v for p, v in record.values.items() if class_.properties[p].text}
        self.alive[class_id, id_] = ghost

    def keep_destroy(self, record: Record, tick: int) -> None:
        self.alive.pop((record.class_id, record.id), None)
        self.destroyed[record.class_id, record.id] = tick

    def _known(self, class_id: int, id_: int, tick: int, base: tuple[Any, ...]) -> tuple[Any, ...]:
        """The base's tick, an older one or 0, and how many ticks are between these and to the packet's."""
        if base[0] == "named":
            _, baseline, older = base
            return baseline, older, baseline - older, tick - baseline
        if base[0] == "up to":
            newest = max(t for t in self.alive[class_id, id_].states if t <= base[1])
            return newest, 0, base[2], tick - base[1]
        before = sorted((t for t in self.alive[class_id, id_].states if t < tick), reverse=True)
        return before[0], before[1] if base[1] else 0, 1, 1

    def _update(
        self, reader: Reader, class_id: int, id_: int, tick: int, base: tuple[Any, ...], mask: int
    ) -> Record:
        class_ = self.classes[class_id]
        record = Record(class_id, id_, "update", base=base, mask=mask)
        ghost = self.alive.get((class_id, id_))
        assert ghost, "an update of a ghost that isn't there can't be told from one that is late"
        baseline, older, past, ahead = self._known(class_id, id_, tick, base)
        record.goes_on = bool(reader.bits(1)) if older else False
        for place in in_order(class_, [p for p in range(len(class_.properties)) if mask >> p & 1]):
            each = class_.properties[place]
            at = self._predicted(ghost, each, place, record.goes_on, baseline, older, past, ahead)
            record.values[place] = self._value(reader, each, at)
        self.keep_update(record, tick)
        return record

    def keep_update(self, record: Record, tick: int) -> None:
        class_, ghost = self.classes[record.class_id], self.alive[record.class_id, record.id]
        baseline = self._known(record.class_id, record.id, tick, record.base)[0]
        is_newest = tick > max(ghost.states)
        words = {p: v for p, v in record.values.items() if class_.properties[p].words}
        if tick not in ghost.states:
            ghost.states[tick] = {**ghost.states[baseline], **words}
        if is_newest:
            ghost.texts |= {p: v for p, v in record.values.items() if class_.properties[p].text}

    def states_of(self, record: Record, tick: int) -> list[dict[int, tuple[int, ...]]] | None:
        """The states that an update is against, newest first; None of a ghost that isn't there."""
        ghost = self.alive.get((record.class_id, record.id))
        if ghost is None or tick <= self.destroyed.get((record.class_id, record.id), 0):
            return None
        if record.base[0] == "named":
            return [ghost.states[tick] for tick in record.base[1:] if tick]
        if record.base[0] == "up to":
            _, newest, past, run = record.base
            first, *others = sorted((t for t in ghost.states if t <= newest), reverse=True)
            if past == 0:
                return [ghost.states[t] for t in (first, *others[:run])]
            return [ghost.states[t] for t in (first, *(newest - past * back for back in range(1, run + 1)))]
        before = sorted((t for t in ghost.states if t < tick), reverse=True)
        assert len(before) > record.base[1]
        return [ghost.states[tick] for tick in before[: record.base[1] + 1]]

    def _predicted(
        self,
        ghost: Ghost,
        each: Property,
        place: int,
        goes_on: bool,
        baseline: int,
        older: int,
        past: int,
        ahead: int,
    ) -> tuple[int, ...]:
        newer = ghost.words(baseline, place, len(each.words))
        if not goes_on:
            return newer
        before = ghost.words(older, place, len(each.words))
        words = zip(each.words, before, newer, strict=True)
        return tuple(word.extrapolated(a, b, past, ahead) for word, a, b in words)

    # --- writing -----------------------------------------------------------------------------------------

    def write(self, at: int, tick: int, records: list[Record]) -> Writer:
        """The payload of these records; what they are against must be known."""
        writer = Writer(at)
        writer.bits(tick % (1 << 16), 16)
        writer.bits(int(self.visit is not None), 1)
        if self.visit is not None:
            number, high, continues = self.visit
            writer.bits(number, 64)
            writer.bits(high, 16)
            writer.bits(int(continues is not None), 1)
            if continues is not None:
                writer.bits(continues[0], 64)
                writer.bits(continues[1], 32)
        base: tuple[Any, ...] = ()
        section = None
        next_id = mask = 0
        for record in records:
            class_ = self.classes[record.class_id]
            if section != record.class_id:
                if section is not None:
                    writer.bits(0, 1)
                writer.bits(1, 1)
                writer.up_to(record.class_id, len(self.classes) - 1)
                section, next_id, mask = record.class_id, 0, 0
            writer.bits(1, 1)
            self._write_gap(writer, record.id - next_id)
            next_id = record.id + 1
            if record.op == "update":
                writer.bits(1, 1)
                self._write_base(writer, tick, record.base, base)
                base = record.base
                writer.bits(int(record.mask == mask), 1)
                if record.mask != mask:
                    writer.bits(record.mask, len(class_.properties))
                mask = record.mask
                self._write_update(writer, tick, record)
            else:
                writer.bits(0, 1)
                writer.bits(int(record.op == "create"), 1)
                if record.op == "create":
                    writer.bits(int(record.owner), 1)
                    if class_.chosen():
                        writer.bits(int(record.chosen), 1)
                    for place in in_order(class_, class_.created(record.owner, record.chosen)):
                        self._write_value(writer, class_.properties[place], record.values[place], None)
        if section is not None:
            writer.bits(0, 1)
        writer.bits(0, 1)
        self._write_rest(writer, tick)
        return writer

    def _write_rest(self, writer: Writer, tick: int) -> None: ...

    def _write_gap(self, writer: Writer, gap: int) -> None:
        for first, bits, last in GAPS:
            writer.bits(int(gap <= last), 1)
            if gap <= last:
                writer.bits(gap - first, bits)
                return
        writer.bits(gap, 16)

    def _write_base(self, writer: Writer, tick: int, base: tuple[Any, ...], before: tuple[Any, ...]) -> None:
        writer.bits(int(base == before), 1)
        if base == before:
            return
        writer.bits(int(base[0] == "newest"), 1)
        if base[0] == "newest":
            writer.bits(base[1], 2)
            return
        _, baseline, older = base
        age = tick - baseline
        writer.bits(min(age - 1, 63), 6)
        if age > 63:
            writer.bits(baseline % (1 << 16), 16)
        writer.bits(int(older > 0), 1)
        if older:
            writer.bits(baseline - older - 1, 6)

    def _write_update(self, writer: Writer, tick: int, record: Record) -> None:
        class_ = self.classes[record.class_id]
        ghost = self.alive[record.class_id, record.id]
        baseline, older, past, ahead = self._known(record.class_id, record.id, tick, record.base)
        if older:
            writer.bits(int(record.goes_on), 1)
        for place in in_order(class_, list(record.values)):
            each = class_.properties[place]
            at = self._predicted(ghost, each, place, record.goes_on, baseline, older, past, ahead)
            self._write_value(writer, each, record.values[place], at)

    def _write_value(self, writer: Writer, each: Property, value: Any, base: tuple[int, ...] | None) -> None:
        if each.text:
            data = value.encode()
            writer.up_to(len(data), each.text)
            writer.align()
            for byte in data:
                writer.bits(byte, 8)
        elif base is None and value == (each.common,):
            writer.bits(1, 1)
        elif base is None:
            if each.common is not None:
                writer.bits(0, 1)
            for word, number in zip(each.words, value, strict=True):
                writer.up_to(number, word.last)
        else:
            for word, number, at in zip(each.words, value, base, strict=True):
                word.write(writer, number, at)


def in_order(class_: Class, places: list[int]) -> list[int]:
    """Those with words first, then the others."""
    return sorted(places, key=lambda place: (not class_.properties[place].words, place))
