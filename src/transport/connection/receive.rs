//! Taking a datagram of the peer: opened, read whole, judged, and only then applied.

use super::record::notification;
use super::scratch::Memory;
use super::{Connection, End, Violation, fragments, held};
use crate::store::sequence::distance;
use crate::time::Instant;
use crate::transport::congestion::RoundTrip;
use crate::transport::direct_tables::{Destination, DirectTables};
use crate::transport::framing::Refusal;
use crate::transport::framing::native::{self, Packet, ReadContext};
use crate::transport::ledger::acks::RttSampling;
use crate::transport::packet::fragment::Fragment;
use crate::transport::packet::header::{self, Header};
use crate::transport::stream::WindowViolation;

/// How much of a packet's memory is kept for the next one: enough for games, so that a peer can't make each
/// connection hold the maximum.
const KEPT_MESSAGES: usize = 64;
const KEPT_ROW_BYTES: usize = 4096;

impl Connection {
    /// Takes a datagram of the peer. Its messages wait for [`Connection::poll_received`].
    ///
    /// # Errors
    /// The conversation is over, and why.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> Result<(), End> {
        self.handle(now, datagram, None).map(drop)
    }

    /// Takes a datagram of the peer. Messages that needn't wait are read into the lent tables, unless the packet is
    /// refused.
    ///
    /// # Errors
    ///
    /// The conversation is over, and why.
    pub fn handle_into(
        &mut self,
        now: Instant,
        datagram: &[u8],
        tables: &mut dyn DirectTables,
    ) -> Result<(), End> {
        self.streams.begin_direct(tables.tick());
        tables.begin(now);
        match self.handle(now, datagram, Some(&mut *tables)) {
            Ok(true) => Ok(()),
            Ok(false) => {
                tables.cut();
                Ok(())
            }
            Err(end) => {
                tables.cut();
                Err(end)
            }
        }
    }

    /// False when the datagram was dropped.
    fn handle(
        &mut self,
        now: Instant,
        datagram: &[u8],
        mut tables: Option<&mut dyn DirectTables>,
    ) -> Result<bool, End> {
        self.pending_ack.grant(datagram.len() + self.datagram_overhead);
        let is_fragment = Fragment::is_fragment(datagram);
        if is_fragment {
            self.endpoint.reassembly.limit(self.streams.held.packets_limit());
        }
        let opened = self.endpoint.open(datagram);
        // Packets that arrive whole end partial ones.
        if is_fragment || self.streams.held.has_packets() {
            self.streams.held.set_packets(self.endpoint.reassembly.reserved_bytes());
        }
        // A datagram that is no packet is dropped, and counted by the endpoint.
        let Ok(Some(mut incoming)) = opened else { return Ok(false) };
        if self.yojimbo.is_some() {
            return self.handle_yojimbo(now, incoming).map(|()| true);
        }
        let header = incoming.header();
        let arrival = self.arrival(header.sequence);
        let context = ReadContext {
            now,
            sequence: header.sequence,
            ack: header.ack,
            hello_received: self.hello_received,
        };
        let Memory { packet, bodies, .. } = self.scratch.get();
        let room = |channel| self.streams.direct_room(channel, arrival);
        let destination = tables.as_deref_mut().map(|tables| Destination {
            tables,
            room: &room,
            bytes: self.streams.direct_bytes(),
        });
        let read = native::read(incoming.payload(), &self.protocol, context, packet, bodies, destination);
        let starved = match &read {
            Ok(()) => !held::has_memory(&self.streams, packet, None),
            Err(refusal) => *refusal == Refusal::Memory,
        };
        if starved {
            self.endpoint.drop_without_memory(incoming);
            return Ok(false);
        }
        if let Err(refusal) = read {
            self.endpoint.refuse(incoming);
            return Err(match refusal {
                Refusal::Mismatch => End::Mismatch,
                refusal => End::Violation(Violation::Packet(refusal)),
            });
        }
        if !self.chunks.affords(now, &packet.chunk_items) {
            self.endpoint.drop_packet(incoming);
            return Ok(false);
        }
        if let Some(reason) = packet.control.close {
            self.endpoint.refuse(incoming);
            self.detail = packet.control.detail.take();
            return Err(End::ByPeer(reason));
        }
        let Memory { packet, bodies, .. } = self.scratch.get();
        if !packet.fragments.is_empty() {
            match fragments::assemble(&mut self.streams, &self.protocol, &context, arrival, packet, bodies) {
                Ok(true) => {}
                Ok(false) => {
                    self.endpoint.drop_without_memory(incoming);
                    return Ok(false);
                }
                Err(end) => {
                    self.endpoint.refuse(incoming);
                    return Err(end);
                }
            }
        }
        self.sent_laps.advance(self.endpoint.acks().counters().sent, self.newest_arrival);
        if self.sent_laps.is_old(arrival) {
            // The window has passed the packets it acks, and their numbers may mean newer packets now.
            incoming.ignore_acks();
            self.scratch.get().packet.control.ranges.clear();
        } else if arrival >= self.newest_arrival && self.acks_ahead(&header) {
            self.endpoint.refuse(incoming);
            return Err(End::Violation(Violation::Ack));
        }
        if let Err(violation) = self.check_windows(arrival) {
            self.endpoint.refuse(incoming);
            return Err(violation.into());
        }
        let Memory { packet, acked, .. } = self.scratch.get();
        let delay = packet.control.ack_delay;
        let sampling = delay.map_or(RttSampling::None, |delay| RttSampling::NewestAck { delay });
        acked.clear();
        self.endpoint.accept(now, incoming, sampling, acked);
        if header::is_after_skip(datagram) {
            self.endpoint.record_skipped(header.sequence.wrapping_sub(1));
        }
        self.endpoint.remember_received(self.ranges.len());
        self.ranges.record(header.sequence, self.endpoint.acks().received_window());
        if self.endpoint.acks().newest_received() == Some(header.sequence) {
            self.newest_at = Some(now);
        }
        // From the newest packet, unless it was acked before.
        let newest = acked.iter().find(|acked| acked.sequence == header.ack);
        let received_at = packet.control.received_at;
        let round_trip = newest.zip(delay).map(|(newest, delay)| RoundTrip {
            time: (now - newest.sent_at).saturating_sub(delay),
            received_at,
        });
        self.apply_acks(now, round_trip);
        if self.endpoint.acks().acked_skipped() && !self.replayed {
            return Err(End::Violation(Violation::Ack));
        }
        self.apply_packet(now, arrival, header.ack, tables)?;
        Ok(true)
    }

    /// Checks that the windows allow everything in the packet, before anything of it is applied.
    fn check_windows(&mut self, arrival: u64) -> Result<(), WindowViolation> {
        let Packet { control, messages, placed, fragments, .. } = &self.scratch.get().packet;
        for (channel, unread) in control.credits.iter().filter(|_| !self.replayed) {
            self.streams.check_credit((*channel).into(), *unread, arrival)?;
        }
        if !fragments.is_empty() {
            placed.iter().try_for_each(|placed| self.streams.check_placed(placed))?;
        }
        // Messages of a channel are adjacent.
        let (mut channel, mut claimed) = (None, 0);
        for message in messages {
            if channel.replace(message.channel) != Some(message.channel) {
                let placed = placed.iter().find(|placed| placed.channel == message.channel);
                claimed = placed.map_or(0, |placed| placed.window_bytes as isize);
            }
            let place = (message.prefix, arrival);
            self.streams.check(message.channel.into(), place, message.received.window_bytes, &mut claimed)?;
        }
        Ok(())
    }

    /// The number of a packet of the peer, without wrapping.
    pub(super) fn arrival(&self, sequence: u16) -> u64 {
        let ahead = distance(sequence, self.newest_arrival as u16);
        // Nothing is late before the first packet.
        self.newest_arrival.saturating_add_signed(ahead.into())
    }

    /// Whether the newest packet of the peer acks a packet that was never sent. For an older one that can't be known:
    /// its acks may be more than half of all numbers old.
    pub(super) fn acks_ahead(&self, header: &Header) -> bool {
        let newest = self.endpoint.next_sequence().wrapping_sub(1);
        distance(header.ack, newest) > 0 && !self.replayed
    }

    pub(super) fn apply_packet(
        &mut self,
        now: Instant,
        arrival: u64,
        ack: u16,
        mut tables: Option<&mut dyn DirectTables>,
    ) -> Result<(), End> {
        self.newest_arrival = self.newest_arrival.max(arrival);
        let Memory { packet, bodies, .. } = self.scratch.get();
        let Packet {
            control,
            messages,
            placed,
            placed_memory,
            fragments,
            fragment_bytes,
            chunk_items,
            slices,
            ..
        } = packet;
        self.hello_received |= control.hello.is_some();
        let messages_said = !messages.is_empty() || !placed.is_empty() || !fragments.is_empty();
        let said = control.hello.is_some() || !control.credits.is_empty() || messages_said;
        if said || !chunk_items.is_empty() {
            let is_quiet = control.hello.is_none() && control.credits.is_empty() && chunk_items.is_empty();
            let is_reliable = |channel: u8| self.streams.is_reliable(channel.into());
            let is_patient = |channel: u8| self.pending_ack.is_patient(channel);
            let mut can_wait = is_quiet && fragments.is_empty();
            can_wait &= placed.iter().all(|it| is_reliable(it.channel) && is_patient(it.channel));
            can_wait &= messages.iter().all(|it| is_patient(it.channel));
            let resends = messages.iter().any(|it| is_reliable(it.channel))
                || placed.iter().any(|it| is_reliable(it.channel));
            self.pending_ack.count(now, !can_wait);
            if resends || !(fragments.is_empty() && chunk_items.is_empty() && control.credits.is_empty()) {
                self.pending_ack.hurry(!chunk_items.is_empty());
            }
        }
        for (channel, unread) in control.credits.drain(..) {
            let notifications = &mut self.notifications;
            let mut told = |fate| notifications.push(notification(channel, fate, true));
            let Some(sending) = self.streams.sending(channel.into()) else { continue };
            let credited = sending.handle_credit(now, unread, arrival, &mut told);
            if !self.replayed {
                credited?;
            }
        }
        self.streams.take_direct_bytes(core::mem::take(placed_memory));
        for placed in placed.drain(..) {
            self.streams.note_placed(arrival, &placed);
        }
        for message in messages.drain(..) {
            let handled = self.streams.receive(message.channel.into(), |receiving| {
                let handled = receiving.handle(message.prefix, arrival, message.received);
                handled.map(|dropped| (dropped, receiving.pushes_out()))
            });
            let Some(handled) = handled else { continue };
            let (dropped, pushes_out) = handled?;
            dropped.into_iter().for_each(|dropped| bodies.spares.reclaim(dropped.body));
            if let Some(tables) = tables.as_deref_mut().filter(|_| pushes_out) {
                tables.push_out(message.channel);
            }
        }
        if !chunk_items.is_empty() {
            let known = (self.endpoint.acks().sent_at(ack).unwrap_or(now), ack);
            chunk_items.drain(..).for_each(|item| self.chunks.handle(now, item, slices, known, arrival));
            self.chunks.update(now);
        }
        messages.shrink_to(KEPT_MESSAGES);
        fragments.clear();
        fragments.shrink_to(KEPT_MESSAGES);
        fragment_bytes.clear();
        fragment_bytes.shrink_to(KEPT_ROW_BYTES);
        bodies.scratch.clear();
        bodies.scratch.shrink_to(KEPT_ROW_BYTES);
        Ok(())
    }

    /// Whether a message waits for [`Connection::poll_received`].
    pub fn has_received(&self) -> bool {
        self.streams.have_received()
    }

    /// Whether something waits for [`Connection::poll_notification`].
    pub fn has_notification(&self) -> bool {
        self.notifications.has_ready()
    }

    /// Whether something waits for [`Connection::poll_packet_notification`].
    pub fn has_packet_fate(&self) -> bool {
        self.notifications.has_packet()
    }

    /// Drops everything that waits for the application, which will never read it, and makes room. Chunk events are
    /// dropped too.
    pub fn discard_received(&mut self) {
        for channel in 0..self.streams.len() {
            while let Some(received) = self.streams.poll_received(channel) {
                self.scratch.get().bodies.spares.reclaim(received.body);
            }
        }
        self.discard_unread();
        while self.chunks.poll_event().is_some() {}
    }
}
