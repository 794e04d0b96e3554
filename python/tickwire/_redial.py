"""A client that reconnects when its connection is lost."""

from __future__ import annotations

import inspect
import logging
import random
import time
from collections.abc import Callable
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeAlias, TypeVar
from typing import Protocol as Shape

from tickwire._calls import ClientCall, Request, ServerCall
from tickwire._checks import check_number
from tickwire._connection import (
    AddressLike,
    ClientState,
    DisconnectReason,
    Event,
    Reconnecting,
    SendResult,
)
from tickwire._core import (
    Address,
    Capture,
    Chunk,
    Client,
    ClientWorld,
    Clock,
    Code,
    Congestion,
    Connected,
    ConnectionStats,
    ConnectToken,
    Debugging,
    Disconnected,
    Inbox,
    IncomingChunk,
    Latency,
    Protocol,
    SimulatedNetwork,
    Transfer,
    Tuning,
)
from tickwire.errors import ClosedError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Redialler", "TokenSource"]

AGAIN = frozenset(
    {
        DisconnectReason.SERVER_CLOSED,
        DisconnectReason.PEER_DISCONNECTED,
        DisconnectReason.TIMED_OUT,
        DisconnectReason.STALLED,
        DisconnectReason.SERVER_FULL,
        DisconnectReason.REQUEST_TIMED_OUT,
        DisconnectReason.UNREACHABLE,
        DisconnectReason.NO_PATH,
        DisconnectReason.RESPONSE_TIMED_OUT,
        DisconnectReason.TOKEN_EXPIRED,
    }
)
"""Ends after which another try may do better. A kick, a newer connection of the same player, a mismatch or a
close of one's own are meant."""

POLL_INTERVAL = 0.05
"""Seconds between two looks at a token that is being fetched."""

MAX_SECONDS = 86_400.0
MAX_DOUBLINGS = 30


class PendingToken(Shape):
    """What :mod:`concurrent.futures` and :mod:`asyncio` call a future."""

    def done(self) -> bool: ...
    def result(self) -> ConnectToken | None: ...
    def cancel(self, *args: Any) -> bool: ...


TokenSource: TypeAlias = Callable[[], "ConnectToken | PendingToken | Any | None"]
"""Gets a fresh token from the login backend: returns it, or a future or coroutine of it; None to give up."""

log = logging.getLogger("tickwire")

_P = TypeVar("_P")
_A = ParamSpec("_A")
_R = TypeVar("_R")
_M = TypeVar("_M")


class Redialler(Generic[_P]):
    """A client that dials again when its connection is lost or doesn't come up, with a fresh token each time.

    Tick and use it like a :class:`Client`: with :meth:`tick`, :func:`tickwire.loop`, or
    :class:`tickwire.aio.Driver`. Its events report what it does: :class:`Reconnecting` when the connection
    is lost and it will dial again, :class:`Connected` each time it is connected, and one
    :class:`Disconnected` at the end, the last event of all.

    It doesn't dial again after being kicked or banned, if the same player connected elsewhere, if the two
    sides' protocols differ, or after :meth:`close`. For the server each connection is a newcomer, so the
    game must introduce itself again.

    Args:
        protocol (Protocol): what both sides share.
        token (Callable[[], ConnectToken | Future | None]): called for each attempt, the first time by this
            constructor, which raises its exceptions. It blocks the game while it runs; return a future to
            avoid that. Later exceptions count as failed attempts, and so do tokens that :class:`Client`
            refuses. Returning None gives up.
        first_delay (float, default 0.5): seconds before the first attempt; each later one waits twice as
            long. A connection that lasts for ``max_delay`` resets it.
        max_delay (float, default 30.0): the longest delay, in seconds.
        jitter (float, default 0.5): the share of the delay, 0 to 1, that is subtracted at random, so that a
            thousand players don't reconnect at the same moment after a restart.
        give_up_after (float | None, default 120.0): seconds since the connection was lost (or since the
            start) after which it gives up; None: never.
        seed (int | None, default None): makes jitter and ``conditions`` repeatable.
        settings: those of :class:`Client`, except ``resume``, which it sets itself.

    Raises:
        ValueError: naming the argument, its value and its bound.
    """

    def __init__(
        self,
        protocol: Protocol[_P],
        token: TokenSource,
        *,
        first_delay: float = 0.5,
        max_delay: float = 30.0,
        jitter: float = 0.5,
        give_up_after: float | None = 120.0,
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        self._check(first_delay, max_delay, jitter, give_up_after)
        if not callable(token):
            raise TypeError(
                f"token must be callable, and make a token for each dial, not {type(token).__name__}"
            )
        self._protocol = protocol
        self._fetch: TokenSource | None = token
        self._make: Callable[..., Client[_P]] = lambda **more: Client(protocol, **more)
        self._begin(first_delay, max_delay, jitter, give_up_after, seed, settings)

    @classmethod
    def connect(
        cls,
        address: AddressLike | Code,
        protocol: Protocol[_P],
        *,
        first_delay: float = 0.5,
        max_delay: float = 30.0,
        jitter: float = 0.5,
        give_up_after: float | None = 120.0,
        seed: int | None = None,
        **settings: Any,
    ) -> Self:
        """Development mode: makes its own tokens, as :meth:`Client.connect`. All have the same client id.

        Args:
            address (AddressLike | Code): where the server is, with its port, or its code
                (:class:`tickwire.peers.Code`).
            protocol (Protocol): what both sides share.
            first_delay (float, default 0.5): seconds before the first attempt; each later one waits twice
                as long.
            max_delay (float, default 30.0): the longest delay, in seconds.
            jitter (float, default 0.5): the share of the delay, 0 to 1, that is subtracted at random.
            give_up_after (float | None, default 120.0): seconds without a connection after which it gives
                up; None: never.
            seed (int | None, default None): makes jitter and ``conditions`` repeatable.
            settings: those of :meth:`Client.connect`, ``client_id`` too.
        """
        cls._check(first_delay, max_delay, jitter, give_up_after)
        if settings.get("client_id") is None:
            network = settings.get("network")
            settings["client_id"] = network._random() if network else random.SystemRandom().getrandbits(64)
        redialler = cls.__new__(cls)
        redialler._protocol = protocol
        redialler._fetch = None
        redialler._make = lambda **more: Client.connect(address, protocol, **more)
        redialler._begin(first_delay, max_delay, jitter, give_up_after, seed, settings)
        return redialler

    @staticmethod
    def _check(first_delay: float, max_delay: float, jitter: float, give_up_after: float | None) -> None:
        for name, value in (("first_delay", first_delay), ("max_delay", max_delay), ("jitter", jitter)):
            check_number(name, value)
        if give_up_after is not None:
            check_number("give_up_after", give_up_after)
        if not 0 < first_delay <= MAX_SECONDS:
            raise ValueError(f"first_delay must be above 0 to {MAX_SECONDS:g} seconds, not {first_delay!r}")
        if not first_delay <= max_delay <= MAX_SECONDS:
            bound = f"first_delay ({first_delay:g}) to {MAX_SECONDS:g} seconds"
            raise ValueError(f"max_delay must be {bound}, not {max_delay!r}")
        if not 0 <= jitter <= 1:
            raise ValueError(f"jitter must be 0 to 1, not {jitter!r}")
        if give_up_after is not None and not give_up_after >= 0:
            raise ValueError(f"give_up_after must be at least 0 seconds, or None, not {give_up_after!r}")

    def _begin(
        self,
        first_delay: float,
        max_delay: float,
        jitter: float,
        give_up_after: float | None,
        seed: int | None,
        settings: dict[str, Any],
    ) -> None:
        if "resume" in settings:
            raise TypeError("resume is what a Redialler gives itself: leave it out")
        self._first_delay = first_delay
        self._max_delay = max_delay
        self._jitter = jitter
        self._give_up_after = give_up_after
        debugging: Debugging = settings.get("debugging") or Debugging()
        if seed is not None:
            debugging = debugging.replace(seed=seed)
        self._settings = settings | {"debugging": debugging}
        network = settings.get("network")
        self._now: Callable[[], float] = time.monotonic if network is None else lambda: network.now
        self._events: list[Event | Reconnecting] = []
        self._attempt = 0
        self._dial_at: float | None = None
        self._pending: Any = None  # a future
        self._connected_at: float | None = None
        self._lost_at = self._now()
        self._last: tuple[DisconnectReason, str | None] | None = None
        self._final: Disconnected | None = None
        self._over = False
        self._resume: Client[_P] | None = None  # the last client proper, while another stands in for it
        self._capture: Capture | None = None
        self._functions: dict[int, tuple[Any, Any]] = {}
        # What set_inputs was given, for the clients to come.
        self._inputs: dict[str, Any] | None = None
        more: dict[str, Any] = {}
        if self._fetch is not None:
            token: Any = self._settings.pop("first_token", None) or self._fetch()
            if hasattr(token, "__await__") and not (hasattr(token, "done") and token.done()):
                if inspect.iscoroutine(token):
                    token.close()
                raise TypeError("token must not return an awaitable here: use tickwire.aio.redialler")
            more["token"] = token.result() if hasattr(token, "done") else token
        capture = debugging.capture
        if capture is not None and not isinstance(capture, Capture):
            # One for all dials: each client would start the file again.
            self._capture = Capture(capture)
            self._settings["debugging"] = debugging.replace(capture=self._capture)
        try:
            self._client = self._make(**more, **self._settings)
        except BaseException:
            if self._capture is not None:
                self._capture.close()
            raise
        tuning: Tuning = settings.get("tuning") or Tuning()
        # Two can't have one port, unless the system picks it.
        self._holds_port = tuning.bind is not None and tuning.bind.port != 0
        if seed is None and network is not None:
            # Virtual time has no luck of its own, and each client has its own address.
            seed = hash_of(self._client.address)
        self._random = random.Random(seed)

    # --- what a client is --------------------------------------------------------------------------------

    @property
    def client(self) -> Client[_P]:
        """The current or last client; each attempt makes a new one."""
        return self._client

    @property
    def world(self) -> ClientWorld:
        """The current client's world; each attempt makes a new, empty one."""
        return self._client.world

    @property
    def protocol(self) -> Protocol[_P]:
        """What both sides share."""
        return self._protocol

    @property
    def network(self) -> SimulatedNetwork | None:
        """The simulated network it is on; None on a real one."""
        return self._client.network

    @property
    def attempt(self) -> int:
        """The attempts since the last lasting connection; 0 while it is up."""
        since = self._connected_at
        lasted = since is not None and self._now() - since >= self._max_delay
        return 0 if lasted and self.connected else self._attempt

    @property
    def connected(self) -> bool:
        """Whether the connection is up."""
        return self._client.connected

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called and any linger is over."""
        return self._client.closed

    @property
    def state(self) -> ClientState:
        """The state of the current connection."""
        return self._client.state

    @property
    def disconnect_reason(self) -> DisconnectReason | None:
        """Why it gave up; None before."""
        return self._client.disconnect_reason if self._over or self.closed else None

    @property
    def disconnect_detail(self) -> str | None:
        """Like :attr:`Disconnected.detail`; None before the end, and if no reason was given."""
        return self._client.disconnect_detail if self._over or self.closed else None

    @property
    def address(self) -> Address:
        """The current local address."""
        return (self._resume or self._client).address

    @property
    def server_address(self) -> Address:
        """The server that is being dialled, or was dialled last."""
        return (self._resume or self._client).server_address

    @property
    def slot(self) -> int | None:
        """Our client slot on the server, while connected."""
        return self._client.slot

    @property
    def counters(self) -> dict[str, int]:
        """All counters of the current connection."""
        return self._client.counters

    @property
    def has_news(self) -> bool:
        """Whether the next :meth:`receive` has anything new."""
        return bool(self._events) or self._client.has_news

    def fileno(self) -> int:
        """The current socket's file descriptor; it may change with each attempt."""
        return self._client.fileno()

    def tick(self) -> RediallerTick[_P]:
        """``with redialler.tick() as inbox:`` receives on entry and sends on exit."""
        return RediallerTick(self)

    def receive(self) -> Inbox[_P, _P | Event | Reconnecting, tuple[int, _P]]:
        """The first half of a tick: takes everything that arrived. Dials again when it is due."""
        self._poll()
        inbox = self._client.receive()
        if inbox.events or self._events:
            events, self._events = self._events, []
            told: list[Any] = inbox.events
            told[:] = events + [self._judge(event) for event in inbox.events]
        return inbox

    def flush(self) -> None:
        """The second half of a tick: sends everything queued."""
        self._client.flush()

    def pump(self) -> None:
        """Keeps the connection alive without taking messages, as :meth:`Server.pump`."""
        self._poll()
        self._client.pump()

    def step(self) -> float:
        """Between ticks, for event loops: as :meth:`Server.step`. It may replace the socket."""
        self._poll()
        wait = POLL_INTERVAL if self._resume is not None else self._client.step()
        if self._pending is not None:
            return min(wait, POLL_INTERVAL)
        if self._dial_at is not None:
            return min(wait, max(0.0, self._dial_at - self._now()))
        return wait

    @property
    def _moves_chunks(self) -> bool:
        return self._client._moves_chunks

    def send(
        self,
        message: _P,
        channel: int | str | None = None,
        *,
        key: int = 0,
        tag: int = 0,
        notify: bool = False,
    ) -> SendResult:
        """Like :meth:`Client.send`: false while the connection is not up."""
        return self._client.send(message, channel, key=key, tag=tag, notify=notify)

    def call(self, call: ServerCall[_A, Any], /, *args: _A.args, **kwargs: _A.kwargs) -> SendResult:
        """Like :meth:`Client.call`: false while the connection is not up."""
        return self._client.call(call, *args, **kwargs)

    def request(self, call: ServerCall[_A, _R], /, *args: _A.args, **kwargs: _A.kwargs) -> Request[_R]:
        """Like :meth:`Client.request`. It fails with its connection: repeat it when the next one is up."""
        return self._client.request(call, *args, **kwargs)

    def implement(self, call: ClientCall[_A, _R], function: Callable[_A, _R], /) -> None:
        """Like :meth:`Client.implement`, for the connections to come too."""
        self._client.implement(call, function)
        self._functions[id(call)] = call, function

    @property
    def clock(self) -> Clock:
        """The current client's estimate of the server's time; each attempt starts again."""
        return self._client.clock

    def send_input(self, input: object, /) -> range:  # noqa: A002 - as Client's
        """Like :meth:`Client.send_input`."""
        return self._client.send_input(input)

    def _send_input(self, input: _M, /) -> tuple[range, list[_M]]:  # noqa: A002 - as Client's
        return self._client._send_input(input)  # type: ignore[attr-defined, no-any-return]

    def _drawn_tick(self) -> float | None:
        return self._client._drawn_tick()  # type: ignore[attr-defined, no-any-return]

    @property
    def silence(self) -> float:
        """Like :attr:`Client.silence`."""
        return self._client.silence

    @property
    def latency(self) -> Latency:
        """Like :attr:`Client.latency`."""
        return self._client.latency

    @property
    def quality(self) -> int:
        """Like :attr:`Client.quality`."""
        return self._client.quality

    def set_seen(self, tick: float, /) -> None:
        """Like :meth:`Client.set_seen`."""
        self._client.set_seen(tick)

    def tick_of(self, ghost: object, /) -> int | None:
        """Like :meth:`Client.tick_of`."""
        return self._client.tick_of(ghost)

    def set_inputs(
        self, *, delay: int = 0, min_lead: float = 0.0, max_lead: float = 1.0, redundancy: int = 3
    ) -> None:
        """Like :meth:`Client.set_inputs`, for the connections to come too."""
        said: dict[str, Any] = {
            "delay": delay,
            "min_lead": min_lead,
            "max_lead": max_lead,
            "redundancy": redundancy,
        }
        self._client.set_inputs(**said)
        self._inputs = said

    def send_rows(
        self,
        class_: type,
        rows: Buffer,
        channel: int | str | None = None,
        *,
        arena: Buffer | None = None,
        key: int | Buffer = 0,
        tag: int | Buffer = 0,
        notify: bool = False,
    ) -> list[int]:
        """Like :meth:`Client.send_rows`."""
        return self._client.send_rows(class_, rows, channel, arena=arena, key=key, tag=tag, notify=notify)

    def send_payload(self, data: bytes, channel: int | str, *, tag: int) -> SendResult:
        """Like :meth:`Client.send_payload`."""
        return self._client.send_payload(data, channel, tag=tag)

    def send_chunk(
        self,
        data: Chunk | Buffer | str | PathLike[str],
        /,
        *,
        label: str = "",
        burst: bool = False,
        ask_first: bool = False,
    ) -> Transfer:
        """Like :meth:`Client.send_chunk`. A transfer ends with its connection; queue the chunk again when the
        next one is up."""
        return self._client.send_chunk(data, label=label, burst=burst, ask_first=ask_first)

    def incoming_chunks(self) -> list[IncomingChunk]:
        """Like :meth:`Client.incoming_chunks`."""
        return self._client.incoming_chunks()

    def set_budget(self, bytes_per_second: float, burst_bytes: float, *, adaptive: bool = True) -> None:
        """Like :meth:`Client.set_budget`, for the current connection."""
        self._client.set_budget(bytes_per_second, burst_bytes, adaptive=adaptive)

    def set_congestion(self, congestion: Congestion, /) -> None:
        """Like :meth:`Client.set_congestion`, for the current connection."""
        self._client.set_congestion(congestion)

    @property
    def stats(self) -> ConnectionStats:
        """Statistics of the current connection, or the last one's at its end."""
        return self._client.stats

    def close(self, *, linger: float = 0.0, reason: str | None = None, wait: bool = True) -> None:
        """Disconnects for good, as :meth:`Client.close`."""
        self._stop()
        try:
            self._client.close(linger=linger, reason=reason, wait=wait)
        finally:
            # One that lingers still captures; the file is written when it closes.
            if self._capture is not None and self._client.closed:
                self._capture.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        again = "" if self._dial_at is None else f", dials again, attempt {self._attempt}"
        return f"<Redialler of {self.server_address}, {self.state.name}{again}>"

    # --- dialling again ----------------------------------------------------------------------------------

    def _stop(self) -> None:
        self._dial_at = None
        self._over = True
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None

    def _judge(self, event: Event) -> Event | Reconnecting:
        """The event for the game in place of one of the current client."""
        now = self._now()
        if isinstance(event, Connected):
            self._connected_at = now
            log.debug("%r is connected", self)
        if not isinstance(event, Disconnected):
            return event
        if self._over or self.closed or event.reason not in AGAIN:
            self._stop()
            return event
        if self._connected_at is not None:
            self._lost_at = now
            if now - self._connected_at >= self._max_delay:
                self._attempt = 0
            self._connected_at = None
        self._final = event
        return self._schedule(event.reason, event.detail, None) or event

    def _schedule(
        self, reason: DisconnectReason, detail: str | None, error: Exception | None
    ) -> Reconnecting | None:
        """Plans the next dial; None when there is none any more."""
        delay = min(self._max_delay, self._first_delay * 2.0 ** min(self._attempt, MAX_DOUBLINGS))
        delay *= 1 - self._jitter * self._random.random()
        now = self._now()
        if self._is_too_late(now + delay):
            self._stop()
            return None
        self._attempt += 1
        self._dial_at = now + delay
        self._last = reason, detail
        log.info(
            "dialling %s again in %.1f s, attempt %d: %s", self.server_address, delay, self._attempt, reason
        )
        return Reconnecting(self._attempt, delay, reason, detail, error)

    def _is_too_late(self, now: float) -> bool:
        return self._give_up_after is not None and now > self._lost_at + self._give_up_after

    def _poll(self) -> None:
        """Dials when it is time and the token is there."""
        due = self._dial_at is not None and self._now() >= self._dial_at
        if self.closed or self._over or not (due or self._pending is not None):
            return
        self._dial_at = None
        if self._fetch is None:
            self._dial({})
            return
        try:
            token: Any = self._fetch() if self._pending is None else self._pending
            if hasattr(token, "__await__") and not hasattr(token, "done"):
                import asyncio  # slow, and loaded already by programs with coroutines

                token = asyncio.ensure_future(token)
            if hasattr(token, "done"):
                self._pending = token
                if not token.done():
                    if self._over:
                        self._stop()  # closed while the future was made
                    elif self._is_too_late(self._now()):
                        self._give_up()
                    return
                self._pending = None
                if token.cancelled():
                    # asyncio's cancellation is no Exception, and would look as if meant for the game's task.
                    raise RuntimeError("the future of a token was cancelled")
                token = token.result()
        except Exception as error:
            self._pending = None
            if not self._over:
                self._failed(error)
            return
        except BaseException:
            if self._pending is None:
                self._dial_at = self._now()  # a game that catches it goes on dialling
            raise
        if self._over:
            return  # closed while the token was made
        if token is None:
            self._give_up()
        else:
            self._dial({"token": token})

    def _dial(self, more: dict[str, Any]) -> None:
        old = self._client
        if self._holds_port and self._resume is None:
            old.close()
        try:
            new = self._make(**more, **self._settings, resume=self._resume or old)
        except BaseException as error:
            if old.closed:
                self._resume, self._client = old, self._stand_in()
            if not isinstance(error, Exception):
                self._dial_at = self._now()  # a game that catches it goes on dialling
                raise
            self._failed(error)
            return
        old.close()
        for call, function in self._functions.values():
            new.implement(call, function)
        if self._inputs is not None:
            new.set_inputs(**self._inputs)
        self._resume = None
        self._client = new

    def _stand_in(self) -> Client[_P]:
        """One to tick until the next dial, where the old one had to leave its port: in a network of its own,
        whose time stands still, it neither sends nor ends."""
        tuning: Tuning = self._settings.get("tuning") or Tuning()
        return Client.connect(
            "10.0.0.1:1",
            self._protocol,
            key=bytes(32),
            network=SimulatedNetwork(),
            tuning=Tuning(columns=tuning.columns),
            debugging=Debugging(strict=self._settings["debugging"].strict),
        )

    def _failed(self, error: Exception) -> None:
        """A dial that didn't come so far as to ask a server."""
        log.warning("no dial of %s: %s: %s", self.server_address, type(error).__name__, error)
        assert self._last is not None
        reconnecting = self._schedule(*self._last, error)
        if reconnecting is None:
            self._give_up()
        else:
            self._events.append(reconnecting)

    def _give_up(self) -> None:
        self._stop()
        if self._final is not None:
            self._events.append(self._final)


class RediallerTick(Generic[_P]):
    """Receives on entry and sends on exit, even if the body raises."""

    def __init__(self, redialler: Redialler[_P]) -> None:
        self._redialler = redialler

    def __enter__(self) -> Inbox[_P, _P | Event | Reconnecting, tuple[int, _P]]:
        try:
            return self._redialler.receive()
        except ClosedError:
            raise
        except BaseException:
            if not self._redialler.closed:
                self._redialler.flush()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._redialler.closed:
            self._redialler.flush()


def hash_of(address: Address) -> int:
    """The same in every process, as :func:`hash` is not."""
    return int.from_bytes(str(address).encode(), "big")
