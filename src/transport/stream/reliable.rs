//! Reliable channels, as in the article "Reliable Ordered Messages": messages ride in packets until a packet with
//! them is acked. Ordered ones are handed out in order, unordered ones on arrival.
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
use super::reliable_receiver::{CreditMark, Receiver, Window};
use super::resend::Copies;
use super::{
    BlockFragment, BlockLimits, ChannelStats, Desync, Fate, Fragment, FragmentFault, MessageFragment, Prefix,
    Receiving, ResendTimer, Selected, SendContext, SendError, Sending, Submission, WindowViolation,
};
use crate::store::sequence::distance;
use crate::time::Instant;
use crate::transport::direct_tables::{DirectRoom, Placed};
use crate::transport::message::Received;
use crate::transport::protocol::Cost;
use crate::transport::protocol::Resend;

/// How many messages that don't fit into the rest of a packet are passed over in search of one that does.
const MAX_MISFITS: usize = 16;

#[derive(Debug)]
pub(crate) struct Reliable {
    sender: Sender,
    receiver: Receiver,
    /// The newest packet with credit.
    newest_credit: u64,
    stats: ChannelStats,
}

/// Messages sent and not acked, oldest first, and the room in the receiver's window.
#[derive(Debug)]
struct Sender {
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

impl Reliable {
    pub(super) fn new(capacity: usize, ordered: bool, window: Window, resend: Resend) -> Self {
        Reliable {
            sender: Sender {
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
            },
            receiver: Receiver::new(ordered, window),
            newest_credit: 0,
            stats: ChannelStats::default(),
        }
    }
}

impl Sending for Reliable {
    fn send(&mut self, submission: Submission) -> Result<Fate, SendError> {
        if self.sender.queue.len() >= self.sender.capacity {
            return Err(SendError::Full { capacity: self.sender.capacity });
        }
        let window_bytes = submission.message.window_bytes() as u32;
        let submission = Some(submission);
        let outgoing =
            Outgoing { submission, window_bytes, copies: Copies::default(), owed: 0, fragments: None };
        self.sender.queue.push_back(outgoing);
        Ok(Fate::Open)
    }

    /// Oldest first, and early copies after everything that must be sent. Messages that don't fit are skipped, so a
    /// large one does not hold up small ones.
    fn select(
        &mut self,
        context: &SendContext,
        cost: Cost<'_>,
        bits_left: usize,
        selected: &mut Vec<Selected>,
    ) -> usize {
        let before = selected.len();
        let stats = &mut self.stats;
        let mut filling = Filling { context, cost, bits_left, used: cost.entry, selected, stats };
        self.sender.fill(&mut filling, false);
        if self.sender.owing > 0 {
            self.sender.fill(&mut filling, true);
        }
        let used = filling.used;
        if selected.len() == before { 0 } else { used }
    }

    fn next_bits(&mut self, context: &SendContext, cost: Cost<'_>) -> Option<usize> {
        let resend = self.sender.resend;
        let (mut passed, mut bytes) = (0, 0);
        let mut first = None;
        for (mark, outgoing) in self.sender.sendable(context.now) {
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
        self.sender.scan.messages += passed;
        self.sender.scan.bytes += bytes;
        first
    }

    fn next_deadline(&self, timer: ResendTimer) -> Instant {
        let mut bytes = self.sender.unread_bytes;
        let has_credit = |outgoing: &&Outgoing| {
            bytes += outgoing.window_bytes as usize;
            bytes <= self.sender.window_bytes
        };
        let sendable = self.sender.queue.iter().take(self.sender.room()).take_while(has_credit);
        let unacked = sendable.filter(|outgoing| outgoing.submission.is_some());
        let due = unacked.map(|outgoing| outgoing.due_at(timer, self.sender.resend));
        due.min().unwrap_or(Instant::NEVER)
    }

    fn is_idle(&self) -> bool {
        self.sender.queue.is_empty()
    }

    fn handle_ack(&mut self, now: Instant, mark: u64) -> Fate {
        let fate = self.note_acked(now, mark);
        self.sender.pop_acked();
        fate
    }

    fn handle_acks(&mut self, now: Instant, first: u64, count: u16, delivered: &mut dyn FnMut(Fate)) {
        for mark in first..first + u64::from(count) {
            let fate = self.note_acked(now, mark);
            if fate != Fate::Open {
                delivered(fate);
            }
        }
        self.sender.pop_acked();
    }

    fn handle_lost(&mut self, mark: u64) -> Fate {
        self.sender.scan.at = None;
        if let Some(outgoing) = self.sender.find(mark) {
            outgoing.copies.handle_lost();
        }
        Fate::Open
    }

    fn abandon_all(&mut self, lost: &mut dyn FnMut(Fate)) {
        let unacked = self.sender.queue.drain(..).filter_map(|outgoing| outgoing.submission);
        unacked.for_each(|submission| lost(submission.fate()));
    }

    fn stats(&self) -> ChannelStats {
        ChannelStats { queued: self.sender.queue.len(), ..self.stats }
    }
}

impl Receiving for Reliable {
    fn handle(
        &mut self,
        prefix: Prefix,
        arrival: u64,
        message: Received,
    ) -> Result<Option<Received>, WindowViolation> {
        let Prefix::Id(id) = prefix else { return Err(WindowViolation) };
        let duplicate = self.receiver.handle(id, arrival, message)?;
        *(if duplicate.is_some() { &mut self.stats.duplicates } else { &mut self.stats.received }) += 1;
        Ok(duplicate)
    }

    fn received_memory(&self) -> usize {
        self.receiver.memory()
    }

    fn has_received(&self) -> bool {
        self.receiver.has_next()
    }

    fn poll_received(&mut self) -> Option<Received> {
        self.receiver.poll()
    }
}

impl Reliable {
    /// A packet with a fragment of the message of this mark was acked.
    pub(crate) fn handle_fragment_ack(&mut self, now: Instant, mark: u64, index: usize) -> Fate {
        let fragments = self.sender.find(mark).and_then(|outgoing| outgoing.fragments.as_mut());
        let delivered = fragments.is_some_and(|fragments| fragments.handle_ack(index));
        if delivered { self.handle_ack(now, mark) } else { Fate::Open }
    }

    /// A packet with a fragment of the message of this mark is lost. It may yet be acked.
    pub(crate) fn handle_fragment_lost(&mut self, mark: u64, index: usize) {
        self.sender.scan.at = None;
        if let Some(fragments) = self.sender.find(mark).and_then(|outgoing| outgoing.fragments.as_mut()) {
            fragments.handle_lost(index);
        }
    }

    /// Whether [`Reliable::handle_credit`] would accept this: asked before anything of the packet is applied.
    pub(crate) fn check_credit(&self, unread: u16, arrival: u64) -> Result<(), WindowViolation> {
        if arrival < self.newest_credit { Ok(()) } else { self.sender.check_credit(unread) }
    }

    /// The peer's application has taken every message before `unread`: so they are delivered, whatever the acks were.
    /// `arrival` is the number of the packet, as for [`Receiving::handle`].
    pub(crate) fn handle_credit(
        &mut self,
        now: Instant,
        unread: u16,
        arrival: u64,
        delivered: &mut dyn FnMut(Fate),
    ) -> Result<(), WindowViolation> {
        // An older packet has no news, and its number may be more than half of all numbers old.
        if arrival < self.newest_credit {
            return Ok(());
        }
        self.newest_credit = arrival;
        let stats = &mut self.stats;
        self.sender.handle_credit(unread, |submission| {
            stats.count_delivered(now - submission.at);
            delivered(submission.fate());
        })
    }

    /// Checks that the windows allow a message: see `Stream::check`.
    pub(crate) fn check(
        &self,
        prefix: Prefix,
        arrival: u64,
        window_bytes: usize,
        claimed: &mut isize,
    ) -> Result<(), WindowViolation> {
        let Prefix::Id(id) = prefix else { return Err(WindowViolation) };
        self.receiver.check(id, arrival, window_bytes, claimed)
    }

    /// A fragment of a message from the peer, with its bytes; returns the message's body when it is complete and to
    /// be read. Then [`Receiving::handle`] takes the message, or the packet is not acked.
    pub(crate) fn handle_message_fragment(
        &mut self,
        fragment: &MessageFragment,
        data: &[u8],
        arrival: u64,
    ) -> Result<Option<Vec<u8>>, FragmentFault> {
        let (whole, new) = self.receiver.handle_message_fragment(fragment, data, arrival)?;
        self.stats.duplicates += u64::from(!new);
        Ok(whole)
    }

    /// Which messages of a packet needn't wait here if they are placed directly.
    pub(crate) fn direct_room(&self, arrival: u64) -> DirectRoom {
        self.receiver.direct_room(arrival)
    }

    /// Whether messages may have gone there, as for [`Stream::check`](super::Stream::check): asked where a packet has fragments.
    pub(crate) fn check_placed(&self, placed: &Placed) -> Result<(), WindowViolation> {
        self.receiver.check_placed(placed)
    }

    /// These messages of a packet went there.
    pub(crate) fn note_placed(&mut self, arrival: u64, placed: &Placed) {
        self.receiver.note_placed(arrival, placed);
        self.stats.received += u64::from(placed.count);
    }

    /// The credit that the next packet should carry: None while the peer is certain to have enough.
    pub(crate) fn credit_due(&self) -> Option<CreditMark> {
        self.receiver.credit_due()
    }

    /// The packet with this credit was acked.
    pub(crate) fn credit_known(&mut self, mark: CreditMark) {
        self.receiver.credit_known(mark);
    }

    /// Whether the application's next message comes after this one, which is not here yet.
    pub(crate) fn awaits(&self, prefix: Prefix) -> bool {
        matches!(prefix, Prefix::Id(id) if self.receiver.awaits(id))
    }
}

impl Reliable {
    /// A message was acked: the first ack of it is its delivery.
    fn note_acked(&mut self, now: Instant, mark: u64) -> Fate {
        self.sender.scan.at = None;
        let Some(outgoing) = self.sender.find(mark) else { return Fate::Open };
        let owed = outgoing.owes();
        let Some(submission) = &outgoing.submission else { return Fate::Open };
        let (fate, waited) = (submission.fate(), now - submission.at);
        // Dropped in place: to take it out would move its bytes.
        outgoing.submission = None;
        outgoing.fragments = None;
        self.sender.owing -= usize::from(owed);
        self.stats.count_delivered(waited);
        fate
    }
}

/// Blocks, which only yojimbo's framing has.
impl Reliable {
    pub(crate) fn select_fragment(
        &mut self,
        context: &SendContext,
        cost: Cost<'_>,
        bits_left: usize,
    ) -> Option<Fragment> {
        let mark = self.sender.oldest;
        let outgoing = self.sender.queue.front_mut()?;
        let message = outgoing.submission.as_ref()?.message.clone();
        let count = message.block.as_ref()?.len().div_ceil(cost.fragment_bytes);
        let block = outgoing.fragments.get_or_insert_with(|| Box::new(SendFragments::new(count)));
        let timeout = context.resend.timeout.max(blocks::MIN_RESEND_TIMEOUT);
        let timer = ResendTimer { timeout, ..context.resend };
        let (index, count) = (block.next(context.now, timer, blocks::RESEND)?, block.count());
        let fragment = Fragment { id: mark as u16, count, index, size: cost.fragment_bytes, message, mark };
        if cost.fragment(&fragment) > bits_left {
            return None;
        }
        let again = block.track_sent(index, context.now);
        self.stats.sent += u64::from(index == 0 && !again);
        self.stats.resent += u64::from(again);
        self.stats.bytes_sent += fragment.data().len() as u64;
        Some(fragment)
    }

    pub(crate) fn handle_fragment(
        &mut self,
        fragment: BlockFragment,
        limits: BlockLimits,
    ) -> Result<(), Desync> {
        self.stats.received += u64::from(self.receiver.handle_fragment(fragment, limits)?);
        Ok(())
    }

    pub(super) fn has_room(&self, prefix: Prefix) -> bool {
        if let Prefix::Id(id) = prefix { self.receiver.has_room(id) } else { true }
    }
}

/// The messages selected for one packet.
struct Filling<'a> {
    context: &'a SendContext,
    cost: Cost<'a>,
    bits_left: usize,
    used: usize,
    selected: &'a mut Vec<Selected>,
    stats: &'a mut ChannelStats,
}

impl Filling<'_> {
    /// Adds the fragments that are due and fit.
    fn add_fragments(&mut self, mark: u64, outgoing: &mut Outgoing, resend: Resend) {
        let (context, cost) = (self.context, self.cost);
        while let Some((index, bits)) =
            outgoing.next_fragment(context, cost, resend, self.bits_left.saturating_sub(self.used))
        {
            self.used += bits;
            self.selected.extend(outgoing.track_fragment(mark, index, context.now, cost, self.stats));
        }
    }
}

impl Sender {
    /// Adds the messages that are due, or copies that may go early.
    fn fill(&mut self, filling: &mut Filling<'_>, early: bool) {
        let (resend, context, cost) = (self.resend, filling.context, filling.cost);
        let (mut misfits, mut previous, mut owing) = (0, None, self.owing);
        // The messages at the beginning that go: at this moment they are not due again.
        let (mut gone, mut gone_bytes, mut all_gone) = (0, 0, true);
        for (mark, outgoing) in self.sendable(context.now) {
            if outgoing.is_cut(cost) {
                all_gone = false;
                // Small later messages may fit where this one doesn't.
                filling.add_fragments(mark, outgoing, resend);
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
            if filling.used + bits > filling.bits_left {
                all_gone = false;
                misfits += 1;
                if misfits > MAX_MISFITS {
                    break;
                }
                continue;
            }
            filling.used += bits;
            previous = Some(id);
            filling.stats.count_sent(message, outgoing.copies.sent() > 0);
            let message = message.clone();
            filling.selected.push(Selected { prefix: Prefix::Id(id), message, mark, fragment: None });
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
    /// beginning that have nothing to send at this moment.
    fn sendable(&mut self, now: Instant) -> impl Iterator<Item = (u64, &mut Outgoing)> {
        if self.scan.at != Some(now) {
            self.scan = Scan { at: Some(now), messages: 0, bytes: self.unread_bytes };
        }
        let room = self.room();
        let Scan { messages, mut bytes, .. } = self.scan;
        let (oldest, window_bytes) = (self.oldest, self.window_bytes);
        self.queue.iter_mut().enumerate().take(room).skip(messages).map_while(move |(i, outgoing)| {
            bytes += outgoing.window_bytes as usize;
            (bytes <= window_bytes && !outgoing.has_block()).then(|| (oldest + i as u64, outgoing))
        })
    }

    fn find(&mut self, mark: u64) -> Option<&mut Outgoing> {
        let index = usize::try_from(mark.checked_sub(self.oldest)?).ok()?;
        self.queue.get_mut(index)
    }

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

    /// Drops the oldest message; returns it if no ack has come for it.
    fn pop_front(&mut self) -> Option<Submission> {
        let outgoing = self.queue.pop_front()?;
        self.scan.at = None;
        self.owing -= usize::from(outgoing.owes());
        self.oldest += 1;
        if self.credit {
            self.unread_sizes.push_back(outgoing.window_bytes);
            self.unread_bytes += outgoing.window_bytes as usize;
        } else {
            self.peer_unread = self.oldest;
        }
        outgoing.submission
    }

    /// Whether the peer can have taken every message before `unread`: all of them were sent.
    fn check_credit(&self, unread: u16) -> Result<(), WindowViolation> {
        let taken = usize::try_from(distance(unread, self.peer_unread as u16)).unwrap_or(0);
        let queued = taken.saturating_sub(self.unread_sizes.len());
        let sent = self.queue.iter().take(queued).take_while(|outgoing| outgoing.was_sent()).count();
        if sent == queued { Ok(()) } else { Err(WindowViolation) }
    }

    fn handle_credit(
        &mut self,
        unread: u16,
        mut delivered: impl FnMut(Submission),
    ) -> Result<(), WindowViolation> {
        self.scan.at = None;
        let taken = distance(unread, self.peer_unread as u16);
        for _ in 0..taken {
            // Messages that the peer's application took have arrived, even if no ack has come yet.
            if self.unread_sizes.is_empty() {
                if self.queue.front().is_none_or(|outgoing| !outgoing.was_sent()) {
                    return Err(WindowViolation);
                }
                self.pop_front().into_iter().for_each(&mut delivered);
            }
            self.unread_bytes -= self.unread_sizes.pop_front().map_or(0, |bytes| bytes as usize);
            self.peer_unread += 1;
        }
        self.pop_acked();
        Ok(())
    }
}

impl Default for Resend {
    /// By lost packets and round trips. The article's fixed 0.1 s sends each message twice on a line of 150 ms, and
    /// on a line slower than the data, over and over until it carries nothing else.
    fn default() -> Self {
        Resend::Adaptive { early_copies: 1 }
    }
}
