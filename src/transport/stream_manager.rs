//! One packet's room, divided among the channels.
//!
//! Strict channels come first, in their order, and leave a tenth of each packet to the others while these have
//! something due. The others share what is left by weight; what one doesn't use passes on.
//!
//! Promises: nobody starves. The tenth is owed: what strict channels' packets could not give (a message larger
//! than the tenth) adds up until it is enough, and so does each weighted channel's share of it. A channel of weight w
//! among channels of weight W together gets at least w / W of a tenth of what is sent, a packet more or less.

use super::channel::{Channel, Moment, Prefix, Selected};
use super::framing::Cost;
use super::protocol::Share;
use crate::store::sequence::distance;

/// The part of each packet that strict channels leave while others have something due: one in this many.
const RESERVED: usize = 10;

/// A channel and what the packet being composed takes from it.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) channel: Box<dyn Channel>,
    pub(super) selected: Vec<Selected>,
    share: Share,
    /// Bits that a weighted channel did not get to use of its share, as long as it has something due.
    owed: usize,
}

/// What strict channels owe the others.
#[derive(Debug, Default)]
pub(super) struct StreamManager {
    owed: usize,
    /// Which of the weighted channels comes first.
    turn: usize,
}

impl Lane {
    pub(super) fn new(channel: Box<dyn Channel>, share: Share) -> Self {
        Lane { channel, selected: Vec::new(), share, owed: 0 }
    }

    /// Selects within `limit`, and takes it off what is left of the packet.
    fn select(&mut self, moment: &Moment, cost: &Cost<'_>, limit: usize, left: &mut usize) -> usize {
        let used = self.channel.select(moment, cost, limit.min(*left), &mut self.selected);
        debug_assert!(used <= *left);
        *left -= used;
        used
    }

    fn weighted_and_due(&mut self, moment: &Moment, cost: &Cost<'_>) -> bool {
        !self.share.strict && self.channel.next_bits(moment, cost).is_some()
    }
}

impl StreamManager {
    /// Fills a packet of `room` bits from the lanes; true when there is anything in it.
    pub(super) fn fill<'a>(
        &mut self,
        lanes: &mut [Lane],
        moment: &Moment,
        cost: impl Fn(usize) -> Cost<'a>,
        room: usize,
    ) -> bool {
        let mut left = room;
        let mut weights = 0;
        let mut any_weighted = false;
        for (index, lane) in lanes.iter_mut().enumerate() {
            if lane.weighted_and_due(moment, &cost(index)) {
                weights += lane.share.weight as usize;
                any_weighted = true;
            } else {
                lane.owed = 0;
            }
        }
        self.owed = if any_weighted { (self.owed + room / RESERVED).min(room) } else { 0 };

        let mut unreserved = room - self.owed;
        for (index, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| lane.share.strict) {
            unreserved -= lane.select(moment, &cost(index), unreserved, &mut left);
        }

        let shared = left;
        let turn = self.turn % lanes.len();
        self.turn = self.turn.wrapping_add(1);
        let order = move |count: usize| (0..count).map(move |i| (turn + i) % count);
        for index in order(lanes.len()) {
            let (lane, cost) = (&mut lanes[index], cost(index));
            if weights == 0 || !lane.weighted_and_due(moment, &cost) {
                continue;
            }
            let allowance = lane.owed + shared * lane.share.weight as usize / weights;
            let used = lane.select(moment, &cost, allowance, &mut left);
            lane.owed = (allowance - used.min(allowance)).min(room);
        }
        // What is left passes on: to those by weight first, then to the strict ones.
        for strict in [false, true] {
            for index in order(lanes.len()) {
                let lane = &mut lanes[index];
                if lane.share.strict == strict {
                    let limit = left;
                    lane.select(moment, &cost(index), limit, &mut left);
                }
            }
        }
        self.owed = self.owed.saturating_sub(shared.saturating_sub(left));
        for lane in lanes.iter_mut() {
            lane.sort();
        }
        left < room
    }

    /// Whether a message is due that no packet of `room` bits holds.
    pub(super) fn large_due<'a>(
        &self,
        lanes: &mut [Lane],
        moment: &Moment,
        cost: impl Fn(usize) -> Cost<'a>,
        room: usize,
    ) -> bool {
        let mut lanes = lanes.iter_mut().enumerate();
        lanes.any(|(index, lane)| lane.channel.next_bits(moment, &cost(index)).is_some_and(|bits| bits > room))
    }

    /// A packet of its own, in fragments, for a message that no packet of `room` bits holds; false when there is
    /// none.
    pub(super) fn fill_large<'a>(
        &mut self,
        lanes: &mut [Lane],
        moment: &Moment,
        cost: impl Fn(usize) -> Cost<'a>,
        room: usize,
    ) -> bool {
        let turn = self.turn;
        self.turn = self.turn.wrapping_add(1);
        let count = lanes.len();
        (0..count).map(|i| (turn + i) % count).any(|index| {
            let (lane, cost) = (&mut lanes[index], cost(index));
            let needed = lane.channel.next_bits(moment, &cost).filter(|needed| *needed > room);
            needed.is_some_and(|needed| lane.select(moment, &cost, needed, &mut { needed }) > 0)
        })
    }
}

impl Lane {
    /// Puts what several selections took into the order of ids: receivers go through a packet in order.
    fn sort(&mut self) {
        let Some(&Selected { prefix: Prefix::Id(first), .. }) = self.selected.first() else { return };
        let ahead = |selected: &Selected| match selected.prefix {
            Prefix::Id(id) => distance(id, first),
            _ => 0,
        };
        if !self.selected.is_sorted_by_key(ahead) {
            self.selected.sort_by_key(ahead);
        }
    }
}
