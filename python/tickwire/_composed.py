"""Makes field types from other field types or from a class's members. Each has a name, a Python type and a
default.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from enum import Enum, Flag
from typing import Any

from tickwire import _core
from tickwire._core import FieldType, Schema, composed, member_of, nested_of

_MAX_FLAGS = 16


def optional_of(item: FieldType) -> FieldType:
    return composed("optional", (item,), 0, (f"{item} | None", item.python_type, None, False))


def list_of(item: FieldType, most: int) -> FieldType:
    return composed("list", (item,), most, (f"list[{item}], up_to({most})", list, list, True))


def sparse_of(item: FieldType, slots: int) -> FieldType:
    return composed("sparse", (item,), slots, (f"dict[int, {item}], sparse({slots})", dict, dict, True))


def items_of(item: FieldType, most: int) -> FieldType:
    return composed("items", (item,), most, (f"tuple[{item}, ...], up_to({most})", tuple, (), False))


def tuple_of(items: Sequence[FieldType]) -> FieldType:
    def make() -> tuple[Any, ...]:
        return tuple(item.default for item in items)

    label = f"tuple[{', '.join(map(str, items))}]"
    made = any(item.is_mutable for item in items)
    return composed("tuple", items, 0, (label, tuple, make if made else make(), made))


def set_of(item: FieldType, most: int, kind: type) -> FieldType:
    _check_hashable(item, "items of a set")
    default: Any = kind() if kind is frozenset else kind
    label = f"{kind.__name__}[{item}], up_to({most})"
    return composed(kind.__name__, (item,), most, (label, kind, default, default is kind))


def map_of(key: FieldType, item: FieldType, most: int) -> FieldType:
    _check_hashable(key, "keys of a dict")
    return composed("map", (key, item), most, (f"dict[{key}, {item}], up_to({most})", dict, dict, True))


def _check_hashable(item: FieldType, what: str) -> None:
    if item.python_type.__hash__ is None:
        raise TypeError(f"{what} must be hashable, and a {item.python_type.__name__} is not")


def common_of(item: FieldType, values: Sequence[Any]) -> FieldType:
    label = f"{item}, common({', '.join(map(repr, values))})"
    return _core.common_of(item, values, (label, item.python_type, values[0], False))


def enum_of(class_: type[Enum]) -> FieldType:
    """Sends the members' values if all are integers, otherwise their positions."""
    members = list(class_)
    if not members:
        raise TypeError(f"{class_.__name__} must have at least one member")
    values = [member.value for member in members]
    numbers = values if all(map(_fits, values)) else range(len(values))
    named = [(member.name, number, member) for number, member in zip(numbers, members, strict=True)]
    return member_of("enum", class_, named, (class_.__name__, class_, members[0], False))


def flags_of(class_: type[Flag]) -> FieldType:
    members = sorted(((flag.name or "", flag.value, flag) for flag in class_), key=lambda member: member[1])
    rising = [1 << place for place in range(min(len(members), _MAX_FLAGS))]
    if not members or [value for _, value, _ in members] != rising:
        raise TypeError(
            f"{class_.__name__} must have the flags 1, 2, 4 and so on without gaps, at most {_MAX_FLAGS}: "
            "tw.flags(...) takes more, as an int"
        )
    return member_of("flags", class_, members, (class_.__name__, class_, class_(0), False))


def literal_of(values: Sequence[Any]) -> FieldType:
    if not values:
        raise TypeError("Literal must have values, and has none")
    shown = [repr(value) for value in values]
    kind = type(values[0]) if len({type(value) for value in values}) == 1 else object
    numbers = values if all(type(value) is int and _fits(value) for value in values) else range(len(values))
    members = list(zip(shown, numbers, values, strict=True))
    return member_of("literal", kind, members, (f"Literal[{', '.join(shown)}]", kind, values[0], False))


def _fits(value: Any) -> bool:
    try:
        return -(2**63) <= operator.index(value) < 2**63
    except TypeError:
        return False


def nested_type(class_: type, schema: Schema) -> FieldType:
    return nested_of([(class_, schema)], False, (class_.__name__, class_, class_, True))


def union_of(classes: Sequence[tuple[type, Schema]]) -> FieldType:
    label = " | ".join(class_.__name__ for class_, _ in classes)
    return nested_of(classes, True, (label, object, classes[0][0], True))


def converted_of(
    class_: type, item: FieldType, to_wire: Callable[[Any], Any], from_wire: Callable[[Any], Any]
) -> FieldType:
    about = (f"{class_.__name__} as {item}", class_, lambda: from_wire(item.default), True)
    return _core.converted_of(class_, item, to_wire, from_wire, about)
