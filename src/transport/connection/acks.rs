//! The effects of acked and lost packets on what they carried.

use super::Connection;
use super::record::{Carried, Record, notification};
use super::scratch::Memory;
use crate::store::List;
use crate::time::Instant;
use crate::transport::congestion::RoundTrip;

impl Connection {
    pub(super) fn apply_acks(&mut self, now: Instant, round_trip: Option<RoundTrip>) {
        let Memory { packet, acked, notifications, stamps, .. } = self.scratch.get();
        for range in &packet.control.ranges {
            self.endpoint.ack_range(range.newest, range.oldest, acked);
        }
        // Header and ranges have them newest first.
        acked.reverse();
        stamps.clear();
        if !acked.is_empty() {
            self.unanswered_since = None;
            self.acked_at = now;
        }
        for acked in acked.drain(..) {
            let Some(sent) = self.endpoint.acks_mut().note_mut(acked.sequence) else { continue };
            let Record { hello, stamp, message_bytes, reported, ref mut carried, .. } = *sent;
            let carried = core::mem::take(carried);
            stamps.extend(stamp.map(|stamp| (stamp, acked.late)));
            if message_bytes > 0 {
                self.window.on_acked(message_bytes, acked.late);
            }
            self.hello_acked |= hello;
            self.ranges.confirm(reported);
            for carried in self.carried.iter(&carried) {
                match carried {
                    Carried::Messages { channel, count, first } => {
                        let Some(sending) = self.streams.sending(channel.into()) else { continue };
                        sending.handle_acks(now, first, count, &mut |fate| {
                            notifications.extend(notification(channel, fate, true));
                        });
                    }
                    Carried::Credit { channel, mark } => {
                        self.streams.receive(channel.into(), |receiving| receiving.credit_known(mark));
                    }
                    Carried::Chunk(carried) => {
                        self.chunks.handle_ack(now, (acked.sent_at, acked.sequence), carried);
                    }
                    Carried::Fragment { channel, mark, index } => {
                        let Some(sending) = self.streams.sending(channel.into()) else { continue };
                        let fate = sending.handle_fragment_ack(now, mark, index.into());
                        notifications.extend(notification(channel, fate, true));
                        if let Some(yojimbo) = &mut self.yojimbo {
                            yojimbo.pace_blocks(now, true);
                        }
                    }
                }
            }
            self.carried.clear(carried);
            self.notifications.resolve(self.endpoint.acks_mut(), acked.sequence, true, notifications);
        }
        if let Some(controller) = self.controller.as_mut().filter(|_| !stamps.is_empty()) {
            controller.on_acked(now, stamps, round_trip);
        }
        if let Some(round_trip) = round_trip {
            self.window.on_round_trip(now, round_trip.time);
        }
        self.window.judge(now);
    }

    /// Notifies channels of the packets that count as lost. They may still be acked.
    pub(super) fn apply_losses(&mut self, now: Instant) {
        let mut lost = core::mem::take(&mut self.scratch.get().lost);
        lost.clear();
        self.endpoint.poll_lost(now, &mut lost);
        lost.drain(..).for_each(|sequence| self.apply_loss(now, sequence));
        self.scratch.get().lost = lost;
    }

    /// A packet counts as lost.
    pub(super) fn apply_loss(&mut self, now: Instant, sequence: u16) {
        if let Some(record) = self.endpoint.acks_mut().note_mut(sequence) {
            let (stamp, message_bytes) = (record.stamp, record.message_bytes);
            let carried = core::mem::take(&mut record.carried);
            if let Some((stamp, controller)) = stamp.zip(self.controller.as_mut()) {
                controller.on_lost(now, stamp);
            }
            if message_bytes > 0 {
                self.window.on_lost(message_bytes);
            }
            self.lose(now, &carried);
            // It may yet be acked.
            if let Some(record) = self.endpoint.acks_mut().note_mut(sequence) {
                record.carried = carried;
            }
        }
        let notifications = &mut self.scratch.get().notifications;
        self.notifications.resolve(self.endpoint.acks_mut(), sequence, false, notifications);
    }

    /// Notifies streams and chunks that a packet's contents are lost, and collects notifications.
    pub(super) fn lose(&mut self, now: Instant, carried: &List) {
        let notifications = &mut self.scratch.get().notifications;
        for carried in self.carried.iter(carried) {
            match carried {
                Carried::Messages { channel, count, first } => {
                    let Some(sending) = self.streams.sending(channel.into()) else { continue };
                    for mark in first..first + u64::from(count) {
                        let fate = sending.handle_lost(mark);
                        notifications.extend(notification(channel, fate, false));
                    }
                }
                Carried::Chunk(carried) => self.chunks.handle_lost(carried),
                Carried::Fragment { channel, mark, index } => {
                    if let Some(sending) = self.streams.sending(channel.into()) {
                        sending.handle_fragment_lost(mark, index.into());
                    }
                    if let Some(yojimbo) = &mut self.yojimbo {
                        yojimbo.pace_blocks(now, false);
                    }
                }
                Carried::Credit { .. } => {}
            }
        }
    }

    /// Whether the peer is known to have everything queued here that will ever arrive: nothing waits to be sent or
    /// resent, and the packets with unreliable messages are acked or lost. Chunks don't count.
    pub fn is_drained(&self) -> bool {
        self.streams.are_drained()
    }

    /// The conversation is over: every open message is reported as lost.
    pub fn abandon_all(&mut self) {
        let notifications = &mut self.notifications;
        notifications.abandon_all(self.endpoint.acks_mut());
        self.streams
            .abandon_all(|channel, fate| notifications.push(notification(channel as u8, fate, false)));
    }
}
