"""The chat sample: its room in virtual time, its screen without a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import tickwire as tw
from textual.widgets import Input, RichLog, Static
from tickwire.samples.chat.__main__ import main
from tickwire.samples.chat.room import (
    LINES_PER_SECOND,
    MAX_NAME,
    PROTOCOL,
    TALK,
    Hello,
    People,
    Room,
    Said,
    Say,
    printable,
    shorten,
)
from tickwire.samples.chat.screen import ChatApp
from tickwire.testing import Collected, Conditions, SimulatedNetwork


class House:
    """A room with people in it, in virtual time."""

    def __init__(self, conditions: Conditions | None = None) -> None:
        self.network = SimulatedNetwork(seed=1, conditions=conditions)
        self.server = tw.Server("127.0.0.1:40000", PROTOCOL, network=self.network)
        self.room = Room(self.server)
        self.clients: list[tw.Client] = []
        self.heard: list[Collected] = []

    def enter(self, name: str) -> tw.Client:
        client = tw.Client.connect(self.server.address, PROTOCOL, network=self.network)
        self.clients.append(client)
        self.heard.append(Collected())
        self.run(2)
        client.send(Hello(name), TALK)
        self.run(2)
        return client

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 30)):
            with self.server.tick() as inbox:
                self.room.tick(inbox, 1 / 30)
            for client, heard in zip(self.clients, self.heard, strict=True):
                if client.closed:
                    continue
                with client.tick() as inbox:
                    heard.events += inbox.events
                    heard.messages += inbox.messages
                    heard.latest += inbox.latest
            self.network.advance(1 / 30)


def test_everyone_hears_what_is_said_in_order_over_a_bad_network() -> None:
    house = House(Conditions(latency=0.1, jitter=0.05, loss=0.2))
    ann, bob = house.enter("ann"), house.enter("bob")
    for number in range(10):
        ann.send(Say(f"line {number}"), TALK)
    bob.send(Say("and me"), TALK)
    house.run(5)
    for heard in house.heard:
        assert [said.text for said in heard.messages if said.name == "ann"] == [
            f"line {n}" for n in range(10)
        ]
        assert Said("bob", "and me") in heard.messages
        assert heard.latest[-1] == (0, People(["ann", "bob"]))


def test_who_leaves_is_told_of_and_makes_the_name_free() -> None:
    house = House()
    house.enter("ann")
    house.enter("ann").close()
    house.run(1)
    told = house.heard[0]
    assert told.messages[-1] == Said("", "ann-2 left")
    assert told.latest[-1] == (0, People(["ann"]))
    house.enter("ann")
    assert told.latest[-1] == (0, People(["ann", "ann-2"]))


def test_who_floods_the_room_is_put_out() -> None:
    house = House()
    house.enter("ann")
    loud = house.enter("loud")
    for number in range(LINES_PER_SECOND + 1):
        loud.send(Say(str(number)), TALK)
    house.run(1)
    assert loud.disconnect_reason is tw.DisconnectReason.KICKED
    assert house.heard[0].messages[-1] == Said("", "loud left")


def test_nobody_speaks_without_a_name_or_takes_a_second_one() -> None:
    house = House()
    ann = house.enter("ann")
    mute = tw.Client.connect(house.server.address, PROTOCOL, network=house.network)
    house.clients.append(mute)
    house.heard.append(Collected())
    house.run(1)
    mute.send(Say("boo"), TALK)
    ann.send(Hello("queen"), TALK)
    house.run(1)
    assert house.heard[0].messages == [Said("", "ann is here")]
    assert house.heard[1].messages == []


def test_control_characters_are_dropped_and_names_cut_between_letters() -> None:
    assert printable("a\x1b[2Jb\x07\n") == "a[2Jb"
    assert shorten("é" * 20, MAX_NAME) == "é" * 12
    house = House()
    house.enter("\x1b]0;x\x07" + "é" * 8)
    assert house.heard[0].messages == [Said("", "]0;xéééééééé is here")]


def test_the_screen_says_and_shows_lines_and_people() -> None:
    async def scene() -> None:
        with tw.Server("127.0.0.1:0", PROTOCOL) as server:
            room = Room(server)
            other = tw.Client.connect(server.address, PROTOCOL)
            client = tw.Client.connect(server.address, PROTOCOL)
            app = ChatApp(client, "ann", server.address)
            async with app.run_test() as pilot:

                async def until(text: str) -> None:
                    async with asyncio.timeout(20):
                        while text not in shown():
                            with server.tick() as at_server:
                                room.tick(at_server, 1 / 30)
                            with other.tick() as inbox:
                                if tw.Connected in map(type, inbox.events):
                                    other.send(Hello("bob\x1b[31m"), TALK)
                            await pilot.pause(0.01)

                def shown() -> str:
                    lines = [strip.text for strip in app.query_one(RichLog).lines]
                    return "\n".join([*lines, str(app.query_one("#people", Static).render()), app.sub_title])

                await until("ann\nbob[31m")
                await pilot.press(*"hi", "enter")
                await until("ann  hi")
                assert app.query_one(Input).value == ""
                await until("RTT")
            client.close()
            other.close()

    asyncio.run(scene())


def test_the_screen_ends_with_a_sentence_when_the_server_closes() -> None:
    async def scene() -> None:
        server = tw.Server("127.0.0.1:0", PROTOCOL)
        client = tw.Client.connect(server.address, PROTOCOL)
        app = ChatApp(client, "ann", server.address)
        async with app.run_test() as pilot:
            async with asyncio.timeout(20):
                while not client.connected:
                    with server.tick():
                        pass
                    await pilot.pause(0.01)
                server.close()
                while app.return_value is None:
                    await pilot.pause(0.01)
        assert "the server closed" in str(app.return_value)
        assert "connect again" in str(app.return_value)

    asyncio.run(scene())


def test_without_a_terminal_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["join"]) == 1
    assert "needs a terminal" in capsys.readouterr().err


# --- as a command line in a terminal ---

# With little patience for servers that don't answer.
JOIN = (
    "import sys; from tickwire.samples import command; command.TIMEOUT = 1; "
    "from tickwire.samples.chat.__main__ import main; sys.exit(main(sys.argv[1:]))"
)


def joined_in_a_terminal(*arguments: str) -> tuple[int, str]:
    """The exit code of ``chat join``, run in a terminal of its own, and what is left on it in the end."""
    terminal, inside = os.openpty()
    line = [sys.executable, "-W", "error", "-c", JOIN, "join", *arguments]
    settings = {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    with subprocess.Popen(
        line, stdin=inside, stdout=inside, stderr=inside, env={**os.environ, **settings}
    ) as process:
        os.close(inside)
        patience = threading.Timer(60, process.kill)
        patience.start()
        shown = b""
        with contextlib.suppress(OSError):  # the terminal's end, when its last program has left
            while part := os.read(terminal, 65_536):
                shown += part
        code = process.wait()
        patience.cancel()
    os.close(terminal)
    # What was on the screen that it had for itself is gone with it.
    return code, shown.decode().rpartition("\x1b[?1049l")[2]


@pytest.mark.skipif(sys.platform == "win32", reason="has terminals of another kind")
def test_in_a_terminal_a_server_that_is_not_there_is_told_of() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        code, left = joined_in_a_terminal(address)
    assert code == 1
    assert f"python -m tickwire.samples.chat: no server answers at {address}: start one" in left
    assert "Traceback" not in left


@pytest.mark.skipif(sys.platform == "win32", reason="has terminals of another kind")
def test_in_a_terminal_a_wrong_key_is_thought_of(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(tw.generate_key().hex())
    with tw.Server(
        "127.0.0.1:0", PROTOCOL, key=tw.generate_key(), tuning=tw.Tuning(driver="thread")
    ) as server:
        code, left = joined_in_a_terminal(str(server.address), "--key", str(key))
        assert server.counters["netcode.token_not_authentic"] > 0
    assert code == 1
    assert "give both sides the same --key" in left
    assert "Traceback" not in left
