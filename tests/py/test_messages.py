"""What Python users read when they made a mistake: every exception, word for word.

``mistakes/*.txt`` are the tables: Python that is wrong, and below it, behind ``!``, what it raises. Each
sentence names what was wrong, its value and its bound; where that doesn't say it yet, also what to do.
What players do, and mistakes that end well, raise nothing: behind ``=`` is what the last line is then.
"""

from __future__ import annotations

import ast
import asyncio
import enum
import re
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest
import tickwire as tw
from tickwire import aio, capture, errors, testing

TABLES = sorted((Path(__file__).parent / "mistakes").glob("*.txt"))


class Mistake(NamedTuple):
    """Wrong code and what it raises."""

    place: str
    code: str
    raised: str


def mistakes(path: Path) -> Iterator[Mistake]:
    """The blocks of a table: code, then a line ``! Class: text`` or ``= value``. Lines of ``# `` are for
    readers."""
    code: list[str] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.startswith(("! ", "= ")):
            yield Mistake(f"{path.name}:{number}", "\n".join(code), line.removeprefix("! "))
            code = []
        elif line and not line.startswith("# "):
            code.append(line)
    assert not code, f"{path.name} ends with code that raises nothing"


EVERY = [mistake for path in TABLES for mistake in mistakes(path)]


@tw.message
class Say:
    text: Annotated[str, tw.text(8)] = ""


@tw.message
class Move:
    x: Annotated[int, tw.ranged(0, 100)]
    aim: Annotated[float, tw.quantized(-1, 1, 1 / 256)]


@tw.message
class Stranger:
    """Not among the protocol's messages."""

    n: tw.u8


@tw.ghost(capacity=3)
class Tank:
    position: Annotated[tw.Vec2, tw.vec2(-100, 100, 1 / 256)] = tw.default()
    health: Annotated[int, tw.ranged(0, 100)] = 100
    name: Annotated[str, tw.text(8), tw.initial] = ""


@tw.ghost
class Foreign:
    """Not among the protocol's ghosts."""

    n: tw.u8


class Odd(tw.messages.Message):
    """With a ``serialize`` of its own."""

    max_bytes = 16
    n: int = 0

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.n = stream.bits(self.n, 1)


@tw.call(tw.to_server, timeout=2)
def buy(_caller: tw.ClientHandle, item: tw.u8) -> bool:
    assert item < 250
    return True


@tw.call(tw.to_client)
def ask() -> bool:
    return True


@tw.call(tw.to_all)
def shut() -> None: ...


@tw.call(tw.to_server)
def other(caller: tw.ClientHandle) -> None:
    """Not among the protocol's calls."""


class Scene:
    """What the tables' code may use; made when it is first named."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        channels = [
            tw.reliable_ordered("events", send_queue=2, max_message_bytes=64),
            tw.unreliable("state"),
            tw.latest("where", keys=8),
            tw.channels.payload("raw", max_message_bytes=4),
        ]
        self.channels = channels
        self.protocol = tw.Protocol(1, [Say, Move, Odd], channels)
        self.with_chunks = tw.Protocol(1, [Say], [tw.reliable_ordered(), tw.chunks()])

    def pair(
        self, protocol: tw.Protocol | None = None, *, strict: bool = False, **server_has: Any
    ) -> tuple[tw.Server, tw.Client, tw.ClientHandle]:
        """A server and a client that are connected, and the server's handle of the client."""
        settings: dict[str, Any] = {
            "protocol": protocol or self.protocol,
            "debugging": tw.testing.Debugging(strict=strict),
        }
        settings["network"] = self.network = testing.SimulatedNetwork()
        server = tw.Server("127.0.0.1:40000", **settings, **server_has)
        client = tw.Client.connect(server.address, **settings)
        testing.advance(self.network, server, client, seconds=0.2)
        return server, client, next(iter(server.clients))

    def server(self, **settings: Any) -> tw.Server:
        """A server that a client of :meth:`dial` reaches."""
        self.network = testing.SimulatedNetwork()
        return tw.Server("127.0.0.1:40000", self.protocol, network=self.network, **settings)

    def dial(self, **settings: Any) -> tw.Client:
        """Another client of the server that was made last."""
        settings = {"protocol": self.protocol, "network": self.network, **settings}
        return tw.Client.connect("127.0.0.1:40000", **settings)

    def worlds(self, *, strict: bool = False) -> tuple[tw.world.World, tw.world.ClientWorld, tw.ClientHandle]:
        """The worlds of a server and of its client, in which a Tank lives that is the client's."""
        protocol = tw.Protocol(1, [Say], ghosts=[Tank])
        self.server, self.client, handle = self.pair(protocol, strict=strict)
        self.server.world.spawn(Tank(name="Bob"), owner=handle)
        testing.advance(self.network, self.server, self.client, seconds=0.2)
        return self.server.world, self.client.world, handle

    def called(self) -> tuple[tw.Server, tw.Client]:
        """A server and a client that are connected, of a protocol with calls."""
        server, client, _ = self.pair(tw.Protocol(1, [Say], calls=[buy, ask, shut]))
        return server, client

    def dial_calls(self, **settings: Any) -> tw.Client:
        """A client of a protocol with calls that is not connected yet."""
        protocol = tw.Protocol(1, [Say], calls=[buy, ask, shut])
        return tw.Client.connect("10.0.0.1:5", protocol, network=testing.SimulatedNetwork(), **settings)

    def later(self, *endpoints_and_seconds: Any) -> None:
        """Lets these endpoints run for so long."""
        *endpoints, seconds = endpoints_and_seconds
        testing.advance(self.network, *endpoints, seconds=seconds)

    def alone(self, *, strict: bool = False) -> tw.Client:
        """A client that nobody answers."""
        network = testing.SimulatedNetwork()
        return tw.Client.connect(
            "127.0.0.1:40000", self.protocol, network=network, debugging=tw.testing.Debugging(strict=strict)
        )

    def gone(self, *, strict: bool = False) -> tuple[tw.Server, tw.ClientHandle]:
        """A server, and the handle of a client that left."""
        server, client, handle = self.pair(strict=strict)
        client.close()
        testing.advance(self.network, server, seconds=1)
        return server, handle

    def closed(self) -> tw.Server:
        """A server that was closed."""
        server = tw.Server("127.0.0.1:0", self.protocol)
        server.close()
        return server

    def ask(self, hook: Any) -> None:
        """Has a priority hook asked about one message of ``client``."""
        network = testing.SimulatedNetwork()
        server = tw.Server("127.0.0.1:40000", self.protocol, network=network)
        self.client = tw.Client.connect(
            server.address, self.protocol, network=network, tuning=tw.Tuning(priority=hook)
        )
        testing.advance(network, server, self.client, seconds=1)
        self.client.send(Say(), 1)
        self.client.flush()


def raised_by(mistake: Mistake, folder: Path) -> str:
    """What the code raises, as the tables write it; warnings too."""
    scene = Scene(folder)
    tools = (
        Annotated,
        Any,
        asyncio,
        enum,
        tw,
        aio,
        capture,
        testing,
        Say,
        Move,
        Stranger,
        Odd,
        Tank,
        Foreign,
        buy,
        ask,
        shut,
        other,
    )
    names = {tool.__name__.rpartition(".")[2]: tool for tool in tools}
    module = types.ModuleType("game")
    vars(module).update(names, tw=tw, scene=scene, protocol=scene.protocol, folder=folder)
    sys.modules["game"] = module
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if mistake.raised.startswith("= "):
                *before, last = ast.parse(mistake.code).body
                assert isinstance(last, ast.Expr), "the last line is to be a value"
                exec(compile(ast.Module(before, []), mistake.place, "exec"), vars(module))
                value = eval(compile(ast.Expression(last.value), mistake.place, "eval"), vars(module))
                return f"= {value!r}"
            exec(mistake.code, vars(module))
    except Exception as error:
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        text = f"{type(error).__name__}: {error}{notes}".replace(str(folder), "FOLDER")
        # What newer Pythons add to their own sentences.
        text = re.sub(r" and no __dict__ for setting new attributes$|\. Did you mean '\w+'\?$", "", text)
        return re.sub(r"client \d+ \(127[^)]*\)", "CLIENT", re.sub(r"(from 127.0.0.1):\d+", r"\1:PORT", text))
    finally:
        del sys.modules["game"]
    return "nothing"


@pytest.mark.parametrize("mistake", EVERY, ids=lambda mistake: mistake.place)
def test_the_mistake_raises_this(mistake: Mistake, tmp_path: Path) -> None:
    assert raised_by(mistake, tmp_path) == mistake.raised


def test_messages_are_of_one_form() -> None:
    for mistake in EVERY:
        if mistake.raised.startswith("= "):
            continue
        kind, _, text = mistake.raised.partition(": ")
        assert not re.search(r"\.$|\binvalid\b|\.\.=|error", text), mistake
        assert len(text) < 350, mistake
        # A KeyError is its key, like a dict's.
        assert " " in text or kind == "KeyError", mistake


def test_every_error_of_ours_is_in_a_table() -> None:
    raised = {mistake.raised.partition(":")[0] for mistake in EVERY}
    # The first takes a while, the second says why a connection failed; the others are bases.
    assert set(errors.__all__) - {"RoomTakenError", "WatchError", "TickwireError", "CallError"} <= raised


def test_no_mistake_is_there_twice() -> None:
    codes = [mistake.code for mistake in EVERY]
    assert len(codes) == len(set(codes)) > 300
