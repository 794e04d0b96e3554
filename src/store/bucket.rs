//! A token bucket: a burst at once, and then a rate.

use crate::time::{Duration, Instant};

/// A token bucket, in units of the time that refills it. A new bucket is full.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bucket {
    full_at: Instant,
}

impl Bucket {
    /// Takes what the bucket regains in `cost`; false if it holds less. An empty bucket is full again after `whole`.
    pub fn take(&mut self, now: Instant, cost: Duration, whole: Duration) -> bool {
        let allowed = self.has(now, cost, whole);
        if allowed {
            self.spend(now, cost);
        }
        allowed
    }

    /// Takes what the bucket regains in `cost`, also if it holds less: then it owes the rest.
    pub fn spend(&mut self, now: Instant, cost: Duration) {
        self.full_at = self.full_at.max(now) + cost;
    }

    /// Whether [`Bucket::take`] would be allowed.
    pub fn has(&self, now: Instant, cost: Duration, whole: Duration) -> bool {
        self.full_at.max(now) + cost - now <= whole
    }

    /// Gives back what was taken.
    pub fn refund(&mut self, cost: Duration) {
        self.full_at = Instant::from_nanos(self.full_at.as_nanos().saturating_sub(cost.as_nanos() as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let (cost, whole) = (Duration::from_millis(100), Duration::from_millis(500));
        let mut bucket = Bucket::default();
        let mut passed =
            |millis| (0..100).filter(|_| bucket.take(Instant::from_millis(millis), cost, whole)).count();
        assert_eq!(passed(0), 5);
        assert_eq!(passed(99), 0);
        assert_eq!(passed(101), 1);
        assert_eq!(passed(10_000), 5, "silence saves up no more than the burst");
        bucket.refund(cost);
        assert!(bucket.take(Instant::from_millis(10_000), cost, whole));
        assert!(!bucket.has(Instant::from_millis(10_000), cost, whole));
        bucket.spend(Instant::from_millis(10_000), whole);
        assert!(!bucket.has(Instant::from_millis(10_499), Duration::ZERO, whole), "it owes");
        assert!(bucket.has(Instant::from_millis(10_500), Duration::ZERO, whole));
    }
}
