"""Measures both programs over an emulated line between two network namespaces, as root on Linux.

Ann runs to and fro, Bob watches her, Carol and Dave run in circles; after 32 seconds Carol's cable is pulled.
The server is in one namespace, all players are in the other. The figures are those of the page "Porting from
sockets".
"""

import importlib
import json
import mmap
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rules import RATE, SPEED

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benches" / "py"))

import kernel  # noqa: E402

PORT, SERVER = 7001, "10.99.0.1"
PLAY, WATCH = 32, 14
"""Seconds of play, and after Carol's cable was pulled."""
DELAY, LOSSES = 0.05, (0.0, 0.05)
"""Seconds each way, and the parts of packets that are lost each way."""


def frames(seconds):
    """A frame number RATE times a second."""
    start = time.monotonic()
    for number in range(int(seconds * RATE)):
        time.sleep(max(0.0, start + number / RATE - time.monotonic()))
        yield number


class Cuttable(kernel.Direction):
    """A direction in which nothing passes any more from and to a port that the file ``cut`` holds."""

    def __init__(self, cut, loss, seed):
        super().__init__(0, DELAY, 0, loss, random.Random(seed))
        self.cut = cut

    def send(self, now, packet, number):
        port, start = self.cut[:2], 4 * (packet[0] & 15)
        if port == bytes(2) or port not in (packet[start : start + 2], packet[start + 2 : start + 4]):
            super().send(now, packet, number)


def serve(program):
    server = importlib.import_module(program).Server((SERVER, PORT))
    for _ in frames(3600):
        server.tick()


def play(program, cut):
    game = importlib.import_module(program)
    clients = {name: game.Client((SERVER, PORT), name) for name in ("ann", "bob", "carol", "dave")}
    pressed, waits, jumps, drawn, before = None, [], 0, 0, None
    stood, longest, cut_at = 0, 0, None
    gone = None
    for frame in frames(PLAY + WATCH):
        phase = frame % 90
        keys = {"ann": ((-1, 1)[frame // 90 % 2] if phase < 50 else 0, 0), "bob": (0, 0)}
        turn = frame // 30 % 4
        keys["carol"] = keys["dave"] = ((1, 0), (0, 1), (-1, 0), (0, -1))[turn]
        if frame == PLAY * RATE:
            cut_at = time.monotonic()
            with open(cut, "r+b") as file:  # in place: the line has it in memory
                file.write(port_of(clients["carol"]).to_bytes(2, "big"))
        for name, client in clients.items():
            if cut_at is None or name != "carol":
                client.tick(keys[name])
        players, _ = clients["bob"].players()
        if cut_at is not None and gone is None and "carol" not in players:
            gone = time.monotonic() - cut_at
        if "ann" not in players:
            continue
        spot = players["ann"][0][0]
        if before is not None and frame > 8 * RATE:
            far = abs(spot - before)
            if cut_at is None:
                drawn += 1
                jumps += far > 1.5 * SPEED
                if phase == 0:
                    pressed = time.monotonic()
                if pressed is not None and far > 0.5:
                    waits.append(time.monotonic() - pressed)
                    pressed = None
            else:
                # Ann stands for two thirds of a second in each turn.
                stood = stood + 1 if far < 0.5 else 0
                longest = max(longest, stood)
        before = spot
    print(
        json.dumps(
            {
                "latency": round(1000 * statistics.median(waits)),
                "latency_p95": round(1000 * sorted(waits)[int(0.95 * len(waits))]),
                "jumps": round(100 * jumps / drawn, 1),
                "carol_gone_after": gone and round(gone, 1),
                "ann_stands_for": round(longest / RATE, 1),
            }
        )
    )
    os._exit(0)  # threads and sockets stay where they are


def port_of(client):
    """The local port of either program's client."""
    return client.sock.getsockname()[1] if hasattr(client, "sock") else client.client.address.port


def measure(program, loss, seed):
    """A row: what Bob saw, and what was on the line for each player and second."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(2))
        file.flush()
        cut, way = mmap.mmap(file.fileno(), 2), kernel.Line(0, 0)
        way._ways = [Cuttable(cut, loss, 2 * seed + number) for number in range(2)]
        with way:

            def run(namespace, *words):
                command = ["ip", "netns", "exec", namespace, sys.executable, __file__, *words]
                return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

            with run(way.names[0], "serve", program) as serving:
                time.sleep(1.0)
                with run(way.names[1], "play", program, file.name) as playing:
                    out, _ = playing.communicate()
                serving.kill()
            counts = way.finish()
    down, up = (round(each["bytes"] / 4 / (PLAY + WATCH) / 125, 1) for each in counts)
    return {"program": program, "loss": loss, **json.loads(out), "kbit_down": down, "kbit_up": up}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", program]:
            serve(program)
        case ["play", program, cut]:
            play(program, cut)
        case _:
            for loss in LOSSES:
                for program in ("before", "after"):
                    print(measure(program, loss, seed=1), flush=True)
