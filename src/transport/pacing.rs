//! Limits on the bytes that a connection may send now: buckets that fill at a rate and hold one burst. [`Budget`] has a fixed rate,
//! [`Pacer`] one that a congestion controller sets at each turn.

use core::time::Duration;

use crate::limits::ConfigError;
use crate::time::Instant;

/// A rate, and what may go out at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateConfig {
    /// Bytes per second, IP and UDP headers included.
    pub bytes_per_second: f64,
    /// Bytes that may be sent at once after a silence.
    pub burst_bytes: f64,
}

impl RateConfig {
    /// Whether the numbers are within their bounds.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::positive("bytes_per_second", self.bytes_per_second)?;
        ConfigError::positive("burst_bytes", self.burst_bytes)
    }
}

/// How much one connection may send in messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetConfig {
    /// Never more than this.
    pub rate: RateConfig,
    /// Less while the line shows that it is full.
    pub adaptive: bool,
}

impl BudgetConfig {
    /// At most this many bytes a second, in bursts of this many, and less while the line shows that it is full.
    pub fn new(bytes_per_second: f64, burst_bytes: f64) -> Self {
        BudgetConfig { rate: RateConfig { bytes_per_second, burst_bytes }, adaptive: true }
    }
}

impl Default for BudgetConfig {
    /// 10 Mbit/s in bursts of 64 KiB: far above what games send, below what floods a home connection.
    fn default() -> Self {
        BudgetConfig::new(1_250_000.0, 65_536.0)
    }
}

/// The bytes one connection may send.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pub(crate) config: RateConfig,
    pub(crate) pacer: Pacer,
}

impl Budget {
    pub(crate) fn new(config: RateConfig) -> Self {
        Budget { config, pacer: Pacer { credit: config.burst_bytes, filled_at: None } }
    }

    /// Changes the numbers, from now on.
    pub(crate) fn reconfigure(&mut self, config: RateConfig) {
        self.config = config;
        self.pacer.credit = self.pacer.credit.min(config.burst_bytes);
    }

    /// Brings the level up to date.
    pub(crate) fn refill(&mut self, now: Instant) {
        self.pacer.refill(now, self.config.bytes_per_second, self.config.burst_bytes);
    }

    /// When another packet may go.
    pub(crate) fn next(&self) -> Instant {
        self.pacer.next(self.config.bytes_per_second)
    }
}

/// Spreads a congestion controller's allowance over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    /// Bytes that may go now; below 0 when the last packet overdrew.
    pub(crate) credit: f64,
    filled_at: Option<Instant>,
}

impl Pacer {
    /// Brings the credit up to date: `rate` bytes a second came in since the last time, as long as there were fewer than
    /// `most`.
    pub(crate) fn refill(&mut self, now: Instant, rate: f64, most: f64) {
        let elapsed = self.filled_at.replace(now).map_or(Duration::ZERO, |filled| now - filled);
        if self.credit < most {
            self.credit = (self.credit + rate * elapsed.as_secs_f64()).min(most);
        }
    }

    /// Lets `bytes` go at once, whatever was owed.
    pub(crate) fn grant(&mut self, bytes: f64) {
        self.credit = bytes;
    }

    /// Whether another packet may go. The last one may overdraw, so that a packet larger than the burst goes at all.
    pub(crate) fn allows(&self) -> bool {
        self.credit > 0.0
    }

    pub(crate) fn spend(&mut self, bytes: f64) {
        self.credit -= bytes;
    }

    /// When another packet may go, at this rate.
    pub(crate) fn next(&self, rate: f64) -> Instant {
        let wait = Duration::try_from_secs_f64(-self.credit.min(0.0) / rate).unwrap_or(Duration::MAX);
        self.filled_at.map_or(Instant::ZERO, |filled| filled + wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pacer_follows_its_rate_and_keeps_what_was_granted() {
        let mut pacer = Pacer::default();
        pacer.refill(Instant::ZERO, 1e6, 500.0);
        assert!(!pacer.allows());
        pacer.refill(Instant::from_millis(1), 1e6, 500.0);
        pacer.spend(1_500.0);
        assert!(!pacer.allows(), "1,000 came in, of which 500 were kept");
        assert_eq!(pacer.next(1e6), Instant::from_millis(2));
        pacer.grant(9_000.0);
        pacer.refill(Instant::from_millis(5), 1e6, 500.0);
        pacer.spend(8_999.0);
        assert!(pacer.allows());
    }

    #[test]
    fn sends_at_its_rate_after_a_burst() {
        let mut budget = Budget::new(RateConfig { bytes_per_second: 1000.0, burst_bytes: 500.0 });
        let mut sent = 0;
        for tick in 0..=600 {
            budget.refill(Instant::from_millis(tick * 16));
            while budget.pacer.allows() {
                budget.pacer.spend(100.0);
                sent += 100;
            }
        }
        assert!((10_000..=10_200).contains(&sent), "500 + 9.6 s x 1000, and at most one packet over: {sent}");
    }
}
