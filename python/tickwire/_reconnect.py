"""Settings for reconnecting a client, and the requests for its tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias
from typing import Protocol as Shape

from tickwire._checks import check_number, check_takes
from tickwire._core import ConnectToken

__all__ = ["Reconnect", "TokenSource"]

MAX_SECONDS = 86_400.0


class PendingToken(Shape):
    """A future of :mod:`concurrent.futures` or :mod:`asyncio`."""

    def done(self) -> bool: ...
    def result(self) -> ConnectToken | None: ...
    def cancel(self, *args: Any) -> bool: ...


TokenSource: TypeAlias = Callable[[], "ConnectToken | PendingToken | Any | None"]
"""Returns a new token from the login backend, a future or coroutine for a token, or None to give up."""


@dataclass(frozen=True)
class Reconnect:
    """Settings for reconnecting a client when its connection is lost or can't be made: see ``reconnect`` of
    :class:`Client`.

    Args:
        token (Callable[[], ConnectToken | Future | Coroutine | None] | None, default None): a function that
            returns a token. It is called for each attempt, because a token makes only one connection. The
            game waits for the function, unless it returns a future or a coroutine. An exception or an
            unusable token counts as a failed attempt. If the function returns None, the client gives up.
            Not needed with :meth:`Client.connect`, which makes its own tokens.
        first_delay (float, default 0.5): seconds before the first attempt. The delay doubles with each
            attempt. A connection that lasts at least ``max_delay`` seconds resets the delay.
        max_delay (float, default 30.0): the longest delay, in seconds.
        jitter (float, default 0.5): the largest share of the delay that is randomly subtracted, 0 to 1, so
            that a thousand players don't reconnect at the same moment after a restart.
        give_up_after (float | None, default 120.0): seconds without a connection after which the client
            gives up; None: never.

    Raises:
        ValueError, TypeError: an argument is invalid.
    """

    token: TokenSource | None = None
    first_delay: float = 0.5
    max_delay: float = 30.0
    jitter: float = 0.5
    give_up_after: float | None = 120.0

    def __post_init__(self) -> None:
        if self.token is not None and not callable(self.token):
            kind = type(self.token).__name__
            raise TypeError(f"token must be callable, and make a token for each attempt, or None, not {kind}")
        if self.token is not None:
            check_takes("token", self.token, "0 arguments", ())
        for name in ("first_delay", "max_delay", "jitter"):
            check_number(name, getattr(self, name))
        if not 0 < self.first_delay <= MAX_SECONDS:
            raise ValueError(
                f"first_delay must be above 0 to {MAX_SECONDS:g} seconds, not {self.first_delay!r}"
            )
        if not self.first_delay <= self.max_delay <= MAX_SECONDS:
            bound = f"first_delay ({self.first_delay:g}) to {MAX_SECONDS:g} seconds"
            raise ValueError(f"max_delay must be {bound}, not {self.max_delay!r}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter must be 0 to 1, not {self.jitter!r}")
        if self.give_up_after is not None:
            check_number("give_up_after", self.give_up_after)
            if not 0 <= self.give_up_after <= 1e9:
                bound = "0 to 1e9 seconds, or None"
                raise ValueError(f"give_up_after must be {bound}, not {self.give_up_after!r}")


class TokenRequest:
    """Requests tokens from a source, one at a time."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        self._pending: Any = None  # a future

    def poll(self) -> tuple[bool, Any]:
        """Returns whether the source has answered, and its answer. Raises the source's exception."""
        answer: Any = self._source() if self._pending is None else self._pending
        if hasattr(answer, "__await__") and not hasattr(answer, "done"):
            import asyncio  # slow, and loaded already by programs with coroutines

            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                sentence = "the source of tokens is a coroutine, and no event loop runs: use aio.run"
                raise RuntimeError(sentence) from None
            answer = asyncio.ensure_future(answer, loop=loop)
        if not hasattr(answer, "done"):
            return True, answer
        self._pending = answer
        if not answer.done():
            return False, None
        self._pending = None
        if answer.cancelled():
            # asyncio's cancellation is no Exception, and would look as if meant for the game's task.
            raise RuntimeError("the future of a token was cancelled")
        return True, answer.result()

    def cancel(self) -> None:
        """Cancels the pending request for a token."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.cancel()
