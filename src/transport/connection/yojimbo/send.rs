//! Composing and sending packets of this framing: one a tick, and more while there is more than one holds.

use super::super::builder::Written;
use super::super::record::{Carried, runs};
use super::super::scratch::Memory;
use super::super::{Connection, KEEP_ALIVE};
use crate::store::{List, Packets};
use crate::time::Instant;
use crate::transport::framing::yojimbo::{self, Entry};
use crate::transport::ledger::Reported;
use crate::transport::protocol::MAX_ID_BITS;
use crate::transport::stream::{Offer, SendContext};

impl Connection {
    /// Appends the packets of a tick to `out`.
    pub(in crate::transport::connection) fn transmit_yojimbo(&mut self, now: Instant, out: &mut Packets) {
        self.begin_transmit(now);
        self.tick_open = None;
        if self.next_number_at() > now {
            return;
        }
        self.compose_yojimbo(now, false);
        self.send_yojimbo(now, out);
        self.last_sent = Some(now);
        // Messages and blocks take turns at going first, so that neither starves.
        let mut blocks_first = true;
        while self.budget.allows()
            && self.yojimbo.get_or_insert_default().pace.allows()
            && self.next_number_at() <= now
            && self.compose_yojimbo(now, blocks_first)
        {
            self.yojimbo.get_or_insert_default().pace.spend();
            self.send_yojimbo(now, out);
            blocks_first = !blocks_first;
        }
    }

    /// Appends the packets that must go out between ticks, and returns when to call again.
    pub(in crate::transport::connection) fn transmit_yojimbo_between(
        &mut self,
        now: Instant,
        out: &mut Packets,
    ) -> Instant {
        if self.last_sent.is_none_or(|sent| sent + KEEP_ALIVE <= now) {
            self.transmit_yojimbo(now, out);
        }
        self.last_sent.map_or(now, |sent| sent + KEEP_ALIVE).max(self.next_number_at())
    }

    /// Selects the contents of the next packet; false if there are none.
    fn compose_yojimbo(&mut self, now: Instant, blocks_first: bool) -> bool {
        self.scratch.get().draft.clear();
        self.yojimbo.get_or_insert_default().fragments.clear();
        if !self.budget.allows() {
            return false;
        }
        let context = SendContext { now, tick: true, resend: self.resend_timer(), fills: false };
        let mut room = self.datagram_bits.saturating_sub(yojimbo::header_bits(&self.protocol));
        if blocks_first {
            room = room.saturating_sub(self.select_fragments(&context, room));
        }
        // This framing has no payload channels.
        let Memory { draft, writer, .. } = self.scratch.get();
        let mut offer = Offer { fill: None, draft, writer };
        if !self.yojimbo.get_or_insert_default().fragments.is_empty() {
            // A message larger than the remaining room gets a packet of its own.
            self.streams.poll_due(&context, &self.protocol);
            self.streams.fill_shared(&context, &self.protocol, room, &mut offer);
            return true;
        }
        self.streams.poll_due(&context, &self.protocol);
        let filled = self.streams.fill(&context, &self.protocol, room, &mut offer);
        if !blocks_first {
            let used = self.selected_bits();
            self.select_fragments(&context, room.saturating_sub(used));
        }
        filled || !self.yojimbo.get_or_insert_default().fragments.is_empty()
    }

    /// Selects a fragment of each channel whose next message is a block; returns the bits they take. Alone in its
    /// packet, a fragment may be larger than a datagram.
    fn select_fragments(&mut self, context: &SendContext, room: usize) -> usize {
        let empty = room + yojimbo::header_bits(&self.protocol) == self.datagram_bits;
        let mut used = 0;
        for channel in 0..self.streams.len() {
            let cost = self.protocol.cost(channel);
            let room = if empty && used == 0 { usize::MAX } else { room.saturating_sub(used) };
            let blocks = self.streams.blocks(channel);
            if let Some(fragment) = blocks.and_then(|blocks| blocks.select_fragment(context, cost, room)) {
                used += cost.fragment(&fragment);
                self.yojimbo.get_or_insert_default().fragments.push((channel, fragment));
            }
        }
        used
    }

    /// An upper bound of the selected messages' bits.
    fn selected_bits(&mut self) -> usize {
        let bits = self.scratch.get().draft.iter().map(|(channel, selected)| {
            let cost = self.protocol.cost(channel);
            let ids = if self.protocol.channels()[channel].kind.has_ids() { MAX_ID_BITS } else { 0 };
            selected.iter().map(|s| cost.message(&s.message) + ids).sum::<usize>() + cost.entry
        });
        bits.sum()
    }

    /// Writes the packet that was composed.
    fn send_yojimbo(&mut self, now: Instant, out: &mut Packets) {
        let mut entries = Vec::new();
        let mut carried = List::default();
        let mut carry = |what| self.carried.push(&mut carried, what);
        let Memory { draft, writer, .. } = self.scratch.get();
        let mut selected = draft.iter().peekable();
        let mut fragments = self.yojimbo.get_or_insert_default().fragments.iter().peekable();
        for index in 0..self.streams.len() {
            let channel = index as u8;
            let messages = selected.next_if(|(channel, _)| *channel == index);
            if let Some((_, fragment)) = fragments.next_if(|(channel, _)| *channel == index) {
                entries.push((index, Entry::Fragment(fragment)));
                let (mark, index) = (fragment.mark, fragment.index as u16);
                carry(Carried::Fragment { channel, mark, index });
            } else if let Some((_, messages)) = messages {
                entries.push((index, Entry::Messages(messages)));
                runs(channel, messages).for_each(&mut carry);
            }
        }
        drop((selected, fragments));
        writer.clear();
        yojimbo::write(writer, &self.protocol, &entries);
        let messages = !carried.is_empty();
        self.commit(now, out, Written { hello: false, messages, reported: Reported::default(), carried });
    }
}
