//! The sending half of a reliable channel, as in the article "Reliable Ordered Messages": messages in a queue, which
//! ride in packets until a packet with them is acked, and the room in the peer's window.
//!
//! Promises: each message exactly once, however bad the network, as long as the connection lives. The sender never
//! goes beyond the window that both sides know, because the receiver reports how far its application has read
//! ("credit").
//!
//! A message is resent after a fixed time (the article's), or, adaptively, when all packets that carry it are lost
//! (later ones were acked), or after a timeout from RTT and its variance that doubles with each try, and then in two
//! packets. The first copies may go out early, a tick apart.
//!
//! A large message goes in fragments, oldest message first, each with its own copies (`fragments.rs`). Fragments have
//! no early copies, and are resent in one packet.

use std::collections::VecDeque;

use super::blocks;
use super::fragments::SendFragments;
use super::outgoing::Outgoing;
use super::reliable_receiver::Window;
use super::resend::Copies;
use super::{
    ChannelFault, ChannelStats, Filling, Prefix, ResendTimer, Selected, SendContext, SendError, Sending,
    Submission,
};
use crate::store::sequence::distance;
use crate::time::Instant;
use crate::transport::parts::fragment_of;
use crate::transport::protocol::{Cost, Resend};

/// How many messages that don't fit into the rest of a packet are passed over in search of one that does.
const MAX_MISFITS: usize = 16;

/// Messages sent and not acked, oldest first, and the room in the receiver's window.
#[derive(Debug)]
pub(crate) struct ReliableSender {
    capacity: usize,
    window: usize,
    window_bytes: usize,
    credit: bool,
    resend: Resend,
    /// `queue[i]` is message `oldest + i`. The front is unacked.
    queue: VecDeque<Outgoing>,
    /// Counted without wrapping, and so are marks: a late ack must not pass for that of a message a lap on.
    oldest: u64,
    /// The peer's application has taken every message before this one.
    peer_unread: u64,
    /// Window bytes of the messages `peer_unread .. oldest`: acked, and in the peer's buffer for all we know.
    unread_sizes: VecDeque<u32>,
    unread_bytes: usize,
    /// Messages that were sent and owe copies.
    owing: usize,
    scan: Scan,
    /// The newest packet with credit.
    newest_credit: u64,
    stats: ChannelStats,
}

/// The beginning of the queue has nothing to send at this moment: composing many packets need not go through it for
/// each. Whatever may change that resets it.
#[derive(Debug, Default)]
struct Scan {
    at: Option<Instant>,
    messages: usize,
    /// Window bytes of the messages that the peer has not taken, these included.
    bytes: usize,
}

impl Filling<'_> {
    /// Adds the fragments that are due and fit.
    fn add_fragments(
        &mut self,
        mark: u64,
        outgoing: &mut Outgoing,
        resend: Resend,
        stats: &mut ChannelStats,
    ) {
        let (context, cost) = (self.context, self.cost);
        while let Some((index, bits)) =
            outgoing.next_fragment(context, cost, resend, self.bits_left.saturating_sub(self.used))
        {
            self.used += bits;
            self.selected.extend(outgoing.track_fragment(mark, index, context.now, cost, stats));
        }
    }
}

impl ReliableSender {
    pub(super) fn new(capacity: usize, window: Window, resend: Resend) -> Self {
        ReliableSender {
            capacity,
            window: window.messages,
            window_bytes: if window.credit { window.bytes } else { usize::MAX },
            credit: window.credit,
            resend,
            queue: VecDeque::new(),
            oldest: 0,
            peer_unread: 0,
            unread_sizes: VecDeque::new(),
            unread_bytes: 0,
            owing: 0,
            scan: Scan::default(),
            newest_credit: 0,
            stats: ChannelStats::default(),
        }
    }

    /// Adds the messages that are due, or copies that may go early.
    fn fill(&mut self, filling: &mut Filling<'_>, early: bool) {
        let (resend, context, cost) = (self.resend, filling.context, filling.cost);
        let (mut misfits, mut previous, mut owing) = (0, None, self.owing);
        // The messages at the beginning that go: at this moment they are not due again.
        let (mut gone, mut gone_bytes, mut all_gone) = (0, 0, true);
        let (sendable, stats) = self.sendable(context.now);
        for (mark, outgoing) in sendable {
            if outgoing.is_cut(cost) {
                all_gone = false;
                // Small later messages may fit where this one doesn't.
                filling.add_fragments(mark, outgoing, resend, stats);
                continue;
            }
            let due = outgoing.due(context, resend, early);
            let Some(Submission { message, .. }) = outgoing.submission.as_ref().filter(|_| due) else {
                all_gone = false;
                continue;
            };
            if filling.selected.len() >= cost.max_messages {
                break;
            }
            let id = mark as u16;
            let bits = cost.message(message) + cost.id(previous, id);
            if !filling.has_room(bits) {
                all_gone = false;
                misfits += 1;
                if misfits > MAX_MISFITS {
                    break;
                }
                continue;
            }
            previous = Some(id);
            stats.count_sent(message, outgoing.copies.sent > 0);
            filling.push(bits, Prefix::Id(id), message.clone(), mark);
            owing -= usize::from(outgoing.owes());
            outgoing.track_sent(context.now, resend);
            owing += usize::from(outgoing.owes());
            if all_gone {
                gone += 1;
                gone_bytes += outgoing.window_bytes as usize;
            }
        }
        self.owing = owing;
        self.scan.messages += gone;
        self.scan.bytes += gone_bytes;
    }

    /// Messages from the oldest on that the receiver's window has room for, bytes aside.
    fn room(&self) -> usize {
        self.window - (self.oldest - self.peer_unread) as usize
    }

    /// The messages, acked ones among them, that the receiver surely has room for, by their marks; without those at the
    /// beginning that have nothing to send at this moment. With the stats, to count those that are sent.
    fn sendable(&mut self, now: Instant) -> (impl Iterator<Item = (u64, &mut Outgoing)>, &mut ChannelStats) {
        if self.scan.at != Some(now) {
            self.scan = Scan { at: Some(now), messages: 0, bytes: self.unread_bytes };
        }
        let room = self.room();
        let Scan { messages, mut bytes, .. } = self.scan;
        let (oldest, window_bytes) = (self.oldest, self.window_bytes);
        let queued = self.queue.iter_mut().enumerate().take(room).skip(messages);
        let sendable = queued.map_while(move |(i, outgoing)| {
            bytes += outgoing.window_bytes as usize;
            (bytes <= window_bytes && !outgoing.has_block()).then(|| (oldest + i as u64, outgoing))
        });
        (sendable, &mut self.stats)
    }

    /// A message that isn't acked and popped; the caller may change when it is due.
    fn find(&mut self, mark: u64) -> Option<&mut Outgoing> {
        self.scan.at = None;
        let index = usize::try_from(mark.checked_sub(self.oldest)?).ok()?;
        self.queue.get_mut(index)
    }

    /// A message was acked: the first ack of it is its delivery.
    fn note_acked(&mut self, now: Instant, mark: u64) -> Option<u32> {
        let outgoing = self.find(mark)?;
        let owed = outgoing.owes();
        let submission = outgoing.submission.as_ref()?;
        let (notify, waited) = (submission.options.notify_tag(), now - submission.at);
        // Dropped in place: to take it out would move its bytes.
        outgoing.submission = None;
        outgoing.fragments = None;
        self.owing -= usize::from(owed);
        self.stats.count_delivered(waited);
        notify
    }

    /// Removes the acked messages at the beginning of the queue.
    fn pop_acked(&mut self) {
        let acked = self.queue.iter().take_while(|outgoing| outgoing.submission.is_none()).count();
        if acked == 0 {
            return;
        }
        self.scan.at = None;
        self.oldest += acked as u64;
        if self.credit {
            let sizes = self.queue.range(..acked).map(|outgoing| outgoing.window_bytes);
            self.unread_bytes += sizes.clone().map(|bytes| bytes as usize).sum::<usize>();
            self.unread_sizes.extend(sizes);
        } else {
            self.peer_unread = self.oldest;
        }
        self.queue.drain(..acked);
    }

    /// Checks that the peer can have taken every message before `unread`, as packet `arrival` claims: all of them were
    /// sent. Asked before anything of the packet is applied.
    pub(crate) fn check_credit(&self, unread: u16, arrival: u64) -> Result<(), ChannelFault> {
        if arrival < self.newest_credit {
            return Ok(());
        }
        let taken = usize::try_from(distance(unread, self.peer_unread as u16)).unwrap_or(0);
        let queued = taken.saturating_sub(self.unread_sizes.len());
        let sent = self.queue.iter().take(queued).take_while(|outgoing| outgoing.was_sent()).count();
        if sent == queued { Ok(()) } else { Err(ChannelFault::Window) }
    }

    /// The peer's application has taken every message before `unread`: so they are delivered, whatever the acks were.
    /// `arrival` is the number of the packet, as for [`Receiving::handle`](super::Receiving::handle).
    pub(crate) fn handle_credit(
        &mut self,
        now: Instant,
        unread: u16,
        arrival: u64,
        delivered: &mut dyn FnMut(u32),
    ) -> Result<(), ChannelFault> {
        // An older packet has no news, and its number may be more than half of all numbers old.
        if arrival < self.newest_credit {
            return Ok(());
        }
        self.newest_credit = arrival;
        self.check_credit(unread, arrival)?;
        let taken = usize::try_from(distance(unread, self.peer_unread as u16)).unwrap_or(0);
        let unacked = taken.saturating_sub(self.unread_sizes.len()) as u64;
        let marks = self.oldest..self.oldest + unacked;
        marks.filter_map(|mark| self.note_acked(now, mark)).for_each(delivered);
        self.pop_acked();
        let sizes = self.unread_sizes.drain(..taken);
        self.unread_bytes -= sizes.map(|bytes| bytes as usize).sum::<usize>();
        self.peer_unread += taken as u64;
        self.scan.at = None;
        Ok(())
    }

    /// A packet with a fragment of the message of this mark was acked.
    pub(crate) fn handle_fragment_ack(&mut self, now: Instant, mark: u64, index: usize) -> Option<u32> {
        let fragments = self.find(mark).and_then(|outgoing| outgoing.fragments.as_mut());
        let delivered = fragments.is_some_and(|fragments| fragments.handle_ack(index));
        if delivered { self.handle_ack(now, mark) } else { None }
    }

    /// A packet with a fragment of the message of this mark is lost. It may yet be acked.
    pub(crate) fn handle_fragment_lost(&mut self, mark: u64, index: usize) {
        if let Some(fragments) = self.find(mark).and_then(|outgoing| outgoing.fragments.as_mut()) {
            fragments.handle_lost(index);
        }
    }

    /// The next fragment of the block at the beginning of the queue and its bits, if there is one and it is due: only
    /// yojimbo's framing has blocks.
    pub(super) fn select_block_fragment(
        &mut self,
        context: &SendContext,
        cost: Cost<'_>,
        bits_left: usize,
    ) -> Option<(Selected, usize)> {
        let mark = self.oldest;
        let outgoing = self.queue.front_mut()?;
        let message = outgoing.submission.as_ref()?.message.clone();
        let block = message.block.as_ref()?;
        let count = block.len().div_ceil(cost.fragment_bytes);
        let fragments = outgoing.fragments.get_or_insert_with(|| Box::new(SendFragments::new(count)));
        let timeout = context.resend.timeout.max(blocks::MIN_RESEND_TIMEOUT);
        let timer = ResendTimer { timeout, ..context.resend };
        let index = fragments.next(context.now, timer, blocks::RESEND)?;
        let bits = cost.block_fragment(&message, index);
        if bits > bits_left {
            return None;
        }
        let again = fragments.track_sent(index, context.now);
        self.stats.sent += u64::from(index == 0 && !again);
        self.stats.resent += u64::from(again);
        self.stats.bytes_sent += fragment_of(block, index, cost.fragment_bytes).len() as u64;
        let fragment = Some(index as u16);
        Some((Selected { prefix: Prefix::Id(mark as u16), message, mark, fragment }, bits))
    }
}

impl Sending for ReliableSender {
    fn send(&mut self, submission: Submission) -> Result<Option<u32>, SendError> {
        if self.queue.len() >= self.capacity {
            return Err(SendError::Full { capacity: self.capacity });
        }
        let window_bytes = submission.message.window_bytes() as u32;
        let submission = Some(submission);
        let copies = Copies::default();
        self.queue.push_back(Outgoing { submission, window_bytes, copies, owed: 0, fragments: None });
        Ok(None)
    }

    /// Oldest first, and early copies after everything that must be sent. Messages that don't fit are skipped, so a
    /// large one does not hold up small ones.
    fn select(&mut self, filling: &mut Filling<'_>) {
        self.fill(filling, false);
        if self.owing > 0 {
            self.fill(filling, true);
        }
    }

    fn next_bits(&mut self, context: &SendContext, cost: Cost<'_>) -> Option<usize> {
        let resend = self.resend;
        let (mut passed, mut bytes) = (0, 0);
        let mut first = None;
        for (mark, outgoing) in self.sendable(context.now).0 {
            if outgoing.is_cut(cost) {
                first = outgoing
                    .next_fragment(context, cost, resend, usize::MAX)
                    .map(|(_, bits)| cost.entry + bits);
                if first.is_some() {
                    break;
                }
                passed += 1;
                bytes += outgoing.window_bytes as usize;
                continue;
            }
            let due = outgoing.due(context, resend, false) || outgoing.due(context, resend, true);
            if let Some(Submission { message, .. }) = outgoing.submission.as_ref().filter(|_| due) {
                first = Some(cost.entry + cost.id(None, mark as u16) + cost.message(message));
                break;
            }
            passed += 1;
            bytes += outgoing.window_bytes as usize;
        }
        self.scan.messages += passed;
        self.scan.bytes += bytes;
        first
    }

    fn next_deadline(&self, timer: ResendTimer) -> Instant {
        let mut bytes = self.unread_bytes;
        let has_credit = |outgoing: &&Outgoing| {
            bytes += outgoing.window_bytes as usize;
            bytes <= self.window_bytes
        };
        let sendable = self.queue.iter().take(self.room()).take_while(has_credit);
        let unacked = sendable.filter(|outgoing| outgoing.submission.is_some());
        let due = unacked.map(|outgoing| outgoing.due_at(timer, self.resend));
        due.min().unwrap_or(Instant::NEVER)
    }

    fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    fn handle_ack(&mut self, now: Instant, mark: u64) -> Option<u32> {
        let notify = self.note_acked(now, mark);
        self.pop_acked();
        notify
    }

    fn handle_acks(&mut self, now: Instant, first: u64, count: u16, delivered: &mut dyn FnMut(u32)) {
        let marks = first..first + u64::from(count);
        marks.filter_map(|mark| self.note_acked(now, mark)).for_each(delivered);
        self.pop_acked();
    }

    fn handle_lost(&mut self, mark: u64) -> Option<u32> {
        if let Some(outgoing) = self.find(mark) {
            outgoing.copies.handle_lost();
        }
        None
    }

    fn abandon_all(&mut self, lost: &mut dyn FnMut(u32)) {
        let open = self.queue.drain(..).filter_map(|outgoing| outgoing.submission);
        open.filter_map(|submission| submission.options.notify_tag()).for_each(lost);
    }

    fn stats(&self) -> ChannelStats {
        ChannelStats { queued: self.queue.len(), ..self.stats }
    }
}
