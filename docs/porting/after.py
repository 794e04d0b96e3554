"""The coin game with Tickwire."""

from typing import Annotated, NamedTuple

import tickwire as tw
from rules import RATE, is_near, moved, place

Place = Annotated[tw.Vec2, tw.vec2(0, 1023, 1)]
Way = Annotated[int, tw.ranged(-1, 1)]
Name = Annotated[str, tw.text(16)]


@tw.message
class Keys:
    x: Way = 0
    y: Way = 0


@tw.ghost(capacity=16)
class Player:
    place: Place = (0, 0)
    score: tw.u16 = 0
    name: Annotated[Name, tw.initial] = ""


@tw.ghost(capacity=1)
class Coin:
    place: Place = (0, 0)


@tw.call(tw.to_server, rate=1, burst=2)
def join(caller: tw.ClientHandle, name: Name) -> None: ...


protocol = tw.Protocol(
    id=0x636F696E,
    messages=[],
    ghosts=[Player, Coin],
    inputs=Keys,
    tick_rate=RATE,
    calls=[join],
)


class Body(NamedTuple):
    place: tuple[float, float]


def step(body, keys):
    return Body(moved(body.place, (keys.x, keys.y)))


class Server:
    def __init__(self, address):
        self.server = tw.Server(address, protocol, max_clients=16)
        self.address = self.server.address
        self.server.implement(join, self.join)
        self.players = {}
        self.coin = self.server.world.spawn(Coin(place()))

    def join(self, caller, name):
        if caller not in self.players:
            self.players[caller] = self.server.world.spawn(Player(place(), name=name), owner=caller)

    def tick(self):
        with self.server.tick() as inbox:
            for client, what in inbox:
                if isinstance(what, tw.Disconnected) and client in self.players:
                    self.server.world.despawn(self.players.pop(client))
            for client, keys in self.server.inputs:
                if keys is not None and client in self.players:
                    self.move(self.players[client], keys)

    def move(self, player, keys):
        player.place = step(Body(player.place), keys).place
        if is_near(player.place, self.coin.place):
            player.score, self.coin.place = player.score + 1, place()

    def close(self):
        self.server.close()


class Client:
    def __init__(self, address, name):
        self.client = tw.Client.connect(address, protocol, reconnect=tw.connections.Reconnect())
        self.name, self.body = name, None
        self.view = self.client.world.view()

    def tick(self, keys):
        with self.client.tick() as inbox:
            for what in inbox:
                if isinstance(what, tw.Connected):
                    self.body = None
                    self.client.call(join, self.name)
            mine = self.client.world.mine(Player)
            if mine is not None:
                start = Body(mine.place)
                self.body = self.body or tw.predict.Prediction(step, start, tolerance={"place": 1})
                self.body.advance(self.client, Keys(*keys), mine)
            self.view = self.client.world.view()

    def players(self):
        """Everybody's place and score, by name: one's own place is predicted."""
        players = {each.name: (each.place, each.score) for each in self.view.objects(Player)}
        mine = self.client.world.mine(Player)
        if mine is not None and self.body is not None:
            players[mine.name] = self.body.seen(1 / RATE).place, mine.score
        return players, next((coin.place for coin in self.view.objects(Coin)), (0, 0))

    @property
    def lost(self):
        return self.client.silence > 1

    def close(self):
        self.client.close()
