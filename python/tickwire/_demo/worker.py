"""The loop shared by the server's process and the bots' processes."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Protocol, TypeAlias

from tickwire._demo.report import Failed, Link, Listening, Phase, Report
from tickwire._pace import paced

REPORTS_PER_SECOND = 4

Pipe: TypeAlias = "Connection[Listening | Failed | Report, Phase]"


class Game(Protocol):
    """A game that the loop ticks."""

    def tick(self, tick: int, phase: Phase) -> None: ...
    def links(self) -> list[Link]: ...
    def close(self) -> None: ...


def work(pipe: Pipe, rate: float, make: Callable[[], Game]) -> None:
    """Makes a game and ticks it through the phases that the pipe names, until the pipe closes.

    It also closes when the process at the pipe's other end dies, for any reason: no process is left behind.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the starting process, which closes the pipe
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        _work(pipe, rate, make)


def _work(pipe: Pipe, rate: float, make: Callable[[], Game]) -> None:
    try:
        game = make()
    except OSError as error:
        pipe.send(Failed(error.strerror or str(error)))
        return
    try:
        _tick(pipe, rate, game)
    finally:
        game.close()


def _tick(pipe: Pipe, rate: float, game: Game) -> None:
    phase = Phase.CONNECT
    played = next_report = 0
    for tick in paced(rate):
        while pipe.poll():
            phase = pipe.recv()
        if phase is Phase.END:
            break
        game.tick(tick, phase)
        played += phase is Phase.PLAY
        if tick >= next_report:
            next_report = tick + max(1, round(rate / REPORTS_PER_SECOND))
            pipe.send(Report(phase, played, game.links()))
    pipe.send(Report(phase, played, game.links()))
    pipe.recv()  # nothing more comes: this waits for the pipe to close
