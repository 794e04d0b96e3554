"""The events in the games of a scenario."""

from __future__ import annotations

from collections.abc import Callable

import tickwire as tw

from soak import scenario as scenarios
from soak.play import SERVER, Play, pick


class Happenings:
    """Triggers events at random times, each kind as often as its scenario says."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.rng = play.scenario.rng("events")
        self.counts = dict.fromkeys(play.scenario.events, 0)
        self.next = {name: self.rng.expovariate(1 / mean) for name, mean in play.scenario.events.items()}
        self.heals_at = float("inf")
        self.does: dict[str, Callable[[], None]] = {name: getattr(self, name) for name in scenarios.EVENTS}

    def happen(self) -> None:
        """Whatever is due."""
        now = self.play.network.now
        if now >= self.heals_at:
            self.heals_at = float("inf")
            self.play.network.heal()
        for name, at in self.next.items():
            if now >= at:
                self.counts[name] += 1
                self.does[name]()
                self.next[name] = now + self.rng.expovariate(1 / self.play.scenario.events[name])

    def some_line(self) -> tuple[int, float]:
        """A player, and some seconds, mostly fewer than the timeout."""
        player = self.rng.randrange(self.play.scenario.players)
        return player, self.rng.uniform(0, 1.5 * self.play.scenario.timeout)

    def kick(self) -> None:
        line = pick(self.rng, [line for line in self.play.by_slot.values() if line.may_send_down])
        if line is not None and line.handle in self.play.server.clients:
            assert line.handle is not None
            line.dropped = True
            self.play.server.disconnect(line.handle)

    def leave(self) -> None:
        player, after = self.some_line()
        line = self.play.current[player]
        if line is not None:
            self.play.leave(line, after)

    def restart(self, crash: bool = False) -> None:
        play = self.play
        if crash:
            play.network.unplug(SERVER)
        play.server.close()
        for line in play.lines:
            line.dropped = True
            if line.handle is not None and line.server_over is None:
                line.server_over = tw.DisconnectReason.CLOSED
                line.up.ended(sender=False)
        # A dialling client may still get in, with an unused token.
        play.by_id = {
            line.number: line for line in play.lines if line.handle is None and not line.client.closed
        }
        for line in play.by_id.values():
            line.dropped = False
        play.by_slot.clear()
        play.by_number.clear()
        play.server = play.open_server()

    def crash(self) -> None:
        self.restart(crash=True)

    def move(self) -> None:
        """A player comes from another port, and later from yet another one."""
        player, _ = self.some_line()
        play = self.play
        line = play.current[player]
        new = play.places[player].with_port(self.rng.randint(1024, 65_535))
        if new != play.places[player]:
            if line is not None and not line.client.closed:
                play.network.move_host(play.places[player], new)
            play.places[player] = new

    def nat_restart(self) -> None:
        player, _ = self.some_line()
        if self.play.scenario.nats[player] is not None:
            self.play.network.restart_nat(f"203.0.113.{player + 1}")

    def partition(self) -> None:
        player, seconds = self.some_line()
        self.play.network.partition([SERVER], [self.play.places[player]])
        self.heals_at = self.play.network.now + seconds

    def weather(self) -> None:
        conditions = scenarios.weather(self.rng, False)
        if self.rng.random() < 0.5:
            self.play.network.set_conditions(conditions, sender=SERVER)
        else:
            self.play.network.set_conditions(conditions, receiver=SERVER)

    def stall(self) -> None:
        player, seconds = self.some_line()
        who = None if self.rng.random() < 0.3 else player
        self.play.stalled[who] = self.play.network.now + seconds

    def pump(self) -> None:
        player, seconds = self.some_line()
        who = None if self.rng.random() < 0.3 else player
        self.play.pumping[who] = self.play.network.now + 3 * seconds

    def jump(self) -> None:
        """All of them sleep: a laptop is closed, a debugger holds the process."""
        seconds = self.rng.choice([0.1, 1, 5, 30, 600]) * self.rng.random()
        self.play.network.advance(seconds)

    def budget(self) -> None:
        bytes_per_second, burst = 10 ** self.rng.uniform(3.5, 6), self.rng.uniform(2000, 65_536)
        player, _ = self.some_line()
        line = self.play.current[player]
        if line is not None and not line.client.closed and self.rng.random() < 0.5:
            line.client.set_budget(bytes_per_second, burst)
        else:
            self.play.server.set_budget(bytes_per_second, burst)

    def cancel(self) -> None:
        lines = [line for line in self.play.lines[-20:] if line.up.transfers or line.down.transfers]
        line = pick(self.rng, lines)
        if line is not None:
            transfer, _ = self.rng.choice(list(line.up.transfers) + list(line.down.transfers))
            transfer.cancel()
