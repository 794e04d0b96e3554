"""Contents that clients ask for by name or by hash: a server's catalogue, and a client's pulls of it.

``docs/chunks.md`` has an example. Requests and answers are the library's own messages, which a protocol
with ``tickwire.chunks(pulls=True)`` has besides the game's; the contents are chunks.
"""

from __future__ import annotations

import dataclasses
import enum
import logging
import math
import time
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from tickwire._checks import check_number, check_within
from tickwire._core import (
    Chunk,
    Client,
    ClientHandle,
    Disconnected,
    Inbox,
    IncomingChunk,
    ReceivedChunk,
    Server,
    Transfer,
    data,
    text,
)
from tickwire._fields import u8, u16
from tickwire._message import message
from tickwire._redial import Redialler
from tickwire.errors import ChannelFullError, ClosedError, NotConnectedError, StaleClientError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Catalogue", "Pull", "PullError", "PullHook", "Puller"]

CHANNEL = "tickwire.pulls"
"""What the channel is called that the native module adds to such a protocol."""

MAX_NAME_BYTES = 64
"""As a chunk's label, in which the name is."""
HASH_BYTES = 32
MAX_DETAIL_BYTES = 200
MAX_NAMES = 4096

MAX_ASKED = 8
"""Pulls that our client has at a server at once; the others wait at the client."""
MAX_SERVED = 16
"""Pulls that a server has of one client at once. Above what a client asks for, as a client knows that a chunk
is whole before the server does; there are four such chunks at most."""
MAX_WAITING = 1024
"""Pulls of a client that aren't over."""
MAX_REQUESTS = 64
"""Requests and cancels of one client that a server looks at in a tick: four times what ours has under way."""

# How the sender's error begins when its file can't be read any more. It names the file.
_CANT_READ = "can't read "

log = logging.getLogger("tickwire")

PullHook: TypeAlias = Callable[[ClientHandle, str], "bool | str"]
"""Whether a client may have what is offered under this name: True, or False, or why not, for the player."""


class PullError(enum.Enum):
    """Why a pull failed. ``str(error)`` is a sentence."""

    UNKNOWN = "the server offers nothing of this name or hash"
    REFUSED = "the server offers it, but not to this client"
    TOO_MANY = "too many pulls wait: take some first"
    FAILED = "the transfer failed"
    UNANSWERED = "the server did not answer in time: perhaps it has no Catalogue"
    CANCELLED = "it was cancelled here"
    DISCONNECTED = "the connection ended"

    def __str__(self) -> str:
        return self.value


# On the wire: none, for contents on their way, and the errors that a server reports.
_COMING = 0
_TOLD = (None, PullError.UNKNOWN, PullError.REFUSED, PullError.TOO_MANY, PullError.FAILED)


@message(channel=CHANNEL)
class PullRequest:
    """From a client: it wants what has this hash or, if that is empty, this name."""

    number: u16
    name: Annotated[str, text(MAX_NAME_BYTES)]
    hash: Annotated[bytes, data(HASH_BYTES)]


@message(channel=CHANNEL)
class PullCancel:
    """From a client: it doesn't want it any more."""

    number: u16


@message(channel=CHANNEL)
class PullAnswer:
    """From a server: it comes, or why it doesn't."""

    number: u16
    verdict: u8
    hash: Annotated[bytes, data(HASH_BYTES)]
    detail: Annotated[str, text(MAX_DETAIL_BYTES)]


MESSAGES = [PullRequest, PullCancel, PullAnswer]
"""What the native module adds to such a protocol."""


def _taken(inbox: Inbox[Any, Any, Any]) -> list[Any]:
    """The library's own messages of an inbox, once."""
    messages = list(inbox._pulls)
    inbox._pulls.clear()
    return messages


def _check_protocol(endpoint: Any) -> None:
    if PullRequest not in endpoint.protocol.messages:
        raise ValueError("the protocol has no pulls: give its channels tickwire.chunks(pulls=True)")


def _check_inbox(inbox: object) -> None:
    if not isinstance(inbox, Inbox):
        raise TypeError(f"inbox must be an Inbox, not {type(inbox).__name__}")


def _checked(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, not {type(name).__name__}")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError(f"name must be valid Unicode, not {name!r}") from None
    if not 1 <= size <= MAX_NAME_BYTES:
        raise ValueError(f"name must be 1 to {MAX_NAME_BYTES} bytes of UTF-8, not {size}")
    if not name.isprintable():
        raise ValueError(f"name must be printable characters, not {name!r}")
    if size == 2 * HASH_BYTES and not name.strip("0123456789abcdef"):
        raise ValueError(f"name must not look like a hash, as {name!r} does: give bytes for one")
    return name


def _cut(text: str, size: int) -> str:
    # A text of a message has no NUL.
    return text.replace("\0", " ").encode(errors="replace")[:size].decode(errors="ignore")


def _label(request: PullRequest) -> str:
    """The label of a request's chunk, different for each request. Chunks and answers overtake each
    other, so only its label tells a late chunk of a cancelled pull from that of the next pull.
    """
    return _cut(f"{request.number}:{request.hash.hex() or request.name}", MAX_NAME_BYTES)


class Catalogue:
    """What a server's clients may pull, by name or by hash. Nothing else is reachable: a name is looked up
    here and never in a file system.

    ::

        catalogue = tw.transfer.Catalogue(server)
        catalogue.offer("maps/forest.bin", "assets/forest.bin")

        with server.tick() as inbox:
            catalogue.serve(inbox)  # in each tick
            ...

    A client has 16 pulls here at most, and 64 of its requests are looked at in a tick. Those beyond are
    counted and not answered; :class:`Puller` makes none.

    Args:
        server: whose protocol has ``chunks(pulls=True)``.
        allow: asked for each pull with the client and the name; False, or a sentence for the player, refuses
            it. None: all may have all. What it raises leaves :meth:`serve`, after all other requests.
        max_names: how many names there may be.

    Raises:
        TypeError, ValueError: the protocol has no pulls, or an argument is wrong: the error names it, its
            value and its bound.
    """

    def __init__(
        self, server: Server[Any], *, allow: PullHook | None = None, max_names: int = MAX_NAMES
    ) -> None:
        if not isinstance(server, Server):
            raise TypeError(f"server must be a Server, not {type(server).__name__}")
        _check_protocol(server)
        if allow is not None and not callable(allow):
            raise TypeError(f"allow must be callable, or None, not {type(allow).__name__}")
        check_within("max_names", max_names, 1, 1_000_000, int)
        self._server = server
        self._allow = allow
        self._max_names = max_names
        self._by_name: dict[str, Chunk] = {}
        self._by_hash: dict[bytes, dict[str, None]] = {}
        self._active: dict[ClientHandle, dict[int, Transfer]] = {}
        self._counters: dict[str, int] = dict.fromkeys(
            ("sent", "unknown", "refused", "too_many", "failed", "cancelled", "dropped", "unanswered"), 0
        )

    def offer(self, name: str, content: Chunk | Buffer | str | PathLike[str], /) -> Chunk:
        """Offers bytes or a file under a name, in place of what had it. It is read once, here, for its hash:
        see :class:`Chunk`, which is returned. Pulls that are under way go on.

        Raises:
            OSError: the file can't be read; errno says why.
            ValueError: the name is empty, above 64 bytes or not printable; or there are ``max_names``.
        """
        if _checked(name) not in self._by_name and len(self._by_name) >= self._max_names:
            raise ValueError(f"the catalogue has max_names ({self._max_names}) names: withdraw some first")
        chunk = content if isinstance(content, Chunk) else Chunk(content)
        self.withdraw(name)
        self._by_name[name] = chunk
        self._by_hash.setdefault(chunk.hash, {})[name] = None
        return chunk

    def withdraw(self, name: str, /) -> bool:
        """Stops offering it; pulls that are under way go on. False when there is no such name."""
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        chunk = self._by_name.pop(name, None)
        if chunk is None:
            return False
        names = self._by_hash[chunk.hash]
        del names[name]
        if not names:
            del self._by_hash[chunk.hash]
        return True

    @property
    def names(self) -> list[str]:
        """The names on offer."""
        return list(self._by_name)

    @property
    def counters(self) -> dict[str, int]:
        """Pulls since the start by what became of them: ``sent``, ``unknown``, ``refused``, ``too_many``,
        ``failed``, ``cancelled``; requests beyond a tick's bound and other nonsense as ``dropped``; and
        answers for which the client left no room as ``unanswered``."""
        return dict(self._counters)

    def transfers(self, client: ClientHandle, /) -> list[Transfer]:
        """The pulls of a client that are under way."""
        if not isinstance(client, ClientHandle):
            raise TypeError(f"client must be a ClientHandle, not {type(client).__name__}")
        return [transfer for transfer in self._active.get(client, {}).values() if not transfer.over]

    def serve(self, inbox: Inbox[Any, Any, Any], /) -> None:
        """Answers the clients' requests that came with an inbox. Call it in each tick.

        Raises:
            What the ``allow`` hook raised; that pull is refused then.
        """
        _check_inbox(inbox)
        raised: BaseException | None = None
        looked_at: dict[ClientHandle, int] = {}
        for client, request in _taken(inbox):
            looked_at[client] = looked_at.get(client, 0) + 1
            if looked_at[client] > MAX_REQUESTS or type(request) is PullAnswer:
                self._counters["dropped"] += 1
            elif type(request) is PullCancel:
                self._cancel(client, request.number)
            else:
                try:
                    self._answer(client, request)
                except BaseException as error:
                    raised = raised or error
        for client, active in list(self._active.items()):
            self._look_after(client, active)
        for event in inbox.events:
            if isinstance(event, Disconnected) and event.client is not None:
                self._active.pop(event.client, None)
        if raised is not None:
            raise raised

    def _answer(self, client: ClientHandle, request: PullRequest) -> None:
        active = self._active.get(client, {})
        number = request.number
        if number in active or (request.hash and len(request.hash) != HASH_BYTES):
            self._counters["dropped"] += 1
            return
        if len(active) >= MAX_SERVED:
            self._refuse(client, number, PullError.TOO_MANY)
            return
        names = list(self._by_hash.get(request.hash, ())) if request.hash else [request.name]
        chunk = self._by_name.get(names[0]) if names else None
        if chunk is None:
            self._refuse(client, number, PullError.UNKNOWN)
            return
        try:
            allowed = self._ask(client, names)
        except BaseException:
            self._refuse(client, number, PullError.REFUSED)
            raise
        if allowed is not True:
            self._refuse(client, number, PullError.REFUSED, allowed or "")
            return
        # The hook may have withdrawn it, or sent away the client: we have the chunk; its end is below.
        if not self._tell(client, PullAnswer(number, _COMING, chunk.hash, "")):
            return
        label = _label(request)
        try:
            transfer = self._server.send_chunk(client, chunk, label=label, ask_first=True)
        except StaleClientError:
            return
        except ChannelFullError as error:
            self._refuse(client, number, PullError.FAILED, str(error))
            return
        self._active.setdefault(client, {})[number] = transfer

    def _ask(self, client: ClientHandle, names: list[str]) -> Any:
        """Whether the client may have the content with these names: one of them is enough."""
        if self._allow is None:
            return True
        answer: Any = False
        for name in names[:MAX_SERVED]:
            answer = self._allow(client, name)
            if not isinstance(answer, bool | str):
                raise TypeError(f"the allow hook must return a bool or a str, not {type(answer).__name__}")
            if answer is True:
                break
        return answer

    def _cancel(self, client: ClientHandle, number: int) -> None:
        transfer = self._active.get(client, {}).pop(number, None)
        if transfer is not None:
            self._counters["sent" if transfer.done else "cancelled"] += 1
            transfer.cancel()

    def _look_after(self, client: ClientHandle, active: dict[int, Transfer]) -> None:
        for number, transfer in list(active.items()):
            if transfer.done:
                self._counters["sent"] += 1
            elif transfer.over:
                self._refuse(client, number, PullError.FAILED, self._why(transfer))
            else:
                continue
            del active[number]
        if not active:
            del self._active[client]

    def _why(self, transfer: Transfer) -> str:
        """Why a transfer failed, in words for the client: file paths only go to the log."""
        error = transfer.error or ""
        if not error.startswith(_CANT_READ):
            return error
        log.warning("%r: %s", transfer.label, error)
        return "the server can't read it any more"

    def _refuse(self, client: ClientHandle, number: int, error: PullError, detail: str = "") -> None:
        self._counters[error.name.lower()] += 1
        self._tell(client, PullAnswer(number, _TOLD.index(error), b"", _cut(detail, MAX_DETAIL_BYTES)))

    def _tell(self, client: ClientHandle, answer: PullAnswer) -> bool:
        try:
            sent = bool(self._server.send(client, answer))
        except (StaleClientError, ChannelFullError):  # of a server that is strict
            sent = False
        if not sent:
            self._counters["unanswered"] += 1
        return sent

    def __repr__(self) -> str:
        return f"<Catalogue of {len(self._by_name)} names>"


@dataclasses.dataclass(eq=False, slots=True)
class _State:
    """The state of a pull at its puller."""

    name: str | None
    hash: bytes | None
    by_hash: bool
    key: str
    """The name, or the hash in hex digits."""
    number: int | None = None
    """Of the request, once it was sent."""
    label: str = ""
    """Of the chunk that comes for that."""
    is_coming: bool = False
    """The server has said so."""
    failure: str | None = None
    """Why it failed, as our side knows; the server is to say so."""
    waits_since: float | None = None
    """The first tick in which the server might have answered, or might have told the failure."""
    incoming: IncomingChunk | None = None
    chunk: ReceivedChunk | None = None
    error: PullError | None = None
    detail: str | None = None
    paused: bool = False
    pull: Pull = dataclasses.field(init=False)

    @property
    def is_over(self) -> bool:
        return self.chunk is not None or self.error is not None


class Pull:
    """Something that a client asked a server for. Its attributes change with :meth:`Puller.take`."""

    def __init__(self, state: _State, cancel: Callable[[_State], bool]) -> None:
        self._state = state
        self._cancel = cancel

    @property
    def name(self) -> str | None:
        """The requested name; None if it was requested by hash."""
        return self._state.name

    @property
    def hash(self) -> bytes | None:
        """The SHA-256 of the content, 32 bytes; None until the server has announced it."""
        return self._state.hash

    @property
    def size(self) -> int | None:
        """Bytes of the content; None until they are known."""
        known = self._state.chunk or self._state.incoming
        return None if known is None else known.size

    @property
    def chunk(self) -> ReceivedChunk | None:
        """The content, once it is done: whole and verified."""
        return self._state.chunk

    @property
    def done(self) -> bool:
        """Whether the content is here."""
        return self._state.chunk is not None

    @property
    def error(self) -> PullError | None:
        """Why it failed; None while it is under way and when it is done."""
        return self._state.error

    @property
    def detail(self) -> str | None:
        """More about the error: the ``allow`` hook's sentence, or why the transfer failed."""
        return self._state.detail

    @property
    def over(self) -> bool:
        """Whether it is done or failed."""
        return self.done or self._state.error is not None

    @property
    def fraction(self) -> float:
        """The share that has arrived, 0 to 1."""
        return 1.0 if self.done else 0.0 if self._state.incoming is None else self._state.incoming.fraction

    @property
    def bytes_done(self) -> int:
        """Bytes that have arrived."""
        if self._state.chunk is not None:
            return self._state.chunk.size
        return 0 if self._state.incoming is None else self._state.incoming.bytes_done

    @property
    def rate(self) -> float:
        """Bytes a second, over about the last second."""
        return 0.0 if self._state.incoming is None or self.over else self._state.incoming.rate

    @property
    def time_left(self) -> float | None:
        """Seconds until it is done at this rate; None while the rate is 0."""
        return None if self._state.incoming is None or self.over else self._state.incoming.time_left

    @property
    def paused(self) -> bool:
        """Whether it is paused, by :meth:`pause`."""
        return self._state.paused and not self.over

    def pause(self) -> bool:
        """Stops it until :meth:`resume`, even before its first byte. Returns False if it is over."""
        self._state.paused = not self.over
        if self._state.incoming is not None and self._state.paused:
            self._state.incoming.pause()
        return self._state.paused

    def resume(self) -> bool:
        """Continues with the missing part. Returns False if it is over."""
        self._state.paused = False
        if self._state.incoming is not None and not self.over:
            self._state.incoming.resume()
        return not self.over

    def cancel(self) -> bool:
        """Ends it for good. Returns False if it is over."""
        return self._cancel(self._state)

    def __repr__(self) -> str:
        how = (
            "done"
            if self.done
            else f"{self.fraction:.0%}"
            if self._state.error is None
            else self._state.error.name
        )
        return f"<Pull {self._state.key!r}: {how}>"


class Puller:
    """A client's pulls of its server's :class:`Catalogue`.

    ::

        puller = tw.transfer.Puller(client)
        forest = puller.pull("maps/forest.bin")

        with client.tick() as inbox:
            for pull in puller.take(inbox):  # in each tick
                print(pull.name, pull.error or "is here")
            draw_bar(forest.fraction)

    It asks for eight pulls at once, and for the others in turn. Contents in the client's
    ``chunk_directory`` aren't sent again. With a :class:`Redialler`, pulls that aren't over are asked for
    again after each reconnection.

    Args:
        client: its protocol must have ``chunks(pulls=True)``.
        timeout: seconds (of the network's time on a simulated one) after which an unanswered pull fails
            with :attr:`PullError.UNANSWERED`, and so do all others if the server has answered none in this
            connection. Answered pulls may take any time. None: never.

    Raises:
        TypeError, ValueError: the protocol has no pulls, or an argument is wrong: the error names it, its
            value and its bound.
    """

    def __init__(self, client: Client[Any] | Redialler[Any], *, timeout: float | None = 10.0) -> None:
        if not isinstance(client, Client | Redialler):
            raise TypeError(f"client must be a Client or a Redialler, not {type(client).__name__}")
        _check_protocol(client)
        if timeout is not None:
            check_number("timeout", timeout)
            if not 0 < timeout < math.inf:
                raise ValueError(f"timeout must be above 0 seconds and finite, or None, not {timeout!r}")
        self._client = client
        self._timeout = timeout
        network = client.network
        self._now: Callable[[], float] = time.monotonic if network is None else lambda: network.now
        self._has_answered = False
        """Whether the server has, in this connection."""
        self._open: dict[str, _State] = {}  # by key
        self._asked: dict[int, _State] = {}  # those that count at the server, as far as we know
        # Numbers for whose cancel there was no room. MAX_ASKED at most: while there are any, we ask for
        # nothing.
        self._to_cancel: dict[int, None] = {}
        # By label, pulls for which something may still arrive: also cancelled or failed ones.
        self._labels: dict[str, _State] = {}
        self._ended: list[Pull] = []
        self._number = 0
        self._is_over = False

    def pull(self, what: str | bytes, /) -> Pull:
        """Asks for content by name (``str``) or by SHA-256 (``bytes``), now or when the connection is up.
        If the same pull is running, returns that one. With 1,024 running, the pull fails at once with
        :attr:`PullError.TOO_MANY`.

        Raises:
            TypeError, ValueError: it is neither a name of 1 to 64 printable bytes nor a hash of 32.
        """
        if isinstance(what, bytes):
            if len(what) != HASH_BYTES:
                raise ValueError(f"a hash must be {HASH_BYTES} bytes, not {len(what)}")
            pull = _State(None, what, True, what.hex())
        elif not isinstance(what, str):
            kind = type(what).__name__
            raise TypeError(f"what must be a name (str) or a hash ({HASH_BYTES} bytes), not {kind}")
        else:
            pull = _State(_checked(what), None, False, what)
        if (same := self._open.get(pull.key)) is not None:
            return same.pull
        pull.pull = Pull(pull, self._cancel)
        is_over = self._is_over or self._client.closed
        if is_over or len(self._open) >= MAX_WAITING:
            pull.error = PullError.DISCONNECTED if is_over else PullError.TOO_MANY
            self._ended.append(pull.pull)
            del self._ended[:-MAX_WAITING]
            return pull.pull
        self._open[pull.key] = pull
        self._ask()
        return pull.pull

    @property
    def open(self) -> list[Pull]:
        """The pulls that aren't over."""
        return [pull.pull for pull in self._open.values()]

    def take(self, inbox: Inbox[Any, Any, Any], /) -> list[Pull]:
        """Takes everything that belongs to pulls out of ``inbox.chunks`` and ``inbox.chunk_failures``, and
        returns the pulls that are now over, done or failed. Call it in each tick.
        """
        _check_inbox(inbox)
        for answer in _taken(inbox):
            if type(answer) is PullAnswer:
                self._answered(answer)
        if self._labels:
            self._take_chunks(inbox)
        for event in inbox.events:
            if isinstance(event, Disconnected):
                self._is_over = True
                self._lose(PullError.DISCONNECTED)
            elif not self._client.connected:
                self._lose(None)
        self._ask()
        if self._asked and self._timeout is not None:
            self._expire(self._now() - self._timeout)
        if self._open:
            self._look()
        ended, self._ended = self._ended, []
        return ended

    def _ask(self) -> None:
        """Asks for as many of those that wait as may be asked for at once."""
        if not self._client.connected or not self._send_cancels():
            return
        for pull in list(self._open.values()):
            if len(self._asked) >= MAX_ASKED:
                return
            if pull.number is not None:
                continue
            while self._number in self._asked:
                self._number = (self._number + 1) % 65_536
            by_hash = (pull.hash or b"") if pull.by_hash else b""
            request = PullRequest(self._number, pull.name or "", by_hash)
            if not self._send(request):
                return
            pull.number, pull.label = request.number, _label(request)
            self._asked[pull.number] = self._labels[pull.label] = pull
            self._forget()
            self._number = (self._number + 1) % 65_536

    def _expire(self, before: float) -> None:
        """Ends those that wait since ``before`` for an answer."""
        late: list[_State] = []
        for pull in self._asked.values():
            if pull.is_coming and pull.failure is None:
                continue
            if pull.waits_since is None:
                pull.waits_since = self._now()
            elif pull.waits_since <= before:
                late.append(pull)
        if late and not self._has_answered:
            late = [*self._asked.values(), *(pull for pull in self._open.values() if pull.number is None)]
        for pull in late:
            self._free(pull)
            if pull.is_over:
                continue
            if pull.failure is not None:
                self._end(pull, PullError.FAILED, pull.failure)
                continue
            if pull.number is not None:
                self._to_cancel[pull.number] = None
            self._end(pull, PullError.UNANSWERED, None)

    def _forget(self) -> None:
        """Forgets the oldest of those that are over and of which nothing came."""
        over = len(self._labels) - MAX_WAITING
        if over > 0:
            for label in [label for label, pull in self._labels.items() if pull.is_over][:over]:
                del self._labels[label]

    def _send_cancels(self) -> bool:
        """False when there is no room for all of them."""
        for number in list(self._to_cancel):
            if not self._send(PullCancel(number)):
                return False
            del self._to_cancel[number]
        return True

    def _send(self, what: PullRequest | PullCancel) -> bool:
        try:
            return bool(self._client.send(what))
        except (NotConnectedError, ChannelFullError, ClosedError):  # of a client that is strict, or closed
            return False

    def _answered(self, answer: PullAnswer) -> None:
        self._has_answered = True
        pull = self._asked.get(answer.number)
        if pull is None or answer.verdict >= len(_TOLD):
            return
        if answer.verdict == _COMING:
            pull.is_coming = True
            if len(answer.hash) == HASH_BYTES and not pull.by_hash:
                pull.hash = answer.hash
        elif not pull.is_coming:
            self._labels.pop(pull.label, None)
        if pull.is_over:  # cancelled, which the server has read by now, or will
            self._free(pull)
        elif answer.verdict != _COMING:
            self._free(pull)
            self._end(pull, _TOLD[answer.verdict], answer.detail or None)

    def _take_chunks(self, inbox: Inbox[Any, Any, Any]) -> None:
        chunks = inbox.chunks
        if chunks:
            chunks[:] = [chunk for chunk in chunks if not self._is_ours(chunk)]
        failures = inbox.chunk_failures
        if failures:
            # The server reports why one failed, because it knows which chunk belongs to which request.
            rest: list[Any] = []
            for label, error in failures:
                if (pull := self._labels.pop(label, None)) is None:
                    rest.append((label, error))
                else:
                    pull.failure, pull.waits_since = error, None
            failures[:] = rest

    def _is_ours(self, chunk: ReceivedChunk) -> bool:
        pull = self._labels.pop(chunk.label, None)
        if pull is None:
            return False
        self._free(pull)
        if pull.is_over:
            pass
        elif pull.hash is None or pull.hash == chunk.hash:
            pull.hash = chunk.hash
            self._end(pull, None, None, chunk)
        else:
            self._end(pull, PullError.FAILED, "the server sent another content")
        return True

    def _free(self, pull: _State) -> None:
        """It doesn't count at the server any more."""
        if pull.number is not None:
            self._asked.pop(pull.number, None)

    def _end(
        self, pull: _State, error: PullError | None, detail: str | None, chunk: ReceivedChunk | None = None
    ) -> None:
        pull.error, pull.detail, pull.chunk = error, detail, chunk
        pull.incoming = None
        self._open.pop(pull.key, None)
        self._ended.append(pull.pull)

    def _lose(self, error: PullError | None) -> None:
        """The connection is gone: with an error for good, else for now."""
        self._asked.clear()
        self._labels.clear()
        self._to_cancel.clear()
        self._has_answered = False
        for pull in list(self._open.values()):
            pull.incoming, pull.is_coming, pull.number = None, False, None
            pull.failure, pull.waits_since = None, None
            if not pull.by_hash:
                pull.hash = None  # the next server may offer another content
            if error is not None:
                self._end(pull, error, None)

    def _look(self) -> None:
        """Notes how far each is."""
        for incoming in self._client.incoming_chunks():
            pull = self._labels.get(incoming.label)
            if pull is not None and not pull.is_over and (pull.hash is None or pull.hash == incoming.hash):
                pull.incoming = incoming
                if pull.paused and not incoming.paused:
                    incoming.pause()

    def _cancel(self, pull: _State) -> bool:
        if pull.is_over:
            return False
        if pull.number is not None:
            # The server withdraws it, and knows why. Until it has answered it counts there, as far as we
            # know.
            self._to_cancel[pull.number] = None
            self._send_cancels()
            if pull.is_coming:
                self._free(pull)
        self._end(pull, PullError.CANCELLED, None)
        return True

    def __repr__(self) -> str:
        return f"<Puller of {len(self._open)} open pulls>"
