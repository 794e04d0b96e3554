//! Redundant: each message rides in several packets, so that a lost one costs no time: player input. The Tribes model
//! calls it "guaranteed quickest" when every packet carries everything that is not acked.
//!
//! Promises: each message at most once, in order; a gap (all packets with a message were lost) is counted, and
//! reported with the message after it. Messages leave in order, as many as there is room for. Refuses to wait: a
//! message that arrives after a newer one is dropped.
//!
//! An id may jump by half of all ids: those between count as missed, and the peer has skipped its own messages.

use core::time::Duration;
use std::collections::VecDeque;

use super::receive_queue::ReceiveQueue;
use super::{
    ChannelFault, ChannelStats, Filling, Prefix, Receiving, ResendTimer, SendContext, SendError, Sending,
    Submission,
};
use crate::store::sequence::distance;
use crate::time::Instant;
use crate::transport::message::Received;
use crate::transport::protocol::Cost;

/// How far apart copies go out while the game doesn't tick.
const WITHOUT_TICK: Duration = Duration::from_millis(100);

/// Messages that may be missing before one in a packet that others have overtaken.
const MAX_LATE_MISSED: u16 = 4096;

#[derive(Debug)]
pub(super) struct Redundant {
    capacity: usize,
    /// Packets that carry each message; 0 for as many as needed until one is acked.
    copies: u32,
    /// `queue[i]` is message `oldest + i`.
    queue: VecDeque<Outgoing>,
    /// Counted without wrapping, and so are marks: a late ack must not pass for that of a message a lap on.
    oldest: u64,
    received: ReceiveQueue,
    /// The next message expected.
    next: u16,
    /// The newest packet with messages.
    newest: u64,
    stats: ChannelStats,
}

#[derive(Debug)]
struct Outgoing {
    submission: Submission,
    copies: u32,
    in_flight: u32,
    last_sent: Option<Instant>,
    acked: bool,
}

impl Redundant {
    pub(super) fn new(capacity: usize, copies: u8, receive_queue: usize) -> Self {
        Redundant {
            capacity,
            copies: copies.into(),
            queue: VecDeque::new(),
            oldest: 0,
            received: ReceiveQueue::new(receive_queue),
            next: 0,
            newest: 0,
            stats: ChannelStats::default(),
        }
    }

    fn find(&mut self, mark: u64) -> Option<&mut Outgoing> {
        let index = usize::try_from(mark.checked_sub(self.oldest)?).ok()?;
        self.queue.get_mut(index)
    }

    /// The place of the oldest message that was never sent: all after it weren't either.
    fn first_fresh(&self) -> usize {
        self.queue.partition_point(|outgoing| outgoing.copies > 0)
    }

    /// Forgets the messages for which nothing more will be done.
    fn pop_finished(&mut self) {
        let copies = self.copies;
        while self.queue.front().is_some_and(|outgoing| outgoing.acked || outgoing.spent(copies)) {
            self.queue.pop_front();
            self.oldest += 1;
        }
    }
}

impl Outgoing {
    /// Whether all its packets were sent and none is in flight any more.
    fn spent(&self, copies: u32) -> bool {
        copies > 0 && self.copies >= copies && self.in_flight == 0
    }

    /// Once a tick, as long as copies are owed; and when no tick comes, now and then.
    fn due(&self, context: &SendContext, copies: u32) -> bool {
        let owed = copies == 0 || self.copies < copies;
        let waited = self.last_sent.is_none_or(|sent| match context.tick {
            true => sent != context.now,
            false => context.now - sent >= WITHOUT_TICK,
        });
        !self.acked && owed && waited
    }
}

impl Sending for Redundant {
    fn send(&mut self, submission: Submission) -> Result<Option<u32>, SendError> {
        if self.queue.len() >= self.capacity {
            return Err(SendError::Full { capacity: self.capacity });
        }
        let outgoing = Outgoing { submission, copies: 0, in_flight: 0, last_sent: None, acked: false };
        self.queue.push_back(outgoing);
        Ok(None)
    }

    /// First those never sent, from the oldest on, as the receiver drops what comes after a newer one; then, as far as
    /// there is room, copies of the newest before them, which ride in front.
    fn select(&mut self, filling: &mut Filling<'_>) {
        let Filling { context, cost, bits_left, .. } = *filling;
        let id = |index: usize| (self.oldest + index as u64) as u16;
        let fresh = self.first_fresh();
        // Whichever is first in the entry has its id whole.
        let (mut used, mut first, mut end) = (cost.entry, fresh, fresh);
        for (index, outgoing) in self.queue.iter().enumerate().skip(fresh) {
            let step = if end > fresh { cost.id(Some(id(end - 1)), id(index)) } else { 0 };
            let bits = cost.message(&outgoing.submission.message) + step;
            if used + bits + cost.id(None, id(fresh)) > bits_left {
                break;
            }
            used += bits;
            end = index + 1;
        }
        let mut newer = (end > fresh).then_some(fresh);
        for (index, outgoing) in self.queue.iter().enumerate().take(fresh).rev() {
            if !outgoing.due(context, self.copies) {
                continue;
            }
            let step = newer.map_or(0, |newer| cost.id(Some(id(index)), id(newer)));
            let bits = cost.message(&outgoing.submission.message) + step;
            if used + bits + cost.id(None, id(index)) > bits_left {
                break;
            }
            used += bits;
            newer = Some(index);
            first = index;
        }
        for (index, outgoing) in self.queue.iter_mut().enumerate().take(end).skip(first) {
            if !outgoing.due(context, self.copies) {
                continue;
            }
            let mark = self.oldest + index as u64;
            let message = outgoing.submission.message.clone();
            self.stats.count_sent(&message, outgoing.copies > 0);
            outgoing.copies += 1;
            outgoing.in_flight += 1;
            outgoing.last_sent = Some(context.now);
            filling.push(0, Prefix::Id(mark as u16), message, mark);
        }
        filling.used = used + cost.id(None, 0);
    }

    fn next_bits(&mut self, context: &SendContext, cost: Cost<'_>) -> Option<usize> {
        let copy = || self.queue.iter().rev().find(|outgoing| outgoing.due(context, self.copies));
        let next = self.queue.get(self.first_fresh()).or_else(copy)?;
        Some(cost.entry + cost.id(None, 0) + cost.message(&next.submission.message))
    }

    /// Copies go out a tick apart: only a message that was never sent is due of itself.
    fn next_deadline(&self, _: ResendTimer) -> Instant {
        let fresh = self.queue.back().is_some_and(|newest| newest.copies == 0);
        if fresh { Instant::ZERO } else { Instant::NEVER }
    }

    fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    fn handle_ack(&mut self, now: Instant, mark: u64) -> Option<u32> {
        let copies = self.copies;
        // A spent message was reported, but may still be here, after an older one.
        let open = |outgoing: &&mut Outgoing| !outgoing.acked && !outgoing.spent(copies);
        let outgoing = self.find(mark).filter(open)?;
        outgoing.acked = true;
        let (latency, notify) = (now - outgoing.submission.at, outgoing.submission.options.notify_tag());
        self.stats.count_delivered(latency);
        self.pop_finished();
        notify
    }

    fn handle_lost(&mut self, mark: u64) -> Option<u32> {
        let copies = self.copies;
        let outgoing = self.find(mark)?;
        outgoing.in_flight = outgoing.in_flight.saturating_sub(1);
        if outgoing.acked || !outgoing.spent(copies) {
            return None;
        }
        let notify = outgoing.submission.options.notify_tag();
        self.stats.lost += 1;
        self.pop_finished();
        notify
    }

    fn abandon_all(&mut self, lost: &mut dyn FnMut(u32)) {
        let copies = self.copies;
        let open = self.queue.drain(..).filter(|outgoing| !outgoing.acked && !outgoing.spent(copies));
        open.filter_map(|outgoing| outgoing.submission.options.notify_tag()).for_each(lost);
    }

    fn stats(&self) -> ChannelStats {
        ChannelStats { queued: self.queue.len(), ..self.stats }
    }
}

impl Receiving for Redundant {
    fn handle(
        &mut self,
        prefix: Prefix,
        arrival: u64,
        message: Received,
    ) -> Result<Option<Received>, ChannelFault> {
        let Prefix::Id(id) = prefix else { return Err(ChannelFault::Window) };
        // In a packet older than others, an id far ahead is in fact more than half of all ids old.
        let late = arrival < self.newest;
        self.newest = self.newest.max(arrival);
        let missed = u16::try_from(distance(id, self.next)).ok();
        let Some(missed) = missed.filter(|missed| !late || *missed < MAX_LATE_MISSED) else {
            self.stats.duplicates += 1;
            return Ok(Some(message));
        };
        self.stats.missed += u64::from(missed);
        self.stats.received += 1;
        self.next = id.wrapping_add(1);
        let message = Received { missed, ..message };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::message::{Message, SendOptions};
    use crate::transport::protocol::{Body, ChannelConfig, MessageType, Protocol};
    use crate::wire::{BitSink, BitWriter};

    #[test]
    fn a_late_ack_of_what_was_told_as_lost_tells_nothing_while_it_is_behind_an_open_message() {
        let input = MessageType { name: "Input".into(), body: Body::Opaque { max_bytes: 8 } };
        let protocol = Protocol::new(vec![input], vec![ChannelConfig::unreliable()]).unwrap();
        let mut channel = Redundant::new(8, 2, 8);
        let mut selected = Vec::new();
        for tick in 0..3 {
            let now = Instant::from_millis(16 * tick);
            if tick < 2 {
                let mut writer = BitWriter::new();
                writer.bits(tick, 8);
                let options = SendOptions { tag: tick as u32, notify: true, ..SendOptions::default() };
                let message = Message::new(0, writer.encoded());
                channel.send(Submission { message, at: now, options }).unwrap();
            }
            let resend = ResendTimer { timeout: Duration::from_millis(100), not_before: Instant::ZERO };
            let context = SendContext { now, tick: true, resend, fills: false };
            let (cost, context) = (protocol.cost(0), &context);
            let selected = &mut selected;
            channel.select(&mut Filling { context, cost, bits_left: 8 * 1200, used: cost.entry, selected });
        }
        assert_eq!(selected.iter().map(|selected| selected.mark).collect::<Vec<_>>(), [0, 0, 1, 1]);
        let now = Instant::from_millis(100);
        // One packet of the first is in flight; both of the second are lost.
        assert_eq!(channel.handle_lost(0), None);
        assert_eq!(channel.handle_lost(1), None);
        assert_eq!(channel.handle_lost(1), Some(1));
        assert_eq!(channel.handle_ack(now, 1), None, "it was reported");
        assert_eq!(channel.handle_ack(now, 0), Some(0));
        let mut left = Vec::new();
        channel.abandon_all(&mut |fate| left.push(fate));
        assert_eq!((left, channel.stats.lost, channel.stats.delivered), (vec![], 1, 1));
    }
}
