//! The rows of a page of a client's ghosts: what is known of each, its newest states, and earlier ones that the server
//! may name as a baseline.
//!
//! Promises: for each ghost the states with the newest ticks are kept, in whatever order they arrive. Memory for
//! earlier ones is allocated when a ghost of the page first has that many states.
//!
//! All that most updates look at lies in one row: the newest states, from which the next is predicted, and whose places those
//! after them take. In a large world where little changes, each place of the memory that the processor doesn't have at hand
//! costs as much as reading the update: so states leave the row some at a time.

mod earlier;

use super::super::class::GhostClass;
use super::super::form::{Form, join, split};
use crate::store::{prefetch, prefetch_across};
use earlier::{MAX_STATES, flush};

/// Ids of a page.
pub(super) const PAGE: usize = 64;

/// What a row begins with: the newest state's tick, that of the last destroy, the properties that the game has not seen in
/// two halves, flags, the number of the next state, and how many states there are.
const TICK: usize = 0;
const DESTROYED: usize = 1;
const DIRTY: usize = 2;
const FLAGS: usize = 4;
const NEXT: usize = 5;
const LEN: usize = 6;
const HEAD: usize = 7;

/// After these come the newest states, each a tick and its words: that of number n at n modulo this.
const RECENT: usize = 4;

/// Numbers of 32 bits in a line of a cache.
const LINE: usize = 16;

/// Numbers of 32 bits from one row to the next: rows divide lines evenly, or lines rows.
fn stride(form: Form) -> usize {
    let size = HEAD + RECENT * (1 + form.size());
    if size <= LINE { size.next_power_of_two() } else { size.next_multiple_of(LINE) }
}

/// A ghost's row: what it begins with, and the newest states.
#[derive(Clone, Copy)]
struct Row<'s> {
    head: &'s [u32; HEAD],
    recent: &'s [u32],
}

impl<'s> Row<'s> {
    /// The state before as many newer ones, which is among the newest, with its tick.
    #[inline]
    fn recent(self, size: usize, back: u32) -> &'s [u32] {
        &self.recent[recent_place(self.head[NEXT].wrapping_sub(1 + back)) * (1 + size)..][..1 + size]
    }
}

/// The place of a number in the row.
#[inline]
fn recent_place(number: u32) -> usize {
    number as usize % RECENT
}

/// What became of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advance {
    /// There is no such ghost, or it ended.
    Missing,
    /// It is of a tick before the newest one's, and wasn't kept.
    Late,
    /// It is of the newest one's tick.
    Same,
    /// It is the newest now, of a ghost that had these flags.
    Newest { flags: u8 },
}

/// The rows of a page's ghosts, which are named by their place in it.
#[derive(Debug)]
pub(super) struct States {
    form: Form,
    /// From `start` on, each of the form's stride. None before the first state.
    rows: Box<[u32]>,
    start: usize,
    stride: usize,
    /// States that left the rows, by their numbers and then by ghost, as they were there.
    earlier: Vec<Box<[u32]>>,
    /// The ticks of the last destroys, until there are rows.
    ends: Box<[u32]>,
}

impl States {
    pub(super) fn new(form: Form) -> Self {
        States {
            form,
            rows: Box::default(),
            start: 0,
            stride: stride(form),
            earlier: Vec::new(),
            ends: Box::default(),
        }
    }

    /// A ghost's row, if there are rows.
    #[inline]
    fn row(&self, id: usize) -> Option<Row<'_>> {
        let (head, states) = self.rows.get(self.start + id * self.stride..)?.split_first_chunk()?;
        Some(Row { head, recent: states.get(..RECENT * (1 + self.form.size()))? })
    }

    #[inline]
    fn row_mut(&mut self, id: usize) -> Option<&mut [u32]> {
        let size = HEAD + RECENT * (1 + self.form.size());
        self.rows.get_mut(self.start + id * self.stride..)?.get_mut(..size)
    }

    #[inline]
    fn number(&self, id: usize, at: usize) -> u32 {
        self.rows.get(self.start + id * self.stride + at).copied().unwrap_or(0)
    }

    /// Makes room for states.
    #[cold]
    fn make_rows(&mut self) {
        let rows = vec![0; PAGE * self.stride + LINE - 1].into_boxed_slice();
        // At the beginning of a line.
        self.start = rows.as_ptr().align_offset(LINE * size_of::<u32>()).min(LINE - 1);
        self.rows = rows;
        let ends = core::mem::take(&mut self.ends);
        for (id, tick) in ends.iter().enumerate() {
            self.set_destroyed(id, *tick);
        }
    }

    #[inline]
    pub(super) fn flags(&self, id: usize) -> u8 {
        // They were 8 bits.
        self.number(id, FLAGS) as u8
    }

    /// Changes the flags of a ghost that has had a state.
    #[inline]
    pub(super) fn set_flags(&mut self, id: usize, flags: u8) {
        if let Some(row) = self.row_mut(id) {
            row[FLAGS] = flags.into();
        }
    }

    /// Properties that the game has not seen.
    #[inline]
    pub(super) fn dirty(&self, id: usize) -> u64 {
        self.row(id).map_or(0, |Row { head, .. }| join(head[DIRTY], head[DIRTY + 1]))
    }

    /// Changes the mask of a ghost that has had a state.
    #[inline]
    pub(super) fn set_dirty(&mut self, id: usize, mask: u64) {
        if let Some(row) = self.row_mut(id) {
            [row[DIRTY], row[DIRTY + 1]] = split(mask);
        }
    }

    /// Takes the mask of properties that the game has not seen, and sets the flags that `seen` makes of them: gives both as they
    /// were, and the newest state as it is stored. None of a ghost that never had a state.
    #[inline]
    pub(super) fn take_dirty(&mut self, id: usize, seen: impl FnOnce(u8) -> u8) -> Option<(u8, u64, &[u32])> {
        let size = self.form.size();
        let row = self.row_mut(id)?;
        let newest = HEAD + recent_place(row[NEXT].wrapping_sub(1)) * (1 + size) + 1;
        // They were 8 bits.
        let (flags, dirty) = (row[FLAGS] as u8, join(row[DIRTY], row[DIRTY + 1]));
        (row[FLAGS], row[DIRTY], row[DIRTY + 1]) = (seen(flags).into(), 0, 0);
        Some((flags, dirty, &row[newest..][..size]))
    }

    /// Has a ghost's row fetched, to be at hand soon.
    #[inline]
    pub(super) fn fetch(&self, id: usize) {
        if let Some(rows) = self.rows.get(self.start + id * self.stride..) {
            prefetch(&rows[..self.stride.min(rows.len())]);
        }
    }

    /// Has the memory fetched into which its states go when there is a newer one, if any do then.
    #[inline]
    pub(super) fn fetch_next(&self, id: usize) {
        let (next, size) = (self.number(id, NEXT), RECENT * (1 + self.form.size()));
        if recent_place(next) == 0
            && let Some(states) = self.earlier.get(earlier::group(next.wrapping_sub(1)))
            && let Some(states) = states.get(id * size..(id + 1) * size)
        {
            prefetch_across(states);
        }
    }

    /// The tick of the last destroy, 0 if there was none. It may have come before the create that it ends.
    #[inline]
    pub(super) fn destroyed(&self, id: usize) -> u32 {
        match self.row(id) {
            Some(row) => row.head[DESTROYED],
            None => self.ends.get(id).copied().unwrap_or(0),
        }
    }

    pub(super) fn set_destroyed(&mut self, id: usize, tick: u32) {
        if let Some(row) = self.row_mut(id) {
            row[DESTROYED] = tick;
            return;
        }
        if self.ends.is_empty() {
            self.ends = vec![0; PAGE].into();
        }
        self.ends[id] = tick;
    }

    /// Whether an update of this tick may be read: the ghost has states, and its last end was before.
    #[inline]
    pub(super) fn may_change(&self, id: usize, tick: u32) -> bool {
        self.tick(id) > 0 && tick > self.destroyed(id)
    }

    /// The tick of a ghost's newest state, or 0.
    #[inline]
    pub(super) fn tick(&self, id: usize) -> u32 {
        self.number(id, TICK)
    }

    /// Gives the newest words, zeros if there are none.
    #[inline]
    pub(super) fn newest(&self, id: usize, words: &mut [u64]) {
        match self.row(id) {
            Some(row) if row.head[TICK] != 0 => self.form.load(&row.recent(self.form.size(), 0)[1..], words),
            _ => words.fill(0),
        }
    }

    /// The properties of a mask whose words, as they are stored, differ from the newest.
    #[inline]
    pub(super) fn differing(&self, id: usize, class: &GhostClass, mask: u64, words: &[u32]) -> u64 {
        let newest = |row: Row<'_>| self.form.differing(class, mask, words, &row.recent(words.len(), 0)[1..]);
        self.row(id).map_or(mask, newest)
    }

    /// Keeps the state of a tick above that of the newest one, as the newest. Its words are as they are stored.
    #[inline]
    pub(super) fn push(&mut self, id: usize, tick: u32, words: &[u32]) {
        if self.rows.is_empty() {
            self.make_rows();
        }
        let row = &mut self.rows[self.start + id * self.stride..][..self.stride];
        push_onto(row, &mut self.earlier, id, tick, words);
    }

    /// Keeps a state as the newest of a ghost that exists, if it is. Then what `differing` says of the one before is added to
    /// the properties that the game has not seen, and the flags of `set` are set.
    #[inline(always)]
    pub(super) fn advance(
        &mut self,
        id: usize,
        tick: u32,
        words: &[u32],
        set: u8,
        differing: impl FnOnce(&[u32]) -> u64,
    ) -> Advance {
        let size = words.len();
        let Some(row) = self.rows.get_mut(self.start + id * self.stride..) else { return Advance::Missing };
        let newest = row[TICK];
        if newest == 0 || tick <= row[DESTROYED] {
            return Advance::Missing;
        }
        if tick <= newest {
            return if tick < newest { Advance::Late } else { Advance::Same };
        }
        let before = HEAD + recent_place(row[NEXT].wrapping_sub(1)) * (1 + size) + 1;
        let [low, high] = split(differing(&row[before..][..size]));
        // They were 8 bits.
        let flags = row[FLAGS] as u8;
        row[DIRTY] |= low;
        row[DIRTY + 1] |= high;
        row[FLAGS] |= u32::from(set);
        push_onto(row, &mut self.earlier, id, tick, words);
        Advance::Newest { flags }
    }

    /// Forgets a ghost's states.
    pub(super) fn clear(&mut self, id: usize) {
        if let Some(row) = self.row_mut(id) {
            (row[TICK], row[NEXT], row[LEN]) = (0, 0, 0);
        }
    }
}

/// Keeps a state as the newest of a row, in the place of the oldest there: when it takes the first place, all those are among the
/// earlier ones from now on.
#[inline(always)]
fn push_onto(row: &mut [u32], earlier: &mut Vec<Box<[u32]>>, id: usize, tick: u32, words: &[u32]) {
    let size = 1 + words.len();
    let Some((head, states)) = row.split_first_chunk_mut::<HEAD>() else { return };
    let states = &mut states[..RECENT * size];
    let (number, len) = (head[NEXT], head[LEN]);
    let place = recent_place(number);
    if place == 0 && len > 0 {
        flush(earlier, id, number.wrapping_sub(1), states);
    }
    if let [at, place @ ..] = &mut states[place * size..][..size] {
        *at = tick;
        place.copy_from_slice(words);
    }
    head[TICK] = tick;
    head[NEXT] = number.wrapping_add(1);
    head[LEN] = (len + 1).min(MAX_STATES);
}

#[cfg(test)]
mod tests {
    use super::earlier::MAX_STATES;
    use super::*;
    use crate::rng::Rng;
    use std::collections::BTreeSet;

    #[test]
    fn the_states_with_the_newest_ticks_are_kept_in_whatever_order_they_come() {
        for seed in 0..60 {
            let (mut rng, narrow) = (Rng::seeded(seed), seed % 2 == 0);
            let (mut states, mut model) = (States::new(Form::new(2, narrow)), BTreeSet::new());
            for step in 0..400u32 {
                let tick = (1 + step + rng.below(40) as u32).saturating_sub(20).max(1);
                let of = |tick: u32| [u64::from(tick), u64::from(tick) + 7];
                let newest = states.tick(1);
                let mut before = [0; 2];
                states.newest(1, &mut before);
                match tick {
                    _ if tick > newest => {
                        let mut stored = vec![0; states.form.size()];
                        states.form.store(&of(tick), &mut stored);
                        states.push(1, tick, &stored);
                    }
                    _ if tick < newest => states.insert(1, tick, &of(tick), &mut before),
                    _ => {}
                }
                model.insert(tick);
                while model.len() > MAX_STATES as usize {
                    model.pop_first();
                }
                for tick in 1..500 {
                    let mut words = [0; 2];
                    let found = states.at(1, tick, &mut words);
                    assert_eq!(found, model.contains(&tick), "seed {seed} step {step} tick {tick}");
                    assert!(!found || words == of(tick));
                }
                let (before, back) = (rng.below(500) as u32, rng.below(3) as u8);
                let expected = model.range(..before).rev().nth(back.into()).map(|tick| of(*tick));
                let mut words = [0; 2];
                assert_eq!(states.before(1, before, back, &mut words).then_some(words), expected);
                if rng.chance(0.01) {
                    states.clear(1);
                    model.clear();
                }
            }
        }
    }
}
