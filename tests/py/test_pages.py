"""Runs every example of every page: the README and docs/.

A Python block whose first line is a comment with a file name is a file: the files of a page run in their
order, each to its end in a process of its own, in one folder with those of docs/first.md, which every page
may import, and say nothing on standard error. One named test_*.py is run by pytest; server.py runs beside the
others of its page. All other blocks of a page run one behind the other, in one namespace.

A comment between ``<!-- run`` and ``-->`` is a block that readers don't see: what an example needs before it,
and the checks after it. Blocks that name one file are its parts, in their order.
"""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import public
import pytest
import tickwire

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "maintainers").glob("*.md")]
)
PATIENCE = 60.0
BLOCK = re.compile(r"^(?:```python|<!-- run)\n(?:# (\w+\.py)\n)?(.*?)^(?:```|-->)", re.M | re.S)
LINK = re.compile(r"\]\(([^)#\s]+)?(?:#([\w-]+))?\)")

# Those that go on until they are ended: tests below play them together, and test_visitors.py visits servers.
ENDLESS = {
    "client.py",
    "host.py",
    "rules_server.py",
    "server.py",
    "standing.py",
    "watched.py",
}
# The expected output of a file, by its name or by its page's as well.
PRINTS = {
    "hello.py": "server 1.00, client 0.9",
    "ball.py": "server 1.00, client 0.9",
    "predicted.py": "draw yourself at 1",
    "metrics.py": "tickwire_clients{server=",
    "opened.py": " opened, 0 still sealed",
    "record.py": " packets, ",
    "replay.py": "this is captured",
    "mistake.py": "Chat.sender = 64: must be 0 to 63",
    "odd.py": "bytes: Odd(n=600, extra=7)",
    "fates.py": "to slot 0 is lost",
    "rooms.py": "[(1, Score(points=3))]",
    "matchmaking.py": "{'red-17': 1}",
    "comes_back.py": "attempt 1 in 0.1 s: the server closed, or its program ended\nin\n",
    "thread.py": "Chat(sender=0, text='welcome')",
    "loops/bot.py": "Chat(sender=0, text='hello')",
    "yojimbo/bot.py": "level 1 of 100000 bytes\nthanks\n",
    "backend.py": "<ConnectToken for protocol 0x7469636b at 203.0.113.7",
}


def named(page: Path) -> dict[str, str]:
    files: dict[str, str] = {}
    for name, code in BLOCK.findall(page.read_text("utf-8")):
        if name:
            files[name] = files.get(name, "") + code
    return files


# The tutorial's pages are one program, which test_tutorial.py runs.
TUTORIAL = sorted((ROOT / "docs" / "tutorial").glob("*.md"))
WITH_FILES = [page for page in PAGES if named(page).keys() - ENDLESS]


def page_id(value: object) -> str:
    return value.name if isinstance(value, Path) else str(value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files of docs/first.md, on a port of their own."""
    return write(ROOT / "docs" / "first.md", tmp_path)


def write(page: Path, folder: Path) -> Path:
    for name, code in named(page).items():
        (folder / name).write_text(code.replace("40000", str(free_port())), "utf-8")
    return folder


_port: list[int] = []


def free_port() -> int:
    """A port that was free; the same for all files of a test run, as server and clients share it."""
    if not _port:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_port:
            any_port.bind(("127.0.0.1", 0))
            _port.append(any_port.getsockname()[1])
    return _port[0]


@pytest.mark.parametrize("page", WITH_FILES, ids=page_id)
def test_the_files_of_a_page_run_to_their_end(folder: Path, page: Path) -> None:
    write(page, folder)
    if "server.py" in named(page):  # the others may be its clients
        with running(folder, "server.py"):
            run_files(folder, page)
    else:
        run_files(folder, page)


def run_files(folder: Path, page: Path) -> None:
    environment = os.environ | {"SDL_VIDEODRIVER": "dummy", "PYGAME_HIDE_SUPPORT_PROMPT": "1"}
    for name in [name for name in named(page) if name not in ENDLESS]:
        runner = ["-m", "pytest", "-q"] if name.startswith("test_") else []
        done = subprocess.run(
            [sys.executable, "-W", "error", *runner, name],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), f"{name}: {done.stdout}"
        assert PRINTS.get(name, PRINTS.get(f"{page.stem}/{name}", "")) in done.stdout


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_the_other_blocks_of_a_page_run_one_behind_the_other(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where they may write
    names: dict[str, object] = {"__name__": "example"}
    for number, (name, code) in enumerate(BLOCK.findall(page.read_text("utf-8"))):
        if not name:
            exec(compile(code, f"{page.name}, example {number}", "exec", dont_inherit=True), names)


def test_every_block_of_python_is_run() -> None:
    for page in PAGES:
        text = page.read_text("utf-8")
        assert len(re.findall(r"```py|^<!-- run", text, re.M)) == len(BLOCK.findall(text)), page.name
    files = {(page.stem, name) for page in PAGES for name in named(page)}
    known = {name for _, name in files} | {f"{stem}/{name}" for stem, name in files}
    assert known >= {*PRINTS, *ENDLESS}


@pytest.mark.parametrize(
    "page", [*PAGES, *TUTORIAL, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=page_id
)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.M | re.S)
    for target, anchor in LINK.findall(text):
        if "://" in target or target.startswith("reference/"):  # the reference is made from the sources
            continue
        found = page.parent / target if target else page
        assert found.exists(), target
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), f"{target}#{anchor}"


def test_the_diagrams_of_the_pages_can_be_drawn() -> None:
    pytest.importorskip("docutils")
    draw = runpy.run_path(str(ROOT / "docs" / "diagrams.py"))["draw"]
    blocks = [
        block
        for page in PAGES
        for block in re.findall(r"^```mermaid\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    ]
    assert len(blocks) >= 9
    for block in blocks:
        assert draw(block).startswith("<figure")
    with pytest.raises(ValueError, match="not understood in a flowchart: 'a => b'"):
        draw("flowchart LR\na => b")


def test_each_public_name_is_on_one_page_of_the_reference() -> None:
    topics = runpy.run_path(str(ROOT / "docs" / "topics.py"))
    assert topics["MODULES"].keys() == {"tickwire", *(f"tickwire.{name}" for name in public.MODULES)}
    described = [name for names in topics["described"]().values() for name in names]
    assert len(described) == len(set(described))
    names = {*tickwire.__all__, *(name for each in public.MODULES.values() for name in each.__all__)}
    assert {name.rpartition(".")[2] for name in described} == names


def test_the_reference_takes_no_sentence_for_a_type(monkeypatch: pytest.MonkeyPatch) -> None:
    napoleon = pytest.importorskip("sphinx.ext.napoleon")
    conf = runpy.run_path(str(ROOT / "docs" / "conf.py"))
    monkeypatch.setattr(napoleon.GoogleDocstring, "_consume_inline_attribute", conf["_consume_sentence"])
    stub = ast.parse((ROOT / "python" / "tickwire" / "_core.pyi").read_text("utf-8"))
    sentences = [
        ast.get_docstring(node) or ""
        for node in ast.walk(stub)
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(of, ast.Name) and of.id == "property" for of in node.decorator_list)
    ]
    assert sum(":" in sentence for sentence in sentences) > 50
    mangled = [
        sentence
        for sentence in sentences
        if ":type:" in str(napoleon.GoogleDocstring(sentence, napoleon.Config(), what="attribute", name="it"))
    ]
    assert mangled == []


def test_every_page_has_its_place_in_the_navigation() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", index, re.M | re.S)
    listed = [line for tree in trees for line in tree.splitlines() if line and line[0] != ":"]
    assert len(listed) == len(set(listed))
    docs = ROOT / "docs"
    files = [*docs.glob("*.md"), *docs.glob("maintainers/*.md")]
    pages = {str(page.relative_to(docs).with_suffix("").as_posix()) for page in files} - {"index", "404"}
    assert set(listed) - {"reference/index", "tutorial/index"} == pages
    chapters = (ROOT / "docs" / "tutorial" / "index.md").read_text("utf-8")
    assert all(f"\n{page.stem}\n" in chapters for page in TUTORIAL if page.stem != "index")


def anchors(page: Path) -> set[str]:
    """The headings as links name them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


# --- docs/first.md and docs/security.md, beyond running them ---


@contextmanager
def running(folder: Path, *program: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs one example; it is ended with the block, and in any case after a while."""
    command, pipe = [sys.executable, "-u", "-W", "error", *program], subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, text=True) as process:
        patience = Timer(PATIENCE, process.kill)
        patience.start()
        try:
            yield process
        finally:
            patience.cancel()
            process.kill()


def lines_until(process: subprocess.Popen[str], wanted: str) -> None:
    """Reads the process's output, up to the line with the wanted text."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if wanted in line:
            return
    raise AssertionError(f"{wanted!r} never came, only {lines}")


def test_the_first_server_and_its_clients_chat(folder: Path) -> None:
    with running(folder, "server.py") as server:
        with running(folder, "client.py") as client:
            lines_until(client, "Chat(sender=0, text='welcome')")
            lines_until(client, "Chat(sender=0, text='hello')")
            with running(folder, "client.py") as another:
                lines_until(another, "Chat(sender=1, text='hello')")
                lines_until(client, "Chat(sender=1, text='hello')")
                if sys.platform != "win32":
                    another.terminate()
                    assert another.wait() == 0
                    lines_until(server, "left: the other side disconnected")
        assert server.poll() is None


def test_the_first_server_is_short() -> None:
    lines = named(ROOT / "docs" / "first.md")["server.py"].splitlines()
    assert len([line for line in lines if line.strip()]) <= 18


def test_the_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) <= 120
    assert all(line.count("](") <= 2 for line in lines)


def test_a_player_gets_in_with_the_token_of_the_page_on_security(folder: Path) -> None:
    more = """
import time
for _ in range(30 * 60):
    time.sleep(1 / 60)
    with server.tick() as inbox, client.tick():
        for event in inbox.events:
            print(type(event).__name__, event.client.id)
    if client.connected and server.clients:
        break
"""
    code = named(ROOT / "docs" / "security.md")["production.py"]
    (folder / "production.py").write_text(code + more, "utf-8")
    with running(folder, "production.py") as process:
        lines_until(process, "Connected 7")


def test_the_numbers_of_the_readme_are_those_that_were_measured() -> None:
    compare = ROOT / "benches" / "compare"
    script = runpy.run_path(str(compare / "readme.py"))
    numbers = script["table"](json.loads((compare / "results.json").read_text("utf-8")))
    text = (ROOT / "README.md").read_text("utf-8")
    assert numbers.count("\n") > 5
    assert script["replaced"](text, numbers) == text
