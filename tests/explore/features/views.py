"""The view of others: never later than it must be, and never backwards."""

from typing import Annotated, Any

import tickwire as tw

from explore.game import Feature, Link, Player, Violation


@tw.ghost
class Beacon:
    count: tw.u32 = 0
    x: Annotated[float, tw.quantized(-20_000, 20_000, 1 / 64)] = 0.0


class Views(Feature):
    ghosts = (Beacon,)

    def setup(self) -> None:
        self.beacon = self.game.world.spawn(Beacon)
        self.changed = [0.0]

    def act(self) -> None:
        self.changed.append(self.game.network.now)
        self.beacon.count += 1
        self.beacon.x += 1 / 8

    def joined(self, link: Link) -> None:
        if self.rng.random() < 0.3:
            self.game.world.set_owner(self.beacon, link.handle)

    def play(self, player: Player) -> None:
        view, note = player.client.world.view(), player.link.note("view", dict)
        if view.tick < note.get("tick", 0.0):
            raise Violation(f"view: ran back at {player}")
        note["tick"] = view.tick
        for beacon in view.objects(Beacon):
            self.judge(player, beacon.count, note)
        [rows, theirs] = [world.arrays(Beacon) for world in (view, player.client.world)]
        if [rows.owners[row] for row in rows.rows] != [theirs.owners[row] for row in rows.rows]:
            raise Violation(f"view owners: differ from the world's at {player}")

    def judge(self, player: Player, count: int, note: Any) -> None:
        """A change is shown a tick after it came, or two, unless large messages took the budget."""
        newest, note["count"] = note.get("count", count), count
        is_crowded = self.game.network.now - player.link.notes.get("large", -1.0) < 1.0
        if count > newest and player.settled(4) and self.game.is_perfect and not is_crowded:
            late = self.game.network.now - self.changed[newest + 1] - self.game.latency
            bound = 2 / self.game.tick_rate + 2 / player.rate + 0.002
            if late > bound:
                late, bound = late * 1000, bound * 1000
                raise Violation(f"late: {player} saw a change after {late:.0f} ms, not {bound:.0f}")
