//! The packets of the peer that were received.
//!
//! Promises: each of the newest packets, up to the window, is known as received or not, and none counts as new twice. The ack
//! bits of headers are kept beside the window, so that a header costs no look-ups.

use core::ops::Range;

use crate::store::SequenceSet;
use crate::store::sequence::ahead;

/// How far back numbers that no packet of the peer had are known.
const SKIPPED_WINDOW: usize = 1024;

/// Why a received packet is not new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotNew {
    /// It is older than the window of received packets.
    Stale,
    /// It was received before.
    Duplicate,
    /// It is older than the newest received packet, and order was asked for.
    OutOfOrder,
}

/// The window of received packets.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedPackets {
    numbers: SequenceSet,
    /// Bit n is set if the packet n before the newest of the window was received: the ack bits of each header.
    bits: u32,
    /// The newest packet received.
    pub(crate) newest: Option<u64>,
    /// Numbers that no packet of the peer had.
    skipped: SequenceSet,
    in_order_only: bool,
}

impl ReceivedPackets {
    /// Remembers this many packets. With `in_order_only`, a packet is new only if it is newer than all others.
    pub(super) fn new(window: usize, in_order_only: bool) -> Self {
        ReceivedPackets {
            numbers: SequenceSet::new(window),
            bits: 0,
            newest: None,
            skipped: SequenceSet::new(SKIPPED_WINDOW),
            in_order_only,
        }
    }

    /// The ack bits of a header that acks [`ReceivedPackets::ack`].
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// The newest known packet, which headers ack.
    pub(super) fn ack(&self) -> u64 {
        self.numbers.next().wrapping_sub(1)
    }

    /// Checks whether a packet is new.
    ///
    /// # Errors
    /// Why it isn't.
    pub(super) fn is_new(&self, sequence: u64) -> Result<(), NotNew> {
        if self.numbers.stale(sequence) {
            return Err(NotNew::Stale);
        }
        if self.numbers.contains(sequence) {
            return Err(NotNew::Duplicate);
        }
        match self.newest {
            Some(newest) if self.in_order_only && ahead(newest, sequence) > 0 => Err(NotNew::OutOfOrder),
            _ => Ok(()),
        }
    }

    /// Adds a new packet; returns how many numbers it is ahead of the newest before: 0 if it is older.
    pub(super) fn insert(&mut self, sequence: u64) -> u64 {
        self.advance_bits(sequence);
        let inserted = self.numbers.insert(sequence);
        debug_assert!(inserted, "a stale packet is not new");
        let age = self.ack().wrapping_sub(sequence);
        self.bits |= 1u32.unbounded_shl(age.min(32) as u32);
        let newest = self.newest.unwrap_or(sequence.wrapping_sub(1));
        if ahead(sequence, newest) <= 0 {
            return 0;
        }
        self.newest = Some(sequence);
        sequence.wrapping_sub(newest)
    }

    /// No packet has these numbers: they aren't missing.
    pub(super) fn skip(&mut self, numbers: Range<u64>) {
        numbers.for_each(|number| {
            self.skipped.insert(number);
        });
    }

    /// Whether a packet older than the newest one hasn't arrived; true for those older than the window.
    pub(crate) fn is_missing(&self, sequence: u64) -> bool {
        !self.numbers.contains(sequence) && !self.skipped.contains(sequence)
    }

    /// The packets that are remembered.
    pub(crate) fn window(&self) -> usize {
        self.numbers.capacity()
    }

    /// Remembers this many packets, more than before.
    pub(super) fn grow(&mut self, window: usize) {
        self.numbers.grow(window);
    }

    /// Moves the window up to a packet without receiving it.
    pub(crate) fn advance(&mut self, sequence: u64) {
        self.advance_bits(sequence);
        self.numbers.advance(sequence);
    }

    /// Moves the ack bits as the window will move.
    fn advance_bits(&mut self, sequence: u64) {
        let ahead = ahead(sequence, self.ack()).clamp(0, 32);
        self.bits = self.bits.unbounded_shl(ahead as u32);
    }
}
