"""The layout of packets: tables for the dissector.

The layout is defined by netcode 1.02, reliable 1.0, and ``src/transport/framing/STANDARD.md`` for the
contents. Tests compare these tables with fixed and fresh packets of the native code.
"""

from __future__ import annotations

from typing import Final

Part = dict[str, object]
"""A value in a packet: its name, its type, and the type's parameters."""


def _bits(name: str, bits: int, **more: object) -> Part:
    return {"name": name, "type": "bits", "bits": bits, **more}


def _hex(name: str) -> Part:
    return {"name": name, "type": "hex", "bits": 64}


def _u64(name: str) -> Part:
    return {"name": name, "type": "u64", "bits": 64}


def _octets(name: str, count: int) -> Part:
    return {"name": name, "type": "octets", "count": count}


VERSION: Final = "NETCODE 1.02"
TAG_BYTES: Final = 16
REQUEST_BYTES: Final = 1 + 13 + 8 + 8 + 24 + 1024
MAX_PAYLOAD: Final = 1200

_CHALLENGE = [_u64("challenge_sequence"), _octets("challenge_token", 300)]

KINDS: Final[dict[int, dict[str, object]]] = {
    0: {
        "name": "request",
        "parts": [
            _octets("version", 13),
            _hex("protocol_id"),
            _u64("expires"),
            _octets("nonce", 24),
            _octets("private_token", 1024),
        ],
    },
    1: {"name": "denied", "parts": [], "least": 0, "most": 0},
    2: {"name": "challenge", "parts": _CHALLENGE, "least": 308, "most": 308},
    3: {"name": "response", "parts": _CHALLENGE, "least": 308, "most": 308},
    4: {
        "name": "keep_alive",
        "parts": [_bits("client_index", 32), _bits("max_clients", 32)],
        "least": 8,
        "most": 8,
    },
    5: {"name": "payload", "parts": [], "least": 1, "most": MAX_PAYLOAD},
    6: {"name": "disconnect", "parts": [], "least": 0, "most": 0},
}
"""Netcode's packets, by the low half of their first byte, with their smallest and largest body."""

RELIABLE: Final[dict[str, object]] = {
    "fragment": 1 << 0,
    "ack_bytes": [1 << 1, 1 << 2, 1 << 3, 1 << 4],
    "short_ack": 1 << 5,
}
"""Bits of the first byte of a packet's header, as in the C library ``reliable``."""

PACKET: Final[dict[str, object]] = {"ack_length": 1 << 5, "skipped": 1 << 7}
"""Bits of the first byte of Tickwire's header, in addition to the bits in reliable's header."""

CLOSE_REASONS: Final = {
    1: "closed",
    2: "kicked",
    3: "protocol mismatch",
    4: "protocol violation",
    5: "replaced",
    6: "timed out",
    7: "stalled",
}
MAX_DETAIL: Final = 128
VERDICTS: Final = {
    0: "accepted",
    1: "too large",
    2: "cancelled",
    3: "damaged",
    4: "not stored",
    5: "no room now",
    6: "paused",
    7: "complete",
}

LADDER: Final = [(1, 0), (2, 3), (7, 5), (24, 9), (281, 13), (4378, 17)]
"""Tiers of a relative integer: each tier's first number and bits. The next tier starts after the tier's
last number.
"""
LADDER_END: Final = 69_915

_CHANNEL: Part = {"name": "channel", "type": "channel"}

SECTIONS: Final[list[dict[str, object]]] = [
    {"name": "hello", "parts": [_bits("version", 8), _hex("hash")]},
    {
        "name": "close",
        "parts": [
            _bits("reason", 8, names=CLOSE_REASONS),
            {"name": "detail", "type": "string", "most": MAX_DETAIL, "optional": True},
        ],
        "last": True,
    },
    {
        "name": "ack_delay",
        "parts": [
            _bits("microseconds", 14, unit=64),
            _bits("received_at", 18, unit=64, optional=True),
        ],
    },
    {
        "name": "ack_ranges",
        "parts": [{"name": "missing", "type": "relative"}, {"name": "received", "type": "relative"}],
        "repeated": True,
    },
    {
        "name": "credit",
        "parts": [_CHANNEL, _bits("unread", 16)],
        "repeated": True,
        "needs_protocol": True,
    },
    {"name": "entries", "parts": [], "needs_protocol": True},
    {"name": "fragments", "parts": [], "needs_protocol": True},
]
"""Sections of a connection packet, each after a flag. ``missing`` is the number of packets plus 1."""

MAX_WALK: Final = 32_768
"""The most packets by which ack ranges may go back."""

FRAGMENT_BYTES: Final = 1024
"""Bytes of each fragment of a reliable message, except the last."""

WITH_CREDIT: Final = {"reliable_ordered": True, "reliable_unordered": True}
WITH_IDS: Final = {"reliable_ordered": True, "reliable_unordered": True, "redundant": True}

MAX_SLICE: Final = 1200
MIN_SLICE: Final = 512
MAX_RUNS: Final = 128

CHUNK_ITEM: Final = [_bits("kind", 2), _bits("number", 16)]
CHUNK_ITEMS: Final[dict[int, dict[str, object]]] = {
    0: {
        "name": "slice",
        "parts": [
            _bits("index", 32),
            _bits("length", 11, most=MAX_SLICE),
            {"name": "data", "type": "octets", "length": "length"},
        ],
    },
    1: {
        "name": "offer",
        "parts": [
            _bits("size", 40),
            _bits("slice_bytes", 11, least=MIN_SLICE, most=MAX_SLICE),
            _octets("sha256", 32),
            {"name": "label", "type": "string", "bits": 7, "most": 64},
        ],
    },
    2: {"name": "answer", "parts": [_bits("verdict", 3, names=VERDICTS)]},
    3: {"name": "withdraw", "parts": []},
}
CHUNK_RUN: Final = [_bits("first", 32), _bits("count", 32)]


def filters() -> list[dict[str, str]]:
    """Wireshark's filters that exist for every protocol, with the type of their values."""

    def type_of(part: Part) -> str:
        if part.get("names") or part["type"] in ("u64", "hex", "octets", "string"):
            return "text"
        bits = part.get("bits", 0)
        return "text" if isinstance(bits, int) and bits > 32 else "uint"

    found = {
        "tickwire.netcode.kind": "text",
        "tickwire.netcode.sequence": "text",
        "tickwire.netcode.sealed": "octets",
        "tickwire.netcode.tag": "octets",
        "tickwire.packet.ack_bits": "text",
        "tickwire.reliable.ack_bits": "text",
        "tickwire.ack_ranges.acked": "text",
        "tickwire.entry": "text",
        "tickwire.channel": "uint",
        "tickwire.message": "text",
        "tickwire.message_id": "uint",
        "tickwire.fragment": "text",
        "tickwire.fragment.type": "text",
        "tickwire.fragment.bits": "uint",
        "tickwire.fragment.index": "uint",
        "tickwire.fragment.data": "text",
        "tickwire.key": "uint",
        "tickwire.payload": "text",
        "tickwire.payload.bits": "uint",
        "tickwire.opaque_bits": "uint",
        "tickwire.chunk": "text",
        "tickwire.ghost": "text",
        "tickwire.ghost.tick": "uint",
        "tickwire.ghost.visit": "text",
        "tickwire.ghost.base": "text",
        "tickwire.ghost.mask": "text",
        "tickwire.ghost.goes_on": "text",
        "tickwire.ghost.owner": "text",
        "tickwire.ghost.chosen": "text",
        "tickwire.ghost.coded": "text",
        "tickwire.malformed": "text",
        "tickwire.rest": "text",
        "tickwire.messages": "uint",
        "tickwire.block.fragments": "uint",
        "tickwire.block.fragment": "uint",
        "tickwire.block.bytes": "uint",
        "tickwire.block.data": "text",
    }
    for name in ("prefix", "ack", "skipped", "fragment.id", "fragment.last"):
        found[f"tickwire.packet.{name}"] = "uint"
    for name in ("prefix", "sequence", "ack"):
        found[f"tickwire.reliable.{name}"] = "uint"
    for name in ("prefix", "sequence", "id", "last"):
        found[f"tickwire.reliable.fragment.{name}"] = "uint"
    described: list[tuple[str, object]] = [("netcode", kind["parts"]) for kind in KINDS.values()]
    described += [(str(section["name"]), section["parts"]) for section in SECTIONS]
    described += [("chunk", item["parts"]) for item in CHUNK_ITEMS.values()]
    described += [("chunk", CHUNK_ITEM), ("chunk", CHUNK_RUN)]
    for section in SECTIONS:
        if section["parts"]:
            found[f"tickwire.{section['name']}"] = "text"
    for group, parts in described:
        assert isinstance(parts, list)
        for part in parts:
            found.setdefault(f"tickwire.{group}.{part['name']}", type_of(part))
    return [{"filter": name, "name": name.rpartition(".")[2], "type": type_} for name, type_ in found.items()]


def table() -> dict[str, object]:
    """The whole layout, for the dissector."""
    return {
        "version": VERSION,
        "tag_bytes": TAG_BYTES,
        "request_bytes": REQUEST_BYTES,
        "kinds": KINDS,
        "packet": PACKET,
        "reliable": RELIABLE,
        "relative": [
            {"first": first, "bits": bits, "last": end - 1}
            for (first, bits), end in zip(
                LADDER, [*(first for first, _ in LADDER[1:]), LADDER_END], strict=True
            )
        ],
        "sections": SECTIONS,
        "with_ids": WITH_IDS,
        "fragment_bytes": FRAGMENT_BYTES,
        "chunk_item": CHUNK_ITEM,
        "chunk_items": CHUNK_ITEMS,
        "chunk_run": CHUNK_RUN,
        "most_runs": MAX_RUNS,
        "most_walk": MAX_WALK,
        "with_credit": WITH_CREDIT,
        "filters": filters(),
    }
