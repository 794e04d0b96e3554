//! What a client knows of the ghosts of a page: a head of each, its newest states, and earlier ones that the server may name as a
//! baseline.
//!
//! Promises: for each ghost the states with the newest ticks are kept, in whatever order they arrive. Memory for earlier ones is
//! allocated when a ghost of the page first has as many.
//!
//! States have numbers, one more than that of the state before. The newest of a ghost lie side by side, by their numbers, as the next is
//! predicted from them. In a large world where little changes, each place of the memory that the processor doesn't have at hand
//! costs as much as reading the update: so those that leave are copied some at a time, before the first of them is replaced.

use core::ops::Range;

use super::super::class::{GhostClass, HISTORY};
use super::super::form::Form;
use crate::store::{prefetch, prefetch_across};

/// Ids of a page.
pub(super) const PAGE: usize = 64;
/// States that aren't among the newest, and all.
const EARLIER: usize = HISTORY as usize;
const MAX_STATES: u32 = EARLIER as u32 + 1;
/// The newest states of a ghost, which leave together.
const RECENT: usize = 4;

/// What became of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advance {
    /// There is no such ghost, or it ended.
    Missing,
    /// It is of a tick before the newest one's, and wasn't kept.
    Late,
    /// It is of the newest one's tick.
    Same,
    /// It is the newest now.
    Newest,
}

/// What is known of a ghost besides its states.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head {
    /// The tick of the newest state, or 0.
    pub(super) tick: u32,
    /// The tick of the last destroy, 0 if there was none. It may have come before the create that it ends.
    pub(super) destroyed: u32,
    /// Properties that the game has not seen.
    pub(super) dirty: u64,
    pub(super) flags: u8,
    /// The number of the next state, and how many there are.
    next: u32,
    len: u32,
}

/// The ghosts of a page, which are named by their place in it.
#[derive(Debug)]
pub(super) struct States {
    form: Form,
    pub(super) heads: [Head; PAGE],
    /// By ghost, then by the number modulo [`RECENT`]: a tick, and the words as the form stores them. None before the first state.
    recent: Box<[u32]>,
    /// The same of those that left, by the group of their numbers.
    earlier: Vec<Box<[u32]>>,
}

impl States {
    pub(super) fn new(form: Form) -> Self {
        States { form, heads: [Head::default(); PAGE], recent: Box::default(), earlier: Vec::new() }
    }

    /// The numbers of 32 bits that an entry takes.
    #[inline]
    fn size(&self) -> usize {
        1 + self.form.size()
    }

    /// Where the entry of a number is among the recent ones, or among its group's.
    #[inline]
    fn range(&self, id: usize, number: u32) -> Range<usize> {
        let start = (id * RECENT + number as usize % RECENT) * self.size();
        start..start + self.size()
    }

    /// The tick and state before as many newer ones, which there are.
    #[inline]
    fn entry(&self, id: usize, back: u32) -> (u32, &[u32]) {
        let number = self.heads[id].next.wrapping_sub(1 + back);
        let of = if back < RECENT as u32 { &self.recent } else { &self.earlier[group(number)] };
        let entry = &of[self.range(id, number)];
        (entry[0], &entry[1..])
    }

    /// All states with their ticks, from the newest on.
    #[inline]
    fn entries(&self, id: usize) -> impl DoubleEndedIterator<Item = (u32, &[u32])> {
        (0..self.heads[id].len).map(move |back| self.entry(id, back))
    }

    /// Has a ghost's head and its newest states fetched, to be at hand soon.
    #[inline]
    pub(super) fn fetch(&self, id: usize) {
        prefetch(&self.heads[id]);
        let ghost = RECENT * self.size();
        prefetch_across(self.recent.get(id * ghost..(id + 1) * ghost).unwrap_or_default());
    }

    /// Whether an update of this tick may be read: the ghost has states, and its last end was before.
    #[inline]
    pub(super) fn may_change(&self, id: usize, tick: u32) -> bool {
        let head = &self.heads[id];
        head.tick > 0 && tick > head.destroyed
    }

    /// The newest state, as it is stored.
    #[inline]
    pub(super) fn newest(&self, id: usize) -> Option<&[u32]> {
        (self.heads[id].len > 0).then(|| self.entry(id, 0).1)
    }

    /// Gives the words of the newest state, zeros if there is none.
    #[inline]
    pub(super) fn load_newest(&self, id: usize, words: &mut [u64]) {
        match self.newest(id) {
            Some(state) => self.form.load(state, words),
            None => words.fill(0),
        }
    }

    /// Gives the words of the state before as many newer ones, which there are.
    #[inline]
    pub(super) fn load(&self, id: usize, back: u32, words: &mut [u64]) {
        self.form.load(self.entry(id, back).1, words);
    }

    /// The properties of a mask whose words, as they are stored, differ from the newest.
    #[inline]
    pub(super) fn differing(&self, id: usize, class: &GhostClass, mask: u64, state: &[u32]) -> u64 {
        self.newest(id).map_or(mask, |newest| self.form.differing(class, mask, state, newest))
    }

    /// The state of exactly this tick, as it is stored.
    #[inline]
    pub(super) fn at(&self, id: usize, tick: u32) -> Option<&[u32]> {
        let head = &self.heads[id];
        // Where it changed in each tick since, its place is known.
        let back = head.tick.wrapping_sub(tick);
        let likely = (back < head.len).then(|| self.entry(id, back));
        let found = likely.filter(|(at, _)| *at == tick);
        let found = found.or_else(|| self.entries(id).find(|(at, _)| *at <= tick))?;
        (found.0 == tick).then_some(found.1)
    }

    /// Gives the words that a ghost had at exactly this tick; false when there are none.
    pub(super) fn words_at(&self, id: usize, tick: u32, words: &mut [u64]) -> bool {
        self.at(id, tick).is_some_and(|state| {
            self.form.load(state, words);
            true
        })
    }

    /// The states before this tick as they are stored, the newest first.
    #[inline]
    pub(super) fn before(&self, id: usize, tick: u32) -> impl Iterator<Item = &[u32]> {
        // Most updates are newer than all.
        let newer = if self.heads[id].tick < tick {
            0
        } else {
            self.entries(id).take_while(|(at, _)| *at >= tick).count() as u32
        };
        (newer..self.heads[id].len).map(move |back| self.entry(id, back).1)
    }

    /// The words of the newest state up to a tick, and those before it as they are stored: each `past` ticks before the next, or
    /// the one before it where `past` is 0. False if one of them isn't there.
    pub(super) fn up_to<'s>(
        &'s self,
        id: usize,
        (tick, past): (u32, u32),
        words: &mut [u64],
        older: &mut [&'s [u32]],
    ) -> bool {
        let len = self.heads[id].len;
        let mut back = (0..len).find(|back| self.entry(id, *back).0 <= tick).unwrap_or(len);
        if back == len {
            return false;
        }
        self.load(id, back, words);
        let mut before = tick;
        for state in older {
            before = before.saturating_sub(past);
            loop {
                back += 1;
                if back >= len {
                    return false;
                }
                let (at, found) = self.entry(id, back);
                if past == 0 || at <= before {
                    *state = found;
                    if past > 0 && at < before {
                        return false;
                    }
                    break;
                }
            }
        }
        true
    }

    /// The ticks of the states around `tick`: the current one, and the next one; 0 if there is none. Also whether earlier
    /// states may have been forgotten, and how many are newer than the next one.
    #[inline]
    pub(super) fn bracket(&self, id: usize, tick: u32) -> ([u32; 2], bool, u32) {
        let is_full = self.heads[id].len == MAX_STATES;
        let (mut next, mut newer) = (0, 0);
        for (back, (at, _)) in (0..).zip(self.entries(id)) {
            if at <= tick {
                return ([at, next], is_full, newer);
            }
            (next, newer) = (at, back);
        }
        ([0, next], is_full, newer)
    }

    /// The ticks of all states, rising.
    pub(super) fn ticks(&self, id: usize) -> impl Iterator<Item = u32> {
        self.entries(id).rev().map(|(at, _)| at)
    }

    /// Keeps the state of a tick above that of the newest one, as the newest. It is as it is stored.
    #[inline]
    pub(super) fn push(&mut self, id: usize, tick: u32, state: &[u32]) {
        let Head { next, len, .. } = self.heads[id];
        if self.recent.is_empty() {
            self.recent = vec![0; PAGE * RECENT * self.size()].into();
        }
        if (next as usize).is_multiple_of(RECENT) && len > 0 {
            self.keep_recent(id, group(next.wrapping_sub(1)));
        }
        let range = self.range(id, next);
        if let [at, place @ ..] = &mut self.recent[range] {
            *at = tick;
            place.copy_from_slice(state);
        }
        let head = &mut self.heads[id];
        (head.tick, head.next, head.len) = (tick, next.wrapping_add(1), (len + 1).min(MAX_STATES));
    }

    /// Copies a ghost's recent states to those of a group, before the first of them is replaced.
    #[inline]
    fn keep_recent(&mut self, id: usize, group: usize) {
        while self.earlier.len() <= group {
            self.earlier.push(vec![0; self.recent.len()].into());
        }
        let ghost = RECENT * self.size();
        let range = id * ghost..(id + 1) * ghost;
        self.earlier[group][range.clone()].copy_from_slice(&self.recent[range]);
    }

    /// Keeps a state as the newest of a ghost that exists, if it is. Then what `differing` says of the one before is added to
    /// the properties that the game has not seen, and the flags of `set` are set.
    #[inline(always)]
    pub(super) fn advance(
        &mut self,
        id: usize,
        tick: u32,
        state: &[u32],
        set: u8,
        differing: impl FnOnce(&[u32]) -> u64,
    ) -> Advance {
        let Head { tick: newest, destroyed, .. } = self.heads[id];
        if newest == 0 || tick <= destroyed {
            return Advance::Missing;
        }
        if tick <= newest {
            return if tick < newest { Advance::Late } else { Advance::Same };
        }
        let dirty = differing(self.entry(id, 0).1);
        self.heads[id].dirty |= dirty;
        self.heads[id].flags |= set;
        self.push(id, tick, state);
        Advance::Newest
    }

    /// Keeps the state of a tick before that of the newest one, if it is among the newest.
    pub(super) fn insert(&mut self, id: usize, tick: u32, state: &[u32]) {
        if self.heads[id].len == 0 || self.at(id, tick).is_some() {
            return;
        }
        let mut all: Vec<u32> = Vec::new();
        let mut place = 0;
        for (at, state) in self.entries(id).rev() {
            all.push(at);
            all.extend(state);
            place = if at < tick { all.len() } else { place };
        }
        all.splice(place..place, [tick].into_iter().chain(state.iter().copied()));
        self.heads[id].len = 0;
        // Where there is one too many, the oldest is forgotten.
        for entry in all.chunks_exact(self.size()) {
            self.push(id, entry[0], &entry[1..]);
        }
    }

    /// Forgets a ghost's states.
    pub(super) fn clear(&mut self, id: usize) {
        let head = &mut self.heads[id];
        (head.tick, head.next, head.len) = (0, 0, 0);
    }
}

/// The group of a number: of those that leave together. They take the places of the group that is older by all that are kept, of
/// which none is kept by then.
#[inline]
fn group(number: u32) -> usize {
    const { assert!(EARLIER.is_multiple_of(RECENT)) };
    number as usize % EARLIER / RECENT
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
            let (mut states, mut model) = (States::new(Form::new(2, narrow)), BTreeSet::new());
            for step in 0..400u32 {
                let tick = (1 + step + rng.below(40) as u32).saturating_sub(20).max(1);
                let of = |tick: u32| [u64::from(tick), u64::from(tick) + 7];
                let newest = states.heads[1].tick;
                let mut stored = vec![0; states.form.size()];
                states.form.store(&of(tick), &mut stored);
                match tick {
                    _ if tick > newest => states.push(1, tick, &stored),
                    _ if tick < newest => states.insert(1, tick, &stored),
                    _ => {}
                }
                model.insert(tick);
                while model.len() > MAX_STATES as usize {
                    model.pop_first();
                }
                for tick in 1..500 {
                    let mut words = [0; 2];
                    let found = states.words_at(1, tick, &mut words);
                    assert_eq!(found, model.contains(&tick), "seed {seed} step {step} tick {tick}");
                    assert!(!found || words == of(tick));
                }
                let (before, back) = (rng.below(500) as u32, rng.below(3) as u8);
                let expected = model.range(..before).rev().nth(back.into()).map(|tick| of(*tick));
                let mut words = [0; 2];
                let found = states.before(1, before).nth(back.into()).map(|state| {
                    states.form.load(state, &mut words);
                    words
                });
                assert_eq!(found, expected);
                if rng.chance(0.01) {
                    states.clear(1);
                    model.clear();
                }
            }
        }
    }
}
