//! Jitter in runs: a delay that walks at random, so that neighbouring packets are similarly late and keep their
//! order.

use super::conditions::{ConditionsError, time};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// The shortest memory of a randomly walking delay.
const MIN_MEMORY: Duration = Duration::from_micros(1);

/// A delay that walks at random between two walls: at any one time it is uniform in ± `range`, and the
/// correlation of two times falls as exp(-apart / `memory`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomWalk {
    /// The most by which the delay differs from the latency.
    pub range: Duration,
    /// How long the delay stays similar: its correlation time.
    pub memory: Duration,
}

impl RandomWalk {
    /// Whether the walk is valid.
    ///
    /// # Errors
    /// The first setting out of its bounds.
    pub fn check(&self) -> Result<(), ConditionsError> {
        time("delay", self.range, Duration::ZERO)?;
        time("time", self.memory, MIN_MEMORY)
    }
}

/// The current delay, and when the last packet was let out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RandomWalkState {
    /// The time, and the place between the walls, 0 to 1.
    last: Option<(Instant, f64)>,
    last_out: Instant,
}

impl RandomWalkState {
    /// When a packet at `now`, not before the last one, has waited for 0 to twice the range: not before the
    /// one ahead of it.
    pub(super) fn pass(&mut self, now: Instant, random_walk: &RandomWalk, rng: &mut Rng) -> Instant {
        let place = match self.last {
            None => rng.unit(),
            Some((at, place)) => {
                // A walk with this variance forgets its place, between walls 1 apart, in the time set.
                let lapse = now.since(at).as_secs_f64() / random_walk.memory.as_secs_f64();
                let deviation = core::f64::consts::SQRT_2 / core::f64::consts::PI * lapse.sqrt();
                fold(place + deviation * nearly_normal(rng))
            }
        };
        self.last = Some((now, place));
        self.last_out = self.last_out.max(now + (random_walk.range * 2).mul_f64(place));
        self.last_out
    }
}

/// The sum of four uniform numbers, of mean 0 and variance 1: any step that goes both ways alike leaves the
/// places uniform, and this one needs nothing that differs between platforms.
fn nearly_normal(rng: &mut Rng) -> f64 {
    let sum: f64 = (0..4).map(|_| rng.unit() - 0.5).sum();
    sum * 3f64.sqrt()
}

/// Reflects a place at the walls 0 and 1 until it is between them.
fn fold(place: f64) -> f64 {
    let turn = place.rem_euclid(2.0);
    if turn > 1.0 { 2.0 - turn } else { turn }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walls_reflect() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        for (place, folded) in [(0.3, 0.3), (1.2, 0.8), (-0.2, 0.2), (2.1, 0.1), (-1.3, 0.7), (7.4, 0.6)] {
            close(fold(place), folded);
        }
    }

    #[test]
    fn a_step_has_mean_0_and_variance_1() {
        let mut rng = Rng::seeded(3);
        let steps: Vec<_> = (0..100_000).map(|_| nearly_normal(&mut rng)).collect();
        let mean = steps.iter().sum::<f64>() / 1e5;
        let variance = steps.iter().map(|step| step * step).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.015, "{mean} {variance}");
    }
}
