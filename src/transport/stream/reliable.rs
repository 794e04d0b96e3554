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

use super::reliable_receiver::{CreditMark, Receiver, Window};
use super::reliable_sender::Sender;
use super::{
    BlockFragment, BlockLimits, ChannelStats, Desync, Fate, Fragment, FragmentFault, MessageFragment, Prefix,
    Receiving, ResendTimer, Selected, SendContext, SendError, Sending, Submission, WindowViolation,
};
use crate::time::Instant;
use crate::transport::direct_tables::{DirectRoom, Placed};
use crate::transport::message::Received;
use crate::transport::protocol::{Cost, Resend};

#[derive(Debug)]
pub(crate) struct Reliable {
    sender: Sender,
    receiver: Receiver,
    /// The newest packet with credit.
    newest_credit: u64,
    stats: ChannelStats,
}

impl Reliable {
    pub(super) fn new(capacity: usize, ordered: bool, window: Window, resend: Resend) -> Self {
        Reliable {
            sender: Sender::new(capacity, window, resend),
            receiver: Receiver::new(ordered, window),
            newest_credit: 0,
            stats: ChannelStats::default(),
        }
    }
}

impl Sending for Reliable {
    fn send(&mut self, submission: Submission) -> Result<Fate, SendError> {
        self.sender.push(submission)?;
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
        self.sender.select(context, cost, bits_left, selected, &mut self.stats)
    }

    fn next_bits(&mut self, context: &SendContext, cost: Cost<'_>) -> Option<usize> {
        self.sender.next_bits(context, cost)
    }

    fn next_deadline(&self, timer: ResendTimer) -> Instant {
        self.sender.next_deadline(timer)
    }

    fn is_idle(&self) -> bool {
        self.sender.len() == 0
    }

    fn handle_ack(&mut self, now: Instant, mark: u64) -> Fate {
        let fate = self.sender.note_acked(now, mark, &mut self.stats);
        self.sender.pop_acked();
        fate
    }

    fn handle_acks(&mut self, now: Instant, first: u64, count: u16, delivered: &mut dyn FnMut(Fate)) {
        let fates =
            (first..first + u64::from(count)).map(|mark| self.sender.note_acked(now, mark, &mut self.stats));
        fates.filter(|fate| *fate != Fate::Open).for_each(delivered);
        self.sender.pop_acked();
    }

    fn handle_lost(&mut self, mark: u64) -> Fate {
        if let Some(outgoing) = self.sender.find(mark) {
            outgoing.copies.handle_lost();
        }
        Fate::Open
    }

    fn abandon_all(&mut self, lost: &mut dyn FnMut(Fate)) {
        self.sender.drain().for_each(|submission| lost(submission.fate()));
    }

    fn stats(&self) -> ChannelStats {
        ChannelStats { queued: self.sender.len(), ..self.stats }
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
        self.sender.handle_credit(now, unread, &mut self.stats, delivered)
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

/// Blocks, which only yojimbo's framing has.
impl Reliable {
    pub(crate) fn select_fragment(
        &mut self,
        context: &SendContext,
        cost: Cost<'_>,
        bits_left: usize,
    ) -> Option<Fragment> {
        self.sender.select_fragment(context, cost, bits_left, &mut self.stats)
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

impl Default for Resend {
    /// By lost packets and round trips. The article's fixed 0.1 s sends each message twice on a line of 150 ms, and
    /// on a line slower than the data, over and over until it carries nothing else.
    fn default() -> Self {
        Resend::Adaptive { early_copies: 1 }
    }
}
