"""The strategy sample's window without a screen: mouse and keys are posted, and the world obeys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pygame
import pytest
import tickwire as tw
from conftest import paced
from tickwire.samples.rts import __main__ as rts
from tickwire.samples.rts.messages import PROTOCOL, SIZE, Kind
from tickwire.samples.rts.play import Lobby
from tickwire.samples.rts.player import Player
from tickwire.samples.rts.rules import ATTACKING, GATHERING, MOVING, RETURNING, Battlefield, Thing
from tickwire.samples.rts.window import MAP, SMALL_AT, Camera, Window


class Seat:
    """A player at a window, and another one, on a good virtual network."""

    def __init__(self) -> None:
        self.network = tw.testing.SimulatedNetwork(conditions=tw.Conditions(latency=0.03), seed=1)
        host = tw.peers.Peer.host(
            PROTOCOL, name="ann", players=2, tuning=tw.Tuning(bind="10.0.0.1:7"), network=self.network
        )
        guest = tw.peers.Peer.join(
            "10.0.0.1:7", PROTOCOL, name="bob", tuning=tw.Tuning(bind="10.0.0.2:7"), network=self.network
        )
        self.player, self.other = Player(host), Player(guest)
        self.window = Window(self.player)
        self.window.draw()
        self.run(2)
        host.start(countdown=0.5, seed=7)
        self.run(2)

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 60)):
            self.network.advance(1 / 60)
            assert self.window.handle_events()
            self.player.tick()
            self.other.tick()
            self.window.draw()

    @property
    def world(self) -> Battlefield:
        assert self.player.world is not None
        return self.player.world

    def own(self, *kinds: Kind) -> list[Thing]:
        return self.world.of(0, *kinds)

    def drag(self, corner: tuple[int, int], end: tuple[int, int]) -> None:
        left = pygame.BUTTON_LEFT
        pygame.event.post(pygame.event.Event(pygame.MOUSEBUTTONDOWN, button=left, pos=corner))
        pygame.event.post(pygame.event.Event(pygame.MOUSEBUTTONUP, button=left, pos=end))
        self.window.handle_events()

    def on_map(self, thing: Thing) -> tuple[int, int]:
        return self.window.camera.on_map(thing.x, thing.y)

    def select(self, thing: Thing) -> None:
        self.drag(self.on_map(thing), self.on_map(thing))

    def order(self, spot: tuple[int, int]) -> None:
        right = pygame.BUTTON_RIGHT
        pygame.event.post(pygame.event.Event(pygame.MOUSEBUTTONDOWN, button=right, pos=spot))
        self.run(1)

    def press(self, key: int) -> None:
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key))
        self.run(1)


@pytest.fixture
def seat(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seat]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    it = Seat()
    yield it
    it.player.close()
    it.other.close()
    it.window.screen.close()


def test_a_box_selects_workers_and_the_right_button_says_what_to_do(seat: Seat) -> None:
    workers = seat.own(Kind.WORKER)
    seat.drag((0, 0), (MAP - 1, MAP - 1))
    assert seat.window.selected == {unit.id for unit in seat.own(Kind.WORKER, Kind.SOLDIER)}
    mine = next(thing for thing in seat.world.things.values() if thing.kind == Kind.MINE)
    seat.order(seat.on_map(mine))
    assert all(worker.order in (GATHERING, RETURNING) and worker.target == mine.id for worker in workers)
    seat.select(workers[0])
    assert seat.window.selected == {workers[0].id}
    seat.order((300, 200))
    assert workers[0].order == MOVING
    assert (workers[0].to_x, workers[0].to_y) == seat.window.camera.in_world((300, 200))
    assert workers[1].order in (GATHERING, RETURNING)
    seat.drag((MAP - 200, 400), (MAP - 200, 400))
    assert seat.window.selected == set()


def test_soldiers_attack_what_is_under_the_mouse(seat: Seat) -> None:
    for player in (seat.player, seat.other):
        assert player.world is not None
        player.world.things[900] = Thing(900, 0, Kind.SOLDIER, 1500, 1500, 120)
    (base,) = seat.world.of(1, Kind.BASE)
    seat.press(pygame.K_a)
    assert seat.window.selected == {unit.id for unit in seat.own(Kind.SOLDIER)}
    seat.drag(SMALL_AT.center, SMALL_AT.center)
    while seat.window.camera.span < SIZE:
        pygame.event.post(pygame.event.Event(pygame.MOUSEWHEEL, y=-1))
        seat.run(1 / 60)
    seat.order(seat.on_map(base))
    assert seat.world.things[900].order == ATTACKING
    assert seat.world.things[900].target == base.id
    assert seat.player.crc == seat.other.crc


def test_keys_build_train_and_pause(seat: Seat, tmp_path: Path) -> None:
    seat.select(seat.own(Kind.WORKER)[0])
    seat.press(pygame.K_b)
    _, barracks = seat.own(Kind.BARRACKS)
    assert seat.world.purses[0].gold < 100
    (base,) = seat.own(Kind.BASE)
    seat.select(base)
    seat.press(pygame.K_t)
    assert base.left
    assert seat.world.purses[0].gold < 100
    seat.press(pygame.K_n)
    assert seat.own(Kind.BASE) == [base], "there is no gold, and no worker is selected"
    seat.press(pygame.K_p)
    assert "paused" in seat.player.status()
    left = base.left
    seat.run(1)
    assert base.left == left
    seat.press(pygame.K_p)
    assert "paused" not in seat.player.status()
    assert barracks.left == 0
    picture = tmp_path / "rts.png"
    seat.window.screen.save(picture)
    assert pygame.image.load(picture).get_size()[1] == MAP
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE))
    assert not seat.window.handle_events()


def test_a_zoom_keeps_the_place_under_the_mouse() -> None:
    camera = Camera()
    for spot in ((100, 200), (400, 300), (700, 80)):
        before = camera.in_world(spot)
        camera.zoom(1, spot)
        assert camera.in_world(spot) == pytest.approx(before, abs=8)
    camera.zoom(-20, (0, 0))
    assert camera == Camera()


def test_a_lost_line_is_told_of_and_comes_back(seat: Seat) -> None:
    assert seat.player.trouble() is None
    for _ in range(180):
        seat.network.advance(1 / 60)
        seat.player.tick()
        seat.window.draw()
    assert seat.player.trouble() == "Connection lost, reconnecting: 17 s left"
    seat.run(3)
    assert seat.player.trouble() is None


def test_bots_take_the_other_seats(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    picture = tmp_path / "rts.png"
    arguments = ["play", "--headless", "--seconds", "5", "--screenshot", str(picture)]
    assert rts.main(arguments) == 0
    assert "4 players at the end" in capsys.readouterr().out
    assert picture.stat().st_size > 1000


def test_a_friend_joins_by_code_and_bots_take_the_rest() -> None:
    with tw.peers.RendezvousServer("127.0.0.1:0") as server:
        where = server.address
        host = tw.peers.Peer.host(
            PROTOCOL,
            name="ann",
            players=4,
            tuning=tw.Tuning(bind="127.0.0.1:0"),
            rendezvous=tw.peers.Rendezvous(where),
        )
        lobby, players = Lobby(host, 2, host.address, where), [Player(host)]
        for _ in paced(120, 30):
            if host.code is not None and len(players) == 1:
                code = host.code
                peer = tw.peers.Peer.join(
                    code,
                    PROTOCOL,
                    name="bob",
                    tuning=tw.Tuning(bind="127.0.0.1:0"),
                    rendezvous=tw.peers.Rendezvous(where),
                )
                players.append(Player(peer))
            for player in players:
                player.tick()
            lobby.tick(is_enough=False)
            if len(players) == 2 and all(it.lockstep and it.lockstep.turn >= 3 for it in players):
                break
        assert [player.name for player in host.players[:2]] == ["ann", "bob"]
        assert len(lobby.bots) == 2
        assert players[1].lockstep is not None
        for player in players:
            assert player.status()[0].startswith("turn ")
            player.close()
        lobby.close()


def test_it_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert rts.main(["play", "--headless", "--host", "--join", "127.0.0.1:9"]) == 1
    assert "not both" in capsys.readouterr().err
    assert rts.main(["play", "--headless", "--join", "KTRX7B"]) == 1
    assert "with a code --rendezvous" in capsys.readouterr().err
    assert rts.main(["play", "--headless", "--host", "nowhere"]) == 1
    assert "can't open a game" in capsys.readouterr().err
