"""The login backend. Users who prove their identity get a connect token, over HTTPS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flask import Flask, Response, request
from werkzeug.security import check_password_hash, generate_password_hash

import tickwire as tw
from tickwire.samples.login.game import PROTOCOL, TOKEN_SECONDS

MAX_REQUEST_BYTES = 4096


class Backend:
    """The accounts and the key. A real backend has a database, and limits failed logins.

    Args:
        key: the private key, shared only with the game servers.
        servers: the addresses of the game servers. Players try them in this order.
        passwords: the accounts' passwords, by name.
    """

    def __init__(
        self, key: bytes, servers: Sequence[tw.connections.AddressLike], passwords: Mapping[str, str]
    ) -> None:
        self._key = key
        self._servers = servers
        self._hashes = {name: generate_password_hash(password) for name, password in passwords.items()}
        self._ids = {name: number for number, name in enumerate(passwords, 1)}
        # Compared with when there is no such account, so that it takes as long.
        self._nobody = generate_password_hash("")

    def log_in(self, name: str, password: str) -> tw.ConnectToken | None:
        """Returns a token for an account; None if there is no such account, or the password is wrong."""
        matches = check_password_hash(self._hashes.get(name, self._nobody), password)
        if not matches or name not in self._hashes:
            return None
        return tw.ConnectToken.generate(
            protocol=PROTOCOL,
            key=self._key,
            client_id=self._ids[name],
            servers=self._servers,
            expires_in=TOKEN_SECONDS,
            user_data=name.encode(),  # sealed: only the game server reads it
        )


def make_app(backend: Backend) -> Flask:
    """Makes the web application of the backend: ``POST /login`` takes name and password as JSON and returns
    a token.
    """
    app = Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = MAX_REQUEST_BYTES

    @app.post("/login")
    def login() -> Response:
        given = request.get_json(silent=True)
        match given:
            case {"name": str(name), "password": str(password)}:
                token = backend.log_in(name, password)
            case _:
                return Response("send name and password as JSON\n", 400, mimetype="text/plain")
        if token is None:
            return Response("wrong name or password\n", 401, mimetype="text/plain")
        headers = {"Cache-Control": "no-store"}  # the answer holds this player's keys
        return Response(token.to_bytes(), headers=headers, mimetype="application/octet-stream")

    return app
