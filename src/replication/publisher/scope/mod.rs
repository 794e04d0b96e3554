//! What one client has of one class: the ghosts by id, which of them are due, and which states of each it is known to have.
//!
//! Ids are the client's own, the lowest free one first, and free again when the destroy was acked: they say nothing of what
//! others have.

mod fates;
mod record;

use super::super::class::HISTORY;
use super::super::packet::{Base, MAX_AGE};
use super::super::table::Table;
use crate::store::ones;
pub(super) use record::{CarriedGhost, CarriedOp, GhostState};
use record::{Hold, Record};

const NONE: u32 = u32::MAX;

/// What is to be written of a ghost that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Update {
        row: u32,
        base: Base,
        owner: bool,
        /// Whether it goes out as a [`CarriedOp::Step`].
        step: bool,
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
            hold: Hold::new(owner),
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
        if record.hold.owner() != owner {
            record.hold = Hold::new(owner);
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
            if changed[usize::from(self.records[id as usize].hold.owner())] {
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

    /// Notes that a message gives the client an id: it is not another's before the client knows of its end, even if it was never
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

    /// What is to be said of a ghost in this tick, against the newest state and at most this many before it where the client is
    /// known to have these.
    #[inline]
    pub(super) fn due(&mut self, id: u32, tick: u32, table: &Table, depth: u8) -> Due {
        let record = &mut self.records[id as usize];
        let (row, owner) = (record.row.into(), record.hold.owner());
        match record.state {
            _ if record.waits() => {
                // It is due when it is known what became of them.
                self.clear_due(id);
                Due::Later
            }
            GhostState::Live => {
                let (since, turn) = (record.since(record.acked_count), table.turn(owner, row));
                // It has no state but the one before the last change as its newest, whatever else of it is on its way.
                if record.acked >= turn.before && record.acked < turn.last && record.sent < turn.last {
                    let step = since == 0 && table.has_stepped(row);
                    let depth = if step { record.hold.run().min(depth) } else { 0 };
                    return Due::Update { row, owner, base: Base::Newest { depth }, step };
                }
                if tick - record.acked > MAX_AGE {
                    return self.create_again(id, tick);
                }
                // When the ack comes, about as many will have been sent once more.
                let near = record.since(record.older_count).saturating_add(since) < HISTORY;
                let older =
                    if record.older_age > 0 && near { record.acked - u32::from(record.older_age) } else { 0 };
                let base = Base::Named { baseline: record.acked, older };
                Due::Update { row, owner, base, step: false }
            }
            // Its ack would say nothing.
            GhostState::Creating if record.acked > tick => Due::Later,
            GhostState::Creating => Due::Create { row, owner },
            GhostState::Destroying if record.sent == tick => Due::Later,
            GhostState::Destroying => Due::Destroy,
        }
    }

    /// A baseline is forgotten by the table, or too old: all goes whole.
    pub(super) fn create_again(&mut self, id: u32, tick: u32) -> Due {
        let record = &mut self.records[id as usize];
        record.create_again(tick);
        match record.acked > tick {
            true => Due::Later,
            false => Due::Create { row: record.row.into(), owner: record.hold.owner() },
        }
    }

    /// All that is known of a ghost, as one number: an update of it follows from that and the tick.
    #[inline]
    pub(super) fn key(&self, id: u32) -> u128 {
        self.records[id as usize].key()
    }

    /// The same was written of these ghosts as of another client's with these keys; false, and nothing has changed, where any of
    /// them is another.
    pub(super) fn take_run(&mut self, ids: &[u32], keys: &[u128], tick: u32) -> bool {
        let differ = ids.iter().zip(keys).any(|(id, key)| self.records[*id as usize].key() != *key);
        if differ {
            return false;
        }
        for id in ids {
            self.clear_due(*id);
            let record = &mut self.records[*id as usize];
            record.sent = tick;
            record.count = record.count.wrapping_add(1);
        }
        true
    }

    /// Something was written of a ghost; gives what its packet's record is to say.
    #[inline]
    pub(super) fn track_sent(
        &mut self,
        class: usize,
        id: u32,
        tick: u32,
        op: CarriedOp,
        base: Base,
    ) -> CarriedGhost {
        self.clear_due(id);
        let record = &mut self.records[id as usize];
        record.sent = tick;
        record.count = record.count.wrapping_add(1);
        let base_count = match base {
            Base::Newest { depth } => record.acked_count.wrapping_sub(depth),
            Base::Named { older: 0, .. } => record.acked_count,
            Base::Named { .. } => record.older_count,
        };
        // Ids are below 2^16 and classes at most 256.
        CarriedGhost { id: id as u16, class: class as u8, op, count: record.count, base_count }
    }
}
