"""Both ends of the demo: the server, which runs the game, and the bots, which play it.

Both count the reliable messages that they send and receive. The counts show whether each message arrived
once and in order.
"""

from __future__ import annotations

import hashlib
import random
import time
import zlib
from dataclasses import dataclass, field

import tickwire as tw
from tickwire._demo import game
from tickwire._demo.game import PROTOCOL, Coin, Ready, Runner, Spot, Steer, Throw, Thrown
from tickwire._demo.options import Options

THROW_TICKS = game.TICK_RATE // 2
"""Ticks between two throws of a bot."""


@dataclass
class Tally:
    """The reliable messages that were sent, or received, in one direction.

    Two tallies are equal if the messages and their order are equal.
    """

    count: int = 0
    checksum: int = 0

    def add(self, message: object) -> None:
        self.count += 1
        self.checksum = zlib.crc32(PROTOCOL.encode(message), self.checksum)


@dataclass
class Link:
    """One end of a connection."""

    sent: Tally = field(default_factory=Tally)
    received: Tally = field(default_factory=Tally)
    connected: bool = True
    reason: str = ""
    """The reason why the connection ended; None before."""
    stats: tw.connections.ConnectionStats | None = None
    """The newest statistics; None before the connection."""


@dataclass
class Load:
    """The progress of the bot that loads the world."""

    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    fraction: float = 0.0
    rtts_ms: list[float] = field(default_factory=list)
    """The round trips of the game's packets on the same connection during the transfer."""
    intact: bool | None = None
    """Whether the world has the right hash; None during the transfer."""
    error: str = ""


def make_world(options: Options) -> bytes:
    """The bytes to load. The same seed gives the same bytes on both sides."""
    return random.Random(options.seed).randbytes(options.world_bytes)


def picture(world: tw.world.World | tw.world.ClientWorld) -> list[tuple[float, ...]]:
    """The contents of a world, for comparing the server's world with a bot's world."""
    coins = [(each.x, each.y) for each in world.objects(Coin)]
    runners = [(each.x, each.y, each.coins, each.health) for each in world.objects(Runner)]
    return sorted(coins) + sorted(runners)


class GameServer:
    """The server. Its ghosts are the state of the game."""

    def __init__(self, options: Options) -> None:
        self.endpoint = tw.Server(
            ("127.0.0.1", options.port),
            PROTOCOL,
            max_clients=options.clients,
            debugging=tw.testing.Debugging(conditions=options.conditions, seed=options.seed),
        )
        self.links: dict[int, Link] = {}
        """The connections by bot number, including ended connections."""
        self._random = random.Random(options.seed)
        self._runners: dict[tw.ClientHandle, Runner] = {}
        self._loader = options.loader
        self._map = make_world(options)
        for _ in range(game.COINS):
            self._place(self._anywhere())

    def tick(self, playing: bool) -> None:
        with self.endpoint.tick() as inbox:
            for client, what in inbox:
                match what:
                    case tw.Connected():
                        self.links[client.id] = Link()
                        self._runners[client] = self.endpoint.world.spawn(
                            Runner(*self._anywhere()), owner=client
                        )
                    case tw.Disconnected(_, reason):
                        link = self.links[client.id]
                        link.connected, link.reason = False, str(reason)
                        self._leave(client)
                    case Throw() | Ready():
                        self.links[client.id].received.add(what)
                        if isinstance(what, Throw):
                            self._throw(client, what)
            for client in self._runners:
                self.links[client.id].stats = self.endpoint.stats(client)
                if playing and client.id == self._loader:
                    self.endpoint.send_chunk(client, self._map, label="world")
                    self._loader = None
            if playing:
                self._step()

    def _step(self) -> None:
        for client, steer in self.endpoint.inputs:
            runner = self._runners[client]
            if steer:
                runner.x, runner.y = game.step(Spot(runner.x, runner.y), steer)
            for coin in self.endpoint.world.objects(Coin):
                if game.distance(coin, runner) < game.REACH:
                    self.endpoint.world.despawn(coin)
                    runner.coins += 1
                    runner.health = min(game.MAX_HEALTH, runner.health + game.HEAL)

    def _throw(self, client: tw.ClientHandle, throw: Throw) -> None:
        thrower = self._runners[client]
        if not thrower.coins:
            return
        thrower.coins -= 1
        self._place(Spot(throw.x, throw.y))
        for runner in self._runners.values():
            if runner is not thrower and game.distance(runner, throw) < game.HIT_REACH:
                runner.health = max(0, runner.health - game.HIT)
        thrown = Thrown(client.slot, throw.x, throw.y)
        for other in self._runners:
            if self.endpoint.send(other, thrown):
                self.links[other.id].sent.add(thrown)
            else:  # it can't keep up
                self.endpoint.disconnect(other)

    def _leave(self, client: tw.ClientHandle) -> None:
        """Removes a player from the field, and scatters its coins."""
        runner = self._runners.pop(client)
        for _ in range(runner.coins):
            self._place(self._anywhere())
        self.endpoint.world.despawn(runner)

    def _place(self, spot: Spot) -> None:
        self.endpoint.world.spawn(Coin(spot.x, spot.y))

    def _anywhere(self) -> Spot:
        return game.on_field(self._random.uniform(0, game.SIZE), self._random.uniform(0, game.SIZE))


class Bot:
    """A bot that runs to the nearest coin that it sees, and throws coins. One bot loads the world first."""

    def __init__(self, number: int, address: str, options: Options) -> None:
        seed = options.seed + 1 + number
        self.number = number
        self.client = tw.Client.connect(
            address,
            PROTOCOL,
            client_id=number,
            debugging=tw.testing.Debugging(conditions=options.conditions, seed=seed),
        )
        self.link = Link(connected=False)
        self.load: Load | None = None
        self.body: tw.predict.Prediction[Spot, Steer] | None = None
        self._random = random.Random(seed)
        self._world_hash = hashlib.sha256(make_world(options)).digest() if number == options.loader else None
        self._ticks = 0

    def tick(self, playing: bool) -> None:
        with self.client.tick() as inbox:
            for what in inbox:
                match what:
                    case tw.Connected():
                        self.link.connected = True
                    case tw.Disconnected(_, reason):
                        self.link.connected, self.link.reason = False, str(reason)
                    case Thrown():
                        self.link.received.add(what)
            if self.client.connected:
                self.link.stats = self.client.stats
            if playing and self._world_hash and self.load is None:
                self.load = Load()
            if self.load and self.load.intact is None:
                self._follow(self.load, inbox)
            elif playing and self.client.connected:
                self._play()

    def _follow(self, load: Load, inbox: tw.Inbox[object]) -> None:
        """Tracks the transfer of the world."""
        load.seconds = time.monotonic() - load.started
        if self.link.stats:
            load.rtts_ms.append(self.link.stats.rtt_ms)
        for incoming in self.client.incoming_chunks():
            load.fraction = incoming.fraction
        for _, error in inbox.chunk_failures:
            load.error, load.intact = error, False
        for chunk in inbox.chunks:
            load.fraction, load.intact = 1.0, hashlib.sha256(chunk.data).digest() == self._world_hash
            self._tell(Ready())

    def _play(self) -> None:
        avatar = self.client.world.mine(Runner)
        if avatar is None:
            return
        if self.body is None:
            tolerance = {"x": 1 / 16, "y": 1 / 16}
            self.body = tw.predict.Prediction(game.step, Spot(avatar.x, avatar.y), tolerance=tolerance)
        here = self.body.state or Spot(avatar.x, avatar.y)
        steer = Steer(0, 0)
        if coins := self.client.world.objects(Coin):
            goal = min(coins, key=lambda coin: game.distance(coin, here))
            away = game.distance(goal, here) or 1.0
            steer = Steer((goal.x - here.x) / away, (goal.y - here.y) / away)
        self.body.advance(self.client, steer, avatar)
        self._ticks += 1
        if self._ticks % THROW_TICKS == 0:
            self._tell(Throw(self._random.uniform(0, game.SIZE), self._random.uniform(0, game.SIZE)))

    def _tell(self, message: Throw | Ready) -> None:
        if self.client.send(message):
            self.link.sent.add(message)
