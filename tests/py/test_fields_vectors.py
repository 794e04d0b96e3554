"""The pinned fields of tests/vectors/fields.json, both directions, and their kinds in the protocol's hash."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import tickwire as tw

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "fields.json").read_text("utf-8"))


class State(enum.IntEnum):
    DOWN = -1
    IDLE = 0
    UP = 7


@tw.message
class Weapon:
    kind: Annotated[int, tw.ranged(0, 20)]
    ammo: tw.u8


@tw.message
class Shout:
    text: Annotated[str, tw.text(10)]


@tw.message
class Leave:
    pass


Name = Annotated[str, tw.text(10)]
HINTS: dict[str, Any] = {
    "enum": State,
    "flags": Annotated[int, tw.flags("fire", "jump", "use")],
    "angle": Annotated[float, tw.angle(-180, 180, 0.25)],
    "vec2": Annotated[tw.Vec2, tw.vec2(-10, 10, 0.1)],
    "vec3": Annotated[tw.Vec3, tw.vec3(-2048, 2047, 1 / 512)],
    "unit_vector": Annotated[tw.Vec3, tw.fields.unit_vector()],
    "unit_vector_8": Annotated[tw.Vec3, tw.fields.unit_vector(8)],
    "quaternion": Annotated[tw.fields.Quaternion, tw.fields.quaternion()],
    "quaternion_16": Annotated[tw.fields.Quaternion, tw.fields.quaternion(16)],
    "signed_quaternion": Annotated[tw.fields.Quaternion, tw.fields.signed_quaternion()],
    "transform": Annotated[tw.fields.Transform, tw.fields.transform(-100, 100, 0.5)],
    "common": Annotated[int, tw.ranged(0, 100), tw.fields.common(100)],
    "common_two": Annotated[int, tw.bits(8), tw.fields.common(0, 255)],
    "optional": tw.u16 | None,
    "list": Annotated[list[Annotated[int, tw.bits(4)]], tw.up_to(5)],
    "texts": Annotated[list[Annotated[str, tw.text(10)]], tw.up_to(3)],
    "sparse": Annotated[dict[int, tw.u8], tw.fields.sparse(16)],
    "nested": Weapon,
    "list_of_optional": Annotated[list[Weapon | None], tw.up_to(3)],
    "set": Annotated[set[Annotated[int, tw.bits(4)]], tw.up_to(5)],
    "set_of_texts": Annotated[frozenset[Name], tw.up_to(3)],
    "map": Annotated[dict[Name, tw.u8], tw.up_to(4)],
    "tuple": tuple[tw.u8, Annotated[int, tw.ranged(-300, 300)]],
    "literal": Literal["easy", "hard", "normal"],
    "union": Weapon | Shout | Leave,
}


def from_json(value: Any) -> Any:
    """What Python has for a value of the vectors, beside numbers and lists."""
    if isinstance(value, list):
        return [from_json(part) for part in value]
    if isinstance(value, dict) and value.keys() & {"text", "leave"}:
        return Shout(value["text"]) if "text" in value else Leave()
    if isinstance(value, dict) and not any(key.isdigit() or key == "ammo" for key in value):
        return value
    if isinstance(value, dict):
        return Weapon(**value) if "ammo" in value else {int(slot): item for slot, item in value.items()}
    return value


def to_field(name: str) -> Callable[[Any], Any]:
    if name.startswith("set"):
        return frozenset if name == "set_of_texts" else set
    vectors = ("tuple", "vec", "unit_vector", "quaternion", "signed_quaternion")
    if name == "transform":
        return lambda value: tw.fields.Transform(*(tuple(part) for part in value))
    return tuple if name.startswith(vectors) else State if name == "enum" else lambda value: value


def numbers(value: Any) -> list[float]:
    if isinstance(value, (tuple, tw.fields.Transform)):
        parts = value if isinstance(value, tuple) else (value.translation, value.rotation, value.scale)
        return [number for part in parts for number in numbers(part)]
    return [value]


def probe(field: dict[str, Any]) -> tuple[tw.Protocol, Any]:
    made = tw.message(type("Probe", (), {"__annotations__": {"value": HINTS[field["name"]]}}))
    return tw.Protocol(1, [made], [tw.unreliable()]), made


def test_there_is_a_hint_for_each_field() -> None:
    assert [field["name"] for field in VECTORS["fields"]] == list(HINTS)


@pytest.mark.parametrize("field", VECTORS["fields"], ids=lambda field: field["name"])
def test_a_field_is_written_and_read_as_pinned(field: dict[str, Any]) -> None:
    protocol, made = probe(field)
    make = to_field(field["name"])
    for case in field["cases"]:
        body = bytes.fromhex(case["body"])
        message = made(make(from_json(case["value"])))
        assert protocol.encode(message) == body, case
        assert 8 * (len(body) - 1) < max(case["bits"], 1) <= protocol.measure(message), case
        read = protocol.decode(body).value
        expected = make(from_json(case.get("read", case["value"])))
        if "within" in field:
            assert numbers(read) == pytest.approx(numbers(expected), abs=field["within"]), case
            assert protocol.encode(made(read)) == body, case
        else:
            assert read == expected, case


@pytest.mark.parametrize("field", VECTORS["fields"], ids=lambda field: field["name"])
def test_what_the_standard_refuses_of_a_field_is_refused(field: dict[str, Any]) -> None:
    protocol, _ = probe(field)
    for case in field["refused"]:
        with pytest.raises(tw.errors.StreamError):
            print(case["why"], protocol.decode(bytes.fromhex(case["body"])))


@pytest.mark.parametrize("field", VECTORS["fields"], ids=lambda field: field["name"])
def test_the_hash_says_the_field_as_pinned(field: dict[str, Any]) -> None:
    protocol, _ = probe(field)
    assert f"{protocol.hash:016x}" == field["protocol_hash"], field["protocol_text"]
