//! The earlier words of rows: possible baselines for peers that don't have the newest.
//!
//! Promises: the last replaced states of each row, each with its first tick; nothing is allocated once each place was
//! used. States are stored by their place in the row's ring and then by row: if all rows change each tick, they are
//! written and read as one run of memory, and a place that no row has reached takes none.

use super::row_words::RowWords;
use crate::store::ones;

/// The states of all rows at one place of their rings.
#[derive(Clone, Debug)]
struct Place {
    words: RowWords,
    /// From which tick each held.
    since: Vec<u32>,
}

impl Place {
    /// With room for this many rows.
    #[inline]
    fn reserved(&mut self, rows: usize, width: usize) -> &mut Self {
        if self.since.len() < rows {
            self.since.resize(rows, 0);
            self.words.grow(rows * width);
        }
        self
    }
}

/// Which places of a row's ring have a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ring {
    /// Where the next one goes.
    next: u8,
    len: u8,
}

impl Ring {
    fn push(&mut self, depth: usize) {
        // At most 255.
        self.next = if usize::from(self.next) + 1 == depth { 0 } else { self.next + 1 };
        self.len = (self.len + 1).min(depth as u8);
    }
}

/// The replaced states of all rows.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// Words of a state.
    width: usize,
    places: Box<[Place]>,
    rings: Vec<Ring>,
}

impl History {
    /// For states of this many words, `depth` per row.
    pub(super) fn new(width: usize, narrow: bool, depth: u8) -> Self {
        let places = (0..depth).map(|_| Place { words: RowWords::new(narrow), since: Vec::new() }).collect();
        History { width, places, rings: Vec::new() }
    }

    /// Makes room for rows below `rows`.
    pub(super) fn reserve(&mut self, rows: usize) {
        self.rings.resize(rows, Ring::default());
    }

    /// Forgets the states of a row.
    pub(super) fn clear(&mut self, row: usize) {
        self.rings[row] = Ring::default();
    }

    /// Remembers what rows from `first` on had, a bit each: `words` are theirs, and `since` the ticks from which they held.
    #[inline]
    pub(super) fn push(&mut self, first: usize, rows: u64, since: &[u32], words: &[u64]) {
        let (depth, all, width) = (self.places.len(), self.rings.len(), self.width);
        let count = rows.count_ones() as usize;
        let run = rows & rows.wrapping_add(1) == 0;
        let rings = &mut self.rings[first..];
        if depth == 0 || count == 0 {
            return;
        }
        if run && rings[1..count].iter().all(|ring| *ring == rings[0]) {
            let place = self.places[usize::from(rings[0].next)].reserved(all, width);
            place.since[first..][..count].copy_from_slice(&since[..count]);
            place.words.store(first * width, &words[..count * width]);
            rings[..count].iter_mut().for_each(|ring| ring.push(depth));
            return;
        }
        for row in ones(rows) {
            let place = self.places[usize::from(rings[row].next)].reserved(all, width);
            place.since[first + row] = since[row];
            place.words.store((first + row) * width, &words[row * width..][..width]);
            rings[row].push(depth);
        }
    }

    /// The ticks of a row's states, rising.
    pub(super) fn ticks(&self, row: usize) -> Vec<u32> {
        let (depth, ring) = (self.places.len(), self.rings[row]);
        let first = usize::from(ring.next) + depth - usize::from(ring.len);
        (first..first + usize::from(ring.len)).map(|at| self.places[at % depth].since[row]).collect()
    }

    /// The tick of a row's oldest state.
    pub(super) fn oldest(&self, row: usize) -> Option<u32> {
        let (depth, ring) = (self.places.len(), self.rings[row]);
        let at = usize::from(ring.next) + depth - usize::from(ring.len);
        (ring.len > 0).then(|| self.places[at % depth].since[row])
    }

    /// The ticks of the states around `tick`, where the newest one, which isn't stored here, is from `newest`: the
    /// state before the current one, the current one, and the next one; 0 if there is none.
    pub(super) fn bracket(&self, row: usize, newest: u32, tick: u32) -> [u32; 3] {
        let (depth, ring) = (self.places.len(), self.rings[row]);
        let (mut next, mut from) = (0, newest);
        let mut at = usize::from(ring.next);
        for _ in 0..ring.len {
            at = at.checked_sub(1).unwrap_or(depth - 1);
            let since = self.places[at].since[row];
            if from <= tick {
                return [since, from, next];
            }
            (next, from) = (from, since);
        }
        if from <= tick { [0, from, next] } else { [0, 0, from] }
    }

    /// Bytes of memory of all states.
    pub(super) fn bytes(&self) -> usize {
        self.places.iter().map(|place| place.words.bytes() + place.since.capacity() * 4).sum()
    }

    /// As [`History::words_at`], of a row that has changed in each tick since, this many times; false if it hasn't.
    #[inline]
    pub(super) fn words_since(&self, row: usize, tick: u32, changes: u32, words: &mut [u64]) -> bool {
        let ring = self.rings[row];
        if changes > ring.len.into() {
            return false;
        }
        // At most as many places as there are.
        let (at, back) = (usize::from(ring.next), changes as usize);
        let place = &self.places[if at >= back { at - back } else { at + self.places.len() - back }];
        let holds = place.since[row] == tick;
        if holds {
            place.words.load(row * self.width, words);
        }
        holds
    }

    /// Gives the words that the row had at `tick`; false when these are forgotten, or it had none.
    #[inline]
    pub(super) fn words_at(&self, row: usize, tick: u32, words: &mut [u64]) -> bool {
        let (depth, ring) = (self.places.len(), self.rings[row]);
        let mut at = usize::from(ring.next);
        for _ in 0..ring.len {
            at = at.checked_sub(1).unwrap_or(depth - 1);
            let place = &self.places[at];
            if place.since[row] <= tick {
                place.words.load(row * self.width, words);
                return true;
            }
        }
        false
    }
}

impl History {
    /// Gives the words of the last replaced state, or this many before it; false when these are forgotten.
    #[inline]
    pub(super) fn words_back(&self, row: usize, back: u8, words: &mut [u64]) -> bool {
        let (depth, ring) = (self.places.len(), self.rings[row]);
        if back >= ring.len {
            return false;
        }
        let at = (usize::from(ring.next) + depth - 1 - usize::from(back)) % depth;
        self.places[at].words.load(row * self.width, words);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_states_are_kept_each_from_its_tick_on() {
        for narrow in [true, false] {
            let mut history = History::new(2, narrow, 3);
            history.reserve(2);
            let at = |history: &History, row, tick| {
                let mut words = [0; 2];
                history.words_at(row, tick, &mut words).then_some(words)
            };
            assert_eq!(at(&history, 0, 9), None);
            for tick in [10, 12, 15, 20] {
                history.push(0, 1, &[tick], &[tick.into(), 7]);
            }
            assert_eq!(
                [11, 12, 14, 15, 19, 25].map(|tick| at(&history, 0, tick).map(|words| words[0])),
                [None, Some(12), Some(12), Some(15), Some(15), Some(20)]
            );
            let since = |tick, changes| {
                let mut words = [0; 2];
                history.words_since(0, tick, changes, &mut words).then_some(words[0])
            };
            let found = [(20, 1), (15, 2), (12, 3), (10, 4), (15, 1), (16, 2), (20, u32::MAX)];
            assert_eq!(
                found.map(|(tick, changes)| since(tick, changes)),
                [Some(20), Some(15), Some(12), None, None, None, None],
                "of a row that changed in each tick since"
            );
            let back = |history: &History, row, back| {
                let mut words = [0; 2];
                history.words_back(row, back, &mut words).then_some(words[0])
            };
            assert_eq!([0, 1, 2, 3].map(|i| back(&history, 0, i)), [Some(20), Some(15), Some(12), None]);
            assert_eq!((at(&history, 1, 25), back(&history, 1, 0)), (None, None), "the other row had none");
            history.reserve(9);
            history.push(7, 2, &[0, 21], &[0, 0, 1, u32::MAX.into()]);
            assert_eq!(
                (at(&history, 8, 21), at(&history, 0, 13)),
                (Some([1, u32::MAX.into()]), Some([12, 7]))
            );
            history.clear(0);
            assert_eq!(at(&history, 0, 25), None);
            history.push(0, 1, &[30], &[30, 30]);
            assert_eq!((at(&history, 0, 29), at(&history, 0, 30)), (None, Some([30, 30])));
        }
    }

    #[test]
    fn without_depth_nothing_is_kept() {
        let mut history = History::new(1, true, 0);
        history.reserve(1);
        history.push(0, 1, &[1], &[5]);
        assert!(!history.words_at(0, 1, &mut [0]));
    }
}
