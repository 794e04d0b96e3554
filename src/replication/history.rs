//! The earlier words of rows: possible baselines for peers that don't have the newest.
//!
//! Promises: the last replaced states of each row, each with its first tick; nothing is allocated once each place was
//! used. States are stored by their place in the row's ring and then by row: if all rows change each tick, they are
//! written and read as one run of memory, and a place that no row has reached takes none.

use super::form::Form;
use crate::store::ones;

/// The states of all rows at one place of their rings.
#[derive(Clone, Debug)]
struct Place {
    /// As the form stores them.
    states: Vec<u32>,
    /// From which tick each held.
    since: Vec<u32>,
}

impl Place {
    /// With room for this many rows.
    #[inline]
    fn reserved(&mut self, rows: usize, size: usize) -> &mut Self {
        if self.since.len() < rows {
            self.since.resize(rows, 0);
            self.states.resize(rows * size, 0);
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
    /// Words of a state, and how they are stored.
    width: usize,
    form: Form,
    places: Box<[Place]>,
    rings: Vec<Ring>,
}

impl History {
    /// For states of this many words, `depth` per row.
    pub(super) fn new(width: usize, narrow: bool, depth: u8) -> Self {
        let places = (0..depth).map(|_| Place { states: Vec::new(), since: Vec::new() }).collect();
        History { width, form: Form::new(width, narrow), places, rings: Vec::new() }
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
        let (depth, all, width, form) = (self.places.len(), self.rings.len(), self.width, self.form);
        let count = rows.count_ones() as usize;
        let run = rows & rows.wrapping_add(1) == 0;
        let rings = &mut self.rings[first..];
        if depth == 0 || count == 0 {
            return;
        }
        if run && rings[1..count].iter().all(|ring| *ring == rings[0]) {
            let place = self.places[usize::from(rings[0].next)].reserved(all, form.size());
            place.since[first..][..count].copy_from_slice(&since[..count]);
            form.store(&words[..count * width], &mut place.states[first * form.size()..]);
            rings[..count].iter_mut().for_each(|ring| ring.push(depth));
            return;
        }
        for row in ones(rows) {
            let place = self.places[usize::from(rings[row].next)].reserved(all, form.size());
            place.since[first + row] = since[row];
            let state = &mut place.states[(first + row) * form.size()..];
            form.store(&words[row * width..][..width], state);
            rings[row].push(depth);
        }
    }

    /// The ticks of a row's states, rising.
    pub(super) fn ticks(&self, row: usize) -> Vec<u32> {
        self.all(row).map(|place| place.since[row]).rev().collect()
    }

    /// The tick of a row's oldest state.
    pub(super) fn oldest(&self, row: usize) -> Option<u32> {
        self.all(row).next_back().map(|place| place.since[row])
    }

    /// The ticks of the states around `tick`, where the newest one, which isn't stored here, is from `newest`: the
    /// current state, and the next one; 0 if there is none.
    pub(super) fn bracket(&self, row: usize, newest: u32, tick: u32) -> [u32; 2] {
        let (mut next, mut from) = (0, newest);
        for since in self.all(row).map(|place| place.since[row]) {
            if from <= tick {
                return [from, next];
            }
            (next, from) = (from, since);
        }
        if from <= tick { [from, next] } else { [0, from] }
    }

    /// Bytes of memory of all states.
    pub(super) fn bytes(&self) -> usize {
        self.places.iter().map(|place| (place.states.capacity() + place.since.capacity()) * 4).sum()
    }

    /// The place of the last replaced state, or of this many before it.
    #[inline]
    fn place(&self, row: usize, back: usize) -> Option<&Place> {
        let (ring, depth) = (self.rings[row], self.places.len());
        // At most as many as there are places.
        let at = usize::from(ring.next) + if usize::from(ring.next) > back { 0 } else { depth };
        (back < ring.len.into()).then(|| &self.places[at - back - 1])
    }

    /// The places of a row's states, from the last replaced one on.
    #[inline]
    fn all(&self, row: usize) -> impl DoubleEndedIterator<Item = &Place> {
        (0..usize::from(self.rings[row].len)).filter_map(move |back| self.place(row, back))
    }

    #[inline]
    fn state<'p>(&self, place: &'p Place, row: usize) -> &'p [u32] {
        let size = self.form.size();
        &place.states[row * size..][..size]
    }

    /// The state that the row had at `tick`, as the form stores it; None if it is forgotten, or there was none. One that has changed
    /// in each of this many ticks since is found at once.
    #[inline]
    pub(super) fn state_at(&self, row: usize, tick: u32, changes: u32) -> Option<&[u32]> {
        let likely =
            self.place(row, (changes as usize).wrapping_sub(1)).filter(|place| place.since[row] == tick);
        let place = likely.or_else(|| self.all(row).find(|place| place.since[row] <= tick))?;
        Some(self.state(place, row))
    }

    /// The last replaced state, or this many before it; None if it is forgotten.
    #[inline]
    pub(super) fn state_back(&self, row: usize, back: u8) -> Option<&[u32]> {
        Some(self.state(self.place(row, back.into())?, row))
    }

    /// How the words of states are stored.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Gives the words that the row had at `tick`; false when these are forgotten, or it had none.
    #[inline]
    pub(super) fn words_at(&self, row: usize, tick: u32, words: &mut [u64]) -> bool {
        self.state_at(row, tick, 0).is_some_and(|state| {
            self.form.load(state, words);
            true
        })
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
            let first = |history: &History, state: &[u32]| history.form.word(state, 0);
            let found = [(20, 1), (15, 2), (12, 3), (10, 4), (15, 1), (16, 2), (20, u32::MAX)];
            assert_eq!(
                found.map(|(tick, changes)| history.state_at(0, tick, changes).map(|it| first(&history, it))),
                [Some(20), Some(15), Some(12), None, Some(15), Some(15), Some(20)],
                "whether or not it changed in each tick since"
            );
            let back =
                |history: &History, row, back| history.state_back(row, back).map(|it| first(history, it));
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
