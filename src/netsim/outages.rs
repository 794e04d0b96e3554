//! Outages in time: for a while no packet passes.

use super::conditions::{ConditionsError, probability, time};
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
            (f64::from(u8::from(out)) - fraction) * fade(now.since(at).as_secs_f64(), memory)
        });
        let out = rng.chance(fraction + excess);
        self.last = Some((now, out));
        out
    }
}

/// exp(-time / memory) by additions and multiplications only, so that it is the same on every platform.
fn fade(time: f64, memory: f64) -> f64 {
    const HALVINGS: i32 = 10;
    // The result can't be told from 0, nor can that of a memory of 0.
    if time >= memory * 700.0 {
        return 0.0;
    }
    let x = time / memory;
    let small = x / f64::from(1 << HALVINGS);
    let series = (1..=12).rev().fold(1.0, |sum, n| 1.0 - small / f64::from(n) * sum);
    (0..HALVINGS).fold(series, |power, _| power * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_fades_exponentially() {
        for x in [0.0, 1e-9, 0.1, 1.0, 5.0, 50.0, 600.0] {
            let (ours, exact) = (fade(x, 1.0), (-x).exp());
            assert!((ours / exact - 1.0).abs() < 1e-9, "{x}: {ours} {exact}");
        }
        assert_eq!((fade(1e9, 1.0), fade(0.0, 0.0), fade(1.0, 0.0)), (0.0, 0.0, 0.0));
    }

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
