"""Worlds that players send as chunks to players who join late or whose world differs."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from tickwire._core import Chunk, LockstepCore, Peer, Player, Random, Transfer
from tickwire.errors import TickwireError
from tickwire.lockstep._recording import saved

UNSENT, UNLOADABLE = 1, 5
REFUSALS = (
    "the game lets nobody in once it runs: its players gave no joining, or no save and load",
    "the world couldn't be sent: it needs a channel of tw.chunks(), and room in Transfers(memory=...)",
    "the world or the turns since took too long to load",
    "the world was asked for too often",
    "the world that came isn't that of the others: save and load leave something out, or a player lies",
    "the world that came couldn't be loaded",
)
"""The reasons for refusing a player, by number."""

LABEL = "tickwire.lockstep "
"""The prefix of the labels of chunks that contain worlds. The game doesn't see these chunks."""
_RANDOM = 32


class Worlds:
    """Sends and receives worlds."""

    def __init__(
        self,
        peer: Peer[Any],
        core: LockstepCore,
        random: Random,
        save: Callable[[], bytes] | None,
        load: Callable[[bytes], None] | None,
    ) -> None:
        self._peer, self._core, self._random = peer, core, random
        self._save, self._load = save, load
        self._transfers: dict[int, Transfer] = {}
        self._came: tuple[int, bytes] | None = None
        self._kept: tuple[int, bytes] | None = None

    def serve(self) -> None:
        """Sends the world after the newest turn to the players who need it."""
        now = self._peer.time
        # Whom the game hasn't heard of yet gets it later: a world given to nobody isn't given again.
        here = {player.number: player for player in self._peer.players}
        wanted = [player for player in self._core.states_wanted() if player in here]
        if wanted and self._save is not None:
            try:
                state = self._random.state + saved(self._save)
            except BaseException:
                # A newcomer doesn't stop the others' game.
                for player in wanted:
                    self._core.refuse(now, player, UNSENT)
                raise
            for player in wanted:
                head = self._core.state_head(now, player)
                if head is not None:
                    self._send(now, here[player], head + state)
        elif wanted:
            for player in wanted:
                self._core.refuse(now, player, UNSENT)
        for player, transfer in list(self._transfers.items()):
            if transfer.over:
                del self._transfers[player]
                if transfer.error is not None and self._core.is_served(player):
                    self._core.refuse(now, player, UNSENT)
            elif not self._core.is_served(player):
                transfer.cancel()

    def _send(self, now: float, to: Player, state: bytes) -> None:
        before = self._transfers.pop(to.number, None)
        if before is not None:
            before.cancel()
        try:
            sent = self._peer.send_chunk(to, Chunk(state), label=f"{LABEL}{to.number}")
            self._transfers[to.number] = sent
        except (TickwireError, ValueError):
            self._core.refuse(now, to.number, UNSENT)

    def take(self) -> tuple[int, Callable[[], tuple[bytes, bytes] | None]] | None:
        """Returns a requested world that has arrived: its turn, and a function that loads it. The function
        returns the generator's state and the world's bytes, or None if the world can't be loaded.
        """
        while (came := self._core.take_state(self._peer)) is not None:
            # A world that nobody asked for replaces none.
            if self._core.expects(*came) is not None:
                self._came = came
        if self._came is None:
            return None
        player, data = self._came
        expected = self._core.expects(player, data)
        if expected is None or self._load is None:
            self._came = None
            return None
        turn, begin = expected
        world, came = self._load, self._came
        self._came = None

        def load() -> tuple[bytes, bytes] | None:
            random, state = data[begin : begin + _RANDOM], data[begin + _RANDOM :]
            try:
                world(state)
                self._random.state = random
            except (ValueError, struct.error, LookupError):
                # What a player sent is no mistake of this game's.
                self._core.give_up(UNLOADABLE)
                return None
            except BaseException:
                self._core.give_up(UNLOADABLE)
                raise
            self._core.load(self._peer.time, player, data)
            return random, state

        self._kept = came
        return turn, load

    def keep(self) -> None:
        """Puts back a world from :meth:`take`."""
        self._came = self._kept
