//! What is known of one ghost of a client, and what a packet in flight carries of it.
//!
//! A baseline is named only while the client is sure to keep it: it keeps the states with the newest [`HISTORY`] ticks, so
//! fewer updates than that were sent since. The same must still hold when the ack comes: else the update may have arrived
//! after such a number of later ones that it couldn't be read, and the ack says nothing. So that it does however long the line is, a
//! ghost waits while [`MAX_IN_FLIGHT`] of its records are not told of.

use super::super::super::class::HISTORY;
use super::super::super::packet::{MAX_DEPTH, MAX_OLDER};

/// Most records of a ghost after its baseline. As the last of them is acked, at most this many less one may have followed it.
pub(super) const MAX_IN_FLIGHT: u8 = HISTORY / 2;

/// A record has at most [`HISTORY`] numbers to its baseline, and at most [`MAX_IN_FLIGHT`] after it are sent before its fate is known: so
/// the low 8 bits tell how many, whatever time that takes.
const _: () = assert!(HISTORY as u32 + (MAX_IN_FLIGHT as u32) < 1 << u8::BITS);

/// What a client is about to get, or has, of a ghost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replication::publisher) enum GhostState {
    /// Nothing that it acked: it gets creates.
    Creating,
    /// A state that it acked.
    Live,
    /// It is to end.
    Destroying,
}

/// In one byte: whether the client owns the ghost, and how many of the records before that of the baseline are the states
/// that the client has before it, one after the other, as the table has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold(u8);

impl Hold {
    const OWNER: u8 = 1 << 7;

    pub(super) fn new(owner: bool) -> Self {
        Hold(if owner { Hold::OWNER } else { 0 })
    }

    #[inline]
    pub(super) fn owner(self) -> bool {
        self.0 & Hold::OWNER != 0
    }

    #[inline]
    pub(super) fn run(self) -> u8 {
        self.0 & !Hold::OWNER
    }

    #[inline]
    pub(super) fn set_run(&mut self, run: u8) {
        self.0 = self.0 & Hold::OWNER | run;
    }
}

/// A ghost of a client. One that is sent each tick is looked at each tick, so it is small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// The tick of the last record that was sent, or 0.
    pub(super) sent: u32,
    /// Live: the tick of the baseline. Creating: creates since then count, those before were of another owner.
    pub(super) acked: u32,
    pub(super) row: u16,
    /// How much older than the baseline another acked state is, or 0.
    pub(super) older_age: u8,
    /// The number of that, of the baseline (Creating: of the last record before) and of the last record that was sent, in their
    /// low bits.
    pub(super) older_count: u8,
    pub(super) acked_count: u8,
    pub(super) count: u8,
    pub(super) state: GhostState,
    pub(super) hold: Hold,
}

const _: () = assert!(size_of::<Record>() == 16);

/// The records of packets in flight.
#[derive(Clone, Copy, Debug)]
pub(in crate::replication::publisher) struct CarriedGhost {
    pub(in crate::replication::publisher) id: u16,
    pub(in crate::replication::publisher) class: u8,
    pub(in crate::replication::publisher) op: CarriedOp,
    /// The number of the record, and that of the oldest state which it was written against.
    pub(in crate::replication::publisher) count: u8,
    pub(in crate::replication::publisher) base_count: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replication::publisher) enum CarriedOp {
    Update,
    /// An update that says the state behind the one which the client was known to have as its newest.
    Step,
    Create,
    Destroy,
}

impl Record {
    /// All of it, as one number.
    #[inline]
    pub(super) fn key(&self) -> u128 {
        let Record { sent, acked, row, older_age, older_count, acked_count, count, state, hold } = *self;
        let low = u64::from(sent) | u64::from(acked) << 32;
        let bytes = [older_age, older_count, acked_count, count, state as u8, hold.0];
        let bytes = bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        u128::from(low) | u128::from(bytes << 16 | u64::from(row)) << 64
    }

    /// How many records were sent after the one with this number.
    #[inline]
    pub(super) fn since(&self, count: u8) -> u8 {
        self.count.wrapping_sub(count)
    }

    /// Whether as many records are under way as may be.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        self.state != GhostState::Destroying && self.since(self.acked_count) >= MAX_IN_FLIGHT
    }

    /// From now on creates are sent, and only acks of these count.
    pub(super) fn create_again(&mut self, tick: u32) {
        self.state = GhostState::Creating;
        self.acked = if self.sent >= tick { tick + 1 } else { tick };
        self.acked_count = self.count;
        self.older_age = 0;
        self.hold.set_run(0);
    }

    #[inline]
    pub(super) fn acknowledge(&mut self, sent: u32, count: u8, step: bool) {
        if sent <= self.acked {
            return;
        }
        self.hold.set_run(if step { (self.hold.run() + 1).min(MAX_DEPTH) } else { 0 });
        let age = sent - self.acked;
        // At most 64.
        self.older_age = if age <= MAX_OLDER { age as u8 } else { 0 };
        self.older_count = self.acked_count;
        (self.acked, self.acked_count) = (sent, count);
    }
}
