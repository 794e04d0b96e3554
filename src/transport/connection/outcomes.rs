//! The effects of acked and lost packets on what they carried.

use super::conversation::Conversation;
use super::record::{PacketContent, Record};
use super::scratch::Memory;
use crate::store::List;
use crate::time::Instant;
use crate::transport::congestion::RoundTrip;
use crate::transport::ledger::Notification;

impl Conversation {
    /// Applies the acks of a packet of the peer: the packets in the scratch memory, and the packet's ack ranges.
    pub(super) fn apply_acks(&mut self, now: Instant, round_trip: Option<RoundTrip>) {
        let Memory { packet, acked, notifications, stamps, .. } = self.scratch.get();
        for range in &packet.control.ranges {
            self.ledger.endpoint.acks.ack_range(range.newest, range.oldest, acked);
        }
        // Header and ranges have them newest first.
        acked.reverse();
        stamps.clear();
        if let Some(sent_at) = acked.iter().map(|acked| acked.sent_at).max() {
            self.ledger.note_acked(now, sent_at);
        }
        for acked in acked.drain(..) {
            let Some(sent) = self.ledger.endpoint.acks.note_mut(acked.sequence) else { continue };
            let Record { hello, stamp, message_bytes, reported, ref mut carried } = *sent;
            let carried = core::mem::take(carried);
            stamps.extend(stamp.map(|stamp| (stamp, acked.late)));
            self.outbound.on_messages_acked(message_bytes, acked.late);
            self.ledger.hello_acked |= hello;
            self.ledger.ranges.confirm(reported);
            for carried in self.ledger.carried.iter(&carried) {
                match carried {
                    PacketContent::Messages { channel, count, first } => {
                        let Some(sending) = self.streams.sending(channel.into()) else { continue };
                        sending.handle_acks(now, first, count, &mut |tag| {
                            notifications.push(Notification { channel, tag, delivered: true });
                        });
                    }
                    PacketContent::Credit { channel, mark } => {
                        self.streams.receive_reliable(channel.into(), |receiver| receiver.credit_known(mark));
                    }
                    PacketContent::Chunk(carried) => {
                        self.chunks.handle_ack(now, acked.sequence, carried);
                    }
                    PacketContent::Fragment { channel, mark, index } => {
                        let Some(sender) = self.streams.sending_reliable(channel.into()) else { continue };
                        let notify = sender.handle_fragment_ack(now, mark, index.into());
                        notifications.extend(notify.map(|tag| Notification {
                            channel,
                            tag,
                            delivered: true,
                        }));
                    }
                }
            }
            self.ledger.carried.clear(carried);
            self.ledger.notifications.resolve(acked.sequence, notifications);
        }
        self.outbound.on_acked(now, stamps, round_trip);
    }

    /// Notifies channels of the packets that count as lost. They may still be acked.
    pub(super) fn apply_losses(&mut self, now: Instant) {
        let mut lost = core::mem::take(&mut self.scratch.get().lost);
        lost.clear();
        self.ledger.endpoint.acks.poll_lost(now, &mut lost);
        lost.drain(..).for_each(|sequence| self.apply_loss(sequence));
        self.scratch.get().lost = lost;
    }

    /// A packet counts as lost.
    pub(super) fn apply_loss(&mut self, sequence: u64) {
        if let Some(record) = self.ledger.endpoint.acks.note_mut(sequence) {
            let (stamp, message_bytes) = (record.stamp, record.message_bytes);
            let carried = core::mem::take(&mut record.carried);
            self.outbound.on_lost(stamp, message_bytes);
            self.lose(&carried);
            // It may yet be acked.
            if let Some(record) = self.ledger.endpoint.acks.note_mut(sequence) {
                record.carried = carried;
            }
        }
        let notifications = &mut self.scratch.get().notifications;
        self.ledger.notifications.resolve(sequence, notifications);
    }

    /// Notifies streams and chunks that a packet's contents are lost, and collects notifications.
    pub(super) fn lose(&mut self, carried: &List) {
        let Memory { notifications, .. } = self.scratch.get();
        for carried in self.ledger.carried.iter(carried) {
            match carried {
                PacketContent::Messages { channel, count, first } => {
                    let Some(sending) = self.streams.sending(channel.into()) else { continue };
                    let marks = first..first + u64::from(count);
                    let lost = marks.filter_map(|mark| sending.handle_lost(mark));
                    notifications.extend(lost.map(|tag| Notification { channel, tag, delivered: false }));
                }
                PacketContent::Chunk(carried) => self.chunks.handle_lost(carried),
                PacketContent::Fragment { channel, mark, index } => {
                    if let Some(sender) = self.streams.sending_reliable(channel.into()) {
                        sender.handle_fragment_lost(mark, index.into());
                    }
                }
                PacketContent::Credit { .. } => {}
            }
        }
    }
}
