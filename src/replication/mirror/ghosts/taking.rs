//! The game's tick: what changed of a client's ghosts goes into its columns.

use super::super::super::class::GhostClass;
use super::{ALIVE, FRESH, Ghosts, LISTED, OWNED, REPORTED_OWNED};

impl Ghosts {
    /// Drops all ghosts. Calls `report` with each that was reported to the game, by id.
    pub(in super::super) fn clear(&mut self, mut report: impl FnMut(u32)) {
        for id in 0..self.rows {
            if self.flags(id) & (ALIVE | FRESH) == ALIVE {
                // Below the capacity.
                report(id as u32);
            }
        }
        self.pages.clear();
        self.departed.clear();
        self.listed.clear();
    }

    /// The reported ghosts with changed values, with the mask of changes: before [`Ghosts::take`], in any order.
    pub(in super::super) fn changing(&self) -> impl Iterator<Item = (u32, u64)> {
        self.listed.iter().filter_map(|id| {
            let (page, at) = self.pages.get(*id as usize)?;
            let (flags, dirty) = (page.states.flags(at), page.states.dirty(at));
            (flags & (ALIVE | FRESH) == ALIVE && dirty != 0).then_some((*id, dirty))
        })
    }

    /// Calls `report` with each ghost that is new to the game, by id: before [`Ghosts::take`].
    pub(in super::super) fn take_spawns(&mut self, mut report: impl FnMut(u32)) {
        self.listed.sort_unstable();
        for id in &self.listed {
            if self.flags(*id as usize) & (ALIVE | FRESH) == ALIVE | FRESH {
                report(*id);
            }
        }
    }

    /// Puts changes into the columns, a cell per ghost; ghosts without a cell wait. Calls `report` with each ghost,
    /// the mask of changes, whether it is new to the game, and its new ownership if that changed.
    pub(in super::super) fn take(
        &mut self,
        columns: &mut [&mut [u8]],
        mut report: impl FnMut(u32, u64, bool, Option<bool>),
    ) {
        if self.listed.is_empty() {
            return;
        }
        let rows = self.rows_in(columns);
        let mut listed = core::mem::take(&mut self.listed);
        let first_waiting = listed.partition_point(|id| (*id as usize) < rows);
        for id in &listed[..first_waiting] {
            let Some((page, at)) = self.pages.get_mut(*id as usize) else { continue };
            let flags = page.states.flags(at);
            let mask = page.states.dirty(at);
            page.states.set_dirty(at, 0);
            let mut left = flags & !(LISTED | FRESH);
            if flags & ALIVE == 0 {
                page.states.set_flags(at, left);
                continue;
            }
            let (owned, reported_owned) = (flags & OWNED != 0, flags & REPORTED_OWNED != 0);
            let owner = (owned != reported_owned).then_some(owned);
            if owner.is_some() {
                left ^= REPORTED_OWNED;
            }
            page.states.set_flags(at, left);
            if mask & self.with_words != 0 {
                page.states.newest(at, &mut self.newest);
                restore(&self.class, *id as usize, mask & self.with_words, &self.newest, columns);
            }
            report(*id, mask, flags & FRESH != 0, owner);
        }
        listed.drain(..first_waiting);
        // Their spawn was reported; their values follow when there are cells.
        for id in &listed {
            if let Some((page, at)) = self.pages.get_mut(*id as usize) {
                page.states.set_flags(at, page.states.flags(at) & !FRESH);
            }
        }
        self.listed = listed;
    }

    /// Ghosts that all columns have cells for.
    fn rows_in(&self, columns: &[&mut [u8]]) -> usize {
        let sizes = self.class.properties.of(self.with_words).map(|(i, property)| {
            let bytes = columns.get(i).map_or(0, |column| column.len());
            bytes.checked_div(property.field().node().size()).unwrap_or(usize::MAX)
        });
        sizes.min().unwrap_or(usize::MAX)
    }
}

/// Writes the words of a mask's properties into a ghost's cells.
#[inline]
fn restore(class: &GhostClass, id: usize, mask: u64, words: &[u64], columns: &mut [&mut [u8]]) {
    for (i, property) in class.properties.of(mask) {
        let size = property.field().node().size();
        let words = &words[class.properties.word_range(i)];
        property.restore_column(words, &mut columns[i][id * size..][..size], size);
    }
}
