//! The numbers of our packets: which are skipped, and how fast they are used up while nothing is acked.
//!
//! Promises: a peer that acks packets it can't have received is found out, because it acks a number that no packet
//! had: any [`MAX_INTERVAL`] numbers of whole packets contain one, at a random place. Numbers never run half of their
//! range ahead of what the peer has, so that packets after an outage, however long, aren't mistaken for old ones.

use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// The interval between skipped numbers: a random 1 to 512. Without a minimum there is no safe time to ack ahead.
/// Acking n packets ahead is found out with a probability of at least n / 512: of the packets in a round trip of 100
/// ms at 10 Mbit/s every third to fifth time, and certainly within a chunk of 600 KB. It costs 1 of 256 numbers and
/// no bytes.
const MAX_INTERVAL: u64 = 512;

/// Numbers that may be in use beyond the newest that was acked: below half of all.
pub(in crate::transport) const MAX_AHEAD: u16 = 32_767;

/// When fewer numbers are left than this, packets wait for each other: no link has this many in flight.
const ENOUGH_LEFT: u16 = 16_384;

/// How long packets wait then. Later ever longer, as the square of what is left shrinks: for an hour at most a
/// second, for a day little more than a minute, and for years without an end.
const FIRST_WAIT: Duration = Duration::from_millis(500);

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

    /// Whether to skip a number before the next packet; if it `can` be.
    pub(in crate::transport) fn is_due(&mut self, can: bool) -> bool {
        let due = self.left == 0 && can;
        self.left = if due { self.rng.below(MAX_INTERVAL) } else { self.left.saturating_sub(1) };
        due
    }
}

/// How long after a packet the next may go, when this many numbers are left.
pub(in crate::transport) fn wait(left: u16) -> Duration {
    if left >= ENOUGH_LEFT {
        return Duration::ZERO;
    }
    // At most four years, for the last one.
    let short = f64::from(ENOUGH_LEFT) / f64::from(left.max(1));
    FIRST_WAIT.mul_f64(short * short)
}

/// When the next packet may go.
pub(in crate::transport) fn next_at(left: u16, last_sent: Option<Instant>) -> Instant {
    match wait(left) {
        Duration::ZERO => Instant::ZERO,
        wait => last_sent.map_or(Instant::ZERO, |sent| sent + wait),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_five_hundred_and_twelve_numbers_have_a_skipped_one_and_some_follow_at_once() {
        let mut skips = Skips::new(1);
        let skipped: Vec<usize> = (0..100_000).filter(|_| skips.is_due(true)).collect();
        let gaps = || skipped.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(skipped.len() > 300 && gaps().all(|gap| gap <= 512) && gaps().any(|gap| gap < 10));
    }

    #[test]
    fn a_skip_waits_for_a_packet_that_can_tell_of_it() {
        let mut skips = Skips::new(1);
        assert!((0..1000).all(|_| !skips.is_due(false)));
        assert!(skips.is_due(true));
    }

    #[test]
    fn numbers_last_for_years_and_packets_go_every_second_for_an_hour() {
        let (mut left, mut time) = (MAX_AHEAD, Duration::ZERO);
        while left > 0 {
            let wait = wait(left);
            assert!(time > Duration::from_secs(3300) || wait <= Duration::from_secs(1));
            assert!(time > Duration::from_secs(86_400) || wait <= Duration::from_secs(70));
            time += wait;
            left -= 1;
        }
        assert!(time > Duration::from_secs(5 * 365 * 86_400), "{time:?}");
    }
}
