"""The page "From sockets and pickle or JSON": both of its programs play, and its code is theirs."""

from __future__ import annotations

import importlib
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
FOLDER, PAGE = DOCS / "porting", DOCS / "porting_sockets.md"
PROGRAMS = ["before", "after"]


@pytest.fixture
def game(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module(request.param)
    for name in ("before", "after", "rules"):
        sys.modules.pop(name, None)


def play(server: Any, clients: list[Any], done: Callable[[], bool], keys: tuple[int, int] = (0, 0)) -> None:
    until = time.monotonic() + 30
    while not done():
        assert time.monotonic() < until
        for number, client in enumerate(clients):
            client.tick(keys if number == 0 else (0, 0))
        server.tick()
        time.sleep(1 / 60)


@pytest.mark.filterwarnings("ignore:.*development mode")
@pytest.mark.parametrize("game", PROGRAMS, indirect=True)
def test_players_meet_score_and_leave(game: Any) -> None:
    server = game.Server(("127.0.0.1", 0))
    host, port = (
        server.address if isinstance(server.address, tuple) else (server.address.host, server.address.port)
    )
    clients = [game.Client((host, port), name) for name in ("ann", "bob")]
    ann, bob = clients

    def seen(client: Any) -> dict[str, Any]:
        return client.players()[0]

    try:
        play(server, clients, lambda: all(seen(each).keys() == {"ann", "bob"} for each in clients))
        (x, y), _ = seen(bob)["ann"]
        way = 1 if x < 400 else -1
        play(server, clients, lambda: way * (seen(bob)["ann"][0][0] - x) > 60, (way, 0))
        assert seen(bob)["ann"][0][1] == pytest.approx(y, abs=1)

        until = time.monotonic() + 30
        while seen(bob)["ann"][1] == 0:
            assert time.monotonic() < until
            here, coin = seen(ann)["ann"][0], ann.players()[1]
            ann.tick([(at < to - 4) - (at > to + 4) for at, to in zip(here, coin, strict=True)])
            bob.tick((0, 0))
            server.tick()
            time.sleep(1 / 60)
        ann.close()
        play(server, [bob], lambda: seen(bob).keys() == {"bob"})
        assert not bob.lost
    finally:
        for client in clients:
            client.close()
        server.close()


def test_the_code_of_the_page_is_that_of_the_programs() -> None:
    programs = "".join((FOLDER / f"{name}.py").read_text("utf-8") for name in PROGRAMS)
    blocks = re.findall(r"(?:^    .*\n|^\n(?=\s*    ))+", PAGE.read_text("utf-8"), re.M)
    code = [block for block in blocks if "window.py" not in block]
    assert len(code) >= 5
    for block in code:
        text = re.sub(r"^    ", "", block, flags=re.M).strip("\n")
        assert text in programs, text
        assert text.count("\n") < 25


def test_the_page_is_short() -> None:
    assert len(PAGE.read_text("utf-8").split()) <= 1200
