"""The arena sample: its game in virtual time, its window without a screen."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pygame
import pytest
import tickwire as tw
from tickwire.samples import command
from tickwire.samples.arena import overlay
from tickwire.samples.arena.messages import MOVES, PROTOCOL, Move
from tickwire.samples.arena.player import DELAY_TICKS, Bot, Player
from tickwire.samples.arena.server import Arena
from tickwire.samples.arena.window import GEM, Window
from tickwire.samples.arena.world import HEIGHT, RADIUS, SPEED, TICKS_PER_SECOND, WIDTH, moved, start
from tickwire.testing import Conditions, SimulatedNetwork

COMMAND = [sys.executable, "-m", "tickwire.samples.arena"]
BAD = Conditions(latency=0.08, jitter=0.03, loss=0.05)


class Match:
    """A server and its players, in virtual time."""

    def __init__(self, players: int, conditions: Conditions | None = None) -> None:
        self.network = SimulatedNetwork(seed=3, conditions=conditions)
        self.server = tw.Server("127.0.0.1:40000", PROTOCOL, network=self.network, max_clients=16)
        self.arena = Arena(self.server, seed=1)
        self.players = [Player(self.connect()) for _ in range(players)]
        while any(player.spot is None for player in self.players):
            self.tick()

    def connect(self) -> tw.Client:
        return tw.Client.connect(self.server.address, PROTOCOL, network=self.network)

    def tick(self, steer: tuple[float, float] = (0.0, 0.0)) -> None:
        with self.server.tick() as inbox:
            self.arena.tick(inbox)
        for player in self.players:
            player.tick(steer)
        self.network.advance(1 / TICKS_PER_SECOND)

    def run(self, ticks: int, steer: tuple[float, float] = (0.0, 0.0)) -> None:
        for _ in range(ticks):
            self.tick(steer)


def test_a_player_moves_at_once_and_where_the_server_has_it_later() -> None:
    match = Match(1, BAD)
    player = match.players[0]
    before = player.spot
    match.tick((1.0, 0.0))
    assert before is not None
    assert player.spot == (before[0] + SPEED / TICKS_PER_SECOND, before[1])
    match.run(20, (0.0, 1.0))
    foreseen = player.spot
    match.run(90)
    assert player.spot == player.confirmed
    assert player.confirmed == pytest.approx(foreseen, abs=0.1)


def test_the_others_are_shown_between_two_snapshots() -> None:
    match = Match(2)
    one, two = match.players
    match.run(60)
    for _ in range(30):
        before = two.others()[0]
        match.tick((0.5, 0.0))
        assert two.others()[0][0] - before[0] <= 2 * SPEED / TICKS_PER_SECOND
    match.run(DELAY_TICKS + 10)
    assert one.spot is not None
    assert two.others()[0] == pytest.approx(one.spot, abs=1.0)


def test_nobody_is_faster_for_sending_more_moves() -> None:
    match = Match(2)
    fast = match.players[1].client
    assert fast.slot == 1
    begin = start(1)
    for tick in range(1, TICKS_PER_SECOND + 1):
        with match.server.tick() as inbox:
            match.arena.tick(inbox)
        with fast.tick():
            for number in range(4):
                fast.send(Move(1000 + 4 * tick + number, 0.0, 1.0), MOVES)
        match.network.advance(1 / TICKS_PER_SECOND)
    match.run(30)
    confirmed = match.players[1].confirmed
    assert confirmed is not None
    allowed = SPEED * 1.6  # a second of them, what was saved up, and what came after
    assert math.dist(confirmed, begin) < allowed


def test_bots_take_gems_and_all_agree_on_the_scores() -> None:
    match = Match(3, BAD)
    bots = [Bot(player, seed=number) for number, player in enumerate(match.players)]
    news = 0
    for _ in range(20 * TICKS_PER_SECOND):
        with match.server.tick() as inbox:
            match.arena.tick(inbox)
        for bot in bots:
            bot.tick()
        news += len(match.players[0].news)
        match.network.advance(1 / TICKS_PER_SECOND)
    match.run(120)
    scores = [player.scores for player in match.players]
    assert scores[0] == scores[1] == scores[2]
    assert sum(scores[0].values()) >= news >= 5
    assert match.players[0].gem == match.players[2].gem


def test_who_leaves_is_no_longer_shown() -> None:
    match = Match(2)
    match.run(30)
    assert list(match.players[0].others()) == [1]
    match.players.pop().client.close()
    match.run(60)
    assert match.players[0].others() == {}


def test_players_stay_within_the_walls() -> None:
    spot = (RADIUS, HEIGHT - RADIUS)
    assert moved(spot, (-1.0, 1.0)) == spot
    assert math.dist(moved((480.0, 270.0), (1.0, 1.0)), (480.0, 270.0)) == pytest.approx(
        SPEED / TICKS_PER_SECOND
    )


def test_the_overlay_says_how_the_connection_does() -> None:
    match = Match(1, BAD)
    match.run(300, (0.1, 0.0))
    text = overlay.lines("4g", match.players[0].client.stats())
    assert text[0].startswith("network: 4g")
    for word in ("RTT 1", "jitter", "% up", "% down", "kbit/s"):
        assert word in " ".join(text)
    assert overlay.lines("4g", None)[1] == "connecting"


# --- the window ---


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield
    pygame.quit()


@pytest.mark.usefixtures("unseen")
def test_keys_steer_change_the_network_and_leave() -> None:
    match = Match(1)
    parsed = Namespace(network="none", address=tw.Address("127.0.0.1:9"))
    with command.open_proxy(parsed) as proxy:
        window = Window(match.players[0], proxy, "none")
        assert window.handle_events()
        assert window.steer() == (0.0, 0.0)
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_n))
        assert window.handle_events()
        window.draw()
        assert window._network == command.NETWORKS[1]
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE))
        assert not window.handle_events()
        with pytest.raises(command.SampleError, match=r"can't write .*--screenshot"):
            window.save(Path("/nonexistent/arena.png"))
        window.close()


def run(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    environment = {
        k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    }
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment | changes,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_match_with_bots_is_played_and_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "arena.png"
    done = run(
        "play",
        "--bots",
        "2",
        "--auto",
        "--seconds",
        "3",
        "--screenshot",
        str(picture),
        SDL_VIDEODRIVER="dummy",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    image = pygame.image.load(picture)
    assert image.get_size() == (WIDTH, HEIGHT)
    colors = {
        tuple(image.get_at((x, y))[:3]) for x in range(0, int(WIDTH), 2) for y in range(0, int(HEIGHT), 2)
    }
    assert GEM in colors
    assert overlay.GREEN in colors  # the curve of the RTT


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a display")
def test_without_a_display_it_says_so() -> None:
    done = run("play", "--seconds", "3")
    assert done.returncode == 1
    assert "needs a display" in done.stderr
    assert "Traceback" not in done.stderr
