"""The demo's processes: a server, and the bots in a few others."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import NamedTuple

from tickwire._demo.bot import Bots
from tickwire._demo.options import Options
from tickwire._demo.report import Failed, Listening, Phase, Report
from tickwire._demo.server import GameServer
from tickwire._demo.worker import Pipe, work

SERVER = 0
"""The number of the server's process: the first to start."""
BOT_PROCESSES = 4
START_SECONDS = 30.0
"""How long a process may take to start: long, for busy machines."""
LEAVE_SECONDS = 5.0


class DemoError(Exception):
    """The demo can't go on; the text is a sentence for the user."""


def run_server(pipe: Pipe, options: Options) -> None:
    """The server's process."""

    def make() -> GameServer:
        game = GameServer(options)
        pipe.send(Listening(game.address))
        return game

    work(pipe, options.rate, make)


def run_bots(pipe: Pipe, options: Options, address: str, numbers: range) -> None:
    """A process of bots."""
    work(pipe, options.rate, lambda: Bots(numbers, address, options))


class Running(NamedTuple):
    """A process that was started."""

    name: str
    process: SpawnProcess
    pipe: Connection[Phase, Listening | Failed | Report]


class Processes:
    """Starts the server, then the bots; none of them outlives this object's ``with`` block.

    Each holds one end of a pipe and leaves when the other closes, so that not even a killed parent leaves
    any behind.
    """

    def __init__(self, options: Options) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._running: list[Running] = []
        self.server_address = ""
        try:
            self._start_all(options)
        except BaseException:
            self.close()
            raise

    def _start_all(self, options: Options) -> None:
        with _interrupts_held():
            server = self._start("server", run_server, options)
        if not server.pipe.poll(START_SECONDS):
            raise DemoError(f"The server did not start in {START_SECONDS:g} seconds.")
        match _receive(server):
            case Listening(address):
                self.server_address = address
            case Failed(sentence):
                raise DemoError(f"Can't listen on 127.0.0.1:{options.port}: {sentence}.")
        count = min(BOT_PROCESSES, options.clients)
        with _interrupts_held():
            for first in range(count):
                numbers = range(first, options.clients, count)
                self._start("bots", run_bots, options, self.server_address, numbers)

    def _start(self, name: str, target: Callable[..., None], *arguments: object) -> Running:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=target, args=(theirs, *arguments), daemon=True)
        process.start()
        theirs.close()
        self._running.append(Running(name, process, ours))
        return self._running[-1]

    @property
    def count(self) -> int:
        return len(self._running)

    def announce(self, phase: Phase) -> None:
        """Announces a phase to all processes."""
        for running in self._running:
            try:
                running.pipe.send(phase)
            except OSError:
                raise _died(running) from None

    def reports(self, seconds: float) -> Iterator[tuple[int, Report]]:
        """Waits for reports at most this long; yields each with the number of its process."""
        ready = wait([running.pipe for running in self._running], max(0.0, seconds))
        for number, running in enumerate(self._running):
            if running.pipe in ready:
                match _receive(running):
                    case Report() as report:
                        yield number, report
                    case Failed(sentence):
                        raise DemoError(f"The bots can't start: {sentence}.")

    def close(self) -> None:
        """Ends all processes, by force if necessary."""
        for running in self._running:
            running.pipe.close()
        deadline = time.monotonic() + LEAVE_SECONDS
        for running in self._running:
            running.process.join(max(0.0, deadline - time.monotonic()))
            if running.process.is_alive():
                running.process.kill()
                running.process.join()
        self._running.clear()

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _receive(running: Running) -> Listening | Failed | Report:
    try:
        return running.pipe.recv()
    except (EOFError, OSError):
        raise _died(running) from None


def _died(running: Running) -> DemoError:
    running.process.join(LEAVE_SECONDS)
    code = running.process.exitcode
    return DemoError(f"The process of the {running.name} ended unexpectedly, with exit code {code}.")


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Holds Ctrl-C back for a moment. New processes inherit that: it can't hit them before they ignore it."""
    if sys.platform == "win32":
        yield
        return
    # Started within, multiprocessing's own helper would let the signal through again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
