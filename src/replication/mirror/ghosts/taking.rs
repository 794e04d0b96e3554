//! The game's tick: what changed of a client's ghosts goes into its columns.

use super::super::super::class::GhostClass;
use super::super::pages::Page;
use super::super::states::Head;
use super::{ALIVE, FRESH, Ghosts, KEPT, LISTED, OWNED, REPORTED_OWNED};
use crate::store::prefetch_across;

/// How many ghosts are fetched at a time, where fewer than one of this many changed.
const BATCH: usize = 64;
const SPARSE: usize = 4;

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

    /// Keeps the ghosts that came up to a tick with their newest states, which count as older than all that follow, and ends
    /// the others. Calls `report` with each of those that was reported to the game, by id.
    pub(in super::super) fn keep(&mut self, until: u32, mut report: impl FnMut(u32)) {
        let count = self.without_words.len();
        self.departed.clear();
        for id in 0..self.rows {
            let Some((Page { states, bodies, came, version }, at)) = self.pages.get_mut(id) else { continue };
            // Ticks are compared as they wrap. Ghosts that were kept before are older than any visit.
            let comes_later =
                came.get(at).is_some_and(|came| *came != KEPT && came.wrapping_sub(until).cast_signed() > 0);
            *version = version.wrapping_add(1);
            let flags = states.heads[at].flags;
            let state = states.newest(at).unwrap_or_default().to_vec();
            states.clear(at);
            states.heads[at].destroyed = 0;
            if flags & ALIVE == 0 {
                continue;
            }
            if comes_later {
                (states.heads[at].flags, states.heads[at].dirty) = (flags & LISTED, 0);
                bodies[at * count..][..count].fill(Box::default());
                if flags & FRESH == 0 {
                    // Below the capacity.
                    report(id as u32);
                }
                continue;
            }
            came[at] = KEPT;
            self.push(id, KEPT, &state);
        }
    }

    /// The reported ghosts with changed values, with the mask of changes: before [`Ghosts::take`], in any order.
    pub(in super::super) fn changing(&self) -> impl Iterator<Item = (u32, u64)> {
        self.listed.iter().filter_map(|id| {
            let (page, at) = self.pages.get(*id as usize)?;
            let Head { flags, dirty, .. } = page.states.heads[at];
            (flags & (ALIVE | FRESH) == ALIVE && dirty != 0).then_some((*id, dirty))
        })
    }

    /// Calls `report` with each ghost that is new to the game, by id: before [`Ghosts::take`].
    pub(in super::super) fn take_spawns(&mut self, mut report: impl FnMut(u32)) {
        if !self.listed.is_sorted() {
            self.listed.sort_unstable();
        }
        if !core::mem::take(&mut self.has_spawns) {
            return;
        }
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
        let (class, form) = (&*self.class, self.pages.form());
        for ids in listed[..first_waiting].chunks(BATCH) {
            // Where few of a large world changed, each is where nothing else is.
            if let [first, .., last] = ids
                && (last - first) as usize > SPARSE * ids.len()
            {
                self.fetch_all(ids, columns);
            }
            for id in ids {
                let Some((page, at)) = self.pages.get_mut(*id as usize) else { continue };
                let head = &mut page.states.heads[at];
                let (flags, mask) = (head.flags, core::mem::take(&mut head.dirty));
                head.flags &= !(LISTED | FRESH);
                if flags & ALIVE == 0 {
                    continue;
                }
                head.flags ^= if is_owner_news(flags) { REPORTED_OWNED } else { 0 };
                let Some(state) = page.states.newest(at) else { continue };
                if mask & self.with_words != 0 {
                    if let Some(narrow) = &self.narrow {
                        narrow.restore(&class.properties, mask, state, *id as usize, columns);
                    } else {
                        form.load(state, &mut self.newest);
                        restore(class, *id as usize, mask & self.with_words, &self.newest, columns);
                    }
                }
                let owner = is_owner_news(flags).then_some(flags & OWNED != 0);
                report(*id, mask, flags & FRESH != 0, owner);
            }
        }
        listed.drain(..first_waiting);
        // Their spawn was reported; their values follow when there are cells.
        for id in &listed {
            if let Some((page, at)) = self.pages.get_mut(*id as usize) {
                page.states.heads[at].flags &= !FRESH;
            }
        }
        self.listed = listed;
    }

    /// Has the rows of ghosts fetched, and the cells that they change.
    fn fetch_all(&self, ids: &[u32], columns: &[&mut [u8]]) {
        ids.iter().for_each(|id| self.pages.fetch(*id as usize));
        for id in ids.iter().map(|id| *id as usize) {
            let Some((page, at)) = self.pages.get(id) else { continue };
            for (i, property) in self.class.properties.of(page.states.heads[at].dirty & self.with_words) {
                let size = property.field().node().size();
                if let Some(cell) = columns[i].get(id * size..(id + 1) * size) {
                    prefetch_across(cell);
                }
            }
        }
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

/// Whether the game has not heard that the client owns the ghost, or no more.
#[inline]
fn is_owner_news(flags: u8) -> bool {
    (flags & OWNED != 0) != (flags & REPORTED_OWNED != 0)
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
