"""``python -m tickwire.samples.duel``: two fighters without a server. Rollback hides the network between
them.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from array import array
from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import Any

import tickwire as tw
from tickwire.samples import command

# pygame greets on standard output unless told not to.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

RATE, INPUT_BITS, LEFT, RIGHT, JUMP, PUNCH, BLOCK = 60, 5, 1, 2, 4, 8, 16
KEYS = "arrows: move, jump twice   X: punch   C: block   T: taunt"

# The rules count in whole numbers: a sixteenth of a pixel is the same on every machine, a float may not be.
UNIT, WIDTH, HEIGHT, FLOOR = 16, 800, 450, 300
EDGES = (170, 630)
"""The ends of the floor. A fighter who falls off loses the round."""
X, Y, SPEED_X, SPEED_Y, DAMAGE, JUMPS, PRESSED, SWING, STUN, GUARD, WINS, FIELDS = range(12)
PAUSE, SIZE = 2 * FIELDS, 2 * FIELDS + 1
"""The index in the state of the frames until the round begins, after both fighters; and the length of the
state.
"""
SPEED, LEAP, GRAVITY, REACH, GRIP, DRIFT = 4 * UNIT, 10 * UNIT, 9, 60 * UNIT, 12, 4
SWING_FRAMES, HIT_FRAME, STUN_FRAMES, DEPTH, NEEDED = 22, 16, 14, 220 * UNIT, 5


@tw.message
class Taunt:
    """A taunt. Peers can send messages in addition to the rollback game."""

    number: tw.u8


PROTOCOL = tw.Protocol(0x6475656C, [Taunt], peers=True)


def begin(state: array[int]) -> None:
    """Returns the first state: both fighters unhurt on the floor, a second before the round."""
    for player, x in enumerate((300, 500)):
        state[player * FIELDS : player * FIELDS + WINS] = array("i", [x * UNIT] + [0] * (WINS - 1))
    state[PAUSE] = RATE


def step(state: array[int], inputs: Sequence[int]) -> None:
    """Runs one frame. It depends only on the state and the inputs."""
    if state[PAUSE]:
        state[PAUSE] -= 1
        return
    if max(state[WINS], state[FIELDS + WINS]) == NEEDED:
        state[WINS] = state[FIELDS + WINS] = 0
    for player, pressed in enumerate(inputs):
        _steer(state, player * FIELDS, pressed)
        _move(state, player * FIELDS)
        _strike(state, player * FIELDS, (1 - player) * FIELDS)
    fallen = [player for player in range(2) if state[player * FIELDS + Y] < -DEPTH]
    for player in fallen:
        state[(1 - player) * FIELDS + WINS] += len(fallen) == 1
    if fallen:
        begin(state)


def _steer(state: array[int], own: int, pressed: int) -> None:
    """Moves a fighter by its keys."""
    stands, stun = state[own + JUMPS] == 2, state[own + STUN]
    state[own + GUARD] = int(bool(pressed & BLOCK) and stands and not stun)
    free = not stun and not state[own + GUARD]
    way = bool(pressed & RIGHT) - bool(pressed & LEFT) if free else 0
    grip = (GRIP if stands else DRIFT) if not stun else 2
    state[own + SPEED_X] += min(max(way * SPEED - state[own + SPEED_X], -grip), grip)
    fresh = pressed & ~state[own + PRESSED]
    if free and fresh & JUMP and state[own + JUMPS]:
        state[own + SPEED_Y], state[own + JUMPS] = LEAP, state[own + JUMPS] - 1
    if free and fresh & PUNCH and not state[own + SWING]:
        state[own + SWING] = SWING_FRAMES
    state[own + PRESSED], state[own + STUN] = pressed, max(0, stun - 1)


def _move(state: array[int], own: int) -> None:
    before, over_floor = state[own + Y], EDGES[0] * UNIT <= state[own + X] <= EDGES[1] * UNIT
    state[own + X] += state[own + SPEED_X]
    state[own + SPEED_Y] -= GRAVITY
    state[own + Y] += state[own + SPEED_Y]
    if over_floor and state[own + Y] <= 0 <= before:
        state[own + Y], state[own + SPEED_Y], state[own + JUMPS] = 0, 0, 2
    elif state[own + JUMPS] == 2:
        state[own + JUMPS] = 1


def _strike(state: array[int], own: int, other: int) -> None:
    """Strikes the other fighter. Each blow throws it farther than the last."""
    state[own + SWING] = max(0, state[own + SWING] - 1)
    if state[own + SWING] != HIT_FRAME or not in_reach(state):
        return
    away = 1 if state[other + X] >= state[own + X] else -1
    if state[other + GUARD]:
        state[own + STUN], state[own + SPEED_X] = STUN_FRAMES, -3 * UNIT * away
        return
    state[other + DAMAGE] += 12
    thrown = 4 * UNIT + state[other + DAMAGE] * UNIT // 10
    state[other + SPEED_X], state[other + SPEED_Y] = thrown * away, thrown * 2 // 3
    state[other + STUN], state[other + JUMPS] = STUN_FRAMES + state[other + DAMAGE] // 8, 1


def in_reach(state: array[int]) -> bool:
    """Whether one player's blow would hit the other."""
    return abs(state[X] - state[FIELDS + X]) < REACH and abs(state[Y] - state[FIELDS + Y]) < REACH


class Duel:
    """One player's side of the fight."""

    def __init__(self, peer: tw.peers.Peer[Taunt]) -> None:
        self.peer = peer
        self.state = array("i", bytes(4 * SIZE))
        begin(self.state)
        self.rollback: tw.rollback.Rollback[int] | None = None
        self.me, self.over, self.news = 0, False, "waiting for the other player"
        self.ended: tw.peers.LeaveReason | None = None
        self._waited = 0

    def tick(self, pressed: int) -> None:
        """Runs one frame with this player's input."""
        with self.peer.tick() as inbox:
            for event in inbox.events:
                self._hear(event)
            for _, taunt in inbox.messages:
                self.news = ("ha!", "is that all?", "well fought")[taunt.number % 3]
            if self.rollback is None:
                return
            self._waited += 1
            for request in self.rollback.advance(pressed):
                assert isinstance(request, tw.rollback.Advance)  # the library saves and loads the states
                step(self.state, request.inputs)
                self._waited = 0
            for what in self.rollback.events():
                self.news = str(what)
                self.over |= isinstance(what, tw.rollback.PlayerOut)

    def _hear(self, event: object) -> None:
        if isinstance(event, tw.peers.PlayerJoined) and self.peer.is_master and len(self.peer.players) == 2:
            self.peer.start(countdown=1.0)
        elif isinstance(event, tw.peers.Started):
            self.rollback = tw.rollback.Rollback(
                self.peer, INPUT_BITS, state=self.state, timing=tw.rollback.Timing(rate=RATE)
            )
            self.me, self.news = (self.peer.me.number if self.peer.me else 0), "fight!"
        elif isinstance(event, tw.peers.GameEnded):
            self.ended, self.over = event.reason, True

    @property
    def pace(self) -> float:
        """The frames per second. They are fewer while this player is ahead of the other player."""
        return RATE if self.rollback is None else self.rollback.pace

    @property
    def is_waiting(self) -> bool:
        """Whether the fight is paused because nothing arrives from the other player."""
        return self._waited > RATE // 2

    def figures(self) -> str:
        """The figures about the network and rollback."""
        others = [player for player in self.peer.players if player != self.peer.me]
        if self.rollback is None or not others:
            return ""
        stats = self.rollback.stats
        frames = stats["replayed"] / max(1, stats["rollbacks"])
        return (
            f"ping {self.peer.stats(others[0]).rtt_ms:.0f} ms   {stats['rollbacks']} rollbacks, {frames:.1f} "
            f"frames each, {stats['max_replayed']} at most   {stats['stalls']} stalls"
        )


class Bot:
    """A bot that plays moderately well."""

    def __init__(self, duel: Duel, seed: int = 1) -> None:
        self._duel, self._random, self._pressed = duel, random.Random(seed), 0

    def tick(self) -> None:
        """Runs one frame."""
        duel = self._duel
        own, other = duel.me * FIELDS, (1 - duel.me) * FIELDS
        x, center = duel.state[own + X], WIDTH * UNIT // 2
        if abs(x - center) > (EDGES[1] - EDGES[0]) * UNIT // 2:  # off the floor: back to it
            falls = duel.state[own + SPEED_Y] < 0 and self._random.random() < 0.1
            self._pressed = (RIGHT if x < center else LEFT) | (JUMP if falls else 0)
        elif self._random.random() < 0.12:
            near = self._random.choice((PUNCH, PUNCH, BLOCK, JUMP, 0))
            ahead = RIGHT if duel.state[other + X] > x else LEFT
            over = abs(duel.state[other + X] - center) > (EDGES[1] - EDGES[0]) * UNIT // 2
            self._pressed = near if in_reach(duel.state) else 0 if over else ahead
        duel.tick(self._pressed)


class Window:
    """Shows the fight."""

    INKS = ((90, 170, 255), (255, 150, 90))

    def __init__(self) -> None:
        from tickwire.samples.screen import Screen

        self.screen = Screen("Tickwire duel", WIDTH, HEIGHT)

    def draw(self, duel: Duel) -> None:
        """Draws both fighters, the floor, and the figures about the network."""
        import pygame

        from tickwire.samples.screen import BACKGROUND, FAINT, INK, PANEL, RED

        screen, surface, state = self.screen, self.screen.surface, duel.state
        surface.fill(BACKGROUND)
        left, right = EDGES
        pygame.draw.rect(surface, PANEL, (left, FLOOR, right - left, 200), border_top_left_radius=4)
        pygame.draw.line(surface, FAINT, (left, FLOOR), (right, FLOOR), 3)
        for player, ink in enumerate(self.INKS):
            self._draw_fighter(state, player, ink)
            x, anchor = (20, "topleft") if player == 0 else (WIDTH - 20, "topright")
            name = "you" if player == duel.me else "opponent"
            screen.write(f"{name}: {state[player * FIELDS + DAMAGE]} % hurt", (x, 14), ink, anchor)
            for win in range(NEEDED):
                place = (26 + 18 * win if player == 0 else WIDTH - 26 - 18 * win, 46)
                pygame.draw.circle(surface, ink, place, 6, 0 if win < state[player * FIELDS + WINS] else 1)
        words = duel.news
        if duel.rollback is not None and state[PAUSE]:
            best = max(range(2), key=lambda player: state[player * FIELDS + WINS])
            won = state[best * FIELDS + WINS] == NEEDED
            words = ("you win the match" if best == duel.me else "the opponent wins") if won else "ready?"
        screen.write(words, (WIDTH / 2, 90), INK, "center")
        if duel.is_waiting:
            screen.write("nothing arrives from the opponent", (WIDTH / 2, 120), RED, "center")
        screen.write(KEYS, (WIDTH / 2, HEIGHT - 36), FAINT, "center")
        screen.write(duel.figures(), (WIDTH / 2, HEIGHT - 14), FAINT, "center")
        pygame.display.flip()

    def _draw_fighter(self, state: array[int], player: int, ink: tuple[int, int, int]) -> None:
        import pygame

        from tickwire.samples.screen import INK, faded

        own, other = player * FIELDS, (1 - player) * FIELDS
        x, y = state[own + X] // UNIT, FLOOR - state[own + Y] // UNIT
        way = 1 if state[other + X] >= state[own + X] else -1
        body = faded(ink, 0.5) if state[own + STUN] else ink
        pygame.draw.circle(self.screen.surface, body, (x, y - 52), 11)
        pygame.draw.rect(self.screen.surface, body, (x - 12, y - 40, 24, 40), border_radius=8)
        pygame.draw.circle(self.screen.surface, INK, (x + 5 * way, y - 54), 2)
        if state[own + GUARD]:
            pygame.draw.line(self.screen.surface, INK, (x + 17 * way, y - 56), (x + 17 * way, y - 8), 4)
        elif state[own + SWING]:
            reach = 44 if HIT_FRAME - 3 <= state[own + SWING] <= HIT_FRAME + 2 else 20
            pygame.draw.line(self.screen.surface, body, (x, y - 32), (x + reach * way, y - 32), 8)


def play(parsed: argparse.Namespace) -> None:
    """Opens a window; with ``--bot``, also runs an opponent in the same program."""
    pygame = command.extra("pygame")
    network = parsed.network or ("wifi-bad" if parsed.bot else "none")
    settings: dict[str, Any] = {"debugging": tw.testing.Debugging(conditions=command.conditions(network)[0])}
    with ExitStack() as stack:
        with command.opening_game():
            if parsed.join is None:
                bind = tw.Tuning(bind="127.0.0.1:0" if parsed.bot else parsed.host)
                peer = tw.peers.Peer.host(PROTOCOL, name="host", players=2, tuning=bind, **settings)
            else:
                peer = tw.peers.Peer.join(parsed.join, PROTOCOL, name="guest", **settings)
        duel, bot = Duel(stack.enter_context(peer)), None
        if parsed.bot:
            other = tw.peers.Peer.join(f"127.0.0.1:{peer.address.port}", PROTOCOL, name="bot", **settings)
            bot = Bot(Duel(stack.enter_context(other)))
        window = Window()
        stack.enter_context(closing(window.screen))
        codes = (pygame.K_LEFT, pygame.K_RIGHT, pygame.K_UP, pygame.K_x, pygame.K_c)
        keys = dict(zip(codes, (LEFT, RIGHT, JUMP, PUNCH, BLOCK), strict=True))
        clock, frames = pygame.time.Clock(), 0
        while not duel.over and (parsed.seconds is None or frames < parsed.seconds * RATE):
            for event in window.screen.events():
                if event.type == pygame.KEYDOWN and event.key == pygame.K_t:
                    peer.broadcast(Taunt(frames % 3))
            if window.screen.left:
                return
            held = pygame.key.get_pressed()
            duel.tick(sum(bit for key, bit in keys.items() if held[key]))
            if bot:
                bot.tick()
            window.draw(duel)
            frames += 1
            clock.tick_busy_loop(round(duel.pace))
        if duel.ended is not None:
            raise command.SampleError(f"the game is over: {duel.ended}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code."""
    text = f"Two fighters; who falls off the floor loses the round. {KEYS.replace('   ', ', ')}."
    parser = command.Parser(prog="python -m tickwire.samples.duel", description=text)
    command.add_peer_options(parser, "wait for the other player there", "the other player's address")
    parser.add_argument("--bot", action="store_true", help="fight a bot, in this program")
    command.add_network_option(parser)
    parser.set_defaults(network=None)
    parser.set_defaults(run=play)
    return command.run(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
