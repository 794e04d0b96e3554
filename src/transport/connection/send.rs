//! The order of sending: messages first, then acks and keep-alives, and chunks in the rest.

use core::time::Duration;

use super::record::notification;
use super::{Connection, KEEP_ALIVE};
use crate::store::Packets;
use crate::time::Instant;
use crate::transport::framing::CloseReason;
#[cfg(doc)]
use crate::transport::framing::MAX_DETAIL_BYTES;
use crate::transport::ledger::numbers;
use crate::transport::stream::ResendTimer;
use crate::transport::stream::external::Fill;

/// If the application has not flushed for this long, queued messages are sent without it.
const MAX_TICK: Duration = Duration::from_millis(100);

/// Between ticks, connections needn't be visited more often, unless something arrives.
const GRAIN: Duration = Duration::from_millis(1);

impl Connection {
    /// Appends the packets due now to `out`: once a tick.
    ///
    /// Returns when a tick has something to do here again, unless something arrives or is sent earlier: until then
    /// this needn't be called.
    pub fn transmit(&mut self, now: Instant, out: &mut Packets) -> Instant {
        self.transmit_tick(now, out, None)
    }

    /// Like [`Connection::transmit`]; `fill` is offered the room of each packet on the channels of
    /// [`Connection::want`].
    pub fn transmit_filled(&mut self, now: Instant, out: &mut Packets, fill: &mut dyn Fill) -> Instant {
        self.transmit_tick(now, out, Some(fill))
    }

    fn transmit_tick(
        &mut self,
        now: Instant,
        out: &mut Packets,
        fill: Option<&mut (dyn Fill + '_)>,
    ) -> Instant {
        self.note_tick(now);
        if self.yojimbo.is_some() {
            self.transmit_yojimbo(now, out);
        } else {
            self.transmit_native(now, out, fill);
        }
        let notifications = &mut self.notifications;
        self.streams
            .end_of_tick(|channel, fate| notifications.push(notification(channel as u8, fate, false)));
        self.next_tick()
    }

    fn note_tick(&mut self, now: Instant) {
        let tick = now - core::mem::replace(&mut self.ticked_at, now);
        let polled = !self.pending_ack.is_awake() && tick <= MAX_TICK;
        self.half_tick = if polled { tick / 2 } else { Duration::ZERO };
    }

    pub(super) fn transmit_native(
        &mut self,
        now: Instant,
        out: &mut Packets,
        fill: Option<&mut (dyn Fill + '_)>,
    ) {
        self.begin_transmit(now);
        self.transmit_messages(now, true, out, fill);
        self.transmit_others(now, self.pending_ack.is_pending(now), out);
    }

    /// Appends the packets that needn't wait for the tick's [`Connection::transmit`], for drivers that are awake
    /// between ticks: chunks at their pace, keep-alives, acks that have waited long enough. Messages only if the
    /// application has sent nothing since the last tick, so that a tick's messages share packets, or if the tick
    /// takes very long. Nothing is dropped for lack of room.
    ///
    /// Returns when to call again unless something arrives or is sent earlier: in a millisecond at the earliest.
    pub fn transmit_between(&mut self, now: Instant, out: &mut Packets) -> Instant {
        if self.yojimbo.is_some() {
            return self.transmit_yojimbo_between(now, out).max(now + GRAIN);
        }
        self.begin_transmit(now);
        if self.tick_over() <= now {
            self.transmit_messages(now, false, out, None);
        }
        self.transmit_others(now, self.pending_ack.due_at() <= now, out);
        self.next_between(now)
    }

    /// When the tick that the application has begun counts as over.
    fn tick_over(&self) -> Instant {
        self.tick_open.map_or(Instant::ZERO, |since| since + MAX_TICK)
    }

    /// When [`Connection::transmit_between`] has something to do, if one of the calls that transmit was just made; ZERO if
    /// only the call itself finds out.
    pub fn next_between(&mut self, now: Instant) -> Instant {
        if self.yojimbo.is_some() {
            return Instant::ZERO;
        }
        let line = if self.adaptive { self.window.next() } else { Instant::ZERO };
        let channels = self.channels_deadline().max(self.tick_over()).max(self.budget.next()).max(line);
        let keep_alive = self.last_sent.map_or(now, |sent| sent + self.keep_alive());
        let chunks = self.chunks.next_deadline(self.endpoint.acks().probe_interval());
        let packets = channels.min(keep_alive).min(self.pending_ack.due_at()).min(chunks);
        let allowed = if self.controller_allows(now) { now } else { self.next_send() };
        let allowed = allowed.max(self.next_number_at());
        packets.max(allowed).min(self.slices_deadline()).max(now + GRAIN)
    }

    pub(super) fn begin_transmit(&mut self, now: Instant) {
        self.apply_losses(now);
        self.endpoint.update(now);
        self.budget.refill(now);
        self.window.update(now);
    }

    pub(super) fn transmit_messages(
        &mut self,
        now: Instant,
        tick: bool,
        out: &mut Packets,
        mut fill: Option<&mut (dyn Fill + '_)>,
    ) {
        self.tick_open = None;
        while self.budget.allows()
            && self.can_send_packet(now)
            && self.compose(now, tick, fill.as_deref_mut())
        {
            self.send_whole_packet(now, out);
        }
    }

    /// Whether the line has room for messages, as far as is known: asked when some are due.
    pub(super) fn line_has_room(&mut self) -> bool {
        !self.adaptive || self.window.allows()
    }

    /// Acks, keep-alives and chunks. They take turns if so few packets are allowed that acks and keep-alives would
    /// take them all.
    pub(super) fn transmit_others(&mut self, now: Instant, acks: bool, out: &mut Packets) {
        let chunks_first = core::mem::take(&mut self.chunks_wait);
        if chunks_first {
            self.transmit_chunks(now, out);
        }
        if acks {
            self.transmit_ack(now, out);
        }
        self.transmit_keep_alive(now, out);
        if !chunks_first {
            self.transmit_chunks(now, out);
        }
    }

    /// A packet that only acks, if it is no larger than what it acks.
    pub(super) fn transmit_ack(&mut self, now: Instant, out: &mut Packets) {
        if !self.can_send_packet(now) {
            return;
        }
        self.begin_packet(now);
        let bytes = self.packet_bytes();
        if self.pending_ack.try_spend(bytes) {
            self.send_whole_packet(now, out);
        }
    }

    /// How often a packet goes out at least: where a feature's packets come regularly, they are that.
    fn keep_alive(&self) -> Duration {
        KEEP_ALIVE.max(self.pending_ack.patience())
    }

    pub(super) fn transmit_keep_alive(&mut self, now: Instant, out: &mut Packets) {
        let kept_alive = self.last_sent.is_some_and(|sent| now - sent < self.keep_alive());
        if !kept_alive && self.can_send_packet(now) {
            self.begin_packet(now);
            let bytes = self.packet_bytes();
            if !self.pending_ack.covers(bytes) && !self.scratch.get().control.ranges.is_empty() {
                self.drop_ranges();
            }
            let bytes = self.packet_bytes();
            self.pending_ack.spend(bytes);
            self.send_whole_packet(now, out);
        }
    }

    /// Whether the controller allows any packet.
    pub(super) fn controller_allows(&mut self, now: Instant) -> bool {
        self.controller.as_mut().is_none_or(|controller| controller.can_send_packet(now))
    }

    /// When the controller may allow the next packet of bulk.
    pub(super) fn next_send(&self) -> Instant {
        self.controller.as_ref().map_or(Instant::ZERO, |controller| controller.next_send())
    }

    pub(super) fn can_send_packet(&mut self, now: Instant) -> bool {
        self.controller_allows(now) && self.next_number_at() <= now
    }

    /// The last packet of a conversation that this side ends: to be repeated, byte for byte. `detail`, of 1 to
    /// [`MAX_DETAIL_BYTES`] bytes without NUL, is for the peer's application.
    pub fn farewell(&mut self, now: Instant, reason: CloseReason, detail: Option<&str>) -> Option<Vec<u8>> {
        if self.yojimbo.is_some() {
            // It has no close packet: netcode's own disconnect is enough.
            return None;
        }
        self.begin_packet(now);
        self.scratch.get().control.close = Some(reason);
        self.scratch.get().control.detail = detail.map(Into::into);
        let mut packets = Packets::new();
        self.send_packet(now, &mut packets);
        packets.iter().next().map(|(_, packet)| packet.to_vec())
    }

    /// When [`Connection::transmit`] has something to do, unless something arrives or is sent earlier; ZERO for at once.
    pub fn next_tick(&mut self) -> Instant {
        let owed = self.pending_ack.next_tick();
        // Yojimbo's framing has a packet in each tick.
        let busy = self.yojimbo.is_some() || owed == Instant::ZERO || !self.chunks.is_idle();
        if busy || self.streams.are_busy() {
            return Instant::ZERO;
        }
        let keep_alive = self.last_sent.map_or(Instant::ZERO, |sent| sent + self.keep_alive());
        keep_alive.min(self.endpoint.acks().next_loss()).min(owed)
    }

    /// When the next packet may have a number: at once unless nothing was acked for very long.
    pub(super) fn next_number_at(&self) -> Instant {
        numbers::next_at(self.endpoint.acks().numbers_left(), self.last_packet_at)
    }

    /// When [`Connection::transmit`] next has something to do if nothing arrives and nothing is sent before: for
    /// drivers that can wake then. Ticks may come at any time.
    pub fn next_deadline(&self) -> Instant {
        let owed = self.pending_ack.next_tick();
        let keep_alive = self.last_sent.map_or(Instant::ZERO, |sent| sent + self.keep_alive());
        let chunks = self.chunks.next_deadline(self.endpoint.acks().probe_interval());
        self.channels_deadline().min(keep_alive).min(chunks).min(self.slices_deadline()).min(owed)
    }

    pub(super) fn channels_deadline(&self) -> Instant {
        self.streams.next_deadline(self.resend_timer())
    }

    pub(super) fn resend_timer(&self) -> ResendTimer {
        let not_before = if self.window.has_queue() { self.acked_at } else { Instant::ZERO };
        // What is due before the middle of two ticks goes with the first: an ack takes whole ticks, and a margin of
        // milliseconds would cost one more.
        let timeout = self.endpoint.acks().resend_timeout().saturating_sub(self.half_tick);
        ResendTimer { timeout, not_before }
    }
}
