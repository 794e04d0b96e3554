//! Outages in time: for a while no packet passes.

use super::conditions::{ConditionsError, probability, time};
use crate::exact::decay;
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// The shortest mean outage.
const MIN_DURATION: Duration = Duration::from_micros(1);

/// Outages that come and go at random: their durations and the times between them are exponential.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outages {
    /// The mean duration of an outage.
    pub duration: Duration,
    /// The fraction of the time that they take.
    pub fraction: f64,
}

impl Outages {
    /// Whether the settings are valid.
    ///
    /// # Errors
    /// The first setting out of its bounds.
    pub fn check(&self) -> Result<(), ConditionsError> {
        time("duration of outages", self.duration, MIN_DURATION)?;
        probability("fraction of outages", self.fraction)
    }
}

/// Whether the link was out when it was last asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OutageState {
    last: Option<(Instant, bool)>,
}

impl OutageState {
    /// Whether the link is out at `now`, which must not be before the last time asked for.
    ///
    /// The process is memoryless, so the last state and the time since then give the probability of the present state:
    /// one draw, however long ago that was.
    pub(super) fn is_out(&mut self, now: Instant, outages: &Outages, rng: &mut Rng) -> bool {
        let fraction = outages.fraction;
        let excess = self.last.map_or(0.0, |(at, out)| {
            let memory = outages.duration.as_secs_f64() * (1.0 - fraction);
            (f64::from(u8::from(out)) - fraction) * decay(now.since(at).as_secs_f64() / memory)
        });
        let out = rng.chance(fraction + excess);
        self.last = Some((now, out));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_can_be_out_always_or_never() {
        let mut rng = Rng::seeded(1);
        for (fraction, out) in [(0.0, false), (1.0, true)] {
            let outages = Outages { duration: Duration::from_secs(1), fraction };
            let mut state = OutageState::default();
            let mut at = |millis| state.is_out(Instant::from_millis(millis), &outages, &mut rng);
            assert!((0..1000).all(|n| at(n * 7) == out));
        }
    }
}
