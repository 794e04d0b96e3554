"""The demo's dedicated server: the one process that knows the true state of the world."""

from __future__ import annotations

from dataclasses import dataclass

import tickwire as tw
from tickwire._demo.loading import make_world
from tickwire._demo.messages import (
    HEALTH,
    POSITIONS,
    PROTOCOL,
    RELIABLE,
    CoinPlaced,
    CoinTaken,
    Health,
    Numbered,
    PlayerState,
    Ready,
    Steer,
    Throw,
    Welcome,
)
from tickwire._demo.options import Options
from tickwire._demo.report import Link, Phase
from tickwire._demo.world import Happening, Placed, Taken, World


@dataclass
class Guest:
    """One bot's connection, as the server keeps it."""

    handle: tw.ClientHandle
    link: Link


class GameServer:
    def __init__(self, options: Options) -> None:
        self._server = tw.Server(
            ("127.0.0.1", options.port),
            PROTOCOL,
            max_clients=options.clients,
            debugging=tw.testing.Debugging(conditions=options.conditions, seed=options.seed),
        )
        self._world = World(options.seed)
        self._guests: dict[tw.ClientHandle, Guest] = {}
        self._gone: list[Guest] = []
        self._rate = options.rate
        self._loader = options.loader
        self._map = make_world(options) if self._loader is not None else b""

    @property
    def address(self) -> str:
        return str(self._server.address)

    def tick(self, tick: int, phase: Phase) -> None:
        with self._server.tick() as inbox:
            for event in inbox.events:
                match event:
                    case tw.Connected(client):
                        self._welcome(client)
                    case tw.Disconnected(client, reason):
                        self._say_goodbye(client, str(reason))
            for client, message in inbox.messages:
                self._handle(client, message)
            if phase is Phase.PLAY:
                self._send_world()
                for happening in self._world.step(1 / self._rate):
                    self._tell_all(happening)
                self._broadcast_state(tick)
                self._broadcast_health()

    def _welcome(self, client: tw.ClientHandle) -> None:
        self._world.join(client.slot)
        guest = self._guests[client] = Guest(client, Link(bot=client.id, connected=True))
        self._tell(guest, Welcome(client.slot))
        for coin, (x, y) in self._world.coins.items():
            self._tell(guest, CoinPlaced(coin, x, y))

    def _send_world(self) -> None:
        """Once play has begun: to the bot that loads it."""
        for guest in self._guests.values():
            if guest.link.bot == self._loader:
                self._server.send_chunk(guest.handle, self._map, label="world")
                self._loader = None

    def _say_goodbye(self, client: tw.ClientHandle, reason: str) -> None:
        guest = self._guests.pop(client)
        guest.link.connected, guest.link.reason = False, reason
        self._gone.append(guest)
        self._world.leave(client.slot)

    def _handle(self, client: tw.ClientHandle, message: object) -> None:
        guest = self._guests[client]
        match message:
            case Steer(tick, x, y):
                guest.link.note_tick(tick)
                self._world.steer(client.slot, x, y)
            case Throw(x, y):
                guest.link.received.add(message)
                self._world.throw(client.slot, (x, y))
            case Ready():
                guest.link.received.add(message)

    def _tell_all(self, happening: Happening) -> None:
        for guest in self._guests.values():
            # Each guest gets its own message: the number in it counts that guest's messages.
            match happening:
                case Placed(coin, (x, y)):
                    self._tell(guest, CoinPlaced(coin, x, y))
                case Taken(coin, player):
                    self._tell(guest, CoinTaken(coin, player))

    def _tell(self, guest: Guest, message: Numbered) -> None:
        """Sends a reliable message and notes it down."""
        message.number = guest.link.sent.count
        if self._server.send(guest.handle, message, channel=RELIABLE):
            guest.link.sent.add(message)
        else:
            # It can't keep up, and without this message its field would be wrong forever; or it is gone.
            self._server.disconnect(guest.handle)

    def _broadcast_state(self, tick: int) -> None:
        for number, player in self._world.players.items():
            x, y = player.spot
            self._server.broadcast(PlayerState(tick, number, x, y, len(player.purse)), channel=POSITIONS)

    def _broadcast_health(self) -> None:
        """Sends each guest the health of the players that it doesn't know yet."""
        for guest in self._guests.values():
            known = guest.link.health
            for number, player in self._world.players.items():
                if known.get(number) != player.health:
                    self._tell_health(guest, number, player.health)

    def _tell_health(self, guest: Guest, player: int, health: int) -> None:
        if self._server.send(guest.handle, Health(health), channel=HEALTH, key=player):
            guest.link.health[player] = health

    def links(self) -> list[Link]:
        """The state of each connection, ended ones included."""
        for client in self._server.clients:
            self._guests[client].link.measure(self._server.stats(client))
        return [guest.link for guest in (*self._guests.values(), *self._gone)]

    def close(self) -> None:
        self._server.close()
