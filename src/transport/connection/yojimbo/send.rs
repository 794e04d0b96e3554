//! Composing and sending packets of this framing: one a tick, and more while there is more than one holds.

use super::Yojimbo;
use crate::store::List;
use crate::time::Instant;
use crate::transport::connection::conversation::{Contents, Conversation, Planned};
use crate::transport::connection::record::{Carried, runs};
use crate::transport::connection::scratch::Memory;
use crate::transport::framing::yojimbo::{self, Entry};
use crate::transport::outlet::Outlet;
use crate::transport::parts::Fragment;
use crate::transport::protocol::MAX_ID_BITS;
use crate::transport::stream::{Draft, Offer, SendContext};

impl Yojimbo {
    /// Appends the packets of a tick to `out`.
    pub(super) fn transmit_tick(&mut self, parts: &mut Conversation, now: Instant, out: &mut dyn Outlet) {
        parts.begin_transmit(now);
        parts.outbound.end_tick();
        self.compose(parts, now, false);
        self.send(parts, now, out);
        parts.outbound.last_sent = Some(now);
        // Messages and blocks take turns at going first, so that neither starves.
        let mut blocks_first = true;
        while self.allowed > 0
            && parts.streams.are_busy()
            && parts.outbound.line_has_room()
            && self.compose(parts, now, blocks_first)
        {
            self.allowed -= 1;
            self.send(parts, now, out);
            blocks_first = !blocks_first;
        }
    }

    /// Selects the contents of the next packet; false if there are none.
    fn compose(&mut self, parts: &mut Conversation, now: Instant, blocks_first: bool) -> bool {
        parts.scratch.get().draft.clear();
        self.fragments.clear();
        if !parts.outbound.budget_allows() {
            return false;
        }
        let context = SendContext { now, tick: true, resend: parts.resend_timer(), fills: false };
        let mut room = parts.outbound.datagram_bits.saturating_sub(yojimbo::header_bits(&parts.protocol));
        if blocks_first {
            room = room.saturating_sub(self.select_fragments(parts, &context, room));
        }
        // This framing has no payload channels.
        let Memory { draft, writer, .. } = parts.scratch.get();
        let mut offer = Offer { fill: None, draft, writer };
        parts.streams.poll_due(&context, &parts.protocol);
        if !self.fragments.is_empty() {
            // A message larger than the remaining room gets a packet of its own.
            parts.streams.fill_shared(&context, &parts.protocol, room, &mut offer);
            return true;
        }
        let filled = parts.streams.fill(&context, &parts.protocol, room, &mut offer) > 0;
        if !blocks_first {
            let used = selected_bits(parts);
            self.select_fragments(parts, &context, room.saturating_sub(used));
        }
        filled || !self.fragments.is_empty()
    }

    /// Selects a fragment of each channel whose next message is a block; returns the bits they take. Alone in its
    /// packet, a fragment may be larger than a datagram.
    fn select_fragments(&mut self, parts: &mut Conversation, context: &SendContext, room: usize) -> usize {
        let empty = room + yojimbo::header_bits(&parts.protocol) == parts.outbound.datagram_bits;
        let mut used = 0;
        for channel in 0..parts.streams.len() {
            let cost = parts.protocol.cost(channel);
            let room = if empty && used == 0 { usize::MAX } else { room.saturating_sub(used) };
            let blocks = parts.streams.blocks(channel);
            if let Some(fragment) = blocks.and_then(|blocks| blocks.select_fragment(context, cost, room)) {
                used += cost.fragment(&fragment);
                self.fragments.push((channel, fragment));
            }
        }
        used
    }

    /// Sends the packet that was composed.
    fn send(&mut self, parts: &mut Conversation, now: Instant, out: &mut dyn Outlet) {
        let mut carried = List::default();
        let mut carry = |what| parts.ledger.carried.push(&mut carried, what);
        for (index, entry) in entries(&parts.scratch.get().draft, &self.fragments) {
            let channel = index as u8;
            match entry {
                Entry::Fragment(&Fragment { mark, index, .. }) => {
                    carry(Carried::Fragment { channel, mark, index: index as u16 });
                }
                Entry::Messages(messages) => runs(channel, messages).for_each(&mut carry),
            }
        }
        let planned = Planned { messages: !carried.is_empty(), carried, ..Planned::default() };
        parts.send(now, out, planned, |writer, Contents { protocol, draft, .. }| {
            yojimbo::write(writer, protocol, &entries(draft, &self.fragments));
        });
    }
}

/// The entries of a packet, channels ascending: a fragment, or else messages.
fn entries<'a>(draft: &'a Draft, fragments: &'a [(usize, Fragment)]) -> Vec<(usize, Entry<'a>)> {
    let cut = |index: usize| fragments.iter().any(|(channel, _)| *channel == index);
    let messages = draft.iter().filter(|(index, _)| !cut(*index));
    let messages = messages.map(|(index, selected)| (index, Entry::Messages(selected)));
    let fragments = fragments.iter().map(|(index, fragment)| (*index, Entry::Fragment(fragment)));
    let mut entries: Vec<_> = messages.chain(fragments).collect();
    entries.sort_by_key(|(index, _)| *index);
    entries
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
