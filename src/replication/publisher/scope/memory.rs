//! A client's ids, kept from one connection to the next and in saved worlds.

use super::super::super::packet::Audience;
use super::record::{GhostState, Hold, Record};
use super::{NONE, Scope};
use crate::store::ones;

impl Scope {
    /// The rows that the client has ghosts of.
    pub(in super::super) fn shown_rows(&self) -> impl Iterator<Item = u32> {
        // Below the capacity.
        let blocks = self.rows.iter().enumerate();
        blocks.flat_map(|(block, rows)| ones(*rows).map(move |bit| (block * 64 + bit) as u32))
    }

    /// A new connection knows nothing of earlier packets: all that the client had is sent again under the same ids, and what
    /// ended meanwhile is ended.
    pub(in super::super) fn send_again(&mut self, tick: u32, owns: impl Fn(u32) -> bool) {
        self.ready_none();
        for block in 0..self.used.len() {
            for bit in ones(self.used[block]) {
                let record = &mut self.records[block * 64 + bit];
                record.hold = Hold::new(Audience { owner: owns(record.row.into()), chosen: false });
                if record.state == GhostState::Destroying {
                    record.destroy();
                } else if !record.is_unsent() {
                    record.create_again(tick);
                }
                // Below the capacity.
                self.mark_due((block * 64 + bit) as u32);
            }
        }
    }

    /// The ids that the client may have ghosts of, in rising order, each with its row; none for those that ended.
    pub(in super::super) fn ids(&self) -> impl Iterator<Item = (u32, Option<u32>)> {
        let ids = self.used.iter().enumerate();
        let ids = ids.flat_map(|(block, used)| ones(*used).map(move |bit| block * 64 + bit));
        ids.filter_map(|id| {
            let record = &self.records[id];
            let row = (record.state != GhostState::Destroying).then(|| record.row.into());
            // Below the capacity.
            (record.sent > 0).then_some((id as u32, row))
        })
    }

    /// A scope with these ids, as of a tick.
    pub(in super::super) fn with_ids(ids: &[(u32, Option<u32>)], tick: u32) -> Self {
        let mut scope = Scope::default();
        let count = ids.iter().map(|(id, _)| *id as usize + 1).max().unwrap_or(0);
        let rows = ids.iter().filter_map(|(_, row)| *row).map(|row| row as usize + 1).max().unwrap_or(0);
        let free = Record {
            // A client may have what was sent; nothing is at tick 0.
            sent: tick.max(1),
            acked: tick,
            row: 0,
            older_age: 0,
            older_count: 0,
            acked_count: 0,
            count: 0,
            state: GhostState::Destroying,
            hold: Hold::new(Audience::default()),
        };
        scope.records.resize(count, free);
        scope.entered.resize(count, tick);
        for bits in [&mut scope.used, &mut scope.due, &mut scope.ready] {
            bits.resize(count.div_ceil(64), 0);
        }
        scope.of_row.resize(rows, NONE);
        scope.rows.resize(rows.div_ceil(64), 0);
        scope.other_ids.resize(rows.div_ceil(64), 0);
        for (id, row) in ids {
            let at = *id as usize;
            scope.used[at / 64] |= 1 << (at % 64);
            let Some(row) = *row else { continue };
            // Rows are below a capacity of 2^16.
            (scope.records[at].row, scope.records[at].state) = (row as u16, GhostState::Live);
            let (block, bit) = (row as usize / 64, row % 64);
            scope.of_row[row as usize] = *id;
            scope.rows[block] |= 1 << bit;
            scope.other_ids[block] |= u64::from(at != row as usize) << bit;
        }
        scope
    }
}
