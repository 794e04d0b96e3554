"""Echo: the shortest server and client. Run each in its own terminal::

    python -m tickwire.samples.echo serve
    python -m tickwire.samples.echo ping --network wifi-bad

It shows the round trip time of messages, and how many are lost.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import tickwire as tw
from tickwire.samples import command


@tw.message
class Ping:
    """A message that goes to the server and comes back unchanged."""

    number: tw.u32
    sent_at: float


PROTOCOL = tw.Protocol(id=0x7469636B_6563686F, messages=[Ping], channels=[tw.unreliable()])
TICKS_PER_SECOND = 250


def serve(parsed: argparse.Namespace) -> None:
    """Sends each message back to the client that sent it."""
    with command.open_server(parsed, PROTOCOL) as server:
        print(f"Echoing on {server.address}; Ctrl-C ends it.", flush=True)
        with tw.run(server, TICKS_PER_SECOND) as ticks:
            for _, inbox in ticks:
                for client, what in inbox:
                    if isinstance(what, Ping):
                        server.send(client, what)
                    else:
                        print(what, flush=True)


def ping(parsed: argparse.Namespace) -> int:
    """Sends pings, waits for their echoes, and prints a summary."""
    times: list[float] = []
    with command.dial(parsed, PROTOCOL) as client, tw.run(client, TICKS_PER_SECOND) as ticks:
        sent, begun_at = 0, 0.0
        for tick, inbox in ticks:
            now = tick / TICKS_PER_SECOND
            for event in inbox.events:
                match event:
                    case tw.Connected():
                        begun_at = now
                    case tw.Disconnected(_, reason):
                        raise command.disconnected(reason, parsed.address)
                    case _:
                        pass
            for echo in inbox.messages:
                times.append(now - echo.sent_at)
                print(f"{echo.number}: {times[-1] * 1000:.0f} ms", flush=True)
            if client.connected and sent < parsed.count and now >= begun_at + sent * parsed.interval:
                client.send(Ping(sent, now))
                sent += 1
            waited = now - begun_at - sent * parsed.interval
            if len(times) == parsed.count or (sent == parsed.count and waited > 1):
                break
        stats = client.stats
    lost = parsed.count - len(times)
    print(f"{len(times)} of {parsed.count} came back, {lost} lost; RTT {stats.rtt_ms:.0f} ms")
    return 0 if times else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code."""
    prog = "python -m tickwire.samples.echo"
    parser = command.Parser(prog=prog, description="A server that sends back what it gets.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    server = commands.add_parser("serve", help="send back what comes")
    command.add_server_options(server)
    server.set_defaults(run=serve)
    client = commands.add_parser("ping", help="measure how long it takes")
    command.add_client_options(client)
    command.add_network_option(client)
    count = command.number(int, 1, 1_000_000)
    client.add_argument("--count", type=count, default=10, metavar="N", help="how many (10)")
    interval = command.number(float, 0.004, 60)
    client.add_argument(
        "--interval", type=interval, default=0.1, metavar="S", help="seconds between two (0.1)"
    )
    client.set_defaults(run=ping)
    return command.run(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
