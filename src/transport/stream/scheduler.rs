//! One packet's room, divided among the streams.
//!
//! Strict streams come first, in their order, and leave a tenth of each packet to the others while these have
//! something due. The others share what is left by weight; what one doesn't use passes on.
//!
//! Promises: nobody starves. The tenth is owed: what strict streams' packets could not give (a message or fragment larger
//! than the tenth) adds up until it is enough, and so does each weighted stream's share of it. A stream of weight w
//! among streams of weight W together gets at least w / W of a tenth of what is sent, a packet more or less.

use super::draft::Set;
use super::streams::Streams;
use super::{PacketDraft, SendContext};
use crate::transport::protocol::Protocol;

/// The part of each packet that strict streams leave while others have something due: one in this many.
const RESERVED: usize = 10;

/// Bits that a weighted stream gets in a row: some messages, so that choosing costs little.
const QUANTUM: usize = 1_200;

/// Parts of a bit that virtual time counts, so that division by weights loses little.
const SCALE: u64 = 1_024;

impl Streams {
    /// Asks each busy stream what its first message due needs; whether any is due.
    pub(crate) fn poll_due(&mut self, context: &SendContext, protocol: &Protocol) -> bool {
        let mut any = false;
        for index in self.busy.iter() {
            let lane = &mut self.lanes[index];
            lane.poll_need(context, protocol.cost(index));
            if lane.need.is_none() && lane.is_idle() {
                self.busy.remove(index);
            }
            any |= lane.need.is_some();
        }
        any
    }

    /// Whether a message is due that `room` bits don't hold, and `more` would. As of [`Streams::poll_due`].
    pub(crate) fn has_due_between(&self, room: usize, more: usize) -> bool {
        let mut needs = self.busy.iter().filter_map(|index| self.lanes[index].need);
        needs.any(|need| room < need && need <= more)
    }

    /// Selects messages for a packet of `room` bits, after [`Streams::poll_due`]; returns the bits they take, at most:
    /// more than `room` for one that has a packet of its own, and 0 when none is due.
    pub(crate) fn fill(&mut self, room: usize, packet: &mut PacketDraft<'_, '_>) -> usize {
        // Packets for a single large message take turns with the others, so that neither starves.
        if core::mem::take(&mut self.scheduler.large_due)
            && let used @ 1.. = self.fill_large(room, packet)
        {
            return used;
        }
        let used = self.fill_shared(room, packet);
        self.scheduler.large_due = self.has_due_between(room, usize::MAX);
        if used == 0 && core::mem::take(&mut self.scheduler.large_due) {
            return self.fill_large(room, packet);
        }
        used
    }

    /// Fills a packet of `room` bits with messages that fit, after [`Streams::poll_due`]; returns the bits they take.
    pub(crate) fn fill_shared(&mut self, room: usize, packet: &mut PacketDraft<'_, '_>) -> usize {
        if let Some(index) = self.busy.only().filter(|index| !self.lanes[*index].share.strict) {
            return self.fill_alone(index, room, packet);
        }
        let mut left = room;
        let weighted = self.busy.iter().filter(|index| !self.lanes[*index].share.strict);
        let need = weighted.filter_map(|index| self.lanes[index].need).min();
        let owed = if need.is_some() { (self.scheduler.owed + room / RESERVED).min(room) } else { 0 };

        // While it isn't enough for anybody it is only counted: half a message is no use to them, and would keep out one of a
        // strict stream.
        let enough = need.is_some_and(|need| need <= owed);
        let mut unreserved = if enough { room - owed } else { room };
        for index in self.strict() {
            let used = self.lanes[index].select(index, unreserved, packet);
            (unreserved, left) = (unreserved - used, left - used);
        }
        let shared = left;
        if need.is_some() {
            left -= self.fill_weighted(room, left, packet);
        }
        self.scheduler.owed = owed.saturating_sub(shared - left);
        // What the weighted streams leave goes back to the strict ones.
        for index in self.strict() {
            left -= self.lanes[index].select(index, left, packet);
        }
        packet.draft.sort();
        room - left
    }

    /// [`Streams::fill_shared`] where a weighted stream is the only busy one, as in most packets: nothing is divided.
    fn fill_alone(&mut self, index: usize, room: usize, packet: &mut PacketDraft<'_, '_>) -> usize {
        let mut left = room;
        let due = self.lanes[index].need.is_some();
        let owed = if due { (self.scheduler.owed + room / RESERVED).min(room) } else { 0 };
        while self.lanes[index].need.is_some_and(|need| need <= left) {
            let served = self.lanes[index].served.max(self.scheduler.virtual_time);
            let lane = &mut self.lanes[index];
            let used = lane.select(index, left, packet);
            left -= used;
            lane.served = served + used as u64 * SCALE / u64::from(lane.share.weight);
            if used == 0 {
                break;
            }
            self.scheduler.virtual_time = served;
        }
        self.scheduler.owed = owed.saturating_sub(room - left);
        packet.draft.sort();
        room - left
    }

    /// The strict streams that have something to send.
    fn strict(&self) -> impl Iterator<Item = usize> + use<> {
        let mut strict = Set::default();
        let busy = self.busy.iter().filter(|index| self.lanes[*index].share.strict);
        busy.for_each(|index| strict.insert(index));
        strict.iter()
    }

    /// Serves whichever weighted stream was served least, until nothing more fits into what is `shared`; returns the bits
    /// used.
    fn fill_weighted(&mut self, room: usize, shared: usize, packet: &mut PacketDraft<'_, '_>) -> usize {
        let mut left = shared;
        let mut passed_over = Set::default();
        loop {
            let (mut waiting, mut next) = (0, None);
            for index in self.busy.iter().filter(|index| !passed_over.contains(*index)) {
                let lane = &mut self.lanes[index];
                let Some(need) = lane.need.filter(|_| !lane.share.strict) else { continue };
                lane.served = lane.served.max(self.scheduler.virtual_time);
                let first = (lane.served, index, need);
                next = Some(next.map_or(first, |least: (u64, usize, usize)| least.min(first)));
                waiting += 1;
            }
            let Some((served, index, need)) = next else { return shared - left };
            if need > left {
                if need > shared && need <= room {
                    // Strict streams left too little: the deficit must add up, so nobody may use it up.
                    return shared - left;
                }
                passed_over.insert(index);
                continue;
            }
            // Alone, it needn't take turns.
            let limit = if waiting == 1 { left } else { need.max(QUANTUM).min(left) };
            let lane = &mut self.lanes[index];
            let used = lane.select(index, limit, packet);
            left -= used;
            if used == 0 {
                passed_over.insert(index);
            }
            lane.served += used as u64 * SCALE / u64::from(lane.share.weight);
            // Using room where no other message fits takes nothing from the streams whose turn it was.
            if passed_over.is_empty() {
                self.scheduler.virtual_time = served;
            }
        }
    }

    /// A packet of its own, in fragments, for a message that no packet of `room` bits holds; returns its bits, 0 when
    /// there is none.
    fn fill_large(&mut self, room: usize, packet: &mut PacketDraft<'_, '_>) -> usize {
        let turn = self.scheduler.turn;
        self.scheduler.turn = turn.wrapping_add(1);
        let count = self.lanes.len();
        let large = (0..count).map(|i| (turn + i) % count).filter_map(|index| {
            let needed = self.busy.contains(index).then(|| self.lanes[index].need).flatten();
            let needed = needed.filter(|needed| *needed > room)?;
            let used = self.lanes[index].select(index, needed, packet);
            (used > 0).then_some(used)
        });
        { large }.next().unwrap_or(0)
    }
}
