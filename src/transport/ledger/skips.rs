//! The choice of packet numbers that are skipped.
//!
//! Promises: a peer that acks packets ahead of what it can have received is found out, because it acks a number that no packet
//! had: any [`MAX_INTERVAL`] packets have one between them, at a random place.

use crate::rng::Rng;

/// The interval between skipped numbers: a random 1 to 512. Without a minimum there is no safe time to ack ahead.
/// Acking n packets ahead is found out with a probability of at least n / 512: of the packets in a round trip of 100
/// ms at 10 Mbit/s every third to fifth time, and certainly within a chunk of 600 KB. It costs 1 of 256 numbers, and a
/// byte each.
const MAX_INTERVAL: u64 = 512;

/// Decides which numbers are skipped.
#[derive(Clone, Debug)]
pub(in crate::transport) struct Skips {
    rng: Rng,
    left: u64,
}

impl Skips {
    pub(in crate::transport) fn new(seed: u64) -> Self {
        let mut rng = Rng::seeded(seed);
        let left = rng.below(MAX_INTERVAL);
        Skips { rng, left }
    }

    /// Whether to skip a number before the next packet.
    pub(in crate::transport) fn is_due(&mut self) -> bool {
        let due = self.left == 0;
        self.left = if due { self.rng.below(MAX_INTERVAL) } else { self.left - 1 };
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_five_hundred_and_twelve_numbers_have_a_skipped_one_and_some_follow_at_once() {
        let mut skips = Skips::new(1);
        let skipped: Vec<usize> = (0..100_000).filter(|_| skips.is_due()).collect();
        let gaps = || skipped.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(skipped.len() > 300 && gaps().all(|gap| gap <= 512) && gaps().any(|gap| gap < 10));
    }
}
