//! The newest sequence numbers, up to a capacity: the base of the sequence buffer and the sequence set.

use super::sequence::ahead;

/// Where the newest `capacity` sequence numbers have their slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// One past the newest.
    pub(super) next: u64,
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
    pub(super) fn stale(&self, sequence: u64) -> bool {
        ahead(self.next, sequence) > self.capacity as i64
    }

    /// Whether a sequence is in the window: it is neither older nor newer.
    pub(super) fn covers(&self, sequence: u64) -> bool {
        self.next.wrapping_sub(1).wrapping_sub(sequence) < self.capacity as u64
    }

    /// The slot of a sequence.
    pub(super) fn slot(&self, sequence: u64) -> usize {
        sequence as usize & (self.capacity - 1)
    }

    /// Moves so that `sequence` is the newest, unless it is already covered. Returns the slots of the numbers that
    /// came in, which belonged to others until now; None if these are all slots.
    pub(super) fn advance(&mut self, sequence: u64) -> Option<impl Iterator<Item = usize> + use<>> {
        let (before, beyond) = (*self, sequence.wrapping_add(1));
        let entered = ahead(beyond, self.next).max(0) as u64;
        self.next = self.next.wrapping_add(entered);
        (entered < self.capacity as u64)
            .then(|| (0..entered).map(move |i| before.slot(before.next.wrapping_add(i))))
    }
}
