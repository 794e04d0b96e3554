//! The state kept about one ghost of a client, and what a packet in flight carries of it.
//!
//! A baseline is named only while the client certainly keeps it: it keeps the states of the newest [`HISTORY`] ticks,
//! so fewer updates than that may have been sent since. That must still hold when the ack comes: otherwise the update
//! may have arrived after too many later ones to be read, and its ack proves nothing. To guarantee this on
//! any link, a ghost waits while [`MAX_IN_FLIGHT`] of its records are in flight.

use super::super::super::class::{HISTORY, MAX_IN_FLIGHT};
use super::super::super::coding::{MAX_RUN, MAX_STEPS};
use super::super::super::packet::{Audience, Base, MAX_DEPTH, MAX_OLDER};
use super::super::super::table::Table;

/// A record has at most [`HISTORY`] numbers to its baseline, and at most [`MAX_IN_FLIGHT`] follow it before its fate is
/// known: so the low 8 bits are unambiguous, however long that takes.
const _: () = assert!(HISTORY as u32 + (MAX_IN_FLIGHT as u32) < 1 << u8::BITS);

/// What a client has or will get of a ghost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::replication::publisher) enum GhostState {
    /// It has acked no state: it is sent creates.
    Creating,
    /// It has acked a state.
    Live,
    /// It is sent destroys.
    Destroying,
}

/// In one byte: who the client is to the ghost, and how many of the records before that of the baseline are the states
/// that the client has before it: of a plain class, one after the other, as the table has them; of a coded one, of ticks as far
/// apart as the baseline's and the older one's; and of these how many are one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold(u8);

impl Hold {
    const OWNER: u8 = 1 << 7;
    const CHOSEN: u8 = 1 << 6;
    const RUN: u8 = 0x0F;
    const STEPS: u32 = 4;

    pub(super) fn new(Audience { owner, chosen }: Audience) -> Self {
        Hold(if owner { Hold::OWNER } else { 0 } | if chosen { Hold::CHOSEN } else { 0 })
    }

    pub(super) fn audience(self) -> Audience {
        Audience { owner: self.owner(), chosen: self.chosen() }
    }

    /// Whether the game chose the client for it.
    #[inline]
    pub(super) fn chosen(self) -> bool {
        self.0 & Hold::CHOSEN != 0
    }

    #[inline]
    pub(super) fn owner(self) -> bool {
        self.0 & Hold::OWNER != 0
    }

    #[inline]
    pub(super) fn run(self) -> u8 {
        self.0 & Hold::RUN
    }

    /// How many states in front of the baseline follow each other, at most [`MAX_STEPS`].
    #[inline]
    fn steps(self) -> u8 {
        self.0 >> Hold::STEPS & MAX_STEPS
    }

    /// None of the states in front of the baseline are known any more.
    pub(super) fn forget_states(&mut self) {
        self.set_run(0);
        self.set_steps(0);
    }

    #[inline]
    fn set_steps(&mut self, steps: u8) {
        self.0 = self.0 & !(MAX_STEPS << Hold::STEPS) | steps << Hold::STEPS;
    }

    #[inline]
    fn set_run(&mut self, run: u8) {
        self.0 = self.0 & !Hold::RUN | run;
    }
}

/// A client's ghost. Ghosts sent each tick are read each tick, so this is small. In the order of [`Record::key`], so that this is one
/// load.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(super) struct Record {
    /// The tick of the last record sent, or 0.
    pub(super) sent: u32,
    /// Live: the tick of the baseline. Creating: only creates since then count, as earlier ones were for another owner.
    pub(super) acked: u32,
    pub(super) row: u16,
    /// The age of another acked state relative to the baseline, or 0.
    pub(super) older_age: u8,
    /// The low bits of record numbers: of that state, of the baseline (Creating: of the last record before; Destroying: of the
    /// last record before the destroys that may still arrive), and of the last record sent.
    pub(super) older_count: u8,
    pub(super) acked_count: u8,
    pub(super) count: u8,
    pub(super) state: GhostState,
    pub(super) hold: Hold,
}

const _: () = assert!(size_of::<Record>() == 16);

/// A record in a packet in flight.
#[derive(Clone, Copy, Debug)]
pub(in crate::replication::publisher) struct CarriedGhost {
    pub(in crate::replication::publisher) id: u16,
    pub(in crate::replication::publisher) class: u8,
    pub(in crate::replication::publisher) op: CarriedOp,
    /// The record's number, and that of the oldest state it was written against.
    pub(in crate::replication::publisher) count: u8,
    pub(in crate::replication::publisher) base_count: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replication::publisher) enum CarriedOp {
    Update,
    /// An update to the state right after the client's newest known one.
    Step,
    /// An update of a coded class, and one that is a step too.
    Coded,
    CodedStep,
    Create,
    Destroy,
}

impl CarriedOp {
    #[inline]
    pub(super) fn is_update(self) -> bool {
        !matches!(self, CarriedOp::Create | CarriedOp::Destroy)
    }
}

impl Record {
    /// A ghost of which nothing was sent.
    pub(super) fn new(row: u32, acked: u32, state: GhostState, audience: Audience) -> Self {
        Record {
            sent: 0,
            acked,
            // Rows are below a capacity of 2^16.
            row: row as u16,
            older_age: 0,
            older_count: 0,
            acked_count: 0,
            count: 0,
            state,
            hold: Hold::new(audience),
        }
    }

    /// All of it, as one number.
    #[inline]
    pub(super) fn key(&self) -> u128 {
        let Record { sent, acked, row, older_age, older_count, acked_count, count, state, hold } = *self;
        let [low, high] = row.to_le_bytes();
        let bytes = [low, high, older_age, older_count, acked_count, count, state as u8, hold.0];
        let ticks = u64::from(sent) | u64::from(acked) << 32;
        u128::from(ticks) | u128::from(u64::from_le_bytes(bytes)) << 64
    }

    /// How many records were sent after the one with this number.
    #[inline]
    pub(super) fn since(&self, count: u8) -> u8 {
        self.count.wrapping_sub(count)
    }

    /// Whether the maximum of records is in flight.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        self.state != GhostState::Destroying && self.since(self.acked_count) >= MAX_IN_FLIGHT
    }

    /// Whether nothing was sent of it that an ack could still count for: a message may have named it, and that is all.
    pub(super) fn is_unsent(&self) -> bool {
        self.state == GhostState::Creating && self.count == self.acked_count
    }

    /// Sends creates from now on, and only acks of these count.
    pub(super) fn create_again(&mut self, tick: u32) {
        self.state = GhostState::Creating;
        self.acked = if self.sent >= tick { tick + 1 } else { tick };
        self.acked_count = self.count;
        self.older_age = 0;
        self.hold.forget_states();
    }

    /// Sends destroys from now on, and counts them: none is in flight yet, or all are lost.
    pub(super) fn destroy(&mut self) {
        self.state = GhostState::Destroying;
        self.acked_count = self.count;
    }

    /// The base of an update of a coded class, for a client whose newest packet that is known to have arrived is of the tick
    /// `acked`: the baseline with the states in front of it that are known to be as far apart, if the ghost moves, else the
    /// state that it has by then, with those before it if it makes a step from there. And as what it is carried.
    pub(super) fn base_of_coded(&self, acked: u32, table: &Table, group: usize) -> (Base, CarriedOp) {
        if table.is_reckoned() {
            return (Base::UpTo { tick: self.acked, past: 1, run: 0 }, CarriedOp::Coded);
        }
        let (row, since, past) = (self.row.into(), self.since(self.acked_count), u32::from(self.older_age));
        let next_change = |tick: u32| table.next_change(group, row, tick);
        // By the time of the ack, about as many more will have been sent.
        let room = (HISTORY - 1).saturating_sub(since.saturating_mul(2)).checked_div(self.older_age);
        let known = |run: &u8| table.remembers(group, row, self.acked - u32::from(*run) * past);
        let run = (0..=self.hold.run().min(room.unwrap_or(0))).rev().find(known).unwrap_or(0);
        let next = next_change(self.acked);
        let turn = table.turn(group, row);
        let is_step = since == 0 && table.has_stepped(row) && (turn.before..turn.last).contains(&self.acked);
        let op = if is_step { CarriedOp::CodedStep } else { CarriedOp::Coded };
        // It neither rested behind the baseline nor in front of it.
        let moves = run > 0 && next.is_some_and(|next| next <= self.acked + past);
        let moved = || next_change(self.acked - past).is_some_and(|next| next < self.acked);
        if moves && (run > 1 || past == 1 || moved()) {
            return (Base::UpTo { tick: self.acked, past, run }, op);
        }
        // Of what changed later, no record may have arrived by then, and no property may have changed that isn't sent now.
        let updated = table.class().updated(group);
        let changed_since = |tick: u32| table.changed_since(row, tick) & updated;
        let is_same = next.is_none_or(|next| next > acked)
            && changed_since(self.acked) == changed_since(acked.max(self.acked));
        let tick = if is_same { acked.max(self.acked) } else { self.acked };
        // One that rests at times steps from there, which says little: but not always.
        let steps = if is_step && self.hold.steps() == MAX_STEPS { MAX_STEPS } else { 0 };
        (Base::UpTo { tick, past: u32::from(steps == 0), run: steps }, op)
    }

    #[inline]
    pub(super) fn acknowledge(&mut self, sent: u32, count: u8, op: CarriedOp) {
        if sent <= self.acked {
            return;
        }
        let age = sent - self.acked;
        self.hold.set_run(match op {
            CarriedOp::Step => (self.hold.run() + 1).min(MAX_DEPTH),
            CarriedOp::Coded | CarriedOp::CodedStep if age == u32::from(self.older_age) => {
                (self.hold.run() + 1).min(MAX_RUN)
            }
            CarriedOp::Coded | CarriedOp::CodedStep => 1,
            _ => 0,
        });
        let steps = if op == CarriedOp::CodedStep { (self.hold.steps() + 1).min(MAX_STEPS) } else { 0 };
        self.hold.set_steps(steps);
        // At most 64.
        self.older_age = if age <= MAX_OLDER { age as u8 } else { 0 };
        self.older_count = self.acked_count;
        (self.acked, self.acked_count) = (sent, count);
    }
}
