//! A fixed rate, whatever becomes of the packets: for links that are known, and to compare with.

use super::{Controller, SentStamp};
use crate::time::{Duration, Instant};
use crate::transport::pacing::{Budget, BudgetConfig};

/// Sends at a fixed rate.
#[derive(Debug)]
pub(super) struct Fixed {
    config: BudgetConfig,
    budget: Budget,
    now: Instant,
}

impl Fixed {
    pub(super) fn new(config: BudgetConfig) -> Self {
        Fixed { config, budget: Budget::new(config), now: Instant::ZERO }
    }
}

impl Controller for Fixed {
    fn on_sent(&mut self, now: Instant, bytes: u32) -> SentStamp {
        self.budget.spend(bytes as usize);
        SentStamp { sent_at: now, bytes, bulk: false, blind: false, app_limited: false }
    }

    fn on_acked(&mut self, _: Instant, _: &[(SentStamp, bool)], _: Option<Duration>) {}

    fn on_lost(&mut self, _: Instant, _: SentStamp) {}

    fn on_app_limited(&mut self, _: Instant) {}

    fn can_send(&mut self, now: Instant) -> bool {
        self.now = now;
        self.budget.refill(now);
        self.budget.allows()
    }

    fn next_send(&self) -> Instant {
        self.now + self.budget.wait()
    }

    fn begin_burst(&mut self, _: Instant, bytes: u32) {
        self.budget.grant(bytes as usize);
    }

    fn rate(&self) -> f64 {
        self.config.bytes_per_second
    }
}
