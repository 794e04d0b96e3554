//! Datagrams under way, and the memory they may take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The overhead of a datagram: two allocations, and its places on a link, also for a copy.
const OVERHEAD: usize = 256;

/// The memory shared by all datagrams of a proxy.
#[derive(Debug)]
pub(super) struct Budget {
    used: Arc<AtomicUsize>,
    bound: usize,
}

impl Budget {
    pub(super) fn new(bound: usize) -> Self {
        Budget { used: Arc::default(), bound }
    }

    /// A datagram with a copy of the bytes; None if no memory is left for it.
    pub(super) fn datagram(&self, bytes: &[u8]) -> Option<Datagram> {
        let size = bytes.len() + OVERHEAD;
        if self.used() + size > self.bound {
            return None;
        }
        // Only the proxy's own thread adds, so nothing changes between the check and this.
        self.used.fetch_add(size, Ordering::Relaxed);
        Some(Datagram(Arc::new(Held { bytes: bytes.into(), used: Arc::clone(&self.used) })))
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// A datagram that counts against its budget until the last copy of it is gone, whatever becomes of them.
#[derive(Clone, Debug)]
pub(super) struct Datagram(Arc<Held>);

#[derive(Debug)]
struct Held {
    bytes: Box<[u8]>,
    used: Arc<AtomicUsize>,
}

impl Datagram {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes.len() + OVERHEAD, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_share_what_they_take_and_the_last_gives_it_back() {
        let budget = Budget::new(2 * OVERHEAD + 10);
        let first = budget.datagram(b"hello").unwrap();
        let copy = first.clone();
        assert_eq!(budget.used(), OVERHEAD + 5);
        let second = budget.datagram(b"world").unwrap();
        assert!(budget.datagram(b"").is_none(), "the bound is reached");
        drop(first);
        assert!(budget.datagram(b"").is_none(), "a copy is left");
        assert_eq!(copy.bytes(), b"hello");
        drop((copy, second));
        assert_eq!(budget.used(), 0);
    }
}
