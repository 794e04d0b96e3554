//! A reliable message until it is acked: its copies, or those of its fragments.

use super::fragments::SendFragments;
use super::resend::Copies;
use super::{ChannelStats, Prefix, ResendTimer, Selected, SendContext, Submission};
use crate::time::Instant;
use crate::transport::parts::fragment_of;
use crate::transport::protocol::{Cost, Resend};

/// Packets, a tick apart, that carry a lost message: a second loss would hold up all later ones for another round
/// trip.
const RESEND_COPIES: u32 = 2;

/// A message of the send queue.
#[derive(Debug)]
pub(super) struct Outgoing {
    // None once acked.
    pub(super) submission: Option<Submission>,
    pub(super) window_bytes: u32,
    /// Copies of the whole message.
    pub(super) copies: Copies,
    /// Copies to go out in the next ticks without waiting for more.
    pub(super) owed: u32,
    /// In their place, once a fragment was asked for.
    pub(super) fragments: Option<Box<SendFragments>>,
}

impl Outgoing {
    /// When it, or a fragment of it, may be sent; [`Instant::ZERO`] for at once.
    pub(super) fn due_at(&self, timer: ResendTimer, resend: Resend) -> Instant {
        match &self.fragments {
            Some(fragments) => fragments.due_at(timer, resend),
            None => self.copies.due_at(timer, resend),
        }
    }

    /// Whether the whole of it must be sent; `early` asks for copies that only may, while there is room.
    pub(super) fn due(&self, context: &SendContext, resend: Resend, early: bool) -> bool {
        if early {
            self.owed > 0 && self.copies.were_sent_before(context.now)
        } else {
            self.copies.due_at(context.resend, resend) <= context.now
        }
    }

    /// Whether it goes in fragments.
    pub(super) fn is_cut(&self, cost: Cost<'_>) -> bool {
        self.submission.as_ref().is_some_and(|submission| cost.fragments(&submission.message).is_some())
    }

    /// The next fragment of a large message, and the bits it takes; the last one if only that has room.
    pub(super) fn next_fragment(
        &mut self,
        context: &SendContext,
        cost: Cost<'_>,
        resend: Resend,
        room: usize,
    ) -> Option<(usize, usize)> {
        let message = &self.submission.as_ref()?.message;
        let count = cost.fragments(message)?;
        let fragments = self.fragments.get_or_insert_with(|| Box::new(SendFragments::new(count)));
        let next = fragments.next(context.now, context.resend, resend)?;
        let last = fragments.last(context.now, context.resend, resend);
        let due = [Some(next), last].into_iter().flatten();
        due.map(|index| (index, cost.message_fragment(message, index))).find(|(_, bits)| *bits <= room)
    }

    /// Notes that a packet carries a fragment.
    pub(super) fn track_fragment(
        &mut self,
        mark: u64,
        index: usize,
        now: Instant,
        cost: Cost<'_>,
        stats: &mut ChannelStats,
    ) -> Option<Selected> {
        let message = self.submission.as_ref()?.message.clone();
        let first = self.fragments.as_ref()?.are_unsent();
        let again = self.fragments.as_mut()?.track_sent(index, now);
        stats.sent += u64::from(first);
        stats.resent += u64::from(again);
        stats.bytes_sent += fragment_of(message.encoded.bytes(), index, cost.fragment_bytes).len() as u64;
        Some(Selected { prefix: Prefix::Id(mark as u16), message, mark, fragment: Some(index as u16) })
    }

    /// Whether the peer may have it. An acked message has no fragments any more.
    pub(super) fn was_sent(&self) -> bool {
        let sent = self.fragments.as_ref().map_or(self.copies.sent > 0, |fragments| fragments.are_sent());
        sent || self.submission.is_none()
    }

    /// Whether it is not acked, and holds up later messages until all of its fragments are.
    pub(super) fn has_block(&self) -> bool {
        self.submission.as_ref().is_some_and(|submission| submission.message.block.is_some())
    }

    /// Whether it was sent, is not acked, and owes copies.
    pub(super) fn owes(&self) -> bool {
        self.submission.is_some() && self.copies.sent > 0 && self.owed > 0
    }

    /// Notes that a packet carries it.
    pub(super) fn track_sent(&mut self, now: Instant, resend: Resend) {
        if self.owed == 0 {
            self.owed = match resend {
                Resend::After(_) => 1,
                Resend::Adaptive { early_copies } if self.copies.sent == 0 => early_copies.into(),
                Resend::Adaptive { .. } => RESEND_COPIES,
            };
        }
        self.owed -= 1;
        self.copies.track_sent(now);
    }
}
