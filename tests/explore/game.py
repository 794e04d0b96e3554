"""A random game in virtual time: a server, players, and the features that are on."""

from __future__ import annotations

import gc
import logging
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any, ClassVar

import tickwire as tw
from soak.model import FLOWS, Flow, Violation

SERVER = "10.0.0.1:40000"
SETTLING = 5.0
"""Seconds without actions and on a perfect line, after which both sides must agree."""


@tw.message
class Spare:
    """A protocol needs a message, even if no feature has one."""


class Feature:
    """A feature of Tickwire that a game uses, with the oracle that judges it.

    All methods are optional. A method that finds a fault raises :class:`Violation` with a sentence that
    starts with the name of the oracle and a colon. Random numbers come from ``self.rng`` alone, so a feature
    does the same whichever others are on.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    """Features without which this one can't be on."""
    channels: ClassVar[tuple[Any, ...]] = ()
    messages: ClassVar[tuple[type, ...]] = ()
    ghosts: ClassVar[tuple[type, ...]] = ()
    calls: ClassVar[tuple[Any, ...]] = ()
    inputs: ClassVar[type | None] = None

    def __init__(self, game: Game, rng: Random) -> None:
        self.game, self.rng = game, rng

    def prepare(self) -> None:
        """Changes the game's settings, before there is a server."""

    def setup(self) -> None:
        """The server is there."""

    def joined(self, link: Link) -> None:
        """The server has a new connection."""

    def left(self, link: Link) -> None:
        """A connection ended, on the server. Drop everything that holds its handle."""

    def serve(self, inbox: Any) -> None:
        """A tick of the server, before anything in its inbox was handled."""

    def server_got(self, link: Link, what: Any) -> None:
        """The server received a message."""

    def act(self) -> None:
        """A tick of the server in which the feature may do something: never while the world rests."""

    def ticked(self) -> None:
        """A tick of the server, after all features acted."""

    def frame(self, player: Player, inbox: Any) -> None:
        """A frame of a player, before anything in its inbox was handled."""

    def client_got(self, player: Player, what: Any) -> None:
        """A player received a message."""

    def play(self, player: Player) -> None:
        """A frame of a connected player, after its inbox was handled."""

    def calm(self) -> None:
        """All actions end now: heal what is broken."""

    def check(self) -> None:
        """After the quiet end of a game: what must hold then."""


class Link:
    """A connection, as both sides see it: the flows on its channels, and what features note about it."""

    def __init__(self, player: Player) -> None:
        self.player = player
        self.handle: Any = None
        self.is_dialled = self.is_over = False
        self.flows: dict[tuple[str, str], Flow] = {}
        self.notes: dict[str, Any] = {}

    def flow(self, way: str, channel: str, kind: str = "reliable_ordered") -> Flow:
        where = f"{channel} {way}: {self.player}"
        return self.flows.setdefault((way, channel), FLOWS[kind](where))

    def note(self, name: str, first: Callable[[], Any]) -> Any:
        """Whatever a feature keeps about this connection."""
        if name not in self.notes:
            self.notes[name] = first()
        return self.notes[name]


class Actor:
    """An endpoint with a rhythm of its own."""

    style = "tick"

    def __init__(self, endpoint: Any, rate: float, at: float, rng: Random) -> None:
        self.endpoint, self.rate, self.start, self.rng = endpoint, rate, at, rng
        self.turns = 0
        self.next = at
        self.wakes: float | None = None

    def advance(self) -> None:
        """Chooses the time of the next turn, and perhaps of a wake-up before it."""
        self.turns += 1
        now, self.next = self.next, self.start + self.turns / self.rate
        if self.style in ("step", "pump", "woken"):
            self.wakes = now + self.rng.random() * (self.next - now)

    @property
    def due(self) -> float:
        return self.next if self.wakes is None else self.wakes

    @contextmanager
    def inbox(self) -> Iterator[Any]:
        if self.style == "tick":
            with self.endpoint.tick() as inbox:
                yield inbox
        else:
            if self.style == "woken":
                self.endpoint._step()
            yield self.endpoint.receive()
            if not self.endpoint.closed:
                self.endpoint.flush()


class Player(Actor):
    """A player: a client that draws frames, and may reconnect."""

    def __init__(self, game: Game, number: int) -> None:
        rng = Random(f"{game.seed}/player {number}")
        self.number, self.game = number, game
        self.host = f"10.1.{number // 250}.{number % 250 + 1}"
        frame_rate = game.frame_rate(rng)
        phase = rng.choice([0.0, 0.5 / frame_rate, rng.random() / frame_rate])
        settings: dict[str, Any] = {
            "network": game.network,
            "transfers": tw.transfer.Transfers(memory=2**22),
            "tuning": tw.Tuning(bind=f"{self.host}:0", timeout=game.timeout, columns=game.client_columns),
        }
        self.is_redialling = game.redials(rng)
        again = tw.connections.Reconnect(first_delay=0.2, max_delay=1.0, give_up_after=None)
        reconnect = again if self.is_redialling else None
        client = tw.Client.connect(SERVER, game.protocol, reconnect=reconnect, **settings)
        super().__init__(client, frame_rate, game.network.now + phase, rng)
        self.client = client
        self.style = game.styles(rng)
        self.link: Link | None = None
        self.since = 0.0
        self.notes: dict[str, Any] = {}
        for feature in game.features:
            for call in feature.calls:
                if call.__name__.startswith("client_"):
                    client.implement(call, partial(getattr(feature, call.__name__), self))
        game.players.append(self)
        game.hosts[self.host] = self

    def __str__(self) -> str:
        return f"player {self.number}"

    @property
    def drifts(self) -> bool:
        """Whether its frames are longer than ticks: some inputs are late until the lead has grown."""
        return 0.99 < self.rate / self.game.tick_rate < 1.0

    def settled(self, seconds: float = 3.0) -> bool:
        """Whether the connection is up for so long that all estimates have converged."""
        return self.link is not None and self.game.network.now - self.since >= seconds


class Game:
    """Plays the features that are on, and collects the faults that they find."""

    def __init__(self, seed: int | str, features: dict[str, type[Feature]], seconds: float) -> None:
        self.seed, self.seconds = seed, seconds
        rng = Random(f"{seed}/game")
        self.tick_rate = 60
        self.frame_rate: Callable[[Random], float] = lambda _: 60.0
        self.redials: Callable[[Random], bool] = lambda _: False
        self.styles: Callable[[Random], str] = lambda _: "tick"
        self.timeout = 3
        self.latency = rng.choice([0.0, 0.02, 0.05, 0.1])
        self.conditions = tw.Conditions(latency=self.latency)
        self.crowd = rng.randint(1, 3)
        self.is_perfect = True
        self.is_acting = True
        self.is_resting = False
        self.priority: Any = None
        self.admission: Any = None
        self.admitted = 0
        self.server_columns: list[type] = []
        self.client_columns: list[type] = []
        self.faults: dict[str, str] = {}
        self.players: list[Player] = []
        self.hosts: dict[str, Player] = {}
        self.links: dict[Any, Link] = {}
        self.all_links: list[Link] = []
        # Handles of players that left in this tick.
        self.gone: list[Any] = []
        self.leavers: list[tuple[str, weakref.ref[Any], int]] = []
        self.features = [kind(self, Random(f"{seed}/{name}")) for name, kind in features.items()]
        self.on = dict(zip(features, self.features, strict=True))

    def fault(self, text: str) -> None:
        self.faults.setdefault(text.partition(":")[0], f"{text} (at {self.network.now:.3f} s)")

    def judge(self, test: Callable[[], None]) -> None:
        """Runs a test that may find a fault."""
        try:
            test()
        except Violation as violation:
            self.fault(str(violation))

    def tell(self, method: str, *arguments: Any) -> None:
        """Calls a method of all features."""
        for feature in self.features:
            self.judge(partial(getattr(feature, method), *arguments))

    # --- the course of a game ------------------------------------------------------------------------------

    def play(self) -> dict[str, str]:
        """Plays the game. Returns the faults, by the name of their oracle."""
        errors = Errors()
        logging.getLogger("tickwire").addHandler(errors)
        self.network = tw.testing.SimulatedNetwork(seed=Random(f"{self.seed}").getrandbits(32))
        try:
            self.tell("prepare")
            self._open()
            self._run(self.seconds)
            self.is_acting, self.is_resting = False, False
            self.network.set_conditions(tw.Conditions(latency=self.latency))
            self.tell("calm")
            self._run(SETTLING)
            self._check()
            self._leave()
        except Exception as error:  # Whatever it is, it is a finding.
            self.fault(f"exception {type(error).__name__}: {traceback.format_exc()}")
        finally:
            logging.getLogger("tickwire").removeHandler(errors)
        for text in errors.texts:
            self.fault(f"logged error: {text}")
        return self.faults

    def _open(self) -> None:
        def every(name: str) -> list[Any]:
            return [item for feature in self.features for item in getattr(feature, name)]

        inputs = [feature.inputs for feature in self.features if feature.inputs]
        timing: Any = {"tick_rate": self.tick_rate} if inputs or "past" in self.on else {}
        timing |= {"inputs": inputs[0]} if inputs else {}
        channels = list({channel.name: channel for channel in every("channels")}.values())
        self.protocol: Any = tw.Protocol(
            id=1,
            messages=[Spare, *every("messages")],
            channels=channels or [tw.reliable_ordered("main")],
            ghosts=every("ghosts"),
            calls=every("calls"),
            **timing,
        )
        self.network.set_conditions(self.conditions)
        self.server: Any = tw.Server(
            SERVER,
            self.protocol,
            network=self.network,
            access=tw.tokens.Access(admission=self.admission),
            tuning=tw.Tuning(columns=self.server_columns, priority=self.priority),
            transfers=tw.transfer.Transfers(memory=2**22),
            max_clients=16,
        )
        self.world = self.server.world if every("ghosts") else None
        for feature in self.features:
            for call in feature.calls:
                if call.__name__.startswith("server_"):
                    self.server.implement(call, getattr(feature, call.__name__))
        rng = Random(f"{self.seed}/server")
        self.host = Actor(self.server, self.tick_rate, 0.0, rng)
        self.host.style = self.styles(rng).replace("woken", "tick")
        self.tell("setup")
        for _ in range(self.crowd):
            self.join()

    def join(self) -> None:
        Player(self, len(self.hosts) + 1)

    def _run(self, seconds: float) -> None:
        until = self.network.now + seconds
        while True:
            actor = min([self.host, *self.players], key=lambda actor: actor.due)
            if actor.due >= until:
                break
            self.network.advance(max(0.0, actor.due - self.network.now))
            wakes, actor.wakes = actor.wakes is not None, None
            if wakes and actor.style != "woken":
                getattr(actor.endpoint, "_step" if actor.style == "step" else actor.style)()
            elif isinstance(actor, Player):
                self._frame(actor, draws=not wakes)
            else:
                self._serve()
            if not wakes:
                actor.advance()

    def _serve(self) -> None:
        with self.host.inbox() as inbox:
            self.tell("serve", inbox)
            for handle, what in inbox:
                if isinstance(what, tw.Connected):
                    self._joined(handle)
                elif isinstance(what, tw.Disconnected):
                    self._left(handle)
                else:
                    self.tell("server_got", self.links[handle], what)
            if self.is_acting and not self.is_resting:
                self.tell("act")
            self.tell("ticked")
        self.gone.clear()

    def _frame(self, player: Player, draws: bool = True) -> None:
        with player.inbox() as inbox:
            self.tell("frame", player, inbox)
            for what in inbox:
                if isinstance(what, tw.Connected):
                    player.link, player.since = self._link(player), self.network.now
                    player.link.is_dialled = True
                elif isinstance(what, tw.Disconnected | tw.connections.Reconnecting):
                    self._lost(player, what)
                else:
                    self.tell("client_got", player, what)
            if player.link is not None and draws:
                self.tell("play", player)

    # --- connections ---------------------------------------------------------------------------------------

    def _link(self, player: Player, is_server: bool = False) -> Link:
        """A player's newest connection, whichever side saw it first."""
        for link in reversed(self.all_links):
            is_half = not (link.handle if is_server else link.is_dialled)
            if link.player is player and is_half and not link.is_over:
                return link
        self.all_links.append(Link(player))
        return self.all_links[-1]

    def _joined(self, handle: Any) -> None:
        # It may have left before the server had heard of it.
        player = self.hosts[handle.address.host]
        link = self._link(player, is_server=True)
        link.handle = handle
        handle.data = Marker()
        self.leavers.append((f"{player}", weakref.ref(handle.data), self.host.turns))
        self.links[handle] = link
        self.tell("joined", link)

    def _left(self, handle: Any) -> None:
        link = self.links.pop(handle, None)
        if link is not None:
            link.is_over = True
            self.tell("left", link)
            link.handle = True
            self.gone.append(handle)

    def _lost(self, player: Player, what: Any) -> None:
        if player.link is not None:
            player.link.is_over = True
        if not player.is_redialling:
            self.fault(f"disconnected: {player} by {what}")
        player.link = None

    def leave(self, player: Player) -> None:
        """A player goes for good."""
        if player.link is not None:
            player.link.is_over = True
        player.client.close()
        self.players.remove(player)

    def live(self) -> list[Link]:
        """The connections that are up on both sides, and always were."""
        return [
            link
            for link in self.links.values()
            if not link.is_over and link.player.link is link and link.player.client.connected
        ]

    # --- the end -------------------------------------------------------------------------------------------

    def _check(self) -> None:
        for player in self.players:
            if player.link is None or not player.client.connected:
                self.fault(f"not connected: {player} after {SETTLING} quiet seconds")
        for link in self.live():
            for flow in link.flows.values():
                self.judge(flow.settled)
        self.tell("check")

    def _leave(self) -> None:
        """All leave; nothing of a player stays."""
        for player in self.players[:]:
            self.leave(player)
        self._run(self.timeout + 1.0)
        if self.server.clients:
            self.fault(f"slots: {len(self.server.clients)} are taken after all have left")
        self.links.clear()
        for link in self.all_links:
            link.handle = None
        gc.collect()
        for name, marker, turn in self.leavers:
            if marker() is not None:
                self.fault(f"leak: client.data of {name}, who joined in tick {turn}, is still there")
        self.server.close()


class Marker:
    """Something that a game keeps for a player, in ``client.data``."""


class Errors(logging.Handler):
    """Collects errors that the library logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))
