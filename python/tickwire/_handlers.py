"""Handlers: one function for each class of message, instead of a ``match`` over the inbox.

``docs/messages.md`` has an example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

from tickwire._checks import check_callable
from tickwire._core import ClientHandle, Ghost, Inbox

__all__ = ["Handlers"]

_M = TypeVar("_M")
_R = TypeVar("_R")


class _Register(Protocol[_M]):
    """Registers a function for servers or for clients, and returns it."""

    @overload
    def __call__(self, function: Callable[[ClientHandle, _M], _R], /) -> Callable[[ClientHandle, _M], _R]: ...

    @overload
    def __call__(self, function: Callable[[_M], _R], /) -> Callable[[_M], _R]: ...


class Handlers:
    """Functions that handle messages and events, by class.

    ::

        handlers = tw.messages.Handlers()

        @handlers.on(Chat)
        def chat(client: tw.ClientHandle, message: Chat) -> None: ...

        @handlers.on(tw.Disconnected)
        def left(client: tw.ClientHandle, event: tw.Disconnected) -> None: ...

        with server.tick() as inbox:
            handlers.dispatch(inbox)

    On a server, a function gets the client and the message or event; on a client, only the message or event.
    A class can have only one function. A function can handle several classes: decorate it with ``on`` once
    for each class.
    """

    def __init__(self) -> None:
        self._by_class: dict[type, Callable[..., object]] = {}

    def on(self, class_: type[_M], /) -> _Register[_M]:
        """Makes the decorated function the handler of a class. The class is a message class,
        :class:`Connected`, :class:`Disconnected`, :class:`Reconnecting` or an event of ghosts, such as
        :class:`GhostSpawned`.

        Raises:
            TypeError: the argument isn't a class, or is a ghost class.
            ValueError: the class already has a function.
        """
        if not isinstance(class_, type):
            raise TypeError(f"on() takes a message class, Connected or Disconnected, not {class_!r}")
        if issubclass(class_, Ghost):
            raise TypeError(
                f"{class_.__name__} is a ghost, not a message: on(tw.GhostSpawned), or on another event of "
                "ghosts, is for those of all classes"
            )
        if class_ in self._by_class:
            taken = self._by_class[class_].__qualname__
            raise ValueError(f"{class_.__name__} already has a function, {taken}()")

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            check_callable("function", function, 1, 2)
            self._by_class[class_] = function
            return function

        return register

    def dispatch(self, inbox: Inbox[Any], /) -> list[Any]:
        """Calls the registered function for each event and message. Returns the events and messages that have
        no function.

        The order is events, then events of ghosts, then messages. So a message can refer to a ghost that was
        spawned in the same tick. Calls from the other side run too, each at its place among the messages.
        Values of latest channels and payloads aren't dispatched: see :attr:`Inbox.latest` and
        :attr:`Inbox.payloads`.
        """
        if not hasattr(inbox, "events"):
            raise TypeError(f"inbox must be an Inbox, not {type(inbox).__name__}")
        unhandled: list[Any] = [event for event in inbox.events if not self._call(event.client, event)]
        unhandled += [event for event in inbox.ghosts if not self._call(None, event)]
        has_calls = inbox.has_calls
        for place, item in enumerate(inbox.messages):
            if has_calls:
                inbox.run_calls(place)
            client, message = item if type(item) is tuple else (None, item)
            if not self._call(client, message):
                unhandled.append(item)
        inbox.run_calls()
        return unhandled

    def _call(self, client: ClientHandle | None, what: object) -> bool:
        function = self._by_class.get(type(what))
        if function is None:
            return False
        if client is None:
            function(what)
        else:
            function(client, what)
        return True
