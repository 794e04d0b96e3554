"""The arena sample: its game in virtual time, its window without a screen."""

from __future__ import annotations

import itertools
import math
import os
import socket
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
from tickwire.samples.arena.messages import PROTOCOL, Avatar, Move
from tickwire.samples.arena.player import Bot, Controls, Player
from tickwire.samples.arena.rules import (
    HEIGHT,
    PILLARS,
    PULSE,
    RADIUS,
    RESPAWN_TICKS,
    RIFLE,
    ROCKET,
    SPEED,
    TICKS_PER_SECOND,
    WIDTH,
    Spot,
    free,
    moved,
    reached,
    start,
)
from tickwire.samples.arena.server import Arena
from tickwire.samples.arena.window import PILLAR, SIDE, Window
from tickwire.samples.screen import GREEN, INK, PANEL
from tickwire.testing import Conditions, SimulatedNetwork, Simulation

COMMAND = [sys.executable, "-m", "tickwire.samples.arena"]
BAD = Conditions(latency=0.1, jitter=0.03, loss=0.05)
LONG = Conditions(latency=0.1)
STILL = Controls()
RIGHT, UP = Controls(steer=(1.0, 0.0)), Controls(steer=(0.0, -1.0))


class Match:
    """A server and its players, in virtual time."""

    def __init__(self, players: int, conditions: Conditions | None = None) -> None:
        self.network = SimulatedNetwork(seed=3, conditions=conditions)
        self.server = tw.Server("127.0.0.1:40000", PROTOCOL, network=self.network, max_clients=16)
        self.arena = Arena(self.server, seed=1)
        self.players = [Player(self.connect(), f"player {number}") for number in range(players)]
        while any(player.spot is None for player in self.players):
            self.tick()
        self.run(180)  # until the clocks have settled

    def connect(self) -> tw.Client:
        return tw.Client.connect(self.server.address, PROTOCOL, network=self.network)

    def tick(self, *controls: Controls) -> None:
        """A tick, with what each player wants; of those without, nothing."""
        with self.server.tick() as inbox:
            self.arena.tick(inbox)
        for number, player in enumerate(self.players):
            player.tick(controls[number] if number < len(controls) else STILL)
        self.network.advance(1 / TICKS_PER_SECOND)

    def run(self, ticks: int, *controls: Controls) -> None:
        for _ in range(ticks):
            self.tick(*controls)

    def avatar(self, number: int) -> Avatar:
        """The server's own."""
        avatars = self.server.world.objects(Avatar)
        return next(avatar for avatar in avatars if avatar.slot == self.players[number].client.slot)

    def put(self, *spots: Spot) -> None:
        """Has the players be elsewhere, until all know it."""
        for number, spot in enumerate(spots):
            self.avatar(number).position = spot
        self.run(90)


def aim_at(player: Player, weapon: int = RIFLE) -> Controls:
    """The input of a player that shoots at another one's drawn position."""
    (other,) = player.others()
    assert player.spot is not None
    x, y = other.position[0] - player.spot[0], other.position[1] - player.spot[1]
    return Controls(aim=math.degrees(math.atan2(y, x)), weapon=weapon)


def test_a_player_moves_at_once_and_where_the_server_has_it_later() -> None:
    match = Match(1, LONG)
    player = match.players[0]
    match.put((100.0, 270.0))
    before = player.spot
    match.tick(RIGHT)
    assert before is not None
    assert player.spot is not None
    assert player.spot[0] - before[0] == pytest.approx(SPEED / TICKS_PER_SECOND)
    match.run(20, UP)
    foreseen = player.spot
    assert player.avatar is not None
    assert math.dist(player.avatar.position, foreseen) > 20, "the server's word is late"
    match.run(90)
    assert player.body is not None
    assert player.body.corrections == 1, "the one of put()"
    assert player.avatar.position == pytest.approx(foreseen, abs=0.1)


def test_without_prediction_a_player_moves_a_round_trip_later() -> None:
    match = Match(1, LONG)
    player = match.players[0]
    match.put((100.0, 270.0))
    player.predicts = False
    match.tick()
    before = player.spot
    match.run(6, RIGHT)
    assert player.spot == before
    match.run(20, RIGHT)
    assert player.spot != before


def test_the_others_move_evenly_unless_it_is_switched_off() -> None:
    match = Match(2, BAD)
    watcher = match.players[1]
    largest = {}
    for watcher.interpolates in (True, False):
        match.put((60.0, 270.0), (60.0, 60.0))
        steps = []
        for _ in range(80):
            before = watcher.others()[0].position[0]
            match.tick(RIGHT)
            steps.append(watcher.others()[0].position[0] - before)
        largest[watcher.interpolates] = max(steps)
    step = SPEED / TICKS_PER_SECOND
    assert largest[True] <= 1.5 * step
    assert largest[False] >= 2 * step


@pytest.mark.parametrize("rewinds", [True, False])
def test_a_hit_is_judged_as_the_shooter_saw_it(rewinds: bool) -> None:
    match = Match(2, LONG)
    shooter, target = match.players
    shooter.rewinds = rewinds
    match.put((100.0, 500.0), (300.0, 60.0))
    match.run(40, STILL, RIGHT)
    seen = shooter.others()[0].position
    assert math.dist(seen, match.avatar(1).position) > 1.9 * RADIUS, "it is elsewhere by now"
    match.tick(aim_at(shooter), RIGHT)
    match.run(40, STILL, RIGHT)
    health = match.avatar(1).health
    assert health == (75 if rewinds else 100)
    if rewinds:
        judgement = match.server.world.judgements[-1]
        assert judgement.ghosts[0]["saw"]["position"] == pytest.approx(seen, abs=5.0)
        assert shooter.avatar is not None
        assert shooter.avatar.rewinds == 1
        assert 150 < shooter.avatar.rewound < 400
    assert target.avatar is not None
    assert target.avatar.health == health


def test_a_rocket_is_shown_at_once_and_hurts_where_it_bursts() -> None:
    match = Match(2, LONG)
    shooter = match.players[0]
    match.put((60.0, 500.0), (360.0, 500.0))
    match.tick(aim_at(shooter, ROCKET))
    assert len(shooter.rockets()) == 1
    assert match.players[1].rockets() == []
    spots = []
    for _ in range(30):
        match.tick()
        spots += shooter.rockets()
    assert len(match.players[1].rockets()) == 1
    assert len(spots) == 30, "one, and the same when the real one has come"
    assert all(6 < after[0] - before[0] < 8 for before, after in itertools.pairwise(spots))
    match.run(60)
    assert shooter.rockets() == match.players[1].rockets() == []
    assert shooter.fired.refused == 0
    assert match.avatar(1).health < 60
    assert match.avatar(0).health == 100


def test_a_rocket_that_the_server_never_fired_is_taken_back() -> None:
    match = Match(1, LONG)
    match.avatar(0).alive = False
    match.tick(Controls(weapon=ROCKET))
    assert len(match.players[0].rockets()) == 1
    match.run(60)
    assert match.players[0].rockets() == []
    assert match.players[0].fired.refused == 1


def test_a_pulse_hits_all_around_and_who_is_dead_comes_back() -> None:
    match = Match(3)
    match.put((100.0, 270.0), (100.0, 220.0), (100.0, 500.0))
    match.avatar(1).health = 10
    match.run(10)
    news = []
    for tick in range(10):
        match.tick(Controls(weapon=PULSE if tick == 0 else 0))
        news += match.players[2].news
    assert news == [(0, 1, PULSE)]
    assert (match.avatar(0).score, match.avatar(1).deaths, match.avatar(2).health) == (1, 1, 100)
    dead = match.players[1]
    assert dead.avatar is not None
    assert not dead.avatar.alive
    where = match.avatar(1).position
    match.run(20, STILL, Controls((1.0, 0.0), 0.0, RIFLE))
    assert not match.avatar(1).alive, "too early"
    assert len(match.players[0].others()) == 1
    assert match.avatar(1).position == where, "the dead don't move"
    match.run(RESPAWN_TICKS, STILL, Controls(weapon=RIFLE))
    assert match.avatar(1).alive
    assert dead.avatar.health == 100


def test_nobody_plays_before_joining() -> None:
    match = Match(2)
    silent = match.connect()
    for _ in range(200):
        with silent.tick():
            silent.send_input(Move(16, 0, 0.0, RIFLE))
        match.tick()
    assert len(match.server.world.objects(Avatar)) == 2


def test_two_bots_play_over_a_bad_line_and_all_agree() -> None:
    match = Match(2, BAD)
    bots = [Bot(player, seed=number) for number, player in enumerate(match.players)]
    kills = 0
    for _ in range(30 * TICKS_PER_SECOND):
        with match.server.tick() as inbox:
            match.arena.tick(inbox)
        for bot in bots:
            bot.tick()
        kills += len(match.players[0].news)
        match.network.advance(1 / TICKS_PER_SECOND)
    match.run(60)
    truth = {avatar.name: (avatar.score, avatar.deaths) for avatar in match.server.world.objects(Avatar)}
    assert kills >= 3
    assert sum(score for score, _ in truth.values()) >= kills
    for player in match.players:
        assert {avatar.name: (avatar.score, avatar.deaths) for avatar in player.avatars()} == truth
        assert player.body is not None
        assert player.avatar is not None
        # Of each death and each return one, as nobody foresees them, and some of inputs that were late.
        assert 1 <= player.body.corrections <= 4 * sum(deaths for _, deaths in truth.values()) + 10
        assert player.avatar.rewinds > 5
    judgements = match.server.world.judgements
    assert len(judgements) > 5
    assert judgements.too_old == judgements.future == judgements.unsaid == 0
    assert match.server.counters["calls.failed"] == 0


def test_who_leaves_is_no_longer_shown() -> None:
    match = Match(2)
    assert [other.name for other in match.players[0].others()] == ["player 1"]
    match.players.pop().client.close()
    match.run(60)
    assert match.players[0].others() == []
    assert len(match.players[0].avatars()) == 1


def test_players_stay_within_the_walls_and_out_of_pillars() -> None:
    spot = (RADIUS, HEIGHT - RADIUS)
    assert moved(spot, (-1.0, 1.0)) == spot
    there = moved((100.0, 270.0), (1.0, 1.0))
    assert math.dist(there, (100.0, 270.0)) == pytest.approx(SPEED / TICKS_PER_SECOND)
    x, y, radius = PILLARS[0]
    here = (x - 100, y + 1.0)
    for _ in range(60):
        here = moved(here, (1.0, 0.0))
        assert math.dist(here, (x, y)) >= radius + RADIUS - 1e-9
    assert all(
        math.dist(start(number), (x, y)) > radius + RADIUS
        for number in range(100)
        for x, y, radius in PILLARS
    )


def test_shots_end_at_walls_and_pillars() -> None:
    assert free((100.0, 270.0), 180.0) == pytest.approx(100.0)
    x, y, radius = PILLARS[0]
    assert free((x, y + 100), 270.0) == pytest.approx(100 - radius)
    assert reached((0.0, 0.0), 0.0, (50.0, 5.0), 4.0) == math.inf
    assert reached((0.0, 0.0), 180.0, (50.0, 0.0), 4.0) == math.inf


def test_the_overlay_says_how_the_connection_does_and_what_hides_it() -> None:
    match = Match(1, BAD)
    player = match.players[0]
    player.interpolates = False
    match.run(120)
    text = overlay.lines("4g", player.client.stats, player)
    assert text[0].startswith("network: 4g")
    for words in (
        "RTT 2",
        "jitter",
        "% up",
        "% down",
        "kbit/s",
        "on  P: prediction",
        "corrections",
        "off I: ",
        "rewind",
    ):
        assert words in " ".join(text)
    assert overlay.lines("4g", None, player)[1] == "connecting"


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
        player = match.players[0]
        assert window.controls()[0::2] == ((0.0, 0.0), 0)
        for key in (pygame.K_p, pygame.K_i, pygame.K_r):
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key))
        assert window.handle_events()
        assert (player.predicts, player.interpolates, player.rewinds) == (False, False, False)
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_n))
        assert window.handle_events()
        window.draw()
        assert window._network == command.NETWORKS[1]
        assert window._overlay.is_shown
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_TAB))
        assert window.handle_events()
        assert not window._overlay.is_shown
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE))
        assert not window.handle_events()
        with pytest.raises(command.SampleError, match=r"can't write .*--screenshot"):
            window.screen.save(Path("/nonexistent/arena.png"))
        window.screen.close()


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
    assert image.get_size() == (WIDTH + SIDE, HEIGHT)
    spots = [(x, y) for x in range(0, image.get_width(), 2) for y in range(image.get_height())]
    field, panel = (
        {tuple(image.get_at(at)[:3]) for at in spots if (at[0] < WIDTH) == is_field}
        for is_field in (True, False)
    )
    assert PILLAR in field
    assert GREEN in panel  # the curve of the RTT
    assert INK in panel
    assert PANEL not in field  # nothing lies over the players


def test_the_rocket_of_a_player_who_left_still_kills() -> None:
    match = Match(2)
    match.put((60.0, 500.0), (360.0, 500.0))
    shooter, victim = match.players[0], match.avatar(1)
    victim.health = 1
    match.tick(aim_at(shooter, ROCKET))
    match.run(5)
    shooter.client.close()
    match.players = match.players[1:]
    match.run(120)
    assert len(match.server.clients) == 1
    assert (victim.alive, victim.deaths) == (False, 1)


def test_who_hosts_plays_and_others_join() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_port:
        any_port.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{any_port.getsockname()[1]}"
    host = [*COMMAND, "--host", "--headless", "--bots", "1", "--listen", address, "--seconds", "6"]
    with subprocess.Popen(host, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as hosting:
        assert hosting.stdout is not None
        assert address in hosting.stdout.readline()
        joined = run("join", address, "--headless", "--name", "ann", "--seconds", "2", "--network", "none")
        assert (joined.returncode, joined.stderr) == (0, "")
        assert joined.stdout in ("2 players at the end\n", "3 players at the end\n")
        rest, errors = hosting.communicate(timeout=60)
    assert (hosting.returncode, errors) == (0, "")
    assert rest.endswith("players at the end\n")


def test_who_joins_where_nobody_hosts_is_told_so() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        joined = run("join", address, "--headless", "--seconds", "1", "--network", "none")
    assert joined.returncode == 1
    assert f"no server answers at {address}" in joined.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a display")
def test_without_a_display_it_says_so() -> None:
    done = run("play", "--seconds", "3")
    assert done.returncode == 1
    assert "needs a display" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_player_comes_back_to_a_restarted_arena() -> None:
    world = Simulation(PROTOCOL, seed=4)
    server = world.server()
    reconnect = tw.connections.Reconnect(first_delay=0.2)
    player = Player(tw.Client.connect(server.address, PROTOCOL, reconnect=reconnect, network=world.network))
    arena = Arena(server)

    def run(ticks: int) -> None:
        for _ in range(ticks):
            with server.tick() as inbox:
                arena.tick(inbox)
            player.tick()
            world.network.advance(1 / TICKS_PER_SECOND)

    run(60)
    assert player.avatar is not None
    server.close()
    for _ in range(30):
        player.tick()
        world.network.advance(1 / TICKS_PER_SECOND)
    assert player.ended is None
    assert player.attempt > 0
    server = tw.Server(server.address, PROTOCOL, network=world.network)
    arena = Arena(server)
    run(180)
    assert player.avatar is not None
    assert player.attempt == 0
    assert player.spot is not None
