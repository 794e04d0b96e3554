"""What type checkers say: of every example of every page, and of mistakes that they are to find."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from mypy import api
from test_pages import BLOCK, PAGES, ROOT, page_id, write

# What type checkers can't know: what block=True adds. The client is the first page's, and for its game.
UNTYPED = {"yojimbo": ["server.py", "bot.py", "client.py"]}
CONFIG = """
[mypy]
strict = True
allow_redefinition = True
[mypy-tickwire.*]
ignore_errors = True
"""
# Of a test that pytest calls nobody wants the types.
OF_TESTS = "[mypy-{}]\ndisallow_untyped_defs = False\n"


def check(folder: Path, *arguments: str) -> list[str]:
    """What mypy says of a folder, a line each."""
    tests = "".join(OF_TESTS.format(path.stem) for path in folder.glob("test_*.py"))
    (folder / "mypy.ini").write_text(CONFIG + tests, "utf-8")
    cache = f"--cache-dir={ROOT / '.mypy_cache' / 'pages'}"
    out, errors, _ = api.run([f"--config-file={folder / 'mypy.ini'}", cache, *arguments])
    assert errors == ""
    return [line for line in out.splitlines() if ": error:" in line]


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_the_examples_of_a_page_are_right(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MYPYPATH", f"{ROOT / 'python'}:.")
    write(ROOT / "docs" / "first.md", tmp_path)
    write(page, tmp_path)
    for name in UNTYPED.get(page.stem, []):
        (tmp_path / name).unlink(missing_ok=True)
    blocks: list[str] = []
    for name, code in BLOCK.findall(page.read_text("utf-8")):
        if name:
            continue
        # A block that imports the library begins anew; others go on with what the one in front of them has.
        if "import tickwire as tw" in code or not blocks:
            blocks.append("")
        blocks[-1] += code
    for number, code in enumerate(blocks):
        (tmp_path / f"block_{number}.py").write_text(code, "utf-8")
    assert check(tmp_path, ".") == []


MISTAKES = """
from typing import Annotated

import tickwire as tw


@tw.message
class Move:
    x: tw.i8


@tw.message(channel="chat", frozen=True)
class Chat:
    text: Annotated[str, tw.text(20)]
    loud: bool = tw.default()


@tw.message
class Other:
    x: tw.i8


P: tw.Protocol[Move | Chat] = tw.Protocol(1, [Move, Chat])
fewer: tw.Protocol[Move] = tw.Protocol(1, [Move, Chat])  # error
anything = tw.Protocol(1, [Move, Chat])
server = tw.Server("127.0.0.1:0", P)
client = tw.Client.connect(server.address, P)
some: tw.Server = server
move: Move
chat: Chat

with server.tick() as inbox:
    for who, message in inbox.messages:
        print(message.y)  # error
        if isinstance(message, Move):
            move = message
        else:
            chat = message
    for who, key, message in inbox.latest:
        key.upper()  # error
    who = server.clients[0]
    server.send(who, Chat("a"), "chat")
    server.send(who, Chat("a"), 1.5)  # error
    server.send(who, Other(1))  # error
    server.broadcast(Other(1))  # error
    server.broadcast(3)  # error
with client.tick() as box:
    for said in box.messages:
        print(said.y)  # error
    client.send(Move(1))
    client.send(Other(1))  # error
    for number, said in box.latest:
        print(number + 1)
Chat("x").text = "y"  # error
Chat()  # error
P.encode(Other(1))  # error
tw.Lockstop  # error
tw.world.Gird  # error
print(P.decode(b"").y)  # error

handlers = tw.messages.Handlers()


@handlers.on(Chat)
def on_chat(client: tw.ClientHandle, message: Chat) -> None: ...


@handlers.on(Move)
def on_move(message: Move) -> None: ...


@handlers.on(Move)  # error
def wrong(client: tw.ClientHandle, message: Chat) -> None: ...


@handlers.on(tw.Disconnected)
def left(client: tw.ClientHandle, event: tw.Disconnected) -> None: ...


@tw.call(tw.to_server)
def buy(caller: tw.ClientHandle, item: tw.u8, *, haggle: bool = False) -> bool:
    return haggle


@tw.call(tw.to_all)
def show(text: Annotated[str, tw.text(8)]) -> tw.u16:
    return 1


@tw.call(tw.to_server)  # error
def nobody(item: tw.u8) -> None: ...


def sell(caller: tw.ClientHandle, item: int, *, haggle: bool = False) -> bool:
    return item > caller.id and haggle


def called(who: tw.ClientHandle) -> None:
    client.call(buy, 3)
    client.call(buy, item=3, haggle=True)
    client.call(buy)  # error
    client.call(buy, "sword")  # error
    client.call(buy, 3, price=1)  # error
    client.call(buy, who, 3)  # error
    client.call(show, "x")  # error
    answer: bool = client.request(buy, 3).result()
    text: str = client.request(buy, 3).result()  # error
    number: int = server.request(who, show, "x").result()
    server.call(who, show, text="x")
    left_out: list[tw.ClientHandle] = server.call(server.room(), show, "x")
    server.call(who, buy, 3)  # error
    server.call_all(show, 3)  # error
    server.implement(buy, sell)
    server.implement(buy, len)  # error
    client.implement(show, lambda text: len(text))


async def waited() -> bool:
    return await client.request(buy, 3)
"""


def wrong_lines() -> list[int]:
    return [n for n, line in enumerate(MISTAKES.splitlines(), 1) if line.endswith("# error")]


def test_mistakes_are_found_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MYPYPATH", str(ROOT / "python"))
    (tmp_path / "mistakes.py").write_text(MISTAKES, "utf-8")
    found = check(tmp_path, "mistakes.py")
    # An error in one class of a union is reported for each class.
    assert sorted({int(line.split(":")[1]) for line in found}) == wrong_lines(), found


def test_pyright_finds_them_too(tmp_path: Path) -> None:
    pyright = pytest.importorskip("pyright")
    (tmp_path / "mistakes.py").write_text(MISTAKES.replace("P: tw.Protocol[Move | Chat] =", "P ="), "utf-8")
    settings = f'{{"venvPath": "{ROOT}", "venv": ".venv", "extraPaths": ["{ROOT / "python"}"]}}'
    (tmp_path / "pyrightconfig.json").write_text(settings, "utf-8")
    done = pyright.run(
        "--pythonpath", sys.executable, "-p", str(tmp_path), capture_output=True, text=True, check=False
    )
    found = re.findall(r"mistakes\.py:(\d+):\d+ - error", done.stdout)
    # An error in a decorator's argument is reported twice.
    assert sorted({int(line) for line in found}) == wrong_lines(), done.stdout
