"""Ghosts that refer to each other, and calls that name ghosts."""

from typing import Annotated, Any

import tickwire as tw

from explore.game import Feature, Link, Player, Violation


@tw.ghost(capacity=8)
class Truck:
    number: Annotated[tw.u32, tw.initial] = 0
    ahead: tw.Ref["Truck"] = None


@tw.call(tw.to_client, channel="main")
def client_honk(truck: Truck, number: tw.u32, which: tw.u32) -> None: ...


@tw.call(tw.to_server, channel="main", rate=1000)
def server_drive(caller: tw.ClientHandle, truck: Truck, which: tw.u32) -> None: ...


class References(Feature):
    channels = (tw.reliable_ordered("main"),)
    ghosts = (Truck,)
    calls = (client_honk, server_drive)

    def setup(self) -> None:
        self.born = self.honks = 0
        self.alive: list[Truck] = []

    def act(self) -> None:
        rng, world = self.rng, self.game.world
        if len(self.alive) < 6 and rng.random() < 0.1:
            self.born += 1
            owner = rng.choice([None, *self.game.links])
            self.alive.append(world.spawn(Truck(number=self.born), owner=owner))
        if self.alive and rng.random() < 0.05:
            world.despawn(self.alive.pop(rng.randrange(len(self.alive))))
        for truck in self.alive:
            if rng.random() < 0.1:
                truck.ahead = rng.choice([None, *self.alive])
            for handle, link in self.game.links.items():
                if rng.random() < 0.02:
                    self.honks += 1
                    if self.game.server.call(handle, client_honk, truck, self.honks, truck.number):
                        link.note("honks", dict)[self.honks] = truck

    def client_honk(self, player: Player, truck: Truck, number: int, which: int) -> None:
        honks = player.link.note("honks", dict)
        if honks.pop(number, None) is None or truck.number != which:
            self.game.fault(f"call of ghost: honk {number} of truck {which} came to {truck} of {player}")

    def play(self, player: Player) -> None:
        if self.game.is_acting and self.rng.random() < 0.05:
            for truck in player.client.world.objects(Truck):
                if player.client.world.owns(truck):
                    player.client.call(server_drive, truck, truck.number)

    def server_drive(self, caller: tw.ClientHandle, truck: Truck, which: int) -> None:
        if self.game.world.owner(truck) != caller or truck.number != which:
            self.game.fault(f"call of ghost: {caller} drives truck {which} as {truck}, which isn't its own")

    def left(self, link: Link) -> None:
        link.notes.pop("honks", None)

    def check(self) -> None:
        wanted = {truck.number: truck.ahead and truck.ahead.number for truck in self.alive}
        for link in self.game.live():
            trucks: Any = link.player.client.world.objects(Truck)
            seen = {truck.number: truck.ahead and truck.ahead.number for truck in trucks}
            if seen != wanted:
                raise Violation(f"reference: {link.player} has {seen}, not {wanted}")
            lost = [number for number, truck in link.notes.get("honks", {}).items() if truck in self.alive]
            if lost:
                raise Violation(f"call of ghost: honks {lost} never came to {link.player}")
