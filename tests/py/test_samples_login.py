"""The login sample: the backend without a network, and all of it over loopback."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import tickwire as tw
from tickwire.samples import command
from tickwire.samples.login import game
from tickwire.samples.login.__main__ import log_in, main
from tickwire.samples.login.backend import MAX_REQUEST_BYTES, Backend, make_app
from tickwire.testing import SimulatedNetwork, advance
from werkzeug.serving import make_server

KEY = bytes(range(32))
SERVER = "127.0.0.1:40000"
EPOCH = 1_000_000_000  # when simulated networks begin


@pytest.fixture(scope="module")
def backend() -> Backend:
    return Backend(KEY, [SERVER], {"ann": "opensesame", "bob": "xyzzy"})


@contextmanager
def listening(app: Any) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, app)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_who_knows_the_password_gets_a_token_that_names_the_servers(backend: Backend) -> None:
    answer = make_app(backend).test_client().post("/login", json={"name": "bob", "password": "xyzzy"})
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    token = tw.ConnectToken.from_bytes(answer.data)
    assert [str(server) for server in token.servers] == [SERVER]
    assert token.expires - token.created == game.TOKEN_SECONDS
    assert KEY not in answer.data


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"name": "bob", "password": "opensesame"}, 401),
        ({"name": "eve", "password": ""}, 401),
        ({"name": "", "password": ""}, 401),
        ({"name": "bob"}, 400),
        ({"name": "bob", "password": 5}, 400),
        (["bob", "xyzzy"], 400),
        ({"name": "bob", "password": "x" * MAX_REQUEST_BYTES}, 413),
    ],
)
def test_nobody_else_does(backend: Backend, given: Any, code: int) -> None:
    answer = make_app(backend).test_client().post("/login", json=given)
    assert answer.status_code == code
    assert len(answer.data) < 300


def test_what_is_no_json_is_refused(backend: Backend) -> None:
    client = make_app(backend).test_client()
    assert client.post("/login", data=b"\xff{").status_code == 400
    assert client.get("/login").status_code == 405


def test_the_game_knows_a_player_by_the_token() -> None:
    network = SimulatedNetwork()
    server = tw.Server(SERVER, game.PROTOCOL, key=KEY, network=network)
    token = tw.ConnectToken.generate(
        protocol=game.PROTOCOL, key=KEY, client_id=1, servers=[SERVER], user_data="ann é".encode(), now=EPOCH
    )
    client = tw.Client(game.PROTOCOL, token, network=network)
    messages: list[Any] = []
    for _ in range(60):
        with server.tick() as inbox:
            game.tick(server, inbox)
        messages += advance(network, client, seconds=1 / 60)[0].messages
    assert messages == [game.Welcome("ann é")]


def test_a_player_logs_in_and_plays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key_file = tmp_path / "game.key"
    assert main(["key", str(key_file)]) == 0
    assert key_file.stat().st_mode & 0o077 == 0
    key = bytes.fromhex(key_file.read_text())
    with tw.Server(
        "127.0.0.1:0", game.PROTOCOL, key=key, access=tw.tokens.Access(max_token_lifetime=game.TOKEN_SECONDS)
    ) as server:
        over = threading.Event()

        def serve() -> None:
            with tw.run(server, game.TICKS_PER_SECOND) as ticks:
                for _, inbox in ticks:
                    game.tick(server, inbox)
                    if over.is_set():
                        return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with listening(make_app(Backend(key, [server.address], {"ann": "opensesame"}))) as url:
                monkeypatch.setattr("sys.stdin", io.StringIO("opensesame\n"))
                assert main(["play", "ann", "--backend", url]) == 0
                monkeypatch.setattr("sys.stdin", io.StringIO("guess\n"))
                assert main(["play", "ann", "--backend", url]) == 1
        finally:
            over.set()
            thread.join()
    shown = capsys.readouterr()
    assert "The server knows us as ann." in shown.out
    assert "wrong name or password" in shown.err


def test_a_backend_that_is_another_program_is_found_out() -> None:
    def app(environ: Any, start_response: Any) -> list[bytes]:
        environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))  # else closing would reset the connection
        start_response("200 OK", [])
        return [b"hello"]

    with listening(app) as url, pytest.raises(command.SampleError, match="sent no token"):
        log_in(url, "ann", "opensesame")


def test_a_backend_that_is_not_there_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(command.SampleError, match=r"no backend at http://127.0.0.1:9 .*start one"):
        log_in("http://127.0.0.1:9", "ann", "opensesame")
    with pytest.raises(SystemExit) as left:
        main(["play", "ann", "--backend", "http://game.example.org"])
    assert left.value.code == 2
    assert "https" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["serve"], "needs --key"),
        (["backend", "--account", "ann:x"], "needs --key"),
        (["key", "/nonexistent/game.key"], "name a file"),
        (["backend", "--key", "KEY", "--account", "ann:x", "--tls", "/nonexistent", "/nonexistent"], "PEM"),
    ],
)
def test_what_is_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    key_file = tmp_path / "game.key"
    main(["key", str(key_file)])
    arguments = [str(key_file) if each == "KEY" else each for each in arguments]
    assert main([*arguments, "--listen", "127.0.0.1:0"] if arguments[0] == "backend" else arguments) == 1
    assert sentence in capsys.readouterr().err


def test_an_account_must_have_name_and_password(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["backend", "--account", "ann"])
    assert left.value.code == 2
    assert "NAME:PASSWORD" in capsys.readouterr().err
