//! The rolling sequence buffer without values: which of the newest `capacity` sequence numbers are there, a bit each,
//! so that a window of a thousand packets is two cache lines.
//!
//! Promises: as [`SequenceBuffer`](super::SequenceBuffer)'s. Refuses: inserts older than the window.

use super::InlineSlice;
use super::window::Window;

/// Words that need no allocation: the window of 1,024 packets that connections begin with.
const INLINE_WORDS: usize = 16;

/// Which of the newest `capacity` sequence numbers were inserted.
#[derive(Clone, Debug)]
pub struct SequenceSet {
    window: Window,
    /// A bit for each sequence % capacity. Those of numbers that are not in the window are clear.
    words: InlineSlice<u64, INLINE_WORDS>,
}

impl SequenceSet {
    /// A set of the newest `capacity` sequence numbers.
    ///
    /// # Panics
    /// As [`SequenceBuffer::new`](super::SequenceBuffer::new).
    pub fn new(capacity: usize) -> Self {
        SequenceSet { window: Window::new(capacity), words: InlineSlice::new(0, capacity.div_ceil(64)) }
    }

    /// The number of sequence numbers covered.
    pub fn capacity(&self) -> usize {
        self.window.capacity
    }

    /// One past the newest inserted sequence; 0 at the start.
    pub fn next(&self) -> u64 {
        self.window.next
    }

    /// True for sequences older than the window: these can't be inserted.
    pub fn stale(&self, sequence: u64) -> bool {
        self.window.stale(sequence)
    }

    /// Moves the window so that `sequence` is its newest, without inserting it. Does nothing when the window is already
    /// there or beyond.
    pub fn advance(&mut self, sequence: u64) {
        match self.window.advance(sequence) {
            Some(skipped) => skipped.for_each(|slot| self.words[slot / 64] &= !(1 << (slot % 64))),
            None => self.words.fill(0),
        }
    }

    /// Puts `sequence` in; false when it is older than the window.
    pub fn insert(&mut self, sequence: u64) -> bool {
        if self.stale(sequence) {
            return false;
        }
        self.advance(sequence);
        let (word, mask) = self.bit(sequence);
        self.words[word] |= mask;
        true
    }

    /// Whether `sequence` is there: within the window and inserted.
    pub fn contains(&self, sequence: u64) -> bool {
        let (word, mask) = self.bit(sequence);
        self.window.covers(sequence) && self.words[word] & mask != 0
    }

    /// Grows to `capacity` sequence numbers, keeping its entries.
    ///
    /// # Panics
    /// As [`SequenceSet::new`].
    pub fn grow(&mut self, capacity: usize) {
        let mut larger = Self::new(capacity);
        larger.window.next = self.window.next;
        for age in 1..=self.capacity() as u64 {
            let sequence = self.next().wrapping_sub(age);
            if self.contains(sequence) {
                larger.insert(sequence);
            }
        }
        *self = larger;
    }

    fn bit(&self, sequence: u64) -> (usize, u64) {
        let index = self.window.slot(sequence);
        (index / 64, 1 << (index % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::store::SequenceBuffer;

    /// Over many laps, at any loss and with jumps of all sizes.
    #[test]
    fn agrees_with_the_buffer_that_has_values() {
        for capacity in [8, 64, 256, 1024, 32_768] {
            let mut rng = Rng::seeded(capacity as u64);
            let (mut set, mut buffer) = (SequenceSet::new(capacity), SequenceBuffer::new(capacity));
            let mut newest = 0u64;
            for _ in 0..20_000 {
                let jump = if rng.chance(0.01) { 2 * capacity as u64 } else { 4 };
                newest = newest.wrapping_add(rng.below(jump.min(30_000)));
                let sequence = newest.wrapping_sub(rng.below(capacity as u64 + 8));
                if rng.chance(0.1) {
                    set.advance(sequence);
                    buffer.advance(sequence);
                } else {
                    assert_eq!(set.insert(sequence), buffer.insert(sequence, ()).is_ok());
                }
                assert_eq!((set.next(), set.capacity()), (buffer.next(), buffer.capacity()));
                let asked = newest.wrapping_add(64).wrapping_sub(rng.below(3 * capacity as u64));
                assert_eq!(set.contains(asked), buffer.contains(asked), "{asked} of {newest}");
                assert_eq!(set.stale(asked), buffer.stale(asked));
            }
        }
    }

    #[test]
    fn grows_with_what_is_in_it() {
        let mut set = SequenceSet::new(16);
        (65_530..65_556).filter(|s| *s != 65_543).for_each(|s| assert!(set.insert(s)));
        set.grow(64);
        assert_eq!((set.capacity(), set.next()), (64, 65_556));
        let there: Vec<_> = (0..131_072).filter(|s| set.contains(*s)).collect();
        assert_eq!(there, (65_540..65_556).filter(|s| *s != 65_543).collect::<Vec<_>>());
        assert!(set.insert(65_500) && set.stale(65_491));
    }

    #[test]
    #[should_panic(expected = "does not divide 65,536")]
    fn refuses_a_capacity_that_breaks_at_the_wrap() {
        let _ = SequenceSet::new(100);
    }
}
