"""The demo's command line."""

from __future__ import annotations

import argparse
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import tickwire as tw
from tickwire._demo.game import MAX_PLAYERS


@dataclass(frozen=True)
class Options:
    clients: int = 8
    seconds: float = 20.0
    latency: float = 50.0
    jitter: float = 10.0
    loss: float = 2.0
    duplicate: float = 1.0
    reorder: float = 1.0
    seed: int = 1
    world: float = 4.0
    port: int = 0
    plain: bool = False
    json: bool = False

    @property
    def loader(self) -> int | None:
        """The bot that loads the world while the others play, if any."""
        return self.clients - 1 if self.world else None

    @property
    def world_bytes(self) -> int:
        return round(self.world * 2**20)

    @property
    def conditions(self) -> tw.Conditions:
        """The simulated bad network for each side's outgoing packets.

        Raises:
            ValueError: the options contradict each other.
        """
        return tw.Conditions(
            latency=self.latency / 1000,
            jitter=self.jitter / 1000,
            loss=self.loss / 100,
            duplicate=self.duplicate / 100,
            reorder=self.reorder / 100,
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options, under the names of :class:`Options`."""
    default = Options()

    def number(flag: str, kind: Callable[[str], float], low: float, high: float, text: str) -> None:
        value = getattr(default, flag)
        check = _within(kind, low, high)
        parser.add_argument(f"--{flag}", type=check, default=value, metavar="N", help=f"{text} ({value:g})")

    number("clients", int, 1, MAX_PLAYERS, "how many bots play")
    number("seconds", float, 1, 86_400, "how long they play")
    number("latency", float, 0, 2_000, "milliseconds a packet takes, one way")
    number("jitter", float, 0, 2_000, "milliseconds a packet is early or late, up to the latency")
    number("loss", float, 0, 50, "percent of packets lost")
    number("duplicate", float, 0, 100, "percent of packets that arrive twice")
    number("reorder", float, 0, 100, "percent of packets held back, so that later ones overtake them")
    number("world", float, 0, 32, "MiB that the last bot loads before it plays, 0: nothing")
    number("port", int, 0, 65_535, "the server's UDP port on 127.0.0.1; 0: any free one")
    parser.add_argument(
        "--seed",
        type=_within(int, 0, 2**32 - 1),
        default=None,
        metavar="N",
        help="makes the bots' game and the network's faults repeatable (random)",
    )
    parser.add_argument("--plain", action="store_true", help="plain lines even in a terminal")
    parser.add_argument("--json", action="store_true", help="end with the summary as one line of JSON")


def parse(arguments: argparse.Namespace) -> Options:
    """The options from the arguments.

    Raises:
        ValueError: the options contradict each other.
    """
    given = {name: getattr(arguments, name) for name in Options.__dataclass_fields__}
    if given["seed"] is None:
        given["seed"] = secrets.randbelow(2**32)
    options = Options(**given)
    if options.jitter > options.latency:
        raise ValueError(
            f"argument --jitter: must be at most the latency, {options.latency:g} ms, not {options.jitter:g}"
        )
    return options


def _within(kind: Callable[[str], float], low: float, high: float) -> Callable[[str], float]:
    """An argument type: a number from ``low`` to ``high``."""

    def convert(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"must be {what} from {low:.12g} to {high:.12g}, not {text!r}")
        return value

    return convert
