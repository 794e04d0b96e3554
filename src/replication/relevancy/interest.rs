//! The rows of one class that one client has.

use super::super::scan::BLOCK;
use super::super::table::Table;
use crate::store::ones;

/// Rows that a client is to have from now on, and no more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub entered: Vec<u32>,
    /// Except for those that ended.
    pub left: Vec<u32>,
}

/// The rows of a class that matter to a client.
#[derive(Clone, Debug, Default)]
pub struct Interest {
    /// A bit a row: the client has it; it is relevant; it may stay.
    members: Vec<u64>,
    pub(super) wanted: Vec<u64>,
    pub(super) kept: Vec<u64>,
    /// Members that may not stay, a bit for each; and by row, the tick from which they didn't.
    lingering: Vec<u64>,
    since: Vec<u32>,
    /// The rule's version, the viewpoints and the client's own rows at the last query.
    pub(super) seen: u64,
    pub(super) views: Vec<[f64; 3]>,
    pub(super) owned: Vec<u32>,
}

impl Interest {
    /// Whether the client is to have a row.
    pub fn contains(&self, row: u32) -> bool {
        let block = self.members.get(row as usize / BLOCK);
        block.is_some_and(|block| block >> (row as usize % BLOCK) & 1 == 1)
    }

    /// The client has these rows, whether they are relevant or not.
    pub fn assume(&mut self, rows: &[u32]) {
        for row in rows {
            let block = *row as usize / BLOCK;
            if self.members.len() <= block {
                self.members.resize(block + 1, 0);
                self.lingering.resize(block + 1, 0);
            }
            self.members[block] |= 1 << (*row as usize % BLOCK);
        }
    }

    /// A row ended: its number may be reused for another ghost.
    pub fn forget(&mut self, row: u32) {
        let (block, bit) = (row as usize / BLOCK, 1 << (row as usize % BLOCK));
        for bits in [&mut self.members, &mut self.lingering] {
            bits.get_mut(block).into_iter().for_each(|bits| *bits &= !bit);
        }
        // Its number may have come back between two ticks.
        self.seen = 0;
    }

    /// Whether time alone can change something.
    pub(super) fn is_waiting(&self) -> bool {
        self.lingering.iter().any(|bits| *bits != 0)
    }

    /// Begins with nothing relevant, of this many rows.
    pub(super) fn begin(&mut self, rows: usize) {
        let blocks = rows.div_ceil(BLOCK).max(self.members.len());
        self.members.resize(blocks, 0);
        self.lingering.resize(blocks, 0);
        self.since.resize(blocks * BLOCK, 0);
        for bits in [&mut self.wanted, &mut self.kept] {
            bits.clear();
            bits.resize(blocks, 0);
        }
    }

    /// Makes a row relevant.
    #[inline]
    pub(super) fn want(&mut self, row: u32) {
        self.wanted[row as usize / BLOCK] |= 1 << (row as usize % BLOCK);
    }

    /// Lets a row stay if the client has it.
    #[inline]
    pub(super) fn keep(&mut self, row: u32) {
        self.kept[row as usize / BLOCK] |= 1 << (row as usize % BLOCK);
    }

    /// Compares the relevant rows with those that the client has. Rows that may not stay leave after `linger` ticks.
    pub(super) fn finish(&mut self, tick: u32, linger: u32, table: &Table, changes: &mut Changes) {
        let bits =
            self.members.iter_mut().zip(&mut self.lingering).zip(self.wanted.iter().zip(&mut self.kept));
        for (block, ((members, lingering), (wanted, kept))) in bits.enumerate() {
            // A row is below the capacity.
            let row = |bit: usize| (block * BLOCK + bit) as u32;
            *kept |= wanted;
            for bit in ones(*members & !*kept) {
                let (row, since) = (row(bit), &mut self.since[block * BLOCK + bit]);
                *since = if *lingering >> bit & 1 == 1 { *since } else { tick };
                let is_alive = table.is_alive(row);
                if !is_alive || tick - *since >= linger {
                    *members &= !(1 << bit);
                    changes.left.extend(is_alive.then_some(row));
                }
            }
            *lingering = *members & !*kept;
            changes.entered.extend(ones(*wanted & !*members).map(row));
            *members |= wanted;
        }
    }
}
