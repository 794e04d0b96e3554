//! How much arrives.

use crate::time::Instant;

/// What became of packets during one round trip or so. Amounts are bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    pub(super) began: Instant,
    pub(super) delivered: f64,
    /// Of those, the ones that the application sent slower than it might have.
    pub(super) app_limited: f64,
    pub(super) lost: f64,
    /// The shortest wait in the queue, in seconds.
    pub(super) least_queue: f64,
}

impl Epoch {
    pub(super) fn new(now: Instant) -> Self {
        Epoch { began: now, delivered: 0.0, app_limited: 0.0, lost: 0.0, least_queue: f64::INFINITY }
    }

    /// Bytes a second that arrived.
    pub(super) fn rate(&self, now: Instant) -> f64 {
        self.delivered / (now - self.began).as_secs_f64()
    }

    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited > 0.5 * self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(delivered: f64, lost: f64) -> Epoch {
        Epoch { delivered, lost, ..Epoch::new(Instant::ZERO) }
    }

    #[test]
    fn a_rate_is_bytes_over_time() {
        assert_eq!(epoch(500.0, 0.0).rate(Instant::from_millis(250)), 2_000.0);
    }
}
