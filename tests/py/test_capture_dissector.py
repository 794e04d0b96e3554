"""The dissector says of a packet what the native code says of it.

Its reader is Lua that needs no Wireshark, so all of it runs here: over the pinned packets that bind the
native reader, and over packets that endpoints have just sent. Where tshark is installed, that shows them too.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import tickwire as tw
from lupa import lua52
from tickwire.capture import dissector, open_capture, read_capture, read_keys
from tickwire.capture._description import protocol_table
from tickwire.capture._keys import opener
from tickwire.capture._lua_source import lua
from tickwire.testing import Conditions, advance

ROOT = Path(__file__).parents[2]
VECTORS = json.loads((ROOT / "tests/vectors/native.json").read_text("utf-8"))
TSHARK = shutil.which("tshark")

Node = dict[str, Any]


class Weapon(enum.Enum):
    SWORD = 3
    BOW = 7
    STAFF = 20


class Flags(enum.Flag):
    JUMPS = 1
    SHOOTS = 2
    HIDES = 4


@tw.message
class Inner:
    slot: tw.u8
    name: Annotated[str, tw.text(10)]


@tw.message
class Outer:
    on: bool


@tw.message
class Everything:
    flag: bool
    small: Annotated[int, tw.ranged(-5, 90)]
    one: Annotated[int, tw.ranged(4, 4)]
    wide: Annotated[int, tw.bits(64)]
    deep: Annotated[int, tw.ranged(-(1 << 100), 1 << 100)]
    huge: tw.u128
    single: tw.f32
    twice: tw.f64
    step: Annotated[float, tw.quantized(-1, 1, 1 / 256)]
    point: Annotated[float, tw.fields.fixed(-10, 10, 8)]
    text: Annotated[str, tw.text(40)]
    data: Annotated[bytes, tw.data(40)]
    letters: Annotated[str, tw.fields.wide_text(20)]
    weapon: Weapon
    how: Flags
    yaw: Annotated[float, tw.angle(0, 360, 0.1)]
    at: Annotated[tw.Vec3, tw.vec3(-100, 100, 0.01)]
    facing: Annotated[tw.Vec3, tw.fields.unit_vector(11)]
    turned: Annotated[tw.fields.Quaternion, tw.fields.quaternion(10)]
    signed: Annotated[tw.fields.Quaternion, tw.fields.signed_quaternion()]
    health: Annotated[int, tw.ranged(0, 100), tw.fields.common(100, 0)]
    target: tw.u16 | None
    inner: Inner
    many: Annotated[list[Inner], tw.up_to(5)]
    some: Annotated[dict[int, tw.u8], tw.fields.sparse(100)]
    pair: tuple[tw.u8, tw.i16]
    names: Annotated[set[Annotated[str, tw.text(9)]], tw.up_to(4)]
    scores: Annotated[dict[Annotated[str, tw.text(9)], tw.u16], tw.up_to(4)]
    mode: Literal["easy", "hard"]
    order: Inner | Outer


@tw.message
class Large:
    data: Annotated[bytes, tw.data(10_000)]


class Odd(tw.messages.Message):
    n: int = 0

    def __init__(self, n: int = 0) -> None:
        self.n = n

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.n = stream.ranged(self.n, 0, 1000)


def everything(n: int) -> Everything:
    return Everything(
        flag=n % 2 == 0,
        small=n % 90 - 5,
        one=4,
        wide=(1 << 63) + n,
        deep=-(1 << 99) - n,
        huge=(1 << 127) + n,
        single=n + 0.25,
        twice=-1e300 / (n + 1),
        step=0.5,
        point=-3.5,
        text=f"größe {n}",
        data=bytes([n % 256, 255]),
        letters="aß語🎲",
        weapon=Weapon.BOW,
        how=Flags.SHOOTS | Flags.HIDES,
        yaw=90.0,
        at=(1.0, -2.5, 99.0),
        facing=(0.0, 0.6, -0.8),
        turned=(0.0, 0.0, 0.6, 0.8),
        signed=(0.6, 0.0, 0.0, -0.8),
        health=(100, 0, 55)[n % 3],
        target=None if n % 2 else n % 1000,
        inner=Inner(9, "in"),
        many=[Inner(slot, f"n{slot}") for slot in range(n % 6)],
        some={3: 30, 40: 40, 99: n % 256},
        pair=(n % 256, -n),
        names={"bob", f"n{n}"},
        scores={"zoe": n, "ann": 2},
        mode="hard",
        order=Outer(n % 2 == 0) if n % 3 else Inner(n % 8, "x"),
    )


CHANNELS = [
    tw.reliable_ordered("chat", receive_window=64),
    tw.unreliable("state"),
    tw.channels.redundant("input"),
    tw.latest("values", keys=100),
    tw.channels.payload("raw"),
    tw.chunks(),
]


def protocol() -> tw.Protocol:
    return tw.Protocol(id=0x5EED, messages=[Everything, Odd, Large], channels=CHANNELS)


def load(script: str) -> Any:
    runtime = lua52.LuaRuntime(encoding=None)
    return runtime, runtime.execute(script.encode())


def nodes(table: Any) -> list[Node]:
    """A tree of the script as dicts."""
    found = []
    for table_node in [] if table is None else list(table.values()):
        node: Node = {key.decode(): value for key, value in table_node.items() if key != b"kids"}
        if "part" in node:
            node["part"] = {key.decode(): value for key, value in node["part"].items()}
        for key in ("name", "field", "value"):
            if isinstance(node.get(key), bytes):
                node[key] = node[key].decode()
        node["kids"] = nodes(table_node[b"kids"])
        found.append(node)
    return found


def connection(script: str, packet: bytes, ack: int) -> list[Node]:
    runtime, functions = load(script)
    return nodes(functions[b"connection_packet"](packet, ack, runtime.table()))


def pinned_script() -> str:
    """A dissector for the protocol of the pinned packets, which no Python class has."""
    described = lua(protocol_table(VECTORS["protocol_text"]))
    return dissector().replace("local PROTOCOL = nil", f"local PROTOCOL = {described}")


def values(node: Node) -> list[Any]:
    return [kid["value"] for kid in node["kids"]]


def shown(packet: list[Node]) -> dict[str, Any]:
    """A packet as the vectors tell it."""
    told: dict[str, Any] = {}
    for node in packet:
        assert node["from"] <= node["to"]
        match node["name"]:
            case "hello":
                assert values(node) == [4, f"0x{VECTORS['protocol_hash']}"]
                told["hello"] = True
            case "close":
                reason, *detail = values(node)
                told["close"] = int(reason.split("(")[1].rstrip(")"))
                told |= {"detail": detail[0]} if detail else {}
            case "ack_delay":
                units = [value // 64 for value in values(node)]
                told |= dict(zip(("ack_delay_units", "received_at_units"), units, strict=False))
            case "ack_ranges":
                ranges = [kid["value"].split(" to ") for kid in node["kids"] if kid["name"] == "acked"]
                told["ranges"] = [[int(end) for end in ends] for ends in ranges]
            case "credit":
                numbers = values(node)
                told["credits"] = [list(pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]
            case "entry":
                channel, *items = node["kids"]
                told.setdefault("entries", []).append([channel["value"], [item(one) for one in items]])
            case "fragment":
                channel, number, _, bits, index, data = values(node)
                told.setdefault("fragments", []).append(
                    [channel, number, node["part"]["number"], bits, index, data]
                )
            case other:
                told[other] = node["value"]
    return told


def item(node: Node) -> list[Any]:
    kids = [kid["value"] for kid in node["kids"]]
    names = [kid["name"] for kid in node["kids"]]
    if node["field"] == "tickwire.chunk":
        _, number, *rest = kids
        name = node["value"].split()[0]
        if name == "slice":
            return [name, number, rest[0], rest[2]]
        if name == "answer":
            verdict, *runs = rest
            verdict = int(verdict.split("(")[1].rstrip(")"))
            pairs = (
                [[list(pair) for pair in zip(runs[::2], runs[1::2], strict=True)]]
                if verdict in (0, 6)
                else []
            )
            return [name, number, verdict, *pairs]
        return [name, number, *rest]
    before = [kids[0]] if names[:1] in (["id"], ["key"]) else []
    if node["name"] == "payload":
        return [*before, "payload", kids[-1]]
    if node["name"] == "Odd":
        return [*before, "odd", kids[-1]]
    return [*before, node["name"].lower(), kids[-1]]


def expected(case: dict[str, Any]) -> dict[str, Any]:
    """A vector without what the dissector doesn't look into: the bits of payloads and of classes that
    write themselves."""
    told = {
        key: case[key]
        for key in (
            "hello",
            "close",
            "detail",
            "ack_delay_units",
            "received_at_units",
            "ranges",
            "credits",
            "fragments",
        )
        if key in case
    }
    if "entries" in case:
        told["entries"] = [[channel, [simpler(one) for one in items]] for channel, items in case["entries"]]
    return told


def simpler(told: list[Any]) -> list[Any]:
    if "odd" in told:
        # Three bits, filled up to a byte, and bytes: their number depends on where they begin.
        return [*told[: told.index("odd") + 1], ...]
    return told[: told.index("payload") + 2] if "payload" in told else told


@pytest.mark.parametrize("case", VECTORS["packets"], ids=lambda case: case["name"])
def test_it_reads_the_pinned_packets_as_the_native_code_does(case: dict[str, Any]) -> None:
    found = shown(connection(pinned_script(), bytes.fromhex(case["packet"]), case["ack"]))
    for _, items in found.get("entries", []):
        for told in items:
            if "odd" in told:
                told[-1] = ...
    assert found == expected(case)


@pytest.mark.parametrize("case", VECTORS["refused"], ids=lambda case: case["why"])
def test_it_calls_malformed_what_the_native_code_refuses(case: dict[str, Any]) -> None:
    found = connection(pinned_script(), bytes.fromhex(case["packet"]), 40)
    assert found[-1]["name"] == "malformed"


HEADERS = [
    case
    for case in json.loads((ROOT / "tests/vectors/reliable.json").read_text("utf-8"))["reliable"]
    if case["kind"] == "reliable_header"
]


@pytest.mark.parametrize("case", HEADERS, ids=lambda case: case["name"])
def test_it_reads_the_pinned_headers_as_the_native_code_does(case: dict[str, Any]) -> None:
    _, functions = load(dissector())
    header = bytes.fromhex(case["header"])
    found = functions[b"reliable"](header + b"behind")
    shown_there = {node["name"]: node["value"] for node in nodes(found[b"nodes"])}
    assert found[b"body_at"] == case["bytes"]
    assert (shown_there["sequence"], shown_there["ack"]) == (case["sequence"], case["ack"])
    assert int(shown_there["ack_bits"], 16) == int(case["ack_bits"], 16)
    for cut in range(len(header)):
        assert functions[b"reliable"](header[:cut])[b"body_at"] is None


OWN_HEADERS = VECTORS["headers"]


@pytest.mark.parametrize("case", OWN_HEADERS, ids=lambda case: case["name"])
def test_it_reads_the_pinned_headers_of_our_own_framing(case: dict[str, Any]) -> None:
    _, functions = load(dissector())
    header = bytes.fromhex(case["header"])
    found = functions[b"numbered"](header + b"behind", str(case["number"]).encode())
    shown_there = {node["name"]: node["value"] for node in nodes(found[b"nodes"])}
    assert (found[b"body_at"], found[b"sequence"]) == (len(header), case["number"])
    assert shown_there["ack"] == (case["ack"] % (1 << 32) if case["ack_bits"] else 0)
    assert int(shown_there["ack_bits"], 16) == case["ack_bits"]
    assert shown_there.get("skipped", 0) == case["skipped"]
    assert found[b"last"] == case.get("last_id")
    for cut in range(len(header)):
        assert functions[b"numbered"](header[:cut], b"1")[b"body_at"] is None


def test_a_later_fragment_is_of_the_packet_of_the_first() -> None:
    _, functions = load(dissector())
    for case in VECTORS["fragments_behind"]:
        found = functions[b"numbered"](bytes.fromhex(case["header"]) + b"behind", b"1000")
        assert (found[b"sequence"], found[b"fragment"]) == (1000 - case["id"], case["id"])
        assert (found[b"last"], found[b"body_at"]) == (case["last_id"], 3)


@tw.message(block=True)
class Level:
    name: Annotated[str, tw.text(20)]


def test_it_shows_the_packets_of_yojimbos_framing_too(tmp_path: Path) -> None:
    few = tw.yojimbo.ChannelSettings(max_messages_per_packet=4, max_block_size=500)
    spoken = tw.Protocol(
        id=7,
        messages=[Everything, Level, Odd],
        channels=[tw.reliable_ordered(), tw.unreliable()],
        yojimbo=tw.yojimbo.Profile(channels=[tw.yojimbo.ChannelSettings(), few]),
    )
    network = tw.testing.SimulatedNetwork(seed=9, conditions=Conditions(latency=0.02, loss=0.05))
    with tw.capture.Capture(tmp_path / "a.pcapng") as capture:
        server = tw.Server(
            "127.0.0.1:40000", spoken, network=network, debugging=tw.testing.Debugging(capture=capture)
        )
        client = tw.Client.connect(server.address, spoken, network=network)
        received = []
        for tick in range(300):
            if client.connected and tick < 100:
                client.send(everything(tick), channel=tick % 2)
                client.send(Level(f"level {tick}", block=b"b" * (1 + tick)), channel=1)
            if client.connected and tick in (50, 150):
                client.send(Level("large", block=bytes(range(250)) * 12), channel=0)
            if tick == 200:
                client.send(Odd(5), channel=0)
            at_server, _ = advance(network, server, client, seconds=1 / 60)
            received += at_server.messages
    runtime, functions = load(dissector(spoken))
    opening = opener([])
    found: list[Node] = []
    for datagram in read_capture(tmp_path / "a.pcapng"):
        opened = opening.open(datagram.sender, datagram.receiver, datagram.data)
        if opened is None or opened[0] & 15 != 5 or datagram.outgoing:
            continue
        body = opened[1 + (opened[0] >> 4) :]
        head = functions[b"reliable"](body)
        data = body[int(head[b"body_at"]) :]
        packet = nodes(functions[b"connection_packet"](data, head[b"ack"], runtime.table()))
        assert all(node["name"] == "entry" for node in packet), packet
        found += [kid for node in packet for kid in node["kids"]]
    told = [{kid["name"]: kid for kid in node["kids"]} for node in found if node["name"] == "Everything"]
    by_number = {int(one["wide"]["value"]) - (1 << 63): one for one in told}
    wanted = [message for _, message in received if isinstance(message, Everything)]
    assert len(wanted) > 80
    for message in wanted:
        check(by_number[message.wide - (1 << 63)], message)
    blocks = {node["value"] for node in found if node["field"] == "tickwire.block.data"}
    levels = [message for _, message in received if isinstance(message, Level)]
    assert {message.block.hex() for message in levels if message.name != "large"} <= blocks
    whole = bytes(range(250)) * 12
    assert {whole[at : at + 1024].hex() for at in range(0, 3000, 1024)} <= blocks
    assert [message.block for message in levels if message.name == "large"] == [whole, whole]
    odd = [node for node in found if node["name"] == "Odd"]
    assert odd
    assert odd[0]["kids"][0]["value"] == "only its own class can read it"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A conversation with everything in it, captured by the server, with what its game received."""
    directory = tmp_path_factory.mktemp("session")
    path, keys = directory / "server.pcapng", directory / "server.keys"
    capture = tw.capture.Capture(path, keys=keys)
    network = tw.testing.SimulatedNetwork(seed=5, conditions=Conditions(latency=0.02, loss=0.05))
    key = tw.generate_key()
    server = tw.Server(
        "127.0.0.1:40000",
        protocol(),
        key=key,
        network=network,
        debugging=tw.testing.Debugging(capture=capture),
        transfers=tw.transfer.Transfers(memory=1 << 20),
    )
    client = tw.Client.connect(server.address, protocol(), key=key, network=network)
    received: dict[str, list[Any]] = {"messages": [], "payloads": [], "chunks": []}
    for tick in range(240):
        if client.connected and tick < 180:
            client.send(everything(tick), channel=tick % 3)
            client.send(Odd(tick), channel=0)
            if tick % 10 == 0:
                client.send(everything(tick), channel=3, key=tick % 100)
                client.send_payload(bytes(tick % 30), 4, tag=tick)
            if tick == 60:
                client.send(Large(bytes(range(250)) * 20), channel=0)
            if tick in (61, 62, 63):
                client.send(Large(bytes(range(250)) * 16), channel=1)
            if tick == 60:
                client.send_chunk(bytes(20_000), label="wörld")
        at_server, _ = advance(network, server, client, seconds=1 / 60)
        received["messages"] += at_server.messages + [(one, message) for one, _, message in at_server.latest]
        received["payloads"] += at_server.payloads
        received["chunks"] += at_server.chunks
    server.disconnect(server.clients[0])
    advance(network, server, client, seconds=1)
    capture.close()
    assert len(received["messages"]) > 200
    assert len(received["payloads"]) > 10
    assert len(received["chunks"]) == 1
    return {"path": path, "keys": keys, "received": received, "packets": capture.packets}


def test_it_shows_every_message_of_a_conversation_as_the_game_received_it(session: dict[str, Any]) -> None:
    runtime, functions = load(dissector(protocol()))
    opening = opener(read_keys(session["keys"]))
    found: list[dict[str, Any]] = []
    kinds: dict[str, int] = {}
    fragments: dict[tuple[bool, int], dict[int, tuple[bytes, int]]] = {}
    parts: dict[int, dict[str, Any]] = {}
    for datagram in read_capture(session["path"]):
        opened = opening.open(datagram.sender, datagram.receiver, datagram.data)
        said = functions[b"netcode"](datagram.data if opened is None else opened, opened is not None)
        kind = said[b"kind"][b"name"].decode()
        kinds[kind] = kinds.get(kind, 0) + 1
        if kind != "payload":
            continue
        assert opened is not None
        body = opened[int(said[b"body_at"]) :]
        head = functions[b"numbered"](body, said[b"sequence"])
        data, ack = body[int(head[b"body_at"]) :], head[b"ack"]
        if head[b"fragment"] is not None:
            pieces = fragments.setdefault((datagram.outgoing, head[b"sequence"]), {})
            pieces[head[b"fragment"]] = (data, ack)
            if len(pieces) <= head[b"last"]:
                continue
            data, ack = b"".join(pieces[number][0] for number in sorted(pieces)), pieces[0][1]
        packet = nodes(functions[b"connection_packet"](data, ack, runtime.table()))
        assert all(node["name"] != "malformed" for node in packet), packet
        if not datagram.outgoing:
            for node in packet:
                found += [one for one in node["kids"] if node["name"] == "entry"]
                if node["name"] == "fragment":
                    parts[node["part"]["index"]] = node["part"]
    assert kinds.keys() >= {"request", "challenge", "response", "keep_alive", "payload"}
    told = [{kid["name"]: kid for kid in node["kids"]} for node in found if node["name"] == "Everything"]
    wanted = [message for _, message in session["received"]["messages"] if isinstance(message, Everything)]
    by_number = {int(one["wide"]["value"]) - (1 << 63): one for one in told}
    assert by_number.keys() >= {message.wide - (1 << 63) for message in wanted}
    for message in wanted:
        check(by_number[message.wide - (1 << 63)], message)
    unreliable = [values(node)[-1] for node in found if node["name"] == "Large"]
    assert set(unreliable) == {(bytes(range(250)) * 16).hex()}, "the reliable one goes in fragments"
    assert parts.keys() == set(range(5))
    whole = b"".join(parts[number]["data"] for number in range(5))
    (large,) = nodes(functions[b"message_of"](2, parts[0]["bits"], whole))
    assert (large["name"], values(large)) == ("Large", [(bytes(range(250)) * 20).hex()])
    (short,) = nodes(functions[b"message_of"](2, parts[0]["bits"], whole[:-1]))
    assert short["kids"][-1]["name"] == "malformed"
    assert fragments
    payloads = [node["value"] for node in found if node["name"] == "payload"]
    assert {f"{len(data) * 8} bits" for _, _, data in session["received"]["payloads"]} <= set(payloads)
    slices = [node for node in found if str(node["value"]).startswith("slice")]
    assert sum(len(bytes.fromhex(values(node)[-1])) for node in slices) >= 20_000


def check(told: dict[str, Node], message: Everything) -> None:
    for name in ("flag", "small", "one", "single", "twice", "step", "point", "text", "letters"):
        assert told[name]["value"] == getattr(message, name), name
    for name in ("wide", "deep", "huge"):
        assert int(told[name]["value"]) == getattr(message, name), name
    assert told["data"]["value"] == message.data.hex()
    assert told["weapon"]["value"] == message.weapon.name
    assert told["how"]["value"] == "SHOOTS|HIDES"
    assert told["yaw"]["value"] == pytest.approx(message.yaw, rel=1e-9)
    for name in ("at", "facing", "turned", "signed"):
        numbers = [float(number) for number in told[name]["value"].strip("()").split(",")]
        assert numbers == pytest.approx(list(getattr(message, name)), abs=1e-5), name
    assert told["health"]["value"] == message.health
    assert told["target"].get("value") == message.target
    assert [kid["value"] for kid in told["inner"]["kids"]] == [9, "in"]
    assert [values(kid) for kid in told["many"]["kids"]] == [[one.slot, one.name] for one in message.many]
    assert {int(kid["name"].strip("[]")): kid["value"] for kid in told["some"]["kids"]} == message.some
    assert tuple(values(told["pair"])) == message.pair
    assert [kid["value"] for kid in told["names"]["kids"]] == sorted(message.names)
    assert dict(values(kid) for kid in told["scores"]["kids"]) == message.scores
    assert told["mode"]["value"] == repr(message.mode)
    assert told["order"]["value"] == type(message.order).__name__
    assert values(told["order"]) == list(dataclasses.astuple(message.order))


def test_any_bytes_are_shown_or_called_malformed() -> None:
    chance = random.Random(1)
    runtime, functions = load(pinned_script())
    whole = [bytes.fromhex(case["packet"]) for case in VECTORS["packets"]]
    for n in range(3000):
        packet = bytearray(whole[n % len(whole)])
        for _ in range(chance.randint(1, 4)):
            packet[chance.randrange(len(packet))] ^= 1 << chance.randrange(8)
        data = bytes(packet[: chance.randint(0, len(packet))])
        found = nodes(functions[b"connection_packet"](data, chance.randrange(65536), runtime.table()))
        for node in found:
            assert 0 <= node["from"] <= node["to"] <= len(data) * 8
            assert node["name"] != "malformed" or "attempt" not in node["value"], node
        functions[b"reliable"](data)
        functions[b"numbered"](data, b"70000")
        functions[b"netcode"](data, n % 2 == 0)


def tshark(script: Path, capture: Path, *arguments: str) -> str:
    assert TSHARK is not None
    command = [TSHARK, "-n", "-X", f"lua_script:{script}", "-r", str(capture), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    complaints = [line for line in done.stderr.splitlines() if "Running as user" not in line]
    assert (done.returncode, complaints) == (0, [])
    return done.stdout


needs_tshark = pytest.mark.skipif(
    TSHARK is None, reason="tshark is not installed (Debian: apt install tshark)"
)


@needs_tshark
def test_tshark_shows_sealed_packets(session: dict[str, Any], tmp_path: Path) -> None:
    script = tmp_path / "tickwire.lua"
    script.write_text(dissector(), "utf-8")
    out = tshark(
        script, session["path"], "-T", "fields", "-e", "tickwire.netcode.kind", "-e", "_ws.malformed"
    )
    kinds = out.split()
    assert len(kinds) == session["packets"]
    assert {"request", "challenge", "response", "keep_alive", "payload"} <= set(kinds)


@needs_tshark
def test_tshark_shows_every_field_of_opened_packets(session: dict[str, Any], tmp_path: Path) -> None:
    script, opened = tmp_path / "tickwire.lua", tmp_path / "opened.pcapng"
    script.write_text(dissector(protocol()), "utf-8")
    done = open_capture(session["path"], opened, read_keys(session["keys"]))
    assert done.sealed == 0
    assert tshark(script, opened, "-Y", "tickwire.malformed or _ws.lua.error or _ws.malformed") == ""
    fields = ("text", "small", "wide", "twice", "weapon")
    wanted = [word for name in fields for word in ("-e", f"tickwire.Everything.{name}")]
    only = "tickwire.Everything.small == 30 and exported_pdu.dst_port == 40000"
    out = tshark(script, opened, "-Y", only, "-T", "fields", *wanted)
    message = everything(35)
    first = [column.split(",")[0] for column in out.splitlines()[0].split("\t")]
    assert first == [message.text, "30", str(message.wide), first[3], "BOW"]
    assert float(first[3]) == pytest.approx(message.twice)
    text = tshark(script, opened, "-V")
    for shown_there in ("Tickwire keep_alive", "hello", "ack_delay", "credit", "chunk", "max_clients: 64"):
        assert shown_there in text
    summary = tshark(script, opened)
    assert "127.0.0.1" in summary
    assert "fragment 0 of 4" in summary
    assert "Large 1/5" in summary
    assert ": Large" in summary
    large = tshark(script, opened, "-Y", "tickwire.Large.data", "-T", "fields", "-e", "tickwire.Large.data")
    assert {(bytes(range(250)) * n).hex() for n in (16, 20)} <= set(large.split())
