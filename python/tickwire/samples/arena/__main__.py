"""``python -m tickwire.samples.arena``."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

import tickwire as tw
from tickwire.samples import command
from tickwire.samples.arena.messages import MAX_PLAYERS, PROTOCOL
from tickwire.samples.arena.player import Bot, Player
from tickwire.samples.arena.rules import TICKS_PER_SECOND
from tickwire.samples.arena.server import Arena

# pygame greets on standard output unless told not to.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
# Bots have a network of their own, so that their ways look like those of players.
BOTS = tw.Conditions(latency=0.03, jitter=0.01, loss=0.01)
# Seconds in which a player without a connection dials again.
GIVE_UP_AFTER = 60.0


def host(parsed: argparse.Namespace) -> None:
    """Runs a server with bots until Ctrl-C, and a player in the same program unless it is dedicated."""
    with ExitStack() as stack:
        server = stack.enter_context(command.open_server(parsed, PROTOCOL, max_clients=MAX_PLAYERS))
        if not parsed.is_alone:
            print(f"An arena on {server.address}, for others to join; Ctrl-C closes it.", flush=True)
        arena, parsed.address = Arena(server), command.local_address(server)
        frame = show(parsed, stack)[1] if parsed.plays else lambda: True
        clients = enumerate(command.local_clients(parsed, PROTOCOL, stack, BOTS), 1)
        bots = [Bot(Player(client, f"bot {number}"), seed=number) for number, client in clients]
        last = math.inf if parsed.seconds is None else parsed.seconds * TICKS_PER_SECOND
        ticks = stack.enter_context(tw.run(server, TICKS_PER_SECOND))
        for tick, inbox in ticks:
            arena.tick(inbox)
            for bot in bots:
                bot.tick()
            if not frame() or tick + 1 >= last:
                break


def join(parsed: argparse.Namespace) -> None:
    """Runs a player on another machine's server."""
    with ExitStack() as stack:
        player, frame = show(parsed, stack)
        for _ in command.paced(TICKS_PER_SECOND, parsed.seconds):
            if not frame():
                break
        else:
            if not player.client.connected:
                raise command.disconnected(tw.DisconnectReason.REQUEST_TIMED_OUT, parsed.address)


def show(parsed: argparse.Namespace, stack: ExitStack) -> tuple[Player, Callable[[], bool]]:
    """Opens a player's window. Returns the player, and a function that runs and draws a frame and returns
    whether to continue.
    """
    if parsed.headless:
        os.environ["SDL_VIDEODRIVER"] = "dummy"
    command.extra("pygame")
    from tickwire.samples.arena.window import Window

    proxy = stack.enter_context(command.open_proxy(parsed))
    player = Player(
        stack.enter_context(command.dial_through(proxy, parsed, PROTOCOL, give_up_after=GIVE_UP_AFTER)),
        parsed.name,
    )
    pilot = Bot(player, seed=MAX_PLAYERS) if parsed.auto or parsed.headless else None
    window = Window(player, proxy, parsed.network)
    stack.enter_context(closing(window.screen))
    if parsed.screenshot is not None:
        stack.callback(window.screen.save, parsed.screenshot)
    if parsed.headless:
        stack.callback(lambda: print(f"{len(player.avatars())} players at the end"))

    def frame() -> bool:
        goes_on = window.handle_events()
        player.tick(window.controls() if pilot is None else pilot.controls())
        if player.ended is not None:
            raise command.disconnected(player.ended, parsed.address)
        window.draw()
        return goes_on

    return player, frame


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code."""
    prog = "python -m tickwire.samples.arena"
    parser = command.Parser(prog=prog, description="Players shoot at each other over a bad network.")
    arguments = command.add_game(parser, arguments, host, join, MAX_PLAYERS)
    return command.run(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
