//! Adapts delay and turn length to the network: quickly longer when data comes too late, slowly shorter when it comes
//! long before its turn.
//!
//! Each player measures, turn by turn, how long before the turn the last of its data came (the margin), and tells all
//! others its second worst. The player who decides on the pace puts its decision into its own data of a turn.

use std::collections::VecDeque;

use super::config::Pace;
use crate::time::{Duration, Instant};

/// How many turns are measured.
const WINDOW: usize = 64;
/// With fewer samples no margin is reported.
const MIN_SAMPLES: usize = 20;
/// How long the margins must be good before the delay becomes shorter, at first and at most.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);
const MAX_PATIENCE: Duration = Duration::from_secs(300);
/// The margin to aim for, in milliseconds.
const SPARE_MS: f64 = 12.0;

/// This player's margins, and the decision on the pace.
#[derive(Clone, Debug)]
pub struct Adapter {
    margins: VecDeque<i32>,
    well_since: Option<Instant>,
    patience: Duration,
    lowered: bool,
}

impl Adapter {
    pub(super) fn new() -> Self {
        Adapter { margins: VecDeque::new(), well_since: None, patience: FIRST_PATIENCE, lowered: false }
    }

    /// Notes a turn's margin in milliseconds.
    pub fn note(&mut self, ms: f64) {
        if self.margins.len() == WINDOW {
            self.margins.pop_front();
        }
        self.margins.push_back(ms as i32);
    }

    /// Starts new measurements, after a change of pace.
    pub fn clear(&mut self) {
        self.margins.clear();
        self.well_since = None;
    }

    /// The second worst margin, in milliseconds.
    pub fn worst(&self) -> Option<f64> {
        if self.margins.len() < MIN_SAMPLES {
            return None;
        }
        let (mut lowest, mut second) = (i32::MAX, i32::MAX);
        for margin in &self.margins {
            if *margin < lowest {
                (lowest, second) = (*margin, lowest);
            } else if *margin < second {
                second = *margin;
            }
        }
        Some(second.into())
    }

    /// A better pace, if there is one. `worst` is the worst margin of any player, None while one is unknown; `turn_ms`
    /// is the length of a turn of `pace.steps` sub-turns.
    pub fn decide(
        &mut self,
        now: Instant,
        worst: Option<f64>,
        pace: Pace,
        turn_ms: f64,
        min: Pace,
        max: Pace,
    ) -> Option<Pace> {
        let worst = worst?;
        if worst < 0.0 {
            self.well_since = None;
            let more = ((SPARE_MS - worst) / turn_ms).ceil().clamp(1.0, 3.0) as u8;
            let wanted = if pace.delay < max.delay {
                Pace { delay: (pace.delay + more).min(max.delay), ..pace }
            } else if pace.steps < max.steps {
                Pace { steps: pace.steps + 1, ..pace }
            } else {
                return None;
            };
            // The last step down was too short: the next try comes later.
            if core::mem::take(&mut self.lowered) {
                self.patience = (self.patience * 2).min(MAX_PATIENCE);
            }
            return Some(wanted);
        }
        let step_ms = turn_ms / f64::from(pace.steps.max(1));
        let (wanted, costs) = if pace.steps > min.steps {
            (Pace { steps: pace.steps - 1, ..pace }, step_ms * f64::from(pace.delay))
        } else if pace.delay > min.delay {
            (Pace { delay: pace.delay - 1, ..pace }, turn_ms)
        } else {
            return None;
        };
        if worst < costs + SPARE_MS {
            self.well_since = None;
            return None;
        }
        let since = *self.well_since.get_or_insert(now);
        if now - since < self.patience {
            return None;
        }
        (self.well_since, self.lowered) = (None, true);
        Some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_data_draws_the_delay_out_and_early_data_shortens_it_slowly() {
        let (min, max) = (Pace { steps: 3, delay: 2 }, Pace { steps: 4, delay: 4 });
        let mut adapter = Adapter::new();
        let at = Instant::from_millis;
        let decide = |adapter: &mut Adapter, ms, worst, pace| {
            adapter.decide(at(ms), Some(worst), pace, 99.0, min, max)
        };
        assert_eq!(decide(&mut adapter, 0, -120.0, min), Some(Pace { steps: 3, delay: 4 }));
        assert_eq!(
            decide(&mut adapter, 0, -1.0, Pace { steps: 3, delay: 4 }),
            Some(Pace { steps: 4, delay: 4 })
        );
        assert_eq!(decide(&mut adapter, 0, -1.0, max), None);
        let long = Pace { steps: 3, delay: 3 };
        assert_eq!(decide(&mut adapter, 0, 120.0, long), None);
        assert_eq!(decide(&mut adapter, 10_000, 120.0, long), Some(min));
        // The shorter pace failed: the next try takes twice as long.
        assert_eq!(decide(&mut adapter, 11_000, -5.0, min), Some(long));
        assert_eq!(decide(&mut adapter, 12_000, 120.0, long), None);
        assert_eq!(decide(&mut adapter, 23_000, 120.0, long), None);
        assert_eq!(decide(&mut adapter, 32_000, 120.0, long), Some(min));
        assert_eq!(decide(&mut adapter, 99_000, 120.0, min), None);
    }

    #[test]
    fn one_bad_turn_is_no_reason() {
        let mut adapter = Adapter::new();
        (0..WINDOW * 2).for_each(|i| adapter.note(if i % WINDOW == 0 { -300.0 } else { 40.0 }));
        assert_eq!(adapter.worst(), Some(40.0));
        adapter.note(-7.0);
        adapter.note(-9.0);
        assert_eq!(adapter.worst(), Some(-7.0));
    }
}
