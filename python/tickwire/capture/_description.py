"""A protocol's canonical description (:attr:`tickwire.Protocol.description`), as tables for the dissector.

The protocol's hash is computed from this text, so the text contains everything that both sides must agree
on. Its grammar is in ``src/transport/framing/STANDARD.md``, "Protocol hash".
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from typing import Any

Table = dict[str, Any]

# Who gets a property of a ghost.
CONDITIONS = ("a", "i", "o", "e", "c")
# Bits of the tiers of residuals.
TIERS = (2, 5, 8, 12, 16, 24, 32, 48)
_FRAMINGS = {"tickwire protocol 1": "native", "yojimbo protocol 1": "yojimbo"}


def protocol_table(description: str) -> Table:
    """Returns tables of messages, channels, and their filters.

    Raises:
        ValueError: the description has another version.
    """
    text = _Text(description)
    first = text.line()
    framing = _FRAMINGS.get(first)
    if framing is None:
        raise ValueError(
            f"the protocol's description begins with {first!r}, of another version than this dissector"
        )
    if framing == "yojimbo":
        # The maximum packet size doesn't affect the contents.
        text.line()
    messages: list[Table] = []
    channels: list[Table] = []
    classes: list[Table] = []
    layers: set[str] = set()
    while not text.at_end():
        word = text.word()
        if word in ("message", "block"):
            messages.append(_message(text, word == "block"))
        elif word == "system":
            text.word()
            messages.append(_message(text, block=False))
        elif word == "tickwire":
            layers.add(text.line())
        elif word in ("history", "rate"):
            text.line()
        elif word == "input":
            text.name()
            text.line()
            while text.peek().isdigit():
                _field(text)
                text.expect("\n")
        elif word == "class":
            classes.append(_ghost_class(text))
        elif word in CONDITIONS and classes:
            _property(text, word, classes[-1])
        elif word == "channel":
            channels.append((_yojimbo_channel if framing == "yojimbo" else _channel)(text.line().split()))
        else:
            raise ValueError(f"the protocol's description has an unknown line: {word!r}")
    # Behind the game's channels are those of ghosts, of time, and two of peers.
    last = (
        len(channels) - 1 - ("time 1" in layers) - 2 * any(it["name"] == "tickwire.peers" for it in messages)
    )
    ghosts: Table | None = None
    if classes:
        ghosts = {"channel": last, "classes": classes, "coded": any(each["coded"] for each in classes)}
    filters: dict[str, Table] = {}
    for message in messages:
        _collect(message.get("fields"), f"tickwire.{message['filter']}", filters)
    for class_ in classes:
        path = f"tickwire.{class_['filter']}"
        properties = class_["properties"]
        _collect(properties, path, filters)
        assert isinstance(properties, list)
        for each in properties:
            delta = f"{path}.{each['filter']}.delta"
            filters.setdefault(delta, {"filter": delta, "name": each["name"], "type": "text"})
    return {
        "ghosts": ghosts,
        "framing": framing,
        "messages": messages,
        "channels": channels,
        "filters": list(filters.values()),
    }


def _message(text: _Text, block: bool) -> Table:
    if block:
        text.word()
    name = text.name()
    message: Table = {"name": name, "filter": _filter(name), "block": block}
    how = text.line().split()
    if how[0] == "opaque":
        return {**message, "opaque": int(how[1])}
    fields = []
    while text.peek().isdigit():
        fields.append(_field(text))
        text.expect("\n")
    return {**message, "fields": fields}


def _ghost_class(text: _Text) -> Table:
    name = text.name()
    capacity, *coded = text.line().split()
    class_: Table = {"name": name, "filter": _filter(name), "capacity": int(capacity), "coded": bool(coded)}
    return {**class_, "properties": [], "chosen": False}


def _property(text: _Text, condition: str, class_: Table) -> None:
    field = {**_field(text), "condition": condition}
    text.expect("\n")
    words = word_ranges(field["type"])
    if words is not None:
        several = sum(last > 1 for last, _ in words) > 1
        field["delta"] = _delta(field["type"], several)
    properties = class_["properties"]
    assert isinstance(properties, list)
    properties.append(field)
    class_["chosen"] = class_["chosen"] or condition == "c"


def word_ranges(kind: Table) -> list[tuple[int, str]] | None:
    """Returns the largest value and the metric of each word of a kind. Returns None if a value of the kind
    has no words and is sent whole.
    """
    rotation = [(3, "choice")]
    match kind["kind"]:
        case "bool":
            return [(1, "choice")]
        case "number":
            return [(kind["span"], "line")]
        case "large":
            return [(kind["last"], "line")] if kind["last"] < 1 << 64 else None
        case "float":
            return [((1 << 32) - 1, "float")]
        case "double":
            return [((1 << 64) - 1, "float")]
        case "quantized" | "fixed":
            return [(kind["last"], "line")]
        case "enum":
            return [(len(kind["names"]) - 1, "choice")]
        case "flags":
            return [((1 << len(kind["names"])) - 1, "choice")]
        case "angle":
            return [(kind["last"], "circle")]
        case "vector":
            return [(kind["last"], "line")] * kind["axes"]
        case "direction":
            return [((1 << kind["bits"]) - 2, "line")] * 2
        case "rotation":
            return rotation + [((1 << kind["bits"]) - 2, "line")] * 3
        case "signed_rotation":
            return [((1 << 16) - 2, "line")] * 3 + [(1, "choice")]
        case "transform":
            level = [((1 << kind["rotation"]) - 2, "line")] * 3
            return [(kind["last"], "line")] * 3 + rotation + level + [((1 << 32) - 1, "float")] * 3
        case "common":
            return word_ranges(kind["item"])
        case "optional":
            item = word_ranges(kind["item"])
            return item if item is None else [(1, "choice"), *item]
        case "message":
            parts = [word_ranges(field["type"]) for field in kind["fields"]]
            return None if None in parts else [word for part in parts for word in part or []]
    return None


def _delta(kind: Table, several: bool) -> Table:
    """The range of the difference between a value of this kind and a baseline."""
    if kind["kind"] == "optional":
        return {"optional": _delta(kind["item"], several)}
    if kind["kind"] == "message":
        return {"parts": [_delta(field["type"], several) for field in kind["fields"]]}
    words = []
    for last, metric in word_ranges(kind) or []:
        stays = metric == "choice" and several and last > 1
        tiers = [] if metric == "choice" else [bits for bits in TIERS if bits + 4 <= last.bit_length()]
        beyond = last - sum(1 << bits for bits in tiers) - stays
        words.append({"stays": stays, "tiers": len(tiers), "rest": beyond.bit_length()})
    return {"words": words}


def _channel(words: list[str]) -> Table:
    kind, *numbers = words
    channel: Table = {"kind": kind}
    if numbers:
        channel["max_bytes"] = int(numbers[0])
    if kind == "latest":
        channel["keys"] = int(numbers[1])
    return channel


def _yojimbo_channel(words: list[str]) -> Table:
    kind, messages, block, fragment, blocks = words
    return {
        "kind": kind,
        "max_messages": int(messages),
        "max_block": int(block),
        "block_fragment": int(fragment),
        "blocks": blocks == "1",
    }


def _field(text: _Text) -> Table:
    name = text.name()
    return {"name": name, "filter": _filter(name), "type": _kind(text)}


def _filter(name: str) -> str:
    """A name in the form of a display filter."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _collect(fields: object, path: str, filters: dict[str, Table]) -> None:
    assert fields is None or isinstance(fields, list)
    for field in fields or []:
        inner = f"{path}.{field['filter']}"
        _collect_kind(field["type"], field["name"], inner, filters)


def _collect_kind(kind: Table, name: str, path: str, filters: dict[str, Table]) -> None:
    item = kind.get("item")
    if isinstance(item, dict) and kind["kind"] in ("common", "optional"):
        return _collect_kind(item, name, path, filters)
    filters.setdefault(path, {"filter": path, "name": name, "type": _shown(kind)})
    if isinstance(item, dict):
        # The items have the filter of the whole, whose own value is only their count.
        filters[path]["type"] = _shown(item)
        _collect_kind(item, name, path, filters)
    elif kind["kind"] == "message":
        _collect(kind["fields"], path, filters)
    elif kind["kind"] == "union":
        _collect(kind["variants"], path, filters)
    elif kind["kind"] == "transform":
        for part in ("translation", "rotation", "scale"):
            inner = f"{path}.{part}"
            filters.setdefault(inner, {"filter": inner, "name": part, "type": "text"})
    return None


def _shown(kind: Table) -> str:
    match kind["kind"]:
        case "bool":
            return "bool"
        case "number":
            lo, span = kind["lo"], kind["span"]
            assert isinstance(lo, int)
            assert isinstance(span, int)
            if lo >= 0 and lo + span < 1 << 32:
                return "uint"
            return "int" if lo >= -(1 << 31) and lo + span < 1 << 31 else "text"
        case "float" | "double" | "quantized" | "fixed" | "angle":
            return "float"
        case _:
            return "text"


def _kind(text: _Text) -> Table:
    name = text.take(r"[a-z0-9]+")
    if text.peek() != "(":
        return _plain(name)
    text.expect("(")
    kind = _with_arguments(name, text)
    text.expect(")")
    return kind


def _plain(name: str) -> Table:
    match name:
        case "bool" | "float" | "double":
            return {"kind": name}
        case "uint128":
            return _number(0, (1 << 128) - 1)
        case "rotation":
            return {"kind": "signed_rotation"}
    raise ValueError(f"the protocol's description has an unknown kind of field: {name!r}")


def _with_arguments(name: str, text: _Text) -> Table:
    match name:
        case "bits":
            return _number(0, (1 << text.integer()) - 1)
        case "ranged":
            return _number(text.integer(), text.next_integer())
        case "quantized":
            return _quantized(*(text.single() for _ in range(3)))
        case "fixed":
            fraction, lo, hi = text.integer(), text.next_integer(), text.next_integer()
            bits = ((hi - lo) << fraction).bit_length()
            last = (hi - lo) << fraction
            return {"kind": "fixed", "bits": bits, "last": last, "lo": lo << fraction, "scale": 1 << fraction}
        case "text" | "data" | "wide":
            return {"kind": name, "max": text.integer()}
        case "enum":
            names = text.list(text.member)
            return {"kind": "enum", "names": names, "bits": (len(names) - 1).bit_length()}
        case "flags":
            return {"kind": "flags", "names": text.list(text.name)}
        case "angle":
            return {"kind": "angle", **_steps(text, circle=True)}
        case "vector":
            axes = text.integer()
            text.expect(",")
            return {"kind": "vector", "axes": axes, **_steps(text, circle=False)}
        case "direction" | "rotation":
            return {"kind": name, "bits": text.integer()}
        case "transform":
            return {"kind": "transform", **_steps(text, circle=False), "rotation": text.next_integer()}
        case "common":
            item = _kind(text)
            words = []
            while text.peek() == ",":
                text.expect(",")
                words.append(int(text.take(r"[0-9a-f]+"), 16).to_bytes(16, "little"))
            return {"kind": "common", "item": item, "words": words}
        case "optional":
            return {"kind": "optional", "item": _kind(text)}
        case "list" | "sparse":
            most = text.integer()
            text.expect(",")
            bound = "max" if name == "list" else "slots"
            return {"kind": name, bound: most, "item": _kind(text)}
        case "set":
            most = text.integer()
            text.expect(",")
            return {"kind": "list", "max": most, "item": _kind(text)}
        case "map":
            most = text.integer()
            text.expect(",")
            key = _kind(text)
            text.expect(",")
            entry = [{"name": "key", "filter": "key", "type": key}]
            entry.append({"name": "value", "filter": "value", "type": _kind(text)})
            return {"kind": "list", "max": most, "item": {"kind": "message", "fields": entry}}
        case "union":
            variants = text.list(lambda: _field(text))
            bits = (len(variants) - 1).bit_length()
            return {"kind": "union", "variants": variants, "bits": bits}
        case "message":
            return {
                "kind": "message",
                "fields": [] if text.peek() == ")" else text.list(lambda: _field(text)),
            }
    raise ValueError(f"the protocol's description has an unknown kind of field: {name!r}")


def _number(lo: int, hi: int) -> Table:
    bits = (hi - lo).bit_length()
    if bits <= 53 and abs(lo) < 1 << 53 and abs(hi) < 1 << 53:
        return {"kind": "number", "lo": lo, "span": hi - lo, "bits": bits}
    limbs = [(lo % (1 << 128)) >> shift & 0xFFFF for shift in range(0, 128, 16)]
    return {"kind": "large", "lo": limbs, "bits": bits, "signed": lo < 0, "last": hi - lo}


def _single(value: float) -> float:
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


def _quantized(lo: float, hi: float, resolution: float) -> Table:
    """The compressed float of the C++ library serialize. Each operation is rounded to single precision."""
    delta = _single(hi - lo)
    last = math.ceil(min(max(_single(delta / resolution), 1.0), 4_294_967_040.0))
    return {"kind": "quantized", "lo": lo, "delta": delta, "last": last, "bits": last.bit_length()}


def _steps(text: _Text, *, circle: bool) -> Table:
    lo, hi = text.double(), text.double()
    last = text.integer()
    return {"bits": last.bit_length(), "last": last, "lo": lo, "step": (hi - lo) / (last + circle)}


class _Text:
    """A cursor in a description."""

    def __init__(self, text: str) -> None:
        self._bytes = text.encode()
        self._at = 0

    def at_end(self) -> bool:
        return self._at == len(self._bytes)

    def peek(self) -> str:
        return self._bytes[self._at : self._at + 1].decode("latin-1")

    def expect(self, text: str) -> None:
        if not self._bytes.startswith(text.encode(), self._at):
            raise ValueError(f"the protocol's description has no {text!r} at byte {self._at}")
        self._at += len(text)

    def take(self, pattern: str) -> str:
        found = re.compile(pattern.encode()).match(self._bytes, self._at)
        if found is None:
            raise ValueError(f"the protocol's description has something unknown at byte {self._at}")
        self._at = found.end()
        return found[0].decode()

    def word(self) -> str:
        word = self.take(r"[a-z]+")
        self.expect(" ")
        return word

    def line(self) -> str:
        line = self.take(r" ?[^\n]*")
        self.expect("\n")
        return line.strip()

    def integer(self) -> int:
        return int(self.take(r"-?[0-9]+"))

    def next_integer(self) -> int:
        self.expect(",")
        return self.integer()

    def name(self) -> str:
        """Reads a name that follows its length in bytes, and an optional space."""
        length = self.integer()
        self.expect(":")
        name = self._bytes[self._at : self._at + length].decode()
        self._at += length
        if self.peek() == " ":
            self.expect(" ")
        return name

    def member(self) -> str:
        """Reads the name of a member, and skips the value that follows."""
        name = self.name()
        self.expect("=")
        self.integer()
        return name

    def list(self, item: Callable[[], object]) -> list[object]:
        items = [item()]
        while self.peek() == ",":
            self.expect(",")
            items.append(item())
        return items

    def single(self) -> float:
        return self._pattern("<f", 8)

    def double(self) -> float:
        return self._pattern("<d", 16)

    def _pattern(self, form: str, digits: int) -> float:
        pattern = self.take(f"[0-9a-f]{{{digits}}}")
        if self.peek() == ",":
            self.expect(",")
        value: float = struct.unpack(form, int(pattern, 16).to_bytes(digits // 2, "little"))[0]
        return value
