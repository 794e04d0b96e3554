"""Message classes: declared by their fields, or with their own ``serialize``.

A class declared with :func:`message` is a plain dataclass with slots. Its fields are compiled once, when it
is declared, to a program that Rust runs: encoding and decoding call no Python. A mistake in the declaration
raises at once and names the class and the field.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, TypeVar, dataclass_transform, overload

from tickwire._core import (
    FieldType,
    Schema,
    Stream,
    common_of,
    enum_of,
    flags_of,
    list_of,
    nested_of,
    optional_of,
    sparse_of,
)
from tickwire.fields import BARE, BOUNDED, MUST_SAY, Bound

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
def message(*, block: bool) -> Callable[[type[_T]], type[_T]]: ...


def message(cls: type[_T] | None = None, /, *, block: bool = False) -> Any:
    """Makes a class a message by its annotated fields, in order.

    The class becomes a dataclass with slots: constructor (positional or by keyword), equality and repr. A
    field without a default gets its type's natural one: zero (or the range's lower end), False, the empty
    string. (Type checkers don't know this and ask for such fields in the constructor.) Methods, class
    variables and base classes are as in any class; fields of a base message come first.

    With ``@message(block=True)`` its objects have one more attribute, ``block``: bytes that go beside the
    fields, as a block message of the C++ library yojimbo (``framing="yojimbo"``; see ``docs/yojimbo.md``).

    Raises:
        TypeError, ValueError: naming the class, the field and what is wrong with it.
    """
    names = sys._getframe(1).f_locals
    if cls is None:
        return lambda cls: _declared(cls, names, block)
    return _declared(cls, names, block)


def _declared(cls: type[_T], names: dict[str, Any], block: bool) -> type[_T]:
    if not isinstance(cls, type):
        raise TypeError(f"@tickwire.message goes on a class, not on {cls!r}")
    if issubclass(cls, Message):
        raise TypeError(
            f"{cls.__name__}: derive from Message to write serialize() yourself, "
            "or use @message to declare fields, not both"
        )
    hints = _resolve_hints(cls, names)
    block_inherited = getattr(cls, BLOCK, False)
    own = {
        name: _field_type(cls, f"{cls.__name__}.{name}", hints[name])
        for name in inspect.get_annotations(cls)
        if not _is_class_variable(hints[name])
    }
    for name, field_type in own.items():
        if name not in cls.__dict__:
            made_anew = functools.partial(getattr, field_type, "default")
            mutable = field_type.is_mutable
            setattr(cls, name, dataclasses.field(default_factory=made_anew) if mutable else made_anew())
    if block and not block_inherited:
        if "block" in hints:
            raise TypeError(f"{cls.__name__}.block is what block=True adds; call the field something else")
        cls.__annotations__["block"] = bytes
        cls.block = dataclasses.field(default=b"", kw_only=True, repr=False)  # type: ignore[attr-defined]
    made = dataclasses.dataclass(slots=True)(cls)
    _rebind_class_cell(cls, made)
    if block:
        made.__tickwire_block__ = True  # type: ignore[attr-defined]

    with_block = block or block_inherited
    fields = [field for field in dataclasses.fields(made) if not (with_block and field.name == "block")]  # type: ignore[arg-type]
    inherited: dict[str, FieldType] = {}
    for base in reversed(made.__mro__[1:]):
        schema = base.__dict__.get("__tickwire_schema__")
        if schema is not None:
            inherited.update(schema.fields)
    types_by_name = {**inherited, **own}
    for field in fields:
        if field.name not in types_by_name:
            raise TypeError(
                f"{cls.__name__}.{field.name} comes from a base class that is not a message: "
                "make that one with @message too"
            )
    schema = Schema(cls.__name__, [(field.name, types_by_name[field.name]) for field in fields])
    made.__tickwire_schema__ = schema  # type: ignore[attr-defined]
    defaults = {field.name: _default(field, types_by_name[field.name].default) for field in fields}
    schema.check(types.SimpleNamespace(**defaults))
    return made


def _default(field: dataclasses.Field[Any], natural: Any) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return natural if field.default is dataclasses.MISSING else field.default


def _resolve_hints(cls: type, names: dict[str, Any]) -> dict[str, Any]:
    """The class's annotations as objects, also where they are text that names locals of a function."""
    try:
        own = {**names, cls.__name__: cls, **vars(cls)}
        return typing.get_type_hints(cls, localns=own, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{cls.__name__}: {error} in an annotation. Names in annotations must be those of the module, "
            "or of the function that the class statement itself stands in"
        ) from error


def _is_class_variable(hint: Any) -> bool:
    return hint is ClassVar or typing.get_origin(hint) is ClassVar


def _field_type(cls: type, where: str, hint: Any) -> FieldType:
    """The field type an annotation stands for."""
    plain = hint
    extras: list[Any] = []
    if typing.get_origin(hint) is Annotated:
        plain = hint.__origin__
        extras = [extra for extra in hint.__metadata__ if isinstance(extra, FieldType | Bound)]
    found = [extra for extra in extras if isinstance(extra, FieldType)]
    bounds = {extra.name: extra for extra in extras if isinstance(extra, Bound)}
    if len(found) > 1 or len(found) + len(bounds) < len(extras):
        raise TypeError(f"{where}: {' and '.join(map(str, extras))} contradict each other; give one")
    common = bounds.pop("common", None)
    try:
        made = found[0] if found else _plain_type(cls, where, plain, bounds)
        if found and (typing.get_origin(plain) or plain) is not made.python_type:
            raise TypeError(f"{made} is for {made.python_type.__name__}, not for {_name(plain)}")
        if bounds:
            meant = " and ".join(f"{bound} is for {BOUNDED[name]}" for name, bound in bounds.items())
            raise TypeError(f"{meant}, not for {_name(plain)}")
        return common_of(made, common.arguments) if common else made
    except (TypeError, ValueError) as error:
        if str(error).startswith(where):
            raise
        raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{where}: {error}") from error


def _plain_type(cls: type, where: str, plain: Any, bounds: dict[str, Bound]) -> FieldType:
    """The field type of an annotation without a field type in it; takes from ``bounds`` what it needs."""
    origin, arguments = typing.get_origin(plain), typing.get_args(plain)
    if origin in (typing.Union, types.UnionType):
        held = [argument for argument in arguments if argument is not types.NoneType]
        if len(held) == 1:
            return optional_of(_field_type(cls, where, held[0]))
    if origin is list and "up_to" in bounds:
        return list_of(_field_type(cls, f"{where}[]", arguments[0]), *bounds.pop("up_to").arguments)
    if origin is dict and "sparse" in bounds and arguments[0] is int:
        return sparse_of(_field_type(cls, f"{where}[]", arguments[1]), *bounds.pop("sparse").arguments)
    if plain is cls:
        raise TypeError("a message can't hold itself: name the other by an id (tw.network_id())")
    if isinstance(plain, type) and issubclass(plain, enum.Enum):
        return flags_of(plain) if issubclass(plain, enum.Flag) else enum_of(plain)
    schema = getattr(plain, "__dict__", {}).get("__tickwire_schema__")
    if schema is not None:
        return nested_of(plain, schema)
    if plain in BARE:
        return BARE[plain]
    if isinstance(plain, FieldType):
        raise TypeError(f"{plain} goes with a type, as Annotated[{plain.python_type.__name__}, tw.{plain}]")
    if origin is dict and "sparse" in bounds:
        raise TypeError(f"the keys of a dict must be int, not {_name(arguments[0])}")
    if (origin or plain) in MUST_SAY:
        raise TypeError(f"{_name(plain)} must say {MUST_SAY[origin or plain]}")
    raise TypeError(
        f"{_name(plain)} is not a type that a field can have: take a bounded int, float, str or bytes, "
        "bool, an enum, another message, or a bounded list or dict of these"
    )


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and typing.get_origin(hint) is None else str(hint)


def _rebind_class_cell(old: type, new: type) -> None:
    """Points ``super()`` and ``__class__`` in the methods at the class that slots made necessary.

    Python does this itself from 3.14 on.
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
    """Base of messages that write themselves.

    ::

        class Odd(tw.Message):
            n: int = 0
            extra: int = 0

            def serialize(self, stream):
                self.n = stream.ranged(self.n, 0, 1000)
                if stream.flag(self.n > 500):
                    self.extra = stream.bits(self.extra, 12)

    ``serialize`` is called to write, to read and to measure, and must take the same steps for all three.
    While it reads, attributes that it has not set yet are None. An object made by reading was not
    constructed: ``__init__`` did not run. An exception raised while it reads ends the connection of the
    peer that sent the bytes, and is logged; the tick goes on.

    The constructor takes by keyword what the class declares, as annotations or as plain defaults; a class
    that declares nothing takes anything. Equality and repr go over the object's attributes.
    """

    max_bytes: ClassVar[int] = 1024
    """The largest encoding; a larger one raises on write and is refused on read."""

    _tickwire_declared: ClassVar[tuple[dict[str, Any], set[str]]]

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
        """Writes, reads or measures the object's attributes, one after the other."""
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
    """Base of messages that write themselves and have a block: a block message of the C++ library yojimbo.

    For ``framing="yojimbo"``; see ``docs/yojimbo.md``.
    """

    __tickwire_block__: ClassVar[bool] = True

    block: bytes = b""
    """The bytes that go beside what ``serialize`` writes: at least one."""

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
    """Makes the message objects that arrive. Override :meth:`create` to pool them, or to make others.

    ::

        class Pool(tw.MessageFactory):
            def create(self, cls):
                return self.free[cls].pop() if self.free[cls] else super().create(cls)

    Without a factory, objects are made without running any Python.
    """

    def create(self, cls: type[_T]) -> _T:
        """Returns an object of ``cls``, whose fields are then set. It need not be constructed or new.

        What it raises ends the connection of the peer whose message it is, and is logged.
        """
        return cls.__new__(cls)
