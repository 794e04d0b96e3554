"""``python -m tickwire.samples.duel``: two fighters, no server; rollback hides the network between them."""

from __future__ import annotations

import argparse
import os
import random
import sys
from array import array
from collections.abc import Sequence
from contextlib import ExitStack

import tickwire as tw
from tickwire.samples import command

# pygame greets on standard output unless told not to.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

RATE, INPUT_BITS, LEFT, RIGHT, JUMP, PUNCH, BLOCK = 60, 5, 1, 2, 4, 8, 16

# The rules count in whole numbers: a sixteenth of a pixel is the same on every machine, a float may not be.
UNIT, WIDTH, HEIGHT = 16, 640, 360
X, Y, RISE, HEALTH, SWING, STUN, GUARD, WINS, FIELDS = range(9)
SPEED, LEAP, GRAVITY, REACH = 3 * UNIT, 11 * UNIT, 10, 54 * UNIT
SWING_FRAMES, HIT_FRAME, STUN_FRAMES, FULL = 22, 16, 14, 100


@tw.message
class Taunt:
    """A taunt between blows: the peers' own messages travel beside the game."""

    number: tw.u8


PROTOCOL = tw.Protocol(0x6475656C, [Taunt], peers=True)


def begin(state: array[int]) -> None:
    """Both fighters in their corners, in full health."""
    for player, x in enumerate((200, 440)):
        state[player * FIELDS : player * FIELDS + WINS] = array("i", (x * UNIT, 0, 0, FULL, 0, 0, 0))


def step(state: array[int], inputs: Sequence[int]) -> None:
    """One frame: depends on nothing but the state and the inputs."""
    for player, pressed in enumerate(inputs):
        own, other = player * FIELDS, (1 - player) * FIELDS
        grounded = state[own + Y] == 0
        state[own + GUARD] = int(bool(pressed & BLOCK) and grounded and not state[own + STUN])
        if state[own + STUN]:
            state[own + STUN] -= 1
        elif not state[own + GUARD]:
            way = bool(pressed & RIGHT) - bool(pressed & LEFT)
            state[own + X] = min(max(state[own + X] + way * SPEED, 20 * UNIT), (WIDTH - 20) * UNIT)
            if pressed & JUMP and grounded:
                state[own + RISE] = LEAP
            if pressed & PUNCH and not state[own + SWING]:
                state[own + SWING] = SWING_FRAMES
        state[own + Y] = max(0, state[own + Y] + state[own + RISE])
        state[own + RISE] = state[own + RISE] - GRAVITY if state[own + Y] else 0
        if state[own + SWING]:
            state[own + SWING] -= 1
            if state[own + SWING] == HIT_FRAME and in_reach(state):
                damage = 2 if state[other + GUARD] else 12
                state[other + HEALTH] = max(0, state[other + HEALTH] - damage)
                state[other + STUN] = STUN_FRAMES // (1 + state[other + GUARD])
    if not (state[HEALTH] and state[FIELDS + HEALTH]):
        state[WINS] += int(state[HEALTH] > 0)
        state[FIELDS + WINS] += int(state[FIELDS + HEALTH] > 0)
        begin(state)


def in_reach(state: array[int]) -> bool:
    """Whether one player's blow would hit the other."""
    return abs(state[X] - state[FIELDS + X]) < REACH and abs(state[Y] - state[FIELDS + Y]) < REACH


class Duel:
    """One player's side of the fight."""

    def __init__(self, peer: tw.peers.Peer[Taunt]) -> None:
        self.peer = peer
        self.state = array("i", bytes(4 * 2 * FIELDS))
        begin(self.state)
        self.rollback: tw.rollback.Rollback[int] | None = None
        self.me, self.over, self.news = 0, False, "waiting for the other player"
        self.ended: tw.peers.LeaveReason | None = None

    def tick(self, pressed: int) -> None:
        """Runs one frame with this player's input."""
        with self.peer.tick() as inbox:
            for event in inbox.events:
                self._hear(event)
            for _, taunt in inbox.messages:
                self.news = ("ha!", "is that all?", "well fought")[taunt.number % 3]
            if self.rollback is None:
                return
            for request in self.rollback.advance(pressed):
                assert isinstance(request, tw.rollback.Advance)  # the library saves and loads the states
                step(self.state, request.inputs)
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
        """Frames a second: fewer while this player is ahead of the other."""
        return RATE if self.rollback is None else self.rollback.pace


class Bot:
    """A bot that plays not too well."""

    def __init__(self, duel: Duel, seed: int = 1) -> None:
        self._duel, self._random, self._pressed = duel, random.Random(seed), 0

    def tick(self) -> None:
        """Runs one frame."""
        duel = self._duel
        if self._random.random() < 0.12:
            ahead = duel.state[(1 - duel.me) * FIELDS + X] > duel.state[duel.me * FIELDS + X]
            near = self._random.choice((PUNCH, PUNCH, BLOCK, JUMP, 0))
            self._pressed = near if in_reach(duel.state) else (RIGHT if ahead else LEFT)
        duel.tick(self._pressed)


def play(parsed: argparse.Namespace) -> None:
    """Opens a window, and with ``--bot`` plays an opponent in the same program."""
    command.extra("pygame")
    import pygame

    with ExitStack() as stack:
        with command.opening_game():
            if parsed.join is None:
                peer = tw.peers.Peer.host(
                    PROTOCOL, name="host", players=2, tuning=tw.Tuning(bind=parsed.host)
                )
            else:
                peer = tw.peers.Peer.join(parsed.join, PROTOCOL, name="guest")
        duel, bot = Duel(stack.enter_context(peer)), None
        if parsed.bot:
            other = tw.peers.Peer.join(f"127.0.0.1:{peer.address.port}", PROTOCOL, name="bot")
            bot = Bot(Duel(stack.enter_context(other)))
        pygame.font.init()
        screen = pygame.display.set_mode((WIDTH, HEIGHT))
        font, clock, frames = pygame.font.Font(None, 26), pygame.time.Clock(), 0
        codes = (pygame.K_LEFT, pygame.K_RIGHT, pygame.K_UP, pygame.K_x, pygame.K_c)
        keys = dict(zip(codes, (LEFT, RIGHT, JUMP, PUNCH, BLOCK), strict=True))
        while not duel.over and (parsed.seconds is None or frames < parsed.seconds * RATE):
            for event in pygame.event.get():
                key = event.key if event.type == pygame.KEYDOWN else None
                if event.type == pygame.QUIT or key == pygame.K_ESCAPE:
                    return
                if key == pygame.K_t:
                    peer.broadcast(Taunt(frames % 3))
            held = pygame.key.get_pressed()
            duel.tick(sum(bit for key, bit in keys.items() if held[key]))
            if bot:
                bot.tick()
            screen.fill((18, 22, 30))
            for player, ink in enumerate(((90, 170, 255), (255, 150, 90))):
                own = duel.state[player * FIELDS : (player + 1) * FIELDS]
                x, y, _, health, swing, stun, guard, wins = own
                left, top = x // UNIT, HEIGHT - 60 - y // UNIT
                pygame.draw.rect(screen, (110, 118, 135) if stun else ink, (left - 15, top - 60, 30, 60))
                if swing or guard:
                    reach = 38 if swing >= HIT_FRAME - 4 else 20
                    start = left if duel.state[(1 - player) * FIELDS + X] > x else left - reach
                    pygame.draw.rect(screen, ink, (start, top - 45, reach, 30 if guard else 8))
                pygame.draw.rect(screen, ink, (20 + 320 * player, 16, 280 * health // FULL, 12))
                screen.blit(font.render(str(wins), True, ink), (20 + 320 * player, 34))
            screen.blit(font.render(duel.news, True, (235, 240, 245)), (20, HEIGHT - 28))
            pygame.display.flip()
            frames += 1
            clock.tick_busy_loop(round(duel.pace))
        if duel.ended is not None:
            raise command.SampleError(f"the game is over: {duel.ended}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    text = "Two fighters. Arrows move and jump, X punches, C blocks, T taunts."
    parser = command.Parser(prog="python -m tickwire.samples.duel", description=text)
    command.add_peer_options(parser, "wait for the other player there", "the other player's address")
    parser.add_argument("--bot", action="store_true", help="fight a bot, in this program")
    parser.set_defaults(run=play)
    return command.run(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
