//! How badly a link behaves, and what that makes of one packet.

use crate::rng::Rng;
use crate::time::{Duration, Instant};
use core::fmt;

/// The longest latency or delay: an hour. A packet later than that is a mistake in the settings.
pub const MAX_DELAY: Duration = Duration::from_secs(3600);

/// What a link does to packets, one direction. The default is a perfect link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Conditions {
    /// The time a packet takes.
    pub latency: Duration,
    /// The most by which a packet's time differs from the latency: it is uniform in latency ± jitter, drawn
    /// for each packet, so packets may overtake each other.
    pub jitter: Duration,
    /// The probability that a packet is lost.
    pub loss: f64,
    /// The probability that a packet arrives twice, each copy with its own delay.
    pub duplicate: f64,
    /// The probability that a packet is held back by `reorder_delay` more.
    pub reorder: f64,
    /// How long packets picked by `reorder` are held back.
    pub reorder_delay: Duration,
}

impl Conditions {
    /// A perfect link: no delay, no loss.
    pub fn perfect() -> Self {
        Self::default()
    }

    /// With this latency, and a time uniform in latency ± jitter for each packet.
    pub fn latency(self, latency: Duration, jitter: Duration) -> Self {
        Conditions { latency, jitter, ..self }
    }

    /// With this probability of loss.
    pub fn loss(self, probability: f64) -> Self {
        Conditions { loss: probability, ..self }
    }

    /// With this probability of a second copy.
    pub fn duplicate(self, probability: f64) -> Self {
        Conditions { duplicate: probability, ..self }
    }

    /// With packets held back by `delay` more at this probability.
    pub fn reorder(self, probability: f64, delay: Duration) -> Self {
        Conditions { reorder: probability, reorder_delay: delay, ..self }
    }

    /// Whether the conditions can be met.
    ///
    /// # Errors
    /// The first setting out of its bounds.
    pub fn check(&self) -> Result<(), ConditionsError> {
        let delay = |field, value, bound| {
            if value <= bound { Ok(()) } else { Err(ConditionsError::Delay { field, value, bound }) }
        };
        let probability = |field, value: f64| {
            if (0.0..=1.0).contains(&value) {
                Ok(())
            } else {
                Err(ConditionsError::Probability { field, value })
            }
        };
        delay("latency", self.latency, MAX_DELAY)?;
        delay("jitter", self.jitter, self.latency)?;
        delay("reorder_delay", self.reorder_delay, MAX_DELAY)?;
        probability("loss", self.loss)?;
        probability("duplicate", self.duplicate)?;
        probability("reorder", self.reorder)
    }

    /// What becomes of a packet sent at `now`.
    pub(super) fn fate(&self, now: Instant, rng: &mut Rng) -> Fate {
        if rng.chance(self.loss) {
            return Fate { first: None, second: None, reordered: 0 };
        }
        let twice = rng.chance(self.duplicate);
        let mut reordered = 0;
        let mut arrival = || {
            let held_back = rng.chance(self.reorder);
            reordered += u64::from(held_back);
            let extra = if held_back { self.reorder_delay } else { Duration::ZERO };
            now + self.delay(rng) + extra
        };
        let first = Some(arrival());
        let second = twice.then(arrival);
        Fate { first, second, reordered }
    }

    /// Uniform in latency ± jitter.
    fn delay(&self, rng: &mut Rng) -> Duration {
        self.latency.saturating_sub(self.jitter) + (self.jitter * 2).mul_f64(rng.unit())
    }
}

/// When a packet and its second copy arrive; neither when it is lost.
pub(super) struct Fate {
    pub(super) first: Option<Instant>,
    pub(super) second: Option<Instant>,
    /// How many copies were held back.
    pub(super) reordered: u64,
}

/// Conditions that can't be met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConditionsError {
    /// A time is too long.
    Delay {
        /// The name of the setting.
        field: &'static str,
        /// What it was set to.
        value: Duration,
        /// The most it may be.
        bound: Duration,
    },
    /// A probability is not between 0 and 1.
    Probability {
        /// The name of the setting.
        field: &'static str,
        /// What it was set to.
        value: f64,
    },
}

impl fmt::Display for ConditionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConditionsError::Delay { field: "jitter", value, bound } => {
                write!(f, "The jitter is {value:?}; it may be at most the latency, {bound:?}.")
            }
            ConditionsError::Delay { field, value, bound } => {
                write!(f, "The {field} is {value:?}; it may be at most {bound:?}.")
            }
            ConditionsError::Probability { field, value } => {
                write!(f, "The probability {field} is {value}; it must be from 0 to 1.")
            }
        }
    }
}

impl std::error::Error for ConditionsError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn jitter_is_uniform_around_the_latency() {
        let conditions = Conditions::perfect().latency(ms(50), ms(10));
        let mut rng = Rng::seeded(1);
        let delays: Vec<_> = (0..10_000).map(|_| conditions.delay(&mut rng)).collect();
        assert!(delays.iter().all(|d| (ms(40)..=ms(60)).contains(d)));
        let below = delays.iter().filter(|d| **d < ms(45)).count();
        assert!((2370..2630).contains(&below), "{below}: a quarter, within 3 sigma");
    }

    #[test]
    fn conditions_that_cannot_be_met_are_named() {
        let message = |conditions: Conditions| conditions.check().unwrap_err().to_string();
        let perfect = Conditions::perfect();
        assert_eq!(perfect.check(), Ok(()));
        assert_eq!(message(perfect.loss(1.5)), "The probability loss is 1.5; it must be from 0 to 1.");
        assert_eq!(
            message(perfect.duplicate(f64::NAN)),
            "The probability duplicate is NaN; it must be from 0 to 1."
        );
        assert_eq!(
            message(perfect.latency(ms(5), ms(6))),
            "The jitter is 6ms; it may be at most the latency, 5ms."
        );
        assert_eq!(
            message(perfect.reorder(0.1, ms(3_600_001))),
            "The reorder_delay is 3600.001s; it may be at most 3600s."
        );
    }
}
