"""An argument of a wrong type is named: every one of the stub's callables and of those of the Python modules.

The signatures are read, so that no new argument is forgotten.
"""

from __future__ import annotations

import ast
import inspect
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest
import tickwire as tw
from public import EVERY_NAME
from tickwire import aio, testing

STUB = ast.parse(Path(tw.__file__).with_name("_core.pyi").read_text("utf-8"))


@tw.message
class Say:
    text: Annotated[str, tw.text(8)] = ""


@tw.message
class Spot:
    x: Annotated[int, tw.ranged(0, 100)] = 0


@tw.message
class Keys:
    x: tw.u8 = 0


@tw.ghost
class Tank:
    x: Annotated[int, tw.ranged(0, 100)] = 0
    plan: Annotated[int, tw.ranged(0, 100), tw.world.when("team")] = 0


@tw.call(tw.to_all)
def show() -> bool:
    return True


@tw.call(tw.to_server)
def hide(_caller: tw.ClientHandle) -> None: ...


PROTOCOL = tw.Protocol(
    1,
    [Say, Spot],
    [
        tw.reliable_ordered("events"),
        tw.latest("where", keys=8, retain=True),
        tw.channels.payload("raw", max_message_bytes=4),
        tw.chunks("files"),
    ],
    ghosts=[Tank],
    calls=[show, hide],
    inputs=Keys,
    tick_rate=60,
)
PEERS = tw.Protocol(1, [Say], [tw.reliable_ordered(), tw.chunks()], peers=True)


class Thing:
    """Of no use as an argument."""


class Place(NamedTuple):
    """A parameter."""

    owner: str
    function: str
    name: str
    annotation: str
    positional: bool
    needed: bool

    def __str__(self) -> str:
        return f"{self.owner}.{self.function}({self.name})".lstrip(".")


def parameters(node: ast.FunctionDef, owner: str) -> Iterator[Place]:
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    missing: list[Any] = [None] * (len(plain) - len(given.defaults))
    defaults = [*missing, *given.defaults, *given.kw_defaults]
    for one, default in zip([*plain, *given.kwonlyargs], defaults, strict=True):
        if one.arg not in {"self", "cls"}:
            note = ast.unparse(one.annotation) if one.annotation else "Any"
            yield Place(owner, node.name, one.arg, note, one in plain, default is None)


def stub_places() -> Iterator[Place]:
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef) and node.name in EVERY_NAME:
            yield from parameters(node, "")
        if isinstance(node, ast.ClassDef) and node.name in EVERY_NAME:
            for member in node.body:
                is_public = isinstance(member, ast.FunctionDef) and (
                    member.name == "__new__" or member.name[0] != "_"
                )
                if is_public and not any(
                    ast.unparse(each).endswith(".setter") for each in member.decorator_list
                ):
                    yield from parameters(member, node.name)


PLACES = list(dict.fromkeys(stub_places()))

TAKE_ANYTHING = {"object", "Any", "_T", "_D", "_T | None", "Callable[[], _T] | None"}

VALUES = {"Stream", "BitWriter", "BitMeasure"}
"""Classes whose values are fields: their errors name the field."""

YOJIMBOS = "serialize_"
"""Functions under yojimbo's names; the errors are those of the functions that they stand for."""

VALID_HERE: dict[str, Any] = {
    "ConnectToken.from_bytes(data)": bytes(2048),
    "SimulatedNetwork.add_nat(public)": "192.0.2.9",
    "SimulatedNetwork.restart_nat(public)": "192.0.2.9",
    "SimulatedNetwork.schedule(at)": 100.0,
    "Conditions.preset(name)": "4g",
    "Server.__new__(address)": "127.0.0.1:0",
    "Socket.__new__(address)": "127.0.0.1:0",
    "Protocol.channel_number(name)": "events",
    "Outages.__new__(fraction)": 0.1,
    "Socket.send_many(datagrams)": [],
    "Schema.__new__(fields)": [],
    "World.spawn_rows(count)": 1,
    "Server.implement(call)": hide,
    "World.set_priority(hook)": len,
    "World.set_condition_hook(name)": "team",
    "World.set_condition_hook(hook)": max,
    "World.set_condition(name)": "team",
    "World.set_condition(rows)": b"",
    "Random.choice(items)": [1],
    "Random.shuffle(items)": [1],
    "Random.fill(array)": bytearray(8),
    "Inputs.set_policy(missing)": "none",
}
PLAYING: dict[str, Any] = {
    "peer": None,
    "inputs": 8,
    "players": 2,
    "me": 0,
    "player": 1,
    "payload": b"",
    "input": 1,
    "save": bytes,
    "load": len,
    "state": None,
    "check": None,
}
"""Of games of rollback."""
VALID: dict[str, Any] = {
    "message": Say("hi"),
    "messages": [Say],
    "channels": [tw.unreliable()],
    "protocol": PROTOCOL,
    "servers": ["127.0.0.1:1"],
    "class_": Spot,
    "rows": b"\0\0",
    "conditions": tw.Conditions(),
    "congestion": tw.transfer.Congestion(),
    "low": 0,
    "high": 100,
    "min": 0,
    "max": 100,
    "resolution": 0.5,
    "count": 8,
    "fraction_bits": 2,
    "listen": "127.0.0.1:0",
    "inside": ["10.0.0.1"],
    "loss": 0.1,
    "length": 2.0,
    "to_bad": 0.1,
    "to_good": 0.1,
    "to": "127.0.0.1:2",
    "item": 1,
    "outgoing": True,
    "default": None,
    "object": None,
    "integer_bits": 8,
    "rule": tw.world.Always(),
    "places": [(0.0, 0.0)],
    "weights": b"",
    "ghost": Tank,
    "call": show,
    "function": len,
}
VALID_KINDS = {
    "bool": True,
    "int": 1,
    "float": 1.0,
    "bytes": b"\0",
    "Bytes": b"\0",
    "str": "a",
    "AddressLike": "127.0.0.1:1",
}


VALID_VALUE = {
    "int | None": 1,
    "int": 1,
    "str | None": "a",
    "str": "a",
    "_Bytes | None": b"a",
    "_Bytes": b"a",
    "_T": 1,
}


class Stage:
    """What calls are made on and with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.network, self.server, self.client = testing.connected_pair(PROTOCOL)
        self.handle = self.server.clients[0]
        network = tw.testing.SimulatedNetwork()
        self.peer = tw.peers.Peer.host(PEERS, network=network)
        self.other = tw.peers.Peer.join(self.peer.address, PEERS, network=network)
        while len(self.peer.players) < 2:
            network.advance(1 / 60)
            with self.peer.tick(), self.other.tick():
                pass
        self.token = tw.ConnectToken.generate(
            protocol=PROTOCOL, key=bytes(32), client_id=1, servers=["127.0.0.1:1"]
        )

    def owner(self, name: str) -> Any:
        """An object of a class, to call its methods."""
        made: dict[str, Callable[[], Any]] = {
            "Server": lambda: self.server,
            "Client": lambda: self.client,
            "Room": self.server.room,
            "Inbox": self.client.receive,
            "Address": lambda: tw.Address("127.0.0.1:1"),
            "Protocol": lambda: PROTOCOL,
            "Schema": lambda: tw.messages.Schema("Name", [("text", tw.text(8))]),
            "Capture": lambda: tw.capture.Capture(self.folder / "kept"),
            "Socket": lambda: tw.articles.Socket("127.0.0.1:0"),
            "VirtualConnection": lambda: tw.articles.VirtualConnection.connect(
                0.0, "127.0.0.1:1", protocol_id=1
            ),
            "SimulatedNetwork": lambda: self.network,
            "Proxy": lambda: tw.testing.Proxy("127.0.0.1:0", to="127.0.0.1:1"),
            "BitReader": lambda: tw.articles.BitReader(bytes(64)),
            "World": lambda: self.server.world,
            "ClientWorld": lambda: self.client.world,
            "Peer": lambda: self.peer,
            "Rollback": lambda: tw.rollback.Rollback(None, 8, players=2, me=0),
            "Spectator": lambda: tw.rollback.Spectator(None, 8, players=2),
            "SyncTest": lambda: tw.rollback.SyncTest(8),
            "Random": lambda: tw.lockstep.Random(1),
            "Inputs": lambda: self.server.inputs,
            "WorldView": lambda: self.client.world.view(),
            "GhostArrays": lambda: self.server.world.arrays(Tank),
        }
        return made.get(name, EVERY_NAME.get(name))()

    def valid(self, place: Place) -> Any:
        """A value that a parameter takes."""
        mine = {"client": self.handle, "token": self.token, "server": self.server, "clients": [self.handle]}
        if place.name == "protocol" and place.owner == "Peer":
            return PEERS
        if place.owner in {"Rollback", "Spectator", "SyncTest"} and place.name in PLAYING:
            return PLAYING[place.name]
        if place.name == "player":
            return self.peer.players[1]
        if place.name == "path":
            return self.folder / "new"
        if place.name in mine:
            return mine[place.name]
        if place.name == "key" and "bytes" in place.annotation:
            return bytes(32)
        if place.name == "channel":
            return "raw" if place.function == "send_payload" else 0
        if place.name == "class_" and "World" in place.owner:
            return Tank
        if str(place) == "World.set_owner(ghost)":
            return self.server.world.spawn(Tank)
        if str(place) in VALID_HERE:
            return VALID_HERE[str(place)]
        if place.name in VALID:
            return VALID[place.name]
        if place.name == "value":
            return (
                1.0
                if "Number" in place.annotation or "float" in place.annotation
                else VALID_VALUE[place.annotation]
            )
        return next(value for kind, value in VALID_KINDS.items() if kind in place.annotation)

    def call(self, place: Place, wrong: object) -> None:
        """Calls the function with an argument that is wrong; all others are right."""
        positional: list[Any] = []
        named: dict[str, Any] = {}
        # An overloaded function has them once in each form.
        seen: set[str] = set()
        for each in dict.fromkeys(each for each in PLACES if each[:2] == place[:2]):
            if each.name in seen or not (each.needed or each.name == place.name):
                continue
            seen.add(each.name)
            value = wrong if each.name == place.name else self.valid(each)
            if each.positional and each.needed:
                positional.append(value)
            else:
                named[each.name] = value
        if str(place).startswith("Rollback.__new__"):
            named = {"players": 2, "me": 0} | named
        if place.owner == "Stream":
            written(lambda stream: getattr(stream, place.function)(*positional, **named))
            return
        if not place.owner:
            function = EVERY_NAME[place.function]
        elif place.function == "__new__":
            function = EVERY_NAME[place.owner]
        else:
            class_ = EVERY_NAME[place.owner]
            static = isinstance(inspect.getattr_static(class_, place.function), staticmethod)
            function = getattr(class_ if static else self.owner(place.owner), place.function)
        function(*positional, **named)


def written(call: Callable[[tw.messages.Stream], object]) -> None:
    """Calls something on a stream, which there is only while an object is written."""

    class Own(tw.messages.Message):
        max_bytes = 64

        def serialize(self, stream: tw.messages.Stream) -> None:
            call(stream)

    tw.Protocol(1, [Own]).encode(Own())


def wrong_for(place: Place) -> Iterator[object]:
    note = place.annotation
    if note == "bool":
        yield "yes"
        return
    yield Thing()
    if not re.search(r"str|AddressLike|Like\[|\[_[IT]\]", note):
        yield "text"
    if re.match(r"str|AddressLike", note):
        yield 5
    if "int" in note and "float" not in note:
        yield 1.5
    if re.search(r"Sequence|Iterable", note):
        yield Say
    if "bytes" in note.lower():
        yield 5


def says(error: BaseException) -> str:
    return " ".join([str(error), *getattr(error, "__notes__", ())])


def is_named(place: Place, said: str) -> bool:
    """Whether the sentence is about this argument."""
    names = [place.name]
    if place.owner in VALUES:
        names.append(r"(stream|BitWriter|BitMeasure)\.\w+ =")
    if place.name == "class_":
        names.append("be sent as rows|is delivered as objects|class|one of the protocol's ghost classes")
    if place.owner == "World" and place.name == "ghost":
        names.append("the protocol's ghost classes")
    if place.name == "message":
        names.append("is not among the protocol's messages")
    if place.name in {"key", "tag"}:
        names.append(place.name)
    if YOJIMBOS in place.function:
        names.append("count|low|high|previous")
    return re.search(rf"\b({'|'.join(names)})(?!\w)", said) is not None


CASES = [
    place
    for place in PLACES
    if place.annotation not in TAKE_ANYTHING
    # The first is only asked when there is something to accept, and the others are read when they are sent.
    and str(place) not in {"AckEndpoint.receive(accept)", "Batch.__new__(rows)", "Batch.__new__(arena)"}
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", dict.fromkeys(CASES), ids=str)
def test_a_wrong_argument_is_named(place: Place, tmp_path: Path) -> None:
    for wrong in wrong_for(place):
        with pytest.raises((TypeError, ValueError, tw.errors.GhostError)) as raised:
            Stage(tmp_path).call(place, wrong)
        assert is_named(place, says(raised.value)), f"{wrong!r}: {says(raised.value)}"


FRONT = {
    "Server.__new__": {"address", "public_addresses"},
    "Client.__new__": {"token", "bind", "reconnect"},
    "Client.connect": {"address", "bind", "reconnect"},
    "ConnectToken.generate": {"servers", "internal_servers"},
    "Protocol.__new__": {"framing"},
    "Conditions.__new__": {"bursts", "outages"},
    "Server.close": set(),
    "Client.close": set(),
    "Server.disconnect": {"client"},
    "reliable_ordered": {"name"},
    "latest": {"name"},
}
"""What most games call, with arguments that only a note names: their sentence says what is meant."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "place",
    [
        each
        for each in CASES
        if (name := f"{each.owner}.{each.function}".lstrip(".")) in FRONT and each.name not in FRONT[name]
    ],
    ids=str,
)
def test_what_most_games_call_names_it_in_the_sentence_itself(place: Place, tmp_path: Path) -> None:
    for wrong in wrong_for(place):
        with pytest.raises((TypeError, ValueError, tw.errors.GhostError)) as raised:
            Stage(tmp_path).call(place, wrong)
        assert re.search(rf"\b{place.name}\b", str(raised.value)), f"{wrong!r}: {raised.value}"


# --- the Python modules ----------------------------------------------------------------------------------


def server() -> tw.Server:
    return tw.Server("127.0.0.1:0", PROTOCOL, network=tw.testing.SimulatedNetwork())


PYTHON: dict[str, Callable[[Any], object]] = {
    "endpoint of run": lambda wrong: tw.run(wrong),
    "rate of run": lambda wrong: tw.run(server(), wrong),
    "linger of run": lambda wrong: tw.run(server(), linger=wrong),
    "reason of run": lambda wrong: tw.run(server(), reason=wrong),
    "health of run": lambda wrong: tw.run(server(), health=wrong),
    "endpoint of aio.run": lambda wrong: aio.run(wrong),
    "health of aio.run": lambda wrong: aio.run(server(), health=wrong),
    "address of resolve": lambda wrong: tw.resolve(wrong),
    "account of client_id": lambda wrong: tw.tokens.client_id(wrong),
    "inbox of Handlers.dispatch": lambda wrong: tw.messages.Handlers().dispatch(wrong),
    **{
        f"{name} of Reconnect": lambda wrong, name=name: tw.connections.Reconnect(**{name: wrong})
        for name in ("token", "first_delay", "max_delay", "jitter", "give_up_after")
    },
    "reconnect of Client.connect": lambda wrong: tw.Client.connect("127.0.0.1:1", PROTOCOL, reconnect=wrong),
    "protocol of Simulation": lambda wrong: testing.Simulation(wrong),
    "seed of Simulation": lambda wrong: testing.Simulation(PROTOCOL, seed=wrong),
    "conditions of Simulation": lambda wrong: testing.Simulation(PROTOCOL, conditions=wrong),
    "rate of Simulation": lambda wrong: testing.Simulation(PROTOCOL, rate=wrong),
    "seconds of Simulation.run": lambda wrong: testing.Simulation(PROTOCOL).run(wrong),
    "seconds of Simulation.at": lambda wrong: testing.Simulation(PROTOCOL).at(wrong, print),
    "action of Simulation.at": lambda wrong: testing.Simulation(PROTOCOL).at(1, wrong),
    "network of advance": lambda wrong: testing.advance(wrong, seconds=1),
    "seconds of advance": lambda wrong: testing.advance(tw.testing.SimulatedNetwork(), seconds=wrong),
    "rate of advance": lambda wrong: testing.advance(tw.testing.SimulatedNetwork(), seconds=1, rate=wrong),
    "protocol of connected_pair": lambda wrong: testing.connected_pair(wrong),
    "conditions of connected_pair": lambda wrong: testing.connected_pair(PROTOCOL, conditions=wrong),
    "seed of connected_pair": lambda wrong: testing.connected_pair(PROTOCOL, seed=wrong),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", PYTHON)
@pytest.mark.parametrize("wrong", [Thing(), [], uuid.UUID], ids=["thing", "list", "class"])
def test_a_wrong_argument_of_the_python_modules_is_named(what: str, wrong: object) -> None:
    if callable(wrong) and what in {"token of Reconnect", "action of Simulation.at"}:
        return
    with pytest.raises((TypeError, ValueError, tw.errors.GhostError)) as raised:
        PYTHON[what](wrong)
    assert re.search(rf"\b{what.split()[0]}\b", says(raised.value)), says(raised.value)
