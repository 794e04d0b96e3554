//! The words of a page of a client's ghosts: the newest of each, and earlier ones that the server may name as a
//! baseline.
//!
//! Promises: for each ghost the states with the newest ticks are kept, in whatever order they arrive. Memory for a
//! place of the history is allocated when a ghost of the page first has that many states.

use super::super::class::HISTORY;
use super::super::row_words::RowWords;
use super::pages::PAGE;

/// States besides the newest.
const DEPTH: usize = HISTORY as usize;

/// Where a ghost's earlier states are: a ring, by rising ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    /// Place of the oldest.
    first: u8,
    len: u8,
}

impl Ring {
    #[inline]
    fn place(self, index: usize) -> usize {
        (usize::from(self.first) + index) % DEPTH
    }
}

/// The states of a page's ghosts, which are named by their place in it.
#[derive(Clone, Debug)]
pub(super) struct States {
    /// Words of a state.
    width: usize,
    narrow: bool,
    /// The tick of the newest state, 0 if there is none.
    ticks: [u32; PAGE],
    newest: RowWords,
    rings: [Ring; PAGE],
    /// By ghost and place. None before a ghost has a second state.
    earlier_ticks: Box<[u32]>,
    /// By place, then by ghost: as many places as a ghost had states.
    earlier: Vec<RowWords>,
}

impl States {
    pub(super) fn new(width: usize, narrow: bool) -> Self {
        States {
            width,
            narrow,
            ticks: [0; PAGE],
            newest: zeros(width, narrow),
            rings: [Ring::default(); PAGE],
            earlier_ticks: Box::default(),
            earlier: Vec::new(),
        }
    }

    /// The tick of a ghost's newest state, or 0.
    #[inline]
    pub(super) fn tick(&self, id: usize) -> u32 {
        self.ticks[id]
    }

    /// Gives the newest words, zeros if there are none.
    #[inline]
    pub(super) fn newest(&self, id: usize, words: &mut [u64]) {
        if self.ticks[id] == 0 { words.fill(0) } else { self.newest.load(id * self.width, words) }
    }

    /// Gives the words that a ghost had at exactly this tick; false when there are none.
    #[inline]
    pub(super) fn at(&self, id: usize, tick: u32, words: &mut [u64]) -> bool {
        if self.ticks[id] == tick {
            self.newest.load(id * self.width, words);
            return true;
        }
        let ring = self.rings[id];
        if ring.len == 0 {
            return false;
        }
        let ticks = &self.earlier_ticks[id * DEPTH..][..DEPTH];
        for index in (0..usize::from(ring.len)).rev() {
            let place = ring.place(index);
            if ticks[place] == tick {
                self.earlier[place].load(id * self.width, words);
                return true;
            }
            if ticks[place] < tick {
                return false;
            }
        }
        false
    }

    /// Gives the words of the newest state before this tick, or this many before it; false when there are none.
    #[inline]
    pub(super) fn before(&self, id: usize, tick: u32, back: u8, words: &mut [u64]) -> bool {
        let (ring, mut back) = (self.rings[id], usize::from(back));
        let mut end = usize::from(ring.len);
        if self.ticks[id] == 0 {
            return false;
        }
        if self.ticks[id] < tick {
            if back == 0 {
                self.newest.load(id * self.width, words);
                return true;
            }
            back -= 1;
        } else {
            while end > 0 && self.earlier_ticks[id * DEPTH + ring.place(end - 1)] >= tick {
                end -= 1;
            }
        }
        let Some(index) = end.checked_sub(back + 1) else { return false };
        self.earlier[ring.place(index)].load(id * self.width, words);
        true
    }

    /// The ticks of the states around `tick`: the one before the current one, the current one, and the next one; 0 if
    /// there is none. Also whether earlier states may have been forgotten, and the place of the next one.
    #[inline]
    pub(super) fn bracket(&self, id: usize, tick: u32) -> ([u32; 3], bool, Option<usize>) {
        let (newest, ring) = (self.ticks[id], self.rings[id]);
        let len = usize::from(ring.len);
        let earlier = |index: usize| self.earlier_ticks[id * DEPTH + ring.place(index)];
        let before = |index: usize| if index == 0 { 0 } else { earlier(index - 1) };
        if newest <= tick {
            return ([before(len), newest, 0], len == DEPTH, None);
        }
        let (mut next, mut place) = (newest, None);
        for index in (0..len).rev() {
            let at = earlier(index);
            if at <= tick {
                return ([before(index), at, next], len == DEPTH, place);
            }
            (next, place) = (at, Some(ring.place(index)));
        }
        ([0, 0, next], len == DEPTH, place)
    }

    /// Gives the words of a place of a ghost's ring, or the newest.
    #[inline]
    pub(super) fn load(&self, id: usize, place: Option<usize>, words: &mut [u64]) {
        match place {
            Some(place) => self.earlier[place].load(id * self.width, words),
            None => self.newest.load(id * self.width, words),
        }
    }

    /// The ticks of all states, rising.
    pub(super) fn all_ticks(&self, id: usize) -> impl Iterator<Item = u32> {
        let ring = self.rings[id];
        let earlier =
            (0..usize::from(ring.len)).map(move |index| self.earlier_ticks[id * DEPTH + ring.place(index)]);
        earlier.chain((self.ticks[id] != 0).then_some(self.ticks[id]))
    }

    /// Keeps the state of a tick above that of the newest one, as the newest. `before` are the newest words.
    #[inline]
    pub(super) fn push(&mut self, id: usize, tick: u32, words: &[u64], before: &[u64]) {
        if self.ticks[id] != 0 {
            let ring = &mut self.rings[id];
            if usize::from(ring.len) == DEPTH {
                ring.first = ring.place(1) as u8;
                ring.len -= 1;
            }
            let place = ring.place(ring.len.into());
            ring.len += 1;
            self.put(id, place, self.ticks[id], before);
        }
        self.ticks[id] = tick;
        self.newest.store(id * self.width, words);
    }

    /// Keeps the state of a tick before that of the newest one, if it is among the newest. `other` is lent.
    pub(super) fn insert(&mut self, id: usize, tick: u32, words: &[u64], other: &mut [u64]) {
        self.reserve();
        let ring = self.rings[id];
        let len = usize::from(ring.len);
        let ticks = &self.earlier_ticks[id * DEPTH..][..DEPTH];
        let index = (0..len).position(|index| ticks[ring.place(index)] >= tick).unwrap_or(len);
        if index < len && ticks[ring.place(index)] == tick {
            return;
        }
        if len == DEPTH {
            // The oldest makes room; if this one is older, it isn't kept.
            let Some(index) = index.checked_sub(1) else { return };
            for index in 0..index {
                self.shift(id, ring.place(index + 1), ring.place(index), other);
            }
            self.put(id, ring.place(index), tick, words);
            return;
        }
        for index in (index..len).rev() {
            self.shift(id, ring.place(index), ring.place(index + 1), other);
        }
        self.rings[id].len += 1;
        self.put(id, ring.place(index), tick, words);
    }

    /// Forgets a ghost's states.
    pub(super) fn clear(&mut self, id: usize) {
        self.ticks[id] = 0;
        self.rings[id] = Ring::default();
    }

    fn shift(&mut self, id: usize, from: usize, to: usize, words: &mut [u64]) {
        self.earlier[from].load(id * self.width, words);
        self.put(id, to, self.earlier_ticks[id * DEPTH + from], words);
    }

    #[inline]
    fn put(&mut self, id: usize, place: usize, tick: u32, words: &[u64]) {
        self.reserve();
        self.earlier_ticks[id * DEPTH + place] = tick;
        while self.earlier.len() <= place {
            self.earlier.push(zeros(self.width, self.narrow));
        }
        self.earlier[place].store(id * self.width, words);
    }

    /// Makes room for the ticks of earlier states.
    #[inline]
    fn reserve(&mut self) {
        if self.earlier_ticks.is_empty() {
            self.earlier_ticks = vec![0; PAGE * DEPTH].into();
        }
    }
}

/// Of states of this many words, for the ghosts of a page.
fn zeros(width: usize, narrow: bool) -> RowWords {
    let mut words = RowWords::new(narrow);
    words.grow(width * PAGE);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::BTreeSet;

    #[test]
    fn the_states_with_the_newest_ticks_are_kept_in_whatever_order_they_come() {
        for seed in 0..60 {
            let (mut rng, narrow) = (Rng::seeded(seed), seed % 2 == 0);
            let (mut states, mut model) = (States::new(2, narrow), BTreeSet::new());
            for step in 0..400u32 {
                let tick = (1 + step + rng.below(40) as u32).saturating_sub(20).max(1);
                let of = |tick: u32| [u64::from(tick), u64::from(tick) + 7];
                let newest = states.tick(1);
                let mut before = [0; 2];
                states.newest(1, &mut before);
                match tick {
                    _ if tick > newest => states.push(1, tick, &of(tick), &before),
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
