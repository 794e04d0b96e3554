"""Plays the arena of each chapter for a minute of virtual time over bad Wi-Fi, and measures what is seen.

``python docs/tutorial/trial.py`` prints the rows of the chapters' tables, ``--write`` puts them there.
docs/charts.py draws the pictures of the same runs. Ann runs to and fro; Bob stands, and shoots at her while
she runs, where he sees her.
"""

from __future__ import annotations

import ast
import functools
import logging
import math
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tickwire as tw
from tickwire.testing import SimulatedNetwork

logging.getLogger("tickwire").setLevel(logging.WARNING)

HERE = Path(__file__).parent
CHAPTERS = sorted(HERE.glob("[0-9]_*.md"))
BLOCK = re.compile(r"^(?:```python|<!-- run)\n(?:# (\w+\.py)\n)?(.*?)^(?:```|-->)", re.M | re.S)
TABLE = re.compile(r"^\| after chapter \|.*\n\|---.*\n((?:\|.*\n)*)", re.M)
NETWORKING = re.compile(r"\b(tw|server|client|caller|inbox|event|inputs|world|view|mine|past)\b")
"""Names that Tickwire's objects have in the chapters."""
RATE, SPEED, RADIUS = 60, 5.0, 14.0
SETTLING, MEASURED = 300, 3600
"""Frames until clocks have settled, and those that count."""
RUN, REST = 50, 40
"""Frames for which Ann runs, and rests."""
SHOT_EVERY = 10
BYSTANDERS = 4


def code(chapter: Path) -> str:
    """The program at the end of a chapter: all blocks up to there, in order."""
    pages = CHAPTERS[: CHAPTERS.index(chapter) + 1]
    blocks = [block for page in pages for block in BLOCK.findall(page.read_text("utf-8"))]
    return "\n\n".join(text for name, text in blocks if not name)


def files(chapter: Path) -> dict[str, str]:
    """The files of the tutorial as they are at the end of a chapter, by name."""
    pages = CHAPTERS[: CHAPTERS.index(chapter) + 1]
    blocks = [block for page in pages for block in BLOCK.findall(page.read_text("utf-8"))]
    found = {"arena.py": code(chapter)}
    for name, text in blocks:
        if name:
            found[name] = found.get(name, "") + text
    return found


def networking_lines(chapter: Path) -> int:
    """How many lines of a chapter's program use Tickwire; what a later chapter replaces doesn't count."""
    newest: dict[str, ast.stmt] = {}
    for place, node in enumerate(ast.parse(code(chapter)).body):
        if isinstance(node, ast.ClassDef) and not node.decorator_list:
            newest[node.name] = ast.ClassDef(node.name, node.bases, [], [ast.Pass()], [])
            newest |= {f"{node.name}.{getattr(each, 'name', place)}": each for each in node.body}
        else:
            newest[getattr(node, "name", ast.unparse(node).split(" = ")[0])] = node
    text = ast.unparse(ast.fix_missing_locations(ast.Module([*newest.values()], [])))
    return sum(bool(NETWORKING.search(line)) for line in text.splitlines())


@dataclass
class Result:
    """What a minute showed. Lists with an entry a frame have no other mark."""

    keys: list[int] = field(default_factory=list)
    """What Ann held down: 1 to the right, -1 to the left."""
    truth: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)
    """Ann's x for the server, on her own screen, and on Bob's."""
    kbps: list[float] = field(default_factory=list)
    """What came down to Bob."""
    hits: list[int] = field(default_factory=list)
    splashes: list[int] = field(default_factory=list)
    """Hits so far, and splashes that Bob was shown."""
    fired: int = 0
    """Bob's shots."""
    shots: list[float] = field(default_factory=list)
    """Of each shot, how far beside Ann it passed."""

    def waits(self) -> list[int]:
        """Of each of Ann's presses, frames until her screen showed it."""
        waits: list[int] = []
        for frame in self._presses():
            moved = (later for later in range(frame, len(self.own)) if self.own[later] != self.own[frame - 1])
            waits.append(next(moved, len(self.own)) - frame)
        return waits

    def runs(self) -> list[float]:
        """Of each press, how many steps Ann made."""
        ends = [*self._presses()[1:]]
        return [
            abs(self.truth[end] - self.truth[begin]) / SPEED
            for begin, end in zip(self._presses(), ends, strict=False)
        ]

    def jumps(self) -> int:
        """Frames in which Ann moved too far on Bob's screen."""
        steps = [abs(after - before) for before, after in zip(self.seen, self.seen[1:], strict=False)]
        return sum(step > 1.5 * SPEED for step in steps)

    def cells(self) -> list[str]:
        """The cells of the table."""
        waits = sorted(self.waits())
        return [
            f"{waits[len(waits) // 2] * 1000 / RATE:.0f} ms",
            f"{self.jumps()}",
            f"{100 * self.hits[-1] / self.fired:.0f} %",
            f"{self.splashes[-1]} of {self.hits[-1]}",
            f"{sum(self.kbps) / len(self.kbps):.0f} kbit/s",
        ]

    def _presses(self) -> list[int]:
        pairs = enumerate(zip(self.keys, self.keys[1:], strict=False), 1)
        return [frame for frame, (before, now) in pairs if now and not before]


@functools.cache
def result(chapter: Path) -> Result:
    """What the minute of a chapter showed."""
    names: dict[str, Any] = {"__name__": "arena"}
    exec(compile(code(chapter), chapter.name, "exec", dont_inherit=True), names)
    protocol, address, found = names["protocol"], tw.Address("127.0.0.1:40000"), Result()
    network = SimulatedNetwork(seed=1)
    up, down = tw.Conditions.preset("wifi-bad")
    network.set_conditions(up, receiver=address)
    network.set_conditions(down, sender=address)
    game = names["Game"](tw.Server(address, protocol, network=network))
    players: list[Any] = []
    for _ in range(2 + BYSTANDERS):
        players.append(names["Player"](tw.Client.connect(address, protocol, network=network)))
        while not players[-1].client.connected:  # one after the other, so that Ann's avatar is the first
            network.advance(1 / RATE)
            game.tick()
            players[-1].tick(names["Keys"]())
    ann, bob, *bystanders = players
    first_shot = first_splash = 0
    seen = before = (0.0, 0.0)
    for frame in range(-SETTLING, MEASURED):
        if frame == 0:
            first_shot, first_splash = len(game.shots), len(bob.splashes)
        # The server and its players are not in step with each other.
        network.advance(0.005)
        game.tick()
        network.advance(0.006)
        way = _way(frame)
        ann.tick(names["Keys"](x=way))
        network.advance(1 / RATE - 0.011)
        fires = frame >= 0 and frame % SHOT_EVERY == 0 and seen != before
        bob.tick(names["Keys"](aim=_aim(bob.me, seen), fires=True) if fires else names["Keys"]())
        seen, before = (bob.others[0] if bob.others else seen), seen
        for each in bystanders:
            each.tick(names["Keys"]())
        if frame < 0:
            continue
        found.keys.append(way)
        found.truth.append(next(each.position[0] for who, each in game.avatars.items() if who.slot == 0))
        found.own.append(ann.me[0])
        found.seen.append(seen[0])
        found.kbps.append(bob.client.stats.received_kbps)
        found.hits.append(sum(off < RADIUS for off in game.shots[first_shot:]))
        found.splashes.append(len(bob.splashes) - first_splash)
        found.fired += fires
    found.shots = game.shots[first_shot:]
    return found


def _way(frame: int) -> int:
    """Which way Ann runs in a frame: to and fro, with rests."""
    number, part = divmod(frame, RUN + REST)
    return (1 if number % 2 == 0 else -1) if frame >= 0 and part < RUN else 0


def _aim(here: tuple[float, float], there: tuple[float, float]) -> float:
    angle = math.degrees(math.atan2(there[1] - here[1], there[0] - here[0]))
    return round(angle * 8) / 8 % 360


def title(chapter: Path) -> str:
    """Its heading."""
    return chapter.read_text("utf-8").partition("\n")[0].removeprefix("# ")


def rows(chapter: Path) -> str:
    """The rows of a chapter's table: its own and the one before. The last chapter has all of them."""
    index = CHAPTERS.index(chapter)
    shown = CHAPTERS if chapter == CHAPTERS[-1] else CHAPTERS[max(0, index - 1) : index + 1]
    return "".join(f"| {' | '.join([title(each), *result(each).cells()])} |\n" for each in shown)


def main() -> None:
    """Prints the tables, or writes them."""
    for chapter in CHAPTERS:
        text = chapter.read_text("utf-8")
        if "--write" in sys.argv:
            found = TABLE.search(text)
            assert found is not None, chapter
            chapter.write_text(text[: found.start(1)] + rows(chapter) + text[found.end(1) :], "utf-8")
        print(title(chapter), *result(chapter).cells(), sep=" | ")


if __name__ == "__main__":
    main()
