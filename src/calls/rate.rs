//! How often a peer may make a call.

use core::fmt;

use crate::store::Bucket;
use crate::time::{Duration, Instant};

/// The most calls a second, or at once, that a rate can grant.
const MAX_RATE: f64 = 1e6;

/// How often a call may be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// The time between calls, and between bursts.
    cost: Duration,
    whole: Duration,
}

/// Which part of a rate is out of its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateError {
    name: &'static str,
    low: f64,
    value: f64,
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RateError { name, low, value } = self;
        write!(f, "{name} must be {low} to {MAX_RATE} calls, not {value}")
    }
}

impl Rate {
    /// This many calls a second, and `burst` at once after a silence.
    ///
    /// # Errors
    ///
    /// One of them is out of its bounds.
    pub fn new(per_second: f64, burst: f64) -> Result<Self, RateError> {
        for (name, low, value) in [("rate", 0.001, per_second), ("burst", 1.0, burst)] {
            if !(low..=MAX_RATE).contains(&value) {
                return Err(RateError { name, low, value });
            }
        }
        // Rounded up, so that no more calls pass than the rate says.
        let cost = Duration::from_nanos((1e9 / per_second).ceil() as u64);
        // Exact for whole bursts, or rounding might take away a burst's last call.
        Ok(Rate { cost, whole: cost * burst as u32 + cost.mul_f64(burst.fract()) })
    }

    /// Takes a call from a peer's bucket; false if there is none.
    pub fn take(&self, bucket: &mut Bucket, now: Instant) -> bool {
        bucket.take(now, self.cost, self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_without_calls_is_refused() {
        for (rate, burst) in [(0.0, 5.0), (f64::NAN, 5.0), (1.0, 0.5), (1.0, f64::INFINITY), (-1.0, 1.0)] {
            assert!(Rate::new(rate, burst).is_err(), "{rate} {burst}");
        }
        let error = Rate::new(1.0, 0.0).unwrap_err().to_string();
        assert_eq!(error, "burst must be 1 to 1000000 calls, not 0");
    }
}
