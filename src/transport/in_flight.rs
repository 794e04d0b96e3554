//! What is to be done when a packet is acked, for the packets that are not.
//!
//! Promises: memory for the packets not acked, and no others; a packet is forgotten when the window of sent
//! packets passes it, so that a late ack still counts. Refuses nothing.
//!
//! Asked only for numbers that [`Acks`](super::acks::Acks) found in its window, so none can be a lap off.

use std::collections::VecDeque;

use crate::store::sequence::less;

/// A record for each packet sent and not acked, oldest first.
#[derive(Debug)]
pub(super) struct InFlight<T> {
    records: VecDeque<(u16, T)>,
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        InFlight { records: VecDeque::new() }
    }
}

impl<T> InFlight<T> {
    /// Notes the packet sent behind all others; those that are then not among the newest `window`, at most 32,768, are
    /// forgotten and given to `forget`.
    pub(super) fn push(&mut self, sequence: u16, record: T, window: usize, mut forget: impl FnMut(T)) {
        // Not the signed distance: half the range, the largest window, would count as ahead.
        let age = |old: u16| usize::from(sequence.wrapping_sub(old));
        while self.records.front().is_some_and(|(old, _)| age(*old) >= window) {
            self.records.pop_front().into_iter().for_each(|(_, record)| forget(record));
        }
        self.records.push_back((sequence, record));
    }

    /// The record of a packet.
    pub(super) fn get(&self, sequence: u16) -> Option<&T> {
        let at = self.records.partition_point(|(other, _)| less(*other, sequence));
        self.records.get(at).filter(|(found, _)| *found == sequence).map(|(_, record)| record)
    }

    /// Takes the record of a packet out.
    pub(super) fn remove(&mut self, sequence: u16) -> Option<T> {
        let at = self.records.partition_point(|(other, _)| less(*other, sequence));
        self.records.get(at).filter(|(found, _)| *found == sequence)?;
        self.records.remove(at).map(|(_, record)| record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_packet_once_across_the_wrap() {
        let mut in_flight = InFlight::default();
        for n in 0..70_000u32 {
            in_flight.push(n as u16, n, 64, drop);
            if n >= 40 && n % 3 != 0 {
                assert_eq!(in_flight.remove((n - 40) as u16), Some(n - 40));
                assert_eq!(in_flight.remove((n - 40) as u16), None);
            }
        }
        assert!(in_flight.records.len() < 64);
    }

    #[test]
    fn the_largest_window_forgets_too() {
        let mut in_flight = InFlight::default();
        (0..100_000u32).for_each(|n| in_flight.push(n as u16, n, 32_768, drop));
        assert_eq!(in_flight.records.len(), 32_768);
        assert_eq!(in_flight.remove(99_999u32 as u16), Some(99_999));
    }

    #[test]
    fn forgets_what_the_window_has_passed() {
        let mut in_flight = InFlight::default();
        (0..65).for_each(|sequence| in_flight.push(sequence, (), 64, drop));
        assert_eq!((in_flight.remove(0), in_flight.remove(1)), (None, Some(())));
    }
}
