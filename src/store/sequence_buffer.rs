//! The rolling sequence buffer of reliable 1.0 and the article "Reliable Ordered Messages": a value per
//! sequence number for the newest `capacity` numbers, index = sequence % capacity, every operation O(1).
//!
//! Promises: an entry found under a sequence was inserted under exactly that sequence, however many packets were lost
//! and however often the numbers wrapped: slots that a newer insert skipped are cleared. Refuses: inserts older than
//! the window.
//!
//! An empty buffer takes no memory: the slots come with the first insert.

use super::window::Window;

/// A value per sequence number, for the newest `capacity` numbers.
#[derive(Clone, Debug)]
pub struct SequenceBuffer<T> {
    window: Window,
    /// By sequence % capacity; there are no slots before the first insert. Those of numbers that are not in the window
    /// are empty.
    values: Box<[Option<T>]>,
}

impl<T> SequenceBuffer<T> {
    /// A buffer of the newest `capacity` sequence numbers.
    ///
    /// # Panics
    /// When `capacity` is 0 or does not divide 65,536: sequence % capacity would jump at the wrap.
    pub fn new(capacity: usize) -> Self {
        SequenceBuffer { window: Window::new(capacity), values: Box::default() }
    }

    /// Whether [`SequenceBuffer::new`] takes this capacity: it divides 65,536 and is at most 32,768, the half
    /// of the range in which "older" has a meaning.
    pub fn valid_capacity(capacity: usize) -> bool {
        Window::valid_capacity(capacity)
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

    /// Moves the window so that `sequence` is its newest, clearing skipped entries, without inserting. Does nothing
    /// when the window is already there or beyond.
    pub fn advance(&mut self, sequence: u64) {
        match self.window.advance(sequence) {
            Some(skipped) if !self.values.is_empty() => skipped.for_each(|slot| self.values[slot] = None),
            Some(_) => {}
            None => self.values.fill_with(|| None),
        }
    }

    /// Stores `value` under `sequence`, replacing the old entry.
    ///
    /// # Errors
    /// Gives `value` back when `sequence` is older than the window.
    pub fn insert(&mut self, sequence: u64, value: T) -> Result<&mut T, T> {
        if self.stale(sequence) {
            return Err(value);
        }
        self.advance(sequence);
        if self.values.is_empty() {
            self.values = (0..self.capacity()).map(|_| None).collect();
        }
        Ok(self.values[self.window.slot(sequence)].insert(value))
    }

    /// The value under `sequence`.
    pub fn get(&self, sequence: u64) -> Option<&T> {
        if self.window.covers(sequence) {
            self.values.get(self.window.slot(sequence))?.as_ref()
        } else {
            None
        }
    }

    /// The value under `sequence`, to change.
    pub fn get_mut(&mut self, sequence: u64) -> Option<&mut T> {
        let slot = self.window.slot(sequence);
        if self.window.covers(sequence) { self.values.get_mut(slot)?.as_mut() } else { None }
    }

    /// Whether there is a value under `sequence`.
    pub fn contains(&self, sequence: u64) -> bool {
        self.get(sequence).is_some()
    }

    /// Takes the value under `sequence` out.
    pub fn remove(&mut self, sequence: u64) -> Option<T> {
        let slot = self.window.slot(sequence);
        if self.window.covers(sequence) { self.values.get_mut(slot)?.take() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// A lap later their sequences stand for other packets, which never came.
    #[test]
    fn entries_that_a_newer_insert_skips_are_gone() {
        let mut buffer = SequenceBuffer::new(8);
        (0..8).for_each(|sequence| assert!(buffer.insert(sequence, sequence).is_ok()));
        buffer.insert(12, 12).unwrap();
        let there: Vec<_> = (0..16).filter(|sequence| buffer.contains(*sequence)).collect();
        assert_eq!(there, [5, 6, 7, 12]);
    }

    #[test]
    fn finds_what_was_inserted_until_the_window_passes() {
        let mut buffer = SequenceBuffer::new(256);
        for s in 0..512u64 {
            buffer.insert(s, s).unwrap();
            assert_eq!(buffer.next(), s + 1);
        }
        assert!((0..256).all(|s| buffer.get(s).is_none()));
        assert!((256..512).all(|s| buffer.get(s) == Some(&s)));
        assert_eq!(buffer.remove(300), Some(300));
        assert!(!buffer.contains(300) && buffer.remove(300).is_none());
    }

    #[test]
    fn refuses_what_is_older_than_the_window() {
        let mut buffer = SequenceBuffer::new(64);
        buffer.insert(1000, 'a').unwrap();
        assert_eq!(buffer.insert(1000 - 64, 'b'), Err('b'));
        assert!(buffer.insert(1000 - 63, 'c').is_ok());
        assert_eq!(buffer.next(), 1001, "an older insert does not move the window");
    }

    #[test]
    fn replaces_under_the_same_sequence() {
        let mut buffer = SequenceBuffer::new(16);
        buffer.insert(5, 1).unwrap();
        buffer.insert(5, 2).unwrap();
        assert_eq!(buffer.get(5), Some(&2));
    }

    /// The trap of a buffer that only overwrites: at 99 % loss a stale entry of the previous lap looks current.
    #[test]
    fn skipped_entries_never_survive_a_lap_of_the_window() {
        let mut rng = Rng::seeded(3);
        let mut buffer = SequenceBuffer::new(256);
        let mut inserted = std::collections::HashSet::new();
        for sequence in 0..300_000u64 {
            if rng.chance(0.01) {
                buffer.insert(sequence, sequence).unwrap();
                inserted.insert(sequence);
                let back = sequence.saturating_sub(rng.below(256));
                assert_eq!(buffer.get(back).copied(), inserted.contains(&back).then_some(back));
            }
        }
    }

    #[test]
    #[should_panic(expected = "does not divide 65,536")]
    fn refuses_a_capacity_that_breaks_at_the_wrap() {
        let _ = SequenceBuffer::<()>::new(100);
    }
}
