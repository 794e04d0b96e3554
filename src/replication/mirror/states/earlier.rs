//! A ghost's states by their age: the newest lie in its row, and the others where they were put when they left it.
//!
//! Each has a number, one more than that of the state before. A row's states leave it together, when one with a number that
//! is a multiple of as many comes: until each has been replaced there, it is in both places.

use super::super::super::class::HISTORY;
use super::{DESTROYED, LEN, NEXT, PAGE, RECENT, Row, States, TICK, push_onto, recent_place};

/// States that left the row, and all: those that the server may name and the newest.
const DEPTH: u32 = HISTORY as u32;
pub(super) const MAX_STATES: u32 = DEPTH + 1;

/// The group of a state with this number: of those that leave the row together. They take the places of the group that is older
/// by all that are kept, of which none is kept by then.
#[inline]
pub(super) fn group(number: u32) -> usize {
    const { assert!((DEPTH as usize).is_multiple_of(RECENT)) };
    number as usize % DEPTH as usize / RECENT
}

/// Puts a row's states, the newest of which has this number, where they are found by it.
#[inline]
pub(super) fn flush(earlier: &mut Vec<Box<[u32]>>, id: usize, number: u32, states: &[u32]) {
    let group = group(number);
    if earlier.len() <= group {
        grow(earlier, group, states.len());
    }
    earlier[group][id * states.len()..][..states.len()].copy_from_slice(states);
}

/// Makes room for a group that has this many numbers of each ghost.
#[cold]
#[inline(never)]
fn grow(earlier: &mut Vec<Box<[u32]>>, group: usize, size: usize) {
    while earlier.len() <= group {
        earlier.push(vec![0; PAGE * size].into());
    }
}

impl States {
    /// The state before as many newer ones, with its tick.
    #[inline]
    fn entry<'s>(&'s self, id: usize, row: Row<'s>, back: u32) -> &'s [u32] {
        if back < RECENT as u32 {
            return row.recent(self.form.size(), back);
        }
        let (number, size) = (row.head[NEXT].wrapping_sub(1 + back), 1 + self.form.size());
        &self.earlier[group(number)][(id * RECENT + recent_place(number)) * size..][..size]
    }

    /// All states with their ticks, from the newest on.
    #[inline]
    fn entries(&self, id: usize) -> impl DoubleEndedIterator<Item = (u32, &[u32])> {
        let row = self.row(id);
        let len = row.map_or(0, |row| row.head[LEN]);
        // There are none without a row.
        (0..len).filter_map(move |back| row.map(|row| (back, self.entry(id, row, back))))
    }

    /// Gives the words that a ghost had at exactly this tick; false when there are none.
    #[inline]
    pub(in super::super) fn at(&self, id: usize, tick: u32, words: &mut [u64]) -> bool {
        self.state_at(id, tick).is_some_and(|state| {
            self.form.load(state, words);
            true
        })
    }

    /// The state of exactly this tick, as it is stored.
    #[inline]
    pub(in super::super) fn state_at(&self, id: usize, tick: u32) -> Option<&[u32]> {
        // Where it changed in each tick since, its place is known.
        let row = self.row(id)?;
        let back = row.head[TICK].wrapping_sub(tick);
        if back < row.head[LEN]
            && let [at, state @ ..] = self.entry(id, row, back)
            && *at == tick
        {
            return Some(state);
        }
        let (_, entry) = self.entries(id).find(|(_, entry)| entry[0] <= tick)?;
        (entry[0] == tick).then_some(&entry[1..])
    }

    /// The words of the newest state up to a tick, and those before it as they are stored: each `past` ticks before the next, or
    /// the one before it where `past` is 0. False if one of them isn't there.
    pub(in super::super) fn up_to<'s>(
        &'s self,
        id: usize,
        (tick, past): (u32, u32),
        words: &mut [u64],
        older: &mut [&'s [u32]],
    ) -> bool {
        let mut entries = self.entries(id).map(|(_, entry)| entry).skip_while(|entry| entry[0] > tick);
        let Some(newest) = entries.next() else { return false };
        self.form.load(&newest[1..], words);
        older.iter_mut().zip(1..).all(|(state, back)| {
            let has_come = |entry: &&[u32]| past == 0 || tick - entry[0] >= back * past;
            let found = entries.find(has_come).filter(|entry| past == 0 || tick - entry[0] == back * past);
            *state = found.map_or(&[], |entry| &entry[1..]);
            found.is_some()
        })
    }

    /// The newest state and the one before it, of a ghost that there was before this tick and whose newest is from before it.
    #[inline(always)]
    pub(in super::super) fn newest_two(&self, id: usize, tick: u32) -> Option<(&[u32], &[u32])> {
        let row = self.row(id)?;
        if row.head[TICK] >= tick || row.head[LEN] < 2 || row.head[DESTROYED] >= tick {
            return None;
        }
        let size = self.form.size();
        Some((row.recent(size, 0).get(1..)?, row.recent(size, 1).get(1..)?))
    }

    /// Gives the words of the newest state before this tick, or this many before it; false when there are none.
    #[inline]
    pub(in super::super) fn before(&self, id: usize, tick: u32, back: u8, words: &mut [u64]) -> bool {
        self.state_before(id, tick, back).is_some_and(|state| {
            self.form.load(state, words);
            true
        })
    }

    /// As [`States::before`], as it is stored.
    #[inline]
    pub(in super::super) fn state_before(&self, id: usize, tick: u32, back: u8) -> Option<&[u32]> {
        let mut before = self.entries(id).skip_while(|(_, entry)| entry[0] >= tick);
        Some(&before.nth(back.into())?.1[1..])
    }

    /// The ticks of the states around `tick`: the current one, and the next one; 0 if there is none. Also whether earlier
    /// states may have been forgotten, and how many are newer than the next one.
    #[inline]
    pub(in super::super) fn bracket(&self, id: usize, tick: u32) -> ([u32; 2], bool, Option<u32>) {
        let is_full = self.number(id, LEN) == MAX_STATES;
        let (mut next, mut newer) = (0, None);
        for (back, entry) in self.entries(id) {
            if entry[0] <= tick {
                return ([entry[0], next], is_full, newer);
            }
            (next, newer) = (entry[0], Some(back));
        }
        ([0, next], is_full, newer)
    }

    /// Gives the words of a state by how many are newer, or the newest.
    #[inline]
    pub(in super::super) fn load(&self, id: usize, newer: Option<u32>, words: &mut [u64]) {
        match self.row(id).filter(|row| row.head[LEN] > 0) {
            Some(row) => self.form.load(&self.entry(id, row, newer.unwrap_or(0))[1..], words),
            None => words.fill(0),
        }
    }

    /// The ticks of all states, rising.
    pub(in super::super) fn all_ticks(&self, id: usize) -> impl Iterator<Item = u32> {
        self.entries(id).rev().map(|(_, entry)| entry[0])
    }

    /// Keeps the state of a tick before that of the newest one, if it is among the newest. `other` is lent.
    pub(in super::super) fn insert(&mut self, id: usize, tick: u32, words: &[u64], other: &mut [u64]) {
        let newer = self.entries(id).take_while(|(_, entry)| entry[0] > tick).count() as u32;
        let (newest, len) = (self.tick(id), self.number(id, LEN));
        if newer == MAX_STATES || self.state_at(id, tick).is_some() || len == 0 {
            return;
        }
        // The newest comes once more: so there is one more than before, and the oldest made room.
        self.newest(id, other);
        let mut state = vec![0; self.form.size()];
        self.form.store(other, &mut state);
        let row = &mut self.rows[self.start + id * self.stride..][..self.stride];
        push_onto(row, &mut self.earlier, id, newest, &state);
        for back in 1..newer {
            let Some(row) = self.row(id) else { return };
            let entry = self.entry(id, row, back + 1);
            let at = entry[0];
            state.copy_from_slice(&entry[1..]);
            self.put(id, back, at, &state);
        }
        self.form.store(words, &mut state);
        self.put(id, newer, tick, &state);
    }

    /// Puts a state wherever that before as many newer ones is.
    fn put(&mut self, id: usize, back: u32, tick: u32, words: &[u32]) {
        let (last, size) = (self.number(id, NEXT).wrapping_sub(1), 1 + self.form.size());
        let number = last.wrapping_sub(back);
        let place = recent_place(number);
        let recent = self.row_mut(id).filter(|_| back < RECENT as u32);
        let recent =
            recent.map(|row| &mut row[super::HEAD..]).and_then(|states| states.get_mut(place * size..));
        // Those of the newest one's group haven't left the row.
        let has_left = number as usize / RECENT != last as usize / RECENT;
        if let Some([at, to @ ..]) = recent {
            *at = tick;
            to[..words.len()].copy_from_slice(words);
        }
        if has_left && let [at, to @ ..] = &mut self.earlier[group(number)][(id * RECENT + place) * size..] {
            *at = tick;
            to[..words.len()].copy_from_slice(words);
        }
    }
}
