"""Ghost classes: objects of the server's world that appear in every client.

A class declared with :func:`ghost` has properties, declared like the fields of messages. Its objects are
plain until :meth:`World.spawn` adds them to a world. From then on, their properties are stored in the world's
columns, and each flush sends the values that you have assigned since the last flush.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar, dataclass_transform, overload

from tickwire._checks import check_callable, check_number, check_truth, check_within
from tickwire._core import ClientHandle, FieldType, Ghost, GhostArrays, Properties, Property, Schema
from tickwire._fields import NATURAL, Condition, ShownAs, When, initial
from tickwire._message import (
    check_bases,
    check_called,
    default_of,
    own_fields,
    rebind_class_cell,
    resolve_hints,
    unwrapped,
)
from tickwire._references import Reference, checked, number_type, quote_later, shown

__all__ = ["DEFAULT_CAPACITY", "Always", "Chosen", "Grid", "Hook", "Owner", "ghost"]

_T = TypeVar("_T")

DEFAULT_CAPACITY = 65_536
"""The default, and largest, capacity of a ghost class."""

# The attribute in which a class has its program. Read by the native core.
PROPERTIES = "__tickwire_properties__"


@overload
@dataclass_transform(field_specifiers=(dataclasses.field,), eq_default=False)
def ghost(cls: type[_T], /) -> type[_T]: ...


@overload
@dataclass_transform(field_specifiers=(dataclasses.field,), eq_default=False)
def ghost(
    *, capacity: int = DEFAULT_CAPACITY, coded: bool = False, kw_only: bool = False
) -> Callable[[type[_T]], type[_T]]: ...


def ghost(
    cls: type[_T] | None = None,
    /,
    *,
    capacity: int = DEFAULT_CAPACITY,
    coded: bool = False,
    kw_only: bool = False,
) -> Any:
    """Makes a class a ghost class: its annotated properties are copied to clients.

    Declare properties like the fields of messages. An annotation can choose the clients that get a
    property: ``Annotated[int, tw.ranged(0, 999), tw.world.owner_only]``. The class gets a constructor and a
    repr, like a dataclass. Two ghosts are equal only if they are the same object. List other attributes in
    ``__slots__``; they aren't sent.

    ``capacity`` is the maximum number of living ghosts, 1 to 65,536; memory grows with their number.
    ``coded=True`` entropy-codes updates with the range coder of LZMA (Pavlov 1999). This saves about a
    third of the bytes and takes several times as much CPU time on the server. Derived classes don't inherit
    these settings.

    Raises:
        TypeError, ValueError: a property is declared wrongly; the error names it.
    """
    names = sys._getframe(1).f_locals
    if cls is None:
        return lambda cls: _declared(cls, names, capacity, coded, kw_only)
    return _declared(cls, names, capacity, coded, kw_only)


def _declared(cls: type[_T], names: dict[str, Any], capacity: int, coded: bool, kw_only: bool) -> type[_T]:
    if not isinstance(cls, type):
        raise TypeError(f"@tickwire.ghost must decorate a class, not {cls!r}")
    if any("__tickwire_schema__" in base.__dict__ for base in cls.__mro__):
        raise TypeError(f"{cls.__name__} is a message: a class is either a message or a ghost")
    check_truth(f"{cls.__name__}: coded", coded)
    check_truth(f"{cls.__name__}: kw_only", kw_only)
    quote_later(cls, names)
    hints = resolve_hints(cls, names)
    declared = inspect.get_annotations(cls)
    rules = {name: _rule(f"{cls.__name__}.{name}", hints[name]) for name in declared}
    conditions = {name: _condition(f"{cls.__name__}.{name}", hints[name]) for name in declared}
    own_references = _references(cls, hints, declared)
    plain = {name: _without_conditions(hint) for name, hint in hints.items()}
    plain.update((name, Annotated[int, number_type()]) for name in own_references)
    own = own_fields(cls, plain)
    original = cls
    cls = dataclasses.dataclass(eq=False, kw_only=kw_only)(cls)
    made = _with_base(cls)

    inherited: dict[str, tuple[FieldType, str]] = {}
    said: dict[str, Rule] = {}
    references: dict[str, type | str] = {}
    for base in reversed(made.__mro__[1:]):
        properties = base.__dict__.get(PROPERTIES)
        if properties is not None:
            inherited.update({name: each for name, *each in properties.declared.fields})
            said.update(properties.declared.rules)
            references.update(properties.declared.references)
    fields = list(dataclasses.fields(made))  # type: ignore[arg-type]
    by_name = {**inherited, **{name: (field_type, conditions[name]) for name, field_type in own.items()}}
    check_bases(cls, fields, by_name, "ghost")
    said = {name: rule for name, rule in said.items() if name not in own}
    said.update((name, rule) for name, rule in rules.items() if rule is not None)
    references = {name: target for name, target in references.items() if name not in own}
    for name, target in own_references.items():
        references[name] = checked(f"{cls.__name__}.{name}", target, original, made)
    declared_now = Declared([(field.name, *by_name[field.name]) for field in fields], said, references, coded)
    properties = declared_now.compiled(cls.__name__, capacity)
    setattr(made, PROPERTIES, properties)
    for place, field in enumerate(fields):
        setattr(made, field.name, Property(properties, place))
    defaults = {field.name: default_of(field, by_name[field.name][0]) for field in fields}
    properties.set_defaults(types.SimpleNamespace(**defaults))
    return made


Rule: TypeAlias = tuple[str, str | None, float, float]
"""A display rule: the name of the rule, the name of the property with the velocity, and two numbers."""


class Declared(NamedTuple):
    """The declarations of a ghost class, including the inherited declarations."""

    fields: list[tuple[str, FieldType, str]]
    """Names, types and conditions of the properties, in order."""
    rules: dict[str, Rule]
    """The display rules of properties, by name."""
    references: dict[str, type | str]
    """For each property that refers to a ghost: this ghost's class, or the name of the class."""
    coded: bool

    def compiled(self, class_: str, capacity: int) -> Properties:
        """Compiles the declaration to the form that the native core uses."""
        places = {name: place for place, (name, *_) in enumerate(self.fields)}
        rules: list[tuple[int, str, int, float, float]] = []
        for name, (rule, velocity, first, second) in self.rules.items():
            if velocity is not None and velocity not in places:
                raise ValueError(f"{class_}.{name}: there is no property {velocity!r}")
            if name in places:
                rules.append((places[name], rule, places.get(velocity or "", 0), first, second))
        conditions = [condition for *_, condition in self.fields]
        chosen = [each for each in conditions if each.startswith("when:")]
        for name, _, condition in self.fields:
            if condition in chosen and condition != chosen[0]:
                known, other = (each.removeprefix("when:") for each in (chosen[0], condition))
                raise ValueError(
                    f"{class_}.{name}: tw.world.when must have only one name in a class, '{known}', not also "
                    f"'{other}': declare a second class"
                )
        references = [shown(self.references[name]) if name in self.references else None for name in places]
        schema = Schema(class_, [(name, field_type) for name, field_type, _ in self.fields])
        return Properties(schema, conditions, capacity, rules, self.coded, references, self)


def _condition(where: str, hint: Any) -> str:
    """The name of the condition in an annotation; empty if it has none."""
    found = [extra for extra in unwrapped(hint)[1] if isinstance(extra, Condition)]
    if len(found) > 1:
        masks = [extra for extra in found if isinstance(extra, When)]
        hint = (
            f": the mask of {masks[0]} can select owners too"
            if len(masks) == 1 and initial not in found
            else ""
        )
        both = " and ".join(map(str, found))
        raise TypeError(f"{where}: {both} contradict each other; give only one{hint}")
    if not found:
        return ""
    return f"when:{found[0].condition}" if isinstance(found[0], When) else found[0].name


def _references(cls: type, hints: dict[str, Any], declared: dict[str, Any]) -> dict[str, type | str]:
    """The targets of the class's own references, by name. References without a default get None."""
    references: dict[str, type | str] = {}
    for name in declared:
        plain, metadata = unwrapped(hints[name])
        found = [extra for extra in metadata if isinstance(extra, Reference)]
        if not found:
            continue
        check_called(f"{cls.__name__}.{name}", metadata)
        others = [extra for extra in metadata if not isinstance(extra, (Reference, Condition, ShownAs))]
        if len(found) > 1 or others or plain is not object:
            marks = [mark for extra in found + others for mark in unwrapped(extra)[1] or (extra,)]
            shown = " and ".join(map(str, marks))
            raise TypeError(f"{cls.__name__}.{name}: {shown} contradict each other; give only one")
        references[name] = found[0].target
        given = cls.__dict__.get(name, NATURAL)
        if given is NATURAL:
            setattr(cls, name, None)
        elif isinstance(given, dataclasses.Field) and given.default is NATURAL:
            given.default = None
    return references


def _rule(where: str, hint: Any) -> Rule | None:
    """The display rule in an annotation: its name, its velocity's name, and two numbers."""
    found = [extra for extra in unwrapped(hint)[1] if isinstance(extra, ShownAs)]
    if len(found) > 1:
        raise TypeError(f"{where}: {' and '.join(map(repr, found))} contradict each other; give only one")
    return (found[0].name, found[0].velocity, *found[0].numbers) if found else None


def _without_conditions(hint: Any) -> Any:
    plain, metadata = unwrapped(hint)
    rest = tuple(extra for extra in metadata if not isinstance(extra, (Condition, ShownAs)))
    if len(rest) == len(metadata):
        return hint
    return Annotated[(plain, *rest)] if rest else plain


def _with_base(cls: type[_T]) -> type[_T]:
    """Makes the class again, derived from the native base class that stores the values."""
    left_out = {"__dict__", "__weakref__", *(field.name for field in dataclasses.fields(cls))}  # type: ignore[arg-type]
    members = {name: value for name, value in vars(cls).items() if name not in left_out}
    slots = members.setdefault("__slots__", ())
    for name in (slots,) if isinstance(slots, str) else slots:
        # Left by the slots of the first class; the second class gets its own.
        members.pop(name, None)
    bases = tuple(base for base in cls.__bases__ if base is not object)
    if not any(issubclass(base, Ghost) for base in bases):
        bases += (Ghost,)
    metaclass: Any = type(cls)
    members.setdefault("__reduce__", _reduce)
    made: type[_T] = metaclass(cls.__name__, bases, members)
    rebind_class_cell(cls, made)
    return made


def _reduce(ghost: Any) -> tuple[Any, ...]:
    """Makes copies and pickles of a ghost plain objects with its values."""
    values = {field.name: getattr(ghost, field.name) for field in dataclasses.fields(ghost)}
    return _plain, (type(ghost), values)


def _plain(cls: type[_T], values: dict[str, Any]) -> _T:
    ghost = cls.__new__(cls)
    for name, value in values.items():
        setattr(ghost, name, value)
    return ghost


class Always(NamedTuple):
    """All clients get all ghosts of the class. This is the default."""


class Owner(NamedTuple):
    """Only the owner of a ghost gets it."""


class Chosen(NamedTuple):
    """A client gets the ghosts that the game selects by :meth:`World.show`."""


class Hook(NamedTuple):
    """A client gets the ghosts that a function selects. Each flush calls the function once, for all
    clients.

    The function gets the clients, in slot order, and the class's :class:`GhostArrays`. It returns a mask: a
    buffer of bool with the shape (clients, rows), such as ``numpy.zeros((len(clients), len(tanks)), bool)``,
    or a list with a buffer for each client. If it returns None, the last mask applies again, and ghosts that
    spawned after this mask aren't sent. If it raises or returns anything else, the last mask also applies,
    and the flush raises an error after everything is sent.
    """

    function: Callable[[list[ClientHandle], GhostArrays], Any]
    """The function that selects the ghosts."""


class Grid(NamedTuple):
    """A client gets its own ghosts and the ghosts nearby.

    A ghost is nearby if it is within ``radius`` of the client's own ghosts of the class, or of the places
    set by :meth:`World.look_from`.
    """

    property: str
    """The name of the property that holds a ghost's place. The property must be a vector."""
    radius: float
    """The radius in which a client sees ghosts."""
    cell: float | None = None
    """The width of the grid's cells. It affects only CPU time. None: a quarter of the radius."""
    leave_radius: float | None = None
    """The distance up to which a client keeps a ghost. It should exceed the radius, so that ghosts at the
    edge don't appear and disappear repeatedly. None: an eighth more than the radius.
    """
    linger: int = 2
    """The number of flushes for which a ghost beyond ``leave_radius`` stays."""
    far_weight: float = 0.25
    """The factor, above 0 and at most 1, by which the priority of a ghost at the distance ``radius`` is
    multiplied. It matters only if the packets have no room for all due updates. At a quarter of this
    distance, the factor is twice as large, at a sixteenth four times as large, and so on, up to 1. With 1,
    the distance doesn't matter.
    """


CELLS, LEAVES = 1 / 4, 1.125
"""The defaults of :attr:`Grid.cell` and :attr:`Grid.leave_radius`, as multiples of the radius."""


def relevancy_of(rule: object) -> tuple[str, object]:
    """Converts a rule for the native core: to its name, and a hook's function or a grid's numbers."""
    match rule:
        case Always() | Owner() | Chosen():
            return type(rule).__name__, None
        case Hook(function):
            check_callable("Hook's function", function, 2)
            return "Hook", function
        case Grid(name, radius, cell, leave_radius, linger, far_weight):
            if not isinstance(name, str):
                raise TypeError(f"grid's property must be the name of a property, not {type(name).__name__}")
            check_number("grid's radius", radius)
            numbers = {
                "cell": (radius * CELLS if radius > 0 else 1.0) if cell is None else cell,
                "leave_radius": radius * LEAVES if leave_radius is None else leave_radius,
                "far_weight": far_weight,
            }
            for key, number in numbers.items():
                check_number(f"grid's {key}", number)
            check_within("grid's linger", linger, 0, 65536, int)
            cell, leave_radius, far_weight = numbers.values()
            return "Grid", (name, cell, radius, leave_radius, far_weight, linger)
        case _:
            hint = ": make an object of it" if isinstance(rule, type) else ""
            raise TypeError(
                "rule must be tw.world.Always(), tw.world.Owner(), tw.world.Grid(...), tw.world.Chosen() or "
                f"tw.world.Hook(...), not {rule!r}{hint}"
            )
