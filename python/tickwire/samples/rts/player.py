"""A player: a peer, the world, and lockstep, which connects them."""

from __future__ import annotations

from pathlib import Path

import tickwire as tw
from tickwire.lockstep import JoinRefused, LockstepEvent
from tickwire.samples.rts.bot import Bot
from tickwire.samples.rts.messages import COMMANDS
from tickwire.samples.rts.rules import FIELDS, Battlefield

THINKING = 10
"""Turns between two decisions of a bot."""
DROP_AFTER = 20.0
"""Seconds that the game waits for a player without a connection."""
SNAPSHOT_EVERY = 600
"""Turns between snapshots; about a minute."""


class Player:
    """A player, perhaps a bot. Call :meth:`tick` once a frame."""

    def __init__(self, peer: tw.peers.Peer, *, bot: bool = False, record: Path | None = None) -> None:
        self.peer = peer
        self.world: Battlefield | None = None
        self.lockstep: tw.lockstep.Lockstep | None = None
        self.events: list[LockstepEvent] = []
        self._is_bot, self._record = bot, record
        self._bot: Bot | None = None
        self.crc = 0
        """The newest turn's CRC."""
        self.paused = False
        """Whether the game was paused in the newest turn."""
        self.ended: tw.peers.GameEnded | None = None
        """The reason why this player has left the game; None before."""

    def tick(self) -> None:
        """Receives, runs the turns that are due, and sends."""
        with self.peer.tick() as inbox:
            for event in inbox.events:
                if isinstance(event, tw.peers.Started):
                    self._start(event)
                elif isinstance(event, tw.peers.GameEnded):
                    self.ended = event
            if self.lockstep is not None and self.world is not None:
                self._play(self.lockstep, self.world)

    def _start(self, started: tw.peers.Started) -> None:
        world = self.world = Battlefield(started.players, started.seed)
        recording = None
        if self._record is not None:
            recording = tw.lockstep.RecordingFile(self._record, snapshot_every=SNAPSHOT_EVERY)
        self.lockstep = tw.lockstep.Lockstep(
            self.peer,
            started,
            COMMANDS,
            objects=FIELDS,
            drop_after=DROP_AFTER,
            recording=recording,
            saving=tw.lockstep.Saving(save=world.save, load=world.load),
        )
        me = self.peer.me
        if self._is_bot and me is not None:
            self._bot = Bot(me.number, started.seed + me.number)

    def _play(self, lockstep: tw.lockstep.Lockstep, world: Battlefield) -> None:
        for turn in lockstep.turns():
            world.step(turn)
            self.paused = turn.paused
            self.crc = lockstep.check(turn, world.objects()) or self.crc
            thinks = turn.number % THINKING == 0 and not turn.again and not lockstep.joining
            if self._bot is not None and thinks:
                for command in self._bot.think(world):
                    lockstep.command(command)
        self.events += lockstep.events()

    def status(self) -> list[str]:
        """Returns the state of the game, as lines of text."""
        if self.ended is not None:
            return [f"over: {self.ended.reason}"]
        if self.lockstep is None or self.world is None:
            return ["waiting for players"]
        if self.lockstep.joining:
            refused = [event for event in self.events if isinstance(event, JoinRefused)]
            return [f"not let in: {refused[-1].reason}" if refused else "loading the others' world"]
        steps, delay = self.lockstep.pace
        lines = [f"turn {self.lockstep.turn}", f"pace {steps} x 33 ms, {delay} turns"]
        if self.paused:
            lines.append("paused")
        names = {player.number: player.name for player in self.peer.players}
        if len(self.world.purses) > 1 and len(self.world.alive) == 1:
            lines.append(f"{names.get(self.world.alive[0], 'nobody')} has won")
        return lines

    def trouble(self) -> str | None:
        """Returns a sentence about lost connections, after the game has waited for a second."""
        waiting = None if self.lockstep is None else self.lockstep.waiting
        if waiting is None or waiting.seconds < 1:
            return None
        others = [player for player in self.peer.players if player != self.peer.me]
        lost = [player.name for player in others if player.number in waiting.players]
        who = "Connection" if len(lost) == len(others) else f"Connection to {', '.join(lost)}"
        return f"{who} lost, reconnecting: {max(0, DROP_AFTER - waiting.seconds):.0f} s left"

    def close(self) -> None:
        """Ends the recording and leaves the game."""
        if self.lockstep is not None:
            self.lockstep.close()
        self.peer.close()
