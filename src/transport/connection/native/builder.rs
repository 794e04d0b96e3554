//! Composing a packet: control sections, the messages that the scheduler chooses, chunk items, and the record of them all.
//! It is written when all of it is known.

use crate::store::List;
use crate::time::{Duration, Instant};
use crate::transport::chunks::Chunks;
use crate::transport::connection::conversation::{Contents, Conversation, PacketPlan};
use crate::transport::connection::ledger::Ledger;
use crate::transport::connection::record::{PacketContent, runs};
use crate::transport::connection::scratch::Memory;
use crate::transport::framing::{CloseReason, native};
use crate::transport::ledger::{Notification, Reported};
use crate::transport::packet::numbered;
use crate::transport::peer_clock::ReceiveTime;
use crate::transport::protocol::Protocol;
use crate::transport::stream::Fill;
use crate::transport::stream::{PacketDraft, SendContext, Streams};
use crate::wire::BitWriter;

/// A packet while it is composed, in the scratch memory.
pub(super) struct Builder<'c> {
    protocol: &'c Protocol,
    ledger: &'c mut Ledger,
    streams: &'c mut Streams,
    chunks: &'c mut Chunks,
    memory: &'c mut Memory,
    datagram_bits: usize,
    datagram_overhead: usize,
    /// Bits of the messages in it, at most.
    message_bits: usize,
    /// Ack ranges had no room beside a message, so an ack must follow.
    owes_ranges: bool,
}

impl<'c> Builder<'c> {
    /// Begins a packet with all control sections.
    pub(super) fn begin(parts: &'c mut Conversation, now: Instant) -> Self {
        let builder = Builder::begin_brief(parts, now);
        let Memory { control, credits, reported, .. } = &mut *builder.memory;
        *reported = builder.ledger.ranges.select(builder.ledger.endpoint.acks.ack(), &mut control.ranges);
        builder.streams.credits_due(|channel, mark| {
            credits.push((channel, mark));
            control.credits.push((channel, mark.id()));
        });
        builder
    }

    /// Begins a packet without ack ranges and credit.
    pub(super) fn begin_brief(parts: &'c mut Conversation, now: Instant) -> Self {
        let Conversation { protocol, ledger, streams, chunks, scratch, outbound, .. } = parts;
        let memory = scratch.get();
        memory.draft.clear();
        memory.chunk.clear();
        memory.credits.clear();
        memory.reported = Reported::default();
        let control = &mut memory.control;
        control.hello = (!ledger.hello_acked).then(|| protocol.hash());
        control.close = None;
        control.detail = None;
        control.ack_delay = ledger.newest_at.map(|at| now - at);
        // For the peer's chunks.
        let clocked = ledger.newest_at.filter(|_| protocol.chunk_channel().is_some());
        control.received_at = clocked.map(ReceiveTime::at);
        control.ranges.clear();
        control.credits.clear();
        Builder {
            protocol,
            ledger,
            streams,
            chunks,
            memory,
            datagram_bits: outbound.datagram_bits,
            datagram_overhead: outbound.datagram_overhead,
            message_bits: 0,
            owes_ranges: false,
        }
    }

    fn control_bits(&self) -> usize {
        native::control_bits(&self.memory.control, self.protocol, self.ledger.endpoint.acks.ack())
    }

    /// The bits that a datagram has left for entries.
    fn room(&self) -> usize {
        self.datagram_bits.saturating_sub(self.control_bits() + self.message_bits)
    }

    /// The bytes on the wire of the packet without entries.
    fn bytes(&self) -> usize {
        self.datagram_overhead + numbered::MAX_SIZE + self.control_bits().div_ceil(8)
    }

    /// Pays for a packet without entries by the packets that it acks; false if it is larger than those.
    pub(super) fn try_spend(&mut self) -> bool {
        self.ledger.pending_ack.try_spend(self.bytes())
    }

    /// Pays for a packet that goes out in any case: without ack ranges if it is larger than the packets that it acks.
    pub(super) fn spend(&mut self) {
        if self.has_ranges() && !self.ledger.pending_ack.covers(self.bytes()) {
            self.drop_ranges();
        }
        self.ledger.pending_ack.spend(self.bytes());
    }

    fn has_ranges(&self) -> bool {
        !self.memory.control.ranges.is_empty()
    }

    /// Leaves the ack ranges to another packet.
    fn drop_ranges(&mut self) {
        self.memory.control.ranges.clear();
        self.memory.reported = Reported::default();
    }

    /// Makes it the last packet of the conversation.
    pub(super) fn close(&mut self, reason: CloseReason, detail: Option<&str>) {
        self.memory.control.close = Some(reason);
        self.memory.control.detail = detail.map(Into::into);
    }

    /// Selects the messages that are due; false if none fits.
    pub(super) fn select_messages(
        &mut self,
        context: &SendContext,
        fill: Option<&mut (dyn Fill + '_)>,
    ) -> bool {
        let mut room = self.room();
        if self.has_ranges() {
            let ranges = native::range_bits(&self.memory.control, self.ledger.endpoint.acks.ack());
            if self.streams.has_due_between(room, room + ranges) {
                room += ranges;
                self.drop_ranges();
                self.owes_ranges = true;
            }
        }
        let Memory { draft, writer, .. } = &mut *self.memory;
        let mut packet = PacketDraft { fill, draft, writer, context, protocol: self.protocol };
        self.message_bits = self.streams.fill(room, &mut packet);
        for (channel, tag) in draft.refused.drain(..) {
            self.ledger.notifications.push(Notification { channel, tag, delivered: false });
        }
        self.message_bits > 0
    }

    /// Selects chunk items without slices; false if there are none.
    pub(super) fn select_chunk_control(&mut self, now: Instant, probe_after: Duration) -> bool {
        self.chunks.select_control(now, probe_after, &mut self.memory.chunk)
    }

    /// Selects a slice; false if none fits.
    pub(super) fn select_slice(&mut self, now: Instant) -> bool {
        let entry_bits = 2 + self.protocol.channel_bits() as usize;
        let room = self.room().saturating_sub(entry_bits);
        self.chunks.select_slice(now, room, &mut self.memory.chunk)
    }

    /// Ends the packet, and records its contents.
    pub(super) fn finish(self) -> PacketPlan {
        let fits = self.control_bits() + self.message_bits <= self.datagram_bits;
        let Memory { draft, control, credits, chunk, reported, .. } = self.memory;
        let mut carried = List::default();
        let is_open = control.close.is_none();
        if is_open {
            let mut carry = |what| self.ledger.carried.push(&mut carried, what);
            credits.iter().for_each(|&(channel, mark)| carry(PacketContent::Credit { channel, mark }));
            chunk.carried.drain(..).for_each(|chunk| carry(PacketContent::Chunk(chunk)));
            for (channel, selected) in draft.iter() {
                runs(channel as u8, selected).for_each(&mut carry);
            }
        }
        PacketPlan {
            fits,
            hello: control.hello.is_some(),
            messages: is_open && !draft.is_empty(),
            slice_bytes: chunk.arena.len(),
            reported: *reported,
            carried,
            owes_ranges: self.owes_ranges,
        }
    }
}

/// Writes a finished packet.
pub(super) fn write(writer: &mut BitWriter, contents: &Contents<'_>) {
    let Contents { protocol, ack, control, draft, chunk } = *contents;
    native::write_control(writer, control, protocol, ack);
    if control.close.is_some() {
        return;
    }
    native::write_entries(writer, protocol, draft.iter(), chunk);
    let fragments = draft.iter().flat_map(|(index, selected)| {
        let cut = selected.iter().filter(|selected| selected.fragment.is_some());
        cut.map(move |selected| (index, selected))
    });
    native::write_end(writer, protocol, fragments);
}
