//! How many bytes a connection may send now: a bucket that fills at a rate and holds one burst.

use core::time::Duration;

use super::ack_config::ConfigError;
use crate::time::Instant;

/// Settings of the budget of one connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetConfig {
    /// Bytes per second, IP and UDP headers included.
    pub bytes_per_second: f64,
    /// Bytes that may be sent at once after a silence.
    pub burst_bytes: f64,
}

impl Default for BudgetConfig {
    /// 10 Mbit/s in bursts of 64 KiB: far above what games send, below what floods a home connection.
    fn default() -> Self {
        BudgetConfig { bytes_per_second: 1_250_000.0, burst_bytes: 65_536.0 }
    }
}

impl BudgetConfig {
    /// Whether the numbers are within their bounds.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        let positive = |field, value: f64| {
            let valid = value.is_finite() && value > 0.0;
            ConfigError::unless(valid, field, value, "above 0 and finite")
        };
        positive("bytes_per_second", self.bytes_per_second)?;
        positive("burst_bytes", self.burst_bytes)
    }
}

/// The bytes one connection may send.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    config: BudgetConfig,
    level: f64,
    filled_at: Option<Instant>,
}

impl Budget {
    pub(crate) fn new(config: BudgetConfig) -> Self {
        Budget { config, level: config.burst_bytes, filled_at: None }
    }

    /// The numbers.
    pub(crate) fn config(&self) -> BudgetConfig {
        self.config
    }

    /// Changes the numbers, from now on.
    pub(crate) fn reconfigure(&mut self, config: BudgetConfig) {
        self.config = config;
        self.level = self.level.min(config.burst_bytes);
    }

    /// Brings the level up to date.
    pub(crate) fn refill(&mut self, now: Instant) {
        let idle = self.filled_at.map_or(Duration::ZERO, |filled| now - filled);
        // What was granted besides is not taken away again.
        let most = self.config.burst_bytes.max(self.level);
        self.level += self.config.bytes_per_second * idle.as_secs_f64();
        self.level = self.level.min(most);
        self.filled_at = Some(now);
    }

    /// Whether another packet may go. The last one may overdraw, so that a packet larger than the burst goes at all.
    pub(crate) fn allows(&self) -> bool {
        self.level > 0.0
    }

    /// How long until another packet may go.
    pub(crate) fn wait(&self) -> Duration {
        // Above 0, and an hour is as good as any longer time.
        let seconds = (-self.level / self.config.bytes_per_second).clamp(0.0, 3600.0);
        if self.allows() {
            Duration::ZERO
        } else {
            Duration::from_secs_f64(seconds) + Duration::from_nanos(1)
        }
    }

    /// Allows so many bytes besides.
    pub(crate) fn grant(&mut self, bytes: usize) {
        self.level += bytes as f64;
    }

    pub(crate) fn spend(&mut self, bytes: usize) {
        self.level -= bytes as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_at_its_rate_after_a_burst() {
        let mut budget = Budget::new(BudgetConfig { bytes_per_second: 1000.0, burst_bytes: 500.0 });
        let mut sent = 0;
        for tick in 0..=600 {
            budget.refill(Instant::from_millis(tick * 16));
            while budget.allows() {
                budget.spend(100);
                sent += 100;
            }
        }
        assert!((10_000..=10_200).contains(&sent), "500 + 9.6 s x 1000, and at most one packet over: {sent}");
    }
}
