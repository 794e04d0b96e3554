//! Reusable memory for received datagrams, several per call.
//!
//! Promises: it grows to what one call brought and no further than its bound; then it allocates nothing. Datagrams
//! received together are handed out one at a time, in order.

use std::net::SocketAddr;
use std::ops::Range;

/// Maximum memory of one slab, unless one slot needs more. It is allocated zeroed, so that untouched pages cost
/// nothing on most systems: of slots for merged datagrams only the beginnings, until some arrive.
const MAX_BYTES: usize = 64 * (1 << 16) + 64 * COLOUR;

/// Bytes read with one call if datagrams arrive merged, as far as known: what fits a processor's cache.
const MAX_JOINED_BYTES: usize = 1 << 20;

/// The gap between slots whose length is a multiple of a page: otherwise their beginnings would share a few lines of
/// the processor's cache.
const COLOUR: usize = 256;

/// The contents of one slot: a datagram, or several of one length (the last may be shorter) that the system merged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) from: SocketAddr,
    pub(super) len: usize,
    /// The length of each datagram, at least 1; `len` or more when there is but one.
    pub(super) segment: usize,
}

/// One datagram in a slab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) from: SocketAddr,
    pub(super) bytes: Range<usize>,
    /// Whether it came together with others, as one.
    pub(super) gro: bool,
}

/// Slots of equal length, with their contents.
#[derive(Debug)]
pub(super) struct Slab {
    /// Of as many slots or more, or none yet.
    memory: Vec<u8>,
    slots: usize,
    slot: usize,
    /// From the beginning of one slot to that of the next.
    stride: usize,
    max_slots: usize,
    arrived: Vec<Arrived>,
    /// The next datagram to hand out: its slot, and its offset there.
    next: (usize, usize),
}

impl Slab {
    /// A slab of slots of `slot` bytes, at least 1, that grows from one slot to `max_slots`.
    pub(super) fn new(slot: usize, max_slots: usize) -> Self {
        let stride = slot.next_multiple_of(64);
        let stride = if stride.is_multiple_of(4096) { stride + COLOUR } else { stride };
        let max_slots = max_slots.min(MAX_BYTES / stride).max(1);
        Slab { memory: Vec::new(), slots: 1, slot, stride, max_slots, arrived: Vec::new(), next: (0, 0) }
    }

    /// Drops the contents, and returns at most `count` slots to read into, with the list in which to record, in
    /// order, what was read.
    pub(super) fn refill(
        &mut self,
        count: usize,
    ) -> (impl ExactSizeIterator<Item = &mut [u8]>, &mut Vec<Arrived>) {
        let joined = self.arrived.iter().any(|arrived| arrived.segment < arrived.len);
        let most = if joined { (MAX_JOINED_BYTES / self.stride).max(1) } else { self.max_slots };
        if self.arrived.len() == self.slots && self.slots < most {
            self.slots = (self.slots * 4).min(most);
        }
        if self.memory.len() < self.slots * self.stride {
            // Anew, as what is zeroed costs nothing until it is used.
            self.memory = vec![0; self.slots * self.stride];
        }
        self.arrived.clear();
        self.next = (0, 0);
        let slot = self.slot;
        let slots = self.memory.chunks_exact_mut(self.stride).map(move |memory| &mut memory[..slot]);
        (slots.take(count.min(most).min(self.slots)), &mut self.arrived)
    }

    /// The next datagram not yet handed out.
    pub(super) fn take(&mut self) -> Option<Piece> {
        let (index, start) = self.next;
        let Arrived { from, len, segment } = *self.arrived.get(index)?;
        let end = len.min(start.saturating_add(segment));
        self.next = if end < len { (index, end) } else { (index + 1, 0) };
        let slot = index * self.stride;
        Some(Piece { from, bytes: slot + start..slot + end, gro: segment < len })
    }

    /// Whether all was handed out.
    pub(super) fn is_empty(&self) -> bool {
        self.next.0 >= self.arrived.len()
    }

    /// The bytes of a piece, until the next refill.
    pub(super) fn bytes(&mut self, piece: &Piece) -> &mut [u8] {
        &mut self.memory[piece.bytes.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// Refills with these datagrams, as many as there is room for: returns how many.
    fn fill(slab: &mut Slab, count: usize, came: &[(u16, &[u8], usize)]) -> usize {
        let (slots, arrived) = slab.refill(count);
        for (slot, (port, bytes, segment)) in slots.zip(came) {
            slot[..bytes.len()].copy_from_slice(bytes);
            arrived.push(Arrived { from: from(*port), len: bytes.len(), segment: *segment });
        }
        arrived.len()
    }

    fn take(slab: &mut Slab) -> Option<(u16, Vec<u8>, bool)> {
        let piece = slab.take()?;
        Some((piece.from.port(), slab.bytes(&piece).to_vec(), piece.gro))
    }

    #[test]
    fn what_was_joined_comes_out_as_it_was_sent() {
        let mut slab = Slab::new(16, 4);
        assert_eq!(fill(&mut slab, 9, &[(1, b"abcde", 2)]), 1);
        let all: Vec<_> = std::iter::from_fn(|| take(&mut slab)).collect();
        assert_eq!(all, [(1, b"ab".to_vec(), true), (1, b"cd".to_vec(), true), (1, b"e".to_vec(), true)]);
        assert!(slab.is_empty());
        let came: [(u16, &[u8], usize); 3] = [(1, b"", 16), (2, b"abcd", 4), (3, b"ef", 16)];
        assert_eq!(fill(&mut slab, 9, &came), 3);
        let all: Vec<_> = std::iter::from_fn(|| take(&mut slab)).collect();
        assert_eq!(all, [(1, b"".to_vec(), false), (2, b"abcd".to_vec(), false), (3, b"ef".to_vec(), false)]);
    }

    #[test]
    fn it_grows_when_full_and_not_beyond_its_bounds() {
        let came: [(u16, &[u8], usize); 64] = [(1, b"x", 1); 64];
        let mut slab = Slab::new(10, 6);
        let filled: Vec<_> = (0..4).map(|_| fill(&mut slab, 64, &came)).collect();
        assert_eq!(filled, [1, 4, 6, 6]);
        assert_eq!(fill(&mut slab, 2, &came), 2, "no more than asked for");
        let mut large = Slab::new(MAX_BYTES / 2 - 4096, 64);
        assert_eq!([(); 3].map(|()| fill(&mut large, 64, &came)), [1, 2, 2]);
        assert_eq!(fill(&mut Slab::new(MAX_BYTES + 1, 64), 64, &came), 1);
    }

    #[test]
    fn slots_for_what_may_come_joined_are_as_many_until_it_does() {
        let single: [(u16, &[u8], usize); 64] = [(1, b"x", 1); 64];
        let joined: [(u16, &[u8], usize); 64] = [(1, b"xyz", 1); 64];
        let mut slab = Slab::new(1 << 16, 64);
        assert_eq!([(); 5].map(|()| fill(&mut slab, 64, &single)), [1, 4, 16, 64, 64]);
        assert_eq!([(); 3].map(|()| fill(&mut slab, 64, &joined)), [64, 15, 15], "a megabyte then");
        assert_eq!([(); 2].map(|()| fill(&mut slab, 64, &single)), [15, 64]);
        let begin = |slot: usize| (slot * slab.stride) % 4096;
        assert!((1..16).all(|slot| begin(slot) != 0), "not all in the same lines of a cache");
        let mut never_single = Slab::new(1 << 16, 64);
        assert_eq!([(); 4].map(|()| fill(&mut never_single, 64, &joined)), [1, 4, 15, 15]);
        assert!(never_single.memory.len() <= MAX_JOINED_BYTES);
    }
}
