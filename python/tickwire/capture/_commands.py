"""``tickwire capture``: captures any game, and opens, shows and replays captures."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import tickwire as tw
from tickwire import _inspection as inspection
from tickwire.capture import Replay, dissector, open_capture, read_keys

Run = Callable[[argparse.Namespace], int]

DEFAULT_MAX_BYTES = 1 << 30


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Adds the commands of ``tickwire capture`` to its parser. Each command sets ``run`` to the function that
    runs it.
    """
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, text: str, run: Run) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")

        def guarded(parsed: argparse.Namespace) -> int:
            try:
                return run(parsed)
            except (OSError, ValueError) as error:
                print(f"{command.prog}: {error}", file=sys.stderr)
                return 1

        command.set_defaults(run=guarded)
        return command

    run = add("run", "run a game, and capture what its servers and clients send and receive", _run)
    run.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the pcapng file to write"
    )
    run.add_argument(
        "--keys", type=Path, metavar="FILE", help="write the secrets that open and replay it here"
    )
    run.add_argument(
        "--max-bytes",
        type=int,
        default=DEFAULT_MAX_BYTES,
        metavar="N",
        help="what the file may grow to (1 GiB)",
    )
    run.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="such as: -- python game.py"
    )

    opening = add("open", "write a capture once more, decrypted", _open)
    opening.add_argument("capture", type=Path, metavar="FILE", help="the capture")
    opening.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="where it goes")
    opening.add_argument(
        "--keys",
        type=Path,
        metavar="FILE",
        help="what Capture(keys=...) wrote, or a private key in hex digits",
    )

    lua = add("dissector", "write a Wireshark dissector, in Lua", _dissector)
    lua.add_argument("protocol", nargs="?", metavar="MODULE:PROTOCOL", help="decode its messages too")
    lua.add_argument("-o", "--output", type=Path, metavar="FILE", help="the file to write (standard output)")

    replay = add("replay", "feed a capture back into an endpoint, and print what it receives", _replay)
    replay.add_argument("capture", type=Path, metavar="FILE", help="the capture")
    replay.add_argument("protocol", metavar="MODULE:PROTOCOL", help="the protocol, such as game:protocol")
    replay.add_argument(
        "--keys", type=Path, required=True, metavar="FILE", help="what Capture(keys=...) wrote"
    )
    replay.add_argument("--address", metavar="HOST:PORT", help="which endpoint, when the capture has several")


def _run(parsed: argparse.Namespace) -> int:
    command = parsed.command[1:] if parsed.command[:1] == ["--"] else parsed.command
    if not command:
        raise ValueError("there is no command to run: write it behind --, such as -- python game.py")
    if shutil.which(command[0]) is None:
        raise ValueError(f"there is no program {command[0]!r} to run")
    environment = dict(os.environ, TICKWIRE_CAPTURE=str(parsed.output.absolute()))
    environment["TICKWIRE_CAPTURE_MAX_BYTES"] = str(parsed.max_bytes)
    # Whether the files can be made, and are large enough, is found out before the game begins.
    tw.capture.Capture(parsed.output, max_bytes=parsed.max_bytes, keys=parsed.keys).close()
    parsed.output.unlink()
    if parsed.keys is not None:
        parsed.keys.unlink()
        environment["TICKWIRE_CAPTURE_KEYS"] = str(parsed.keys.absolute())
    game = subprocess.Popen(command, env=environment)
    while True:
        try:
            code = game.wait()
            break
        except KeyboardInterrupt:
            # The game was interrupted too, and ends in its own time.
            continue
    if not parsed.output.exists():
        print(
            f"tickwire capture run: no server or client was made, so there is no {parsed.output}",
            file=sys.stderr,
        )
    else:
        keys = "" if parsed.keys is None else f"; what opens it is in {parsed.keys}"
        size = parsed.output.stat().st_size
        print(f"tickwire capture run: wrote {parsed.output}, {size:,} bytes{keys}", file=sys.stderr)
    return code if code >= 0 else 128 - code


def _open(parsed: argparse.Namespace) -> int:
    keys = [] if parsed.keys is None else read_keys(parsed.keys)
    done = open_capture(parsed.capture, parsed.output, keys)
    print(
        f"{done.packets:,} packets: {done.opened:,} opened, {done.requests:,} requests, "
        f"{done.sealed:,} still sealed"
    )
    if done.sealed and not done.opened:
        hint = "give the servers' key with --keys" if parsed.keys is None else "is this the right key?"
        raise ValueError(f"no packet of {parsed.capture} opens: {hint}")
    return 0


def _dissector(parsed: argparse.Namespace) -> int:
    protocol = None if parsed.protocol is None else inspection.find(parsed.protocol)
    text = dissector(protocol)
    if parsed.output is None:
        print(text)
    else:
        parsed.output.write_text(text, "utf-8")
    return 0


def _replay(parsed: argparse.Namespace) -> int:
    protocol = inspection.find(parsed.protocol)
    replay = Replay(parsed.capture, keys=parsed.keys, address=parsed.address)
    network = replay.network
    endpoint: tw.Server | tw.Client
    if replay.token is None:
        endpoint = tw.Server(replay.address, protocol, key=replay.key, network=network, max_clients=1024)
    else:
        endpoint = tw.Client(protocol, replay.token, tuning=tw.Tuning(bind=replay.address), network=network)
    for seconds in replay:
        with endpoint.tick() as inbox:
            received = [*inbox.events, *inbox.messages, *inbox.latest, *inbox.payloads, *inbox.chunks]
        for what in received:
            print(f"{seconds:12.6f}  {what!r}")
    return 0
