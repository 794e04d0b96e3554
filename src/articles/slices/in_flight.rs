//! The chunk that a sender has in flight: which slices are acked, when each was last sent, and which is next.
//!
//! Promises: slices are offered in turn, from where the last offer stopped; none that is acked, and none again before its
//! time. Acks only ever add up, so that their order doesn't matter.

use super::SLICE_BYTES;
use super::progress::ChunkProgress;
use crate::store::BitSet;
use crate::time::{Duration, Instant};

/// The chunk in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    /// The sender's name for it.
    pub(super) number: u64,
    /// No slice goes out before this: the wait after an initial burst.
    pub(super) paused_until: Instant,
    data: Vec<u8>,
    total_bytes: usize,
    acked: BitSet,
    last_sent: Box<[Option<Instant>]>,
    /// Where the search for the next slice goes on.
    current: usize,
    started: Option<Instant>,
    cancelled: bool,
}

/// An ack names a slice that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NeverSent;

impl InFlight {
    /// A chunk before anything of it is sent. It is not empty.
    pub(super) fn new(number: u64, data: Vec<u8>) -> Self {
        let count = data.len().div_ceil(SLICE_BYTES);
        InFlight {
            number,
            paused_until: Instant::ZERO,
            total_bytes: data.len(),
            data,
            acked: BitSet::new(count),
            last_sent: vec![None; count].into(),
            current: 0,
            started: None,
            cancelled: false,
        }
    }

    /// Slices of the chunk.
    pub(super) fn count(&self) -> usize {
        self.acked.bound()
    }

    pub(super) fn is_acked(&self) -> bool {
        self.acked.is_full()
    }

    /// Whether the receiver is known to have begun with it.
    pub(super) fn is_known_to_receiver(&self) -> bool {
        !self.acked.is_empty()
    }

    /// Whether any of it was sent.
    pub(super) fn is_begun(&self) -> bool {
        self.started.is_some()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Keeps of the chunk only its first slice, to make it known to the receiver.
    pub(super) fn cancel(&mut self) {
        self.cancelled = true;
        self.current = 0;
        self.data.truncate(SLICE_BYTES);
        self.data.shrink_to_fit();
    }

    /// The bytes of a slice.
    pub(super) fn slice(&self, slice: usize) -> &[u8] {
        let from = slice * SLICE_BYTES;
        &self.data[from..self.data.len().min(from + SLICE_BYTES)]
    }

    /// The next slice to send: not acked, and not sent within `resend_delay`.
    pub(super) fn next_due(&mut self, now: Instant, resend_delay: Duration) -> Option<usize> {
        if now < self.paused_until {
            return None;
        }
        let candidates = if self.cancelled { 1 } else { self.count() };
        let due = (self.current..candidates).chain(0..self.current).find(|&slice| {
            let waits = self.last_sent[slice].is_some_and(|last| now - last < resend_delay);
            !waits && !self.acked.contains(slice)
        });
        self.current = due.unwrap_or(self.current);
        due
    }

    /// Notes that a slice was sent. True when it was not the first time.
    pub(super) fn sent(&mut self, now: Instant, slice: usize) -> bool {
        self.started.get_or_insert(now);
        self.current = if slice + 1 < self.count() && !self.cancelled { slice + 1 } else { 0 };
        self.last_sent[slice].replace(now).is_some()
    }

    /// Takes the slices that the receiver has. The bound of `received` is the slice count.
    pub(super) fn ack(&mut self, received: &BitSet) -> Result<(), NeverSent> {
        let listed = || (0..self.last_sent.len()).filter(|slice| received.contains(*slice));
        if listed().any(|slice| self.last_sent[slice].is_none()) {
            return Err(NeverSent);
        }
        for slice in listed() {
            self.acked.insert(slice);
        }
        Ok(())
    }

    pub(super) fn progress(&self, latest: Instant) -> ChunkProgress {
        let count = self.count();
        let last_bytes = self.total_bytes - (count - 1) * SLICE_BYTES;
        let elapsed = self.started.map_or(Duration::ZERO, |started| latest - started);
        ChunkProgress::new(self.acked.len(), count, Some(last_bytes), self.acked.contains(count - 1), elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn offers(chunk: &mut InFlight, now: Instant, most: usize) -> Vec<usize> {
        let offer = || {
            let slice = chunk.next_due(now, DELAY)?;
            chunk.sent(now, slice);
            Some(slice)
        };
        std::iter::from_fn(offer).take(most).collect()
    }

    fn set(bound: usize, slices: &[usize]) -> BitSet {
        let mut set = BitSet::new(bound);
        slices.iter().for_each(|slice| assert!(set.insert(*slice)));
        set
    }

    #[test]
    fn slices_go_in_turn_from_where_the_last_tick_stopped() {
        let mut chunk = InFlight::new(0, vec![0; 5 * 1024]);
        assert_eq!(offers(&mut chunk, at(0), 2), [0, 1]);
        assert_eq!(offers(&mut chunk, at(10), 2), [2, 3]);
        assert_eq!(offers(&mut chunk, at(100), 3), [4, 0, 1]);
        assert_eq!(offers(&mut chunk, at(110), 9), [2, 3]);
    }

    #[test]
    fn acked_slices_never_go_again_and_others_not_before_the_delay() {
        let mut chunk = InFlight::new(0, vec![0; 4 * 1024]);
        assert_eq!(offers(&mut chunk, at(0), 9), [0, 1, 2, 3]);
        chunk.ack(&set(4, &[1, 2])).unwrap();
        // A late older ack takes nothing back.
        chunk.ack(&set(4, &[2])).unwrap();
        assert!(offers(&mut chunk, at(99), 9).is_empty());
        assert_eq!(offers(&mut chunk, at(100), 9), [0, 3]);
        chunk.ack(&set(4, &[0, 3])).unwrap();
        assert!(chunk.is_acked());
        assert!(offers(&mut chunk, at(1000), 9).is_empty());
    }

    #[test]
    fn an_ack_that_names_a_slice_never_sent_changes_nothing() {
        let mut chunk = InFlight::new(0, vec![0; 4 * 1024]);
        assert_eq!(offers(&mut chunk, at(0), 2), [0, 1]);
        assert_eq!(chunk.ack(&set(4, &[0, 2])), Err(NeverSent));
        assert!(!chunk.is_known_to_receiver());
    }

    #[test]
    fn a_cancelled_chunk_offers_its_first_slice_only() {
        let mut chunk = InFlight::new(0, vec![7; 2 * 1024 + 1]);
        assert_eq!(offers(&mut chunk, at(0), 2), [0, 1]);
        chunk.cancel();
        assert!(offers(&mut chunk, at(99), 9).is_empty());
        assert_eq!(offers(&mut chunk, at(100), 9), [0]);
        assert_eq!((chunk.slice(0), chunk.count()), (&[7; 1024][..], 3));
    }
}
