//! One packet's room, divided among the channels.
//!
//! Strict channels come first, in their order, and leave a tenth of each packet to the others while these have
//! something due. The others share what is left by weight; what one doesn't use passes on.
//!
//! Promises: nobody starves. The tenth is owed: what strict channels' packets could not give (a message or fragment larger
//! than the tenth) adds up until it is enough, and so does each weighted channel's share of it. A channel of weight w
//! among channels of weight W together gets at least w / W of a tenth of what is sent, a packet more or less.

use super::{Channel, CreditMark, Fate, Moment};
use crate::store::sequence::distance;
use crate::transport::message::{Prefix, Received, Selected};
use crate::transport::protocol::{Cost, Share};

/// The part of each packet that strict channels leave while others have something due: one in this many.
const RESERVED: usize = 10;

/// A channel and what the packet being composed takes from it. One that had nothing to send, to credit or to be read isn't
/// asked again before it is touched: of many channels most are quiet in a tick, and far from the processor's cache.
#[derive(Debug)]
pub(in crate::transport) struct Lane {
    channel: Box<dyn Channel>,
    quiet: Quiet,
    pub(in crate::transport) selected: Vec<Selected>,
    share: Share,
    /// What a weighted channel was served, in bits over its weight (the virtual time of start-time fair queueing,
    /// Goyal, Vin and Cheng 1996).
    served: u64,
}

/// What a channel said that holds until it is touched.
#[derive(Debug, Default)]
struct Quiet {
    /// It rests: see [`Channel::rests`].
    sending: bool,
    /// Likewise after the end of a tick.
    tick: bool,
    /// There is nothing to be read.
    reading: bool,
    /// No credit is due.
    crediting: bool,
}

/// What strict channels owe the others.
#[derive(Debug, Default)]
pub(in crate::transport) struct StreamManager {
    /// Bits that weighted channels have not had of their tenths, while they have something due.
    owed: usize,
    /// What the weighted channel was served that was served last: one that was silent begins here.
    virtual_time: u64,
    /// Which channel comes first for a packet of its own.
    turn: usize,
}

/// Bits that a weighted channel gets in a row: some messages, so that choosing costs little.
const QUANTUM: usize = 1_200;

/// Parts of a bit that virtual time counts, so that division by weights loses little.
const SCALE: u64 = 1_024;

impl Lane {
    pub(in crate::transport) fn new(channel: Box<dyn Channel>, share: Share) -> Self {
        Lane { channel, quiet: Quiet::default(), selected: Vec::new(), share, served: 0 }
    }

    /// The channel, to ask it.
    pub(in crate::transport) fn channel(&self) -> &dyn Channel {
        &*self.channel
    }

    /// The channel, for whatever may change what there is to send, to credit or to be read.
    pub(in crate::transport) fn touch(&mut self) -> &mut dyn Channel {
        self.quiet = Quiet::default();
        &mut *self.channel
    }

    /// Whether it has nothing to send: see [`Channel::rests`].
    pub(in crate::transport) fn rests(&mut self) -> bool {
        self.quiet.sending = self.quiet.sending || self.channel.rests();
        self.quiet.sending
    }

    /// As [`Channel::end_of_tick`].
    pub(in crate::transport) fn end_of_tick(&mut self, dropped: &mut dyn FnMut(Fate)) {
        if !self.quiet.tick {
            self.channel.end_of_tick(dropped);
            self.quiet.tick = self.channel.rests();
        }
    }

    /// As [`Channel::credit_due`].
    pub(in crate::transport) fn credit_due(&mut self) -> Option<CreditMark> {
        let due = if self.quiet.crediting { None } else { self.channel.credit_due() };
        self.quiet.crediting = due.is_none();
        due
    }

    /// As [`Channel::has_received`].
    pub(in crate::transport) fn has_received(&self) -> bool {
        !self.quiet.reading && self.channel.has_received()
    }

    /// As [`Channel::poll_received`].
    pub(in crate::transport) fn poll_received(&mut self) -> Option<Received> {
        if self.quiet.reading {
            return None;
        }
        let received = self.channel.poll_received();
        // What was read is to be credited.
        self.quiet = Quiet {
            reading: received.is_none(),
            crediting: received.is_none() && self.quiet.crediting,
            ..self.quiet
        };
        received
    }

    /// As [`Channel::next_bits`].
    pub(in crate::transport) fn next_bits(&mut self, moment: &Moment, cost: Cost<'_>) -> Option<usize> {
        self.channel.next_bits(moment, cost)
    }

    /// Selects within `limit`, and takes it off what is left of the packet.
    fn select(&mut self, moment: &Moment, cost: Cost<'_>, limit: usize, left: &mut usize) -> usize {
        let used = self.channel.select(moment, cost, limit.min(*left), &mut self.selected);
        debug_assert!(used <= *left);
        *left -= used;
        used
    }

    /// The bits that the first message due of a weighted channel needs.
    fn weighted_need(&mut self, moment: &Moment, cost: Cost<'_>) -> Option<usize> {
        if self.share.strict { None } else { self.next_bits(moment, cost) }
    }
}

/// The lanes that have something to send, now or later.
pub(in crate::transport) fn busy(lanes: &mut [Lane]) -> impl Iterator<Item = (usize, &mut Lane)> {
    lanes.iter_mut().enumerate().filter_map(|(index, lane)| (!lane.rests()).then_some((index, lane)))
}

impl StreamManager {
    /// Fills a packet of `room` bits from the lanes; true when there is anything in it.
    pub(in crate::transport) fn fill<'a>(
        &mut self,
        lanes: &mut [Lane],
        moment: &Moment,
        cost: impl Fn(usize) -> Cost<'a>,
        room: usize,
    ) -> bool {
        let mut left = room;
        let needs = busy(lanes).filter_map(|(index, lane)| lane.weighted_need(moment, cost(index)));
        let need = needs.min();
        let weighted = need.is_some();
        self.owed = if weighted { (self.owed + room / RESERVED).min(room) } else { 0 };

        // While it isn't enough for anybody it is only counted: half a message is no use to them, and would keep out one of a
        // strict channel.
        let enough = need.is_some_and(|need| need <= self.owed);
        let mut unreserved = if enough { room - self.owed } else { room };
        for (index, lane) in busy(lanes).filter(|(_, lane)| lane.share.strict) {
            unreserved -= lane.select(moment, cost(index), unreserved, &mut left);
        }
        let shared = left;
        if weighted {
            self.fill_weighted(lanes, moment, &cost, room, &mut left);
        }
        self.owed = self.owed.saturating_sub(shared - left);
        // What the weighted channels leave passes back to the strict ones.
        for (index, lane) in busy(lanes).filter(|(_, lane)| lane.share.strict) {
            let limit = left;
            lane.select(moment, cost(index), limit, &mut left);
        }
        lanes.iter_mut().for_each(Lane::sort);
        left < room
    }

    /// Serves whichever weighted channel was served least, until nothing more fits.
    fn fill_weighted<'a>(
        &mut self,
        lanes: &mut [Lane],
        moment: &Moment,
        cost: &impl Fn(usize) -> Cost<'a>,
        room: usize,
        left: &mut usize,
    ) {
        let shared = *left;
        let mut passed_over = 0u64;
        loop {
            let next = busy(lanes).filter(|(index, _)| passed_over >> index & 1 == 0);
            let next = next.filter_map(|(index, lane)| {
                let need = lane.weighted_need(moment, cost(index))?;
                lane.served = lane.served.max(self.virtual_time);
                Some((lane.served, index, need))
            });
            let mut waiting = 0;
            let Some((served, index, need)) = next.inspect(|_| waiting += 1).min() else { return };
            if need > *left {
                if need > shared && need <= room {
                    // Strict channels left too little: what is owed must add up, so nobody may use it up.
                    return;
                }
                passed_over |= 1 << index;
                continue;
            }
            let lane = &mut lanes[index];
            // Alone, it needn't take turns.
            let limit = if waiting == 1 { *left } else { need.max(QUANTUM) };
            let used = lane.select(moment, cost(index), limit, left) as u64;
            if used == 0 {
                passed_over |= 1 << index;
            }
            lane.served += used * SCALE / u64::from(lane.share.weight);
            // What goes where nobody else's message fits takes nothing from those whose turn it was.
            if passed_over == 0 {
                self.virtual_time = served;
            }
        }
    }

    /// Whether a message is due that no packet of `room` bits holds.
    pub(in crate::transport) fn large_due<'a>(
        &self,
        lanes: &mut [Lane],
        moment: &Moment,
        cost: impl Fn(usize) -> Cost<'a>,
        room: usize,
    ) -> bool {
        busy(lanes).any(|(index, lane)| lane.next_bits(moment, cost(index)).is_some_and(|bits| bits > room))
    }

    /// A packet of its own, in fragments, for a message that no packet of `room` bits holds; false when there is
    /// none.
    pub(in crate::transport) fn fill_large<'a>(
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
            let needed = lane.next_bits(moment, cost).filter(|needed| *needed > room);
            needed.is_some_and(|needed| lane.select(moment, cost, needed, &mut { needed }) > 0)
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
