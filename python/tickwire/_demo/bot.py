"""The demo's bots: clients that only know the parts of the world that the server sends them."""

from __future__ import annotations

import math
import random

import tickwire as tw
from tickwire._demo.loading import Loader
from tickwire._demo.messages import (
    INPUTS,
    PROTOCOL,
    RELIABLE,
    CoinPlaced,
    CoinTaken,
    Numbered,
    PlayerState,
    Ready,
    Steer,
    Throw,
    Welcome,
)
from tickwire._demo.options import Options
from tickwire._demo.report import Link, Phase
from tickwire._demo.world import SIZE, Spot

THROWS_PER_SECOND = 4


class Bot:
    """Runs to the nearest coin it knows of, and throws coins about; one loads the world first."""

    def __init__(self, number: int, address: str, options: Options) -> None:
        seed = options.seed + 1 + number
        self._client = tw.Client.connect(
            address,
            PROTOCOL,
            client_id=number,
            debugging=tw.testing.Debugging(conditions=options.conditions, seed=seed),
        )
        self._random = random.Random(seed)
        self._loader = Loader(options) if number == options.loader else None
        self._link = Link(bot=number)
        self._player: int | None = None
        self._spot: Spot | None = None
        self._coins: dict[int, Spot] = {}
        self._throw_every = options.rate / THROWS_PER_SECOND
        self._next_throw = 0.0

    def tick(self, tick: int, phase: Phase) -> None:
        with self._client.tick() as inbox:
            for event in inbox.events:
                match event:
                    case tw.Connected():
                        self._link.connected = True
                    case tw.Disconnected(_, reason):
                        self._link.connected, self._link.reason = False, str(reason)
            for message in inbox.messages:
                self._handle(message)
            for player, message in inbox.latest:
                self._link.health[player] = message.health
            begun = phase is Phase.PLAY or self._link.load is not None
            if begun and self._loader and self._loader.under_way:
                self._link.load = self._loader.load
                if self._loader.tick(self._client, inbox):
                    self._tell(Ready())
            elif phase is Phase.PLAY and self._client.connected:
                self._play(tick)

    def _handle(self, message: object) -> None:
        if isinstance(message, Welcome | CoinPlaced | CoinTaken):
            self._link.received.add(message)
        match message:
            case Welcome(player):
                self._player = player
            case CoinPlaced(coin, x, y):
                self._coins[coin] = (x, y)
            case CoinTaken(coin):
                self._coins.pop(coin, None)
            case PlayerState(tick, player, x, y) if player == self._player:
                self._link.note_tick(tick)
                self._spot = (x, y)

    def _play(self, tick: int) -> None:
        if self._spot and self._coins:
            here = self._spot
            goal = min(self._coins.values(), key=lambda spot: math.dist(spot, here))
            distance = math.dist(goal, here) or 1.0
            x, y = (goal[0] - here[0]) / distance, (goal[1] - here[1]) / distance
            self._steer(Steer(tick, x, y))
        if tick >= self._next_throw:
            self._next_throw = tick + self._throw_every
            self._tell(Throw(self._random.uniform(0, SIZE), self._random.uniform(0, SIZE)))

    def _steer(self, steer: Steer) -> None:
        # Full when the server hasn't heard of us for long: old inputs are of no use then anyway.
        self._client.send(steer, channel=INPUTS)

    def _tell(self, message: Numbered) -> None:
        """Sends a reliable message and notes it down."""
        message.number = self._link.sent.count
        # Full when the server hasn't heard of us for long; gone when it never will.
        if self._client.send(message, channel=RELIABLE):
            self._link.sent.add(message)

    def link(self) -> Link:
        if self._client.connected:
            self._link.measure(self._client.stats)
        return self._link

    def close(self) -> None:
        self._client.close()


class Bots:
    """The bots of one process."""

    def __init__(self, numbers: range, address: str, options: Options) -> None:
        self._bots = [Bot(number, address, options) for number in numbers]

    def tick(self, tick: int, phase: Phase) -> None:
        for bot in self._bots:
            bot.tick(tick, phase)

    def links(self) -> list[Link]:
        return [bot.link() for bot in self._bots]

    def close(self) -> None:
        for bot in self._bots:
            bot.close()
