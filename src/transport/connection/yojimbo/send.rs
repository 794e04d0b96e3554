//! Composing and sending packets of this framing: one a tick, and more while there is more than one holds.

use super::Yojimbo;
use crate::store::List;
use crate::time::Instant;
use crate::transport::connection::conversation::{Contents, Conversation, PacketPlan};
use crate::transport::connection::record::runs;
use crate::transport::connection::scratch::Memory;
use crate::transport::framing::yojimbo;
use crate::transport::outlet::Outlet;
use crate::transport::protocol::MAX_ID_BITS;
use crate::transport::stream::{PacketDraft, SendContext};

impl Yojimbo {
    /// Appends the packets of a tick to `out`.
    pub(super) fn transmit_tick(&mut self, parts: &mut Conversation, now: Instant, out: &mut dyn Outlet) {
        parts.begin_transmit(now);
        parts.outbound.end_tick();
        compose(parts, now, false);
        self.send(parts, now, out);
        parts.outbound.last_sent = Some(now);
        // Messages and blocks take turns at going first, so that neither starves.
        let mut blocks_first = true;
        while self.allowed > 0
            && parts.streams.are_busy()
            && parts.outbound.line_has_room()
            && compose(parts, now, blocks_first)
        {
            self.allowed -= 1;
            self.send(parts, now, out);
            blocks_first = !blocks_first;
        }
    }

    /// Sends the packet that was composed.
    fn send(&mut self, parts: &mut Conversation, now: Instant, out: &mut dyn Outlet) {
        let mut carried = List::default();
        let mut carry = |what| parts.ledger.carried.push(&mut carried, what);
        for (channel, selected) in parts.scratch.get().draft.iter() {
            runs(channel as u8, selected).for_each(&mut carry);
        }
        let planned = PacketPlan { messages: !carried.is_empty(), carried, ..PacketPlan::default() };
        parts.send(now, out, planned, |writer, Contents { protocol, draft, .. }| {
            yojimbo::write(writer, protocol, &draft.iter().collect::<Vec<_>>());
        });
    }
}

/// Selects the contents of the next packet; false if there are none.
fn compose(parts: &mut Conversation, now: Instant, blocks_first: bool) -> bool {
    parts.scratch.get().draft.clear();
    if !parts.outbound.budget.pacer.allows() {
        return false;
    }
    let context = SendContext { now, tick: true, resend: parts.resend_timer(), fills: false };
    let room = parts.outbound.datagram_bits.saturating_sub(yojimbo::header_bits(&parts.protocol));
    let fragments = if blocks_first { select_fragments(parts, &context, room) } else { 0 };
    // This framing has no payload channels.
    let Memory { draft, writer, .. } = parts.scratch.get();
    let mut packet = PacketDraft { fill: None, draft, writer, context: &context, protocol: &parts.protocol };
    parts.streams.poll_due(&context, &parts.protocol);
    if fragments > 0 {
        // A message larger than the remaining room gets a packet of its own.
        let room = room.saturating_sub(fragments);
        parts.streams.fill_shared(room, &mut packet);
        return true;
    }
    let filled = parts.streams.fill(room, &mut packet) > 0;
    if blocks_first {
        return filled;
    }
    let used = selected_bits(parts);
    select_fragments(parts, &context, room.saturating_sub(used)) > 0 || filled
}

/// Selects a fragment of each channel whose next message is a block; returns the bits they take. Alone in its
/// packet, a fragment may be larger than a datagram.
fn select_fragments(parts: &mut Conversation, context: &SendContext, room: usize) -> usize {
    let empty = room + yojimbo::header_bits(&parts.protocol) == parts.outbound.datagram_bits;
    let mut used = 0;
    for channel in 0..parts.streams.len() {
        let room = if empty && used == 0 { usize::MAX } else { room.saturating_sub(used) };
        let draft = &mut parts.scratch.get().draft;
        let cost = parts.protocol.cost(channel);
        used += parts.streams.select_block_fragment(channel, context, (cost, room), draft);
    }
    used
}

/// An upper bound of the selected messages' bits.
fn selected_bits(parts: &mut Conversation) -> usize {
    let bits = parts.scratch.get().draft.iter().map(|(channel, selected)| {
        let cost = parts.protocol.cost(channel);
        let ids = if parts.protocol.channels()[channel].kind.has_ids() { MAX_ID_BITS } else { 0 };
        selected.iter().map(|s| cost.message(&s.message) + ids).sum::<usize>() + cost.entry
    });
    bits.sum()
}
