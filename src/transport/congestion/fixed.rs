//! A rate that the configuration sets.

use super::{CongestionConfig, Controller, RoundTrip, SentStamp};
use crate::time::Instant;
use crate::transport::pacing::{Budget, RateConfig};

/// Sends at a fixed rate, whatever happens to the packets.
#[derive(Debug)]
pub(super) struct Fixed {
    budget: Budget,
}

impl Fixed {
    pub(super) fn new(config: RateConfig) -> Self {
        Fixed { budget: Budget::new(config) }
    }
}

impl Controller for Fixed {
    fn on_sent(&mut self, now: Instant, bytes: u32) -> SentStamp {
        self.budget.spend(bytes as usize);
        // Messages are sent whatever the rate: chunks must not wait for minutes after a flood of them.
        self.budget.clear_debt();
        SentStamp { sent_at: now, bytes, bulk: false, sent_in_startup: false, app_limited: false }
    }

    fn on_acked(&mut self, _now: Instant, _acked: &[(SentStamp, bool)], _round_trip: Option<RoundTrip>) {}

    fn on_lost(&mut self, _now: Instant, _stamp: SentStamp) {}

    fn on_app_limited(&mut self, _now: Instant) {}

    fn can_send(&mut self, now: Instant) -> bool {
        self.budget.refill(now);
        self.budget.allows()
    }

    fn next_send(&self) -> Instant {
        self.budget.next()
    }

    fn begin_burst(&mut self, _now: Instant, _bytes: u32) {}

    fn rate(&self) -> f64 {
        self.budget.config().bytes_per_second
    }

    fn reconfigure(&mut self, config: &CongestionConfig) -> bool {
        let CongestionConfig::Fixed(config) = config else { return false };
        self.budget.reconfigure(*config);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_its_rate_and_says_when_it_goes_on() {
        let mut fixed = Fixed::new(RateConfig { bytes_per_second: 10_000.0, burst_bytes: 1_000.0 });
        assert!(fixed.can_send(Instant::ZERO));
        fixed.on_sent(Instant::ZERO, 1_500);
        assert!(!fixed.can_send(Instant::ZERO));
        assert_eq!(fixed.next_send(), Instant::from_millis(50));
        assert!(fixed.can_send(Instant::from_millis(51)));
    }

    /// Scenario 203 of soak's seed `long`: a flood of messages at 100 times the rate.
    #[test]
    fn goes_on_soon_after_more_was_sent_than_the_rate_allows() {
        let mut fixed = Fixed::new(RateConfig { bytes_per_second: 10_000.0, burst_bytes: 1_000.0 });
        assert!(fixed.can_send(Instant::ZERO));
        for _ in 0..1_000 {
            fixed.on_sent(Instant::ZERO, 1_000);
        }
        assert!(!fixed.can_send(Instant::from_millis(99)));
        assert!(fixed.can_send(Instant::from_millis(101)));
    }
}
