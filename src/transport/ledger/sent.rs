//! The packets that we sent: a ring with one record for each, by sequence.
//!
//! Promises: the newest packets, up to the capacity, are found by their numbers in constant time; records that are
//! overwritten are given back. Memory is allocated with the first packet. Numbers that no packet had, or too long ago,
//! have no record.

use crate::store::prefetch;
use crate::time::Instant;

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    InFlight,
    Acked,
    Lost,
}

/// A packet of ours, with its owner's note.
#[derive(Clone, Debug)]
pub(super) struct SentPacket<T> {
    pub(super) at: Instant,
    pub(super) bytes: u32,
    pub(super) fate: Fate,
    pub(super) note: T,
}

/// The records of the newest packets.
#[derive(Clone, Debug)]
pub(super) struct SentPackets<T> {
    /// Index = sequence & (capacity - 1). None for a number that was skipped.
    records: Box<[Option<SentPacket<T>>]>,
    capacity: usize,
    /// The number of the next packet.
    next: u64,
    /// How many numbers have a place.
    len: usize,
}

impl<T> SentPackets<T> {
    /// Room for this many packets, a power of two of at most 32,768; the first has this number.
    pub(super) fn new(capacity: usize, first: u64) -> Self {
        SentPackets { records: Box::default(), capacity, next: first, len: 0 }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn get(&self, sequence: u64) -> Option<&SentPacket<T>> {
        if self.has(sequence) { self.records[self.slot(sequence)].as_ref() } else { None }
    }

    pub(super) fn get_mut(&mut self, sequence: u64) -> Option<&mut SentPacket<T>> {
        if self.has(sequence) { self.records[self.slot(sequence)].as_mut() } else { None }
    }

    /// Has the records of the next packet and of this one fetched.
    pub(super) fn prefetch(&self, sequence: u64) {
        for slot in [self.slot(self.next), self.slot(sequence)] {
            self.records.get(slot).into_iter().for_each(prefetch);
        }
    }

    /// Adds the next packet, or skips its number; returns the record whose place it takes.
    pub(super) fn push(&mut self, sent: Option<SentPacket<T>>) -> Option<SentPacket<T>> {
        if self.records.is_empty() {
            self.records = (0..self.capacity).map(|_| None).collect();
        }
        let slot = self.slot(self.next);
        self.next = self.next.wrapping_add(1);
        self.len = (self.len + 1).min(self.capacity);
        core::mem::replace(&mut self.records[slot], sent)
    }

    /// Makes room for this many packets; existing ones stay.
    pub(super) fn grow(&mut self, capacity: usize) {
        let oldest = self.next.wrapping_sub(self.len as u64);
        let mut larger = SentPackets::new(capacity, oldest);
        for i in 0..self.len {
            let slot = self.slot(oldest.wrapping_add(i as u64));
            larger.push(self.records[slot].take());
        }
        *self = larger;
    }

    /// Makes room for no more than this many packets, fewer than before; returns the records that are forgotten for
    /// it.
    pub(super) fn shrink(&mut self, capacity: usize) -> impl Iterator<Item = SentPacket<T>> + use<T> {
        let kept = self.len.min(capacity);
        let mut smaller = SentPackets::new(capacity, self.next.wrapping_sub(kept as u64));
        for _ in 0..kept {
            let slot = self.slot(smaller.next);
            smaller.push(self.records[slot].take());
        }
        core::mem::replace(self, smaller).records.into_iter().flatten()
    }

    /// Whether no packet had a number that the ring reaches back to: a peer that acks it lies.
    pub(super) fn is_skipped(&self, sequence: u64) -> bool {
        self.has(sequence) && self.records[self.slot(sequence)].is_none()
    }

    fn has(&self, sequence: u64) -> bool {
        self.next.wrapping_sub(1).wrapping_sub(sequence) < self.len as u64
    }

    fn slot(&self, sequence: u64) -> usize {
        sequence as usize & (self.capacity - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(note: u32) -> Option<SentPacket<u32>> {
        Some(SentPacket { at: Instant::ZERO, bytes: 0, fate: Fate::InFlight, note })
    }

    #[test]
    fn the_newest_are_found_and_the_oldest_given_back() {
        let mut packets = SentPackets::new(64, 0);
        for n in 0..200_000u64 {
            let passed = packets.push(sent(n as u32)).map(|passed| passed.note);
            assert_eq!(passed, n.checked_sub(64).map(|it| it as u32));
            assert_eq!(packets.get(n).map(|it| it.note), Some(n as u32));
            assert_eq!(packets.get(n + 1).map(|it| it.note), None, "not yet sent");
            assert_eq!(packets.get(n.wrapping_sub(64)).map(|it| it.note), None);
        }
    }

    #[test]
    fn shrinking_keeps_the_newest_and_gives_back_the_others() {
        let mut packets = SentPackets::new(1024, 65_000);
        for n in 0..900 {
            packets.push(sent(n));
        }
        let mut forgotten: Vec<u32> = packets.shrink(16).map(|it| it.note).collect();
        forgotten.sort_unstable();
        assert!(forgotten.into_iter().eq(0..884));
        let newest = 65_899;
        let note = |packets: &SentPackets<u32>, sequence| packets.get(sequence).map(|it| it.note);
        assert_eq!(note(&packets, newest), Some(899));
        assert_eq!(note(&packets, newest.wrapping_sub(15)), Some(884));
        assert_eq!(note(&packets, newest.wrapping_sub(16)), None);
        assert_eq!(packets.push(sent(900)).map(|it| it.note), Some(884));
    }

    #[test]
    fn growing_keeps_them_and_the_largest_ring_forgets_too() {
        let mut packets = SentPackets::new(64, 65_530);
        for n in 0..40 {
            packets.push(sent(n));
        }
        packets.grow(32_768);
        assert_eq!(packets.get(65_530).map(|it| it.note), Some(0));
        assert_eq!(packets.get(65_569).map(|it| it.note), Some(39));
        assert_eq!(packets.get(65_529).map(|it| it.note), None);
        let passed = (40..100_000).filter(|n| packets.push(sent(*n)).is_some()).count();
        assert_eq!(passed, 100_000 - 32_768);
    }
}
