//! A tick of a table: reads the cells into the rows' states.

use super::super::class::MAX_GROUPS;
use super::super::scan::BLOCK;
use super::reckoned::Block;
use super::{Column, Table, Turn, Wrong};
use crate::store::ones;
use crate::wire::ValueError;

impl Table {
    /// Sets the value of a property without words, from a body that [`crate::wire::Schema::write_row`] would accept.
    /// It belongs to the row's state from the next tick on. Returns whether it differs from the last one.
    ///
    /// # Errors
    ///
    /// Why the value is invalid; nothing has changed then.
    pub fn set_cell(&mut self, row: u32, property: usize, body: &[u8]) -> Result<bool, ValueError> {
        if !self.is_alive(row) {
            return Err(ValueError::Row);
        }
        let row = row as usize;
        let changed = self.wordless.set(&self.class.properties, row, property, body)?;
        if changed {
            self.fresh[row / BLOCK] |= 1 << (row % BLOCK);
        }
        Ok(changed)
    }

    /// Reads the cells, a column for each property in the order of the fields: they are the rows' state from this tick on.
    ///
    /// # Errors
    /// The first row that keeps the state it had, and why. All others have their new one. When a column is too short, nothing
    /// is read.
    pub fn update(&mut self, tick: u32, columns: &[Column<'_>]) -> Result<(), Wrong> {
        self.update_sent(tick, columns, |_, _| u32::MAX)
    }

    /// Like [`Table::update`]. `sent` returns the tick in which a row was last sent to any client of a group: a state
    /// that wasn't sent while it held can't be a baseline, and isn't remembered. So rows that are seldom sent are
    /// remembered for long, and what one group alone is sent doesn't push out the others' baselines.
    ///
    /// # Errors
    ///
    /// Those of [`Table::update`].
    pub fn update_sent(
        &mut self,
        tick: u32,
        columns: &[Column<'_>],
        sent: impl Fn(usize, usize) -> u32,
    ) -> Result<(), Wrong> {
        self.changed.clear();
        self.changed_blocks.fill(0);
        self.tick = tick;
        for (property, scan) in &self.scans {
            let held = columns.get(*property).map_or(0, |column| scan.rows_in(column.cells));
            if held < self.rows {
                return Err(Wrong { row: held as u32, property: *property, error: ValueError::Row });
            }
        }
        let mut wrong = None;
        for block in 0..self.rows.div_ceil(BLOCK) {
            self.update_block(tick, block, columns, &sent, &mut wrong);
        }
        wrong.map_or(Ok(()), Err)
    }

    fn update_block(
        &mut self,
        tick: u32,
        block: usize,
        columns: &[Column<'_>],
        sent: &impl Fn(usize, usize) -> u32,
        wrong: &mut Option<Wrong>,
    ) {
        let first = block * BLOCK;
        let (rows, alive) = ((self.rows - first).min(BLOCK), self.alive[block]);
        let fresh = self.fresh[block];
        let mut any = fresh;
        let mut dirty = [0; u64::BITS as usize];
        let pending =
            self.reckoned.as_ref().map_or(0, |it| it.pending(block)) & alive & self.has_state[block];
        let reckoned = self.reckoned.as_ref().map_or(0, |it| it.mask);
        for ((property, scan), dirty) in self.scans.iter_mut().zip(&mut dirty) {
            let column = columns[*property];
            // A new row's first values must be stored for later comparison, even if nobody wrote since.
            let looks = column.scan || fresh != 0;
            let changed = if looks { scan.changed(column.cells, first, rows) } else { 0 };
            *dirty = changed & alive | fresh | if reckoned >> *property & 1 == 1 { pending } else { 0 };
            any |= *dirty;
        }
        if any == 0 {
            return;
        }
        let (mut masks, mut marked, mut refused) = ([0; BLOCK], fresh & !self.has_state[block], 0);
        let mut refuse = |row: usize, property: usize, error: ValueError| {
            refused |= 1 << row;
            wrong.get_or_insert(Wrong { row: (first + row) as u32, property, error });
        };
        let newest = &self.newest[first * self.width..];
        for ((property, scan), dirty) in self.scans.iter_mut().zip(dirty) {
            let (i, cells) = (*property, columns[*property].cells);
            let rule = &self.class.properties.each()[i];
            scan.quantize(rule, cells, first, dirty, |row, error| refuse(row, i, error));
            marked |= scan.mark(newest, self.width, 1 << i, &mut masks);
        }
        if !self.wordless.is_empty() {
            for row in ones(fresh) {
                if let Some((property, error)) = self.wordless.lacks(first + row) {
                    refuse(row, property, error);
                }
            }
            for row in ones(fresh & !refused) {
                masks[row] |= self.wordless.commit(first + row);
                marked |= u64::from(masks[row] != 0) << row;
            }
        }
        if let Some(reckoned) = &mut self.reckoned {
            let (newest, has_state) = (&self.newest[first * self.width..], self.has_state[block]);
            let looked_at = Block { tick, first, width: self.width, newest, has_state, columns };
            let of = (marked | pending) & !refused;
            reckoned.hold(&self.class, &looked_at, of, &mut masks);
            marked = ones(of).fold(0, |marked, row| marked | u64::from(masks[row] != 0) << row);
        }
        self.fresh[block] = refused;
        self.commit(tick, block, marked & !refused, &masks, sent);
    }

    /// Makes the new words the state of the rows whose masks show changes.
    #[inline]
    fn commit(
        &mut self,
        tick: u32,
        block: usize,
        rows: u64,
        masks: &[u64; BLOCK],
        sent: &impl Fn(usize, usize) -> u32,
    ) {
        let (first, width, properties) = (block * BLOCK, self.width, &self.class.properties);
        let had = self.has_state[block];
        self.changed_blocks[block] = rows;
        self.has_state[block] |= rows;
        let (all, with_words, count) = (properties.all(), properties.with_words(), properties.each().len());
        // By the group of clients whose updates have other words; the last is of all words.
        let (mut other_words, all_words) = ([rows & !had; MAX_GROUPS + 1], self.newest_since.len() - 1);
        for row in ones(rows) {
            let mut mask = masks[row];
            other_words[all_words] |= u64::from(mask & with_words != 0) << row;
            if had >> row & 1 == 0 {
                self.spawned_at[first + row] = tick;
                mask = all;
            }
            for (group, turns) in self.turns.iter_mut().enumerate() {
                let turn = &mut turns[first + row];
                if had >> row & 1 == 0 {
                    *turn = Turn { before: tick, last: tick };
                } else if mask & self.class.updated(group) != 0 {
                    *turn = Turn { before: turn.last, last: tick };
                    other_words[group] |=
                        u64::from(mask & with_words & self.class.updated(group) != 0) << row;
                }
            }
            let changed_at = &mut self.changed_at[(first + row) * count..][..count];
            for property in ones(mask) {
                changed_at[property] = tick;
            }
            // Rows are below the capacity.
            self.changed.push((first + row) as u32);
        }
        let newest = &mut self.newest[first * width..];
        let each = self.histories.iter_mut().zip(&self.newest_since).zip(other_words).enumerate();
        for (group, ((history, since), other_words)) in each {
            let since = &since[first..];
            let was_sent = |row: usize| u64::from(sent(first + row, group) >= since[row]) << row;
            let kept = ones(other_words & had).fold(0, |kept, row| kept | was_sent(row));
            history.push(first, kept, since, newest);
        }
        if let Some(past) = &mut self.past.states {
            past.push(first, other_words[all_words] & had, &self.newest_since[all_words][first..], newest);
        }
        for (since, other_words) in self.newest_since.iter_mut().zip(other_words) {
            ones(other_words).for_each(|row| since[first + row] = tick);
        }
        let other_words = other_words[all_words];
        for (property, scan) in &self.scans {
            let rows = self.reckoned.as_ref().map_or(u64::MAX, |it| it.committed(*property));
            scan.copy(newest, width, other_words & rows);
        }
        if let Some(reckoned) = &self.reckoned {
            reckoned.note_tick(newest, width, other_words, tick);
        }
    }
}
