//! The newest sequence numbers, up to a capacity: the base of the sequence buffer and the sequence set.

use super::sequence::{greater, less};

/// Where the newest `capacity` sequence numbers have their slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// One past the newest.
    pub(super) next: u16,
    pub(super) capacity: usize,
}

impl Window {
    /// From sequence 0 on.
    ///
    /// # Panics
    /// When `capacity` is 0 or does not divide 65,536: sequence % capacity would jump at the wrap.
    pub(super) fn new(capacity: usize) -> Self {
        assert!(Self::valid_capacity(capacity), "capacity {capacity} does not divide 65,536");
        Window { next: 0, capacity }
    }

    /// Whether [`Window::new`] takes this capacity: it divides 65,536 and is at most 32,768, the half of the range in which
    /// "older" has a meaning.
    pub(super) fn valid_capacity(capacity: usize) -> bool {
        capacity.is_power_of_two() && capacity <= 32_768
    }

    /// True for sequences older than the window.
    pub(super) fn stale(&self, sequence: u16) -> bool {
        less(sequence, self.next.wrapping_sub(self.capacity as u16))
    }

    /// The slot of a sequence.
    pub(super) fn slot(&self, sequence: u16) -> usize {
        usize::from(sequence) & (self.capacity - 1)
    }

    /// Moves so that `sequence` is the newest, unless it is already covered. Returns the slots of the numbers that
    /// came in, which belonged to others until now; None if these are all slots.
    pub(super) fn advance(&mut self, sequence: u16) -> Option<impl Iterator<Item = usize> + use<>> {
        let (before, beyond) = (*self, sequence.wrapping_add(1));
        let entered = if greater(beyond, self.next) { beyond.wrapping_sub(self.next) } else { 0 };
        self.next = self.next.wrapping_add(entered);
        (usize::from(entered) < self.capacity)
            .then(|| (0..entered).map(move |i| before.slot(before.next.wrapping_add(i))))
    }
}
