"""Requests: calls that wait for the return value of the other side's function."""

from __future__ import annotations

import enum
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tickwire.errors import CallCancelledError, CallFailedError, CallPendingError, CallTimeoutError

if TYPE_CHECKING:
    import asyncio

__all__ = ["Request"]

_R = TypeVar("_R")


class Outcome(enum.Enum):
    """The reason why a request has no value. The members are in the order of their numbers on the wire."""

    FAILED = "the function raised, or returned a value that its annotation refuses"
    REFUSED = "the first ghost named is not the caller's"
    GONE = "a ghost named is not there any more"


class Request(Generic[_R]):
    """A call that waits for its reply: see :meth:`Client.request` and :meth:`Server.request`.

    A request ends with a value, or with an error that :meth:`result` raises. Replies arrive in the
    endpoint's ``receive``, which also checks the timeout. In asyncio, ``await request`` waits for the
    :meth:`result`, while another task ticks the endpoint.
    """

    __slots__ = ("__weakref__", "_error", "_name", "_value", "_waiters", "done")

    def __init__(self, name: str, /) -> None:
        self.done = False
        """Whether the request has ended."""
        self._name = name
        self._value: Any = None
        self._error: Exception | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def result(self) -> _R:
        """Returns the value that the function on the other side returned.

        Raises:
            CallPendingError: no reply has arrived yet.
            CallFailedError: the other side didn't complete the call; ``reason`` says why.
            CallTimeoutError: no reply arrived within the call's ``timeout``.
            CallCancelledError: :meth:`cancel` was called.
            NotConnectedError, StaleClientError: there was no connection, or it ended meanwhile.
            ChannelFullError: the channel had no room, or 256 requests were waiting.
        """
        if not self.done:
            raise CallPendingError(f"{self._name}: no reply yet: check done, or await it")
        if self._error is not None:
            raise self._error
        value: _R = self._value
        return value

    @property
    def error(self) -> Exception | None:
        """The error that :meth:`result` raises; None if the request still waits or has a value."""
        return self._error

    def cancel(self) -> bool:
        """Stops waiting. The other side still runs the call, and its reply is dropped. Returns False if the
        request has ended already.
        """
        if self.done:
            return False
        self._fail(CallCancelledError(f"{self._name}: cancelled"))
        return True

    def __await__(self) -> Generator[Any, None, _R]:
        if not self.done:
            # Imported here: only waiters need it.
            import asyncio

            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                yield from waiter
            except asyncio.CancelledError:
                self._waiters = [other for other in self._waiters if other is not waiter]
                if not self._waiters:
                    self.cancel()
                raise
        return self.result()

    def __repr__(self) -> str:
        if not self.done:
            return f"<Request {self._name}, waiting>"
        shown = repr(self._value) if self._error is None else repr(self._error)
        return f"<Request {self._name}: {shown}>"

    def _answer(self, value: _R) -> None:
        self._value = value
        self._end()

    def _fail(self, error: Exception) -> None:
        self._error = error
        self._end()

    def _refuse(self, outcome: Outcome) -> None:
        self._fail(CallFailedError(self._name, outcome.name.lower(), outcome.value))

    def _time_out(self) -> None:
        self._fail(CallTimeoutError(f"{self._name}: no reply in time"))

    def _end(self) -> None:
        self.done = True
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            # Nobody waits in a closed loop.
            if not waiter.done() and not waiter.get_loop().is_closed():
                waiter.set_result(None)
