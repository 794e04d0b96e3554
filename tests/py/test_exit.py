"""Programs that end while Tickwire still works: no process may abort."""

from __future__ import annotations

import subprocess
import sys

import pytest

SERVER = """
import builtins, threading, time, tickwire as tw

@tw.message
class Word:
    number: tw.u8

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.5)  # while the interpreter shuts down

protocol = tw.Protocol(1, [Word])
"""

RAISES_AT_EXIT = f"""{SERVER}
class Game:
    def __init__(self):
        self.server = tw.Server("127.0.0.1:0", protocol, tuning=tw.Tuning(driver="thread"))
    def __del__(self):
        try:
            self.server.receive()
        except tw.errors.ClosedError:
            print("closed")
builtins.game = Game()
"""

HOOK_AT_EXIT = f"""{SERVER}
entered = threading.Event()
def admission(clients):
    entered.set()
    time.sleep(0.1)
network = tw.testing.SimulatedNetwork()
server = tw.Server("10.0.0.1:4000", protocol, access=tw.tokens.Access(admission=admission), network=network)
client = tw.Client.connect(server.address, protocol, network=network)
def play():
    while True:
        for end in (client, server):
            with end.tick():
                pass
        network.advance(0.05)
threading.Thread(target=play, daemon=True).start()
entered.wait()
builtins.slow = Slow()
"""

CALL_AT_EXIT = f"""{SERVER}
entered = threading.Event()
@tw.call(tw.to_server)
def work(caller: tw.ClientHandle) -> None:
    entered.set()
    time.sleep(0.1)
network = tw.testing.SimulatedNetwork()
protocol = tw.Protocol(1, [Word], calls=[work])
server = tw.Server("10.0.0.1:4000", protocol, network=network)
client = tw.Client.connect(server.address, protocol, network=network)
def play():
    while True:
        client.call(work)
        for end in (client, server):
            with end.tick():
                pass
        network.advance(0.05)
threading.Thread(target=play, daemon=True).start()
entered.wait()
builtins.slow = Slow()
"""


@pytest.mark.parametrize("code", [HOOK_AT_EXIT, CALL_AT_EXIT], ids=["hook", "call"])
def test_a_daemon_thread_in_the_games_code_ends_with_the_program(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_error_that_is_first_raised_at_the_exit_is_raised() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RAISES_AT_EXIT], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, b"closed", b"")
