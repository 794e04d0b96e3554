"""Ghosts that only some clients may see, chosen now and then; the rows of dead ones are used again."""

from typing import Annotated, Any

import numpy as np
import tickwire as tw

from explore.game import Feature, Link, Player, Violation


@tw.ghost(capacity=8)
class Secret:
    number: Annotated[tw.u32, tw.initial] = 0
    plan: Annotated[tw.u32, tw.world.when("team")] = 0


class Hidden(Feature):
    ghosts = (Secret,)

    def setup(self) -> None:
        self.born = 0
        self.alive: list[Any] = []
        self.has_hook = self.rng.random() < 0.5
        self.due: set[Any] = set()
        rule = tw.world.Hook(self.choose) if self.has_hook else tw.world.Chosen()
        self.game.world.set_relevancy(Secret, rule)

    def joined(self, link: Link) -> None:
        # Numbers of secrets that were ever shown, also over earlier connections, whose ghosts the client
        # keeps; whose plan may be known; and that are shown now.
        known = link.player.notes
        link.notes |= {name: known.setdefault(name, set()) for name in ("shown", "told")} | {"now": set()}
        self.due.add(link.handle)
        self.renew(link)

    def renew(self, link: Link) -> None:
        """Chooses anew what a client is shown."""
        if self.has_hook:
            self.due.add(link.handle)
        else:
            self.game.world.show(link.handle, Secret, self.mask(link))
        team = self.mask(link, "team")
        self.game.world.set_condition(link.handle, Secret, "team", team)

    def mask(self, link: Link, kind: str = "shown") -> Any:
        rows = np.zeros(len(self.game.world.arrays(Secret)), bool)
        chosen = [secret for secret in self.alive if self.rng.random() < 0.5]
        for secret in chosen:
            rows[self.game.world.row(secret)] = True
        numbers = {secret.number for secret in chosen}
        if kind == "shown":
            link.notes["now"] = numbers
            link.notes["shown"] |= numbers
        else:
            link.notes["told"] |= numbers
        return rows

    def choose(self, handles: list[Any], _secrets: Any) -> Any:
        """A mask for each client if one of them is due; else None: as it was."""
        if self.due.isdisjoint(handles):
            return None
        self.due -= set(handles)
        return [self.mask(self.game.links[handle]) for handle in handles]

    def left(self, link: Link) -> None:
        self.due.discard(link.handle)

    def act(self) -> None:
        rng, world = self.rng, self.game.world
        if self.alive and rng.random() < 0.1:
            world.despawn(self.alive.pop(rng.randrange(len(self.alive))))
        if len(self.alive) < 6 and rng.random() < 0.15:
            self.born += 1
            self.alive.append(world.spawn(Secret(number=self.born, plan=self.born)))
        for link in self.game.links.values():
            if rng.random() < 0.02:
                self.renew(link)

    def frame(self, player: Player, inbox: Any) -> None:
        if player.link is None or "shown" not in player.link.notes:
            return
        for secret in player.client.world.objects(Secret):
            if secret.number not in player.link.notes["shown"]:
                raise Violation(f"revealed: secret {secret.number} to {player}, for whom nobody chose it")
            if secret.plan and secret.number not in player.link.notes["told"]:
                raise Violation(f"revealed plan: of secret {secret.number} to {player}")

    def check(self) -> None:
        alive = {secret.number for secret in self.alive}
        for link in self.game.live():
            seen = {secret.number for secret in link.player.client.world.objects(Secret)}
            if seen != link.notes["now"] & alive:
                wanted = sorted(link.notes["now"] & alive)
                raise Violation(f"hidden world: {link.player} sees {sorted(seen)}, not {wanted}")
