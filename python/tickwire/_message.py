"""Message classes: declared by their fields, or with their own ``serialize``.

A class declared with :func:`message` is a plain dataclass with slots. Its fields are compiled once, when the
class is declared, to a program that Rust runs. So encoding and decoding call no Python. A mistake in the
declaration raises an error at once, which names the class and the field.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable
from typing import Annotated, Any, ClassVar, Literal, NewType, TypeVar, dataclass_transform, overload

from tickwire import _composed
from tickwire._checks import check_truth
from tickwire._core import FieldType, Schema, Stream
from tickwire._fields import (
    BARE,
    BOUNDED,
    MUST_DECLARE,
    NATURAL,
    NUMBERS,
    Bound,
    Condition,
    Converter,
    converter,
)

__all__ = ["BlockMessage", "Message", "MessageFactory", "message"]

_T = TypeVar("_T")

# The attribute that marks an object while its fields are being read. Set and removed by the native decoder.
READING = "_tickwire_reading"

# The attribute that marks a class whose objects have a block. Read by the native core.
BLOCK = "__tickwire_block__"


@overload
@dataclass_transform(field_specifiers=(dataclasses.field,))
def message(cls: type[_T], /) -> type[_T]: ...


@overload
@dataclass_transform(field_specifiers=(dataclasses.field,))
def message(
    *,
    block: bool = False,
    channel: int | str | None = None,
    frozen: bool = False,
    order: bool = False,
    kw_only: bool = False,
) -> Callable[[type[_T]], type[_T]]: ...


def message(
    cls: type[_T] | None = None,
    /,
    *,
    block: bool = False,
    channel: int | str | None = None,
    frozen: bool = False,
    order: bool = False,
    kw_only: bool = False,
) -> Any:
    """Makes a class a message. Its annotated attributes are the message's fields, in order.

    The class becomes a dataclass with slots: it gets a constructor, equality and a repr. A field without a
    default gets the natural default of its type: zero (or the range's value nearest to zero), False, the
    empty string. Type checkers don't know this and require such fields in the constructor, unless they have
    ``= tw.default()``. Methods, class variables and base classes work as in any class; fields of a base
    message come first. ``frozen``, ``order`` and ``kw_only`` work as in :func:`dataclasses.dataclass`.

    ``@message(channel="chat")`` sets the channel that ``send`` uses by default, by name or number.

    ``@message(block=True)`` adds an attribute ``block``: bytes that are sent after the fields. The class is
    then a block message of the C++ library yojimbo (see ``docs/yojimbo.md``).

    Raises:
        TypeError, ValueError: a field is declared wrongly; the error names it.
    """
    names = sys._getframe(1).f_locals
    if block and frozen:
        raise TypeError("block=True and frozen=True can't be combined: a block is set when it arrives")
    options = {"frozen": frozen, "order": order, "kw_only": kw_only}
    if cls is None:
        return lambda cls: _declared(cls, names, block, channel, options)
    return _declared(cls, names, block, channel, options)


def _check_channel(where: str, channel: object) -> None:
    if channel is not None and (isinstance(channel, bool) or not isinstance(channel, int | str)):
        raise TypeError(f"{where}: channel must be an int or a str, not {type(channel).__name__}")


def _declared(
    cls: type[_T],
    names: dict[str, Any],
    block: bool,
    channel: int | str | None,
    options: dict[str, bool],
) -> type[_T]:
    if not isinstance(cls, type):
        raise TypeError(f"@tickwire.message must decorate a class, not {cls!r}")
    if issubclass(cls, Message):
        raise TypeError(
            f"{cls.__name__}: derive from Message to write serialize() yourself, "
            "or use @message to declare fields, not both"
        )
    for name, value in {"block": block, **options}.items():
        check_truth(f"{cls.__name__}: {name}", value)
    _check_channel(cls.__name__, channel)
    hints = resolve_hints(cls, names)
    block_inherited = getattr(cls, BLOCK, False)
    own = own_fields(cls, hints)
    if block and not block_inherited:
        if "block" in hints:
            name = f"{cls.__name__}.block"
            raise TypeError(f"{name} is the name that block=True adds: give the field another name")
        cls.__annotations__["block"] = bytes
        cls.block = dataclasses.field(default=b"", kw_only=True, repr=False)  # type: ignore[attr-defined]
    made: type[_T] = dataclasses.dataclass(slots=True, **options)(cls)
    rebind_class_cell(cls, made)
    if block:
        made.__tickwire_block__ = True  # type: ignore[attr-defined]
    if channel is not None:
        made.__tickwire_channel__ = channel  # type: ignore[attr-defined]

    with_block = block or block_inherited
    fields = [field for field in dataclasses.fields(made) if not (with_block and field.name == "block")]  # type: ignore[arg-type]
    inherited: dict[str, FieldType] = {}
    for base in reversed(made.__mro__[1:]):
        schema = base.__dict__.get("__tickwire_schema__")
        if schema is not None:
            inherited.update(schema.fields)
    types_by_name = {**inherited, **own}
    check_bases(cls, fields, types_by_name, "message")
    schema = Schema(cls.__name__, [(field.name, types_by_name[field.name]) for field in fields])
    made.__tickwire_schema__ = schema  # type: ignore[attr-defined]
    defaults = {field.name: default_of(field, types_by_name[field.name]) for field in fields}
    schema.check(types.SimpleNamespace(**defaults))
    return made


def own_fields(cls: type, hints: dict[str, Any]) -> dict[str, FieldType]:
    """The types of the fields that the class itself declares. Fields without a default get their natural
    default.
    """
    own = {
        name: declared_type(cls, f"{cls.__name__}.{name}", hints[name])
        for name in inspect.get_annotations(cls)
        if not _is_class_variable(hints[name]) and hints[name] is not dataclasses.KW_ONLY
    }
    for name, field_type in own.items():
        given = cls.__dict__.get(name, NATURAL)
        if given is NATURAL:
            setattr(cls, name, _natural(f"{cls.__name__}.{name}", field_type))
        elif type(given).__hash__ is None:
            raise ValueError(
                f"{cls.__name__}.{name} must have a default of its own for each object, not {given!r}: "
                "write tw.default() for an empty one"
            )
        elif isinstance(given, dataclasses.Field) and given.default is NATURAL:
            natural = _natural(f"{cls.__name__}.{name}", field_type)
            mutable = isinstance(natural, dataclasses.Field)
            given.default = dataclasses.MISSING if mutable else natural
            given.default_factory = natural.default_factory if mutable else dataclasses.MISSING
    return own


def check_bases(
    cls: type, fields: list[dataclasses.Field[Any]], types_by_name: dict[str, Any], decorator: str
) -> None:
    """Refuses base classes that have fields but weren't decorated with the same decorator."""
    for field in fields:
        if field.name not in types_by_name:
            raise TypeError(
                f"{cls.__name__}.{field.name} comes from a base class that is not a {decorator}: "
                f"make it with @{decorator} too"
            )


def _natural(where: str, field_type: FieldType) -> Any:
    """The natural default, or a function that makes one for each object."""
    made_anew = functools.partial(getattr, field_type, "default")
    try:
        natural = made_anew()
    except Exception as error:  # Whatever the game's own from_wire raises.
        why = f"its from_wire raised {type(error).__name__}: {error}"
        raise TypeError(f"{where} has no natural default, because {why}: give it a default") from error
    return dataclasses.field(default_factory=made_anew) if field_type.is_mutable else natural


def default_of(field: dataclasses.Field[Any], field_type: FieldType) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field_type.default if field.default is dataclasses.MISSING else field.default


def resolve_hints(cls: type, names: dict[str, Any]) -> dict[str, Any]:
    """The class's annotations as objects, even if they are strings that name local variables."""
    own = {**names, cls.__name__: cls, **vars(cls)}
    try:
        return typing.get_type_hints(cls, localns=own, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{cls.__name__}: {error} in an annotation. Names in annotations must be defined in the module, "
            "or in the function that contains the class statement"
        ) from error
    except (TypeError, ValueError) as error:
        if str(error).startswith(f"{cls.__name__}."):
            raise
        name, why = _wrong_annotation(cls, own, error)
        raise (TypeError if isinstance(error, TypeError) else ValueError)(
            f"{cls.__name__}.{name}: {why}"
        ) from error


def _wrong_annotation(cls: type, own: dict[str, Any], error: Exception) -> tuple[str, str]:
    """The annotation that raises an error, as text, and the reason."""
    module = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    for name, text in inspect.get_annotations(cls).items():
        if isinstance(text, str):
            try:
                found = eval(text, module, own)
            except Exception as raised:
                return name, str(raised)
            if isinstance(found, FieldType | Bound | Converter):
                return name, _misplaced(found)
    return "?", str(error)


def _misplaced(found: FieldType | Bound | Converter) -> str:
    """A hint that says what to write instead of a misplaced annotation."""
    kind = found.python_type.__name__ if isinstance(found, FieldType) else "..."
    return f"write Annotated[{kind}, tw.{found}]: {found} alone is not a type"


def _is_class_variable(hint: Any) -> bool:
    return hint is ClassVar or typing.get_origin(hint) is ClassVar


def unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Returns the type that an annotation stands for, without ``NewType`` and ``type`` statements, and the
    metadata from ``Annotated``.
    """
    metadata: tuple[Any, ...] = ()
    while True:
        if typing.get_origin(hint) is Annotated:
            metadata = hint.__metadata__ + metadata
            hint = hint.__origin__
        elif isinstance(hint, NewType):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        else:
            return hint, metadata


def declared_type(cls: type, where: str, hint: Any) -> FieldType:
    """The field type of an annotation."""
    plain, metadata = unwrapped(hint)
    # Also Annotated[PlayerId, tw.u16], whose second part is an Annotated of its own.
    said = [extra for part in metadata for extra in (unwrapped(part)[1] or (part,))]
    check_called(where, said)
    extras = [extra for extra in said if isinstance(extra, FieldType | Bound | Converter)]
    common = next((extra for extra in extras if isinstance(extra, Bound) and extra.name == "common"), None)
    found = [extra for extra in extras if not isinstance(extra, Bound)]
    bounds = {extra.name: extra for extra in extras if isinstance(extra, Bound)}
    if len(found) > 1 or len(found) + len(bounds) < len(extras):
        raise TypeError(f"{where}: {' and '.join(map(str, extras))} contradict each other; give only one")
    bounds.pop("common", None)
    try:
        made = _bounded_type(cls, where, plain, found, bounds)
        if bounds:
            raise TypeError(_not_for(bounds, plain))
        return _composed.common_of(made, common.arguments) if common else made
    except (TypeError, ValueError) as error:
        if str(error).startswith(where):
            raise
        raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{where}: {error}") from error


def check_called(where: str, extras: Iterable[object]) -> None:
    """Refuses annotations with a Tickwire function that wasn't called, because Python would ignore the
    mistake.
    """
    for extra in extras:
        if inspect.isroutine(extra) and (getattr(extra, "__module__", None) or "").startswith("tickwire."):
            raise TypeError(f"{where}: {extra.__name__} must be called, as in {extra.__name__}(...)")


def _bounded_type(
    cls: type, where: str, plain: Any, found: list[FieldType | Converter], bounds: dict[str, Bound]
) -> FieldType:
    """The field type of a plain type with its bounds. Removes the bounds that it uses from ``bounds``."""
    said = found[0] if found else None
    if isinstance(said, Converter):
        return _converted_type(cls, where, plain, said, said.wire)
    registered = converter(plain) if isinstance(plain, type) else None
    if registered:
        extras = (*found, *bounds.values())
        bounds.clear()
        # The field's own bounds apply to the form on the wire.
        wire = Annotated[(unwrapped(registered.wire)[0], *extras)] if extras else registered.wire
        return _converted_type(cls, where, plain, registered, wire)
    if said is None:
        return _plain_type(cls, where, plain, bounds)
    if (typing.get_origin(plain) or plain) is not said.python_type:
        raise TypeError(f"{said} is for {said.python_type.__name__}, not for {_name(plain)}")
    parts, count = typing.get_args(plain), NUMBERS.get(str(said).partition("(")[0])
    if said.python_type is tuple and count and parts and Ellipsis not in parts and len(parts) != count:
        raise TypeError(f"{said} is for a tuple of {count} numbers, not for {_name(plain)}")
    return said


def _converted_type(cls: type, where: str, plain: Any, converter: Converter, wire: Any) -> FieldType:
    class_ = typing.get_origin(plain) or plain
    if not isinstance(class_, type):
        raise TypeError(f"{converter} is for a class, not for {_name(plain)}")
    item = declared_type(cls, where, wire)
    return _composed.converted_of(class_, item, converter.to_wire, converter.from_wire)


def _not_for(bounds: dict[str, Bound], plain: Any) -> str:
    """The error for bounds that don't fit a type. It names the bounds that fit."""
    condition = next(
        (name for name, bound in bounds.items() if isinstance(bound, Condition) or name == "Ref"), None
    )
    if condition:
        return f"{bounds[condition]} is for {BOUNDED[condition]}"
    if plain in (list, tuple, set, frozenset, dict):
        held = "tw.u8, tw.u8" if plain is dict else "tw.u8"
        return f"{plain.__name__} must declare its items, such as {plain.__name__}[{held}]"
    kind = typing.get_origin(plain) or plain
    hints = {str: "takes tw.text({0}) or tw.fields.wide_text({0})", bytes: "takes tw.data({0})"}
    meant = " and ".join(f"{bound} is for {BOUNDED[name]}" for name, bound in bounds.items())
    if kind in hints:
        said = hints[kind].format(*next(iter(bounds.values())).arguments)
        return f"{meant}; {_name(plain)} {said}"
    if kind is dict:
        return f"{meant}; {_name(plain)} takes tw.up_to({next(iter(bounds.values())).arguments[0]})"
    if kind is int:
        return f"{meant}; int must declare {MUST_DECLARE[int]}"
    return f"{meant}, not for {_name(plain)}"


def _plain_type(cls: type, where: str, plain: Any, bounds: dict[str, Bound]) -> FieldType:
    """The field type of an annotation that contains no field type. Removes the bounds that it uses from
    ``bounds``.
    """
    origin, arguments = typing.get_origin(plain), typing.get_args(plain)
    if origin in (typing.Union, types.UnionType):
        held = [argument for argument in arguments if argument is not types.NoneType]
        made = declared_type(cls, where, held[0]) if len(held) == 1 else _union_type(cls, held)
        return made if len(held) == len(arguments) else _composed.optional_of(made)
    if origin is Literal:
        return _composed.literal_of(list(arguments))
    gathered = _gathered_type(cls, where, origin, arguments, bounds)
    if gathered is not None:
        return gathered
    if plain is cls:
        raise TypeError("a message can't contain itself: refer to it by an id (tw.fields.network_id())")
    if isinstance(plain, type) and issubclass(plain, enum.Enum):
        return _composed.flags_of(plain) if issubclass(plain, enum.Flag) else _composed.enum_of(plain)
    schema = _schema(plain)
    if schema is not None:
        return _composed.nested_type(plain, schema)
    if isinstance(plain, FieldType | Bound | Converter):
        raise TypeError(_misplaced(plain))
    if plain in BARE:
        return BARE[plain]
    if bounds:
        raise TypeError(_not_for(bounds, plain))
    if (origin or plain) in MUST_DECLARE:
        raise TypeError(f"{_name(plain)} must declare {MUST_DECLARE[origin or plain]}")
    raise TypeError(
        f"{_name(plain)} is not a type that a field can have: use a bounded int, float, str or bytes, "
        "bool, an enum, a Literal, another message, a bounded list, tuple, set or dict of these, or convert "
        "it with tw.fields.converted(...) or tw.fields.register(...)"
    )


def _gathered_type(
    cls: type, where: str, origin: Any, arguments: tuple[Any, ...], bounds: dict[str, Bound]
) -> FieldType | None:
    """The field type of a list, tuple, set or dict, if its bounds are complete."""

    def item(place: int, what: str = "[]") -> FieldType:
        return declared_type(cls, f"{where}{what}", arguments[place])

    if origin is tuple and arguments and arguments[-1] is not ...:
        # A vector's numbers must not default to 64 bits each.
        if bounds or (arguments in _VECTORS):
            return None
        return _composed.tuple_of([item(place, f"[{place}]") for place in range(len(arguments))])
    if origin in (list, tuple, set, frozenset, dict) and "up_to" in bounds and arguments:
        (most,) = bounds.pop("up_to").arguments
        if origin is list:
            return _composed.list_of(item(0), most)
        if origin is tuple:
            return _composed.items_of(item(0), most)
        if origin is dict:
            return _composed.map_of(item(0, " (key)"), item(1), most)
        return _composed.set_of(item(0), most, origin)
    if origin is dict and "sparse" in bounds and arguments[0] is int:
        return _composed.sparse_of(item(1), *bounds.pop("sparse").arguments)
    if origin is tuple and arguments and arguments[-1] is ...:
        bound = MUST_DECLARE[list].replace("list", "tuple")
        raise TypeError(f"tuple[...] of any length must declare {bound}")
    return None


_VECTORS = ((float, float), (float, float, float), (float, float, float, float))


def _union_type(cls: type, held: list[Any]) -> FieldType:
    found = []
    for hint in held:
        plain, _ = unwrapped(hint)
        schema = _schema(plain)
        if plain is cls or schema is None:
            raise TypeError(f"a union must have only classes made by @message, not {_name(plain)}")
        found.append((plain, schema))
    return _composed.union_of(found)


def _schema(plain: Any) -> Schema | None:
    return getattr(plain, "__dict__", {}).get("__tickwire_schema__")


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and typing.get_origin(hint) is None else str(hint)


def rebind_class_cell(old: type, new: type) -> None:
    """Makes ``super()`` and ``__class__`` in the methods refer to the new class. Adding slots to a class
    makes a new class.

    From Python 3.14 on, Python does this itself.
    """
    for member in vars(new).values():
        functions = (member.fget, member.fset) if isinstance(member, property) else (member,)
        for function in functions:
            function = getattr(function, "__func__", function)
            if not isinstance(function, types.FunctionType):
                continue
            for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
                if variable == "__class__" and cell.cell_contents is old:
                    cell.cell_contents = new


class Message:
    """The base of messages with their own ``serialize``.

    ::

        class Odd(tw.messages.Message):
            n: int = 0
            extra: int = 0

            def serialize(self, stream):
                self.n = stream.ranged(self.n, 0, 1000)
                if stream.flag(self.n > 500):
                    self.extra = stream.bits(self.extra, 12)

    Tickwire calls ``serialize`` to write, read and measure objects. For the same values, the method must make
    the same stream calls each time. So send the condition of each ``if`` too, like the flag in this example.
    During reading, ``__init__`` doesn't run: until ``serialize`` sets an attribute, the attribute has its
    default in the class, or None. An exception during reading is logged and ends the connection of the
    sender. The tick continues.

    ``class Odd(tw.messages.Message, channel="chat")`` sets the channel that ``send`` uses by default.

    The constructor's keywords are the annotated attributes, and other public class attributes that aren't
    functions, classes or properties. If the class has no such attributes, the constructor takes any keyword.
    Equality and repr use the object's attributes.
    """

    max_bytes: ClassVar[int] = 1024
    """The largest encoding, in bytes. Sending a larger message raises :class:`MessageTooLargeError`. A larger
    received message ends the connection of its sender.
    """

    _tickwire_declared: ClassVar[tuple[dict[str, Any], set[str]]]

    __tickwire_channel__: ClassVar[int | str | None] = None

    def __init_subclass__(cls, *, channel: int | str | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        _check_channel(cls.__name__, channel)
        if channel is not None:
            cls.__tickwire_channel__ = channel

    def __init__(self, **values: Any) -> None:
        cls = type(self)
        if "_tickwire_declared" not in cls.__dict__:
            cls._tickwire_declared = _declare(cls)
        defaults, annotated = cls._tickwire_declared
        if defaults or annotated:
            for name in values:
                if name not in defaults and name not in annotated:
                    known = ", ".join(sorted(defaults.keys() | annotated))
                    raise TypeError(f"{cls.__name__} has no attribute {name!r}, only {known}")
        self.__dict__.update(defaults)
        self.__dict__.update(values)

    def serialize(self, stream: Stream) -> None:
        """Writes, reads or measures the object's attributes in order."""
        raise NotImplementedError(f"{type(self).__name__} must define serialize(self, stream)")

    def __getattr__(self, name: str) -> Any:
        if READING in self.__dict__ and not name.startswith("__"):
            return None
        raise AttributeError(f"{type(self).__name__} object has no attribute {name!r}", name=name, obj=self)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({inner})"


class BlockMessage(Message):
    """The base of messages with their own ``serialize`` and a block, as in the C++ library yojimbo.

    Use it in protocols with ``yojimbo=``: see ``docs/yojimbo.md``.
    """

    __tickwire_block__: ClassVar[bool] = True

    block: bytes = b""
    """The bytes that are sent in addition to the data from ``serialize``: at least one byte."""

    def __repr__(self) -> str:
        shown = {name: value for name, value in vars(self).items() if name != "block"}
        inner = "".join(f"{name}={value!r}, " for name, value in shown.items())
        return f"{type(self).__name__}({inner}block=<{len(self.block)} bytes>)"


def _declare(cls: type[Message]) -> tuple[dict[str, Any], set[str]]:
    """The plain defaults and the annotated names of a class and its bases, up to Message."""
    defaults: dict[str, Any] = {}
    annotated: set[str] = set()
    for base in reversed(cls.__mro__[: cls.__mro__.index(Message)]):
        annotated.update(inspect.get_annotations(base))
        for name, value in base.__dict__.items():
            if name.startswith("_") or name == "max_bytes" or callable(value) or hasattr(value, "__get__"):
                continue
            defaults[name] = value
    return defaults, annotated


class MessageFactory:
    """Makes the objects for received messages. Override :meth:`create` to reuse objects, or to make objects
    of another class.

    ::

        class Pool(tw.messages.MessageFactory):
            def create(self, cls):
                return self.free[cls].pop() if self.free[cls] else super().create(cls)

    Without a factory, making objects runs no Python code.
    """

    def create(self, cls: type[_T]) -> _T:
        """Returns an object of ``cls``. Tickwire then sets its fields, so you can return a used
        object.

        An exception is logged, and ends the connection of the message's sender.
        """
        return cls.__new__(cls)
