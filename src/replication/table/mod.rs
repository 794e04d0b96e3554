//! The server's objects of one class, as rows: what changed in a tick, and what each was at an earlier one.
//!
//! The cells belong to the caller, a column for each property with words. [`Table::update`] compares them with the last
//! tick's, turns differences into words once for all peers, and notes which properties have new words.
//!
//! Promises: a row keeps its number until no peer has it any more (see [`Table::release`]), and new rows take the
//! lowest. A row with an invalid value keeps its former state in all properties and is checked again each tick: an
//! object is never half of one tick and half of another. A row that was never valid has no state. A tick allocates
//! nothing unless there are more rows than ever. Refuses more rows than the class's capacity, and a despawn of a row
//! that isn't alive. Trusted: row numbers come from it, and ticks rise.

mod past;
mod reckoned;
mod tick;

use std::sync::Arc;

pub use self::past::MAX_PAST;
use self::past::Past;
use self::reckoned::Reckoned;
use super::class::GhostClass;
use super::form::Form;
use super::history::History;
use super::scan::{BLOCK, Scan};
use super::wordless::Wordless;
use crate::store::ones;
use crate::wire::{Encoded, ValueError};

/// How many rows memory is first allocated for.
const FIRST_ROWS: usize = BLOCK;

/// The cells of a property for all rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Column<'a> {
    /// One for each row, or more. Ignored for properties without words.
    pub cells: &'a [u8],
    /// Whether cells may have changed since the last tick. New rows are read anyway.
    pub scan: bool,
}

/// The class has no row left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    pub capacity: u32,
}

/// A value that can't be written; its row keeps its former state.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    pub row: u32,
    /// The index of the property.
    pub property: usize,
    /// The value and its bounds.
    pub error: ValueError,
}

/// The tick of a row's last change, and of the one before: it stayed the same in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    pub before: u32,
    pub last: u32,
}

/// The rows of a class.
#[derive(Debug)]
pub struct Table {
    class: Arc<GhostClass>,
    /// Properties with words, with their indices.
    scans: Box<[(usize, Scan)]>,
    wordless: Wordless,
    /// How many words a row has, as in [`GhostClass::state_words`].
    width: usize,
    /// Rows below this are or were in use; rows below `reserved` have memory.
    rows: usize,
    reserved: usize,
    /// No row below this is free.
    first_free: usize,
    /// A bit for each row: its number is taken, it is alive, it has a state, it must be read whole.
    held: Vec<u64>,
    alive: Vec<u64>,
    has_state: Vec<u64>,
    fresh: Vec<u64>,
    newest: Vec<u64>,
    /// The tick since which the newest words hold: by the group of clients, of those that updates have for it; the last
    /// is of all words.
    newest_since: Box<[Vec<u32>]>,
    spawned_at: Vec<u32>,
    /// By the group of clients.
    turns: Box<[Vec<Turn>]>,
    /// By row and property: the tick of the last change.
    changed_at: Vec<u32>,
    /// By the group of clients.
    histories: Box<[History]>,
    past: Past,
    reckoned: Option<Box<Reckoned>>,
    changed: Vec<u32>,
    changed_blocks: Vec<u64>,
    tick: u32,
}

impl Table {
    /// A table without rows, which remembers this many former states of each.
    pub fn new(class: Arc<GhostClass>, history: u8) -> Self {
        let properties = &class.properties;
        let each = properties.each().iter().enumerate().filter(|(_, property)| property.has_words());
        let scans = each.map(|(i, property)| (i, Scan::new(property, properties.word_start(i)))).collect();
        let width = class.state_words();
        let of = |depth| History::new(width, !class.has_wide_words(), depth);
        Table {
            scans,
            wordless: Wordless::new(properties),
            width,
            rows: 0,
            reserved: 0,
            first_free: 0,
            held: Vec::new(),
            alive: Vec::new(),
            has_state: Vec::new(),
            fresh: Vec::new(),
            newest: Vec::new(),
            newest_since: vec![Vec::new(); class.groups() + usize::from(!class.is_plain())].into(),
            spawned_at: Vec::new(),
            turns: vec![Vec::new(); class.groups()].into(),
            changed_at: Vec::new(),
            histories: (0..class.groups()).map(|_| of(history)).collect(),
            past: Past::default(),
            reckoned: Reckoned::new(&class),
            changed: Vec::new(),
            changed_blocks: Vec::new(),
            tick: 0,
            class,
        }
    }

    pub fn class(&self) -> &Arc<GhostClass> {
        &self.class
    }

    // --- rows --------------------------------------------------------------------------------------------

    /// A new row, the lowest free one. The caller writes its cells before the next tick.
    ///
    /// # Errors
    /// As many rows as the class's capacity are alive or not released.
    pub fn spawn(&mut self) -> Result<u32, Full> {
        let full = Full { capacity: self.class.capacity };
        let row = self.lowest_free();
        // A row that doesn't fit is above any capacity.
        let number = u32::try_from(row).ok().filter(|number| *number < full.capacity).ok_or(full)?;
        if row >= self.reserved {
            self.reserve();
        }
        self.rows = self.rows.max(row + 1);
        self.first_free = row + 1;
        for bits in [&mut self.held, &mut self.alive, &mut self.fresh] {
            bits[row / BLOCK] |= 1 << (row % BLOCK);
        }
        clear(&mut self.has_state, row);
        self.histories.iter_mut().for_each(|history| history.clear(row));
        if let Some(past) = &mut self.past.states {
            past.clear(row);
        }
        self.wordless.clear(row);
        Ok(number)
    }

    /// Ends a row's life; false if it isn't alive. Its number stays taken until it is released.
    pub fn despawn(&mut self, row: u32) -> bool {
        let alive = self.is_alive(row);
        if alive {
            if self.has_state(row) {
                self.keep_life(row as usize);
            }
            clear(&mut self.alive, row as usize);
            clear(&mut self.fresh, row as usize);
        }
        alive
    }

    /// Frees a row's number after its despawn, once no peer has it any more.
    pub fn release(&mut self, row: u32) {
        if !self.is_alive(row) && contains(&self.held, row as usize) {
            clear(&mut self.held, row as usize);
            self.first_free = self.first_free.min(row as usize);
        }
    }

    /// Whether the row is in use.
    pub fn is_alive(&self, row: u32) -> bool {
        contains(&self.alive, row as usize)
    }

    /// Whether the row has a state: from the first update on that found only valid values.
    pub fn has_state(&self, row: u32) -> bool {
        contains(&self.has_state, row as usize)
    }

    /// One more than the highest row ever used: the required length of columns.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The living rows that have a state, in rising order.
    pub fn alive(&self) -> impl Iterator<Item = u32> {
        let blocks = self.alive.iter().zip(&self.has_state).enumerate();
        // Rows are below the capacity.
        blocks
            .flat_map(|(block, (alive, has))| ones(alive & has).map(move |row| (block * BLOCK + row) as u32))
    }

    /// [`Table::alive`] as a bit for each row.
    pub(super) fn present(&self) -> impl Iterator<Item = u64> {
        self.alive.iter().zip(&self.has_state).map(|(alive, has)| alive & has)
    }

    fn lowest_free(&self) -> usize {
        let mut block = self.first_free / BLOCK;
        let mut taken = self.held.get(block).map(|held| held | ((1 << (self.first_free % BLOCK)) - 1));
        while taken == Some(u64::MAX) {
            block += 1;
            taken = self.held.get(block).copied();
        }
        block * BLOCK + taken.map_or(0, |taken| taken.trailing_ones() as usize)
    }

    /// Doubles the memory for rows.
    fn reserve(&mut self) {
        let capacity = (self.class.capacity as usize).next_multiple_of(BLOCK);
        let rows = (self.reserved * 2).clamp(FIRST_ROWS, capacity);
        self.reserved = rows;
        for bits in
            [&mut self.held, &mut self.alive, &mut self.fresh, &mut self.has_state, &mut self.changed_blocks]
        {
            bits.resize(rows / BLOCK, 0);
        }
        self.newest.resize(rows * self.width, 0);
        self.newest_since.iter_mut().for_each(|since| since.resize(rows, 0));
        self.spawned_at.resize(rows, 0);
        self.turns.iter_mut().for_each(|turns| turns.resize(rows, Turn::default()));
        self.changed_at.resize(rows * self.class.properties.each().len(), 0);
        self.histories.iter_mut().for_each(|history| history.reserve(rows));
        if let Some(past) = &mut self.past.states {
            past.reserve(rows);
        }
        if let Some(reckoned) = &mut self.reckoned {
            reckoned.reserve(rows);
        }
        self.wordless.reserve(rows);
        self.scans.iter_mut().for_each(|(_, scan)| scan.reserve(rows));
        self.changed.reserve(rows);
    }

    // --- questions ---------------------------------------------------------------------------------------

    /// Rows that changed in the last tick or got their first state, in rising order.
    pub fn changed(&self) -> &[u32] {
        &self.changed
    }

    /// [`Table::changed`] as a bit for each row.
    pub fn changed_blocks(&self) -> &[u64] {
        &self.changed_blocks
    }

    /// The tick of the row's first state.
    pub fn spawned_at(&self, row: u32) -> u32 {
        self.spawned_at[row as usize]
    }

    /// The newest words of a row, as they were committed.
    pub fn newest(&self, row: u32) -> &[u64] {
        &self.newest[row as usize * self.width..][..self.width]
    }

    /// Copies the words that the row had at `tick`; false if these are forgotten, or it had none.
    #[inline]
    pub fn words_at(&self, row: u32, tick: u32, words: &mut [u64]) -> bool {
        self.words_for(0, row, tick, words)
    }

    /// [`Table::words_at`] of what was sent to a group of clients.
    #[inline]
    pub fn words_for(&self, group: usize, row: u32, tick: u32, words: &mut [u64]) -> bool {
        let at = row as usize;
        if !contains(&self.has_state, at) {
            return false;
        }
        let (since, history) = (self.newest_since[group][at], &self.histories[group]);
        if since <= tick {
            words.copy_from_slice(self.newest(row));
        } else if let Some(state) = history.state_at(at, tick, since - tick) {
            history.form().load(state, words);
        } else {
            return false;
        }
        self.extrapolate(words, tick);
        true
    }

    /// The words that a row has in this tick. `words` is lent.
    #[inline]
    pub(super) fn present_words<'a>(&'a self, row: u32, words: &'a mut Vec<u64>) -> &'a [u64] {
        if self.reckoned.is_none() {
            return self.newest(row);
        }
        words.clear();
        words.extend_from_slice(self.newest(row));
        self.extrapolate(words, self.tick);
        words
    }

    /// The words of a property with at most three that a row has in this tick.
    #[inline]
    pub(super) fn position_words(&self, row: u32, property: usize) -> [u64; 3] {
        let (newest, range) = (self.newest(row), self.class.properties.word_range(property));
        let moved = self.reckoned.as_ref().and_then(|it| it.moved(&self.class, property, newest, self.tick));
        let words = moved.as_ref().map_or(&newest[range.clone()], |moved| &moved[..range.len()]);
        core::array::from_fn(|axis| words.get(axis).copied().unwrap_or(0))
    }

    /// Whether a property may have another place in each tick, though it doesn't change.
    pub(super) fn may_move(&self, property: usize) -> bool {
        self.reckoned.as_ref().is_some_and(|it| it.mask >> property & 1 == 1 && it.is_any_pending())
    }

    /// Moves the words of a state on to a tick, where clients reckon them.
    #[inline]
    fn extrapolate(&self, words: &mut [u64], tick: u32) {
        if let Some(reckoned) = &self.reckoned {
            reckoned.extrapolate(&self.class, words, tick);
        }
    }

    /// Whether clients reckon some properties. Their words differ from tick to tick without a change.
    #[inline]
    pub(super) fn is_reckoned(&self) -> bool {
        self.reckoned.is_some()
    }

    /// The reckoned properties that may have had other words since a state, of which these properties changed since.
    #[inline]
    pub(super) fn moved_since(&self, words: &[u64], changed: u64) -> u64 {
        self.reckoned.as_ref().map_or(0, |it| it.moved_since(&self.class, words, changed))
    }

    /// The state that a row had at a tick before that of its newest, of what was sent to a group of clients.
    #[inline]
    pub(super) fn earlier_state(&self, group: usize, row: u32, tick: u32) -> Option<&[u32]> {
        let changes = self.newest_since[group][row as usize].checked_sub(tick)?;
        self.histories[group].state_at(row as usize, tick, changes)
    }

    /// How earlier states are stored.
    pub(super) fn form(&self) -> Form {
        self.histories[0].form()
    }

    /// The tick of the first state behind that of a tick, of what was sent to a group of clients, if there is one.
    pub(super) fn next_change(&self, group: usize, row: u32, tick: u32) -> Option<u32> {
        let row = row as usize;
        let [_, next] = self.histories[group].bracket(row, self.newest_since[group][row], tick);
        (next > 0).then_some(next)
    }

    /// Whether the state of a tick that was sent to a group of clients is remembered, of a row that had one.
    pub(super) fn remembers(&self, group: usize, row: u32, tick: u32) -> bool {
        let row = row as usize;
        self.newest_since[group][row] <= tick
            || self.histories[group].oldest(row).is_some_and(|oldest| oldest <= tick)
    }

    /// When the row changed in what a group of clients may see.
    #[inline]
    pub fn turn(&self, group: usize, row: u32) -> Turn {
        self.turns[group][row as usize]
    }

    /// Whether the last change gave the row other words, and each of its states has other words than the one before,
    /// for all, in whichever tick they are sent.
    #[inline]
    pub fn has_stepped(&self, row: u32) -> bool {
        let is_of_all = self.class.is_plain() && self.reckoned.is_none();
        is_of_all && self.newest_since[0][row as usize] == self.turns[0][row as usize].last
    }

    /// This many states before the newest, of a row that [`Table::has_stepped`]; None if it is forgotten.
    #[inline]
    pub(super) fn state_back(&self, row: u32, back: u8) -> Option<&[u32]> {
        self.histories[0].state_back(row as usize, back.checked_sub(1)?)
    }

    /// The newest value of a property without words.
    pub fn value(&self, row: u32, property: usize) -> Option<&Encoded> {
        self.wordless.value(row as usize, property)
    }

    /// The value of a property without words in the next tick, if the row has one.
    pub(super) fn next_value(&self, row: u32, property: usize) -> Option<&Encoded> {
        self.wordless.next_value(row as usize, property)
    }

    /// The mask of the properties that changed in the last tick.
    pub(super) fn changed_now(&self, row: u32) -> u64 {
        self.tick.checked_sub(1).map_or(0, |before| self.changed_since(row, before))
    }

    /// The tick in which any of these properties last changed, or the row began; 0 if it has no state.
    pub fn last_change(&self, row: u32, mask: u64) -> u32 {
        if !self.is_alive(row) || !self.has_state(row) {
            return 0;
        }
        let count = self.class.properties.each().len();
        let changed_at = &self.changed_at[row as usize * count..][..count];
        let last = ones(mask).filter_map(|property| changed_at.get(property)).max();
        last.copied().unwrap_or(0).max(self.spawned_at[row as usize])
    }

    /// The mask of the properties that changed after `tick`.
    #[inline]
    pub fn changed_since(&self, row: u32, tick: u32) -> u64 {
        let count = self.class.properties.each().len();
        let changed_at = self.changed_at[row as usize * count..][..count].iter().enumerate();
        changed_at.fold(0, |mask, (i, at)| mask | u64::from(*at > tick) << i)
    }
}

#[inline]
fn contains(bits: &[u64], row: usize) -> bool {
    bits.get(row / BLOCK).is_some_and(|block| block >> (row % BLOCK) & 1 == 1)
}

fn clear(bits: &mut [u64], row: usize) {
    bits[row / BLOCK] &= !(1 << (row % BLOCK));
}

#[cfg(test)]
mod tests;
