//! A ghost's earlier states: a ring by rising ticks, of which the last is in the row too.

use super::super::super::class::HISTORY;
use super::super::pages::PAGE;
use super::{HEAD, PREVIOUS, RING, Row, States, TICK};

/// States besides the newest.
pub(super) const DEPTH: usize = HISTORY as usize;

/// Where a ghost's earlier states are: a ring, by rising ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ring {
    /// Place of the oldest.
    pub(super) first: u8,
    pub(super) len: u8,
}

impl Ring {
    #[inline]
    pub(super) fn place(self, index: usize) -> usize {
        (usize::from(self.first) + index) % DEPTH
    }

    /// The place of the next one.
    #[inline]
    pub(super) fn next(self) -> usize {
        self.place(self.len.into())
    }

    /// Makes room for one more, for which the oldest goes where there is none: gives its place.
    #[inline]
    pub(super) fn push(&mut self) -> usize {
        let place = self.next();
        if usize::from(self.len) == DEPTH {
            self.first = self.place(1) as u8;
        } else {
            self.len += 1;
        }
        place
    }

    #[inline]
    pub(super) fn packed(self) -> u32 {
        u32::from(self.first) | u32::from(self.len) << 8
    }

    #[inline]
    pub(super) fn unpacked(packed: u32) -> Self {
        // Both are at most the depth.
        Ring { first: packed as u8, len: (packed >> 8) as u8 }
    }
}

impl States {
    /// The tick of a place.
    #[inline]
    fn earlier_tick(&self, id: usize, place: usize) -> u32 {
        self.earlier[place][id * (1 + self.form.size())]
    }

    /// A state as it is stored, at its place.
    #[inline]
    fn earlier_state(&self, id: usize, place: usize) -> &[u32] {
        let size = self.form.size();
        &self.earlier[place][id * (1 + size) + 1..][..size]
    }

    /// Gives the words of a place.
    #[inline]
    fn earlier_words(&self, id: usize, place: usize, words: &mut [u64]) {
        self.form.load(self.earlier_state(id, place), words);
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
        let Row { head, newest, previous } = self.row(id)?;
        if head[TICK] == tick {
            return Some(newest);
        }
        if head[PREVIOUS] == tick && tick != 0 {
            return Some(previous);
        }
        let ring = Ring::unpacked(head[RING]);
        for index in (0..usize::from(ring.len)).rev() {
            let place = ring.place(index);
            let at = self.earlier_tick(id, place);
            if at <= tick {
                return (at == tick).then(|| self.earlier_state(id, place));
            }
        }
        None
    }

    /// The newest state before this tick and the one before it.
    #[inline]
    pub(in super::super) fn two_before(&self, id: usize, tick: u32) -> Option<(&[u32], &[u32])> {
        match self.row(id) {
            Some(Row { head, newest, previous }) if head[TICK] < tick && head[PREVIOUS] != 0 => {
                Some((newest, previous))
            }
            _ => self.state_before(id, tick, 0).zip(self.state_before(id, tick, 1)),
        }
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
        let Row { head, newest, previous } = self.row(id).filter(|row| row.head[TICK] != 0)?;
        let (ring, mut back) = (Ring::unpacked(head[RING]), usize::from(back));
        let mut end = usize::from(ring.len);
        if head[TICK] < tick {
            if back == 0 {
                return Some(newest);
            }
            if back == 1 && head[PREVIOUS] != 0 {
                return Some(previous);
            }
            back -= 1;
        } else {
            while end > 0 && self.earlier_tick(id, ring.place(end - 1)) >= tick {
                end -= 1;
            }
        }
        let index = end.checked_sub(back + 1)?;
        Some(self.earlier_state(id, ring.place(index)))
    }

    /// The ticks of the states around `tick`: the one before the current one, the current one, and the next one; 0 if
    /// there is none. Also whether earlier states may have been forgotten, and the place of the next one.
    #[inline]
    pub(in super::super) fn bracket(&self, id: usize, tick: u32) -> ([u32; 3], bool, Option<usize>) {
        let (newest, ring) = (self.tick(id), self.ring(id));
        let len = usize::from(ring.len);
        let earlier = |index: usize| self.earlier_tick(id, ring.place(index));
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
    pub(in super::super) fn load(&self, id: usize, place: Option<usize>, words: &mut [u64]) {
        match place {
            Some(place) => self.earlier_words(id, place, words),
            None => self.newest(id, words),
        }
    }

    /// The ticks of all states, rising.
    pub(in super::super) fn all_ticks(&self, id: usize) -> impl Iterator<Item = u32> {
        let (ring, newest) = (self.ring(id), self.tick(id));
        let earlier = (0..usize::from(ring.len)).map(move |index| self.earlier_tick(id, ring.place(index)));
        earlier.chain((newest != 0).then_some(newest))
    }

    /// Keeps the state of a tick before that of the newest one, if it is among the newest. `other` is lent.
    pub(in super::super) fn insert(&mut self, id: usize, tick: u32, words: &[u64], other: &mut [u64]) {
        let mut ring = self.ring(id);
        let len = usize::from(ring.len);
        let index = (0..len).position(|index| self.earlier_tick(id, ring.place(index)) >= tick);
        let index = index.unwrap_or(len);
        if index < len && self.earlier_tick(id, ring.place(index)) == tick {
            return;
        }
        if len == DEPTH {
            // The oldest makes room; if this one is older, it isn't kept.
            let Some(index) = index.checked_sub(1) else { return };
            for index in 0..index {
                self.shift(id, ring.place(index + 1), ring.place(index), other);
            }
            self.put(id, ring.place(index), tick, words);
            self.put_previous(id, tick, words);
            return;
        }
        for index in (index..len).rev() {
            self.shift(id, ring.place(index), ring.place(index + 1), other);
        }
        self.put(id, ring.place(index), tick, words);
        ring.len += 1;
        if let Some(row) = self.row_mut(id) {
            row[RING] = ring.packed();
        }
        self.put_previous(id, tick, words);
    }

    /// Keeps a state that is in the ring as the previous one, if it is.
    fn put_previous(&mut self, id: usize, tick: u32, words: &[u64]) {
        let form = self.form;
        if let Some(row) = self.row_mut(id).filter(|row| row[PREVIOUS] < tick) {
            row[PREVIOUS] = tick;
            form.store(words, &mut row[HEAD + form.size()..]);
        }
    }

    fn shift(&mut self, id: usize, from: usize, to: usize, words: &mut [u64]) {
        self.earlier_words(id, from, words);
        self.put(id, to, self.earlier_tick(id, from), words);
    }

    fn put(&mut self, id: usize, place: usize, tick: u32, words: &[u64]) {
        let size = 1 + self.form.size();
        reserve(&mut self.earlier, place, size);
        let entry = &mut self.earlier[place][id * size..][..size];
        entry[0] = tick;
        self.form.store(words, &mut entry[1..]);
    }
}

/// Makes room for a place of the history, where an entry has this size.
#[inline]
pub(super) fn reserve(earlier: &mut Vec<Box<[u32]>>, place: usize, size: usize) {
    if earlier.len() <= place {
        grow(earlier, place, size);
    }
}

#[cold]
#[inline(never)]
fn grow(earlier: &mut Vec<Box<[u32]>>, place: usize, size: usize) {
    while earlier.len() <= place {
        earlier.push(vec![0; PAGE * size].into());
    }
}
