"""Runs a server's program as it stands, and has hostile visitors come, talk, stall and leave at every moment.

``python visitors.py SECONDS PROGRAM...``, the program a file or ``-m module``, with its arguments. Whatever
server it makes is visited over real sockets, from a thread, for so long; then it is printed by how many. When
the program has ended, why the connection of a quiet guest did is printed, too.
"""

from __future__ import annotations

import dataclasses
import random
import runpy
import sys
import threading
import time
import typing
from collections.abc import Iterator
from typing import Any

import tickwire as tw

RealServer = tw.Server
PATIENCE = 5.0


class Visits:
    """All who visit one server."""

    def __init__(self, server: tw.Server, key: bytes | None) -> None:
        self.server = server
        self.address = server.address
        self.protocol = server.protocol
        self.key = key
        self.random = random.Random(1)
        self.kept: list[tw.Client] = []
        self.guest = self.dial()
        self.came = 0

    def dial(self) -> tw.Client:
        if self.key is None:
            return tw.Client.connect(self.address, self.protocol)
        token = tw.ConnectToken.generate(
            protocol=self.protocol, key=self.key, client_id=random.getrandbits(63), servers=[self.address]
        )
        return tw.Client(self.protocol, token)

    def visit(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        moments = [self.leave_at_once, self.talk_and_leave, self.die, self.stall]
        moments += [self.never_read, self.ask_and_forget]
        for number in range(sys.maxsize):
            if time.monotonic() > until:
                break
            self.guest_tick()
            moments[number % len(moments)]()
        sys.stdout.write(f"visited by {self.came}\n")  # in one piece, as the server prints too
        while self.guest.disconnect_reason is None:
            self.guest_tick()
            time.sleep(0.005)

    def guest_tick(self) -> None:
        with self.guest.tick():
            pass

    def connected(self) -> tw.Client:
        """Up by the handshake alone: the server may not have had a tick since."""
        client = self.dial()
        until = time.monotonic() + 1
        while not client.connected and client.disconnect_reason is None and time.monotonic() < until:
            client.pump()
            self.guest_tick()
            time.sleep(0.001)
        self.came += client.connected
        return client

    def words(self) -> Iterator[tuple[object, int]]:
        """One of each message for each channel that takes it."""
        for index, channel in enumerate(self.protocol.channels):
            if channel.kind in ("payload", "chunks"):
                continue
            for class_ in self.plain:
                yield filled(class_), index

    def say(self, client: tw.Client, times: int) -> None:
        for _ in range(times):
            for message, channel in self.words():
                client.send(message, channel)
            if self.protocol.inputs is not None:
                client.send_input(filled(self.protocol.inputs))
            for call in self.protocol.calls:
                words = [WORDS.get(kind) for kind in list(plain_types(call.function).values())[1:]]
                if isinstance(call, tw.calls.ServerCall) and None not in words:
                    client.call(call, *words)

    @property
    def plain(self) -> list[type]:
        """The classes of messages that aren't those of calls."""
        names = {call.function.__name__ for call in self.protocol.calls}
        calls = names | {f"{name}_reply" for name in names}
        return [class_ for class_ in self.protocol.messages if class_.__name__ not in calls]

    # --- how they visit ---

    def leave_at_once(self) -> None:
        self.connected().close()

    def talk_and_leave(self) -> None:
        client = self.connected()
        self.say(client, 5)
        client.flush()
        client.close()

    def die(self) -> None:
        """Says something and is never heard of again."""
        client = self.connected()
        self.say(client, 5)
        client.flush()
        self.keep(client)

    def stall(self) -> None:
        """Acks nothing from now on, while another has the server answer until all that is full."""
        self.keep(self.connected())
        speaker = self.connected()
        for _ in range(20):
            self.say(speaker, 30)
            speaker.receive()
            speaker.flush()
            self.guest_tick()
        speaker.close()

    def never_read(self) -> None:
        client = self.connected()
        for _ in range(20):
            self.say(client, 30)
            client.pump()
            time.sleep(0.001)
        self.keep(client)

    def ask_and_forget(self) -> None:
        """Dials and has no time for the answer."""
        client = self.dial()
        client.flush()
        self.keep(client)

    def keep(self, client: tw.Client) -> None:
        self.kept.append(client)
        if len(self.kept) > 12:
            self.kept.pop(0).close()


WORDS = {str: "x", bool: True, int: 1}
"""The text of a value in calls, by the type of the argument."""


def plain_types(function: Any) -> dict[str, Any]:
    """The parameters of a function with their types, without their annotations' extras."""
    return {name: hint for name, hint in typing.get_type_hints(function).items() if name != "return"}


def filled(class_: Any) -> object:
    """A message with something in its texts."""
    message = class_()
    if dataclasses.is_dataclass(message):
        for field in dataclasses.fields(message):
            if isinstance(getattr(message, field.name), str):
                setattr(message, field.name, "x")
    if hasattr(message, "block"):
        message.block = b"block"
    return message


def main(seconds: float, program: list[str]) -> None:
    visits: list[Visits] = []

    def server(*arguments: Any, **settings: Any) -> tw.Server:
        made = RealServer(*arguments, **settings)
        if settings.get("network") is None:
            visits.append(Visits(made, settings.get("key")))
            threading.Thread(target=visits[-1].visit, args=(seconds,), daemon=True).start()
        return made

    tw.Server = server  # type: ignore[assignment,misc]
    if program[0] == "-m":
        sys.argv = program[1:]
        run = lambda: runpy.run_module(program[1], run_name="__main__", alter_sys=True)  # noqa: E731
    else:
        sys.argv = program
        sys.path.insert(0, ".")
        run = lambda: runpy.run_path(program[0], run_name="__main__")  # noqa: E731
    # One that ends by itself may do so before anybody came: then it runs again. One that only makes a server
    # is ticked here.
    most, code = time.monotonic() + 2 * PATIENCE, None
    while True:
        try:
            run()
        except SystemExit as end:
            code = end.code
            if code not in (None, 0, 130):
                raise
        for each in visits:
            while not (each.server.closed or each.came or time.monotonic() > most):
                with each.server.tick():
                    time.sleep(0.005)
        if any(each.came for each in visits) or time.monotonic() > most:
            break
    print("visited in all by", sum(each.came for each in visits), flush=True)
    until = time.monotonic() + PATIENCE
    for each in visits:
        while each.guest.connected and time.monotonic() < until:
            time.sleep(0.01)
        print("told", each.guest.disconnect_reason and each.guest.disconnect_reason.name, flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
