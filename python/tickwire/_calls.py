"""Calls: functions that the other side runs (RPC).

The decorator :func:`call` makes a message class from a function's parameters. In a protocol, these classes
come after the messages. A request is a call that waits for the function's return value.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, Concatenate, Final, Generic, Literal, ParamSpec, Protocol, TypeVar, overload

from tickwire._checks import NOT_PLAIN, check_callable, check_number, check_takes, check_truth, check_within
from tickwire._core import ClientHandle, FieldType, Schema
from tickwire._fields import u16, u32
from tickwire._message import declared_type, default_of, unwrapped
from tickwire._requests import Outcome, Request

__all__ = ["ClientCall", "Direction", "Request", "ServerCall", "call", "to_all", "to_client", "to_server"]

_P = ParamSpec("_P")
_R = TypeVar("_R")
_R_co = TypeVar("_R_co", covariant=True)

DEFAULT_RATE = 120.0
DEFAULT_BURST = 240.0
DEFAULT_TIMEOUT = 10.0
MAX_TIMEOUT = 86_400.0
MIN_RATE = 0.001
MAX_RATE = 1_000_000
MAX_CHANNELS = 64

# The default of settings that only calls to the server have.
NOT_GIVEN: Any = type("NotGiven", (), {"__repr__": lambda _: "..."})()

# The field that has the number of a request. Read by the native core.
NUMBER = "tickwire_request"

# The attribute in which a class of ghosts has its program.
PROPERTIES = "__tickwire_properties__"


class Direction(enum.Enum):
    """The side that runs a call."""

    TO_SERVER = "to_server"
    TO_CLIENT = "to_client"
    TO_ALL = "to_all"


to_server: Final = Direction.TO_SERVER
"""Clients call the function, and the server runs it."""
to_client: Final = Direction.TO_CLIENT
"""The server calls the function for one client, and this client runs it."""
to_all: Final = Direction.TO_ALL
"""The server calls the function, and one client, some clients or all clients run it."""


class Call(Generic[_P, _R_co]):
    """A function that the other side runs. Calling the object itself runs the function on this side."""

    def __init__(self, function: Callable[..., _R_co], direction: Direction, declared: Declared) -> None:
        self.function = function
        """The function itself, as it was declared."""
        self.direction = direction
        """The side that runs the call."""
        self._declared = declared
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> _R_co:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self.direction.value} call {self.function.__qualname__}>"


class ServerCall(Call[_P, _R_co]):
    """A call that clients make and the server runs: see :func:`call`."""


class ClientCall(Call[_P, _R_co]):
    """A call that the server makes and clients run: see :func:`call`."""


class _ToServer(Protocol):
    def __call__(self, function: Callable[Concatenate[ClientHandle, _P], _R], /) -> ServerCall[_P, _R]: ...


class _ToClient(Protocol):
    def __call__(self, function: Callable[_P, _R], /) -> ClientCall[_P, _R]: ...


@overload
def call(
    direction: Literal[Direction.TO_SERVER],
    /,
    *,
    channel: int | str | None = None,
    rate: float = DEFAULT_RATE,
    burst: float | None = None,
    owned: bool = True,
    abuse: Literal["drop", "disconnect"] = "drop",
    timeout: float = DEFAULT_TIMEOUT,
) -> _ToServer: ...
@overload
def call(
    direction: Literal[Direction.TO_CLIENT, Direction.TO_ALL],
    /,
    *,
    channel: int | str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> _ToClient: ...
def call(
    direction: Direction,
    /,
    *,
    channel: int | str | None = None,
    rate: float = NOT_GIVEN,
    burst: float | None = NOT_GIVEN,
    owned: bool = NOT_GIVEN,
    abuse: Literal["drop", "disconnect"] = NOT_GIVEN,
    timeout: float = DEFAULT_TIMEOUT,
) -> Any:
    """Turns a function into a call (RPC): the other side runs it, with the arguments given on this side.

    Annotate the parameters like fields of messages, or with a ghost class. If the server runs the function,
    its first parameter is the calling client's :class:`ClientHandle`, which Tickwire passes. The return
    annotation is the type of the reply to ``client.request`` or ``server.request``; ``None``: no reply.

    ::

        @tw.call(tw.to_server, channel="orders")
        def fire(caller: tw.ClientHandle, tank: Tank, at: Place) -> None: ...

        client.call(fire, tank, at=(3, 4))

    Args:
        direction (Direction): :data:`to_server`, :data:`to_client` or :data:`to_all`.
        channel (int | str | None, default None): the channel of the call, by number or name; None: the
            first channel. Replies use the same channel.
        rate (float, default 120.0): the number of calls of this function that the server accepts from each
            client in a second.
        burst (float | None, default None): the number of calls that the server accepts at once, 1 to
            1,000,000; None: twice ``rate``, but at least 1.
        owned (bool, default True): whether only the owner of a ghost may make a call with this ghost. It
            matters only if the first parameter after the client's handle is a ghost. Other clients' calls are
            dropped and counted as ``calls.refused``.
        abuse (Literal["drop", "disconnect"], default "drop"): the reaction to a client that exceeds
            ``rate``. The call is dropped and counted. With ``"disconnect"``, the connection ends too, with
            :attr:`DisconnectReason.PROTOCOL_VIOLATION`.
        timeout (float, default 10.0): seconds after which a request without a reply fails, above 0 and at
            most 86,400.

    Raises:
        TypeError, ValueError: the function is declared wrongly; the error names the parameter.
    """
    if not isinstance(direction, Direction):
        kind = direction.__name__ if inspect.isfunction(direction) else repr(direction)
        raise TypeError(f"@tw.call must have a direction, such as @tw.call(tw.to_server), not {kind}")
    if direction is not Direction.TO_SERVER:
        given = {"rate": rate, "burst": burst, "owned": owned, "abuse": abuse}
        for name, value in given.items():
            if value is not NOT_GIVEN:
                raise TypeError(
                    f"{name} is for calls to the server, and this is {direction.value}: leave it out"
                )
    rate = DEFAULT_RATE if rate is NOT_GIVEN else rate
    check_within("rate", rate, MIN_RATE, MAX_RATE)
    burst = min(max(2 * rate, 1.0), MAX_RATE) if burst is NOT_GIVEN or burst is None else burst
    check_within("burst", burst, 1, MAX_RATE)
    owned = True if owned is NOT_GIVEN else owned
    check_truth("owned", owned)
    abuse = "drop" if abuse is NOT_GIVEN else abuse
    if abuse not in ("drop", "disconnect"):
        raise ValueError(f"abuse must be 'drop' or 'disconnect', not {abuse!r}")
    check_number("timeout", timeout)
    if not 0 < timeout <= MAX_TIMEOUT:
        raise ValueError(f"timeout must be above 0 to {MAX_TIMEOUT:g} seconds, not {timeout!r}")
    if channel is not None and (isinstance(channel, bool) or not isinstance(channel, int | str)):
        raise TypeError(f"channel must be an int or a str, not {type(channel).__name__}")
    if isinstance(channel, int):
        check_within("channel", channel, 0, MAX_CHANNELS - 1, int)
    names = sys._getframe(1).f_locals
    kind = ServerCall if direction is Direction.TO_SERVER else ClientCall
    said = {
        "channel": channel,
        "rate": float(rate),
        "burst": float(burst),
        "owned": owned,
        "disconnects": abuse == "disconnect",
        "timeout": float(timeout),
    }

    def make(function: Callable[..., Any]) -> Any:
        return kind(function, direction, _declare(function, direction, names, said))

    return make


def check_function(call: Call[Any, Any], function: object) -> None:
    """Refuses objects that can't run a call."""
    caller = ("caller",) if call.direction is Direction.TO_SERVER else ()
    declared = call._declared
    given = (*caller, *declared.positional)
    shown = ", ".join((*given, *(f"{name}=" for name in declared.keywords)))
    check_callable("function", function)
    check_takes(
        "function", function, f"({shown}), like {call.function.__name__}()", given, keywords=declared.keywords
    )


@dataclasses.dataclass(frozen=True)
class Declared:
    """The parts of a call that the native core reads when a protocol is made."""

    message: type
    """The message class that carries the call's arguments."""
    reply: type | None
    """The message class that carries the reply; None if the call has no reply."""
    positional: tuple[str, ...]
    """Parameters in the order in which the function takes them."""
    keywords: tuple[str, ...]
    """The parameters that the function takes by keyword only."""
    ghosts: tuple[tuple[str, type, bool], ...]
    """The parameters that are ghosts: each with its name, its class, and whether it may be None."""
    owned: bool
    """Whether only the owner of the ghost in the first parameter may make the call."""
    rate: float
    burst: float
    disconnects: bool
    timeout: float


def _declare(
    function: Callable[..., Any], direction: Direction, names: dict[str, Any], said: dict[str, Any]
) -> Declared:
    name = _function_name(function)
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    hints = _hints(function, name, names)
    if direction is Direction.TO_SERVER:
        first = parameters.pop(0) if parameters else None
        if first is None or hints.get(first.name) is not ClientHandle or first.kind is first.KEYWORD_ONLY:
            raise TypeError(
                f"{name}: its first parameter must be the caller, as caller: tw.ClientHandle, "
                f"not {first.name if first else 'missing'}"
            )
    for parameter in parameters:
        _check_parameter(name, parameter, hints)
    if "return" not in hints:
        raise TypeError(f"{name} must annotate its return value, as -> None, or -> bool for requests")
    said = dict(said)
    channel = said.pop("channel")
    ghosts = [
        (each.name, found, _is_optional(hints[each.name]))
        for each in parameters
        if (found := _ghost(hints[each.name])) is not None
    ]
    returns = hints["return"]
    replies = returns is not None and returns is not types.NoneType
    if replies and _ghost(returns) is not None:
        raise TypeError(
            f"{name} must return what a field can hold, and {returns.__name__} is a class of ghosts"
        )
    numbers: dict[str, Any] = {name: u32 | None if optional else u32 for name, _, optional in ghosts}
    fields: list[_Field] = [(NUMBER, u16 | None, None)] if replies else []
    for parameter in parameters:
        fields.append((parameter.name, numbers.get(parameter.name, hints[parameter.name]), parameter))
    owned = said["owned"] and bool(ghosts) and parameters[0].name == ghosts[0][0]
    return Declared(
        message=_made(function, name, fields, channel),
        reply=_made(function, f"{name}_reply", [("request", u16, None), ("value", returns, None)], channel)
        if replies
        else None,
        positional=tuple(each.name for each in parameters if each.kind is not each.KEYWORD_ONLY),
        keywords=tuple(each.name for each in parameters if each.kind is each.KEYWORD_ONLY),
        ghosts=tuple(ghosts),
        **{**said, "owned": owned},
    )


def _function_name(function: Any) -> str:
    """The name of a function that can be a call."""
    if isinstance(function, Call):
        raise TypeError(f"{function.function.__name__} is already a call: decorate a function only once")
    if not inspect.isfunction(function):
        raise TypeError(f"@tw.call must decorate a function, not {function!r}")
    if function.__name__ == "<lambda>":
        raise TypeError("@tw.call must decorate a function with a name and annotations, not a lambda")
    name = function.__name__
    for is_one, kind in NOT_PLAIN.items():
        if is_one(function):
            raise TypeError(f"{name} must be a plain function, not {kind}: it would never run")
    return name


def _hints(function: Any, name: str, names: dict[str, Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, localns=names, include_extras=True)
    except NameError as error:
        raise TypeError(f"{name}: {error} in an annotation: it must be a name of the module") from error
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: an annotation is no type: {error}") from error


def _check_parameter(name: str, parameter: inspect.Parameter, hints: dict[str, Any]) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        star = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
        raise TypeError(f"{name} must name its parameters, and can't have {star}{parameter.name}")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise TypeError(f"{name}.{parameter.name} must be a parameter that callers can name: leave the / out")
    if parameter.name not in hints:
        raise TypeError(f"{name}.{parameter.name} must be annotated like a field")
    if parameter.name == NUMBER:
        raise TypeError(f"{name}.{NUMBER} is the library's own name: call it something else")
    if hints[parameter.name] is ClientHandle:
        raise TypeError(
            f"{name}.{parameter.name} can't be a ClientHandle: the server gives one, as the first argument "
            "of calls to it"
        )


def _ghost(hint: Any) -> type | None:
    """The ghost class in an annotation, with or without None."""
    plain, _ = unwrapped(hint)
    if typing.get_origin(plain) in (typing.Union, types.UnionType):
        held = [each for each in typing.get_args(plain) if each is not types.NoneType]
        plain = unwrapped(held[0])[0] if len(held) == 1 else None
    return plain if isinstance(plain, type) and PROPERTIES in plain.__dict__ else None


def _is_optional(hint: Any) -> bool:
    return types.NoneType in typing.get_args(unwrapped(hint)[0])


_Field = tuple[str, Any, inspect.Parameter | None]


def _made(function: Any, name: str, fields: list[_Field], channel: int | str | None) -> type:
    """A message class with these fields, whose constructor has the function's signature."""
    members: dict[str, Any] = {"__module__": function.__module__, "__doc__": f"The arguments of {name}()."}
    bare = type(name, (), {})
    compiled: list[tuple[str, FieldType]] = []
    for field, hint, parameter in fields:
        compiled.append((field, declared_type(bare, f"{name}.{field}", hint)))
        if field == NUMBER:
            members[field] = dataclasses.field(default=None, init=False, repr=False)
        elif parameter is not None:
            members[field] = _dataclass_field(parameter)
    members["__annotations__"] = {field: Any for field, _, _ in fields}
    members["__qualname__"] = name
    members = {key: value for key, value in members.items() if value is not dataclasses.MISSING}
    made: Any = dataclasses.dataclass(slots=True)(type(name, (), members))
    made.__init__.__qualname__ = name  # what Python says of wrong arguments names the function
    if channel is not None:
        made.__tickwire_channel__ = channel
    made.__tickwire_call__ = True
    schema = Schema(name, compiled)
    made.__tickwire_schema__ = schema
    by_name = dict(compiled)
    defaults = {each.name: default_of(each, by_name[each.name]) for each in dataclasses.fields(made)}
    schema.check(types.SimpleNamespace(**defaults))
    checked: type = made
    return checked


def _dataclass_field(parameter: inspect.Parameter) -> Any:
    keyword = parameter.kind is parameter.KEYWORD_ONLY
    if parameter.default is parameter.empty:
        return dataclasses.field(kw_only=True) if keyword else dataclasses.MISSING
    factory = functools.partial(copy.copy, parameter.default)
    mutable = type(parameter.default).__hash__ is None
    if mutable:
        return dataclasses.field(default_factory=factory, kw_only=keyword)
    return dataclasses.field(default=parameter.default, kw_only=keyword)


UNANSWERED = _made(call, "tickwire_unanswered", [("request", u16, None), ("why", Outcome, None)], None)
"""A message with the reason why a request gets no value. It is the last of a protocol's message classes."""
