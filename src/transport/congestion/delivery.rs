//! How much arrives, and what share doesn't.

use crate::time::Instant;

/// More than this share of losses is taken for congestion whatever the delay says.
const MAX_LOSS: f64 = 0.12;

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

/// The share of bytes lost of late for other reasons than a full queue.
#[derive(Debug, Default)]
pub(super) struct LossShare {
    lost: f64,
    judged: f64,
}

impl LossShare {
    pub(super) fn add(&mut self, epoch: &Epoch) {
        // What is ten epochs old counts a third.
        const KEEP: f64 = 0.9;
        self.lost = self.lost * KEEP + epoch.lost;
        self.judged = self.judged * KEEP + epoch.lost + epoch.delivered;
    }

    pub(super) fn value(&self) -> f64 {
        if self.judged > 0.0 { (self.lost / self.judged).clamp(0.0, MAX_LOSS) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(delivered: f64, lost: f64) -> Epoch {
        Epoch { delivered, lost, ..Epoch::new(Instant::ZERO) }
    }

    #[test]
    fn the_share_of_losses_follows_and_is_bounded() {
        let mut loss = LossShare::default();
        assert_eq!(loss.value(), 0.0);
        (0..20).for_each(|_| loss.add(&epoch(95.0, 5.0)));
        assert!((loss.value() - 0.05).abs() < 1e-9);
        (0..20).for_each(|_| loss.add(&epoch(0.0, 100.0)));
        assert_eq!(loss.value(), MAX_LOSS);
        loss.add(&epoch(100.0, -2_000.0));
        assert_eq!(loss.value(), 0.0, "late acks took back more than was counted");
    }

    #[test]
    fn a_rate_is_bytes_over_time() {
        assert_eq!(epoch(500.0, 0.0).rate(Instant::from_millis(250)), 2_000.0);
    }
}
