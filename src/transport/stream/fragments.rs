//! Messages in fragments: each goes in a packet beside other things, and is acked, lost and resent alone. Native
//! framing cuts the messages of reliable channels that are larger than `FRAGMENT_BYTES`; yojimbo's framing cuts
//! blocks.
//!
//! Promises: a message is delivered when each of its fragments is acked; the memory of a partial one is that of the
//! fragments received, never of those announced; duplicate fragments change nothing. Refuses: fragments of one
//! message that differ in its type or its length.
//!
//! The peer claims a message's id, type and length, and the bytes of a fragment; that an index and its bytes fit the
//! length was checked when the packet was read.

use super::resend::{Copies, ResendTimer};
use crate::time::Instant;
use crate::transport::message::window_bytes;
use crate::transport::parts::{ChannelFault, MessageFragment};
use crate::transport::protocol::Resend;

/// The sending side of a message in fragments.
#[derive(Debug)]
pub(super) struct SendFragments {
    fragments: Vec<SendFragment>,
    unsent: usize,
    unacked: usize,
    /// All fragments before this one are acked.
    first_open: usize,
    /// At this moment nothing before this fragment is due.
    polled: (Option<Instant>, usize),
}

#[derive(Clone, Copy, Debug, Default)]
struct SendFragment {
    copies: Copies,
    acked: bool,
}

impl SendFragments {
    pub(super) fn new(count: usize) -> Self {
        let fragments = vec![SendFragment::default(); count];
        SendFragments { fragments, unsent: count, unacked: count, first_open: 0, polled: (None, 0) }
    }

    /// Whether none was sent yet.
    pub(super) fn are_unsent(&self) -> bool {
        self.unsent == self.fragments.len()
    }

    /// Whether each was sent at least once.
    pub(super) fn are_sent(&self) -> bool {
        self.unsent == 0
    }

    /// The first fragment to be sent now; one that was never sent, or is lost, before those that may still be acked:
    /// on a line where the whole takes longer than their timeout, those would take all of it.
    pub(super) fn next(&mut self, now: Instant, timer: ResendTimer, resend: Resend) -> Option<usize> {
        if self.polled.0 != Some(now) {
            self.polled = (Some(now), self.first_open);
        }
        let from = self.polled.1.max(self.first_open);
        let open = self.fragments.get(from..).unwrap_or_default();
        let is_due = |one: &SendFragment| one.is_due(now, timer, resend);
        let due = open.iter().position(is_due);
        self.polled.1 = due.map_or(self.fragments.len(), |place| from + place);
        let fresh = due.and_then(|_| open.iter().position(|one| !one.copies.are_in_flight() && is_due(one)));
        fresh.or(due).map(|place| from + place)
    }

    /// The last fragment, if it is to be sent now: it may fit where the others are too large.
    pub(super) fn last(&self, now: Instant, timer: ResendTimer, resend: Resend) -> Option<usize> {
        let due = self.fragments.last().is_some_and(|one| one.is_due(now, timer, resend));
        due.then(|| self.fragments.len() - 1)
    }

    /// When the first of them is due.
    pub(super) fn due_at(&self, timer: ResendTimer, resend: Resend) -> Instant {
        let open = self.fragments.iter().filter(|one| !one.acked);
        open.map(|one| one.copies.due_at(timer, resend)).min().unwrap_or(Instant::NEVER)
    }

    /// Notes that a packet carries a fragment; whether one did before.
    pub(super) fn track_sent(&mut self, index: usize, now: Instant) -> bool {
        let Some(fragment) = self.fragments.get_mut(index) else { return false };
        let again = fragment.copies.sent > 0;
        fragment.copies.track_sent(now);
        self.unsent -= usize::from(!again);
        again
    }

    /// A packet that carried a fragment was acked; whether all are.
    pub(super) fn handle_ack(&mut self, index: usize) -> bool {
        if let Some(fragment) = self.fragments.get_mut(index)
            && !core::mem::replace(&mut fragment.acked, true)
        {
            self.unacked -= 1;
        }
        while self.fragments.get(self.first_open).is_some_and(|fragment| fragment.acked) {
            self.first_open += 1;
        }
        self.unacked == 0
    }

    pub(super) fn handle_lost(&mut self, index: usize) {
        if let Some(fragment) = self.fragments.get_mut(index) {
            fragment.copies.handle_lost();
            self.polled.0 = None;
        }
    }
}

impl SendFragment {
    fn is_due(&self, now: Instant, timer: ResendTimer, resend: Resend) -> bool {
        !self.acked && self.copies.due_at(timer, resend) <= now
    }
}

/// Something that arrives in fragments.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) count: usize,
    // By index, ascending.
    here: Vec<(usize, Box<[u8]>)>,
    /// The bytes of all of them.
    bytes: usize,
}

impl Parts {
    pub(super) fn new(count: usize) -> Self {
        Parts { count, here: Vec::new(), bytes: 0 }
    }

    pub(super) fn are_whole(&self) -> bool {
        self.here.len() == self.count
    }

    /// Takes a fragment; false if it is a duplicate.
    pub(super) fn insert(&mut self, index: usize, data: impl Into<Box<[u8]>>) -> bool {
        let place = self.here.binary_search_by_key(&index, |(index, _)| *index);
        if let Err(place) = place {
            let data = data.into();
            self.bytes += data.len();
            self.here.insert(place, (index, data));
        }
        place.is_err()
    }

    /// The received fragments, one after the other.
    pub(super) fn concat(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.bytes);
        self.here.iter().for_each(|(_, data)| whole.extend_from_slice(data));
        whole
    }

    /// Bytes of memory it takes.
    fn memory(&self) -> usize {
        self.bytes + self.here.capacity() * size_of::<(usize, Box<[u8]>)>()
    }
}

/// The receiving side of a message in fragments. It counts as the whole message against the window, as it does at the sender.
#[derive(Debug)]
pub(super) struct PartialMessage {
    message_type: u16,
    bits: usize,
    parts: Parts,
    /// The packet that had it read when it was whole: others of its fragments there don't.
    read_in: Option<u64>,
}

impl PartialMessage {
    pub(super) fn new(fragment: &MessageFragment) -> Self {
        let MessageFragment { message_type, bits, count, .. } = *fragment;
        PartialMessage { message_type, bits, parts: Parts::new(count), read_in: None }
    }

    pub(super) fn window_bytes(&self) -> usize {
        window_bytes(self.bits)
    }

    pub(super) fn is_whole(&self) -> bool {
        self.parts.are_whole()
    }

    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.parts.memory()
    }

    /// Takes a received fragment; returns the body when it is complete, once for each packet: a body that couldn't be
    /// read for lack of memory is returned again. None, and false, for a duplicate.
    pub(super) fn handle(
        &mut self,
        fragment: &MessageFragment,
        data: &[u8],
        packet_sequence: u64,
    ) -> Result<(Option<Vec<u8>>, bool), ChannelFault> {
        if (fragment.message_type, fragment.bits) != (self.message_type, self.bits) {
            return Err(ChannelFault::Fragments);
        }
        let new = self.parts.insert(fragment.index, data);
        let read = self.is_whole() && self.read_in.replace(packet_sequence) != Some(packet_sequence);
        Ok((read.then(|| self.parts.concat()), new))
    }
}
