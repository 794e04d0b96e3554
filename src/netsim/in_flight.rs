//! Packets that have left the sender's end of a link and not yet come out.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Instant;

/// Packets of any type in flight, in order of arrival: by time, then by the order of sending.
#[derive(Clone, Debug)]
pub(super) struct InFlight<T> {
    heap: BinaryHeap<Reverse<Flight<T>>>,
    /// Orders packets with the same time, which makes the order total.
    next_number: u64,
}

#[derive(Clone, Debug)]
struct Flight<T> {
    arrival: Instant,
    number: u64,
    item: T,
}

impl<T> InFlight<T> {
    pub(super) fn new() -> Self {
        InFlight { heap: BinaryHeap::new(), next_number: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(super) fn items(&self) -> impl Iterator<Item = &T> {
        self.heap.iter().map(|Reverse(flight)| &flight.item)
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(flight)| flight.arrival)
    }

    pub(super) fn pop_due(&mut self, now: Instant) -> Option<T> {
        self.next_arrival().filter(|arrival| *arrival <= now)?;
        self.heap.pop().map(|Reverse(flight)| flight.item)
    }

    pub(super) fn push(&mut self, arrival: Instant, item: T) {
        self.heap.push(Reverse(Flight { arrival, number: self.next_number, item }));
        self.next_number += 1;
    }
}

impl<T> Flight<T> {
    fn key(&self) -> (Instant, u64) {
        (self.arrival, self.number)
    }
}

impl<T> PartialEq for Flight<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Flight<T> {}

impl<T> PartialOrd for Flight<T> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Flight<T> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}
