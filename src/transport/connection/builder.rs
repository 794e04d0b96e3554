//! Composing a packet: control sections, the messages that the scheduler chooses, and the packet's record in the
//! ledger.

use super::Connection;
use super::record::{Carried, Record, runs};
use super::scratch::Memory;
use crate::store::{List, Packets};
use crate::time::Instant;
use crate::transport::framing::native;
use crate::transport::ledger::{Notification, Reported};
use crate::transport::packet::header::{self, Header};
use crate::transport::peer_clock::ReceiveTime;
use crate::transport::stream::external::Fill;
use crate::transport::stream::{Offer, SendContext};

/// Once in this many packets the ledger may give back memory.
const PACKETS_TO_SHRINK: u16 = 64;

/// The packet that was just written.
pub(super) struct Written {
    pub(super) hello: bool,
    pub(super) messages: bool,
    /// The runs that its ack ranges reported.
    pub(super) reported: Reported,
    pub(super) carried: List,
}

impl Connection {
    /// Selects the contents of the next packet; false if no message is due.
    pub(super) fn compose(&mut self, now: Instant, tick: bool, fill: Option<&mut (dyn Fill + '_)>) -> bool {
        // Most often there is nothing after the first packet of a tick: then nothing is computed.
        if !self.streams.are_busy() {
            return false;
        }
        let context = SendContext { now, tick, resend: self.resend_timer(), fills: fill.is_some() };
        // Asked first: gathering ack ranges and credit costs more.
        if !self.streams.poll_due(&context, &self.protocol) || !self.line_has_room() {
            return false;
        }
        let control_bits = self.begin_packet(now);
        let mut room = self.datagram_bits.saturating_sub(control_bits);
        if self.ranges_crowd_out_a_message(room) {
            room += native::range_bits(&self.scratch.get().control, self.endpoint.acks().ack());
            self.drop_ranges();
            self.ranges_wait = true;
        }
        let Memory { draft, writer, .. } = self.scratch.get();
        let mut offer = Offer { fill, draft, writer };
        let filled = self.streams.fill(&context, &self.protocol, room, &mut offer);
        for (channel, tag) in draft.refused.drain(..) {
            self.notifications.push(Some(Notification { channel, tag, delivered: false }));
        }
        filled
    }

    /// Whether a message is due that would fit into a packet but for the ack ranges.
    fn ranges_crowd_out_a_message(&mut self, room: usize) -> bool {
        let control = &self.scratch.get().control;
        !control.ranges.is_empty() && {
            let ranges = native::range_bits(control, self.endpoint.acks().ack());
            self.streams.has_due_between(room, room + ranges)
        }
    }

    /// Clears the buffers of the next packet and collects its control sections; returns their bits.
    pub(super) fn begin_packet(&mut self, now: Instant) -> usize {
        self.begin_brief_packet(now);
        let Memory { control, credits, reported, .. } = self.scratch.get();
        let ack = self.endpoint.acks().ack();
        *reported = self.ranges.select(ack, &mut control.ranges);
        self.streams.credits_due(|channel, mark| {
            credits.push((channel, mark));
            control.credits.push((channel, mark.id()));
        });
        native::control_bits(control, &self.protocol, ack)
    }

    /// Like [`Connection::begin_packet`], without ack ranges and credit.
    pub(super) fn begin_brief_packet(&mut self, now: Instant) -> usize {
        self.scratch.get().draft.clear();
        let Memory { control, credits, chunk, reported, .. } = self.scratch.get();
        chunk.clear();
        credits.clear();
        *reported = Reported::default();
        control.hello = (!self.hello_acked).then(|| self.protocol.hash());
        control.close = None;
        control.detail = None;
        control.ack_delay = self.newest_at.map(|at| now - at);
        // For the peer's chunks.
        let clocked = self.newest_at.filter(|_| self.protocol.chunk_channel().is_some());
        control.received_at = clocked.map(ReceiveTime::at);
        control.ranges.clear();
        control.credits.clear();
        native::control_bits(control, &self.protocol, 0)
    }

    /// Leaves the ack ranges to another packet.
    pub(super) fn drop_ranges(&mut self) {
        self.scratch.get().control.ranges.clear();
        self.scratch.get().reported = Reported::default();
    }

    /// The bytes on the wire of a packet that has no entries.
    pub(super) fn packet_bytes(&mut self) -> usize {
        let ack = self.endpoint.acks().ack();
        let payload = native::control_bits(&self.scratch.get().control, &self.protocol, ack).div_ceil(8);
        self.datagram_overhead + Header::MAX_SIZE + payload
    }

    /// Sends a packet with all control sections.
    pub(super) fn send_whole_packet(&mut self, now: Instant, out: &mut Packets) {
        self.send_packet(now, out);
        if !core::mem::take(&mut self.ranges_wait) {
            self.pending_ack.clear();
        }
        self.last_sent = Some(now);
    }

    /// Writes the composed packet, appends its datagrams to `out`, and records its contents.
    pub(super) fn send_packet(&mut self, now: Instant, out: &mut Packets) {
        let ack = self.endpoint.acks().ack();
        let Memory { draft, writer, control, credits, chunk, reported, .. } = self.scratch.get();
        writer.clear();
        native::write_control(writer, control, &self.protocol, ack);
        if control.close.is_none() {
            native::write_entries(writer, &self.protocol, draft.iter(), chunk);
            let fragments = draft.iter().flat_map(|(index, selected)| {
                let cut = selected.iter().filter(|selected| selected.fragment.is_some());
                cut.map(move |selected| (index, selected))
            });
            native::write_end(writer, &self.protocol, fragments);
        }
        let (hello, reported) = (control.hello.is_some(), *reported);
        let mut carried = List::default();
        let messages = control.close.is_none() && !draft.is_empty();
        if control.close.is_none() {
            let mut carry = |what| self.carried.push(&mut carried, what);
            credits.iter().for_each(|&(channel, mark)| carry(Carried::Credit { channel, mark }));
            chunk.carried.drain(..).for_each(|chunk| carry(Carried::Chunk(chunk)));
            for (channel, selected) in draft.iter() {
                runs(channel as u8, selected).for_each(&mut carry);
            }
        }
        let written = Written { hello, messages, reported, carried };
        self.commit(now, out, written);
    }

    /// Sends the written packet, and records its contents.
    pub(super) fn commit(&mut self, now: Instant, out: &mut Packets, written: Written) {
        let Written { hello, messages, reported, carried } = written;
        let whole = self.endpoint.goes_whole(self.scratch.get().writer.as_bytes().len());
        let skips = self.skips.as_mut().is_some_and(|skips| skips.is_due(whole));
        if skips {
            self.make_room_in_ledger(now);
            let passed = self.endpoint.acks_mut().skip_number(now);
            self.forget(passed);
        }
        self.make_room_in_ledger(now);
        let writer = &mut self.scratch.get().writer;
        let (before, datagrams) = (out.total_bytes(), out.len());
        let awaited = !carried.is_empty() || self.notifications.keeps_packets();
        let mut record = Some(Record::new(hello, reported, carried, awaited));
        // The bounds on messages and on all else in a packet keep it below the endpoint's. One above would be lost.
        let Ok(packet) = self.endpoint.send_noted(now, writer.as_bytes(), &mut record) else {
            let carried = record.unwrap_or_default().carried;
            self.lose(now, &carried);
            let notifications = &mut self.scratch.get().notifications;
            notifications.drain(..).for_each(|lost| self.notifications.push(Some(lost)));
            self.carried.clear(carried);
            return;
        };
        let sequence = packet.sequence();
        for piece in packet.pieces() {
            out.push_with((), |arena| {
                let start = arena.len();
                piece.write(arena);
                if skips {
                    header::mark_after_skip(&mut arena[start..]);
                }
            });
        }
        let bytes = out.total_bytes() - before + (out.len() - datagrams) * self.datagram_overhead;
        // The budget is for messages: acks are paid for by what they ack, and slices have a rate of their own.
        // Charged here, a chunk faster than the budget would silence the game for as long as it lasts. At most 256
        // KiB and their headers.
        let message_bytes = if messages { bytes as u32 } else { 0 };
        self.budget.spend(message_bytes as usize);
        self.window.on_sent(now, message_bytes);
        let stamp = self.controller.as_mut().map(|controller| controller.on_sent(now, bytes as u32));
        if let Some(record) = self.endpoint.acks_mut().note_mut(sequence) {
            (record.stamp, record.message_bytes) = (stamp, message_bytes);
        }
        self.forget(record);
        self.ranges.commit(reported);
        self.newest_at = None;
        self.last_packet_at = Some(now);
        self.unanswered_since.get_or_insert(now);
        if sequence.is_multiple_of(PACKETS_TO_SHRINK) {
            let passed = self.endpoint.acks_mut().shrink();
            self.forget(passed.into_iter().flatten());
        }
    }

    /// Gives up the oldest packet if the next one takes its place: its contents may have to be sent again.
    fn make_room_in_ledger(&mut self, now: Instant) {
        if self.endpoint.acks().is_full()
            && let Some(lost) = self.endpoint.acks_mut().give_up_oldest()
        {
            self.apply_loss(now, lost);
        }
    }

    /// The ledger has no more record of these packets.
    fn forget(&mut self, records: impl IntoIterator<Item = Record>) {
        records.into_iter().for_each(|record| self.carried.clear(record.carried));
    }
}
