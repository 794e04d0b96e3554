"""The matchmaker: who gets a token, and for which place."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import tickwire as tw
from starlette.testclient import TestClient
from tickwire.fleet import Place
from tickwire.samples.matchmaker import game
from tickwire.samples.matchmaker.backend import (
    MAX_REQUEST_BYTES,
    PER_ACCOUNT,
    PER_ADDRESS,
    Matchmaker,
    account_of,
    make_app,
    sign_ticket,
)
from tickwire.samples.matchmaker.limits import WINDOW, LocalLimits

SECRET = b"between login and matchmaker"
LATER = 4_000_000_000


class Rooms:
    """An engine that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = False

    def find_or_create(self, room: str) -> Place:
        self.asked.append(room)
        if self.fails:
            raise OSError("no server")
        return Place(tw.Address("203.0.113.7:40000"), game.PROTOCOL.id)


@pytest.fixture
def rooms() -> Rooms:
    return Rooms()


@pytest.fixture
def client(rooms: Rooms) -> Iterator[TestClient]:
    with TestClient(make_app(Matchmaker(rooms, game.KEY, SECRET, LocalLimits()))) as client:
        yield client


def bearer(account: str, expires: int = LATER) -> dict[str, str]:
    return {"Authorization": f"Bearer {sign_ticket(SECRET, account, expires)}"}


def test_who_has_a_ticket_gets_a_token_for_the_rooms_place(client: TestClient, rooms: Rooms) -> None:
    answer = client.post("/join", json={"room": "attic"}, headers=bearer("ann"))
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    token = tw.ConnectToken.from_bytes(answer.content)
    assert [str(server) for server in token.servers] == ["203.0.113.7:40000"]
    assert token.protocol_id == game.PROTOCOL.id
    assert rooms.asked == ["attic"]


def test_a_room_is_looked_for_once_for_many(client: TestClient, rooms: Rooms) -> None:
    for number in range(30):
        assert client.post("/join", json={"room": "attic"}, headers=bearer(f"p{number}")).status_code == 200
    assert len(rooms.asked) <= 3  # one for each second


def test_a_room_that_could_not_be_had_is_looked_for_again(client: TestClient, rooms: Rooms) -> None:
    rooms.fails = True
    answer = client.post("/join", json={"room": "attic"}, headers=bearer("ann"))
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    rooms.fails = False
    assert client.post("/join", json={"room": "attic"}, headers=bearer("ann")).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer x.y"},
        {"Authorization": "Bearer " + "x" * 600},
        {"Authorization": f"Bearer {sign_ticket(b'another', 'ann', LATER)}"},
        bearer("ann", 1_000),
    ],
)
def test_strangers_get_nothing(client: TestClient, rooms: Rooms, headers: dict[str, str]) -> None:
    assert client.post("/join", json={"room": "attic"}, headers=headers).status_code == 401
    assert rooms.asked == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"room": 3}', b"\xff", b" " * (MAX_REQUEST_BYTES + 1)])
def test_what_is_no_request_is_refused(client: TestClient, rooms: Rooms, body: bytes) -> None:
    assert client.post("/join", content=body, headers=bearer("ann")).status_code == 400
    assert rooms.asked == []


def test_tokens_are_limited_for_each_account_and_each_address(client: TestClient) -> None:
    codes = [
        client.post("/join", json={"room": "attic"}, headers=bearer("ann")).status_code
        for _ in range(PER_ACCOUNT + 1)
    ]
    assert codes == [200] * PER_ACCOUNT + [429]
    for number in range(PER_ADDRESS):
        last = client.post("/join", json={"room": "attic"}, headers=bearer(f"p{number}")).status_code
    assert last == 429


def test_a_new_window_begins_anew() -> None:
    now = 100.0
    limits = LocalLimits(lambda: now)
    assert [limits.count("ann"), limits.count("ann"), limits.count("bob")] == [1, 2, 1]
    now += WINDOW
    assert limits.count("ann") == 1


def test_a_ticket_says_whose_it_is_until_it_ends() -> None:
    now = time.time()
    ticket = sign_ticket(SECRET, "änn", int(now) + 10)
    assert account_of(SECRET, ticket, now) == "änn"
    assert account_of(SECRET, ticket, now + 11) is None
    assert account_of(SECRET, ticket[:-1], now) is None
