"""``python -m tickwire.samples.rts``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import tickwire as tw
from tickwire.samples import command
from tickwire.samples.rts.messages import COMMANDS, MAX_PLAYERS, PROTOCOL
from tickwire.samples.rts.play import add_play
from tickwire.samples.rts.player import Player
from tickwire.samples.rts.rules import FIELDS, Battlefield

FRAMES = 60


def match(minutes: float, seed: int, record: Path | None = None, players: int = MAX_PLAYERS) -> list[Player]:
    """Runs a match of bots on a bad virtual network, as fast as the machine can."""
    conditions = tw.Conditions(latency=0.06, jitter=0.02, loss=0.03)
    network = tw.testing.SimulatedNetwork(conditions=conditions, seed=seed)
    host = tw.peers.Peer.host(
        PROTOCOL, name="bot 0", players=players, tuning=tw.Tuning(bind="10.0.0.1:7"), network=network
    )
    found = [Player(host, bot=True, record=record)]
    for i in range(1, players):
        address = f"10.0.0.{i + 1}:7"
        peer = tw.peers.Peer.join(
            "10.0.0.1:7", PROTOCOL, name=f"bot {i}", tuning=tw.Tuning(bind=address), network=network
        )
        found.append(Player(peer, bot=True))

    def run(seconds: float) -> None:
        for _ in range(round(seconds * FRAMES)):
            network.advance(1 / FRAMES)
            for player in found:
                player.tick()

    run(3)
    host.start(countdown=1.0, seed=seed)
    run(1.5 + minutes * 60)
    for player in found:
        player.close()
    return found


def replay(path: Path) -> tuple[Battlefield, int, int]:
    """Replays a recorded match. Returns the final world, the number of turns, and the number of turns that
    differ.
    """
    recording = tw.lockstep.Recording.read(path)
    world, differ = Battlefield(recording.players, recording.seed), 0
    if recording.start is not None:
        # Of a player who joined the running match.
        world.load(recording.start.state)
    for turn in recording.turns(COMMANDS):
        world.step(turn)
        differ += not recording.check(turn, world.objects(), FIELDS)
    return world, len(recording), differ


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code."""
    parser = command.Parser(prog="python -m tickwire.samples.rts", description="A strategy game in lockstep.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="command")
    headless = commands.add_parser("headless", help="four bots on a bad virtual network")
    headless.add_argument("--minutes", type=float, default=5.0, help="the length of the match (default: 5)")
    headless.add_argument("--seed", type=int, default=1, help="the seed of match and network (default: 1)")
    headless.add_argument("--record", type=Path, help="write the match to this file")
    headless.set_defaults(run=_headless)
    add_play(commands)
    shown = commands.add_parser("replay", help="play a recorded match again")
    shown.add_argument("file", type=Path)
    shown.set_defaults(run=_replay)
    return command.run(parser, arguments)


def _headless(parsed: argparse.Namespace) -> None:
    for player in match(parsed.minutes, parsed.seed, parsed.record):
        assert player.lockstep is not None
        assert player.world is not None
        print(f"turn {player.lockstep.turn}, CRC {player.crc:08x}, alive {player.world.alive}")


def _replay(parsed: argparse.Namespace) -> int:
    try:
        began = time.perf_counter()
        world, turns, differ = replay(parsed.file)
    except (OSError, tw.TickwireError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{turns} turns in {time.perf_counter() - began:.1f} s, {differ} differ; alive {world.alive}")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
