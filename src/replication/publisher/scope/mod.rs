//! A client's state of one class: its ghosts by id, which of them are due, and which states of each it is known to
//! have.
//!
//! Ids belong to the client: the lowest free one comes first, and an id is free again when the destroy is acked. So
//! they reveal nothing about other clients.

mod fates;
mod memory;
mod record;

use super::super::class::HISTORY;
use super::super::packet::{Audience, Base, MAX_AGE};
use super::super::table::Table;
use crate::store::{ones, ones_of};
pub(super) use record::{CarriedGhost, CarriedOp, GhostState};
use record::{Hold, Record};

const NONE: u32 = u32::MAX;

/// In how many ticks a destroy is sent to a client that loses packets. An update that is lost is replaced by the next one, but a
/// ghost whose destroy is lost stands still until the loss is known.
const DESTROY_COPIES: u8 = 3;

/// What to write of a due ghost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Update {
        row: u32,
        base: Base,
        /// The client's group in the class.
        group: u8,
        /// As what it is carried.
        op: CarriedOp,
    },
    Create {
        row: u32,
        audience: Audience,
    },
    Destroy,
    /// Not in this tick.
    Later,
}

/// A client's ghosts of a class.
#[derive(Debug, Default)]
pub(super) struct Scope {
    records: Vec<Record>,
    /// By id: since which tick it is this ghost's.
    entered: Vec<u32>,
    /// A bit for each id: in use; has something due; is sent in this tick.
    used: Vec<u64>,
    due: Vec<u64>,
    ready: Vec<u64>,
    due_count: usize,
    /// No block before this one has a free id.
    free_block: usize,
    /// By row; and a bit for each row that has a ghost.
    of_row: Vec<u32>,
    rows: Vec<u64>,
    /// A bit for each row whose ghost has another number than the row.
    other_ids: Vec<u64>,
}

impl Scope {
    pub(super) fn id_of(&self, row: u32) -> Option<u32> {
        self.of_row.get(row as usize).copied().filter(|id| *id != NONE)
    }

    pub(super) fn due_count(&self) -> usize {
        self.due_count
    }

    // --- what the client is to have ----------------------------------------------------------------------

    /// Whether an id below this capacity is free: ghosts keep theirs until their end is acked.
    pub(super) fn has_room(&mut self, capacity: u32) -> bool {
        self.lowest_free() < capacity as usize
    }

    /// Gives the client a row; false if it has it.
    pub(super) fn enter(&mut self, row: u32, tick: u32, audience: Audience) -> bool {
        if self.id_of(row).is_some() {
            return false;
        }
        let id = self.lowest_free();
        // The client ignores a new ghost's records from the tick of the old one's end.
        let since = self.records.get(id).map_or(tick, |last| tick.max(last.sent + 1));
        self.put(id, Record::new(row, since, GhostState::Creating, audience), since);
        // Below the capacity.
        self.link(id as u32, row);
        self.mark_due(id as u32);
        true
    }

    /// Uses an id from a tick on.
    fn put(&mut self, id: usize, record: Record, since: u32) {
        if self.records.len() <= id {
            // Free ids before it are as if they had been used until then.
            self.records.resize(id + 1, record);
            self.entered.resize(id + 1, since);
            for bits in [&mut self.used, &mut self.due, &mut self.ready] {
                bits.resize(id / 64 + 1, 0);
            }
        }
        (self.records[id], self.entered[id]) = (record, since);
        self.used[id / 64] |= 1 << (id % 64);
    }

    /// Makes an id that of a row's ghost.
    fn link(&mut self, id: u32, row: u32) {
        let (at, bit) = (row as usize, 1 << (row % 64));
        if self.of_row.len() <= at {
            self.of_row.resize(at + 1, NONE);
            self.rows.resize(at / 64 + 1, 0);
            self.other_ids.resize(at / 64 + 1, 0);
        }
        self.of_row[at] = id;
        self.rows[at / 64] |= bit;
        self.other_ids[at / 64] = self.other_ids[at / 64] & !bit | if id == row { 0 } else { bit };
    }

    /// Takes a row from the client; false if it doesn't have it.
    pub(super) fn leave(&mut self, row: u32) -> bool {
        let Some(id) = self.id_of(row) else { return false };
        self.of_row[row as usize] = NONE;
        self.rows[row as usize / 64] &= !(1 << (row % 64));
        let record = &mut self.records[id as usize];
        if record.sent == 0 {
            self.clear_due(id);
            self.free(id);
        } else {
            record.destroy();
            self.mark_due(id);
        }
        true
    }

    /// Whether the client may have a ghost of a row.
    pub(super) fn was_sent(&self, row: u32) -> bool {
        self.id_of(row).is_some_and(|id| self.records[id as usize].sent > 0)
    }

    /// Changes who the client is to a row: what it has of it is sent whole.
    pub(super) fn set_audience(&mut self, row: u32, tick: u32, of: impl FnOnce(Audience) -> Audience) {
        let Some(id) = self.id_of(row) else { return };
        let record = &mut self.records[id as usize];
        let (before, audience) = (record.hold.audience(), of(record.hold.audience()));
        if before != audience {
            record.hold = Hold::new(audience);
            if !record.is_unsent() {
                record.create_again(tick);
            }
            self.mark_due(id);
        }
    }

    /// Says for which rows, a byte each, the game chose the client.
    pub(super) fn set_chosen(&mut self, tick: u32, chosen: &[u8]) {
        let rows = core::mem::take(&mut self.rows);
        for row in ones_of(&rows) {
            let chosen = chosen.get(row).is_some_and(|byte| *byte != 0);
            // Below the capacity.
            self.set_audience(row as u32, tick, |before| Audience { chosen, ..before });
        }
        self.rows = rows;
    }

    /// Whether the game chose the client for a row that it has.
    pub(super) fn is_chosen(&self, row: u32) -> bool {
        self.id_of(row).is_some_and(|id| self.records[id as usize].hold.chosen())
    }

    /// Marks the rows that changed in this tick; rows that the client doesn't have cost nothing.
    #[inline]
    pub(super) fn mark_changed(&mut self, tick: u32, table: &Table) {
        if !table.class().is_plain() {
            return self.mark_seen(tick, table);
        }
        let changed = table.changed_blocks();
        let blocks = self.rows.len().min(changed.len());
        for (block, changed) in changed[..blocks].iter().enumerate() {
            let (changed, others) = (changed & self.rows[block], self.other_ids[block]);
            if changed == 0 {
                continue;
            }
            // Where a client was given all rows, each has its row's number: a block of them is marked at once.
            if let Some(due) = self.due.get_mut(block) {
                let marks = changed & !others;
                self.due_count += (marks & !*due).count_ones() as usize;
                *due |= marks;
            }
            for row in ones(changed & others) {
                self.mark_due(self.of_row[block * 64 + row]);
            }
        }
    }

    /// [`Scope::mark_changed`] where clients are sent some properties only: the others don't affect their packets.
    fn mark_seen(&mut self, tick: u32, table: &Table) {
        for row in table.changed() {
            let Some(id) = self.id_of(*row) else { continue };
            let group = self.records[id as usize].hold.audience().group(table.class());
            if table.turn(group.into(), *row).last == tick {
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

    /// The tick since which an id has been its present ghost's.
    pub(super) fn entered_at(&self, id: u32) -> u32 {
        self.entered.get(id as usize).copied().unwrap_or_default()
    }

    /// Notes that a message names an id: it isn't reused before the client knows of the ghost's end, even if the ghost
    /// was never sent.
    pub(super) fn note_named(&mut self, id: u32, tick: u32) {
        let record = &mut self.records[id as usize];
        // For ghosts that were sent, the tick tells which losses matter.
        if record.sent == 0 {
            record.sent = tick;
        }
    }

    /// The row of the client's ghost with this id, unless it is ending.
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

    /// Removes a ghost from those due and those sent in this tick.
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

    /// Returns the next ready ids from `from` on, and their number. Loads all their records at once: if a tenth of many
    /// is due, each is in a cache line of its own, and waiting for one after the other took two thirds of a packet's
    /// time.
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

    /// Makes all due ghosts ready for this tick.
    pub(super) fn ready_all(&mut self) {
        self.ready.copy_from_slice(&self.due);
    }

    pub(super) fn ready_none(&mut self) {
        self.ready.fill(0);
    }

    /// Makes a due ghost ready for this tick; None if it isn't due any more.
    pub(super) fn make_ready(&mut self, id: u32) -> Option<GhostState> {
        let (block, bit) = (id as usize / 64, 1 << (id % 64));
        (self.due[block] & bit != 0).then(|| {
            self.ready[block] |= bit;
            self.records[id as usize].state
        })
    }

    /// The ready ghosts, by id.
    pub(super) fn each_ready(&self) -> impl Iterator<Item = u32> {
        // Below the capacity.
        ones_of(&self.ready).map(|id| id as u32)
    }

    pub(super) fn ready_count(&self) -> u32 {
        self.ready.iter().map(|ready| ready.count_ones()).sum()
    }

    pub(super) fn has_ready(&self) -> bool {
        self.due_count > 0 && self.ready.iter().any(|ready| *ready != 0)
    }

    /// The due ghosts that aren't waiting, by id: row, ticks since it was sent or was to be, and its state.
    pub(super) fn each_due(&self, tick: u32) -> impl Iterator<Item = (u32, u32, u32, GhostState)> {
        let due = ones_of(&self.due).map(|id| (id, &self.records[id]));
        due.filter(|(_, record)| !record.waits()).map(move |(id, record)| {
            let since = if record.sent == 0 { record.acked } else { record.sent };
            // Below the capacity.
            (id as u32, record.row.into(), tick.saturating_sub(since), record.state)
        })
    }

    /// What to write of a ghost in this tick, against states that the client is known to have: its newest packet that is known to
    /// have arrived is of the tick `acked`.
    #[inline]
    pub(super) fn due(&mut self, id: u32, (tick, acked): (u32, u32), table: &Table) -> Due {
        let record = &mut self.records[id as usize];
        let (row, group) = (record.row.into(), record.hold.audience().group(table.class()));
        match record.state {
            _ if record.waits() => {
                // It becomes due again when their fate is known.
                self.clear_due(id);
                Due::Later
            }
            GhostState::Live if table.class().coded => {
                if tick - record.acked > MAX_AGE {
                    return self.create_again(id, tick);
                }
                let (base, op) = record.base_of_coded(acked, table, group.into());
                Due::Update { row, group, base, op }
            }
            GhostState::Live => {
                let (since, turn) = (record.since(record.acked_count), table.turn(group.into(), row));
                // The state before the last change is its newest, whatever else of it is in flight.
                // Where it is reckoned, each record sent of that state has other words.
                let is_before = record.acked >= turn.before && record.acked < turn.last;
                let of_one_tick = || record.sent == turn.before || !table.is_reckoned();
                if is_before && record.sent < turn.last && of_one_tick() {
                    let step = since == 0 && table.has_stepped(row);
                    let depth = if step { record.hold.run().min(1) } else { 0 };
                    let op = if step { CarriedOp::Step } else { CarriedOp::Update };
                    return Due::Update { row, group, base: Base::Newest { depth }, op };
                }
                if tick - record.acked > MAX_AGE {
                    return self.create_again(id, tick);
                }
                // By the time of the ack, about as many more will have been sent.
                let near = record.since(record.older_count).saturating_add(since) < HISTORY;
                let older =
                    if record.older_age > 0 && near { record.acked - u32::from(record.older_age) } else { 0 };
                let base = Base::Named { baseline: record.acked, older };
                Due::Update { row, group, base, op: CarriedOp::Update }
            }
            // Its ack would prove nothing.
            GhostState::Creating if record.acked > tick => Due::Later,
            GhostState::Creating => Due::Create { row, audience: record.hold.audience() },
            GhostState::Destroying if record.sent == tick => Due::Later,
            GhostState::Destroying => Due::Destroy,
        }
    }

    /// The table has forgotten the baseline, or it is too old: the ghost is sent whole.
    pub(super) fn create_again(&mut self, id: u32, tick: u32) -> Due {
        let record = &mut self.records[id as usize];
        record.create_again(tick);
        match record.acked > tick {
            true => Due::Later,
            false => Due::Create { row: record.row.into(), audience: record.hold.audience() },
        }
    }

    /// All that is known of a ghost, as one number: an update of it follows from that and the tick.
    #[inline]
    pub(super) fn key(&self, id: u32) -> u128 {
        self.records[id as usize].key()
    }

    /// The same was written of these ghosts as of another client's with the same keys.
    pub(super) fn take_run(&mut self, carried: &[CarriedGhost], tick: u32) {
        for carried in carried.chunk_by(|a, b| a.id / 64 == b.id / 64) {
            let block = usize::from(carried[0].id) / 64;
            let bits = carried.iter().fold(0, |bits, each| bits | 1u64 << (each.id % 64));
            let (due, ready) = (&mut self.due[block], &mut self.ready[block]);
            self.due_count -= (*due & bits).count_ones() as usize;
            (*due, *ready) = (*due & !bits, *ready & !bits);
        }
        for each in carried {
            // Their keys were compared.
            let Some(record) = self.records.get_mut(usize::from(each.id)) else { continue };
            record.sent = tick;
            record.count = record.count.wrapping_add(1);
        }
    }

    /// Notes that a ghost was written; returns its record for the packet.
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
            Base::Named { older: 0, .. } | Base::UpTo { run: 0, .. } => record.acked_count,
            Base::Named { .. } => record.older_count,
            // In each tick there was one at most.
            Base::UpTo { past: 0, run, .. } => record.acked_count.wrapping_sub(run),
            Base::UpTo { run, .. } => record.acked_count.wrapping_sub(run * record.older_age),
        };
        // Ids are below 2^16, and there are at most 256 classes.
        CarriedGhost { id: id as u16, class: class as u8, op, count: record.count, base_count }
    }

    /// A destroy was sent to a client that loses packets: it goes again in the next ticks.
    pub(super) fn repeat_destroy(&mut self, id: u32) {
        let record = &self.records[id as usize];
        if record.since(record.acked_count) < DESTROY_COPIES {
            self.mark_due(id);
        }
    }

    /// Whether a destroy of this ghost is in flight, so that the due one is a copy.
    pub(super) fn is_destroy_repeated(&self, id: u32) -> bool {
        let record = &self.records[id as usize];
        record.state == GhostState::Destroying && record.since(record.acked_count) > 0
    }
}
