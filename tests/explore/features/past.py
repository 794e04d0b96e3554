"""The past that the server remembers, to judge shots by."""

import tickwire as tw

from explore.game import Feature, Violation


@tw.ghost
class Runner:
    x: tw.i32 = 0


class Past(Feature):
    ghosts = (Runner,)

    def setup(self) -> None:
        self.seconds = self.rng.choice([0.25, 0.5, 1.0])
        self.game.world.remember(self.seconds)
        self.runner = self.game.world.spawn(Runner)
        self.was: dict[int, int] = {}

    def act(self) -> None:
        self.runner.x += self.rng.randrange(-50, 50)

    def ticked(self) -> None:
        world, ticks = self.game.world, self.seconds * self.game.tick_rate
        if self.was and world.tick not in self.was:
            raise Violation(f"tick: a tick of the server made {world.tick - max(self.was) + 1} of its world")
        self.was[world.tick + 1] = self.runner.x
        if self.rng.random() < 0.2 and self.game.network.now > self.seconds + 0.5:
            back = self.rng.randint(0, int(ticks) - 1)
            with world.rewind_to(world.tick - back) as past:
                if past.clamped:
                    raise Violation(f"remember: {back} ticks back is {past.clamped}, within {self.seconds} s")
                runner = past.ghost(self.runner)
                if runner is None or runner.x != self.was[world.tick - back]:
                    raise Violation(f"past: of {back} ticks ago is wrong")
            with world.rewind_to(world.tick - int(ticks) - 2) as past:
                if not past.clamped:
                    raise Violation(f"remember: more than {self.seconds} s")
