"""A crowd of ten thousand wanderers as columns of ghosts. Each client gets the wanderers nearby::

    python -m tickwire.samples.crowd serve
    python -m tickwire.samples.crowd watch --network wifi-bad

Arrow keys move a client's window over the field. With ``--headless``, the client has no window: its view
drifts, and it prints a summary at the end. ``serve --seconds 10 --watchers 3`` runs server and clients in
one program.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import perf_counter
from typing import Annotated, Any

import tickwire as tw
from tickwire.samples import command

# pygame greets on standard output unless told not to.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

TICKS_PER_SECOND = 30
FIELD = 4000.0
"""Half the width of the field, along both axes."""
SIGHT = 400.0
"""The distance that a client sees."""
MAX_WATCHERS = 64
COATS = [
    (235, 120, 100),
    (235, 190, 100),
    (190, 225, 110),
    (110, 220, 150),
    (110, 210, 225),
    (120, 150, 235),
    (180, 130, 235),
    (230, 130, 190),
]


@tw.ghost(capacity=50_000)
class Wanderer:
    """A wanderer, which walks and turns now and then."""

    position: Annotated[tw.Vec2, tw.vec2(-FIELD, FIELD, 1 / 32)] = (0.0, 0.0)
    heading: Annotated[float, tw.angle(0, 360, 1.0)] = 0.0
    coat: Annotated[int, tw.ranged(0, 7), tw.initial] = 0


@tw.ghost(capacity=1)
class Census:
    """The server's figures about the crowd."""

    wanderers: tw.u32 = 0
    tick_ms: Annotated[float, tw.quantized(0, 1000, 0.1)] = 0.0


@tw.message
class Look:
    """The place at which a client looks from now on."""

    at: Annotated[tw.Vec2, tw.vec2(-FIELD, FIELD, 1.0)]


PROTOCOL = tw.Protocol(
    id=0x7469636B_63726F77,
    messages=[Look],
    channels=[tw.latest("look", keys=1)],
    ghosts=[Wanderer, Census],
)


class Crowd:
    """The wanderers. Each :meth:`tick` is a tick of the world."""

    def __init__(self, server: tw.Server, count: int, seed: int = 1) -> None:
        numpy = command.extra("numpy")
        self._numpy, self._server = numpy, server
        self._random = numpy.random.default_rng(seed)
        server.world.set_relevancy(Wanderer, tw.world.Grid("position", radius=SIGHT))
        server.world.spawn_rows(Wanderer, count)
        self._wanderers = server.world.arrays(Wanderer)
        self._wanderers["position"] = self._random.uniform(-FIELD, FIELD, (count, 2))
        self._wanderers["heading"] = self._random.uniform(0, 360, count)
        self._wanderers["coat"] = self._random.integers(0, 8, count)
        self._speed = self._random.uniform(10, 60, count)
        self.seconds: list[float] = []
        """The seconds that each tick took, including the flush."""
        self._census = server.world.spawn(Census(count))

    def tick(self) -> None:
        """Handles the clients' messages, and moves all wanderers."""
        begun_at = perf_counter()
        with self._server.tick() as inbox:
            for client, _, look in inbox.latest:
                self._server.world.look_from(client, Wanderer, [look.at])
            self._walk()
            if len(self.seconds) % TICKS_PER_SECOND == TICKS_PER_SECOND - 1:
                self._census.tick_ms = 1000 * max(self.seconds[-TICKS_PER_SECOND:])
        self.seconds.append(perf_counter() - begun_at)

    def _walk(self) -> None:
        numpy, wanderers = self._numpy, self._wanderers
        heading = wanderers["heading"]
        # A twentieth of them turn in a tick; those at the edge turn round.
        turning = self._random.random(len(heading)) < 0.05
        heading[turning] = (heading[turning] + self._random.uniform(-60, 60, int(turning.sum()))) % 360
        radians = numpy.radians(heading)
        step = numpy.stack((numpy.cos(radians), numpy.sin(radians)), axis=1)
        position = wanderers["position"]
        position += step * (self._speed / TICKS_PER_SECOND)[:, None]
        outside = (numpy.abs(position) > FIELD - 1).any(axis=1)
        heading[outside] = (heading[outside] + 180) % 360
        numpy.clip(position, -FIELD, FIELD, out=position)


@dataclass
class Watcher:
    """A client that watches the crowd from a drifting place."""

    client: tw.Client
    at: tuple[float, float] = (0.0, 0.0)
    ended: tw.DisconnectReason | None = None
    seen: set[int] = field(default_factory=set[int])
    """The rows in which there ever was a wanderer."""
    ticks_with_news: int = 0

    def tick(self, steer: tuple[float, float] = (1.0, 0.0)) -> None:
        """Receives, and drifts on."""
        with self.client.tick() as inbox:
            for event in inbox.events:
                if isinstance(event, tw.Disconnected):
                    self.ended = event.reason
            wanderers = self.client.world.arrays(Wanderer)
            self.seen.update(wanderers.spawned.tolist())
            self.ticks_with_news += len(wanderers.changed) > 0
            if self.client.connected:
                reach = FIELD - SIGHT
                x, y = (place + way * 5 for place, way in zip(self.at, steer, strict=True))
                self.at = (max(-reach, min(reach, x)), max(-reach, min(reach, y)))
                self.client.send(Look(self.at))

    def figures(self) -> list[str]:
        """The figures for the window: the number of wanderers, and their cost."""
        if not self.client.connected:
            return ["connecting"]
        stats, wanderers = self.client.stats, self.client.world.arrays(Wanderer)
        lines = [f"{wanderers.living:,} in sight, {len(wanderers.changed):,} of them changed in this tick"]
        for census in self.client.world.objects(Census):
            lines[0] = f"{census.wanderers:,} wanderers, " + lines[0]
            lines.append(f"a tick of the server: {census.tick_ms:.1f} ms at most in the last second")
        lines.append(
            f"{stats.received_kbps:.0f} kbit/s down, {stats.sent_kbps:.0f} up, RTT {stats.rtt_ms:.0f} ms"
        )
        if self.client.silence > 1.0:
            lines.append(f"nothing has arrived for {self.client.silence:.0f} s")
        return [*lines, "arrows: move over the field"]

    def summary(self) -> str:
        """A one-line summary of what arrived."""
        wanderers, stats = self.client.world.arrays(Wanderer), self.client.stats
        return (
            f"{wanderers.living} wanderers in sight, changed in {self.ticks_with_news} ticks, "
            f"{stats.received_kbps:.0f} kbit/s in the end"
        )


def serve(parsed: argparse.Namespace) -> None:
    """Runs a dedicated server until Ctrl-C, possibly with watchers without windows."""
    command.extra("numpy")
    with command.open_server(parsed, PROTOCOL, max_clients=MAX_WATCHERS) as server, ExitStack() as clients:
        print(f"{parsed.wanderers:,} wanderers on {server.address}; Ctrl-C ends it.", flush=True)
        crowd = Crowd(server, parsed.wanderers)
        watchers: list[Watcher] = []
        for _ in range(parsed.watchers):
            client = tw.Client.connect(
                server.address, PROTOCOL, key=parsed.key, tuning=tw.Tuning(columns=[Wanderer])
            )
            watchers.append(Watcher(clients.enter_context(client)))
        for _ in command.paced(TICKS_PER_SECOND, parsed.seconds):
            crowd.tick()
            for watcher in watchers:
                watcher.tick()
        crowd.seconds.sort()
        print(f"a tick took {crowd.seconds[len(crowd.seconds) // 2] * 1000:.1f} ms (median)")
        for watcher in watchers:
            print(watcher.summary())


def watch(parsed: argparse.Namespace) -> None:
    """Shows a server's crowd in a window, or prints a summary of what arrives."""
    with command.dial(parsed, PROTOCOL, tuning=tw.Tuning(columns=[Wanderer])) as client:
        watcher = Watcher(client)
        window = None if parsed.headless else Window()
        for _ in command.paced(TICKS_PER_SECOND, parsed.seconds):
            watcher.tick(window.steer() if window else (1.0, 0.0))
            if watcher.ended is not None:
                raise command.disconnected(watcher.ended, parsed.address)
            if window and not window.draw(watcher):
                break
        print(watcher.summary())


class Window:
    """A window with the wanderers nearby. Arrow keys move the view; Escape ends.

    Raises:
        SampleError: there is no display.
    """

    SIZE, MAP = 800, 120

    def __init__(self) -> None:
        self._pygame: Any = command.extra("pygame")
        from tickwire.samples.screen import Screen

        self.screen = Screen("Tickwire crowd", self.SIZE, self.SIZE)

    def steer(self) -> tuple[float, float]:
        """The direction of the pressed keys."""
        pressed, key = self._pygame.key.get_pressed(), self._pygame
        return (
            float(pressed[key.K_RIGHT] - pressed[key.K_LEFT]),
            float(pressed[key.K_DOWN] - pressed[key.K_UP]),
        )

    def draw(self, watcher: Watcher) -> bool:
        """Draws the wanderers nearby. Returns False if the player leaves."""
        from tickwire.samples.screen import BACKGROUND, FAINT, INK

        pygame, screen = self._pygame, self.screen
        screen.surface.fill(BACKGROUND)
        wanderers, scale = watcher.client.world.arrays(Wanderer), self.SIZE / (2 * SIGHT)
        rows = wanderers.rows
        places = ((wanderers["position"][rows] - watcher.at) * scale + self.SIZE / 2).astype(int)
        for place, coat in zip(places.tolist(), wanderers["coat"][rows].tolist(), strict=True):
            pygame.draw.circle(screen.surface, COATS[coat], place, 5)
        # Where the window is on the field.
        left, part = self.SIZE - self.MAP - 10, self.MAP / (2 * FIELD)
        x, y = ((at + FIELD - SIGHT) * part for at in watcher.at)
        pygame.draw.rect(screen.surface, FAINT, (left, 10, self.MAP, self.MAP), 1)
        pygame.draw.rect(screen.surface, INK, (left + x, 10 + y, 2 * SIGHT * part, 2 * SIGHT * part))
        screen.write_lines(watcher.figures(), (14, 12))
        pygame.display.flip()
        screen.events()
        return not screen.left


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code."""
    prog = "python -m tickwire.samples.crowd"
    parser = command.Parser(
        prog=prog, description="Thousands of wanderers, of which everybody sees those that are near."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    server = commands.add_parser("serve", help="the server, with wanderers who walk about")
    command.add_server_options(server)
    count = command.number(int, 1, 50_000)
    text = "how many there are (10,000)"
    server.add_argument("--wanderers", type=count, default=10_000, metavar="N", help=text)
    text = "clients without a window in the same program (0)"
    server.add_argument(
        "--watchers", type=command.number(int, 0, MAX_WATCHERS), default=0, metavar="N", help=text
    )
    server.set_defaults(run=serve)
    client = commands.add_parser("watch", help="a window onto them")
    command.add_client_options(client)
    command.add_network_option(client)
    client.add_argument("--headless", action="store_true", help="no window, and a summary at the end")
    client.set_defaults(run=watch)
    for each in (server, client):
        seconds = command.number(float, 0.1, 1_000_000)
        each.add_argument("--seconds", type=seconds, metavar="N", help="ends by itself after this long")
    return command.run(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
