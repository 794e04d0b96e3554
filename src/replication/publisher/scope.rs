//! What one client has of one class: the ghosts by id, which of them are due, and which states of each it is known to have.
//!
//! Ids are the client's own, the lowest free one first, and free again when the destroy was acked: they say nothing of what
//! others have.
//!
//! A baseline is named only while the client is sure to keep it: it keeps the states with the newest [`HISTORY`] ticks, so
//! fewer updates than that were sent since. The same must still hold when the ack comes: else the update may have arrived
//! after such a number of later ones that it couldn't be read, and the ack says nothing. So that it does however long the line is, a
//! ghost waits while [`MAX_IN_FLIGHT`] of its records are not told of.

use super::super::class::HISTORY;
use super::super::packet::{Ages, MAX_AGE, MAX_OLDER};

const NONE: u32 = u32::MAX;

/// Most records of a ghost after its baseline. As the last of them is acked, at most this many less one may have followed it.
const MAX_IN_FLIGHT: u8 = HISTORY / 2;

/// For how many ticks the number of records sent since can be told from its low 8 bits: a record was sent at most this many
/// after its baseline, and at most one a tick after it.
const MAX_ACK_AGE: u32 = (u8::MAX - HISTORY) as u32;

/// What a client is about to get, or has, of a ghost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GhostState {
    /// Nothing that it acked: it gets creates.
    Creating,
    /// A state that it acked.
    Live,
    /// It is to end.
    Destroying,
}

/// A ghost of a client. One that is sent each tick is looked at each tick, so it is small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// The tick of the last record that was sent, or 0.
    sent: u32,
    /// Live: the tick of the baseline. Creating: creates since then count, those before were of another owner.
    acked: u32,
    row: u16,
    /// How much older than the baseline another acked state is, or 0.
    older_age: u8,
    /// The number of that, of the baseline (Creating: of the last record before) and of the last record that was sent, in their
    /// low bits.
    older_count: u8,
    acked_count: u8,
    count: u8,
    state: GhostState,
    owner: bool,
}

const _: () = assert!(size_of::<Record>() == 16);

/// The records of packets in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub(super) id: u16,
    pub(super) class: u8,
    pub(super) op: CarriedOp,
    /// The number of the record, and that of the oldest state which it was written against.
    pub(super) count: u8,
    pub(super) base_count: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CarriedOp {
    Update,
    Create,
    Destroy,
}

/// What is to be written of a ghost that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Update {
        row: u32,
        ages: Ages,
        owner: bool,
    },
    Create {
        row: u32,
        owner: bool,
    },
    Destroy,
    /// Not in this tick.
    Later,
}

/// A client's ghosts of a class.
#[derive(Debug, Default)]
pub(super) struct Scope {
    records: Vec<Record>,
    /// By id: from which tick on it is this ghost's.
    entered: Vec<u32>,
    /// A bit an id: in use; has something to say; says it in this tick.
    used: Vec<u64>,
    due: Vec<u64>,
    ready: Vec<u64>,
    due_count: usize,
    /// No id in a block before is free.
    free_block: usize,
    /// By row; and a bit a row for those that there are.
    of_row: Vec<u32>,
    rows: Vec<u64>,
}

impl Scope {
    pub(super) fn id_of(&self, row: u32) -> Option<u32> {
        self.of_row.get(row as usize).copied().filter(|id| *id != NONE)
    }

    pub(super) fn due_count(&self) -> usize {
        self.due_count
    }

    // --- what the client is to have ----------------------------------------------------------------------

    /// Whether there is an id below this capacity: those of ghosts whose end isn't acked are taken.
    pub(super) fn has_room(&mut self, capacity: u32) -> bool {
        self.lowest_free() < capacity as usize
    }

    /// Lets the client have a row; false when it has it.
    pub(super) fn enter(&mut self, row: u32, tick: u32, owner: bool) -> bool {
        if self.id_of(row).is_some() {
            return false;
        }
        let id = self.lowest_free();
        // The client takes nothing for a new ghost that is of the tick of the last one's end.
        let since = self.records.get(id).map_or(tick, |last| tick.max(last.sent + 1));
        let record = Record {
            sent: 0,
            acked: since,
            // Rows are below a capacity of 2^16.
            row: row as u16,
            older_age: 0,
            older_count: 0,
            acked_count: 0,
            count: 0,
            state: GhostState::Creating,
            owner,
        };
        if id == self.records.len() {
            self.records.push(record);
            self.entered.push(since);
        } else {
            self.records[id] = record;
            self.entered[id] = since;
        }
        if id / 64 == self.used.len() {
            self.used.push(0);
            self.due.push(0);
            self.ready.push(0);
        }
        self.used[id / 64] |= 1 << (id % 64);
        if self.of_row.len() <= row as usize {
            self.of_row.resize(row as usize + 1, NONE);
        }
        self.of_row[row as usize] = id as u32;
        if self.rows.len() <= row as usize / 64 {
            self.rows.resize(row as usize / 64 + 1, 0);
        }
        self.rows[row as usize / 64] |= 1 << (row % 64);
        self.mark_due(id as u32);
        true
    }

    /// Ends what the client has of a row; false when it has nothing.
    pub(super) fn leave(&mut self, row: u32) -> bool {
        let Some(id) = self.id_of(row) else { return false };
        self.of_row[row as usize] = NONE;
        self.rows[row as usize / 64] &= !(1 << (row % 64));
        let record = &mut self.records[id as usize];
        if record.sent == 0 {
            self.clear_due(id);
            self.free(id);
        } else {
            record.state = GhostState::Destroying;
            self.mark_due(id);
        }
        true
    }

    /// Changes whether the client owns a row: what it has of it is sent whole.
    pub(super) fn set_owner(&mut self, row: u32, tick: u32, owner: bool) {
        let Some(id) = self.id_of(row) else { return };
        let record = &mut self.records[id as usize];
        if record.owner != owner {
            record.owner = owner;
            record.create_again(tick);
            self.mark_due(id);
        }
    }

    /// Marks changed rows, a bit a row: what the client doesn't have of them costs nothing.
    #[inline]
    pub(super) fn mark_changed(&mut self, changed: &[u64]) {
        let rows = core::mem::take(&mut self.rows);
        for (block, (rows, changed)) in rows.iter().zip(changed).enumerate() {
            for row in ones(rows & changed) {
                self.mark_due(self.of_row[block * 64 + row]);
            }
        }
        self.rows = rows;
    }

    /// As [`Scope::mark_changed`], of rows that changed for owners or for others only.
    pub(super) fn mark_changed_for(&mut self, rows: &[(u32, [bool; 2])]) {
        for (row, changed) in rows {
            let Some(id) = self.id_of(*row) else { continue };
            if changed[usize::from(self.records[id as usize].owner)] {
                self.mark_due(id);
            }
        }
    }

    fn lowest_free(&mut self) -> usize {
        while self.used.get(self.free_block) == Some(&u64::MAX) {
            self.free_block += 1;
        }
        let taken = self.used.get(self.free_block).map_or(0, |block| block.trailing_ones() as usize);
        self.free_block * 64 + taken
    }

    fn free(&mut self, id: u32) {
        self.free_block = self.free_block.min(id as usize / 64);
        self.used[id as usize / 64] &= !(1 << (id % 64));
    }

    /// Since which tick an id is that of the ghost which the client knows by it.
    pub(super) fn entered_at(&self, id: u32) -> u32 {
        self.entered.get(id as usize).copied().unwrap_or_default()
    }

    /// Notes that the client is told of an id elsewhere: it is not another's before the client knows of its end, even if it was never
    /// sent.
    pub(super) fn note_named(&mut self, id: u32, tick: u32) {
        let record = &mut self.records[id as usize];
        // Of what was sent the tick says which loss matters.
        if record.sent == 0 {
            record.sent = tick;
        }
    }

    /// The row of a ghost that the client has by this id, unless it is to end.
    pub(super) fn row_of(&self, id: u32) -> Option<u32> {
        let (at, bit) = (id as usize / 64, 1 << (id % 64));
        let record = self.records.get(id as usize).filter(|_| self.used[at] & bit != 0)?;
        (record.state != GhostState::Destroying).then(|| record.row.into())
    }

    // --- what is due -------------------------------------------------------------------------------------

    #[inline]
    pub(super) fn mark_due(&mut self, id: u32) {
        let (block, bit) = (&mut self.due[id as usize / 64], 1 << (id % 64));
        self.due_count += usize::from(*block & bit == 0);
        *block |= bit;
    }

    /// Takes a ghost out of what is due, and out of what is said in this tick.
    #[inline]
    pub(super) fn clear_due(&mut self, id: u32) {
        let (at, bit) = (id as usize / 64, 1 << (id % 64));
        self.due_count -= usize::from(self.due[at] & bit != 0);
        self.due[at] &= !bit;
        self.ready[at] &= !bit;
    }

    #[inline]
    pub(super) fn clear_ready(&mut self, id: u32) {
        self.ready[id as usize / 64] &= !(1 << (id % 64));
    }

    /// Gives the next ids that are ready, from `from` on, and how many these are. Their records are loaded, all at once: where a
    /// tenth of many is due, each is in a line of memory of its own, and waiting for one after the other was two thirds of
    /// the time that a packet took.
    #[inline]
    pub(super) fn next_ready<const N: usize>(&self, from: &mut usize, ids: &mut [u32; N]) -> usize {
        let mut count = 0;
        while let Some(ready) = self.ready.get(*from / 64) {
            let mut ready = ready & (u64::MAX << (*from % 64));
            while ready != 0 && count < N {
                // Below the capacity.
                ids[count] = (*from / 64 * 64) as u32 + ready.trailing_zeros();
                ready &= ready - 1;
                count += 1;
            }
            if count == N {
                *from = ids[N - 1] as usize + 1;
                break;
            }
            *from = (*from / 64 + 1) * 64;
        }
        self.load(ids[..count].iter().copied());
        count
    }

    #[inline]
    pub(super) fn load(&self, ids: impl Iterator<Item = u32>) {
        let loaded = ids.fold(0, |sum, id| sum | self.records[id as usize].sent);
        core::hint::black_box(loaded);
    }

    /// Says all that is due in this tick.
    pub(super) fn ready_all(&mut self) {
        self.ready.copy_from_slice(&self.due);
    }

    pub(super) fn ready_none(&mut self) {
        self.ready.fill(0);
    }

    /// Says what is due of a ghost in this tick; nothing if that is nothing any more.
    pub(super) fn make_ready(&mut self, id: u32) -> Option<GhostState> {
        let (block, bit) = (id as usize / 64, 1 << (id % 64));
        (self.due[block] & bit != 0).then(|| {
            self.ready[block] |= bit;
            self.records[id as usize].state
        })
    }

    pub(super) fn ready_count(&self) -> u32 {
        self.ready.iter().map(|ready| ready.count_ones()).sum()
    }

    pub(super) fn has_ready(&self) -> bool {
        self.due_count > 0 && self.ready.iter().any(|ready| *ready != 0)
    }

    /// What is due and doesn't wait, by id: the row, ticks since it was sent or since the client was to have it, and what it is to get.
    pub(super) fn each_due(&self, tick: u32) -> impl Iterator<Item = (u32, u32, u32, GhostState)> {
        let blocks = self.due.iter().enumerate();
        blocks.flat_map(move |(block, bits)| {
            ones(*bits).filter_map(move |bit| {
                let id = block * 64 + bit;
                let record = &self.records[id];
                if record.waits() {
                    return None;
                }
                let since = if record.sent == 0 { record.acked } else { record.sent };
                // Below the capacity.
                Some((id as u32, u32::from(record.row), tick.saturating_sub(since), record.state))
            })
        })
    }

    /// What is to be said of a ghost in this tick.
    #[inline]
    pub(super) fn due(&mut self, id: u32, tick: u32) -> Due {
        let record = &mut self.records[id as usize];
        let (row, owner) = (record.row.into(), record.owner);
        match record.state {
            _ if record.waits() => {
                // It is due when it is known what became of them.
                self.clear_due(id);
                Due::Later
            }
            GhostState::Live => {
                let since = record.since(record.acked_count);
                if tick - record.acked > MAX_AGE {
                    record.create_again(tick);
                    return self.due(id, tick);
                }
                // When the ack comes, about as many will have been sent once more.
                let near = record.since(record.older_count).saturating_add(since) < HISTORY;
                let older =
                    if record.older_age > 0 && near { record.acked - u32::from(record.older_age) } else { 0 };
                Due::Update { row, owner, ages: Ages { baseline: record.acked, older } }
            }
            // Its ack would say nothing.
            GhostState::Creating if record.acked > tick => Due::Later,
            GhostState::Creating => Due::Create { row, owner },
            GhostState::Destroying if record.sent == tick => Due::Later,
            GhostState::Destroying => Due::Destroy,
        }
    }

    /// A baseline is forgotten by the table: all goes whole.
    pub(super) fn create_again(&mut self, id: u32, tick: u32) {
        self.records[id as usize].create_again(tick);
    }

    /// Something was written of a ghost; gives what its packet's record is to say.
    #[inline]
    pub(super) fn track_sent(
        &mut self,
        class: usize,
        id: u32,
        tick: u32,
        op: CarriedOp,
        older: bool,
    ) -> Carried {
        self.clear_due(id);
        let record = &mut self.records[id as usize];
        record.sent = tick;
        record.count = record.count.wrapping_add(1);
        let base_count = if older { record.older_count } else { record.acked_count };
        // Ids are below 2^16 and classes at most 256.
        Carried { id: id as u16, class: class as u8, op, count: record.count, base_count }
    }

    // --- what became of it -------------------------------------------------------------------------------

    /// The client has a packet of tick `sent` that carried this.
    #[inline]
    pub(super) fn handle_delivered(&mut self, carried: Carried, sent: u32, tick: u32) {
        let id = u32::from(carried.id);
        let record = &mut self.records[usize::from(carried.id)];
        let (fresh, waits) = (tick - sent <= MAX_ACK_AGE, record.waits());
        match (carried.op, record.state) {
            (CarriedOp::Destroy, GhostState::Destroying) => {
                self.clear_due(id);
                self.free(id);
            }
            (CarriedOp::Create, GhostState::Creating)
                if fresh && sent >= record.acked && record.since(carried.count) < HISTORY =>
            {
                record.state = GhostState::Live;
                (record.acked, record.acked_count, record.older_age) = (sent, carried.count, 0);
            }
            (CarriedOp::Create, GhostState::Live) if fresh && record.since(carried.count) < HISTORY => {
                record.acknowledge(sent, carried.count);
            }
            // Whatever the order was in which they arrived, the client had what it was written against.
            (CarriedOp::Update, GhostState::Live) if fresh && record.since(carried.base_count) < HISTORY => {
                record.acknowledge(sent, carried.count);
            }
            _ => {}
        }
        if waits {
            self.go_on(carried, tick);
        }
    }

    /// A packet of tick `sent` that carried this is lost: what no later one carries is due again.
    #[inline]
    pub(super) fn handle_lost(&mut self, carried: Carried, sent: u32, tick: u32) {
        let record = &self.records[usize::from(carried.id)];
        let used = self.used[usize::from(carried.id) / 64] >> (carried.id % 64) & 1 == 1;
        let waits = used && record.waits();
        if used && record.sent == sent {
            self.mark_due(carried.id.into());
        }
        if waits {
            self.go_on(carried, tick);
        }
    }

    /// It is known of one record more of a ghost that waited: it goes on, or when there is none left to know of, begins again.
    fn go_on(&mut self, carried: Carried, tick: u32) {
        let record = &mut self.records[usize::from(carried.id)];
        let waits = record.waits();
        if waits && record.count == carried.count {
            record.create_again(tick);
        } else if waits {
            return;
        }
        self.mark_due(carried.id.into());
    }
}

impl Record {
    /// How many records were sent after the one with this number.
    #[inline]
    fn since(&self, count: u8) -> u8 {
        self.count.wrapping_sub(count)
    }

    /// Whether as many records are under way as may be.
    #[inline]
    fn waits(&self) -> bool {
        self.state != GhostState::Destroying && self.since(self.acked_count) >= MAX_IN_FLIGHT
    }

    /// From now on creates are sent, and only acks of these count.
    fn create_again(&mut self, tick: u32) {
        self.state = GhostState::Creating;
        self.acked = if self.sent >= tick { tick + 1 } else { tick };
        self.acked_count = self.count;
        self.older_age = 0;
    }

    #[inline]
    fn acknowledge(&mut self, sent: u32, count: u8) {
        if sent <= self.acked {
            return;
        }
        let age = sent - self.acked;
        // At most 64.
        self.older_age = if age <= MAX_OLDER { age as u8 } else { 0 };
        self.older_count = self.acked_count;
        (self.acked, self.acked_count) = (sent, count);
    }
}

/// The bits that are set, rising.
pub(super) fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = bits.trailing_zeros() as usize;
        (bits != 0).then(|| {
            bits &= bits - 1;
            bit
        })
    })
}
