//! The progress and the counters of chunks.

use core::time::Duration;

use crate::exact::decay;
use crate::store::counters::counters;
use crate::time::Instant;

/// How far a chunk is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Bytes of the chunk.
    pub size: u64,
    /// Bytes received: on the sending side, known to be received.
    pub bytes: u64,
    /// Slices of the chunk.
    pub slices: u32,
    /// How many slices were received.
    pub slices_done: u32,
    /// Bytes per second in the recent past.
    pub rate: f64,
    /// This side paused it.
    pub paused: bool,
    /// The receiver paused it: known on the sending side.
    pub paused_by_peer: bool,
}

impl Progress {
    /// The remaining time at the recent rate; None before there is one, and while the chunk is paused.
    pub fn time_left(&self) -> Option<Duration> {
        if self.paused || self.paused_by_peer {
            return None;
        }
        let seconds = (self.size - self.bytes) as f64 / self.rate;
        // Bounded by a year.
        (self.rate > 0.0).then(|| Duration::from_secs_f64(seconds.min(3.2e7)))
    }
}

counters! {
    /// Counts of chunks, and of dropped items of the peer's.
    pub struct ChunkCounters {
        /// Slices sent, each counted once.
        slices_sent,
        slices_resent,
        /// Bytes of slices sent, each time they were sent.
        bytes_sent,
        /// Slices received, each counted once.
        slices_received,
        slice_duplicates,
        /// Slices of chunks that are not open: unknown, over, or not accepted yet.
        slices_unexpected,
        /// Slices whose place or length doesn't fit the chunk.
        slices_invalid,
        /// Offers out of turn, or that contradict themselves.
        offers_invalid,
        /// Packets not taken, and not acked, because offers and withdrawals came too fast.
        offers_too_fast,
        /// Chunks that were here before they were offered, and were not sent.
        chunks_reused,
        /// Answers for chunks that were never offered, or with slices that these don't have.
        answers_invalid,
    }
}

/// A recent rate: amounts from a second ago count 1 / e.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    bytes: f64,
    seconds: f64,
    at: Option<Instant>,
}

impl Rate {
    pub(crate) fn add(&mut self, now: Instant, bytes: u64) {
        let past = (now - self.at.replace(now).unwrap_or(now)).as_secs_f64();
        let keep = decay(past);
        self.bytes = self.bytes * keep + bytes as f64;
        self.seconds = self.seconds * keep + past;
    }

    // Bytes per second.
    pub(crate) fn per_second(&self, now: Instant) -> f64 {
        let past = (now - self.at.unwrap_or(now)).as_secs_f64();
        let keep = decay(past);
        let seconds = self.seconds * keep + past;
        if seconds > 0.0 { self.bytes * keep / seconds } else { 0.0 }
    }
}
