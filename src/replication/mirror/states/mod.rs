//! The rows of a page of a client's ghosts: what is known of each, its newest words, and earlier ones that the server
//! may name as a baseline.
//!
//! Promises: for each ghost the states with the newest ticks are kept, in whatever order they arrive. Memory for a
//! place of the history is allocated when a ghost of the page first has that many states.
//!
//! All that most updates look at lies in one row: the newest words and a copy of those before, by which they are predicted. In
//! a large world where little changes, each place of the memory that the processor doesn't have at hand costs as much as
//! reading the update.

mod earlier;

use super::super::class::GhostClass;
use super::form::{Form, join, split};
use super::pages::PAGE;
use crate::store::{prefetch, prefetch_across};
use earlier::{Ring, reserve};

/// What a row begins with: the newest state's tick, that of the last destroy, the properties that the game has not seen in
/// two halves, flags, and where the earlier states are.
const TICK: usize = 0;
const DESTROYED: usize = 1;
const DIRTY: usize = 2;
const FLAGS: usize = 4;
const RING: usize = 5;
/// The tick of the state before the newest, 0 if there is none.
const PREVIOUS: usize = 6;
/// After these come the newest words and the previous ones.
const HEAD: usize = 7;

/// Numbers of 32 bits in a line of a cache.
const LINE: usize = 16;

/// Numbers of 32 bits from one row to the next: rows divide lines evenly, or lines rows.
fn stride(form: Form) -> usize {
    let size = HEAD + 2 * form.size();
    if size <= LINE { size.next_power_of_two() } else { size.next_multiple_of(LINE) }
}

/// A ghost's row: what it begins with, the newest words, and the previous ones.
#[derive(Clone, Copy)]
struct Row<'s> {
    head: &'s [u32; HEAD],
    newest: &'s [u32],
    previous: &'s [u32],
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
    /// By place, then by ghost: a tick and the words. As many places as a ghost had states.
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
        let (newest, rest) = states.split_at_checked(self.form.size())?;
        Some(Row { head, newest, previous: rest.get(..self.form.size())? })
    }

    #[inline]
    fn row_mut(&mut self, id: usize) -> Option<&mut [u32]> {
        self.rows.get_mut(self.start + id * self.stride..)?.get_mut(..HEAD + 2 * self.form.size())
    }

    #[inline]
    fn number(&self, id: usize, at: usize) -> u32 {
        self.rows.get(self.start + id * self.stride + at).copied().unwrap_or(0)
    }

    #[inline]
    fn ring(&self, id: usize) -> Ring {
        Ring::unpacked(self.number(id, RING))
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
        // They were 8 bits.
        let (flags, dirty) = (row[FLAGS] as u8, join(row[DIRTY], row[DIRTY + 1]));
        (row[FLAGS], row[DIRTY], row[DIRTY + 1]) = (seen(flags).into(), 0, 0);
        Some((flags, dirty, &row[HEAD..HEAD + size]))
    }

    /// Has a ghost's row fetched, to be at hand soon.
    #[inline]
    pub(super) fn fetch(&self, id: usize) {
        if let Some(rows) = self.rows.get(self.start + id * self.stride..) {
            prefetch(&rows[..self.stride.min(rows.len())]);
        }
    }

    /// Has the place fetched that says where its newest state goes when there is a newer one.
    #[inline]
    pub(super) fn fetch_place(&self, id: usize) {
        if let Some(entries) = self.earlier.get(self.ring(id).next()) {
            prefetch(entries);
        }
    }

    /// Has the memory fetched into which its newest state goes then.
    #[inline]
    pub(super) fn fetch_next(&self, id: usize) {
        let size = 1 + self.form.size();
        let entries = self.earlier.get(self.ring(id).next());
        if let Some(entry) = entries.and_then(|entries| entries.get(id * size..(id + 1) * size)) {
            prefetch_across(entry);
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

    /// The tick of a ghost's newest state, or 0.
    #[inline]
    pub(super) fn tick(&self, id: usize) -> u32 {
        self.number(id, TICK)
    }

    /// Gives the newest words, zeros if there are none.
    #[inline]
    pub(super) fn newest(&self, id: usize, words: &mut [u64]) {
        match self.row(id) {
            Some(row) if row.head[TICK] != 0 => self.form.load(row.newest, words),
            _ => words.fill(0),
        }
    }

    /// The properties of a mask whose words, as they are stored, differ from the newest.
    #[inline]
    pub(super) fn differing(&self, id: usize, class: &GhostClass, mask: u64, words: &[u32]) -> u64 {
        self.row(id).map_or(mask, |row| self.form.differing(class, mask, words, row.newest))
    }

    /// Keeps the state of a tick above that of the newest one, as the newest. Its words are as they are stored.
    #[inline]
    pub(super) fn push(&mut self, id: usize, tick: u32, words: &[u32]) {
        if self.rows.is_empty() {
            self.make_rows();
        }
        let row = &mut self.rows[self.start + id * self.stride..][..HEAD + 2 * words.len()];
        push_onto(row, &mut self.earlier, id, tick, words);
    }

    /// Keeps a state as the newest of a ghost that exists, if it is. Then what `differing` says of the one before is added to
    /// the properties that the game has not seen, and the flags of `set` are set.
    #[inline]
    pub(super) fn advance(
        &mut self,
        id: usize,
        tick: u32,
        words: &[u32],
        set: u8,
        differing: impl FnOnce(&[u32]) -> u64,
    ) -> Advance {
        let size = words.len();
        let Some(row) = self.row_mut(id) else { return Advance::Missing };
        let newest = row[TICK];
        if newest == 0 || tick <= row[DESTROYED] {
            return Advance::Missing;
        }
        if tick <= newest {
            return if tick < newest { Advance::Late } else { Advance::Same };
        }
        let [low, high] = split(differing(&row[HEAD..HEAD + size]));
        // They were 8 bits.
        let flags = row[FLAGS] as u8;
        row[DIRTY] |= low;
        row[DIRTY + 1] |= high;
        row[FLAGS] |= u32::from(set);
        let row = &mut self.rows[self.start + id * self.stride..][..HEAD + 2 * size];
        push_onto(row, &mut self.earlier, id, tick, words);
        Advance::Newest { flags }
    }

    /// Forgets a ghost's states.
    pub(super) fn clear(&mut self, id: usize) {
        if let Some(row) = self.row_mut(id) {
            (row[TICK], row[RING], row[PREVIOUS]) = (0, 0, 0);
        }
    }
}

/// Keeps a state as the newest of a row, and that which was among the earlier ones.
#[inline]
fn push_onto(row: &mut [u32], earlier: &mut Vec<Box<[u32]>>, id: usize, tick: u32, words: &[u32]) {
    let size = words.len();
    let Some((head, states)) = row.split_first_chunk_mut::<HEAD>() else { return };
    let (newest, previous) = states.split_at_mut(size);
    if head[TICK] != 0 {
        let mut ring = Ring::unpacked(head[RING]);
        let place = ring.push();
        head[RING] = ring.packed();
        reserve(earlier, place, 1 + size);
        if let [at, entry @ ..] = &mut earlier[place][id * (1 + size)..][..1 + size] {
            *at = head[TICK];
            entry.copy_from_slice(newest);
        }
        head[PREVIOUS] = head[TICK];
        previous[..size].copy_from_slice(newest);
    }
    head[TICK] = tick;
    newest.copy_from_slice(words);
}

#[cfg(test)]
mod tests {
    use super::earlier::DEPTH;
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
                while model.len() > DEPTH + 1 {
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
