"""Plays a scenario: the loop, sending, receiving."""

from __future__ import annotations

import array
import struct
from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Any

import tickwire as tw

from soak import messages
from soak.ghosts import Walker, Walkers
from soak.line import Line, Side, notified
from soak.model import Violation
from soak.scenario import ChannelPlan, Scenario

SERVER = tw.Address("10.0.0.1:40000")


class HookError(Exception):
    """Raised by a hook on purpose."""


class Play:
    """The endpoints of a scenario, and the lines between them."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.rng = scenario.rng("play")
        self.content = scenario.rng("content")
        self.protocol = tw.Protocol(
            0x736F616B,
            messages.CLASSES,
            [plan.channel for plan in scenario.channels],
            ghosts=[Walker] if scenario.ghosts else [],
        )
        seed = scenario.rng("network").getrandbits(64)
        self.network = tw.testing.SimulatedNetwork(seed=seed, conditions=scenario.conditions)
        self.network.set_conditions(scenario.down, sender=SERVER)
        for player, kind in enumerate(scenario.nats):
            if kind is not None:
                box, inside = f"203.0.113.{player + 1}", f"10.1.{player}.2"
                self.network.add_nat(box, [inside], kind=kind, lifetime=scenario.nat_lifetime)
        self.raises = False
        self.sent = self.received = self.full = self.chunks = self.wraps = 0
        self.attempts = 0
        self.number = 0
        self.lines: list[Line] = []
        # Of the server there is now: by client id and by slot.
        self.by_id: dict[int, Line] = {}
        self.by_slot: dict[int, Line] = {}
        self.by_number: dict[int, Line] = {}
        self.places = [tw.Address(f"10.1.{player}.2:5000") for player in range(scenario.players)]
        self.dials_at = [0.0] * scenario.players
        self.current: list[Line | None] = [None] * scenario.players
        # Which games don't tick, and which only keep their connections alive: until when. None is the server.
        self.stalled: dict[int | None, float] = {}
        self.pumping: dict[int | None, float] = {}
        self.moments: list[tuple[int, ChannelPlan]] = list(enumerate(scenario.channels))
        self.walkers: Walkers | None = None
        self.server = self.open_server()

    # --- endpoints ---------------------------------------------------------------------------------------

    def settings(self, **tuned: Any) -> dict[str, Any]:
        """The settings of both kinds of endpoint."""
        scenario = self.scenario
        limit = scenario.max_bulk_rate
        congestion = tw.transfer.Congestion(max_bytes_per_second=limit) if limit else None
        return {
            "network": self.network,
            "transfers": tw.transfer.Transfers(memory=scenario.chunk_memory, congestion=congestion),
            "tuning": tw.Tuning(
                mtu=scenario.mtu,
                priority=self.prioritize if scenario.priority else None,
                factory=tw.messages.MessageFactory() if scenario.factory else None,
                columns=[messages.Row] if scenario.columns else None,
                **tuned,
            ),
            "debugging": tw.testing.Debugging(slow_hook=1e6),
        }

    def open_server(self) -> tw.Server:
        admission = self.refuse if self.scenario.admission else None
        server = tw.Server(
            SERVER,
            self.protocol,
            max_clients=self.scenario.max_clients,
            access=tw.tokens.Access(admission=admission),
            **self.settings(stalled_timeout=None),  # games hang for longer, and come back
        )
        if self.scenario.budget:
            server.set_budget(*self.scenario.budget)
        if self.scenario.ghosts:
            born = self.walkers.born if self.walkers is not None else 0
            self.walkers = Walkers(server, self.scenario.rng(f"ghosts {born}"), born)
        return server

    def dial(self, player: int) -> None:
        """A player connects, or comes back."""
        self.attempts += 1
        client = tw.Client.connect(
            SERVER,
            self.protocol,
            client_id=self.attempts,
            **self.settings(timeout=self.scenario.timeout, bind=self.places[player]),
        )
        if self.scenario.budget:
            client.set_budget(*self.scenario.budget)
        line = Line(self.scenario, player, self.attempts, client, self.network.now)
        self.lines.append(line)
        self.by_id[line.number] = line
        self.current[player] = line

    def leave(self, line: Line, after: float) -> None:
        """A player's game closes its client, and dials again later."""
        if line.client_over is None:
            line.client_over = tw.DisconnectReason.CLOSED
            line.client.close()
        self.dials_at[line.player] = self.network.now + after

    def prioritize(self, candidates: tw.columns.Candidates) -> Any:
        if self.raises and self.rng.random() < 0.1:
            raise HookError
        if len(candidates.age) != len(candidates):
            raise Violation("a column of candidates is not as long as they are")
        return array.array("f", [self.rng.random() for _ in range(len(candidates))])

    def refuse(self, newcomers: list[tw.ClientHandle]) -> Any:
        if self.raises and self.rng.random() < 0.1:
            raise HookError
        return [handle for handle in newcomers if self.rng.random() < 0.3]

    # --- the loop ----------------------------------------------------------------------------------------

    def tick(self, tick: int, sends: bool) -> None:
        """One tick of all endpoints that are awake."""
        now = self.network.now
        if self.stalled.get(None, 0) <= now:
            self.tick_server(sends and self.pumping.get(None, 0) <= now, self.pumping.get(None, 0) > now)
        for player, line in enumerate(self.current):
            if line is None or line.client_over is not None:
                if now >= self.dials_at[player] and (line is None or line.client.closed):
                    self.dial(player)
                elif line is not None and not line.client.closed:
                    # Its game noticed the end, and makes another one some time later.
                    line.client.close()
                    if sends:
                        self.dials_at[player] = now + self.rng.uniform(0, 2 * self.scenario.timeout)
                continue
            if tick % self.scenario.paces[player] == 0 and self.stalled.get(player, 0) <= now:
                pumps = self.pumping.get(player, 0) > now
                self.tick_client(line, sends and not pumps, pumps)
        self.network.advance(1 / self.scenario.rate)

    def tick_server(self, sends: bool, pumps: bool) -> None:
        if pumps:
            return self.pump(self.server)
        try:
            inbox = self.server.receive()
        except HookError:
            return None
        self.take_server(inbox)
        if sends:
            lines = [line for line in self.by_slot.values() if line.may_send_down]
            if self.walkers is not None:
                self.walkers.live([line.handle for line in lines if line.handle is not None])
            for channel, plan in self.moments:
                if lines and self.rng.random() < plan.chance:
                    self.send_down(lines, channel, plan)
        return self.flush(self.server)

    def tick_client(self, line: Line, sends: bool, pumps: bool) -> None:
        if pumps:
            return self.pump(line.client)
        inbox = line.client.receive()
        self.take_client(line, inbox)
        if sends and line.client_over is None and line.client.connected:
            for channel, plan in self.moments:
                if self.rng.random() < plan.chance:
                    self.send_up(line, channel, plan)
        return self.flush(line.client)

    @staticmethod
    def flush(endpoint: tw.Server | tw.Client) -> None:
        with suppress(HookError):
            endpoint.flush()

    @staticmethod
    def pump(endpoint: tw.Server | tw.Client) -> None:
        with suppress(HookError):
            endpoint.pump()

    # --- sending -----------------------------------------------------------------------------------------

    def next_number(self, plan: ChannelPlan) -> tuple[int, int, int, bool]:
        """The next message's number, size, key, and whether it gets a notification."""
        self.number += 1
        number = self.number
        return number, plan.sizes[number % len(plan.sizes)], number % plan.keys, self.rng.random() < 0.2

    def send_up(self, line: Line, channel: int, plan: ChannelPlan) -> None:
        if plan.kind == "chunks":
            return self.send_chunk(line, line.up)
        if self.scenario.columns and plan.kind not in ("payload", "latest") and self.rng.random() < 0.3:
            return self.send_rows(line, channel, plan)
        for _ in range(self.rng.randint(1, plan.burst)):
            number, size, key, notify = self.next_number(plan)
            if plan.kind == "payload":
                notify = True
                sent = line.client.send_payload(messages.payload(number, size), channel, tag=number)
            else:
                message = messages.make(channel, number, size, self.scenario.columns)
                sent = line.client.send(message, channel, key=key, tag=number, notify=notify)
            if not sent:  # full, or over, which the next tick says
                self.full += sent is tw.SendResult.FULL
                return None
            self.sent += 1
            line.up.flows[channel].send(number, key, notify)
        return None

    def send_rows(self, line: Line, channel: int, plan: ChannelPlan) -> None:
        """Several messages as rows, in one call."""
        first, count = self.number + 1, self.rng.randint(1, plan.burst)
        self.number += count
        layout = struct.Struct(tw.columns.row_format(messages.Row))
        rows = b"".join(layout.pack(channel, first + n, messages.check(first + n)) for n in range(count))
        tags = array.array("I", range(first, first + count))
        notify = self.rng.random() < 0.2
        full = set(line.client.send(tw.columns.Batch(messages.Row, rows), channel, tag=tags, notify=notify))
        self.full += len(full)
        self.sent += count - len(full)
        for n in range(count):
            if n not in full:
                line.up.flows[channel].send(first + n, 0, notify)

    def send_down(self, lines: list[Line], channel: int, plan: ChannelPlan) -> None:
        line = self.rng.choice(lines)
        if plan.kind == "chunks":
            return self.send_chunk(line, line.down)
        broadcasts = plan.kind != "payload" and self.rng.random() < 0.3
        for _ in range(self.rng.randint(1, plan.burst)):
            number, size, key, notify = self.next_number(plan)
            assert line.handle is not None
            to, full = lines if broadcasts else [line], set[tw.ClientHandle]()
            sent = tw.SendResult.SENT
            if plan.kind == "payload":
                notify = True
                payload = messages.payload(number, size)
                sent = self.server.send_payload(line.handle, payload, channel, tag=number)
            else:
                message = messages.make(channel, number, size, self.scenario.columns)
                options: dict[str, Any] = {"key": key, "tag": number, "notify": notify}
                if broadcasts:
                    present = self.server.clients
                    to = [each for each in lines if each.handle in present]
                    full = set(self.server.broadcast(message, channel, **options))
                else:
                    sent = self.server.send(line.handle, message, channel, **options)
            if not sent:
                self.full += sent is tw.SendResult.FULL
                return None
            for each in to:
                if each.handle in full:
                    self.full += 1
                else:
                    self.sent += 1
                    each.down.flows[channel].send(number, key, notify)
        return None

    def send_chunk(self, line: Line, side: Side) -> None:
        size = self.content.choice([0, 1, 1000, 20_000, self.content.randint(0, 200_000)])
        content = self.content.randbytes(size)
        self.number += 1
        options: dict[str, Any] = {"label": str(self.number), "burst": self.rng.random() < 0.1}
        if side is line.up:
            transfer = line.client.send_chunk(content, **options)
        else:
            assert line.handle is not None
            transfer = self.server.send_chunk(line.handle, content, **options)
        if transfer.over:
            self.full += 1
            return
        self.chunks += 1
        side.transfers.append((transfer, content))
        side.begun.append(transfer)

    # --- receiving ---------------------------------------------------------------------------------------

    def take_server(self, inbox: tw.Inbox[Any]) -> None:
        # This inbox's entries for a slot are about its former client.
        notifications = inbox.notifications
        for slot, channel, tag, delivered in zip(
            notifications.slot, notifications.channel, notifications.tag, notifications.delivered, strict=True
        ):
            if slot not in self.by_slot:
                raise Violation(f"the server has a notification for slot {slot}, in which nobody is")
            self.by_slot[slot].down.flows[channel].notified(tag, bool(delivered))
        events = inbox.events
        for event in events:
            if isinstance(event, tw.Connected):
                self.joined(event)
        for handle, message in inbox.messages:
            self.received += 1
            self.by_id[handle.id].up.message(message)
        for handle, key, message in inbox.latest:
            self.received += 1
            self.by_id[handle.id].up.message(message, key)
        for handle, channel, data in inbox.payloads:
            self.received += 1
            self.by_id[handle.id].up.payload(channel, data)
        if self.scenario.columns:
            for number, channel, key, row in rows_of(inbox):
                self.received += 1
                self.take_row(self.by_number[number].up, channel, key, row)
        for handle, channel, count in inbox.missed:
            self.by_id[handle.id].up.flows[channel].missed(count)
        for chunk in inbox.chunks:
            assert chunk.client is not None
            self.by_id[chunk.client.id].up.chunk(chunk)
        for event in events:
            if isinstance(event, tw.Disconnected):
                self.left(event)

    def joined(self, event: tw.Connected) -> None:
        handle = event.client
        line = self.by_id.get(handle.id) if handle is not None else None
        if handle is None or line is None:
            raise Violation("the server has a client that never dialled")
        if line.handle is not None or not 0 <= handle.slot < self.scenario.max_clients:
            raise Violation(
                f"client {line.number} connected twice, or out of its bounds, in slot {handle.slot}"
            )
        line.handle = handle
        line.server_connected = self.network.now
        self.by_slot[handle.slot] = self.by_number[handle.number] = line

    def left(self, event: tw.Disconnected) -> None:
        assert event.client is not None
        line = self.by_id[event.client.id]
        if line.server_over is not None:
            raise Violation(f"client {line.number} left the server twice")
        line.server_over = event.reason
        line.down.ended(sender=True)
        line.up.ended(sender=False)
        if self.by_slot.get(event.client.slot) is line:
            del self.by_slot[event.client.slot]

    def take_client(self, line: Line, inbox: tw.Inbox[Any]) -> None:
        notifications, side = inbox.notifications, line.down
        notified(
            line.up.flows,
            zip(notifications.channel, notifications.tag, map(bool, notifications.delivered), strict=True),
        )
        for message in inbox.messages:
            self.received += 1
            side.message(message)
        for key, message in inbox.latest:
            self.received += 1
            side.message(message, key)
        for channel, data in inbox.payloads:
            self.received += 1
            side.payload(channel, data)
        if self.scenario.columns:
            for _, channel, key, row in rows_of(inbox):
                self.received += 1
                self.take_row(side, channel, key, row)
        for channel, count in inbox.missed:
            side.flows[channel].missed(count)
        for chunk in inbox.chunks:
            side.chunk(chunk)
        if self.walkers is not None:
            line.picture.take(inbox.ghosts, self.walkers)
        for event in inbox.events:
            if isinstance(event, tw.Connected):
                if line.client_connected is not None:
                    raise Violation(f"client {line.number} connected twice")
                line.client_connected = self.network.now
            else:
                line.client_over = event.reason
                line.up.ended(sender=True)
                line.down.ended(sender=False)

    @staticmethod
    def take_row(side: Side, channel: int, key: int, row: tuple[int, int, int]) -> None:
        place, number, check = row
        if place != channel or check != messages.check(number):
            raise Violation(f"{side.name}: a row came that was never sent: {row}")
        side.number(channel, number, key if side.plans[channel].kind == "latest" else None)


def rows_of(inbox: tw.Inbox[Any]) -> Iterable[tuple[int, int, int, tuple[int, int, int]]]:
    """For each row the client's number, channel, key, and the fields of its class."""
    rows = inbox.columns(messages.Row)
    each = rows.tolist() if hasattr(rows, "dtype") else struct.iter_unpack(rows.format, rows)
    for number, _, _, key, _, _, channel, *row in each:
        yield number, channel, key, tuple(row)


def pick(rng: Random, lines: list[Line]) -> Line | None:
    """Any of them."""
    return rng.choice(lines) if lines else None
