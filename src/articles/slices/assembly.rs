//! A chunk as it comes in, and the accounting of its acks.
//!
//! Promises: memory grows with the slices received, never with what they claim; acks are paid for by slices.

use std::collections::BTreeMap;

use super::packet::SlicePacket;
use super::progress::ChunkProgress;
use crate::store::BitSet;
use crate::time::Instant;

/// The next ack of a chunk, whether one is wanted, and whether it is paid for.
#[derive(Clone, Debug)]
pub(super) struct Acking {
    /// The slices that have come. The bound is the slice count.
    pub(super) received: BitSet,
    /// Bytes of received slices, less those of sent acks.
    balance: u64,
    wanted: bool,
}

impl Acking {
    fn new(count: usize) -> Self {
        Acking { received: BitSet::new(count), balance: 0, wanted: false }
    }

    /// A slice of this many bytes came, new or not: it wants an ack, and pays towards it.
    pub(super) fn slice_came(&mut self, bytes: usize) {
        self.wanted = true;
        self.balance = self.balance.saturating_add(bytes as u64);
    }

    /// Whether an ack of this many bytes may go out now. If so, it counts as sent.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let paid = self.wanted.then(|| self.balance.checked_sub(bytes as u64)).flatten();
        if let Some(rest) = paid {
            self.balance = rest;
            self.wanted = false;
        }
        paid.is_some()
    }
}

/// A chunk with at least one received slice.
#[derive(Debug)]
pub(super) struct Assembly {
    pub(super) acking: Acking,
    /// By slice id. Not one block, of which the first slice would take all.
    slices: BTreeMap<usize, Box<[u8]>>,
    started: Instant,
}

impl Assembly {
    pub(super) fn new(now: Instant, count: usize) -> Self {
        Assembly { acking: Acking::new(count), slices: BTreeMap::new(), started: now }
    }

    /// Slices of the chunk.
    pub(super) fn count(&self) -> usize {
        self.acking.received.bound()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.acking.received.is_full()
    }

    /// Stores a slice of this chunk. False if it is a duplicate.
    pub(super) fn insert(&mut self, slice: &SlicePacket<'_>) -> bool {
        let new = self.acking.received.insert(slice.slice);
        if new {
            self.slices.insert(slice.slice, slice.data.into());
        }
        new
    }

    /// The bytes of the complete chunk, and the account of its acks.
    pub(super) fn into_chunk(self) -> (Vec<u8>, Acking) {
        let mut chunk = Vec::with_capacity(self.slices.values().map(|slice| slice.len()).sum());
        // Freed one by one, so that the chunk is not held twice.
        self.slices.into_values().for_each(|slice| chunk.extend_from_slice(&slice));
        (chunk, self.acking)
    }

    pub(super) fn progress(&self, latest: Instant) -> ChunkProgress {
        let last = self.slices.get(&(self.count() - 1)).map(|slice| slice.len());
        let elapsed = latest - self.started;
        ChunkProgress::new(self.slices.len(), self.count(), last, last.is_some(), elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_waits_until_slices_have_paid_for_it() {
        let mut acking = Acking::new(256);
        assert!(!acking.take(0), "nobody asked");
        acking.slice_came(35);
        assert!(!acking.take(64));
        acking.slice_came(35);
        assert!(acking.take(64));
        assert!(!acking.take(6), "nobody asked since");
        acking.slice_came(0);
        assert!(!acking.take(7) && acking.take(6), "6 bytes were left");
    }
}
