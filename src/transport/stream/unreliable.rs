//! Unreliable: each message at most once (the packet layer drops duplicate packets), never resent. Messages that a
//! tick's packets can't carry are dropped, as are those that the application doesn't take before newer ones need
//! their place; both are counted.
//!
//! Sequenced: the same, and a message that arrives after a newer one is dropped: the newest wins. Messages go into
//! packets in the order they were sent, so the packets' order is the messages'.

use std::collections::VecDeque;

use super::receive_queue::ReceiveQueue;
use super::waiting::Waiting;
use super::{
    ChannelFault, ChannelStats, Fill, Filling, Prefix, Receiving, ResendTimer, SendContext, SendError,
    Sending, Submission,
};
use crate::time::Instant;
use crate::transport::candidates::{Candidate, Column, ColumnRequest};
use crate::transport::direct_tables::{DirectRoom, Placed};
use crate::transport::message::{Message, Received, SendOptions};
use crate::transport::protocol::Cost;
use crate::wire::BitWriter;

#[derive(Debug)]
pub(super) struct Unreliable {
    capacity: usize,
    waiting: Waiting<Submission>,
    received: ReceiveQueue,
    /// How many messages were placed directly, before those queued here; and whether the last one after them needs
    /// the place of one.
    pub(super) placed: usize,
    pushes_out: bool,
    /// Sequenced channels: the newest packet a message came in.
    newest: Option<u64>,
    sequenced: bool,
    /// A feature above has something to write, and wants room for at least this many bits: see [`Fill`](super::Fill).
    wanted: Option<usize>,
    /// Messages in flight, by mark from the oldest, with their notifications.
    in_flight: VecDeque<Option<InFlight>>,
    first_mark: u64,
    stats: ChannelStats,
}

#[derive(Debug)]
struct InFlight {
    submitted: Instant,
    notify: Option<u32>,
}

/// Messages in flight that are remembered; more get no notification.
const MAX_IN_FLIGHT: usize = 65_536;

impl Unreliable {
    pub(super) fn new(capacity: usize, receive_queue: usize, sequenced: bool) -> Self {
        Unreliable {
            capacity,
            waiting: Waiting::new(),
            received: ReceiveQueue::new(receive_queue),
            placed: 0,
            pushes_out: false,
            newest: None,
            wanted: None,
            sequenced,
            in_flight: VecDeque::new(),
            first_mark: 0,
            stats: ChannelStats::default(),
        }
    }

    /// A feature above has something to write, in a room of at least this many bits.
    pub(super) fn want(&mut self, least_bits: usize) {
        self.wanted = Some(least_bits);
    }

    /// Offers the rest of a packet to the feature above, as long as it writes. Returns a record of more bits than were
    /// offered, of which nothing is sent.
    pub(super) fn offer(
        &mut self,
        channel: usize,
        filling: &mut Filling<'_>,
        fill: &mut dyn Fill,
        writer: &mut BitWriter,
    ) -> Option<u32> {
        while let Some(least_bits) = self.wanted {
            let cost = filling.cost;
            // The entry is counted already.
            let room = cost.payload_in(filling.bits_left.saturating_sub(filling.used) + cost.entry);
            let room = room.filter(|room| *room >= least_bits)?;
            writer.clear();
            let record = fill.fill(channel, room, writer);
            let message = Message::new(0, writer.encoded());
            let too_large = message.encoded.bits() > room;
            let Some(record) = record.filter(|_| !too_large) else {
                self.wanted = None;
                return record;
            };
            let options = SendOptions { key: 0, tag: record, notify: true };
            let submission = Submission { message, at: filling.context.now, options };
            self.stats.count_sent(&submission.message, false);
            let mark = self.track_sent(&submission);
            filling.push(cost.message(&submission.message), Prefix::None, submission.message, mark);
        }
        None
    }

    fn track_sent(&mut self, submission: &Submission) -> u64 {
        if self.in_flight.len() == MAX_IN_FLIGHT {
            self.in_flight.pop_front();
            self.first_mark += 1;
        }
        let notify = submission.options.notify_tag();
        self.in_flight.push_back(Some(InFlight { submitted: submission.at, notify }));
        self.first_mark + self.in_flight.len() as u64 - 1
    }

    fn take_in_flight(&mut self, mark: u64) -> Option<InFlight> {
        let index = usize::try_from(mark.checked_sub(self.first_mark)?).ok()?;
        let taken = self.in_flight.get_mut(index)?.take();
        while matches!(self.in_flight.front(), Some(None)) {
            self.in_flight.pop_front();
            self.first_mark += 1;
        }
        taken
    }
}

impl Sending for Unreliable {
    fn send(&mut self, submission: Submission) -> Result<Option<u32>, SendError> {
        if self.waiting.len >= self.capacity {
            return Err(SendError::TickFull { capacity: self.capacity });
        }
        self.waiting.push(submission);
        Ok(None)
    }

    fn select(&mut self, filling: &mut Filling<'_>) {
        while let Some(submission) = self.waiting.front() {
            let bits = filling.cost.message(&submission.message);
            if !filling.has_room(bits) || filling.selected.len() >= filling.cost.max_messages {
                break;
            }
            let Some(submission) = self.waiting.pop() else { break };
            self.stats.count_sent(&submission.message, false);
            let mark = self.track_sent(&submission);
            filling.push(bits, Prefix::None, submission.message, mark);
        }
    }

    fn next_bits(&mut self, context: &SendContext, cost: Cost<'_>) -> Option<usize> {
        let waiting = self.waiting.front().map(|submission| cost.entry + cost.message(&submission.message));
        let wanted = self.wanted.filter(|_| context.fills);
        waiting.or(wanted.map(|least_bits| cost.payload(least_bits)))
    }

    fn next_deadline(&self, _: ResendTimer) -> Instant {
        // A feature's data waits for the tick.
        if self.waiting.is_empty() { Instant::NEVER } else { Instant::ZERO }
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.wanted.is_none()
    }

    fn is_drained(&self) -> bool {
        // A peer that is about to leave gets no more from features.
        self.waiting.is_empty() && self.in_flight.is_empty()
    }

    fn handle_ack(&mut self, now: Instant, mark: u64) -> Option<u32> {
        let taken = self.take_in_flight(mark)?;
        self.stats.count_delivered(now - taken.submitted);
        taken.notify
    }

    fn handle_lost(&mut self, mark: u64) -> Option<u32> {
        let taken = self.take_in_flight(mark)?;
        self.stats.lost += 1;
        taken.notify
    }

    fn abandon_all(&mut self, lost: &mut dyn FnMut(u32)) {
        let in_flight = self.in_flight.drain(..).flatten().filter_map(|in_flight| in_flight.notify);
        let waiting = self.waiting.drain().filter_map(|submission| submission.options.notify_tag());
        in_flight.chain(waiting).for_each(lost);
    }

    fn stats(&self) -> ChannelStats {
        ChannelStats { queued: self.waiting.len, ..self.stats }
    }
}

impl Receiving for Unreliable {
    fn handle(
        &mut self,
        _: Prefix,
        arrival: u64,
        message: Received,
    ) -> Result<Option<Received>, ChannelFault> {
        if self.sequenced && self.newest.is_some_and(|newest| arrival < newest) {
            self.stats.duplicates += 1;
            return Ok(Some(message));
        }
        self.newest = Some(arrival);
        self.stats.received += 1;
        if self.placed > 0 && self.placed + self.received.messages.len() >= self.received.capacity {
            self.placed -= 1;
            self.pushes_out = true;
            self.stats.dropped += 1;
        }
        let pushed_out = self.received.push(message);
        self.stats.dropped += u64::from(pushed_out.is_some());
        Ok(pushed_out)
    }

    fn received_memory(&self) -> usize {
        self.received.memory
    }

    fn has_received(&self) -> bool {
        !self.received.messages.is_empty()
    }

    fn poll_received(&mut self) -> Option<Received> {
        self.received.pop()
    }
}

impl Unreliable {
    /// Drops the messages that found no room in the tick's packets, and reports them.
    pub(crate) fn end_of_tick(&mut self, dropped: &mut dyn FnMut(u32)) {
        self.stats.dropped += self.waiting.len as u64;
        let waiting = self.waiting.drain();
        waiting.filter_map(|submission| submission.options.notify_tag()).for_each(dropped);
    }

    /// How many unordered messages are queued.
    pub(crate) fn candidates(&self) -> usize {
        if self.sequenced { 0 } else { self.waiting.len }
    }

    /// Appends the wanted attribute of each of them, in queue order.
    pub(crate) fn describe(&self, wanted: &ColumnRequest, column: &mut Column) {
        if !self.sequenced {
            column.extend(wanted, self.waiting.iter().map(Candidate::of));
        }
    }

    /// Sends them in the order of these scores, highest first, until the end of the tick: one for each of
    /// [`Unreliable::candidates`], taken off the front.
    pub(crate) fn prioritize(&mut self, scores: &mut &[f32]) {
        if !self.sequenced {
            self.waiting.prioritize(scores);
        }
    }

    /// Which messages of a packet needn't wait here if they are placed directly.
    pub(crate) fn direct_room(&self, arrival: u64) -> DirectRoom {
        let is_old = self.sequenced && self.newest.is_some_and(|newest| arrival < newest);
        // In order: while some wait, later ones wait too.
        let waits = is_old || !self.received.messages.is_empty();
        let messages = if waits { 0 } else { self.received.capacity.saturating_sub(self.placed) };
        DirectRoom { messages, first: None, window_bytes: usize::MAX }
    }

    /// These messages of a packet went there.
    pub(crate) fn note_placed(&mut self, arrival: u64, placed: &Placed) {
        self.newest = Some(arrival);
        self.placed += placed.count as usize;
        self.stats.received += u64::from(placed.count);
    }

    /// Whether the message that came last needs the place of the oldest of those.
    pub(crate) fn pushes_out(&mut self) -> bool {
        core::mem::take(&mut self.pushes_out)
    }
}
